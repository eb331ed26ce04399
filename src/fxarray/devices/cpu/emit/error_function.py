"""The error function, its complement and its inverse.

All coefficients are minimax fits (Remez' algorithm in 50 digits).
"""

from __future__ import annotations

import math

from fxarray.devices.cpu.emit.exact import exact_product, exact_sum, quotient_of_sums
from fxarray.devices.cpu.emit.exponential import COEFFICIENTS, exp, reduce_by_log2, scale
from fxarray.devices.cpu.emit.logarithm import log
from fxarray.devices.cpu.emit.number import Number, polynomial, select
from fxarray.devices.cpu.emit.outline import outlined

# erf(x) / x - 1 in powers of x**2, for |x| <= 1.
_NEAR = {
    "float": (0.1283791657264859, -0.37612625824003987, 0.1128358514816765, -0.02685381195624484,
              0.005188327772227528, -0.000801019469249401, 7.853865729500792e-05),
    "double": (0.1283791670955126, -0.37612638903183754, 0.1128379167095512, -0.026866170645129913,
               0.005223977625423731, -0.0008548327021947367, 0.00012055332902917211,
               -1.492564755707065e-05, 1.646204505715659e-06, -1.6364634948625502e-07,
               1.4792319620810477e-08, -1.216399790903702e-09, 8.706865980698923e-11,
               -4.22729190214823e-12),
}  # fmt: skip
# log2(erfc(x)) for 1 <= x <= 4, as right as 1 - erfc(x) in float32 needs it; and 2**r.
_LOG2_COMPLEMENT = (
    0.00021425767542664008, -1.6293700057556408, -0.9140699614974336, -0.15584896054137792,
    0.0360101958191711, -0.005933110226843663, 0.0006099060255344092, -2.90190283162314e-05,
)  # fmt: skip
_EXP2 = (
    1.0000000720729265, 0.6931469657752414, 0.24022117630959053, 0.05550714470337805,
    0.009675654881542402, 0.001327636352037086,
)  # fmt: skip
# exp(x**2) * erfc(x) * (1 + 2 x) in powers of (x - 5/2) / (x + 5/2), for 1/2 <= x <= 27.3. The
# argument maps all positive numbers to (-1, 1), where the function is smooth.
_SCALED = (
    1.2648381843668615, -0.12235676308240431, -0.0990245395736017, 0.15762991902322107,
    -0.10296705603857932, 0.03276089326854397, 0.0009318928176091663, -0.004382078337943127,
    0.000491865806823614, 0.0006321243151777661, -8.847915742339499e-05, -0.00011352220757796792,
    6.265379785626665e-06, 2.2699193261782517e-05, 2.6120720118756302e-06, -4.218036628408898e-06,
    -1.5946693805467077e-06, 5.320262568126663e-07, 5.500287939358883e-07, 1.857161428890585e-08,
    -1.4088172901043423e-07, -2.167834652017924e-08, 2.389056660363178e-08,
)  # fmt: skip
# erf_inv(x) / x - 1 for w = -log(1 - x**2): below 5 in powers of w - 1/2, above in powers of
# sqrt(w) - 3 (right to 2**-27, for w up to 16) and of sqrt(w) - 4 (to 2**-22, for w up to 36).
_INVERSE_NEAR = (
    0.0048226846549686, 0.24176247663946157, 0.00791409161732734, -0.0024716840049615906,
    -8.541384597387652e-06, 4.691589414968639e-05, -9.141888401231783e-07, -1.4081047083259502e-06,
    2.363443302476624e-07, -1.5483507324224677e-08, 3.3553399246296033e-10,
)  # fmt: skip
_INVERSE_FAR = {
    "float": (1.8329767960352075, 1.0016750741882192, 0.009445655005411323, -0.007639175026854042,
              0.005683478077426287, -0.0035881796492925897, 0.001494934411579339,
              -7.43271920808948e-05, -0.0003179021182930453, 0.0001274459407319477),
    "double": (2.839784310397279, 1.009493403635281, 0.0012494598020520058, -0.0008708478755854284,
               0.00035521886910783217, -0.0001151813731574638, 1.3913420996081328e-05,
               -3.152546583098294e-05, 4.1764952606852485e-05, -1.2030184171977746e-05,
               -2.6113104650412412e-06, 1.1713989901943217e-06),
}  # fmt: skip


def _near(x: Number) -> Number:
    """erf(x) - x, for |x| <= 1."""
    return x * polynomial(x * x, _NEAR[x.type])


def _complement(x: Number) -> Number:
    """erfc(x) for x >= 1/2, in float64."""
    t = (x - 2.5) / (x + 2.5)
    # The last sums, with their errors: first + second is the polynomial, and the same times
    # 1 + bell is above + above_low.
    constant, *rest = _SCALED
    slope = t * polynomial(t, tuple(rest))
    first = slope + constant
    second = (constant - first) + slope
    square, low = exact_product(x, x)
    n, r = reduce_by_log2(-square)
    r = r - low
    bell = (r * r).fma(polynomial(r, COEFFICIENTS[x.type]), r)
    more = first.fma(bell, second)
    above = first + more
    above_low = (first - above) + more
    # The quotient by 1 + 2 x, with what the sum and the quotient lack made up for.
    below, below_low = exact_sum(x * 2.0, x.like(1.0))
    ratio, lacking = quotient_of_sums((above, above_low), (below, below_low))
    return scale(ratio + lacking, n)


def erf(x: Number) -> Number:
    if x.type == "double":
        (result,) = outlined("erf", lambda a: (_erf(a),), x)
        return result
    size = abs(x).at_most(4.0)
    exponent = polynomial(size, _LOG2_COMPLEMENT)
    n = exponent.round()
    power = polynomial(exponent - n, _EXP2).bits + (n.to_integer() << 23)
    far = 1.0 - power.as_float("float")
    return select(abs(x) > 1.0, far.with_sign_of(x), x + _near(x))


def _erf(x: Number) -> Number:
    size = abs(x)
    far = 1.0 - _complement(size.at_least(0.5).at_most(7.0))
    return select(size > 1.0, far.with_sign_of(x), x + _near(x))


def erfc(x: Number) -> Number:
    if x.type == "float":
        return erfc(x.to_double()).to_float()
    (result,) = outlined("erfc", lambda a: (_erfc(a),), x)
    return result


def _erfc(x: Number) -> Number:
    size = abs(x)
    far = _complement(size.at_least(0.5).at_most(28.0))
    far = select(x < 0.0, 2.0 - far, far)
    near = (1.0 - x) - _near(x)
    return select((x < 0.5) & (x > -1.0), near, far)


def erf_inv(x: Number) -> Number:
    if x.type == "double":
        (result,) = outlined("erf_inv", lambda a: (_erf_inv(a),), x)
        return result
    return select(abs(x).equals(1.0), x * float("inf"), x.fma(_inverse_ratio(x), x))


def _inverse_ratio(x: Number) -> Number:
    """erf_inv(x) / x - 1, within about 2**-22 in float64."""
    w = -log((1.0 - x) * (x + 1.0))
    near = polynomial(w - 0.5, _INVERSE_NEAR)
    middle = {"float": 3.0, "double": 4.0}[x.type]
    far = polynomial(w.sqrt() - middle, _INVERSE_FAR[x.type])
    return select(w < 5.0, near, far)


def _erf_inv(x: Number) -> Number:
    """A first value, and a step of Halley's method, which cubes its error."""
    size = abs(x)
    first = size.fma(_inverse_ratio(size), size)
    far = _complement(first.at_least(0.5))
    excess = select(size > 0.75, (1.0 - size) - far, (first - size) + _near(first))
    step = excess * exp(first * first) * (math.sqrt(math.pi) / 2)
    value = first - step / first.fma(step, 1.0)
    value = select(size.equals(1.0), float("inf"), select(size.equals(0.0), size, value))
    return value.with_sign_of(x)
