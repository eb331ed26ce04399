"""Elementwise functions, part 4: exponentials, logarithms, trigonometry, complex parts."""

from __future__ import annotations

from typing import Any

import numpy as np

from fxarray.core import dtypes
from fxarray.core.array import Array
from fxarray.numpy.apply import unary_inexact
from fxarray.numpy.arithmetic import constant, maximum
from fxarray.numpy.promotion import ArrayLike, as_operand, promote, require_real
from fxarray.primitives import create
from fxarray.primitives import elementwise as e
from fxarray.primitives.convert import stop_gradient
from fxarray.primitives.log_space import logaddexp as _logaddexp

# --- exponentials and logarithms ------------------------------------------------------------------


def exp(x: ArrayLike, /) -> Array:
    """e to the power x.

    >>> import fxarray.numpy as fnp
    >>> fnp.exp(0)
    Array(1., dtype=float32, weak_type=True)
    """
    return unary_inexact("exp", e.exp, x)


def exp2(x: ArrayLike, /) -> Array:
    """2 to the power x."""
    return unary_inexact("exp2", e.exp2, x)


def expm1(x: ArrayLike, /) -> Array:
    """exp(x) - 1, exact also near zero."""
    return unary_inexact("expm1", e.expm1, x)


def log(x: ArrayLike, /) -> Array:
    """The natural logarithm; NaN of negative real numbers, -inf of zero."""
    return unary_inexact("log", e.log, x)


def log1p(x: ArrayLike, /) -> Array:
    """log(1 + x), exact also near zero."""
    return unary_inexact("log1p", e.log1p, x)


def _log_to_base(function: str, base: float, x: ArrayLike) -> Array:
    (value,) = promote(function, x, inexact=True)
    logarithm = e.log(value)
    return e.div(logarithm, constant(np.log(base), logarithm))


def log2(x: ArrayLike, /) -> Array:
    """The logarithm to base 2."""
    return _log_to_base("log2", 2.0, x)


def log10(x: ArrayLike, /) -> Array:
    """The logarithm to base 10."""
    return _log_to_base("log10", 10.0, x)


def logaddexp(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """log(exp(x1) + exp(x2)) without overflow; its derivatives are finite also at infinities.

    >>> import fxarray.numpy as fnp
    >>> fnp.logaddexp(1000.0, 1000.0)
    Array(1000.6932, dtype=float32, weak_type=True)
    """
    x, y = promote("logaddexp", x1, x2, inexact=True)
    if dtypes.is_complex(x.type.dtype):
        return _complex_logaddexp(x, y)
    return _logaddexp(x, y)


def _complex_logaddexp(x: Array, y: Array) -> Array:
    first = e.ge(e.real(x), e.real(y))
    shape = x.type.shape or y.type.shape
    x, y = e.broadcast_scalar(x, shape), e.broadcast_scalar(y, shape)
    first = e.broadcast_scalar(first, shape)
    larger, smaller = e.select(first, x, y), e.select(first, y, x)
    return e.add(larger, e.log1p(e.exp(e.sub(smaller, larger))))


def logaddexp2(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """log2(2**x1 + 2**x2) without overflow."""
    x, y = promote("logaddexp2", x1, x2, inexact=True)
    factor = constant(np.log(2.0), x)
    return e.div(logaddexp(e.mul(x, factor), e.mul(y, factor)), factor)


# --- trigonometry ---------------------------------------------------------------------------------


def sin(x: ArrayLike, /) -> Array:
    """The sine of an angle in radians.

    >>> import fxarray.numpy as fnp
    >>> fnp.sin(fnp.array([0.0, fnp.pi / 2]))
    Array([0., 1.], dtype=float32)
    """
    return unary_inexact("sin", e.sin, x)


def cos(x: ArrayLike, /) -> Array:
    """The cosine of an angle in radians."""
    return unary_inexact("cos", e.cos, x)


def tan(x: ArrayLike, /) -> Array:
    """The tangent of an angle in radians."""
    return unary_inexact("tan", e.tan, x)


def arcsin(x: ArrayLike, /) -> Array:
    """The angle in [-pi/2, pi/2] whose sine is x."""
    return unary_inexact("arcsin", e.asin, x)


def arccos(x: ArrayLike, /) -> Array:
    """The angle in [0, pi] whose cosine is x."""
    return unary_inexact("arccos", e.acos, x)


def arctan(x: ArrayLike, /) -> Array:
    """The angle in [-pi/2, pi/2] whose tangent is x."""
    return unary_inexact("arctan", e.atan, x)


def arctan2(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The angle of the point (x2, x1), in (-pi, pi]; its derivative at the origin is zero."""
    x, y = promote("arctan2", x1, x2, inexact=True)
    return e.atan2(x, y)


def sinh(x: ArrayLike, /) -> Array:
    """The hyperbolic sine."""
    return unary_inexact("sinh", e.sinh, x)


def cosh(x: ArrayLike, /) -> Array:
    """The hyperbolic cosine."""
    return unary_inexact("cosh", e.cosh, x)


def tanh(x: ArrayLike, /) -> Array:
    """The hyperbolic tangent."""
    return unary_inexact("tanh", e.tanh, x)


def arcsinh(x: ArrayLike, /) -> Array:
    """The inverse of sinh."""
    return unary_inexact("arcsinh", e.asinh, x)


def arccosh(x: ArrayLike, /) -> Array:
    """The inverse of cosh, not negative."""
    return unary_inexact("arccosh", e.acosh, x)


def arctanh(x: ArrayLike, /) -> Array:
    """The inverse of tanh."""
    return unary_inexact("arctanh", e.atanh, x)


asin, acos, atan, atan2 = arcsin, arccos, arctan, arctan2
asinh, acosh, atanh = arcsinh, arccosh, arctanh


def _scaled(function: str, x: ArrayLike, factor: float) -> Array:
    (value,) = promote(function, x, inexact=True)
    return e.mul(value, constant(factor, require_real(function, value)))


def degrees(x: ArrayLike, /) -> Array:
    """Radians as degrees."""
    return _scaled("degrees", x, 180 / np.pi)


def radians(x: ArrayLike, /) -> Array:
    """Degrees as radians."""
    return _scaled("radians", x, np.pi / 180)


rad2deg, deg2rad = degrees, radians


def hypot(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """sqrt(x1**2 + x2**2) without overflow; its derivative at the origin is zero."""
    x, y = promote("hypot", x1, x2, inexact=True)
    require_real("hypot", x)
    # The result does not depend on the scale, so no derivative needs to pass through it.
    scale = stop_gradient(maximum(e.abs(x), e.abs(y)))
    zero, one = constant(0, x), constant(1, x)
    usable = e.bitwise_and(e.gt(scale, zero), e.lt(scale, constant(np.inf, x)))
    scale_or_one = e.select(usable, scale, one)
    a, b = e.div(x, scale_or_one), e.div(y, scale_or_one)
    total = e.select(usable, e.add(e.square(a), e.square(b)), one)
    inside = e.mul(scale_or_one, e.sqrt(total))
    # At the origin the result is 0, beside an infinity it is that, and else NaN.
    infinite = e.bitwise_or(_is_infinite(x), _is_infinite(y))
    outside = e.select(infinite, constant(np.inf, x), scale)
    return e.select(usable, inside, outside)


def _is_infinite(x: Array) -> Array:
    return e.eq(e.abs(x), constant(np.inf, x))


def sinc(x: ArrayLike, /) -> Array:
    """sin(pi x) / (pi x), and 1 at zero, where all derivatives are right too."""
    (value,) = promote("sinc", x, inexact=True)
    angle = e.mul(value, constant(np.pi, value))
    small = (
        e.lt(e.abs(angle), constant(0.1, angle))
        if not dtypes.is_complex(angle.type.dtype)
        else e.lt(e.abs(angle), create.scalar(0.1, dtypes.to_real(angle.type.dtype)))
    )
    # The Taylor polynomial is exact to rounding for |angle| < 0.1.
    squared = e.square(angle)
    series = constant(1.0, angle)
    for order in (10, 8, 6, 4, 2):
        factor = constant(-1.0 / (order * (order + 1)), angle)
        series = e.add(constant(1.0, angle), e.mul(e.mul(squared, factor), series))
    safe = e.select(small, constant(1.0, angle), angle)
    return e.select(small, series, e.div(e.sin(safe), safe))


# --- complex numbers ------------------------------------------------------------------------------


def real(val: ArrayLike, /) -> Array:
    """The real part."""
    value = as_operand("real", val)
    return e.real(value) if dtypes.is_complex(value.type.dtype) else value


def imag(val: ArrayLike, /) -> Array:
    """The imaginary part; zeros for real numbers."""
    value = as_operand("imag", val)
    return e.imag(value) if dtypes.is_complex(value.type.dtype) else create.full(value.type, 0)


def conjugate(x: ArrayLike, /) -> Array:
    """The complex conjugate; real numbers are returned as they are."""
    value = as_operand("conjugate", x)
    return e.conj(value) if dtypes.is_complex(value.type.dtype) else value


conj = conjugate


def angle(z: ArrayLike, deg: bool = False) -> Array:
    """The angle of complex numbers in the plane, in radians or degrees."""
    value = as_operand("angle", z)
    if not dtypes.is_inexact(value.type.dtype):
        (value,) = promote("angle", value, inexact=True)
    if dtypes.is_complex(value.type.dtype):
        result = e.atan2(e.imag(value), e.real(value))
    else:
        result = e.atan2(create.full(value.type, 0), value)
    return degrees(result) if deg else result


def _is_complex_object(x: Any) -> bool:
    return isinstance(x, complex | np.complexfloating)


def iscomplexobj(x: Any) -> bool:
    """Whether the dtype of x is complex, whatever the values."""
    if x is None:
        return False
    dtype = getattr(x, "dtype", None)
    if dtype is None:
        return (
            _is_complex_object(x) if not isinstance(x, list | tuple) else any(map(iscomplexobj, x))
        )
    return dtypes.is_complex(dtypes.canonical(dtype))


def isrealobj(x: Any) -> bool:
    """Whether the dtype of x is not complex, whatever the values."""
    return not iscomplexobj(x)
