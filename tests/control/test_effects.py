"""Callbacks in loops and branches: once a step, only where taken, not again for derivatives."""

import numpy as np
import pytest

import fxarray
import fxarray.numpy as fnp
from fxarray import lax
from fxarray.core.errors import ArgumentError


@pytest.fixture
def seen():
    return []


@pytest.fixture
def note(seen):
    def function(x, ordered=False):
        fxarray.debug.callback(lambda x: seen.append(float(x)), x, ordered=ordered)
        return x

    return function


def test_each_step_once(note, seen):
    lax.scan(lambda c, x: (note(c) + x, None), 0.0, np.arange(3.0))
    assert seen == [0.0, 0.0, 1.0]


def test_only_the_branch_taken(note, seen):
    lax.cond(False, note, lambda x: note(-x), 1.0)
    assert seen == [-1.0]


def test_only_in_lanes_that_take_the_branch(note, seen):
    f = fxarray.vmap(lambda x: lax.cond(x > 0, note, lambda x: note(x * 10), x))
    f(np.array([1.0, -2.0, 3.0]))
    assert sorted(seen) == [-20.0, 1.0, 3.0]


def test_only_in_lanes_that_still_loop(note, seen):
    f = fxarray.vmap(lambda x: lax.while_loop(lambda x: x < 3, lambda x: note(x) + 1, x))
    assert f(np.array([1.0, 2.0, 5.0])).tolist() == [3.0, 3.0, 5.0]
    assert sorted(seen) == [1.0, 2.0, 2.0]


def test_an_ordered_callback_where_lanes_stop_at_different_steps_is_refused(note):
    f = fxarray.vmap(
        lambda x: lax.while_loop(lambda x: x < 3, lambda x: note(x, ordered=True) + 1, x)
    )
    with pytest.raises(ArgumentError, match="ordered=False"):
        f(np.array([1.0, 2.0]))


@pytest.mark.parametrize("wrap", [lambda f: f, fxarray.jit], ids=["eager", "jit"])
def test_loops_that_are_recomputed_for_a_derivative_are_silent_then(note, seen, wrap):
    def f(x):
        return lax.while_loop(lambda x: x < 5, lambda x: note(x) * 2, x, max_steps=9)

    assert float(wrap(fxarray.grad(f))(1.0)) == 8.0
    assert seen == [1.0, 2.0, 4.0]
    seen.clear()
    unbounded = lambda x: lax.while_loop(lambda x: x < 5, lambda x: note(x) * 2, x)  # noqa: E731
    assert float(fxarray.linearize(unbounded, 1.0)[1](1.0)) == 8.0
    assert seen == [1.0, 2.0, 4.0]


def test_nested_callbacks_are_silent_too(note, seen):
    def f(x):
        def step(x):
            return lax.cond(x > 1, lambda x: note(x) * 2, lambda x: fnp.sin(note(x)) * 2, x)

        return lax.while_loop(lambda x: x < 5, step, x, max_steps=9)

    fxarray.grad(f)(1.0)
    assert len(seen) == len(set(seen)) > 2


def test_a_loop_whose_result_is_unused_keeps_its_effect(note, seen):
    def f(x):
        lax.fori_loop(0, 2, lambda i, x: note(x) * 2, x)
        return x

    fxarray.jit(f)(1.0)
    assert seen == [1.0, 2.0]
