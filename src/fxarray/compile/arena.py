"""Places in one arena for memory that is alive for a while each.

Two methods, of which the better result counts. The sweep goes through time and gives each interval
the tightest hole there is. The other places intervals by decreasing size, each at the lowest offset
where it meets no other of its time, which is tighter as a rule but takes quadratic time.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Sequence
from typing import NamedTuple

_QUADRATIC_LIMIT = 1000


class Interval(NamedTuple):
    """Memory that is alive from time `first` to time `last`, both included."""

    bytes: int
    first: int
    last: int


def assign(intervals: Sequence[Interval]) -> tuple[list[int], int]:
    """An offset for each interval, and the size of the arena."""
    swept = _sweep(intervals)
    if swept[1] == 0 or len(intervals) > _QUADRATIC_LIMIT or swept[1] == _lower_bound(intervals):
        return swept
    return min(swept, _by_size(intervals), key=lambda result: result[1])


def _lower_bound(intervals: Sequence[Interval]) -> int:
    """The most bytes that are alive at one time."""
    changes: list[tuple[int, int, int]] = []
    for interval in intervals:
        changes.append((interval.first, 0, interval.bytes))
        changes.append((interval.last, 1, -interval.bytes))
    alive = most = 0
    for _, _, change in sorted(changes):
        alive += change
        most = max(most, alive)
    return most


def _sweep(intervals: Sequence[Interval]) -> tuple[list[int], int]:
    offsets = [0] * len(intervals)
    order = sorted(range(len(intervals)), key=lambda i: (intervals[i].first, -intervals[i].bytes))
    ending = sorted(range(len(intervals)), key=lambda i: intervals[i].last)
    holes: list[tuple[int, int]] = []  # (offset, bytes), neither touching nor overlapping
    top = finished = 0
    for number in order:
        interval = intervals[number]
        while finished < len(ending) and intervals[ending[finished]].last < interval.first:
            done = ending[finished]
            finished += 1
            if intervals[done].bytes:
                _give_back(holes, offsets[done], intervals[done].bytes)
        size = interval.bytes
        if size == 0:
            continue
        best = -1
        for index, (_, room) in enumerate(holes):
            if room >= size and (best < 0 or room < holes[best][1]):
                best = index
        if best >= 0:
            offset, room = holes.pop(best)
            if room > size:
                insort(holes, (offset + size, room - size))
        elif holes and sum(holes[-1]) == top:
            offset, _ = holes.pop()
        else:
            offset = top
        offsets[number] = offset
        top = max(top, offset + size)
    return offsets, top


def _give_back(holes: list[tuple[int, int]], offset: int, size: int) -> None:
    insort(holes, (offset, size))
    index = holes.index((offset, size))
    if index + 1 < len(holes) and offset + size == holes[index + 1][0]:
        size += holes.pop(index + 1)[1]
        holes[index] = (offset, size)
    if index and sum(holes[index - 1]) == offset:
        before = holes[index - 1]
        holes[index - 1 : index + 1] = [(before[0], before[1] + size)]


def _by_size(intervals: Sequence[Interval]) -> tuple[list[int], int]:
    offsets = [0] * len(intervals)
    placed: list[tuple[int, int, int, int]] = []  # (offset, end, first, last), by offset
    top = 0
    order = sorted(range(len(intervals)), key=lambda i: (-intervals[i].bytes, intervals[i].first))
    for number in order:
        size, first, last = intervals[number]
        if size == 0:
            continue
        best = low = 0
        tightest = -1
        for offset, end, begins, ends in placed:
            if ends < first or last < begins:
                continue
            if offset - low >= size and (tightest < 0 or offset - low < tightest):
                best, tightest = low, offset - low
            low = max(low, end)
        offset = best if tightest >= 0 else low
        offsets[number] = offset
        insort(placed, (offset, offset + size, first, last))
        top = max(top, offset + size)
    return offsets, top


def check(intervals: Sequence[Interval], offsets: Sequence[int], arena: int) -> None:
    """Raise unless all intervals lie in the arena, and apart where they meet in time."""
    alive: list[tuple[int, int, int]] = []  # (last, offset, end)
    order = sorted(range(len(intervals)), key=lambda i: intervals[i].first)
    for number in order:
        size, first, last = intervals[number]
        if size == 0:
            continue
        begin, end = offsets[number], offsets[number] + size
        if begin < 0 or end > arena:
            raise AssertionError(f"memory at {begin} to {end} is outside of the arena of {arena}")
        alive = [other for other in alive if other[0] >= first]
        for _, low, high in alive:
            if begin < high and low < end:
                raise AssertionError(
                    f"memory at {begin} to {end} and at {low} to {high} is alive at one time"
                )
        alive.append((last, begin, end))
