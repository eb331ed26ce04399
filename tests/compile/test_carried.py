"""What steps of a while loop share is one of its carries."""

from __future__ import annotations

from typing import Any

import fxarray
import fxarray.numpy as xnp
from fxarray import lax
from fxarray.compile.simplify import simplify
from fxarray.primitives.control.while_loop import While


def loop_of(function: Any, *arguments: Any) -> While:
    program = simplify(fxarray.make_program(function)(*arguments))
    (loop,) = [e.op for e in program.equations if isinstance(e.op, While)]
    return loop


def lockstep(tested: Any, stepped: Any) -> Any:
    """A loop whose step ends with the condition of the next one."""

    def run(x: Any) -> Any:
        def step(state: Any) -> Any:
            active, x = state
            new = xnp.where(active, stepped(x), x)
            return active & (tested(new) < 4), new

        return lax.while_loop(lambda state: state[0].any(), step, (tested(x) < 4, x))[1]

    return run


def products(loop: While) -> int:
    return sum(equation.op.name == "mul" for equation in loop.body_program.equations)


def test_a_square_that_step_and_condition_need_is_carried() -> None:
    loop = loop_of(lockstep(lambda x: x * x, lambda x: x * x + 1), xnp.ones(8))
    assert len(loop.carry_types) == 3
    assert products(loop) == 1


def test_different_values_are_not_carried() -> None:
    loop = loop_of(lockstep(lambda x: x * x, lambda x: x * 2 + 1), xnp.ones(8))
    assert len(loop.carry_types) == 2
    assert products(loop) == 2


def test_a_loop_with_a_carried_square_gives_the_same_values() -> None:
    run = lockstep(lambda x: x * x, lambda x: x * x + x * 0.5)
    starts = [0.75, 1.25, 2.0, 3.0]
    result = fxarray.jit(run, backend="cpu")(xnp.asarray(starts))
    for got, value in zip(result, starts, strict=True):
        while value * value < 4:
            value = value * value + value * 0.5
        assert abs(float(got) - value) <= 1e-5 * value
