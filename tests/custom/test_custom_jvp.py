"""custom_jvp: the rule is used at every level, under every transform."""

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


@fx.custom_jvp
def triple(x):
    """Its derivative is wrong on purpose, so that it is seen whether the rule is used."""
    return x * 1.0


@triple.defjvp
def _(primals, tangents):
    (x,), (dx,) = primals, tangents
    return triple(x), 3.0 * dx * fnp.cos(x)


X = np.linspace(0.1, 1.0, 4)


def derivative(x):
    return 3 * np.cos(x)


TRANSFORMS = {
    "grad": lambda f, x: np.array([fx.grad(f)(v) for v in x]),
    "jvp": lambda f, x: fx.jvp(f, (x,), (np.ones_like(x),))[1],
    "vjp": lambda f, x: fx.vjp(f, x)[1](np.ones_like(x))[0],
    "vmap of grad": lambda f, x: fx.vmap(fx.grad(f))(x),
    "grad of vmap": lambda f, x: fx.grad(lambda x: fnp.sum(fx.vmap(f)(x)))(x),
    "jvp of vmap": lambda f, x: fx.jvp(fx.vmap(f), (x,), (np.ones_like(x),))[1],
    "vmap of jvp": lambda f, x: fx.vmap(lambda v: fx.jvp(f, (v,), (1.0,))[1])(x),
    "jit of grad of vmap": lambda f, x: fx.jit(fx.grad(lambda x: fnp.sum(fx.vmap(f)(x))))(x),
    "grad of jit of vmap": lambda f, x: fx.grad(fx.jit(lambda x: fnp.sum(fx.vmap(f)(x))))(x),
    "grad of vmap of jit": lambda f, x: fx.grad(lambda x: fnp.sum(fx.vmap(fx.jit(f))(x)))(x),
    "scan": lambda f, x: fx.grad(lambda x: fnp.sum(lax.scan(lambda c, v: (c, f(v)), 0.0, x)[1]))(x),
    "checkpoint": lambda f, x: fx.grad(lambda x: fnp.sum(fx.checkpoint(f)(x)))(x),
    "jacfwd": lambda f, x: np.diagonal(fx.jacfwd(f)(x)),
    "jacrev": lambda f, x: np.diagonal(fx.jacrev(f)(x)),
    "cond": lambda f, x: fx.grad(lambda x: fnp.sum(lax.cond(True, f, lambda v: v, x)))(x),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_the_rule_is_used_under(name):
    x = fnp.asarray(X)
    np.testing.assert_allclose(TRANSFORMS[name](triple, x), derivative(X), rtol=1e-9)


def test_second_derivatives_go_through_the_rule():
    for transform in (lambda f: fx.grad(fx.grad(f)), lambda f: fx.jit(fx.grad(fx.jit(fx.grad(f))))):
        np.testing.assert_allclose(transform(triple)(0.5), -3 * np.sin(0.5), rtol=1e-5)
    np.testing.assert_allclose(fx.hessian(triple)(0.5), -3 * np.sin(0.5), rtol=1e-5)


def test_python_control_flow_on_values_works_under_grad():
    @fx.custom_jvp
    def f(x):
        return x if x > 0 else -2 * x

    f.defjvp(lambda p, t: (f(p[0]), t[0] * (1.0 if p[0] > 0 else -2.0)))
    assert float(fx.grad(f)(-1.0)) == -2.0
    assert float(fx.grad(f)(1.0)) == 1.0


def test_defjvps_takes_one_rule_per_argument():
    @fx.custom_jvp
    def f(x, y):
        return x * y

    f.defjvps(lambda dx, out, x, y: 10 * dx * y, None)
    assert [float(g) for g in fx.grad(f, argnums=(0, 1))(2.0, 3.0)] == [30.0, 0.0]


def test_nondiff_arguments_come_first_and_may_be_functions_or_arrays():
    @partial(fx.custom_jvp, nondiff_argnums=(0, 2))
    def apply(f, x, power):
        return f(x) ** power

    seen = []

    @apply.defjvp
    def _(f, power, primals, tangents):
        seen.append((f, power))
        (x,), (dx,) = primals, tangents
        return apply(f, x, power), 7.0 * dx

    assert float(fx.grad(lambda x: apply(fnp.sin, x, 2))(1.0)) == 7.0
    assert seen[0] == (fnp.sin, 2)
    assert float(fx.jit(fx.grad(lambda x: apply(fnp.sin, x, 2)))(1.0)) == 7.0


def test_pytrees_keywords_and_integer_arguments():
    @fx.custom_jvp
    def f(tree, n):
        return {"out": tree["a"] * tree["b"] * n}

    @f.defjvp
    def _(primals, tangents):
        (tree, n), (dtree, _) = primals, tangents
        return f(tree, n), {"out": 5.0 * dtree["a"] + dtree["b"]}

    tree = {"a": 2.0, "b": 3.0}
    g = fx.grad(lambda tree: f(n=2, tree=tree)["out"])(tree)
    assert float(g["a"]) == 5.0
    assert float(g["b"]) == 1.0
    g = fx.jit(fx.grad(lambda tree: f(tree, fnp.asarray(2))["out"]))(tree)
    assert float(g["a"]) == 5.0


def test_without_a_rule_calling_says_so():
    @fx.custom_jvp
    def f(x):
        return x

    with pytest.raises(AttributeError, match="defjvp"):
        f(1.0)


@pytest.mark.parametrize("wrap", [lambda f: f, fx.jit], ids=["eager", "jit"])
def test_closing_over_a_differentiated_value_is_never_a_silent_zero(wrap):
    def outer(w, x):
        @fx.custom_jvp
        def f(x):
            return x * w

        f.defjvp(lambda p, t: (f(p[0]), t[0] * w))
        return wrap(f)(x)

    with pytest.raises(NonDifferentiableError, match="closes over"):
        fx.grad(lambda w: outer(w, w))(3.0)
    # If only what it closes over is differentiated, the rule has no say.
    assert float(fx.grad(lambda w: outer(w, 2.0))(3.0)) == 2.0


def test_wrong_rules_are_explained():
    def with_rule(rule):
        f = fx.custom_jvp(lambda x: x * 1.0)
        f.defjvp(rule)
        return fx.grad(lambda x: fnp.sum(f(x)))

    with pytest.raises(ArgumentError, match="pair"):
        with_rule(lambda p, t: p[0])(fnp.ones(3))
    with pytest.raises(ShapeError, match=r"f32\[\]"):
        with_rule(lambda p, t: (p[0], fnp.sum(t[0])))(fnp.ones(3))
    with pytest.raises(TreeStructureError):
        with_rule(lambda p, t: (p[0], (t[0], t[0])))(fnp.ones(3))


def _safe_division():
    @fx.custom_jvp
    def divide(x, y):
        return fnp.where(y == 0, 0.0, x / fnp.where(y == 0, 1.0, y))

    divide.defjvps(
        lambda dx, result, x, y: divide(dx, y),
        lambda dy, result, x, y: -divide(result * dy, y),
    )
    return divide


@pytest.mark.parametrize("wrap", [lambda f: f, fx.jit], ids=["eager", "jit"])
def test_a_rule_may_apply_its_function_to_tangents(wrap):
    divide = _safe_division()
    dx, dy = wrap(fx.grad(divide, (0, 1)))(fnp.float32(3), fnp.float32(2))
    assert (float(dx), float(dy)) == (0.5, -0.75)
    dx, dy = wrap(fx.grad(divide, (0, 1)))(fnp.float32(3), fnp.float32(0))
    assert (float(dx), float(dy)) == (0.0, 0.0)
    mapped = wrap(fx.vmap(fx.grad(divide), (None, 0)))(fnp.float32(3), fnp.array([0.0, 4.0]))
    assert mapped.tolist() == [0.0, 0.25]
    second = wrap(fx.grad(fx.grad(divide, 1), 1))(fnp.float32(3), fnp.float32(2))
    assert float(second) == pytest.approx(0.75)


def test_a_custom_jvp_function_that_is_not_linear_is_not_transposed():
    @fx.custom_jvp
    def square(x):
        return x * x

    square.defjvps(lambda dx, result, x: 2 * x * dx)
    with pytest.raises(NotImplementedError, match="linear"):
        fx.linear_transpose(square, fnp.float32(1))(fnp.float32(1))
