"""custom_vjp: both halves are used under every reverse-mode composition."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import fxarray as fx
import fxarray.numpy as fnp
from fxarray import lax
from fxarray.core.errors import (
    ArgumentError,
    NonDifferentiableError,
    ShapeError,
    TreeStructureError,
)
from fxarray.transforms.custom_vjp import CustomVJPPrimal, SymbolicZero


@fx.custom_vjp
def triple(x):
    return x * 1.0


triple.defvjp(lambda x: (triple(x), x), lambda x, ct: (3.0 * ct * fnp.cos(x),))
X = np.linspace(0.1, 1.0, 4)

TRANSFORMS = {
    "grad": lambda f, x: np.array([fx.grad(f)(v) for v in x]),
    "vjp": lambda f, x: fx.vjp(f, x)[1](np.ones_like(x))[0],
    "vmap of grad": lambda f, x: fx.vmap(fx.grad(f))(x),
    "grad of vmap": lambda f, x: fx.grad(lambda x: fnp.sum(fx.vmap(f)(x)))(x),
    "jit of grad of vmap": lambda f, x: fx.jit(fx.grad(lambda x: fnp.sum(fx.vmap(f)(x))))(x),
    "grad of jit of vmap": lambda f, x: fx.grad(fx.jit(lambda x: fnp.sum(fx.vmap(f)(x))))(x),
    "grad of vmap of jit": lambda f, x: fx.grad(lambda x: fnp.sum(fx.vmap(fx.jit(f))(x)))(x),
    "scan": lambda f, x: fx.grad(lambda x: fnp.sum(lax.scan(lambda c, v: (c, f(v)), 0.0, x)[1]))(x),
    "checkpoint": lambda f, x: fx.grad(lambda x: fnp.sum(fx.checkpoint(f)(x)))(x),
    "jacrev": lambda f, x: np.diagonal(fx.jacrev(f)(x)),
    "cond": lambda f, x: fx.grad(lambda x: fnp.sum(lax.cond(True, f, lambda v: v, x)))(x),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_the_rule_is_used_under(name):
    np.testing.assert_allclose(TRANSFORMS[name](triple, fnp.asarray(X)), 3 * np.cos(X), rtol=1e-9)


def test_second_derivatives_differentiate_the_halves():
    np.testing.assert_allclose(fx.grad(fx.grad(triple))(0.5), -3 * np.sin(0.5), rtol=1e-5)
    np.testing.assert_allclose(
        fx.jit(fx.grad(fx.jit(fx.grad(triple))))(0.5), -3 * np.sin(0.5), rtol=1e-5
    )


@pytest.mark.parametrize("wrap", [lambda f: f, fx.jit, fx.vmap], ids=["eager", "jit", "vmap"])
def test_forward_mode_is_refused(wrap):
    x = fnp.ones(2)
    with pytest.raises(NonDifferentiableError, match="reverse mode"):
        fx.jvp(wrap(triple), (x,), (x,))
    with pytest.raises(TypeError):
        fx.jacfwd(wrap(triple))(x)


def test_a_shared_operand_gets_the_sum_over_lanes():
    @fx.custom_vjp
    def scaled(w, x):
        return w * x

    scaled.defvjp(lambda w, x: (w * x, (w, x)), lambda res, ct: (ct * res[1], ct * res[0]))
    x = fnp.arange(1.0, 4.0)
    f = lambda w: fnp.sum(fx.vmap(scaled, in_axes=(None, 0))(w, x))  # noqa: E731
    assert float(fx.grad(f)(2.0)) == 6.0
    assert float(fx.jit(fx.grad(f))(2.0)) == 6.0


def test_none_is_a_zero_cotangent_and_integer_arguments_take_it():
    @fx.custom_vjp
    def take(x, i, y):
        return x[i] * y

    take.defvjp(
        lambda x, i, y: (x[i] * y, (x, i, y)),
        lambda res, ct: (fnp.zeros_like(res[0]).at[res[1]].set(ct * res[2]), None, None),
    )
    gx, gy = fx.grad(take, argnums=(0, 2))(fnp.ones(3), 1, 5.0)
    np.testing.assert_array_equal(gx, [0, 5, 0])
    assert float(gy) == 0.0
    gx = fx.jit(fx.grad(take))(fnp.ones(3), fnp.asarray(1), 5.0)
    np.testing.assert_array_equal(gx, [0, 5, 0])


def test_nondiff_arguments_and_pytree_residuals():
    @partial(fx.custom_vjp, nondiff_argnums=(0,))
    def apply(f, tree):
        return f(tree["a"]) + tree["b"]

    def forward(f, tree):
        return apply(f, tree), {"x": tree["a"], "note": "static"}

    def backward(f, residuals, ct):
        assert residuals["note"] == "static"
        assert f is fnp.sin
        return ({"a": 9.0 * ct, "b": ct},)

    apply.defvjp(forward, backward)
    for wrap in (lambda g: g, fx.jit):
        g = wrap(fx.grad(lambda tree: apply(fnp.sin, tree)))({"a": 1.0, "b": 2.0})
        assert float(g["a"]) == 9.0
        assert float(g["b"]) == 1.0


@pytest.mark.parametrize("value", [3, 2.5, True, (3, 4), [1.0], {"stride": 2}, np.ones(2), None])
def test_nondiff_arguments_reach_the_backward_rule_as_they_are(value):
    seen = []

    @partial(fx.custom_vjp, nondiff_argnums=(1,))
    def f(x, n):
        return 2 * x

    def backward(n, _, ct):
        seen.append(n)
        return (7 * ct,)

    f.defvjp(lambda x, n: (f(x, n), None), backward)
    gradient = fx.grad(lambda x: f(x, value))
    assert float(gradient(1.0)) == 7
    assert float(fx.jit(gradient)(1.0)) == 7
    assert fx.vmap(gradient)(fnp.ones(2)).tolist() == [7, 7]
    assert all(n is value or n == value for n in seen)
    assert len(seen) == 3


def test_an_array_among_nondiff_arguments_is_refused():
    f = fx.custom_vjp(lambda x, n: x * n, nondiff_argnums=(1,))
    f.defvjp(lambda x, n: (x * n, None), lambda n, _, ct: (ct * n,))
    with pytest.raises(ArgumentError, match="nondiff_argnums holds an array"):
        fx.grad(f)(1.0, fnp.ones(()))


def test_symbolic_zeros():
    seen = []

    @fx.custom_vjp
    def f(x, y):
        return x * y, x + y

    def forward(x, y):
        assert isinstance(x, CustomVJPPrimal)
        seen.append((x.perturbed, y.perturbed))
        return (x.value * y.value, x.value + y.value), (x.value, y.value)

    def backward(res, cts):
        seen.append(tuple(isinstance(ct, SymbolicZero) for ct in cts))
        return cts[0] * res[1], None

    f.defvjp(forward, backward, symbolic_zeros=True)
    assert float(fx.grad(lambda x: f(x, 3.0)[0])(2.0)) == 3.0
    assert seen == [(True, False), (False, True)]


def test_wrong_backward_results_are_explained():
    def with_backward(backward):
        f = fx.custom_vjp(lambda x, y: x * y)
        f.defvjp(lambda x, y: (x * y, None), backward)
        return fx.grad(lambda x: fnp.sum(f(x, x)))

    with pytest.raises(TreeStructureError, match="2"):
        with_backward(lambda _, ct: (ct,))(fnp.ones(3))
    with pytest.raises(ShapeError, match="argument 0"):
        with_backward(lambda _, ct: (fnp.sum(ct), ct))(fnp.ones(3))
    with pytest.raises(TreeStructureError, match="tuple"):
        with_backward(lambda _, ct: ct)(fnp.ones(3))


@pytest.mark.parametrize("wrap", [lambda f: f, fx.jit], ids=["eager", "jit"])
def test_closing_over_a_differentiated_value_is_never_a_silent_zero(wrap):
    def outer(w, x):
        f = fx.custom_vjp(lambda x: x * w)
        f.defvjp(lambda x: (x * w, None), lambda _, ct: (ct * w,))
        return wrap(f)(x)

    with pytest.raises(NonDifferentiableError, match="closes over"):
        fx.grad(lambda w: outer(w, w))(3.0)
    # If only what it closes over is differentiated, the rule has no say.
    assert float(fx.grad(lambda w: outer(w, 2.0))(3.0)) == 2.0


def test_closure_convert_makes_hidden_values_arguments():
    def minimum(objective, x):
        converted, hidden = fx.closure_convert(objective, x)

        @fx.custom_vjp
        def run(x, *hidden):
            return converted(x, *hidden)

        run.defvjp(
            lambda x, *hidden: (converted(x, *hidden), (x, hidden)),
            lambda res, ct: (ct * 0.0, *[ct * res[0] for _ in res[1]]),
        )
        return run(x, *hidden)

    assert float(fx.grad(lambda w: minimum(lambda x: x * w, 4.0))(3.0)) == 4.0
    assert float(fx.jit(fx.grad(lambda w: minimum(lambda x: x * w, 4.0)))(3.0)) == 4.0


def test_custom_gradient():
    f = fx.custom_gradient(lambda x, y: (x * y, lambda ct: (100 * ct * y, ct)))
    gx, gy = fx.grad(f, argnums=(0, 1))(2.0, 3.0)
    assert float(gx) == 300.0
    assert float(gy) == 1.0
