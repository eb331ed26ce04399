"""What a device decides about fusing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fxarray.core.primitive import Primitive
from fxarray.core.types import ArrayType
from fxarray.kernel import sizes
from fxarray.kernel.ir import Kernel

# From this size on, an array of which a part is replaced is changed in place, by a routine that
# touches nothing else; a kernel would visit all of it.
_LARGE = 256


def changes_in_place(op: Primitive, inputs: Sequence[ArrayType]) -> bool:
    """Whether an operation is better run whole than as part of a kernel, on any device."""
    if op.name != "dynamic_update_slice":
        return False
    return sizes.typical(sizes.product(sizes.kernel_shape(inputs[0].shape))) > _LARGE


@dataclass(frozen=True)
class Policy:
    """What a device can and wants to render.

    Args:
      can_render: whether the device renders a kernel with a Contract (None: any); without a
        Contract it always must.
      runs_whole: whether an operation on operands of some types is left to a routine of the device
        although it has a lower rule.
      kernel_operations: bound on the scalar operations of a kernel.
      kernel_buffers: bound on the buffers of a kernel.
      row_elements: bound on the elements of a row that is read again after it was reduced: it
        should stay in the cache.
      recomputed_bytes: size from which on a matrix between products (attention's) is computed again
        by its gradient, and never stored.
      large: elements from which on memory traffic counts more than the number of kernels.
    """

    can_render: Callable[[Kernel], bool] | None = None
    runs_whole: Callable[[Primitive, Sequence[ArrayType]], bool] = changes_in_place
    kernel_operations: int = 160
    kernel_buffers: int = 28
    row_elements: int = 1 << 17
    recomputed_bytes: int = 1 << 26
    large: int = 1 << 15


DEFAULT_POLICY = Policy()
