"""Every elementwise function of `lax` against JAX's, at the values where definitions differ."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

import fxarray.numpy as fnp
from fxarray import lax
from fxarray.core import dtypes

FLOATS = ("float64", "float32", "bfloat16")
COMPLEXES = ("complex128",)
SIGNED = ("int32", "int8")
UNSIGNED = ("uint8", "uint64")
INTEGERS = (*SIGNED, *UNSIGNED)
BITS = ("bool", *INTEGERS)
REALS = (*INTEGERS, *FLOATS)
NUMBERS = (*REALS, *COMPLEXES)
INEXACT = (*FLOATS, *COMPLEXES)

UNARY: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("neg", "sign", "square"), NUMBERS),
    "abs": (*SIGNED, *INEXACT),
    **dict.fromkeys(("sqrt", "rsqrt", "exp", "exp2", "expm1", "log", "log1p", "logistic"), INEXACT),
    **dict.fromkeys(("sin", "cos", "tan", "asin", "acos", "atan", "reciprocal"), INEXACT),
    **dict.fromkeys(("sinh", "cosh", "tanh", "asinh", "acosh", "atanh"), INEXACT),
    **dict.fromkeys(("floor", "ceil", "round", "cbrt", "is_finite"), FLOATS),
    **dict.fromkeys(("erf", "erfc", "erf_inv", "lgamma", "digamma"), FLOATS),
    **dict.fromkeys(("bessel_i0e", "bessel_i1e"), FLOATS),
    **dict.fromkeys(("real", "imag", "conj"), COMPLEXES),
    "bitwise_not": BITS,
    **dict.fromkeys(("population_count", "clz"), INTEGERS),
}
BINARY: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("add", "sub", "mul", "div"), NUMBERS),
    **dict.fromkeys(("max", "min", "eq", "ne"), ("bool", *NUMBERS)),
    **dict.fromkeys(("lt", "le", "gt", "ge"), ("bool", *REALS)),
    **dict.fromkeys(("pow", "atan2"), INEXACT),
    "rem": REALS,
    **dict.fromkeys(("bitwise_and", "bitwise_or", "bitwise_xor"), BITS),
    **dict.fromkeys(("shift_left", "shift_right_logical", "shift_right_arithmetic"), INTEGERS),
    "mulhi": INTEGERS,
    "nextafter": ("float64", "float32"),
    **dict.fromkeys(("igamma", "igammac", "igamma_grad_a", "random_gamma_grad"), ("float64",)),
    **dict.fromkeys(("polygamma", "zeta"), ("float64",)),
}


def near_cut(x: np.ndarray, y: np.ndarray) -> Any:
    """Where the complex angle of (x, y) has a real part of half a turn, or does not exist."""
    with np.errstate(all="ignore"):
        turn = (y + 1j * x) / np.sqrt(x * x + y * y)
    on_cut = (np.abs(turn.imag) < 1e-12) & (turn.real < 0)
    return ~np.isfinite(turn) | on_cut | (x == 0) | (y == 0)


# The intended differences: where they are allowed, given the operands, and why.
Where = Callable[..., Any]
DIFFERENCES: dict[str, tuple[Where, str]] = {
    "div": (
        lambda x, y: (y == 0) & (x.dtype.kind in "iu"),
        "an integer divided by zero is 0, not all ones",
    ),
    "rem": (
        lambda x, y: (y == 0) & (x.dtype.kind in "iu"),
        "an integer's remainder by zero is 0, as NumPy has it",
    ),
    "max": (
        lambda x, y: (np.isnan(x) | np.isnan(y)) & (x.dtype.kind == "c"),
        "NaN is passed on from complex operands as from real ones",
    ),
    "min": (
        lambda x, y: (np.isnan(x) | np.isnan(y)) & (x.dtype.kind == "c"),
        "NaN is passed on from complex operands as from real ones",
    ),
    "pow": (
        lambda x, y: ((x == 0) | ~np.isfinite(x) | ~np.isfinite(y)) & (y.dtype.kind == "c"),
        "0 to a complex power with a positive real part is 0, not NaN; infinite powers are limits",
    ),
    "atan2": (
        lambda x, y: near_cut(x, y) if x.dtype.kind == "c" else np.zeros(x.shape, bool),
        "on a branch cut of the complex angle, the last bit decides the side",
    ),
    "digamma": (lambda x: x == 0, "at its pole at 0 it is infinite, with the sign of the limit"),
    "lgamma": (
        lambda x: np.abs(np.asarray(x, float) - 1) < 0.01,
        "JAX loses digits near the root at 1",
    ),
    "polygamma": (
        lambda m, x: (x <= 0) & (x == np.floor(x)),
        "at its poles it is infinite, not NaN",
    ),
    "zeta": (
        lambda x, q: ((q <= 0) & (q == np.floor(q))) | np.isnan(q),
        "at its poles it is infinite, not NaN, and NaN is passed on",
    ),
    "igamma": (lambda a, x: a == 0, "at shape 0 it is the limit 1, not NaN"),
}
COMPLEX_DIFFERENCE = (
    "where a complex operand is infinite or NaN, or on a branch cut, values are those of the C "
    "standard's annex G, which other tests hold against cmath; JAX gives NaN for many of them"
)


def outside_comparison(x: np.ndarray) -> Any:
    """Where complex functions of one operand follow the C standard rather than JAX."""
    on_axis = (x.real == 0) | (x.imag == 0)
    negative_zero = np.signbit(np.where(x.real == 0, x.real, 1)) | np.signbit(
        np.where(x.imag == 0, x.imag, 1)
    )
    return ~np.isfinite(x) | (on_axis & negative_zero)


# JAX's algorithms for these reach fewer digits than SciPy's.
LOOSE = {
    "igamma": 1e-12,
    "igammac": 1e-12,
    "igamma_grad_a": 1e-9,
    "random_gamma_grad": 1e-9,
    "lgamma": 1e-12,
    "digamma": 1e-12,
    "polygamma": 1e-11,
    "zeta": 1e-12,
}
MODERATE = ("igamma", "igammac", "igamma_grad_a", "random_gamma_grad", "polygamma", "zeta")


def special_values(dtype: Any, moderate: bool = False) -> np.ndarray:
    dtype = np.dtype(dtype)
    if dtypes.is_bool(dtype):
        return np.array([False, True])
    if dtypes.is_complex(dtype):
        parts = (0.0, -0.0, 1.0, 0.5, -2.0, np.inf, -np.inf, np.nan)
        return np.array([complex(re, im) for re in parts for im in parts], dtype)
    if dtypes.is_integer(dtype):
        low, high = int(ml_dtypes.iinfo(dtype).min), int(ml_dtypes.iinfo(dtype).max)
        numbers = {low, low + 1, -9, -7, -2, -1, 0, 1, 2, 3, 7, 8, 31, 32, 33, 64, high - 1, high}
        return np.array(sorted(n for n in numbers if low <= n <= high), dtype)
    if moderate:
        return np.array([0.0, -1.0, 0.25, 0.5, 1.0, 2.0, 3.0, 10.0, 60.0, np.nan], dtype)
    info = ml_dtypes.finfo(dtype)
    numbers = [0.0, 0.25, 1 / 3, 0.5, 0.999, 1.0, 1.5, 2.0, 2.5, 3.0, 10.0, 100.0, np.inf]
    numbers += [float(info.tiny), float(info.eps), float(info.max)]
    return np.array([*numbers, *(-n for n in numbers), np.nan], dtypes.float64).astype(dtype)


def close(got: np.ndarray, wanted: np.ndarray, relative: float) -> Any:
    """Elementwise: equal, both NaN, or within a relative error; complex numbers part by part."""
    if dtypes.is_complex(wanted.dtype):
        size = np.abs(wanted)
        pairs = ((got.real, wanted.real), (got.imag, wanted.imag))
    elif dtypes.is_float(wanted.dtype):
        got, wanted = got.astype(np.float64), wanted.astype(np.float64)
        size = np.abs(wanted)
        pairs = ((got, wanted),)
    else:
        return got == wanted
    result = True
    with np.errstate(all="ignore"):
        for g, w in pairs:
            near = np.abs(g - w) <= relative * size
            result &= near | (g == w) | (np.isnan(g) & np.isnan(w))
    return result


def compare(name: str, operands: list[np.ndarray]) -> None:
    with jax.enable_x64(True):
        arguments = [jnp.asarray(operand) for operand in operands]
        wanted = np.asarray(getattr(jax.lax, name)(*arguments))
    got = np.asarray(getattr(lax, name)(*map(fnp.asarray, operands)))
    assert got.dtype == wanted.dtype
    assert got.shape == wanted.shape
    relative = 0.0
    smallest = 0.0
    if dtypes.is_inexact(got.dtype):
        relative = 64 * float(ml_dtypes.finfo(got.dtype).eps)
        smallest = float(ml_dtypes.finfo(got.dtype).tiny)
        if got.dtype == np.float64:
            relative = max(relative, LOOSE.get(name, 0.0))
    good = close(got, wanted, relative)
    if smallest:
        # JAX flushes subnormal numbers to zero; here they are kept.
        good |= (np.abs(got) <= smallest) & (np.abs(wanted) <= smallest)
    if name in DIFFERENCES:
        good |= DIFFERENCES[name][0](*operands)
    if name in UNARY and dtypes.is_complex(operands[0].dtype):
        good |= outside_comparison(operands[0])
    bad = np.argwhere(~good)
    lines = [
        f"{name}({', '.join(str(x[tuple(i)]) for x in operands)}) = {got[tuple(i)]}, "
        f"JAX {wanted[tuple(i)]}"
        for i in bad[:5]
    ]
    assert not len(bad), f"{len(bad)} of {good.size} differ: " + "; ".join(lines)


@pytest.mark.parametrize(
    ("name", "dtype"), [(name, dtype) for name, kinds in UNARY.items() for dtype in kinds]
)
def test_unary_function_is_jax_s_at_special_values(name: str, dtype: str) -> None:
    compare(name, [special_values(dtypes.canonical(dtype))])


@pytest.mark.parametrize(
    ("name", "dtype"), [(name, dtype) for name, kinds in BINARY.items() for dtype in kinds]
)
def test_binary_function_is_jax_s_at_pairs_of_special_values(name: str, dtype: str) -> None:
    values = special_values(dtypes.canonical(dtype), moderate=name in MODERATE)
    x, y = np.meshgrid(values, values, indexing="ij")
    compare(name, [x.astype(values.dtype), y.astype(values.dtype)])


@pytest.mark.parametrize("name", sorted(DIFFERENCES))
def test_every_listed_difference_from_jax_exists(name: str) -> None:
    dtype_names = UNARY.get(name) or BINARY[name]
    found = False
    for dtype in dtype_names:
        values = special_values(dtypes.canonical(dtype), moderate=name in MODERATE)
        operands = [values] if name in UNARY else list(np.meshgrid(values, values, indexing="ij"))
        with jax.enable_x64(True):
            wanted = np.asarray(getattr(jax.lax, name)(*map(jnp.asarray, operands)))
        got = np.asarray(getattr(lax, name)(*map(fnp.asarray, operands)))
        relative = 64 * float(ml_dtypes.finfo(got.dtype).eps) if dtypes.is_inexact(got.dtype) else 0
        differs = ~close(got, wanted, relative)
        found |= bool(np.any(differs & DIFFERENCES[name][0](*operands)))
    assert found, f"the difference is gone: {DIFFERENCES[name][1]}"


def test_clamp_is_jax_s_at_special_values() -> None:
    for dtype in ("float64", "bfloat16", "int8", "uint8"):
        values = special_values(dtypes.canonical(dtype))[::3]
        low, x, high = np.meshgrid(values, values, values, indexing="ij")
        wanted = jax.lax.clamp
        with jax.enable_x64(True):
            expected = np.asarray(wanted(jnp.asarray(low), jnp.asarray(x), jnp.asarray(high)))
        got = np.asarray(lax.clamp(fnp.asarray(low), fnp.asarray(x), fnp.asarray(high)))
        np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("source", ["float64", "float32", "int32", "int8", "uint8", "bool"])
@pytest.mark.parametrize(
    "target", ["float64", "float32", "float16", "bfloat16", "float8_e5m2", "complex64"]
    + ["int64", "int8", "uint8", "uint32", "bool"],
)  # fmt: skip
def test_conversion_is_jax_s_at_special_values(source: str, target: str) -> None:
    values = special_values(source)
    with jax.enable_x64(True):
        wanted = np.asarray(jax.lax.convert_element_type(jnp.asarray(values), target))
    got = np.asarray(lax.convert_element_type(fnp.asarray(values), target))
    assert got.dtype == wanted.dtype
    np.testing.assert_array_equal(got.astype(complex), wanted.astype(complex))


@pytest.mark.parametrize(
    ("exponent_bits", "mantissa_bits"), [(5, 10), (8, 7), (4, 3), (8, 23), (3, 0)]
)
def test_reduced_precision_is_jax_s(exponent_bits: int, mantissa_bits: int) -> None:
    rng = np.random.default_rng(0)
    scale = 10.0 ** rng.integers(-6, 7, size=500)
    values = np.concatenate([special_values("float32"), (rng.normal(size=500) * scale)])
    values = values.astype(np.float32)
    wanted = np.asarray(jax.lax.reduce_precision(values, exponent_bits, mantissa_bits))
    got = np.asarray(lax.reduce_precision(fnp.asarray(values), exponent_bits, mantissa_bits))
    np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("target", ["int32", "int16", "uint8", "bfloat16", "float64"])
def test_bitcast_is_jax_s(target: str) -> None:
    values = np.random.default_rng(0).normal(size=(3, 2)).astype(np.float32)
    with jax.enable_x64(True):
        wanted = np.asarray(jax.lax.bitcast_convert_type(jnp.asarray(values), target))
    got = np.asarray(lax.bitcast_convert_type(fnp.asarray(values), target))
    assert got.dtype == wanted.dtype
    np.testing.assert_array_equal(got.view(np.uint8), wanted.view(np.uint8))
