"""Factorisations and solves of many small real matrices: one matrix in each lane of vectors.

The matrices of a group, as many as a vector has lanes, lie in scratch memory element by element:
a *tile* of vectors. What LAPACK decides for one matrix (which row is the pivot, whether the matrix
is positive definite) is decided lane by lane, by selection.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fxarray.core.types import ArrayType
from fxarray.devices.cpu.emit import memory
from fxarray.devices.cpu.emit.constants import splat_operand
from fxarray.devices.cpu.emit.function import FunctionText, Operand
from fxarray.devices.cpu.emit.lanes import iota, tail_mask
from fxarray.devices.cpu.emit.number import Number
from fxarray.devices.cpu.emit.types import Value, compute_type, itemsize, vector_type
from fxarray.devices.cpu.library.elements import short_dtype
from fxarray.devices.cpu.library.text import (
    Layout,
    ModuleText,
    ceiling_divide,
    loop_nest,
    part_bounds,
    run_parts,
)
from fxarray.devices.cpu.native.routine import Routine, SizeWord
from fxarray.devices.cpu.native.target import Target
from fxarray.kernel import sizes
from fxarray.kernel.sizes import Size

# The greatest size of matrices, and the elements of matrices in a part.
LIMIT = 16
PART_ELEMENTS = 1 << 14


def fits(types: Sequence[ArrayType], target: Target) -> bool:
    """Whether matrices are small, and fill the lanes of vectors."""
    dtype = short_dtype(types[0])
    *stack, rows, columns = sizes.kernel_shape(types[0].shape)
    if dtype not in ("f32", "f64") or not isinstance(rows, int) or not isinstance(columns, int):
        return False
    small = 0 < rows <= LIMIT and 0 < columns <= LIMIT
    return small and sizes.typical(sizes.product(stack)) >= target.vector_bytes // itemsize(dtype)


@dataclass
class Tile:
    """Vectors in memory, addressed as a row-major matrix."""

    f: FunctionText
    pointer: Operand
    columns: Operand | int
    type: str
    lanes: int

    def _at(self, i: Operand | int, j: Operand | int) -> Operand:
        position = self.f.add(self.f.multiply(i, self.columns), j)
        return self.f.offset(self.pointer, position, vector_type(self.type, self.lanes))

    def get(self, i: Operand | int, j: Operand | int = 0) -> Number:
        kind = vector_type(self.type, self.lanes)
        loaded = self.f.new(f"load {kind}, ptr {self._at(i, j)}")
        return Number(self.f, self.type, self.lanes, loaded)

    def set(self, value: Number, i: Operand | int, j: Operand | int = 0) -> None:
        self.f.do(f"store {value.whole_type} {value.operand}, ptr {self._at(i, j)}")


class Group:
    """A routine under construction that works on groups of matrices.

    Args:
      types: of operands.
      results: of results.
      target: the processor.
    """

    def __init__(
        self, types: Sequence[ArrayType], results: Sequence[ArrayType], target: Target
    ) -> None:
        self.dtype = short_dtype(types[0])
        self.type = compute_type(self.dtype)
        self.integer = "i32" if self.dtype == "f32" else "i64"
        self.lanes = target.vector_bytes // itemsize(self.dtype)
        self.stack = len(types[0].shape) - 2
        self.layout = Layout.of(len(types), len(results), scratch=True)
        shape = sizes.kernel_shape(types[0].shape)
        self.layout.append("stack", SizeWord(sizes.product(shape[: self.stack])))
        self.layout.append("work", SizeWord(sizes.product(shape[self.stack :])))
        self.core = [sizes.kernel_shape(given.shape[self.stack :]) for given in types]
        self.result_core = [sizes.kernel_shape(given.shape[self.stack :]) for given in results]
        self.text = ModuleText()
        self.f = self.text.part("group_part")
        self.scratch: Size = 64
        self._tiles: list[tuple[str, Tile]] = []
        self._steps: dict[str, Operand] = {}
        self.layout.append("own", SizeWord(0))
        for prefix, cores in (("in", self.core), ("out", self.result_core)):
            for number, core in enumerate(cores):
                name = f"{prefix}{number}"
                self._steps[name] = self.size(f"step_{name}", sizes.product(core))
        # These are known inside of `run`.
        self.first: Operand = ""
        self.mask: Operand = ""

    def size(self, name: str, size: Size) -> Operand:
        """A size as i64, which becomes a word of the routine."""
        self.layout.append(name, SizeWord(size))
        return self.layout.size(self.f, name)

    def tile(self, name: str, rows: Size, columns: Size = 1, whole: bool = False) -> Tile:
        """Scratch memory for a matrix of vectors, of integers if `whole`."""
        count = sizes.multiply(rows, columns)
        size = sizes.multiply(count, self.lanes * itemsize(self.dtype))
        bytes_ = self.size(f"tile_{name}", size)
        width = "1" if columns == 1 else self.size(f"width_{name}", columns)
        tile = Tile(self.f, bytes_, width, self.integer if whole else self.type, self.lanes)
        self._tiles.append((name, tile))
        self.scratch = sizes.add(self.scratch, size)
        return tile

    # --- elements of the group's matrices ---------------------------------------------------------

    def _base(self, name: str, element: Operand, dtype: str) -> Operand:
        f = self.f
        position = f.add(f.multiply(self.first, self._steps[name]), element)
        pointer = self.layout.pointer(f, name)
        return f.offset(pointer, f.multiply(position, itemsize(dtype)))

    def load(self, name: str, element: Operand, dtype: str = "") -> Number:
        """One element of each matrix; integers get the width of the floats."""
        dtype = dtype or self.dtype
        base = self._base(name, element, dtype)
        value = memory.load_strided(self.f, base, self._steps[name], dtype, self.lanes, self.mask)
        number = Number(self.f, compute_type(dtype), self.lanes, value.operand)
        return number.cast("sext", self.integer) if dtype == "i32" else number

    def store(self, value: Number, name: str, element: Operand, dtype: str = "") -> None:
        """The same to results."""
        dtype = dtype or self.dtype
        if dtype == "i32":
            value = value.cast("trunc", "i32")
        base = self._base(name, element, dtype)
        stored = Value(dtype, self.lanes, (value.operand,))
        memory.store_strided(self.f, stored, base, self._steps[name], self.mask)

    def offsets(self, name: str, element: Number) -> Operand:
        """Where an element that differs from lane to lane is, from the first matrix on."""
        f = self.f
        steps = Number(f, "i64", self.lanes, iota(f, self.lanes, "i64"))
        step = Number(f, "i64", self.lanes, splat_operand(f, self._steps[name], "i64", self.lanes))
        return (steps * step + element.cast("sext", "i64")).operand

    def gather(self, name: str, element: Number) -> Number:
        """An element that differs from lane to lane."""
        base = self._base(name, "0", self.dtype)
        places = self.offsets(name, element)
        value = memory.gather(self.f, base, places, self.dtype, self.lanes, self.mask)
        return Number(self.f, self.type, self.lanes, value.operand)

    def scatter(self, value: Number, name: str, element: Number) -> None:
        """Store to an element that differs from lane to lane."""
        base = self._base(name, "0", self.dtype)
        stored = Value(self.dtype, self.lanes, (value.operand,))
        memory.scatter(self.f, stored, base, self.offsets(name, element), self.mask)

    def integers(self, value: Operand) -> Number:
        """An i64 in all lanes, in the width of the floats."""
        f = self.f
        if self.integer == "i32":
            value = f.new(f"trunc i64 {value} to i32")
        return Number(
            f, self.integer, self.lanes, splat_operand(f, value, self.integer, self.lanes)
        )

    def load_matrix(self, name: str, tile: Tile, rows: Operand, columns: Operand) -> None:
        """Load a whole matrix to a tile."""

        def element(indices: list[Operand]) -> None:
            i, j = indices
            tile.set(self.load(name, self.f.add(self.f.multiply(i, columns), j)), i, j)

        loop_nest(self.f, [rows, columns], element)

    # --- the whole --------------------------------------------------------------------------------

    def run(self, body: Callable[[], None]) -> Routine:
        """The routine; `body` writes what is done for a group."""
        f, layout = self.f, self.layout
        groups = ceiling_divide(f, layout.size(f, "stack"), self.lanes)
        low, high = part_bounds(f, groups, self._each(f))
        base = f.offset(layout.pointer(f, "scratch"), f.multiply("%thread", layout.size(f, "own")))
        for name, tile in self._tiles:
            tile.pointer = base
            base = f.offset(base, layout.size(f, f"tile_{name}"))

        def group(number: Operand) -> None:
            self.first = f.multiply(number, self.lanes)
            rest = f.subtract(layout.size(f, "stack"), self.first)
            self.mask = tail_mask(f, rest, self.lanes)
            body()

        f.loop(low, high, 1, group)
        e = self.text.entry()
        groups = ceiling_divide(e, layout.size(e, "stack"), self.lanes)
        run_parts(e, "group_part", ceiling_divide(e, groups, self._each(e)))
        layout.words[layout.places["own"]] = SizeWord(self.scratch)
        return Routine(self.text.text(), tuple(layout.words), thread_scratch=self.scratch)

    def _each(self, f: FunctionText) -> Operand:
        work = f.multiply(f.larger(self.layout.size(f, "work"), 1), self.lanes)
        return f.larger(f.new(f"udiv i64 {PART_ELEMENTS}, {work}"), 1)

    def total(
        self, start: Number, low: Operand | int, high: Operand, term: Callable[[Operand], Number]
    ) -> Number:
        """`start - sum(term(k))` for k from `low` up to `high`."""
        f = self.f
        sum_ = f.alloca(start.whole_type, start.operand)

        def step(k: Operand) -> None:
            now = Number(f, self.type, self.lanes, f.new(f"load {start.whole_type}, ptr {sum_}"))
            f.do(f"store {start.whole_type} {(now - term(k)).operand}, ptr {sum_}")

        f.loop(low, high, 1, step)
        return Number(f, self.type, self.lanes, f.new(f"load {start.whole_type}, ptr {sum_}"))

    def downwards(self, high: Operand, body: Callable[[Operand], None]) -> None:
        """`body(i)` for i from `high` - 1 down to 0."""
        f = self.f
        f.loop(0, high, 1, lambda i: body(f.subtract(f.subtract(high, 1), i)))
