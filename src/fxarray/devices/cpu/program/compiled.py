"""From a graph to code: memory planned, machine code made for each step, all put in a table."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from fxarray.compile.blocks import Plan
from fxarray.compile.graph import (
    BranchStep,
    CallStep,
    CopyStep,
    Graph,
    KernelStep,
    ScanStep,
    Step,
    WhileStep,
)
from fxarray.compile.memory import Pairs, plan
from fxarray.core.ir import Program
from fxarray.devices.cpu.native.jit import addresses
from fxarray.devices.cpu.native.routine import Routine
from fxarray.devices.cpu.native.runtime import default_runtime
from fxarray.devices.cpu.native.target import Target, host
from fxarray.devices.cpu.program.assemble import assemble
from fxarray.devices.cpu.program.code import Code
from fxarray.devices.cpu.program.lane_loops import lane_routine
from fxarray.devices.cpu.program.loops import loop_routine
from fxarray.kernel import sizes
from fxarray.kernel.sizes import Size

# Operations whose first result may overwrite their first operand, with a routine or without.
_IN_PLACE = frozenset(
    ("dynamic_update_slice", "scatter", "scatter_add", "scatter_mul", "scatter_min", "scatter_max")
)


class Compiled(NamedTuple):
    """What all executables of equal Programs share.

    Args:
      program: after the passes over Programs.
      graph: its steps.
      plan: its memory.
      routines: of its steps, at any depth, None for those of the host; of loops, only of those that
        are one routine.
      code: its instructions.
      entries: addresses of the modules that the instructions call.
      checked: whether to check what is planned.
    """

    program: Program
    graph: Graph
    plan: Plan
    routines: Mapping[Step, Routine | None]
    code: Code
    entries: Sequence[int]
    checked: bool

    def is_whole(self, step: Step) -> bool:
        """Whether a step is one routine."""
        return self.routines.get(step) is not None


def steps_of(
    graph: Graph, whole: Callable[[Step], bool] | None = None
) -> Iterator[tuple[Step, Size]]:
    """All steps, also in loops and branches, and how often each runs (in a while loop, once).

    Args:
      graph: the graph.
      whole: of loops that have been seen, which are not to be looked into.
    """
    waiting: list[tuple[Graph, Size]] = [(graph, 1)]
    while waiting:
        current, times = waiting.pop()
        for step in current.steps:
            yield step, times
            match step:
                case WhileStep() | ScanStep() if whole is not None and whole(step):
                    pass
                case WhileStep():
                    waiting += [(step.condition, times), (step.body, times)]
                case ScanStep():
                    waiting.append((step.body, sizes.multiply(times, step.length)))
                case BranchStep():
                    waiting += [(branch, times) for branch in step.branches]
                case KernelStep() | CallStep() | CopyStep():
                    pass


def in_place(step: CallStep) -> Pairs:
    """Pairs of a result and the operand that it may overwrite."""
    return ((0, 0),) if step.op.name in _IN_PLACE else ()


def compile_graph(
    graph: Graph,
    program: Program,
    routine: Callable[[KernelStep | CallStep, Target], Routine | None],
    donated: tuple[int, ...] = (),
) -> Compiled:
    """Plan memory and make code for a graph.

    Args:
      graph: the graph.
      program: what it came from, after its passes.
      routine: finds the machine code of a step.
      donated: inputs whose memory may be reused.
    """
    target, threads = host(), default_runtime().threads
    routines: dict[Step, Routine | None] = {}
    for step, _ in steps_of(graph, lambda step: routines.get(step) is not None):
        if step in routines:
            continue  # the kernel of a loop over lanes
        if isinstance(step, KernelStep | CallStep):
            routines[step] = routine(step, target)
        elif isinstance(step, WhileStep | ScanStep):
            found = loop_routine(step, lambda kernel: routine(kernel, target))
            lanes = None
            if found is not None:
                routines[step] = found
            elif isinstance(step, WhileStep):
                lanes = lane_routine(step, lambda kernel: routine(kernel, target))
            if lanes is not None:
                routines[lanes[0]] = lanes[1]

    def scratch(step: Step) -> Size:
        found = routines[step]
        if found is None:
            return 0
        return sizes.add(found.scratch, sizes.multiply(found.thread_scratch, threads))

    memory = plan(graph, donated, in_place, scratch, lambda step: step in routines)
    code = assemble(graph, memory, routines)
    entries = addresses(list(code.texts))
    checked = os.environ.get("FXARRAY_CHECK", "") not in ("", "0")
    return Compiled(program, graph, memory, routines, code, entries, checked)
