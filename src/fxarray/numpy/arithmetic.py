"""Elementwise functions, part 1: arithmetic, rounding, powers, extrema."""

from __future__ import annotations

from typing import Any

import numpy as np

from fxarray.core import dtypes
from fxarray.core.array import Array
from fxarray.core.errors import ArgumentError, DTypeError
from fxarray.numpy.apply import (
    binary,
    binary_inexact,
    binary_or_logical,
    require_integer,
    unary,
    unary_inexact,
)
from fxarray.numpy.promotion import (
    ArrayLike,
    Scalar,
    as_operand,
    broadcast_operands,
    promote,
    require_real,
)
from fxarray.primitives import elementwise as e
from fxarray.primitives.convert import convert

_round_half_even = e.Round(True)


def constant(value: Any, like: Array) -> Array:
    """A 0-dimensional operand of the dtype of `like`."""
    return e.number_like(like, value)


def add(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """x1 + x2; of bools, their logical or.

    >>> import fxarray.numpy as fnp
    >>> fnp.add(fnp.arange(3), 0.5)
    Array([0.5, 1.5, 2.5], dtype=float32, weak_type=True)
    """
    return binary_or_logical("add", e.add, e.bitwise_or, x1, x2)


def subtract(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """x1 - x2; not defined for bools."""
    return binary("subtract", e.sub, x1, x2)


def multiply(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """x1 * x2, elementwise; of bools, their logical and."""
    return binary_or_logical("multiply", e.mul, e.bitwise_and, x1, x2)


def true_divide(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """x1 / x2 in floating point, also of integers.

    >>> import fxarray.numpy as fnp
    >>> fnp.true_divide(1, 2)
    Array(0.5, dtype=float32, weak_type=True)
    """
    return binary_inexact("divide", e.div, x1, x2)


divide = true_divide


def floor_divide(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The largest integer not greater than x1 / x2, in the operands' dtype.

    Integer division by zero gives 0; the smallest integer divided by -1 is itself.
    """
    x, y = promote("floor_divide", x1, x2)
    dtype = x.type.dtype
    require_real("floor_divide", x)
    if dtypes.is_bool(dtype):
        x, y = convert(x, dtypes.int8), convert(y, dtypes.int8)
        dtype = dtypes.int8
    if dtypes.is_unsigned(dtype):
        return e.div(x, y)
    if dtypes.is_integer(dtype):
        quotient = e.div(x, y)
        differs = e.ne(e.sign(x), e.sign(y))
        inexact = e.ne(e.rem(x, y), constant(0, x))
        down = e.bitwise_and(differs, inexact)
        return e.select(down, e.sub(quotient, constant(1, x)), quotient)
    return _float_divmod(x, y)[0]


def _float_divmod(x: Array, y: Array) -> tuple[Array, Array]:
    remainder = e.rem(x, y)
    wrong_sign = e.bitwise_and(e.ne(remainder, constant(0, x)), e.ne(e.sign(y), e.sign(remainder)))
    # x - remainder is a multiple of y, but its quotient may miss the integer by a rounding.
    quotient = e.div(e.sub(x, remainder), y)
    remainder = e.select(wrong_sign, e.add(remainder, y), remainder)
    quotient = e.select(wrong_sign, e.sub(quotient, constant(1, x)), quotient)
    return _round_half_even(quotient), remainder


def remainder(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The remainder of floor division; it has the sign of x2. Of integers by zero: 0.

    >>> import fxarray.numpy as fnp
    >>> fnp.remainder(-7, 3)
    Array(2, dtype=int32, weak_type=True)
    """
    x, y = promote("remainder", x1, x2)
    require_real("remainder", x)
    if dtypes.is_bool(x.type.dtype):
        x, y = convert(x, dtypes.int8), convert(y, dtypes.int8)
    result = e.rem(x, y)
    if dtypes.is_unsigned(x.type.dtype):
        return result
    zero = constant(0, x)
    wrong_sign = e.bitwise_and(e.ne(result, zero), e.ne(e.lt(result, zero), e.lt(y, zero)))
    return e.select(wrong_sign, e.add(result, y), result)


mod = remainder


def fmod(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The remainder of truncating division; it has the sign of x1."""
    x, y = promote("fmod", x1, x2)
    return e.rem(x, y)


def divmod(x1: ArrayLike, x2: ArrayLike, /) -> tuple[Array, Array]:
    """`(floor_divide(x1, x2), remainder(x1, x2))`."""
    x, y = promote("divmod", x1, x2)
    if dtypes.is_float(x.type.dtype):
        return _float_divmod(x, y)
    return floor_divide(x, y), remainder(x, y)


def negative(x: ArrayLike, /) -> Array:
    """-x."""
    return unary("negative", e.neg, x)


def positive(x: ArrayLike, /) -> Array:
    """x itself."""
    return as_operand("positive", x)


def absolute(x: ArrayLike, /) -> Array:
    """The absolute value; of complex numbers the modulus, which is real."""
    value = as_operand("absolute", x)
    if dtypes.is_bool(value.type.dtype) or dtypes.is_unsigned(value.type.dtype):
        return value
    return e.abs(value)


abs = absolute


def fabs(x: ArrayLike, /) -> Array:
    """The absolute value in floating point."""
    (value,) = promote("fabs", x, inexact=True)
    return e.abs(require_real("fabs", value))


def sign(x: ArrayLike, /) -> Array:
    """-1, 0 or 1 by the sign; of complex numbers x / abs(x); NaN of NaN."""
    return unary("sign", e.sign, x)


def reciprocal(x: ArrayLike, /) -> Array:
    """1 / x."""
    (value,) = promote("reciprocal", x, inexact=True)
    return e.div(constant(1, value), value)


def square(x: ArrayLike, /) -> Array:
    """x * x."""
    value = as_operand("square", x)
    if dtypes.is_bool(value.type.dtype):
        return value
    return e.square(value)


def sqrt(x: ArrayLike, /) -> Array:
    """The square root; NaN of negative real numbers."""
    return unary_inexact("sqrt", e.sqrt, x)


def cbrt(x: ArrayLike, /) -> Array:
    """The real cube root."""
    return unary_inexact("cbrt", e.cbrt, x)


# --- powers ---------------------------------------------------------------------------------------


def power(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """x1 to the power x2.

    A Python integer as the exponent is expanded into multiplications, so that negative bases and
    derivatives at zero are exact.

    Raises:
      ArgumentError: integers to a negative integer power.

    >>> import fxarray.numpy as fnp
    >>> fnp.power(fnp.array([-2.0, 3.0]), 2)
    Array([4., 9.], dtype=float32)
    """
    if type(x2) is int or isinstance(x2, np.integer):
        base = as_operand("power", x1)
        exponent = int(x2)
        if not dtypes.is_bool(base.type.dtype):
            if exponent < 0 and dtypes.is_integer(base.type.dtype):
                raise ArgumentError(
                    f"power: integers cannot be raised to negative powers, got {base.type} to the "
                    f"power {exponent}; cast the base to float first, as x.astype(float) ** "
                    f"{exponent}"
                )
            return integer_power(base, exponent)
    x, y = _power_operands(x1, x2)
    if dtypes.is_bool(x.type.dtype):
        # 0**1 is the only zero.
        return e.bitwise_or(x, e.bitwise_not(y))
    return e.pow(x, y)


def _power_operands(x1: ArrayLike, x2: ArrayLike) -> tuple[Array, Array]:
    if isinstance(x1, Array) and isinstance(x2, Array):
        own, exponent = x1.type.dtype, x2.type.dtype
        if dtypes.is_inexact(own) and dtypes.is_integer(exponent):
            # Integer exponents stay integers: negative bases then have powers, and derivatives
            # do not pass through log(base).
            x, y = broadcast_operands("power", [x1, x2])
            return x, y
    x, y = promote("power", x1, x2)
    return x, y


def float_power(x: ArrayLike, y: ArrayLike, /) -> Array:
    """x to the power y in floating point."""
    return binary_inexact("float_power", e.pow, x, y)


def integer_power(base: Array, exponent: int) -> Array:
    """`base` to a fixed integer power."""
    if exponent == 1:
        return base
    if exponent == 2:
        return e.square(base)
    return e.IntegerPow(exponent)(base)


pow = power


# --- extrema --------------------------------------------------------------------------------------


def maximum(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The greater of each pair; NaN if either is NaN. Complex numbers go by real part first.

    At a tie each operand gets half of the derivative.
    """
    return binary("maximum", e.max, x1, x2)


def minimum(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The smaller of each pair; NaN if either is NaN."""
    return binary("minimum", e.min, x1, x2)


def _is_nan(x: Array) -> Array:
    return e.ne(x, x)


def _full_shape(x: Array, y: Array) -> tuple[Array, Array]:
    """Both operands in their common shape, 0-dimensional ones too."""
    shape = x.type.shape or y.type.shape
    return e.broadcast_scalar(x, shape), e.broadcast_scalar(y, shape)


def _pick(better: Any, x: Array, y: Array) -> Array:
    x, y = _full_shape(x, y)
    return e.select(e.bitwise_or(better(x, y), _is_nan(y)), x, y)


def fmax(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The greater of each pair; a NaN gives way to a number."""
    x, y = promote("fmax", x1, x2)
    return _pick(e.gt, x, y)


def fmin(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The smaller of each pair; a NaN gives way to a number."""
    x, y = promote("fmin", x1, x2)
    return _pick(e.lt, x, y)


def clip(
    arr: ArrayLike | None = None, /, min: ArrayLike | None = None, max: ArrayLike | None = None
) -> Array:
    """`arr` limited to the interval from `min` to `max`; either may be None.

    At a bound the derivative is shared equally between `arr` and the bound.

    >>> import fxarray.numpy as fnp
    >>> fnp.clip(fnp.arange(5), 1, 3)
    Array([1, 1, 2, 3, 3], dtype=int32)
    """
    if arr is None:
        raise ArgumentError("clip: the array is missing")
    result = as_operand("clip", arr)
    for bound in (min, max):
        if bound is None:
            continue
        number = isinstance(bound, Scalar)  # whose size is judged beside the array's dtype
        dtype = dtypes.scalar_dtype(bound)[0] if number else as_operand("clip", bound).type.dtype
        if dtypes.is_complex(dtype):
            raise DTypeError("clip takes real bounds; limit real and imaginary parts separately")
    require_real("clip", result)
    if min is not None:
        result = maximum(min, result)
    return result if max is None else minimum(max, result)


# --- integers -------------------------------------------------------------------------------------


def bitwise_count(x: ArrayLike, /) -> Array:
    """The number of one-bits in the absolute value, as uint8."""
    value = as_operand("bitwise_count", x)
    require_integer("bitwise_count", value)
    if dtypes.is_signed(value.type.dtype):
        value = e.abs(value)
    return convert(e.population_count(value), dtypes.uint8)
