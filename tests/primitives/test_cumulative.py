"""Running reductions and the linear recurrence: values; derivatives at zeros, ties, infinities."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fxarray
import fxarray.numpy as fnp
from fxarray import lax
from fxarray.core import dtypes
from fxarray.core.dims import ShapeVar
from fxarray.core.errors import AxisError, DTypeError
from fxarray.core.primitive import REGISTRY
from fxarray.core.types import ArrayType
from fxarray.primitives.cumulative import CumSum, LinearRecurrence, linear_recurrence

NAMES = ("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp")
FLOATS = ("float32", "float64", "float16", "bfloat16")


def draw(dtype: str, shape: tuple[int, ...] = (3, 6), seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    values: Any = np.round(rng.uniform(-2, 2, size=shape) * 4) / 4
    if dtype.startswith("complex"):
        values = values + 1j * np.round(rng.uniform(-2, 2, size=shape))
    if dtype.startswith("uint"):
        values = np.abs(values)
    return values.astype(dtypes.canonical(dtype))


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("name", NAMES)
def test_running_reductions_equal_those_of_jax(name, axis, reverse):
    others = () if name == "cumlogsumexp" else ("int8", "uint32", "int64", "complex64")
    for dtype in (*FLOATS, *others):
        x = draw(dtype)
        actual = np.asarray(getattr(lax, name)(x, axis, reverse))
        with jax.enable_x64(True):
            wanted = np.asarray(getattr(jax.lax, name)(jnp.asarray(x), axis, reverse))
        assert actual.dtype == wanted.dtype
        tolerance = 1e-5
        if dtypes.is_narrow_float(actual.dtype):
            # JAX combines narrow floats in their own precision.
            actual, wanted, tolerance = actual.astype("float32"), wanted.astype("float32"), 5e-2
        np.testing.assert_allclose(actual, wanted, rtol=tolerance, atol=tolerance, err_msg=dtype)


def test_narrow_floats_are_summed_in_float32():
    ones = fnp.ones(1024, "bfloat16")
    assert float(lax.cumsum(ones)[-1]) == 1024.0


def test_nan_stays_from_the_first_on():
    x = np.array([1.0, np.nan, 3.0], "float32")
    for name in ("cummax", "cummin", "cumsum"):
        np.testing.assert_array_equal(np.asarray(getattr(lax, name)(x)), [1, np.nan, np.nan])


def test_refusals_name_the_operation():
    with pytest.raises(DTypeError, match="cumsum"):
        lax.cumsum(fnp.array([True, False]))
    with pytest.raises(DTypeError, match="cumlogsumexp"):
        lax.cumlogsumexp(fnp.array([1, 2]))
    with pytest.raises(AxisError, match="cumprod"):
        lax.cumprod(fnp.ones(3), 1)


# --- derivatives ----------------------------------------------------------------------------------


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_derivatives_equal_those_of_jax_where_these_are_right(name, reverse):
    rng = np.random.default_rng(3)
    x = rng.permutation(np.linspace(-2, 2, 12)).reshape(3, 4)
    weights = rng.normal(size=(3, 4))

    def ours(x: Any) -> Any:
        return (getattr(lax, name)(x, 1, reverse) ** 2 * weights).sum()

    with jax.enable_x64(True):

        def theirs(x: Any) -> Any:
            return (getattr(jax.lax, name)(x, 1, reverse) ** 2 * weights).sum()

        wanted = np.asarray(jax.jit(jax.grad(theirs))(x))
        second = np.asarray(jax.jit(jax.hessian(theirs))(x))
    np.testing.assert_allclose(np.asarray(fxarray.grad(ours)(x)), wanted, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(np.asarray(fxarray.hessian(ours)(x)), second, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("zeros", [(0,), (2,), (4,), (1, 3), (0, 1, 2, 3, 4)])
def test_derivatives_of_running_products_are_exact_at_zeros(zeros):
    x = np.array([2.0, 3.0, 5.0, 7.0, 11.0])
    x[list(zeros)] = 0.0
    jacobian = np.asarray(fxarray.jacrev(lax.cumprod)(x))
    for k in range(5):
        for i in range(5):
            others = np.prod(np.delete(x[: k + 1], i)) if i <= k else 0.0
            assert jacobian[k, i] == others
    np.testing.assert_array_equal(np.asarray(fxarray.jacfwd(lax.cumprod)(x)), jacobian)


@pytest.mark.parametrize("name", ["cummax", "cummin"])
def test_ties_of_running_extrema_share_the_derivative_evenly(name):
    x = np.array([1.0, 1.0, 1.0, 0.0, 2.0, 2.0])
    if name == "cummin":
        x = -x
    jacobian = np.asarray(fxarray.jacrev(getattr(lax, name))(x))
    third = 1 / 3
    wanted = [
        [1, 0, 0, 0, 0, 0],
        [0.5, 0.5, 0, 0, 0, 0],
        [third, third, third, 0, 0, 0],
        [third, third, third, 0, 0, 0],
        [0, 0, 0, 0, 1, 0],
        [0, 0, 0, 0, 0.5, 0.5],
    ]
    np.testing.assert_allclose(jacobian, wanted, rtol=1e-12)
    reduction = getattr(lax, name.replace("cum", "reduce_"))
    whole = np.asarray(fxarray.grad(lambda x: reduction(x, (0,)))(x))
    np.testing.assert_allclose(jacobian[-1], whole, rtol=1e-12)


def test_derivatives_of_log_sum_exp_are_finite_at_infinities_and_far_apart():
    x = np.array([-np.inf, -np.inf, 1.0, -1000.0, 1000.0])
    jacobian = np.asarray(fxarray.jacrev(lax.cumlogsumexp)(x))
    assert np.isfinite(jacobian).all()
    np.testing.assert_allclose(jacobian.sum(1), 1.0)
    np.testing.assert_array_equal(jacobian[2:, 2:], [[1, 0, 0], [1, 0, 0], [0, 0, 1]])


def test_running_sums_are_transposed_to_running_sums():
    x = fnp.ones(3)
    program = fxarray.make_program(lambda y: fxarray.linear_transpose(lax.cumsum, x)(y)[0])(x)
    assert [equation.op for equation in program.equations] == [CumSum(0, True)]


# --- the linear recurrence ------------------------------------------------------------------------


def recurrence(factor: np.ndarray, term: np.ndarray) -> np.ndarray:
    z = np.zeros_like(term)
    value = 0.0
    for k in range(len(term)):
        z[k] = value = factor[k] * value + term[k]
    return z


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("reverse", [False, True])
def test_linear_recurrence_of_one_line_and_of_many_agree(dtype, reverse):
    rng = np.random.default_rng(0)
    factor, term = rng.normal(size=(2, 3, 50)).astype(dtype)
    many = np.asarray(linear_recurrence(fnp.asarray(factor), fnp.asarray(term), 1, reverse))
    step = -1 if reverse else 1
    for row in range(3):
        exact = recurrence(factor[row, ::step].astype(float), term[row, ::step].astype(float))
        one = linear_recurrence(fnp.asarray(factor[row]), fnp.asarray(term[row]), 0, reverse)
        tolerance = 1e-5 if dtype == "float32" else 1e-12
        np.testing.assert_allclose(np.asarray(one)[::step], exact, rtol=tolerance, atol=tolerance)
        np.testing.assert_allclose(many[row, ::step], exact, rtol=tolerance, atol=tolerance)


def test_linear_recurrence_does_not_mix_what_zeros_separate():
    # Products of factors overflow on the way; those that matter do not.
    factor = fnp.array([1e200, 1e200, 1e200, 0.0, 2.0], "float64")
    term = fnp.array([0.0, 0.0, 1.0, 1.0, 1.0], "float64")
    np.testing.assert_array_equal(np.asarray(linear_recurrence(factor, term, 0)), [0, 0, 1, 1, 3])


def test_linear_recurrence_differentiates_like_a_scan():
    rng = np.random.default_rng(1)
    factor, term, weights = rng.normal(size=(3, 6))

    def ours(factor: Any, term: Any) -> Any:
        z = linear_recurrence(factor, term, 0)
        return (z * z * weights).sum()

    def scanned(factor: Any, term: Any) -> Any:
        def body(carry: Any, pair: Any) -> Any:
            z = pair[0] * carry + pair[1]
            return z, z

        _, z = jax.lax.scan(body, 0.0, (factor, term))
        return (z * z * weights).sum()

    with jax.enable_x64(True):
        wanted = jax.jit(jax.grad(scanned, (0, 1)))(factor, term)
        second = jax.jit(jax.hessian(scanned))(factor, term)
    actual = fxarray.grad(ours, (0, 1))(factor, term)
    for a, w in zip(actual, wanted, strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(w), rtol=1e-10)
    hessian = np.asarray(fxarray.hessian(ours)(factor, term))
    np.testing.assert_allclose(hessian, np.asarray(second), rtol=1e-9, atol=1e-12)


def test_recurrences_are_never_split_along_their_axis_and_take_symbolic_sizes():
    x = ArrayType((ShapeVar("batch"), 8), dtypes.float32)
    for name in NAMES:
        op = REGISTRY[name](1)  # type: ignore[call-arg]
        assert op.infer(x) == (x,)
        assert op.shard(x).whole == {"b"}
    op = LinearRecurrence(1)
    assert op.infer(x, x) == (x,)
    assert op.shard(x, x).whole == {"b"}
