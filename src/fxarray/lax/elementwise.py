"""Elementwise arithmetic, rounding and limits."""

from __future__ import annotations

import enum

from fxarray.core.array import Array
from fxarray.lax.operands import ArrayLike, as_operand, as_operands
from fxarray.primitives import elementwise as _ops


class RoundingMethod(enum.IntEnum):
    """Where `round` takes a number halfway between two integers."""

    AWAY_FROM_ZERO = 0
    TO_NEAREST_EVEN = 1


def add(x: ArrayLike, y: ArrayLike) -> Array:
    """x + y, elementwise; integers wrap.

    Args:
      x, y: of one number dtype, and of one shape or 0-dimensional.

    >>> import fxarray.numpy as fnp
    >>> from fxarray import lax
    >>> lax.add(fnp.array([1, 2]), 3)
    Array([4, 5], dtype=int32)
    """
    return _ops.add(*as_operands("add", x, y))


def sub(x: ArrayLike, y: ArrayLike) -> Array:
    """x - y, elementwise; integers wrap.

    Args:
      x, y: of one number dtype, and of one shape or 0-dimensional.

    >>> import fxarray.numpy as fnp
    >>> from fxarray import lax
    >>> lax.sub(fnp.array([1, 2]), 3)
    Array([-2, -1], dtype=int32)
    """
    return _ops.sub(*as_operands("sub", x, y))


def mul(x: ArrayLike, y: ArrayLike) -> Array:
    """x * y, elementwise; integers wrap.

    Args:
      x, y: of one number dtype, and of one shape or 0-dimensional.

    >>> import fxarray.numpy as fnp
    >>> from fxarray import lax
    >>> lax.mul(fnp.array([1.0, 2.0]), 3)
    Array([3., 6.], dtype=float32)
    """
    return _ops.mul(*as_operands("mul", x, y))


def div(x: ArrayLike, y: ArrayLike) -> Array:
    """x / y, elementwise; integers are truncated towards zero.

    An integer divided by zero is 0, and the least integer divided by -1 wraps to itself.

    Args:
      x, y: of one number dtype, and of one shape or 0-dimensional.

    >>> import fxarray.numpy as fnp
    >>> from fxarray import lax
    >>> lax.div(fnp.array([7, -7, 7]), fnp.array([2, 2, 0]))
    Array([ 3, -3,  0], dtype=int32)
    """
    return _ops.div(*as_operands("div", x, y))


def rem(x: ArrayLike, y: ArrayLike) -> Array:
    """The remainder of x / y, elementwise, with the sign of x.

    The remainder of an integer by zero is 0.

    Args:
      x, y: of one integer or float dtype, and of one shape or 0-dimensional.

    >>> import fxarray.numpy as fnp
    >>> from fxarray import lax
    >>> lax.rem(fnp.array([7, -7, 7]), fnp.array([3, 3, 0]))
    Array([ 1, -1,  0], dtype=int32)
    """
    return _ops.rem(*as_operands("rem", x, y))


def neg(x: ArrayLike) -> Array:
    """-x, elementwise; unsigned integers wrap.

    Args:
      x: of a number dtype.

    >>> import fxarray.numpy as fnp
    >>> from fxarray import lax
    >>> lax.neg(fnp.array([1.0, -2.0]))
    Array([-1.,  2.], dtype=float32)
    """
    return _ops.neg(as_operand("neg", x))


def abs(x: ArrayLike) -> Array:
    """The magnitude, elementwise; real for complex `x`.

    The derivative at 0 is 0.

    Args:
      x: of a signed, float or complex dtype.

    >>> from fxarray import lax
    >>> lax.abs(3 + 4j)
    Array(5., dtype=float32, weak_type=True)
    """
    return _ops.abs(as_operand("abs", x))


def sign(x: ArrayLike) -> Array:
    """-1, 0 or 1 by the sign of x, elementwise; x / |x| for complex `x`.

    Args:
      x: of a number dtype.

    >>> import fxarray.numpy as fnp
    >>> from fxarray import lax
    >>> lax.sign(fnp.array([-3.0, 0.0, 2.0]))
    Array([-1.,  0.,  1.], dtype=float32)
    """
    return _ops.sign(as_operand("sign", x))


def square(x: ArrayLike) -> Array:
    """x * x, elementwise.

    Args:
      x: of a number dtype.

    >>> import fxarray.numpy as fnp
    >>> from fxarray import lax
    >>> lax.square(fnp.array([1.0, -3.0]))
    Array([1., 9.], dtype=float32)
    """
    return _ops.square(as_operand("square", x))


def reciprocal(x: ArrayLike) -> Array:
    """1 / x, elementwise.

    Args:
      x: of a float or complex dtype.

    >>> import fxarray.numpy as fnp
    >>> from fxarray import lax
    >>> lax.reciprocal(fnp.array([2.0, 4.0]))
    Array([0.5 , 0.25], dtype=float32)
    """
    return _ops.integer_pow(as_operand("reciprocal", x), -1)


def max(x: ArrayLike, y: ArrayLike) -> Array:
    """The greater of x and y, elementwise; NaN if either is NaN.

    Complex numbers are compared by real part, then by imaginary part. Where the operands are equal,
    each gets half of the derivative.

    Args:
      x, y: of one numeric dtype, and of one shape or 0-dimensional.

    >>> import fxarray.numpy as fnp
    >>> from fxarray import lax
    >>> lax.max(fnp.array([1, 5]), 3)
    Array([3, 5], dtype=int32)
    """
    return _ops.max(*as_operands("max", x, y))


def min(x: ArrayLike, y: ArrayLike) -> Array:
    """The smaller of x and y, elementwise; NaN if either is NaN.

    Complex numbers are compared by real part, then by imaginary part. Where the operands are equal,
    each gets half of the derivative.

    Args:
      x, y: of one numeric dtype, and of one shape or 0-dimensional.

    >>> import fxarray.numpy as fnp
    >>> from fxarray import lax
    >>> lax.min(fnp.array([1, 5]), 3)
    Array([1, 3], dtype=int32)
    """
    return _ops.min(*as_operands("min", x, y))


def clamp(min: ArrayLike, x: ArrayLike, max: ArrayLike) -> Array:
    """x limited to the range from `min` to `max`, elementwise.

    The derivative with respect to x is 0 on the ends of the range.

    Args:
      min: the lower bound, 0-dimensional or of the shape of `x`.
      x: of a bool, integer or float dtype.
      max: the upper bound, likewise.

    >>> import fxarray.numpy as fnp
    >>> from fxarray import lax
    >>> lax.clamp(0.0, fnp.array([-1.0, 0.5, 2.0]), 1.0)
    Array([0. , 0.5, 1. ], dtype=float32)
    """
    return _ops.clamp(*as_operands("clamp", min, x, max))


def floor(x: ArrayLike) -> Array:
    """The greatest integer not above x, elementwise, as a float.

    Args:
      x: of a float dtype.

    >>> import fxarray.numpy as fnp
    >>> from fxarray import lax
    >>> lax.floor(fnp.array([1.5, -1.5]))
    Array([ 1., -2.], dtype=float32)
    """
    return _ops.floor(as_operand("floor", x))


def ceil(x: ArrayLike) -> Array:
    """The least integer not below x, elementwise, as a float.

    Args:
      x: of a float dtype.

    >>> import fxarray.numpy as fnp
    >>> from fxarray import lax
    >>> lax.ceil(fnp.array([1.5, -1.5]))
    Array([ 2., -1.], dtype=float32)
    """
    return _ops.ceil(as_operand("ceil", x))


def round(x: ArrayLike, rounding_method: RoundingMethod = RoundingMethod.AWAY_FROM_ZERO) -> Array:
    """The nearest integer, elementwise, as a float.

    Args:
      x: of a float dtype.
      rounding_method: where ties go.

    >>> import fxarray.numpy as fnp
    >>> from fxarray import lax
    >>> lax.round(fnp.array([0.5, 1.5, 2.4]))
    Array([1., 2., 2.], dtype=float32)
    """
    to_even = RoundingMethod(rounding_method) == RoundingMethod.TO_NEAREST_EVEN
    return _ops.Round(to_even)(as_operand("round", x))


def nextafter(x: ArrayLike, y: ArrayLike) -> Array:
    """The next number after x in the direction of y, elementwise.

    Args:
      x, y: of one float dtype, and of one shape or 0-dimensional.

    >>> from fxarray import lax
    >>> lax.nextafter(1.0, 2.0)
    Array(1.0000001, dtype=float32, weak_type=True)
    """
    return _ops.nextafter(*as_operands("nextafter", x, y))
