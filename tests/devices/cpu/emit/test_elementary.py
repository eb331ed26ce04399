"""Elementary functions: within 2 units in the last place of mpmath's, and NumPy's special values.

float32 is compared with float64 functions of NumPy and SciPy on many numbers, since these are right
to far less than a unit of float32; float64 with mpmath on fewer.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
import scipy.special

from fxarray.devices.cpu.native.target import OTHERS, host
from fxarray.kernel.scalars import evaluate

Values = np.ndarray[Any, Any]
FLOATS = {"f32": np.float32, "f64": np.float64}
HOST_LANES = {name: host().vector_bytes // kind().itemsize for name, kind in FLOATS.items()}
# Less than 2, since samples do not find the worst.
BOUND = 1.98


def uniform(low: float, high: float) -> Callable[..., Values]:
    return lambda rng, count: rng.uniform(low, high, count)


def powers(low: float, high: float, signed: bool = False) -> Callable[..., Values]:
    """Numbers of every size, 2**low to 2**high."""

    def draw(rng: np.random.Generator, count: int) -> Values:
        signs = rng.choice([-1.0, 1.0], count) if signed else 1.0
        return np.exp2(rng.uniform(low, high, count)) * signs

    return draw


def near_one(rng: np.random.Generator, count: int) -> Values:
    """Numbers below 1, ever closer to it, of both signs."""
    return (1 - np.exp2(rng.uniform(-24, -1, count))) * rng.choice([-1.0, 1.0], count)


def quarter_turns(rng: np.random.Generator, count: int) -> Values:
    """Numbers next to multiples of pi/2, where sines and cosines are small."""
    turns = rng.integers(1, 1 << 20, count).astype(np.float64)
    return turns * (math.pi / 2)


SINGLE, DOUBLE = (-149.0, 127.9), (-1074.0, 1023.9)

# Per function: NumPy's, mpmath's, and where numbers are drawn from.
FUNCTIONS: dict[str, tuple[Any, Any, list[Any]]] = {
    "exp": (np.exp, mpmath.exp, [uniform(-104, 89), uniform(-745, 710), powers(-60, 0, True)]),
    "exp2": (np.exp2, lambda x: mpmath.mpf(2) ** x, [uniform(-149, 128), uniform(-1074, 1024)]),
    "expm1": (np.expm1, mpmath.expm1, [uniform(-40, 89), uniform(-1, 1.5), powers(-140, 2, True)]),
    "log": (np.log, mpmath.log, [uniform(0.3, 3), powers(*SINGLE), powers(*DOUBLE)]),
    "log2": (np.log2, lambda x: mpmath.log(x, 2), [uniform(0.3, 3), powers(*SINGLE)]),
    "log10": (np.log10, mpmath.log10, [uniform(0.3, 3), powers(*SINGLE), powers(*DOUBLE)]),
    "log1p": (np.log1p, mpmath.log1p, [uniform(-1, 3), powers(*SINGLE), powers(-60, 0, True)]),
    "sin": (np.sin, mpmath.sin, [uniform(-10, 10), uniform(-2e5, 2e5), quarter_turns]),
    "cos": (np.cos, mpmath.cos, [uniform(-10, 10), uniform(-2e5, 2e5), quarter_turns]),
    "tan": (np.tan, mpmath.tan, [uniform(-10, 10), uniform(-2e5, 2e5), quarter_turns]),
    "asin": (np.arcsin, mpmath.asin, [uniform(-1, 1), near_one, powers(-140, -1, True)]),
    "acos": (np.arccos, mpmath.acos, [uniform(-1, 1), near_one, powers(-140, -1, True)]),
    "atan": (np.arctan, mpmath.atan, [uniform(-5, 5), powers(*SINGLE, True)]),
    "sinh": (np.sinh, mpmath.sinh, [uniform(-89, 89), uniform(-2, 2), powers(-140, 3, True)]),
    "cosh": (np.cosh, mpmath.cosh, [uniform(-89, 89), uniform(-2, 2)]),
    "tanh": (np.tanh, mpmath.tanh, [uniform(-10, 10), uniform(-1, 1), powers(-140, 4, True)]),
    "asinh": (np.arcsinh, mpmath.asinh, [uniform(-3, 3), powers(*SINGLE, True)]),
    "acosh": (np.arccosh, mpmath.acosh, [uniform(1, 3), powers(0, 127)]),
    "atanh": (np.arctanh, mpmath.atanh, [uniform(-1, 1), near_one, powers(-140, -1, True)]),
    "logistic": (
        scipy.special.expit,
        lambda x: 1 / (1 + mpmath.exp(-x)),
        [uniform(-103, 20), uniform(-2, 2)],
    ),
    "sqrt": (np.sqrt, mpmath.sqrt, [powers(*SINGLE), powers(*DOUBLE)]),
    "rsqrt": (lambda x: 1 / np.sqrt(x), lambda x: 1 / mpmath.sqrt(x), [powers(*SINGLE)]),
    "cbrt": (
        np.cbrt,
        lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x)),
        [uniform(-3, 3), powers(*SINGLE, True), powers(*DOUBLE, True)],
    ),
    "erf": (scipy.special.erf, mpmath.erf, [uniform(-6, 6), uniform(-1, 1), powers(-140, 3, True)]),
    "erfc": (scipy.special.erfc, mpmath.erfc, [uniform(-6, 10), uniform(0, 26), uniform(-1, 1)]),
    "erf_inv": (scipy.special.erfinv, mpmath.erfinv, [uniform(-1, 1), near_one]),
    "lgamma": (
        scipy.special.gammaln,
        mpmath.loggamma,
        [uniform(0.01, 3), uniform(2.5, 9), powers(-100, 0), powers(3, 100)],
    ),
    "digamma": (
        scipy.special.psi,
        mpmath.digamma,
        [uniform(0.01, 3), uniform(2.5, 9), powers(-100, 0), powers(3, 100)],
    ),
}
SLOW = ("lgamma", "digamma", "erf_inv", "erfc")
SPECIAL = [math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.5, -0.5, 8.0, 1e-45]


def draw(op: str, dtype: str, count: int) -> Values:
    rng = np.random.default_rng(len(op))
    with np.errstate(over="ignore"):
        parts = [source(rng, count).astype(FLOATS[dtype]) for source in FUNCTIONS[op][2]]
    x = np.concatenate(parts)
    return x[np.isfinite(x) & (x != 0) & (np.abs(x) != 1)]


def spacing(expected: Values, dtype: str) -> Values:
    """One unit in the last place of a number, as if the format had no largest one."""
    info = np.finfo(FLOATS[dtype])
    size = np.maximum(np.abs(expected.astype(np.float64)), float(info.smallest_normal))
    with np.errstate(over="ignore"):
        exponent = np.minimum(np.floor(np.log2(size)), info.maxexp - 1)
    return np.exp2(exponent - info.nmant)


def assert_close(got: Values, expected: Values, dtype: str, *operands: Values) -> None:
    """float32 against float64."""
    overflows = np.abs(expected) > float(np.finfo(np.float32).max) * (1 + 2.0**-25)
    with np.errstate(invalid="ignore"):
        error = np.abs(got - expected) / spacing(expected, dtype)
    error = np.where(overflows, np.where(got == np.sign(expected) * np.inf, 0, np.inf), error)
    worst = int(np.argmax(np.where(np.isnan(error), np.inf, error)))
    assert error[worst] <= BOUND, (
        f"{error[worst]} ulp at {[operand[worst] for operand in operands]}: "
        f"got {got[worst]}, expected {expected[worst]}"
    )


def exact_errors(
    got: Values, function: Callable[..., Any], operands: list[Values]
) -> list[tuple[float, Any]]:
    """In units in the last place of float64, against mpmath."""
    errors: list[tuple[float, Any]] = []
    for result, *args in zip(got, *operands, strict=True):
        # Numbers that large need their digits, and those of pi.
        digits = 330 if max(abs(float(a)) for a in args) > 1e20 else 45
        with mpmath.workdps(digits):
            expected = function(*[mpmath.mpf(float(a)) for a in args])
            unit = mpmath.mpf(float(spacing(np.array([float(expected)]), "f64")[0]))
            if abs(expected) > np.finfo(np.float64).max:
                error = 0.0 if result == math.copysign(math.inf, expected) else math.inf
            else:
                error = float(abs(mpmath.mpf(float(result)) - expected) / unit)
        errors.append((error, (args, result, mpmath.nstr(expected, 20))))
    return errors


@pytest.mark.parametrize("op", FUNCTIONS)
def test_single_precision_is_within_two_units(apply, op):
    x = draw(op, "f32", 4000)
    got = apply(op, [x], ["f32"], "f32", HOST_LANES["f32"])
    with np.errstate(all="ignore"):
        expected = FUNCTIONS[op][0](x.astype(np.float64))
    keep = np.isfinite(expected)
    assert_close(got[keep].astype(np.float64), expected[keep], "f32", x[keep])


@pytest.mark.parametrize("op", FUNCTIONS)
def test_double_precision_is_within_two_units(apply, op):
    x = draw(op, "f64", 60 if op in SLOW else 200)
    got = apply(op, [x], ["f64"], "f64", HOST_LANES["f64"])
    error, where = max(exact_errors(got, FUNCTIONS[op][1], [x]), key=lambda pair: pair[0])
    assert error <= BOUND, where


# Found by trying all numbers of float32 in a range, or many of float64: where errors were largest.
HARD = {
    "logistic": [-3.4489422, -15.537658, -27.90115252254043],
    "asin": [0.83841634, 0.5356776, 0.5059014594962821],
    "erf_inv": [0.035236064, 0.23656265, 0.9951518],
    "acosh": [1.0000076104549074, 1.0294980691176877],
    "tanh": [-0.030435360565299704, 0.12234903],
    "sinh": [0.43373861171826267, 1.4182405],
    "log10": [1.3040231, 1.3324852508568104],
    "atan": [0.4435819, -0.43504104],
    "erfc": [0.8263861135606201, 2.604434680845323, 11.967284901193258],
    "lgamma": [0.5416398804227764, 1.6312430665545197],
    "digamma": [1.980074269373386, 2.4665833559484636],
}


@pytest.mark.parametrize("op", HARD)
@pytest.mark.parametrize("dtype", FLOATS)
def test_the_hardest_arguments_are_within_two_units(apply, dtype, op):
    x = np.array(HARD[op], FLOATS[dtype])
    got = apply(op, [x], [dtype], dtype, HOST_LANES[dtype])
    with mpmath.workdps(50):
        expected = [FUNCTIONS[op][1](mpmath.mpf(float(argument))) for argument in x]
    units = spacing(np.array([float(e) for e in expected]), dtype)
    for result, exact, unit in zip(got, expected, units, strict=True):
        assert abs(mpmath.mpf(float(result)) - exact) <= 2 * mpmath.mpf(float(unit))


@pytest.mark.parametrize("op", FUNCTIONS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_scalars_and_vectors_give_the_same_bits(apply, assert_same, dtype, op):
    x = np.concatenate([draw(op, dtype, 100), np.array(SPECIAL, FLOATS[dtype])])
    vector = apply(op, [x], [dtype], dtype, HOST_LANES[dtype])
    assert_same(apply(op, [x], [dtype], dtype, 1), vector, x)
    # Other widths than the processor's are computed in parts, or as parts.
    assert_same(apply(op, [x], [dtype], dtype, 2), vector, x)
    assert_same(apply(op, [x], [dtype], dtype, 2 * HOST_LANES[dtype]), vector, x)


@pytest.mark.parametrize("op", FUNCTIONS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_special_values_are_those_of_numpy(apply, assert_same, dtype, op):
    x = np.array(SPECIAL, FLOATS[dtype])
    got = apply(op, [x], [dtype], dtype, HOST_LANES[dtype])
    expected = evaluate(op, [x], dtype)
    with np.errstate(invalid="ignore"):
        close = np.abs(got - expected) <= 2 * np.spacing(np.abs(expected))
    # SciPy's zeros have no sign to speak of.
    of_scipy = op in ("erf_inv", "lgamma", "digamma")
    assert_same(np.where(close & ((expected != 0) | of_scipy), expected, got), expected, x)


@pytest.mark.parametrize("op", ["exp", "exp2", "expm1", "tanh", "logistic", "erf", "sinh"])
@pytest.mark.parametrize("dtype", FLOATS)
def test_processors_without_scaling_give_the_same(apply, assert_same, dtype, op):
    x = np.concatenate([draw(op, dtype, 200), np.array(SPECIAL, FLOATS[dtype])])
    mine = apply(op, [x], [dtype], dtype, 4)
    assert_same(apply(op, [x], [dtype], dtype, 4, OTHERS["neon"]), mine, x)


@pytest.mark.parametrize("op", ["sin", "cos", "tan"])
@pytest.mark.parametrize("dtype", FLOATS)
def test_huge_angles_are_reduced_exactly(apply, dtype, op):
    rng = np.random.default_rng(0)
    kind = FLOATS[dtype]
    largest = 127 if dtype == "f32" else 1023
    random = np.exp2(rng.uniform(15, largest, 150)) * rng.choice([-1, 1], 150)
    # The number of float64 that comes closest to a multiple of pi/2, and its like of float32.
    closest = [6381956970095103.0 * 2.0**797] if dtype == "f64" else [16367173.0 * 2.0**72]
    x = np.concatenate([random, closest]).astype(kind)
    got = apply(op, [x], [dtype], dtype, HOST_LANES[dtype])
    function = FUNCTIONS[op][1]
    for argument, result in zip(x, got, strict=True):
        with mpmath.workdps(400):
            expected = function(mpmath.mpf(float(argument)))
            unit = spacing(np.array([float(expected)]), dtype)[0]
            error = float(abs(mpmath.mpf(float(result)) - expected) / mpmath.mpf(float(unit)))
        assert error <= BOUND, (argument, result, expected)


@pytest.mark.parametrize("op", ["lgamma", "digamma"])
@pytest.mark.parametrize("dtype", FLOATS)
def test_gamma_functions_of_negative_numbers(apply, dtype, op):
    rng = np.random.default_rng(0)
    x = np.concatenate([-rng.uniform(0.001, 30, 100), -np.exp2(rng.uniform(-30, -1, 50))])
    x = x.astype(FLOATS[dtype])
    got = apply(op, [x], [dtype], dtype, HOST_LANES[dtype])
    for argument, result in zip(x, got, strict=True):
        a = mpmath.mpf(float(argument))
        if op == "lgamma":
            expected = mpmath.log(abs(mpmath.gamma(a)))
            scale = (
                abs(mpmath.loggamma(-a)) + abs(mpmath.log(abs(a * mpmath.sin(mpmath.pi * a)))) + 1
            )
        else:
            expected = mpmath.digamma(a)
            scale = abs(mpmath.pi / mpmath.tan(mpmath.pi * a)) + abs(mpmath.digamma(1 - a)) + 1
        # The argument's own distance from a pole counts as well.
        assert abs(result - expected) <= 4 * np.finfo(FLOATS[dtype]).eps * scale, argument


def test_poles_of_gamma_functions(apply):
    x = np.array([0.0, -0.0, -1.0, -2.0, -1e30, math.inf, -math.inf])
    assert apply("lgamma", [x], ["f64"], "f64").tolist() == [math.inf] * 6 + [-math.inf]
    digamma = apply("digamma", [x], ["f64"], "f64")
    assert digamma[0] == -math.inf
    assert digamma[1] == math.inf
    assert np.isnan(digamma[2:5]).all()
    assert digamma[5] == math.inf


# --- two arguments ------------------------------------------------------------------------------

PAIRS = {"pow": np.power, "atan2": np.arctan2, "rem": np.fmod}


def pairs(op: str, dtype: str, count: int) -> list[Values]:
    rng = np.random.default_rng(1)
    size = 120 if dtype == "f32" else 1000
    if op == "pow":
        x = [rng.uniform(0, 10, count), np.exp2(rng.uniform(-size, size, count))]
        y = [rng.uniform(-30, 30, count), rng.uniform(-2, 2, count)]
        x += [rng.uniform(0.9, 1.1, count), -rng.uniform(0.1, 3, count)]
        y += [rng.uniform(-800, 800, count), rng.integers(-30, 30, count)]
    else:
        x = [rng.uniform(-3, 3, count), powers(-size, size, True)(rng, count)]
        y = [rng.uniform(-3, 3, count), powers(-size, size, True)(rng, count)]
    return [np.concatenate(parts).astype(FLOATS[dtype]) for parts in (x, y)]


@pytest.mark.parametrize("op", PAIRS)
def test_single_precision_of_two_arguments(apply, op):
    x, y = pairs(op, "f32", 4000)
    got = apply(op, [x, y], ["f32", "f32"], "f32", HOST_LANES["f32"])
    with np.errstate(all="ignore"):
        expected = PAIRS[op](x.astype(np.float64), y.astype(np.float64))
    keep = np.isfinite(expected)
    assert_close(got[keep].astype(np.float64), expected[keep], "f32", x[keep], y[keep])


@pytest.mark.parametrize("op", ["pow", "atan2"])
def test_double_precision_of_two_arguments(apply, op):
    x, y = pairs(op, "f64", 150)
    got = apply(op, [x, y], ["f64", "f64"], "f64", HOST_LANES["f64"])
    function = {"pow": mpmath.power, "atan2": mpmath.atan2}[op]
    with np.errstate(all="ignore"):
        rough = PAIRS[op](x, y)
    keep = np.isfinite(rough) & (np.abs(rough) > 1e-300)
    errors = exact_errors(got[keep], function, [x[keep], y[keep]])
    error, where = max(errors, key=lambda pair: pair[0])
    assert error <= BOUND, where


def test_remainders_are_exact(apply, assert_same):
    x, y = pairs("rem", "f64", 2000)
    got = apply("rem", [x, y], ["f64", "f64"], "f64", HOST_LANES["f64"])
    assert_same(got, np.fmod(x, y), x, y)


@pytest.mark.parametrize("op", PAIRS)
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("lanes", [1, 8])
def test_special_values_of_two_arguments(apply, assert_same, lanes, dtype, op):
    special = np.array([*SPECIAL, 3.0, -3.0, 1e30, -1e30, 2.0**53 + 2, 1.5], FLOATS[dtype])
    x, y = (np.ascontiguousarray(grid.ravel()) for grid in np.meshgrid(special, special))
    got = apply(op, [x, y], [dtype, dtype], dtype, lanes)
    expected = evaluate(op, [x, y], dtype)
    with np.errstate(invalid="ignore"):
        close = np.abs(got - expected) <= 2 * np.spacing(np.abs(expected))
    assert_same(np.where(close & (expected != 0), expected, got), expected, x, y)


# --- arithmetic -----------------------------------------------------------------------------------


@pytest.mark.parametrize("lanes", [1, 8])
@pytest.mark.parametrize("dtype", FLOATS)
def test_arithmetic_is_as_defined(apply, assert_same, dtype, lanes):
    special = np.array([*SPECIAL, 0.49999997, 2.5, -3.5, 1e30, 3e38], FLOATS[dtype])
    x, y = (np.ascontiguousarray(grid.ravel()) for grid in np.meshgrid(special, special))
    one = ("neg", "abs", "sign", "floor", "ceil", "trunc", "round", "sqrt")
    two = ("add", "sub", "mul", "div", "copysign", "next_after", "eq", "ne", "lt", "le", "gt", "ge")
    for op in (*one, *two, "is_nan", "is_finite", "is_inf", "sign_bit"):
        arrays = [x, y] if op in two else [x]
        result = "bool" if op[:2] in ("is", "eq", "ne", "lt", "le", "gt", "ge") else dtype
        result = "bool" if op == "sign_bit" else dtype if op in ("neg", "next_after") else result
        expected = evaluate(op, arrays, result)
        assert_same(apply(op, arrays, [dtype] * len(arrays), result, lanes), expected, *arrays)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("op", ["max", "min"])
def test_extrema_are_nan_where_either_is(apply, dtype, op):
    special = np.array(SPECIAL, FLOATS[dtype])
    x, y = (np.ascontiguousarray(grid.ravel()) for grid in np.meshgrid(special, special))
    expected = evaluate(op, [x, y], dtype)
    for lanes in (1, HOST_LANES[dtype]):
        got = apply(op, [x, y], [dtype, dtype], dtype, lanes)
        assert np.array_equal(got, expected, equal_nan=True)


@pytest.mark.parametrize("op", ["max", "min"])
@pytest.mark.parametrize("first", [True, False])
def test_extrema_with_constants_keep_nan(run, op, first):
    from fxarray.devices.cpu.emit import memory, scalars

    x = np.array([math.nan, -1.0, 2.0, math.inf] * 4, np.float32)
    result = np.empty_like(x)

    def build(f, source, place):
        value = memory.load(f, source, "f32", 16)
        bound = scalars.constant(0.5, "f32")
        pair = [bound, value] if first else [value, bound]
        memory.store(f, scalars.apply(f, op, pair, "f32"), place)

    run(build, x, result)
    assert np.array_equal(result, evaluate(op, [x, np.float32(0.5)], "f32"), equal_nan=True)


def test_fused_products_are_rounded_once(apply):
    x = np.full(16, 1 + 2.0**-23, np.float32)
    got = apply("fma", [x, x, np.full(16, -1.0, np.float32)], ["f32"] * 3, "f32")
    assert (got == 2.0**-22 + 2.0**-46).all()
