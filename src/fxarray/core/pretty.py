"""Printing Programs for people: one line per equation, nested Programs above their use."""

from __future__ import annotations

from typing import Any

from fxarray.core import hooks
from fxarray.core.ir import Literal, Program


def variable_name(number: int) -> str:
    """a, b, ..., z, aa, ab, ..."""
    name = ""
    number += 1
    while number:
        number, digit = divmod(number - 1, 26)
        name = chr(97 + digit) + name
    return name


def format_program(program: Program, source: bool = False, indent: str = "", name: str = "") -> str:
    """A Program as text.

    Args:
      program: what to print.
      source: whether each line ends with the user's file and line.
      indent: put before each line.
      name: the name to print; default the Program's own.
    """
    names: dict[Any, str] = {}

    def atom(value: Any) -> str:
        if type(value) is Literal:
            return str(value.value.numpy_view())  # type: ignore[attr-defined]
        known = names.get(value)
        if known is None:
            known = names[value] = variable_name(len(names))
        return known

    inputs = ", ".join(f"{atom(v)}: {v.type}" for v in program.inputs)
    outputs = ", ".join(str(a.type) for a in program.outputs)
    outputs = outputs if len(program.outputs) == 1 else f"({outputs})"
    lines = [f"{indent}def {name or program.name}({inputs}) -> {outputs}:"]
    inner = indent + "    "
    for variable, value in program.constants:
        lines.append(f"{inner}{atom(variable)}: {variable.type} = constant")
    for number, equation in enumerate(program.equations):
        parameters: list[str] = []
        for key, value in equation.op.parameters().items():
            if isinstance(value, Program):
                local = f"{key}_{number}"
                lines.append(format_program(value, source, inner, local))
                value = local
            elif isinstance(value, tuple) and any(isinstance(item, Program) for item in value):
                locals_: list[str] = []
                for position, item in enumerate(value):
                    local = f"{key}_{number}_{position}"
                    lines.append(format_program(item, source, inner, local))
                    locals_.append(local)
                value = f"({', '.join(locals_)})"
            parameters.append(f"{key}={value}")
        results = ", ".join(f"{atom(v)}: {v.type}" for v in equation.outputs)
        settings = f"[{', '.join(parameters)}]" if parameters else ""
        operands = ", ".join(map(atom, equation.inputs))
        line = f"{inner}{results or '_'} = {equation.op.name}{settings}({operands})"
        if source and equation.source is not None:
            line += f"  # {equation.source.file}:{equation.source.line} ({equation.source.function})"
        lines.append(line)
    returned = ", ".join(map(atom, program.outputs))
    lines.append(f"{inner}return {returned}")
    return "\n".join(lines)


hooks.printing.program = format_program
