"""Blocks of memory, and the plan that says which block each slot of a graph has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fxarray.compile.arena import Interval, assign, check
from fxarray.compile.graph import Slot
from fxarray.core import dtypes
from fxarray.kernel import sizes
from fxarray.kernel.sizes import Size

ALIGNMENT = 64


@dataclass(eq=False)
class Block:
    """Memory that one or more slots use.

    Args:
      kind: "temporary" (in the arena), "input", "output", "constant", or "slice", which is part of
        another block that moves on with each step of a scan.
      bytes: its size.
      number: which input or output.
      array: a constant's value.
      whole: for slices, the block that they are of.
      first: when it is first written.
      last: when it is last read.
    """

    kind: str
    bytes: Size
    number: int = 0
    array: np.ndarray[Any, Any] | None = None
    whole: Block | None = None
    first: int = 0
    last: int = 0
    joined: Block | None = field(default=None, repr=False)

    def find(self) -> Block:
        """The block that this one became part of, or itself."""
        block = self
        while block.joined is not None:
            block = block.joined
        return block


@dataclass(frozen=True)
class Move:
    """Copy a block to another of the same size."""

    source: Block
    target: Block

    @property
    def is_needed(self) -> bool:
        """Whether the two are not one after all."""
        return self.source.find() is not self.target.find()


@dataclass(eq=False)
class Scope:
    """The plan of one graph, in the place where it stands.

    Args:
      blocks: of each root slot.
      inner: the plans of a control-flow step's graphs, by the step's position.
      before: copies that begin a step: of initial carries to where the loop has them.
      after: copies that end each graph of a step, by the step's position.
      parts: the slices of a scan's stacked results, by the step's position.
      scratch: a step's scratch memory, by the step's position.
    """

    blocks: dict[Slot, Block] = field(default_factory=dict[Slot, Block])
    inner: dict[int, tuple[Scope, ...]] = field(default_factory=dict[int, "tuple[Scope, ...]"])
    before: dict[int, list[Move]] = field(default_factory=dict[int, list[Move]])
    after: dict[int, tuple[list[Move], ...]] = field(
        default_factory=dict[int, "tuple[list[Move], ...]"]
    )
    parts: dict[int, list[Block]] = field(default_factory=dict[int, list[Block]])
    scratch: dict[int, Block] = field(default_factory=dict[int, Block])

    def block(self, slot: Slot) -> Block:
        """Where a slot's memory is."""
        return self.blocks[slot.root].find()


@dataclass(frozen=True)
class Layout:
    """Places in the arena, for certain sizes.

    Args:
      offsets: of each temporary block, in bytes.
      arena: the bytes of the arena.
    """

    offsets: Mapping[Block, int]
    arena: int


@dataclass(eq=False)
class Plan:
    """The memory plan of a graph.

    Args:
      top: the plan of the outermost graph.
      outputs: for each output of the graph, where it is. Outputs that are written have blocks of
        kind "output", numbered by position; others are inputs, constants or an earlier output.
      fresh: the positions of those that are written.
      reuse: for these, the donated input whose memory it may be.
      temporaries: blocks in the arena.
    """

    top: Scope
    outputs: tuple[Block, ...]
    fresh: tuple[int, ...]
    reuse: Mapping[int, int]
    temporaries: tuple[Block, ...]

    def layout(self, values: Mapping[str, int] | None = None, checked: bool = False) -> Layout:
        """Places for given sizes of variables."""
        known = values or {}
        intervals: list[Interval] = []
        blocks = [block for block in self.temporaries if block.joined is None]
        for block in blocks:
            size = sizes.evaluate(block.bytes, known)
            rounded = -(-size // ALIGNMENT) * ALIGNMENT
            intervals.append(Interval(rounded, block.first, block.last))
        offsets, arena = assign(intervals)
        if checked:
            check(intervals, offsets, arena)
        return Layout(dict(zip(blocks, offsets, strict=True)), arena)


def slot_bytes(slot: Slot) -> Size:
    """The bytes of a slot's memory."""
    return sizes.multiply(slot.size, dtypes.physical(slot.type.dtype).itemsize)


def touch(block: Block, time: int) -> None:
    """Keep a block, and what it is a slice of, alive until `time`."""
    current: Block | None = block.find()
    while current is not None:
        current.last = max(current.last, time)
        current = current.whole.find() if current.whole is not None else None


def join(block: Block, into: Block) -> None:
    """Make a temporary block part of another one."""
    block, into = block.find(), into.find()
    block.joined = into
    into.first = min(into.first, block.first)
    into.last = max(into.last, block.last)
