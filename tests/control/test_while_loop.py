"""while_loop: values, vmap, the bound on steps, and reverse mode in bounded memory."""

import tracemalloc

import numpy as np
import pytest

import fxarray
import fxarray.numpy as fnp
from fxarray import lax
from fxarray.core import config
from fxarray.core.array import DeviceArray
from fxarray.core.errors import LoopBoundError, NonDifferentiableError
from fxarray.interpreters.linearize import backward, linearize_flat
from fxarray.primitives.control import scan as scan_module
from fxarray.primitives.control.while_loop import While


def whiles_in(program):
    return [e.op for e in program.equations if isinstance(e.op, While)]


def test_while_loop_equals_python():
    state = lax.while_loop(
        lambda s: s["i"] < 5, lambda s: {"i": s["i"] + 1, "x": s["x"] * 2}, {"i": 0, "x": 1.0}
    )
    assert (int(state["i"]), float(state["x"])) == (5, 32.0)
    assert float(lax.while_loop(lambda x: x < 0, lambda x: x * 2, 1.0)) == 1.0


def test_nothing_may_be_carried():
    assert lax.while_loop(lambda _: False, lambda x: x, ()) == ()


def test_mapped_lanes_stop_each_at_its_own_time():
    f = fxarray.vmap(lambda x: lax.while_loop(lambda x: x < 8, lambda x: x * 2, x))
    assert f(fnp.asarray([1, 3, 9])).tolist() == [8, 12, 9]
    assert fxarray.jit(f)(fnp.asarray([1, 3, 9])).tolist() == [8, 12, 9]
    assert f(fnp.zeros(0, "int32")).shape == (0,)


def test_lanes_that_are_done_are_not_stepped_any_further():
    def body(x):
        # Endless from 8 on, where a lane has stopped.
        return lax.while_loop(lambda y: y == 8, lambda y: y, x) * 2

    f = fxarray.vmap(lambda x: lax.while_loop(lambda x: x < 8, body, x))
    assert f(fnp.asarray([1, 4])).tolist() == [8, 8]


def test_a_predicate_that_vmap_does_not_map_stays_one_value():
    def f(n, x):
        return lax.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, s[1] * 2), (0, x))[1]

    program = fxarray.make_program(fxarray.vmap(f, (None, 0)))(3, np.arange(2.0))
    (loop,) = whiles_in(program)
    assert loop.lanes == ()
    assert [t.shape for t in loop.carry_types] == [(), (2,)]
    program = fxarray.make_program(fxarray.vmap(f, (0, None)))(np.arange(2), 1.0)
    (loop,) = whiles_in(program)
    assert loop.lanes == (2,)
    assert [t.shape for t in loop.carry_types] == [(), ()]


def test_only_carries_that_depend_on_mapped_values_are_mapped():
    def f(x):
        def step(s):
            i, _, b, c = s
            return i + 1, b, c, c * x

        return lax.while_loop(lambda s: s[0] < 3, step, (0, 1.0, 2.0, 3.0))

    program = fxarray.make_program(fxarray.vmap(f, out_axes=(None, 0, 0, 0)))(np.arange(2.0))
    (loop,) = whiles_in(program)
    assert [t.shape for t in loop.carry_types] == [(), (2,), (2,), (2,)]


def test_dead_carries_are_dropped():
    from fxarray.interpreters.dce import eliminate_dead_code

    def f(x):
        def step(s):
            i, x, dead = s
            return i + 1, x * 2, fnp.sin(dead)

        return lax.while_loop(lambda s: s[0] < 3, step, (0, x, x))[1]

    program, _ = eliminate_dead_code(fxarray.make_program(f)(1.0))
    (loop,) = whiles_in(program)
    assert len(loop.carry_types) == 2
    assert "sin" not in str(loop.body_program)


# --- the bound ----------------------------------------------------------------------------------


def test_the_loop_stops_at_max_steps():
    def f(x, n):
        return lax.while_loop(lambda x: x < 100, lambda x: x * 2, x, max_steps=n)

    assert int(f(1, 3)) == 8
    assert int(f(1, 0)) == 1
    assert int(f(1, 50)) == 128
    assert fxarray.vmap(lambda x: f(x, 3))(fnp.asarray([1, 60, 200])).tolist() == [8, 120, 200]
    assert int(fxarray.jit(lambda x: f(x, 3))(1)) == 8


def test_reaching_the_bound_is_an_error_under_debug_only():
    def f(x, n):
        return lax.while_loop(lambda x: x < 100, lambda x: x * 2, x, max_steps=n)

    assert int(f(1, 7)) == 128
    with config.using(debug=1):
        assert int(f(1, 7)) == 128
        with pytest.raises(LoopBoundError, match="max_steps=3"):
            f(1, 3)
        with pytest.raises(LoopBoundError, match="max_steps=3"):
            fxarray.vmap(lambda x: f(x, 3))(fnp.asarray([1, 200]))


def test_reverse_mode_without_a_bound_names_the_remedy():
    def f(x):
        return lax.while_loop(lambda x: x < 9, lambda x: x * x, x)

    with pytest.raises(NonDifferentiableError, match="max_steps"):
        fxarray.grad(f)(2.0)
    with pytest.raises(NonDifferentiableError, match="max_steps"):
        fxarray.grad(fxarray.jit(f))(2.0)
    assert float(fxarray.jvp(f, (2.0,), (1.0,))[1]) == 4 * 2**3
    assert float(fxarray.jacfwd(f)(2.0)) == 4 * 2**3


# --- reverse mode -------------------------------------------------------------------------------


def oscillator(max_steps, steps):
    """A loop of `steps` steps, bounded by `max_steps`, that carries an array."""

    def f(x, w):
        def step(state):
            i, x = state
            return i + 1, x + fnp.sin(x) * w

        _, x = lax.while_loop(lambda state: state[0] < steps, step, (0, x), max_steps)
        return x.sum()

    return f


@pytest.mark.parametrize("max_steps", [1, 2, 3, 4, 5, 9, 10, 37])
def test_gradient_for_every_number_of_steps(max_steps):
    x, w = np.linspace(0.1, 1, 3), np.array(0.3)

    def by_hand(x, w, steps):
        powers, slope_w = np.ones(3), np.zeros(3)
        for _ in range(min(steps, max_steps)):
            slope_w = slope_w * (1 + w * np.cos(x)) + np.sin(x)
            powers = powers * (1 + w * np.cos(x))
            x = x + np.sin(x) * w
        return powers, slope_w.sum()

    for steps in range(max_steps + 2):
        of_x, of_w = fxarray.grad(oscillator(max_steps, steps), (0, 1))(x, w)
        expected = by_hand(x, w, steps)
        np.testing.assert_allclose(of_x, expected[0], rtol=1e-12)
        np.testing.assert_allclose(of_w, expected[1], rtol=1e-12)


SIZE = 1000
BOUNDS = (16, 256, 4096)


def reverse_memory(n):
    """Bytes kept between the passes, and the greatest number of carries alive in the second."""
    f = oscillator(n, n)
    x, w = fnp.ones(SIZE, "float64"), fnp.asarray(0.1, "float64")
    _, record = linearize_flat(lambda *a: [f(*a)], [x, w], (True, True))
    kept = {
        id(operand): operand.nbytes
        for equation in record.equations
        for operand in equation.operands
        if isinstance(operand, DeviceArray)
    }
    cotangent = fnp.ones((), "float64")
    backward(record, [cotangent])  # traces
    tracemalloc.start()
    backward(record, [cotangent])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return sum(kept.values()), peak / (8 * SIZE)


def test_residual_bytes_do_not_grow_with_the_number_of_steps():
    kept, peaks = zip(*map(reverse_memory, BOUNDS), strict=True)
    # Kept: the initial carry alone. At work: the carries at the starts of sqrt(n) segments, and
    # those within one segment.
    assert len(set(kept)) == 1
    assert kept[0] < 2 * 8 * SIZE
    for n, peak in zip(BOUNDS, peaks, strict=True):
        assert peak < 2 * (np.sqrt(n) + 1) + 12


@pytest.fixture
def body_runs(monkeypatch):
    """How often bodies of scans ran."""
    runs = []
    original = scan_module.numpy_function

    def counting(program, rule="eager"):
        run = original(program, rule)

        def counted(*arrays):
            runs.append(None)
            return run(*arrays)

        return counted

    monkeypatch.setattr(scan_module, "numpy_function", counting)
    return runs


@pytest.mark.parametrize("max_steps", BOUNDS)
@pytest.mark.parametrize("part", [1, 2, 16])
def test_reverse_work_grows_like_the_steps_taken(max_steps, part, body_runs):
    steps = max_steps // part
    fxarray.grad(oscillator(max_steps, steps))(fnp.ones(2), 0.1)
    # Each step is computed three times (to the segment's start, within it, and backwards), and
    # each segment costs two more.
    segments = steps // np.sqrt(max_steps) + 1
    assert len(body_runs) <= 3 * steps + 2 * segments


def test_second_derivatives_through_a_bounded_loop():
    f = oscillator(9, 7)
    x, w, step = np.linspace(0.1, 1, 3), np.array(0.3), 1e-5
    slope = fxarray.grad(f, 1)
    above, below = slope(x, np.array(w + step)), slope(x, np.array(w - step))
    numeric = (float(above) - float(below)) / (2 * step)
    twice = fxarray.grad(fxarray.grad(f, 1), 1)
    np.testing.assert_allclose(twice(x, w), numeric, rtol=1e-7)
    np.testing.assert_allclose(fxarray.jit(twice)(x, w), numeric, rtol=1e-7)
    np.testing.assert_allclose(fxarray.jacfwd(fxarray.grad(f, 1), 1)(x, w), numeric, rtol=1e-7)


def test_lanes_that_are_done_give_no_nan_in_derivatives():
    def f(x):
        # The step has no derivative at 0, where the second lane stops.
        step = lambda x: x - fnp.sqrt(x)  # noqa: E731
        return lax.while_loop(lambda x: x > 0, step, x, max_steps=8)

    x = np.array([4.0, 0.0, 30.0])
    gradient = fxarray.grad(lambda x: fxarray.vmap(f)(x).sum())(x)
    assert np.isfinite(np.asarray(gradient)).all()
    each = [float(fxarray.grad(f)(value)) for value in map(np.array, x)]
    np.testing.assert_allclose(gradient, each)


def test_max_steps_must_be_a_natural_number():
    with pytest.raises(ValueError, match="max_steps"):
        lax.while_loop(lambda x: x < 1, lambda x: x, 0.0, max_steps=-1)


def test_reference_and_eager_agree():
    rng = np.random.default_rng(0)
    for sample in While.samples(rng):
        if sample.error is None:
            operands = [np.asarray(x) for x in sample.operands]
            for a, b in zip(
                sample.op.eager(*operands), sample.op.reference(*operands), strict=True
            ):
                np.testing.assert_allclose(a, b, rtol=1e-6)
