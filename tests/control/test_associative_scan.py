"""associative_scan against NumPy, for every size, axis and direction."""

import numpy as np
import pytest

import fxarray
import fxarray.numpy as fnp
from fxarray import lax


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("size", [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 31, 32, 33])
def test_sums_of_any_size(size, reverse):
    x = np.random.default_rng(size).integers(-9, 9, size=size).astype("int32")
    expected = np.cumsum(x[::-1])[::-1] if reverse else np.cumsum(x)
    for function in (
        lax.associative_scan,
        fxarray.jit(lax.associative_scan, static_argnums=(0, 2)),
    ):
        np.testing.assert_array_equal(function(fnp.add, x, reverse), expected)


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2])
def test_any_axis(axis):
    x = np.random.default_rng(0).normal(size=(3, 5, 4))
    np.testing.assert_allclose(
        lax.associative_scan(fnp.multiply, x, axis=axis), np.cumprod(x, axis=axis)
    )


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("size", [1, 4, 7])
def test_a_linear_recurrence_over_a_tree(size, reverse):
    """x -> a x + b, composed: not commutative, so that the order of operands shows."""
    rng = np.random.default_rng(1)
    maps = {"a": rng.normal(size=(size, 2)), "b": rng.normal(size=(size, 2))}

    def compose(first, second):
        return {"a": first["a"] * second["a"], "b": second["a"] * first["b"] + second["b"]}

    result = lax.associative_scan(compose, maps, reverse=reverse)
    state = np.zeros(2)
    order = range(size)
    for i in reversed(order) if reverse else order:
        state = maps["a"][i] * state + maps["b"][i]
        np.testing.assert_allclose(result["b"][i], state)


def test_matrix_products():
    matrices = np.random.default_rng(2).normal(size=(6, 2, 2))
    result = lax.associative_scan(fnp.matmul, matrices)
    expected = matrices[0]
    for i in range(1, 6):
        expected = expected @ matrices[i]
        np.testing.assert_allclose(result[i], expected)


def test_derivatives_and_vmap_agree_with_jax(agree):
    x = np.random.default_rng(3).normal(size=(3, 5))

    def make(m):
        return lambda x: m.np.sum(m.associative_scan(lambda a, b: a * b, x, axis=1) ** 2)

    agree(lambda m: m.grad(make(m)), x)
    agree(lambda m: lambda x: m.jvp(make(m), (x,), (x + 1,)), x)
    agree(lambda m: m.vmap(lambda x: m.associative_scan(lambda a, b: a * b, x, reverse=True)), x)
