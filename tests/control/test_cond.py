"""cond and switch: values, NaN and endless loops in branches not taken, residuals."""

import numpy as np
import pytest

import fxarray
import fxarray.numpy as fnp
from fxarray import lax
from fxarray.primitives.control.branches import linearize_branches
from fxarray.primitives.control.cond import Cond


def conds_in(program):
    return [e.op for e in program.equations if isinstance(e.op, Cond)]


@pytest.mark.parametrize(
    "pred", [True, np.bool_(True), 1, 2.5, -1, np.float32(0.5), np.array(True), 1j]
)
def test_any_number_but_zero_is_true(pred):
    assert float(lax.cond(pred, lambda x: x, lambda x: -x, 2.0)) == 2.0


@pytest.mark.parametrize("pred", [False, 0, 0.0, -0.0, np.int8(0), 0j])
def test_zero_is_false(pred):
    assert float(lax.cond(pred, lambda x: x, lambda x: -x, 2.0)) == -2.0


def test_nan_is_true():
    assert float(lax.cond(np.nan, lambda: 1.0, lambda: 2.0)) == 1.0


@pytest.mark.parametrize(
    ("index", "expected"), [(-5, 10.0), (0, 10.0), (1, 20.0), (2, 30.0), (99, 30.0)]
)
def test_switch_clamps_the_index(index, expected):
    branches = [lambda x: x, lambda x: 2 * x, lambda x: 3 * x]
    for given in (index, np.int8(index), np.int16(index)):
        assert float(lax.switch(given, branches, 10.0)) == expected
        assert float(fxarray.jit(lambda i: lax.switch(i, branches, 10.0))(given)) == expected
    indices = fnp.asarray([index, 0, index])
    result = fxarray.vmap(lambda i: lax.switch(i, branches, 10.0))(indices)
    assert result.tolist() == [expected, 10.0, expected]


def test_switch_clamps_indices_that_int32_cannot_hold():
    wide = fnp.asarray(2**40, "int64")
    assert float(lax.switch(wide, [lambda: 1.0, lambda: 2.0])) == 2.0
    assert float(lax.switch(-wide, [lambda: 1.0, lambda: 2.0])) == 1.0


def test_switch_with_one_branch_calls_it():
    assert float(lax.switch(5, [lambda x: x + 1], 1.0)) == 2.0


def test_only_the_branch_taken_runs():
    def endless(x):
        return lax.while_loop(lambda x: x == x, lambda x: x, x)

    assert float(lax.cond(True, lambda x: x, endless, 1.0)) == 1.0
    assert float(fxarray.jit(lambda p: lax.cond(p, endless, lambda x: x, 1.0))(False)) == 1.0


def test_a_loop_that_would_not_end_in_lanes_that_do_not_take_it():
    def f(x):
        return lax.cond(
            x > 0, lambda x: lax.while_loop(lambda x: x != 8, lambda x: x * 2, x), lambda x: x, x
        )

    # From -1 the loop would never reach 8.
    assert fxarray.vmap(f)(fnp.asarray([1.0, -1.0, 4.0])).tolist() == [8.0, -1.0, 8.0]
    assert fxarray.vmap(f)(fnp.asarray([-1.0, -3.0])).tolist() == [-1.0, -3.0]


def test_branches_not_taken_give_no_nan_in_derivatives():
    def f(x):
        return lax.cond(x > 0, fnp.sqrt, lambda x: x * 0.0, x)

    x = np.array([4.0, 0.0, -1.0])
    expected = [0.25, 0.0, 0.0]
    assert fxarray.vmap(fxarray.grad(f))(x).tolist() == expected
    assert fxarray.grad(lambda x: fxarray.vmap(f)(x).sum())(x).tolist() == expected
    assert fxarray.jit(fxarray.vmap(fxarray.grad(f)))(x).tolist() == expected
    forward = fxarray.vmap(lambda x: fxarray.jvp(f, (x,), (np.array(1.0),))[1])
    assert forward(x).tolist() == expected


def test_branches_not_taken_give_no_nan_in_derivatives_of_shared_operands():
    def f(x, w):
        return lax.cond(x > 0, lambda w: fnp.log(x) * fnp.sqrt(w - 1), lambda w: w * x, w)

    w = np.array(1.0)  # where sqrt(w - 1) has no derivative
    gradient = fxarray.grad(lambda w: fxarray.vmap(f, (0, None))(np.array([-1.0, -2.0]), w).sum())
    assert float(gradient(w)) == -3.0


def test_the_predicate_stays_one_value_where_vmap_does_not_map_it():
    def f(p, x):
        return lax.cond(p, lambda x: x + 1, lambda x: x * 2, x)

    program = fxarray.make_program(fxarray.vmap(f, (None, 0)))(True, np.arange(3.0))
    (cond,) = conds_in(program)
    assert cond.lanes == ()
    program = fxarray.make_program(fxarray.vmap(f, (0, None)))(np.array([True, False]), 1.0)
    (cond,) = conds_in(program)
    assert cond.lanes == (2,)
    assert cond.branches[0].input_types[0].shape == ()


def test_residuals_of_branches_share_places():
    branches = (
        fxarray.make_program(lambda x: fnp.sin(x) * fnp.exp(x))(np.ones(3)),
        fxarray.make_program(lambda x: fnp.tanh(x) * fnp.cos(x))(np.ones(3)),
        fxarray.make_program(lambda x: x + 1.0)(np.ones(3)),
    )
    parts = linearize_branches(branches, (True,))
    counts = [len(program.outputs) - 1 for program in parts.known]
    assert len(set(counts)) == 1
    singles = [len(linearize_branches((b,), (True,)).known[0].outputs) - 1 for b in branches]
    assert counts[0] == max(singles)


def test_branches_may_close_over_different_tracers():
    def f(a, b, p):
        return lax.cond(p, lambda x: x * a, lambda x: x * b * b, 2.0)

    assert [float(g) for g in fxarray.grad(f, (0, 1))(3.0, 5.0, True)] == [2.0, 0.0]
    assert [float(g) for g in fxarray.grad(f, (0, 1))(3.0, 5.0, False)] == [0.0, 20.0]
    assert float(fxarray.jit(f)(3.0, 5.0, False)) == 50.0


def test_branches_may_differ_in_weakness_only():
    result = lax.cond(False, lambda: 1.0, lambda: fnp.asarray(2.0, "float32"))
    assert not result.weak_type
    assert lax.cond(True, lambda: 1.0, lambda: 2.0).weak_type


def test_operand_and_linear_are_accepted():
    assert float(lax.cond(True, lambda x: x, lambda x: -x, operand=3.0, linear=None)) == 3.0
    assert float(lax.switch(1, [lambda x: x, lambda x: -x], operand=3.0)) == -3.0


def test_static_operands_pass_through():
    result = lax.cond(True, lambda f, x: f(x), lambda f, x: x, fnp.sin, 1.0)
    np.testing.assert_allclose(result, np.sin(1.0), rtol=1e-6)


def test_outputs_without_derivative_stay_zero():
    def f(x):
        return lax.cond(x > 0, lambda x: (x * 2, 1), lambda x: (1.0, 2), x)[0]

    assert float(fxarray.grad(f)(1.0)) == 2.0
    assert float(fxarray.grad(f)(-1.0)) == 0.0


def test_unused_outputs_of_branches_are_dropped():
    from fxarray.interpreters.dce import eliminate_dead_code

    def f(p, x, y):
        return lax.cond(p, lambda x, y: (x, fnp.sin(y)), lambda x, y: (-x, y), x, y)[0]

    program, used = eliminate_dead_code(fxarray.make_program(f)(True, 1.0, 2.0), keep_inputs=False)
    (cond,) = conds_in(program)
    assert used == (True, True, False)
    assert [len(branch.outputs) for branch in cond.branches] == [1, 1]
    assert not any(branch.equations and "sin" in str(branch) for branch in cond.branches)


def test_reference_and_eager_agree():
    rng = np.random.default_rng(0)
    for sample in Cond.samples(rng):
        if sample.error is None:
            operands = [np.asarray(x) for x in sample.operands]
            for a, b in zip(
                sample.op.eager(*operands), sample.op.reference(*operands), strict=True
            ):
                np.testing.assert_array_equal(a, b)


def test_no_lanes_at_all():
    f = fxarray.vmap(lambda x: lax.cond(x > 0, lambda x: x, lambda x: -x, x))
    assert f(np.zeros(0)).shape == (0,)
