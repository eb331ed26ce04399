"""Quantiles, percentiles, medians."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fxarray.core import dims, dtypes
from fxarray.core.array import Array
from fxarray.core.errors import ArgumentError, ShapeError
from fxarray.numpy import reductions
from fxarray.numpy.comparison import isnan
from fxarray.numpy.conversion import asarray
from fxarray.numpy.cumulative import cumsum
from fxarray.numpy.promotion import (
    ArrayLike,
    as_operand,
    broadcast_array,
    canonical_axes,
    promote,
    promote_dtypes,
    reject_out,
)
from fxarray.numpy.taking import take_along_axis
from fxarray.primitives import elementwise as e
from fxarray.primitives import sort as sorts
from fxarray.primitives.convert import convert
from fxarray.primitives.joining import concatenate
from fxarray.primitives.movement import broadcast_axis, reshape, transpose

_METHODS = ("linear", "lower", "higher", "midpoint", "nearest", "inverted_cdf")
Axis = int | Sequence[int] | None


def _gathered(function: str, x: Array, axis: Axis) -> tuple[Array, tuple[int, ...]]:
    """`x` with the reduced axes made into one, which is the last."""
    axes = canonical_axes(function, axis, x.ndim)
    kept = [i for i in range(x.ndim) if i not in axes]
    moved = transpose(x, (*kept, *axes))
    shape = tuple([x.shape[i] for i in kept])
    total = dims.shape_product(tuple([x.shape[i] for i in axes]))
    return reshape(moved, (*shape, total)), axes


def _at_rank(ordered: Array, count: Array, q: Array, method: str) -> Array:
    """Values at the fraction q of the way through sorted rows, of which `count` are numbers."""
    dtype = ordered.type.dtype
    last = e.sub(count, e.number_like(count, 1))
    place = e.mul(broadcast_array(q, last.shape) if last.ndim else q, last)
    low = e.floor(place)
    high = e.ceil(place)
    weight = e.sub(place, low)
    if method == "nearest":
        low = high = e.Round(True)(place)
    limit = e.select(e.lt(last, e.number_like(last, 0)), e.number_like(last, 0), last)

    def value(rank: Array) -> Array:
        index = e.min(e.max(rank, e.number_like(rank, 0)), limit)
        index = convert(index, dtypes.int32)
        taken = take_along_axis(ordered, reshape(index, (*index.shape, 1)), -1, mode="clip")
        return reshape(taken, taken.shape[:-1])

    below = value(low)
    if method in ("lower", "nearest"):
        return below
    above = value(high)
    if method == "higher":
        return above
    if method == "midpoint":
        same = e.eq(low, high)
        middle = e.mul(e.add(below, above), e.number_like(below, 0.5))
        return e.select(same, below, middle)
    # Where both are equal (infinities too) no difference is taken.
    mixed = e.add(
        e.mul(below, e.sub(e.number_like(below, 1), convert(weight, dtype))),
        e.mul(above, convert(weight, dtype)),
    )
    return e.select(e.eq(below, above), below, mixed)


def _quantile(
    function: str,
    a: Any,
    q: Any,
    axis: Axis,
    method: str,
    keepdims: bool,
    ignore_nan: bool,
    weights: Any,
) -> Array:
    if method not in _METHODS:
        raise ArgumentError(
            f"{function}: method must be one of {', '.join(_METHODS)}, got {method!r}"
        )
    x, fractions = promote_dtypes(function, a, q, inexact=True)
    if dtypes.is_complex(x.type.dtype):
        raise ArgumentError(f"{function} is not defined for complex numbers, got {x.type}")
    if fractions.ndim > 1:
        raise ShapeError(f"{function}: q must be a number or a vector, got {fractions.type}")
    rank = x.ndim
    own = x.type.dtype
    wide = dtypes.accumulator(own)
    rows, axes = _gathered(function, convert(x, wide), axis)
    fractions = convert(fractions, wide)
    if weights is not None:
        result = _weighted(function, rows, fractions, weights, x, axes, method, ignore_nan)
    elif method == "inverted_cdf":
        ones = e.broadcast_scalar(asarray(1, dtype=wide), rows.shape)
        result = _inverted(rows, fractions, ones, ignore_nan)
    else:
        result = _unweighted(rows, fractions, method, ignore_nan)
    result = convert(result, own)
    if keepdims:
        kept = iter(result.shape[1:] if fractions.ndim else result.shape)
        shape = tuple([1 if i in axes else next(kept) for i in range(rank)])
        result = reshape(result, (*result.shape[:1], *shape) if fractions.ndim else shape)
    return result


def _unweighted(rows: Array, fractions: Array, method: str, ignore_nan: bool) -> Array:
    wide = rows.type.dtype
    axis = rows.ndim - 1
    missing = isnan(rows)
    ordered = sorts.sort(rows, axis)
    lead = rows.shape[:-1]
    length = asarray(rows.shape[-1], dtype=wide)
    count = e.broadcast_scalar(length, lead)
    if ignore_nan:
        gone = reductions.sum(missing, axis, dtype=wide)
        count = e.sub(count, gone)
    results = [_at_rank(ordered, count, q, method) for q in _each(fractions)]
    nothing = e.eq(count, e.number_like(count, 0)) if ignore_nan else reductions.any(missing, axis)
    results = [e.select(nothing, e.number_like(r, np.nan), r) for r in results]
    return _stacked(results, fractions)


def _each(fractions: Array) -> list[Array]:
    if not fractions.ndim:
        return [fractions]
    return [fractions[i] for i in range(fractions.shape[0].__index__())]


def _stacked(results: list[Array], fractions: Array) -> Array:
    if not fractions.ndim:
        return results[0]
    return concatenate([broadcast_axis(r, 1, 0) for r in results], 0)


def _weighted(
    function: str,
    rows: Array,
    fractions: Array,
    weights: Any,
    x: Array,
    axes: tuple[int, ...],
    method: str,
    ignore_nan: bool,
) -> Array:
    if method != "inverted_cdf":
        raise ArgumentError(f"{function}: weights need method='inverted_cdf', got {method!r}")
    w = convert(as_operand(function, weights), rows.type.dtype)
    if w.ndim != x.ndim:
        if w.ndim != len(axes):
            raise ShapeError(
                f"{function}: weights {w.type} do not go with {x.type} and axes {axes}"
            )
        sizes: list[Any] = [1] * x.ndim
        order = np.argsort(axes).tolist()
        for place in axes:
            sizes[place] = x.shape[place]
        w = reshape(transpose(w, order), sizes)
    w, _ = _gathered(function, broadcast_array(w, x.shape), axes)
    return _inverted(rows, fractions, w, ignore_nan)


def _inverted(rows: Array, fractions: Array, weights: Array, ignore_nan: bool) -> Array:
    """The first value at which the running share of the weights reaches q."""
    axis = rows.ndim - 1
    missing = isnan(rows)
    if ignore_nan:
        weights = e.select(missing, e.number_like(weights, 0), weights)
    ordered, carried = sorts.sort_together([rows, weights], axis)
    running = cumsum(carried, axis)
    total = running[..., -1:]
    results: list[Array] = []
    for q in _each(fractions):
        goal = e.mul(broadcast_array(q, total.shape) if total.ndim else q, total)
        reached = e.ge(running, broadcast_array(goal, running.shape))
        reached = e.bitwise_and(reached, e.gt(carried, e.number_like(carried, 0)))
        index = reductions.argmax(reached, axis, keepdims=True)
        results.append(reshape(take_along_axis(ordered, index, axis), rows.shape[:-1]))
    nothing = reductions.all(missing, axis) if ignore_nan else reductions.any(missing, axis)
    results = [e.select(nothing, e.number_like(r, np.nan), r) for r in results]
    return _stacked(results, fractions)


def quantile(
    a: ArrayLike,
    q: ArrayLike,
    axis: Axis = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
) -> Array:
    """The value below which a fraction q of the elements along axes lies.

    Args:
      a: an array; where an element is NaN, so is the result.
      q: a fraction between 0 and 1, or a vector of them, which make a new first axis.
      axis: one axis, several, or None for all.
      out: not supported.
      overwrite_input: accepted for compatibility; nothing is overwritten.
      method: what lies between two elements: "linear", "lower", "higher", "midpoint", "nearest", or
        "inverted_cdf".
      keepdims: whether reduced axes stay, with size 1.
      weights: how much each element counts; needs method "inverted_cdf".

    >>> import fxarray.numpy as fnp
    >>> fnp.quantile(fnp.arange(5), 0.25)
    Array(1., dtype=float32)
    """
    reject_out("quantile", out)
    del overwrite_input
    return _quantile("quantile", a, q, axis, method, keepdims, False, weights)


def nanquantile(
    a: ArrayLike,
    q: ArrayLike,
    axis: Axis = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
) -> Array:
    """`quantile` of the elements that are not NaN."""
    reject_out("nanquantile", out)
    del overwrite_input
    return _quantile("nanquantile", a, q, axis, method, keepdims, True, weights)


def _hundredth(function: str, q: Any) -> Array:
    (value,) = promote(function, q, inexact=True)
    return e.div(value, e.number_like(value, 100))


def percentile(
    a: ArrayLike,
    q: ArrayLike,
    axis: Axis = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
    out_sharding: Any = None,
) -> Array:
    """`quantile` with q in percent."""
    reject_out("percentile", out)
    if out_sharding is not None:
        raise ArgumentError("percentile: out_sharding is not supported")
    del overwrite_input
    fraction = _hundredth("percentile", q)
    return _quantile("percentile", a, fraction, axis, method, keepdims, False, weights)


def nanpercentile(
    a: ArrayLike,
    q: ArrayLike,
    axis: Axis = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
) -> Array:
    """`percentile` of the elements that are not NaN."""
    reject_out("nanpercentile", out)
    del overwrite_input
    fraction = _hundredth("nanpercentile", q)
    return _quantile("nanpercentile", a, fraction, axis, method, keepdims, True, weights)


def median(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    overwrite_input: bool = False,
    keepdims: bool = False,
) -> Array:
    """The middle element along axes, or the mean of the two in the middle."""
    return quantile(a, 0.5, axis, out, overwrite_input, "midpoint", keepdims)


def nanmedian(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    overwrite_input: bool = False,
    keepdims: bool = False,
) -> Array:
    """The median along axes of the elements that are not NaN."""
    return nanquantile(a, 0.5, axis, out, overwrite_input, "midpoint", keepdims)
