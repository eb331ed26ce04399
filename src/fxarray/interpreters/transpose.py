"""Transposition: a Program that is linear in some inputs, run backwards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fxarray.core.context import context
from fxarray.core.ir import Literal, Program, Var
from fxarray.core.primitive import Linear, Zero, add_tangents
from fxarray.interpreters.linearize import accumulate_cotangents
from fxarray.interpreters.memo import memoised
from fxarray.interpreters.staging import stage_closed


def transpose_flat(
    program: Program, operands: Sequence[Any], cotangents: Sequence[Any]
) -> list[Any]:
    """Cotangents of a Program's linear operands.

    Args:
      program: linear in the operands that are given as `Linear`.
      operands: one per input: a `Linear`, or a value.
      cotangents: one per output; may be Zeros.

    Returns:
      One cotangent (maybe a Zero) per `Linear` operand, None for the others.
    """
    # Equations that depend on no linear operand are run forwards, the others backwards.
    environment: dict[Any, Any] = dict(program.constants)
    linear: dict[Var, Linear] = {}
    for variable, operand in zip(program.inputs, operands, strict=True):
        if type(operand) is Linear:
            linear[variable] = Linear(variable.type)
        else:
            environment[variable] = operand
    backwards: list[Any] = []

    def read(atom: Any) -> Any:
        if type(atom) is Literal:
            return atom.value
        found = linear.get(atom)
        return environment[atom] if found is None else found

    for equation in program.equations:
        if any(atom in linear for atom in equation.inputs if type(atom) is Var):
            backwards.append(equation)
            for variable in equation.outputs:
                linear[variable] = Linear(variable.type)
        else:
            values = equation.op.bind(*map(read, equation.inputs))
            environment.update(zip(equation.outputs, values, strict=True))

    running: dict[Linear, Any] = {}
    for atom, cotangent in zip(program.outputs, cotangents, strict=True):
        if type(cotangent) is Zero:
            continue
        if type(atom) is Literal or atom not in linear:
            continue  # a constant output: zero, since the Program is linear
        marker = linear[atom]
        running[marker] = add_tangents(running.get(marker, Zero(marker.type)), cotangent)
    outer_source = context.source
    try:
        for equation in reversed(backwards):
            given = [running.pop(linear[variable], None) for variable in equation.outputs]
            if all(value is None for value in given):
                continue
            given = [
                Zero(variable.type) if value is None else value
                for value, variable in zip(given, equation.outputs, strict=True)
            ]
            context.source = equation.source or outer_source
            accumulate_cotangents(equation.op, given, [read(a) for a in equation.inputs], running)
    finally:
        context.source = outer_source
    results: list[Any] = []
    for variable, operand in zip(program.inputs, operands, strict=True):
        if type(operand) is Linear:
            marker = linear[variable]
            results.append(running.get(marker, Zero(marker.type)))
        else:
            results.append(None)
    return results


@memoised
def transpose_program(
    program: Program, linear: tuple[bool, ...], nonzeros: tuple[bool, ...]
) -> tuple[Program, tuple[bool, ...]]:
    """The Program of a linear Program's transpose.

    Args:
      program: linear in the inputs marked `linear`.
      linear: one per input.
      nonzeros: which outputs have a cotangent.

    Returns:
      A Program from (the other inputs, cotangents of nonzero outputs) to the cotangents that are
      not zero, and which of the linear inputs these are.
    """
    found: list[bool] = []
    others = [v.type for v, is_linear in zip(program.inputs, linear, strict=True) if not is_linear]
    given = [a.type for a, nonzero in zip(program.outputs, nonzeros, strict=True) if nonzero]

    def transposed(*arguments: Any) -> list[Any]:
        values = iter(arguments[: len(others)])
        cotangent_values = iter(arguments[len(others) :])
        operands = [
            Linear(v.type) if is_linear else next(values)
            for v, is_linear in zip(program.inputs, linear, strict=True)
        ]
        cotangents = [
            next(cotangent_values) if nonzero else Zero(a.type)
            for a, nonzero in zip(program.outputs, nonzeros, strict=True)
        ]
        results = [r for r in transpose_flat(program, operands, cotangents) if r is not None]
        found.extend(type(result) is not Zero for result in results)
        return [result for result in results if type(result) is not Zero]

    result = stage_closed(transposed, [*others, *given], f"transpose_of_{program.name}")
    return result, tuple(found)
