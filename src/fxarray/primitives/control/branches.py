"""Branches transformed together, so that they agree on what they take and return.

A branch that lacks an output which another has (a tangent, a residual, a cotangent) returns zeros
there.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

from fxarray.core.hooks import operators
from fxarray.core.ir import Program
from fxarray.core.types import ArrayType
from fxarray.interpreters.batch import batch_program
from fxarray.interpreters.dce import eliminate_dead_code
from fxarray.interpreters.evaluate import evaluate
from fxarray.interpreters.jvp import jvp_program
from fxarray.interpreters.linearize import LinearizedProgram, linearize_program
from fxarray.interpreters.memo import memoised
from fxarray.interpreters.staging import stage_closed
from fxarray.interpreters.transpose import transpose_program
from fxarray.primitives.control.surgery import either, place_inputs


@memoised
def jvp_branches(
    branches: tuple[Program, ...], nonzeros: tuple[bool, ...]
) -> tuple[tuple[Program, ...], tuple[bool, ...]]:
    """The derivatives of all branches, and which outputs have a tangent in any."""
    pairs = [jvp_program(branch, nonzeros) for branch in branches]
    union = pairs[0][1]
    for _, found in pairs[1:]:
        union = either(union, found)
    programs = [
        program if found == union else jvp_program(branch, nonzeros, union)[0]
        for branch, (program, found) in zip(branches, pairs, strict=True)
    ]
    return tuple([eliminate_dead_code(program)[0] for program in programs]), union


class LinearizedBranches(NamedTuple):
    """Branches split into values and derivatives.

    known: inputs -> (outputs, residuals kept by any branch; zeros where another branch's)
    linear: (residuals, tangents) -> tangents, where residuals are `inputs` of the branches,
      `outputs` of them, and those that known returned
    """

    known: tuple[Program, ...]
    linear: tuple[Program, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    out_nonzeros: tuple[bool, ...]


@memoised
def linearize_branches(
    branches: tuple[Program, ...], nonzeros: tuple[bool, ...]
) -> LinearizedBranches:
    """Linearize all branches, sharing the places of their residuals."""
    parts = [linearize_program(branch, nonzeros) for branch in branches]
    union = parts[0].out_nonzeros
    for part in parts[1:]:
        union = either(union, part.out_nonzeros)
    parts = [
        part if part.out_nonzeros == union else linearize_program(branch, nonzeros, union)
        for branch, part in zip(branches, parts, strict=True)
    ]
    count = len(union)
    sources = [source for part in parts for source in part.residuals]
    inputs = tuple(sorted({i for kind, i in sources if kind == "input"}))
    outputs = tuple(sorted({i for kind, i in sources if kind == "output"}))
    slots, slot_of = _share_slots([part.known.output_types[count:] for part in parts])

    def known(part: LinearizedProgram, places: Sequence[int]) -> Program:
        def function(*values: Any) -> list[Any]:
            results = evaluate(part.known, values)
            computed = dict(zip(places, results[count:], strict=True))
            fillers = [
                computed[s] if s in computed else operators.zeros(t) for s, t in enumerate(slots)
            ]
            return [*results[:count], *fillers]

        if list(places) == list(range(len(slots))):
            return part.known
        return stage_closed(function, part.known.input_types, part.known.name)

    residual_types = [branches[0].input_types[i] for i in inputs]
    residual_types += [parts[0].known.output_types[i] for i in outputs]
    residual_types += slots
    tangent_types = [
        v.type.tangent() for v, n in zip(branches[0].inputs, nonzeros, strict=True) if n
    ]

    def linear(part: LinearizedProgram, places: Sequence[int]) -> Program:
        positions: list[int] = []
        for kind, i in part.residuals:
            if kind == "input":
                positions.append(inputs.index(i))
            elif kind == "output":
                positions.append(len(inputs) + outputs.index(i))
            else:
                positions.append(len(inputs) + len(outputs) + places[i])
        positions += range(len(residual_types), len(residual_types) + len(tangent_types))
        return place_inputs(part.linear, [*residual_types, *tangent_types], positions)

    pairs = list(zip(parts, slot_of, strict=True))
    return LinearizedBranches(
        tuple([eliminate_dead_code(known(part, places))[0] for part, places in pairs]),
        tuple([linear(part, places) for part, places in pairs]),
        inputs,
        outputs,
        union,
    )


def _share_slots(
    wanted: Sequence[Sequence[ArrayType]],
) -> tuple[list[ArrayType], list[list[int]]]:
    """Places for values of which each branch has its own: equal types share a place."""
    slots: list[ArrayType] = []
    places: list[list[int]] = []
    for types in wanted:
        taken: list[int] = []
        for type in types:
            place = next(
                (s for s, t in enumerate(slots) if s not in taken and t.same_array(type)), None
            )
            if place is None:
                place = len(slots)
                slots.append(type)
            taken.append(place)
        places.append(taken)
    return slots, places


@memoised
def transpose_branches(
    branches: tuple[Program, ...], linear: tuple[bool, ...], nonzeros: tuple[bool, ...]
) -> tuple[tuple[Program, ...], tuple[bool, ...]]:
    """The transposes of all branches, and which linear operands get a cotangent from any."""
    pairs = [transpose_program(branch, linear, nonzeros) for branch in branches]
    union = pairs[0][1]
    for _, found in pairs[1:]:
        union = either(union, found)
    types = [t for t, flag in zip(branches[0].input_types, linear, strict=True) if flag]

    def complete(program: Program, found: tuple[bool, ...]) -> Program:
        def function(*values: Any) -> list[Any]:
            results = iter(evaluate(program, values))
            return [
                next(results) if have else operators.zeros(type)
                for have, want, type in zip(found, union, types, strict=True)
                if want
            ]

        if found == union:
            return program
        return stage_closed(function, program.input_types, program.name)

    return tuple([eliminate_dead_code(complete(*pair))[0] for pair in pairs]), union


@memoised
def batch_branches(
    branches: tuple[Program, ...], size: Any, axis_name: Hashable, axes: tuple[int | None, ...]
) -> tuple[tuple[Program, ...], tuple[bool, ...]]:
    """All branches along a mapped axis, and which outputs are mapped in any."""
    pairs = [batch_program(branch, size, axis_name, axes) for branch in branches]
    union = pairs[0][1]
    for _, found in pairs[1:]:
        union = either(union, found)
    programs = [
        program if found == union else batch_program(branch, size, axis_name, axes, union)[0]
        for branch, (program, found) in zip(branches, pairs, strict=True)
    ]
    return tuple(programs), union


@memoised
def shrink_branches(
    branches: tuple[Program, ...], used_outputs: tuple[bool, ...]
) -> tuple[tuple[Program, ...], tuple[bool, ...]]:
    """All branches without unused outputs, and which inputs any of them still takes."""
    union = (False,) * len(branches[0].inputs)
    for branch in branches:
        union = either(union, eliminate_dead_code(branch, used_outputs, keep_inputs=False)[1])
    shrunk = [eliminate_dead_code(branch, used_outputs, union)[0] for branch in branches]
    return tuple(shrunk), union


@memoised
def selections(types: tuple[ArrayType, ...], count: int) -> tuple[Program, ...]:
    """Programs that return the first, second, ... of `count` equal parts of their arguments."""
    width = len(types) // count
    programs: list[Program] = []
    for number in range(count):
        part = slice(number * width, (number + 1) * width)
        programs.append(
            stage_closed(lambda *values, part=part: list(values[part]), types, "select")
        )
    return tuple(programs)
