"""Checking Programs deeply: scope, types, effects, and the Programs inside them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fxarray.core.errors import ProgramError
from fxarray.core.ir import Equation, Literal, Program, Var
from fxarray.core.python_source import program_from_source


def nested_programs(equation: Equation) -> Iterator[Program]:
    """The Programs that an equation's operation carries."""
    for value in equation.op.parameters().values():
        for item in value if isinstance(value, tuple) else (value,):
            if isinstance(item, Program):
                yield item


def check_program(program: Program, round_trip: bool = True) -> None:
    """Assert that a Program and all Programs inside it are well-formed.

    Every variable is defined once and before it is used; the types of equations are those that
    their operations infer from the operands, weakness included; nested Programs hold no constants;
    and the Python source of the Program gives it back.

    Args:
      program: what to check.
      round_trip: whether to check the Python source too.

    Raises:
      ProgramError: naming the equation that is wrong.

    >>> import fxarray
    >>> from fxarray.testing import check_program
    >>> check_program(fxarray.make_program(lambda x: x * 2 + 1)(3.0))
    """
    queue: list[tuple[str, Program]] = [(program.name, program)]
    while queue:
        path, current = queue.pop()
        _check_one(path, current)
        for number, equation in enumerate(current.equations):
            for inner in nested_programs(equation):
                place = f"{path}, equation {number} ({equation.op.name})"
                if inner.constants:
                    raise ProgramError(f"{place}: the Program inside holds constants")
                queue.append((place, inner))
    if round_trip and program_from_source(program.to_python()) != program:
        raise ProgramError(f"{program.name}: its Python source gives another Program")


def _check_one(path: str, program: Program) -> None:
    defined: set[Any] = set()

    def define(variable: Any, where: str) -> None:
        if type(variable) is not Var:
            raise ProgramError(f"{where}: {variable!r} is no variable")
        if variable in defined:
            raise ProgramError(f"{where}: a variable of type {variable.type} is defined twice")
        defined.add(variable)

    def check_use(atom: Any, where: str) -> None:
        if type(atom) is Literal:
            if atom.type.shape:
                raise ProgramError(f"{where}: a literal of type {atom.type} is no scalar")
        elif atom not in defined:
            raise ProgramError(f"{where}: a variable of type {atom.type} is used undefined")

    for variable, value in program.constants:
        define(variable, f"{path}, constants")
        if value.type != variable.type:
            raise ProgramError(f"{path}: a constant is {value.type}, declared {variable.type}")
    for variable in program.inputs:
        define(variable, f"{path}, inputs")
    for number, equation in enumerate(program.equations):
        where = f"{path}, equation {number} ({equation.op.name})"
        for atom in equation.inputs:
            check_use(atom, where)
        types = equation.op.infer(*[atom.type for atom in equation.inputs])
        declared = tuple([variable.type for variable in equation.outputs])
        if types != declared:
            raise ProgramError(f"{where}: results are {list(declared)}, inferred {list(types)}")
        for variable in equation.outputs:
            define(variable, where)
    for atom in program.outputs:
        check_use(atom, f"{path}, outputs")
