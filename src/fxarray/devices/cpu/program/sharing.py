"""Kernels that differ in which part of an array they read are one kernel, given other pointers.

Loops and layers that are written out read `x[0]`, `x[1]`, ... of one array, or row after row of
stacked weights. Where all reads of an array have constants for their first indices, the kernel is
given the part from there on instead, so that it is rendered and compiled once.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from fxarray.devices.cpu.emit.types import itemsize
from fxarray.devices.cpu.native.routine import InputPointer, Routine
from fxarray.kernel import sizes
from fxarray.kernel.ir import Affine, Buffer, Kernel, Load, Node


class Shared(NamedTuple):
    """A kernel that reads parts of what another one reads.

    Args:
      kernel: the kernel.
      offsets: for each input, where the part begins, in bytes.
    """

    kernel: Kernel
    offsets: tuple[int, ...]

    def placed(self, routine: Routine) -> Routine:
        """This kernel's routine as one of the kernel that it was made of."""
        if not any(self.offsets):
            return routine
        words = tuple(
            [
                replace(word, offset=word.offset + self.offsets[word.number])
                if isinstance(word, InputPointer)
                else word
                for word in routine.words
            ]
        )
        return replace(routine, words=words)


def shared(kernel: Kernel) -> Shared:
    """The kernel with inputs that begin where it reads first."""
    loads: dict[str, list[Load]] = {}
    for node in kernel.body:
        if isinstance(node, Load):
            loads.setdefault(node.buffer.name, []).append(node)
    aliases = {buffer.alias for buffer in kernel.outputs}
    parts: dict[str, _Part] = {}
    offsets: list[int] = []
    for buffer in kernel.inputs:
        known = loads.get(buffer.name, [])
        part = None if buffer.name in aliases or not known else _part(buffer, known)
        offsets.append(0 if part is None else part.offset)
        if part is not None:
            parts[buffer.name] = part
    if not parts:
        return Shared(replace(kernel, name="kernel"), tuple(offsets))
    body: list[Node] = [
        parts[node.buffer.name].load(node)
        if isinstance(node, Load) and node.buffer.name in parts
        else node
        for node in kernel.body
    ]
    inputs = tuple([parts[b.name].buffer if b.name in parts else b for b in kernel.inputs])
    return Shared(replace(kernel, name="kernel", inputs=inputs, body=tuple(body)), tuple(offsets))


class _Part(NamedTuple):
    """A part of a buffer.

    Args:
      buffer: the part.
      offset: where it begins, in bytes.
      dropped: how many of the first dimensions it does not have.
      first: the index at which it begins along the next one.
    """

    buffer: Buffer
    offset: int
    dropped: int
    first: int

    def load(self, node: Load) -> Load:
        index = node.index[self.dropped :]
        if self.first:
            index = (index[0] + Affine((), -self.first), *index[1:])
        return replace(node, buffer=self.buffer, index=index)


def _part(buffer: Buffer, loads: list[Load]) -> _Part | None:
    """The part of a buffer that begins where it is read; None where that is all of it."""
    shape = list(buffer.shape)
    if not all(isinstance(size, int) for size in shape) or any(node.bounds for node in loads):
        return None
    offset = dropped = first = 0
    while shape:
        places = [_constant(node.index[dropped]) for node in loads]
        known = [place for place in places if place is not None]
        if len(known) != len(places):
            break
        low, high = min(known), max(known)
        rest = sizes.product(shape[1:])
        assert isinstance(rest, int)
        offset += low * rest
        if low != high:
            first, shape[0] = low, high - low + 1
            break
        del shape[0]
        dropped += 1
    if tuple(shape) == buffer.shape:
        return None
    part = replace(buffer, shape=tuple(shape))
    return _Part(part, offset * itemsize(buffer.dtype), dropped, first)


def _constant(index: Affine) -> int | None:
    known = index.constant
    return known if not index.terms and isinstance(known, int) else None
