"""What a graph computes, in NumPy: kernels by their interpreter, other operations by `reference`.

It is slow, and the definition that devices are tested against.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fxarray.compile.graph import (
    BranchStep,
    CallStep,
    CopyStep,
    Graph,
    KernelStep,
    ScanStep,
    Slot,
    Step,
    WhileStep,
)
from fxarray.core import dtypes
from fxarray.kernel import sizes as kernel_sizes
from fxarray.kernel.interpret import interpret

Array = np.ndarray[Any, Any]


def run_graph(
    graph: Graph, arrays: Sequence[Array], sizes: Mapping[str, int] | None = None
) -> list[Array]:
    """The results of a graph on concrete arrays.

    Args:
      graph: the graph.
      arrays: one per input.
      sizes: values of named sizes.
    """
    return _Run(dict(sizes or {})).graph(graph, arrays)


class _Run:
    def __init__(self, sizes: dict[str, int]) -> None:
        self.sizes = sizes

    def graph(self, graph: Graph, arrays: Sequence[Array]) -> list[Array]:
        memory: dict[Slot, Array] = dict(zip(graph.inputs, arrays, strict=True))
        for step in graph.steps:
            self.step(step, memory)
        return [self.read(slot, memory) for slot in graph.outputs]

    def read(self, slot: Slot, memory: dict[Slot, Array]) -> Array:
        if slot in memory:
            return memory[slot]
        if slot.constant is not None:
            return slot.constant
        assert slot.view_of is not None, "a slot is read before it is written"
        shape = [kernel_sizes.evaluate(size, self.sizes) for size in slot.shape]
        array = np.ascontiguousarray(self.read(slot.view_of, memory))
        return array.view(dtypes.physical(slot.type.dtype)).reshape(shape)

    def step(self, step: Step, memory: dict[Slot, Array]) -> None:
        def values(slots: Sequence[Slot]) -> list[Array]:
            return [self.read(slot, memory) for slot in slots]

        match step:
            case KernelStep():
                results = interpret(step.kernel, *values(step.inputs), sizes=self.sizes)
            case CallStep():
                results = list(step.op.reference(*values(step.inputs)))
            case CopyStep():
                memory[step.target] = self.read(step.source_slot, memory)
                return
            case WhileStep():
                results = self.loop(step, memory)
            case ScanStep():
                results = self.scan(step, memory)
            case BranchStep():
                index = int(self.read(step.index, memory))
                branch = step.branches[min(max(index, 0), len(step.branches) - 1)]
                results = self.graph(branch, values(step.inputs))
        memory.update(zip(step.outputs, results, strict=True))

    def loop(self, step: WhileStep, memory: dict[Slot, Array]) -> list[Array]:
        of_condition = [self.read(slot, memory) for slot in step.condition_constants]
        of_body = [self.read(slot, memory) for slot in step.body_constants]
        carry = [self.read(slot, memory) for slot in step.initial]
        steps = 0
        while self.graph(step.condition, [*of_condition, *carry])[0] and steps != step.max_steps:
            carry = self.graph(step.body, [*of_body, *carry])
            steps += 1
        return carry

    def scan(self, step: ScanStep, memory: dict[Slot, Array]) -> list[Array]:
        constants = [self.read(slot, memory) for slot in step.constants]
        carry = [self.read(slot, memory) for slot in step.initial]
        sequences = [self.read(slot, memory) for slot in step.sequences]
        length = count = kernel_sizes.evaluate(step.length, self.sizes)
        if step.steps is not None:
            count = min(max(int(self.read(step.steps, memory)), 0), length)
        stacked = [
            np.zeros(
                [kernel_sizes.evaluate(size, self.sizes) for size in slot.shape],
                dtypes.physical(slot.type.dtype),
            )
            for slot in step.outputs[len(carry) :]
        ]
        for i in range(count - 1, -1, -1) if step.reverse else range(count):
            results = self.graph(step.body, [*constants, *carry, *[x[i, ...] for x in sequences]])
            carry = results[: len(carry)]
            for whole, part in zip(stacked, results[len(carry) :], strict=True):
                whole[i] = part
        return [*carry, *stacked]
