"""Writing out calls: a Program in which jitted functions stand as their own equations."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from fxarray.core.ir import Atom, Equation, Program, Var
from fxarray.interpreters.memo import memoised
from fxarray.primitives.control.program_call import JitCall

_Frame = tuple[Iterator[Equation], dict[Var, Atom], Callable[[], None] | None]


@memoised
def inline_calls(program: Program) -> Program:
    """Replace calls of jitted functions by their equations, at any depth."""
    if not any(isinstance(equation.op, JitCall) for equation in program.equations):
        return program
    names: dict[Var, Atom] = {}
    result: list[Equation] = []
    # A stack of iterators rather than recursion: calls may be nested deeply.
    stack: list[_Frame] = [(iter(program.equations), names, None)]
    while stack:
        equations, environment, finish = stack[-1]
        equation = next(equations, None)
        if equation is None:
            stack.pop()
            if finish is not None:
                finish()
            continue
        inputs = [environment.get(a, a) if type(a) is Var else a for a in equation.inputs]
        if not isinstance(equation.op, JitCall):
            fresh = Equation(equation.op, inputs, None, equation.source, equation.scopes)
            result.append(fresh)
            environment.update(zip(equation.outputs, fresh.outputs, strict=True))
            continue
        inner = equation.op.program
        inside: dict[Var, Atom] = dict(zip(inner.inputs, inputs, strict=True))

        def bind_outputs(
            equation: Equation = equation,
            inner: Program = inner,
            inside: dict[Var, Atom] = inside,
            outside: dict[Var, Atom] = environment,
        ) -> None:
            for variable, atom in zip(equation.outputs, inner.outputs, strict=True):
                outside[variable] = inside[atom] if type(atom) is Var else atom

        stack.append((iter(inner.equations), inside, bind_outputs))
    outputs = [names.get(a, a) if type(a) is Var else a for a in program.outputs]
    return program.replace(equations=result, outputs=outputs)
