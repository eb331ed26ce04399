"""Means, variances and standard deviations."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from fxarray.core import dims, dtypes
from fxarray.core.array import Array
from fxarray.core.dtypes import DType
from fxarray.core.errors import ArgumentError, DTypeError, ShapeError
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
    promote,
    reject_out,
)
from fxarray.numpy.reductions import Axis, sum
from fxarray.primitives import create
from fxarray.primitives import elementwise as e
from fxarray.primitives.movement import reshape
from fxarray.primitives.reduce import reduce_sum

_AS_IT_IS = frozenset((dtypes.float32, dtypes.float64))  # summed and divided in their own dtype


def count_along(x: Array, axes: Sequence[int]) -> Any:
    """The number of elements along axes: an int, or a symbolic size."""
    return dims.shape_product(tuple([x.shape[i] for i in axes]))


def _computing_dtype(dtype: DType) -> DType:
    return dtypes.float32 if dtypes.is_narrow_float(dtype) else dtype


@lru_cache(maxsize=1024)
def _divisor(count: int, dtype: DType) -> Array:
    return create.scalar(count, dtype)


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
    own = x.type
    if dtype is None and where is None and not keepdims and own.dtype in _AS_IT_IS and not own.weak:
        axes = canonical_axes("mean", axis, len(own.shape))
        elements = count_along(x, axes)
        if type(elements) is int:
            return e.div(reduce_sum(x, axes), _divisor(elements, own.dtype))
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
                    f"average: weights {from_weights.type} must have the shape of the array, "
                    f"{x.type}, "
                    f"or one dimension for each of axis={axis}"
                )
            order = np.argsort(axes)
            sizes: list[Any] = [1] * x.ndim
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
        raise DTypeError(
            f"var: a variance is no integer, but dtype={dtypes.name(target)} is asked for"
        )
    wide = dtypes.promote([_computing_dtype(own), _computing_dtype(target)], [False, False])[0]
    x = cast_to(x, wide)
    axes = canonical_axes("var", axis, x.ndim)
    centre = _mean(x, axes, where) if mean is None else cast_to(as_operand("var", mean), wide)
    centred = e.sub(*broadcast_operands("var", [x, centre]))
    squares = (
        e.real(e.mul(centred, conjugate(centred))) if dtypes.is_complex(wide) else e.square(centred)
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
    """The standard deviation along axes; arguments as for `var`. Where it is 0, so is its slope."""
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
