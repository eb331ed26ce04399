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
from typing import Any

from fxarray.core.types import ArrayType
from fxarray.devices.cpu.emit import memory
from fxarray.devices.cpu.emit.function import FunctionText, Operand
from fxarray.devices.cpu.emit.lanes import tail_mask
from fxarray.devices.cpu.emit.number import select
from fxarray.devices.cpu.emit.types import Value, itemsize
from fxarray.devices.cpu.library.butterflies import (
    Complex,
    Get,
    Put,
    radices,
    root,
    write_transform,
)
from fxarray.devices.cpu.library.elements import short_dtype
from fxarray.devices.cpu.library.fft_elements import Axis, Elements
from fxarray.devices.cpu.library.fft_tables import cut, makes, padded
from fxarray.devices.cpu.library.text import Layout, part_bounds, run_parts
from fxarray.devices.cpu.native.routine import Routine, SizeWord
from fxarray.devices.cpu.native.target import Target
from fxarray.kernel import sizes
from fxarray.primitives.fft import FFT, IFFT, IRFFT, RFFT, Fft

# Elements in a part.
PART_ELEMENTS = 1 << 15


def fft_routine(
    op: Fft, inputs: Sequence[ArrayType], outputs: Sequence[ArrayType], target: Target
) -> Routine | None:
    """The routine of `fft`; None for lengths with prime factors that are too large."""
    (x,), (result,) = inputs, outputs
    lengths = op.lengths
    if any(size == 0 for size in (*lengths, *x.shape, *result.shape)):
        return None
    if not all(makes(n, k == len(lengths) - 1) for k, n in enumerate(lengths)):
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


def _plan(op: Fft, last: int) -> list[Axis]:
    """Transforms along single dimensions, one after the other."""
    inverse = op.kind in (IFFT, IRFFT)
    *others, n = op.lengths
    scale = 1 / math.prod(op.lengths) if inverse else 1.0
    axes: list[Axis] = []
    inner = [math.prod([*others[d + 1 :], last]) for d in range(len(others))]
    around = list(zip(others, inner, strict=True))[::-1]
    if op.kind == IRFFT:
        place = "in0"
        for length, beside in around:
            axes.append(Axis(length, beside, place, "middle", "complex", "complex", True, 1.0))
            place = "middle"
        axes.append(Axis(n, 0, place, "out0", "half", "real", True, scale))
        return axes
    given = "real" if op.kind == RFFT else "complex"
    wanted = "half" if op.kind == RFFT else "complex"
    axes.append(Axis(n, 0, "in0", "out0", given, wanted, inverse, scale))
    for length, beside in around:
        axes.append(Axis(length, beside, "out0", "out0", "complex", "complex", inverse, 1.0))
    assert op.kind in (FFT, IFFT, RFFT)
    return axes


class _Writer(Elements):
    """Writes the functions of a transform."""

    def module(self, axes: Sequence[Axis]) -> str:
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

    # --- transforms in lanes ----------------------------------------------------------------------

    def _write_lanes(self, name: str, axis: Axis) -> tuple[str, sizes.Size]:
        """A transform whose lanes are elements beside each other, or rows; its name and parts."""
        f = self.text.part(name)
        lanes = self.lanes
        n, inner = axis.n, axis.inner
        given, wanted = axis.lengths
        source, target = self.pointer(f, axis.source), self.pointer(f, axis.target)
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
                    return self.load_half(f, axis, place, self.splat(f, i), self.numbers(f), mask)
                return self.load(f, axis, source, f.add(row, i), given, mask)

            def put(k: Operand, value: Complex) -> None:
                def write() -> None:
                    position = f.add(f.multiply(first, wanted), k)
                    self.store(f, axis, value, target, position, wanted, mask)

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
                return self.load(f, axis, source, f.add(base, f.multiply(i, inner)), 1, mask)

            def put(k: Operand, value: Complex) -> None:
                position = f.add(base, f.multiply(k, inner))
                self.store(f, axis, value, target, position, 1, mask)

            transform(get, put)

        f.loop(low, high, 1, beside if inner else rows)
        return name, _ceiling(groups, each)

    def _transform(self, f: FunctionText, n: int) -> Any:
        """`transform(get, put)`, of length n."""
        if radices(n) is not None or n == 1:
            pointers = self.scratch(f, n, n)
            buffers = [self.buffer(f, pointer) for pointer in pointers]
            table = self.roots(f, "roots", n)

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
        size = padded(n)
        pointers = self.scratch(f, size, size, size)
        line, *buffers = [self.buffer(f, pointer) for pointer in pointers]
        table = self.roots(f, "roots", size)
        chirp = self.roots(f, "chirp", n)
        spectrum = self.roots(f, "spectrum", n, size)

        def number(place: Operand, k: Operand) -> Complex:
            return root(f, place, k, self.type, self.lanes)

        def transform(get: Get, put: Put) -> None:
            f.loop(0, n, 1, lambda j: line.put(j, get(j) * number(chirp, j)))
            nothing = Complex(self.zero(f), self.zero(f))
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
        self, name: str, axis: Axis, halves: tuple[int, int]
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
        between = self.scratch(f, 2 * max(a, b), vectors)[1]

        def one(row: Operand) -> None:
            for count, write in ((b, self._columns), (a, self._rows)):
                groups = -(-count // self.lanes)
                write(f, axis, (a, b), row, between, ("0", str(groups)))

        f.loop(low, high, 1, one)
        return [(name, _ceiling(self.rows, each))]

    def _columns(
        self,
        f: FunctionText,
        axis: Axis,
        halves: tuple[int, int],
        row: Operand,
        between: Operand,
        bounds: tuple[Operand, Operand],
    ) -> None:
        """Transform columns of the row seen as a matrix, multiply them, and store the matrix."""
        a, b = halves
        given, _ = axis.lengths
        source = self.pointer(f, axis.source)
        roots = self.roots(f, "cut", axis.n, b)
        transform = self._transform(f, a)
        base = f.multiply(row, given)

        def group(number: Operand) -> None:
            column = f.multiply(number, self.lanes)
            mask = tail_mask(f, f.subtract(b, column), self.lanes)

            def get(i: Operand) -> Complex:
                first = f.add(f.multiply(i, b), column)
                if axis.given == "half":
                    place = f.offset(source, f.multiply(base, itemsize(self.dtype)))
                    index = self.splat(f, first) + self.numbers(f)
                    # Lanes beyond the columns stay inside of the row.
                    inside = select(index > axis.n - 1, 0, index)
                    return self.load_half(f, axis, place, inside, self.numbers(f).like(0), mask)
                return self.load(f, axis, source, f.add(base, first), 1, mask)

            def put(k: Operand, value: Complex) -> None:
                position = f.add(f.multiply(k, b), column)
                place = f.multiply(position, itemsize(self.dtype))
                loaded = memory.load(f, f.offset(roots, place), self.dtype, self.lanes, mask)
                value = value * self.of_value(f, loaded)
                parts = (value.re.operand, value.im.operand)
                stored = Value(self.dtype, self.lanes, parts)
                memory.store(f, stored, f.offset(between, place), mask)

            transform(get, put)

        f.loop(bounds[0], bounds[1], 1, group)

    def _rows(
        self,
        f: FunctionText,
        axis: Axis,
        halves: tuple[int, int],
        row: Operand,
        between: Operand,
        bounds: tuple[Operand, Operand],
    ) -> None:
        """Transform rows of the matrix: their results are columns of the transform."""
        a, b = halves
        _, wanted = axis.lengths
        target = self.pointer(f, axis.target)
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
                return self.of_value(f, loaded)

            def put(k: Operand, value: Complex) -> None:
                position = f.add(f.multiply(k, a), first)

                def write(mask: Operand) -> None:
                    self.store(f, axis, value, target, f.add(base, position), 1, mask)

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
