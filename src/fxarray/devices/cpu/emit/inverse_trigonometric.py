"""Arc sine, cosine and tangent.

Coefficients are minimax fits (Remez' algorithm in 50 digits) of (f(t) - t) / t**3 in powers of
t**2, to the error relative to f(t).
"""

from __future__ import annotations

import math

from fxarray.devices.cpu.emit.exact import exact_product
from fxarray.devices.cpu.emit.number import Number, polynomial, select

# For |t| <= 1/2.
_ARC_SINE = {
    "float": (0.16666752682293326, 0.07495288566956315, 0.04547162212434538,
              0.024172880172764158, 0.042178340127344185),
    "double": (0.16666666666665403, 0.07500000000338747, 0.04464285682683341,
               0.030381959200860665, 0.02237175647073017, 0.017359729236861552,
               0.013884987812711606, 0.012170873920510208, 0.006520638096322849,
               0.01954873025545096, -0.016256946955495555, 0.0319350630302263),
}  # fmt: skip
# For |t| <= tan(pi/8).
_ARC_TANGENT = {
    "float": (-0.3333331502272981, 0.19998460529135695, -0.14243312074163988, 0.10592085878004696,
              -0.06073629327273693),
    "double": (-0.3333333333333319, 0.1999999999995239, -0.14285714280075695, 0.1111111077742318,
               -0.09090897584365133, 0.07692057134123531, -0.06663069039807572,
               0.058476344456659904, -0.05038155065054658, 0.03803530549139839,
               -0.017875109617237938),
}  # fmt: skip
_TAN_EIGHTH = math.sqrt(2) - 1
# pi/2 and what it lacks.
_HALF_PI = {"float": 1.5707963705062866, "double": math.pi / 2}
_HALF_PI_LOW = {"float": -4.371138828673793e-08, "double": 6.123233995736766e-17}


def _half_angle(x: Number) -> tuple[Number, Number, Number]:
    """Whether |x| > 1/2; then t = sqrt((1 - |x|) / 2), else |x|; and the arc sine of t less t."""
    size = abs(x)
    large = size > 0.5
    square = select(large, size.fma(-0.5, 0.5), size * size)
    t = select(large, square.sqrt(), size)
    tail = polynomial(square, _ARC_SINE[x.type])
    return large, t, t * square * tail


def asin(x: Number) -> Number:
    large, t, rest = _half_angle(x)
    # pi/2 - 2 t, and what its rounding and that of pi/2 lose.
    half_pi = _HALF_PI[x.type]
    leading = t.fma(-2.0, half_pi)
    lost = t.fma(-2.0, half_pi - leading) + _HALF_PI_LOW[x.type]
    other = leading - rest.fma(2.0, -lost)
    return select(large, other, t + rest).with_sign_of(x)


def acos(x: Number) -> Number:
    large, t, rest = _half_angle(x)
    angle = t + rest
    high, low = _HALF_PI[x.type], _HALF_PI_LOW[x.type]
    right = angle * 2.0
    left = 2.0 * high - (right - 2.0 * low)
    middle = high - (angle.with_sign_of(x) - low)
    return select(large, select(x < 0.0, left, right), middle)


def atan(x: Number) -> Number:
    """By the angle's difference from 0, pi/4 or pi/2."""
    size = abs(x)
    steep, middle = size > 1.0 + math.sqrt(2), size > _TAN_EIGHTH
    above = select(steep, -1.0, select(middle, size - 1.0, size))
    below = select(steep, size, select(middle, size + 1.0, 1.0))
    t = above / below
    high, low = _HALF_PI[x.type], _HALF_PI_LOW[x.type]
    base = select(steep, x.like(high), select(middle, x.like(high / 2), x.like(0.0)))
    rest = select(steep, x.like(low), select(middle, x.like(low / 2), x.like(0.0)))
    square = t * t
    tail = (square * t).fma(polynomial(square, _ARC_TANGENT[x.type]), rest)
    return (base + (t + tail)).with_sign_of(x)


def atan2(y: Number, x: Number) -> Number:
    """The angle as a multiple of pi/4 and the arc tangent of a quotient, added or subtracted."""
    infinite = abs(x).equals(float("inf")) & abs(y).equals(float("inf"))
    a, b = select(infinite, 1.0, abs(y)), select(infinite, 1.0, abs(x))
    swapped = a > b
    small, large = select(swapped, b, a), select(swapped, a, b)
    # Sums must not overflow, nor small quotients of small numbers.
    shrink = select(large > {"float": 2.0**100, "double": 2.0**1000}[x.type], small.like(0.25), 1.0)
    small, large = small * shrink, large * shrink
    middle = small > large * _TAN_EIGHTH
    above = select(middle, small - large, small)
    below = select(middle, small + large, large)
    t = select(large.equals(0.0), 0.0, above / below)
    square = t * t
    t_tail = square * t * polynomial(square, _ARC_TANGENT[x.type])
    # The angle is eighths * pi/4 + arc tangent, or minus it.
    negative = x.bits < 0
    eighths = select(middle, t.like(1.0), t.like(0.0))
    eighths = select(swapped, 2.0 - eighths, eighths)
    eighths = select(negative, 4.0 - eighths, eighths)
    downwards = swapped ^ negative
    t = select(downwards, -t, t)
    t_tail = select(downwards, -t_tail, t_tail)
    quarter = t.like(_HALF_PI[x.type] / 2)
    base, error = exact_product(eighths, quarter)
    rest = eighths.fma(_HALF_PI_LOW[x.type] / 2, error)
    angle = base + (t + (t_tail + rest))
    return select(x.compare("uno", y), x + y, angle.with_sign_of(y))
