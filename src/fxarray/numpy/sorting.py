"""Sorting: sort, argsort, lexsort, partition, and searching in what is sorted."""

from __future__ import annotations

from typing import Any

from fxarray.core import dims, dtypes
from fxarray.core.array import Array
from fxarray.core.errors import ArgumentError, ShapeError
from fxarray.core.types import ArrayType
from fxarray.numpy.conversion import asarray, cast_to
from fxarray.numpy.promotion import ArrayLike, DTypeLike, as_operand, canonical_axis, promote_dtypes
from fxarray.numpy.taking import as_indices, take_axis
from fxarray.primitives import create, search
from fxarray.primitives import elementwise as e
from fxarray.primitives import sort as sorts
from fxarray.primitives.convert import convert
from fxarray.primitives.movement import reshape, rev


def _check_kind(function: str, kind: Any, order: Any) -> None:
    if kind is not None:
        raise ArgumentError(f"{function}: kind= is not supported; use stable=")
    if order is not None:
        raise ArgumentError(f"{function}: order= is not supported; arrays have no fields")


def _along(function: str, a: ArrayLike, axis: int | None) -> tuple[Array, int]:
    x = as_operand(function, a)
    if axis is None:
        return reshape(x, (x.size,)), 0
    return x, canonical_axis(function, axis, x.ndim)


def sort(
    a: ArrayLike,
    axis: int | None = -1,
    *,
    kind: None = None,
    order: None = None,
    stable: bool = True,
    descending: bool = False,
) -> Array:
    """`a` in ascending order along an axis, NaN last; equal elements keep their order.

    Args:
      a: an array; complex numbers are ordered by real part, then by imaginary part.
      axis: the axis to sort along; None: flatten first.
      kind: not supported.
      order: not supported.
      stable: sorting is always stable.
      descending: whether the greatest comes first (NaN before it).

    >>> import fxarray.numpy as fnp
    >>> fnp.sort(fnp.array([3, 1, 2]), descending=True)
    Array([3, 2, 1], dtype=int32)
    """
    del stable
    _check_kind("sort", kind, order)
    x, place = _along("sort", a, axis)
    ordered = sorts.sort(x, place)
    return rev(ordered, (place,)) if descending else ordered


def argsort(
    a: ArrayLike,
    axis: int | None = -1,
    *,
    kind: None = None,
    order: None = None,
    stable: bool = True,
    descending: bool = False,
    dtype: DTypeLike = None,
) -> Array:
    """The indices that put `a` in ascending order along an axis; arguments as for `sort`.

    Args:
      a: an array.
      axis: the axis to sort along; None: flatten first.
      kind: not supported.
      order: not supported.
      stable: equal elements keep their order always, also in descending order.
      descending: whether the greatest comes first.
      dtype: the dtype of the indices; default int32.

    >>> import fxarray.numpy as fnp
    >>> fnp.argsort(fnp.array([3, 1, 2]))
    Array([1, 2, 0], dtype=int32)
    """
    del stable
    _check_kind("argsort", kind, order)
    x, place = _along("argsort", a, axis)
    if descending:
        # Sorted backwards and read backwards, equal elements come in their own order.
        length = x.shape[place]
        backwards = rev(sorts.argsort(rev(x, (place,)), place), (place,))
        last = asarray(length, dtype=backwards.type.dtype)
        result = e.sub(e.sub(last, e.number_like(last, 1)), backwards)
    else:
        result = sorts.argsort(x, place)
    return result if dtype is None else cast_to(result, dtypes.canonical(dtype))


def lexsort(keys: Any, axis: int = -1) -> Array:
    """The indices that sort by several keys: by the last one first, then by the one before it.

    Args:
      keys: a list of arrays of one shape, or an array whose first axis lists them.
      axis: the axis to sort along.
    """
    arrays = [keys[i] for i in range(len(keys))]
    if not arrays:
        raise ArgumentError("lexsort needs at least one key")
    operands = [as_operand("lexsort", key, i) for i, key in enumerate(arrays)]
    if not operands[0].ndim:
        return as_operand("lexsort", 0)
    place = canonical_axis("lexsort", axis, operands[0].ndim)
    numbers = sorts.positions(operands[0].type, place)
    return sorts.sort_together([*reversed(operands), numbers], place, len(operands))[-1]


def _check_kth(function: str, kth: Any, length: Any) -> None:
    index = kth.__index__()
    if type(length) is int and not -length <= index < length:
        raise ArgumentError(f"{function}: kth={index} is out of range for an axis of size {length}")


def partition(a: ArrayLike, kth: int, axis: int = -1) -> Array:
    """`a` with the kth element in its sorted place, smaller ones before it, greater ones after.

    Both sides happen to be sorted here.
    """
    x, place = _along("partition", a, axis)
    _check_kth("partition", kth, x.shape[place])
    return sorts.sort(x, place)


def argpartition(a: ArrayLike, kth: int, axis: int = -1) -> Array:
    """The indices that partition `a`; see `partition`."""
    x, place = _along("argpartition", a, axis)
    _check_kth("argpartition", kth, x.shape[place])
    return sorts.argsort(x, place)


def sort_complex(a: ArrayLike) -> Array:
    """`a` sorted along its last axis, as complex numbers."""
    ordered = sort(a)
    return convert(ordered, dtypes.to_complex(ordered.type.dtype))


# --- searching ------------------------------------------------------------------------------------


def searchsorted(
    a: ArrayLike, v: ArrayLike, side: str = "left", sorter: Any = None, *, method: str = "scan"
) -> Array:
    """Where elements would have to be put into a sorted vector to keep it sorted.

    Args:
      a: a sorted vector.
      v: the elements.
      side: "left" for the first such place, "right" for the last.
      sorter: indices that sort `a`, if it is not sorted.
      method: accepted for compatibility; all of JAX's methods give the same.

    Returns:
      Indices of the shape of `v`, as int32.

    >>> import fxarray.numpy as fnp
    >>> fnp.searchsorted(fnp.array([1, 3, 5]), fnp.array([0, 3, 9]))
    Array([0, 1, 3], dtype=int32)
    """
    if method not in ("scan", "scan_unrolled", "sort", "compare_all", "default"):
        raise ArgumentError(f"searchsorted: unknown method {method!r}")
    if side not in ("left", "right"):
        raise ArgumentError(f"searchsorted: side must be 'left' or 'right', got {side!r}")
    table, queries = promote_dtypes("searchsorted", a, v)
    if table.ndim != 1:
        raise ShapeError(f"searchsorted: the sorted array must be a vector, got {table.type}")
    if sorter is not None:
        table = take_axis(table, as_indices("searchsorted", sorter), 0)
    return search.searchsorted(table, queries, side)


def digitize(
    x: ArrayLike, bins: ArrayLike, right: bool = False, *, method: str | None = None
) -> Array:
    """The number of the bin that each element falls into, as int32.

    Args:
      x: an array.
      bins: the edges between bins, increasing or decreasing.
      right: whether a bin includes its right edge instead of its left one.
      method: accepted for compatibility.
    """
    value = as_operand("digitize", x)
    edges = as_operand("digitize", bins, 1)
    if edges.ndim != 1:
        raise ShapeError(f"digitize: bins must be a vector, got {edges.type}")
    del method
    side = "left" if right else "right"
    if dims.same(edges.shape[0], 0):
        return create.full(ArrayType(value.shape, dtypes.int32), 0)
    rising = searchsorted(edges, value, side)
    falling = searchsorted(rev(edges, (0,)), value, side)
    count = edges.shape[0]
    falling = e.sub(asarray(count, dtype=falling.type.dtype), falling)
    decreasing = edges[-1] < edges[0]
    return e.select(decreasing, falling, rising)
