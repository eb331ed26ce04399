"""expm1, hyperbolic functions and the logistic function, and the inverses of the former.

All rest on exp(x) - 1 = (s - 1) + s * (r + t), where s = 2**n and r + t = exp(r) - 1; that keeps
the digits of small x.
"""

from __future__ import annotations

import math

from fxarray.devices.cpu.emit.exponential import COEFFICIENTS, exp, reduce_by_log2, scale
from fxarray.devices.cpu.emit.logarithm import log1p
from fxarray.devices.cpu.emit.number import BIAS, MANTISSA, Number, polynomial, select


def _power_of_two(n: Number) -> Number:
    """2**n for whole n in the range of normal exponents."""
    return ((n.to_integer() + BIAS[n.type]) << MANTISSA[n.type]).as_float(n.type)


def _terms(x: Number) -> tuple[Number, Number, Number]:
    """n, r and t of exp(x) = 2**n * (1 + r + t); |t| is at most r * r."""
    n, r = reduce_by_log2(x)
    return n, r, r * r * polynomial(r, COEFFICIENTS[x.type])


def _minus_one(s: Number, r: Number, t: Number) -> Number:
    """(s - 1) + s * (r + t) for a power of two s."""
    whole, part = s - 1.0, s * r
    # |whole| >= |part| unless it is 0: then the sum's error is what part loses.
    total = whole + part
    lost = part - (total - whole)
    return total + s.fma(t, lost)


def expm1(x: Number) -> Number:
    # Half of s, since s itself overflows before exp(x) - 1 does.
    low, high = {"float": (-18.0, 89.0), "double": (-38.0, 710.0)}[x.type]
    n, r, t = _terms(x.at_least(low).at_most(high))
    s = _power_of_two(n - 1.0)
    whole, part = s - 0.5, s * r
    total = whole + part
    lost = part - (total - whole)
    value = (total + s.fma(t, lost)) * 2.0
    # Half of a subnormal number is not exact, and -0 must stay.
    return select(abs(x) < 2.0**-60, x, value)


def tanh(x: Number) -> Number:
    size = abs(x).at_most({"float": 9.5, "double": 20.0}[x.type])
    n, r, t = _terms(size * 2.0)
    value = _minus_one(_power_of_two(n), r, t)
    return (value / (value + 2.0)).with_sign_of(x)


def logistic(x: Number) -> Number:
    """1 / (1 + exp(-x)), by exp(-|x|), which does not overflow."""
    small = exp(-abs(x))
    return select(x > 0.0, x.like(1.0), small) / (small + 1.0)


def sinh(x: Number) -> Number:
    high = {"float": 90.0, "double": 711.0}[x.type]
    n, r, t = _terms(abs(x).at_most(high))
    # e = exp(|x|) - 1 below the bound, where its square does not overflow.
    e = _minus_one(_power_of_two(n.at_most(60.0)), r, t)
    near = (e + e / (e + 1.0)) * 0.5
    far = scale(r + t + 1.0, n - 1.0)
    return select(n > 30.0, far, near).with_sign_of(x)


def cosh(x: Number) -> Number:
    high = {"float": 90.0, "double": 711.0}[x.type]
    n, r, t = _terms(abs(x).at_most(high))
    half = scale(r + t + 1.0, n - 1.0)
    return half + 0.25 / half


def asinh(x: Number) -> Number:
    if x.type == "float":
        return asinh(x.to_double()).to_float()
    size = abs(x)
    large = size > 2.0**28
    square = size * size
    inner = size + square / ((square + 1.0).sqrt() + 1.0)
    value = log1p(select(large, size - 1.0, inner))
    return select(large, value + math.log(2), value).with_sign_of(x)


def acosh(x: Number) -> Number:
    if x.type == "float":
        return acosh(x.to_double()).to_float()
    large = x > 2.0**28
    t = x - 1.0
    root = t.fma(t, t * 2.0).sqrt()
    value = log1p(select(large, t, t + root))
    value = select(large, value + math.log(2), value)
    return select(x < 1.0, float("nan"), value)


def atanh(x: Number) -> Number:
    if x.type == "float":
        return atanh(x.to_double()).to_float()
    size = abs(x)
    value = log1p(size * 2.0 / (1.0 - size)) * 0.5
    return select(size > 1.0, float("nan"), value).with_sign_of(x)
