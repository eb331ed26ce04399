"""The micro-kernel of products of few rows with a matrix that lies along the sum: dot products.

The signature is that of `micro`; `%a_row` and `%b_step` are the distances of rows of the first and
of columns of the second operand, whose numbers along the sum are neighbours. Lanes run along the
sum; several columns are read at once, since one alone does not use the memory's bandwidth.
"""

from __future__ import annotations

from functools import lru_cache

from fxarray.devices.cpu.contraction.forms import Form
from fxarray.devices.cpu.contraction.micro import SIGNATURE
from fxarray.devices.cpu.emit import lanes as emit_lanes
from fxarray.devices.cpu.emit import memory, scalars
from fxarray.devices.cpu.emit.features import using
from fxarray.devices.cpu.emit.function import FunctionText, Operand, module
from fxarray.devices.cpu.emit.types import Value
from fxarray.devices.cpu.native.target import Target

# Rows of the first operand at most, and accumulators at most.
MOST_ROWS = 4
_ACCUMULATORS = 8


@lru_cache(maxsize=64)
def dots(form: Form, rows: int, target: Target) -> str:
    """The module for so many rows; a tile is a vector wide."""
    with using(target):
        return _Dots(form, rows).text()


class _Dots:
    def __init__(self, form: Form, rows: int) -> None:
        self.form, self.rows = form, rows
        self.f = FunctionText()
        self.together = max(1, _ACCUMULATORS // rows)

    def text(self) -> str:
        f, form = self.f, self.form
        last = f.subtract("%columns", 1)
        # Columns beyond the last are read as the last is.
        starts = [
            f.offset("%b", f.multiply(f.smaller(column, last), "%b_step"), form.element)
            for column in range(form.lanes)
        ]
        lines = [
            f.offset("%a", f.multiply("%a_row", row), form.element) for row in range(self.rows)
        ]
        whole = f.new(f"and i64 %steps, {-form.lanes}")
        for group in range(0, form.lanes, self.together):
            columns = range(group, min(group + self.together, form.lanes))
            needed = f.new(f"icmp sgt i64 %columns, {group}")
            f.branch(
                needed,
                lambda c=columns: self._columns(c, [starts[i] for i in c], lines, whole),
            )
        return module([(f, f.definition(SIGNATURE))])

    def _columns(
        self, columns: range, starts: list[Operand], lines: list[Operand], whole: Operand
    ) -> None:
        f, form, rows = self.f, self.form, self.rows
        vector = f"<{form.lanes} x {form.element}>"
        totals = [[f.alloca(vector, "zeroinitializer") for _ in columns] for _ in range(rows)]

        def add(k: Operand, mask: Operand | None) -> None:
            left = [self._load(f.offset(line, k, form.element), mask) for line in lines]
            for j, start in enumerate(starts):
                right = self._load(f.offset(start, k, form.element), mask)
                for row in range(rows):
                    cell = totals[row][j]
                    before = Value(form.dtype, form.lanes, (f.new(f"load {vector}, ptr {cell}"),))
                    after = self._fused(left[row], right, before)
                    f.do(f"store {vector} {after.operand}, ptr {cell}")

        f.loop(0, whole, form.lanes, lambda k: add(k, None))

        def rest(k: Operand) -> None:
            add(k, emit_lanes.tail_mask(f, f.subtract("%steps", k), form.lanes))

        f.loop(whole, "%steps", form.lanes, rest)
        for row in range(rows):
            for j, column in enumerate(columns):
                total = f.new(f"load {vector}, ptr {totals[row][j]}")
                value = Value(form.dtype, form.lanes, (total,))
                (result,) = emit_lanes.horizontal(f, "sum", [value])
                place = f.add(f.multiply("%tile_row", row), column)
                memory.store(f, result, f.offset("%tile", place, form.element))

    def _load(self, pointer: Operand, mask: Operand | None) -> Value:
        return memory.load(self.f, pointer, self.form.dtype, self.form.lanes, mask)

    def _fused(self, a: Value, b: Value, total: Value) -> Value:
        f, dtype = self.f, self.form.dtype
        if dtype in ("f32", "f64"):
            return scalars.apply(f, "fma", [a, b, total], dtype)
        return scalars.apply(f, "add", [scalars.apply(f, "mul", [a, b], dtype), total], dtype)
