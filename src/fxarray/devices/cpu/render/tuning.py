"""The finer choices of a schedule: vectors at once, blocks of rows, values kept between passes."""

from __future__ import annotations

from dataclasses import replace

from fxarray.devices.cpu.emit.types import itemsize
from fxarray.devices.cpu.render.schedule import Schedule
from fxarray.kernel import sizes
from fxarray.kernel.analysis import elements, flat, levels, uses, weight
from fxarray.kernel.ir import Kernel, Load, Op, Reduce, Scan, Store, arguments

# What is worth keeping from pass to pass, in weighted operations, and how much memory it may take.
_WORTH_KEEPING = 12.0
_KEPT_BYTES = 1 << 17
# How far transposes go along the lanes before the next row: what a cache holds of both sides.
_TILE = 128
_ACCUMULATOR_BYTES = 1 << 14
# From so much on, no cache near a core holds what a kernel writes until it is read.
_STREAMED_BYTES = 24 << 20


def unrolled(kernel: Kernel, schedule: Schedule) -> Schedule:
    """How many vectors at once: more for short chains of operations, whose loads then overlap."""
    lanes = schedule.lanes
    if lanes is None:
        return schedule
    varying = [n for n in range(len(kernel.body)) if lanes in uses(kernel, n)]
    cost = sum([weight(kernel.body[n]) for n in varying])
    combined = any(isinstance(kernel.body[n], Reduce | Scan) for n in varying)
    unroll = 4 if cost < 16 or (combined and cost < 40) else 2 if cost < 40 else 1
    if any(isinstance(kernel.body[n], Scan) for n in varying) and lanes in schedule.row:
        unroll = min(unroll, 2)
    if lanes not in schedule.row:
        # Lanes outside: steps down the columns read this much in a row.
        unroll = 8 if cost < 24 else 4
    size = kernel.sizes[lanes]
    if isinstance(size, int):
        vectors = max(-(-size // schedule.width), 1)
        unroll = min(unroll, vectors)
        if lanes not in schedule.row and vectors <= 8:
            unroll = vectors
        elif vectors < 64:
            # Few vectors: those that are left over would cost as much as the others.
            unroll = min(range(1, unroll + 1), key=lambda u: (vectors // u + vectors % u, -u))
    return replace(schedule, unroll=unroll)


def blocked(kernel: Kernel, schedule: Schedule, crossing: frozenset[int]) -> Schedule:
    """Several rows at once: for squares that are turned in registers and for sums down columns."""
    lanes = schedule.lanes
    if lanes is None or any(isinstance(node, Scan) for node in kernel.body):
        return schedule
    if crossing:
        return _column_block(kernel, schedule, crossing)
    turned: set[str] = set()
    for node in kernel.body:
        if isinstance(node, Load) and not node.bounds:
            offset = flat(node)
            if offset.coefficient(lanes) not in (0, 1, -1) and not offset.values:
                turned |= {a for a in schedule.outer if offset.coefficient(a) == 1}
    candidates = [a for a in schedule.outer if a in turned and a != lanes]
    if not candidates or schedule.width < 4:
        return _short_rows(kernel, schedule)
    axis = candidates[-1]
    if sizes.typical(kernel.sizes[axis]) < schedule.width:
        return schedule
    tile = 0
    rest = [a for a in schedule.row if a != lanes]
    if lanes in schedule.row and not rest and _all_along(kernel, lanes):
        size = sizes.typical(kernel.sizes[lanes])
        tile = _TILE if size > 2 * _TILE else 0
    return replace(schedule, block=axis, rows=schedule.width, unroll=1, tile=tile)


def _short_rows(kernel: Kernel, schedule: Schedule) -> Schedule:
    """Several short rows at once: what one row waits for at its end, others compute meanwhile."""
    lanes = schedule.lanes or ""
    size = kernel.sizes[lanes]
    reduced = any(isinstance(node, Reduce) and lanes in node.axes for node in kernel.body)
    if schedule.parts == 1 or not schedule.outer or not reduced or not isinstance(size, int):
        return schedule
    if schedule.row != (lanes,):
        return schedule
    vectors = -(-size // schedule.width)
    rows = 4 if vectors <= 4 else 2 if vectors <= 8 else 1
    axis = schedule.outer[-1]
    if rows == 1 or sizes.typical(kernel.sizes[axis]) < 4 * rows:
        return schedule
    return replace(schedule, block=axis, rows=rows)


def _all_along(kernel: Kernel, lanes: str) -> bool:
    """Whether every sink walks the axis on lanes and none reduces it, so that it may be tiled."""
    for number, node in enumerate(kernel.body):
        if isinstance(node, Store | Reduce) and lanes not in uses(kernel, number):
            return False
        if isinstance(node, Reduce) and lanes in node.axes:
            return False
    return True


def _column_block(kernel: Kernel, schedule: Schedule, crossing: frozenset[int]) -> Schedule:
    """Rows along the innermost axis that is reduced: memory is read and written once for all."""
    over: set[str] = set()
    for number in crossing:
        node = kernel.body[number]
        if isinstance(node, Reduce):
            over.update(node.axes)
    axis = [a for a in schedule.outer if a in over][-1]
    rows_too = any(
        isinstance(node, Reduce) and number not in crossing
        for number, node in enumerate(kernel.body)
    )
    lanes = schedule.lanes or ""
    extent = elements(kernel, [lanes])
    rows = 2 if rows_too else 8
    rows = min(rows, max(sizes.typical(kernel.sizes[axis]), 1))
    tile = 0
    if not rows_too and extent * 4 > 2 * _ACCUMULATOR_BYTES and _all_along(kernel, lanes):
        step = schedule.width * min(schedule.unroll, 2)
        tile = max(_ACCUMULATOR_BYTES // 4 // step * step, step)
    return replace(schedule, block=axis, rows=rows, unroll=min(schedule.unroll, 2), tile=tile)


def streamed(kernel: Kernel, schedule: Schedule) -> bool:
    """Whether so much is written that it should go past the caches, which nothing reads again.

    That saves reading what is overwritten: a third of the traffic of two inputs and an output.
    """
    moved = 0
    for buffer in {n.buffer for n in kernel.body if isinstance(n, Load | Store)}:
        size = sizes.product(buffer.shape)
        if not isinstance(size, int):
            return False
        moved += size * itemsize(buffer.dtype)
    if moved < _STREAMED_BYTES:
        return False
    return any(isinstance(n, Store) and writes_whole_vectors(n, schedule) for n in kernel.body)


def writes_whole_vectors(node: Store, schedule: Schedule) -> bool:
    """Whether a full vector of a store starts at a multiple of its length, as its buffer does."""
    lanes, width = schedule.lanes, schedule.width
    offset = flat(node)
    if lanes is None or offset.values or node.bounds or offset.coefficient(lanes) != 1:
        return False
    others = [c for term, c in offset.terms if term != lanes] + [offset.constant]
    return all(isinstance(c, int) and c % width == 0 for c in others)


def stashed(kernel: Kernel, schedule: Schedule, partial: frozenset[int]) -> frozenset[int]:
    """Values that a later pass needs and that cost more than memory does."""
    row = frozenset(schedule.row)
    if not row or any(isinstance(node, Scan) for node in kernel.body):
        return frozenset()
    level = levels(kernel, row)
    if max(level, default=0) == 0:
        return frozenset()
    extent = elements(kernel, row) * schedule.rows
    if schedule.lanes is not None and schedule.lanes not in row:
        extent *= schedule.unroll * schedule.width
    needed_later: set[int] = set()
    for number, node in enumerate(kernel.body):
        for argument in arguments(node):
            source = kernel.body[argument]
            if level[argument] < level[number] and isinstance(source, Op):
                needed_later.add(argument)
    chosen: set[int] = set()
    room = _KEPT_BYTES
    for number in sorted(needed_later, reverse=True):
        if not row & kernel.value_axes[number] or number in partial:
            continue
        bytes_ = extent * itemsize(kernel.dtypes[number])
        if bytes_ <= room and _cost(kernel, number, row) >= _WORTH_KEEPING:
            chosen.add(number)
            room -= bytes_
    return frozenset(chosen)


def _cost(kernel: Kernel, number: int, row: frozenset[str]) -> float:
    """What it costs to compute a value again at one position of the row."""
    total = 0.0
    seen: set[int] = set()
    waiting = [number]
    while waiting:
        current = waiting.pop()
        node = kernel.body[current]
        if current in seen or not row & kernel.value_axes[current]:
            continue
        seen.add(current)
        total += weight(node)
        if not isinstance(node, Reduce):
            waiting.extend(arguments(node))
    return total
