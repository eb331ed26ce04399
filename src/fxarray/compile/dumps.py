"""Printing what the compiler does, under the setting `debug`."""

from __future__ import annotations

import sys

from fxarray.compile.backend import Executable
from fxarray.compile.simplify import stages
from fxarray.core.ir import Program

GRAPH, EVERYTHING = 2, 3


def dump(program: Program, executable: Executable, seconds: float, level: int) -> None:
    """Print how a Program was compiled to the error stream.

    Args:
      program: as it was traced.
      executable: what became of it.
      seconds: that compiling took.
      level: `GRAPH`, or `EVERYTHING`: each pass that changed something, and each stage.
    """
    cost = executable.cost_analysis()
    figures = ", ".join(f"{name} {value:g}" for name, value in cost.items())
    count = len(program.equations)
    parts = [f"compiled {program.name}: {count} equations in {seconds * 1e3:.1f} ms; {figures}"]
    if level >= EVERYTHING:
        parts.append(f"--- traced\n{program}")
        before = program
        for name, after in stages(program):
            if after is not before:
                parts.append(f"--- {name}\n{after}")
            before = after
        wanted = [stage for stage in executable.stages if stage != "simplified"]
    else:
        wanted = [stage for stage in executable.stages if stage == "graph"]
    parts += [f"--- {stage}\n{executable.as_text(stage)}" for stage in wanted]
    sys.stderr.write("\n".join(parts) + "\n")
