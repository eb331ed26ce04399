"""Sets: unique elements, membership, unions and intersections.

The size of their results depends on values. Where those are traced, `size=` gives it, and results
are cut off or filled up.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fxarray.core import dims, dtypes
from fxarray.core.array import Array
from fxarray.core.errors import ConcretizationError
from fxarray.core.tracer import Tracer
from fxarray.core.types import ArrayType
from fxarray.numpy import reductions
from fxarray.numpy.comparison import equal, isnan, logical_and, logical_not, logical_or, not_equal
from fxarray.numpy.conversion import asarray
from fxarray.numpy.joining import concatenate
from fxarray.numpy.promotion import ArrayLike, as_operand, canonical_axis, promote_dtypes
from fxarray.numpy.selection import concrete_values, true_positions
from fxarray.numpy.taking import take_axis
from fxarray.primitives import create, cumulative, search
from fxarray.primitives import elementwise as e
from fxarray.primitives import sort as sorts
from fxarray.primitives.convert import convert
from fxarray.primitives.movement import broadcast_in_dim, move_axis, reshape
from fxarray.primitives.reduce import reduce_sum


class _Groups(NamedTuple):
    """Rows in sorted order, and where a new value begins."""

    order: Array
    starts: Array


def _is_known(x: Array) -> bool:
    return not isinstance(x, Tracer) or x.concrete() is not None


def _need_size(function: str, x: Array, size: int | None) -> int | None:
    if size is None and not _is_known(x):
        raise ConcretizationError(
            f"{function}: the size of the result depends on values that are traced; give size=, "
            "the "
            f"number of elements wanted. It is: {x!r}"
        )
    return size


def _groups(rows: Array, equal_nan: bool) -> _Groups:
    """Sort the rows of a matrix (or a vector's elements) and find where they change."""
    length = rows.shape[0]
    columns = [rows] if rows.ndim == 1 else [rows[:, i] for i in range(rows.shape[1])]
    numbers = create.Iota(dtypes.int32, (length,), 0)()
    if not columns:
        differ = e.eq(numbers, e.number_like(numbers, 0))
        return _Groups(numbers, differ)
    *ordered, order = sorts.sort_together([*columns, numbers], 0, len(columns))
    differ: Any = None
    for column in ordered:
        before = take_axis(column, e.sub(numbers, e.number_like(numbers, 1)), 0)
        new = not_equal(column, before)
        if equal_nan and dtypes.is_inexact(column.type.dtype):
            new = logical_and(new, logical_not(logical_and(isnan(column), isnan(before))))
        differ = new if differ is None else logical_or(differ, new)
    first = e.eq(numbers, e.number_like(numbers, 0))
    return _Groups(order, e.bitwise_or(differ, first))


def _unique(
    function: str,
    ar: Any,
    axis: int | None,
    size: int | None,
    fill_value: Any,
    equal_nan: bool,
) -> tuple[Array, Array, Array, Array]:
    """Unique values, the first index of each, the inverse, and counts."""
    x = as_operand(function, ar)
    _need_size(function, x, size)
    if axis is None:
        rows, place = reshape(x, (x.size,)), 0
        flat = rows
    else:
        place = canonical_axis(function, axis, x.ndim)
        rows = move_axis(x, place, 0)
        flat = reshape(rows, (rows.shape[0], _rest(rows.shape[1:])))
    length = rows.shape[0]
    if dims.same(length, 0):
        count = size or 0
        none = create.full(ArrayType((count,), dtypes.int32), 0)
        inverse = create.full(ArrayType(x.shape if axis is None else (0,), dtypes.int32), 0)
        blank = create.full(ArrayType((count, *rows.shape[1:]), x.type.dtype), 0)
        return move_axis(blank, 0, place), none, inverse, none
    order, starts = _groups(flat, equal_nan)
    numbers = cumulative.cumsum(convert(starts, dtypes.int32), 0)
    total = reduce_sum(convert(starts, dtypes.int32), (0,))
    count = (
        int(concrete_values(total, function, "the array", "give size=")) if size is None else size
    )
    positions, _ = true_positions(starts, count)
    places = create.Iota(dtypes.int32, (count,), 0)()
    found = e.lt(places, total)
    # Sorting is stable, so the first of equal elements has the least index.
    index = take_axis(order, positions, 0)
    values = take_axis(rows, index, 0)
    zero = e.number_like(numbers, 0)
    ends = e.select(
        e.lt(e.add(places, e.number_like(places, 1)), total),
        take_axis(positions, e.add(places, e.number_like(places, 1)), 0),
        asarray(length, dtype=dtypes.int32),
    )
    counts = e.select(found, e.sub(ends, positions), zero)
    inverse_sorted = e.sub(numbers, e.number_like(numbers, 1))
    inverse = create.full(ArrayType((length,), dtypes.int32), 0)
    inverse = inverse.at[order].set(inverse_sorted, unique_indices=True)
    if size is not None:
        spread = broadcast_in_dim(found, values.shape, (0,))
        if fill_value is None:
            filler = broadcast_in_dim(values[:1], values.shape, tuple(range(values.ndim)))
        else:
            filler = e.broadcast_scalar(asarray(fill_value, dtype=values.type.dtype), values.shape)
        values = e.select(spread, values, filler)
        index = e.select(found, index, e.broadcast_scalar(index[0], index.shape))
    if axis is None:
        inverse = reshape(inverse, x.shape)
    return move_axis(values, 0, place), index, inverse, counts


def _rest(shape: Any) -> Any:
    return dims.shape_product(tuple(shape))


def unique(
    ar: ArrayLike,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    size: int | None = None,
    fill_value: Any = None,
    sorted: bool = True,
) -> Any:
    """The different elements of `ar`, in ascending order.

    Args:
      ar: an array.
      return_index: whether to return the index at which each comes first.
      return_inverse: whether to return, for each element, the position of its value in the result.
      return_counts: whether to return how often each comes.
      axis: the axis along which slices are compared; None: elements of `ar` flattened.
      equal_nan: whether all NaN count as one.
      size: how many to return; needed where `ar` is traced.
      fill_value: what to fill up with; default: the least element.
      sorted: the result is always sorted.

    >>> import fxarray.numpy as fnp
    >>> fnp.unique(fnp.array([3, 1, 3]), return_counts=True)
    (Array([1, 3], dtype=int32), Array([1, 2], dtype=int32))
    """
    del sorted
    values, index, inverse, counts = _unique("unique", ar, axis, size, fill_value, equal_nan)
    results: list[Array] = [values]
    if return_index:
        results.append(index)
    if return_inverse:
        results.append(inverse)
    if return_counts:
        results.append(counts)
    return values if len(results) == 1 else tuple(results)


class UniqueAll(NamedTuple):
    """What `unique_all` returns."""

    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


class UniqueCounts(NamedTuple):
    """What `unique_counts` returns."""

    values: Array
    counts: Array


class UniqueInverse(NamedTuple):
    """What `unique_inverse` returns."""

    values: Array
    inverse_indices: Array


def unique_all(x: ArrayLike, /, *, size: int | None = None, fill_value: Any = None) -> UniqueAll:
    """Unique values with first indices, inverse and counts; every NaN counts for itself."""
    return UniqueAll(*_unique("unique_all", x, None, size, fill_value, False))


def unique_counts(
    x: ArrayLike, /, *, size: int | None = None, fill_value: Any = None
) -> UniqueCounts:
    """Unique values with counts; every NaN counts for itself."""
    values, _, _, counts = _unique("unique_counts", x, None, size, fill_value, False)
    return UniqueCounts(values, counts)


def unique_inverse(
    x: ArrayLike, /, *, size: int | None = None, fill_value: Any = None
) -> UniqueInverse:
    """Unique values with the inverse; every NaN counts for itself."""
    values, _, inverse, _ = _unique("unique_inverse", x, None, size, fill_value, False)
    return UniqueInverse(values, inverse)


def unique_values(x: ArrayLike, /, *, size: int | None = None, fill_value: Any = None) -> Array:
    """Unique values; every NaN counts for itself."""
    return _unique("unique_values", x, None, size, fill_value, False)[0]


# --- membership -----------------------------------------------------------------------------------


def isin(
    element: ArrayLike,
    test_elements: ArrayLike,
    assume_unique: bool = False,
    invert: bool = False,
    *,
    method: str = "auto",
) -> Array:
    """Whether each element is among the test elements.

    Args:
      element: an array.
      test_elements: what to look for, of any shape.
      assume_unique: accepted for compatibility.
      invert: whether to return the opposite.
      method: accepted for compatibility; elements are found by binary search.
    """
    del assume_unique, method
    x, tests = promote_dtypes("isin", element, test_elements)
    table = reshape(tests, (tests.size,))
    if dims.same(table.shape[0], 0):
        found = create.full(ArrayType(x.shape, dtypes.bool_), False)
    else:
        table = sorts.sort(table, 0)
        place = search.searchsorted(table, x)
        found = equal(take_axis(table, place, 0), x)
    return logical_not(found) if invert else found


def _keep(
    function: str, values: Array, keep: Array, size: int | None, fill_value: Any, default: Any
) -> Array:
    """The elements of a sorted vector to keep, filled up to `size`."""
    if size is None:
        mask = concrete_values(keep, function, "the arrays", "give size=")
        return take_axis(values, asarray(np.flatnonzero(mask).astype(np.int32)), 0)
    positions, total = true_positions(keep, size)
    taken = take_axis(values, positions, 0)
    found = e.lt(create.Iota(dtypes.int32, (size,), 0)(), total)
    filler = default if fill_value is None else asarray(fill_value, dtype=values.type.dtype)
    return e.select(found, taken, filler)


def _two(function: str, a: Any, b: Any) -> tuple[Array, Array]:
    x, y = promote_dtypes(function, a, b)
    return reshape(x, (x.size,)), reshape(y, (y.size,))


def union1d(
    ar1: ArrayLike, ar2: ArrayLike, *, size: int | None = None, fill_value: Any = None
) -> Array:
    """The sorted elements that are in either array.

    Args:
      ar1: an array.
      ar2: another.
      size: how many to return; needed where an array is traced.
      fill_value: what to fill up with; default: the least element.
    """
    x, y = _two("union1d", ar1, ar2)
    return unique(concatenate([x, y]), size=size, fill_value=fill_value)


def _members(function: str, x: Array, size: int | None) -> tuple[Array, Array, Array]:
    """Sorted unique elements, which of them are real, and their first indices."""
    slots = size if size is None else int(x.shape[0])
    values, index, _, counts = _unique(function, x, None, slots, None, False)
    return values, e.gt(counts, e.number_like(counts, 0)), index


def intersect1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    return_indices: bool = False,
    *,
    size: int | None = None,
    fill_value: Any = None,
) -> Any:
    """The sorted elements that are in both arrays.

    Args:
      ar1: an array.
      ar2: another.
      assume_unique: accepted for compatibility.
      return_indices: whether to return the first indices in either array too.
      size: how many to return; needed where an array is traced.
      fill_value: what to fill up with; default: the least common element.
    """
    del assume_unique
    x, y = _two("intersect1d", ar1, ar2)
    values, real, index = _members("intersect1d", x, size)
    keep = logical_and(real, isin(values, y))
    empty = dims.same(values.shape[0], 0)
    first = values if empty else take_axis(values, reductions.argmax(keep), 0)
    result = _keep("intersect1d", values, keep, size, fill_value, first)
    if not return_indices:
        return result
    indices = _keep("intersect1d", index, keep, size, int(x.shape[0]), None)
    other_values, _, other_index = _members("intersect1d", y, size)
    place = search.searchsorted(other_values, result)
    other = take_axis(other_index, place, 0)
    if size is not None:
        found = e.lt(create.Iota(dtypes.int32, (size,), 0)(), keep.sum())
        other = e.select(found, other, asarray(int(y.shape[0]), dtype=dtypes.int32))
    return result, indices, other


def setdiff1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    *,
    size: int | None = None,
    fill_value: Any = None,
) -> Array:
    """The elements of the first array that are not in the second.

    Args:
      ar1: an array.
      ar2: another.
      assume_unique: whether `ar1` has no element twice; its order is then kept.
      size: how many to return; needed where an array is traced.
      fill_value: what to fill up with; default 0.
    """
    x, y = _two("setdiff1d", ar1, ar2)
    if assume_unique:
        values, real = x, create.full(ArrayType(x.shape, dtypes.bool_), True)
    else:
        values, real, _ = _members("setdiff1d", x, size)
    keep = logical_and(real, isin(values, y, invert=True))
    return _keep("setdiff1d", values, keep, size, fill_value, e.number_like(values, 0))


def setxor1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    *,
    size: int | None = None,
    fill_value: Any = None,
) -> Array:
    """The sorted elements that are in exactly one of two arrays.

    Args:
      ar1: an array.
      ar2: another.
      assume_unique: accepted for compatibility.
      size: how many to return; needed where an array is traced.
      fill_value: what to fill up with; default 0.
    """
    del assume_unique
    x, y = _two("setxor1d", ar1, ar2)
    both = concatenate([x, y])
    values, real, _ = _members("setxor1d", both, size)
    keep = logical_and(real, not_equal(isin(values, x), isin(values, y)))
    return _keep("setxor1d", values, keep, size, fill_value, e.number_like(values, 0))
