"""Products whose summed axes are those of nothing else.

A lower rule shares axes wherever sizes allow, also between the sum of attention's first product and
the columns of its second. That is legal, but the axis would then mean two things to a device that
plans loops and tiles by axes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from fxarray.kernel.ir import Affine, Contract, Iota, Kernel, Load, Node, Reduce, Scan, Store
from fxarray.kernel.rewrite import keep, needed, renumbered


def with_own_axes(kernel: Kernel) -> Kernel:
    """The kernel, each of its products summing over axes that no result is stored along."""
    stored: set[str] = set()
    for node in kernel.body:
        if isinstance(node, Store):
            stored.update(axis for position in node.index for axis in position.axes)
    if not any(isinstance(n, Contract) and not stored.isdisjoint(n.axes) for n in kernel.body):
        return kernel
    axes = dict(kernel.axes)
    body: list[Node] = []
    numbers: dict[int, int] = {}
    for place, node in enumerate(kernel.body):
        if isinstance(node, Contract) and not stored.isdisjoint(node.axes):
            names = {axis: _fresh(axes, axis) for axis in node.axes if axis in stored}
            inside = dict(numbers)
            for value in sorted(needed(kernel, [node.a, node.b])):
                if not kernel.value_axes[value].isdisjoint(names):
                    body.append(_renamed(renumbered(kernel.body[value], inside), names))
                    inside[value] = len(body) - 1
            node = replace(node, axes=tuple([names.get(axis, axis) for axis in node.axes]))
            body.append(renumbered(node, inside))
        else:
            body.append(renumbered(node, numbers))
        numbers[place] = len(body) - 1
    changed = Kernel(kernel.name, tuple(axes.items()), kernel.inputs, kernel.outputs, tuple(body))
    wanted = [number for number, node in enumerate(body) if isinstance(node, Store)]
    return keep(changed, wanted)


def _fresh(axes: dict[str, Any], axis: str) -> str:
    name = next(f"k{n}" for n in range(len(axes) + 1) if f"k{n}" not in axes)
    axes[name] = axes[axis]
    return name


def _renamed(node: Node, names: Mapping[str, str]) -> Node:
    changes: Any = {axis: Affine.of(name) for axis, name in names.items()}

    def affine(index: Affine) -> Affine:
        return index.replace(changes)

    match node:
        case Load():
            index = tuple(map(affine, node.index))
            bounds = tuple([(affine(a), low, high) for a, low, high in node.bounds])
            return replace(node, index=index, bounds=bounds)
        case Iota():
            return replace(node, index=affine(node.index))
        case Reduce() | Contract():
            return replace(node, axes=tuple([names.get(axis, axis) for axis in node.axes]))
        case Scan():
            return replace(node, axis=names.get(node.axis, node.axis))
        case _:
            return node
