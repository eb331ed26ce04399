"""checkpoint: same values and derivatives, fewer residuals, a second computation."""

from __future__ import annotations

import numpy as np
import pytest

import fxarray as fx
import fxarray.numpy as fnp
from fxarray import checkpoint_policies as policies
from fxarray.core.errors import TracerBoolConversionError


def chain(x):
    return fnp.sum(fnp.sin(fnp.exp(fnp.cos(x)) * x))


def mlp(w, x):
    h = fx.checkpoint_name(fnp.tanh(x @ w["a"]), "hidden")
    return fnp.sum(fnp.sin(h @ w["b"]) ** 2)


def weights():
    rng = np.random.default_rng(0)
    return {
        "a": fnp.asarray(rng.normal(size=(3, 4)).astype("float32")),
        "b": fnp.asarray(rng.normal(size=(4, 2)).astype("float32")),
    }, fnp.asarray(rng.normal(size=(5, 3)).astype("float32"))


ALL_POLICIES = [
    None,
    policies.nothing_saveable,
    policies.everything_saveable,
    policies.dots_saveable,
    policies.dots_with_no_batch_dims_saveable,
    policies.save_only_these_names("hidden"),
    policies.save_any_names_but_these("hidden"),
    policies.save_anything_except_these_names("hidden"),
    policies.save_from_both_policies(
        policies.dots_saveable, policies.save_only_these_names("hidden")
    ),
]


@pytest.mark.parametrize("policy", ALL_POLICIES)
def test_values_and_gradients_are_those_of_the_function(policy):
    w, x = weights()
    f = fx.checkpoint(mlp, policy=policy)
    np.testing.assert_allclose(f(w, x), mlp(w, x), rtol=1e-6)
    for wrap in (lambda g: g, fx.jit):
        got, expected = wrap(fx.grad(f))(w, x), fx.grad(mlp)(w, x)
        for name in w:
            np.testing.assert_allclose(got[name], expected[name], rtol=1e-4, atol=1e-5)


def test_without_a_policy_only_arguments_are_stored():
    x = fnp.ones(7)
    stored = fx.saved_residuals(fx.checkpoint(chain), x)
    assert [str(r) for r in stored] == ["f32[7] from the argument x"]
    assert len(fx.saved_residuals(chain, x)) > 3


def test_a_policy_adds_what_it_names(capsys):
    w, x = weights()
    f = fx.checkpoint(mlp, policy=policies.save_only_these_names("hidden"))
    kept = [r for r in fx.saved_residuals(f, w, x) if r.reason.startswith("output")]
    assert [str(r.type) for r in kept] == ["f32[5,4]"]
    fx.print_saved_residuals(mlp, w, x)
    printed = capsys.readouterr().out
    assert "from the argument x" in printed
    assert "test_checkpoint.py" in printed


def test_the_backward_pass_computes_again():
    count = []

    def noted(x):
        return fx.pure_callback(lambda v: (count.append(1), v)[1], x, x)

    @fx.custom_jvp
    def counted(x):
        return noted(x)

    counted.defjvp(lambda p, t: (counted(p[0]), t[0]))
    f = lambda x: fnp.sum(fnp.sin(counted(fnp.sin(x))))  # noqa: E731
    fx.grad(f)(fnp.ones(3))
    assert len(count) == 1
    count.clear()
    fx.grad(fx.checkpoint(f))(fnp.ones(3))
    assert len(count) == 2


@pytest.mark.parametrize("order", [1, 2, 3])
def test_higher_derivatives(order):
    f, g = chain, fx.checkpoint(chain)
    for _ in range(order):
        f, g = [fx.grad(lambda x, h=h: fnp.sum(h(x))) for h in (f, g)]
    x = fnp.asarray(np.linspace(0.1, 1, 5))
    np.testing.assert_allclose(g(x), f(x), rtol=1e-9)


def test_composes_with_vmap_jvp_and_scan():
    f = fx.checkpoint(chain)
    x = fnp.asarray(np.linspace(0.1, 1, 6).reshape(2, 3))
    np.testing.assert_allclose(fx.vmap(fx.grad(f))(x), fx.vmap(fx.grad(chain))(x), rtol=1e-9)
    np.testing.assert_allclose(
        fx.jvp(f, (x[0],), (x[1],))[1], fx.jvp(chain, (x[0],), (x[1],))[1], rtol=1e-9
    )

    def loop(body, x):
        return fnp.sum(fx.lax.scan(lambda c, _: (body(c), None), x, None, length=4)[0])

    body = lambda c: fnp.sin(c) * 1.5  # noqa: E731
    got = fx.grad(lambda x: loop(fx.checkpoint(body), x))(x)
    np.testing.assert_allclose(got, fx.grad(lambda x: loop(body, x))(x), rtol=1e-9)


def test_static_arguments_and_closures():
    def f(x, flag, scale):
        return fnp.sum(fnp.sin(x) * scale) if flag else fnp.sum(x)

    g = fx.checkpoint(f, static_argnums=(1,))
    np.testing.assert_allclose(
        fx.grad(g)(fnp.ones(2), True, 3.0), 3 * np.cos([1.0, 1.0]), rtol=1e-6
    )
    with pytest.raises(TracerBoolConversionError):
        fx.checkpoint(f)(fnp.ones(2), True, 3.0)

    def outer(w):
        return fx.checkpoint(lambda x: fnp.sum(fnp.sin(x * w)))(fnp.ones(2))

    np.testing.assert_allclose(fx.grad(outer)(2.0), 2 * np.cos(2.0), rtol=1e-6)


def test_concrete_is_refused_with_the_remedy():
    with pytest.raises(NotImplementedError, match="static_argnums"):
        fx.checkpoint(chain, concrete=True)
