"""Reductions: sum, product, extrema, mean and variance, logic, positions of extrema."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fxarray.core import dims, dtypes
from fxarray.core.array import Array
from fxarray.core.dtypes import DType
from fxarray.core.errors import ArgumentError, DTypeError, ShapeError
from fxarray.core.types import ArrayType
from fxarray.numpy.arithmetic import maximum, minimum
from fxarray.numpy.comparison import as_bool
from fxarray.numpy.conversion import asarray, cast_to
from fxarray.numpy.elementary import conjugate
from fxarray.numpy.promotion import (
    ArrayLike,
    DTypeLike,
    as_operand,
    broadcast_array,
    broadcast_operands,
    canonical_axes,
    canonical_axis,
    common_shape,
    expand_reduced,
    promote,
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


def _sum_dtype(x: Array, dtype: DTypeLike, promote_integers: bool) -> DType:
    if dtype is not None:
        return dtypes.canonical(dtype)
    own = x.type.dtype
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
    x = as_operand("sum", a)
    x = cast_to(x, _sum_dtype(x, dtype, promote_integers))
    x = masked("sum", x, where, 0)
    axes = canonical_axes("sum", axis, x.ndim)
    if dtypes.is_bool(x.type.dtype):
        result = reductions.reduce_or(x, axes)
    else:
        result = reduce_sum(x, axes)
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
    x = cast_to(x, _sum_dtype(x, dtype, promote_integers))
    x = masked("prod", x, where, 1)
    axes = canonical_axes("prod", axis, x.ndim)
    if dtypes.is_bool(x.type.dtype):
        result = reductions.reduce_and(x, axes)
    else:
        result = reductions.reduce_prod(x, axes)
    result = _with_initial("prod", e.mul, result, initial)
    return _finish(result, axes, x.ndim, keepdims)


# --- extrema ----------------------------------------------------------------------------------------


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
        "min", reductions.reduce_min, minimum, reductions.greatest, a, axis, keepdims, initial, where
    )


amax, amin = max, min


def ptp(a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False) -> Array:
    """The greatest minus the smallest element along axes."""
    reject_out("ptp", out)
    return e.sub(max(a, axis, keepdims=keepdims), min(a, axis, keepdims=keepdims))


# --- logic ------------------------------------------------------------------------------------------


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


# --- positions --------------------------------------------------------------------------------------


def _position(function: str, op: Any, a: ArrayLike, axis: int | None, keepdims: bool | None) -> Array:
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


# --- mean and variance ------------------------------------------------------------------------------


def count_along(x: Array, axes: Sequence[int]) -> Any:
    """The number of elements along axes: an int, or a symbolic size."""
    return dims.shape_product(tuple([x.shape[i] for i in axes]))


def _computing_dtype(dtype: DType) -> DType:
    return dtypes.float32 if dtypes.is_narrow_float(dtype) else dtype


def mean(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
) -> Array:
    """The mean of elements along axes; floats narrower than 32 bits are summed in float32.

    Args:
      a: an array.
      axis: one axis, several, or None for all.
      dtype: the result's dtype; default: that of `a`, or float32 for integers.
      out: not supported.
      keepdims: whether reduced axes stay, with size 1.
      where: a mask; elements where it is False are left out.

    >>> import fxarray.numpy as fnp
    >>> fnp.mean(fnp.array([1, 2, 6]))
    Array(3., dtype=float32)
    """
    reject_out("mean", out)
    x = as_operand("mean", a)
    target = dtypes.to_inexact(x.type.dtype) if dtype is None else dtypes.canonical(dtype)
    wide = _computing_dtype(dtypes.to_inexact(target))
    axes = canonical_axes("mean", axis, x.ndim)
    total = sum(x, axes, wide, keepdims=keepdims, where=where)
    if where is None:
        count = asarray(count_along(x, axes), dtype=wide)
    else:
        mask = broadcast_array(as_bool("mean", where), x.shape)
        count = sum(mask, axes, wide, keepdims=keepdims)
    return cast_to(e.div(total, count), target)


def average(
    a: ArrayLike,
    axis: Axis = None,
    weights: ArrayLike | None = None,
    returned: bool = False,
    keepdims: bool = False,
) -> Any:
    """The weighted mean along axes.

    Args:
      a: an array.
      axis: one axis, several, or None for all.
      weights: of the shape of `a`, or a vector along the one axis; default: all equal.
      returned: whether to return `(average, sum of weights)`.
      keepdims: whether reduced axes stay, with size 1.
    """
    if weights is None:
        (x,) = promote("average", a, inexact=True)
        result = mean(x, axis, keepdims=keepdims)
        axes = canonical_axes("average", axis, x.ndim)
        total = create.full(result.type, 1) * count_along(x, axes)
    else:
        from_weights = as_operand("average", weights, 1)
        x = as_operand("average", a)
        if from_weights.ndim != x.ndim:
            axes = canonical_axes("average", axis, x.ndim)
            if axis is None or from_weights.ndim != len(axes):
                raise ShapeError(
                    f"average: weights {from_weights.type} must have the shape of the array, {x.type}, "
                    f"or one dimension for each of axis={axis}"
                )
            order = np.argsort(axes)
            sizes = [1] * x.ndim
            for place in axes:
                sizes[place] = x.shape[place]
            from_weights = reshape(from_weights.transpose(tuple(int(i) for i in order)), sizes)
        x, from_weights = promote("average", x, from_weights, inexact=True)
        x, from_weights = broadcast_operands("average", [x, broadcast_array(from_weights, x.shape)])
        total = sum(from_weights, axis, keepdims=keepdims)
        result = e.div(sum(e.mul(x, from_weights), axis, keepdims=keepdims), total)
    return (result, total) if returned else result


def var(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike = None,
    out: None = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
    correction: float | None = None,
) -> Array:
    """The variance along axes: the mean squared distance from the mean.

    Args:
      a: an array.
      axis: one axis, several, or None for all.
      dtype: the result's dtype; default: that of `a`, real.
      out: not supported.
      ddof: what is taken off the number of elements to divide by; NaN where nothing is left.
      keepdims: whether reduced axes stay, with size 1.
      where: a mask; elements where it is False are left out.
      mean: the mean, if known, with reduced axes of size 1.
      correction: another name for `ddof`.
    """
    reject_out("var", out)
    if correction is not None:
        if ddof:
            raise ArgumentError("var: give ddof or correction, not both")
        ddof = correction
    x = as_operand("var", a)
    own = dtypes.to_inexact(x.type.dtype)
    target = dtypes.to_real(own) if dtype is None else dtypes.canonical(dtype)
    if dtypes.is_complex(target):
        raise DTypeError(f"var: a variance is real, but dtype={dtypes.name(target)} is asked for")
    if not dtypes.is_inexact(target):
        raise DTypeError(f"var: a variance is no integer, but dtype={dtypes.name(target)} is asked for")
    wide = dtypes.promote([_computing_dtype(own), _computing_dtype(target)], [False, False])[0]
    x = cast_to(x, wide)
    axes = canonical_axes("var", axis, x.ndim)
    centre = _mean(x, axes, where) if mean is None else cast_to(as_operand("var", mean), wide)
    centred = e.sub(*broadcast_operands("var", [x, centre]))
    squares = e.real(e.mul(centred, conjugate(centred))) if dtypes.is_complex(wide) else e.square(
        centred
    )
    total = sum(squares, axes, keepdims=keepdims, where=where)
    if where is None:
        count = asarray(count_along(x, axes), dtype=total.type.dtype)
    else:
        mask = broadcast_array(as_bool("var", where), x.shape)
        count = sum(mask, axes, total.type.dtype, keepdims=keepdims)
    freedom = e.sub(count, asarray(ddof, dtype=total.type.dtype))
    zero = e.number_like(freedom, 0)
    divisor = e.select(e.gt(freedom, zero), freedom, e.number_like(freedom, np.nan))
    return cast_to(e.div(total, divisor), target)


def _mean(x: Array, axes: Sequence[int], where: Any) -> Array:
    return mean(x, axes, keepdims=True, where=where)


def std(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike = None,
    out: None = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
    correction: float | None = None,
) -> Array:
    """The standard deviation along axes; arguments as for `var`. Its derivative is 0 where it is 0."""
    reject_out("std", out)
    spread = var(
        a, axis, dtype, None, ddof, keepdims, where=where, mean=mean, correction=correction
    )
    return root_or_zero(spread)


def root_or_zero(x: Array) -> Array:
    """The square root, with the derivative 0 at 0."""
    at_zero = e.eq(x, e.number_like(x, 0))
    root = e.sqrt(e.select(at_zero, e.number_like(x, 1), x))
    return e.select(at_zero, e.number_like(x, 0), root)
