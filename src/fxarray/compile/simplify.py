"""Passes from Program to Program that every backend wants."""

from __future__ import annotations

from fxarray.core.ir import Program
from fxarray.interpreters.dce import eliminate_dead_code
from fxarray.primitives.control.inline import inline_calls


def simplify(program: Program) -> Program:
    """Inline calls and drop what no output needs; inputs stay as they are."""
    return eliminate_dead_code(inline_calls(program))[0]
