"""A group: operations that will be one kernel, and what it reads at which indices.

Groups grow against the direction of the data: a group starts with an operation whose result must be
stored, and takes in the operations that compute what it reads. For every operand it knows the
indices at which it is read, in terms of the axes of the group, and for each of these the axes along
which what depends on it varies (`below`): a reduction over such an axis is one whose result is used
over that axis again, which means several passes over a row.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from fxarray.compile.fuse.kernels import split_index
from fxarray.compile.fuse.summary import Opaque, Position
from fxarray.core.ir import Var
from fxarray.kernel import sizes
from fxarray.kernel.ir import Affine
from fxarray.kernel.sizes import Size

Place: TypeAlias = tuple[Position, ...]
Axes: TypeAlias = frozenset[str]

NO_AXES: Axes = frozenset()
# Among the axes below an operand: it is, through cheap operations, an operand of a Contract.
FACTOR = "factor"


@dataclass(eq=False)
class Node:
    """What is done in one go; `first` and `last` are places of its operations in the Program."""

    first: int
    last: int


@dataclass(eq=False)
class StepNode(Node):
    """An operation that is run whole."""


@dataclass(eq=False)
class Group(Node):
    """See above.

    Args:
      axes: sizes by name, outermost first.
      members: places of the operations.
      reads: what it reads: for each index the axes below.
      roots: what it stores, and at which index.
      operations: the number of scalar operations.
      again: the cost of what it computes more than once, in additions per element.
      region: the number of the call (of `checkpoint`) that its operations come from.
      contract: whether there is a Contract.
      reduced: the sets of axes that something is reduced over.
      reused: those among which results are used again.
      scanned: axes along which prefixes are combined.
      spans: axes that were split, in terms of their parts.
      depths: how many operations lie between what it reads and what it stores.
    """

    axes: dict[str, Size] = field(default_factory=dict[str, Size])
    members: set[int] = field(default_factory=set[int])
    reads: dict[Var, dict[Place, Axes]] = field(default_factory=dict[Var, dict[Place, Axes]])
    roots: dict[Var, tuple[Affine, ...]] = field(default_factory=dict[Var, tuple[Affine, ...]])
    operations: int = 0
    again: float = 0.0
    region: int = 0
    contract: bool = False
    reduced: set[Axes] = field(default_factory=set[Axes])
    reused: Axes = NO_AXES
    scanned: set[str] = field(default_factory=set[str])
    spans: list[tuple[Affine, Size]] = field(default_factory=list[tuple[Affine, Size]])
    depths: dict[Var, int] = field(default_factory=dict[Var, int])
    count: int = 0

    def new_axis(self, size: Size) -> str:
        name = f"a{self.count}"
        self.count += 1
        self.axes[name] = size
        return name

    @property
    def elements(self) -> int:
        """About how many elements it goes through."""
        return extent(self, self.axes)

    def read(self, variable: Var, place: Place, below: Axes) -> None:
        places = self.reads.setdefault(variable, {})
        places[place] = places.get(place, NO_AXES) | below

    def rename(self, changes: Mapping[str, Affine]) -> None:
        """Replace axes in all that is known."""
        names = {name: frozenset(affine.axes) for name, affine in changes.items()}

        def renamed(axes: Axes) -> Axes:
            if axes.isdisjoint(names):
                return axes
            return frozenset().union(*[names.get(name, frozenset([name])) for name in axes])

        def place(positions: Place) -> Place:
            return tuple([_substituted(p, changes, renamed) for p in positions])

        self.spans = [(span.replace(changes), size) for span, size in self.spans]  # type: ignore[arg-type]
        self.reads = {
            variable: {place(p): renamed(below) for p, below in places.items()}
            for variable, places in self.reads.items()
        }
        self.roots = {
            variable: tuple([p.replace(changes) for p in index])  # type: ignore[arg-type]
            for variable, index in self.roots.items()
        }
        self.reduced = {renamed(axes) for axes in self.reduced}
        self.reused = renamed(self.reused)
        self.scanned = set(renamed(frozenset(self.scanned)))

    def split(self, axis: str, parts: tuple[Size, ...]) -> Affine:
        """Write an axis as several; its index in terms of these."""
        names = [f"a{self.count + number}" for number in range(len(parts))]
        self.count += len(parts)
        whole = split_index(names, parts)
        axes: dict[str, Size] = {}
        for name, size in self.axes.items():
            if name == axis:
                axes.update(zip(names, parts, strict=True))
            else:
                axes[name] = size
        size = self.axes[axis]
        self.axes = axes
        self.rename({axis: whole})
        self.spans.append((whole, size))
        return whole


def _substituted(position: Position, changes: Mapping[str, Affine], renamed: object) -> Position:
    if isinstance(position, Affine):
        return position.replace(changes) if position.terms else position  # type: ignore[arg-type]
    return Opaque(renamed(position.axes), position.key)  # type: ignore[operator]


def extent(group: Group, axes: Iterable[str]) -> int:
    """About the product of the sizes of some axes."""
    total = 1
    for name in axes:
        total *= sizes.typical(group.axes[name])
    return total


def plain_axis(position: Position) -> str | None:
    """The axis that a position is, if it is just that."""
    if isinstance(position, Affine) and position.constant == 0 and len(position.terms) == 1:
        term, coefficient = position.terms[0]
        if coefficient == 1 and isinstance(term, str):
            return term
    return None


def axes_of(place: Place) -> Axes:
    """The axes that an index varies along."""
    found: set[str] = set()
    for position in place:
        found.update(position.axes)
    return frozenset(found)


def covers_once(group: Group, place: Place, shape: tuple[Size, ...]) -> bool:
    """Whether an index runs through each element of an array exactly once.

    So do different axes, axes that were split, and 0 for sizes of 1.
    """
    seen: set[str] = set()
    for position, size in zip(place, shape, strict=True):
        if not isinstance(position, Affine) or position.constant != 0:
            return False
        parts = sorted_parts(group, position)
        if parts is None or sizes.product([group.axes[name] for name in parts]) != size:
            return False
        if not seen.isdisjoint(parts):
            return False
        seen.update(parts)
    return True


def sorted_parts(group: Group, position: Affine) -> list[str] | None:
    """The axes of an index that is made of split axes, slowest first; else None."""
    if len(position.terms) == 1:
        axis = plain_axis(position)
        return None if axis is None else [axis]
    remaining = dict(position.terms)
    names: list[str] = []
    step: Size = 1
    while remaining:
        name = next((n for n, c in remaining.items() if c == step), None)
        if not isinstance(name, str):
            return None
        del remaining[name]
        names.append(name)
        step = sizes.multiply(step, group.axes[name])
    names.reverse()
    return names


def divide(group: Group, position: Position, parts: tuple[Size, ...]) -> list[Position] | None:
    """The indices of the parts of a split dimension, if a position is made of such parts."""
    if not isinstance(position, Affine) or position.constant != 0:
        return None
    names = sorted_parts(group, position)
    if names is None:
        return None
    result: list[Position] = []
    for size in reversed(parts):
        inner: Affine = Affine()
        step: Size = 1
        while step != size:
            if not names:
                return None
            name = names.pop()
            inner = inner + Affine(((name, step),))
            step = sizes.multiply(step, group.axes[name])
            if isinstance(step, int) and isinstance(size, int) and step > size:
                return None
        result.append(inner)
    if names:
        return None
    result.reverse()
    return result


def compose(position: Position, index: Mapping[str, Position], key: object) -> Position:
    """A position of a summary in terms of a group's axes."""
    if isinstance(position, Opaque):
        axes: set[str] = set()
        for name in position.axes:
            axes.update(index[name].axes)
        return Opaque(frozenset(axes), (key, tuple(index.values())))
    axis = plain_axis(position)
    if axis is not None:
        return index[axis]
    if not position.terms:
        return position
    changes: dict[str, Affine] = {}
    for name in position.axes:
        known = index[name]
        if isinstance(known, Opaque):
            found = frozenset[str]().union(*[index[n].axes for n in position.axes])
            return Opaque(found, (position, tuple([index[n] for n in position.axes])))
        changes[name] = known
    return position.replace(changes)  # type: ignore[arg-type]
