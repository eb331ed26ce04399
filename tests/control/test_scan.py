"""scan, map and fori_loop: values, structures, residuals, dead code."""

import numpy as np
import pytest

import fxarray
import fxarray.numpy as fnp
from fxarray import lax
from fxarray.core.primitive import Zero
from fxarray.interpreters.dce import eliminate_dead_code
from fxarray.interpreters.linearize import linearize_flat
from fxarray.primitives.control.scan import Scan
from fxarray.primitives.control.scan_linearize import linearize_body


def running_sum(c, x):
    return c + x, c


def scans_in(program):
    return [e.op for e in program.equations if isinstance(e.op, Scan)]


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("length", [0, 1, 2, 7])
def test_scan_equals_a_python_loop(length, reverse):
    xs = np.arange(2.0 * length).reshape(length, 2)
    carry, rows = np.ones(2), np.zeros((length, 2))
    for i in reversed(range(length)) if reverse else range(length):
        rows[i], carry = carry, carry + xs[i]
    for function in (lax.scan, fxarray.jit(lax.scan, static_argnums=(0, 3, 4))):
        total, ys = function(running_sum, fnp.ones(2, "float64"), xs, length, reverse)
        np.testing.assert_array_equal(total, carry)
        np.testing.assert_array_equal(ys, rows)


def test_scan_keeps_structures_and_none():
    init = {"a": 1.0, "b": (2, None)}
    xs = [np.arange(3.0), None, {"k": np.ones((3, 2))}]

    def step(c, x):
        assert x[1] is None
        assert x[2]["k"].shape == (2,)
        return {"a": c["a"] + x[0], "b": (c["b"][0] + 1, None)}, (None, {"y": c["b"][0]})

    carry, ys = lax.scan(step, init, xs)
    assert float(carry["a"]) == 4.0
    assert int(carry["b"][0]) == 5
    assert carry["b"][1] is None
    assert ys[0] is None
    assert ys[1]["y"].tolist() == [2, 3, 4]


def test_scan_passes_static_leaves_through():
    carry, ys = lax.scan(
        lambda c, x: ((c[0], c[0](c[1])), x["name"]),
        (fnp.sin, 1.0),
        {"x": np.zeros(2), "name": "label"},
    )
    assert carry[0] is fnp.sin
    assert ys == "label"
    np.testing.assert_allclose(carry[1], np.sin(np.sin(1.0)), rtol=1e-6)


def test_scan_without_xs_takes_length():
    carry, ys = lax.scan(lambda c, _: (c * 2, c), 1, length=4)
    assert int(carry) == 16
    assert ys.tolist() == [1, 2, 4, 8]


@pytest.mark.parametrize("unroll", [1, 2, 5, 100, True, False])
def test_unroll_need_not_divide_the_length(unroll):
    carry, ys = lax.scan(running_sum, 0.0, np.arange(7.0), unroll=unroll)
    assert float(carry) == 21.0
    assert ys.shape == (7,)


def test_weak_initial_carry_takes_the_type_that_the_body_returns():
    carry, _ = lax.scan(lambda c, _: (c * np.float16(2), None), 1.0, length=2)
    assert carry.dtype == np.dtype("float16")
    assert not carry.weak_type
    carry, _ = lax.scan(lambda c, _: (c * 0.5, None), 1, length=3)
    assert carry.dtype == np.dtype("float32")
    assert float(carry) == 0.125
    carries, _ = lax.scan(lambda c, _: ((c[1], c[0], c[0] + c[1]), None), (1, 2.0, 0), length=3)
    assert {c.dtype.name for c in carries} == {"float32"}


def test_narrow_and_complex_carries():
    for dtype in ("bfloat16", "float16", "complex64", "int8", "bool"):
        init = fnp.asarray(1, dtype)
        carry, ys = lax.scan(lambda c, x: (c * x, c), init, fnp.ones(3, dtype))
        assert carry.dtype == init.dtype
        assert ys.dtype == init.dtype


def test_random_keys_are_carried():
    from fxarray import random

    def step(key, _):
        key, draw = random.split(key)
        return key, random.uniform(draw)

    key, draws = lax.scan(step, random.key(0), length=3)
    expected_key = random.key(0)
    expected = []
    for _ in range(3):
        expected_key, draw = random.split(expected_key)
        expected.append(float(random.uniform(draw)))
    assert draws.tolist() == expected
    assert random.key_data(key).tolist() == random.key_data(expected_key).tolist()


# --- derivatives --------------------------------------------------------------------------------


def test_integer_carries_have_no_tangent():
    def f(x):
        (_, y), _ = lax.scan(lambda c, _: ((c[0] + 1, c[1] * x * c[0]), None), (1, x), length=3)
        return y

    program = fxarray.make_program(lambda x, t: fxarray.jvp(f, (x,), (t,)))(2.0, 1.0)
    (scan,) = scans_in(program)
    assert scan.carry_count == 3
    np.testing.assert_allclose(fxarray.grad(f)(2.0), 4 * 8 * 6, rtol=1e-6)


def loop_body(function, const_types, carry_types, x_types):
    from fxarray.interpreters.staging import stage_closed

    return stage_closed(function, [*const_types, *carry_types, *x_types], "body")


def names(program):
    return [equation.op.name for equation in program.equations]


def test_residuals_that_depend_on_consts_alone_are_computed_once_outside():
    float32 = fnp.zeros(3, "float32").type
    body = loop_body(lambda w, c, x: [fnp.sin(c) * fnp.exp(w) + x], [float32], [float32], [float32])
    parts = linearize_body(body, 1, 1, (True, True, False))
    assert names(parts.invariant) == ["exp"]
    assert "exp" not in names(parts.known)
    stacked = parts.known.outputs[1:]
    # cos(c), for the carry's tangent, and sin(c), for that of w.
    assert len(stacked) == 2


def test_residuals_that_are_consts_xs_or_ys_are_not_stacked_again():
    float32 = fnp.zeros(3, "float32").type
    body = loop_body(lambda w, c, x: [c * w + x * x, c * x], [float32], [float32], [float32])
    parts = linearize_body(body, 1, 1, (False, True, True))
    assert parts.consts == (0,)
    assert parts.xs == (0,)
    stacked = parts.known.outputs[2:]
    assert len(stacked) == 1  # the carry, for the tangent of x in the y
    body = loop_body(lambda c, x: [fnp.exp(c) * x, fnp.exp(c)], [], [float32], [float32])
    parts = linearize_body(body, 0, 1, (True, False))
    assert parts.ys == (0,)
    assert len(parts.known.outputs[2:]) <= 1


def test_residuals_of_an_unused_derivative_are_not_kept():
    def f(x):
        return lax.scan(lambda c, x: (c + x, fnp.sin(c)), 0.0, x)[0]

    _, record = linearize_flat(lambda x: [f(x)], [fnp.ones(50)], [True])
    (equation,) = record.equations
    sizes = [x.size for x in equation.operands if not isinstance(x, Zero) and hasattr(x, "_np")]
    # The ys have no cotangent here, but the loop does not know that yet: one residual is stacked.
    assert sizes.count(50) <= 1


def test_scan_is_differentiable_in_both_modes_and_twice():
    def f(w, x):
        return lax.scan(lambda c, x: (fnp.sin(c * w) + x, c), w, x)[0]

    w, x, step = np.array(0.7), np.linspace(0, 1, 6), 1e-6
    one = np.array(1.0)
    for function in (f, fxarray.grad(f)):
        above, below = function(np.array(w + step), x), function(np.array(w - step), x)
        numeric = (float(above) - float(below)) / (2 * step)
        np.testing.assert_allclose(fxarray.grad(function)(w, x), numeric, rtol=1e-7)
        tangent = fxarray.jvp(lambda w, f=function: f(w, x), (w,), (one,))[1]
        np.testing.assert_allclose(tangent, numeric, rtol=1e-7)


def test_gradients_reach_captured_values():
    def f(w):
        return lax.scan(lambda c, x: (c * w + x, None), 1.0, np.arange(3.0))[0]

    np.testing.assert_allclose(fxarray.grad(f)(2.0), 3 * 4 + 1, rtol=1e-6)
    np.testing.assert_allclose(fxarray.jit(fxarray.grad(f))(2.0), 3 * 4 + 1, rtol=1e-6)


def test_linear_transpose_of_a_loop_with_a_counter():
    def f(x):
        def step(c, _):
            i, x = c
            return (i + 1, x * i), x

        (_, x), ys = lax.scan(step, (1, x), length=3)
        return x + ys.sum()

    (transposed,) = fxarray.linear_transpose(f, fnp.ones(()))(1.0)
    np.testing.assert_allclose(transposed, 6 + 1 + 1 + 2)


def test_unused_outputs_and_dead_carries_are_dropped():
    def f(x):
        def step(c, x):
            used, dead, only_for_used = c
            return (used + only_for_used, fnp.sin(dead), only_for_used * x), (used, fnp.exp(dead))

        (used, _, _), (ys, _) = lax.scan(step, (x[0], x[1], x[2]), x)
        return used + ys.sum()

    program, _ = eliminate_dead_code(fxarray.make_program(f)(np.arange(4.0)))
    (scan,) = scans_in(program)
    assert scan.carry_count == 2
    assert len(scan.body.outputs) == 3
    assert not {"sin", "exp"} & set(names(scan.body))
    expected = fxarray.jit(f)(np.arange(4.0))
    np.testing.assert_allclose(f(np.arange(4.0)), expected)


# --- tracing ------------------------------------------------------------------------------------


def test_a_function_is_traced_once_in_a_python_loop():
    traces = []

    def step(c, x):
        traces.append(None)
        return c * x, c

    for _ in range(3):
        lax.scan(step, fnp.ones(()), fnp.arange(4.0))
    assert len(traces) == 1
    lax.scan(step, fnp.ones(()), fnp.arange(5.0))
    assert len(traces) == 1  # the length is not part of the body's type
    lax.scan(step, fnp.ones(3), fnp.arange(5.0))
    assert len(traces) == 2


def test_a_rebound_variable_is_seen():
    w = 2.0

    def step(c, _):
        return c * w, None

    assert float(lax.scan(step, 1.0, length=1)[0]) == 2.0
    w = 3.0
    assert float(lax.scan(step, 1.0, length=1)[0]) == 3.0


def test_a_trace_that_captured_a_tracer_is_not_reused():
    def make(x):
        def step(c, _):
            return c * x, None

        return step

    def f(x):
        return lax.scan(make(x), 1.0, length=2)[0]

    assert float(fxarray.jit(f)(2.0)) == 4.0
    assert float(fxarray.grad(f)(3.0)) == 6.0
    assert fxarray.vmap(f)(fnp.arange(3.0)).tolist() == [0.0, 1.0, 4.0]


def test_loops_run_in_python_when_jit_is_disabled():
    seen = []

    def step(c, x):
        seen.append(float(x))
        return c + x, c

    with fxarray.disable_jit():
        carry, ys = lax.scan(step, 0.0, np.arange(3.0), reverse=True)
        assert seen == [2.0, 1.0, 0.0]
        assert (float(carry), ys.tolist()) == (3.0, [3.0, 2.0, 0.0])
        assert float(lax.fori_loop(0, 4, lambda i, x: x + float(i), 0.0)) == 6.0
        assert float(lax.while_loop(lambda x: float(x) < 9, lambda x: x * 2, 1.0)) == 16.0
        assert float(lax.while_loop(lambda x: x < 9, lambda x: x * 2, 1.0, max_steps=2)) == 4.0
        assert float(lax.cond(True, lambda x: x + float(x), lambda x: x, 2.0)) == 4.0
        assert float(lax.switch(9, [lambda x: x, lambda x: -x], 2.0)) == -2.0
        assert lax.map(lambda x: x * 2, np.arange(3.0)).tolist() == [0.0, 2.0, 4.0]


# --- map and fori_loop --------------------------------------------------------------------------


@pytest.mark.parametrize("batch_size", [None, 1, 2, 3, 7, 10])
def test_map_in_batches_of_any_size(batch_size):
    xs = {"a": np.arange(7.0), "b": np.arange(14.0).reshape(7, 2)}
    result = lax.map(lambda x: (x["a"] + x["b"].sum(), None), xs, batch_size=batch_size)
    np.testing.assert_array_equal(result[0], xs["a"] + xs["b"].sum(1))
    assert result[1] is None


def test_map_of_nothing():
    assert lax.map(lambda x: x * 2.0, np.zeros((0, 3)), batch_size=2).shape == (0, 3)
    assert lax.map(lambda x: x * 2.0, np.zeros((0, 3))).shape == (0, 3)


@pytest.mark.parametrize(("lower", "upper"), [(0, 5), (2, 4), (5, 3), (-3, 2), (0, 0)])
def test_fori_loop_with_known_and_unknown_bounds(lower, upper):
    def f(lower, upper):
        return lax.fori_loop(lower, upper, lambda i, x: x * 2 + i, 1)

    expected = 1
    for i in range(lower, upper):
        expected = expected * 2 + i
    assert int(f(lower, upper)) == expected
    assert int(fxarray.jit(f)(lower, upper)) == expected
    assert int(f(np.int8(lower), upper)) == expected


def test_fori_loop_with_known_bounds_is_a_scan_and_reverses():
    def f(x):
        return lax.fori_loop(1, 4, lambda i, x: fnp.sin(x) * i, x)

    assert scans_in(fxarray.make_program(f)(1.0))
    step = 1e-6
    numeric = (float(f(np.array(1 + step))) - float(f(np.array(1 - step)))) / (2 * step)
    np.testing.assert_allclose(fxarray.grad(f)(np.array(1.0)), numeric, rtol=1e-6)


def test_fori_loop_s_bounds_may_be_mapped():
    def f(upper, x):
        return lax.fori_loop(0, upper, lambda i, x: x + i, x)

    result = fxarray.vmap(f, (0, None))(fnp.asarray([0, 3, 5]), 1)
    assert result.tolist() == [1, 4, 11]


def test_reference_and_eager_agree_on_a_bounded_scan_of_any_count():
    rng = np.random.default_rng(0)
    for sample in Scan.samples(rng):
        if sample.error is None:
            operands = [np.asarray(x) for x in sample.operands]
            for a, b in zip(
                sample.op.eager(*operands), sample.op.reference(*operands), strict=True
            ):
                np.testing.assert_allclose(a, b, rtol=1e-6)
