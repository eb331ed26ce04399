"""Grids of coordinates, index arrays, diagonals as matrices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fxarray.core import dims, dtypes
from fxarray.core.array import Array
from fxarray.core.errors import ArgumentError, ShapeError
from fxarray.core.types import ArrayType
from fxarray.numpy.arithmetic import clip, remainder
from fxarray.numpy.conversion import asarray, cast_to
from fxarray.numpy.joining import concatenate, stack
from fxarray.numpy.linear_algebra import diagonal
from fxarray.numpy.promotion import (
    ArrayLike,
    DTypeLike,
    as_operand,
    canonical_shape,
    promote_dtypes,
)
from fxarray.numpy.ranges import arange, linspace
from fxarray.numpy.selection import concrete_values, nonzero
from fxarray.numpy.shapes import atleast_1d
from fxarray.numpy.taking import as_indices, static_indices
from fxarray.primitives import create
from fxarray.primitives import elementwise as e
from fxarray.primitives.convert import convert
from fxarray.primitives.movement import broadcast_in_dim, reshape

# --- grids ----------------------------------------------------------------------------------------


def meshgrid(
    *xi: ArrayLike, copy: bool = True, sparse: bool = False, indexing: str = "xy"
) -> list[Array]:
    """Coordinate arrays of a grid, from the vectors of coordinates along its axes.

    Args:
      xi: vectors.
      copy: accepted for compatibility.
      sparse: whether to leave the axes along which an array is constant at size 1.
      indexing: "xy" if the first vector runs along the second axis, "ij" if along the first.

    >>> import fxarray.numpy as fnp
    >>> x, y = fnp.meshgrid(fnp.arange(3), fnp.arange(2))
    >>> x.shape, y[:, 0]
    ((2, 3), Array([0, 1], dtype=int32))
    """
    if not copy:
        raise ArgumentError("meshgrid: copy=False is not supported")
    if indexing not in ("xy", "ij"):
        raise ArgumentError(f"meshgrid: indexing must be 'xy' or 'ij', got {indexing!r}")
    vectors = [as_operand("meshgrid", x, i) for i, x in enumerate(xi)]
    for vector in vectors:
        if vector.ndim > 1:
            raise ShapeError(f"meshgrid takes vectors, got {vector.type}")
    vectors = [reshape(v, (v.size,)) for v in vectors]
    rank = len(vectors)
    order = list(range(rank))
    if indexing == "xy" and rank > 1:
        order[:2] = [1, 0]
    shape = [0] * rank
    for place, vector in zip(order, vectors, strict=True):
        shape[place] = vector.shape[0]  # type: ignore[call-overload]
    results: list[Array] = []
    for place, vector in zip(order, vectors, strict=True):
        if sparse:
            sizes: list[Any] = [1] * rank
            sizes[place] = vector.shape[0]
            results.append(reshape(vector, sizes))
        else:
            results.append(broadcast_in_dim(vector, shape, (place,)))
    return results


def indices(dimensions: Any, dtype: DTypeLike = None, sparse: bool = False) -> Any:
    """The index along each axis of every place of a grid: an array, or a tuple if `sparse`."""
    shape = canonical_shape("indices", dimensions)
    target = dtypes.int32 if dtype is None else dtypes.canonical(dtype)
    if sparse:
        found: list[Array] = []
        for axis, size in enumerate(shape):
            sizes: list[Any] = [1] * len(shape)
            sizes[axis] = size
            found.append(reshape(arange(size, dtype=target), sizes))
        return tuple(found)
    if not shape:
        return create.full(ArrayType((0,), target), 0)
    return stack([create.Iota(target, shape, axis)() for axis in range(len(shape))])


def ix_(*args: Any) -> tuple[Array, ...]:
    """Index arrays for the sub-grid that vectors of indices (or masks) along the axes span."""
    results: list[Array] = []
    for axis, arg in enumerate(args):
        vector = asarray(arg)
        if vector.ndim != 1:
            raise ShapeError(f"ix_ takes vectors, got {vector.type}")
        if dtypes.is_bool(vector.type.dtype):
            vector = nonzero(vector)[0]
        elif vector.size == 0:
            vector = convert(vector, dtypes.int32)
        sizes: list[Any] = [1] * len(args)
        sizes[axis] = vector.shape[0]
        results.append(reshape(vector, sizes))
    return tuple(results)


def fromfunction(
    function: Callable[..., Any], shape: Any, *, dtype: DTypeLike = float, **kwargs: Any
) -> Any:
    """What a function gives for the coordinates of a grid, as arrays of its shape.

    Args:
      function: takes one coordinate per axis; it may return any tree of arrays.
      shape: the shape of the grid.
      dtype: the dtype of the coordinates.
      kwargs: more arguments of the function.
    """
    sizes = canonical_shape("fromfunction", shape)
    grid = [create.Iota(dtypes.canonical(dtype), sizes, axis)() for axis in range(len(sizes))]
    return function(*grid, **kwargs)


class _Grid:
    """`mgrid[...]` and `ogrid[...]`: grids by slices."""

    def __init__(self, name: str, sparse: bool) -> None:
        self._name = name
        self._sparse = sparse

    def __repr__(self) -> str:
        return f"fxarray.numpy.{self._name}"

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            return _slice_values(key)
        vectors = promote_dtypes(self._name, *map(_slice_values, key))
        grid = meshgrid(*vectors, indexing="ij", sparse=self._sparse)
        return grid if self._sparse else stack(grid)


def _slice_values(key: slice) -> Array:
    """The values that `start:stop:step` stands for; an imaginary step is a number of points."""
    start = 0 if key.start is None else key.start
    step = 1 if key.step is None else key.step
    if isinstance(step, complex):
        return linspace(start, key.stop, int(abs(step)))
    return arange(start, key.stop, step)


mgrid = _Grid("mgrid", sparse=False)
ogrid = _Grid("ogrid", sparse=True)


class _Join:
    """`r_[...]` and `c_[...]`: arrays joined by index notation."""

    def __init__(self, name: str, columns: bool) -> None:
        self._name = name
        self._columns = columns

    def __repr__(self) -> str:
        return f"fxarray.numpy.{self._name}"

    def __getitem__(self, key: Any) -> Array:
        parts = list(key) if isinstance(key, tuple) else [key]
        axis, rank, place = (-1, 2, 0) if self._columns else (0, 1, -1)
        if parts and isinstance(parts[0], str):
            numbers = [int(n) for n in parts.pop(0).split(",")]
            axis, rank, place = (*numbers, *(axis, rank, place)[len(numbers) :])
        arrays: list[Array] = []
        for part in parts:
            x = _slice_values(part) if isinstance(part, slice) else asarray(part)
            x = atleast_1d(x)
            missing = rank - x.ndim
            if missing > 0:
                front = missing if place == -1 else min(place, missing)
                if isinstance(part, Array | np.ndarray) and self._columns and x.ndim == 1:
                    front = 0
                x = reshape(x, (1,) * front + x.shape + (1,) * (missing - front))
            arrays.append(x)
        return concatenate(arrays, axis)


r_ = _Join("r_", columns=False)
c_ = _Join("c_", columns=True)
s_ = np.s_
index_exp = np.index_exp

# --- diagonals ------------------------------------------------------------------------------------


def diag(v: ArrayLike, k: int = 0) -> Array:
    """The k-th diagonal of a matrix, or the matrix with a vector on its k-th diagonal.

    >>> import fxarray.numpy as fnp
    >>> fnp.diag(fnp.array([1, 2]))
    Array([[1, 0],
           [0, 2]], dtype=int32)
    """
    x = as_operand("diag", v)
    offset = k.__index__()
    if x.ndim == 2:
        return diagonal(x, offset)
    if x.ndim != 1:
        raise ShapeError(f"diag takes a vector or a matrix, got {x.type}")
    length = x.shape[0] + abs(offset)
    low, high = (offset, 0) if offset > 0 else (0, -offset)
    ends = [create.full(ArrayType((n,), x.type.dtype), 0) for n in (low, high)]
    row = concatenate([ends[0], x, ends[1]]) if offset else x
    i = create.Iota(dtypes.int32, (length, length), 0)()
    j = create.Iota(dtypes.int32, (length, length), 1)()
    on = e.eq(e.add(i, e.number_like(i, offset)), j)
    return e.select(on, broadcast_in_dim(row, (length, length), (1,)), e.number_like(x, 0))


def diagflat(v: ArrayLike, k: int = 0) -> Array:
    """The matrix with the elements of `v` flattened on its k-th diagonal."""
    x = as_operand("diagflat", v)
    return diag(reshape(x, (x.size,)), k)


def diag_indices(n: int, ndim: int = 2) -> tuple[Array, ...]:
    """The indices of the main diagonal of an array with `ndim` axes of size n."""
    return (arange(n),) * ndim


def diag_indices_from(arr: ArrayLike) -> tuple[Array, ...]:
    """The indices of the main diagonal of `arr`, whose axes must be equally long."""
    x = as_operand("diag_indices_from", arr)
    if x.ndim < 2 or len({*x.shape}) > 1:
        raise ShapeError(f"diag_indices_from takes arrays with equal axes, got {x.type}")
    return diag_indices(x.shape[0], x.ndim)  # type: ignore[arg-type]


def _static_pair(found: Sequence[Any]) -> tuple[Array, Array]:
    rows, columns = (static_indices(each) for each in found)
    return rows, columns


def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, Array]:
    """The indices of the elements at and below the k-th diagonal of an n by m matrix."""
    return _static_pair(np.tril_indices(n, k, m))


def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, Array]:
    """The indices of the elements at and above the k-th diagonal of an n by m matrix."""
    return _static_pair(np.triu_indices(n, k, m))


def _matrix_shape(function: str, arr: Any) -> tuple[int, int]:
    x = as_operand(function, arr)
    if x.ndim != 2:
        raise ShapeError(f"{function} takes matrices, got {x.type}")
    return x.shape  # type: ignore[return-value]


def tril_indices_from(arr: ArrayLike, k: int = 0) -> tuple[Array, Array]:
    """The indices of the elements at and below the k-th diagonal of a matrix."""
    rows, columns = _matrix_shape("tril_indices_from", arr)
    return tril_indices(rows, k, columns)


def triu_indices_from(arr: ArrayLike, k: int = 0) -> tuple[Array, Array]:
    """The indices of the elements at and above the k-th diagonal of a matrix."""
    rows, columns = _matrix_shape("triu_indices_from", arr)
    return triu_indices(rows, k, columns)


def mask_indices(
    n: int, mask_func: Callable[..., Any], k: Any = 0, *, size: int | None = None
) -> tuple[Array, ...]:
    """The indices where `mask_func` (such as `triu`) leaves ones of an n by n matrix."""
    ones = create.full(ArrayType((n, n), dtypes.float32), 1)
    return nonzero(mask_func(ones, k), size=size)


# --- flat and multiple indices --------------------------------------------------------------------


def unravel_index(indices: Any, shape: Any) -> tuple[Array, ...]:
    """Indices into a flattened array as one index array for each axis.

    Indices outside are clipped; negative ones count from the end.

    Args:
      indices: integers.
      shape: the shape of the array.
    """
    index = as_indices("unravel_index", indices)
    sizes = canonical_shape("unravel_index", shape)
    total = dims.shape_product(sizes)
    count = asarray(total, dtype=index.type.dtype)
    index = e.select(e.lt(index, e.number_like(index, 0)), e.add(index, count), index)
    index = clip(index, 0, e.sub(count, e.number_like(count, 1)))
    results: list[Array] = []
    for size in reversed(sizes):
        length = asarray(size, dtype=index.type.dtype)
        results.append(e.rem(index, length))
        index = e.div(index, length)
    return tuple(reversed(results))


def ravel_multi_index(
    multi_index: Sequence[Any],
    dims: Any,
    mode: str = "raise",
    order: str = "C",
    *,
    dtype: DTypeLike = None,
) -> Array:
    """One index for each axis as an index into the flattened array.

    Args:
      multi_index: an index array for each axis.
      dims: the shape of the array.
      mode: what indices outside give: "raise" (known ones only), "clip" or "wrap".
      order: "C" if the last index changes fastest, "F" if the first.
      dtype: the dtype of the result; default int32.
    """
    sizes = canonical_shape("ravel_multi_index", dims)
    index = [as_indices("ravel_multi_index", i) for i in multi_index]
    if len(index) != len(sizes):
        raise ArgumentError(
            f"ravel_multi_index: {len(index)} index arrays do not go with shape {sizes}"
        )
    if mode == "raise":
        for axis, (i, size) in enumerate(zip(index, sizes, strict=True)):
            known = concrete_values(i, "ravel_multi_index", "an index", "use mode='clip' or 'wrap'")
            if known.size and (known.min() < 0 or known.max() >= size):
                raise ArgumentError(f"ravel_multi_index: an index is out of range for axis {axis}")
    elif mode == "clip":
        index = [clip(i, 0, size - 1) for i, size in zip(index, sizes, strict=True)]
    elif mode == "wrap":
        index = [remainder(i, size) for i, size in zip(index, sizes, strict=True)]
    else:
        raise ArgumentError(
            f"ravel_multi_index: mode must be 'raise', 'clip' or 'wrap', got {mode!r}"
        )
    if order == "F":
        index, sizes = index[::-1], sizes[::-1]
    elif order != "C":
        raise ArgumentError(f"ravel_multi_index: order must be 'C' or 'F', got {order!r}")
    total: Any = asarray(0, dtype=dtypes.int32)
    for i, size in zip(index, sizes, strict=True):
        total = total * size + i
    return total if dtype is None else cast_to(total, dtypes.canonical(dtype))
