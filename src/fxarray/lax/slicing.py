"""Boxes of an array: at known places, and at places known only when running."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

import numpy as np

from fxarray.core import dims, dtypes
from fxarray.core.array import Array
from fxarray.core.errors import OutOfBoundsError, ShapeError
from fxarray.core.hooks import operators
from fxarray.core.types import Size
from fxarray.lax.operands import ArrayLike, as_operand, as_operands
from fxarray.lax.shapes import as_axis, as_shape, as_size, as_sizes
from fxarray.primitives import elementwise as e
from fxarray.primitives.convert import convert
from fxarray.primitives.create import scalar
from fxarray.primitives.dynamic_slicing import DynamicSlice, DynamicUpdateSlice
from fxarray.primitives.movement import reshape
from fxarray.primitives.slicing import Slice, slice_box


def slice(
    operand: ArrayLike,
    start_indices: Sequence[int],
    limit_indices: Sequence[int],
    strides: Sequence[int] | None = None,
) -> Array:
    """Elements `start`, `start + stride`, ... below `limit` of each dimension.

    Args:
      operand: an array.
      start_indices: per dimension, not negative.
      limit_indices: per dimension, at most the size.
      strides: per dimension, positive; default 1.

    Raises:
      ShapeError: bounds are out of range.

    >>> from fxarray import lax
    >>> lax.slice(lax.iota("int32", 6), (1,), (6,), (2,))
    Array([1, 3, 5], dtype=int32)
    """
    x = as_operand("slice", operand)
    starts, limits = as_sizes("slice", start_indices), as_sizes("slice", limit_indices)
    steps: Any = (1,) * len(starts) if strides is None else as_sizes("slice", strides)
    return Slice(starts, limits, steps)(x)


def slice_in_dim(
    operand: ArrayLike,
    start_index: int | None,
    limit_index: int | None,
    stride: int = 1,
    axis: int = 0,
) -> Array:
    """`operand` cut along one axis; negative bounds count from the end, None is the end.

    >>> from fxarray import lax
    >>> lax.slice_in_dim(lax.iota("int32", 6), 1, -1, stride=2)
    Array([1, 3], dtype=int32)
    """
    x = as_operand("slice_in_dim", operand)
    place = as_axis("slice_in_dim", axis, x.ndim)
    size = x.shape[place]
    starts: list[Size] = [0] * x.ndim
    limits = list(x.shape)
    strides = [1] * x.ndim
    for bounds, bound in ((starts, start_index), (limits, limit_index)):
        if bound is not None:
            known = as_size("slice_in_dim", bound)
            bounds[place] = size + known if type(known) is int and known < 0 else known
    strides[place] = int(stride)
    return slice_box(x, starts, limits, strides)


def index_in_dim(operand: ArrayLike, index: int, axis: int = 0, keepdims: bool = True) -> Array:
    """`operand` at one known position along an axis.

    Args:
      operand: an array.
      index: the position; negative ones count from the end.
      axis: the axis.
      keepdims: whether the axis stays, with size 1.

    Raises:
      OutOfBoundsError: the position is out of bounds.

    >>> from fxarray import lax
    >>> lax.index_in_dim(lax.iota("int32", 6), -1)
    Array([5], dtype=int32)
    """
    x = as_operand("index_in_dim", operand)
    place = as_axis("index_in_dim", axis, x.ndim)
    size = x.shape[place]
    position = as_size("index_in_dim", index)
    if position < -size or position >= size:
        raise OutOfBoundsError(
            f"lax.index_in_dim: index {position} is out of bounds for dimension {place} of {x.type}"
        )
    start = position + size if position < 0 else position
    result = slice_in_dim(x, start, start + 1, 1, place)  # type: ignore[arg-type]
    return result if keepdims else _without(result, place)


def _without(x: Array, axis: int) -> Array:
    return reshape(x, x.shape[:axis] + x.shape[axis + 1 :])


# --- at places known only when running ------------------------------------------------------------


def start_index(function: str, start: Any, size: Size, allow_negative: bool) -> Array:
    """A start index as an operand; negative ones are counted from the end."""
    if isinstance(start, int | np.integer):
        known = int(start)
        if known < 0 and allow_negative:
            if type(size) is not int:
                return operators.asarray(size + known)
            known += size
        # The operation clamps; beyond 32 bits there is no array.
        known = builtins.max(builtins.min(known, 2**31 - 1), -(2**31))
        return scalar(known, dtypes.int32)
    if isinstance(start, dims.Dim):
        return operators.asarray(start)
    x = as_operand(function, start)
    if not allow_negative or not dtypes.is_signed(x.type.dtype):
        return x
    if dtypes.bit_width(x.type.dtype) < 32 or x.type.weak:
        wide = dtypes.bit_width(x.type.dtype) > 32
        x = convert(x, x.type.dtype if wide else dtypes.int32)
    length = convert(operators.asarray(size), x.type.dtype)
    return e.select(e.lt(x, e.number_like(x, 0)), e.add(x, length), x)


def _starts(function: str, starts: Any, x: Array, allow_negative: Any) -> list[Array]:
    if isinstance(starts, Array | np.ndarray):
        if starts.ndim != 1:
            raise ShapeError(
                f"lax.{function}: start_indices must be a sequence of numbers or a vector, got "
                f"shape {tuple(starts.shape)}"
            )
        starts = [starts[i] for i in range(len(starts))]
    if len(starts) != x.ndim:
        raise ShapeError(
            f"lax.{function}: there must be one start index for each of the {x.ndim} dimensions of "
            f"{x.type}, got {len(starts)}"
        )
    allowed = [allow_negative] * x.ndim if isinstance(allow_negative, bool) else allow_negative
    return [
        start_index(function, start, size, allow)
        for start, size, allow in zip(starts, x.shape, allowed, strict=True)
    ]


def dynamic_slice(
    operand: ArrayLike,
    start_indices: Any,
    slice_sizes: Any,
    *,
    allow_negative_indices: bool | Sequence[bool] = True,
) -> Array:
    """The box of `slice_sizes` that starts at `start_indices`, which may be traced.

    Args:
      operand: an array.
      start_indices: per dimension; clamped so that the box lies inside the operand.
      slice_sizes: per dimension; static.
      allow_negative_indices: whether negative indices count from the end (else they are clamped).

    Raises:
      ShapeError: the box does not fit into the operand.

    >>> from fxarray import lax
    >>> lax.dynamic_slice(lax.iota("int32", 6), (4,), (3,))
    Array([3, 4, 5], dtype=int32)
    """
    x = as_operand("dynamic_slice", operand)
    starts = _starts("dynamic_slice", start_indices, x, allow_negative_indices)
    return DynamicSlice(as_shape("dynamic_slice", slice_sizes))(x, *starts)


def dynamic_slice_in_dim(
    operand: ArrayLike,
    start_index: ArrayLike,
    slice_size: int,
    axis: int = 0,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """`slice_size` elements along one axis, from a position that may be traced.

    >>> from fxarray import lax
    >>> lax.dynamic_slice_in_dim(lax.iota("int32", 6), 2, 3)
    Array([2, 3, 4], dtype=int32)
    """
    x = as_operand("dynamic_slice_in_dim", operand)
    place = as_axis("dynamic_slice_in_dim", axis, x.ndim)
    starts: list[Any] = [0] * x.ndim
    sizes = list(x.shape)
    starts[place], sizes[place] = start_index, as_size("dynamic_slice_in_dim", slice_size)
    return dynamic_slice(x, starts, sizes, allow_negative_indices=allow_negative_indices)


def dynamic_index_in_dim(
    operand: ArrayLike,
    index: ArrayLike,
    axis: int = 0,
    keepdims: bool = True,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """`operand` at one position along an axis, which may be traced and is clamped.

    >>> from fxarray import lax
    >>> lax.dynamic_index_in_dim(lax.iota("int32", 6), 2, keepdims=False)
    Array(2, dtype=int32)
    """
    x = as_operand("dynamic_index_in_dim", operand)
    place = as_axis("dynamic_index_in_dim", axis, x.ndim)
    result = dynamic_slice_in_dim(x, index, 1, place, allow_negative_indices=allow_negative_indices)
    return result if keepdims else _without(result, place)


def dynamic_update_slice(
    operand: ArrayLike,
    update: ArrayLike,
    start_indices: Any,
    *,
    allow_negative_indices: bool | Sequence[bool] = True,
) -> Array:
    """`operand` with the box at `start_indices`, which may be traced, replaced by `update`.

    Args:
      operand: an array.
      update: an array of the same dtype and number of dimensions.
      start_indices: per dimension; clamped so that the box lies inside the operand.
      allow_negative_indices: whether negative indices count from the end (else they are clamped).

    Raises:
      ShapeError: the update does not fit into the operand.

    >>> import fxarray.numpy as fnp
    >>> from fxarray import lax
    >>> lax.dynamic_update_slice(fnp.zeros(4), fnp.ones(2), (1,))
    Array([0., 1., 1., 0.], dtype=float32)
    """
    x, new = as_operands("dynamic_update_slice", operand, update)
    starts = _starts("dynamic_update_slice", start_indices, x, allow_negative_indices)
    return DynamicUpdateSlice()(x, new, *starts)


def dynamic_update_slice_in_dim(
    operand: ArrayLike,
    update: ArrayLike,
    start_index: ArrayLike,
    axis: int,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """`operand` with the part from `start_index` on, along one axis, replaced by `update`.

    >>> import fxarray.numpy as fnp
    >>> from fxarray import lax
    >>> lax.dynamic_update_slice_in_dim(fnp.zeros(4), fnp.ones(2), 2, axis=0)
    Array([0., 0., 1., 1.], dtype=float32)
    """
    x = as_operand("dynamic_update_slice_in_dim", operand)
    starts: list[Any] = [0] * x.ndim
    starts[as_axis("dynamic_update_slice_in_dim", axis, x.ndim)] = start_index
    return dynamic_update_slice(x, update, starts, allow_negative_indices=allow_negative_indices)


def dynamic_update_index_in_dim(
    operand: ArrayLike,
    update: ArrayLike,
    index: ArrayLike,
    axis: int,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """`operand` with the elements at one position along an axis replaced.

    Args:
      operand: an array.
      update: an array like `operand`, with size 1 along the axis or without it.
      index: the position, which may be traced and is clamped.
      axis: the axis.
      allow_negative_indices: whether a negative index counts from the end.

    >>> import fxarray.numpy as fnp
    >>> from fxarray import lax
    >>> lax.dynamic_update_index_in_dim(fnp.zeros(3), 5.0, 1, axis=0)
    Array([0., 5., 0.], dtype=float32)
    """
    x, new = as_operands("dynamic_update_index_in_dim", operand, update)
    place = as_axis("dynamic_update_index_in_dim", axis, x.ndim)
    if new.ndim != x.ndim:
        if new.ndim != x.ndim - 1:
            raise ShapeError(
                f"lax.dynamic_update_index_in_dim: the update {new.type} must have as many "
                f"dimensions as the operand, {x.type}, or one less"
            )
        new = reshape(new, (*new.shape[:place], 1, *new.shape[place:]))
    return dynamic_update_slice_in_dim(
        x, new, index, place, allow_negative_indices=allow_negative_indices
    )
