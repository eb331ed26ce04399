"""Kernels from kernels: keeping some nodes, renumbering, renaming."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from fxarray.kernel.ir import (
    Affine,
    Bound,
    Contract,
    Iota,
    Kernel,
    Load,
    Node,
    Op,
    Part,
    Reduce,
    Scan,
    Store,
    Term,
    arguments,
)


def renumbered(node: Node, numbers: Mapping[int, int]) -> Node:
    """A node whose arguments have other positions."""

    def affine(index: Affine) -> Affine:
        if not index.values:
            return index
        return Affine(tuple([(_term(t, numbers), c) for t, c in index.terms]), index.constant)

    def bounds(given: tuple[Bound, ...]) -> tuple[Bound, ...]:
        return tuple([(affine(a), low, high) for a, low, high in given])

    match node:
        case Load():
            index = tuple(map(affine, node.index))
            return replace(node, index=index, bounds=bounds(node.bounds))
        case Store():
            index = tuple(map(affine, node.index))
            value = numbers[node.value]
            return replace(node, index=index, value=value, bounds=bounds(node.bounds))
        case Op() | Reduce() | Scan():
            return replace(node, args=tuple([numbers[a] for a in node.args]))
        case Part():
            return replace(node, arg=numbers[node.arg])
        case Contract():
            return replace(node, a=numbers[node.a], b=numbers[node.b])
        case Iota():
            return replace(node, index=affine(node.index))
        case _:
            return node


def _term(term: Term, numbers: Mapping[int, int]) -> Term:
    return numbers[term] if isinstance(term, int) else term


def needed(kernel: Kernel, wanted: Iterable[int]) -> set[int]:
    """The nodes that some nodes need, themselves included."""
    found = set(wanted)
    for number in range(len(kernel.body) - 1, -1, -1):
        if number in found:
            found.update(arguments(kernel.body[number]))
    return found


def keep(kernel: Kernel, wanted: Iterable[int]) -> Kernel:
    """The kernel with some nodes and what they need, and no axis or input that nothing names."""
    kept = sorted(needed(kernel, wanted))
    body = kernel.body
    if len(kept) < len(body):
        numbers = {old: new for new, old in enumerate(kept)}
        body = tuple([renumbered(kernel.body[old], numbers) for old in kept])
    named: set[str] = set()
    read: set[str] = set()
    written: set[str] = set()
    for old in kept:
        node: Any = kernel.body[old]
        named |= kernel.value_axes[old]
        if isinstance(node, Reduce | Contract):
            named.update(node.axes)
        if isinstance(node, Load):
            read.add(node.buffer.name)
        if isinstance(node, Store):
            written.add(node.buffer.name)
            # What an output held before is an input too, though no node reads it.
            read.update([b.alias for b in kernel.outputs if b.name == node.buffer.name and b.alias])
    return Kernel(
        kernel.name,
        tuple([(name, size) for name, size in kernel.axes if name in named]),
        tuple([buffer for buffer in kernel.inputs if buffer.name in read]),
        tuple([buffer for buffer in kernel.outputs if buffer.name in written]),
        body,
    )
