"""What must hold of every graph; checked under FXARRAY_CHECK=1."""

from __future__ import annotations

from collections.abc import Sequence

from fxarray.compile.graph import Graph, KernelStep, Slot, reads, writes
from fxarray.core.errors import ProgramError
from fxarray.kernel.check import check_kernel
from fxarray.kernel.ir import Buffer


def check_graph(graph: Graph) -> None:
    """Raise unless slots are written once, before they are read, and kernels are legal and fit.

    Graphs inside steps are left to whoever makes these.

    Raises:
      ProgramError: with the step that is wrong.
    """
    known = set(graph.inputs)
    for number, step in enumerate(graph.steps):
        where = f"graph {graph.name}, step {number} ({type(step).__name__})"
        for slot in reads(step):
            _check_readable(where, slot, known)
        for slot in writes(step):
            if slot in known or slot.view_of is not None or slot.constant is not None:
                raise ProgramError(f"{where}: writes {slot.type}, which is written already")
            known.add(slot)
        if isinstance(step, KernelStep):
            check_kernel(step.kernel)
            _check_buffers(where, step.kernel.inputs, step.inputs)
            _check_buffers(where, step.kernel.outputs, step.outputs)
    for slot in graph.outputs:
        _check_readable(f"graph {graph.name}, output", slot, known)


def _check_readable(where: str, slot: Slot, known: set[Slot]) -> None:
    root = slot.root
    if root not in known and root.constant is None:
        raise ProgramError(f"{where}: reads {slot.type} before it is written")


def _check_buffers(where: str, buffers: Sequence[Buffer], slots: Sequence[Slot]) -> None:
    if len(buffers) != len(slots):
        raise ProgramError(f"{where}: {len(buffers)} buffers for {len(slots)} slots")
    for buffer, slot in zip(buffers, slots, strict=True):
        if buffer.shape != slot.shape or buffer.dtype != slot.dtype:
            raise ProgramError(f"{where}: buffer {buffer.name} is not of type {slot.type}")
