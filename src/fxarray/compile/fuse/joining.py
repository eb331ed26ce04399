"""The rules of fusing: when an operation joins a group.

A kernel should read each operand once, keep a row that it reads again in the cache, and compute
nothing expensive twice. So:

- Elements are computed again (at other indices, in another kernel, for each row) only where that
  costs a few additions.
- A reduction whose result is used again over the reduced axes (softmax) wants the whole row at
  hand: the row must fit the cache, and all such reductions of a kernel must be over the same axes.
- All values of a kernel vary along some of the axes of its largest one.
- A product of matrices takes elementwise operations after it, and moves and conversions before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from fxarray.compile.fuse.group import (
    FACTOR,
    Axes,
    Group,
    Place,
    axes_of,
    compose,
    covers_once,
    divide,
    extent,
    plain_axis,
    sorted_parts,
)
from fxarray.compile.fuse.policy import Policy
from fxarray.compile.fuse.summary import Opaque, Position, Summary
from fxarray.core.ir import Equation, Var
from fxarray.kernel import sizes
from fxarray.kernel.ir import Affine
from fxarray.kernel.sizes import Size

# The index of an axis that is reduced over, or None for a new axis.
Chosen: TypeAlias = "Affine | None"

# What computing an element again may cost, in additions, instead of storing it.
CHEAP = 6
# At how many different indices a kernel may compute a cheap value.
_REPEATS = 6
# What computing elements again may cost in one kernel altogether.
_AGAIN = 24
# How many operations of a kernel may follow one another: lowering calls as deeply.
_DEPTH = 64
# The length of columns from which on reducing them takes a kernel of its own.
_COLUMN = 512


def is_cheap(equation: Equation, summary: Summary) -> bool:
    """Whether to compute the result again in every kernel that reads it."""
    if summary.reduced or summary.scanned or summary.contract or summary.expensive:
        return False
    if summary.is_view:
        return True
    large = [a for a in equation.inputs if type(a) is Var and a.type.shape]
    return summary.cost <= CHEAP and len(large) == 0


class Joining:
    """The rules, for one device."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy

    def absorb(
        self,
        number: int,
        equation: Equation,
        known: tuple[Summary, ...],
        group: Group,
        kept: Iterable[Var],
        alone: bool,
    ) -> bool:
        """Take an operation into a group, unless a rule forbids it.

        Args:
          number: its place in the Program.
          equation: the operation.
          known: what its results need.
          group: a group that reads a result of it.
          kept: results to be stored.
          alone: whether the group has nothing else, so that everything is allowed.
        """
        kept = list(kept)
        wanted = [
            (output, variable)
            for output, variable in enumerate(equation.outputs)
            if variable in group.reads
        ]
        for _, variable in wanted:
            if variable in kept and not self._storable(group, variable):
                return False
        for output, variable in wanted:
            if not alone and not self._allowed(equation, known[output], group, variable):
                return False
        for output, variable in wanted:
            if not self._split(group, known[output], variable, alone):
                return False
        plans: list[tuple[Summary, Var, Place, Axes, dict[str, Position], tuple[Chosen, ...]]] = []
        for output, variable in wanted:
            summary = known[output]
            for place, below in group.reads[variable].items():
                index = _index_of(group, summary, place)
                if index is None:
                    return False
                chosen = self._reduced_axes(group, summary, place, index, alone)
                if chosen is None:
                    return False
                if not alone and not self._reduction_allowed(
                    group, summary, chosen, below, variable, place
                ):
                    return False
                plans.append((summary, variable, place, below, index, chosen))
        reads: list[tuple[Var, Place, Axes]] = []
        for summary, _, place, below, index, chosen in plans:
            self._commit_axes(group, summary, index, chosen)
            lower = below | axes_of(place)
            if summary.contract:
                lower |= {FACTOR}
            for demand in summary.demands:
                atom: Any = equation.inputs[demand.operand]
                if type(atom) is not Var:
                    continue
                key = (number, demand.operand)
                positions = tuple(
                    [
                        Affine() if size == 1 else compose(position, index, (key, axis))
                        for axis, (position, size) in enumerate(
                            zip(demand.index, sizes.kernel_shape(atom.type.shape), strict=True)
                        )
                    ]
                )
                reads.append((atom, positions, lower))
            if alone and equation.op.name == "concatenate":
                reads = _pieces(group, equation, place, lower)
            if None in chosen and not summary.contract:
                _reorder(group, [positions for _, positions, _ in reads])
            self._note(group, summary, index, chosen, below)
        for output, variable in wanted:
            places = group.reads.pop(variable)
            if not alone and not known[output].is_view:
                own = max(sizes.typical(sizes.product(sizes.kernel_shape(variable.type.shape))), 1)
                group.again += self._again(group, known[output], places, own)
            if variable in kept:
                group.roots[variable] = next(iter(places))  # type: ignore[assignment]
        depth = 1 + max([group.depths.get(v, 0) for v in equation.outputs])
        for variable, place, below in reads:
            group.read(variable, place, below)
            group.depths[variable] = max(depth, group.depths.get(variable, 0))
        group.members.add(number)
        group.first = min(group.first, number)
        group.last = max(group.last, number)
        return True

    # --- rules ------------------------------------------------------------------------------------

    def _storable(self, group: Group, variable: Var) -> bool:
        places = group.reads[variable]
        if len(places) != 1 or len(group.roots) + len(group.reads) >= self.policy.kernel_buffers:
            return False
        shape = sizes.kernel_shape(variable.type.shape)
        return covers_once(group, next(iter(places)), shape)

    def _allowed(self, equation: Equation, summary: Summary, group: Group, variable: Var) -> bool:
        places = group.reads[variable]
        count = len(places)
        operations = group.operations + summary.operations * count
        if operations > self.policy.kernel_operations and not summary.is_view:
            return False
        if len(group.members) >= self.policy.kernel_operations:
            return False
        if group.depths.get(variable, 0) >= _DEPTH:
            return False
        operands = {a for a in equation.inputs if type(a) is Var} - group.reads.keys()
        buffers = len(group.reads) + len(group.roots) + len(operands) - 1
        if len(operands) > 1 and buffers > self.policy.kernel_buffers:
            return False
        if any(FACTOR in below for below in places.values()) and not _may_be_factor(summary, count):
            return False
        if summary.is_view:
            return count <= 4 * _REPEATS
        if count > 1 and (count > _REPEATS or summary.reduced or summary.contract):
            return False
        shape = sizes.kernel_shape(variable.type.shape)
        own = max(sizes.typical(sizes.product(shape)), 1)
        again = self._again(group, summary, places, own)
        if again > CHEAP or group.again + again > _AGAIN:
            return False
        heavy = summary.expensive or summary.cost > CHEAP or bool(summary.reduced)
        whole = summary.reduced or summary.scanned or summary.contract
        if whole and any(isinstance(p, Opaque) for place in places for p in place):
            return False
        if heavy and any(self._repeated(group, place) for place in places):
            return False
        if summary.contract:
            return self._contract_allowed(group, places, shape)
        return not (summary.scanned and (group.reduced or group.contract))

    def _again(self, group: Group, summary: Summary, places: Iterable[Place], own: int) -> float:
        """The cost of computing elements more than once, in additions per element.

        That is what happens to values read at several indices, gathered, or joined with others.
        """
        evaluations = sum(extent(group, axes_of(place)) for place in places)
        return summary.cost * max(evaluations / own - 1, 0)

    def _repeated(self, group: Group, place: Place) -> bool:
        """Whether an element is computed again in each round of a loop outside its own axes."""
        axes = axes_of(place)
        if not axes or group.elements < self.policy.large:
            return False
        outer = list(group.axes)[: len(axes)]
        return not axes.issuperset(outer)

    def _contract_allowed(self, group: Group, places: Mapping[Place, Axes], shape: Any) -> bool:
        if group.contract or group.reduced or group.scanned:
            return False
        (place,) = places
        return covers_once(group, place, shape) and axes_of(place) == frozenset(group.axes)

    def _reduced_axes(
        self,
        group: Group,
        summary: Summary,
        place: Place,
        index: dict[str, Position],
        alone: bool,
    ) -> tuple[Chosen, ...] | None:
        """The group's axes that a reduction goes over: None for new ones."""
        if not summary.reduced:
            return ()
        taken = set(axes_of(place))
        chosen: list[Chosen] = []
        fresh = False
        for name, size in summary.reduced:
            known = index.get(name)
            if known is not None:  # it is an axis of the result
                if not isinstance(known, Affine):
                    return None
                chosen.append(known)
                continue
            match = None if summary.contract and not alone else _unused(group, size, taken)
            taken.update(() if match is None else match.axes)
            chosen.append(match)
            fresh = fresh or match is None
        if fresh and not alone and not axes_of(place).issuperset(group.axes):
            return None
        return tuple(chosen)

    def _reduction_allowed(
        self,
        group: Group,
        summary: Summary,
        chosen: tuple[Chosen, ...],
        below: Axes,
        variable: Var,
        place: Place,
    ) -> bool:
        if not chosen or summary.contract:
            return True
        if group.contract or group.scanned:
            return False
        shape = sizes.kernel_shape(variable.type.shape)
        if not all(_is_regular(group, p, size) for p, size in zip(place, shape, strict=True)):
            return False
        axes = frozenset([name for span in chosen if span is not None for name in span.axes])
        again = axes & below
        if not again:
            return True
        if group.reused and group.reused != axes:
            return False
        row = extent(group, axes)
        rows = max(group.elements // max(row, 1), 1)
        if row > self.policy.row_elements or (rows < 16 and row > self.policy.large):
            return False
        trailing = list(group.axes)[-1] in axes
        return trailing or row <= _COLUMN or group.elements < self.policy.large

    def _split(self, group: Group, summary: Summary, variable: Var, alone: bool) -> bool:
        """Write the group's axes as an operation (a reshape, a dilated convolution) needs them."""
        for dimension, parts in summary.splits:
            for place in list(group.reads[variable]):
                position = place[dimension]
                if divide(group, position, parts) is not None:
                    continue
                axis = plain_axis(position)
                if axis is None or not (alone or _is_stored(group, axis)):
                    return False
                if any(axis in axes for axes in group.reduced) or axis in group.scanned:
                    return False
                if sizes.product(parts) != group.axes[axis]:
                    return False
                group.split(axis, parts)
                break
        return True

    # --- changes ----------------------------------------------------------------------------------

    def _commit_axes(
        self, group: Group, summary: Summary, index: dict[str, Position], chosen: tuple[Chosen, ...]
    ) -> None:
        for (name, size), span in zip(summary.reduced, chosen, strict=True):
            if name not in index:
                index[name] = Affine.of(group.new_axis(size)) if span is None else span

    def _note(
        self,
        group: Group,
        summary: Summary,
        index: dict[str, Position],
        chosen: tuple[Chosen, ...],
        below: Axes,
    ) -> None:
        group.operations += summary.operations
        group.contract = group.contract or summary.contract
        for name in summary.scanned:
            group.scanned.update(index[name].axes)
        if chosen and not summary.contract:
            axes = frozenset().union(*[index[name].axes for name, _ in summary.reduced])
            group.reduced.add(axes)
            if axes & below:
                group.reused = axes


def _unused(group: Group, size: Any, taken: set[str]) -> Affine | None:
    """An axis, or axes that were split from one, of a size and not taken."""
    if size == 1:
        return Affine()
    for name, known in group.axes.items():
        if known == size and name not in taken:
            return Affine.of(name)
    for span, known in group.spans:
        if known == size and taken.isdisjoint(span.axes):
            return span
    return None


def _pieces(
    group: Group, equation: Equation, place: Place, below: Axes
) -> list[tuple[Var, Place, Axes]]:
    """What is read of arrays that are joined and stored: each by itself, along an axis of its own.

    The axis of the result is nothing's but the index of what is stored, so it comes last.
    """
    axis: int = equation.op.parameters()["axis"]
    whole = plain_axis(place[axis])
    own: dict[Size, Affine] = {}
    reads: list[tuple[Var, Place, Axes]] = []
    for atom in equation.inputs:
        if not isinstance(atom, Var):
            continue
        size = sizes.kernel_shape(atom.type.shape)[axis]
        if size not in own:
            own[size] = Affine() if size == 1 else Affine.of(group.new_axis(size))
        reads.append((atom, (*place[:axis], own[size], *place[axis + 1 :]), below))
    names = [name for position in reads[0][1] for name in position.axes] if reads else []
    rest = [name for name in group.axes if name not in names and name != whole]
    order = [*names, *rest, *([whole] if whole is not None and whole not in names else [])]
    group.axes = {name: group.axes[name] for name in order}
    return reads


def _reorder(group: Group, places: Iterable[Place]) -> None:
    """Put the axes of a group in the order of the longest index of them all: that of the memory."""
    best = max(places, key=lambda place: len(axes_of(place)), default=())
    names = [axis for position in best for axis in position.axes]
    order = [name for name in dict.fromkeys(names) if name in group.axes]
    if len(order) == len(group.axes):
        group.axes = {name: group.axes[name] for name in order}


def _is_regular(group: Group, position: Position, size: Size) -> bool:
    """Whether a position is one place, or runs through a size once."""
    if not isinstance(position, Affine):
        return False
    if not position.terms:
        return True
    parts = sorted_parts(group, position) if position.constant == 0 else None
    return parts is not None and sizes.product([group.axes[name] for name in parts]) == size


def _is_stored(group: Group, axis: str) -> bool:
    return any(axis in position.axes for index in group.roots.values() for position in index)


def _may_be_factor(summary: Summary, count: int) -> bool:
    if summary.reduced or summary.scanned or summary.contract or count > 1:
        return False
    return summary.cost <= 1 and len(summary.demands) <= 1


def _index_of(group: Group, summary: Summary, place: Place) -> dict[str, Position] | None:
    """The positions of the axes of a summary."""
    index: dict[str, Position] = {}
    splits = dict(summary.splits)
    for dimension, position in enumerate(place):
        parts = splits.get(dimension)
        if parts is None:
            index[f"i{dimension}"] = position
            continue
        divided = divide(group, position, parts)
        if divided is None:
            return None
        for number, part in enumerate(divided):
            index[f"i{dimension}_{number}"] = part
    return index
