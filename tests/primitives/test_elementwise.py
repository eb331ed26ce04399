"""Values of elementwise operations: what they are defined to be, and what they refuse."""

from __future__ import annotations

import cmath
from typing import Any

import ml_dtypes
import mpmath
import numpy as np
import pytest

import fxarray
import fxarray.numpy as fnp
from fxarray import lax
from fxarray.core import dtypes
from fxarray.core.errors import ArgumentError, DTypeError, ShapeError
from fxarray.core.primitive import REGISTRY
from fxarray.primitives.elementwise_base import Elementwise
from fxarray.primitives.gamma_slope import gamma_slope

ROWS = [(name, cls) for name, cls in sorted(REGISTRY.items()) if issubclass(cls, Elementwise)]


def values(x: Any) -> list[Any]:
    return np.asarray(x).tolist()


# --- every operation ------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "cls"), ROWS)
def test_infer_reference_and_eager_agree_on_every_sample(name: str, cls: type[Elementwise]) -> None:
    for sample in cls.samples(np.random.default_rng(0)):
        operands = [np.asarray(operand) for operand in sample.operands]
        types = [fnp.asarray(operand).type for operand in operands]
        if sample.error is not None:
            with pytest.raises(sample.error, match=name):
                sample.op.infer(*types)
            continue
        (promised,) = sample.op.infer(*types)
        (exact,) = sample.op.reference(*operands)
        (fast,) = sample.op.eager(*operands)
        for result in (exact, fast):
            assert isinstance(result, np.ndarray)
            assert (result.shape, result.dtype) == (promised.shape, promised.dtype)
        if dtypes.is_inexact(exact.dtype):
            bound = sample.tolerance * float(ml_dtypes.finfo(exact.dtype).eps)
            wide = np.complex128 if dtypes.is_complex(exact.dtype) else np.float64
            np.testing.assert_allclose(
                fast.astype(wide), exact.astype(wide), rtol=bound, atol=1e-30
            )
        else:
            np.testing.assert_array_equal(fast, exact)


@pytest.mark.parametrize(("name", "cls"), ROWS)
def test_mapping_over_any_operand_is_a_loop(name: str, cls: type[Elementwise]) -> None:
    for sample in cls.samples(np.random.default_rng(0)):
        ranks = [np.ndim(operand) for operand in sample.operands]
        if sample.error is not None or max(ranks) == 0 or 0 in np.shape(sample.operands[0]):
            continue
        operands = [fnp.asarray(operand) for operand in sample.operands]
        for axis in range(max(ranks)):
            # Each operand mapped alone, and all together; 0-dimensional ones never.
            patterns = [[k == i for k in range(len(ranks))] for i in range(len(ranks))]
            for pattern in [*patterns, [True] * len(ranks)]:
                axes = [
                    axis if chosen and rank else None
                    for chosen, rank in zip(pattern, ranks, strict=True)
                ]
                if axes == [None] * len(axes):
                    continue
                whole = [
                    operand if a is not None or not rank else operand.take(0, axis)
                    for operand, a, rank in zip(operands, axes, ranks, strict=True)
                ]
                mapped = fxarray.vmap(sample.op, in_axes=tuple(axes))(*whole)
                size = next(x.shape[a] for x, a in zip(whole, axes, strict=True) if a is not None)
                for i in range(size):
                    one = sample.op(
                        *[
                            x if a is None else x.take(i, a)
                            for x, a in zip(whole, axes, strict=True)
                        ]
                    )
                    np.testing.assert_array_equal(np.asarray(mapped[i]), np.asarray(one))


def test_a_mapped_scalar_goes_with_an_unmapped_matrix() -> None:
    scalars, matrix = fnp.asarray([1.0, 2.0, 3.0]), fnp.ones((4, 3))
    result = fxarray.vmap(lax.mul, in_axes=(0, None))(scalars, matrix)
    np.testing.assert_array_equal(np.asarray(result)[:, 1, 1], [1.0, 2.0, 3.0])
    assert result.shape == (3, 4, 3)


def test_float32_functions_are_rounded_from_float64() -> None:
    x = np.float32(0.7)
    for name, exact in (("sin", np.sin), ("exp", np.exp), ("tanh", np.tanh)):
        (result,) = REGISTRY[name]().reference(np.asarray(x))
        assert result == np.float32(exact(np.float64(x)))


# --- integers -------------------------------------------------------------------------------------


def test_integer_quotients_are_truncated_and_remainders_have_the_sign_of_the_dividend() -> None:
    x, y = fnp.asarray([7, -7, 7, -7]), fnp.asarray([2, 2, -2, -2])
    assert values(lax.div(x, y)) == [3, -3, -3, 3]
    assert values(lax.rem(x, y)) == [1, -1, 1, -1]


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8", "int4"])
def test_integer_quotient_and_remainder_by_zero_are_zero(dtype: str) -> None:
    x = fnp.asarray([5, 0], dtype)
    assert values(lax.div(x, fnp.zeros_like(x))) == [0, 0]
    assert values(lax.rem(x, fnp.zeros_like(x))) == [0, 0]


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "int4"])
def test_least_integer_wraps_to_itself(dtype: str) -> None:
    least = int(ml_dtypes.iinfo(dtypes.canonical(dtype)).min)
    x = fnp.asarray(np.array(least, dtypes.canonical(dtype)))
    minus_one = fnp.asarray(np.array(-1, dtypes.canonical(dtype)))
    for result in (lax.div(x, minus_one), lax.neg(x), lax.abs(x), lax.mul(x, minus_one)):
        assert int(np.asarray(result)) == least
    assert int(np.asarray(lax.rem(x, minus_one))) == 0


@pytest.mark.parametrize("amount", [32, 33, 1000, -1])
def test_shifts_by_the_width_or_more_move_everything_out(amount: int) -> None:
    x = fnp.asarray([5, -5], "int32")
    assert values(lax.shift_left(x, amount)) == [0, 0]
    assert values(lax.shift_right_logical(x, amount)) == [0, 0]
    assert values(lax.shift_right_arithmetic(x, amount)) == [0, -1]


def test_narrow_integers_shift_and_count_within_their_width() -> None:
    x = fnp.asarray(np.array([-8, -1, 1, 7], dtypes.int4))
    one = fnp.asarray(np.array(1, dtypes.int4))
    assert np.asarray(lax.shift_right_logical(x, one)).astype(int).tolist() == [4, 7, 0, 3]
    assert np.asarray(lax.shift_left(x, one)).astype(int).tolist() == [0, -2, 2, -2]
    assert np.asarray(lax.population_count(x)).astype(int).tolist() == [1, 4, 1, 3]
    assert np.asarray(lax.clz(x)).astype(int).tolist() == [0, 0, 3, 1]


def test_upper_half_of_a_product_is_exact() -> None:
    rng = np.random.default_rng(0)
    for dtype in ("int64", "uint64", "int32", "uint8"):
        info = np.iinfo(dtype)
        x, y = (rng.integers(info.min, info.max, 50, dtype=dtype, endpoint=True) for _ in "xy")
        bits = 8 * np.dtype(dtype).itemsize
        expected = [(int(a) * int(b)) >> bits for a, b in zip(x, y, strict=True)]
        assert values(lax.mulhi(fnp.asarray(x), fnp.asarray(y))) == expected


def test_powers_of_one_half_are_no_square_roots_at_minus_infinity_and_minus_zero() -> None:
    x = fnp.asarray([-np.inf, -0.0, 4.0, -1.0])
    for power in (lambda x: lax.pow(x, 0.5), fxarray.jit(lambda x: lax.pow(x, 0.5))):
        roots = np.asarray(power(x))
        assert np.array_equal(roots, [np.inf, 0.0, 2.0, np.nan], equal_nan=True)
        assert not np.signbit(roots[1])


def test_integer_powers_wrap_and_negative_ones_are_truncated() -> None:
    x = fnp.asarray([2, -1, 1, 0, -3], "int32")
    assert values(lax.integer_pow(x, 33)) == [0, -1, 1, 0, int(np.int32(np.int64(-3) ** 33))]
    assert values(lax.pow(x, fnp.asarray([-1, -3, -5, -1, 2], "int32"))) == [0, -1, 1, 0, 9]
    with pytest.raises(ArgumentError, match="no negative powers"):
        lax.integer_pow(x, -1)


# --- rounding -------------------------------------------------------------------------------------


def test_rounding_takes_ties_away_from_zero_or_to_even() -> None:
    x = fnp.asarray([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5])
    assert values(lax.round(x)) == [-3, -2, -1, 1, 2, 3]
    even = lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN)
    assert values(even) == [-2, -2, 0, 0, 2, 2]


def test_rounding_is_exact_just_below_a_tie_and_for_large_numbers() -> None:
    below = np.nextafter(0.5, 0.0)
    x = fnp.asarray([below, -below, 2.0**52 + 1, np.inf], "float64")
    assert values(lax.round(x)) == [0.0, -0.0, 2.0**52 + 1, np.inf]


def test_neighbours_of_narrow_floats_are_one_step_away() -> None:
    for dtype in (dtypes.bfloat16, dtypes.float16, dtypes.float8_e5m2):
        every = np.arange(2 ** dtypes.bit_width(dtype)).astype(f"uint{8 * dtype.itemsize}")
        numbers = np.sort(every.view(dtype).astype(np.float32))
        numbers = np.unique(numbers[np.isfinite(numbers)])
        x = fnp.asarray(numbers[:-1].astype(dtype))
        up = lax.nextafter(x, fnp.full_like(x, np.inf))
        np.testing.assert_array_equal(np.asarray(up).astype(np.float32), numbers[1:])


# --- complex numbers ------------------------------------------------------------------------------

CMATH = ("sqrt", "exp", "log", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh")


@pytest.mark.parametrize("name", [*CMATH, "asinh", "acosh", "atanh"])
def test_complex_functions_follow_the_c_standard(name: str) -> None:
    parts = (0.0, -0.0, 0.5, 1.0, -2.0, np.inf, -np.inf)
    tried = 0
    for z in (complex(re, im) for re in parts for im in parts):
        try:
            expected = getattr(cmath, name)(z)
        except (ValueError, OverflowError):
            continue
        got = complex(getattr(lax, name)(fnp.asarray(np.array(z))))
        np.testing.assert_allclose([got.real, got.imag], [expected.real, expected.imag], rtol=1e-13)
        tried += 1
    assert tried > 20


def test_complex_quotients_by_zero_and_infinity_are_limits() -> None:
    one, zero = np.array(1 + 1j), np.array(0j)
    infinite = np.array(complex(np.inf, 0.0))

    def quotient(x: Any, y: Any) -> complex:
        return complex(lax.div(fnp.asarray(x), fnp.asarray(y)))

    assert quotient(one, infinite) == 0
    assert cmath.isinf(quotient(one, zero))
    assert cmath.isinf(quotient(infinite, one))
    assert cmath.isnan(quotient(zero, zero))
    assert complex(lax.reciprocal(fnp.asarray(infinite))) == 0


def test_a_complex_number_keeps_infinite_and_signed_parts() -> None:
    z = np.asarray(lax.complex(fnp.asarray([1.0, np.inf]), fnp.asarray([-0.0, -np.inf])))
    assert np.signbit(z.imag).all()
    assert z.real.tolist() == [1.0, np.inf]


# --- special functions ----------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [1e-3, 0.5, 2.5, 123.0, 3000.0])
@pytest.mark.parametrize("ratio", [1e-2, 0.5, 0.999, 1.001, 1.5, 10.0])
def test_slope_of_a_gamma_sample_is_exact(shape: float, ratio: float) -> None:
    x = shape * ratio
    if x > shape + 60 * np.sqrt(shape) + 200:
        pytest.skip("the tail beyond is zero in float64")
    with mpmath.workdps(40):

        def tail(a: Any) -> Any:
            ends = (0, x) if x <= shape else (x, mpmath.inf)
            return mpmath.gammainc(a, *ends, regularized=True)

        slope = mpmath.diff(tail, mpmath.mpf(shape)) * (1 if x <= shape else -1)
        log_density = (mpmath.mpf(shape) - 1) * mpmath.log(x) - x - mpmath.loggamma(shape)
        expected = float(-slope / mpmath.exp(log_density))
    np.testing.assert_allclose(gamma_slope(np.array(shape), np.array(x)), expected, rtol=1e-11)


def test_gamma_slope_is_nan_outside_and_zero_at_the_end_of_its_domain() -> None:
    a, x = np.array([-1.0, 2.0, 0.0, 1.0]), np.array([1.0, -1.0, 1.0, 0.0])
    np.testing.assert_array_equal(gamma_slope(a, x), [np.nan, np.nan, np.nan, 0.0])


# --- operands -------------------------------------------------------------------------------------


def test_python_numbers_take_the_dtype_of_the_array() -> None:
    for dtype in ("bfloat16", "float64", "complex64"):
        assert lax.add(fnp.asarray([1.0], dtype), 2).dtype == dtypes.canonical(dtype)
        assert lax.mul(0.5, fnp.asarray([1.0], dtype)).dtype == dtypes.canonical(dtype)
    assert lax.add(fnp.asarray([1], "int8"), 2).dtype == np.int8
    assert lax.add(1, 2.5).weak_type


def test_weak_tracers_take_the_dtype_of_the_array_like_python_numbers() -> None:
    x = fnp.asarray([1.0], "bfloat16")
    assert fxarray.jit(lax.mul)(x, 2.0).dtype == dtypes.bfloat16


def test_two_strong_dtypes_are_an_error_that_names_both() -> None:
    with pytest.raises(DTypeError, match=r"add: operand 1 is f64\[3\], but operand 0 is f32\[3\]"):
        lax.add(fnp.ones(3), fnp.ones(3, "float64"))
    with pytest.raises(DTypeError, match="operand 1"):
        lax.add(fnp.asarray([1, 2]), 1.5)


def test_unequal_shapes_are_an_error_that_names_both() -> None:
    with pytest.raises(
        ShapeError, match=r"mul: operand 1 is f32\[1,3\], but operand 0 is f32\[3\]"
    ):
        lax.mul(fnp.ones(3), fnp.ones((1, 3)))


def test_unaccepted_dtypes_are_an_error_that_says_what_is_accepted() -> None:
    with pytest.raises(DTypeError, match="sin takes dtypes: float, complex"):
        lax.sin(fnp.asarray([1, 2]))
    with pytest.raises(DTypeError, match="neg takes"):
        lax.neg(fnp.asarray([True]))


def test_lists_are_refused_with_the_remedy() -> None:
    with pytest.raises(ArgumentError, match=r"lax\.add takes arrays.*list.*asarray"):
        lax.add([1, 2], 3)


def test_selector_of_a_wrong_dtype_or_too_many_cases_is_an_error() -> None:
    x = fnp.ones(2)
    with pytest.raises(DTypeError, match="selector must be bool or int32"):
        lax.select_n(x, x, x)
    with pytest.raises(ArgumentError, match="int32 selector"):
        lax.select_n(fnp.asarray([True, False]), x, x, x)


def test_joining_elements_needs_a_last_dimension_of_their_number() -> None:
    x = fnp.ones((4,), "uint8")
    assert lax.bitcast_convert_type(x, "uint32").shape == ()
    with pytest.raises(ShapeError, match="joins 2 elements"):
        lax.bitcast_convert_type(x, "uint16")
    with pytest.raises(ShapeError, match="joins 4 elements"):
        fxarray.vmap(lambda y: lax.bitcast_convert_type(y, "uint32"))(x)


def test_random_keys_compare_and_select_but_do_not_add() -> None:
    keys = fxarray.random.split(fxarray.random.key(0), 2)
    assert values(lax.eq(keys, keys)) == [True, True]
    chosen = lax.select(fnp.asarray([True, False]), keys, keys[::-1])
    assert values(lax.eq(chosen, keys[0])) == [True, True]
    with pytest.raises(DTypeError, match="add takes dtypes"):
        lax.add(keys, keys)


def test_comparisons_are_not_weak() -> None:
    assert not lax.eq(1.0, 2.0).weak_type
    assert lax.exp(1.0).weak_type
    assert lax.abs(3 + 4j).weak_type
