"""Sums and means of exponentials, by their logarithms; `nn` and `scipy.special` offer them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fxarray.core import dtypes
from fxarray.core.array import Array
from fxarray.numpy import averages, reductions
from fxarray.numpy.comparison import as_bool
from fxarray.numpy.conversion import asarray
from fxarray.numpy.promotion import (
    ArrayLike,
    broadcast_array,
    broadcast_operands,
    canonical_axes,
    promote,
)
from fxarray.primitives import elementwise as e
from fxarray.primitives.convert import stop_gradient
from fxarray.primitives.movement import reshape


def finite_peak(x: Array, axes: Sequence[int], where: Any = None) -> Array:
    """The greatest real part along axes (kept, with size 1), 0 where that is infinite.

    It is a shift that results do not depend on, so no derivative passes through it.
    """
    real = e.real(x) if dtypes.is_complex(x.type.dtype) else x
    peak = reductions.max(stop_gradient(real), axes, keepdims=True, initial=-np.inf, where=where)
    return stop_gradient(e.select(e.is_finite(peak), peak, e.number_like(peak, 0)))


def logsumexp(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    b: ArrayLike | None = None,
    keepdims: bool = False,
    return_sign: bool = False,
    where: ArrayLike | None = None,
) -> Any:
    """log(sum(b * exp(a))) along axes, without overflow; -inf has the derivative 0.

    Args:
      a: exponents.
      axis: one axis, several, or None for all.
      b: factors of the exponentials; default 1.
      keepdims: whether reduced axes stay, with size 1.
      return_sign: whether to return `(log(abs(sum)), sign of the sum)`; else a negative sum is NaN.
      where: a mask; elements where it is False are left out.

    >>> from fxarray import nn
    >>> import fxarray.numpy as fnp
    >>> nn.logsumexp(fnp.array([1000.0, 1000.0]))
    Array(1000.6932, dtype=float32)
    """
    if b is None:
        (x,) = promote("logsumexp", a, inexact=True)
        factors = None
    else:
        x, factors = promote("logsumexp", a, b, inexact=True)
        shape = x.type.shape or factors.type.shape
        x, factors = e.broadcast_scalar(x, shape), e.broadcast_scalar(factors, shape)
        # A factor 0 leaves its exponential out, also an infinite one.
        used = e.ne(factors, e.number_like(factors, 0))
        x = e.select(used, x, e.number_like(x, -np.inf))
    axes = canonical_axes("logsumexp", axis, x.ndim)
    peak = finite_peak(x, axes, where)
    shift = e.convert(peak, x.type.dtype) if peak.type.dtype != x.type.dtype else peak
    terms = e.exp(e.sub(x, broadcast_array(shift, x.shape)))
    if factors is not None:
        terms = e.mul(factors, terms)
    total = reductions.sum(terms, axes, keepdims=True, where=where)
    sign = e.sign(total)
    complex_sum = dtypes.is_complex(total.type.dtype)
    if return_sign and complex_sum:
        size = e.abs(total)
        result = e.add(_log_or_infinity(size), peak)
    else:
        magnitude = e.abs(total) if return_sign else total
        result = e.add(_log_or_infinity(magnitude), shift)
    if not keepdims:
        kept = tuple([s for i, s in enumerate(x.shape) if i not in axes])
        result, sign = reshape(result, kept), reshape(sign, kept)
    return (result, sign) if return_sign else result


def _log_or_infinity(x: Array) -> Array:
    """The logarithm, -inf at 0 with the derivative 0."""
    at_zero = e.eq(x, e.number_like(x, 0))
    logarithm = e.log(e.select(at_zero, e.number_like(x, 1), x))
    return e.select(at_zero, e.number_like(x, -np.inf), logarithm)


def logmeanexp(
    x: ArrayLike,
    axis: int | Sequence[int] | None = None,
    where: ArrayLike | None = None,
    keepdims: bool = False,
) -> Array:
    """log(mean(exp(x))) along axes; arguments as for `logsumexp`."""
    (value,) = promote("logmeanexp", x, inexact=True)
    axes = canonical_axes("logmeanexp", axis, value.ndim)
    total = logsumexp(value, axes, where=where, keepdims=keepdims)
    if where is None:
        count: Any = asarray(averages.count_along(value, axes), dtype=total.type.dtype)
    else:
        mask = broadcast_array(as_bool("logmeanexp", where), value.shape)
        count = reductions.sum(mask, axes, total.type.dtype, keepdims=keepdims)
    return e.sub(*broadcast_operands("logmeanexp", [total, e.log(count)]))
