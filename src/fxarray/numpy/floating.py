"""Elementwise functions, part 5: the parts of floating-point numbers, integers' divisors, steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fxarray.core import dtypes
from fxarray.core.array import Array
from fxarray.core.errors import DTypeError
from fxarray.lax.loops import while_loop
from fxarray.numpy import reductions
from fxarray.numpy.apply import require_integer
from fxarray.numpy.arithmetic import constant
from fxarray.numpy.comparison import isnan, signbit
from fxarray.numpy.conversion import asarray
from fxarray.numpy.cumulative import cumsum, diff
from fxarray.numpy.promotion import (
    ArrayLike,
    as_operand,
    broadcast_operands,
    promote,
    reject_out,
    require_real,
)
from fxarray.numpy.rounding import trunc
from fxarray.primitives import elementwise as e
from fxarray.primitives import special
from fxarray.primitives.convert import convert
from fxarray.primitives.joining import concatenate
from fxarray.primitives.slicing import slice_in_axis


def copysign(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The magnitude of x1 with the sign of x2."""
    x, y = promote("copysign", x1, x2, inexact=True)
    require_real("copysign", x)
    size = e.abs(x)
    negative = signbit(y)
    shape = x.type.shape or y.type.shape
    size, negative = e.broadcast_scalar(size, shape), e.broadcast_scalar(negative, shape)
    return e.select(negative, e.neg(size), size)


def nextafter(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The floating-point number next to x in the direction of y."""
    a, b = promote("nextafter", x, y, inexact=True)
    return e.nextafter(a, b)


def spacing(x: ArrayLike, /) -> Array:
    """The distance from x to the next number away from zero, with the sign of x."""
    (value,) = promote("spacing", x, inexact=True)
    require_real("spacing", value)
    away = e.nextafter(value, copysign(constant(np.inf, value), value))
    return e.sub(away, value)


def frexp(x: ArrayLike, /) -> tuple[Array, Array]:
    """`(mantissa, exponent)` with x = mantissa * 2**exponent and 0.5 <= abs(mantissa) < 1.

    The exponent is int32; of 0, NaN and infinities it is 0.
    """
    (value,) = promote("frexp", x, inexact=True)
    require_real("frexp", value)
    own = value.type.dtype
    wide = convert(value, dtypes.accumulator(own))
    info = dtypes.finfo(wide.type.dtype)
    mantissa_bits = int(info.nmant)
    # Numbers below the least normal one are scaled up first.
    size = e.abs(wide)
    tiny = e.lt(size, constant(float(info.smallest_normal), wide))
    lift = mantissa_bits + 1
    scaled = e.select(tiny, e.mul(wide, constant(2.0**lift, wide)), wide)
    width = dtypes.bit_width(wide.type.dtype)
    integer = dtypes.canonical(f"int{width}")
    bits = e.BitcastConvertType(integer)(scaled)
    mask = (1 << (width - 1 - mantissa_bits)) - 1
    place = constant(mantissa_bits, bits)
    field = e.bitwise_and(e.shift_right_logical(bits, place), constant(mask, bits))
    bias = mask // 2 - 1
    raised = convert(field, dtypes.int32)
    exponent = e.sub(raised, constant(bias, raised))
    exponent = e.select(tiny, e.sub(exponent, constant(lift, exponent)), exponent)
    special_value = e.bitwise_or(e.eq(wide, constant(0, wide)), e.bitwise_not(e.is_finite(wide)))
    exponent = e.select(special_value, constant(0, exponent), exponent)
    # Scaling by powers of two is exact, and has the right derivative.
    return convert(ldexp(wide, e.neg(exponent)), own), exponent


def ldexp(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """x1 * 2**x2, for an integer x2."""
    power = as_operand("ldexp", x2, 1)
    if dtypes.is_inexact(power.type.dtype):
        raise DTypeError(f"ldexp: the exponent must be an integer, got {power.type}")
    (value,) = promote("ldexp", x1, inexact=True)
    require_real("ldexp", value)
    value, power = broadcast_operands("ldexp", [value, convert(power, dtypes.int32)])
    # Two steps, since 2**x2 alone may overflow where the product does not.
    half = e.shift_right_arithmetic(power, constant(1, power))
    rest = e.sub(power, half)
    own = value.type.dtype
    for part in (half, rest):
        value = e.mul(value, e.exp2(convert(part, own)))
    return value


def modf(x: ArrayLike, /, out: None = None) -> tuple[Array, Array]:
    """`(fractional part, integral part)`, both with the sign of x."""
    reject_out("modf", out)
    (value,) = promote("modf", x, inexact=True)
    require_real("modf", value)
    whole = trunc(value)
    infinite = e.bitwise_and(e.bitwise_not(e.is_finite(value)), e.bitwise_not(isnan(value)))
    part = e.select(infinite, constant(0, value), e.sub(value, whole))
    return copysign(part, value), whole


def heaviside(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """0 where x1 is negative, 1 where it is positive, x2 where it is zero."""
    x, y = promote("heaviside", x1, x2, inexact=True)
    require_real("heaviside", x)
    shape = x.type.shape or y.type.shape
    x, y = e.broadcast_scalar(x, shape), e.broadcast_scalar(y, shape)
    zero = constant(0, x)
    step = e.select(e.gt(x, zero), constant(1, x), e.select(e.lt(x, zero), zero, x))
    return e.select(e.eq(x, zero), y, step)


def nan_to_num(
    x: ArrayLike,
    copy: bool = True,
    nan: ArrayLike = 0.0,
    posinf: ArrayLike | None = None,
    neginf: ArrayLike | None = None,
) -> Array:
    """`x` with NaN and infinities replaced by numbers.

    Args:
      x: an array.
      copy: accepted for compatibility; the result is always a new array.
      nan: what to put for NaN.
      posinf: what to put for infinity; default: the greatest number of the dtype.
      neginf: what to put for minus infinity; default: the least.
    """
    del copy
    value = as_operand("nan_to_num", x)
    dtype = value.type.dtype
    if dtypes.is_complex(dtype):
        parts = [
            nan_to_num(part, True, nan, posinf, neginf) for part in (e.real(value), e.imag(value))
        ]
        return e.complex(*parts)
    if not dtypes.is_float(dtype):
        return value
    info = dtypes.finfo(dtype)
    replacements = (
        (e.eq(value, constant(np.inf, value)), float(info.max) if posinf is None else posinf),
        (e.eq(value, constant(-np.inf, value)), float(info.min) if neginf is None else neginf),
        (e.ne(value, value), nan),
    )
    for found, replacement in replacements:
        new = asarray(replacement, dtype=dtype)
        found, new, value = broadcast_operands("nan_to_num", [found, new, value])
        value = e.select(found, new, value)
    return value


def i0(x: ArrayLike) -> Array:
    """The modified Bessel function of the first kind and order 0."""
    (value,) = promote("i0", x, inexact=True)
    return e.mul(e.exp(e.abs(value)), special.bessel_i0e(value))


def unwrap(
    p: ArrayLike, discont: ArrayLike | None = None, axis: int = -1, period: ArrayLike = 2 * np.pi
) -> Array:
    """`p` without jumps: multiples of the period are added where neighbours differ by half.

    Args:
      p: phases.
      discont: the least jump to remove; default and minimum: half the period.
      axis: the axis.
      period: the period.
    """
    value = as_operand("unwrap", p)
    require_real("unwrap", value)
    if dtypes.is_bool(value.type.dtype):
        value = convert(value, dtypes.int32)
    value, size = promote("unwrap", value, period)
    place = axis + value.ndim if axis < 0 else axis
    steps = diff(value, axis=place)
    if dtypes.is_integer(value.type.dtype):
        half = size // 2
        ambiguous = (size % 2) == 0
    else:
        half = size / 2
        ambiguous = asarray(True)
    wrapped = (steps + half) % size - half
    at_edge = ambiguous & (wrapped == -half) & (steps > 0)
    wrapped = e.select(*broadcast_operands("unwrap", [at_edge, half, wrapped]))
    change = wrapped - steps
    limit = half if discont is None else discont
    small = abs(steps) < limit
    change = e.select(
        *broadcast_operands("unwrap", [small, asarray(0, dtype=change.dtype), change])
    )
    first = slice_in_axis(value, 0, 1, place)
    rest = slice_in_axis(value, 1, value.shape[place], place)
    return concatenate([first, rest + cumsum(change, axis=place)], place)


# --- divisors -------------------------------------------------------------------------------------


def gcd(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The greatest common divisor of integers, not negative."""
    x, y = promote("gcd", x1, x2)
    require_integer("gcd", x)
    if dtypes.is_bool(x.type.dtype):
        raise DTypeError("gcd takes integers, got bools")
    shape = x.type.shape or y.type.shape
    x, y = e.broadcast_scalar(x, shape), e.broadcast_scalar(y, shape)
    if not dtypes.is_unsigned(x.type.dtype):
        x, y = e.abs(x), e.abs(y)

    def unfinished(state: Sequence[Any]) -> Any:
        return reductions.any(e.ne(state[1], constant(0, state[1])))

    def step(state: Sequence[Any]) -> Any:
        a, b = state
        done = e.eq(b, constant(0, b))
        return e.select(done, a, b), e.select(done, b, e.rem(a, b))

    return while_loop(unfinished, step, (x, y))[0]


def lcm(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The least common multiple of integers, not negative."""
    x, y = promote("lcm", x1, x2)
    require_integer("lcm", x)
    divisor = gcd(x, y)
    shape = divisor.type.shape
    x, y = e.broadcast_scalar(x, shape), e.broadcast_scalar(y, shape)
    # Division by zero gives zero, which is the multiple of two zeros.
    product = e.mul(x, e.div(y, divisor))
    return product if dtypes.is_unsigned(x.type.dtype) else e.abs(product)
