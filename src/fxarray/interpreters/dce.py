"""Dead-code elimination: keep the equations that wanted outputs or effects need."""

from __future__ import annotations

from collections.abc import Sequence

from fxarray.core.effects import must_keep
from fxarray.core.ir import Equation, Program, Var


def eliminate_dead_code(
    program: Program,
    used_outputs: Sequence[bool] | None = None,
    keep_inputs: Sequence[bool] | bool = True,
) -> tuple[Program, tuple[bool, ...]]:
    """Drop unused outputs, the equations that only they need, and unused inputs.

    Args:
      program: the Program.
      used_outputs: which outputs to keep (default: all).
      keep_inputs: inputs to keep although nothing uses them.

    Returns:
      The smaller Program, and which inputs it still takes.
    """
    if used_outputs is None:
        used_outputs = (True,) * len(program.outputs)
    outputs = [o for o, used in zip(program.outputs, used_outputs, strict=True) if used]
    live = {atom for atom in outputs if type(atom) is Var}
    kept: list[Equation] = []
    for equation in reversed(program.equations):
        used = [variable in live for variable in equation.outputs]
        if not any(used) and not must_keep(equation.effects):
            continue
        if not all(used):
            equation = _with_fewer_outputs(equation, used)
        kept.append(equation)
        live.update(atom for atom in equation.inputs if type(atom) is Var)
    kept.reverse()
    if isinstance(keep_inputs, bool):
        keep_inputs = (keep_inputs,) * len(program.inputs)
    used_inputs = tuple(
        keep or variable in live for keep, variable in zip(keep_inputs, program.inputs, strict=True)
    )
    unchanged = len(kept) == len(program.equations) and all(used_outputs) and all(used_inputs)
    if unchanged and all(a is b for a, b in zip(kept, program.equations, strict=True)):
        return program, used_inputs
    inputs = [v for v, used in zip(program.inputs, used_inputs, strict=True) if used]
    constants = [(v, value) for v, value in program.constants if v in live]
    return program.replace(
        inputs=inputs, equations=kept, outputs=outputs, constants=constants
    ), used_inputs


def _with_fewer_outputs(equation: Equation, used: Sequence[bool]) -> Equation:
    used = equation.op.kept_outputs(used)
    if all(used):
        return equation
    op, used_operands = equation.op.used_operands(used)
    if op is equation.op and all(used_operands):  # none are named where all are needed
        return equation
    inputs = [a for a, keep in zip(equation.inputs, used_operands, strict=True) if keep]
    outputs = [v for v, keep in zip(equation.outputs, used, strict=True) if keep]
    return equation.replace(op, inputs, outputs)
