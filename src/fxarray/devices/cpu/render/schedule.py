"""What a renderer decides for a kernel: loop order, lanes, register blocks, parts for threads."""

from __future__ import annotations

from dataclasses import dataclass, field

from fxarray.kernel.ir import Buffer, Kernel


@dataclass(frozen=True)
class Schedule:
    """The order in which a kernel is computed.

    Outer loops run around passes over the row axes, one pass per level (`kernel.analysis.levels`).

    Args:
      outer: axes of the outer loops, outermost first; the axis on lanes may be the last.
      row: axes of the loops of each pass, outermost first.
      lanes: the axis on vector lanes; None computes scalars.
      width: the number of lanes.
      unroll: how many vectors are computed together.
      block: an outer axis along which several rows are computed together: reductions down columns,
        transposes in registers.
      rows: how many rows these are.
      split: the axis that is cut into parts.
      parts: how many parts; sizes alone say it, so results do not depend on the number of threads.
      tile: how far the loops go along the lanes at a time, all outer loops inside; 0 is all the
        way.
      stash: values kept in memory from the first pass that computes them to later ones.
      straight: loops of so few iterations are written out.
      nontemporal: the outputs are so large that they are written past the caches.
    """

    outer: tuple[str, ...] = ()
    row: tuple[str, ...] = ()
    lanes: str | None = None
    width: int = 1
    unroll: int = 1
    block: str | None = None
    rows: int = 1
    split: str | None = None
    parts: int = 1
    tile: int = 0
    stash: frozenset[int] = frozenset()
    straight: int = 1
    nontemporal: bool = False


@dataclass(frozen=True)
class Stage:
    """A kernel of which one schedule computes all.

    Args:
      kernel: the kernel.
      schedule: its schedule.
      partials: for each reduction over the axis that is split or another outer axis, where the
        parts leave their results: one buffer per state, of shape (parts, ...sizes of its axes).
      kept: for each of these, its axes in the order of those buffers.
      in_memory: those of them that have no registers of their own while the loops run.
    """

    kernel: Kernel
    schedule: Schedule
    partials: dict[int, tuple[Buffer, ...]] = field(default_factory=dict[int, tuple[Buffer, ...]])
    kept: dict[int, tuple[str, ...]] = field(default_factory=dict[int, tuple[str, ...]])
    in_memory: frozenset[int] = frozenset()


def part_length(size: int, parts: int, step: int) -> int:
    """How many positions of an axis a part has: whole steps, but for the last part."""
    steps = -(-size // step)
    return -(-steps // parts) * step
