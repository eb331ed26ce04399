"""Indexing functions: take, take_along_axis, and what is made of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fxarray.core import dims, dtypes
from fxarray.core.array import Array
from fxarray.core.errors import ArgumentError, DTypeError, ShapeError
from fxarray.numpy.conversion import asarray
from fxarray.numpy.promotion import (
    ArrayLike,
    as_operand,
    broadcast_array,
    canonical_axis,
    common_shape,
    reject_out,
)
from fxarray.primitives import elementwise as e
from fxarray.primitives.convert import convert
from fxarray.primitives.gather import Gather, check_fill_value
from fxarray.primitives.movement import reshape
from fxarray.primitives.windows import GatherDimensionNumbers, GatherScatterMode


def as_indices(function: str, indices: Any) -> Array:
    """`indices` as an integer array; lists are accepted.

    Raises:
      DTypeError: they are not integers.
    """
    found = asarray(indices)
    if found.size == 0 and not isinstance(indices, Array | np.ndarray):
        found = convert(found, dtypes.int32)
    if dtypes.is_bool(found.type.dtype):
        found = convert(found, dtypes.int32)
    if not dtypes.is_integer(found.type.dtype):
        raise DTypeError(f"{function}: indices must be integers, got {found.type}")
    return found


def size_like(indices: Array, size: Any) -> Array:
    """A size, of the dtype of indices."""
    if type(size) is int:
        return asarray(size, dtype=indices.type.dtype)
    return convert(asarray(size), indices.type.dtype)


def count_from_end(indices: Array, size: Any) -> Array:
    """Indices in which negative ones are counted from the end."""
    if dtypes.is_unsigned(indices.type.dtype):
        return indices
    negative = e.lt(indices, e.number_like(indices, 0))
    return e.select(negative, e.add(indices, size_like(indices, size)), indices)


def take_axis(
    x: Array,
    indices: Array,
    axis: int,
    mode: GatherScatterMode = GatherScatterMode.CLIP,
    fill_value: Any = None,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
) -> Array:
    """Elements of `x` along one (non-negative) axis, which the dimensions of `indices` replace."""
    count = indices.ndim
    offset = (*range(axis), *range(axis + count, x.ndim - 1 + count))
    sizes = tuple([1 if i == axis else s for i, s in enumerate(x.shape)])
    gather = Gather(
        GatherDimensionNumbers(offset, (axis,), (axis,)),
        sizes,
        indices_are_sorted,
        unique_indices,
        mode,
        check_fill_value(fill_value),
    )
    return gather(x, reshape(indices, (*indices.shape, 1)))


def _resolve_mode(
    function: str, mode: Any, indices: Array, size: Any
) -> tuple[Array, GatherScatterMode]:
    """Indices and a mode of gathers, for a mode of NumPy or JAX."""
    if mode == "wrap":
        wrapped = e.rem(indices, size_like(indices, size))
        return count_from_end(wrapped, size), GatherScatterMode.PROMISE_IN_BOUNDS
    if mode == "raise":
        raise ArgumentError(
            f"{function}: mode='raise' is not possible for indices that may be traced; use 'fill' "
            f"(the default), 'clip' or 'wrap'"
        )
    found = GatherScatterMode.from_any(mode)
    if found is GatherScatterMode.CLIP:
        return indices, found
    return count_from_end(indices, size), found


def take(
    a: ArrayLike,
    indices: Any,
    axis: int | None = None,
    out: None = None,
    mode: Any = None,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    fill_value: Any = None,
) -> Array:
    """Elements of `a` along an axis, or of `a` flattened.

    Args:
      a: an array.
      indices: integers of any shape; negative ones count from the end.
      axis: the axis to take along; None: flatten first.
      out: not supported.
      mode: what indices outside the array give: "fill" (the default; NaN, or the extreme value of
        an integer dtype, or `fill_value`), "clip" to the nearest, "wrap" around, or
        "promise_in_bounds".
      unique_indices: a promise that no index comes twice.
      indices_are_sorted: a promise that they increase.
      fill_value: for mode "fill".

    >>> import fxarray.numpy as fnp
    >>> fnp.take(fnp.array([10.0, 20.0]), fnp.array([1, 0, 5]))
    Array([20., 10., nan], dtype=float32)
    """
    reject_out("take", out)
    x = as_operand("take", a)
    where = as_indices("take", indices)
    if axis is None:
        x, place = reshape(x, (x.size,)), 0
    else:
        place = canonical_axis("take", axis, x.ndim)
    where, found = _resolve_mode("take", mode, where, x.shape[place])
    return take_axis(x, where, place, found, fill_value, unique_indices, indices_are_sorted)


def take_along_axis(
    arr: ArrayLike,
    indices: Any,
    axis: int | None = -1,
    mode: Any = None,
    fill_value: Any = None,
    *,
    wrap_negative_indices: bool | None = None,
) -> Array:
    """Elements of `arr` along an axis, at indices that differ by the position in the other axes.

    Args:
      arr: an array.
      indices: integers with as many dimensions; sizes other than along `axis` broadcast.
      axis: the axis to take along; None: flatten `arr` first.
      mode: as for `take`.
      fill_value: for mode "fill".
      wrap_negative_indices: whether negative indices count from the end; default: they do.

    Raises:
      ShapeError: numbers of dimensions differ.

    >>> import fxarray.numpy as fnp
    >>> x = fnp.array([[1, 2], [3, 4]])
    >>> fnp.take_along_axis(x, fnp.array([[1], [0]]), axis=1)
    Array([[2],
           [3]], dtype=int32)
    """
    x = as_operand("take_along_axis", arr)
    where = as_indices("take_along_axis", indices)
    if axis is None:
        x, place = reshape(x, (x.size,)), 0
    else:
        place = canonical_axis("take_along_axis", axis, x.ndim)
    if x.ndim != where.ndim:
        raise ShapeError(
            f"take_along_axis: {x.type} and indices {where.type} must have as many dimensions"
        )
    if wrap_negative_indices is False:
        found = GatherScatterMode.from_any(mode)
    else:
        where, found = _resolve_mode("take_along_axis", mode, where, x.shape[place])
    shape = common_shape(
        "take_along_axis",
        [tuple([s for i, s in enumerate(array.shape) if i != place]) for array in (x, where)],
    )
    full = (*shape[:place], where.shape[place], *shape[place:])
    where = broadcast_array(where, full)
    lanes = tuple([i for i in range(x.ndim) if i != place and dims.same(x.shape[i], full[i])])
    collapsed = tuple([i for i in range(x.ndim) if i not in lanes])
    gather = Gather(
        GatherDimensionNumbers((), collapsed, (place,), lanes, lanes),
        (1,) * x.ndim,
        False,
        False,
        found,
        check_fill_value(fill_value),
    )
    return gather(x, reshape(where, (*full, 1)))


def static_indices(values: Sequence[int] | np.ndarray[Any, Any]) -> Array:
    """Known indices as an int32 array."""
    return asarray(np.asarray(values, np.int32))
