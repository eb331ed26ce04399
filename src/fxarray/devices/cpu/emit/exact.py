"""Sums and products with their rounding errors: arithmetic to twice the digits."""

from __future__ import annotations

from fxarray.devices.cpu.emit.number import Number


def exact_sum(a: Number, b: Number) -> tuple[Number, Number]:
    """The sum of two floats and its rounding error."""
    total = a + b
    other = total - a
    return total, (a - (total - other)) + (b - other)


def exact_product(a: Number, b: Number) -> tuple[Number, Number]:
    """The product of two floats and its rounding error."""
    product = a * b
    return product, a.fma(b, -product)


def compensated_polynomial(x: Number, coefficients: tuple[float, ...]) -> tuple[Number, Number]:
    """A polynomial as a sum of two floats, as right as with twice the digits."""
    *rest, last = coefficients
    total, low = x.like(last), x.like(0.0)
    for coefficient in reversed(rest):
        product, first = exact_product(total, x)
        total, second = exact_sum(product, x.like(coefficient))
        low = low.fma(x, first + second)
    return total, low


def quotient_of_sums(
    above: tuple[Number, Number], below: tuple[Number, Number]
) -> tuple[Number, Number]:
    """The quotient of two sums of two floats, as such a sum."""
    inverse = 1.0 / below[0]
    quotient = above[0] * inverse
    lacking = (-quotient).fma(below[0], above[0]) + (-quotient).fma(below[1], above[1])
    return quotient, lacking * inverse


def product_of_sums(a: tuple[Number, Number], b: tuple[Number, Number]) -> tuple[Number, Number]:
    """The product of two sums of two floats, as such a sum."""
    product, low = exact_product(a[0], b[0])
    return product, low + a[0].fma(b[1], a[1] * b[0])
