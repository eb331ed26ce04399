"""The logarithm of the gamma function, and its derivative.

Both are a rational function (a least-squares fit at Chebyshev nodes, in 70 digits) between 1/2 and
3, from where their recurrences lead to (0, 8); an asymptotic series above; reflection below 0.
float32 is computed in float64, float64 with its rational function to twice the digits. Results are
within 2 ulp for positive arguments; for negative ones that holds against the largest term, since
the many zeros of both functions there are not singled out.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

from fxarray.devices.cpu.emit.exact import (
    compensated_polynomial,
    exact_product,
    exact_sum,
    product_of_sums,
    quotient_of_sums,
)
from fxarray.devices.cpu.emit.logarithm import log, log_in_two
from fxarray.devices.cpu.emit.number import Number, polynomial, select
from fxarray.devices.cpu.emit.outline import outlined
from fxarray.devices.cpu.emit.trigonometric import cosine_near, sine_near

Coefficients: TypeAlias = tuple[float, ...]
Sum: TypeAlias = tuple[Number, Number]
Ratio: TypeAlias = Callable[[Number, Coefficients, Coefficients], Sum]

# lgamma(x) / ((x - 1) (x - 2)) in powers of x - 1/2.
_LGAMMA_ABOVE = (
    0.7631532572329335, 4.955647544286538, 12.797403179703334, 16.83569196165339,
    12.035910652292806, 4.634792647649988, 0.8998600498076373, 0.07610194823052806,
    0.0020067489282087738, 3.5049735765493133e-06,
)  # fmt: skip
_LGAMMA_BELOW = (
    1.0, 7.2575010421575525, 21.372178126066263, 32.93306098081262, 28.619388356612724,
    14.139349669353829, 3.8290285727171818, 0.5216020520896191, 0.030138978662485067,
    0.0004960447075372118,
)  # fmt: skip
# digamma(x) / (x - its zero) in powers of x - 1/2.
_DIGAMMA_ABOVE = (
    2.041851487905516, 4.332165540097747, 3.1949224594776324, 1.0535484104510076,
    0.1612449552886124, 0.010452654775938885, 0.00021120224388298283, 2.5373369924009864e-07,
)  # fmt: skip
_DIGAMMA_BELOW = (
    1.0, 3.5950416650657653, 4.10825291870884, 2.0760551253132493, 0.5083504733101368,
    0.05927375000022569, 0.0028935791100576144, 4.077044501011831e-05,
)  # fmt: skip
_DIGAMMA_ZERO = (1.4616321449683622, 9.549995429965697e-17)
# Bernoulli's numbers B(2), B(4), ...
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)


def _series(divisors: list[float]) -> tuple[float, ...]:
    return tuple([number / divisor for number, divisor in zip(_BERNOULLI, divisors, strict=True)])


_STIRLING = _series([2.0 * k * (2 * k - 1) for k in range(1, 9)])
_DIGAMMA_SERIES = _series([2.0 * k for k in range(1, 9)])
_HALF_LOG_2_PI = 0.5 * math.log(2 * math.pi)


def lgamma(x: Number) -> Number:
    if x.type == "float":
        (result,) = outlined("lgamma.single", lambda a: (_lgamma(a, _quick_ratio),), x.to_double())
        return result.to_float()
    (result,) = outlined("lgamma", lambda a: (_lgamma(a, _exact_ratio),), x)
    return result


def digamma(x: Number) -> Number:
    if x.type == "float":
        (result,) = outlined(
            "digamma.single", lambda a: (_digamma(a, _quick_ratio),), x.to_double()
        )
        return result.to_float()
    (result,) = outlined("digamma", lambda a: (_digamma(a, _exact_ratio),), x)
    return result


def _quick_ratio(x: Number, above: Coefficients, below: Coefficients) -> Sum:
    return polynomial(x, above) / polynomial(x, below), x.like(0.0)


def _exact_ratio(x: Number, above: Coefficients, below: Coefficients) -> Sum:
    return quotient_of_sums(compensated_polynomial(x, above), compensated_polynomial(x, below))


def _turn(x: Number) -> tuple[Number, Number]:
    """|sin(pi x)| and cos(pi x), up to the sign that the whole part of x gives both."""
    r = x - x.round()
    size = abs(r)
    steep = size > 0.25
    angle = select(steep, 0.5 - size, size) * math.pi
    square = angle * angle
    sine, cosine = sine_near(angle, square), cosine_near(square)
    return select(steep, cosine, sine), select(steep, sine, cosine)


def _lgamma(x: Number, ratio: Ratio) -> Number:
    size = abs(x)
    # Between -1/2 and 1/2 gamma(x) is gamma(x + 1) / x; below, it is reflected.
    small = size < 0.5
    value = _positive_lgamma(select(small, x + 1.0, size), ratio)
    sine, _ = _turn(x)
    reflected = math.log(math.pi) - log(size * sine) - value
    value = select(small, value - log(size), select(x < 0.0, reflected, value))
    pole = (x <= 0.0) & x.floor().equals(x)
    value = select(pole, float("inf"), value + 0.0)
    return select(size < float("inf"), value, x)


def _positive_lgamma(x: Number, ratio: Ratio) -> Number:
    """For x >= 1/2."""
    near, product = x, x.like(1.0)
    for _ in range(5):
        above = near > 3.0
        near = select(above, near - 1.0, near)
        product = select(above, product * near, product)
    fraction = ratio(near - 0.5, _LGAMMA_ABOVE, _LGAMMA_BELOW)
    zeros = product_of_sums((near - 1.0, x.like(0.0)), exact_sum(near, x.like(-2.0)))
    below, rest = product_of_sums(fraction, zeros)
    below = below + select(x > 3.0, rest + log(product), rest)
    # Stirling: (x - 1/2) (log(x) - 1) - 1/2 + log(2 pi) / 2 + ...
    high, low = log_in_two(x)
    high, error = exact_sum(high - 1.0, low)
    factor = x - 0.5
    leading, rest = exact_product(factor, high)
    rest = factor.fma(error, rest)
    inverse = 1.0 / x
    tail = inverse * polynomial(inverse * inverse, _STIRLING)
    above = leading + (rest + (tail + (_HALF_LOG_2_PI - 0.5)))
    # What overflows has no error to add.
    above = select(x > 2.5e305, leading, above)
    return select(x < 8.0, below, above)


def _digamma(x: Number, ratio: Ratio) -> Number:
    small = abs(x) < 0.5
    reflected = x <= -0.5
    value = _positive_digamma(select(small, x + 1.0, select(reflected, 1.0 - x, x)), ratio)
    sine, cosine = _turn(x)
    r = x - x.round()
    cotangent = (cosine / sine * math.pi).with_sign_of(r)
    value = select(small, value - 1.0 / x, select(reflected, value - cotangent, value))
    pole = reflected & x.floor().equals(x)
    return select(pole, float("nan"), value)


def _positive_digamma(x: Number, ratio: Ratio) -> Number:
    """For x >= 1/2."""
    near, total = x, x.like(0.0)
    for _ in range(5):
        above = near > 3.0
        near = select(above, near - 1.0, near)
        total = select(above, total + 1.0 / near, total)
    fraction = ratio(near - 0.5, _DIGAMMA_ABOVE, _DIGAMMA_BELOW)
    distance, low = exact_sum(near, x.like(-_DIGAMMA_ZERO[0]))
    below, rest = product_of_sums(fraction, (distance, low - _DIGAMMA_ZERO[1]))
    below = below + (rest + total)
    inverse = 1.0 / x
    square = inverse * inverse
    tail = inverse.fma(0.5, square * polynomial(square, _DIGAMMA_SERIES))
    return select(x < 8.0, below, log(x) - tail)
