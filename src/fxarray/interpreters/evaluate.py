"""Evaluation: run a Program's equations one by one, on arrays or on tracers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fxarray.core.context import context, setting
from fxarray.core.ir import Literal, Program, Var


def last_uses(program: Program) -> list[list[Var]]:
    """For each equation, the variables that no later equation or output needs."""
    seen: set[Any] = {atom for atom in program.outputs if type(atom) is Var}
    result: list[list[Var]] = []
    for equation in reversed(program.equations):
        dying: list[Var] = []
        for atom in (*equation.inputs, *equation.outputs):
            if type(atom) is Var and atom not in seen:
                seen.add(atom)
                dying.append(atom)
        result.append(dying)
    result.reverse()
    return result


def evaluate(program: Program, arguments: Sequence[Any]) -> tuple[Any, ...]:
    """Apply a Program to arrays or tracers.

    Args:
      program: the Program; its constants, if any, are used.
      arguments: one array per input.
    """
    if len(arguments) != len(program.inputs):
        raise TypeError(
            f"{program.name} takes {len(program.inputs)} arguments, got {len(arguments)}"
        )
    environment: dict[Any, Any] = dict(zip(program.inputs, arguments, strict=True))
    environment.update(program.constants)
    outer_scopes, outer_source = context.scopes, context.source
    try:
        for equation, dying in zip(program.equations, last_uses(program), strict=True):
            operands = [
                atom.value if type(atom) is Literal else environment[atom]
                for atom in equation.inputs
            ]
            context.source = equation.source or outer_source
            if equation.scopes:
                with setting(scopes=outer_scopes + equation.scopes):
                    results = equation.op.bind(*operands)
            else:
                results = equation.op.bind(*operands)
            environment.update(zip(equation.outputs, results, strict=True))
            for variable in dying:
                environment.pop(variable, None)
    finally:
        context.source = outer_source
    return tuple(
        [atom.value if type(atom) is Literal else environment[atom] for atom in program.outputs]
    )
