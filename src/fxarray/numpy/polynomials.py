"""Polynomials as vectors of coefficients, the highest power first."""

from __future__ import annotations

from typing import Any

import numpy as np

from fxarray.core import dims, dtypes
from fxarray.core.array import Array
from fxarray.core.errors import ArgumentError, ShapeError
from fxarray.core.types import ArrayType
from fxarray.lax.loops import scan
from fxarray.numpy import linalg, reductions
from fxarray.numpy.arithmetic import divide, multiply, sqrt
from fxarray.numpy.conversion import asarray
from fxarray.numpy.convolution import convolve
from fxarray.numpy.creation import vander
from fxarray.numpy.grids import diag
from fxarray.numpy.joining import concatenate
from fxarray.numpy.linear_algebra import outer
from fxarray.numpy.promotion import (
    ArrayLike,
    as_operand,
    known_size,
    promote_dtypes,
)
from fxarray.numpy.selection import concrete_values
from fxarray.numpy.shapes import atleast_1d
from fxarray.primitives import create
from fxarray.primitives import elementwise as e
from fxarray.primitives.convert import convert
from fxarray.primitives.movement import reshape

# From this many coefficients on, a polynomial is evaluated by a loop of the Program.
_UNROLLED = 32


def _zeros(length: Any, like: Array) -> Array:
    return create.full(ArrayType((length,), like.type.dtype), 0)


def polyval(p: ArrayLike, x: ArrayLike, *, unroll: int = 16) -> Array:
    """The value of a polynomial, by Horner's rule.

    Args:
      p: its coefficients.
      x: where to evaluate it, an array of any shape.
      unroll: how many steps of a long loop to write out at a time.

    >>> import fxarray.numpy as fnp
    >>> fnp.polyval(fnp.array([3, 0, 1]), 2)
    Array(13, dtype=int32)
    """
    coefficients, place = promote_dtypes("polyval", p, x)
    if coefficients.ndim < 1:
        raise ShapeError(f"polyval: coefficients must be a vector, got {coefficients.type}")
    lead = coefficients.shape[1:]
    shape = place.shape or lead
    place = e.broadcast_scalar(place, shape)
    result = create.full(ArrayType(shape, place.type.dtype), 0)
    count = coefficients.shape[0]

    def step(total: Array, coefficient: Array) -> Array:
        return e.add(e.mul(total, place), coefficient)

    if type(count) is int and count <= _UNROLLED:
        for i in range(count):
            result = step(result, coefficients[i])
        return result
    final, _ = scan(lambda total, c: (step(total, c), None), result, coefficients, unroll=unroll)
    return final


def _two(function: str, a: Any, b: Any) -> tuple[Array, Array]:
    x, y = promote_dtypes(function, a, b)
    x, y = atleast_1d(x, y)
    return x, y


def _aligned(x: Array, y: Array) -> tuple[Array, Array]:
    """Both with leading zeros up to one length."""
    missing = y.shape[0] - x.shape[0]
    if missing > 0:
        return concatenate([_zeros(missing, x), x]), y
    return x, concatenate([_zeros(-missing, y), y]) if missing < 0 else y


def polyadd(a1: ArrayLike, a2: ArrayLike) -> Array:
    """The sum of two polynomials."""
    x, y = _aligned(*_two("polyadd", a1, a2))
    return e.add(x, y)


def polysub(a1: ArrayLike, a2: ArrayLike) -> Array:
    """The difference of two polynomials."""
    x, y = _aligned(*_two("polysub", a1, a2))
    return e.sub(x, y)


def _trimmed(function: str, x: Array) -> Array:
    known = concrete_values(x, function, "the coefficients", "leave leading zeros in")
    used = np.flatnonzero(known)
    return x[int(used[0]) :] if used.size else x[-1:]


def polymul(a1: ArrayLike, a2: ArrayLike, *, trim_leading_zeros: bool = False) -> Array:
    """The product of two polynomials.

    Args:
      a1: coefficients.
      a2: coefficients.
      trim_leading_zeros: whether to drop leading zeros first; coefficients must be known then.
    """
    x, y = _two("polymul", a1, a2)
    if trim_leading_zeros:
        x, y = _trimmed("polymul", x), _trimmed("polymul", y)
    if dims.same(x.shape[0], 0):
        x = _zeros(1, y)
    if dims.same(y.shape[0], 0):
        y = _zeros(1, x)
    return convolve(x, y)


def polydiv(u: ArrayLike, v: ArrayLike, *, trim_leading_zeros: bool = False) -> tuple[Array, Array]:
    """Quotient and remainder of two polynomials.

    Args:
      u: coefficients of the dividend.
      v: coefficients of the divisor.
      trim_leading_zeros: whether to drop leading zeros of the remainder, which must be known then.
    """
    dividend, divisor = map(atleast_1d, promote_dtypes("polydiv", u, v, inexact=True))
    top, bottom = dividend.shape[0] - 1, divisor.shape[0] - 1
    steps = max(top - bottom + 1, 0)
    scale = divide(1, divisor[0])
    quotients: list[Array] = []
    rest = dividend
    for k in range(steps):
        factor = multiply(scale, rest[k])
        quotients.append(reshape(factor, (1,)))
        rest = rest.at[k : k + bottom + 1].add(e.neg(multiply(factor, divisor)))
    quotient = concatenate(quotients) if quotients else _zeros(1, dividend)
    if trim_leading_zeros:
        rest = _trimmed("polydiv", rest)
    return quotient, rest


def polyder(p: ArrayLike, m: int = 1) -> Array:
    """The m-th derivative of a polynomial."""
    order = m.__index__()
    if order < 0:
        raise ArgumentError(f"polyder: m must not be negative, got {order}")
    (coefficients,) = promote_dtypes("polyder", p, inexact=True)
    for _ in range(order):
        count = known_size("polyder", coefficients.shape[0])
        if count == 0:
            break
        powers = asarray(np.arange(count - 1, 0, -1), dtype=coefficients.type.dtype)
        coefficients = e.mul(coefficients[:-1], powers)
    return coefficients


def polyint(p: ArrayLike, m: int = 1, k: Any = None) -> Array:
    """The m-th integral of a polynomial.

    Args:
      p: coefficients.
      m: how often to integrate.
      k: constants of integration, one for all or one for each time; default 0.
    """
    order = m.__index__()
    if order < 0:
        raise ArgumentError(f"polyint: m must not be negative, got {order}")
    (coefficients,) = promote_dtypes("polyint", p, inexact=True)
    constants = atleast_1d(asarray(0 if k is None else k, dtype=coefficients.type.dtype))
    if constants.shape[0] == 1:
        constants = e.broadcast_scalar(reshape(constants, ()), (order,))
    if constants.shape[0] != order:
        raise ArgumentError(f"polyint: k must be one number or {order}, got {constants.type}")
    for i in range(order):
        count = known_size("polyint", coefficients.shape[0])
        powers = asarray(np.arange(count, 0, -1), dtype=coefficients.type.dtype)
        coefficients = concatenate([e.div(coefficients, powers), constants[i : i + 1]])
    return coefficients


def poly(seq_of_zeros: ArrayLike) -> Array:
    """The polynomial with given zeros, or the characteristic polynomial of a square matrix."""
    (zeros,) = promote_dtypes("poly", seq_of_zeros, inexact=True)
    zeros = atleast_1d(zeros)
    if zeros.ndim == 2:
        zeros = linalg.eigvals(zeros)
    if zeros.ndim != 1:
        raise ShapeError(f"poly takes a vector or a square matrix, got {zeros.type}")
    result = create.full(ArrayType((1,), zeros.type.dtype), 1)
    for i in range(zeros.shape[0].__index__()):
        shifted = concatenate([_zeros(1, result), e.mul(result, zeros[i])])
        result = e.sub(concatenate([result, _zeros(1, result)]), shifted)
    return result


def roots(p: ArrayLike, *, strip_zeros: bool = True) -> Array:
    """The zeros of a polynomial, as complex numbers.

    Args:
      p: coefficients.
      strip_zeros: whether to drop leading and trailing zeros first, which needs known values. If
        not, leading zeros give NaN.
    """
    (coefficients,) = promote_dtypes("roots", p, inexact=True)
    coefficients = atleast_1d(coefficients)
    if coefficients.ndim != 1:
        raise ShapeError(f"roots takes a vector, got {coefficients.type}")
    complex_dtype = dtypes.to_complex(coefficients.type.dtype)
    at_zero = 0
    if strip_zeros:
        known = concrete_values(coefficients, "roots", "p", "pass strip_zeros=False")
        used = np.flatnonzero(known)
        if not used.size:
            return create.full(ArrayType((0,), complex_dtype), 0)
        at_zero = len(known) - 1 - int(used[-1])
        coefficients = coefficients[int(used[0]) : int(used[-1]) + 1]
    count = coefficients.shape[0]
    found = create.full(ArrayType((at_zero,), complex_dtype), 0)
    if count < 2:
        return found
    # The companion matrix has the polynomial as its characteristic polynomial.
    companion = diag(create.full(ArrayType((count - 2,), coefficients.type.dtype), 1), -1)
    companion = companion.at[0].set(e.neg(e.div(coefficients[1:], coefficients[0])))
    return concatenate([convert(linalg.eigvals(companion), complex_dtype), found])


def polyfit(
    x: ArrayLike,
    y: ArrayLike,
    deg: int,
    rcond: float | None = None,
    full: bool = False,
    w: ArrayLike | None = None,
    cov: Any = False,
) -> Any:
    """The polynomial of a degree that is nearest to points, by least squares.

    Args:
      x: the points' places.
      y: the values there, a vector or one column for each data set.
      deg: the degree.
      rcond: relative size of singular values below which they count as zero.
      full: whether to return `(coefficients, residuals, rank, singular values, rcond)`.
      w: how much each point counts.
      cov: whether to return the covariance matrix of the coefficients too; "unscaled" not to scale
        it by the residuals.
    """
    places, heights = promote_dtypes("polyfit", x, y, inexact=True)
    order = deg.__index__() + 1
    if order < 1:
        raise ArgumentError(f"polyfit: deg must not be negative, got {deg}")
    if places.ndim != 1:
        raise ShapeError(f"polyfit: x must be a vector, got {places.type}")
    if heights.ndim not in (1, 2) or not dims.same(heights.shape[0], places.shape[0]):
        raise ShapeError(f"polyfit: y must have {places.shape[0]} rows, got {heights.type}")
    if rcond is None:
        rcond = known_size("polyfit", places.shape[0]) * float(dtypes.finfo(places.type.dtype).eps)
    matrix = vander(places, order)
    if w is not None:
        weights = convert(as_operand("polyfit", w, 5), places.type.dtype)
        matrix = matrix * weights[:, None]
        heights = heights * (weights if heights.ndim == 1 else weights[:, None])
    # Columns of one length make the problem as well-conditioned as scaling can.
    lengths = sqrt(reductions.sum(matrix * matrix, 0))
    scaled = matrix / lengths
    solution, residuals, rank, singular = linalg.lstsq(scaled, heights, rcond)
    coefficients = (solution.T / lengths).T
    if full:
        return coefficients, residuals, rank, singular, asarray(rcond)
    if not cov:
        return coefficients
    base = linalg.inv(scaled.T @ scaled) / outer(lengths, lengths)
    if cov == "unscaled":
        factor: Any = 1
    else:
        freedom = places.shape[0] - order
        if freedom <= 0:
            raise ArgumentError("polyfit: a covariance needs more points than coefficients")
        factor = residuals / freedom
    if heights.ndim == 1:
        return coefficients, base * factor
    return coefficients, base[:, :, None] * factor
