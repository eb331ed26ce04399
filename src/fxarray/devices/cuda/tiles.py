"""How a kernel is cut into tiles on a GPU: a role for each of its axes.

An axis is walked by programs of the grid ("grid"), lies whole in a tile ("block"), or is walked in
a loop over tiles ("loop"). A program has one loop at most.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from fxarray.core import dtypes
from fxarray.kernel.ir import Contract, Kernel, Node, Op, Reduce, Scan, Store
from fxarray.kernel.rewrite import renumbered
from fxarray.kernel.scalars import numpy_dtype

# A reduced axis of at most so many elements lies whole in a tile.
WHOLE_ROW = 4096
LOOP_TILE = 1024
ELEMENT_TILE = 256
COLUMN_TILE = 32
# The sides of the tiles of a matrix product, and the step along the summed axis.
PRODUCT_TILE = 32


class Unsupported(Exception):
    """The kernel has no text of this kind yet."""


@dataclass(frozen=True)
class Role:
    """What becomes of an axis.

    Args:
      kind: "grid", "block" or "loop".
      tile: positions at a time, a power of two; 1 is a scalar.
    """

    kind: str
    tile: int


def default_roles(kernel: Kernel) -> dict[str, Role]:
    """A role for each axis of a kernel whose products are those that `as_sums` leaves.

    Raises:
      Unsupported: more than one axis would need a loop.
    """
    roles: dict[str, Role] = {}
    combined: set[str] = set()
    for node in kernel.body:
        if isinstance(node, Contract):
            roles[node.axes[0]] = Role("loop", PRODUCT_TILE)
            for operand in (node.a, node.b):
                roles[free_axes(kernel, node, operand)[-1]] = Role("grid", PRODUCT_TILE)
        elif isinstance(node, Reduce):
            combined.update(node.axes)
        elif isinstance(node, Scan):
            combined.add(node.axis)
    for axis, size in kernel.axes:
        if axis in combined and axis not in roles:
            whole = isinstance(size, int) and size <= WHOLE_ROW
            roles[axis] = Role("block", _tile_of(size)) if whole else Role("loop", LOOP_TILE)
    if sum(role.kind == "loop" for role in roles.values()) > 1:
        raise Unsupported("two axes need a loop")
    lanes = _contiguous(kernel)
    tile = COLUMN_TILE if roles else ELEMENT_TILE
    for axis, _ in kernel.axes:
        roles.setdefault(axis, Role("grid", tile if axis == lanes else 1))
    return roles


def _tile_of(size: object) -> int:
    assert isinstance(size, int)
    return 1 << max(size - 1, 0).bit_length()


def _contiguous(kernel: Kernel) -> str | None:
    """The axis along which the first result lies in memory."""
    store = next(node for node in kernel.body if isinstance(node, Store))
    for axis, coefficient in store.buffer.flat(store.index).terms:
        if coefficient == 1 and isinstance(axis, str):
            return axis
    return None


def free_axes(kernel: Kernel, node: Contract, operand: int) -> list[str]:
    """The axes that one operand of a product has and the other has not, in the kernel's order."""
    other = node.b if operand == node.a else node.a
    own = kernel.value_axes[operand] - kernel.value_axes[other]
    return [axis for axis, _ in kernel.axes if axis in own]


def as_sums(kernel: Kernel) -> Kernel:
    """The kernel with products that are no matrix products for the tensor cores written as sums."""
    numbers: dict[int, int] = {}
    body: list[Node] = []

    def add(node: Node) -> int:
        body.append(node)
        return len(body) - 1

    for number, node in enumerate(kernel.body):
        moved = renumbered(node, numbers)
        if isinstance(moved, Contract) and isinstance(node, Contract) and not _dot(kernel, node):
            operands = [
                given
                if kernel.dtypes[old] == node.dtype
                else add(Op("convert", (given,), node.dtype))
                for old, given in ((node.a, moved.a), (node.b, moved.b))
            ]
            product = add(Op("mul", tuple(operands), node.dtype))
            numbers[number] = add(Reduce("sum", (product,), node.axes))
        else:
            numbers[number] = add(moved)
    return replace(kernel, body=tuple(body))


def _dot(kernel: Kernel, node: Contract) -> bool:
    """Whether a product is one of matrices of floats, over one axis."""
    kinds = {kernel.dtypes[node.a], kernel.dtypes[node.b]}
    plain = node.dtype == "f32" and len(kinds) == 1 and kinds <= {"f32", "f16", "bf16"}
    return (
        plain
        and len(node.axes) == 1
        and bool(free_axes(kernel, node, node.a) and free_axes(kernel, node, node.b))
    )


def check_supported(kernel: Kernel, roles: Mapping[str, Role]) -> None:
    """Raise Unsupported for what has no text yet."""
    for node in kernel.body:
        if isinstance(node, Reduce) and any(roles[axis].kind == "grid" for axis in node.axes):
            raise Unsupported("a reduction over an axis of the grid")
        if isinstance(node, Scan):
            looped = roles[node.axis].kind == "loop"
            if node.exclusive or (looped and (node.reverse or len(node.args) > 1)):
                raise Unsupported("prefixes of this kind")
        if isinstance(node, Store) and node.mode != "set":
            raise Unsupported("stores that combine")
    for dtype in kernel.dtypes:
        known = numpy_dtype(dtype)
        if dtypes.is_complex(known) or (dtypes.bit_width(known) < 8 and dtype != "bool"):
            raise Unsupported(f"values of {dtype}")
