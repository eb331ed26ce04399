"""Passes from Program to Program that every backend wants, in the order in which they run.

Calls are written out, then come algebra and constants, loops, common subexpressions and dead code.
All are linear in the number of equations. The Programs inside loops and branches are simplified
too, each once however often it occurs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from fxarray.compile.simplify.algebra import simplify_algebra
from fxarray.compile.simplify.carried import carry_shared_values
from fxarray.compile.simplify.common import share_common_subexpressions
from fxarray.compile.simplify.inlining import inline
from fxarray.compile.simplify.loops import simplify_loops
from fxarray.compile.simplify.rewriting import with_inner_programs, with_output_types
from fxarray.core.effects import must_keep
from fxarray.core.errors import ProgramError
from fxarray.core.ir import Program
from fxarray.interpreters.dce import eliminate_dead_code
from fxarray.interpreters.memo import memoised
from fxarray.kernel.check import checking

Pass: TypeAlias = Callable[[Program], Program]


def _drop_dead_code(program: Program) -> Program:
    return eliminate_dead_code(program)[0]


@memoised
def _simplify_inner(program: Program) -> Program:
    return simplify(program)


def _simplify_inside(program: Program) -> Program:
    return with_inner_programs(program, _simplify_inner)


def _simplify_loops(program: Program) -> Program:
    result = simplify_loops(program)
    return result if result is program else simplify_algebra(result)


# Inner Programs come before loops, which look into them.
PASSES: dict[str, Pass] = {
    "inline calls": inline,
    "drop dead code": _drop_dead_code,
    "simplify inside": _simplify_inside,
    "simplify algebra": simplify_algebra,
    "simplify loops": _simplify_loops,
    "carry what steps share": carry_shared_values,
    "share common subexpressions": share_common_subexpressions,
    "drop what is now dead": _drop_dead_code,
}


def simplify(program: Program) -> Program:
    """The Program after all passes; its inputs, and the types of its outputs, are the same."""
    return stages(program)[-1][1]


def stages(program: Program) -> list[tuple[str, Program]]:
    """The Program after each pass, with the pass's name."""
    found: list[tuple[str, Program]] = []
    checked = checking()
    types = program.output_types
    for name, run in PASSES.items():
        after = with_output_types(run(program), types)
        if checked and after is not program:
            _check(name, program, after)
        program = after
        found.append((name, program))
    return found


def _check(name: str, before: Program, after: Program) -> None:
    """Raise unless a pass has kept inputs, types of outputs and what has effects."""
    if after.inputs != before.inputs or after.output_types != before.output_types:
        raise ProgramError(f"the pass {name!r} has changed the type of {before.name}")
    if must_keep(after.effects - before.effects):
        raise ProgramError(f"the pass {name!r} has given {before.name} an effect")
    for equation in after.equations:
        equation.replace()  # runs the type rule again, against the outputs as they are declared


__all__ = ["PASSES", "Pass", "simplify", "stages"]
