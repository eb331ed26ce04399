"""One form for kernels that mean the same loops: flat buffers, no axes of size 1, few axes.

- Buffers have one dimension, so that an access is one index expression.
- Axes of size 1 are gone, and with them the reductions and scans over nothing else.
- Two axes that every access walks like one are one axis.
- Scans go forwards: an axis that is scanned from its end is turned round, loads and stores with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from fxarray.kernel import sizes
from fxarray.kernel.analysis import uses
from fxarray.kernel.combiners import COMBINERS
from fxarray.kernel.interpret import identity_value
from fxarray.kernel.ir import (
    Affine,
    Bound,
    Buffer,
    Const,
    Iota,
    Kernel,
    Load,
    Node,
    Op,
    Part,
    Reduce,
    Scan,
    Store,
)
from fxarray.kernel.rewrite import keep, renumbered
from fxarray.kernel.sizes import Size


def canonical(kernel: Kernel) -> Kernel:
    """The kernel in this form."""
    kernel = flattened(kernel)
    kernel = without_unit_axes(kernel)
    kernel = merged(kernel)
    return forwards(kernel)


def index_map(node: Node, changes: Mapping[Any, Affine]) -> Node:
    """A node with index terms replaced."""

    def bounds(given: tuple[Bound, ...]) -> tuple[Bound, ...]:
        return tuple([(affine.replace(changes), low, high) for affine, low, high in given])

    match node:
        case Load() | Store():
            index = tuple([affine.replace(changes) for affine in node.index])
            return replace(node, index=index, bounds=bounds(node.bounds))
        case Iota():
            return replace(node, index=node.index.replace(changes))
        case _:
            return node


def with_buffers(kernel: Kernel, buffers: Mapping[str, Buffer], body: tuple[Node, ...]) -> Kernel:
    """The kernel with other nodes and buffers of the same names."""
    return replace(
        kernel,
        inputs=tuple([buffers.get(b.name, b) for b in kernel.inputs]),
        outputs=tuple([buffers.get(b.name, b) for b in kernel.outputs]),
        body=body,
    )


def flattened(kernel: Kernel) -> Kernel:
    """All buffers with one dimension, but those that stores combine into.

    Of these the dimensions tell which positions keep apart.
    """
    combined = {n.buffer.name for n in kernel.body if isinstance(n, Store) and n.mode != "set"}
    buffers = {
        buffer.name: replace(buffer, shape=(sizes.product(buffer.shape),))
        for buffer in (*kernel.inputs, *kernel.outputs)
        if buffer.name not in combined
    }
    body: list[Node] = []
    for node in kernel.body:
        if isinstance(node, Load | Store) and node.buffer.name in buffers:
            index = (node.buffer.flat(node.index),)
            node = replace(node, buffer=buffers[node.buffer.name], index=index)
        body.append(node)
    return with_buffers(kernel, buffers, tuple(body))


def without_unit_axes(kernel: Kernel) -> Kernel:
    """Without axes of size 1."""
    unit = {name for name, size in kernel.axes if size == 1}
    if not unit:
        return kernel
    changes: dict[Any, Affine] = {axis: Affine() for axis in unit}
    numbers: dict[int, int] = {}
    parts: dict[int, tuple[int, ...]] = {}
    body: list[Node] = []

    def add(node: Node) -> int:
        body.append(node)
        return len(body) - 1

    for old, node in enumerate(kernel.body):
        if isinstance(node, Part) and node.arg in parts:
            numbers[old] = parts[node.arg][node.which]
            continue
        changed = index_map(renumbered(node, numbers), changes)
        results: tuple[int, ...] | None = None
        if isinstance(changed, Reduce) and unit.intersection(changed.axes):
            axes = tuple([axis for axis in changed.axes if axis not in unit])
            if axes:
                changed = replace(changed, axes=axes)
            else:
                results = changed.args
        elif isinstance(changed, Scan) and changed.axis in unit:
            results = changed.args
            if changed.exclusive:
                # The identities, on all axes that the scan has.
                names = COMBINERS[changed.combiner].identities
                dtypes = [kernel.dtypes[a] for a in _args(node)]
                truth = add(Const(True, "bool"))
                starts = [
                    add(Const(identity_value(n, d).item(), d))
                    for n, d in zip(names, dtypes, strict=True)
                ]
                results = tuple(
                    [
                        add(Op("select", (truth, start, arg), dtype))
                        for start, arg, dtype in zip(starts, changed.args, dtypes, strict=True)
                    ]
                )
        if results is None:
            numbers[old] = add(changed)
        elif len(results) == 1:
            numbers[old] = results[0]
        else:
            parts[old] = results
    axes = tuple([(name, size) for name, size in kernel.axes if name not in unit])
    result = replace(kernel, axes=axes, body=tuple(body))
    return keep(result, [n for n, node in enumerate(body) if isinstance(node, Store)])


def _args(node: Any) -> tuple[int, ...]:
    return node.args


def merged(kernel: Kernel) -> Kernel:
    """Axes that are walked like one made one."""
    while (pair := _mergeable(kernel)) is not None:
        kernel = _merge(kernel, *pair)
    return kernel


def _mergeable(kernel: Kernel) -> tuple[str, str] | None:
    """Two axes that can be one; neighbours, if a store depends on the order of the axes."""
    free = all(node.mode == "set" for node in kernel.body if isinstance(node, Store))
    names = [name for name, _ in kernel.axes]
    for place, outer in enumerate(names):
        for inner in names if free else names[place + 1 : place + 2]:
            if outer != inner and _walk_as_one(kernel, outer, inner):
                return outer, inner
    return None


def _walk_as_one(kernel: Kernel, outer: str, inner: str) -> bool:
    size = kernel.sizes[inner]
    pair = {outer, inner}
    for node in kernel.body:
        match node:
            case Load() | Store():
                for affine in node.index:
                    if affine.coefficient(outer) != sizes.multiply(affine.coefficient(inner), size):
                        return False
                if any(not pair.isdisjoint(affine.axes) for affine, _, _ in node.bounds):
                    return False
            case Iota():
                step = sizes.multiply(node.index.coefficient(inner), size)
                if node.index.coefficient(outer) != step:
                    return False
            case Reduce():
                if len(pair.intersection(node.axes)) == 1:
                    return False
            case Scan():
                if node.axis in pair:
                    return False
            case _:
                pass
    return True


def _merge(kernel: Kernel, outer: str, inner: str) -> Kernel:
    size = sizes.multiply(kernel.sizes[outer], kernel.sizes[inner])
    changes: dict[Any, Affine] = {outer: Affine()}
    body: list[Node] = []
    for node in kernel.body:
        if isinstance(node, Reduce) and outer in node.axes:
            node = replace(node, axes=tuple([axis for axis in node.axes if axis != outer]))
        body.append(index_map(node, changes))
    axes: list[tuple[str, Size]] = []
    for name, known in kernel.axes:
        if name != outer:
            axes.append((name, size if name == inner else known))
    return replace(kernel, axes=tuple(axes), body=tuple(body))


def forwards(kernel: Kernel) -> Kernel:
    """Axes that all scans walk from the end turned round."""
    scans = [node for node in kernel.body if isinstance(node, Scan)]
    for axis, size in kernel.axes:
        along = [node for node in scans if node.axis == axis]
        if not along or not all(node.reverse for node in along) or _ordered(kernel, axis):
            continue
        last = sizes.subtract(size, 1)
        changes: dict[Any, Affine] = {axis: Affine(((axis, -1),), last)}
        body = tuple(
            [
                replace(node, reverse=False)
                if isinstance(node, Scan) and node.axis == axis
                else index_map(node, changes)
                for node in kernel.body
            ]
        )
        kernel = replace(kernel, body=body)
    return kernel


def _ordered(kernel: Kernel, axis: str) -> bool:
    """Whether something else depends on the direction of an axis."""
    for number, node in enumerate(kernel.body):
        if isinstance(node, Store) and node.mode != "set" and axis in uses(kernel, number):
            return True
        ordered = isinstance(node, Reduce) and not COMBINERS[node.combiner].commutative
        if isinstance(node, Reduce) and ordered and axis in node.axes:
            return True
    return False
