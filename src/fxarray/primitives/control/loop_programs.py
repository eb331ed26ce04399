"""Transformed bodies of loops, `(consts, carry, xs) -> (carry, ys)`; while loops have no xs or ys.

What a transform adds to a carry (a tangent, a mapped axis) must be there at the start of each step
if it is there at the end, so each of these seeks a fixed point.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple, TypeAlias

from fxarray.core.hooks import operators
from fxarray.core.ir import Equation, Program, Var
from fxarray.core.types import ArrayType
from fxarray.interpreters.batch import batch_program
from fxarray.interpreters.dce import eliminate_dead_code
from fxarray.interpreters.evaluate import evaluate
from fxarray.interpreters.jvp import jvp_program
from fxarray.interpreters.linearize import linearize_program
from fxarray.interpreters.memo import memoised
from fxarray.interpreters.staging import stage_closed
from fxarray.primitives.arithmetic import add
from fxarray.primitives.comparison import bitwise_and, lt, select_n
from fxarray.primitives.control.cond import Cond
from fxarray.primitives.control.surgery import INT32, compose_linearized, either, reorder
from fxarray.primitives.convert import convert
from fxarray.primitives.create import scalar
from fxarray.primitives.movement import broadcast_in_dim
from fxarray.primitives.reductions import reduce_or

Flags: TypeAlias = tuple[bool, ...]
Derive: TypeAlias = Callable[[Program, Flags, Flags], tuple[Program, Flags]]


def _jvp(program: Program, nonzeros: Flags, instantiated: Flags) -> tuple[Program, Flags]:
    return jvp_program(program, nonzeros, instantiated)


def _composed(program: Program, nonzeros: Flags, instantiated: Flags) -> tuple[Program, Flags]:
    linearized = linearize_program(program, nonzeros, instantiated)
    return compose_linearized(linearized, len(program.outputs)), linearized.out_nonzeros


@memoised
def jvp_of_body(
    body: Program, const_count: int, carry_count: int, nonzeros: Flags
) -> tuple[Program, Flags, Flags]:
    """The body of a loop's derivative.

    Args:
      body: (consts, carry, xs) -> (carry, ys).
      const_count: the number of consts.
      carry_count: the number of carries.
      nonzeros: which inputs have tangents.

    Returns:
      A Program from (consts, their tangents, carry, its tangents, xs, their tangents) to (carry,
      its tangents, ys, their tangents); which carries and which ys have tangents.
    """
    return _derived_body(body, const_count, carry_count, nonzeros, _jvp)


@memoised
def derivative_of_body(
    body: Program, const_count: int, carry_count: int, nonzeros: Flags
) -> tuple[Program, Flags, Flags]:
    """Like `jvp_of_body`, with linear operations kept apart, so that it can be transposed."""
    return _derived_body(body, const_count, carry_count, nonzeros, _composed)


def _derived_body(
    body: Program, const_count: int, carry_count: int, nonzeros: Flags, derive: Derive
) -> tuple[Program, Flags, Flags]:
    start, stop = const_count, const_count + carry_count
    carry = nonzeros[start:stop]
    while True:
        flags = (*nonzeros[:start], *carry, *nonzeros[stop:])
        instantiated = (*carry, *(False,) * (len(body.outputs) - carry_count))
        program, found = derive(body, flags, instantiated)
        joined = either(carry, found[:carry_count])
        if joined == carry:
            break
        carry = joined
    ys = found[carry_count:]
    count = len(body.inputs)
    tangents = [count + sum(flags[:i]) for i in range(count)]
    inputs: list[int] = []
    for group in (range(start), range(start, stop), range(stop, count)):
        inputs += [*group, *[tangents[i] for i in group if flags[i]]]
    outputs = _interleaved_outputs(len(body.outputs), carry_count, sum(carry), sum(ys))
    program, _ = eliminate_dead_code(reorder(program, inputs, outputs))
    return program, carry, ys


def _interleaved_outputs(count: int, carry_count: int, tangents: int, ys: int) -> list[int]:
    """From (carry, ys, tangents of both) to (carry, its tangents, ys, their tangents)."""
    middle = count + tangents
    return [
        *range(carry_count),
        *range(count, middle),
        *range(carry_count, count),
        *range(middle, middle + ys),
    ]


@memoised
def batch_body(
    body: Program, const_count: int, carry_count: int, size: int, axis_name: Hashable, mapped: Flags
) -> tuple[Program, Flags, Flags]:
    """The body of a loop along a mapped axis, which is the first of each mapped value.

    Returns:
      The Program; which carries are mapped, and which ys.
    """
    start, stop = const_count, const_count + carry_count
    carry = mapped[start:stop]
    rest = (False,) * (len(body.outputs) - carry_count)
    while True:
        flags = (*mapped[:start], *carry, *mapped[stop:])
        axes = tuple([0 if flag else None for flag in flags])
        program, found = batch_program(body, size, axis_name, axes, (*carry, *rest))
        joined = either(carry, found[:carry_count])
        if joined == carry:
            return program, carry, found[carry_count:]
        carry = joined


def live_carries(body: Program, const_count: int, carry_count: int, used: Flags) -> Flags:
    """Which outputs of a loop are computed if those in `used` are wanted: carries need carries."""
    kept = used
    while True:
        _, needed = eliminate_dead_code(body, kept, keep_inputs=False)
        carry = either(kept[:carry_count], needed[const_count : const_count + carry_count])
        joined = (*carry, *kept[carry_count:])
        if joined == kept:
            return kept
        kept = joined


@memoised
def skipping_body(body: Program, const_count: int, carry_count: int) -> Program:
    """The body of a loop that does nothing in steps beyond a number of its own.

    Returns:
      A Program from (number of steps, consts, carry, position, xs) to (carry, ys).
    """
    stop = const_count + carry_count

    def skip(*values: Any) -> list[Any]:
        return [*values[const_count:stop], *map(operators.zeros, body.output_types[carry_count:])]

    branches = (stage_closed(skip, body.input_types, "skip"), body)

    def step(steps: Any, *values: Any) -> Sequence[Any]:
        position, xs = values[stop], values[stop + 1 :]
        index = convert(lt(position, steps), INT32)
        return Cond(branches).bind(index, *values[:stop], *xs)

    number = ArrayType((), INT32)
    types = [number, *body.input_types[:stop], number, *body.input_types[stop:]]
    return stage_closed(step, types, f"bounded_{body.name}")


# --- while loops --------------------------------------------------------------------------------


class BatchedWhile(NamedTuple):
    """A while loop along a mapped axis, if its condition is the same for all."""

    predicate_mapped: bool
    cond_program: Program
    body_program: Program
    carry_mapped: Flags


@memoised
def batch_while(
    cond: Program,
    body: Program,
    cond_count: int,
    body_count: int,
    size: int,
    axis_name: Hashable,
    mapped: Flags,
) -> BatchedWhile:
    """Find out which carries of a while loop are mapped, and whether its condition is."""
    carry_count = len(body.outputs)
    batched, carry, _ = batch_body(
        body, body_count, carry_count, size, axis_name, mapped[cond_count:]
    )
    axes = tuple([0 if flag else None for flag in (*mapped[:cond_count], *carry)])
    predicate, found = batch_program(cond, size, axis_name, axes)
    return BatchedWhile(found[0], predicate, batched, carry)


@memoised
def live_carries_of_while(
    cond: Program, body: Program, cond_count: int, body_count: int, used: Flags
) -> Flags:
    """Which carries of a while loop are needed for those in `used` and for the condition."""
    _, needed = eliminate_dead_code(cond, None, keep_inputs=False)
    return live_carries(body, body_count, len(used), either(used, needed[cond_count:]))


@memoised
def counting_body(body: Program) -> Program:
    """The body with one more carry: the number of steps."""
    steps = Var(ArrayType((), INT32))
    one = scalar(1, INT32)
    counted = stage_closed(lambda n: [add(n, one)], [steps.type])
    equation: Equation = counted.equations[0].replace(
        inputs=[steps, counted.equations[0].inputs[1]]
    )
    return body.replace(
        inputs=[*body.inputs, steps],
        equations=[*body.equations, equation],
        outputs=[*body.outputs, *equation.outputs],
    )


@memoised
def lockstep_programs(
    cond: Program, body: Program, cond_count: int, size: int, axis_name: Hashable, mapped: Flags
) -> tuple[Program, Program, Program]:
    """A while loop whose lanes step together as long as any wants to; those done keep their carry.

    Args:
      cond: the condition in one lane.
      body: the body in one lane.
      cond_count: the number of constants of the condition.
      size: the size of the mapped axis.
      axis_name: its name.
      mapped: which operands (constants of both, carry) are mapped; every carry is.

    Returns:
      The first condition, `(cond_consts, carry) -> active`; and of the loop with carry
      `(active, *carry)` and all constants given to its body, the condition and the body.
    """
    carry_count = len(body.outputs)
    start = len(mapped) - carry_count
    everywhere = (True,) * carry_count
    cond_axes = tuple([0 if flag else None for flag in (*mapped[:cond_count], *everywhere)])
    body_axes = tuple([0 if flag else None for flag in (*mapped[cond_count:start], *everywhere)])
    predicate, _ = batch_program(cond, size, axis_name, cond_axes, (True,))
    step, _ = batch_program(body, size, axis_name, body_axes, everywhere)
    active_type = predicate.output_types[0]
    carry_types = step.output_types

    def stepped(*values: Any) -> list[Any]:
        consts, (active, *carry) = values[:start], values[start:]
        new = evaluate(step, [*consts[cond_count:], *carry])
        kept = [
            select_n(broadcast_in_dim(active, n.type.shape, (0,)), c, n)
            for n, c in zip(new, carry, strict=True)
        ]
        (going,) = evaluate(predicate, [*consts[:cond_count], *kept])
        return [bitwise_and(active, going), *kept]

    const_types = [*predicate.input_types[:cond_count], *step.input_types[: start - cond_count]]
    loop_types = [active_type, *carry_types]
    going = stage_closed(lambda active, *_: [reduce_or(active, (0,))], loop_types, "any_lane")
    return predicate, going, stage_closed(stepped, [*const_types, *loop_types], "lockstep")
