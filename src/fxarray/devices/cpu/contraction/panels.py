"""Packing: panels of an operand, computed by whatever expression it is.

    void @entry(ptr %words, ptr %out, i64 %batch, i64 %row, i64 %rows, i64 %step, i64 %steps)

writes `out[step][row]`, a panel's width of rows in each step, from a range of rows and of steps.
Rows beyond `rows` hold anything. Steps are of one number, or of a pair of neighbours along the
innermost axis of the sum, the last filled up with zero. For complex numbers a step takes two rows
of a panel: the real and imaginary parts for the second operand, and for the first operand, whose
rows are pairs as well, (re, im) and (-im, re), so that a product of real numbers is all there is.

Lanes run along the rows, or along the sum with blocks transposed in registers, whichever is
contiguous in memory.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fxarray.devices.cpu.contraction.evaluate import Evaluator, Piece, Position
from fxarray.devices.cpu.contraction.forms import Form
from fxarray.devices.cpu.contraction.recognise import Group, Run
from fxarray.devices.cpu.emit import lanes as emit_lanes
from fxarray.devices.cpu.emit import memory, scalars
from fxarray.devices.cpu.emit.function import FunctionText, Operand, module
from fxarray.devices.cpu.emit.types import Value
from fxarray.kernel import sizes

_SIGNATURE = (
    "@entry(ptr noalias %words, ptr noalias %out, i64 %batch, i64 %row, i64 %rows, "
    "i64 %step, i64 %steps)"
)
# Gives (position in the range, length, numbers of axes) of a stretch along the innermost axis.
Stretch = Callable[[Operand, Operand, dict[str, Operand]], None]


def place(piece: Piece, group: Group, number: Operand) -> dict[str, Operand]:
    """The number of each axis of a group, from that of all together."""
    f = piece.f
    base: dict[str, Operand] = {}
    for position in range(len(group) - 1, -1, -1):
        run = group[position]
        base.update(dict.fromkeys(run.others, "0"))
        if position == 0:
            base[run.axis] = number
            break
        size = piece.size(run.size)
        rest = f.new(f"udiv i64 {number}, {size}")
        base[run.axis] = f.subtract(number, f.multiply(rest, size))
        number = rest
    return base


def stretches(piece: Piece, group: Group, start: Operand, count: Operand, body: Stretch) -> None:
    """Cuts a range of a group into stretches along its innermost axis."""
    f = piece.f
    if len(group) <= 1:
        body("0", count, place(piece, group, start) if group else {})
        return
    inner = piece.size(group[-1].size)
    cell = f.alloca("i64", "0")

    def more() -> Operand:
        return f.new(f"icmp slt i64 {f.new(f'load i64, ptr {cell}')}, {count}")

    def one() -> None:
        position = f.new(f"load i64, ptr {cell}")
        base = place(piece, group, f.add(start, position))
        rest = f.subtract(inner, base[group[-1].axis])
        length = f.smaller(rest, f.subtract(count, position))
        body(position, length, base)
        f.do(f"store i64 {f.add(position, length)}, ptr {cell}")

    f.loop_while(more, one)


@dataclass
class Side:
    """One operand, as its panels want it.

    Args:
      form: the arithmetic.
      first: whether it is the first operand.
      width: rows of a panel, in whole vectors.
      value: the number of its value in the kernel.
      batch, rows, depth: axes.
      along: "rows" or "depth": what the lanes run along.
      packed: the dtype that values are packed in.
    """

    form: Form
    first: bool
    width: int
    value: int
    batch: Group
    rows: Group
    depth: Group
    along: str
    packed: str = ""

    @property
    def places(self) -> Group:
        """The axes of the sum, counted in places of the panel."""
        if self.form.pair == 1 or not self.depth:
            return self.depth
        last, block = self.depth[-1], self.form.pair * self.form.places
        size = last.size
        if isinstance(size, int):
            size = -(-size // block) * self.form.places
        return (*self.depth[:-1], Run(last.axis, size, last.others))


class Packing:
    """Writes the packing function of a side."""

    def __init__(self, piece: Piece, side: Side) -> None:
        self.piece, self.side = piece, side
        self.f: FunctionText = piece.f
        self.form = side.form
        # Complex numbers of the first operand take two rows of the panel.
        self.rows_per_value = 2 if side.form.complex and side.first else 1
        self.chunk = side.form.lanes // self.rows_per_value

    def write(self) -> str:
        piece, side = self.piece, self.side
        batch = place(piece, side.batch, "%batch") if side.batch else {}

        def steps(at_step: Operand, step_count: Operand, depth: dict[str, Operand]) -> None:
            if side.form.unit and side.first:
                self.blocks({**batch, **depth}, at_step, step_count)
                return
            if side.along == "depth":
                self.along_depth({**batch, **depth}, at_step, step_count)
                return

            def rows(at_row: Operand, row_count: Operand, row: dict[str, Operand]) -> None:
                base = {**batch, **depth, **row}
                self.along_rows(base, at_step, step_count, at_row, row_count)

            stretches(piece, side.rows, "%row", "%rows", rows)

        first, count = [piece.f.multiply(x, side.form.places) for x in ("%step", "%steps")]
        stretches(piece, side.places, first, count, steps)
        return module([(self.f, self.f.definition(_SIGNATURE))])

    @property
    def several(self) -> bool:
        """Whether rows come in several stretches, so that one may not write beyond its own."""
        return len(self.side.rows) > 1

    def at(self, step: Operand, row: Operand | int) -> Operand:
        """The address of a row in a step of the panel."""
        f = self.f
        number = f.add(f.multiply(step, self.side.width * self.form.steps), row)
        return f.offset("%out", number, self.form.element)

    # --- lanes along the rows ---------------------------------------------------------------------

    def along_rows(
        self,
        base: dict[str, Operand],
        at_step: Operand,
        step_count: Operand,
        at_row: Operand,
        row_count: Operand,
    ) -> None:
        f, side = self.f, self.side
        values_in_panel = side.width // self.rows_per_value
        masks = [
            emit_lanes.tail_mask(f, f.subtract(row_count, start), self.chunk)
            for start in range(0, values_in_panel, self.chunk)
        ]

        def step(k: Operand) -> None:
            out_step = f.add(at_step, k)
            for number, start in enumerate(range(0, values_in_panel, self.chunk)):
                if start:
                    f.branch(
                        f.new(f"icmp sgt i64 {row_count}, {start}"),
                        lambda n=number, s=start: self._rows_chunk(
                            base, k, out_step, at_row, s, masks[n]
                        ),
                    )
                else:
                    self._rows_chunk(base, k, out_step, at_row, start, masks[number])

        f.loop(0, step_count, 1, step)

    def _rows_chunk(
        self,
        base: dict[str, Operand],
        k: Operand,
        out_step: Operand,
        at_row: Operand,
        start: int,
        mask: Operand,
    ) -> None:
        f, side, form = self.f, self.side, self.form
        row_axis = side.rows[-1].axis if side.rows else None
        found: list[Value] = []
        for offset in range(form.pair):
            here = dict(base)
            if side.rows:
                here[side.rows[-1].axis] = f.add(base[side.rows[-1].axis], start)
            missing: Operand | None = None
            if side.depth:
                axis = side.depth[-1].axis
                number = f.add(base[axis], k)
                if form.pair > 1:
                    number = f.add(f.multiply(number, form.pair), offset)
                    size = self.piece.size(side.depth[-1].size)
                    if offset or form.unit:
                        missing = f.new(f"icmp sge i64 {number}, {size}")
                here[axis] = number
            position = Position(here, row_axis, self.chunk, mask)
            found.append(self._packed(position, missing))
        row = f.add(f.multiply(at_row, self.rows_per_value), start * self.rows_per_value)
        wide_mask = self._wide(mask) if self.several else None
        for number, part in enumerate(self._rows_of(found)):
            pointer = self.at(out_step, f.add(row, number * side.width))
            self._put(part, pointer, wide_mask)

    def _packed(self, position: Position, missing: Operand | None) -> Value:
        """The operand's values in the packed dtype; zero for what is missing."""
        f = self.f
        dtype = self._dtype()
        if missing is None:
            return self._evaluate(position, dtype)
        zero = scalars.constant(0, dtype, position.lanes)
        cell = f.alloca(zero.type, zero.operand)

        def read() -> None:
            f.do(f"store {zero.type} {self._evaluate(position, dtype).operand}, ptr {cell}")

        f.branch(f.new(f"xor i1 {missing}, true"), read)
        return Value(dtype, position.lanes, (f.new(f"load {zero.type}, ptr {cell}"),))

    def _dtype(self) -> str:
        if self.form.complex:
            return {"f32": "c64", "f64": "c128"}[self.form.dtype]
        return self.side.packed or self.form.packed

    def _evaluate(self, position: Position, dtype: str) -> Value:
        value = Evaluator(self.piece, position).value(self.side.value)
        value = scalars.convert(self.f, value, dtype)
        return scalars.splat(self.f, value, position.lanes)

    def _rows_of(self, found: list[Value]) -> list[Operand]:
        """The vectors of the panel, one or two rows, that values along rows make."""
        f, form = self.f, self.form
        if form.pair > 1:
            return [self._interleaved([self._bits(value) for value in found])]
        (value,) = found
        if not form.complex:
            return [value.operand]
        real, imaginary = value.parts
        if not self.side.first:
            return [real, imaginary]
        half = f"<{self.chunk} x {form.element}>"
        negative = f.new(f"fneg {half} {imaginary}")
        return [
            self._zip(real, imaginary, self.chunk, form.element),
            self._zip(negative, real, self.chunk, form.element),
        ]

    def _bits(self, value: Value) -> Operand:
        """Values as integers, as they are stored."""
        if value.dtype in ("i16", "u16", "i8", "u8"):
            return value.operand
        f = self.f
        cell = f.alloca(f"<{value.lanes} x i16>")
        memory.store(f, value, cell)
        return f.new(f"load <{value.lanes} x i16>, ptr {cell}")

    def _interleaved(self, parts: list[Operand]) -> Operand:
        """Two or four vectors, neighbours of the same row side by side."""
        lanes = self.form.lanes
        element = f"i{32 // self.form.pair}"
        if len(parts) == 4:
            even = self._zip(parts[0], parts[2], lanes, element)
            odd = self._zip(parts[1], parts[3], lanes, element)
            parts, lanes = [even, odd], 2 * lanes
        both = self._zip(parts[0], parts[1], lanes, element)
        return self.f.new(f"bitcast <{2 * lanes} x {element}> {both} to <{self.form.lanes} x i32>")

    def _zip(self, a: Operand, b: Operand, lanes: int, element: str) -> Operand:
        order = ", ".join(f"i32 {i // 2 + (i % 2) * lanes}" for i in range(2 * lanes))
        vector = f"<{lanes} x {element}>"
        return self.f.new(
            f"shufflevector {vector} {a}, {vector} {b}, <{2 * lanes} x i32> <{order}>"
        )

    def _wide(self, mask: Operand) -> Operand:
        """The mask of rows of the panel."""
        if self.rows_per_value == 1:
            return mask
        return self._zip(mask, mask, self.chunk, "i1")

    def _put(self, vector: Operand, pointer: Operand, mask: Operand | None) -> None:
        f, form = self.f, self.form
        element = form.element if form.pair == 1 else "i32"
        type_ = f"<{form.lanes} x {element}>"
        if mask is None:
            f.do(f"store {type_} {vector}, ptr {pointer}, align {form.item}")
            return
        kind = f"v{form.lanes}{'i' if element[0] == 'i' else 'f'}{form.item * 8}.p0"
        f.declare(f"declare void @llvm.masked.store.{kind}({type_}, ptr, i32, <{form.lanes} x i1>)")
        f.do(
            f"call void @llvm.masked.store.{kind}({type_} {vector}, ptr {pointer}, "
            f"i32 {form.item}, <{form.lanes} x i1> {mask})"
        )

    # --- lanes along the sum ----------------------------------------------------------------------

    def along_depth(self, base: dict[str, Operand], at_step: Operand, step_count: Operand) -> None:
        """Blocks of as many rows as steps, transposed."""
        f, side, form = self.f, self.side, self.form
        lanes = form.lanes
        element = form.element if form.pair == 1 else "i32"
        type_ = f"<{lanes} x {element}>"
        block = f.alloca(f"[{lanes} x {type_}]")
        spare = f.alloca(f"[{lanes} x {type_}]")
        depth_axis = side.depth[-1].axis
        numbers = lanes * form.pair

        def steps(k: Operand) -> None:
            first = f.multiply(f.add(base[depth_axis], k), form.pair)
            whole = self.piece.size(side.depth[-1].size)
            end = f.multiply(f.add(base[depth_axis], step_count), form.pair)
            mask = emit_lanes.tail_mask(f, f.subtract(f.smaller(end, whole), first), numbers)
            here = {**base, depth_axis: first}

            def rows(start: Operand) -> None:
                count = f.smaller(lanes, f.subtract("%rows", start))

                def row(r: Operand) -> None:
                    number = f.add("%row", f.add(start, r))
                    mine = {**here, **place(self.piece, side.rows, number)}
                    position = Position(mine, depth_axis, numbers, mask)
                    vector = self._evaluate(position, self._dtype())
                    f_place = f.offset(block, r, type_)
                    if form.pair > 1:
                        memory.store(f, self._masked(vector, mask), f_place)
                    else:
                        f.do(f"store {type_} {vector.operand}, ptr {f_place}")

                f.loop(0, count, 1, row)
                kind = form.dtype if form.pair == 1 else "i32"
                vectors = [
                    Value(kind, lanes, (f.new(f"load {type_}, ptr {f.offset(block, r, type_)}"),))
                    for r in range(lanes)
                ]
                turned = emit_lanes.transpose(f, vectors)
                rest = f.subtract(step_count, k)
                out = self.at(f.add(at_step, k), start)

                def put(j: Operand | int, vector: Operand) -> None:
                    pointer = f.offset(out, f.multiply(j, side.width), form.element)
                    self._put(vector, pointer, None)

                def all_steps() -> None:
                    for j, value in enumerate(turned):
                        put(j, value.operand)

                def some_steps() -> None:
                    for j, value in enumerate(turned):
                        f.do(f"store {type_} {value.operand}, ptr {f.offset(spare, j, type_)}")
                    f.loop(
                        0,
                        rest,
                        1,
                        lambda j: put(j, f.new(f"load {type_}, ptr {f.offset(spare, j, type_)}")),
                    )

                f.branch(f.new(f"icmp sge i64 {rest}, {lanes}"), all_steps, some_steps)

            f.loop(0, "%rows", lanes, rows)

        f.loop(0, step_count, lanes, steps)

    def blocks(self, base: dict[str, Operand], at_place: Operand, count: Operand) -> None:
        """Blocks of 64 bytes of each row, one row after the other, as matrix units take them."""
        f, side, form = self.f, self.side, self.form
        numbers = form.places * form.pair
        depth_axis = side.depth[-1].axis
        whole = self.piece.size(side.depth[-1].size)

        def block(k: Operand) -> None:
            first = f.multiply(f.add(base[depth_axis], k), form.pair)
            mask = emit_lanes.tail_mask(f, f.subtract(whole, first), numbers)
            out = f.offset("%out", f.multiply(f.add(at_place, k), side.width * form.item))

            def row(r: Operand) -> None:
                mine = {**base, depth_axis: first}
                mine.update(place(self.piece, side.rows, f.add("%row", r)))
                value = self._evaluate(Position(mine, depth_axis, numbers, mask), self._dtype())
                target = f.offset(out, f.multiply(r, form.places * form.item))
                memory.store(f, self._masked(value, mask), target)

            f.loop(0, "%rows", 1, row)

        f.loop(0, count, form.places, block)

    def _masked(self, value: Value, mask: Operand) -> Value:
        """Zero where the mask is not set, so that the odd end of a pair adds nothing."""
        f = self.f
        zero = scalars.constant(0, value.dtype, value.lanes)
        chosen = f.new(
            f"select <{value.lanes} x i1> {mask}, {value.type} {value.operand}, "
            f"{zero.type} {zero.operand}"
        )
        return Value(value.dtype, value.lanes, (chosen,))


def pack(piece: Piece, side: Side) -> str:
    """The module of a side's packing function; the piece collects its words."""
    return Packing(piece, side).write()


def steps_of(group: Group, form: Form) -> sizes.Size:
    """The steps that the axes of a sum take."""
    result: sizes.Size = 1
    for position, run in enumerate(group):
        size = run.size
        if position == len(group) - 1 and form.pair > 1:
            assert isinstance(size, int)
            size = -(-size // (form.pair * form.places))
        result = sizes.multiply(result, size)
    return result
