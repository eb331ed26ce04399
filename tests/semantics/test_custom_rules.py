"""Points 20 to 23: custom rules and callbacks."""

from __future__ import annotations

import numpy as np
import pytest

import fxarray as fx
import fxarray.numpy as fnp
from fxarray import lax
from fxarray.core.errors import ArgumentError, MissingRuleError, NonDifferentiableError


def eager_and_staged(function):
    """A function, and the same under jit."""
    return function, fx.jit(function)


# --- points 20 to 22: custom rules --------------------------------------------------------------


def clipped():
    """The identity, whose cotangent is clipped to [-1, 1]."""

    @fx.custom_vjp
    def f(x):
        return x

    f.defvjp(lambda x: (x, None), lambda _, ct: (fnp.clip(ct, -1, 1),))
    return f


def test_custom_vjp_has_no_forward_mode():
    """Point 20: jvp of a custom_vjp function is a TypeError."""
    with pytest.raises(TypeError, match="custom_vjp|forward"):
        fx.jvp(clipped(), (1.0,), (1.0,))
    with pytest.raises(TypeError, match="custom_vjp|forward"):
        fx.jacfwd(clipped())(1.0)
    assert float(fx.grad(lambda x: 5 * clipped()(x))(1.0)) == 1.0


@pytest.mark.parametrize(
    ("backward", "says"),
    [
        (lambda _, ct: ct, "tuple"),
        (lambda _, ct: (ct,), "2|arguments|structure"),
        (lambda _, ct: (ct, fnp.ones(4)), "shape"),
        (lambda _, ct: (ct, ct, ct), "2|arguments|structure"),
        (lambda _, ct: (ct.astype(fnp.complex64), ct), "dtype|c64"),
    ],
)
def test_what_a_backward_rule_returns_is_checked(backward, says):
    """Point 20: structure, number, shape and dtype of the cotangents are checked."""

    @fx.custom_vjp
    def f(x, y):
        return x * y

    f.defvjp(lambda x, y: (x * y, None), backward)
    with pytest.raises((TypeError, ValueError), match=says):
        fx.grad(lambda x: fnp.sum(f(x, x)))(fnp.ones(3))


def test_none_as_a_cotangent_is_zero():
    """Point 20: None stands for a zero cotangent, also for a whole tree."""

    @fx.custom_vjp
    def f(x, tree):
        return x * tree["a"]

    f.defvjp(lambda x, tree: (x * tree["a"], tree), lambda tree, ct: (ct * tree["a"], None))
    dx, dtree = fx.grad(f, argnums=(0, 1))(2.0, {"a": 3.0})
    assert float(dx) == 3.0
    assert float(dtree["a"]) == 0.0


def test_an_unbatched_argument_sums_its_batched_cotangents():
    """Point 20: under vmap, the cotangent of what is shared by the lanes is their sum."""

    @fx.custom_vjp
    def f(w, x):
        return w * x

    f.defvjp(lambda w, x: (w * x, (w, x)), lambda res, ct: (ct * res[1], ct * res[0]))
    xs = fnp.asarray([1.0, 2.0, 3.0])
    for g in eager_and_staged(fx.grad(lambda w: fnp.sum(fx.vmap(f, (None, 0))(w, xs)))):
        assert float(g(2.0)) == 6.0


def apply_twice(function, x):
    return function(x) * 2.0


def with_function_argument():
    """A custom_jvp function whose first argument is a function without derivative of its own."""
    form = fx.custom_jvp(apply_twice, nondiff_argnums=(0,))

    @form.defjvp
    def _(function, primals, tangents):
        return fx.jvp(lambda x: apply_twice(function, x), primals, tangents)

    return form


def test_functions_passed_as_nondiff_arguments_may_close_over_tracers():
    """Point 21: what they close over is mapped and differentiated as if it were an argument."""
    form = with_function_argument()
    f = lambda a: form(lambda x: a * x, 3.0)  # noqa: E731
    both = lambda a: form(lambda x: a * x, a)  # noqa: E731
    values = fnp.arange(3.0)
    for g in eager_and_staged(fx.grad(f)):
        assert float(g(2.0)) == 6.0
    for g in eager_and_staged(fx.vmap(f)):
        np.testing.assert_array_equal(g(values), [0, 6, 12])
    for g in eager_and_staged(fx.vmap(both)):
        np.testing.assert_array_equal(g(values), [0, 2, 8])


def test_a_rule_that_would_miss_a_closed_over_derivative_says_so():
    """Point 21: a value that is closed over and an argument at once is never a silent zero."""
    form = with_function_argument()
    for g in eager_and_staged(fx.grad(lambda a: form(lambda x: a * x, a))):
        with pytest.raises(NonDifferentiableError, match="closure_convert"):
            g(2.0)


@pytest.mark.parametrize("custom", [fx.custom_jvp, fx.custom_vjp])
def test_custom_functions_may_close_over_mapped_values(custom):
    """Points 21 and 22: a function with a rule, made inside vmap, sees its lane's value."""

    def f(a):
        scaled = custom(lambda x: a * x)
        if custom is fx.custom_jvp:
            scaled.defjvp(lambda p, t: (a * p[0], 10.0 * a * t[0]))
        else:
            scaled.defvjp(lambda x: (a * x, a), lambda a, ct: (10.0 * a * ct,))
        return scaled(a + 1.0)

    values = fnp.arange(3.0)
    for g in eager_and_staged(fx.vmap(f)):
        np.testing.assert_array_equal(g(values), [0, 2, 6])
    nested = fx.vmap(fx.vmap(f))
    np.testing.assert_array_equal(nested(fnp.stack([values, values])), [[0, 2, 6], [0, 2, 6]])


def test_closure_convert_hoists_what_a_function_closes_over():
    """Point 21: closure_convert gives the function and the tracers that it closes over."""

    def f(a):
        converted, consts = fx.closure_convert(lambda x: a * x, 3.0)
        assert len(consts) == 1
        return converted(3.0, *consts)

    assert float(fx.grad(f)(2.0)) == 3.0


def test_custom_jvp_holds_at_every_level():
    """Point 22: jvp of vmap, vmap of jvp, higher orders and jit all use the rule."""
    seen = []

    @fx.custom_jvp
    def f(x):
        return fnp.sin(x)

    @f.defjvp
    def _(primals, tangents):
        seen.append(1)
        (x,), (t,) = primals, tangents
        return f(x), 2.0 * fnp.cos(x) * t  # not the derivative, so that use of the rule shows

    x = fnp.asarray([0.1, 0.2])
    expected = 2 * np.cos(x)
    for g in (
        fx.vmap(fx.grad(f)),
        lambda x: fx.jvp(fx.vmap(f), (x,), (fnp.ones(2),))[1],
        fx.jit(fx.vmap(fx.grad(f))),
        fx.vmap(fx.grad(fx.jit(f))),
        lambda x: fx.grad(lambda x: fnp.sum(fx.vmap(f)(x)))(x),
        lambda x: fx.jit(fx.grad(lambda x: fnp.sum(fx.jit(fx.vmap(f))(x))))(x),
    ):
        seen.clear()
        np.testing.assert_allclose(g(x), expected, rtol=1e-6)
        assert seen
    np.testing.assert_allclose(fx.vmap(fx.grad(fx.grad(f)))(x), -2 * np.sin(x), rtol=1e-6)
    scanned = lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=1)[0]  # noqa: E731
    np.testing.assert_allclose(fx.grad(scanned)(0.1), 2 * np.cos(0.1), rtol=1e-6)


def test_a_custom_rule_that_is_not_linear_in_its_tangents_is_refused():
    """Point 22: grad of a rule that squares its tangent is an error, not a wrong number."""

    @fx.custom_jvp
    def f(x):
        return x

    f.defjvp(lambda p, t: (p[0], t[0] * t[0]))
    with pytest.raises(NotImplementedError):
        fx.grad(f)(2.0)


# --- point 23: callbacks ------------------------------------------------------------------------


def double(x):
    return np.asarray(2 * x)


def test_pure_callback_has_no_derivative_unless_given_one():
    """Point 23: differentiating a pure_callback is an error that says what to do."""
    f = lambda x: fx.pure_callback(double, fx.ShapeDtypeStruct((), fnp.float32), x)  # noqa: E731
    assert float(f(2.0)) == 4.0
    for transform in (fx.grad(f), lambda x: fx.jvp(f, (x,), (1.0,)), fx.jit(fx.grad(f))):
        with pytest.raises((ValueError, TypeError, MissingRuleError), match="custom_jvp"):
            transform(2.0)


def test_vmap_of_a_callback_needs_a_method():
    """Point 23: vmap_method is required, and each method gives the same numbers."""
    x = fnp.arange(3.0)
    f = lambda method: (  # noqa: E731
        lambda x: fx.pure_callback(
            double, fx.ShapeDtypeStruct((), fnp.float32), x, vmap_method=method
        )
    )
    with pytest.raises((NotImplementedError, ArgumentError), match="vmap_method"):
        fx.vmap(f(None))(x)
    for method in ("sequential", "expand_dims", "broadcast_all"):
        np.testing.assert_array_equal(fx.vmap(f(method))(x), [0, 2, 4])
        np.testing.assert_array_equal(fx.jit(fx.vmap(f(method)))(x), [0, 2, 4])


def test_unused_pure_callbacks_may_be_left_out_and_io_callbacks_never():
    """Point 23: dead pure callbacks are dropped from a compiled function, effects are kept."""
    pure, effects = [], []

    @fx.jit
    def f(x):
        shape = fx.ShapeDtypeStruct((), fnp.float32)
        fx.pure_callback(lambda v: (pure.append(1), np.float32(v))[1], shape, x)
        fx.io_callback(lambda v: effects.append(float(v)), None, x, ordered=True)
        fx.io_callback(lambda v: effects.append(float(v) + 1), None, x, ordered=True)
        return x

    f(1.0), f(5.0)
    fx.effects_barrier()
    assert pure == []
    assert effects == [1.0, 2.0, 5.0, 6.0]


def test_ordered_effects_are_refused_where_lanes_have_no_order():
    """Point 23: an ordered io_callback under vmap is an error."""
    f = lambda x: fx.io_callback(lambda v: None, None, x, ordered=True)  # noqa: E731
    with pytest.raises((ValueError, NotImplementedError), match="ordered"):
        fx.vmap(f)(fnp.arange(3.0))
