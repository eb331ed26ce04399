"""Kernels cut in two where one schedule cannot compute all: one leaves what the other reads.

The same rewriting serves a value that is kept in memory for a later stage, and a reduction whose
parts are computed apart and combined in a later stage.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from fxarray.kernel.build import Builder
from fxarray.kernel.combiners import COMBINERS
from fxarray.kernel.ir import (
    Affine,
    Buffer,
    Kernel,
    Node,
    Part,
    Reduce,
    Store,
)
from fxarray.kernel.rewrite import keep, needed, renumbered
from fxarray.kernel.sizes import Size

# What takes the place of a node: from a builder and the node's arguments to its results.
Replacement = Callable[[Builder, tuple[int, ...]], tuple[int, ...]]


def rebuilt(
    kernel: Kernel, replacements: Mapping[int, Replacement], buffers: Iterable[Buffer] = ()
) -> Kernel:
    """The kernel with some nodes replaced, `buffers` being further inputs."""
    builder = Builder(kernel.name, dict(kernel.axes))
    builder.inputs = [*kernel.inputs, *buffers]
    builder.outputs = list(kernel.outputs)
    numbers: dict[int, int] = {}
    results: dict[int, tuple[int, ...]] = {}
    for old, node in enumerate(kernel.body):
        if isinstance(node, Part) and node.arg in results:
            numbers[old] = results[node.arg][node.which]
        elif old in replacements:
            arguments = tuple([numbers[argument] for argument in _args(node)])
            results[old] = replacements[old](builder, arguments)
            numbers[old] = results[old][0]
        else:
            numbers[old] = builder.add(renumbered(node, numbers))
    kept = Kernel(
        kernel.name,
        tuple(builder.axes.items()),
        tuple(builder.inputs),
        tuple(builder.outputs),
        tuple(builder.body),
    )
    return keep(kept, stores_of(kept))


def _args(node: Any) -> tuple[int, ...]:
    return node.args


def stores_of(kernel: Kernel) -> list[int]:
    """The stores of a kernel."""
    return [number for number, node in enumerate(kernel.body) if isinstance(node, Store)]


def with_stores(kernel: Kernel, stores: Iterable[int]) -> Kernel:
    """The kernel with some of its stores only."""
    return keep(kernel, stores)


def ordered_axes(kernel: Kernel, number: int) -> tuple[str, ...]:
    """The axes of a value in the order of the kernel."""
    return tuple([name for name, _ in kernel.axes if name in kernel.value_axes[number]])


def state_dtypes(kernel: Kernel, number: int) -> tuple[str, ...]:
    """The dtypes of the results of a node."""
    node: Any = kernel.body[number]
    if isinstance(node, Reduce) or hasattr(node, "combiner"):
        return tuple([kernel.dtypes[argument] for argument in node.args])
    return (kernel.dtypes[number],)


def materialised(
    kernel: Kernel, number: int, buffer: Callable[[tuple[Size, ...], str], Buffer]
) -> tuple[Kernel, Kernel]:
    """A kernel that leaves the results of a node in memory, and one that reads them there.

    Args:
      kernel: the kernel.
      number: the node.
      buffer: makes a buffer of a shape and dtype.
    """
    axes = ordered_axes(kernel, number)
    shape = tuple([kernel.sizes[axis] for axis in axes])
    index = tuple([Affine.of(axis) for axis in axes])
    buffers = [buffer(shape, dtype) for dtype in state_dtypes(kernel, number)]
    wanted = sorted(needed(kernel, [number]))
    numbers = {old: new for new, old in enumerate(wanted)}
    body: list[Node] = [renumbered(kernel.body[old], numbers) for old in wanted]
    own = numbers[number]
    for state, target in enumerate(buffers):
        value = own
        if len(buffers) > 1:
            body.append(Part(own, state))
            value = len(body) - 1
        body.append(Store(target, index, value))
    whole = replace(kernel, outputs=tuple(buffers), body=tuple(body))
    first = keep(whole, stores_of(whole))

    def read(builder: Builder, _: tuple[int, ...]) -> tuple[int, ...]:
        return tuple([builder.load(target, index) for target in buffers])

    return first, rebuilt(kernel, {number: read}, buffers)


def combined_parts(
    kernel: Kernel,
    partials: Mapping[int, tuple[Buffer, ...]],
    kept: Mapping[int, tuple[str, ...]],
    parts: int,
) -> Kernel:
    """The kernel with reductions replaced by the combination of what their parts have left."""

    def replacement(number: int) -> Replacement:
        node: Any = kernel.body[number]

        def combine(builder: Builder, _: tuple[int, ...]) -> tuple[int, ...]:
            if parts == 1:
                index: tuple[Any, ...] = (0, *kept[number])
                return tuple([builder.load(b, index) for b in partials[number]])
            axis = f"%parts{parts}"
            builder.axes[axis] = parts
            index = (axis, *kept[number])
            loads = [builder.load(b, index) for b in partials[number]]
            return builder.reduce(node.combiner, (axis,), *loads)

        return combine

    buffers = [buffer for number in partials for buffer in partials[number]]
    return rebuilt(kernel, {number: replacement(number) for number in partials}, buffers)


def nested(kernel: Kernel, number: int, inner: frozenset[str]) -> Kernel:
    """The kernel with one reduction made two: over some of its axes first, then over the others."""
    node: Any = kernel.body[number]
    first = tuple([axis for axis in node.axes if axis in inner])
    rest = tuple([axis for axis in node.axes if axis not in inner])

    def reduce(builder: Builder, args: tuple[int, ...]) -> tuple[int, ...]:
        return builder.reduce(node.combiner, rest, *builder.reduce(node.combiner, first, *args))

    return rebuilt(kernel, {number: reduce})


def is_commutative(node: Any) -> bool:
    """Whether a reduction may be taken apart along its axes."""
    return COMBINERS[node.combiner].commutative
