"""What is computed along one row: its reductions, what is kept of it, and what is stored."""

from __future__ import annotations

from collections.abc import Callable

from fxarray.devices.cpu.contraction.evaluate import Evaluator, Position
from fxarray.devices.cpu.contraction.rows_memory import TileMemory
from fxarray.devices.cpu.emit import combine as combining
from fxarray.devices.cpu.emit import lanes as emit_lanes
from fxarray.devices.cpu.emit import memory, scalars
from fxarray.devices.cpu.emit.function import Operand
from fxarray.devices.cpu.emit.types import Value
from fxarray.kernel.ir import Reduce, Store, arguments

# Vectors of a row that a loop takes at once: as many chains of dependent reductions.
UNROLL = 2


class RowLoops(TileMemory):
    """The loops along a row. The tile sets where its memory is, and where rows end."""

    own: Operand
    start: Operand
    end: Operand
    row_number: Operand

    def at(self, offset: int) -> Operand:
        """An address in the memory of the thread."""
        return self.f.offset(self.own, offset)

    def row(self, base: dict[str, Operand], r: Operand) -> None:
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
                memory.store(f, evaluator.given[number], self.reduced_place(number))

    def reduced_place(self, number: int) -> Operand:
        """Where a value of a whole row waits for the results of second products."""
        start = self.at(self.reduced_at[number])
        return self.f.offset(start, self.row_number, "i64")

    def element_place(self, value: int, s: Operand) -> Operand:
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
            pointer = self.element_place(value, s)
            made.later[value] = lambda p=pointer: memory.load(f, p, form.dtype, form.lanes)
        return made

    def _along(self, call: Callable[[Operand, Operand | None, int], None]) -> None:
        """Runs along the row: whole vectors, several at once, and the rest under masks."""
        f, lanes = self.f, self.form.lanes
        step = lanes * UNROLL
        end = self.end
        whole = str(int(end) // step * step) if end.isdigit() else f.new(f"and i64 {end}, {-step}")

        def several(s: Operand) -> None:
            for u in range(UNROLL):
                call(f.add(s, u * lanes), None, u)

        f.loop(self.start, whole, step, several)
        if end != whole:
            rest = whole if self.start == "0" else f.larger(whole, self.start)
            f.loop(
                rest,
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
            cells.append([f.alloca(start.type, start.operand) for _ in range(UNROLL)])

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
                memory.store(f, value, self.element_place(number, s))

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
                    f, scalars.convert(f, value, form.dtype), self.element_place(number, s)
                )
            for store in stores:
                elements.store(store)

        self._along(chunk)
        if not stores:
            return

        def nothing(s: Operand, end: Operand) -> None:
            mask = emit_lanes.tail_mask(f, f.subtract(end, s), form.lanes)
            elements = self._elements(evaluator, s, mask, set())
            for store in stores:
                dtype = kernel.dtypes[store.value]
                elements.given[store.value] = scalars.constant(0, dtype, form.lanes)
                elements.store(store)

        length = str(self.plan.length)
        if self.rows.bounds.before is not None:
            f.loop(0, self.start, form.lanes, lambda s: nothing(s, self.start))
        if self.rows.bounds.after is not None:
            f.loop(self.end, length, form.lanes, lambda s: nothing(s, length))
