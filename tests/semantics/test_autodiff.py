"""Points 8 to 19: derivatives, and their conventions at corners."""

from __future__ import annotations

import numpy as np
import pytest

import fxarray as fx
import fxarray.numpy as fnp
from fxarray import lax, nn
from fxarray.core.errors import NonDifferentiableError
from fxarray.extend import SymbolicZero


def eager_and_staged(function):
    """A function, and the same under jit."""
    return function, fx.jit(function)


# --- points 8 and 9: what can be differentiated -------------------------------------------------


@pytest.mark.parametrize("value", [3, True, np.arange(3), fnp.arange(3)])
def test_grad_refuses_integers_unless_allowed(value):
    """Point 8: an integer or bool input is a TypeError; allow_int gives float0."""
    f = lambda x: fnp.sum(fnp.sin(1.0 * x))  # noqa: E731
    for g in (fx.grad(f), fx.jit(fx.grad(f)), fx.value_and_grad(f)):
        with pytest.raises(TypeError, match="int|bool"):
            g(value)
    for g in (fx.grad(f, allow_int=True), fx.jit(fx.grad(f, allow_int=True))):
        result = g(value)
        assert result.dtype == fx.float0
        assert result.shape == np.shape(value)


def test_derivatives_of_integer_results_are_float0():
    """Point 8: jvp of an integer result carries float0; vjp takes float0 for it."""
    f = lambda x: (x * 2, fnp.argmax(x))  # noqa: E731
    x = fnp.asarray([1.0, 3.0])
    (_, index), (tangent, index_tangent) = fx.jvp(f, (x,), (fnp.ones(2),))
    assert int(index) == 1
    assert index_tangent.dtype == fx.float0
    assert index_tangent.shape == ()
    np.testing.assert_array_equal(tangent, [2, 2])
    (_y, i), pullback = fx.vjp(f, x)
    (ct,) = pullback((fnp.ones(2), np.zeros((), fx.float0)))
    np.testing.assert_array_equal(ct, [2, 2])
    assert str(i.dtype) == "int32"


def test_integer_leaves_in_carries_take_part_in_differentiated_loops():
    """Point 8: counters in carries are no obstacle, and get no tangents of their own."""

    def f(x):
        def step(carry, _):
            i, y = carry
            return (i + 1, y * x * (i + 1)), i

        (count, y), steps = lax.scan(step, (0, x), None, length=3)
        return y, (count, steps)

    for g in eager_and_staged(fx.value_and_grad(f, has_aux=True)):
        (value, (count, steps)), slope = g(2.0)
        assert int(count) == 3
        np.testing.assert_array_equal(steps, [0, 1, 2])
        np.testing.assert_allclose((value, slope), (6 * 2.0**4, 24 * 2.0**3))


def test_grad_requires_a_real_scalar():
    """Point 9: vectors, integers and complex results are refused; holomorphic allows complex."""
    with pytest.raises(TypeError, match="scalar"):
        fx.grad(lambda x: x)(fnp.ones(3))
    with pytest.raises(TypeError, match="i32"):
        fx.grad(lambda x: fnp.argmax(x))(fnp.ones(3))
    with pytest.raises(TypeError, match="holomorphic"):
        fx.grad(lambda x: x * 1j)(1.0)
    with pytest.raises(TypeError, match="complex"):
        fx.grad(lambda x: x * x, holomorphic=True)(1.0)
    with pytest.raises(TypeError, match="one|scalar|tuple"):
        fx.grad(lambda x: (x, x))(1.0)


def test_vjp_checks_its_cotangent():
    """Point 9: a cotangent of another shape, dtype or structure is refused."""
    _, pullback = fx.vjp(fnp.sin, fnp.ones(3))
    for wrong in (fnp.ones(4), fnp.ones(()), fnp.ones(3, fnp.int32), fnp.ones(3, fnp.complex64)):
        with pytest.raises((TypeError, ValueError), match="cotangent"):
            pullback(wrong)
    with pytest.raises((TypeError, ValueError)):
        pullback((fnp.ones(3), fnp.ones(3)))
    with pytest.raises((TypeError, ValueError), match="tangent"):
        fx.jvp(fnp.sin, (fnp.ones(3),), (fnp.ones(4),))


# --- point 10: complex numbers ------------------------------------------------------------------


@pytest.mark.parametrize("transform", [lambda f: f, fx.jit])
def test_complex_gradients_follow_the_conjugate_convention(transform):
    """Point 10: grad of |z|^2 at 1+2j is 2-4j; of a holomorphic z^2 it is 2z; of abs at 0, 0."""
    z = fnp.asarray(1 + 2j)
    grad = lambda f, **options: transform(fx.grad(f, **options))  # noqa: E731
    assert complex(grad(lambda z: fnp.abs(z) ** 2)(z)) == pytest.approx(2 - 4j)
    assert complex(grad(lambda z: (z * fnp.conj(z)).real)(z)) == pytest.approx(2 - 4j)
    assert complex(grad(lambda z: z * z, holomorphic=True)(z)) == pytest.approx(2 * (1 + 2j))
    assert complex(grad(fnp.abs)(fnp.asarray(0j))) == 0
    assert complex(grad(lambda z: z.real)(z)) == 1
    assert complex(grad(lambda z: z.imag)(z)) == -1j


def test_transposes_are_not_conjugated():
    """Point 10: the transpose of multiplication by a is multiplication by a."""
    a = fnp.asarray([[1 + 2j, 3j], [2.0, 1 - 1j]])
    transpose = fx.linear_transpose(lambda x: a @ x, fnp.zeros(2, fnp.complex64))
    ct = fnp.asarray([1 + 1j, 2 - 1j])
    np.testing.assert_allclose(transpose(ct)[0], np.asarray(a).T @ np.asarray(ct))


def test_a_real_input_of_a_complex_function_has_a_real_gradient():
    """Point 10: the cotangent of a real operand is real."""
    slope = fx.grad(lambda x: fnp.abs(fnp.exp(1j * x) + 1.0))(0.5)
    assert str(slope.dtype) == "float32"
    np.testing.assert_allclose(slope, -np.sin(0.25), rtol=1e-5)


# --- point 11: symbolic zeros -------------------------------------------------------------------


def test_what_does_not_depend_costs_no_derivative():
    """Point 11: an output that is not used in the loss has no cotangent, so no backward pass."""
    seen = []

    @fx.custom_vjp
    def watched(x):
        return fnp.exp(x)

    watched.defvjp(lambda x: (fnp.exp(x), x), lambda x, ct: (seen.append(ct), (ct,))[1])

    def f(x):
        return fnp.sum(x * x), watched(x)

    for g in eager_and_staged(fx.grad(f, has_aux=True)):
        np.testing.assert_array_equal(g(fnp.ones(3))[0], [2, 2, 2])
    assert seen == []
    assert float(fx.vjp(lambda x: f(x)[1][0], fnp.ones(3))[1](1.0)[0][0]) == 1.0
    assert len(seen) == 1


def test_custom_rules_see_materialised_zeros_unless_they_ask_for_symbolic_ones():
    """Point 11: custom_jvp gets arrays of zeros by default, SymbolicZero with symbolic_zeros."""
    seen = []

    def check(symbolic):
        @fx.custom_jvp
        def f(x, y):
            return x * y

        def rule(primals, tangents):
            seen.append(type(tangents[1]) is SymbolicZero)
            x, y = primals
            return x * y, tangents[0] * y

        f.defjvp(rule, symbolic_zeros=symbolic)
        return f

    for symbolic in (False, True):
        seen.clear()
        assert float(fx.grad(check(symbolic))(2.0, 3.0)) == 3.0
        assert seen == [symbolic]


def test_custom_vjp_learns_which_arguments_are_differentiated():
    """Point 11: with symbolic_zeros, the forward rule sees `perturbed` of each argument."""
    seen = []

    @fx.custom_vjp
    def f(x, y):
        return x * y

    def forward(x, y):
        seen.append((x.perturbed, y.perturbed))
        return x.value * y.value, (x.value, y.value)

    def backward(residuals, ct):
        x, y = residuals
        return ct * y, ct * x

    f.defvjp(forward, backward, symbolic_zeros=True)
    assert float(fx.grad(f)(2.0, 3.0)) == 3.0
    assert float(fx.grad(f, argnums=1)(2.0, 3.0)) == 2.0
    assert seen == [(True, False), (False, True)]


# --- point 12: the interface of grad ------------------------------------------------------------


def test_stop_gradient_passes_trees_and_integers():
    """Point 12: stop_gradient is the identity on any tree, with zero derivative."""
    tree = {"a": fnp.ones(2), "n": fnp.arange(3), "f": (1.5, None)}
    stopped = lax.stop_gradient(tree)
    assert fx.tree.structure(stopped) == fx.tree.structure(tree)
    np.testing.assert_array_equal(stopped["n"], [0, 1, 2])
    assert float(fx.grad(lambda x: x * lax.stop_gradient(x))(3.0)) == 3.0
    _, tangent = fx.jvp(lax.stop_gradient, (2.0,), (1.0,))
    assert float(tangent) == 0.0


def test_gradients_have_the_structure_of_their_arguments():
    """Point 12: has_aux, tuples of argnums, and pytrees keep their structure."""

    def f(params, x, scale):
        y = params["w"] * x + params["b"][0]
        return fnp.sum(y) * scale, {"y": y}

    params = {"w": fnp.asarray([1.0, 2.0]), "b": [fnp.asarray(3.0)]}
    (value, aux), grads = fx.value_and_grad(f, argnums=(0, 2), has_aux=True)(
        params, fnp.ones(2), 2.0
    )
    assert float(value) == 18.0
    np.testing.assert_array_equal(aux["y"], [4, 5])
    assert fx.tree.structure(grads[0]) == fx.tree.structure(params)
    assert float(grads[0]["b"][0]) == 4.0
    assert float(grads[1]) == 9.0
    assert type(fx.grad(f, argnums=(0,), has_aux=True)(params, fnp.ones(2), 2.0)[0]) is tuple
    np.testing.assert_array_equal(fx.grad(lambda a, b: b, argnums=-1)(1.0, 2.0), 1.0)


def test_hessian_is_forward_over_reverse():
    """Point 12: hessian equals jacfwd of jacrev, in all four orders."""
    f = lambda x: fnp.sum(fnp.sin(x) * x[::-1] ** 3)  # noqa: E731
    x = fnp.asarray([0.5, 1.0, -0.3])
    expected = fx.hessian(f)(x)
    for outer in (fx.jacfwd, fx.jacrev):
        for inner in (fx.jacfwd, fx.jacrev):
            np.testing.assert_allclose(outer(inner(f))(x), expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(expected, expected.T, rtol=1e-4, atol=1e-6)


# --- points 13 and 14: linearization, and grad of jit -------------------------------------------


def test_linearize_runs_the_function_once_for_many_applications():
    """Point 13: the linear function repeats none of the work on values."""
    calls = []

    def f(x):
        calls.append(1)
        return fnp.sin(x) * fnp.exp(x)

    y, linear = fx.linearize(f, 0.5)
    slopes = [float(linear(t)) for t in (1.0, 2.0, 0.0)]
    assert calls == [1]
    slope = np.exp(0.5) * (np.sin(0.5) + np.cos(0.5))
    np.testing.assert_allclose(slopes, [slope, 2 * slope, 0], rtol=1e-6)
    np.testing.assert_allclose(y, np.sin(0.5) * np.exp(0.5), rtol=1e-6)
    names = {e.op.name for e in fx.make_program(linear)(1.0).equations}
    assert not names & {"sin", "cos", "exp"}


def test_linear_transpose_of_a_nonlinear_function_is_refused():
    """Point 13: transposing sin is a NotImplementedError; a linear function transposes."""
    with pytest.raises(NotImplementedError, match="sin"):
        fx.linear_transpose(fnp.sin, 1.0)(1.0)
    (transposed,) = fx.linear_transpose(lambda x: 3.0 * x[1:], fnp.zeros(3))(fnp.ones(2))
    np.testing.assert_array_equal(transposed, [0, 3, 3])


def test_the_forward_pass_runs_each_operation_once():
    """Point 13: values and residuals come from one evaluation: one exp, one sin, one cos."""
    program = fx.make_program(fx.value_and_grad(lambda x: fnp.sum(fnp.exp(x) * fnp.sin(x))))(
        fnp.ones(3)
    )
    names = [equation.op.name for equation in program.equations]
    assert [names.count(name) for name in ("exp", "sin", "cos")] == [1, 1, 1]


def test_grad_of_a_jitted_function_traces_once():
    """Point 14: a second gradient traces nothing, and agrees with the gradient without jit."""
    traces = []

    @fx.jit
    def f(x):
        traces.append(1)
        return fnp.sum(fnp.sin(x) * x)

    x = fnp.asarray([0.3, 0.4])
    first, second = fx.grad(f)(x), fx.grad(f)(x + 1)
    assert traces == [1]
    np.testing.assert_allclose(first, np.cos(x) * x + np.sin(x), rtol=1e-6)
    assert second.shape == (2,)


def test_forwarded_values_cross_a_jit_boundary_without_becoming_results_twice():
    """Point 14: an input that is a residual is not sent out of the call and copied back."""
    inner = fx.jit(lambda x, y: x * y)
    x, y = fnp.ones(3), fnp.full((3,), 2.0)
    value, pullback = fx.vjp(inner, x, y)
    np.testing.assert_array_equal(pullback(fnp.ones(3))[0], [2, 2, 2])
    np.testing.assert_array_equal(value, [2, 2, 2])
    program = fx.make_program(lambda x, y: fx.vjp(inner, x, y)[1](x))(x, y)
    assert max(len(e.outputs) for e in program.equations) <= 2


# --- point 15: ties and corners -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "at", "expected"),
    [
        (nn.relu, 0.0, 0.0),
        (nn.relu6, 0.0, 0.0),
        (nn.relu6, 6.0, 0.0),
        (fnp.abs, 0.0, 1.0),
        (fnp.sign, 0.0, 0.0),
        (lambda x: fnp.maximum(x, 0.0), 0.0, 0.5),
        (lambda x: fnp.minimum(x, 0.0), 0.0, 0.5),
        (lambda x: fnp.maximum(x, x), 1.0, 1.0),
        (lambda x: fnp.clip(x, 0.0, 1.0), 0.0, 0.5),
        (lambda x: fnp.clip(x, 0.0, 1.0), 1.0, 0.5),
        (lambda x: lax.clamp(0.0, x, 1.0), 0.0, 0.0),
        (lambda x: lax.clamp(0.0, x, 1.0), 1.0, 0.0),
        (lambda x: lax.clamp(0.0, x, 1.0), 0.5, 1.0),
        (nn.leaky_relu, 0.0, 1.0),
        (fnp.floor, 1.0, 0.0),
        (fnp.round, 0.5, 0.0),
    ],
)
def test_slopes_at_ties_and_corners(function, at, expected):
    """Point 15: relu'(0) = 0, abs'(0) = 1, maximum at a tie 0.5, clip at a bound 0.5, clamp at a
    bound 0.
    """
    for g in eager_and_staged(fx.grad(function)):
        assert float(g(at)) == expected
    assert float(fx.jvp(function, (at,), (1.0,))[1]) == expected


def test_extrema_split_evenly_over_ties():
    """Point 15: max over three equal elements gives each a third; sort follows the stable order."""
    x = fnp.asarray([1.0, 3.0, 3.0, 3.0])
    for f in (fnp.max, lambda x: -fnp.min(-x)):
        np.testing.assert_allclose(fx.grad(f)(x), [0, 1 / 3, 1 / 3, 1 / 3], rtol=1e-6)
    weights = fnp.asarray([1.0, 2.0, 3.0])
    grads = fx.grad(lambda x: fnp.sum(fnp.sort(x) * weights))(fnp.asarray([2.0, 1.0, 1.0]))
    np.testing.assert_array_equal(grads, [3, 1, 2])


# --- points 16 and 17: no NaN where the derivative is defined, or can be ------------------------


@pytest.mark.parametrize(
    ("function", "at", "expected"),
    [
        (fnp.linalg.norm, [0.0, 0.0], [0, 0]),
        (fnp.std, [2.0, 2.0, 2.0], [0, 0, 0]),
        (lambda v: fnp.hypot(v[0], v[1]), [0.0, 0.0], [0, 0]),
        (lambda v: fnp.arctan2(v[0], v[1]), [0.0, 0.0], [0, 0]),
        (lambda v: fnp.sum(fnp.linalg.norm(v[None], axis=1)), [0.0, 0.0], [0, 0]),
    ],
)
def test_gradients_are_finite_where_jax_gives_nan(function, at, expected):
    """Point 16 and pain point 17: norm, std, hypot and arctan2 have slope 0 at their corners."""
    x = fnp.asarray(at)
    for g in eager_and_staged(fx.grad(function)):
        np.testing.assert_array_equal(g(x), expected)
    np.testing.assert_array_equal(fx.jacfwd(function)(x), expected)
    batched = fx.vmap(fx.grad(function))(fnp.stack([x, x]))
    np.testing.assert_array_equal(batched, [expected, expected])


def test_the_slope_of_a_square_root_at_zero_stays_infinite():
    """Point 16: sqrt'(0) is inf, as it is."""
    assert float(fx.grad(fnp.sqrt)(0.0)) == np.inf


@pytest.mark.parametrize(
    ("function", "at", "expected"),
    [
        (fnp.sinc, 0.0, 0.0),
        (lambda x: x**2, 0.0, 0.0),
        (lambda x: x**2.0, 0.0, 0.0),
        (lambda x: x**2.0, -3.0, -6.0),
        (lambda x: x ** fnp.asarray(2.0), 0.0, 0.0),
        (lambda x: x ** fnp.asarray(2.0), -3.0, -6.0),
        (lambda y: 0.0**y, 2.0, 0.0),
        (lambda x: x**1, 0.0, 1.0),
        (lambda x: x**0, 0.0, 0.0),
        (lambda x: fnp.power(x, 3), -2.0, 12.0),
    ],
)
def test_slopes_that_are_right_at_awkward_points(function, at, expected):
    """Point 17: sinc, powers at zero and of negative bases have their exact slopes."""
    for g in eager_and_staged(fx.grad(function)):
        assert float(g(at)) == pytest.approx(expected, rel=1e-6)


def test_gradients_through_zero_factors_and_infinite_terms_are_exact():
    """Point 17: prod and cumprod with a zero, logsumexp and logaddexp with -inf."""
    x = fnp.asarray([2.0, 0.0, 3.0])
    np.testing.assert_allclose(fx.grad(fnp.prod)(x), [0, 6, 0])
    np.testing.assert_allclose(fx.grad(lambda x: fnp.sum(fnp.cumprod(x)))(x), [1, 8, 0])
    np.testing.assert_allclose(fx.grad(fnp.prod)(fnp.asarray([0.0, 0.0, 3.0])), [0, 0, 0])
    grads = fx.grad(nn.logsumexp)(fnp.asarray([-np.inf, 0.0, 0.0]))
    np.testing.assert_allclose(grads, [0, 0.5, 0.5])
    slope = fx.grad(fnp.logaddexp, argnums=(0, 1))(-np.inf, 1.0)
    np.testing.assert_allclose(slope, [0, 1])
    assert np.isfinite(fx.grad(fnp.hypot)(0.0, 0.0))


# --- point 18: integer powers -------------------------------------------------------------------


def test_static_integer_powers_are_products():
    """Point 18: x ** int is integer_pow, exact for negative bases; integer arrays work too."""
    x = fnp.asarray([-2.0, 3.0])
    for n, expected in ((0, [1, 1]), (1, [-2, 3]), (2, [4, 9]), (3, [-8, 27]), (-1, [-0.5, 1 / 3])):
        np.testing.assert_allclose(x**n, expected, rtol=1e-6)
        np.testing.assert_allclose(x ** fnp.asarray(n), expected, rtol=1e-6)
    names = {e.op.name for e in fx.make_program(lambda x: x**5)(x).equations}
    assert names <= {"integer_pow", "mul", "square"}
    np.testing.assert_array_equal(fnp.asarray([-2, 3]) ** 3, [-8, 27])
    np.testing.assert_array_equal(fnp.asarray([-2, 3]) ** fnp.asarray([3, 2]), [-8, 9])
    np.testing.assert_allclose(fx.vmap(fx.grad(lambda x: x ** fnp.asarray(3)))(x), [12, 27])


# --- point 19: gradients of updates and reads ---------------------------------------------------


def test_gradients_of_indexed_updates():
    """Point 19: set stops what it overwrites, add passes, mul twice gives 4, get accumulates."""
    x = fnp.asarray([1.0, 2.0, 3.0])
    total = lambda f: lambda x, v: fnp.sum(f(x, v))  # noqa: E731
    dx, dv = fx.grad(total(lambda x, v: x.at[1].set(v) ** 2), argnums=(0, 1))(x, 5.0)
    np.testing.assert_array_equal(dx, [2, 0, 6])
    assert float(dv) == 10.0
    twice = fnp.asarray([0, 0])
    dx, dv = fx.grad(total(lambda x, v: x.at[twice].add(v)), argnums=(0, 1))(x, fnp.ones(2))
    np.testing.assert_array_equal(dx, [1, 1, 1])
    np.testing.assert_array_equal(dv, [1, 1])
    np.testing.assert_array_equal(x.at[twice].add(1.0), [3, 2, 3])
    dx = fx.grad(lambda x: fnp.sum(x.at[twice].mul(2.0)))(x)
    np.testing.assert_array_equal(dx, [4, 1, 1])
    np.testing.assert_array_equal(
        fx.grad(lambda x: fnp.sum(x[fnp.asarray([2, 2, 0])]))(x), [1, 0, 2]
    )
    dx, dv = fx.grad(total(lambda x, v: x.at[0].max(v)), argnums=(0, 1))(x, 1.0)
    np.testing.assert_allclose((dx[0], dv), (0.5, 0.5))


def test_set_with_equal_indices_gives_the_gradient_to_what_was_written():
    """Point 19: of two values written to one place, the one that stands there gets the gradient."""
    x, places = fnp.zeros(3), fnp.asarray([1, 1])
    f = lambda v: x.at[places].set(v)  # noqa: E731
    v = fnp.asarray([5.0, 7.0])
    written = float(f(v)[1])
    grads = fx.grad(lambda v: f(v)[1])(v)
    assert written in (5.0, 7.0)
    np.testing.assert_array_equal(grads, [written == 5.0, written == 7.0])


def test_refusals_are_nondifferentiable_errors():
    """Point 8: the class of the refusal is one that JAX's users catch."""
    assert issubclass(NonDifferentiableError, TypeError)
    with pytest.raises(NonDifferentiableError):
        fx.grad(lambda x: 1.0 * x)(3)
