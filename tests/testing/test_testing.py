"""The public checks accept what is right, and find what is wrong."""

import numpy as np
import pytest

import fxarray
import fxarray.numpy as fnp
from fxarray.core.errors import ArgumentError, ProgramError
from fxarray.core.ir import Equation, Literal, Program, Var
from fxarray.core.primitive import REGISTRY
from fxarray.core.types import ArrayType
from fxarray.testing import (
    assert_close,
    check_batch,
    check_grads,
    check_jvp,
    check_program,
    check_vjp,
)

X = fnp.asarray(np.array([0.3, -0.7, 1.2]))


@fxarray.custom_jvp
def wrong_sine(x):
    return fnp.sin(x)


@wrong_sine.defjvp
def _(primals, tangents):
    (x,), (t,) = primals, tangents
    return fnp.sin(x), 1.001 * fnp.cos(x) * t


@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128"])
@pytest.mark.parametrize("modes", ["fwd", "rev", ("fwd", "rev")])
def test_right_derivatives_pass(dtype, modes):
    check_grads(lambda x: fnp.sin(x) * x.sum(), (X.astype(dtype),), order=2, modes=modes)


def test_derivatives_of_trees_with_integers_pass():
    def f(tree, n):
        return {"y": tree["a"] * tree["b"][0] * n}

    check_grads(f, ({"a": X, "b": [X + 1]}, 3), order=1)


@pytest.mark.parametrize("modes", ["fwd", "rev"])
def test_derivative_off_by_a_thousandth_fails(modes):
    with pytest.raises(AssertionError, match="jvp" if modes == "fwd" else "vjp"):
        check_grads(wrong_sine, (X,), order=1, modes=modes)


def test_second_derivative_that_is_wrong_fails_at_order_two():
    @fxarray.custom_jvp
    def f(x):
        return x**3

    @f.defjvp
    def _(primals, tangents):
        (x,), (t,) = primals, tangents
        return x**3, fxarray.lax.stop_gradient(3 * x**2) * t

    check_grads(f, (X,), order=1)
    with pytest.raises(AssertionError, match="of"):
        check_grads(f, (X,), order=2)


def test_jvp_and_vjp_given_by_hand_are_checked():
    def f(x):
        return x * x

    check_jvp(f, lambda xs, ts: (xs[0] ** 2, 2 * xs[0] * ts[0]), (X,))
    check_vjp(f, lambda x: (x * x, lambda ct: (2 * x * ct,)), (X,))
    with pytest.raises(AssertionError):
        check_jvp(f, lambda xs, ts: (xs[0] ** 2, 3 * xs[0] * ts[0]), (X,))
    with pytest.raises(AssertionError):
        check_vjp(f, lambda x: (x * x, lambda ct: (x * ct,)), (X,))
    with pytest.raises(AssertionError, match="value"):
        check_vjp(f, lambda x: (x, lambda ct: (2 * x * ct,)), (X,))


def test_unknown_mode_and_integer_arguments_are_refused():
    with pytest.raises(ArgumentError, match="modes"):
        check_grads(fnp.sin, (X,), 1, modes="sideways")
    with pytest.raises(ArgumentError, match="no argument"):
        check_grads(lambda n: n * 2, (3,), 1)


def test_batch_equals_loop():
    a, b = fnp.asarray(np.arange(6.0).reshape(2, 3)), fnp.asarray(np.ones((4, 2)))
    check_batch(lambda x, y: x @ y, (b, a), in_axes=(0, None))
    check_batch(lambda x: x - x.sum(), (a,), in_axes=1)
    with pytest.raises(ArgumentError, match="mapped"):
        check_batch(fnp.sin, (a,), in_axes=None)


def test_batch_rule_that_is_wrong_is_found(monkeypatch):
    cls = type(fnp.sin(X) is not None and REGISTRY["sin"]())

    def batch(self, size, name, operands, axes):
        return self.bind(operands[0] * 2), axes

    monkeypatch.setattr(cls, "batch", batch)
    with pytest.raises(AssertionError, match="loop"):
        check_batch(fnp.sin, (X,))


def test_close_compares_structure_shape_dtype_and_values():
    assert_close([X, 1], [X + 1e-14, 1])
    for wrong in ([X], [X, 2], [X.astype("float32"), 1], [X[:2], 1], [X + 1e-6, 1]):
        with pytest.raises(AssertionError):
            assert_close([X, 1], wrong)
    assert_close(X.astype("float32"), X, check_dtypes=False)
    assert_close(X, X + 0.01, atol=0.02)


def test_good_program_passes():
    def f(x):
        y = fxarray.lax.scan(lambda c, a: (c * a, c), x[0], x)[1]
        return fxarray.jit(fnp.sin)(y) + fnp.asarray(np.arange(3.0))

    check_program(fxarray.make_program(f)(X))


def test_ill_formed_programs_are_found():
    f64 = ArrayType((), np.dtype("float64"))
    sin = REGISTRY["sin"]()
    x, y = Var(f64), Var(f64)
    once = Equation(sin, [x], [y])
    with pytest.raises(ProgramError, match="defined twice"):
        check_program(Program([x], [once, once], [y]))
    weak = Var(f64.replace(weak=True))
    with pytest.raises(ProgramError, match="inferred"):
        check_program(Program([x], [Equation(sin, [x], [weak])], [weak]))
    with pytest.raises(ProgramError, match="no scalar"):
        check_program(Program([], [], [Literal(fnp.ones(3))]))
    with pytest.raises(ProgramError, match="declared"):
        check_program(Program([], [], [x], [(x, fnp.ones(3))]))
