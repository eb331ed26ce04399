"""Rendering kernels of rows (see `rows`): a tile of rows at a time, which stays in the cache.

pack the second operands of the first products        (shared, once)
for a tile of rows of a batch                         (parts)
  first products: micro-kernel, panel by panel, into rows in scratch memory
  for each row: a loop along it for each stage of reductions; what is costly is kept
  second products: micro-kernel, from rows in scratch memory
  for each row: the stores of results
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fxarray.devices.cpu.contraction import micro
from fxarray.devices.cpu.contraction.evaluate import Evaluator, Piece, Position
from fxarray.devices.cpu.contraction.forms import Form, one_by_one
from fxarray.devices.cpu.contraction.panels import Side, pack, place, steps_of
from fxarray.devices.cpu.contraction.recognise import Group, Run, is_plain, total
from fxarray.devices.cpu.contraction.rows import Rows, Second, costly
from fxarray.devices.cpu.emit import combine as combining
from fxarray.devices.cpu.emit import lanes as emit_lanes
from fxarray.devices.cpu.emit import memory, scalars
from fxarray.devices.cpu.emit.function import FunctionText, Operand, module
from fxarray.devices.cpu.emit.types import Value
from fxarray.devices.cpu.native.routine import (
    RUN_WORD,
    FunctionPointer,
    Routine,
    ScratchPointer,
    SizeWord,
    Word,
)
from fxarray.devices.cpu.native.target import Target
from fxarray.kernel import sizes
from fxarray.kernel.ir import Contract, Kernel, Load, Op, Reduce, Store, arguments
from fxarray.kernel.rewrite import needed
from fxarray.kernel.sizes import Size

# Vectors of a row that a loop takes at once: as many chains of dependent reductions.
_UNROLL = 2
_PART = "(ptr %runtime, ptr %words, i64 %thread, i64 %part)"
# Multiplications and additions below which one part does all.
_GRAIN = 1 << 18
_PARTS = 64


def _aligned(count: int) -> int:
    return -(-count // 64) * 64


@dataclass(frozen=True)
class _Packed:
    """A packing function with its words, and where its panels are in scratch memory."""

    function: FunctionPointer
    piece: Piece
    offset: Size
    panel_bytes: int
    panels: int


class RowsPlan:
    """Renders one kernel of rows."""

    def __init__(self, rows: Rows, target: Target) -> None:
        self.rows, self.target, self.kernel = rows, target, rows.kernel
        kernel = self.kernel
        node = kernel.body[rows.firsts[0].number]
        assert isinstance(node, Contract)
        self.form = form = one_by_one(node.dtype, target)
        self.length = self.known(kernel.sizes[rows.along])
        count = self.known(total(rows.rows))
        self.height = min(form.height, -(-count // max(1, -(-count // form.height))))
        self.tiles = -(-count // self.height)
        self.count = count
        self.padded = -(-self.length // form.width) * form.width + form.lanes

    @staticmethod
    def known(size: Size) -> int:
        assert isinstance(size, int)
        return size

    @property
    def supported(self) -> bool:
        """Whether all products have one real arithmetic of floats."""
        kernel = self.kernel
        dtypes = {kernel.dtypes[c.number] for c in (*self.rows.firsts, *self.rows.seconds)}
        depth = all(isinstance(run.size, int) for first in self.rows.firsts for run in first.depth)
        # Rows of a tile stay in the second-level cache.
        small = self.padded * self.form.item * self.height * len(self.rows.firsts) <= 1 << 20
        return (
            depth
            and small
            and not self.form.complex
            and self.form.dtype in ("f32", "f64")
            and dtypes == {self.form.dtype}
        )

    # --- packing the second operands --------------------------------------------------------------

    def _pack_columns(self, value: int, rows: Group, depth: Group, offset: Size) -> _Packed:
        """Panels of an operand, for all batches."""
        piece = Piece(self.kernel)
        nodes = needed(self.kernel, [value])
        batch = self.rows.batch
        side = Side(self.form, False, self.form.width, value, batch, rows, depth, "rows")
        side.along = along_of(self.kernel, side, nodes)
        text = pack(piece, side)
        steps = self.known(steps_of(depth, self.form))
        panel_bytes = _aligned(steps * self.form.width * self.form.item)
        panels = -(-self.known(total(rows)) // self.form.width)
        return _Packed(FunctionPointer(text), piece, offset, panel_bytes, panels)

    # --- the whole --------------------------------------------------------------------------------

    def routine(self) -> Routine:
        kernel, form, rows = self.kernel, self.form, self.rows
        batches = total(rows.batch)
        scratch: Size = 0
        packed: list[_Packed] = []
        along = (Run(rows.along, self.length),)
        for first in rows.firsts:
            packed.append(self._pack_columns(first.b, along, first.depth, scratch))
            size = packed[-1].panel_bytes * packed[-1].panels
            scratch = sizes.add(scratch, sizes.multiply(batches, size))
        matrices: list[_Packed | None] = []
        for second in rows.seconds:
            if self.distance(second) is not None:
                matrices.append(None)
                continue
            assert rows.columns is not None
            columns = (Run(rows.columns, self.known(kernel.sizes[rows.columns])),)
            matrices.append(self._pack_columns(second.matrix, columns, along, scratch))
            made = matrices[-1]
            assert made is not None
            scratch = sizes.add(scratch, sizes.multiply(batches, made.panel_bytes * made.panels))

        tile = _Tile(self, packed, matrices)
        tile.write()
        functions: list[tuple[FunctionText, str]] = []
        every = [p for p in (*packed, *matrices) if p is not None]
        functions.append((tile.f, tile.f.definition(f"@rows{_PART}", "internal")))
        for number, one in enumerate(every):
            f = self._pack_phase(one, tile)
            functions.append((f, f.definition(f"@pack{number}{_PART}", "internal")))
        entry = self._entry(tile, every)
        functions.append((entry, entry.definition("@entry(ptr %runtime, ptr %words)")))
        work = sizes.multiply(batches, self.count * self.length * 2 * self._depth())
        moved: Size = 0
        for buffer in (*kernel.inputs, *kernel.outputs):
            moved = sizes.add(moved, sizes.multiply(sizes.product(buffer.shape), form.item))
        return Routine(
            module(functions), tuple(tile.piece.words), scratch, tile.memory, work, moved
        )

    def _depth(self) -> int:
        depth = sum(sizes.typical(total(first.depth)) for first in self.rows.firsts)
        if self.rows.columns is not None:
            columns = self.known(self.kernel.sizes[self.rows.columns])
            depth += columns * len(self.rows.seconds)
        return depth

    def parts(self, count: int) -> int:
        """Parts of so many equal pieces of the work."""
        batches = sizes.typical(total(self.rows.batch))
        work = batches * self.count * self.length * self._depth()
        return max(1, min(_PARTS, count, work // _GRAIN))

    def distance(self, second: Second) -> Size | None:
        """The distance of rows of a matrix that can be read where it lies, or None."""
        kernel = self.kernel
        node = kernel.body[second.matrix]
        if not is_plain(kernel, second.matrix) or not isinstance(node, Load):
            return None
        index = node.buffer.flat(node.index)
        if node.buffer.dtype != self.form.dtype or index.coefficient(self.rows.columns or "") != 1:
            return None
        return index.coefficient(self.rows.along)

    def _pack_phase(self, packed: _Packed, tile: _Tile) -> FunctionText:
        """Packs a share of all panels of one operand."""
        piece = Piece(self.kernel)
        f = piece.f
        # Words are shared by all functions, in the order in which the tile's function took them.
        scratch = tile.share_word(f, ScratchPointer(), "ptr")
        function = tile.share_word(f, packed.function, "ptr")
        words = tile.share_section(f, packed)
        batches = tile.share_size(f, total(self.rows.batch))
        count = f.multiply(batches, packed.panels)
        parts = self.parts(8)
        low = f.new(f"udiv i64 {f.multiply('%part', count)}, {parts}")
        high = f.new(f"udiv i64 {f.multiply(f.add('%part', 1), count)}, {parts}")
        start = f.offset(scratch, tile.share_size(f, packed.offset))
        rows = self.length if packed in tile.packed else self.columns()
        depth = self._steps(packed, tile)

        def one(number: Operand) -> None:
            batch = f.new(f"udiv i64 {number}, {packed.panels}")
            panel = f.subtract(number, f.multiply(batch, packed.panels))
            row = f.multiply(panel, self.form.width)
            some = f.smaller(self.form.width, f.subtract(rows, row))
            out = f.offset(start, f.multiply(number, packed.panel_bytes))
            f.do(
                f"call void {function}(ptr {words}, ptr {out}, i64 {batch}, i64 {row}, "
                f"i64 {some}, i64 0, i64 {depth})"
            )

        f.loop(low, high, 1, one)
        return f

    def columns(self) -> int:
        assert self.rows.columns is not None
        return self.known(self.kernel.sizes[self.rows.columns])

    def _steps(self, packed: _Packed, tile: _Tile) -> int:
        if packed in tile.packed:
            first = self.rows.firsts[tile.packed.index(packed)]
            return self.known(steps_of(first.depth, self.form))
        return self.length

    def _entry(self, tile: _Tile, every: list[_Packed]) -> FunctionText:
        f = FunctionText()
        run = f.load_word("%runtime", RUN_WORD, "ptr")

        def phase(name: str, parts: int) -> None:
            if parts == 1:
                f.do(f"call void @{name}(ptr %runtime, ptr %words, i64 0, i64 0)")
            else:
                f.do(f"call void {run}(ptr %runtime, ptr @{name}, ptr %words, i64 {parts})")

        for number in range(len(every)):
            phase(f"pack{number}", self.parts(8))
        phase("rows", self.row_parts)
        return f

    @property
    def row_parts(self) -> int:
        """Parts of the tiles of all batches."""
        return self.parts(self.tiles * max(1, sizes.typical(total(self.rows.batch))))


def along_of(kernel: Kernel, side: Side, nodes: set[int]) -> str:
    """What the lanes of a packing function run along: where loads are contiguous."""
    if side.form.complex or not side.depth:
        return "rows"
    row = side.rows[-1].axis if side.rows else ""
    depth = side.depth[-1].axis
    for number in sorted(nodes):
        node = kernel.body[number]
        if isinstance(node, Load):
            index = node.buffer.flat(node.index)
            if index.coefficient(depth) == 1 and index.coefficient(row) not in (0, 1):
                return "depth"
    return "rows"


class _Tile:
    """The function that does a share of the tiles of rows."""

    def __init__(
        self, plan: RowsPlan, packed: list[_Packed], matrices: list[_Packed | None]
    ) -> None:
        self.plan, self.rows, self.kernel = plan, plan.rows, plan.kernel
        self.form: Form = plan.form
        self.packed, self.matrices = packed, matrices
        self.piece = Piece(plan.kernel)
        self.f: FunctionText = self.piece.f
        self.row_bytes = plan.padded * self.form.item
        block = _aligned(plan.height * self.row_bytes)
        self.memory = 0

        def take(count: int) -> int:
            start = self.memory
            self.memory += _aligned(count)
            return start

        depth = max(plan.known(steps_of(first.depth, self.form)) for first in self.rows.firsts)
        self.left_at = take(depth * self.form.padded(plan.height) * self.form.item)
        self.blocks_at = [take(block) for _ in self.rows.firsts]
        self.kept = self._kept_values()
        # The row that a second product takes, and what is kept: what is kept may be that row.
        self.kept_at: dict[int, int] = {}
        for second in self.rows.seconds:
            value = self.source(second)
            if value in self.kept and value not in self.kept_at:
                self.kept_at[value] = take(block)
        for value in self.kept:
            self.kept_at.setdefault(value, -1)
        for value, at in self.kept_at.items():
            if at < 0:
                self.kept_at[value] = take(self.row_bytes)
        self.left: dict[int, int] = {}
        for second in self.rows.seconds:
            value = self.source(second)
            if value not in self.kept and value not in self.left:
                self.left[value] = take(block)
        columns = plan.columns() if self.rows.seconds else 0
        self.result_row = -(-columns // self.form.width) * self.form.width
        size = plan.height * self.result_row * self.form.item
        self.results_at = [take(size) for _ in self.rows.seconds]
        reduced = [number for stage in self.rows.stages for number in stage]
        self.reduced_at = {number: take(plan.height * 8) for number in reduced}

    def factored(self, second: Second) -> bool:
        """Whether the row is multiplied as it was kept, and its factor afterwards."""
        return second.row not in self.kept and second.kept in self.kept

    def source(self, second: Second) -> int:
        """The value that is multiplied by the matrix."""
        if self.factored(second):
            assert second.kept is not None
            return second.kept
        return second.row

    def _kept_values(self) -> list[int]:
        """Values that are kept where a reduction first needs them, as they are costly."""
        kernel, rows = self.kernel, self.rows
        given = {first.number for first in rows.firsts}
        found: list[int] = []
        stages = rows.stages
        for position, stage in enumerate(stages):
            for number in stage:
                (value,) = arguments(kernel.body[number])
                later = [x for after in stages[position + 1 :] for x in after]
                later += [second.row for second in rows.seconds]
                later += rows.row_stores
                if (
                    value not in found
                    and rows.along in kernel.value_axes[value]
                    and any(value in needed(kernel, [x]) for x in later)
                    and costly(kernel, value, given | set(found))
                    and kernel.dtypes[value] == self.form.dtype
                ):
                    found.append(value)
        return found

    # --- words that all functions of the module read ----------------------------------------------

    def share_word(self, f: FunctionText, word: Word, type_: str) -> Operand:
        """A word, in another function of the module."""
        self.piece.word(word, type_)
        number = self.piece.words.index(word)
        return f.load_word("%words", number, type_)

    def share_size(self, f: FunctionText, size: Size) -> Operand:
        if isinstance(size, int):
            return str(size)
        return self.share_word(f, SizeWord(size), "i64")

    def section_start(self, packed: _Packed) -> int:
        """Where the words of a packing function start; they are added at first use."""
        words = tuple(packed.piece.words)
        every = self.piece.words
        for start in range(len(every) - len(words) + 1):
            if tuple(every[start : start + len(words)]) == words:
                return start
        every.extend(words)
        return len(every) - len(words)

    def share_section(self, f: FunctionText, packed: _Packed) -> Operand:
        return f.offset("%words", self.section_start(packed), "i64")

    # --- the function -----------------------------------------------------------------------------

    def write(self) -> None:
        f, plan, rows = self.f, self.plan, self.rows
        scratch = self.piece.word(ScratchPointer(), "ptr")
        self.scratch = scratch
        self.own = f.offset(scratch, f.multiply("%thread", self.memory))
        self.packing = self._shared_size()
        self.own = f.offset(self.own, self.packing)
        batches = self.piece.size(total(rows.batch))
        count = f.multiply(batches, plan.tiles)
        parts = plan.row_parts
        self.functions()
        low = f.new(f"udiv i64 {f.multiply('%part', count)}, {parts}")
        high = f.new(f"udiv i64 {f.multiply(f.add('%part', 1), count)}, {parts}")

        def one(number: Operand) -> None:
            batch = f.new(f"udiv i64 {number}, {plan.tiles}")
            tile = f.subtract(number, f.multiply(batch, plan.tiles))
            self.tile(batch, f.multiply(tile, plan.height))

        f.loop(low, high, 1, one)

    def _shared_size(self) -> Operand:
        """Bytes of scratch memory before that of the threads."""
        whole: Size = 0
        batches = total(self.rows.batch)
        for one in (*self.packed, *self.matrices):
            if one is not None:
                whole = sizes.add(whole, sizes.multiply(batches, one.panel_bytes * one.panels))
        return self.piece.size(whole)

    def functions(self) -> None:
        """The functions that are called, and packing functions of the first operands."""
        plan, form = self.plan, self.form
        self.micro = self.piece.word(
            FunctionPointer(micro.packed(form, plan.height, plan.target)), "ptr"
        )
        if self.rows.seconds:
            text = micro.direct(form, plan.height, form.vectors, plan.target)
            self.direct = self.piece.word(FunctionPointer(text), "ptr")
        self.left_packs: list[tuple[Operand, Operand]] = []
        for first in self.rows.firsts:
            piece = Piece(self.kernel)
            side = Side(
                form,
                True,
                form.padded(plan.height),
                first.a,
                self.rows.batch,
                self.rows.rows,
                first.depth,
                "rows",
            )
            side.along = along_of(self.kernel, side, needed(self.kernel, [first.a]))
            text = pack(piece, side)
            function = self.piece.word(FunctionPointer(text), "ptr")
            packed = _Packed(FunctionPointer(text), piece, 0, 0, 0)
            words = self.f.offset("%words", self.section_start(packed), "i64")
            self.left_packs.append((function, words))

    def at(self, offset: int) -> Operand:
        return self.f.offset(self.own, offset)

    def tile(self, batch: Operand, row: Operand) -> None:
        f, plan, rows = self.f, self.plan, self.rows
        count = f.smaller(plan.height, f.subtract(plan.count, row))
        end: Operand = str(plan.length)
        if rows.bound is not None:
            last = f.add(f.add(row, count), rows.bound)
            end = f.smaller(last, plan.length)
        self.end = end
        batch_base = place(self.piece, rows.batch, batch) if rows.batch else {}
        for number, first in enumerate(rows.firsts):
            self._first(number, plan.known(steps_of(first.depth, self.form)), batch, row, count)

        def one(r: Operand) -> None:
            base = {**batch_base, **place(self.piece, rows.rows, f.add(row, r))}
            self._row(base, r)

        f.loop(0, count, 1, one)
        for number, second in enumerate(rows.seconds):
            self._second(number, second, batch, batch_base)
        if not rows.seconds:
            return

        def result(r: Operand) -> None:
            base = {**batch_base, **place(self.piece, rows.rows, f.add(row, r))}
            self._results(base, r)

        f.loop(0, count, 1, result)

    def _first(self, number: int, steps: int, batch: Operand, row: Operand, count: Operand) -> None:
        f, form, packed = self.f, self.form, self.packed[number]
        function, words = self.left_packs[number]
        left = self.at(self.left_at)
        f.do(
            f"call void {function}(ptr {words}, ptr {left}, i64 {batch}, i64 {row}, i64 {count}, "
            f"i64 0, i64 {steps})"
        )
        start = f.offset(self.scratch, self.piece.size(packed.offset))
        start = f.offset(start, f.multiply(batch, packed.panel_bytes * packed.panels))
        block = self.at(self.blocks_at[number])
        row_numbers = self.row_bytes // form.item

        def panel(column: Operand) -> None:
            index = f.new(f"udiv i64 {column}, {form.width}")
            b = f.offset(start, f.multiply(index, packed.panel_bytes))
            f.do(
                f"call void {self.micro}(i64 {steps}, ptr {left}, i64 0, i64 0, ptr {b}, i64 0, "
                f"ptr {f.offset(block, column, form.element)}, i64 {row_numbers}, "
                f"i64 {form.width}, i1 true)"
            )

        f.loop(0, self.end, form.width, panel)

    # --- a row ------------------------------------------------------------------------------------

    def _row(self, base: dict[str, Operand], r: Operand) -> None:
        f, kernel, rows = self.f, self.kernel, self.rows
        self.row_number = r
        evaluator = Evaluator(self.piece, Position(dict(base)))
        kept: set[int] = set()
        for stage in rows.stages:
            new = [
                value
                for number in stage
                for value in arguments(kernel.body[number])
                if value in self.kept and value not in kept
            ]
            self._stage(evaluator, stage, kept, new)
            kept.update(new)
        lefts = list(self.left)
        if lefts or rows.row_stores:
            self._finish_row(evaluator, kept, lefts)
        if rows.single_stores:
            for number in rows.single_stores:
                node = kernel.body[number]
                assert isinstance(node, Store)
                evaluator.store(node)
        if rows.seconds:
            for number in self.reduced_at:
                memory.store(f, evaluator.given[number], self._reduced_place(number))

    def _reduced_place(self, number: int) -> Operand:
        """Where a value of a whole row waits for the results of second products."""
        start = self.at(self.reduced_at[number])
        return self.f.offset(start, self.row_number, "i64")

    def _element_place(self, value: int, s: Operand) -> Operand:
        """Where an element of a kept value or of a row for a second product is."""
        f = self.f
        start = self.at(self.left[value] if value in self.left else self.kept_at[value])
        blocked = any(self.source(second) == value for second in self.rows.seconds)
        if blocked:
            start = f.offset(start, f.multiply(self.row_number, self.row_bytes))
        return f.offset(start, s, self.form.element)

    def _elements(
        self, evaluator: Evaluator, s: Operand, mask: Operand | None, kept: set[int]
    ) -> Evaluator:
        """An evaluator for a vector of elements, with what is known of them."""
        f, form = self.f, self.form
        position = Position({**evaluator.position.base, self.rows.along: s}, self.rows.along)
        position.lanes, position.mask = form.lanes, mask
        made = Evaluator(self.piece, position, dict(evaluator.given))
        made.inherit(evaluator)
        for number, first in enumerate(self.rows.firsts):
            start = f.offset(
                self.at(self.blocks_at[number]), f.multiply(self.row_number, self.row_bytes)
            )
            pointer = f.offset(start, s, form.element)
            made.later[first.number] = lambda p=pointer: memory.load(f, p, form.dtype, form.lanes)
        for value in kept:
            pointer = self._element_place(value, s)
            made.later[value] = lambda p=pointer: memory.load(f, p, form.dtype, form.lanes)
        return made

    def _along(self, call: Callable[[Operand, Operand | None, int], None]) -> None:
        """Runs along the row: whole vectors, several at once, and the rest under masks."""
        f, lanes = self.f, self.form.lanes
        step = lanes * _UNROLL
        end = self.end
        whole = str(int(end) // step * step) if end.isdigit() else f.new(f"and i64 {end}, {-step}")

        def several(s: Operand) -> None:
            for u in range(_UNROLL):
                call(f.add(s, u * lanes), None, u)

        f.loop(0, whole, step, several)
        if end != whole:
            f.loop(
                whole,
                end,
                lanes,
                lambda s: call(s, emit_lanes.tail_mask(f, f.subtract(end, s), lanes), 0),
            )

    def _scalars(self, evaluator: Evaluator, wanted: list[int]) -> None:
        """Finds what is one for the whole row before the loop along it."""
        kernel = self.kernel
        stopped = {first.number for first in self.rows.firsts}
        found: set[int] = set()
        todo = list(wanted)
        while todo:
            number = todo.pop()
            if number in found or number in stopped or number in evaluator.given:
                continue
            found.add(number)
            todo.extend(arguments(kernel.body[number]))
        evaluator.hoist(found, [self.rows.along])

    def _stage(
        self, evaluator: Evaluator, stage: tuple[int, ...], kept: set[int], new: list[int]
    ) -> None:
        f, kernel, form = self.f, self.kernel, self.form
        reduces = [node for i in stage if isinstance(node := kernel.body[i], Reduce)]
        self._scalars(evaluator, [reduce.args[0] for reduce in reduces])
        cells: list[list[Operand]] = []
        for reduce in reduces:
            dtype = kernel.dtypes[reduce.args[0]]
            start = combining.identity(reduce.combiner, 0, dtype, form.lanes)
            cells.append([f.alloca(start.type, start.operand) for _ in range(_UNROLL)])

        def chunk(s: Operand, mask: Operand | None, u: int) -> None:
            elements = self._elements(evaluator, s, mask, kept)
            for reduce, cell in zip(reduces, cells, strict=True):
                value = scalars.splat(f, elements.value(reduce.args[0]), form.lanes)
                before = Value(
                    value.dtype, form.lanes, (f.new(f"load {value.type}, ptr {cell[u]}"),)
                )
                (after,) = combining.combine(f, reduce.combiner, [before], [value])
                result = after.operand
                if mask is not None:
                    result = f.new(
                        f"select <{form.lanes} x i1> {mask}, {value.type} {result}, "
                        f"{value.type} {before.operand}"
                    )
                f.do(f"store {value.type} {result}, ptr {cell[u]}")
            for number in new:
                value = scalars.splat(f, elements.value(number), form.lanes)
                memory.store(f, value, self._element_place(number, s))

        self._along(chunk)
        for number, reduce, cell in zip(stage, reduces, cells, strict=True):
            dtype = kernel.dtypes[reduce.args[0]]
            start = combining.identity(reduce.combiner, 0, dtype, form.lanes)
            values = [
                Value(dtype, form.lanes, (f.new(f"load {start.type}, ptr {c}"),)) for c in cell
            ]
            whole = values[0]
            for value in values[1:]:
                (whole,) = combining.combine(f, reduce.combiner, [whole], [value])
            (evaluator.given[number],) = emit_lanes.horizontal(f, reduce.combiner, [whole])

    def _finish_row(self, evaluator: Evaluator, kept: set[int], lefts: list[int]) -> None:
        """The rows that second products take, and stores of elements."""
        f, kernel, form = self.f, self.kernel, self.form
        stores = [node for i in self.rows.row_stores if isinstance(node := kernel.body[i], Store)]
        self._scalars(evaluator, [*lefts, *[store.value for store in stores]])

        def chunk(s: Operand, mask: Operand | None, _: int) -> None:
            elements = self._elements(evaluator, s, mask, kept)
            for number in lefts:
                value = scalars.splat(f, elements.value(number), form.lanes)
                memory.store(
                    f, scalars.convert(f, value, form.dtype), self._element_place(number, s)
                )
            for store in stores:
                elements.store(store)

        self._along(chunk)
        if self.rows.bound is None or not stores:
            return

        def nothing(s: Operand) -> None:
            mask = emit_lanes.tail_mask(f, f.subtract(self.plan.length, s), form.lanes)
            elements = self._elements(evaluator, s, mask, set())
            for store in stores:
                dtype = kernel.dtypes[store.value]
                elements.given[store.value] = scalars.constant(0, dtype, form.lanes)
                elements.store(store)

        f.loop(self.end, self.plan.length, form.lanes, nothing)

    # --- second products --------------------------------------------------------------------------

    def _second(
        self, number: int, second: Second, batch: Operand, batch_base: dict[str, Operand]
    ) -> None:
        f, form, plan = self.f, self.form, self.plan
        self.row_number = "0"
        left = self._element_place(self.source(second), "0")
        row_numbers = self.row_bytes // form.item
        columns = plan.columns()
        result = self.at(self.results_at[number])
        packed = self.matrices[number]
        if packed is None:
            node = self.kernel.body[second.matrix]
            assert isinstance(node, Load)
            base = {**batch_base, self.rows.along: "0", self.rows.columns or "": "0"}
            evaluator = Evaluator(self.piece, Position(base))
            matrix = evaluator.address(node)
            distance = plan.distance(second)
            assert distance is not None
            b_step = self.piece.size(distance)
        else:
            matrix = f.offset(self.scratch, self.piece.size(packed.offset))
            matrix = f.offset(matrix, f.multiply(batch, packed.panel_bytes * packed.panels))
            b_step = str(form.width)

        def panel(column: Operand) -> None:
            if packed is None:
                b = f.offset(matrix, column, form.element)
            else:
                index = f.new(f"udiv i64 {column}, {form.width}")
                b = f.offset(matrix, f.multiply(index, packed.panel_bytes))
            some = f.smaller(form.width, f.subtract(columns, column))
            f.do(
                f"call void {self.direct}(i64 {self.end}, ptr {left}, i64 {row_numbers}, i64 1, "
                f"ptr {b}, i64 {b_step}, ptr {f.offset(result, column, form.element)}, "
                f"i64 {self.result_row}, i64 {some}, i1 true)"
            )

        f.loop(0, columns, form.width, panel)

    def _results(self, base: dict[str, Operand], r: Operand) -> None:
        f, kernel, form, rows = self.f, self.kernel, self.form, self.rows
        self.row_number = r
        assert rows.columns is not None
        columns = self.plan.columns()
        evaluator = Evaluator(self.piece, Position(dict(base)))
        for number in self.reduced_at:
            place_ = self._reduced_place(number)
            evaluator.given[number] = memory.load(f, place_, kernel.dtypes[number], 1)

        def chunk(c: Operand) -> None:
            mask: Operand | None = None
            if columns % form.lanes:
                mask = emit_lanes.tail_mask(f, f.subtract(columns, c), form.lanes)
            position = Position({**base, rows.columns or "": c}, rows.columns, form.lanes, mask)
            elements = Evaluator(self.piece, position, dict(evaluator.given))
            for number, second in enumerate(rows.seconds):
                start = self.at(self.results_at[number])
                start = f.offset(start, f.multiply(r, self.result_row * form.item))
                value = memory.load(f, f.offset(start, c, form.element), form.dtype, form.lanes)
                if self.factored(second):
                    value = self._scaled(elements, second, value)
                elements.given[second.number] = value
            for number in rows.result_stores:
                node = kernel.body[number]
                assert isinstance(node, Store)
                elements.store(node)

        f.loop(0, columns, form.lanes, chunk)

    def _scaled(self, elements: Evaluator, second: Second, value: Value) -> Value:
        """The result times or over the factor that the row was kept without."""
        node = self.kernel.body[second.row]
        assert isinstance(node, Op)
        arguments_ = [value if x == second.kept else elements.value(x) for x in node.args]
        return scalars.apply(self.f, node.op, arguments_, node.dtype)
