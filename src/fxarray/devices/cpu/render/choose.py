"""A schedule for a kernel, or what has to be cut off first.

The order is chosen so that most memory is walked along vector lanes. Reductions over the axis on
lanes make passes over rows; other reductions either make the lanes an outer axis (results stay in
registers), or are added up row by row in memory and finished in a later stage.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import permutations
from typing import Any, TypeAlias

from fxarray.devices.cpu.native.target import Target
from fxarray.devices.cpu.render.cuts import is_commutative, stores_of
from fxarray.devices.cpu.render.lanes_choice import (
    computed_bytes,
    fitting_width,
    full_width,
    lane_axis,
)
from fxarray.devices.cpu.render.schedule import Schedule, part_length
from fxarray.devices.cpu.render.tuning import blocked, stashed, streamed, unrolled
from fxarray.kernel import sizes
from fxarray.kernel.analysis import elements, late, needed_again, uses, work
from fxarray.kernel.ir import Affine, Kernel, Reduce, Scan, Store

# Below so many operations on vectors (a few microseconds) the threads are not woken; one part does
# about so many.
_WORTH_SPLITTING = 10000
_PART_WORK = 4000
_MOST_PARTS = 64
# Reductions in memory: so many parts at most, since each has accumulators of its own.
_MOST_MEMORY_PARTS = 16
# A loop nest of so few iterations is written out.
_STRAIGHT = 16
# Reductions over so few positions stay inside the loops of others.
_SHORT = 8


@dataclass(frozen=True)
class Cut:
    """Compute this node in stages before."""

    number: int


@dataclass(frozen=True)
class Nest:
    """Take the reduction apart: over these axes first."""

    number: int
    inner: frozenset[str]


@dataclass(frozen=True)
class Separate:
    """Compute these stores apart from the others."""

    stores: tuple[int, ...]


@dataclass(frozen=True)
class Chosen:
    """A schedule, and the reductions that leave their results to a later stage."""

    schedule: Schedule
    partial: tuple[int, ...] = ()
    in_memory: frozenset[int] = frozenset()


Choice: TypeAlias = Cut | Nest | Separate | Chosen


def choose(kernel: Kernel, target: Target) -> Choice:
    """What to do with a kernel in canonical form."""
    ordered = [n for n in stores_of(kernel) if _node(kernel, n).mode != "set"]
    combinations = [n for n, node in enumerate(kernel.body) if isinstance(node, Reduce | Scan)]
    if ordered and combinations:
        return Cut(combinations[0])
    if ordered:
        return _in_order(kernel, target, ordered)
    scans = [n for n in combinations if isinstance(kernel.body[n], Scan)]
    if len({_node(kernel, n).axis for n in scans}) > 1 or any(
        _node(kernel, n).reverse for n in scans
    ):
        return Cut(combinations[0] if len(combinations) > 1 else scans[0])
    width = full_width(kernel, target)
    lanes = lane_axis(kernel, width, _lane_axes(kernel, combinations))
    if lanes is None:
        row = tuple([a for a, _ in kernel.axes if a in _combined_axes(kernel, combinations)])
        return _finished(kernel, Schedule(row=row), combinations, frozenset())
    width = fitting_width(kernel, lanes, width)
    return _with_lanes(kernel, lanes, width, combinations)


def _node(kernel: Kernel, number: int) -> Any:
    return kernel.body[number]


def _axes_of(kernel: Kernel, number: int) -> frozenset[str]:
    """The axes that a reduction or scan combines along."""
    node = kernel.body[number]
    if isinstance(node, Scan):
        return frozenset([node.axis])
    return frozenset(node.axes) if isinstance(node, Reduce) else frozenset()


def _combined_axes(kernel: Kernel, numbers: list[int]) -> frozenset[str]:
    return frozenset[str]().union(*[_axes_of(kernel, n) for n in numbers])


def _lane_axes(kernel: Kernel, combinations: list[int]) -> frozenset[str]:
    """The axes that may be on lanes: a combination that depends on an order is not along them."""
    banned: set[str] = set()
    for number in combinations:
        node = kernel.body[number]
        if isinstance(node, Reduce) and not is_commutative(node):
            banned.update(node.axes)
    return frozenset([name for name, _ in kernel.axes if name not in banned])


# --- rows -----------------------------------------------------------------------------------------


def _with_lanes(kernel: Kernel, lanes: str, width: int, combinations: list[int]) -> Choice:
    over = [n for n in combinations if lanes in _axes_of(kernel, n)]
    scans = [n for n in combinations if isinstance(kernel.body[n], Scan)]
    names = [name for name, _ in kernel.axes]
    if over or not combinations:
        inside = _combined_axes(kernel, over) | {lanes}
        last = scans[0] if scans else None
        axis = _node(kernel, last).axis if last is not None else lanes
        if axis != lanes:
            # Rows along one axis and a scan along another.
            return Cut(combinations[0])
        row = tuple([a for a in names if a in inside and a != lanes]) + (lanes,)
    elif not scans and (small := _small(kernel, lanes, width, combinations)):
        return Cut(small[0])
    elif not scans and (short := _short_axes(kernel, combinations)):
        row = tuple([a for a in names if a in short])
    elif scans or not _down_columns(kernel, lanes, width, combinations):
        inside = _combined_axes(kernel, combinations)
        axis = _node(kernel, scans[0]).axis if scans else ""
        row = tuple([a for a in names if a in inside and a != axis]) + ((axis,) if axis else ())
    else:
        row = (lanes,)
    schedule = Schedule(row=row, lanes=lanes, width=width)
    return _checked(kernel, schedule, combinations)


def _small(kernel: Kernel, lanes: str, width: int, reductions: list[int]) -> list[int]:
    """Reductions of little, such as of what parts have left, beside sums down long columns.

    They are computed before, so that the columns can be walked row by row.
    """
    counts = {n: elements(kernel, uses(kernel, n)) for n in reductions}
    small = [n for n in reductions if 8 * counts[n] <= max(counts.values())]
    large = [n for n in reductions if n not in small]
    return small if small and _down_columns(kernel, lanes, width, large) else []


def _short_axes(kernel: Kernel, reductions: list[int]) -> frozenset[str]:
    """The axes of short reductions, where others are long: those are added up around them."""
    short = [n for n in reductions if elements(kernel, _axes_of(kernel, n)) <= _SHORT]
    axes = _combined_axes(kernel, short)
    others = [n for n in reductions if n not in short]
    apart = all(axes.isdisjoint(_axes_of(kernel, n)) for n in others)
    return axes if others and apart and not needed_again(kernel, others) else frozenset()


def _down_columns(kernel: Kernel, lanes: str, width: int, reductions: list[int]) -> bool:
    """Whether reductions over other axes than the lanes' are added up row by row in memory.

    That reads memory in its order; with the lanes outside, each step down a column is a new page.
    """
    over = _combined_axes(kernel, reductions)
    if any(not is_commutative(kernel.body[n]) for n in reductions):
        return False
    extent = elements(kernel, [lanes])
    if extent <= 8 * width:
        return False
    walked = frozenset[str]().union(*[uses(kernel, n) for n in reductions])
    others = walked - over - {lanes}
    down = elements(kernel, over)
    if down < 64 or elements(kernel, others) >= 4:
        return False
    if not all(over <= uses(kernel, n) for n in reductions):
        return False
    row_bytes = extent * max([computed_bytes(kernel.dtypes[n]) for n in reductions])
    return row_bytes >= 2048 and (not needed_again(kernel, reductions) or down >= 512)


def _checked(kernel: Kernel, schedule: Schedule, combinations: list[int]) -> Choice:
    """The schedule with its outer loops, if every combination fits it."""
    row = frozenset(schedule.row)
    crossing: list[int] = []
    for number in combinations:
        axes = _axes_of(kernel, number)
        node = kernel.body[number]
        own = kernel.value_axes[number]
        if isinstance(node, Scan):
            fits = row.issuperset(axes) and schedule.row[-1] in axes
        elif axes <= row:
            fits = not own & row
        elif axes.isdisjoint(row):
            crossing.append(number)
            fits = True
        elif is_commutative(node) and not own & row:
            return Nest(number, axes & row)
        else:
            fits = False
        if not fits:
            return Cut(combinations[0])
    names = [name for name, _ in kernel.axes]
    outer = [a for a in names if a not in row and a != schedule.lanes]
    last = [schedule.lanes] if schedule.lanes is not None and schedule.lanes not in row else []
    # What waits for other parts is computed in a later stage.
    waiting = late(kernel, crossing)
    sinks = [n for n in (*stores_of(kernel), *combinations) if n not in waiting]
    order = _outer_order(kernel, outer, last, sinks)
    if order is None:
        stores = stores_of(kernel)
        first = [n for n in stores if uses(kernel, n) == uses(kernel, stores[0])]
        if len(first) < len(stores):
            return Separate(tuple(first))
        return Cut(combinations[0])
    schedule = replace(schedule, outer=order)
    return _finished(kernel, schedule, combinations, frozenset(crossing))


def _outer_order(
    kernel: Kernel, outer: list[str], last: list[str], sinks: list[int]
) -> tuple[str, ...] | None:
    """Outer loops such that each sink is in the first few of them and in no other."""
    known = {*outer, *last}
    wanted = {uses(kernel, n) & known for n in sinks}
    orders = permutations(outer) if len(outer) <= 6 else [tuple(outer)]
    for order in orders:
        full = (*order, *last)
        if all(axes == frozenset(full[: len(axes)]) for axes in wanted):
            return full
    return None


# --- parts ----------------------------------------------------------------------------------------


def _finished(
    kernel: Kernel, schedule: Schedule, combinations: list[int], crossing: frozenset[int]
) -> Choice:
    """The schedule with parts, blocks and all the rest."""
    schedule = unrolled(kernel, schedule)
    parts = _parts(kernel, schedule, _MOST_MEMORY_PARTS if crossing else _MOST_PARTS)
    split = _split_axis(kernel, schedule, combinations, crossing, parts)
    if split is None and crossing:
        return Cut(min(crossing))
    if split is None or parts == 1:
        parts, split = 1, split if crossing else None
    schedule = replace(schedule, split=split, parts=parts)
    schedule = blocked(kernel, schedule, crossing)
    partial = set(crossing)
    if split is not None and split in schedule.row and parts > 1:
        partial |= {n for n in combinations if split in _axes_of(kernel, n)}
    if parts > 1:
        waiting = late(kernel, partial)
        for number in combinations:
            alone = number not in partial | waiting and split not in uses(kernel, number)
            if alone and elements(kernel, uses(kernel, number)) > 4096:
                return Cut(number)
        schedule = _fitting_parts(kernel, schedule)
    if elements(kernel, [name for name, _ in kernel.axes]) <= _STRAIGHT * schedule.width and all(
        isinstance(size, int) for _, size in kernel.axes
    ):
        schedule = replace(schedule, straight=_STRAIGHT)
    schedule = replace(
        schedule,
        stash=stashed(kernel, schedule, frozenset(partial)),
        nontemporal=streamed(kernel, schedule),
    )
    return Chosen(schedule, tuple(sorted(partial)), crossing)


def _parts(kernel: Kernel, schedule: Schedule, most: int) -> int:
    """Into how many parts the work is worth cutting."""
    operations = work(kernel) / schedule.width
    if operations < _WORTH_SPLITTING:
        return 1
    return min(max(int(operations / _PART_WORK), 4), most)


def _split_axis(
    kernel: Kernel,
    schedule: Schedule,
    combinations: list[int],
    crossing: frozenset[int],
    parts: int,
) -> str | None:
    """The axis to cut: outermost first, but one that is long enough for all parts."""
    if crossing:
        common = frozenset.intersection(*[_axes_of(kernel, n) for n in crossing])
        candidates = [a for a in schedule.outer if a in common]
        if parts == 1 or not candidates:
            return candidates[0] if candidates else None
        longest = max(candidates, key=lambda a: sizes.typical(kernel.sizes[a]))
        if sizes.typical(kernel.sizes[longest]) < 2:
            return longest
    else:
        scanned = {_node(kernel, n).axis for n in combinations if isinstance(kernel.body[n], Scan)}
        ordered = {
            axis
            for n in combinations
            if isinstance(kernel.body[n], Reduce) and not is_commutative(kernel.body[n])
            for axis in _axes_of(kernel, n)
        }
        candidates = [
            a for a in (*schedule.outer, *schedule.row) if a not in scanned and a not in ordered
        ]
    best: str | None = None
    best_count = 1
    for axis in candidates:
        count = sizes.typical(kernel.sizes[axis])
        if axis == schedule.lanes:
            count = -(-count // (schedule.unroll * schedule.width))
        inside = axis in schedule.row and any(axis in _axes_of(kernel, n) for n in combinations)
        # Cutting what is reduced costs a stage more.
        if inside and best_count >= 4:
            continue
        if min(count, parts) > best_count:
            best, best_count = axis, min(count, parts)
    return best


def _fitting_parts(kernel: Kernel, schedule: Schedule) -> Schedule:
    """No more parts than steps of the axis that is cut."""
    split = schedule.split
    if split is None:
        return schedule
    size = kernel.sizes[split]
    if isinstance(size, int):
        step = schedule.tile if split == schedule.lanes and schedule.tile else 0
        if not step:
            step = schedule.unroll * schedule.width if split == schedule.lanes else 1
            step = schedule.rows if split == schedule.block else step
        chunk = part_length(size, schedule.parts, step)
        schedule = replace(schedule, parts=max(-(-size // max(chunk, 1)), 1))
    return schedule


# --- stores that combine --------------------------------------------------------------------------


def _in_order(kernel: Kernel, target: Target, ordered: list[int]) -> Choice:
    """Stores that add to what is there: in the order of the axes, but for axes that keep apart."""
    names = [name for name, _ in kernel.axes]
    apart = frozenset([a for a in names if all(_keeps_apart(_node(kernel, n), a) for n in ordered)])
    width = full_width(kernel, target)
    lanes = lane_axis(kernel, width, apart)
    outer = tuple([a for a in names if a != lanes])
    wanted = {uses(kernel, n) for n in stores_of(kernel)}
    if len(wanted) > 1:
        first = tuple([n for n in stores_of(kernel) if uses(kernel, n) == uses(kernel, ordered[0])])
        if len(first) == len(stores_of(kernel)):
            first = first[:1]
        return Separate(first)
    schedule = Schedule(outer=outer if lanes is None else (*outer, lanes))
    if lanes is not None:
        width = fitting_width(kernel, lanes, width)
        schedule = replace(schedule, outer=outer, row=(lanes,), lanes=lanes, width=width)
    schedule = unrolled(kernel, schedule)
    parts = _parts(kernel, schedule, _MOST_PARTS)
    best: str | None = None
    best_count = 1
    for axis in names:
        count = sizes.typical(kernel.sizes[axis])
        count = count // schedule.width if axis == lanes else count
        if axis in apart and min(count, parts) > best_count:
            best, best_count = axis, min(count, parts)
    if best is not None and parts > 1:
        schedule = replace(schedule, split=best, parts=parts)
    schedule = _fitting_parts(kernel, schedule)
    return Chosen(schedule)


def _keeps_apart(node: Store, axis: str) -> bool:
    """Whether positions that differ on an axis never write to one element.

    So it is if one dimension of the index is that axis and nothing else.
    """
    return any(
        index.axes == (axis,) and not index.values and _is_nonzero(index) for index in node.index
    )


def _is_nonzero(index: Affine) -> bool:
    return all(isinstance(coefficient, int) and coefficient != 0 for _, coefficient in index.terms)
