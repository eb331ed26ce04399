"""Cube roots and powers."""

from __future__ import annotations

import math

from fxarray.devices.cpu.emit.exact import exact_product, exact_sum
from fxarray.devices.cpu.emit.exponential import exp2_of, scale
from fxarray.devices.cpu.emit.logarithm import split
from fxarray.devices.cpu.emit.number import Number, polynomial, select
from fxarray.devices.cpu.emit.outline import outlined

# Minimax fits in powers of s**2 for 1 + f = (1 + s) / (1 - s) between sqrt(1/2) and sqrt(2), to the
# error relative to the logarithm: log2(1 + f) / s to 2**-45, and (atanh(s) - s - s**3 / 3) / s**5
# so that its logarithm is right to 2**-73.
_LOG2 = (
    2.885390081777849, 0.9617966941152344, 0.5770779417677672, 0.41220931707664743,
    0.31990287775125176, 0.28294264405227515,
)  # fmt: skip
_ARC_TANGENT = (
    0.19999999999999987, 0.14285714285722648, 0.11111111108745758, 0.09090909437960736,
    0.07692278241463817, 0.06668166270045049, 0.05837254039901418, 0.059958123232599025,
)  # fmt: skip
# 2**r for |r| <= 1/2, to 2**-29 of it.
_EXP2 = (
    1.0000000005584253, 0.6931472058863732, 0.24022646869533684, 0.05550328451193109,
    0.009618490237373068, 0.0013400063149198802, 0.0001534573324731619,
)  # fmt: skip


def cbrt(x: Number) -> Number:
    """
    A first value by a third of the exponent, then steps of Halley's method, each of which cubes the
    error: 4 %, 3e-5, 1e-14. float64 takes one more.
    """
    size = abs(x)
    # Powers of 8 bring numbers to where neither cubes nor differences leave the range.
    few, many = {"float": (20, 31), "double": (200, 300)}[x.type]
    small, large = size < 8.0**-few, size > 8.0**few
    size = size * select(small, x.like(8.0**many), select(large, x.like(8.0**-few), 1.0))
    # A third of the bits of a float is about the cube root, once the bias is made up for.
    third = (size.bits.cast("sitofp", x.type) * (1 / 3)).to_integer()
    offset = {"float": 0x2A514067, "double": 0x2A9F7893782DA1CE}[x.type]
    root = (third + offset).as_float(x.type)
    for _ in range(2 if x.type == "float" else 3):
        cube = root * root * root
        root = ((size - cube) / (cube * 2.0 + size)).fma(root, root)
    root = root * select(small, x.like(2.0**-many), select(large, x.like(2.0**few), 1.0))
    regular = (size > 0.0) & (size < float("inf"))
    return select(regular, root.with_sign_of(x), x)


def power(x: Number, y: Number) -> Number:
    (result,) = outlined("power", lambda a, b: (_power(a, b),), x, y, widest="double")
    return result


def _power(x: Number, y: Number) -> Number:
    size = abs(x)
    # 1 for every y, and everything to the power of 0, where y * log2(x) may be NaN.
    unit = size.equals(1.0) | y.equals(0.0)
    magnitude = _magnitude_single(size, y, unit) if x.type == "float" else _magnitude(size, y, unit)
    whole = y.trunc().equals(y)
    half = y * 0.5
    odd = whole & half.trunc().differs(half)
    signed = select(odd & (x.bits < 0), -magnitude, magnitude)
    undefined = (x < 0.0) & (x > float("-inf")) & ~whole
    value = select(undefined, float("nan"), signed)
    nan = select(y.equals(0.0) | x.equals(1.0), 1.0, x + y)
    return select(x.compare("uno", y), nan, value)


def _limits(size: Number, exponent: Number, y: Number) -> Number:
    """y * log2(size), corrected where size is 0 or infinite."""
    exponent = select(size.equals(0.0), y * float("-inf"), exponent)
    return select(size.equals(float("inf")), y * float("inf"), exponent)


def _magnitude_single(size: Number, y: Number, unit: Number) -> Number:
    """size ** y in float32, by way of float64."""
    k, f = split(size)
    f = f.to_double()
    s = f / (f + 2.0)
    logarithm = s.fma(polynomial(s * s, _LOG2), k.to_double())
    exponent = _limits(size.to_double(), logarithm * y.to_double(), y.to_double())
    exponent = select(unit, 0.0, exponent).at_least(-160.0).at_most(140.0)
    n = exponent.round()
    fraction = polynomial(exponent - n, _EXP2)
    # Rounded to float32, subnormal numbers included, by the conversion.
    return scale(fraction, n).to_float()


def _magnitude(size: Number, y: Number, unit: Number) -> Number:
    """size ** y in float64, with the logarithm in two parts."""
    high, low = _log2_in_two(size)
    product, error = exact_product(high, y)
    rest = low.fma(y, error)
    product = select(unit, 0.0, _limits(size, product, y))
    inside = abs(product) < 1100.0
    rest = select(inside & ~unit, rest, 0.0)
    product = product.at_least(-1100.0).at_most(1100.0)
    n = product.round()
    return exp2_of(n, (product - n) + rest)


def _log2_in_two(size: Number) -> tuple[Number, Number]:
    """log2 of a positive size as a sum of two floats, right to 2**-65."""
    k, f = split(size)
    below = f + 2.0
    s = f / below
    below_low = (2.0 - below) + f
    s_low = ((-s).fma(below, f) - s * below_low) / below
    square, square_low = exact_product(s, s)
    square_low = s.fma(s_low * 2.0, square_low)
    # s**3 / 3, its factor 1/3 in two parts too.
    cube, cube_low = exact_product(square, s)
    cube_low = square.fma(s_low, square_low.fma(s, cube_low))
    third, third_low = exact_product(cube, s.like(1 / 3))
    third_low = cube_low.fma(1 / 3, cube.fma(1.850371707708594e-17, third_low))
    tail = square * cube * polynomial(square, _ARC_TANGENT)
    total, error = exact_sum(s, third)
    rest = error + (third_low + (s_low + tail))
    # atanh(s) is half the logarithm.
    total, rest = exact_sum(total, rest)
    scaled, scaled_low = exact_product(total, s.like(2 / math.log(2)))
    scaled_low = rest.fma(2 / math.log(2), total.fma(4.0710547481862066e-17, scaled_low))
    high, error = exact_sum(k, scaled)
    return high, error + scaled_low
