"""Elementwise powers, exponentials, trigonometry."""

from __future__ import annotations

import operator

import numpy as np

from fxarray.core import dtypes
from fxarray.core.array import Array
from fxarray.lax.operands import ArrayLike, as_operand, as_operands
from fxarray.primitives import elementwise as _ops


def pow(x: ArrayLike, y: ArrayLike) -> Array:
    """x to the power of y, elementwise.

    Derivatives are 0 where they are known to be, though the general formula gives NaN: of 0 ** y
    with respect to y, and of x ** 0 with respect to x.

    Args:
      x: of a number dtype.
      y: of the dtype of `x`, or of an integer dtype; a Python int makes an `integer_pow`.

    >>> import fxarray.numpy as fnp
    >>> from fxarray import lax
    >>> lax.pow(fnp.array([2.0, 3.0]), fnp.array([0.5, 2.0]))
    Array([1.4142135, 9.       ], dtype=float32)
    """
    if isinstance(y, int) and not isinstance(y, bool):
        return integer_pow(x, y)
    if isinstance(y, (Array, np.ndarray)) and dtypes.is_integer(dtypes.canonical(y.dtype)):
        base = as_operand("pow", x)
        if dtypes.is_inexact(base.type.dtype):
            return _ops.pow(base, as_operand("pow", y, 1))
    return _ops.pow(*as_operands("pow", x, y))


def integer_pow(x: ArrayLike, y: int) -> Array:
    """x to the power of a Python integer, elementwise.

    Args:
      x: of a number dtype.
      y: a Python integer, not negative if `x` is of an integer dtype.

    >>> import fxarray.numpy as fnp
    >>> from fxarray import lax
    >>> lax.integer_pow(fnp.array([2.0, -3.0]), 3)
    Array([  8., -27.], dtype=float32)
    """
    return _ops.IntegerPow(operator.index(y))(as_operand("integer_pow", x))


def sqrt(x: ArrayLike) -> Array:
    """The square root, elementwise; NaN for negative reals.

    Args:
      x: of a float or complex dtype.

    >>> import fxarray.numpy as fnp
    >>> from fxarray import lax
    >>> lax.sqrt(fnp.array([4.0, -1.0]))
    Array([ 2., nan], dtype=float32)
    """
    return _ops.sqrt(as_operand("sqrt", x))


def rsqrt(x: ArrayLike) -> Array:
    """1 / sqrt(x), elementwise.

    Args:
      x: of a float or complex dtype.

    >>> import fxarray.numpy as fnp
    >>> from fxarray import lax
    >>> lax.rsqrt(fnp.array([4.0, 0.25]))
    Array([0.5, 2. ], dtype=float32)
    """
    return _ops.rsqrt(as_operand("rsqrt", x))


def cbrt(x: ArrayLike) -> Array:
    """The real cube root, elementwise.

    Args:
      x: of a float dtype.

    >>> import fxarray.numpy as fnp
    >>> from fxarray import lax
    >>> lax.cbrt(fnp.array([8.0, -27.0]))
    Array([ 2.       , -2.9999998], dtype=float32)
    """
    return _ops.cbrt(as_operand("cbrt", x))


def exp(x: ArrayLike) -> Array:
    """e to the power of x, elementwise.

    Args:
      x: of a float or complex dtype.

    >>> import fxarray.numpy as fnp
    >>> from fxarray import lax
    >>> lax.exp(fnp.array([0.0, 1.0]))
    Array([1.      , 2.718282], dtype=float32)
    """
    return _ops.exp(as_operand("exp", x))


def exp2(x: ArrayLike) -> Array:
    """2 to the power of x, elementwise.

    Args:
      x: of a float or complex dtype.

    >>> import fxarray.numpy as fnp
    >>> from fxarray import lax
    >>> lax.exp2(fnp.array([0.0, 3.0]))
    Array([1., 8.], dtype=float32)
    """
    return _ops.exp2(as_operand("exp2", x))


def expm1(x: ArrayLike) -> Array:
    """exp(x) - 1, elementwise, exact also for small x.

    Args:
      x: of a float or complex dtype.

    >>> from fxarray import lax
    >>> lax.expm1(1e-10)
    Array(1.e-10, dtype=float32, weak_type=True)
    """
    return _ops.expm1(as_operand("expm1", x))


def log(x: ArrayLike) -> Array:
    """The natural logarithm, elementwise; NaN for negative reals.

    Args:
      x: of a float or complex dtype.

    >>> import fxarray.numpy as fnp
    >>> from fxarray import lax
    >>> lax.log(fnp.array([1.0, 0.0]))
    Array([  0., -inf], dtype=float32)
    """
    return _ops.log(as_operand("log", x))


def log1p(x: ArrayLike) -> Array:
    """log(1 + x), elementwise, exact also for small x.

    Args:
      x: of a float or complex dtype.

    >>> from fxarray import lax
    >>> lax.log1p(1e-10)
    Array(1.e-10, dtype=float32, weak_type=True)
    """
    return _ops.log1p(as_operand("log1p", x))


def logistic(x: ArrayLike) -> Array:
    """1 / (1 + exp(-x)), elementwise.

    Args:
      x: of a float or complex dtype.

    >>> import fxarray.numpy as fnp
    >>> from fxarray import lax
    >>> lax.logistic(fnp.array([0.0, 100.0]))
    Array([0.5, 1. ], dtype=float32)
    """
    return _ops.logistic(as_operand("logistic", x))


def sin(x: ArrayLike) -> Array:
    """The sine of x in radians, elementwise.

    Args:
      x: of a float or complex dtype.

    >>> import fxarray.numpy as fnp
    >>> from fxarray import lax
    >>> lax.sin(fnp.array([0.0, 1.0]))
    Array([0.      , 0.841471], dtype=float32)
    """
    return _ops.sin(as_operand("sin", x))


def cos(x: ArrayLike) -> Array:
    """The cosine of x in radians, elementwise.

    Args:
      x: of a float or complex dtype.

    >>> import fxarray.numpy as fnp
    >>> from fxarray import lax
    >>> lax.cos(fnp.array([0.0, 1.0]))
    Array([1.       , 0.5403023], dtype=float32)
    """
    return _ops.cos(as_operand("cos", x))


def tan(x: ArrayLike) -> Array:
    """The tangent of x in radians, elementwise.

    Args:
      x: of a float or complex dtype.

    >>> import fxarray.numpy as fnp
    >>> from fxarray import lax
    >>> lax.tan(fnp.array([0.0, 1.0]))
    Array([0.       , 1.5574077], dtype=float32)
    """
    return _ops.tan(as_operand("tan", x))


def asin(x: ArrayLike) -> Array:
    """The angle in [-pi/2, pi/2] whose sine is x, elementwise.

    Args:
      x: of a float or complex dtype.

    >>> import fxarray.numpy as fnp
    >>> from fxarray import lax
    >>> lax.asin(fnp.array([0.0, 1.0]))
    Array([0.       , 1.5707964], dtype=float32)
    """
    return _ops.asin(as_operand("asin", x))


def acos(x: ArrayLike) -> Array:
    """The angle in [0, pi] whose cosine is x, elementwise.

    Args:
      x: of a float or complex dtype.

    >>> import fxarray.numpy as fnp
    >>> from fxarray import lax
    >>> lax.acos(fnp.array([0.0, 1.0]))
    Array([1.5707964, 0.       ], dtype=float32)
    """
    return _ops.acos(as_operand("acos", x))


def atan(x: ArrayLike) -> Array:
    """The angle in [-pi/2, pi/2] whose tangent is x, elementwise.

    Args:
      x: of a float or complex dtype.

    >>> import fxarray.numpy as fnp
    >>> from fxarray import lax
    >>> lax.atan(fnp.array([0.0, 1.0]))
    Array([0.       , 0.7853982], dtype=float32)
    """
    return _ops.atan(as_operand("atan", x))


def atan2(x: ArrayLike, y: ArrayLike) -> Array:
    """The angle of the point whose ordinate is x and whose abscissa is y, elementwise.

    The derivative at the origin is 0.

    Args:
      x, y: of one float or complex dtype, and of one shape or 0-dimensional.

    >>> from fxarray import lax
    >>> lax.atan2(1.0, -1.0)
    Array(2.3561945, dtype=float32, weak_type=True)
    """
    return _ops.atan2(*as_operands("atan2", x, y))


def sinh(x: ArrayLike) -> Array:
    """The hyperbolic sine, elementwise.

    Args:
      x: of a float or complex dtype.

    >>> import fxarray.numpy as fnp
    >>> from fxarray import lax
    >>> lax.sinh(fnp.array([0.0, 1.0]))
    Array([0.       , 1.1752012], dtype=float32)
    """
    return _ops.sinh(as_operand("sinh", x))


def cosh(x: ArrayLike) -> Array:
    """The hyperbolic cosine, elementwise.

    Args:
      x: of a float or complex dtype.

    >>> import fxarray.numpy as fnp
    >>> from fxarray import lax
    >>> lax.cosh(fnp.array([0.0, 1.0]))
    Array([1.       , 1.5430807], dtype=float32)
    """
    return _ops.cosh(as_operand("cosh", x))


def tanh(x: ArrayLike) -> Array:
    """The hyperbolic tangent, elementwise.

    Args:
      x: of a float or complex dtype.

    >>> import fxarray.numpy as fnp
    >>> from fxarray import lax
    >>> lax.tanh(fnp.array([0.0, 1.0]))
    Array([0.       , 0.7615942], dtype=float32)
    """
    return _ops.tanh(as_operand("tanh", x))


def asinh(x: ArrayLike) -> Array:
    """The number whose hyperbolic sine is x, elementwise.

    Args:
      x: of a float or complex dtype.

    >>> import fxarray.numpy as fnp
    >>> from fxarray import lax
    >>> lax.asinh(fnp.array([0.0, 1.0]))
    Array([0.       , 0.8813736], dtype=float32)
    """
    return _ops.asinh(as_operand("asinh", x))


def acosh(x: ArrayLike) -> Array:
    """The number, not negative, whose hyperbolic cosine is x, elementwise.

    Args:
      x: of a float or complex dtype.

    >>> import fxarray.numpy as fnp
    >>> from fxarray import lax
    >>> lax.acosh(fnp.array([1.0, 2.0]))
    Array([0.      , 1.316958], dtype=float32)
    """
    return _ops.acosh(as_operand("acosh", x))


def atanh(x: ArrayLike) -> Array:
    """The number whose hyperbolic tangent is x, elementwise.

    Args:
      x: of a float or complex dtype.

    >>> import fxarray.numpy as fnp
    >>> from fxarray import lax
    >>> lax.atanh(fnp.array([0.0, 0.5]))
    Array([0.        , 0.54930615], dtype=float32)
    """
    return _ops.atanh(as_operand("atanh", x))
