"""Printing Programs for people: one line per equation, nested Programs above their use.

>>> import fxarray, fxarray.numpy as fnp
>>> print(fxarray.make_program(lambda x: fnp.sin(x) * 2)(1.0).to_string())
def program(a: f32[]~) -> f32[]~:
    b: f32[]~ = sin(a)
    c: f32[]~ = mul(b, 2.0)
    return c
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable
from enum import Enum
from typing import Any

import numpy as np

from fxarray.core import dtypes, hooks
from fxarray.core.array import Array, DeviceArray
from fxarray.core.ir import Equation, Literal, Program
from fxarray.core.primitive import Primitive

_SHOWN_ELEMENTS = 8


def variable_name(number: int) -> str:
    """a, b, ..., z, aa, ab, ...; Python's keywords get an underscore."""
    name = ""
    number += 1
    while number:
        number, digit = divmod(number - 1, 26)
        name = chr(97 + digit) + name
    return f"{name}_" if keyword.iskeyword(name) else name


def function_name(name: str) -> str:
    """A Python identifier like `name`; a lambda is called "program"."""
    identifier = re.sub(r"_*\W+_*", "_", name).strip("_")
    if not identifier or identifier == "lambda":
        return "program"
    if keyword.iskeyword(identifier) or identifier[0].isdigit():
        return f"{identifier}_"
    return identifier


def format_value(value: Any) -> str:
    """A parameter of an operation as short text, without addresses in memory."""
    if isinstance(value, (np.dtype, dtypes.KeyDType)):
        return dtypes.name(value)
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, DeviceArray):
        value = value.numpy_view()
    if isinstance(value, np.ndarray):
        if value.size <= _SHOWN_ELEMENTS:
            return f"array({value.tolist()}, {dtypes.name(value.dtype)})"
        return f"array of {dtypes.name(value.dtype)}{list(value.shape)}"
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        inside = ", ".join(map(format_value, value))
        return f"({inside},)" if len(value) == 1 else f"({inside})"
    if isinstance(value, (Primitive, Program)):
        return value.name
    if isinstance(value, Callable) and not isinstance(value, type):
        name = getattr(value, "__qualname__", type(value).__name__)
        return f"<{name.rsplit('<locals>.', 1)[-1]}>"
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value))


def _literal(literal: Literal) -> str:
    value = literal.value
    if isinstance(value, DeviceArray):
        return str(value.numpy_view())
    return str(value.type)


class _Printer:
    """Prints one Program; nested Programs have printers of their own."""

    def __init__(self, program: Program, source: bool, scopes: bool, indent: str) -> None:
        self.program = program
        self.source = source
        self.scopes = scopes
        self.indent = indent
        self.inner = indent + "    "
        self.names: dict[Any, str] = {}
        self.lines: list[str] = []

    def atom(self, value: Any) -> str:
        if type(value) is Literal:
            return _literal(value)
        known = self.names.get(value)
        if known is None:
            known = self.names[value] = variable_name(len(self.names))
        return known

    def nested(self, key: str, value: Any, number: int) -> str:
        """The text of a parameter; Programs in it are printed first, as local functions."""
        if isinstance(value, Program):
            local = f"{key}_{number}"
            printer = _Printer(value, self.source, self.scopes, self.inner)
            self.lines.extend(printer.run(local))
            return local
        if isinstance(value, tuple) and any(isinstance(item, Program) for item in value):
            items = [self.nested(f"{key}_{number}", item, i) for i, item in enumerate(value)]
            return f"({', '.join(items)})"
        return format_value(value)

    def equation(self, number: int, equation: Equation) -> None:
        parameters = ", ".join(
            f"{key}={self.nested(key, value, number)}"
            for key, value in equation.op.parameters().items()
        )
        operands = ", ".join(map(self.atom, equation.inputs))
        results = ", ".join(f"{self.atom(v)}: {v.type}" for v in equation.outputs)
        settings = f"[{parameters}]" if parameters else ""
        line = f"{self.inner}{results or '_'} = {equation.op.name}{settings}({operands})"
        notes: list[str] = []
        if self.scopes and equation.scopes:
            notes.append("/".join(equation.scopes))
        if self.source and equation.source is not None:
            place = equation.source
            notes.append(f"{place.file}:{place.line} ({place.function})")
        self.lines.append(f"{line}  # {', '.join(notes)}" if notes else line)

    def run(self, name: str) -> list[str]:
        program = self.program
        inputs = ", ".join(f"{self.atom(v)}: {v.type}" for v in program.inputs)
        types = [str(atom.type) for atom in program.outputs]
        outputs = types[0] if len(types) == 1 else f"({', '.join(types)})"
        self.lines.append(f"{self.indent}def {name}({inputs}) -> {outputs}:")
        for variable, value in program.constants:
            text = format_value(value) if isinstance(value, Array) else str(value)
            self.lines.append(f"{self.inner}{self.atom(variable)}: {variable.type} = {text}")
        for number, equation in enumerate(program.equations):
            self.equation(number, equation)
        returned = ", ".join(map(self.atom, program.outputs))
        self.lines.append(f"{self.inner}return {returned}".rstrip())
        return self.lines


def format_program(
    program: Program,
    source: bool = False,
    scopes: bool = False,
    indent: str = "",
    name: str = "",
) -> str:
    """A Program as text.

    Args:
      program: what to print.
      source: whether each line ends with the user's file, line and function.
      scopes: whether each line ends with the names of the scopes it was traced in.
      indent: put before each line.
      name: the name to print; default the Program's own.
    """
    printer = _Printer(program, source, scopes, indent)
    return "\n".join(printer.run(function_name(name or program.name)))


hooks.printing.program = format_program
