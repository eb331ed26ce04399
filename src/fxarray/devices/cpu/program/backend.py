"""The compiler of the CPU: from a Program to an executable."""

from __future__ import annotations

from functools import lru_cache

from fxarray.compile.backend import CompileOptions
from fxarray.compile.fuse import Policy, fuse
from fxarray.compile.graph import CallStep, KernelStep
from fxarray.core.caches import register_cache
from fxarray.core.ir import Program
from fxarray.devices.cpu import library
from fxarray.devices.cpu.contraction.render import render as render_product
from fxarray.devices.cpu.native import leaves as leaves  # recognises calls
from fxarray.devices.cpu.native.jit import prepare
from fxarray.devices.cpu.native.routine import FunctionPointer, Routine
from fxarray.devices.cpu.native.target import Target, host
from fxarray.devices.cpu.program.compiled import compile_graph
from fxarray.devices.cpu.program.executable import NativeExecutable
from fxarray.devices.cpu.program.sharing import shared
from fxarray.devices.cpu.render.routine import render
from fxarray.kernel.ir import Contract, Kernel


@lru_cache(maxsize=8192)
def kernel_routine(kernel: Kernel, target: Target) -> Routine | None:
    """The machine code of a kernel; None for a product that cannot be rendered."""
    if any(isinstance(node, Contract) for node in kernel.body):
        routine = render_product(kernel, target)
    else:
        routine = render(kernel, target)
    if routine is not None and target == host():
        _compile_ahead(routine)
    return routine


def _compile_ahead(routine: Routine) -> None:
    """Begin with a routine's modules, while the rest of the Program is looked at."""
    prepare(routine.text)
    for word in routine.words:
        if isinstance(word, FunctionPointer):
            prepare(word.text)


register_cache(kernel_routine.cache_clear)


def routine_of(step: KernelStep | CallStep, target: Target) -> Routine | None:
    """The machine code of a step; None for what the host runs.

    Args:
      step: the step.
      target: the processor.
    """
    if isinstance(step, CallStep):
        inputs, outputs = [s.type for s in step.inputs], [s.type for s in step.outputs]
        return library.routine(step.op, inputs, outputs, target)
    part = shared(step.kernel)
    routine = kernel_routine(part.kernel, target)
    assert routine is not None, f"the fuser made a kernel that has no routine: {step.kernel}"
    return part.placed(routine)


def _can_render(kernel: Kernel) -> bool:
    return kernel_routine(shared(kernel).kernel, host()) is not None


class NativeBackend:
    """Compiles Programs to machine code."""

    name = "cpu"

    def __init__(self) -> None:
        self._policy = Policy(can_render=_can_render)

    def compile(self, program: Program, options: CompileOptions) -> NativeExecutable:
        graph = fuse(program, self._policy)
        return NativeExecutable(compile_graph(graph, program, routine_of, options.donated))


BACKEND = NativeBackend()
