"""What the tests of control flow share: the same function written for fxarray and for JAX."""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import optree
import pytest

import fxarray
import fxarray.numpy as fnp
from fxarray import lax


def bounded_while(cond_fun, body_fun, init, max_steps=None):
    """JAX's while_loop; with a bound, written with a scan, so that JAX can reverse it."""
    if max_steps is None:
        return jax.lax.while_loop(cond_fun, body_fun, init)
    return jax.lax.fori_loop(
        0,
        max_steps,
        lambda _, value: jax.lax.cond(cond_fun(value), body_fun, lambda v: v, value),
        init,
    )


def namespace(module, numpy, control, while_loop):
    names = ("grad", "vmap", "jvp", "jit", "linearize", "vjp", "hessian", "jacfwd", "jacrev")
    transforms = {name: getattr(module, name) for name in names}
    loops = ("scan", "cond", "switch", "fori_loop", "map", "associative_scan")
    functions = {name: getattr(control, name) for name in loops}
    return SimpleNamespace(np=numpy, while_loop=while_loop, **transforms, **functions)


OURS = namespace(fxarray, fnp, lax, lax.while_loop)
JAXS = namespace(jax, jnp, jax.lax, bounded_while)


@pytest.fixture
def agree():
    """Compare `make(library)(*arguments)` of fxarray with that of JAX, in float64."""
    return check


def check(make, *arguments, tolerance=1e-9, key=None, same=None):
    """Raise unless both libraries give the same.

    Args:
      make: from a library to a function.
      arguments: its arguments.
      tolerance: relative and absolute.
      key: under what to remember JAX's results, for the tests that should give the same.
      same: for JAX, another function that should give the same as `make`.
    """
    expected = _REMEMBERED.get(key)
    if expected is None:
        with jax.enable_x64(True):
            # One compilation takes less time than one for each operation.
            function = jax.jit((same or make)(JAXS))
            expected = optree.tree_leaves(function(*map(jnp.asarray, arguments)))
            expected = [np.asarray(value) for value in expected]
        if key is not None:
            _REMEMBERED[key] = expected
    # NumPy's float64 scalars are weakly typed in fxarray; its 0-dimensional arrays are not.
    actual = make(OURS)(*[fnp.asarray(np.asarray(x)) for x in arguments])
    for a, b in zip(optree.tree_leaves(actual), expected, strict=True):
        a = np.asarray(a)
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


_REMEMBERED = {}


@pytest.fixture
def rng():
    return np.random.default_rng(0)
