"""Cutting records into segments that can be sorted each on its own, by a few partitions."""

from __future__ import annotations

from fxarray.devices.cpu.emit.function import FunctionText, Operand
from fxarray.devices.cpu.library.quick import BLOCK, choose_pivot
from fxarray.devices.cpu.library.radix import Records
from fxarray.devices.cpu.library.text import ModuleText

# How often segments are halved, and the length up to which they are not.
LEVELS = 4
SHORT = 1 << 13
# Bytes of a list: words for the caller's use, 64 bytes of them, the number of segments, and four
# words for each segment.
LISTS = 64 + 8 + 32 * (1 << LEVELS) + 56
# Partitions of partitions that the sort of a segment may need.
DEPTH = 64


def define_segments(text: ModuleText, records: Records) -> None:
    """Define functions that list segments, and that sort the segments of a list.

    `@list_segments(ptr %x, ptr %y, ptr %final, i64 %n, i64 %level, ptr %list)` takes its arguments
    as `@sort_quick` does; `@sort_listed(ptr %list, i64 %number, ptr %histograms)`.
    """
    kind = records.type
    f = text.inner(
        "list_segments", "ptr %x", "ptr %y", "ptr %final", "i64 %n", "i64 %level", "ptr %list"
    )
    below = f.alloca("i64", "0")
    samples = f.alloca(f"[{BLOCK} x {kind}]")
    chosen = f.alloca(kind)

    def append() -> None:
        count = f.load_word("%list", 0)
        place = _place(f, "%list", count)
        for number, (type_, value) in enumerate(
            (("ptr", "%x"), ("ptr", "%y"), ("ptr", "%final"), ("i64", "%n"))
        ):
            f.do(f"store {type_} {value}, ptr {f.offset(place, 8 * number)}")
        f.do(f"store i64 {f.add(count, 1)}, ptr %list")

    def part() -> None:
        choose_pivot(f, records, samples, chosen)
        pivot = f.new(f"load {kind}, ptr {chosen}")
        f.do(f"call void @sort_split(ptr %x, ptr %y, i64 %n, {kind} {pivot}, ptr {below})")
        count = f.new(f"load i64, ptr {below}")
        level = f.add("%level", 1)

        def list_part(x: Operand, y: Operand, final: Operand, n: Operand) -> None:
            f.do(
                f"call void @list_segments(ptr {x}, ptr {y}, ptr {final}, i64 {n}, i64 {level}, "
                "ptr %list)"
            )

        def both() -> None:
            list_part("%x", "%y", "%final", count)
            x, y, final = (f.offset(name, count, kind) for name in ("%y", "%x", "%final"))
            list_part(x, y, final, f.subtract("%n", count))

        # If nothing exceeds the pivot, many records are equal, which the sort deals with.
        f.branch(f.new(f"icmp eq i64 {count}, %n"), append, both)

    stop = f.new(f"icmp sge i64 %level, {LEVELS}")
    short = f.new(f"icmp sle i64 %n, {SHORT}")
    f.branch(f.new(f"or i1 {stop}, {short}"), append, part)

    f = text.inner("sort_listed", "ptr %list", "i64 %number", "ptr %histograms")
    place = _place(f, "%list", "%number")
    x, y = (f.load_word(place, number, "ptr") for number in range(2))
    final, n = listed_segment(f, "%list", "%number")
    f.do(
        f"call void @sort_quick(ptr {x}, ptr {y}, ptr {final}, i64 {n}, i64 {DEPTH}, "
        "ptr %histograms)"
    )


def _place(f: FunctionText, listed: Operand, number: Operand) -> Operand:
    return f.offset(f.offset(listed, 8), f.multiply(number, 32))


def listed_segment(f: FunctionText, listed: Operand, number: Operand) -> tuple[Operand, Operand]:
    """Where a segment of a list is when it is sorted, and its length."""
    place = _place(f, listed, number)
    return f.load_word(place, 2, "ptr"), f.load_word(place, 3)
