"""From a kernel with one Contract to the roles of its axes.

Rows are axes of the first operand alone, columns of the second alone, batches those of both, and
the sum's axes are named by the Contract. Each role may have several axes; which come first is
decided here, for all pieces of the product alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from fxarray.kernel import sizes
from fxarray.kernel.ir import Affine, Contract, Iota, Kernel, Load, Op, Reduce, Scan, Store
from fxarray.kernel.rewrite import needed
from fxarray.kernel.sizes import Size

# Neighbours in memory that are worth loading as vectors.
_LONG = 8


@dataclass(frozen=True)
class Run:
    """Axes walked as one: the innermost counts, the others stay 0.

    Args:
      axis: the axis that counts.
      size: the size of all together.
      others: the axes that stay 0.
    """

    axis: str
    size: Size
    others: tuple[str, ...] = ()


Group = tuple[Run, ...]


@dataclass(frozen=True)
class Product:
    """A kernel that is a product with a prologue and an epilogue.

    Args:
      kernel: the kernel.
      number: of the Contract node.
      a, b: the values that are multiplied; the columns of `b` are the lanes of the result.
      batch, rows, columns, depth: the axes of each role, the outermost first; those of `depth` are
        already walked as one where both operands allow it.
      stores: the nodes that write results.
    """

    kernel: Kernel
    number: int
    a: int
    b: int
    batch: Group
    rows: Group
    columns: Group
    depth: Group
    stores: tuple[int, ...]

    @property
    def node(self) -> Contract:
        node = self.kernel.body[self.number]
        assert isinstance(node, Contract)
        return node


def total(group: Group) -> Size:
    """The size of a group."""
    return sizes.product([run.size for run in group])


def recognise(kernel: Kernel) -> Product | None:
    """The product that a kernel is, or None."""
    body = kernel.body
    contracts = [i for i, node in enumerate(body) if isinstance(node, Contract)]
    if len(contracts) != 1 or any(isinstance(node, Reduce | Scan) for node in body):
        return None
    (number,) = contracts
    node = body[number]
    assert isinstance(node, Contract)
    result = kernel.value_axes[number]
    stores = tuple([i for i, n in enumerate(body) if isinstance(n, Store)])
    for i in stores:
        store = body[i]
        assert isinstance(store, Store)
        # Every result is written at a position of the product; what is written is one of its
        # values, or at least one per position.
        if store.mode != "set" or kernel.value_axes[i] != result:
            return None
    summed = set(node.axes)
    a_axes, b_axes = kernel.value_axes[node.a], kernel.value_axes[node.b]
    if needed(kernel, [node.a, node.b]) & set(stores):
        return None
    batch = (a_axes & b_axes) - summed
    rows, columns = a_axes - summed - batch, b_axes - summed - batch
    a, b = node.a, node.b
    if _contiguous_in(kernel, stores, rows) and not _contiguous_in(kernel, stores, columns):
        rows, columns, a, b = columns, rows, b, a
    order = _strides(kernel, stores)
    depth_axes = _depth_order(kernel, a, b, summed)
    operands = needed(kernel, [a, b])
    return Product(
        kernel,
        number,
        a,
        b,
        _sorted(kernel, batch, order),
        _sorted(kernel, rows, order),
        _sorted(kernel, columns, order),
        collapse(kernel, tuple([Run(x, kernel.sizes[x]) for x in depth_axes]), operands),
        stores,
    )


def _contiguous_in(kernel: Kernel, stores: Sequence[int], axes: Iterable[str]) -> bool:
    """Whether the first store's neighbours in memory are neighbours along one of the axes."""
    store = kernel.body[stores[0]]
    assert isinstance(store, Store)
    index = store.buffer.flat(store.index)
    return any(index.coefficient(x) == 1 and kernel.sizes[x] != 1 for x in axes)


def _strides(kernel: Kernel, stores: Sequence[int]) -> dict[str, int]:
    """The distance of neighbours along each axis in the first store."""
    store = kernel.body[stores[0]]
    assert isinstance(store, Store)
    index = store.buffer.flat(store.index)
    return {x: abs(sizes.typical(index.coefficient(x))) for x in index.axes}


def _sorted(kernel: Kernel, axes: Iterable[str], strides: dict[str, int]) -> Group:
    named = sorted(axes, key=lambda x: (-strides.get(x, 0), x))
    return tuple([Run(x, kernel.sizes[x]) for x in named])


def loads(kernel: Kernel, nodes: Iterable[int]) -> list[Load]:
    """The loads among nodes."""
    return [node for i in nodes if isinstance(node := kernel.body[i], Load)]


def _depth_order(kernel: Kernel, a: int, b: int, summed: Iterable[str]) -> list[str]:
    """The axes of the sum, the outermost first.

    Innermost is a long one along which loads are contiguous; else one whose bounds no other axis
    decides (those of a window do, the features of a convolution do not); the others by strides.
    """
    found = loads(kernel, needed(kernel, [a, b]))

    def rank(axis: str) -> tuple[bool, bool, int, int, str]:
        bounded = any(axis in affine.axes for load in found for affine, _, _ in load.bounds)
        steps = [
            abs(sizes.typical(c))
            for load in found
            if (c := load.buffer.flat(load.index).coefficient(axis)) != 0
        ]
        ones = sum(step == 1 for step in steps)
        long = ones > 0 and sizes.typical(kernel.sizes[axis]) >= _LONG
        return (long, not bounded, ones, -max(steps, default=0), axis)

    return sorted(summed, key=rank)


def collapse(kernel: Kernel, group: Group, nodes: Iterable[int]) -> Group:
    """Neighbouring axes walked as one where all nodes see them so; axes of size 1 left out."""
    numbers = list(nodes)
    result: list[Run] = []
    ones: list[str] = []
    for run in group:
        if run.size == 1:
            ones.extend((run.axis, *run.others))
        elif result and _joins(kernel, result[-1], run, numbers):
            outer = result.pop()
            size = sizes.multiply(outer.size, run.size)
            result.append(Run(run.axis, size, (*outer.others, outer.axis, *run.others)))
        else:
            result.append(run)
    if not result:
        return (Run(ones[0], 1, tuple(ones[1:])),) if ones else ()
    last = result[-1]
    result[-1] = Run(last.axis, last.size, (*last.others, *ones))
    return tuple(result)


def _joins(kernel: Kernel, outer: Run, inner: Run, numbers: Sequence[int]) -> bool:
    for i in numbers:
        node = kernel.body[i]
        indices: list[Affine] = []
        if isinstance(node, Iota):
            indices = [node.index]
        elif isinstance(node, Load | Store):
            if any(x in affine.axes for affine, _, _ in node.bounds for x in _axes(outer, inner)):
                return False
            indices = [node.buffer.flat(node.index)]
        for index in indices:
            step = sizes.multiply(index.coefficient(inner.axis), inner.size)
            if index.coefficient(outer.axis) != step:
                return False
    return True


def _axes(outer: Run, inner: Run) -> tuple[str, str]:
    return outer.axis, inner.axis


def is_plain(kernel: Kernel, value: int) -> bool:
    """Whether an operand is read as it lies in memory."""
    node = kernel.body[value]
    return isinstance(node, Load) and not node.bounds and not any(i.values for i in node.index)


def operations(kernel: Kernel, wanted: Iterable[int], given: int) -> int:
    """Scalar operations per result in the epilogue."""
    return sum(isinstance(kernel.body[i], Op) for i in needed(kernel, wanted) if i > given)
