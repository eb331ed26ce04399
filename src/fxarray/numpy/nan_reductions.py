"""Reductions that leave out NaN."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fxarray.core import dtypes
from fxarray.core.array import Array
from fxarray.core.errors import ArgumentError
from fxarray.numpy import averages, reductions
from fxarray.numpy.comparison import isnan, logical_and
from fxarray.numpy.promotion import ArrayLike, DTypeLike, as_operand, reject_out
from fxarray.numpy.reductions import Axis
from fxarray.primitives import elementwise as e


def _replaced(x: Array, value: float) -> Array:
    if not dtypes.is_inexact(x.type.dtype):
        return x
    return e.select(isnan(x), e.number_like(x, value), x)


def _numbers(x: Array, where: Any) -> Any:
    """The mask of elements that count."""
    if not dtypes.is_inexact(x.type.dtype):
        return where
    valid = e.bitwise_not(isnan(x))
    return valid if where is None else logical_and(valid, where)


def nansum(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """The sum along axes without NaN.

    >>> import fxarray.numpy as fnp
    >>> fnp.nansum(fnp.array([1.0, fnp.nan]))
    Array(1., dtype=float32)
    """
    x = _replaced(as_operand("nansum", a), 0)
    return reductions.sum(x, axis, dtype, out, keepdims, initial, where)


def nanprod(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """The product along axes without NaN."""
    x = _replaced(as_operand("nanprod", a), 1)
    return reductions.prod(x, axis, dtype, out, keepdims, initial, where)


def _nan_extremum(
    reduce: Callable[..., Array],
    infinity: float,
    x: Array,
    axis: Axis,
    keepdims: bool,
    initial: Any,
    where: Any,
) -> Array:
    result = reduce(_replaced(x, infinity), axis, None, keepdims, initial, where)
    if not dtypes.is_inexact(x.type.dtype) or initial is not None:
        return result
    nothing = reductions.all(isnan(x), axis, keepdims=keepdims)
    return e.select(nothing, e.number_like(result, np.nan), result)


def nanmax(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """The greatest element along axes without NaN; NaN where there is nothing else."""
    reject_out("nanmax", out)
    x = as_operand("nanmax", a)
    return _nan_extremum(reductions.max, -np.inf, x, axis, keepdims, initial, where)


def nanmin(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """The smallest element along axes without NaN; NaN where there is nothing else."""
    reject_out("nanmin", out)
    x = as_operand("nanmin", a)
    return _nan_extremum(reductions.min, np.inf, x, axis, keepdims, initial, where)


def _nan_position(
    position: Callable[..., Array], infinity: float, x: Array, axis: int | None, keepdims: Any
) -> Array:
    result = position(_replaced(x, infinity), axis, None, keepdims)
    if not dtypes.is_inexact(x.type.dtype):
        return result
    nothing = reductions.all(isnan(x), axis, keepdims=bool(keepdims))
    return e.select(nothing, e.number_like(result, -1), result)


def nanargmax(
    a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None
) -> Array:
    """The index of the greatest element without NaN; -1 where there is nothing else."""
    reject_out("nanargmax", out)
    return _nan_position(reductions.argmax, -np.inf, as_operand("nanargmax", a), axis, keepdims)


def nanargmin(
    a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None
) -> Array:
    """The index of the smallest element without NaN; -1 where there is nothing else."""
    reject_out("nanargmin", out)
    return _nan_position(reductions.argmin, np.inf, as_operand("nanargmin", a), axis, keepdims)


def nanmean(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike = None,
    out: None = None,
    keepdims: bool = False,
    where: ArrayLike | None = None,
) -> Array:
    """The mean along axes without NaN."""
    x = as_operand("nanmean", a)
    return averages.mean(x, axis, dtype, out, keepdims, where=_numbers(x, where))


def _refuse_mean(function: str, mean: Any) -> None:
    if mean is not None:
        raise ArgumentError(f"{function}: mean= is not supported")


def nanvar(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike = None,
    out: None = None,
    ddof: float = 0,
    keepdims: bool = False,
    where: ArrayLike | None = None,
    mean: None = None,
) -> Array:
    """The variance along axes without NaN."""
    _refuse_mean("nanvar", mean)
    x = as_operand("nanvar", a)
    return averages.var(x, axis, dtype, out, ddof, keepdims, where=_numbers(x, where))


def nanstd(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike = None,
    out: None = None,
    ddof: float = 0,
    keepdims: bool = False,
    where: ArrayLike | None = None,
    mean: None = None,
) -> Array:
    """The standard deviation along axes without NaN."""
    _refuse_mean("nanstd", mean)
    x = as_operand("nanstd", a)
    return averages.std(x, axis, dtype, out, ddof, keepdims, where=_numbers(x, where))
