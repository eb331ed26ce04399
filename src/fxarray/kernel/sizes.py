"""Sizes in kernels: an int, or a polynomial in named sizes that is a number at run time.

Unlike the `Dim`s that users see, they are compared by structure and never raise, so that nodes that
hold them can be keys.

    >>> from fxarray.core.dims import ShapeVar
    >>> batch = kernel_size(ShapeVar("batch"))
    >>> add(multiply(batch, 4), 2), add(batch, multiply(batch, -1))
    (4*batch + 2, 0)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from fxarray.core.dims import Dim
from fxarray.core.dims import Size as UserSize
from fxarray.core.dims.bounds import bounds as polynomial_bounds
from fxarray.core.dims.dim import to_polynomial, to_size
from fxarray.core.dims.polynomial import Polynomial

Size: TypeAlias = int | Polynomial


def kernel_size(size: UserSize) -> Size:
    """The size of an array's dimension, as kernels write it."""
    return size.key if isinstance(size, Dim) else int(size)


def kernel_shape(shape: Iterable[UserSize]) -> tuple[Size, ...]:
    """The sizes of an array's dimensions, as kernels write them."""
    known = tuple(shape)
    for size in known:
        if type(size) is not int:
            return tuple([kernel_size(size) for size in known])
    return known  # type: ignore[return-value]


def user_size(size: Size) -> UserSize:
    """The size as users see it."""
    return to_size(size) if isinstance(size, Polynomial) else size


def normal(polynomial: Polynomial) -> Size:
    """The int that a polynomial is, if it is one."""
    value = polynomial.value
    return polynomial if value is None else int(value)


def polynomial(size: Size) -> Polynomial:
    """A size as a polynomial."""
    return size if isinstance(size, Polynomial) else Polynomial.constant(size)


def add(left: Size, right: Size) -> Size:
    """left + right."""
    if isinstance(left, int) and isinstance(right, int):
        return left + right
    return normal(polynomial(left) + polynomial(right))


def multiply(left: Size, right: Size) -> Size:
    """left * right."""
    if isinstance(left, int) and isinstance(right, int):
        return left * right
    return normal(polynomial(left) * polynomial(right))


def subtract(left: Size, right: Size) -> Size:
    """left - right."""
    return add(left, multiply(right, -1))


def product(sizes: Iterable[Size]) -> Size:
    """The product of sizes; 1 of none."""
    total: Size = 1
    for size in sizes:
        total = multiply(total, size)
    return total


def evaluate(size: Size, values: Mapping[str, int]) -> int:
    """The number that a size is for given values of its variables."""
    return size.evaluate(values) if isinstance(size, Polynomial) else size


def variables(size: Size) -> frozenset[str]:
    """The names that a size depends on."""
    if isinstance(size, int):
        return frozenset()
    return frozenset(variable.name for variable in size.variables)


def bounds(size: Size) -> tuple[int | None, int | None]:
    """The least and the greatest number that a size can be, None where no bound is known."""
    return (size, size) if isinstance(size, int) else polynomial_bounds(size)


def typical(size: Size, guess: int = 256) -> int:
    """A number to estimate costs with: the size itself, or its value at `guess` for variables."""
    if isinstance(size, int):
        return size
    values: dict[str, int] = {}
    for variable in size.variables:
        high = guess if variable.maximum is None else min(guess, variable.maximum)
        values[variable.name] = max(high, variable.minimum)
    return max(size.evaluate(values), 0)


__all__ = [
    "Polynomial",
    "Size",
    "add",
    "bounds",
    "evaluate",
    "kernel_shape",
    "kernel_size",
    "multiply",
    "normal",
    "polynomial",
    "product",
    "subtract",
    "to_polynomial",
    "typical",
    "user_size",
    "variables",
]
