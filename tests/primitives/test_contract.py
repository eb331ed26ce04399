"""dot_general and its kin against JAX: values, gradients, mapping."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import fxarray
import fxarray.numpy as fnp
from fxarray import lax
from fxarray.core.config import SETTINGS
from fxarray.core.errors import ArgumentError, AxisError, DTypeError, ShapeError
from fxarray.lax.contract import _NAMES

RNG = np.random.default_rng(5)


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


def normal(*shape):
    return RNG.normal(size=shape)


def assert_same(ours, theirs):
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    assert ours.shape == theirs.shape
    assert ours.dtype == theirs.dtype
    np.testing.assert_allclose(ours, theirs, rtol=1e-11, atol=1e-11)


CASES = {
    "matrices": ((2, 3), (3, 4), (((1,), (0,)), ((), ()))),
    "outer": ((2, 3), (4,), (((), ()), ((), ()))),
    "elementwise": ((2, 3), (2, 3), (((), ()), ((0, 1), (0, 1)))),
    "batched": ((5, 2, 3), (5, 3, 4), (((2,), (1,)), ((0,), (0,)))),
    "mixed": ((5, 2, 3, 4), (4, 3, 2, 6), (((1, 3), (2, 0)), ((2,), (1,)))),
    "empty_sum": ((2, 0), (0, 3), (((1,), (0,)), ((), ()))),
    "scalars": ((), (), (((), ()), ((), ()))),
}


@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients_agree_with_jax(name):
    x, y, numbers = CASES[name]
    x, y = normal(*x), normal(*y)
    ours, pullback = fxarray.vjp(lambda x, y: lax.dot_general(x, y, numbers), x, y)
    theirs, pullback_of_jax = jax.vjp(lambda x, y: jax.lax.dot_general(x, y, numbers), x, y)
    assert_same(ours, theirs)
    cotangent = normal(*theirs.shape)
    for mine, other in zip(
        pullback(fnp.asarray(cotangent)), pullback_of_jax(np.asarray(cotangent)), strict=True
    ):
        assert_same(mine, other)


@pytest.mark.parametrize("axes", [(0, 0), (2, None), (None, 1), (3, 0)])
def test_mapping_agrees_with_jax(axes):
    shapes = [[5, 2, 3], [5, 3, 4]]
    for shape, axis in zip(shapes, axes, strict=True):
        if axis is not None:
            shape.insert(axis, 6)
    x, y = (normal(*shape) for shape in shapes)
    numbers = (((2,), (1,)), ((0,), (0,)))
    ours = fxarray.vmap(lambda x, y: lax.dot_general(x, y, numbers), in_axes=axes)(x, y)
    assert_same(ours, jax.vmap(lambda x, y: jax.lax.dot_general(x, y, numbers), in_axes=axes)(x, y))


def test_dot_and_batch_matmul_agree_with_jax():
    for x, y in (((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 4)), ((2, 3), (3, 4))):
        x, y = normal(*x), normal(*y)
        assert_same(lax.dot(x, y), jax.lax.dot(x, y))
    x, y = normal(5, 6, 2, 3), normal(5, 6, 3, 4)
    assert_same(lax.batch_matmul(x, y), jax.lax.batch_matmul(x, y))
    numbers = (((0,), (0,)), ((), ()))
    x, y = normal(3, 2), normal(3, 4)
    assert_same(lax.dot(x, y, dimension_numbers=numbers), x.T @ y)


def test_narrow_products_are_summed_wide_and_may_stay_so():
    x = RNG.integers(-128, 127, (3, 50)).astype("int8")
    wide = lax.dot(x, x.T, preferred_element_type="int32")
    assert_same(wide, x.astype("int32") @ x.T.astype("int32"))
    assert_same(lax.dot(x, x.T), (x.astype("int32") @ x.T.astype("int32")).astype("int8"))
    half = normal(2, 4096).astype("float16")
    exact = half.astype("float64") @ half.T.astype("float64")
    np.testing.assert_allclose(np.asarray(lax.dot(half, half.T)), exact, rtol=1e-3)


@pytest.mark.parametrize("precision", [None, "highest", lax.Precision.HIGH, ("high", "default")])
def test_precision_is_taken_in_all_its_forms(precision):
    x = normal(3, 3)
    assert_same(lax.dot(x, x, precision=precision), x @ x)


@pytest.mark.parametrize(
    "multiply",
    [
        fnp.matmul,
        fnp.dot,
        lax.dot,
        lambda x, y: fnp.einsum("ij,jk->ik", x, y),
        lambda x, y: fnp.convolve(x[0], y[0]),
    ],
)
def test_the_setting_says_how_exactly_to_multiply_where_no_argument_does(multiply):
    def precisions():
        program = fxarray.make_program(multiply)(x, x)
        return [e.op.precision for e in program.equations if hasattr(e.op, "precision")]

    x = fnp.ones((3, 3))
    assert precisions() == [None]
    with fxarray.default_matmul_precision("float32"):
        assert precisions() == ["highest"]


def test_names_of_precisions_are_those_that_the_setting_can_have():
    assert tuple(_NAMES) == SETTINGS["default_matmul_precision"].choices


def test_numpy_s_functions_refuse_unknown_precisions():
    with pytest.raises(ArgumentError, match="matmul: precision='extreme' must be"):
        fnp.matmul(fnp.ones((2, 2)), fnp.ones((2, 2)), precision="extreme")


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda x: lax.dot(x, np.ones((2, 3))), ShapeError),
        (lambda x: lax.dot(np.ones((1, 1, 1)), np.ones(1)), ShapeError),
        (lambda x: lax.batch_matmul(x, np.ones((1, 3, 3))), ShapeError),
        (lambda x: lax.dot_general(x, x, (((2,), (0,)), ((), ()))), AxisError),
        (lambda x: lax.dot_general(x, x, (((0,), (1,)), ((0,), (0,)))), AxisError),
        (lambda x: lax.dot(x, x.astype("float32")), DTypeError),
        (lambda x: lax.dot(x, x, precision="extreme"), ArgumentError),
    ],
)
def test_what_makes_no_sense_is_an_error(call, error):
    with pytest.raises(error):
        call(np.ones((3, 3)))
