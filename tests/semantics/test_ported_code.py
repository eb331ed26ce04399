"""What code written for JAX relies on without saying so."""

from __future__ import annotations

import pytest

import fxarray as fx
import fxarray.numpy as fnp


@pytest.mark.parametrize("transform", ["grad", "vjp"])
@pytest.mark.parametrize("wrap", [lambda f: f, fx.jit], ids=["eager", "jit"])
def test_the_gradient_of_a_python_number_stays_weak_beside_strong_arrays(transform, wrap):
    def loss(x):
        return fnp.sum(wrap(lambda x: x * fnp.ones(3))(x))

    if transform == "grad":
        gradient = fx.grad(loss)(1.0)
    else:
        (gradient,) = fx.vjp(loss, 1.0)[1](1.0)
    assert gradient.weak_type
    assert (fnp.ones(2, fnp.bfloat16) * (1.0 - 0.1 * gradient)).dtype == fnp.bfloat16


def test_a_step_on_python_numbers_is_traced_once():
    traces = []

    @fx.jit
    def step(p):
        traces.append(p)
        gradient = fx.grad(lambda p: fnp.sum((p * fnp.ones(3) - 2) ** 2))(p)
        return p - 0.1 * gradient

    step(step(step(1.0)))
    assert len(traces) == 1


def test_the_gradient_of_a_strong_array_stays_strong():
    assert not fx.grad(lambda x: x * 2.0)(fnp.float32(1)).weak_type


@pytest.mark.parametrize(
    ("value", "expected", "dtype"),
    [
        (fnp.float32(2.5), 2, "int32"),
        (fnp.float64(1e12), 10**12, "int64"),
        (fnp.int64(2**40), 2**40, "int64"),
        (fnp.uint8(200), 200, "uint8"),
        (fnp.array(True), 1, "int32"),
    ],
)
def test_round_without_digits_gives_an_integer_as_for_python_numbers(value, expected, dtype):
    result = round(value)
    assert result.dtype == dtype
    assert int(result) == expected


def test_round_with_digits_keeps_the_dtype():
    assert round(fnp.float32(2.46), 1).dtype == fnp.float32


def test_a_slice_step_of_zero_is_a_value_error():
    with pytest.raises(ValueError, match="must not be 0"):
        fnp.ones(3)[::0]


def test_leaked_and_concretized_tracers_raise_the_errors_that_jax_code_catches():
    leaked = []
    fx.jit(lambda x: leaked.append(x * 2))(fnp.ones(3))
    with pytest.raises(TypeError, match="leaked"):
        leaked[0] + 1
    for use in (bool, int, float, lambda x: fnp.unique(x), lambda x: list(range(x))):
        with pytest.raises(fx.errors.ConcretizationTypeError):
            fx.jit(use)(1)


def test_lax_broadcast_shapes_extends_ranks_and_refuses_unequal_sizes():
    assert fx.lax.broadcast_shapes((3, 1), (4,), ()) == (3, 4)
    assert fx.lax.broadcast_shapes() == ()
    with pytest.raises(ValueError, match="do not broadcast"):
        fx.lax.broadcast_shapes((2,), (3,))


def test_settings_are_context_managers_that_end_with_their_block():
    narrow, wide = fnp.ones(2), fnp.ones((2, 2))
    with fx.numpy_dtype_promotion("strict"), pytest.raises(TypeError):
        narrow + fnp.ones(2, fnp.int32)
    with fx.numpy_rank_promotion("raise"), pytest.raises(ValueError, match="rank"):
        narrow + wide
    with fx.debug_nans(True), pytest.raises(FloatingPointError):
        fx.jit(fnp.log)(-narrow)
    with fx.debug_infs(True), pytest.raises(FloatingPointError):
        fnp.exp(100 * narrow)
    with fx.debug_nans(True), fx.debug_nans(False):
        assert fnp.isnan(fnp.log(-narrow)).all()
    assert (narrow + wide + fnp.ones(2, fnp.int32)).shape == (2, 2)
    with fx.default_matmul_precision("highest"):
        assert (wide @ wide).tolist() == [[2.0, 2.0], [2.0, 2.0]]


@pytest.mark.parametrize("name", ["numpy_dtype_promotion", "numpy_rank_promotion"])
def test_a_setting_given_an_unknown_choice_says_which_there_are(name):
    with pytest.raises(ValueError, match=f"setting {name} is one of"):
        getattr(fx, name)("sometimes").__enter__()
