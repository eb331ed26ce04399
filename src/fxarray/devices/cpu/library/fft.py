"""The discrete Fourier transform.

Transforms run in the lanes of vectors (see `butterflies`). Along a dimension that is not the last,
lanes are the elements beside it. Long rows are cut in two (Bailey's four steps): with n = a b, the
row is a matrix of a rows and b columns; its columns are transformed, in lanes, and multiplied by
powers of a root of unity; then its rows, in lanes again, whose results are columns of the result.
Lengths with a large prime factor are convolutions (Bluestein's chirps), in lanes too.

An inverse transform is the transform of numbers with their parts exchanged, and exchanged again.

Sources: D. H. Bailey, "FFTs in external or hierarchical memory", Journal of Supercomputing 4, 1990;
L. I. Bluestein, "A linear filtering approach to the computation of the discrete Fourier
transform", IEEE Transactions on Audio and Electroacoustics 18, 1970.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from fxarray.core.types import ArrayType
from fxarray.devices.cpu.emit import memory
from fxarray.devices.cpu.emit.constants import splat_operand
from fxarray.devices.cpu.emit.function import FunctionText, Operand
from fxarray.devices.cpu.emit.lanes import iota, tail_mask
from fxarray.devices.cpu.emit.number import Number, select
from fxarray.devices.cpu.emit.types import Value, compute_type, itemsize
from fxarray.devices.cpu.library.butterflies import (
    Buffer,
    Complex,
    Get,
    Put,
    radices,
    root,
    write_transform,
)
from fxarray.devices.cpu.library.elements import short_dtype
from fxarray.devices.cpu.library.text import (
    Layout,
    ModuleText,
    part_bounds,
    run_parts,
)
from fxarray.devices.cpu.native.routine import Address, Routine, SizeWord
from fxarray.devices.cpu.native.target import Target
from fxarray.kernel import sizes
from fxarray.primitives.fft import FFT, IFFT, IRFFT, RFFT, Fft

# Rows that are at least so long are cut in two; longer transforms than the second are not made in
# lanes.
CUT, LONGEST = 100, 1 << 14
# Elements in a part.
PART_ELEMENTS = 1 << 15


@dataclass(frozen=True)
class _Axis:
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


# --- tables ---------------------------------------------------------------------------------------


def _roots(numbers: Any, n: int) -> Any:
    """exp(-2 pi i k / n) for integers k, exact where it can be."""
    k = np.asarray(numbers, np.int64) % n
    # By symmetry angles are at most 1/8 of a turn, where sine and cosine are most exact.
    eighth = (8 * k) // n
    turns = (eighth + 1) // 2
    angle = 2 * np.pi * (k - turns * (n / 4)) / n
    return np.exp(-1j * angle) * np.array([1, -1j, -1, 1j])[turns % 4]


@cache
def _table(kind: str, n: int, other: int, dtype: str) -> Any:
    """A table of complex numbers, kept for as long as the process lives, since code points to it.

    Args:
      kind: "roots" of a transform of length n; "cut", those that multiply columns, `other` to a
        row; "chirp" and "spectrum", of a convolution of length `other`.
      n: the length.
      other: another length.
      dtype: of the numbers.
    """
    if kind == "roots":
        table = _roots(np.arange(n), n)
    elif kind == "cut":
        table = _roots(np.arange(n // other)[:, None] * np.arange(other)[None, :], n)
    else:
        squares = np.arange(n, dtype=np.int64) ** 2 % (2 * n)
        chirp = _roots(squares, 2 * n)
        table = chirp
        if kind == "spectrum":
            line = np.zeros(other, np.complex128)
            line[:n] = chirp.conj()
            line[other - n + 1 :] = chirp[1:][::-1].conj()
            # With the factor of the inverse transform.
            table = np.fft.fft(line) / other
    return np.ascontiguousarray(table.astype({"c64": np.complex64, "c128": np.complex128}[dtype]))


def cut(n: int) -> tuple[int, int] | None:
    """Two factors of n, as equal as possible, whose transforms have passes; None if none are."""
    if n < CUT:
        return None
    for a in range(math.isqrt(n), 7, -1):
        if n % a == 0 and radices(a) and radices(n // a):
            return (a, n // a) if n // a <= LONGEST else None
    return None


def _padded(n: int) -> int:
    """The length of the convolution that makes a transform of length n."""
    return 1 << (2 * n - 2).bit_length()


def _makes(n: int, last: bool) -> bool:
    """Whether transforms of a length are made here."""
    if last and cut(n):
        return True
    return n <= LONGEST and (radices(n) is not None or _padded(n) <= LONGEST)


# --- the routine ----------------------------------------------------------------------------------


def fft_routine(
    op: Fft, inputs: Sequence[ArrayType], outputs: Sequence[ArrayType], target: Target
) -> Routine | None:
    """The routine of `fft`; None for lengths with prime factors that are too large."""
    (x,), (result,) = inputs, outputs
    lengths = op.lengths
    if any(size == 0 for size in (*lengths, *x.shape, *result.shape)):
        return None
    if not all(_makes(n, k == len(lengths) - 1) for k, n in enumerate(lengths)):
        return None
    shape = sizes.kernel_shape(result.shape)
    if op.kind == IRFFT:
        shape = (*shape[:-1], lengths[-1] // 2 + 1)
    last = shape[-1]
    if not all(isinstance(size, int) for size in shape[len(shape) - len(lengths) :]):
        return None
    assert isinstance(last, int)
    axes = _plan(op, last)
    dtype = short_dtype(x if op.kind == IRFFT else result)
    layout = Layout.of(1, 1, scratch=True)
    total = sizes.product(sizes.kernel_shape(x.shape))
    rows = sizes.product(shape[:-1])
    layout.append("rows", SizeWord(rows))
    writer = _Writer(layout, dtype, target, rows, last)
    text = writer.module(axes)
    return Routine(
        text,
        tuple(layout.words),
        writer.shared,
        writer.own,
        flops=sizes.multiply(total, 5 * max(1, math.ceil(math.log2(math.prod(lengths))))),
        bytes_moved=sizes.multiply(total, 2 * len(axes) * itemsize(dtype)),
    )


def _plan(op: Fft, last: int) -> list[_Axis]:
    """Transforms along single dimensions, one after the other."""
    inverse = op.kind in (IFFT, IRFFT)
    *others, n = op.lengths
    scale = 1 / math.prod(op.lengths) if inverse else 1.0
    axes: list[_Axis] = []
    inner = [math.prod([*others[d + 1 :], last]) for d in range(len(others))]
    around = list(zip(others, inner, strict=True))[::-1]
    if op.kind == IRFFT:
        place = "in0"
        for length, beside in around:
            axes.append(_Axis(length, beside, place, "middle", "complex", "complex", True, 1.0))
            place = "middle"
        axes.append(_Axis(n, 0, place, "out0", "half", "real", True, scale))
        return axes
    given = "real" if op.kind == RFFT else "complex"
    wanted = "half" if op.kind == RFFT else "complex"
    axes.append(_Axis(n, 0, "in0", "out0", given, wanted, inverse, scale))
    for length, beside in around:
        axes.append(_Axis(length, beside, "out0", "out0", "complex", "complex", inverse, 1.0))
    assert op.kind in (FFT, IFFT, RFFT)
    return axes


class _Writer:
    """Writes the functions of a transform."""

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

    def module(self, axes: Sequence[_Axis]) -> str:
        """The whole module."""
        phases: list[tuple[str, sizes.Size]] = []
        if any(axis.target == "middle" for axis in axes):
            self.shared = sizes.multiply(self.rows, self.last * itemsize(self.dtype))
            self.shared = sizes.add(self.shared, 64)
        for number, axis in enumerate(axes):
            name = f"axis{number}"
            halves = cut(axis.n) if axis.inner == 0 else None
            if halves:
                phases += self._write_cut(name, axis, halves)
            else:
                phases.append(self._write_lanes(name, axis))
        self.own = -(-self.own // 64) * 64
        self.layout.words[self.layout.places["own"]] = SizeWord(self.own)
        self.layout.words[self.layout.places["shared"]] = SizeWord(self.shared)
        e = self.text.entry()
        for name, count in phases:
            self.layout.append(f"parts_{name}", SizeWord(count))
            run_parts(e, name, self.layout.size(e, f"parts_{name}"))
        return self.text.text()

    # --- memory -----------------------------------------------------------------------------------

    def _table(self, f: FunctionText, kind: str, n: int, other: int = 0) -> Operand:
        name = f"table_{kind}_{n}_{other}"
        if name not in self.layout.places:
            self.layout.append(name, Address(_table(kind, n, other, self.dtype).ctypes.data))
        return self.layout.pointer(f, name)

    def _pointer(self, f: FunctionText, place: str) -> Operand:
        return self.layout.pointer(f, "scratch" if place == "middle" else place)

    def _scratch(self, f: FunctionText, *elements: int) -> list[Operand]:
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

    def _buffer(self, f: FunctionText, pointer: Operand) -> Buffer:
        return Buffer(f, pointer, self.type, self.lanes)

    # --- elements ---------------------------------------------------------------------------------

    def _zero(self, f: FunctionText) -> Number:
        return Number(f, self.type, self.lanes, "zeroinitializer")

    def _of_value(self, f: FunctionText, value: Value) -> Complex:
        parts = [Number(f, self.type, self.lanes, part) for part in value.parts]
        return Complex(parts[0], parts[1] if len(parts) > 1 else self._zero(f))

    def _load(
        self,
        f: FunctionText,
        axis: _Axis,
        pointer: Operand,
        first: Operand,
        step: int,
        mask: Operand,
    ) -> Complex:
        """Elements first, first + step, ... of an array of complex or real numbers."""
        dtype = self.real if axis.given == "real" else self.dtype
        where = f.offset(pointer, f.multiply(first, itemsize(dtype)))
        loaded = memory.load_strided(f, where, step, dtype, self.lanes, mask)
        value = self._of_value(f, loaded)
        return value.swapped() if axis.inverse else value

    def _load_half(
        self, f: FunctionText, axis: _Axis, row: Operand, i: Number, rows: Number, mask: Operand
    ) -> Complex:
        """Elements i (a vector of i64) of rows of which the first half is given."""
        n = axis.n
        upper = i > n // 2
        place = select(upper, n - i, i)
        offsets = rows * (n // 2 + 1) + place
        loaded = memory.gather(f, row, offsets.operand, self.dtype, self.lanes, mask)
        value = self._of_value(f, loaded)
        im = select(upper, -value.im, value.im)
        # Imaginary parts that the spectrum of real numbers does not have are ignored.
        alone = place.equals(0)
        if n % 2 == 0:
            alone = alone | place.equals(n // 2)
        return Complex(value.re, select(alone, 0.0, im)).swapped()

    def _store(
        self,
        f: FunctionText,
        axis: _Axis,
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

    def _splat(self, f: FunctionText, value: Operand) -> Number:
        return Number(f, "i64", self.lanes, splat_operand(f, value, "i64", self.lanes))

    def _numbers(self, f: FunctionText) -> Number:
        return Number(f, "i64", self.lanes, iota(f, self.lanes, "i64"))

    # --- transforms in lanes ----------------------------------------------------------------------

    def _lengths(self, axis: _Axis) -> tuple[int, int]:
        """The sizes of a row of elements and of results."""
        half = axis.n // 2 + 1
        return (
            half if axis.given == "half" else axis.n,
            half if axis.wanted == "half" else axis.n,
        )

    def _write_lanes(self, name: str, axis: _Axis) -> tuple[str, sizes.Size]:
        """A transform whose lanes are elements beside each other, or rows; its name and parts."""
        f = self.text.part(name)
        lanes = self.lanes
        n, inner = axis.n, axis.inner
        given, wanted = self._lengths(axis)
        source, target = self._pointer(f, axis.source), self._pointer(f, axis.target)
        if inner == 0:
            count = self.rows
            groups = _ceiling(count, lanes)
        else:
            outer = _outer(self.rows, self.last, n, inner)
            groups = sizes.multiply(outer, -(-inner // lanes))
        self.layout.append(f"groups_{name}", SizeWord(groups))
        each = max(1, PART_ELEMENTS // (n * lanes))
        low, high = part_bounds(f, self.layout.size(f, f"groups_{name}"), each)
        transform = self._transform(f, n)

        def rows(group: Operand) -> None:
            first = f.multiply(group, lanes)
            mask = tail_mask(f, f.subtract(self.layout.size(f, "rows"), first), lanes)
            row = f.multiply(first, given)

            def get(i: Operand) -> Complex:
                if axis.given == "half":
                    place = f.offset(source, f.multiply(row, itemsize(self.dtype)))
                    return self._load_half(
                        f, axis, place, self._splat(f, i), self._numbers(f), mask
                    )
                return self._load(f, axis, source, f.add(row, i), given, mask)

            def put(k: Operand, value: Complex) -> None:
                def write() -> None:
                    position = f.add(f.multiply(first, wanted), k)
                    self._store(f, axis, value, target, position, wanted, mask)

                if axis.wanted == "half":
                    f.branch(f.new(f"icmp slt i64 {k}, {wanted}"), write)
                else:
                    write()

            transform(get, put)

        def beside(group: Operand) -> None:
            per_row = -(-inner // lanes)
            outer = f.new(f"udiv i64 {group}, {per_row}")
            column = f.multiply(f.subtract(group, f.multiply(outer, per_row)), lanes)
            mask = tail_mask(f, f.subtract(inner, column), lanes)
            base = f.add(f.multiply(outer, n * inner), column)

            def get(i: Operand) -> Complex:
                return self._load(f, axis, source, f.add(base, f.multiply(i, inner)), 1, mask)

            def put(k: Operand, value: Complex) -> None:
                position = f.add(base, f.multiply(k, inner))
                self._store(f, axis, value, target, position, 1, mask)

            transform(get, put)

        f.loop(low, high, 1, beside if inner else rows)
        return name, _ceiling(groups, each)

    def _transform(self, f: FunctionText, n: int) -> Any:
        """`transform(get, put)`, of length n."""
        if radices(n) is not None or n == 1:
            pointers = self._scratch(f, n, n)
            buffers = [self._buffer(f, pointer) for pointer in pointers]
            table = self._table(f, "roots", n)

            def direct(get: Get, put: Put) -> None:
                if n == 1:
                    put("0", get("0"))
                else:
                    write_transform(f, n, table, get, put, buffers)

            return direct
        return self._chirped(f, n)

    def _chirped(self, f: FunctionText, n: int) -> Any:
        """By a convolution with chirps.

        j k = (j^2 + k^2 - (k - j)^2) / 2, so with c_j = exp(-pi i j^2 / n) the transform is
        c_k sum_j (x_j c_j) conj(c_(k - j)).
        """
        size = _padded(n)
        pointers = self._scratch(f, size, size, size)
        line, *buffers = [self._buffer(f, pointer) for pointer in pointers]
        table = self._table(f, "roots", size)
        chirp = self._table(f, "chirp", n)
        spectrum = self._table(f, "spectrum", n, size)

        def number(place: Operand, k: Operand) -> Complex:
            return root(f, place, k, self.type, self.lanes)

        def transform(get: Get, put: Put) -> None:
            f.loop(0, n, 1, lambda j: line.put(j, get(j) * number(chirp, j)))
            nothing = Complex(self._zero(f), self._zero(f))
            f.loop(n, str(size), 1, lambda j: line.put(j, nothing))

            def multiplied(k: Operand, value: Complex) -> None:
                line.put(k, (value * number(spectrum, k)).swapped())

            write_transform(f, size, table, line.get, multiplied, buffers)

            def back(k: Operand, value: Complex) -> None:
                line.put(k, value.swapped())

            write_transform(f, size, table, line.get, back, buffers)
            f.loop(0, n, 1, lambda k: put(k, line.get(k) * number(chirp, k)))

        return transform

    # --- rows cut in two --------------------------------------------------------------------------

    def _write_cut(
        self, name: str, axis: _Axis, halves: tuple[int, int]
    ) -> list[tuple[str, sizes.Size]]:
        """A transform of long rows; the names and parts of its phases."""
        a, b = halves
        long = sizes.typical(self.rows) < 4 and axis.n >= PART_ELEMENTS
        size = axis.n * itemsize(self.dtype)
        if long:
            # All threads work on each row, between whose phases it is in memory that they share.
            at = self.shared
            self.shared = sizes.add(at, sizes.add(sizes.multiply(self.rows, size), 64))
            self.layout.append(f"between_{name}", SizeWord(at))
            phases: list[tuple[str, sizes.Size]] = []
            for phase, count in (("columns", b), ("rows", a)):
                f = self.text.part(f"{name}_{phase}")
                groups = -(-count // self.lanes)
                each = max(1, PART_ELEMENTS * self.lanes // axis.n)
                chunks = -(-groups // each)
                row = f.new(f"udiv i64 %part, {chunks}")
                chunk = f.subtract("%part", f.multiply(row, chunks))
                low, high = part_bounds(f, str(groups), each, chunk)
                between = f.offset(
                    self.layout.pointer(f, "scratch"),
                    f.add(self.layout.size(f, f"between_{name}"), f.multiply(row, size)),
                )
                write = self._columns if phase == "columns" else self._rows
                write(f, axis, (a, b), row, between, (low, high))
                phases.append((f"{name}_{phase}", sizes.multiply(self.rows, chunks)))
            return phases
        f = self.text.part(name)
        each = max(1, PART_ELEMENTS // axis.n)
        low, high = part_bounds(f, self.layout.size(f, "rows"), each)
        # The row between its phases stands behind the buffers of both.
        vectors = -(-axis.n // self.lanes)
        between = self._scratch(f, 2 * max(a, b), vectors)[1]

        def one(row: Operand) -> None:
            for count, write in ((b, self._columns), (a, self._rows)):
                groups = -(-count // self.lanes)
                write(f, axis, (a, b), row, between, ("0", str(groups)))

        f.loop(low, high, 1, one)
        return [(name, _ceiling(self.rows, each))]

    def _columns(
        self,
        f: FunctionText,
        axis: _Axis,
        halves: tuple[int, int],
        row: Operand,
        between: Operand,
        bounds: tuple[Operand, Operand],
    ) -> None:
        """Transform columns of the row seen as a matrix, multiply them, and store the matrix."""
        a, b = halves
        given, _ = self._lengths(axis)
        source = self._pointer(f, axis.source)
        roots = self._table(f, "cut", axis.n, b)
        transform = self._transform(f, a)
        base = f.multiply(row, given)

        def group(number: Operand) -> None:
            column = f.multiply(number, self.lanes)
            mask = tail_mask(f, f.subtract(b, column), self.lanes)

            def get(i: Operand) -> Complex:
                first = f.add(f.multiply(i, b), column)
                if axis.given == "half":
                    place = f.offset(source, f.multiply(base, itemsize(self.dtype)))
                    index = self._splat(f, first) + self._numbers(f)
                    # Lanes beyond the columns stay inside of the row.
                    inside = select(index > axis.n - 1, 0, index)
                    return self._load_half(f, axis, place, inside, self._numbers(f).like(0), mask)
                return self._load(f, axis, source, f.add(base, first), 1, mask)

            def put(k: Operand, value: Complex) -> None:
                position = f.add(f.multiply(k, b), column)
                place = f.multiply(position, itemsize(self.dtype))
                loaded = memory.load(f, f.offset(roots, place), self.dtype, self.lanes, mask)
                value = value * self._of_value(f, loaded)
                parts = (value.re.operand, value.im.operand)
                stored = Value(self.dtype, self.lanes, parts)
                memory.store(f, stored, f.offset(between, place), mask)

            transform(get, put)

        f.loop(bounds[0], bounds[1], 1, group)

    def _rows(
        self,
        f: FunctionText,
        axis: _Axis,
        halves: tuple[int, int],
        row: Operand,
        between: Operand,
        bounds: tuple[Operand, Operand],
    ) -> None:
        """Transform rows of the matrix: their results are columns of the transform."""
        a, b = halves
        _, wanted = self._lengths(axis)
        target = self._pointer(f, axis.target)
        transform = self._transform(f, b)
        base = f.multiply(row, wanted)

        def group(number: Operand) -> None:
            first = f.multiply(number, self.lanes)
            rest = f.subtract(a, first)
            mask = tail_mask(f, rest, self.lanes)

            def get(i: Operand) -> Complex:
                position = f.add(f.multiply(first, b), i)
                place = f.offset(between, f.multiply(position, itemsize(self.dtype)))
                loaded = memory.load_strided(f, place, b, self.dtype, self.lanes, mask)
                return self._of_value(f, loaded)

            def put(k: Operand, value: Complex) -> None:
                position = f.add(f.multiply(k, a), first)

                def write(mask: Operand) -> None:
                    self._store(f, axis, value, target, f.add(base, position), 1, mask)

                if axis.wanted != "half":
                    write(mask)
                    return
                left = f.subtract(wanted, position)

                def some() -> None:
                    write(tail_mask(f, f.smaller(left, rest), self.lanes))

                f.branch(f.new(f"icmp sgt i64 {left}, 0"), some)

            transform(get, put)

        f.loop(bounds[0], bounds[1], 1, group)


def _ceiling(count: sizes.Size, each: int) -> sizes.Size:
    """count / each, rounded up."""
    if isinstance(count, int):
        return -(-count // each)
    whole = sizes.user_size(sizes.add(count, each - 1))
    return sizes.kernel_size(whole // each)  # type: ignore[operator]


def _outer(rows: sizes.Size, last: int, n: int, inner: int) -> sizes.Size:
    """How many times (n, inner) the whole array is, which has rows of `last` elements."""
    if isinstance(rows, int):
        return rows * last // (n * inner)
    whole = sizes.user_size(rows)
    return sizes.kernel_size(whole // (n * inner // last))  # type: ignore[operator]
