"""Sorting arrays along a dimension.

Keys become unsigned integers in the upper bits of records (see `keys`), which are sorted lane by
lane and turned back into elements. What the lower bits hold is one of three things:

- nothing, if the keys are sorted alone;
- the other operand, if there is one that fits, and records are sorted stably (by `radix`);
- positions, which make all records different, so that any way to sort (such as `quick`) is stable.
  Operands are gathered by them. If there are several keys, the sort is repeated from the last to
  the first, each time in the order that the one before left.

Few long lanes are cut, by a few partitions, into segments that all threads sort; many lanes are
shared out among threads.
"""

from __future__ import annotations

from collections.abc import Sequence

from fxarray.core.types import ArrayType
from fxarray.devices.cpu.emit.function import FunctionText, Operand
from fxarray.devices.cpu.emit.types import itemsize
from fxarray.devices.cpu.library import elements
from fxarray.devices.cpu.library.radix import Records
from fxarray.devices.cpu.library.segments import LISTS, listed_segment
from fxarray.devices.cpu.library.sort_lane import Lane, Plan
from fxarray.devices.cpu.library.sorter import Sorter, add_sorter
from fxarray.devices.cpu.library.text import (
    Layout,
    ModuleText,
    ceiling_divide,
    part_bounds,
    run_parts,
)
from fxarray.devices.cpu.native.routine import Routine
from fxarray.devices.cpu.native.target import Target
from fxarray.kernel import sizes
from fxarray.kernel.sizes import Size
from fxarray.primitives.sort import Sort

# Elements that a part sorts where there are several lanes, and that it converts of a long one.
PART_ELEMENTS = 1 << 15
# Lanes that are at least so long are sorted by all threads together, if there are few of them.
LONG, FEW = 1 << 16, 8
# Positions and counts of records are 32 bits wide, but for more elements than these.
NARROW = 2**32 - 1


def sort_routine(
    op: Sort, inputs: Sequence[ArrayType], outputs: Sequence[ArrayType], target: Target
) -> Routine:
    """The routine of a sort."""
    shape = sizes.kernel_shape(inputs[0].shape)
    n, inner = shape[op.dimension], sizes.product(shape[op.dimension + 1 :])
    lanes = sizes.multiply(sizes.product(shape[: op.dimension]), inner)
    dtypes = [elements.short_dtype(given) for given in inputs]
    plan = make_plan(dtypes, op.num_keys, target, n)
    records = plan.records
    layout = Layout.of(
        len(inputs), len(outputs), {"n": n, "inner": inner, "lanes": lanes}, scratch=True
    )
    add_sorter(layout, records, plan.quick)
    moved = sizes.multiply(sizes.multiply(n, lanes), 2 * sum(map(itemsize, dtypes)))
    long = plan.quick and sizes.typical(n) >= LONG and sizes.typical(lanes) < FEW
    copies = record_bytes(records, n)
    if long:
        text = _long_module(plan, layout)
        histograms = records.histogram_bytes
        return Routine(
            text, tuple(layout.words), sizes.add(copies, LISTS), histograms, bytes_moved=moved
        )
    own = sizes.add(copies, records.histogram_bytes)
    text = _lanes_module(plan, layout)
    return Routine(text, tuple(layout.words), thread_scratch=own, bytes_moved=moved)


def make_plan(dtypes: Sequence[str], num_keys: int, target: Target, n: Size) -> Plan:
    """How n elements of operands of some dtypes are sorted."""
    most = sizes.bounds(n)[1]
    huge = most is None or most > NARROW
    counter = 64 if huge else 32
    columns: list[tuple[int, str, int]] = []
    for number, dtype in enumerate(dtypes[:num_keys]):
        parts = 2 if elements.is_complex(dtype) else 1
        columns += [(number, elements.part_dtype(dtype), part) for part in range(parts)]
    bits = max(elements.key_bits(dtype) for _, dtype, _ in columns)
    compresses = target.architecture == "x86_64" and target.vector_bytes == 64
    if len(columns) == 1 and len(dtypes) == 1:
        records, low = Records(bits, bits, counter), "nothing"
        quick = compresses
    else:
        bits = 64 if huge else bits
        records = Records(2 * bits, bits, counter)
        quick = compresses and bits == 32 and len(columns) == 1
        fits = len(columns) == 1 and len(dtypes) == 2 and 8 * itemsize(dtypes[1]) <= bits
        low = "operand" if fits and not quick else "position"
    width = max(1, target.vector_bytes // records.bytes)
    return Plan(tuple(dtypes), tuple(columns), records, low, quick, width)


def record_bytes(records: Records, n: Size) -> Size:
    """The bytes of two copies of n records, as `cut_records` cuts them."""
    return sizes.add(sizes.multiply(n, 2 * records.bytes), 256)


def cut_records(
    f: FunctionText, base: Operand, records: Records, n: Operand
) -> tuple[Operand, Operand, Operand]:
    """Two copies of n records in memory from `base` on, and what follows, all aligned to 64."""
    copy = f.new(f"and i64 {f.add(f.multiply(n, records.bytes), 63)}, -64")
    second = f.offset(base, copy)
    return base, second, f.offset(second, copy)


def thread_records(
    f: FunctionText, layout: Layout, records: Records, n: Operand
) -> tuple[Operand, Operand, Operand]:
    """The same in the memory of this thread; what follows is memory for histograms."""
    copy = f.new(f"and i64 {f.add(f.multiply(n, records.bytes), 63)}, -64")
    own = f.add(f.multiply(copy, 2), records.histogram_bytes)
    base = f.offset(layout.pointer(f, "scratch"), f.multiply("%thread", own))
    return cut_records(f, base, records, n)


# --- many lanes -----------------------------------------------------------------------------------


def _lanes_module(plan: Plan, layout: Layout) -> str:
    text = ModuleText()
    f = text.part("sort_lanes")
    n, inner, lanes = (layout.size(f, name) for name in ("n", "inner", "lanes"))
    copies = thread_records(f, layout, plan.records, n)
    low, high = part_bounds(f, lanes, _lanes_each(f, n, inner))

    def lane(number: Operand) -> None:
        _lane(f, plan, layout, n, inner, number).sort(copies)

    f.loop(low, high, 1, lane)
    e = text.entry()
    n, inner, lanes = (layout.size(e, name) for name in ("n", "inner", "lanes"))

    def start() -> None:
        run_parts(e, "sort_lanes", ceiling_divide(e, lanes, _lanes_each(e, n, inner)))

    e.branch(e.new(f"icmp sgt i64 {n}, 0"), start)
    return text.text()


def _lane(
    f: FunctionText, plan: Plan, layout: Layout, n: Operand, inner: Operand, number: Operand
) -> Lane:
    outer = f.new(f"udiv i64 {number}, {inner}")
    column = f.subtract(number, f.multiply(outer, inner))
    base = f.add(f.multiply(f.multiply(outer, n), inner), column)
    return Lane(f, plan, layout, n, inner, base)


def _lanes_each(f: FunctionText, n: Operand, inner: Operand) -> Operand:
    """How many lanes a part sorts; neighbours share cache lines, where the stride is not 1."""
    least = f.new(f"select i1 {f.new(f'icmp sgt i64 {inner}, 1')}, i64 16, i64 1")
    each = f.larger(f.new(f"udiv i64 {PART_ELEMENTS}, {f.larger(n, 1)}"), 1)
    return f.new(f"and i64 {f.add(each, f.subtract(least, 1))}, {f.subtract(0, least)}")


# --- few long lanes -------------------------------------------------------------------------------


def _long_module(plan: Plan, layout: Layout) -> str:
    """Each lane in turn: records of its elements, segments of them, their sorts, and elements.

    The number of the lane, whether it has a -0, and the list of segments, stand at the end of the
    scratch memory that all threads share.
    """
    text = ModuleText()
    records = plan.records

    def shared(f: FunctionText) -> tuple[Operand, Operand, Operand]:
        return cut_records(f, layout.pointer(f, "scratch"), records, layout.size(f, "n"))

    def current(f: FunctionText) -> tuple[Lane, tuple[Operand, Operand, Operand]]:
        a, b, rest = shared(f)
        n, inner = layout.size(f, "n"), layout.size(f, "inner")
        lane = _lane(f, plan, layout, n, inner, f.load_word(rest, 0))
        return lane, (lane.first_copy(a), b, rest)

    fill = text.part("fill_chunk")
    lane, (a, _, rest) = current(fill)
    bounds = part_bounds(fill, lane.n, PART_ELEMENTS)
    lane.fill(a, bounds, fill.offset(rest, 8))
    f = text.part("sort_segment")
    lane, (a, _, rest) = current(f)
    histograms = f.offset(f.offset(rest, LISTS), f.multiply("%thread", records.histogram_bytes))
    listed = f.offset(rest, 64)
    Sorter.of(f, layout).sort_listed(listed, "%part", histograms)
    # What was sorted is in the processor's cache.
    final, count = listed_segment(f, listed, "%part")
    first, start = (f.new(f"ptrtoint ptr {pointer} to i64") for pointer in (a, final))
    low = f.new(f"udiv i64 {f.subtract(start, first)}, {records.bytes}")
    lane.finish(a, (low, f.add(low, count)))
    e = text.entry()
    n = layout.size(e, "n")
    chunks = ceiling_divide(e, n, PART_ELEMENTS)

    def one(number: Operand) -> None:
        a, b, rest = shared(e)
        lane = _lane(e, plan, layout, n, layout.size(e, "inner"), number)
        minus, listed = e.offset(rest, 8), e.offset(rest, 64)
        e.do(f"store i64 {number}, ptr {rest}")
        e.do(f"store i64 0, ptr {minus}")
        run_parts(e, "fill_chunk", chunks)
        e.do(f"store i64 0, ptr {listed}")
        Sorter.of(e, layout).list_segments(lane.first_copy(a), b, n, listed)
        run_parts(e, "sort_segment", e.load_word(listed, 0))
        lane.restore_zeros(minus)

    e.branch(e.new(f"icmp sgt i64 {n}, 0"), lambda: e.loop(0, layout.size(e, "lanes"), 1, one))
    return text.text()
