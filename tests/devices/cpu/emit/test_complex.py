"""Complex functions against NumPy's, and against the C standard at infinities and NaN."""

from __future__ import annotations

import cmath
import math
from typing import Any

import mpmath
import numpy as np
import pytest

from fxarray.kernel.operations import arity
from fxarray.kernel.scalars import evaluate

Values = np.ndarray[Any, Any]
ONE = (
    *("sqrt", "rsqrt", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "logistic", "sign"),
    *("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh"),
    *("atanh", "abs", "neg", "conj", "real", "imag"),
)
TWO = ("add", "sub", "mul", "div", "pow", "eq", "ne")
PARTS = {"c64": "f32", "c128": "f64"}
MPMATH = {
    "sqrt": mpmath.sqrt,
    "exp": mpmath.exp,
    "log": mpmath.log,
    "sin": mpmath.sin,
    "cos": mpmath.cos,
    "tan": mpmath.tan,
    "asin": mpmath.asin,
    "acos": mpmath.acos,
    "atan": mpmath.atan,
    "sinh": mpmath.sinh,
    "cosh": mpmath.cosh,
    "tanh": mpmath.tanh,
    "asinh": mpmath.asinh,
    "acosh": mpmath.acosh,
    "atanh": mpmath.atanh,
    "expm1": lambda z: mpmath.exp(z) - 1,
    "log1p": lambda z: mpmath.log(1 + z),
    "logistic": lambda z: 1 / (1 + mpmath.exp(-z)),
}


def draw(dtype: str, count: int, seed: int = 0) -> Values:
    rng = np.random.default_rng(seed)
    size = np.exp2(rng.uniform(-20, 3, count))
    z = size * np.exp(1j * rng.uniform(-np.pi, np.pi, count))
    z[: count // 2] = rng.normal(size=count // 2) * 3 + 1j * rng.normal(size=count // 2) * 3
    return z.astype({"c64": np.complex64, "c128": np.complex128}[dtype])


def result_dtype(op: str, dtype: str) -> str:
    if op in ("eq", "ne"):
        return "bool"
    return PARTS[dtype] if op in ("abs", "real", "imag") else dtype


def error(got: Values, expected: Values, dtype: str) -> Values:
    """In units of the precision, relative to the magnitude of the whole number."""
    epsilon = np.finfo({"c64": np.float32, "c128": np.float64}[dtype]).eps
    return np.abs(got - expected) / np.maximum(np.abs(expected), 1e-300) / epsilon


@pytest.mark.parametrize("op", [*ONE, *TWO])
@pytest.mark.parametrize("dtype", PARTS)
def test_complex_operations_are_as_defined(apply, dtype, op):
    arrays = [draw(dtype, 1024, seed) for seed in range(arity(op))]
    if op == "eq":
        arrays[1][::2] = arrays[0][::2]
    result = result_dtype(op, dtype)
    got = apply(op, arrays, [dtype] * len(arrays), result, 8)
    expected = evaluate(op, arrays, result)
    if result == "bool":
        assert (got == expected).all()
        return
    # NumPy's own powers and log1p of complex128 lose more digits than these.
    bound = {"pow": 64.0, "log1p": 1e13}.get(op, 4.0) if dtype == "c128" else 1.5
    assert error(got, expected, dtype).max() <= bound
    assert np.array_equal(apply(op, arrays, [dtype] * len(arrays), result, 1), got)


@pytest.mark.parametrize("op", MPMATH)
def test_double_precision_is_right_to_the_last_digits(apply, op):
    z = draw("c128", 100)
    got = apply(op, [z], ["c128"], "c128", 8)
    with mpmath.workdps(50):
        expected = np.array([complex(MPMATH[op](mpmath.mpc(complex(one)))) for one in z])
    assert error(got, expected, "c128").max() <= 4.0


def test_double_precision_near_one_keeps_the_digits_of_logarithms(apply):
    angles = np.linspace(0.1, 3, 50)
    z = np.exp(1j * angles) * (1 + 1e-9)
    got = apply("log", [z], ["c128"], "c128", 8)
    with mpmath.workdps(50):
        expected = np.array([complex(mpmath.log(mpmath.mpc(complex(one)))) for one in z])
    # Both parts, not the whole: the real one is small.
    assert (np.abs(got.real - expected.real) <= 4e-16 * np.abs(expected.real)).all()


def test_powers_of_real_exponents_are_right_far_from_one(apply):
    x = np.array([1e300, 1e300j, 3e-200 + 4e-200j, -8.0] * 4, np.complex128)
    y = np.array([-1.0, 0.5, -1.0, 2.0] * 4, np.complex128)
    got = apply("pow", [x, y], ["c128"] * 2, "c128", 8)
    with mpmath.workdps(50):
        pairs = zip(x, y, strict=True)
        expected = [complex(mpmath.power(complex(a), mpmath.mpf(b.real))) for a, b in pairs]
    assert error(got, np.array(expected), "c128").max() <= 8.0


def test_products_with_the_conjugate_are_real(apply):
    z = draw("c64", 1024)
    assert (apply("mul", [z, np.conj(z)], ["c64", "c64"], "c64").imag == 0).all()


@pytest.mark.parametrize("dtype", PARTS)
def test_magnitudes_and_quotients_do_not_overflow(apply, dtype):
    kind = {"c64": np.complex64, "c128": np.complex128}[dtype]
    large, small = {"c64": (1e38, 1e-40), "c128": (1e307, 1e-310)}[dtype]
    z = np.array([complex(3 * large, 4 * large) / 10, complex(3 * small, 4 * small)] * 8, kind)
    size = apply("abs", [z], [dtype], PARTS[dtype], 8)
    assert np.allclose(size[:2], [large / 2, 5 * small], rtol=1e-5 if dtype == "c64" else 1e-12)
    one = apply("div", [z, z], [dtype] * 2, dtype, 8)
    assert np.allclose(one, 1, rtol=1e-4)
    root = apply("sqrt", [z], [dtype], dtype, 8)
    expected = [cmath.sqrt(complex(one)) for one in z[:2]]
    assert np.allclose(root[:2], expected, rtol=1e-6 if dtype == "c64" else 1e-15, atol=0)


NUMBERS = (0.0, -0.0, 1.0, -1.0, 2.5, math.inf, -math.inf, math.nan)
# What the C standard leaves open is not compared: the signs of zeros and infinities that come with
# NaN, and of those of an angle that is none. Where just the real part is a zero, its later versions
# are more definite than Python.
STANDARD = ("sqrt", "exp", "log", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "acos")


@pytest.mark.parametrize("op", STANDARD)
def test_infinities_and_zeros_follow_the_standard(apply, op):
    special = [complex(a, b) for a in NUMBERS for b in NUMBERS]
    z = np.array(special, np.complex128)
    got = apply(op, [z], ["c128"], "c128", 8)
    for argument, result in zip(special, got, strict=True):
        try:
            expected = getattr(cmath, op)(argument)
        except (ValueError, OverflowError):
            continue  # cmath raises where C gives infinities or NaN
        if argument.real == 0 and math.isnan(argument.imag):
            continue
        certain = not cmath.isnan(expected) and math.isfinite(argument.imag)
        for mine, theirs in ((result.real, expected.real), (result.imag, expected.imag)):
            if math.isnan(theirs):
                assert math.isnan(mine), (argument, result, expected)
            elif math.isfinite(theirs) and theirs != 0:
                assert math.isclose(mine, theirs, rel_tol=1e-14), (argument, result, expected)
            else:
                assert abs(mine) == abs(theirs), (argument, result, expected)
                sign = math.copysign(1, mine) == math.copysign(1, theirs)
                assert sign or not certain, (argument, result, expected)


def test_quotients_with_infinities_are_those_of_the_definition(apply, assert_same):
    special = [complex(a, b) for a in NUMBERS for b in NUMBERS]
    x, y = (np.ascontiguousarray(g.ravel()) for g in np.meshgrid(special, special))
    got = apply("div", [x, y], ["c128"] * 2, "c128", 8)
    expected = evaluate("div", [x, y], "c128")
    finite = np.isfinite(expected)
    close = finite & np.isclose(got, np.where(finite, expected, 0), rtol=1e-15)
    keep = ~close
    assert_same(got[keep], expected[keep], x[keep], y[keep])


@pytest.mark.parametrize("op", ["max", "min"])
def test_extrema_order_by_real_part_then_by_imaginary_part(apply, op):
    numbers = [complex(a, b) for a in (0, 1, math.nan) for b in (-1, 2, math.nan)]
    x, y = (np.ascontiguousarray(g.ravel()) for g in np.meshgrid(numbers, numbers))
    got = apply(op, [x, y], ["c128"] * 2, "c128", 8)
    assert np.array_equal(got, evaluate(op, [x, y], "c128"), equal_nan=True)


def test_parts_make_a_number_and_it_has_them(apply):
    x, y = np.arange(64, dtype=np.float32), np.full(64, math.inf, np.float32)
    z = apply("complex", [x, y], ["f32", "f32"], "c64")
    assert np.array_equal(z.real, x)
    assert np.array_equal(z.imag, y)
    assert np.array_equal(apply("real", [z], ["c64"], "f32"), x)
    assert np.array_equal(apply("imag", [z], ["c64"], "f32"), y)
