"""Transforms of transforms, in any order, against JAX and against differences."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fxarray
import fxarray.numpy as fnp

X = np.array([0.3, 0.8, 1.7], np.float32)
T = np.array([1.0, -2.0, 0.5], np.float32)


def wrap(module, name, f):
    """A function of a vector, from one of a vector, by a transform: all keep (3,) -> (3,)."""
    if name == "grad":
        return module.grad(lambda x: f(x).sum())
    if name == "jvp":
        return lambda x: module.jvp(f, (x,), (x * 0 + T,))[1]
    if name == "vjp":
        return lambda x: module.vjp(f, x)[1](x * 0 + T)[0]
    if name == "linearize":
        return lambda x: module.linearize(f, x)[1](x * 0 + T)
    if name == "vmap":
        return lambda x: module.vmap(lambda y: f(y * x)[1])(x.reshape(3, 1) * T)
    if name == "jacfwd":
        return lambda x: module.jacfwd(f)(x).sum(0)
    if name == "jacrev":
        return lambda x: module.jacrev(f)(x).sum(1)
    return module.jit(f)


NAMES = ["grad", "jvp", "vjp", "linearize", "vmap", "jacfwd", "jacrev", "jit"]


@pytest.mark.parametrize("pair", list(itertools.product(NAMES, NAMES)), ids="-of-".join)
def test_two_transforms_in_any_order_agree_with_jax(pair, functions, assert_same):
    outer, inner = pair
    results = [
        wrap(m, outer, wrap(m, inner, lambda x, n=n: functions.smooth(n, x)))(m_x)
        for m, n, m_x in ((fxarray, fnp, fnp.asarray(X)), (jax, jnp, jnp.asarray(X)))
    ]
    assert_same(results[0], results[1], 3e-4)


TRIPLES = [
    ("grad", "grad", "grad"),
    ("vmap", "grad", "jvp"),
    ("grad", "vmap", "grad"),
    ("jvp", "vmap", "jit"),
    ("jit", "vmap", "grad"),
    ("grad", "jit", "vmap"),
    ("linearize", "vmap", "vjp"),
    ("jacfwd", "jit", "jacrev"),
    ("vmap", "vmap", "grad"),
    ("vjp", "jit", "linearize"),
]


@pytest.mark.parametrize("triple", TRIPLES, ids="-of-".join)
def test_three_transforms_agree_with_jax(triple, functions, assert_same):
    def build(m, n):
        f = lambda x: functions.smooth(n, x) * 0.1  # noqa: E731
        for name in reversed(triple):
            f = wrap(m, name, f)
        return f

    ours, theirs = build(fxarray, fnp)(fnp.asarray(X)), build(jax, jnp)(jnp.asarray(X))
    scale = max(1.0, float(np.abs(np.asarray(theirs)).max()))
    assert_same(np.asarray(ours) / scale, np.asarray(theirs) / scale, 1e-3)


@pytest.mark.parametrize("name", ["grad", "vjp", "jvp", "linearize", "jacfwd", "jacrev"])
def test_derivatives_agree_with_central_differences(name, functions):
    f = lambda x: functions.smooth(fnp, x)  # noqa: E731
    x = X.astype(np.float64)
    step = 1e-6
    columns = [
        (np.asarray(f(fnp.asarray(x + d))) - np.asarray(f(fnp.asarray(x - d)))) / (2 * step)
        for d in np.eye(3) * step
    ]
    matrix = np.stack(columns, 1)
    t = T.astype(np.float64)
    expected = {
        "grad": np.ones(3) @ matrix,
        "vjp": t @ matrix,
        "jvp": matrix @ t,
        "linearize": matrix @ t,
        "jacfwd": matrix.sum(0),
        "jacrev": matrix.sum(1),
    }[name]
    got = wrap(fxarray, name, f)(fnp.asarray(x))
    assert got.dtype == np.float64
    np.testing.assert_allclose(np.asarray(got), expected, rtol=1e-6, atol=1e-8)


def test_perturbations_of_nested_derivatives_are_not_confused():
    # d/dx (x * d/dy (x + y)) = 1; confusing the two gives 2.
    inner = lambda x: fxarray.grad(lambda y: x + y)(1.0)  # noqa: E731
    assert float(fxarray.grad(lambda x: x * inner(x))(1.0)) == 1.0
    inner = lambda x: fxarray.jvp(lambda y: x + y, (1.0,), (1.0,))[1]  # noqa: E731
    assert float(fxarray.jvp(lambda x: x * inner(x), (1.0,), (1.0,))[1]) == 1.0


def test_grad_of_vmap_adds_up_gradients_of_what_is_not_mapped(assert_same):
    def loss(m, w):
        return m.vmap(lambda x: w * x * x)(X).sum()

    assert_same(
        fxarray.grad(lambda w: loss(fxarray, w))(np.float32(2)),
        jax.grad(lambda w: loss(jax, w))(np.float32(2)),
    )


def test_per_example_gradients_equal_a_loop(functions):
    rows = np.stack([X, T, X * T])
    f = lambda x: functions.loss(fnp, x)  # noqa: E731
    together = fxarray.vmap(fxarray.grad(f))(rows)
    for row, got in zip(rows, np.asarray(together), strict=True):
        np.testing.assert_allclose(got, np.asarray(fxarray.grad(f)(row)), rtol=2e-5, atol=1e-5)


def test_control_flow_on_values_works_under_nested_value_carrying_transforms(
    functions, assert_same
):
    results = [
        m.jvp(m.grad(lambda x, n=n: functions.branching(n, x)), (X,), (T,))
        for m, n in ((fxarray, fnp), (jax, jnp))
    ]
    assert_same(results[0], results[1], 1e-4)


def test_tracers_of_an_outer_transform_may_be_closed_over(assert_same):
    def outer(m, n, x):
        return m.vmap(lambda y: m.grad(lambda z: (n.sin(z) * x * y).sum())(y).sum())(x)

    results = [
        m.grad(lambda x, m=m, n=n: outer(m, n, x).sum())(X) for m, n in ((fxarray, fnp), (jax, jnp))
    ]
    assert_same(results[0], results[1])


def test_a_pullback_is_used_under_other_transforms(assert_same):
    def under(m, n):
        _, pullback = m.vjp(lambda x: n.sin(x) * x, X)
        rows = n.asarray(np.eye(3, dtype=np.float32))
        return (
            m.vmap(pullback)(rows)[0],
            m.jit(pullback)(T)[0],
            m.grad(lambda t: (pullback(t)[0] * t).sum())(T),
        )

    assert_same(under(fxarray, fnp), under(jax, jnp))


def test_a_linear_map_is_used_under_other_transforms(assert_same):
    def under(m, n):
        _, pushforward = m.linearize(lambda x: n.sin(x) * x, X)
        rows = n.asarray(np.eye(3, dtype=np.float32))
        transposed = m.linear_transpose(pushforward, X)(T)
        return m.vmap(pushforward)(rows), m.jit(pushforward)(T), transposed

    assert_same(under(fxarray, fnp), under(jax, jnp))


def test_grad_of_a_jitted_function_traces_it_once():
    calls = []

    @fxarray.jit
    def f(x):
        calls.append(1)
        return x * x

    g = fxarray.grad(f)
    assert [float(g(1.0)), float(g(2.0)), float(fxarray.vmap(g)(X)[0])] == pytest.approx(
        [2.0, 4.0, 2 * X[0]]
    )
    assert len(calls) == 2  # once for a weak scalar, once for float32


def test_python_runs_again_at_each_call_of_grad_but_not_under_jit():
    calls = []

    def f(x):
        calls.append(1)
        return x * x

    g = fxarray.grad(f)
    g(1.0)
    g(2.0)
    assert len(calls) == 2
    compiled = fxarray.jit(g)
    compiled(1.0)
    compiled(2.0)
    assert len(calls) == 3
