"""Collectives over vmap's axis inside loops and branches."""

import jax
import numpy as np

import fxarray
import fxarray.numpy as fnp
from fxarray import lax


def compare(function, x):
    """Map `function(library, x)` over the axis "i", in both libraries."""
    ours = fxarray.vmap(lambda x: function(lax, fnp, x), axis_name="i")
    theirs = jax.vmap(lambda x: function(jax.lax, jax.numpy, x), axis_name="i")
    for wrap in (lambda f: f, fxarray.jit):
        np.testing.assert_allclose(wrap(ours)(x), theirs(x), rtol=1e-6)
    # JAX's gradient is wrong where a predicate is mapped: it loses what other lanes contribute.
    x = x.astype("float64")
    gradient = fxarray.grad(lambda x: ours(x).sum())(x)
    for i in range(len(x)):
        step = 1e-6 * np.eye(len(x))[i]
        numeric = (float(ours(x + step).sum()) - float(ours(x - step).sum())) / 2e-6
        np.testing.assert_allclose(gradient[i], numeric, rtol=1e-6)


X = np.array([1.0, 2.0, -3.0, 0.5], "float32")


def test_in_a_scan():
    compare(
        lambda lax, np_, x: lax.scan(
            lambda c, _: (c / 2 + np_.sin(lax.psum(c, "i")), None), x, None, length=3
        )[0],
        X,
    )


def test_in_a_scan_of_values_that_are_not_mapped():
    compare(
        lambda lax, np_, x: x * lax.scan(lambda c, _: (lax.psum(c, "i"), None), 1.0, None, 2)[0], X
    )


def test_in_a_branch_with_a_mapped_predicate():
    compare(
        lambda lax, np_, x: lax.cond(
            x > 0, lambda x: x * lax.psum(x, "i"), lambda x: x + lax.pmean(np_.sin(x), "i"), x
        ),
        X,
    )


def test_in_a_branch_with_one_predicate():
    compare(
        lambda lax, np_, x: lax.cond(
            lax.psum(x, "i") > 0, lambda x: x * lax.psum(x, "i"), lambda x: x, x
        ),
        X,
    )


def test_in_a_loop_with_a_mapped_condition():
    def f(lax, np_, x):
        return lax.while_loop(
            lambda s: s[0] < 3 + lax.axis_index("i"),
            lambda s: (s[0] + 1, s[1] / 2 + lax.psum(s[1], "i")),
            (0, x),
        )[1]

    ours = fxarray.vmap(lambda x: f(lax, fnp, x), axis_name="i")
    theirs = jax.vmap(lambda x: f(jax.lax, jax.numpy, x), axis_name="i")
    np.testing.assert_allclose(ours(X), theirs(X), rtol=1e-6)
    np.testing.assert_allclose(fxarray.jit(ours)(X), theirs(X), rtol=1e-6)
    _, tangent = fxarray.jvp(ours, (X,), (X,))
    np.testing.assert_allclose(tangent, jax.jvp(theirs, (X,), (X,))[1], rtol=1e-5)
