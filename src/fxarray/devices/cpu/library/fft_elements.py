"""Loading and storing what Fourier transforms take and give, and their scratch memory."""

from __future__ import annotations

from dataclasses import dataclass

from fxarray.devices.cpu.emit import memory
from fxarray.devices.cpu.emit.constants import splat_operand
from fxarray.devices.cpu.emit.function import FunctionText, Operand
from fxarray.devices.cpu.emit.lanes import iota
from fxarray.devices.cpu.emit.number import Number, select
from fxarray.devices.cpu.emit.types import Value, compute_type, itemsize
from fxarray.devices.cpu.library.butterflies import Buffer, Complex
from fxarray.devices.cpu.library.fft_tables import table
from fxarray.devices.cpu.library.text import Layout, ModuleText
from fxarray.devices.cpu.native.routine import Address, SizeWord
from fxarray.devices.cpu.native.target import Target
from fxarray.kernel import sizes


@dataclass(frozen=True)
class Axis:
    """A transform along one dimension of an array seen as (outer, n, inner).

    Args:
      n: its length.
      inner: the elements beside it; 0 for the last dimension, which is one of rows.
      source: where elements are: "in0", "out0" or "middle", scratch memory of the result's shape.
      target: where results go.
      given: of elements on the source's side: "complex", "real" or "half" of a spectrum.
      wanted: of results: "complex", "real" or "half".
      inverse: whether parts are exchanged.
      scale: a factor of results.
    """

    n: int
    inner: int
    source: str
    target: str
    given: str
    wanted: str
    inverse: bool
    scale: float

    @property
    def lengths(self) -> tuple[int, int]:
        """The sizes of a row of elements and of results."""
        half = self.n // 2 + 1
        return (
            half if self.given == "half" else self.n,
            half if self.wanted == "half" else self.n,
        )


class Elements:
    """What all phases of a transform share: its layout, tables, scratch memory and elements."""

    def __init__(
        self, layout: Layout, dtype: str, target: Target, rows: sizes.Size, last: int
    ) -> None:
        self.layout = layout
        self.dtype = dtype
        self.real = {"c64": "f32", "c128": "f64"}[dtype]
        self.type = compute_type(self.real)
        self.lanes = target.vector_bytes // itemsize(self.real)
        self.rows = rows
        self.last = last
        self.text = ModuleText()
        self.shared: sizes.Size = 0
        self.own = 0
        self.places: dict[str, Operand] = {}
        layout.append("own", SizeWord(0))
        layout.append("shared", SizeWord(0))

    # --- memory -----------------------------------------------------------------------------------

    def roots(self, f: FunctionText, kind: str, n: int, other: int = 0) -> Operand:
        name = f"table_{kind}_{n}_{other}"
        if name not in self.layout.places:
            self.layout.append(name, Address(table(kind, n, other, self.dtype).ctypes.data))
        return self.layout.pointer(f, name)

    def pointer(self, f: FunctionText, place: str) -> Operand:
        return self.layout.pointer(f, "scratch" if place == "middle" else place)

    def scratch(self, f: FunctionText, *elements: int) -> list[Operand]:
        """Memory of this thread for so many complex vectors (of all lanes), each time."""
        size = 2 * self.lanes * itemsize(self.real)
        shared = f.new(f"and i64 {f.add(self.layout.size(f, 'shared'), 63)}, -64")
        base = f.add(shared, f.multiply("%thread", self.layout.size(f, "own")))
        pointer = f.offset(self.layout.pointer(f, "scratch"), base)
        pointers: list[Operand] = []
        used = 0
        for count in elements:
            pointers.append(f.offset(pointer, used))
            used += count * size
        self.own = max(self.own, used)
        return pointers

    def buffer(self, f: FunctionText, pointer: Operand) -> Buffer:
        return Buffer(f, pointer, self.type, self.lanes)

    # --- elements ---------------------------------------------------------------------------------

    def zero(self, f: FunctionText) -> Number:
        return Number(f, self.type, self.lanes, "zeroinitializer")

    def of_value(self, f: FunctionText, value: Value) -> Complex:
        parts = [Number(f, self.type, self.lanes, part) for part in value.parts]
        return Complex(parts[0], parts[1] if len(parts) > 1 else self.zero(f))

    def load(
        self,
        f: FunctionText,
        axis: Axis,
        pointer: Operand,
        first: Operand,
        step: int,
        mask: Operand,
    ) -> Complex:
        """Elements first, first + step, ... of an array of complex or real numbers."""
        dtype = self.real if axis.given == "real" else self.dtype
        where = f.offset(pointer, f.multiply(first, itemsize(dtype)))
        loaded = memory.load_strided(f, where, step, dtype, self.lanes, mask)
        value = self.of_value(f, loaded)
        return value.swapped() if axis.inverse else value

    def load_half(
        self, f: FunctionText, axis: Axis, row: Operand, i: Number, rows: Number, mask: Operand
    ) -> Complex:
        """Elements i (a vector of i64) of rows of which the first half is given."""
        n = axis.n
        upper = i > n // 2
        place = select(upper, n - i, i)
        offsets = rows * (n // 2 + 1) + place
        loaded = memory.gather(f, row, offsets.operand, self.dtype, self.lanes, mask)
        value = self.of_value(f, loaded)
        im = select(upper, -value.im, value.im)
        # Imaginary parts that the spectrum of real numbers does not have are ignored.
        alone = place.equals(0)
        if n % 2 == 0:
            alone = alone | place.equals(n // 2)
        return Complex(value.re, select(alone, 0.0, im)).swapped()

    def store(
        self,
        f: FunctionText,
        axis: Axis,
        value: Complex,
        pointer: Operand,
        first: Operand,
        step: int,
        mask: Operand,
    ) -> None:
        """Results to elements first, first + step, ..."""
        if axis.scale != 1.0:
            value = value.scaled(axis.scale)
        value = value.swapped() if axis.inverse else value
        dtype = self.real if axis.wanted == "real" else self.dtype
        parts = (value.re.operand,)
        if axis.wanted != "real":
            parts = (value.re.operand, value.im.operand)
        where = f.offset(pointer, f.multiply(first, itemsize(dtype)))
        memory.store_strided(f, Value(dtype, self.lanes, parts), where, step, mask)

    def splat(self, f: FunctionText, value: Operand) -> Number:
        return Number(f, "i64", self.lanes, splat_operand(f, value, "i64", self.lanes))

    def numbers(self, f: FunctionText) -> Number:
        return Number(f, "i64", self.lanes, iota(f, self.lanes, "i64"))
