"""The graph of a Program: what runs on a device, step by step.

Fusing makes it of a Program; planning memory annotates it; a device renders it. A `Slot` is a
buffer, row-major and contiguous; each slot is written by one step (loops aside, which name the
slots of their carries) and read by later ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from fxarray.core.primitive import Primitive
from fxarray.core.source import Location
from fxarray.core.types import ArrayType
from fxarray.kernel import sizes
from fxarray.kernel.ir import Kernel
from fxarray.kernel.sizes import Size


@dataclass(eq=False)
class Slot:
    """One value of the graph: memory of a type.

    Args:
      type: of the array it holds.
      shape: its sizes, as kernels write them.
      dtype: the short name of its dtype, as kernels write it.
      constant: the value, for slots that are known when compiling.
      view_of: the slot whose memory this one is, read with another shape (a reshape or bitcast).
    """

    type: ArrayType
    shape: tuple[Size, ...]
    dtype: str
    constant: np.ndarray[Any, Any] | None = None
    view_of: Slot | None = None

    @property
    def size(self) -> Size:
        """In elements."""
        return sizes.product(self.shape)

    @property
    def root(self) -> Slot:
        """The slot whose memory it is."""
        slot = self
        while slot.view_of is not None:
            slot = slot.view_of
        return slot


@dataclass(eq=False)
class KernelStep:
    """Run a kernel: its input and output buffers in the order of the kernel's own."""

    kernel: Kernel
    inputs: tuple[Slot, ...]
    outputs: tuple[Slot, ...]
    source: Location | None = None


@dataclass(eq=False)
class CallStep:
    """Run one operation whole: a device's own routine where it has one, else the host's rule.

    Args:
      op: the operation.
      inputs: its operands.
      outputs: its results.
    """

    op: Primitive
    inputs: tuple[Slot, ...]
    outputs: tuple[Slot, ...]
    source: Location | None = None


@dataclass(eq=False)
class CopyStep:
    """Copy a slot's bytes to another slot of equal size."""

    source_slot: Slot
    target: Slot


@dataclass(eq=False)
class WhileStep:
    """`while condition(carry): carry = body(carry)`.

    Args:
      condition: a graph from (condition constants, carries) to one bool.
      body: a graph from (body constants, carries) to new carries.
      condition_constants: slots.
      body_constants: slots.
      initial: slots of the initial carries.
      outputs: slots of the final carries.
      max_steps: the bound on iterations, or None.
      op: the operation that it came from.
    """

    condition: Graph
    body: Graph
    condition_constants: tuple[Slot, ...]
    body_constants: tuple[Slot, ...]
    initial: tuple[Slot, ...]
    outputs: tuple[Slot, ...]
    max_steps: int | None = None
    op: Primitive | None = None
    source: Location | None = None


@dataclass(eq=False)
class ScanStep:
    """`for i in range(length): carry, y[i] = body(constants, carry, x[i])`.

    Args:
      body: a graph from (constants, carries, slices) to (new carries, slices of the results).
      constants: slots.
      initial: slots of the initial carries.
      sequences: slots whose leading axis is walked.
      outputs: slots of the final carries, then of the stacked results.
      length: the number of iterations.
      reverse: whether from the end.
      steps: a slot of one i32, the number of iterations at run time, clamped to `length`: only the
        first so many slices are walked, and the other slices of the results are zero.
    """

    body: Graph
    constants: tuple[Slot, ...]
    initial: tuple[Slot, ...]
    sequences: tuple[Slot, ...]
    outputs: tuple[Slot, ...]
    length: Size
    reverse: bool = False
    steps: Slot | None = None
    op: Primitive | None = None
    source: Location | None = None


@dataclass(eq=False)
class BranchStep:
    """`branches[index](*inputs)`; the index is clamped.

    Args:
      index: a slot of one i32.
      branches: graphs from inputs to outputs.
      inputs: slots.
      outputs: slots.
    """

    index: Slot
    branches: tuple[Graph, ...]
    inputs: tuple[Slot, ...]
    outputs: tuple[Slot, ...]
    op: Primitive | None = None
    source: Location | None = None


Step: TypeAlias = KernelStep | CallStep | CopyStep | WhileStep | ScanStep | BranchStep


@dataclass(eq=False)
class Graph:
    """A Program as steps over slots.

    Args:
      inputs: one slot per input of the Program.
      outputs: one slot per output; inputs, constants and repeated slots may be among them.
      steps: in an order that respects what they read.
      name: for reading.
    """

    inputs: tuple[Slot, ...]
    outputs: tuple[Slot, ...]
    steps: list[Step]
    name: str = "program"


def reads(step: Step) -> Sequence[Slot]:
    """The slots that a step reads."""
    match step:
        case KernelStep() | CallStep():
            return step.inputs
        case CopyStep():
            return (step.source_slot,)
        case WhileStep():
            return (*step.condition_constants, *step.body_constants, *step.initial)
        case ScanStep():
            count = () if step.steps is None else (step.steps,)
            return (*count, *step.constants, *step.initial, *step.sequences)
        case BranchStep():
            return (step.index, *step.inputs)


def writes(step: Step) -> Sequence[Slot]:
    """The slots that a step writes."""
    return (step.target,) if isinstance(step, CopyStep) else step.outputs
