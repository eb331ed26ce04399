"""Shapes and axes as callers of `lax` give them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fxarray.core import dims
from fxarray.core.array import Array
from fxarray.core.errors import ArgumentError, AxisError, ShapeError
from fxarray.core.types import Shape, Size


def as_size(function: str, size: Any) -> Size:
    """A size as an int or a `Dim`.

    Raises:
      ShapeError: it is no integer.
    """
    if type(size) is int or isinstance(size, dims.Dim):
        return size
    try:
        return size.__index__()
    except AttributeError:
        raise ShapeError(f"lax.{function}: sizes are integers, got {size!r}") from None


def as_sizes(function: str, sizes: Any) -> Shape:
    """A sequence of sizes as a tuple; one size alone is a sequence of one."""
    if isinstance(sizes, int | np.integer | dims.Dim):
        sizes = (sizes,)
    if isinstance(sizes, Array | np.ndarray) and not sizes.shape:
        sizes = (sizes,)
    return tuple([as_size(function, size) for size in sizes])


def as_shape(function: str, shape: Any) -> Shape:
    """A shape as a tuple of ints and `Dim`s.

    Raises:
      ShapeError: a size is negative, or no integer.
    """
    sizes = as_sizes(function, shape)
    if any(type(size) is int and size < 0 for size in sizes):
        raise ShapeError(f"lax.{function}: sizes must not be negative, got shape {sizes}")
    return sizes


def as_axis(function: str, axis: Any, rank: int) -> int:
    """An axis, counted from the end if negative, as a non-negative int.

    Raises:
      AxisError: it is out of range.
      ArgumentError: it is no integer.
    """
    try:
        index = axis.__index__()
    except AttributeError:
        raise ArgumentError(f"lax.{function}: an axis is an integer, got {axis!r}") from None
    if not -rank <= index < rank:
        raise AxisError(
            f"lax.{function}: axis {index} is out of range for an array of {rank} dimensions"
        )
    return index + rank if index < 0 else index


def as_axes(function: str, axes: Any, rank: int) -> tuple[int, ...]:
    """Distinct axes as non-negative ints, in the order given.

    Raises:
      AxisError: one is out of range, or given twice.
    """
    given: Sequence[Any] = (axes,) if isinstance(axes, int | np.integer) else axes
    found = tuple([as_axis(function, axis, rank) for axis in given])
    if len(set(found)) != len(found):
        raise AxisError(f"lax.{function}: a dimension is given twice in {tuple(given)}")
    return found


def common_shape(function: str, shapes: Sequence[Shape]) -> Shape:
    """The shape that `shapes` broadcast to.

    Raises:
      ShapeError: two sizes differ and neither is 1.
    """
    rank = max(map(len, shapes), default=0)
    result: list[Any] = [1] * rank
    for shape in shapes:
        for axis, size in enumerate(shape, rank - len(shape)):
            known = result[axis]
            if dims.same(size, known) or dims.same(size, 1):
                continue
            if not dims.same(known, 1):
                listed = ", ".join(str(tuple(s)).replace(",)", ")") for s in shapes)
                raise ShapeError(
                    f"{function}: shapes {listed} do not broadcast: in dimension {axis - rank} "
                    "sizes "
                    f"{known} and {size} differ, and neither is 1. Reshape one, or add an axis "
                    "where "
                    f"it should be repeated, as in x[:, None]."
                )
            result[axis] = size
    return tuple(result)


def broadcast_shapes(*shapes: Any) -> Shape:
    """The shape that arrays of these shapes broadcast to.

    Args:
      *shapes: shapes of any ranks; a shorter one is extended with ones on the left.

    Raises:
      ShapeError: two sizes differ and neither is 1.

    >>> from fxarray import lax
    >>> lax.broadcast_shapes((3, 1), (4,))
    (3, 4)
    """
    return common_shape("lax.broadcast_shapes", [as_shape("broadcast_shapes", s) for s in shapes])


def reject_sharding(function: str, sharding: Any) -> None:
    """Refuse a sharding where the operation does not take one."""
    if sharding is not None:
        raise ArgumentError(
            f"lax.{function}: a sharding of the result is not supported, got {sharding!r}; place "
            f"the result with device_put"
        )
