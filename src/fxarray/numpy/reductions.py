"""Reductions: sum, product, extrema, mean and variance, logic, positions of extrema."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fxarray.core import dims, dtypes
from fxarray.core.array import Array
from fxarray.core.dtypes import DType
from fxarray.core.errors import ArgumentError, DTypeError, ShapeError
from fxarray.core.types import ArrayType
from fxarray.numpy.arithmetic import maximum, minimum
from fxarray.numpy.comparison import as_bool
from fxarray.numpy.conversion import cast_to
from fxarray.numpy.promotion import (
    ArrayLike,
    DTypeLike,
    as_operand,
    broadcast_array,
    canonical_axes,
    canonical_axis,
    common_shape,
    expand_reduced,
    reject_out,
)
from fxarray.primitives import create, reductions
from fxarray.primitives import elementwise as e
from fxarray.primitives.convert import convert
from fxarray.primitives.movement import reshape
from fxarray.primitives.reduce import reduce_sum

Axis = int | Sequence[int] | None


def masked(function: str, x: Array, where: Any, neutral: float) -> Array:
    """`x` where the mask holds, else the number that a reduction takes no notice of."""
    if where is None:
        return x
    mask = as_bool(function, where)
    shape = common_shape(function, [x.shape, mask.shape])
    x = broadcast_array(x, shape) if x.ndim else e.broadcast_scalar(x, shape)
    if mask.ndim:
        mask = broadcast_array(mask, shape)
    return e.select(mask, x, e.number_like(x, neutral))


def _finish(x: Array, axes: Sequence[int], rank: int, keepdims: bool) -> Array:
    return expand_reduced(x, axes, rank) if keepdims else x


def _with_initial(
    function: str, op: Callable[[Any, Any], Any], result: Array, initial: Any
) -> Array:
    if initial is None:
        return result
    start = convert(as_operand(function, initial), result.type.dtype)
    if start.ndim:
        raise ShapeError(f"{function}: initial must be a number, got {start.type}")
    return op(result, start)


def _sum_dtype(function: str, x: Array, dtype: DTypeLike, promote_integers: bool) -> DType:
    own = x.type.dtype
    if dtypes.is_key(own):
        raise DTypeError(f"{function} takes numbers, got random keys of type {x.type}")
    if dtype is not None:
        return dtypes.canonical(dtype)
    if dtypes.is_inexact(own):
        return own
    if dtypes.is_bool(own) and not promote_integers:
        return dtypes.int32
    return dtypes.sum_result(own) if promote_integers else own


def sum(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
    promote_integers: bool = True,
) -> Array:
    """The sum of elements along axes.

    Bools and integers narrower than 32 bits are summed as 32-bit integers; floats narrower than 32
    bits are summed in float32 and rounded once.

    Args:
      a: an array.
      axis: one axis, several, or None for all.
      dtype: the dtype to sum in.
      out: not supported.
      keepdims: whether summed axes stay, with size 1.
      initial: a number to add.
      where: a mask; elements where it is False are left out.
      promote_integers: whether narrow integers are widened.

    >>> import fxarray.numpy as fnp
    >>> fnp.sum(fnp.array([[1, 2], [3, 4]]), axis=0)
    Array([4, 6], dtype=int32)
    """
    reject_out("sum", out)
    plain = dtype is None and initial is None and where is None and not keepdims
    if plain and isinstance(a, Array) and dtypes.is_inexact(a.type.dtype):
        return reduce_sum(a, canonical_axes("sum", axis, a.ndim))
    x = as_operand("sum", a)
    x = cast_to(x, _sum_dtype("sum", x, dtype, promote_integers))
    x = masked("sum", x, where, 0)
    axes = canonical_axes("sum", axis, x.ndim)
    add_up = reductions.reduce_or if dtypes.is_bool(x.type.dtype) else reduce_sum
    result = add_up(x, axes)
    result = _with_initial("sum", e.add, result, initial)
    return _finish(result, axes, x.ndim, keepdims)


def prod(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
    promote_integers: bool = True,
) -> Array:
    """The product of elements along axes; arguments as for `sum`. Exact derivatives at zeros."""
    reject_out("prod", out)
    x = as_operand("prod", a)
    x = cast_to(x, _sum_dtype("prod", x, dtype, promote_integers))
    x = masked("prod", x, where, 1)
    axes = canonical_axes("prod", axis, x.ndim)
    if dtypes.is_bool(x.type.dtype):
        result = reductions.reduce_and(x, axes)
    else:
        result = reductions.reduce_prod(x, axes)
    result = _with_initial("prod", e.mul, result, initial)
    return _finish(result, axes, x.ndim, keepdims)


# --- extrema --------------------------------------------------------------------------------------


def _extremum(
    function: str,
    reduce: Callable[..., Any],
    combine: Callable[[Any, Any], Any],
    neutral: Callable[[DType], Any],
    a: ArrayLike,
    axis: Axis,
    keepdims: bool,
    initial: Any,
    where: Any,
) -> Array:
    x = as_operand(function, a)
    x = convert(x, x.type.dtype)
    if where is not None and initial is None:
        raise ArgumentError(
            f"{function}: where= needs initial=, the result where nothing is left to compare"
        )
    dtype = x.type.dtype
    x = masked(function, x, where, neutral(dtype))
    axes = canonical_axes(function, axis, x.ndim)
    gone = [i for i in axes if dims.same(x.shape[i], 0)]
    if gone and initial is None:
        raise ShapeError(
            f"{function}: axis {gone[0]} of {x.type} is empty, and has no {function}; give initial="
        )
    if gone:
        shape = tuple([s for i, s in enumerate(x.shape) if i not in axes])
        result = create.full(ArrayType(shape, dtype), neutral(dtype))
    elif dtypes.is_bool(dtype):
        logical = reductions.reduce_or if combine is maximum else reductions.reduce_and
        result = logical(x, axes)
    else:
        result = reduce(x, axes)
    if initial is not None:
        start = convert(as_operand(function, initial), dtype)
        result = combine(result, start)
    return _finish(result, axes, x.ndim, keepdims)


def max(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """The greatest element along axes; NaN if there is one. Ties share the derivative equally.

    Args:
      a: an array.
      axis: one axis, several, or None for all.
      out: not supported.
      keepdims: whether reduced axes stay, with size 1.
      initial: a number that the result is no less than; needed for empty axes and with `where`.
      where: a mask; elements where it is False are left out.

    Raises:
      ShapeError: an axis is empty, and there is no `initial`.

    >>> import fxarray.numpy as fnp
    >>> fnp.max(fnp.array([[1, 5], [3, 4]]), axis=1)
    Array([5, 4], dtype=int32)
    """
    reject_out("max", out)
    return _extremum(
        "max", reductions.reduce_max, maximum, reductions.least, a, axis, keepdims, initial, where
    )


def min(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """The smallest element along axes; arguments as for `max`."""
    reject_out("min", out)
    return _extremum(
        "min",
        reductions.reduce_min,
        minimum,
        reductions.greatest,
        a,
        axis,
        keepdims,
        initial,
        where,
    )


amax, amin = max, min


def ptp(a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False) -> Array:
    """The greatest minus the smallest element along axes."""
    reject_out("ptp", out)
    return e.sub(max(a, axis, keepdims=keepdims), min(a, axis, keepdims=keepdims))


# --- logic ----------------------------------------------------------------------------------------


def all(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
) -> Array:
    """Whether all elements along axes are true (not zero)."""
    reject_out("all", out)
    x = masked("all", as_bool("all", a), where, True)
    axes = canonical_axes("all", axis, x.ndim)
    return _finish(reductions.reduce_and(x, axes), axes, x.ndim, keepdims)


def any(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
) -> Array:
    """Whether an element along axes is true (not zero)."""
    reject_out("any", out)
    x = masked("any", as_bool("any", a), where, False)
    axes = canonical_axes("any", axis, x.ndim)
    return _finish(reductions.reduce_or(x, axes), axes, x.ndim, keepdims)


def count_nonzero(a: ArrayLike, axis: Axis = None, keepdims: bool = False) -> Array:
    """The number of elements along axes that are not zero."""
    return sum(as_bool("count_nonzero", a), axis, dtypes.int32, keepdims=keepdims)


# --- positions ------------------------------------------------------------------------------------


def _position(
    function: str, op: Any, a: ArrayLike, axis: int | None, keepdims: bool | None
) -> Array:
    x = as_operand(function, a)
    rank = x.ndim
    if axis is None:
        flat, place = reshape(x, (x.size,)), 0
    else:
        place = canonical_axis(function, axis, rank)
        flat = x
    if dims.same(flat.shape[place], 0):
        raise ShapeError(f"{function}: {x.type} has no elements along the axis to search")
    result = op(flat, place, dtypes.int32)
    if not keepdims:
        return result
    return expand_reduced(result, range(rank) if axis is None else (place,), rank)


def argmax(
    a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None
) -> Array:
    """The index of the greatest element along an axis, or in `a` flattened, as int32.

    The first one wins a tie; NaN counts as greatest.

    >>> import fxarray.numpy as fnp
    >>> fnp.argmax(fnp.array([1, 3, 3]))
    Array(1, dtype=int32)
    """
    reject_out("argmax", out)
    return _position("argmax", reductions.argmax, a, axis, keepdims)


def argmin(
    a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None
) -> Array:
    """The index of the smallest element along an axis; the first NaN, if there is one."""
    reject_out("argmin", out)
    return _position("argmin", reductions.argmin, a, axis, keepdims)
