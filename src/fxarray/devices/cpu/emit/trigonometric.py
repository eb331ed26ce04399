"""Sine, cosine and tangent for every argument.

x = n * pi/2 + r with whole n and |r| <= pi/4; n says which of sin(r) and cos(r) is taken, and its
sign. Up to some bound pi/2 in three parts makes r exact enough; beyond, on a branch that is rarely
taken, x * 2/pi modulo 4 is computed with as many bits of 2/pi as x asks for (Payne and Hanek's
method).
"""

from __future__ import annotations

import math

from fxarray.devices.cpu.emit.exact import exact_product, exact_sum
from fxarray.devices.cpu.emit.number import Number, literal_vector, polynomial, select
from fxarray.devices.cpu.emit.outline import outlined
from fxarray.devices.cpu.emit.types import vector_type

# Minimax fits for |r| <= pi/4 in powers of r**2: (sin(r) - r) / r**3 to the error relative to
# sin(r), and (cos(r) - 1 + r**2 / 2) / r**4 to that relative to cos(r).
_SINE = {
    "float": (-0.16666654536596848, 0.008332156048343031, -0.0001951463135293369),
    "double": (-0.1666666666666663, 0.008333333333322005, -0.00019841269829496067,
               2.755731358780748e-06, -2.505074233623039e-08, 1.5895906328739568e-10),
}  # fmt: skip
_COSINE = {
    "float": (0.04166664555498668, -0.0013887309892444777, 2.4432415917448583e-05),
    "double": (0.041666666666666595, -0.0013888888888872895, 2.4801587288748674e-05,
               -2.7557314148755765e-07, 2.087569658965009e-09, -1.1358311335030244e-11),
}  # fmt: skip
_HALF_PI = {
    "float": (1.5707963705062866, -4.371138828673793e-08, -1.7151245100058819e-15),
    "double": (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591698e-33),
}
# Up to here n times the parts of pi/2 leaves r right: its first part times n is exact, and what the
# last part lacks is below the least r that a number of the format leaves.
_BOUND = {"float": 1e5, "double": 2.0**28}
# Bits 53 * j to 53 * j + 52 after the point of 2 / pi, as fractions.
_TWO_OVER_PI = (
    0.6366197723675813, 0.6455004762340146, 0.8260347502167291, 0.6177029686506639,
    0.22946046207480975, 0.28461387860774945, 0.006138546976630632, 0.5660391411155584,
    0.16270821739654884, 0.6478181222020806, 0.752362340216695, 0.7848375294503177,
    0.2882121784458589, 0.3143043483578357, 0.505462883924126, 0.35474129975356194,
    0.495348441190541, 0.9093006150323975, 0.7102755855591438, 0.9716433593102769,
    0.645159640989469, 0.38377539675336436, 0.7971457910852385, 0.5253582608053253,
    0.1158735494549279,
)  # fmt: skip
_PIECES = 5
_SIGN_SHIFT = {"float": 31, "double": 63}


def sin(x: Number) -> Number:
    n, r = _reduce(abs(x))
    quadrant = n.to_integer()
    square = r * r
    size = select(_is_odd(quadrant), cosine_near(square), sine_near(r, square))
    sign = (quadrant >> 1 << _SIGN_SHIFT[x.type]) ^ _sign_bit(x)
    return (size.bits ^ sign).as_float(x.type)


def cos(x: Number) -> Number:
    n, r = _reduce(abs(x))
    quadrant = n.to_integer()
    square = r * r
    size = select(_is_odd(quadrant), sine_near(r, square), cosine_near(square))
    sign = (quadrant + 1) >> 1 << _SIGN_SHIFT[x.type]
    return (size.bits ^ sign).as_float(x.type)


def _is_odd(n: Number) -> Number:
    return (n & 1).differs(0)


def _sign_bit(x: Number) -> Number:
    return x.bits & (-1 << _SIGN_SHIFT[x.type])


def sine_near(r: Number, square: Number) -> Number:
    """sin(r) for |r| <= pi/4, given r and its square."""
    return (square * r).fma(polynomial(square, _SINE[r.type]), r)


def cosine_near(square: Number) -> Number:
    """cos(r) for |r| <= pi/4, given the square of r."""
    tail = polynomial(square, _COSINE[square.type])
    return (square * square).fma(tail, square.fma(-0.5, 1.0))


def tan(x: Number) -> Number:
    """
    The sine over the cosine, or minus the cosine over the sine, each with the rounding error of its
    last sum, which then corrects the quotient.
    """
    n, r, low = _reduce_exactly(abs(x))
    odd = _is_odd(n.to_integer())
    square = r * r
    rise = (square * r).fma(polynomial(square, _SINE[x.type]), low)
    sine = r + rise
    sine_low = (r - sine) + rise
    half = square * 0.5
    fall = (square * square).fma(polynomial(square, _COSINE[x.type]), -(r * low))
    whole = 1.0 - half
    cosine = whole + fall
    cosine_low = ((1.0 - whole) - half) + ((whole - cosine) + fall)
    above, above_low = select(odd, -cosine, sine), select(odd, -cosine_low, sine_low)
    below, below_low = select(odd, sine, cosine), select(odd, sine_low, cosine_low)
    inverse = 1.0 / below
    quotient = above * inverse
    lacking = (-quotient).fma(below, above) + (-quotient).fma(below_low, above_low)
    return (lacking.fma(inverse, quotient).bits ^ _sign_bit(x)).as_float(x.type)


def _reduce(x: Number) -> tuple[Number, ...]:
    """n and r of x = n * pi/2 + r, for positive x."""
    n = (x * (2 / math.pi)).round()
    r = x
    for part in _HALF_PI[x.type]:
        r = n.fma(-part, r)
    return _reduce_large(x, n, r)


def _reduce_exactly(x: Number) -> tuple[Number, ...]:
    """n, r and low of x = n * pi/2 + r + low, for positive x."""
    first, second, third = _HALF_PI[x.type]
    n = (x * (2 / math.pi)).round()
    product = n * -second
    r, error = exact_sum(n.fma(-first, x), product)
    low = n.fma(-third, error + n.fma(-second, -product))
    return _reduce_large(x, n, r, low)


def _reduce_large(x: Number, *usual: Number) -> tuple[Number, ...]:
    """n, r and perhaps low: the usual ones, or others where x is large."""
    f, type_ = x.f, x.whole_type
    places = [f.alloca(type_, number.operand) for number in usual]
    large = (x > _BOUND[x.type]) & (x < float("inf"))

    def reduce_again() -> None:
        n, r, low = outlined("reduce", _payne_hanek, x.to_double(), rare=True)
        if x.type == "float":
            narrow = r.to_float()
            n, r, low = n.to_float(), narrow, (r - narrow.to_double()).to_float()
        for place, old, new in zip(places, usual, (n, r, low), strict=False):
            f.do(f"store {type_} {select(large, new, old).operand}, ptr {place}")

    f.branch(large.any(), reduce_again)
    return tuple([
        Number(f, x.type, x.lanes, f.new(f"load {type_}, ptr {place}")) for place in places
    ])  # fmt: skip


# --- large arguments ------------------------------------------------------------------------------


def _modulo(x: Number, period: float) -> Number:
    """x less its nearest multiple of a power of two, exactly."""
    return x - (x * (1 / period)).round() * period


def _scaled(x: Number) -> tuple[Number, Number]:
    """j, and x * 2**(-53 * j), which is below 2**108.

    With exponent e of x and j = floor((e - 54) / 53), what stands before bit 53 * j of 2/pi times x
    is a multiple of 4. The five pieces of 53 bits from there on give x * 2/pi modulo 4 to 2**-150.
    """
    bits = x.bits
    above = ((bits >> 52) - (1023 + 54)).intrinsic("smax", 0).intrinsic("smin", 969)
    # Division by 53, right for numbers up to 969.
    first = (above * 1237) >> 16
    return first, (bits - ((first * 53) << 52)).as_float("double")


def _table(x: Number) -> str:
    constant = literal_vector(_TWO_OVER_PI, "double")
    name = "@two.over.pi"
    text = f"[{constant[1:-1]}]"
    length = len(_TWO_OVER_PI)
    x.f.declare(f"{name} = private unnamed_addr constant [{length} x double] {text}, align 64")
    return name


def _look_up(table: str, index: Number) -> Number:
    f, lanes = index.f, index.lanes
    pointers = f.new(f"getelementptr double, ptr {table}, {index.whole_type} {index.operand}")
    if lanes == 1:
        return Number(f, "double", 1, f.new(f"load double, ptr {pointers}"))
    vector, many, truth = (vector_type(t, lanes) for t in ("double", "ptr", "i1"))
    name = f"@llvm.masked.gather.v{lanes}f64.v{lanes}p0"
    f.declare(f"declare {vector} {name}({many}, i32, {truth}, {vector})")
    operands = f"{many} {pointers}, i32 8, {truth} splat (i1 true), {vector} zeroinitializer"
    return Number(f, "double", lanes, f.new(f"call {vector} {name}({operands})"))


def _payne_hanek(x: Number) -> tuple[Number, ...]:
    """n modulo 4, r and low of x = n * pi/2 + r + low, in float64."""
    f, type_ = x.f, x.whole_type
    first, scaled = _scaled(x)
    table = _table(x)
    # The place in the table, what is multiplied by it, and a sum of three parts, of which the first
    # is exact modulo 4.
    places = [f.alloca(first.whole_type, first.operand), f.alloca(type_, scaled.operand)]
    places += [f.alloca(type_, x.like(0.0).operand) for _ in range(3)]

    def read() -> list[Number]:
        types = ("i64", *["double"] * 4)
        return [
            Number(f, t, x.lanes, f.new(f"load {vector_type(t, x.lanes)}, ptr {place}"))
            for t, place in zip(types, places, strict=True)
        ]

    def add_piece(_: str) -> None:
        index, factor, total, low, lowest = read()
        chunk = _look_up(table, index)
        product, rest = exact_product(factor, chunk)
        for part in (product, rest):
            total, error = exact_sum(total, _modulo(part, 4.0))
            low, error = exact_sum(low, error)
            lowest = lowest + error
        following = (index + 1, factor * 2.0**-53, total, low, lowest)
        for place, number in zip(places, following, strict=True):
            f.do(f"store {number.whole_type} {number.operand}, ptr {place}")

    f.loop(0, _PIECES, 1, add_piece)
    _, _, total, low, lowest = read()
    turns = _modulo(total, 4.0)
    n = turns.round()
    high, error = exact_sum(turns - n, low)
    low = error + lowest
    high, low = exact_sum(high, low)
    part, rest, _ = _HALF_PI["double"]
    product = high * part
    lacking = high.fma(part, -product) + high.fma(rest, low * part)
    r = product + lacking
    return n, r, lacking + (product - r)
