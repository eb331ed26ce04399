"""Arrays from nothing: counting, and one value everywhere."""

from __future__ import annotations

from typing import Any

from fxarray.core import dtypes
from fxarray.core.array import Array
from fxarray.core.errors import ShapeError
from fxarray.lax.operands import ArrayLike, as_operand
from fxarray.lax.shapes import as_axis, as_shape, as_size, reject_sharding
from fxarray.primitives.convert import convert
from fxarray.primitives.create import Iota
from fxarray.primitives.movement import broadcast_in_dim


def iota(dtype: Any, size: int) -> Array:
    """0, 1, ..., size - 1.

    >>> from fxarray import lax
    >>> lax.iota("float32", 3)
    Array([0., 1., 2.], dtype=float32)
    """
    return broadcasted_iota(dtype, (as_size("iota", size),), 0)


def broadcasted_iota(dtype: Any, shape: Any, dimension: int, *, out_sharding: Any = None) -> Array:
    """0, 1, 2, ... along one dimension of `shape`, repeated along the others.

    >>> from fxarray import lax
    >>> lax.broadcasted_iota("int32", (2, 3), 1)
    Array([[0, 1, 2],
           [0, 1, 2]], dtype=int32)
    """
    reject_sharding("broadcasted_iota", out_sharding)
    sizes = as_shape("broadcasted_iota", shape)
    axis = as_axis("broadcasted_iota", dimension, len(sizes))
    return Iota(dtypes.canonical(dtype), sizes, axis)()


def full(shape: Any, fill_value: ArrayLike, dtype: Any = None, *, sharding: Any = None) -> Array:
    """An array filled with one value.

    Args:
      shape: the result's shape.
      fill_value: a number or 0-dimensional array.
      dtype: the result's dtype; default: that of the value.
      sharding: not supported.

    Raises:
      ShapeError: the value is not 0-dimensional.

    >>> from fxarray import lax
    >>> lax.full((2,), 7, "float32")
    Array([7., 7.], dtype=float32)
    """
    reject_sharding("full", sharding)
    value = as_operand("full", fill_value, 1)
    if value.ndim:
        raise ShapeError(f"lax.full: the value must be 0-dimensional, got {value.type}")
    if dtype is not None:
        value = convert(value, dtypes.canonical(dtype))
    return broadcast_in_dim(value, as_shape("full", shape), ())


def full_like(
    x: Any, fill_value: ArrayLike, dtype: Any = None, shape: Any = None, sharding: Any = None
) -> Array:
    """An array filled with one value, in the shape and dtype of `x` unless others are given.

    >>> from fxarray import lax
    >>> lax.full_like(lax.iota("int32", 2), 7)
    Array([7, 7], dtype=int32)
    """
    if not hasattr(x, "shape") or not hasattr(x, "dtype"):
        x = as_operand("full_like", x)
    weak = dtype is None and bool(getattr(x, "weak_type", False))
    target = dtypes.canonical(x.dtype if dtype is None else dtype)
    value = convert(as_operand("full_like", fill_value, 1), target, weak)
    return full(x.shape if shape is None else shape, value, sharding=sharding)
