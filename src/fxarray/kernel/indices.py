"""Arithmetic with index expressions: what they can be, and taking them apart.

A reshape reads element `flat` of an array in another shape. `digits` writes the flat index as one
index per dimension, without division: terms whose coefficients are multiples of a dimension's
stride belong to the dimensions before it, the others to it. Where an axis of the kernel runs across
several dimensions, it must be written as several axes (`SplitAxis`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TypeAlias

from fxarray.core.dims.polynomial import Polynomial
from fxarray.kernel import sizes
from fxarray.kernel.ir import Affine, Bound
from fxarray.kernel.sizes import Size

Ranges: TypeAlias = Mapping[int, tuple[Size, Size]]
NO_RANGES: Ranges = MappingProxyType({})


class NotAffine(Exception):
    """An index of an operand would be no affine expression: the operand must be in memory."""


class NoKernel(NotAffine):
    """An operation has no kernel form for these operands: a device runs it whole."""


class SplitAxis(NotAffine):
    """A kernel can be made if one of its axes is written as several.

    Args:
      axis: the axis.
      sizes: of the axes to write it as; the last one varies fastest.
    """

    def __init__(self, axis: str, sizes: tuple[Size, ...]) -> None:
        super().__init__(f"axis {axis} must be split into sizes {sizes}")
        self.axis = axis
        self.sizes = sizes


# --- ranges ---------------------------------------------------------------------------------------


def least(affine: Affine, axes: Mapping[str, Size], ranges: Ranges = NO_RANGES) -> Size | None:
    """The least that an index expression can be; None if that is not known.

    Args:
      affine: the expression.
      axes: the sizes of axes.
      ranges: the least and greatest number that values can be, where known.
    """
    return _extreme(affine, axes, ranges, low=True)


def greatest(affine: Affine, axes: Mapping[str, Size], ranges: Ranges = NO_RANGES) -> Size | None:
    """The greatest that an index expression can be; None if that is not known."""
    return _extreme(affine, axes, ranges, low=False)


def _extreme(affine: Affine, axes: Mapping[str, Size], ranges: Ranges, low: bool) -> Size | None:
    total = affine.constant
    for term, coefficient in affine.terms:
        if isinstance(term, str):
            span = (0, sizes.subtract(axes[term], 1))
        elif term in ranges:
            span = ranges[term]
        else:
            return None
        if is_at_least(coefficient, 0):
            up = True
        elif is_at_least(sizes.multiply(coefficient, -1), 0):
            up = False
        else:
            return None
        total = sizes.add(total, sizes.multiply(coefficient, span[up != low]))
    return total


def is_at_least(size: Size, number: int) -> bool:
    """Whether it is known that a size is at least a number."""
    low = sizes.bounds(size)[0]
    return low is not None and low >= number


def always(bound: Bound, axes: Mapping[str, Size], ranges: Ranges = NO_RANGES) -> bool:
    """Whether it is known that a bound holds everywhere."""
    affine, low, high = bound
    first, last = least(affine, axes, ranges), greatest(affine, axes, ranges)
    if first is None or last is None:
        return False
    above = is_at_least(sizes.subtract(first, low), 0)
    return above and is_at_least(sizes.subtract(high, last), 1)


# --- taking apart ---------------------------------------------------------------------------------


def exact_quotient(size: Size, divisor: Size) -> Size | None:
    """`size / divisor` where that is known to be a whole number (or a size), else None."""
    if isinstance(size, int) and isinstance(divisor, int):
        return size // divisor if divisor and size % divisor == 0 else None
    if size == 0:
        return 0
    whole = sizes.polynomial(size).divide(sizes.polynomial(divisor))
    if whole is None or not whole.is_integral():
        return None
    return sizes.normal(whole)


def digits(index: Affine, shape: Sequence[Size], axes: Mapping[str, Size]) -> tuple[Affine, ...]:
    """A flat index into an array of a shape, as one index per dimension.

    Raises:
      SplitAxis: it can be done once an axis is written as several, with all of its parts.
      NotAffine: it cannot be done.
    """
    known = dict(axes)
    parts: dict[str, tuple[str, ...]] = {}
    result: tuple[Affine, ...] | None = None
    while result is None:
        try:
            result = _digits(index, shape, known)
        except SplitAxis as split:
            # Go on as if it had been split, to see which parts there will be.
            names = tuple([f"{split.axis}/{number}" for number in range(len(split.sizes))])
            known.update(zip(names, split.sizes, strict=True))
            parts[split.axis] = names
            whole = Affine()
            for name, size in zip(names, split.sizes, strict=True):
                whole = whole * size + Affine.of(name)
            index = index.replace({split.axis: whole})
    if parts:
        first = next(iter(parts))
        raise SplitAxis(first, tuple([known[name] for name in _leaves(first, parts)]))
    return result


def _leaves(axis: str, parts: Mapping[str, tuple[str, ...]]) -> list[str]:
    """The parts of an axis that are not split again, in order."""
    if axis not in parts:
        return [axis]
    return [leaf for name in parts[axis] for leaf in _leaves(name, parts)]


def _digits(index: Affine, shape: Sequence[Size], axes: Mapping[str, Size]) -> tuple[Affine, ...]:
    result: list[Affine] = []
    rest = index
    for place in range(len(shape) - 1, 0, -1):
        size = shape[place]
        if size == 1:
            result.append(Affine())
            continue
        rest, digit = divided(rest, size, axes)
        result.append(digit)
    if shape:
        result.append(Affine() if shape[0] == 1 else rest)
    return tuple(reversed(result))


def divided(index: Affine, size: Size, axes: Mapping[str, Size]) -> tuple[Affine, Affine]:
    """Quotient and remainder of an index expression."""
    quotient = Affine()
    rest = Affine((), index.constant)
    for term, coefficient in index.terms:
        part = exact_quotient(coefficient, size)
        if part is None:
            rest = rest + Affine(((term, coefficient),))
        else:
            quotient = quotient + Affine(((term, part),))
    first = least(rest, axes)
    if first is None:
        raise NotAffine(f"{index} over {size} depends on values")
    # The multiple of `size` below the least index.
    if isinstance(first, int) and isinstance(size, int):
        below = first // size
    else:
        below = _multiple(first, size)
    quotient = quotient + Affine((), below)
    rest = rest + Affine((), sizes.multiply(sizes.multiply(below, size), -1))
    first, last = least(rest, axes), greatest(rest, axes)
    if first is not None and last is not None:
        inside = is_at_least(first, 0) and is_at_least(sizes.subtract(size, last), 1)
        if inside:
            return quotient, rest
    for term, coefficient in rest.terms:
        # So many steps along this axis fill the dimension.
        negative = not is_at_least(coefficient, 0)
        steps = exact_quotient(size, sizes.multiply(coefficient, -1) if negative else coefficient)
        if isinstance(term, str) and steps is not None and steps != axes[term]:
            outer = exact_quotient(axes[term], steps)
            if outer is not None and outer != 1:
                raise SplitAxis(term, (outer, steps))
    raise NotAffine(f"{index} does not fall into rows of {size}")


def _multiple(first: Size, size: Size) -> Size:
    """A whole number of `size`s that `first` begins with: its terms that are multiples of it."""
    total: Size = 0
    for monomial, coefficient in sizes.polynomial(first).terms:
        part = exact_quotient(sizes.normal(Polynomial({monomial: coefficient})), size)
        if part is not None:
            total = sizes.add(total, part)
    return total


def reshaped(
    index: tuple[Affine, ...],
    shape: Sequence[Size],
    before: Sequence[Size],
    axes: Mapping[str, Size],
) -> tuple[Affine, ...]:
    """Where an element of a reshaped array stands in the array.

    Args:
      index: of the element.
      shape: of the reshaped array.
      before: the array's shape, without zeros.
      axes: sizes of axes.

    Raises:
      SplitAxis: there is an answer once an axis is written as several.
      NotAffine: there is none.
    """
    result = [Affine()] * len(before)
    for old, new in groups(before, shape):
        if len(old) == len(new) == 1:
            result[old[0]] = index[new[0]]
            continue
        flat = Affine()
        for place in new:
            flat = flat * shape[place] + index[place]
        parts = digits(flat, [before[place] for place in old], axes)
        for place, part in zip(old, parts, strict=True):
            result[place] = part
    return tuple(result)


def groups(before: Sequence[Size], after: Sequence[Size]) -> list[tuple[list[int], list[int]]]:
    """Runs of dimensions of two shapes that hold the same elements, as short as can be told."""
    result: list[tuple[list[int], list[int]]] = []
    left = [i for i, size in enumerate(before) if size != 1]
    right = [i for i, size in enumerate(after) if size != 1]
    while left or right:
        taken: tuple[list[int], list[int]] = ([], [])
        products: list[Size] = [1, 1]
        while True:
            side = _next_side(products, left, right)
            if side is None:
                break
            place = (left, right)[side].pop(0)
            taken[side].append(place)
            products[side] = sizes.multiply(products[side], (before, after)[side][place])
            if taken[0] and taken[1] and products[0] == products[1]:
                break
        result.append(taken)
    return result


def _next_side(products: list[Size], left: list[int], right: list[int]) -> int | None:
    """Which shape to take a dimension of next: the one whose product is the smaller."""
    if not left and not right:
        return None
    if not left or not right:
        return 0 if left else 1
    smaller = sizes.typical(products[0]) <= sizes.typical(products[1])
    return 0 if smaller else 1
