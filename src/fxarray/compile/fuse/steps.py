"""From a Program to a graph of steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fxarray.compile.fuse.expand import expand
from fxarray.compile.fuse.group import Group, Node
from fxarray.compile.fuse.grouping import Grouping
from fxarray.compile.fuse.kernels import Materialise, RegionKernel, region_kernel
from fxarray.compile.fuse.parts import Part
from fxarray.compile.fuse.policy import DEFAULT_POLICY, Policy
from fxarray.compile.graph import (
    BranchStep,
    CallStep,
    Graph,
    KernelStep,
    ScanStep,
    Slot,
    Step,
    WhileStep,
)
from fxarray.compile.graph_check import check_graph
from fxarray.core import dtypes
from fxarray.core.ir import Atom, Equation, Literal, Program, Var
from fxarray.core.primitive import Primitive
from fxarray.core.types import ArrayType
from fxarray.kernel import sizes
from fxarray.kernel.build import kernel_dtype
from fxarray.kernel.check import checking
from fxarray.primitives.control.cond import Cond
from fxarray.primitives.control.scan import Scan
from fxarray.primitives.control.surgery import split
from fxarray.primitives.control.while_loop import While


def fuse(program: Program, policy: Policy = DEFAULT_POLICY) -> Graph:
    """The graph of a Program.

    Args:
      program: simplified, so without calls.
      policy: what the device can render.
    """
    graph = _Fuser(program, policy).run()
    if checking():
        check_graph(graph)
    return graph


class _Fuser:
    def __init__(self, program: Program, policy: Policy) -> None:
        self.program, regions = expand(program)
        self.policy = policy
        self.grouping = Grouping(self.program, policy, regions)
        self.slots: dict[Any, Slot] = {}
        self.steps: list[Step] = []

    def run(self) -> Graph:
        program = self.program
        inputs = tuple([self.new_slot(variable) for variable in program.inputs])
        for node in self.grouping.order():
            if isinstance(node, Group):
                self.kernels(node)
            else:
                self.step(node)
        outputs = tuple([self.slot(atom) for atom in program.outputs])
        return Graph(inputs, outputs, self.steps, program.name)

    # --- slots ------------------------------------------------------------------------------------

    def new_slot(self, variable: Var) -> Slot:
        slot = self.slots[variable] = slot_of(variable.type)
        return slot

    def slot(self, atom: Atom) -> Slot:
        """The slot of an atom that is in memory."""
        if type(atom) is Literal:
            key: Any = atom.key
            known = self.slots.get(key)
            if known is None:
                known = self.slots[key] = slot_of(atom.type)
                known.constant = np.asarray(atom.value.numpy_view())
            return known
        views: list[Var] = []
        current: Any = atom
        while current not in self.slots:
            operand = self.grouping.views.get(current)
            if operand is None:
                assert current in self.grouping.empty, current
                slot = self.new_slot(current)
                shape = [sizes.typical(size) for size in slot.shape]
                slot.constant = np.zeros(shape, dtypes.physical(current.type.dtype))
                break
            views.append(current)
            current = operand
        slot = self.slots[current]
        for view in reversed(views):
            slot = self.slots[view] = slot_of(view.type, slot)
        return slot

    # --- kernels ----------------------------------------------------------------------------------

    def kernels(self, group: Group) -> None:
        """The steps of a group: one kernel, or several where an index would not be affine."""
        waiting = [Part.of_group(self.program, group)]
        made: list[tuple[Part, RegionKernel | None]] = []
        while waiting:
            part = waiting.pop()
            try:
                found = region_kernel(part.region())
            except Materialise as error:
                waiting.extend(part.cut(error.operation))
                continue
            if self._is_rendered(found):
                made.append((part, found))
                continue
            parts = part.cut_product()
            if parts is None:
                made.append((part, None))
            else:
                waiting.extend(parts)
        for part, found in reversed(made):
            if found is None:
                self.call(self.program.equations[part.members[0]])
                continue
            inputs = tuple([self.slot(part.externals[number]) for number in found.inputs])
            outputs = tuple([self.new_slot(variable) for variable in part.roots])
            source = self.program.equations[part.members[-1]].source
            self.steps.append(KernelStep(found.kernel, inputs, outputs, source))

    def _is_rendered(self, found: RegionKernel) -> bool:
        can_render = self.policy.can_render
        return can_render is None or not found.has_contract or can_render(found.kernel)

    # --- other steps ------------------------------------------------------------------------------

    def step(self, node: Node) -> None:
        """The step of an operation that is run whole."""
        self.call(self.program.equations[node.first])

    def call(self, equation: Equation) -> None:
        op = equation.op
        inputs = tuple([self.slot(atom) for atom in equation.inputs])
        outputs = tuple([self.new_slot(variable) for variable in equation.outputs])
        make = _CONTROL.get(type(op))
        if make is None:
            self.steps.append(CallStep(op, inputs, outputs, equation.source))
        else:
            self.steps.append(make(op, inputs, outputs, equation, self.policy))


def slot_of(type: ArrayType, view_of: Slot | None = None) -> Slot:
    """A slot for an array of a type."""
    shape = sizes.kernel_shape(type.shape)
    return Slot(type, shape, kernel_dtype(type.dtype), view_of=view_of)


def _while(
    op: While, inputs: Sequence[Slot], outputs: Any, equation: Equation, policy: Policy
) -> Step:
    condition, body, initial = split(inputs, op.cond_count, op.body_count)
    return WhileStep(
        fuse(op.cond_program, policy),
        fuse(op.body_program, policy),
        tuple(condition),
        tuple(body),
        tuple(initial),
        outputs,
        op.max_steps,
        op,
        equation.source,
    )


def _scan(
    op: Scan, inputs: Sequence[Slot], outputs: Any, equation: Equation, policy: Policy
) -> Step:
    count, constants, initial, sequences = op.parts(inputs)
    return ScanStep(
        fuse(op.body, policy),
        tuple(constants),
        tuple(initial),
        tuple(sequences),
        outputs,
        sizes.kernel_size(op.length),
        op.reverse,
        count[0] if count else None,
        op,
        equation.source,
    )


def _branches(
    op: Cond, inputs: Sequence[Slot], outputs: Any, equation: Equation, policy: Policy
) -> Step:
    graphs = tuple([fuse(branch, policy) for branch in op.branches])
    return BranchStep(inputs[0], graphs, tuple(inputs[1:]), outputs, op, equation.source)


_CONTROL: dict[type[Primitive], Callable[..., Step]] = {
    While: _while,
    Scan: _scan,
    Cond: _branches,
}
