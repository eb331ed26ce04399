"""Derivatives of plain operations, worked out once per types: the same as by the rules, always."""

import numpy as np
import pytest

import fxarray
import fxarray.numpy as fnp
from fxarray.interpreters import linearize, local


@pytest.fixture(autouse=True)
def nothing_known():
    local._LOCALS.clear()
    yield
    local._LOCALS.clear()


def general(function, *args):
    """A result with every operation going the general way."""
    kept = linearize._shortcuts[:]
    linearize._shortcuts.clear()
    try:
        return function(*args)
    finally:
        linearize._shortcuts[:] = kept


def vector(*values: float, dtype=np.float32):
    return fnp.array(values, dtype)


FUNCTIONS = {
    "product with itself": lambda v: (v * v).sum(),
    "sine": lambda v: fnp.sin(v * v).sum(),
    "many": lambda v: (fnp.exp(v) / (1 + v) - fnp.log1p(v) ** 3).sum(),
    "numbers": lambda v: (2 * v + 1 - v / 3).sum() * 0.5,
    "scalar and vector": lambda v: (v * v.sum()).sum(),
    "no dependence": lambda v: (v * 0 + fnp.floor(v)).sum(),
    "constants": lambda v: (fnp.ones(3) * v).sum() + fnp.ones(()),
    "choice": lambda v: fnp.where(v > 1, v * v, fnp.maximum(v, 0.5)).sum(),
    "used twice": lambda v: sum(s * s + s for s in [fnp.sin(v)]).sum(),
    "absolute": lambda v: fnp.abs(v).sum() + fnp.sqrt(v).sum(),
    "axes": lambda v: fnp.outer(v, v).sum(0).sum(),
    "identity": lambda v: v[0],
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_gradients_are_those_of_the_rules(name, dtype):
    function, given = FUNCTIONS[name], vector(0.5, 1.25, 3, dtype=dtype)
    expected = general(fxarray.value_and_grad(function), given)
    for _ in range(5):
        value, gradient = fxarray.value_and_grad(function)(given)
        assert (value.type, gradient.type) == (expected[0].type, expected[1].type)
        np.testing.assert_array_equal(value, expected[0])
        np.testing.assert_array_equal(gradient, expected[1])


def test_it_is_worked_out_at_the_third_call_and_used():
    gradient = fxarray.grad(FUNCTIONS["sine"])
    for number in range(5):
        gradient(vector(1, 2, 3))
        found = [known for known in local._LOCALS.values() if type(known) is local.Local]
        assert bool(found) == (number >= 2)


def test_weak_and_strong_types_are_kept_apart():
    function = fxarray.grad(lambda x: fnp.sin(x) * x)
    for _ in range(5):
        assert function(1.0).weak_type
        assert not function(fnp.float32(1)).weak_type
        assert function(fnp.float64(1)).dtype == np.float64


def test_complex_gradients_are_those_of_the_rules():
    given = fnp.array([1 + 2j, 3 - 1j], np.complex64)

    def function(z):
        return (fnp.abs(z * z) + fnp.real(z)).sum()

    expected = general(fxarray.grad(function), given)
    for _ in range(5):
        np.testing.assert_array_equal(fxarray.grad(function)(given), expected)


def test_higher_derivatives_and_maps_go_the_general_way():
    def function(v):
        return fnp.sin(v * v).sum()

    given = vector(0.5, 1.5)
    for transform in (
        fxarray.hessian,
        lambda f: fxarray.jacfwd(fxarray.grad(f)),
        lambda f: fxarray.jit(fxarray.grad(f)),
        lambda f: fxarray.vmap(fxarray.grad(lambda x: f(x[None]))),
        lambda f: fxarray.grad(lambda v: fxarray.grad(f)(v).sum()),
    ):
        expected = general(transform(function), given)
        for _ in range(4):
            np.testing.assert_allclose(transform(function)(given), expected, rtol=1e-6)


def test_the_record_of_a_vjp_can_be_transformed():
    def function(v):
        return fnp.sin(v) * v

    given = vector(0.5, 1.5)
    for _ in range(4):
        _, pull = fxarray.vjp(function, given)
    expected = np.cos([0.5, 1.5]) * [0.5, 1.5] + np.sin([0.5, 1.5])
    cotangents = fnp.eye(2)
    np.testing.assert_allclose(
        fxarray.vmap(lambda c: pull(c)[0])(cotangents), np.diag(expected), rtol=1e-6
    )
    np.testing.assert_allclose(
        fxarray.jit(lambda p, c: p(c)[0])(pull, cotangents[0]), [expected[0], 0], rtol=1e-6
    )
    gradient = fxarray.grad(lambda c: pull(c)[0].sum())(cotangents[0])
    np.testing.assert_allclose(gradient, expected, rtol=1e-6)


def test_a_linearized_function_pushes_forward():
    given = vector(0.5, 1.5)
    for _ in range(4):
        _, push = fxarray.linearize(lambda v: fnp.sin(v * v), given)
    expected = np.cos([0.25, 2.25]) * [1.0, 3.0]
    np.testing.assert_allclose(push(fnp.ones(2)), expected, rtol=1e-6)


def test_cotangents_of_another_weakness_give_the_rules_types():
    given = vector(1.0)
    for _ in range(4):
        _, pull = fxarray.vjp(lambda v: v * 2, given)
    assert pull(vector(3))[0].type == given.type


def test_settings_are_obeyed():
    function = fxarray.grad(lambda v: fnp.log(v).sum())
    for _ in range(5):
        function(vector(1))
    with fxarray.debug_nans(True), pytest.raises(fxarray.errors.NonFiniteError):
        function(vector(-1))


def test_errors_name_the_users_line():
    for _ in range(5):
        _, pull = fxarray.vjp(lambda v: v * 2, vector(1, 2))
    with pytest.raises(fxarray.errors.FxArrayError, match="test_local.py"):
        pull(vector(1, 2, 3))


def test_deleted_arrays_are_errors():
    function = fxarray.grad(lambda v, w: (v * w).sum())
    given = vector(1, 2)
    for _ in range(5):
        function(vector(1, 2), given)
    given.delete()
    with pytest.raises(fxarray.errors.DeletedArrayError):
        function(vector(1, 2), given)


def test_leaked_tracers_are_errors():
    kept = []
    for _ in range(4):
        fxarray.grad(lambda v: kept.append(v) or (v * v).sum())(vector(1))
    with pytest.raises(fxarray.errors.UnexpectedTracerError):
        kept[-1] * kept[-1]


def test_a_rule_that_cannot_be_traced_goes_the_general_way(monkeypatch):
    monkeypatch.setattr(local, "_work_out", lambda *_: None)
    for _ in range(5):
        np.testing.assert_array_equal(fxarray.grad(FUNCTIONS["sine"])(vector(0)), [0])
    assert None in local._LOCALS.values()


def test_results_without_derivative_have_none():
    def function(v):
        return (fnp.floor(v) * v).sum()

    for _ in range(5):
        np.testing.assert_array_equal(fxarray.grad(function)(vector(1.5)), [1])
    with_zero = [
        known
        for known in local._LOCALS.values()
        if type(known) is local.Local and not any(known.out_nonzeros)
    ]
    assert with_zero


def test_what_is_remembered_is_bounded(monkeypatch):
    monkeypatch.setattr(local, "_LIMIT", 10)
    for size in range(1, 30):
        fxarray.grad(FUNCTIONS["sine"])(fnp.ones(size))
    assert len(local._LOCALS) <= 10
