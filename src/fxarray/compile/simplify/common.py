"""Common subexpressions: equal operations on equal operands are computed once."""

from __future__ import annotations

from typing import Any

from fxarray.compile.simplify.rewriting import Rewriter
from fxarray.core.ir import Literal, Program, Var


def share_common_subexpressions(program: Program) -> Program:
    """Drop equations that compute what an earlier one did.

    Operations with effects stay: what is printed twice is printed twice, and what `checkpoint`
    computes again (its effect is a barrier) is computed again.
    """
    rewriter = Rewriter(program)
    known: dict[Any, tuple[Var, ...]] = {}
    for equation in program.equations:
        inputs = rewriter.atoms(equation)
        if equation.op.effects:
            rewriter.keep(equation, inputs)
            continue
        key = (equation.op, *[a.key if type(a) is Literal else id(a) for a in inputs])
        same = known.get(key)
        if same is not None:
            rewriter.replace(equation.outputs, same)
            continue
        rewriter.keep(equation, inputs)
        known[key] = rewriter.equations[-1].outputs
    return rewriter.finish()
