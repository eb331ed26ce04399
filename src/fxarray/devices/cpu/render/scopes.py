"""Where code goes: nested regions of a function, and values hoisted out of the loops they do not
depend on.

The regions open at a point of the text are loops, branches, or simply what follows a pass whose
results it needs. A value is emitted once, in the outermost region that knows all it depends on:
in the text just before the region within was entered. So nothing is computed in a loop that could
be computed before it, and LLVM needs no pass for that.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from fxarray.devices.cpu.emit.function import FunctionText


@dataclass(eq=False)
class Region:
    """One open region.

    Args:
      known: what has been computed in it, by key.
      before: where text goes that belongs to this region while one within is open.
    """

    known: dict[Any, Any] = field(default_factory=dict[Any, Any])
    before: list[Any] = field(default_factory=list[Any])


@dataclass(frozen=True)
class Held:
    """Something computed, and the depth of the region that it belongs to."""

    value: Any
    depth: int


class Scopes:
    """The open regions of a function under construction."""

    def __init__(self, f: FunctionText) -> None:
        self.f = f
        self.regions = [Region()]

    @property
    def depth(self) -> int:
        """Of the innermost open region; the function itself has depth 0."""
        return len(self.regions) - 1

    def enter(self) -> None:
        """Open a region: to be called before the text that enters it."""
        before: list[Any] = []
        lines: list[Any] = self.f.lines
        lines.append(before)
        self.regions[-1].before = before
        self.regions.append(Region())

    def leave(self, depth: int | None = None) -> None:
        """Close the innermost region, or all that are deeper than `depth`."""
        target = self.depth - 1 if depth is None else depth
        del self.regions[target + 1 :]

    @contextmanager
    def region(self) -> Generator[None]:
        """A region around what is emitted inside."""
        depth = self.depth
        self.enter()
        try:
            yield
        finally:
            self.leave(depth)

    def find(self, key: Any) -> Held | None:
        """What is known under a key."""
        for depth in range(self.depth, -1, -1):
            known = self.regions[depth].known
            if key in known:
                return Held(known[key], depth)
        return None

    def keep(self, key: Any, value: Any, depth: int | None = None) -> Held:
        """Remember something in the region of a depth, by default the innermost."""
        place = self.depth if depth is None else depth
        self.regions[place].known[key] = value
        return Held(value, place)

    @contextmanager
    def at(self, depth: int) -> Generator[None]:
        """What is emitted inside goes where the region of this depth has it computed."""
        if depth >= self.depth:
            yield
            return
        f: Any = self.f
        lines = f.lines
        f.lines = self.regions[depth].before
        try:
            yield
        finally:
            f.lines = lines


def flatten(lines: list[Any]) -> list[str]:
    """The text of a function in order, hoisted parts in their places."""
    result: list[str] = []
    waiting: list[Any] = [iter(lines)]
    while waiting:
        for line in waiting[-1]:
            if isinstance(line, list):
                waiting.append(iter(line))
                break
            result.append(line)
        else:
            waiting.pop()
    return result
