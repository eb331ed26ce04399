"""Fourier transforms of vectors, one transform in each lane, as LLVM text.

Stockham's form of the fast Fourier transform: every pass takes elements m apart, transforms them r
at a time, multiplies by powers of a root of unity, and writes the results side by side, so that the
last pass leaves them in order.

Source: C. Van Loan, "Computational frameworks for the fast Fourier transform", SIAM 1992, section
1.7.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fxarray.devices.cpu.emit.constants import splat_operand
from fxarray.devices.cpu.emit.function import FunctionText, Operand
from fxarray.devices.cpu.emit.number import Number
from fxarray.devices.cpu.emit.types import vector_type

# Radices of passes, best first, and the greatest prime that is one.
RADICES = (8, 4, 2, 3, 5, 7, 11, 13)


def product_sum(x: Number, factor: Number | float, addend: Number) -> Number:
    """x * factor + addend, rounded once where that is one instruction."""
    return x.intrinsic("fmuladd", factor, addend)


@dataclass
class Complex:
    """Complex numbers in vectors."""

    re: Number
    im: Number

    def __add__(self, other: Complex) -> Complex:
        return Complex(self.re + other.re, self.im + other.im)

    def __sub__(self, other: Complex) -> Complex:
        return Complex(self.re - other.re, self.im - other.im)

    def __mul__(self, other: Complex) -> Complex:
        real = product_sum(-self.im, other.im, self.re * other.re)
        return Complex(real, product_sum(self.re, other.im, self.im * other.re))

    def scaled(self, factor: Number | float) -> Complex:
        return Complex(self.re * factor, self.im * factor)

    def turned(self) -> Complex:
        """Times -i."""
        return Complex(self.im, -self.re)

    def swapped(self) -> Complex:
        """The parts exchanged: what turns a transform into its inverse, but for the factor 1/n."""
        return Complex(self.im, self.re)


def radices(n: int) -> list[int] | None:
    """The radices of passes whose product is n; None if n has a greater prime factor."""
    result: list[int] = []
    for radix in RADICES:
        while n % radix == 0:
            # 16 is two passes of 4, not 8 and 2.
            if radix == 8 and n % 16 == 0 and (n // 16) % 2:
                break
            result.append(radix)
            n //= radix
    return result if n == 1 else None


def transform(x: Sequence[Complex]) -> list[Complex]:
    """The discrete Fourier transform of a few elements."""
    n = len(x)
    if n == 1:
        return list(x)
    if n % 2:
        return _odd(x)
    # Even and odd elements apart, then pairs.
    even, odd = transform(x[::2]), transform(x[1::2])
    half = n // 2
    odd = [_rotated(value, k, n) for k, value in enumerate(odd)]
    return [even[k] + odd[k] for k in range(half)] + [even[k] - odd[k] for k in range(half)]


def _rotated(x: Complex, k: int, n: int) -> Complex:
    """x exp(-2 pi i k / n), for k < n / 2."""
    if k == 0:
        return x
    if 4 * k == n:
        return x.turned()
    if 8 * k in (n, 3 * n):
        root = math.sqrt(0.5)
        turned = x.turned()
        return (x + turned if 8 * k == n else turned - x).scaled(root)
    angle = 2 * math.pi * k / n
    c, s = math.cos(angle), math.sin(angle)
    return Complex(x.re * c + x.im * s, x.im * c - x.re * s)


def _odd(x: Sequence[Complex]) -> list[Complex]:
    """By pairs j, n - j: cosines go with their sum, sines with their difference."""
    n = len(x)
    half = n // 2
    sums = [x[j] + x[n - j] for j in range(1, half + 1)]
    differences = [x[j] - x[n - j] for j in range(1, half + 1)]
    first = x[0]
    for value in sums:
        first = first + value
    results = [first] * n
    for k in range(1, half + 1):
        even, odd_re, odd_im = x[0], None, None
        for j in range(1, half + 1):
            angle = 2 * math.pi * (j * k % n) / n
            c, s = math.cos(angle), math.sin(angle)
            even = Complex(
                product_sum(sums[j - 1].re, c, even.re), product_sum(sums[j - 1].im, c, even.im)
            )
            d = differences[j - 1]
            odd_re = d.re * s if odd_re is None else product_sum(d.re, s, odd_re)
            odd_im = d.im * s if odd_im is None else product_sum(d.im, s, odd_im)
        assert odd_re is not None
        assert odd_im is not None
        turned = Complex(odd_re, odd_im).turned()
        results[k], results[n - k] = even + turned, even - turned
    return results


Get = Callable[[Operand], Complex]
Put = Callable[[Operand, Complex], None]


@dataclass
class Buffer:
    """Complex vectors in memory."""

    f: FunctionText
    pointer: Operand
    type: str
    lanes: int

    def _at(self, i: Operand | int, part: int) -> Operand:
        kind = vector_type(self.type, self.lanes)
        return self.f.offset(self.pointer, self.f.add(self.f.multiply(i, 2), part), kind)

    def get(self, i: Operand | int) -> Complex:
        kind = vector_type(self.type, self.lanes)
        parts = [
            Number(self.f, self.type, self.lanes, self.f.new(f"load {kind}, ptr {self._at(i, k)}"))
            for k in range(2)
        ]
        return Complex(parts[0], parts[1])

    def put(self, i: Operand | int, value: Complex) -> None:
        kind = vector_type(self.type, self.lanes)
        for k, part in enumerate((value.re, value.im)):
            self.f.do(f"store {kind} {part.operand}, ptr {self._at(i, k)}")


def root(f: FunctionText, table: Operand, position: Operand, type_: str, lanes: int) -> Complex:
    """A number of a table in all lanes."""
    parts: list[Number] = []
    for k in range(2):
        where = f.offset(table, f.add(f.multiply(position, 2), k), type_)
        one = f.new(f"load {type_}, ptr {where}")
        parts.append(Number(f, type_, lanes, splat_operand(f, one, type_, lanes)))
    return Complex(parts[0], parts[1])


def write_transform(
    f: FunctionText, n: int, table: Operand, get: Get, put: Put, buffers: Sequence[Buffer]
) -> None:
    """Write the transform of n elements.

    Args:
      f: the function that is being written.
      n: the length, for which there are `radices`.
      table: exp(-2 pi i k / n) for k < n.
      get: element i.
      put: what is done with result k.
      buffers: memory for n elements, twice.
    """
    steps = radices(n) or [1]
    current, stride = n, 1
    for number, radix in enumerate(steps):
        read = get if number == 0 else buffers[(number - 1) % 2].get
        write = put if number == len(steps) - 1 else buffers[number % 2].put
        _write_pass(f, (current, stride, radix), table, read, write, buffers[0])
        current //= radix
        stride *= radix


def _write_pass(
    f: FunctionText,
    numbers: tuple[int, int, int],
    table: Operand,
    read: Get,
    write: Put,
    model: Buffer,
) -> None:
    n, stride, radix = numbers
    apart = n // radix

    def outer(p: Operand) -> None:
        # exp(-2 pi i p j / n) is number p j stride of the table.
        base = f.multiply(p, stride)
        roots = [
            root(f, table, f.multiply(base, j), model.type, model.lanes)
            if apart > 1 and j
            else None
            for j in range(radix)
        ]

        def inner(q: Operand) -> None:
            start = f.add(q, base)
            values = [read(f.add(start, stride * apart * j)) for j in range(radix)]
            first = f.add(q, f.multiply(base, radix))
            for j, value in enumerate(transform(values)):
                factor = roots[j]
                write(f.add(first, stride * j), value * factor if factor else value)

        if stride == 1:
            inner("0")
        else:
            f.loop(0, stride, 1, inner)

    if apart == 1:
        outer("0")
    else:
        f.loop(0, apart, 1, outer)
