"""Exponential functions.

Each writes x = n * log(2) + r with |r| <= log(2) / 2 and takes 2**n * exp(r). The coefficients are
minimax fits (Remez' algorithm in 50 digits) of (exp(r) - 1 - r) / r**2 to the error relative to
exp(r); fits of 2**r likewise.
"""

from __future__ import annotations

import math

from fxarray.devices.cpu.emit import features
from fxarray.devices.cpu.emit.number import BIAS, MANTISSA, Number, polynomial
from fxarray.devices.cpu.emit.types import vector_type

# log(2) in two parts, the first with few enough bits that n times it is exact.
LOG2_HIGH = {"float": 0.693359375, "double": 0.6931471803691238}
LOG2_LOW = {"float": -0.00021219444005469057, "double": 1.9082149292705877e-10}

_EXP = {
    "float": (
        0.4999999337255387, 0.16666519530509877, 0.04166840133866042, 0.00836885036458047,
        0.001381430204460704,
    ),
    "double": (
        0.4999999999999829, 0.16666666666610674, 0.04166666666816104, 0.008333333371320308,
        0.0013888888511568156, 0.00019841184559703796, 2.4801934604976874e-05,
        2.763530118698887e-06, 2.7476442224501625e-07,
    ),
}  # fmt: skip

# Beyond these exp overflows, or is less than half of the least number.
_RANGE = {"float": (-104.0, 89.0), "double": (-746.0, 710.0)}


def scale(x: Number, n: Number) -> Number:
    """x * 2**n for whole n, rounded once, for |n| up to twice the range of exponents.

    Args:
      x: numbers between 1/4 and 4.
      n: whole numbers as floats.
    """
    if features.scales_by_powers_of_two():
        return _scale_instruction(x, n)
    bits, bias = MANTISSA[x.type], BIAS[x.type]
    whole = n.to_integer()
    # Two factors, since one would leave the range of exponents. The first product is exact.
    half = whole >> 1
    first = ((half + bias) << bits).as_float(x.type)
    second = ((whole - half + bias) << bits).as_float(x.type)
    return x * first * second


def _scale_instruction(x: Number, n: Number) -> Number:
    type_ = {"float": "f32", "double": "f64"}[x.type]
    whole = vector_type("i32", x.lanes)
    suffix = type_ if x.lanes == 1 else f"v{x.lanes}{type_}"
    exponent = "i32" if x.lanes == 1 else f"v{x.lanes}i32"
    name = f"llvm.ldexp.{suffix}.{exponent}"
    x.f.declare(f"declare {x.whole_type} @{name}({x.whole_type}, {whole})")
    integer = n.f.new(f"fptosi {n.whole_type} {n.operand} to {whole}")
    return x.new(f"call {x.whole_type} @{name}({x.whole_type} {x.operand}, {whole} {integer})")


def reduce_by_log2(x: Number) -> tuple[Number, Number]:
    """n and r of x = n * log(2) + r."""
    n = (x * (1 / math.log(2))).round()
    r = n.fma(-LOG2_HIGH[x.type], x)
    return n, n.fma(-LOG2_LOW[x.type], r)


def exp(x: Number) -> Number:
    low, high = _RANGE[x.type]
    x = x.at_least(low).at_most(high)
    n, r = reduce_by_log2(x)
    tail = polynomial(r, _EXP[x.type])
    return scale((r * r).fma(tail, r) + 1.0, n)
