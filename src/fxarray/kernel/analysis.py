"""What renderers ask of a kernel before they choose an order of computation.

All answers follow from the nodes; nothing here decides anything.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from functools import lru_cache
from typing import TypeAlias

from fxarray.kernel import sizes
from fxarray.kernel.ir import (
    Affine,
    Kernel,
    Load,
    Node,
    Op,
    Part,
    Reduce,
    Scan,
    Store,
    arguments,
    direct_axes,
)
from fxarray.kernel.sizes import Size

Axes: TypeAlias = frozenset[str]

# What an operation costs next to an addition, in elements of a vector.
_WEIGHTS: dict[str, float] = {
    **dict.fromkeys(["div", "sqrt", "rsqrt", "cbrt", "rem"], 4),
    **dict.fromkeys(["exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "logistic"], 14),
    **dict.fromkeys(["tanh", "sin", "cos", "erf", "sinh", "cosh", "atan", "asin", "acos"], 18),
    **dict.fromkeys(["tan", "pow", "erfc", "atan2", "asinh", "acosh", "atanh", "erf_inv"], 36),
    **dict.fromkeys(["lgamma", "digamma"], 80),
}


def weight(node: Node) -> float:
    """What a node costs per element, an addition being 1."""
    if isinstance(node, Op):
        return _WEIGHTS.get(node.op, 1.0)
    if isinstance(node, Load):
        return 1.0 if not any(index.values for index in node.index) else 8.0
    return 1.0 if isinstance(node, Reduce | Scan | Store) else 0.0


def uses(kernel: Kernel, number: int) -> Axes:
    """The axes over which a node is evaluated: its own, and those that it reduces."""
    node = kernel.body[number]
    read = [kernel.value_axes[a] for a in arguments(node)]
    return frozenset(direct_axes(node)).union(*read)


def levels(kernel: Kernel, row: AbstractSet[str]) -> list[int]:
    """The pass over the row axes in which each value is first known.

    What reads a reduction over a row axis comes one pass after it.
    """
    found: list[int] = []
    for node in kernel.body:
        level = 0
        for argument in arguments(node):
            source = kernel.body[argument]
            ends = isinstance(source, Reduce) and not row.isdisjoint(source.axes)
            level = max(level, found[argument] + ends)
        found.append(level)
    return found


def late(kernel: Kernel, reductions: Iterable[int]) -> set[int]:
    """The values that wait for any of these reductions."""
    given = set(reductions)
    found: set[int] = set()
    for number, node in enumerate(kernel.body):
        if any(a in found or a in given for a in arguments(node)):
            found.add(number)
    return found


def needed_again(kernel: Kernel, reductions: Iterable[int]) -> bool:
    """Whether what one of these reductions removed comes back: a value of it has the axis again."""
    given = set(reductions)
    gone: list[Axes] = []
    for number, node in enumerate(kernel.body):
        removed: Axes = frozenset().union(*[gone[a] for a in arguments(node)])
        if removed & kernel.value_axes[number]:
            return True
        if number in given and isinstance(node, Reduce):
            removed |= frozenset(node.axes)
        gone.append(removed)
    return False


def flat(node: Load | Store) -> Affine:
    """The offset in elements of what a node reads or writes."""
    return node.buffer.flat(node.index)


def elements(kernel: Kernel, axes: Iterable[str]) -> int:
    """How many positions there are on some axes, at a typical size where one is variable."""
    total = 1
    for axis in axes:
        total *= sizes.typical(kernel.sizes[axis])
    return total


def work(kernel: Kernel) -> float:
    """The operations of a kernel, weighted, at typical sizes."""
    total = 0.0
    for number, node in enumerate(kernel.body):
        if not isinstance(node, Part):
            total += weight(node) * elements(kernel, uses(kernel, number))
    return total


@lru_cache(maxsize=256)
def shared_products(kernel: Kernel) -> frozenset[int]:
    """The products that several nodes read, or one node twice.

    They are rounded once and for all: whether such a product were part of an fma would depend on
    where a renderer ends blocks of code. So a product is contracted only into its one reader.
    """
    products = {
        n for n, node in enumerate(kernel.body) if isinstance(node, Op) and node.op == "mul"
    }
    read: set[int] = set()
    shared: set[int] = set()
    for node in kernel.body:
        for argument in arguments(node):
            (shared if argument in read else read).add(argument)
    return frozenset(shared & products)


def flops(kernel: Kernel) -> Size:
    """The floating-point and integer operations of a kernel, each counted once."""
    total: Size = 0
    for number, node in enumerate(kernel.body):
        if isinstance(node, Op | Reduce | Scan):
            extent = sizes.product([kernel.sizes[a] for a in sorted(uses(kernel, number))])
            total = sizes.add(total, extent)
    return total
