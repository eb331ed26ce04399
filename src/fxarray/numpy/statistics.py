"""Statistics: covariance, correlation, counting, histograms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fxarray.core import dims, dtypes
from fxarray.core.array import Array
from fxarray.core.dtypes import DType
from fxarray.core.errors import ArgumentError, DTypeError, ShapeError
from fxarray.core.types import ArrayType
from fxarray.numpy import averages, reductions
from fxarray.numpy.arithmetic import clip, divide, multiply, sqrt
from fxarray.numpy.conversion import asarray, cast_to
from fxarray.numpy.cumulative import diff
from fxarray.numpy.elementary import conjugate, real
from fxarray.numpy.joining import concatenate
from fxarray.numpy.linear_algebra import diagonal, matmul
from fxarray.numpy.promotion import ArrayLike, DTypeLike, as_operand, promote, promote_dtypes
from fxarray.numpy.ranges import linspace
from fxarray.numpy.selection import concrete_values
from fxarray.numpy.sorting import searchsorted
from fxarray.primitives import create
from fxarray.primitives import elementwise as e
from fxarray.primitives.convert import convert
from fxarray.primitives.movement import reshape, transpose

# --- covariance -----------------------------------------------------------------------------------


def _variables(function: str, m: Any, y: Any, rowvar: bool) -> Array:
    (x,) = promote(function, m, inexact=True)
    if x.ndim > 2:
        raise ShapeError(f"{function} takes a vector or a matrix, got {x.type}")
    if y is None:
        return _rows(x, rowvar)
    x, other = promote_dtypes(function, x, y, inexact=True)
    return concatenate([_rows(x, rowvar), _rows(other, rowvar)], 0)


def _rows(x: Array, rowvar: bool) -> Array:
    if x.ndim < 2:
        return reshape(x, (1, x.size))
    return x if rowvar or x.shape[0] == 1 else transpose(x, (1, 0))


def cov(
    m: ArrayLike,
    y: ArrayLike | None = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: ArrayLike | None = None,
    aweights: ArrayLike | None = None,
    dtype: DTypeLike = None,
) -> Array:
    """The covariance matrix of variables.

    Args:
      m: the variables' observations.
      y: more variables.
      rowvar: whether variables are rows (else columns).
      bias: whether to divide by the number of observations instead of that less 1.
      ddof: what to take off the number of observations, instead.
      fweights: how often each observation counts, as integers.
      aweights: how much each observation counts.
      dtype: the dtype to compute in.
    """
    x = _variables("cov", m, y, rowvar)
    if dtype is not None:
        x = cast_to(x, dtypes.canonical(dtype))
    correction = (0 if bias else 1) if ddof is None else ddof
    counts = None if fweights is None else as_operand("cov", fweights, 5)
    shares = None if aweights is None else as_operand("cov", aweights, 6)
    if counts is not None and not dtypes.is_integer(counts.type.dtype):
        raise DTypeError(f"cov: fweights must be integers, got {counts.type}")
    given = [each for each in (counts, shares) if each is not None]
    if not given:
        centre = averages.mean(x, 1, keepdims=True)
        freedom: Any = x.shape[1] - correction
        weighted = x - centre
    else:
        weights = given[0] if len(given) == 1 else multiply(*given)
        if weights.ndim != 1 or not dims.same(weights.shape[0], x.shape[1]):
            raise ShapeError(
                f"cov: weights {weights.type} must be one for each of {x.shape[1]} observations"
            )
        weights = convert(weights, dtypes.to_real(x.type.dtype))
        total = reductions.sum(weights)
        centre = divide(reductions.sum(multiply(x, weights), 1, keepdims=True), total)
        if correction == 0:
            freedom = total
        elif shares is None:
            freedom = total - correction
        else:
            squares = reductions.sum(multiply(weights, shares))
            freedom = total - correction * squares / total
        weighted = multiply(x - centre, weights)
    product = matmul(weighted, transpose(conjugate(x - centre), (1, 0)))
    result = divide(product, freedom)
    return reshape(result, ()) if result.shape == (1, 1) else result


def corrcoef(
    x: ArrayLike, y: ArrayLike | None = None, rowvar: bool = True, dtype: DTypeLike = None
) -> Array:
    """Correlation coefficients of variables; arguments as for `cov`."""
    c = cov(x, y, rowvar, dtype=dtype)
    if not c.ndim:
        return divide(c, c)
    spread = sqrt(real(diagonal(c)))
    c = divide(divide(c, spread[:, None]), spread[None, :])
    if dtypes.is_complex(c.type.dtype):
        return e.complex(clip(e.real(c), -1, 1), clip(e.imag(c), -1, 1))
    return clip(c, -1, 1)


# --- counting -------------------------------------------------------------------------------------


def bincount(
    x: ArrayLike,
    weights: ArrayLike | None = None,
    minlength: int = 0,
    *,
    length: int | None = None,
    out_sharding: Any = None,
) -> Array:
    """How often each number 0, 1, 2, ... comes, or the sum of the weights that belong to it.

    Args:
      x: a vector of integers; negative ones count as 0.
      weights: a weight for each.
      minlength: the least length of the result.
      length: the length of the result, needed where `x` is traced; greater numbers are left out.
      out_sharding: must be None.

    >>> import fxarray.numpy as fnp
    >>> fnp.bincount(fnp.array([1, 1, 3]))
    Array([0, 2, 0, 1], dtype=int32)
    """
    if out_sharding is not None:
        raise ArgumentError("bincount: out_sharding is not supported")
    numbers = as_operand("bincount", x)
    if not (dtypes.is_integer(numbers.type.dtype) or dtypes.is_bool(numbers.type.dtype)):
        raise DTypeError(f"bincount counts integers, got {numbers.type}")
    if numbers.ndim != 1:
        raise ShapeError(f"bincount takes a vector, got {numbers.type}")
    numbers = convert(numbers, dtypes.int32) if dtypes.is_bool(numbers.type.dtype) else numbers
    if length is None:
        known = concrete_values(numbers, "bincount", "x", "give length=")
        length = max(int(known.max()) + 1 if known.size else 0, minlength)
    else:
        length = max(length.__index__(), minlength)
    if weights is None:
        added: Any = 1
        dtype = dtypes.int32
    else:
        added = as_operand("bincount", weights, 1)
        if added.shape != numbers.shape:
            raise ShapeError(
                f"bincount: weights {added.type} must have the shape of x, {numbers.type}"
            )
        dtype = added.type.dtype
    counts = create.full(ArrayType((length,), dtype), 0)
    return counts.at[clip(numbers, 0)].add(added, mode="drop")


# --- histograms -----------------------------------------------------------------------------------


def histogram_bin_edges(
    a: ArrayLike, bins: Any = 10, range: Any = None, weights: ArrayLike | None = None
) -> Array:
    """The edges between the bins of a histogram.

    Args:
      a: the values.
      bins: how many bins of equal width, or the edges themselves.
      range: where the first bin begins and the last one ends; default: the extent of the values.
      weights: not used.
    """
    del weights
    if isinstance(bins, str):
        raise ArgumentError(f"histogram_bin_edges: bins={bins!r} is not supported; give a number")
    (values,) = promote("histogram_bin_edges", a, inexact=True)
    if getattr(bins, "ndim", 0) == 1 or isinstance(bins, list | tuple):
        return cast_to(asarray(bins), dtypes.to_inexact(asarray(bins).type.dtype))
    count = bins.__index__()
    dtype = values.type.dtype
    if range is not None:
        low, high = (asarray(each, dtype=dtype) for each in range)
    elif dims.same(values.size, 0):
        low, high = asarray(0, dtype=dtype), asarray(1, dtype=dtype)
    else:
        low, high = reductions.min(values), reductions.max(values)
    flat = e.eq(low, high)
    half = e.number_like(low, 0.5)
    low = e.select(flat, e.sub(low, half), low)
    high = e.select(flat, e.add(high, half), high)
    return linspace(low, high, count + 1, dtype=dtype)


def histogram(
    a: ArrayLike,
    bins: Any = 10,
    range: Any = None,
    weights: ArrayLike | None = None,
    density: bool | None = None,
) -> tuple[Array, Array]:
    """The number of values in each bin, and the edges of the bins.

    Args:
      a: the values.
      bins: how many bins of equal width, or their edges. All but the last are open on the right.
      range: where the first bin begins and the last one ends.
      weights: how much each value counts.
      density: whether to divide by the total and the width of the bin.
    """
    (values,) = promote("histogram", a, inexact=True)
    edges = histogram_bin_edges(values, bins, range)
    flat = reshape(values, (values.size,))
    counted = edges.type.dtype
    counts = _count_in_bins("histogram", [flat], [edges], weights, values.size, counted)
    if density:
        total = reductions.sum(counts)
        return divide(divide(counts, diff(edges)), total), edges
    return counts, edges


def _bin_numbers(values: Array, edges: Array) -> tuple[Array, Array]:
    """The bin of each value, and whether it lies in one."""
    count = edges.shape[0] - 1
    place = searchsorted(edges, values, side="right")
    last = edges[-1]
    inside = (values >= edges[0]) & (values <= last)
    number = clip(place - 1, 0, count - 1)
    return number, inside


def _count_in_bins(
    function: str,
    columns: Sequence[Array],
    edges: Sequence[Array],
    weights: Any,
    size: Any,
    dtype: DType = dtypes.int32,
) -> Array:
    """Weights, or the number of points in `dtype`, added up for each cell."""
    if weights is None:
        amounts = create.full(ArrayType((size,), dtype), 1)
    else:
        amounts = as_operand(function, weights)
        if dtypes.is_bool(amounts.type.dtype):
            amounts = convert(amounts, dtypes.int32)
        if not dims.same(amounts.size, size):
            raise ShapeError(
                f"{function}: weights {amounts.type} must be one for each of {size} values"
            )
        amounts = reshape(amounts, (size,))
    shape = tuple([edge.shape[0] - 1 for edge in edges])
    place: Any = None
    counted: Any = None
    for column, edge, length in zip(columns, edges, shape, strict=True):
        number, inside = _bin_numbers(column, edge)
        place = number if place is None else place * length + number
        counted = inside if counted is None else counted & inside
    amounts = e.select(counted, amounts, e.number_like(amounts, 0))
    total = create.full(ArrayType((int(np.prod(shape)),), amounts.type.dtype), 0)  # type: ignore[arg-type]
    return reshape(total.at[place].add(amounts), shape)


def histogram2d(
    x: ArrayLike,
    y: ArrayLike,
    bins: Any = 10,
    range: Any = None,
    weights: ArrayLike | None = None,
    density: bool | None = None,
) -> tuple[Array, Array, Array]:
    """The number of points in each cell of a grid, and the edges along both axes.

    Args:
      x: first coordinates.
      y: second coordinates.
      bins: a number or edges, for both axes or a pair for either.
      range: a pair (begin, end) for either axis.
      weights: how much each point counts.
      density: whether to divide by the total and the area of the cell.
    """
    first, second = promote("histogram2d", x, y, inexact=True)
    sample = concatenate([reshape(v, (v.size, 1)) for v in (first, second)], 1)
    if isinstance(bins, list | tuple | Array | np.ndarray) and len(bins) not in (1, 2):
        bins = [bins, bins]
    counts, edges = histogramdd(sample, bins, range, weights, density)
    return counts, edges[0], edges[1]


def histogramdd(
    sample: Any,
    bins: Any = 10,
    range: Any = None,
    weights: ArrayLike | None = None,
    density: bool | None = None,
) -> tuple[Array, list[Array]]:
    """The number of points in each cell of a grid of any dimension, and the edges along each axis.

    Args:
      sample: one row for each point, or a list of its coordinates' vectors.
      bins: a number for all axes, or for each a number or edges.
      range: a pair (begin, end) for each axis.
      weights: how much each point counts.
      density: whether to divide by the total and the volume of the cell.
    """
    if isinstance(sample, list | tuple):
        columns = promote("histogramdd", *sample, inexact=True)
    else:
        (points,) = promote("histogramdd", sample, inexact=True)
        points = reshape(points, (points.size, 1)) if points.ndim == 1 else points
        columns = [points[:, i] for i in np.arange(points.shape[1].__index__()).tolist()]
    rank = len(columns)
    several = isinstance(bins, list | tuple) or getattr(bins, "ndim", 0) > 0
    each_bins = list(bins) if several else [bins] * rank
    if len(each_bins) != rank:
        raise ArgumentError(f"histogramdd: {len(each_bins)} bins do not go with {rank} coordinates")
    ranges = [None] * rank if range is None else list(range)
    edges = [
        histogram_bin_edges(column, b, r)
        for column, b, r in zip(columns, each_bins, ranges, strict=True)
    ]
    counts = _count_in_bins("histogramdd", columns, edges, weights, columns[0].shape[0])
    if density:
        counts = divide(counts, reductions.sum(counts))
        for axis, edge in enumerate(edges):
            sizes: list[Any] = [1] * rank
            sizes[axis] = edge.shape[0] - 1
            counts = divide(counts, reshape(diff(edge), sizes))
    return counts, edges
