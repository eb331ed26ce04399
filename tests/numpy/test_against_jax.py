"""Values, dtypes and weakness of fxarray.numpy are JAX's.

Every case is an expression in which `xp` is first fxarray.numpy and then jax.numpy. JAX runs with
its defaults (no 64-bit types), which the dtypes here stay within.
"""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fxarray.numpy as fnp

_RNG = np.random.default_rng(0)
_VALUES = {
    "f": _RNG.normal(size=(2, 3)).astype("float32"),
    "g": _RNG.normal(size=(2, 3)).astype("float32"),
    "p": _RNG.uniform(0.1, 0.9, size=(2, 3)).astype("float32"),
    "v": _RNG.normal(size=5).astype("float32"),
    "w": _RNG.uniform(0.5, 2, size=5).astype("float32"),
    "t": _RNG.normal(size=(2, 3, 4)).astype("float32"),
    "m": _RNG.normal(size=(3, 3)).astype("float32"),
    "i": _RNG.integers(-5, 6, size=(2, 3)).astype("int32"),
    "j": _RNG.integers(1, 6, size=(2, 3)).astype("int32"),
    "k": np.array([3, 1, 2, 1, 0], "int32"),
    "s": np.array([-128, -3, 0, 5, 127], "int8"),
    "u": np.array([0, 1, 200, 255, 7], "uint8"),
    "b": np.array([[True, False, True], [False, False, True]]),
    "h": _RNG.normal(size=(2, 3)).astype("float16"),
    "c": (_RNG.normal(size=(2, 3)) + 1j * _RNG.normal(size=(2, 3))).astype("complex64"),
    "n": np.array([1.0, np.nan, -np.inf, np.inf, -0.0, 2.5], "float32"),
}

# Functions of two and of one argument, reductions: each is tried on several operands.
_DYADIC = """
    add subtract multiply divide floor_divide remainder fmod power maximum minimum fmax fmin arctan2
    hypot logaddexp logaddexp2 equal not_equal less less_equal greater greater_equal copysign
    heaviside nextafter float_power logical_and logical_or logical_xor
"""
_MONADIC = """
    absolute negative positive sign exp expm1 sin cos tanh sinh arctan arcsinh floor ceil trunc rint
    square reciprocal isnan isfinite isinf sinc degrees radians exp2 cbrt fabs signbit logical_not
    isposinf isneginf nan_to_num i0 real imag conj angle iscomplex isreal round spacing
"""
_COMPLEX = """
    absolute negative exp sin square conj real imag angle sign isnan isfinite log sqrt tanh
    iscomplex reciprocal round sum mean var prod max sort cumsum
"""
_POSITIVE = "log log2 log10 log1p sqrt arcsin arccos arctanh"
_WITH_NAN = """
    isnan isfinite isinf isposinf isneginf signbit nan_to_num sign max min argmax argmin sort
    argsort nanmax nansum nanargmin unique sum median exp tanh cumsum
"""
_REDUCTIONS = """
    sum prod max min mean var std all any ptp argmax argmin count_nonzero nansum nanmax nanmean
    nanstd nanvar nanprod nanmin nanargmax nanargmin median nanmedian
"""
_OF_EVERY_DTYPE = "sum prod max min mean var std all any argmax cumsum cumprod"
_PAIRS = ("f, g", "f, v[:3]", "f, i", "i, j", "f, 2", "1.5, h", "s, u", "b, f")
_ELSEWHERE = ("power(s, u)", "floor_divide(s, u)")  # see the tests below
_AXES = ("axis=0", "axis=1, keepdims=True", "axis=None", "axis=-1")
_GENERATED = [
    *[f"{name}({pair})" for name in _DYADIC.split() for pair in _PAIRS],
    *[f"{name}({x})" for name in _MONADIC.split() for x in ("f", "i", "h", "2", "1.5")],
    *[f"{name}(c)" for name in _COMPLEX.split()],
    *[f"{name}({x})" for name in _POSITIVE.split() for x in ("p", "1", "p[0].astype('float16')")],
    *[f"{name}(n)" for name in _WITH_NAN.split()],
    *[f"{name}(f, {axes})" for name in _REDUCTIONS.split() for axes in _AXES],
    *[f"{name}({x})" for name in _OF_EVERY_DTYPE.split() for x in ("s", "u", "b", "h", "1.0", "2")],
    *[f"{name}(t, axis=(0, -1))" for name in ("sum", "mean", "max", "std", "any", "median")],
]
_METHODS = ("lower", "higher", "midpoint", "nearest", "inverted_cdf")
_WRITTEN = Path(__file__).with_name("cases_against_jax.txt").read_text().splitlines()
_CASES = [
    *[f"xp.{case}" for case in _GENERATED if case not in _ELSEWHERE],
    *[f"xp.quantile(v, 0.37, method='{method}')" for method in _METHODS],
    *(line for line in _WRITTEN if line and not line.startswith("#")),
]

# Functions that keep the weakness of a Python scalar where JAX happens to lose it.
_WEAK_HERE = ("rint", "angle", "spacing", "log2", "log10")


def _evaluate(text, xp, convert):
    environment = {name: convert(value) for name, value in _VALUES.items()}
    return eval(text, {"xp": xp, **environment})


def _leaves(value):
    if isinstance(value, tuple | list):
        return [leaf for item in value for leaf in _leaves(item)]
    return [value]


@pytest.mark.parametrize("text", dict.fromkeys(_CASES))
def test_values_dtypes_and_weakness_are_those_of_jax(text):
    with jax.enable_x64(False), np.errstate(all="ignore"):
        expected = _leaves(_evaluate(text, jnp, jnp.asarray))
        actual = _leaves(_evaluate(text, fnp, fnp.asarray))
        assert len(actual) == len(expected)
        for ours, theirs in zip(actual, expected, strict=True):
            if not isinstance(theirs, jax.Array):
                assert (
                    ours == pytest.approx(theirs) if isinstance(theirs, float) else ours == theirs
                )
                continue
            assert ours.shape == theirs.shape
            assert ours.dtype == theirs.dtype
            # Bools are weak in places in JAX, to no effect.
            if ours.dtype != bool and not any(f"xp.{name}(" in text for name in _WEAK_HERE):
                assert ours.weak_type == theirs.weak_type
            tolerance = 4e-3 if ours.dtype == np.float16 else 2e-5
            left, right = np.asarray(ours), np.asarray(theirs)
            np.testing.assert_allclose(left, right, rtol=tolerance, atol=tolerance)


def test_integer_powers_wrap_exactly_where_jax_stops_squaring():
    assert fnp.power(fnp.int16(5), fnp.uint8(255)).item() == 6349  # 5**255 modulo 2**16


def test_integer_division_by_zero_gives_zero():
    x = fnp.array([-7, 0, 7])
    np.testing.assert_array_equal(x // 0, [0, 0, 0])
    np.testing.assert_array_equal(x % 0, [0, 0, 0])
    np.testing.assert_array_equal(x.astype("uint8") // fnp.uint8(0), [0, 0, 0])


def test_integers_are_rounded_to_tens_halves_to_even():
    np.testing.assert_array_equal(
        fnp.round(fnp.array([14, 15, 25, -16, 5]), -1), [10, 20, 20, -20, 0]
    )
    np.testing.assert_array_equal(fnp.round(fnp.array([100, -7], "int8"), -3), [0, 0])
