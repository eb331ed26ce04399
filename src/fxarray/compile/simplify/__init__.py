"""Passes from Program to Program that every backend wants, in the order in which they run.

Each takes a simplified Program's part of the work: inlining calls, loops, algebra with constants,
common subexpressions, dead code. All are linear in the number of equations. The Programs inside
loops and branches are simplified too, each once however often it occurs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from fxarray.compile.simplify.algebra import simplify_algebra
from fxarray.compile.simplify.common import share_common_subexpressions
from fxarray.compile.simplify.inlining import inline
from fxarray.compile.simplify.loops import simplify_loops
from fxarray.compile.simplify.rewriting import with_inner_programs, with_output_types
from fxarray.core.ir import Program
from fxarray.interpreters.dce import eliminate_dead_code
from fxarray.interpreters.memo import memoised

Pass: TypeAlias = Callable[[Program], Program]


def _drop_dead_code(program: Program) -> Program:
    return eliminate_dead_code(program)[0]


@memoised
def _simplify_inner(program: Program) -> Program:
    return simplify(program)


def _simplify_inside(program: Program) -> Program:
    return with_inner_programs(program, _simplify_inner)


# Inner Programs come before loops, which look into them, and loops before what they leave behind.
PASSES: dict[str, Pass] = {
    "inline calls": inline,
    "drop dead code": _drop_dead_code,
    "simplify inside": _simplify_inside,
    "simplify loops": simplify_loops,
    "simplify algebra": simplify_algebra,
    "share common subexpressions": share_common_subexpressions,
    "drop what is now dead": _drop_dead_code,
}


def simplify(program: Program) -> Program:
    """The Program after all passes; its inputs, and the types of its outputs, are the same."""
    return stages(program)[-1][1]


def stages(program: Program) -> list[tuple[str, Program]]:
    """The Program after each pass, with the pass's name."""
    found: list[tuple[str, Program]] = []
    types = program.output_types
    for name, run in PASSES.items():
        program = with_output_types(run(program), types)
        found.append((name, program))
    return found


__all__ = ["PASSES", "Pass", "simplify", "stages"]
