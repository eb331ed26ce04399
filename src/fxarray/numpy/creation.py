"""Creation functions: zeros, ones, full, arange, linspace, eye, triangles, grids."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fxarray.core import dtypes
from fxarray.core.array import Array
from fxarray.core.dtypes import DType
from fxarray.core.errors import ArgumentError, ShapeError
from fxarray.core.types import ArrayType
from fxarray.numpy.conversion import asarray, place
from fxarray.numpy.promotion import (
    ArrayLike,
    DTypeLike,
    as_operand,
    broadcast_array,
    canonical_shape,
    known_size,
)
from fxarray.primitives import create
from fxarray.primitives import elementwise as e
from fxarray.primitives.convert import convert
from fxarray.primitives.joining import concatenate
from fxarray.primitives.movement import broadcast_axis


def _dtype_or(dtype: DTypeLike, default: DType = dtypes.float32) -> DType:
    return default if dtype is None else dtypes.canonical(dtype)


def zeros(
    shape: Any, dtype: DTypeLike = None, *, device: Any = None, out_sharding: Any = None
) -> Array:
    """An array of zeros.

    Args:
      shape: an int or a tuple of ints (or symbolic sizes).
      dtype: default float32.
      device: where to put the array.
      out_sharding: how to split it over a mesh.

    >>> import fxarray.numpy as fnp
    >>> fnp.zeros((2, 2))
    Array([[0., 0.],
           [0., 0.]], dtype=float32)
    """
    type = ArrayType(canonical_shape("zeros", shape), _dtype_or(dtype))
    return place("zeros", create.full(type, 0), device, out_sharding)


def ones(
    shape: Any, dtype: DTypeLike = None, *, device: Any = None, out_sharding: Any = None
) -> Array:
    """An array of ones; arguments as for `zeros`.

    >>> import fxarray.numpy as fnp
    >>> fnp.ones(2, dtype=int)
    Array([1, 1], dtype=int32)
    """
    type = ArrayType(canonical_shape("ones", shape), _dtype_or(dtype))
    return place("ones", create.full(type, 1), device, out_sharding)


def empty(
    shape: Any, dtype: DTypeLike = None, *, device: Any = None, out_sharding: Any = None
) -> Array:
    """An array whose values are unspecified; here they are zeros."""
    return zeros(shape, dtype, device=device, out_sharding=out_sharding)


def full(
    shape: Any,
    fill_value: ArrayLike,
    dtype: DTypeLike = None,
    *,
    device: Any = None,
    out_sharding: Any = None,
) -> Array:
    """An array filled with one value, or with an array that broadcasts to `shape`.

    >>> import fxarray.numpy as fnp
    >>> fnp.full((2,), 7)
    Array([7, 7], dtype=int32, weak_type=True)
    """
    sizes = canonical_shape("full", shape)
    value = asarray(fill_value, dtype=dtype)
    return place("full", broadcast_array(value, sizes), device, out_sharding)


def _like(
    function: str, a: Any, dtype: DTypeLike, shape: Any, make: Callable[[ArrayType], Array]
) -> Array:
    own = as_operand(function, a).type if not hasattr(a, "type") else a.type
    sizes = own.shape if shape is None else canonical_shape(function, shape)
    if dtype is None:
        return make(ArrayType(sizes, own.dtype, own.weak))
    return make(ArrayType(sizes, dtypes.canonical(dtype)))


def zeros_like(
    a: ArrayLike,
    dtype: DTypeLike = None,
    shape: Any = None,
    *,
    device: Any = None,
    out_sharding: Any = None,
) -> Array:
    """Zeros of the shape and dtype of `a`, unless others are given."""
    made = _like("zeros_like", a, dtype, shape, lambda t: create.full(t, 0))
    return place("zeros_like", made, device, out_sharding)


def ones_like(
    a: ArrayLike,
    dtype: DTypeLike = None,
    shape: Any = None,
    *,
    device: Any = None,
    out_sharding: Any = None,
) -> Array:
    """Ones of the shape and dtype of `a`, unless others are given."""
    made = _like("ones_like", a, dtype, shape, lambda t: create.full(t, 1))
    return place("ones_like", made, device, out_sharding)


def empty_like(
    prototype: ArrayLike, dtype: DTypeLike = None, shape: Any = None, *, device: Any = None
) -> Array:
    """An array like `prototype` whose values are unspecified; here they are zeros."""
    return zeros_like(prototype, dtype, shape, device=device)


def full_like(
    a: ArrayLike,
    fill_value: ArrayLike,
    dtype: DTypeLike = None,
    shape: Any = None,
    *,
    device: Any = None,
    out_sharding: Any = None,
) -> Array:
    """`fill_value` (a number, or an array that broadcasts) in the shape and dtype of `a`."""

    def fill(type: ArrayType) -> Array:
        value = as_operand("full_like", fill_value, 1)
        value = convert(value, type.dtype, type.weak)
        return broadcast_array(value, type.shape)

    return place("full_like", _like("full_like", a, dtype, shape, fill), device, out_sharding)


# --- matrices -------------------------------------------------------------------------------------


def _offset(function: str, k: Any) -> Any:
    try:
        return k.__index__()
    except (AttributeError, TypeError):
        raise ArgumentError(f"{function}: k must be an integer, got {k!r}") from None


def _row_column(rows: Any, columns: Any) -> tuple[Array, Array]:
    shape = (rows, columns)
    return create.Iota(dtypes.int32, shape, 0)(), create.Iota(dtypes.int32, shape, 1)()


def eye(N: Any, M: Any = None, k: Any = 0, dtype: DTypeLike = None, *, device: Any = None) -> Array:
    """Ones on the k-th diagonal of an N by M matrix of zeros.

    Args:
      N: the number of rows.
      M: the number of columns; default N.
      k: which diagonal; positive ones are above the main diagonal. May be traced.
      dtype: default float32.
      device: where to put the array.

    >>> import fxarray.numpy as fnp
    >>> fnp.eye(2, 3, k=1)
    Array([[0., 1., 0.],
           [0., 0., 1.]], dtype=float32)
    """
    rows, columns = canonical_shape("eye", (N, N if M is None else M))
    i, j = _row_column(rows, columns)
    offset = asarray(k, dtype=dtypes.int32)
    ones = e.eq(e.add(i, offset), j)
    return place("eye", convert(ones, _dtype_or(dtype)), device)


def identity(n: Any, dtype: DTypeLike = None) -> Array:
    """The n by n identity matrix."""
    return eye(n, dtype=dtype)


def tri(N: Any, M: Any = None, k: Any = 0, dtype: DTypeLike = None) -> Array:
    """Ones at and below the k-th diagonal of an N by M matrix of zeros."""
    rows, columns = canonical_shape("tri", (N, N if M is None else M))
    return convert(_lower_mask(rows, columns, k), _dtype_or(dtype))


def _lower_mask(rows: Any, columns: Any, k: Any) -> Array:
    i, j = _row_column(rows, columns)
    return e.ge(e.add(i, asarray(k, dtype=dtypes.int32)), j)


def _triangle(function: str, m: Any, k: Any, lower: bool) -> Array:
    x = as_operand(function, m)
    if x.ndim < 2:
        raise ShapeError(f"{function} takes arrays of at least 2 dimensions, got {x.type}")
    rows, columns = x.shape[-2:]
    mask = _lower_mask(rows, columns, k if lower else k - 1)
    if not lower:
        mask = e.bitwise_not(mask)
    mask = broadcast_array(mask, x.shape)
    return e.select(mask, x, create.scalar(0, x.type.dtype, x.type.weak))


def tril(m: ArrayLike, k: Any = 0) -> Array:
    """`m` with the elements above the k-th diagonal of its last two axes set to zero."""
    return _triangle("tril", m, k, lower=True)


def triu(m: ArrayLike, k: Any = 0) -> Array:
    """`m` with the elements below the k-th diagonal of its last two axes set to zero."""
    return _triangle("triu", m, k, lower=False)


def vander(x: ArrayLike, N: Any = None, increasing: bool = False) -> Array:
    """The matrix whose columns are powers of the vector `x`, highest first unless `increasing`."""
    vector = as_operand("vander", x)
    if vector.ndim != 1:
        raise ShapeError(f"vander takes a vector, got {vector.type}")
    count = known_size("vander", vector.shape[0]) if N is None else _offset("vander", N)
    exponents = np.arange(count) if increasing else np.arange(count)[::-1]
    columns = [e.IntegerPow(exponent=int(n))(vector) for n in exponents]
    if not columns:
        return zeros((vector.shape[0], 0), vector.dtype)
    return concatenate([broadcast_axis(column, 1, 1) for column in columns], 1)
