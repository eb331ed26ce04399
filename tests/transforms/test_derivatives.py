"""jvp, vjp, linearize, linear_transpose and grad against JAX, and what they refuse."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fxarray
import fxarray.numpy as fnp
from fxarray.core.dtypes import float0
from fxarray.core.errors import (
    ArgumentError,
    DTypeError,
    MissingRuleError,
    NonDifferentiableError,
    ShapeError,
    TreeStructureError,
)

X = np.array([0.3, 0.8, 1.7], np.float32)
T = np.array([1.0, -2.0, 0.5], np.float32)


# --- against JAX ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["loss", "branching"])
def test_grad_agrees_with_jax(name, functions, assert_same):
    f = getattr(functions, name)
    ours = fxarray.value_and_grad(lambda x: f(fnp, x))(X)
    theirs = jax.value_and_grad(lambda x: f(jnp, x))(X)
    assert_same(ours, theirs)


def test_jvp_agrees_with_jax(functions, assert_same):
    ours = fxarray.jvp(lambda x: functions.smooth(fnp, x), (X,), (T,))
    theirs = jax.jvp(lambda x: functions.smooth(jnp, x), (X,), (T,))
    assert_same(ours, theirs)


def test_vjp_agrees_with_jax_and_may_be_called_again(functions, assert_same):
    y, pullback = fxarray.vjp(lambda x: functions.smooth(fnp, x), X)
    z, pullback_of_jax = jax.vjp(lambda x: functions.smooth(jnp, x), X)
    assert_same(y, z)
    for cotangent in (T, 2 * T, T):
        assert_same(pullback(cotangent), pullback_of_jax(cotangent))


def test_linearize_agrees_with_jvp_and_may_be_called_again(functions, assert_same):
    f = lambda x: functions.smooth(fnp, x)  # noqa: E731
    y, pushforward = fxarray.linearize(f, X)
    for tangent in (T, 3 * T):
        assert_same((y, pushforward(tangent)), fxarray.jvp(f, (X,), (tangent,)))


def test_linearize_runs_the_function_once():
    calls = []

    def f(x):
        calls.append(x)
        return fnp.sin(x) * x

    _, pushforward = fxarray.linearize(f, 1.0)
    pushforward(1.0)
    pushforward(2.0)
    assert len(calls) == 1


def test_linear_transpose_agrees_with_jax(assert_same):
    matrix = np.arange(6, dtype=np.float32).reshape(2, 3)
    types = fxarray.ShapeDtypeStruct((3,), "float32")
    ours = fxarray.linear_transpose(lambda x: matrix @ x, types)(np.ones(2, np.float32))
    theirs = jax.linear_transpose(lambda x: matrix @ x, jax.ShapeDtypeStruct((3,), "float32"))
    assert_same(ours, theirs(np.ones(2, np.float32)))


@pytest.mark.parametrize("f", [lambda x: x * x, lambda x: fnp.sin(x)], ids=["product", "sin"])
def test_linear_transpose_of_a_function_that_is_not_linear_is_an_error(f):
    with pytest.raises(NotImplementedError, match="linear"):
        fxarray.linear_transpose(f, 1.0)(1.0)


def test_derivatives_keep_trees(assert_same):
    def f(np_, p, q):
        return {"y": (p["w"] * q[0]).sum(), "z": [p["w"] + q[1], p["b"]]}

    p, q = {"w": X, "b": np.float32(2.0)}, (T, np.float32(0.5))
    ours = fxarray.jvp(lambda p, q: f(fnp, p, q), (p, q), (p, q))
    assert_same(ours, jax.jvp(lambda p, q: f(jnp, p, q), (p, q), (p, q)))
    y, pullback = fxarray.vjp(lambda p, q: f(fnp, p, q), p, q)
    y_of_jax, pullback_of_jax = jax.vjp(lambda p, q: f(jnp, p, q), p, q)
    assert_same(pullback(y), pullback_of_jax(y_of_jax))


@pytest.mark.parametrize("argnums", [0, 1, -1, (0, 1), (1, 0), [1], (-1, 0)])
def test_argnums_choose_arguments_and_order(argnums, assert_same):
    f = lambda x, y: (x * x * y).sum()  # noqa: E731
    ours = fxarray.grad(f, argnums)(X, T)
    theirs = jax.grad(f, tuple(argnums) if isinstance(argnums, list) else argnums)(X, T)
    assert_same(ours, theirs)


def test_auxiliary_data_is_passed_on_with_its_values():
    def f(x):
        return x * x, {"x": x, "name": "aux", "n": 3}

    gradient, aux = fxarray.grad(f, has_aux=True)(3.0)
    assert float(gradient) == 6.0
    assert float(aux["x"]) == 3.0
    assert type(aux["x"]) is not fxarray.core.tracer.Tracer
    assert aux["name"] == "aux"
    (value, aux), gradient = fxarray.value_and_grad(f, has_aux=True)(3.0)
    assert (float(value), float(gradient), float(aux["x"])) == (9.0, 6.0, 3.0)
    y, pullback, aux = fxarray.vjp(f, 3.0, has_aux=True)
    assert (float(y), float(pullback(1.0)[0]), float(aux["x"])) == (9.0, 6.0, 3.0)
    y, tangent, aux = fxarray.jvp(f, (3.0,), (1.0,), has_aux=True)
    assert (float(y), float(tangent), float(aux["x"])) == (9.0, 6.0, 3.0)
    y, pushforward, aux = fxarray.linearize(f, 3.0, has_aux=True)
    assert (float(y), float(pushforward(1.0)), float(aux["x"])) == (9.0, 6.0, 3.0)


def test_keyword_arguments_are_passed_on_undifferentiated():
    assert float(fxarray.grad(lambda x, *, scale: x * x * scale)(3.0, scale=2.0)) == 12.0


def test_gradient_of_a_constant_function_is_zero(assert_same):
    assert_same(fxarray.grad(lambda x: 3.0)(X), np.zeros(3, np.float32))


def test_gradient_dtype_is_that_of_the_argument():
    for dtype in ("float16", "bfloat16", "float32", "float64"):
        x = fnp.asarray([1.0, 2.0], dtype=dtype)
        assert fxarray.grad(lambda x: (x * x).sum())(x).dtype == x.dtype


def test_python_numbers_stay_weak_in_gradients():
    assert fxarray.grad(lambda x: x * x)(3.0).weak_type
    assert not fxarray.grad(lambda x: x * x)(np.float32(3.0)).weak_type


def test_python_control_flow_on_values_works_under_grad_jvp_and_vjp():
    def f(x):
        return x * x if x > 1 else -x

    assert [float(fxarray.grad(f)(x)) for x in (3.0, 0.5)] == [6.0, -1.0]
    assert float(fxarray.jvp(f, (3.0,), (1.0,))[1]) == 6.0
    assert float(fxarray.grad(fxarray.grad(f))(3.0)) == 2.0
    assert float(fxarray.vjp(f, 0.5)[1](1.0)[0]) == -1.0


# --- complex numbers ------------------------------------------------------------------------------


def test_complex_convention_is_that_of_jax(assert_same):
    z = np.complex64(1 + 2j)
    f = lambda np_: lambda z: np_.real(z * np_.conj(z))  # noqa: E731
    _, ours = fxarray.vjp(f(fnp), z)
    _, theirs = jax.vjp(f(jnp), z)
    assert_same(ours(np.float32(1)), theirs(np.float32(1)))
    assert complex(ours(np.float32(1))[0]) == 2 - 4j


def test_holomorphic_functions_have_complex_derivatives():
    z = 1 + 2j
    assert complex(fxarray.grad(lambda z: z * z, holomorphic=True)(z)) == 2 + 4j
    with pytest.raises(NonDifferentiableError, match="holomorphic=True takes complex inputs"):
        fxarray.grad(lambda z: z * z, holomorphic=True)(1.0)
    with pytest.raises(NonDifferentiableError, match="returns a complex scalar"):
        fxarray.grad(lambda z: fnp.real(z), holomorphic=True)(z)
    with pytest.raises(TypeError, match="holomorphic"):
        fxarray.grad(lambda z: z * z)(z)


def test_real_functions_of_complex_numbers_have_gradients_as_in_jax():
    z = 1 + 2j
    assert complex(fxarray.grad(lambda z: abs(z) ** 2)(z)) == pytest.approx(2 - 4j)
    assert complex(fxarray.jacrev(lambda z: abs(z) ** 2)(z)) == pytest.approx(2 - 4j)


# --- integers -------------------------------------------------------------------------------------


def test_grad_of_an_integer_is_refused_by_argument_name():
    def loss(params, step):
        return params["w"] * step

    with pytest.raises(TypeError, match=r"argument params\['w'\]\[1\] of loss has type i32"):
        fxarray.grad(loss)({"w": [1.0, 2]}, 3)
    with pytest.raises(NonDifferentiableError, match="argument step of loss"):
        fxarray.grad(loss, argnums=1)({"w": 1.0}, 3)
    with pytest.raises(NonDifferentiableError, match="bool"):
        fxarray.grad(lambda x: 1.0)(True)


def test_integers_have_float0_derivatives_when_allowed():
    tree = {"w": 2.0, "n": np.arange(3)}
    gradient = fxarray.grad(lambda t: t["w"] * t["n"].sum(), allow_int=True)(tree)
    assert float(gradient["w"]) == 3.0
    assert gradient["n"].dtype == float0
    assert gradient["n"].shape == (3,)


def test_integer_results_and_arguments_have_float0_tangents():
    zeros = np.zeros(3, float0)
    n = np.arange(3, dtype=np.int32)
    _y, tangent = fxarray.jvp(lambda x, n: (x * n, n), (X, n), (T, zeros))
    np.testing.assert_allclose(np.asarray(tangent[0]), T * n)
    assert tangent[1].dtype == float0
    _, pullback = fxarray.vjp(lambda x, n: (x * n, n), X, n)
    _x_cotangent, n_cotangent = pullback(((T * n).astype(np.float32), zeros))
    assert n_cotangent.dtype == float0
    assert n_cotangent.shape == (3,)


def test_integers_take_only_float0_tangents():
    with pytest.raises(DTypeError, match="float0"):
        fxarray.jvp(lambda n: n, (3,), (1,))
    with pytest.raises(DTypeError, match="float0"):
        fxarray.jvp(lambda x: x, (3.0,), (np.zeros((), float0),))


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("f", "words"),
    [
        (lambda x: x, r"returned an array of type f32\[3\]. Sum it"),
        (lambda x: (x.sum(), x), "returned a tuple"),
        (lambda x: {"loss": x.sum()}, "returned a dict"),
        (lambda x: (x > 0).sum(), "has no derivative"),
        (lambda x: x.sum() * 1j, "real part"),
        (lambda x: None, "returned a NoneType"),
        (lambda x: "text", "returned a str"),
    ],
    ids=["vector", "tuple", "dict", "integer", "complex", "none", "static"],
)
def test_grad_says_what_is_wrong_with_the_loss(f, words):
    with pytest.raises(TypeError, match=words):
        fxarray.grad(f)(X)


def test_argnums_out_of_range_are_refused():
    with pytest.raises(ValueError, match="needs at least 3 positional arguments"):
        fxarray.grad(lambda x, y: x, argnums=2)(1.0, 2.0)
    with pytest.raises(ValueError, match="keyword arguments"):
        fxarray.grad(lambda x: x)(x=1.0)
    with pytest.raises(TypeError, match="argnums must be an int"):
        fxarray.grad(lambda x: x, argnums="x")
    with pytest.raises(ValueError, match="twice"):
        fxarray.grad(lambda x: x, argnums=(0, -1))(1.0)


def test_grad_of_what_is_no_function_is_refused():
    with pytest.raises(TypeError, match="takes a function"):
        fxarray.grad(3.0)


def test_has_aux_needs_a_pair():
    with pytest.raises(TypeError, match="must return a pair"):
        fxarray.grad(lambda x: x, has_aux=True)(1.0)
    with pytest.raises(TypeError, match="a tuple of length 3"):
        fxarray.grad(lambda x: (x, x, x), has_aux=True)(1.0)


def test_tangents_that_do_not_fit_are_refused_by_place():
    f = lambda p: p["w"]  # noqa: E731
    primal = ({"w": X},)
    with pytest.raises(TreeStructureError, match=r"tangents\[0\].*lacks 'w'"):
        fxarray.jvp(f, primal, ({"v": X},))
    with pytest.raises(ShapeError, match=r"tangent\[0\]\['w'\] has type f32\[2\]"):
        fxarray.jvp(f, primal, ({"w": X[:2]},))
    with pytest.raises(DTypeError, match=r"tangent\[0\]\['w'\] has type f64\[3\]"):
        fxarray.jvp(f, primal, ({"w": X.astype(np.float64)},))
    with pytest.raises(TypeError, match="tuple or list"):
        fxarray.jvp(f, X, X)


def test_cotangents_that_do_not_fit_are_refused_by_place():
    _, pullback = fxarray.vjp(lambda x: (x, {"y": x.sum()}), X)
    with pytest.raises(TreeStructureError, match=r"cotangents\[1\]"):
        pullback((X, X[0]))
    with pytest.raises(ShapeError, match=r"cotangent\[1\]\['y'\] has type f32\[3\]"):
        pullback((X, {"y": X}))
    with pytest.raises(DTypeError, match=r"cotangent\[0\] has type i32"):
        pullback((np.arange(3, dtype=np.int32), {"y": X[0]}))
    with pytest.raises(TypeError, match="takes one argument"):
        pullback(X, X)


def test_weak_tangents_take_the_dtype_of_the_primal():
    x = fnp.asarray(3.0, dtype="float64")
    assert fxarray.jvp(lambda x: x * x, (x,), (1.0,))[1].dtype == np.float64
    assert fxarray.vjp(lambda x: x * x, x)[1](1)[0].dtype == np.float64


def test_errors_are_raised_before_anything_runs():
    calls = []
    with pytest.raises(NonDifferentiableError):
        fxarray.grad(lambda x: calls.append(x))(1)
    assert calls == []


def test_a_tracer_that_leaves_grad_is_recognised():
    kept = []

    def f(x):
        kept.append(x)
        return x * x

    fxarray.grad(f)(1.0)
    with pytest.raises(fxarray.core.errors.UnexpectedTracerError, match="traced by grad"):
        kept[0] + 1.0


def test_pmap_style_reduce_axes_are_accepted():
    assert float(fxarray.grad(lambda x: x * x, reduce_axes=("batch",))(3.0)) == 6.0
    assert issubclass(MissingRuleError, NotImplementedError)
    assert issubclass(ArgumentError, ValueError)


# --- the derivative as a tree ---------------------------------------------------------------------


def test_what_vjp_returns_is_a_tree_of_residuals():
    _, pullback = fxarray.vjp(lambda x: fnp.sin(x) * x, X)
    leaves, treedef = fxarray.tree.flatten(pullback)
    assert leaves
    again = fxarray.tree.unflatten(treedef, leaves)
    np.testing.assert_array_equal(np.asarray(again(T)[0]), np.asarray(pullback(T)[0]))
    doubled = fxarray.tree.map(lambda leaf: leaf * 2, fxarray.vjp(lambda x: x * X, X)[1])
    np.testing.assert_allclose(np.asarray(doubled(T)[0]), 2 * X * T)


def test_derivatives_cross_the_boundary_of_jit():
    f = lambda x: fnp.sin(x) * x  # noqa: E731
    _y, pullback = fxarray.jit(lambda x: fxarray.vjp(f, x))(X)
    expected = fxarray.vjp(f, X)[1](T)
    np.testing.assert_allclose(np.asarray(pullback(T)[0]), np.asarray(expected[0]), rtol=1e-6)
    applied = fxarray.jit(lambda g, t: g(t))(pullback, T)
    np.testing.assert_allclose(np.asarray(applied[0]), np.asarray(expected[0]), rtol=1e-6)


@pytest.mark.parametrize("jitted", [True, False])
def test_fwd_and_bwd_is_vjp_in_two_parts(jitted):
    f = lambda x, y: (fnp.sin(x) * y).sum()  # noqa: E731
    forward, backward = fxarray.fwd_and_bwd(f, argnums=(0, 1), jitted=jitted)
    value, residuals = forward(X, T)
    expected = fxarray.grad(f, (0, 1))(X, T)
    for got, wanted in zip(backward(residuals, np.float32(1)), expected, strict=True):
        np.testing.assert_allclose(np.asarray(got), np.asarray(wanted), rtol=1e-6)
    assert float(value) == pytest.approx(float(f(X, T)))
