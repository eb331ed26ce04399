"""Loops over lanes that end on their own are run a few lanes at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fxarray
import fxarray.numpy as xnp
from fxarray import lax
from fxarray.compile.fuse import fuse
from fxarray.compile.graph import KernelStep, WhileStep
from fxarray.compile.simplify import simplify
from fxarray.devices.cpu.native.target import host
from fxarray.devices.cpu.program.backend import routine_of
from fxarray.devices.cpu.program.lane_loops import lane_routine


def collatz(n: Any) -> Any:
    def more(state: Any) -> Any:
        return state[0] != 1

    def step(state: Any) -> Any:
        n, count = state
        return xnp.where(n % 2 == 0, n // 2, 3 * n + 1), count + 1

    return lax.while_loop(more, step, (n, 0))[1]


def collatz_steps(n: int) -> int:
    count = 0
    while n != 1:
        n, count = (n // 2 if n % 2 == 0 else 3 * n + 1), count + 1
    return count


def newton(a: Any) -> Any:
    def more(state: Any) -> Any:
        return abs(state[0] * state[0] - a) > 1e-4 * a

    def step(state: Any) -> Any:
        (x,) = state
        return ((x * x + a) / (2 * x),)

    return lax.while_loop(more, step, (a,))[0]


def loops_of(function: Any, *arguments: Any) -> list[WhileStep]:
    program = fxarray.make_program(function)(*arguments)
    steps = fuse(simplify(program)).steps
    return [step for step in steps if isinstance(step, WhileStep)]


def is_whole(loop: WhileStep) -> bool:
    return lane_routine(loop, lambda step: routine_of(step, host())) is not None


@pytest.mark.parametrize("count", [1, 5, 32, 33, 1000, 20011])
def test_each_lane_takes_its_own_number_of_steps(count: int) -> None:
    numbers = np.arange(1, count + 1, dtype=np.int32)
    run = fxarray.jit(fxarray.vmap(collatz), backend="cpu")
    expected = [collatz_steps(int(n)) for n in numbers]
    np.testing.assert_array_equal(np.asarray(run(xnp.asarray(numbers))), expected)


def test_values_shared_with_the_condition_are_the_same_numbers() -> None:
    values = np.linspace(0.5, 90, 4099, dtype=np.float32)
    run = fxarray.jit(fxarray.vmap(newton), backend="cpu")
    np.testing.assert_allclose(np.asarray(run(xnp.asarray(values))), np.sqrt(values), rtol=1e-4)


def test_lanes_that_never_start_keep_their_values() -> None:
    run = fxarray.jit(fxarray.vmap(collatz), backend="cpu")
    result = np.asarray(run(xnp.ones(100, "int32")))
    np.testing.assert_array_equal(result, np.zeros(100))


def test_loops_of_one_elementwise_kernel_are_taken_by_lanes() -> None:
    (loop,) = loops_of(fxarray.vmap(collatz), xnp.ones(1000, "int32"))
    assert is_whole(loop)


def test_a_loop_whose_step_changes_lanes_that_are_done_is_not() -> None:
    def run(x: Any) -> Any:
        def more(state: Any) -> Any:
            return state[0].any()

        def step(state: Any) -> Any:
            active, x = state
            return active & (x < 5), x + 1

        return lax.while_loop(more, step, (x < 5, x))[1]

    x = xnp.arange(100.0)
    (loop,) = loops_of(run, x)
    assert isinstance(loop.body.steps[0], KernelStep)
    assert not is_whole(loop)
    result = np.asarray(fxarray.jit(run, backend="cpu")(x))
    np.testing.assert_array_equal(result, np.arange(100.0) + 6)


def test_a_loop_whose_lanes_look_at_each_other_is_not() -> None:
    def run(x: Any) -> Any:
        def more(state: Any) -> Any:
            return state[0].any()

        def step(state: Any) -> Any:
            active, x = state
            new = xnp.where(active, xnp.flip(x) + 1, x)
            return active & (new < 50), new

        return lax.while_loop(more, step, (x < 50, x))[1]

    x = xnp.arange(100.0)
    (loop,) = loops_of(run, x)
    assert not is_whole(loop)
