"""Exponential functions.

Each writes x = n * log(2) + r with |r| <= log(2) / 2 and takes 2**n * exp(r). The coefficients are
minimax fits (Remez' algorithm in 50 digits) of (exp(r) - 1 - r) / r**2 to the error relative to
exp(r); fits of 2**r likewise.
"""

from __future__ import annotations

import math

from fxarray.devices.cpu.emit import features
from fxarray.devices.cpu.emit.number import BIAS, MANTISSA, Number, polynomial, select
from fxarray.devices.cpu.emit.types import vector_type

# log(2) in two parts, the first with few enough bits that n times it is exact.
LOG2_HIGH = {"float": 0.693359375, "double": 0.6931471803691238}
LOG2_LOW = {"float": -0.00021219444005469057, "double": 1.9082149292705877e-10}

COEFFICIENTS = {
    "float": (
        0.4999999337255387, 0.16666519530509877, 0.04166840133866042, 0.00836885036458047,
        0.001381430204460704,
    ),
    "double": (
        0.5000000000000011, 0.16666666666666408, 0.04166666666652811, 0.008333333333496899,
        0.001388888894424864, 0.00019841269502806155, 2.480149238841841e-05,
        2.7557588361696845e-06, 2.763052351196804e-07, 2.499987672974475e-08,
    ),
}  # fmt: skip

# Beyond these exp overflows, or is less than half of the least number.
_RANGE = {"float": (-104.0, 89.0), "double": (-746.0, 710.0)}


def scale(x: Number, n: Number, bounded: bool = False) -> Number:
    """x * 2**n for whole n, rounded once, for |n| up to twice the range of exponents.

    Args:
      x: numbers between 1/4 and 4.
      n: whole numbers as floats.
      bounded: whether |n| is known to be less than the range of exponents.
    """
    if features.scales_by_powers_of_two():
        return _scale_instruction(x, n)
    bits, bias = MANTISSA[x.type], BIAS[x.type]
    whole = n.to_integer()
    if bounded:
        return x * ((whole + bias) << bits).as_float(x.type)
    # Two factors, since one would leave the range of exponents. The first product is exact.
    half = whole >> 1
    first = ((half + bias) << bits).as_float(x.type)
    second = ((whole - half + bias) << bits).as_float(x.type)
    return x * first * second


def _scale_instruction(x: Number, n: Number) -> Number:
    kind = {"float": "ps", "double": "pd"}[x.type]
    type_ = x.whole_type
    if x.lanes == {"float": 16, "double": 8}[x.type]:
        # LLVM's own ldexp takes integers, which this instruction would turn back into floats.
        name = f"@llvm.x86.avx512.mask.scalef.{kind}.512"
        mask = f"i{x.lanes}"
        x.f.declare(f"declare {type_} {name}({type_}, {type_}, {type_}, {mask}, i32)")
        floats = ", ".join([f"{type_} {operand}" for operand in (x.operand, n.operand, x.operand)])
        return x.new(f"call {type_} {name}({floats}, {mask} -1, i32 4)")
    whole = vector_type("i32", x.lanes)
    suffix = {"float": "f32", "double": "f64"}[x.type]
    overload = f"{suffix}.i32" if x.lanes == 1 else f"v{x.lanes}{suffix}.v{x.lanes}i32"
    name = f"@llvm.ldexp.{overload}"
    x.f.declare(f"declare {type_} {name}({type_}, {whole})")
    poison = n.f.new(f"fptosi {type_} {n.operand} to {whole}")
    integer = n.f.new(f"freeze {whole} {poison}")
    return x.new(f"call {type_} {name}({type_} {x.operand}, {whole} {integer})")


def reduce_by_log2(x: Number) -> tuple[Number, Number]:
    """n and r of x = n * log(2) + r."""
    n = (x * (1 / math.log(2))).round()
    r = n.fma(-LOG2_HIGH[x.type], x)
    return n, n.fma(-LOG2_LOW[x.type], r)


def exp(x: Number) -> Number:
    low, high = _RANGE[x.type]
    # What vanishes, as masked scores of attention do, is not scaled down to nothing: results below
    # the least normal number take a processor a hundred cycles each.
    vanishes = x < low
    x = select(vanishes, x.like(0.0), x).at_most(high)
    n, r = reduce_by_log2(x)
    tail = polynomial(r, COEFFICIENTS[x.type])
    return select(vanishes, x.like(0.0), scale((r * r).fma(tail, r) + 1.0, n))


# Fits like those of exp, for powers of two.
_EXP2 = {
    "float": (
        0.24022647511733602, 0.05550361866514748, 0.009618529530809165, 0.0013390386354587111,
        0.00015320809541336994,
    ),
    "double": (
        0.24022650695910122, 0.055504108664820716, 0.009618129107596494, 0.001333355814669015,
        0.00015403530454778574, 1.5252733543870017e-05, 1.3215436215811528e-06,
        1.0178185413203786e-07, 7.0736525504895315e-09, 4.43626967775364e-10,
    ),
}  # fmt: skip


def exp2(x: Number) -> Number:
    low, high = {"float": (-151.0, 129.0), "double": (-1076.0, 1025.0)}[x.type]
    vanishes = x < low
    x = select(vanishes, x.like(0.0), x).at_most(high)
    n = x.round()
    return select(vanishes, x.like(0.0), exp2_of(n, x - n))


def exp2_of(n: Number, r: Number) -> Number:
    """2**(n + r) for whole n and |r| <= 1/2."""
    tail = polynomial(r, _EXP2[r.type])
    return scale(r.fma(r.fma(tail, math.log(2)), 1.0), n)
