"""What passes share: walking a Program forwards while building another one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fxarray.core.ir import Atom, Equation, Literal, Program, Var
from fxarray.core.primitive import Primitive
from fxarray.core.types import ArrayType
from fxarray.primitives.convert import ConvertElementType


class Rewriter:
    """A Program being written: equations, and what the old Program's variables are in it.

    Args:
      program: the old Program; its inputs are the new one's.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self.names: dict[Var, Atom] = {}
        self.equations: list[Equation] = []
        # By which equation of the new Program each of its variables is defined.
        self.definitions: dict[Var, Equation] = {}

    def atom(self, old: Atom) -> Atom:
        """What an atom of the old Program is now."""
        return old if type(old) is Literal else self.names.get(old, old)  # type: ignore[arg-type]

    def atoms(self, equation: Equation) -> list[Atom]:
        """What an equation's inputs are now."""
        names = self.names
        return [names.get(a, a) if type(a) is Var else a for a in equation.inputs]

    def definition(self, atom: Atom) -> Equation | None:
        """The equation that defines an atom of the new Program; None for inputs and literals."""
        return None if type(atom) is Literal else self.definitions.get(atom)  # type: ignore[arg-type]

    def keep(self, equation: Equation, inputs: Sequence[Atom]) -> None:
        """Write an equation of the old Program, with its inputs as they are now."""
        changed = any(a is not b for a, b in zip(inputs, equation.inputs, strict=True))
        if changed:
            fresh = Equation(equation.op, inputs, None, equation.source, equation.scopes)
            self.names.update(zip(equation.outputs, fresh.outputs, strict=True))
            equation = fresh
        self._write(equation)

    def add(self, op: Primitive, inputs: Sequence[Atom], like: Equation) -> Sequence[Var]:
        """Write a new equation in place of an old one, whose place in the user's code it has."""
        equation = Equation(op, inputs, None, like.source, like.scopes)
        self._write(equation)
        return equation.outputs

    def _write(self, equation: Equation) -> None:
        self.equations.append(equation)
        for variable in equation.outputs:
            self.definitions[variable] = equation

    def replace(self, variables: Sequence[Var], atoms: Sequence[Atom]) -> None:
        """Say what variables of the old Program are in the new one."""
        self.names.update(zip(variables, atoms, strict=True))

    def finish(self) -> Program:
        """The new Program."""
        outputs = [self.atom(atom) for atom in self.program.outputs]
        same = len(self.equations) == len(self.program.equations) and all(
            a is b for a, b in zip(self.equations, self.program.equations, strict=True)
        )
        if same and all(a is b for a, b in zip(outputs, self.program.outputs, strict=True)):
            return self.program
        return self.program.replace(equations=self.equations, outputs=outputs)


def with_output_types(program: Program, types: Sequence[ArrayType]) -> Program:
    """The Program with outputs of exactly these types: rewriting may change what is weak."""
    if all(atom.type is type for atom, type in zip(program.outputs, types, strict=True)):
        return program
    equations = list(program.equations)
    outputs: list[Atom] = []
    for atom, type in zip(program.outputs, types, strict=True):
        if atom.type.weak == type.weak:
            outputs.append(atom)
            continue
        equation = Equation(ConvertElementType(type.dtype, type.weak), [atom])
        equations.append(equation)
        outputs.append(equation.outputs[0])
    return program.replace(equations=equations, outputs=outputs)


def inner_programs(op: Primitive) -> bool:
    """Whether an operation holds Programs."""
    return any(
        isinstance(value, Program)
        or (isinstance(value, tuple) and any(isinstance(part, Program) for part in value))
        for value in op.parameters().values()
    )


def with_inner_programs(program: Program, change: Callable[[Program], Program]) -> Program:
    """The Program with the Programs inside its operations changed; their types stay."""
    rewriter = Rewriter(program)
    for equation in program.equations:
        inputs = rewriter.atoms(equation)
        op = _changed(equation.op, change)
        if op is equation.op:
            rewriter.keep(equation, inputs)
        else:
            rewriter.replace(equation.outputs, rewriter.add(op, inputs, equation))
    return rewriter.finish()


def _changed(op: Primitive, change: Callable[[Program], Program]) -> Primitive:
    parameters = op.parameters()
    changes: dict[str, Any] = {}
    for name, value in parameters.items():
        if isinstance(value, Program):
            new: Any = change(value)
            if new is not value:
                changes[name] = new
        elif isinstance(value, tuple) and any(isinstance(part, Program) for part in value):
            new = tuple([change(p) if isinstance(p, Program) else p for p in value])
            if any(a is not b for a, b in zip(new, value, strict=True)):
                changes[name] = new
    return type(op)(**{**parameters, **changes}) if changes else op
