"""Calls written out: jitted functions, functions with rules of their own, solutions.

Derivatives have been taken by now, so a function's rule means nothing any more. `checkpoint` stays:
what it computes again must not be shared with what was computed before, so it is written out only
when kernels are made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from fxarray.core.ir import Atom, Equation, Program, Var
from fxarray.core.primitive import Primitive
from fxarray.primitives.control.custom import CustomJVPProgram
from fxarray.primitives.control.custom_vjp import CustomVJPProgram
from fxarray.primitives.control.implicit import CustomRoot, LinearSolve
from fxarray.primitives.control.program_call import JitCall
from fxarray.primitives.control.surgery import split

# From an operation and its operands to the Program that it applies, that Program's operands, and
# whether what it computes must stay apart from all else.
Opened: TypeAlias = "tuple[Program, Sequence[Atom], bool] | None"
Open: TypeAlias = Callable[[Primitive, Sequence[Atom]], Opened]
_Frame: TypeAlias = "tuple[Iterator[Equation], dict[Var, Atom], Callable[[], None] | None, int]"


def _open(op: Primitive, inputs: Sequence[Atom]) -> Opened:
    match op:
        case JitCall() | CustomJVPProgram() | CustomVJPProgram():
            return op.program, inputs, False
        case CustomRoot():
            _, of_solve, _, guess = split(inputs, *op.counts)
            return op.solve, [*of_solve, *guess], False
        case LinearSolve():
            _, _, of_solve, _, b = split(inputs, *op.counts)
            return op.solve, [*of_solve, *b], False
        case _:
            return None


def inline(program: Program) -> Program:
    """Replace calls by their equations, at any depth of calls."""
    return write_out(program, _open)[0]


def write_out(program: Program, opener: Open) -> tuple[Program, list[int]]:
    """Replace some operations by the equations of a Program that they apply.

    Args:
      program: the Program.
      opener: says of an operation what it applies to which operands, or None to leave it.

    Returns:
      The Program, and for each of its equations a number: 0, or another one for each call whose
      equations must stay apart from all others.
    """
    if all(opener(e.op, e.inputs) is None for e in program.equations):
        return program, [0] * len(program.equations)
    names: dict[Var, Atom] = {}
    result: list[Equation] = []
    calls: list[int] = []
    count = 0
    # A stack of iterators rather than recursion: calls may be nested deeply.
    stack: list[_Frame] = [(iter(program.equations), names, None, 0)]
    while stack:
        equations, environment, finish, call = stack[-1]
        equation = next(equations, None)
        if equation is None:
            stack.pop()
            if finish is not None:
                finish()
            continue
        inputs = [environment.get(a, a) if type(a) is Var else a for a in equation.inputs]
        opened = opener(equation.op, inputs)
        if opened is None:
            fresh = equation
            moved = any(a is not b for a, b in zip(inputs, equation.inputs, strict=True))
            # Inside calls, each copy needs variables of its own.
            if moved or environment is not names:
                fresh = Equation(equation.op, inputs, None, equation.source, equation.scopes)
            result.append(fresh)
            calls.append(call)
            environment.update(zip(equation.outputs, fresh.outputs, strict=True))
            continue
        inner, operands, apart = opened
        inside: dict[Var, Atom] = dict(zip(inner.inputs, operands, strict=True))
        finish = _binder(equation, inner, inside, environment)
        count += apart
        stack.append((iter(inner.equations), inside, finish, count if apart else call))
    outputs = [names.get(a, a) if type(a) is Var else a for a in program.outputs]
    return program.replace(equations=result, outputs=outputs), calls


def _binder(
    equation: Equation, inner: Program, inside: dict[Var, Atom], outside: dict[Var, Atom]
) -> Callable[[], None]:
    def bind() -> None:
        for variable, atom in zip(equation.outputs, inner.outputs, strict=True):
            outside[variable] = inside[atom] if type(atom) is Var else atom

    return bind
