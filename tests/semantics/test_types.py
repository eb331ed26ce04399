"""Points 1 to 7: weak types, promotion, carries, 64 bits, integers, casts, strictness."""

from __future__ import annotations

import operator
import warnings

import ml_dtypes
import numpy as np
import pytest

import fxarray as fx
import fxarray.numpy as fnp
from fxarray import lax
from fxarray.core.errors import (
    CarryTypeError,
    DTypeError,
    ImmutableArrayError,
    TreeStructureError,
    TypePromotionError,
)


def describe(x):
    return str(x.dtype), x.weak_type


# --- point 1: weak types and the lattice --------------------------------------------------------


@pytest.mark.parametrize(
    ("dtype", "scalar", "expected"),
    [
        ("float16", 1.0, ("float16", False)),
        ("bfloat16", 1.0, ("bfloat16", False)),
        ("float32", 1, ("float32", False)),
        ("float64", 1.0, ("float64", False)),
        ("int8", 1, ("int8", False)),
        ("uint8", 1, ("uint8", False)),
        ("int8", True, ("int8", False)),
        ("int8", 1.0, ("float32", True)),
        ("int32", 2.0, ("float32", True)),
        ("int64", 2.0, ("float64", True)),
        ("bool", 1, ("int32", True)),
        ("bool", 1.0, ("float32", True)),
        ("float16", 1j, ("complex64", False)),
        ("float32", 1j, ("complex64", False)),
        ("float64", 1j, ("complex128", False)),
        ("int32", 1j, ("complex64", True)),
        ("complex64", 1.0, ("complex64", False)),
    ],
)
def test_python_scalars_take_the_dtype_of_the_array(dtype, scalar, expected):
    """Point 1: a Python scalar changes an array's kind if it must, never its width (int64 meets
    float64).
    """
    x = fnp.ones(2, dtype)
    assert describe(x + scalar) == expected
    assert describe(scalar + x) == expected
    assert describe(fx.jit(lambda x, s: x + s)(x, scalar)) == expected
    assert describe(fx.vmap(lambda x: x + scalar)(x)) == expected


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ("int32", "float16", "float16"),
        ("int64", "bfloat16", "bfloat16"),
        ("bfloat16", "float16", "float32"),
        ("bfloat16", "float32", "float32"),
        ("uint8", "int8", "int16"),
        ("uint16", "int8", "int32"),
        ("uint32", "int32", "int64"),
        ("uint64", "int8", "float32"),
        ("bool", "uint8", "uint8"),
        ("float32", "complex64", "complex64"),
        ("float64", "complex64", "complex128"),
        ("float32", "float64", "float64"),
        ("float16", "complex64", "complex64"),
    ],
)
def test_two_arrays_meet_in_the_lattice(left, right, expected):
    """Point 1: the lattice, as with 64 bits on; it is symmetric, and the same under jit."""
    x, y = fnp.ones(2, left), fnp.ones(2, right)
    if (left, right) == ("uint64", "int8"):
        expected = str(fnp.promote_types(left, right))
        assert expected.startswith("float")
    assert str((x + y).dtype) == expected
    assert str((y + x).dtype) == expected
    assert str(fx.jit(operator.add)(x, y).dtype) == expected
    assert str(fnp.promote_types(left, right)) == expected
    assert str(fnp.result_type(x, y)) == expected


def test_dtypes_without_a_common_one_are_refused():
    """Point 1: float8 kinds convert only when asked."""
    with pytest.raises(TypePromotionError, match="float8_e4m3fn.*bfloat16"):
        fnp.ones(2, fnp.float8_e4m3fn) + fnp.ones(2, fnp.bfloat16)


# --- point 2: where weakness survives -----------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "weak"),
    [
        (lambda: fnp.asarray(1.0), True),
        (lambda: fnp.array(1.0), True),
        (lambda: fnp.full((), 1.0), True),
        (lambda: fnp.full((3,), 1), True),
        (lambda: fnp.where(fnp.array([True, False]), 1.0, 2.0), True),
        (lambda: fnp.exp(1.0), True),
        (lambda: fnp.asarray(1.0) + fnp.asarray(2), True),
        (lambda: fnp.zeros(()), False),
        (lambda: fnp.ones(2), False),
        (lambda: fnp.asarray(1.0, fnp.float32), False),
        (lambda: fnp.asarray([1.0, 2.0]), False),
        (lambda: fnp.asarray(1.0).astype(fnp.float32), False),
        (lambda: fnp.asarray(np.float32(1.0)), False),
        (lambda: fnp.full((), 1.0, fnp.float32), False),
        (lambda: fnp.linspace(0, 1, 3), False),
    ],
)
def test_weakness_survives_what_gives_no_dtype(make, weak):
    """Point 2: asarray, full, where and functions of Python scalars stay weak; zeros does not."""
    assert make().weak_type is weak
    assert fx.jit(make)().weak_type is weak


def test_weakness_is_part_of_the_key_of_a_trace():
    """Point 2: f(1.), f(np.float32(1)), f(1) and f(True) are four traces."""
    traces = []
    f = fx.jit(lambda x: (traces.append(x.dtype), x + x)[1])
    for value in (1.0, np.float32(1), 1, True):
        f(value), f(value)
    assert list(map(str, traces)) == ["float32", "float32", "int32", "bool"]
    assert f(1.0).weak_type
    assert not f(np.float32(1)).weak_type


# --- point 3: types of carries ------------------------------------------------------------------


@pytest.mark.parametrize("loop", ["scan", "while_loop", "fori_loop"])
def test_a_weak_initial_carry_takes_the_dtype_of_the_body(loop):
    """Point 3: a weak start against a strong result is upgraded silently."""
    step = lambda c: c * np.float32(2) + fnp.ones((), fnp.float32)  # noqa: E731
    result = {
        "scan": lambda: lax.scan(lambda c, _: (step(c), None), 1.0, None, length=2)[0],
        "while_loop": lambda: lax.while_loop(lambda c: c < 5, step, 1.0),
        "fori_loop": lambda: lax.fori_loop(0, 2, lambda i, c: step(c), 1.0),
    }[loop]()
    assert describe(result) == ("float32", False)
    assert float(result) == 7.0


def test_a_weak_integer_start_can_become_a_float_carry():
    """Point 3: a Python 0 as a start is weak, so a float body decides the dtype."""
    total, _ = lax.scan(lambda c, x: (c + x, None), 0, fnp.ones(3))
    assert describe(total) == ("float32", False)
    assert float(total) == 3.0


@pytest.mark.parametrize(
    "loop",
    [
        lambda c: lax.scan(lambda c, _: (c * 0.5, None), c, None, length=3),
        lambda c: lax.while_loop(lambda c: c > 1, lambda c: c * 0.5, c),
        lambda c: lax.fori_loop(0, 3, lambda i, c: c * 0.5, c),
    ],
)
def test_a_carry_that_changes_dtype_is_an_error_that_names_both_types(loop):
    """Point 3: an integer carry times 0.5 is a TypeError that names both types."""
    with pytest.raises(CarryTypeError) as caught:
        loop(fnp.int32(8))
    assert isinstance(caught.value, TypeError)
    assert "i32" in str(caught.value)
    assert "f32" in str(caught.value)


def test_branches_may_differ_in_weakness_only():
    """Point 3: a weak and a strong branch are joined to the strong type; other types are not."""
    result = lax.cond(True, lambda: 1.0, lambda: fnp.zeros((), fnp.float32))
    assert describe(result) == ("float32", False)
    with pytest.raises(TypeError, match="i32.*f32|f32.*i32"):
        lax.cond(True, lambda: fnp.int32(1), lambda: fnp.float32(1))
    with pytest.raises(TreeStructureError):
        lax.cond(True, lambda: (1.0,), lambda: [1.0])


# --- point 4: 64 bits, and dtypes of reductions -------------------------------------------------


@pytest.mark.parametrize("dtype", ["float64", "int64", "uint64", "complex128"])
def test_64_bits_are_kept_when_asked_for(dtype):
    """Point 4 and pain point 19: an explicit 64-bit dtype is kept, without a flag or a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for x in (
            fnp.zeros(3, dtype),
            fnp.arange(3).astype(dtype),
            fnp.asarray(np.ones(3, dtype)),
            fx.jit(lambda: fnp.ones(3, dtype))(),
            fx.jit(lambda x: x + 1)(np.ones(3, dtype)),
        ):
            assert str(x.dtype) == dtype
    if dtype.startswith("float"):
        assert str(fx.grad(lambda x: (x * x).sum())(fnp.ones(2, dtype)).dtype) == dtype
    big = 2**40 + 1
    if dtype == "int64":
        assert int(fnp.asarray(big, dtype)) == big
        assert int(fx.jit(lambda x: x + 1)(fnp.asarray(big, dtype))) == big + 1


def test_results_without_a_dtype_have_32_bits():
    """Point 4: defaults are 32-bit; NumPy scalars of default 64-bit types are weak."""
    assert str(fnp.arange(3).dtype) == "int32"
    assert str(fnp.zeros(3).dtype) == "float32"
    assert str(fnp.asarray([1, 2]).dtype) == "int32"
    assert str(fnp.argmax(fnp.ones(3)).dtype) == "int32"
    assert str(fnp.linspace(0, 1, 3).dtype) == "float32"
    assert describe(fnp.float32(1) * np.sqrt(64)) == ("float32", False)
    assert describe(fnp.ones(2, fnp.float16) * np.float64(2)) == ("float16", False)
    assert describe(fnp.ones(2, fnp.int8) + np.int64(2)) == ("int8", False)


@pytest.mark.parametrize("value", [2**31, -(2**31) - 1, 2**40])
def test_python_ints_beyond_32_bits_overflow_loudly(value):
    """Point 4: a Python int that does not fit in int32 is an OverflowError, unless 64 bits are
    asked.
    """
    with pytest.raises(OverflowError):
        fnp.asarray(value)
    with pytest.raises(OverflowError):
        fnp.arange(3) + value
    with pytest.raises(OverflowError):
        fx.jit(lambda x: x + value)(fnp.arange(3))
    assert int(fnp.asarray(value, fnp.int64)) == value
    assert int(fnp.zeros((), fnp.int64) + value) == value


@pytest.mark.parametrize(
    ("function", "dtype", "expected"),
    [
        ("sum", "int8", "int32"),
        ("sum", "bool", "int32"),
        ("sum", "uint8", "uint32"),
        ("sum", "int32", "int32"),
        ("sum", "int64", "int64"),
        ("sum", "float16", "float16"),
        ("prod", "int8", "int32"),
        ("prod", "bool", "int32"),
        ("cumsum", "int8", "int8"),
        ("cumprod", "int8", "int8"),
        ("mean", "int32", "float32"),
        ("mean", "bool", "float32"),
        ("mean", "bfloat16", "bfloat16"),
        ("max", "int8", "int8"),
        ("std", "int32", "float32"),
    ],
)
def test_dtypes_of_reductions(function, dtype, expected):
    """Point 4: sums of narrow integers widen to 32 bits, cumsum does not, mean of ints is float."""
    assert str(getattr(fnp, function)(fnp.ones(3, dtype)).dtype) == expected
    assert str(fx.jit(getattr(fnp, function))(fnp.ones(3, dtype)).dtype) == expected


def test_narrow_floats_accumulate_in_float32():
    """Point 4: a bfloat16 or float16 sum of 4096 ones is 4096 (it would stop at 256 or 2048)."""
    for dtype in (fnp.bfloat16, fnp.float16):
        x = fnp.ones(4096, dtype)
        assert float(x.sum()) == 4096.0
        assert float(x.mean()) == 1.0
        assert float(fx.jit(fnp.sum)(x)) == 4096.0
        assert float(fnp.dot(x, x)) == 4096.0
    assert int(fnp.full(1000, 100, fnp.int8).sum()) == 100_000


# --- point 5: integer arithmetic ----------------------------------------------------------------


def both(function, *args):
    """The result of a function in eager mode, after checking that jit agrees."""
    eager, staged = function(*args), fx.jit(function)(*args)
    np.testing.assert_array_equal(np.asarray(eager), np.asarray(staged))
    assert eager.dtype == staged.dtype
    return np.asarray(eager)


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8", "uint32"])
def test_integer_division_by_zero_gives_zero(dtype):
    """Point 5, improved: 5 // 0 and 5 % 0 are 0, and nothing traps or warns."""
    x, zero = fnp.asarray([5, 0, 7], dtype), fnp.zeros(3, dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for function in (operator.floordiv, operator.mod, lax.div, lax.rem, fnp.fmod):
            np.testing.assert_array_equal(both(function, x, zero), [0, 0, 0])


def test_signs_of_integer_quotients_and_remainders():
    """Point 5: lax.div truncates and // floors; lax.rem follows the dividend, % the divisor."""
    x, y = fnp.asarray([7, -7, 7, -7]), fnp.asarray([2, 2, -2, -2])
    np.testing.assert_array_equal(both(lax.div, x, y), [3, -3, -3, 3])
    np.testing.assert_array_equal(both(operator.floordiv, x, y), [3, -4, -4, 3])
    np.testing.assert_array_equal(both(lax.rem, x, y), [1, -1, 1, -1])
    np.testing.assert_array_equal(both(operator.mod, x, y), [1, 1, -1, -1])
    quotient, remainder = divmod(x, y)
    np.testing.assert_array_equal(quotient * y + remainder, x)
    a, b = x.astype(fnp.float32), y.astype(fnp.float32)
    np.testing.assert_array_equal(both(operator.mod, a, b), [1, 1, -1, -1])
    np.testing.assert_array_equal(both(lax.rem, a, b), [1, -1, 1, -1])


def test_integers_wrap_around():
    """Point 5: INT_MIN // -1 is INT_MIN, sums wrap, and nothing warns."""
    smallest = fnp.asarray([np.iinfo(np.int32).min])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert both(operator.floordiv, smallest, fnp.asarray([-1])) == smallest
        assert both(operator.mod, smallest, fnp.asarray([-1])) == 0
        assert both(fnp.abs, smallest) == smallest
        assert both(operator.neg, smallest) == smallest
        assert both(lambda x: x - 1, smallest) == np.iinfo(np.int32).max
        assert both(lambda x: x + 1, fnp.asarray([255], fnp.uint8)) == 0


def test_shifts_by_the_width_or_more():
    """Point 5: << by the width gives 0, >> fills with the sign."""
    x = fnp.asarray([-5, 5, -1], fnp.int32)
    for amount in (32, 33, 100):
        np.testing.assert_array_equal(both(lambda x, a=amount: x << a, x), [0, 0, 0])
        np.testing.assert_array_equal(both(lambda x, a=amount: x >> a, x), [-1, 0, -1])
    unsigned = fnp.asarray([200, 1], fnp.uint8)
    np.testing.assert_array_equal(both(lambda x: x >> 8, unsigned), [0, 0])
    np.testing.assert_array_equal(both(lambda x: x << 8, unsigned), [0, 0])


def test_integers_to_a_negative_static_power_are_refused():
    """Point 5: int ** negative raises, as it has no integer value."""
    with pytest.raises((ValueError, TypeError), match="negative"):
        fnp.arange(1, 4) ** -1
    with pytest.raises((ValueError, TypeError), match="negative"):
        fx.jit(lambda x: x**-2)(fnp.arange(1, 4))
    np.testing.assert_allclose(fnp.arange(1, 4) ** -1.0, [1, 1 / 2, 1 / 3], rtol=1e-6)


# --- point 6: casts, rounding, denormals --------------------------------------------------------


def test_casts_of_floats_to_integers_saturate():
    """Point 6: nan is 0, the rest saturates; -1. as uint8 is 0, 300. is 255."""
    x = fnp.asarray([np.nan, np.inf, -np.inf, 3e9, -3e9, 1.9, -1.9], fnp.float32)
    low, high = np.iinfo(np.int32).min, np.iinfo(np.int32).max
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        got = both(lambda x: x.astype(fnp.int32), x)
        np.testing.assert_array_equal(got, [0, high, low, high, low, 1, -1])
        got = both(lambda x: x.astype(fnp.uint8), fnp.asarray([-1.0, 300.0, np.nan, 7.9]))
        np.testing.assert_array_equal(got, [0, 255, 0, 7])
        got = both(lambda x: x.astype(fnp.int8), fnp.asarray([-1000.0, 200.0], fnp.bfloat16))
        np.testing.assert_array_equal(got, [-128, 127])
    np.testing.assert_array_equal(fnp.asarray([300, -1]).astype(fnp.uint8), [44, 255])


def test_two_ways_of_rounding_halves():
    """Point 6: numpy.round takes halves to even, lax.round away from zero."""
    x = fnp.asarray([0.5, 1.5, 2.5, -0.5, -2.5])
    np.testing.assert_array_equal(both(fnp.round, x), [0, 2, 2, 0, -2])
    np.testing.assert_array_equal(both(lax.round, x), [1, 2, 3, -1, -3])
    np.testing.assert_array_equal(fnp.round(fnp.asarray([1.25, 1.35]), 1), np.float32([1.2, 1.4]))


def test_denormals_are_kept_alike_in_eager_mode_and_under_jit():
    """Point 6, improved: 1e-40 stays 1e-40 whatever is done to it, under jit or not."""
    x = fnp.asarray([1e-40], fnp.float32)
    kept = np.float32(1e-40)
    assert kept > 0
    for function in (lambda x: x * 1.0, lambda x: x + 0.0, lambda x: x * 2 / 2, lambda x: x):
        assert both(function, x) == kept


# --- point 7: strictness ------------------------------------------------------------------------


def test_ranks_are_promoted_by_broadcasting_and_a_setting_forbids_it():
    """Point 7: (3,) + (2, 3) works by default; `numpy_rank_promotion` warns or raises."""
    x, y = fnp.ones(3), fnp.ones((2, 3))
    assert (x + y).shape == (2, 3)
    with fx.config.using(numpy_rank_promotion="raise"), pytest.raises(ValueError, match="rank"):
        x + y
    with fx.config.using(numpy_rank_promotion="raise"):
        assert (y + 1.0).shape == (2, 3)
    with fx.config.using(numpy_rank_promotion="warn"), pytest.warns(UserWarning, match="rank"):
        x + y


@pytest.mark.parametrize("name", ["sum", "mean", "max", "sin", "exp", "argmax", "sort", "reshape"])
def test_lists_are_refused_where_arrays_are_meant(name):
    """Point 7: sum([1, 2]) is a TypeError that says to convert; asarray takes lists."""
    arguments = ([1, 2],) if name != "reshape" else ([1, 2], (2, 1))
    with pytest.raises(TypeError, match=r"list"):
        getattr(fnp, name)(*arguments)
    assert fnp.asarray([1, 2]).shape == (2,)


def test_arrays_have_no_hash():
    """Point 7: hash(array) is a TypeError, for tracers too."""
    with pytest.raises(TypeError, match="unhashable"):
        hash(fnp.ones(3))
    with pytest.raises(TypeError, match="unhashable"):
        fx.jit(lambda x: {x: 1})(fnp.ones(3))


def test_item_assignment_points_to_at():
    """Point 7: x[0] = 1 is a TypeError that names the way to do it; so is x.at[0] = 1."""
    x = fnp.zeros(3)
    with pytest.raises(ImmutableArrayError, match=r"x\.at\[.*\]\.set"):
        x[0] = 1
    with pytest.raises(TypeError, match=r"\.at"):
        fx.jit(lambda x: operator.setitem(x, 0, 1.0))(x)
    assert isinstance(ImmutableArrayError(""), TypeError)
    y = x
    y += 1
    np.testing.assert_array_equal(x, [0, 0, 0])


def test_bfloat16_numpy_arrays_keep_their_dtype():
    """Point 1: the extended dtypes of ml_dtypes are dtypes like any other."""
    x = np.ones(3, ml_dtypes.bfloat16)
    assert str(fnp.asarray(x).dtype) == "bfloat16"
    assert str((fnp.asarray(x) * 2.0).dtype) == "bfloat16"
    assert issubclass(DTypeError, TypeError)


def test_a_setting_forbids_implicit_promotion_of_arrays():
    """Point 1: under `numpy_dtype_promotion="strict"` only Python numbers adapt."""
    x, y = fnp.ones(3, fnp.int32), fnp.ones(3, fnp.float32)
    with fx.config.using(numpy_dtype_promotion="strict"):
        with pytest.raises(TypePromotionError, match="strict"):
            x + y
        with pytest.raises(TypePromotionError, match="strict"):
            fx.jit(operator.mul)(x, y)
        with pytest.raises(TypePromotionError, match="strict"):
            x + 1.5
        assert str((y + 1).dtype) == "float32"
        assert str((x * 2).dtype) == "int32"
    assert str((x + y).dtype) == "float32"


def test_settings_are_refused_where_they_mean_nothing():
    """Pain point 19: enable_x64 is refused with the reason; so are values that a setting lacks."""
    with pytest.raises(ValueError, match="64-bit dtypes need no flag"):
        fx.config.update("jax_enable_x64", True)
    with pytest.raises(ValueError, match="allow, warn, raise"):
        fx.config.update("numpy_rank_promotion", "never")
    with pytest.raises(ValueError, match="there are: .*debug_nans"):
        fx.config.update("nonsense", 1)


def test_numpy_functions_take_concrete_arrays_and_refuse_traced_ones():
    """Points 42 and 47: np.cos(x) converts a concrete array; of a tracer it names the remedy."""
    x, ours = np.ones(3, np.float32), fnp.ones(3)
    assert type(np.cos(ours)) is np.ndarray
    assert np.isfinite(ours).all()
    np.testing.assert_array_equal(np.add(x, ours), [2, 2, 2])
    with pytest.raises(TypeError, match=r"fxarray\.numpy"):
        fx.jit(lambda x: np.cos(x))(ours)
    for function in (operator.add, operator.mul, operator.matmul, operator.lt, operator.eq):
        for left, right in ((x, ours), (ours, x)):
            assert isinstance(function(left, right), fx.Array)
    assert isinstance(np.float64(2) * ours, fx.Array)
    assert isinstance(np.int64(2) < ours, fx.Array)
