"""What a device decides about fusing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fxarray.core.primitive import Primitive
from fxarray.kernel.ir import Kernel

# Operations that a kernel would compute by visiting the whole result, while a device's own routine
# touches only what changes, in place where the operand dies.
_IN_PLACE = frozenset(["dynamic_update_slice"])


def changes_in_place(op: Primitive) -> bool:
    """Whether an operation is better run whole than as part of a kernel, on any device."""
    return op.name in _IN_PLACE


@dataclass(frozen=True)
class Policy:
    """What a device can and wants to render.

    Args:
      can_render: whether the device renders a kernel with a Contract (None: any); without a
        Contract it always must.
      runs_whole: whether an operation is left to a routine of the device although it has a lower
        rule.
      kernel_operations: bound on the scalar operations of a kernel.
      kernel_buffers: bound on the buffers of a kernel.
      row_elements: bound on the elements of a row that is read again after it was reduced: it
        should stay in the cache.
      large: elements from which on memory traffic counts more than the number of kernels.
    """

    can_render: Callable[[Kernel], bool] | None = None
    runs_whole: Callable[[Primitive], bool] = changes_in_place
    kernel_operations: int = 160
    kernel_buffers: int = 28
    row_elements: int = 1 << 17
    large: int = 1 << 15


DEFAULT_POLICY = Policy()
