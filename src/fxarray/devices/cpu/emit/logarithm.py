"""Logarithms.

x = 2**k * (1 + f) with 1 + f between sqrt(1/2) and sqrt(2). In float32 log(1 + f) is a minimax
polynomial; in float64 it is 2 * atanh(s) for s = f / (2 + f), whose series in s**2 (coefficients
by the same fit, relative to the logarithm) is short.
"""

from __future__ import annotations

import math

from fxarray.devices.cpu.emit.exact import exact_sum
from fxarray.devices.cpu.emit.exponential import LOG2_HIGH, LOG2_LOW
from fxarray.devices.cpu.emit.number import BIAS, MANTISSA, Number, polynomial, select

# Of (log(1 + f) - f + f**2 / 2) / f**3 in float32.
_SINGLE = (
    0.3333333170099483, -0.25000820991357203, 0.20001227305391342, -0.16623358724630838,
    0.14201751351854136, -0.131601654573641, 0.12761606072303824, -0.0763456572177855,
)  # fmt: skip
# Of (2 atanh(s) - 2 s) / s**3 in powers of s**2, in float64.
_DOUBLE = (
    0.6666666666666735, 0.39999999999409197, 0.28571428743766075, 0.2222219841635066,
    0.18183573233416614, 0.15313804244865423, 0.14798590341234688,
)  # fmt: skip
_LEAST_NORMAL = {"float": 2.0**-126, "double": 2.0**-1022}
# The bits of sqrt(1/2).
_ROOT_HALF = {"float": 0x3F3504F3, "double": 0x3FE6A09E667F3BCD}
_LOG10_2_HIGH = {"float": 0.301025390625, "double": 0.30102999566383914}
_LOG10_2_LOW = {"float": 4.605039066518657e-06, "double": 1.42050232272661e-13}


def _exponent(x: Number) -> Number:
    """k, as an integer, for normal x."""
    return (x.bits - _ROOT_HALF[x.type]) >> MANTISSA[x.type]


def split(x: Number) -> tuple[Number, Number]:
    """k as a float, and f."""
    bits = MANTISSA[x.type]
    subnormal = x < _LEAST_NORMAL[x.type]
    x = select(subnormal, x * 2.0 ** (bits + 2), x)
    exponent = _exponent(x)
    f = (x.bits - (exponent << bits)).as_float(x.type) - 1.0
    k = exponent.cast("sitofp", x.type)
    return select(subnormal, k - float(bits + 2), k), f


def rest_of_log(f: Number, addend: Number | None = None) -> Number:
    """log(1 + f) - f + addend."""
    if f.type == "float":
        square = f * f
        tail = polynomial(f, _SINGLE) * f
        higher = square * tail if addend is None else square.fma(tail, addend)
        return square.fma(-0.5, higher)
    s = f / (f + 2.0)
    z = s * s
    half = f * f * 0.5
    inner = s * (half + z * polynomial(z, _DOUBLE))
    return (inner if addend is None else inner + addend) - half


def _special(x: Number, value: Number) -> Number:
    """The value, but what it should be at 0, below 0, at infinity and NaN."""
    special = select(x.equals(0.0), float("-inf"), select(x < 0.0, float("nan"), x))
    return select((x > 0.0) & (x < float("inf")), value, special)


def _log_of(k: Number, f: Number) -> Number:
    rest = rest_of_log(f, k * LOG2_LOW[f.type])
    return k.fma(LOG2_HIGH[f.type], f + rest)


def log(x: Number) -> Number:
    return _special(x, _log_of(*split(x)))


def log_in_two(x: Number) -> tuple[Number, Number]:
    """log(x) as a sum of two floats, in float64, for positive finite x."""
    k, f = split(x)
    high, low = exact_sum(k * LOG2_HIGH[x.type], f)
    return high, low + rest_of_log(f, k * LOG2_LOW[x.type])


def log2(x: Number) -> Number:
    k, f = split(x)
    if x.type == "float":
        return _special(x, (f + rest_of_log(f)).fma(1 / math.log(2), k))
    return _special(x, k + _times(f, rest_of_log(f), 1 / math.log(2), 2.0355273740931033e-17))


def log10(x: Number) -> Number:
    k, f = split(x)
    if x.type == "float":
        low = (f + rest_of_log(f)).fma(1 / math.log(10), k * _LOG10_2_LOW[x.type])
    else:
        low = _times(f, rest_of_log(f), 1 / math.log(10), 1.098319650216765e-17)
        low = low + k * _LOG10_2_LOW[x.type]
    return _special(x, k.fma(_LOG10_2_HIGH[x.type], low))


def _times(f: Number, rest: Number, high: float, low: float) -> Number:
    """(f + rest) * (high + low), rounded about once."""
    total = f + rest
    lost = (f - total) + rest
    product = total * high
    return product + (total.fma(high, -product) + total.fma(low, lost * high))


def log1p(x: Number) -> Number:
    """
    f is (x + 1) * 2**-k - 1, by one fma without a rounding of x + 1. All times 4, so that 2**-k is
    a normal number for every k.
    """
    bits, type_ = MANTISSA[x.type], x.type
    exponent = _exponent(x + 1.0)
    four = (BIAS[type_] + 2) << bits
    scale = (exponent.like(four) - (exponent << bits)).as_float(type_)
    f = x.fma(scale, scale - 4.0) * 0.25
    value = _log_of(exponent.cast("sitofp", type_), f)
    special = select(x.equals(-1.0), float("-inf"), select(x < -1.0, float("nan"), x))
    regular = (x > -1.0) & (x < float("inf")) & x.differs(0.0)
    return select(regular, value, special)
