"""Elementary functions of complex numbers, in float64.

The formulas are Kahan's ("Branch cuts for complex elementary functions", 1987), which lose no
digits to cancellation and have the C standard's branch cuts.
"""

from __future__ import annotations

import math

from fxarray.devices.cpu.emit.complex_arithmetic import (
    INFINITY,
    Complex,
    choose,
    magnitude,
    number,
    quotient,
    reciprocal,
    square_root,
)
from fxarray.devices.cpu.emit.exact import exact_product, exact_sum
from fxarray.devices.cpu.emit.exponential import exp as real_exp
from fxarray.devices.cpu.emit.hyperbolic import asinh as real_asinh
from fxarray.devices.cpu.emit.hyperbolic import cosh as real_cosh
from fxarray.devices.cpu.emit.hyperbolic import expm1 as real_expm1
from fxarray.devices.cpu.emit.hyperbolic import sinh as real_sinh
from fxarray.devices.cpu.emit.inverse_trigonometric import atan2 as real_atan2
from fxarray.devices.cpu.emit.logarithm import log as real_log
from fxarray.devices.cpu.emit.logarithm import log1p as real_log1p
from fxarray.devices.cpu.emit.number import Number, select
from fxarray.devices.cpu.emit.power import power as real_power
from fxarray.devices.cpu.emit.trigonometric import cos as real_cos
from fxarray.devices.cpu.emit.trigonometric import sin as real_sin
from fxarray.devices.cpu.emit.trigonometric import tan as real_tan

# exp(x) of a large x is exp(x - _SHIFT) * exp(_SHIFT), so that a small factor between them can
# keep the product in range.
_SHIFT = 80.0
_LARGE = 700.0


def _shifted(x: Number) -> tuple[Number, Number]:
    """x or x - _SHIFT, and what the exponential is to be multiplied by."""
    large = x > _LARGE
    return select(large, x - _SHIFT, x), select(large, x.like(math.exp(_SHIFT)), 1.0)


def exp(z: Complex) -> Complex:
    x, y = z.parts
    shifted, factor = _shifted(x)
    size = real_exp(shifted)
    real, imag = size * real_cos(y) * factor, size * real_sin(y) * factor
    # No direction is known at an infinite or unknown y: 0 at -inf, inf + nan i at inf.
    unknown = ~(abs(y) < INFINITY)
    vanishing, overflowing = x.equals(-INFINITY), x.equals(INFINITY)
    real = select(unknown & vanishing, 0.0, select(unknown & overflowing, INFINITY, real))
    imag = select(unknown & vanishing, 0.0, imag)
    # 0 * inf and 0 * nan are no numbers, but on the real axis the result is real.
    return Complex(select(y.equals(0.0), size * factor, real), select(y.equals(0.0), y, imag))


def expm1(z: Complex) -> Complex:
    """exp(z) - 1 without cancellation: expm1(x) cos(y) - 2 sin(y/2)**2 is its real part."""
    x, y = z.parts
    half = real_sin(y * 0.5)
    real = real_expm1(x) * real_cos(y) - half * half * 2.0
    whole = exp(z)
    far = abs(x) > 40.0
    real = select(far, whole.real - 1.0, real)
    return Complex(select(y.equals(0.0), real_expm1(x), real), whole.imag)


def _log_of_magnitude(x: Number, y: Number, square_less_one: Number) -> Number:
    """log|z|, given |z|**2 - 1, which is accurate where |z| is about 1."""
    size = magnitude(Complex(x, y))
    near = (size > 0.5) & (size < 2.0)
    close = real_log1p(select(near, square_less_one, 0.0)) * 0.5
    # |z| may overflow, and lose digits where it is subnormal.
    large, small = size > 2.0**1022, size < 2.0**-900
    factor = select(large, x.like(0.25), select(small, x.like(2.0**120), 1.0))
    addend = select(large, x.like(math.log(4)), select(small, x.like(-120 * math.log(2)), 0.0))
    infinite = Complex(x, y).is_infinite()
    scaled = magnitude(Complex(x * factor, y * factor))
    far = select(infinite, INFINITY, real_log(scaled) + addend)
    return select(near, close, far)


def log(z: Complex) -> Complex:
    x, y = z.parts
    square, low = exact_product(x, x)
    other, other_low = exact_product(y, y)
    steep = square < other
    large, small = select(steep, other, square), select(steep, square, other)
    total, error = exact_sum(large - 1.0, small)
    less_one = total + (error + (low + other_low))
    return Complex(_log_of_magnitude(x, y, less_one), real_atan2(y, x))


def log1p(z: Complex) -> Complex:
    """|1 + z|**2 - 1 is 2 x + x**2 + y**2."""
    x, y = z.parts
    square, low = exact_product(x, x)
    other, other_low = exact_product(y, y)
    total, error = exact_sum(x * 2.0, square)
    total, second = exact_sum(total, other)
    less_one = total + (error + second + (low + other_low))
    shifted = x + 1.0
    real = _log_of_magnitude(shifted, y, less_one)
    return Complex(select(y.equals(0.0), _log1p_right(x, real), real), real_atan2(y, shifted))


def _log1p_right(x: Number, otherwise: Number) -> Number:
    """log1p on the real axis right of -1."""
    return select(x > -1.0, real_log1p(x), otherwise)


def logistic(z: Complex) -> Complex:
    """By the exponential that does not overflow."""
    right = z.real > 0.0
    small = exp(choose(right, -z, z))
    return quotient(choose(right, number(z.real, 1.0), small), small + 1.0)


# --- hyperbolic and trigonometric -----------------------------------------------------------------


def _cosh_sinh(x: Number) -> tuple[Number, Number, Number]:
    """cosh(x) and sinh(x), over the factor that comes third."""
    size, factor = _shifted(abs(x))
    return real_cosh(size), real_sinh(size).with_sign_of(x), factor


def sinh(z: Complex) -> Complex:
    x, y = z.parts
    cosh_x, sinh_x, factor = _cosh_sinh(x)
    cosine, sine = real_cos(y), real_sin(y)
    real = sinh_x * cosine * factor
    imag = cosh_x * sine * factor
    # 0 times an unknown cosine is 0, infinity times it infinity.
    unknown = ~(abs(y) < INFINITY) & (x.equals(0.0) | abs(x).equals(INFINITY))
    return Complex(select(unknown, x, real), select(y.equals(0.0), y, imag))


def cosh(z: Complex) -> Complex:
    x, y = z.parts
    cosh_x, sinh_x, factor = _cosh_sinh(x)
    real = cosh_x * real_cos(y) * factor
    imag = sinh_x * real_sin(y) * factor
    flat = x.equals(0.0) | y.equals(0.0)
    unknown = abs(x).equals(INFINITY) & ~(abs(y) < INFINITY)
    zero = (x.like(1.0).with_sign_of(x) * y.like(1.0).with_sign_of(y)) * 0.0
    return Complex(select(unknown, INFINITY, real), select(flat, zero, imag))


def tanh(z: Complex) -> Complex:
    x, y = z.parts
    size = abs(x)
    near = size.at_most(22.0)
    t = real_tan(y)
    beta = t.fma(t, 1.0)
    s = real_sinh(near)
    rho = s.fma(s, 1.0).sqrt()
    below = (beta * s).fma(s, 1.0)
    real, imag = beta * rho * s / below, t / below
    # Far out the real part is 1, and the imaginary one small.
    far = size > 22.0
    small = real_sin(y) * real_cos(y) * 4.0 * real_exp(size * -2.0)
    small = select(size.equals(INFINITY), y.like(0.0).with_sign_of(small), small)
    one = select((abs(y) < INFINITY) | size.equals(INFINITY), x.like(1.0), float("nan"))
    real = select(far, one, select(x.equals(0.0), x, real)).with_sign_of(x)
    return Complex(real, select(y.equals(0.0), y, select(far, small, imag)))


def sin(z: Complex) -> Complex:
    return sinh(z.times_i()).over_i()


def cos(z: Complex) -> Complex:
    return cosh(z.times_i())


def tan(z: Complex) -> Complex:
    return tanh(z.times_i()).over_i()


# --- their inverses -------------------------------------------------------------------------------


def _roots(z: Complex) -> tuple[Complex, Complex]:
    """The roots of 1 - z and 1 + z."""
    return square_root(-z + 1.0), square_root(z + 1.0)


def asin(z: Complex) -> Complex:
    left, right = _roots(z)
    product = left.real * right.real - left.imag * right.imag
    height = left.real * right.imag - left.imag * right.real
    real = real_atan2(z.real, product)
    imag = real_asinh(height)
    # The direction alone counts at infinity; and on the imaginary axis the real part is 0.
    infinite = z.is_infinite()
    real = select(infinite, real_atan2(z.real, abs(z.imag)), real)
    real = select(z.real.equals(0.0), z.real, real)
    return Complex(real, select(infinite, INFINITY, imag).with_sign_of(z.imag))


def acos(z: Complex) -> Complex:
    left, right = _roots(z)
    height = right.real * left.imag - right.imag * left.real
    infinite = z.is_infinite()
    imag = select(infinite, INFINITY, abs(real_asinh(height))).with_sign_of(-z.imag)
    real = real_atan2(left.real, right.real) * 2.0
    real = select(infinite, real_atan2(abs(z.imag), z.real), real)
    return Complex(select(z.real.equals(0.0), math.pi / 2, real), imag)


def acosh(z: Complex) -> Complex:
    below, above = square_root(z + (-1.0)), square_root(z + 1.0)
    width = below.real * above.real + below.imag * above.imag
    infinite = z.is_infinite()
    angle = real_atan2(below.imag, above.real) * 2.0
    angle = select(infinite, real_atan2(z.imag, z.real), angle)
    angle = select(z.real.equals(0.0) & z.imag.is_nan(), math.pi / 2, angle)
    return Complex(select(infinite, INFINITY, real_asinh(width)), angle)


def asinh(z: Complex) -> Complex:
    return asin(z.times_i()).over_i()


def atanh(z: Complex) -> Complex:
    x, y = z.parts
    a = abs(x)
    size = magnitude(z)
    far = size > 2.0**500
    u, v = select(far, 0.0, a), select(far, 0.0, abs(y))
    beside = 1.0 - u
    real = real_log1p(u * 4.0 / beside.fma(beside, v * v)) * 0.25
    angle = real_atan2(v * 2.0, beside * (u + 1.0) - v * v) * 0.5
    # (1 - x)**2 + y**2 underflows next to 1.
    beside_one = u.equals(1.0) & (v < 2.0**-400)
    real = select(beside_one, (math.log(2) - real_log(v)) * 0.5, real)
    real = select(far, select(size < INFINITY, a / size / size, 0.0), real)
    angle = select(far, math.pi / 2, angle)
    # On the cut beyond 1 the sign of y says the side.
    nan = z.is_nan()
    real = select(nan & ~size.equals(INFINITY), float("nan"), real)
    real = select(x.equals(0.0), 0.0, real)
    angle = select(y.is_nan(), float("nan"), angle)
    return Complex(real.with_sign_of(x), angle.with_sign_of(y))


def atan(z: Complex) -> Complex:
    return atanh(z.times_i()).over_i()


def atan2(y: Complex, x: Complex) -> Complex:
    root = square_root(x * x + y * y)
    return log(quotient(x + y.times_i(), root)).over_i()


# --- powers ---------------------------------------------------------------------------------------


def power(x: Complex, y: Complex) -> Complex:
    general = exp(y * log(x))
    # Real powers of a magnitude are exact to the last digits, those by logarithms are not.
    size = real_power(magnitude(x), y.real)
    angle = real_atan2(x.imag, x.real) * y.real
    by_real = Complex(size * real_cos(angle), size * real_sin(angle))
    flat = angle.equals(0.0)
    by_real = Complex(select(flat, size, by_real.real), select(flat, angle, by_real.imag))
    result = choose(y.imag.equals(0.0), by_real, general)
    zero, nan = number(x.real, 0.0), number(x.real, float("nan"), float("nan"))
    result = choose(x.is_zero(), choose(y.real > 0.0, zero, nan), result)
    return choose(y.is_zero(), number(x.real, 1.0), result)


def exp2(z: Complex) -> Complex:
    return exp(z.scaled(math.log(2)))


def log2(z: Complex) -> Complex:
    return log(z).scaled(1 / math.log(2))


def log10(z: Complex) -> Complex:
    return log(z).scaled(1 / math.log(10))


def reciprocal_root(z: Complex) -> Complex:
    return reciprocal(square_root(z))
