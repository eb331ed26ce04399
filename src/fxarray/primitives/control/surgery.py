"""Changing the inputs and outputs of Programs, and what all operations of control flow share."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, ClassVar

import numpy as np

from fxarray.core.effects import Effect, must_keep, named_axes
from fxarray.core.errors import ProgramError
from fxarray.core.ir import Atom, Equation, Literal, Program, Var
from fxarray.core.primitive import NO_EFFECTS, Primitive, Zero
from fxarray.core.types import ArrayType
from fxarray.interpreters.dce import eliminate_dead_code
from fxarray.interpreters.linearize import LinearizedProgram
from fxarray.interpreters.memo import memoised

INT32 = np.dtype("int32")


class ControlFlow(Primitive):
    """The base of operations that run Programs some number of times."""

    memoise_infer: ClassVar[bool] = False
    EXCUSED: ClassVar[dict[str, str]] = {
        "shard": "the Programs inside are partitioned, not the operation",
        "lower": "it becomes a node of the schedule that holds compiled Programs, not a kernel",
    }

    @property
    def programs(self) -> tuple[Program, ...]:
        """All Programs that the operation holds."""
        raise NotImplementedError

    @property
    def effects(self) -> frozenset[Effect]:
        return frozenset[Effect]().union(*[p.effects for p in self.programs]) or NO_EFFECTS

    @property
    def axis_names(self) -> tuple[Hashable, ...]:
        return named_axes(self.effects)


# --- parts of sequences -------------------------------------------------------------------------


def split(values: Sequence[Any], *counts: int) -> list[list[Any]]:
    """`values` cut into parts of the given lengths; the rest is the last part."""
    parts: list[list[Any]] = []
    start = 0
    for count in counts:
        parts.append(list(values[start : start + count]))
        start += count
    parts.append(list(values[start:]))
    return parts


def chosen(values: Sequence[Any], flags: Sequence[bool]) -> list[Any]:
    """The values whose flag is set."""
    return [value for value, flag in zip(values, flags, strict=True) if flag]


def rejected(values: Sequence[Any], flags: Sequence[bool]) -> list[Any]:
    """The values whose flag is not set."""
    return [value for value, flag in zip(values, flags, strict=True) if not flag]


def either(first: Sequence[bool], second: Sequence[bool]) -> tuple[bool, ...]:
    """Elementwise `or`."""
    return tuple([a or b for a, b in zip(first, second, strict=True)])


def spread(values: Sequence[Any], flags: Sequence[bool], types: Sequence[ArrayType]) -> list[Any]:
    """One entry per flag: the next of `values` where it is set, else a Zero of the type."""
    given = iter(values)
    return [next(given) if flag else Zero(t) for flag, t in zip(flags, types, strict=True)]


def nonzero_flags(tangents: Sequence[Any]) -> tuple[bool, ...]:
    """Which tangents are there."""
    return tuple([type(tangent) is not Zero for tangent in tangents])


def check_types(what: str, expected: Sequence[ArrayType], given: Sequence[ArrayType]) -> None:
    """Raise ProgramError unless the types agree; `what` says what they are types of."""
    if len(expected) != len(given):
        raise ProgramError(f"{what}: expected {len(expected)} values, got {len(given)}")
    for number, (wanted, actual) in enumerate(zip(expected, given, strict=True)):
        if not wanted.same_array(actual):
            raise ProgramError(f"{what} {number} is {actual}, expected {wanted}")


# --- Programs -----------------------------------------------------------------------------------


def substitute(equations: Sequence[Equation], mapping: dict[Any, Atom]) -> list[Equation]:
    """The equations with some variables replaced where they are used."""
    if not mapping:
        return list(equations)
    return [
        equation.replace(inputs=[mapping.get(atom, atom) for atom in equation.inputs])
        if any(type(atom) is Var and atom in mapping for atom in equation.inputs)
        else equation
        for equation in equations
    ]


def place_inputs(program: Program, types: Sequence[ArrayType], positions: Sequence[int]) -> Program:
    """A Program of more inputs, which ignores those that `program` does not take.

    Args:
      program: the Program.
      types: the types of all inputs of the result.
      positions: for each input of `program`, which input of the result it is; two may be one.
    """
    inputs: list[Var | None] = [None] * len(types)
    mapping: dict[Any, Atom] = {}
    for variable, position in zip(program.inputs, positions, strict=True):
        known = inputs[position]
        if known is None:
            inputs[position] = variable
        else:
            mapping[variable] = known
    complete = [Var(t) if v is None else v for v, t in zip(inputs, types, strict=True)]
    if not mapping:
        return program.replace(inputs=complete)
    return program.replace(
        inputs=complete,
        equations=substitute(program.equations, mapping),
        outputs=[mapping.get(atom, atom) for atom in program.outputs],
    )


def reorder(
    program: Program,
    inputs: Sequence[int] | None = None,
    outputs: Sequence[int] | None = None,
) -> Program:
    """A Program with inputs and outputs in another order: the i-th is the old `inputs[i]`-th."""
    return program.replace(
        inputs=program.inputs if inputs is None else [program.inputs[i] for i in inputs],
        outputs=program.outputs if outputs is None else [program.outputs[i] for i in outputs],
    )


def append_inputs(program: Program, types: Sequence[ArrayType]) -> Program:
    """A Program that takes, and ignores, further inputs."""
    return program.replace(inputs=[*program.inputs, *map(Var, types)])


def compose_linearized(linearized: LinearizedProgram, output_count: int) -> Program:
    """The derivative as one Program, computed beside the values.

    Unlike `jvp_program`'s result, it keeps linear operations apart from others, so it can be
    transposed whatever it contains.

    Returns:
      A Program from (inputs, tangents of the nonzero inputs) to (outputs, nonzero tangents).
    """
    known, linear = linearized.known, linearized.linear
    residuals = linearized.pick_residuals(known.inputs, known.outputs)
    mapping: dict[Any, Atom] = dict(zip(linear.inputs, residuals, strict=False))
    return Program(
        [*known.inputs, *linear.inputs[len(residuals) :]],
        [*known.equations, *substitute(linear.equations, mapping)],
        [*known.outputs[:output_count], *[mapping.get(atom, atom) for atom in linear.outputs]],
        name=f"derivative_of_{known.name}",
    )


@memoised
def depends_on(program: Program, inputs: tuple[bool, ...]) -> tuple[bool, ...]:
    """Which outputs depend on the inputs that are marked."""
    marked: set[Any] = set(chosen(program.inputs, inputs))
    for equation in program.equations:
        if not marked.isdisjoint(equation.inputs):
            marked.update(equation.outputs)
    found = [type(atom) is not Literal and atom in marked for atom in program.outputs]
    if any(_may_shrink(equation) for equation in program.equations):
        # Not all outputs of a loop or branch depend on all its operands.
        for position, flag in enumerate(found):
            if flag:
                alone = [i == position for i in range(len(found))]
                _, needed = eliminate_dead_code(program, alone, keep_inputs=False)
                found[position] = any(chosen(needed, inputs))
    return tuple(found)


def _may_shrink(equation: Equation) -> bool:
    shrinks = type(equation.op).used_operands is not Primitive.used_operands
    return shrinks and len(equation.outputs) > 1


@memoised
def silenced(program: Program) -> Program:
    """The Program without effects that compute nothing, for when it is run a second time."""
    if not must_keep(program.effects):
        return program
    live = {atom for atom in program.outputs if type(atom) is Var}
    kept: list[Equation] = []
    for equation in reversed(program.equations):
        if must_keep(equation.effects):
            if live.isdisjoint(equation.outputs):
                continue
            equation = equation.replace(op=_silenced_operation(equation.op))
        kept.append(equation)
        live.update(atom for atom in equation.inputs if type(atom) is Var)
    kept.reverse()
    return program.replace(equations=kept)


def _silenced_operation(op: Primitive) -> Primitive:
    parameters = op.parameters()
    quiet = {name: _silenced_parameter(value) for name, value in parameters.items()}
    changed = any(quiet[name] is not parameters[name] for name in parameters)
    return type(op)(**quiet) if changed else op


def _silenced_parameter(value: Any) -> Any:
    if isinstance(value, Program):
        return silenced(value)
    if isinstance(value, tuple) and any(isinstance(part, Program) for part in value):
        return tuple([_silenced_parameter(part) for part in value])
    return value
