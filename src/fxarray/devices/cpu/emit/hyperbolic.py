"""expm1, hyperbolic functions, their inverses, and the logistic function."""

from __future__ import annotations

import math
from collections.abc import Callable

from fxarray.devices.cpu.emit.exponential import COEFFICIENTS, reduce_by_log2, scale
from fxarray.devices.cpu.emit.logarithm import log1p
from fxarray.devices.cpu.emit.number import BIAS, MANTISSA, Number, polynomial, select
from fxarray.devices.cpu.emit.outline import outlined

# Minimax fits in powers of x**2, to the error relative to the function: (tanh(x) - x) / x**3 for
# |x| <= 0.6, and (sinh(x) - x) / x**3 for |x| <= 1.
_TANH = {
    "float": (-0.33333297453142763, 0.133319069909459, -0.05378219783685906, 0.02078993103959251,
              -0.005887541912079517),
    "double": (-0.3333333333333312, 0.13333333333298608, -0.0539682539487678,
               0.021869487989528015, -0.008863226593301278, 0.0035920357761973893,
               -0.001455206472110293, 0.0005871569176639021, -0.0002303278895223505,
               7.922902725762828e-05, -1.7133685464767162e-05),
}  # fmt: skip
_SINH = {
    "float": (0.1666666649622387, 0.008333350157701225, 0.00019836139440129703,
              2.8170735595374534e-06),
    "double": (0.16666666666666669, 0.008333333333333146, 0.00019841269841433485,
               2.7557319156538446e-06, 2.5052123224975902e-08, 1.6057252646533063e-10,
               7.758971958016187e-13),
}  # fmt: skip


def expm1(x: Number) -> Number:
    """
    exp(x) - 1 = (s - 1) + s * (r + t) for s = 2**n and exp(r) - 1 = r + t; s * r is added with its
    rounding error. Half of s, since s itself overflows before exp(x) - 1 does.
    """
    low, high = {"float": (-18.0, 89.0), "double": (-38.0, 710.0)}[x.type]
    n, r = reduce_by_log2(x.at_least(low).at_most(high))
    t = r * r * polynomial(r, COEFFICIENTS[x.type])
    s = (((n - 1.0).to_integer() + BIAS[n.type]) << MANTISSA[n.type]).as_float(n.type)
    whole, part = s - 0.5, s * r
    # |whole| >= |part| unless it is 0: then the sum's error is what part loses.
    total = whole + part
    lost = part - (total - whole)
    value = (total + s.fma(t, lost)) * 2.0
    # Half of a subnormal number is not exact, and -0 must stay.
    return select(abs(x) < 2.0**-60, x, value)


def _odd(x: Number, coefficients: dict[str, tuple[float, ...]]) -> Number:
    square = x * x
    return (square * x).fma(polynomial(square, coefficients[x.type]), x)


def _exp_near(r: Number) -> Number:
    """exp(r) for |r| <= log(2) / 2."""
    return (r * r).fma(polynomial(r, COEFFICIENTS[r.type]), r) + 1.0


def tanh(x: Number) -> Number:
    size = abs(x)
    # Where tanh is 1 the exponential need not grow any more.
    n, r = reduce_by_log2(size.at_most({"float": 10.0, "double": 20.0}[x.type]) * 2.0)
    exponential = scale(_exp_near(r), n, bounded=True)
    far = 1.0 - 2.0 / (exponential + 1.0)
    return select(size < 0.6, _odd(size, _TANH), far).with_sign_of(x)


def logistic(x: Number) -> Number:
    """1 / (1 + exp(-x)), by exp(-|x|), which does not overflow.

    The last roundings of the exponential, where it is also the numerator, and of the denominator
    are made up for in the result, which would otherwise be off by more than two units.
    """
    low = {"float": -104.0, "double": -746.0}[x.type]
    n, r = reduce_by_log2((-abs(x)).at_least(low))
    rest = (r * r).fma(polynomial(r, COEFFICIENTS[x.type]), r)
    rounded = rest + 1.0
    lost = (1.0 - rounded) + rest
    small = scale(rounded, n)
    right = x > 0.0
    below = small + 1.0
    value = select(right, x.like(1.0), small) / below
    excess = (below - 1.0) - small
    return value.fma(select(right, excess, excess + lost), value)


def _half_exp(x: Number) -> Number:
    """exp(|x|) / 2, which overflows later than the exponential."""
    n, r = reduce_by_log2(abs(x).at_most({"float": 90.0, "double": 711.0}[x.type]))
    return scale(_exp_near(r), n - 1.0)


def sinh(x: Number) -> Number:
    half = _half_exp(x)
    far = half - 0.25 / half
    return select(abs(x) < 1.0, _odd(x, _SINH), far.with_sign_of(x))


def cosh(x: Number) -> Number:
    half = _half_exp(x)
    return half + 0.25 / half


def _in_double(name: str, formula: Callable[[Number], Number], x: Number) -> Number:
    """A formula in float64, as a function of its own."""
    wide = x.to_double() if x.type == "float" else x
    (result,) = outlined(name, lambda a: (formula(a),), wide)
    return result.to_float() if x.type == "float" else result


def asinh(x: Number) -> Number:
    return _in_double("asinh", _asinh, x)


def _asinh(x: Number) -> Number:
    size = abs(x)
    large = size > 2.0**28
    square = size * size
    inner = size + square / ((square + 1.0).sqrt() + 1.0)
    value = log1p(select(large, size - 1.0, inner))
    return select(large, value + math.log(2), value).with_sign_of(x)


def acosh(x: Number) -> Number:
    return _in_double("acosh", _acosh, x)


def _acosh(x: Number) -> Number:
    large = x > 2.0**28
    t = x - 1.0
    square = t.fma(t, t * 2.0)
    root = square.sqrt()
    total = root + t
    value = log1p(select(large, t, total))
    # What the root and the sum lose changes the logarithm by that over 1 + total.
    lost = ((root - total) + t) + (-root).fma(root, square) / (root * 2.0)
    correction = select(t > 0.0, lost / (total + 1.0), 0.0)
    value = select(large, value + math.log(2), value + correction)
    return select(x < 1.0, float("nan"), value)


def atanh(x: Number) -> Number:
    return _in_double("atanh", _atanh, x)


def _atanh(x: Number) -> Number:
    size = abs(x)
    value = log1p(size * 2.0 / (1.0 - size)) * 0.5
    return select(size > 1.0, float("nan"), value).with_sign_of(x)
