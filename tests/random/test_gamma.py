"""Gamma values and their kin follow their distributions, equal JAX's, and differentiate."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from scipy import special, stats

import fxarray
from fxarray import numpy as fnp
from fxarray import random
from fxarray.core.errors import DTypeError, ShapeError

COUNT = 4000
KEY = random.key(2024)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("draw", "distribution"),
    [
        (lambda n, d: random.gamma(KEY, 0.4, n, d), stats.gamma(0.4)),
        (lambda n, d: random.gamma(KEY, 7.5, n, d), stats.gamma(7.5)),
        (lambda n, d: fnp.exp(random.loggamma(KEY, 2.0, n, d)), stats.gamma(2.0)),
        (lambda n, d: random.beta(KEY, 0.5, 2.0, n, d), stats.beta(0.5, 2.0)),
        (lambda n, d: random.chisquare(KEY, 3.0, n, d), stats.chi2(3.0)),
        (lambda n, d: random.t(KEY, 4.0, n, d), stats.t(4.0)),
        (lambda n, d: random.dirichlet(KEY, [1.0, 2.0], n, d)[:, 0], stats.beta(1.0, 2.0)),
    ],
    ids=["gamma below 1", "gamma", "loggamma", "beta", "chisquare", "t", "dirichlet"],
)
def test_values_follow_the_distribution(draw, distribution, dtype) -> None:
    values = np.asarray(draw((COUNT,), dtype))
    assert values.dtype == dtype
    assert stats.kstest(values, distribution.cdf).pvalue > 0.001


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("gamma", (2.5,)),
        ("gamma", (0.3,)),
        ("loggamma", (0.01,)),
        ("beta", (2.0, 0.5)),
        ("chisquare", (3.0,)),
        ("t", (4.0,)),
    ],
)
def test_values_are_those_that_jax_draws(name, parameters) -> None:
    ours = getattr(random, name)(random.key(3), *parameters, (40,))
    theirs = getattr(jax.random, name)(jax.random.key(3), *parameters, (40,))
    np.testing.assert_allclose(ours, theirs, rtol=2e-5, atol=1e-6)


def test_shapes_are_those_of_the_parameters() -> None:
    assert random.gamma(KEY, fnp.ones((2, 3))).shape == (2, 3)
    assert random.beta(KEY, fnp.ones((2, 1)), fnp.ones(3)).shape == (2, 3)
    assert random.dirichlet(KEY, fnp.ones(4), (2,)).shape == (2, 4)
    assert random.gamma(KEY, fnp.ones((0, 3))).shape == (0, 3)
    assert random.gamma(KEY, 2.0, (3,), "bfloat16").dtype == fnp.bfloat16
    with pytest.raises(ShapeError, match="do not broadcast"):
        random.gamma(KEY, fnp.ones(3), (2,))
    with pytest.raises(ShapeError, match="concentrations"):
        random.dirichlet(KEY, 1.0)
    with pytest.raises(DTypeError, match="float dtype"):
        random.gamma(KEY, 1.0, (2,), "int32")


@pytest.mark.parametrize("a", [0.5, 3.0])
def test_the_derivative_keeps_the_quantile(a: float) -> None:
    key = random.key(1)
    x = float(random.gamma(key, a, (), "float64"))
    slope = float(fxarray.grad(lambda a: random.gamma(key, a, (), "float64"))(np.float64(a)))
    quantile, step = special.gammainc(a, x), 1e-5
    moved = special.gammaincinv(a + step, quantile) - special.gammaincinv(a - step, quantile)
    np.testing.assert_allclose(slope, moved / (2 * step), rtol=1e-4)


def test_the_derivative_of_logarithms_is_right_where_values_underflow() -> None:
    a = 0.02
    for index in range(4):

        def draw(a, index=index):
            return random.loggamma(random.key(1), a, (4,))[index]

        logarithm = float(draw(a))
        if logarithm < -10:  # there, u = x^a / Gamma(a + 1)
            wanted = (special.psi(a + 1) - logarithm) / a
            np.testing.assert_allclose(fxarray.grad(draw)(a), wanted, rtol=1e-3)
