"""The greatest elements along a dimension.

A buffer holds candidates: records of positions (see `sort`) and keys, complemented since the
greatest come first. When it is full, it is sorted, and all but the first k are dropped. From then
on only elements that come before the last of those are put into it: few, in most data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fxarray.core.types import ArrayType
from fxarray.devices.cpu.emit import memory
from fxarray.devices.cpu.emit.function import FunctionText, Operand
from fxarray.devices.cpu.emit.number import Number
from fxarray.devices.cpu.emit.types import itemsize
from fxarray.devices.cpu.library import elements
from fxarray.devices.cpu.library.quick import splat
from fxarray.devices.cpu.library.sort import (
    PART_ELEMENTS,
    make_plan,
    record_bytes,
    thread_records,
)
from fxarray.devices.cpu.library.sort_lane import Plan
from fxarray.devices.cpu.library.sorter import Sorter, add_sorter
from fxarray.devices.cpu.library.text import (
    Layout,
    ModuleText,
    ceiling_divide,
    part_bounds,
    run_parts,
    vector_loop,
)
from fxarray.devices.cpu.native.routine import Routine
from fxarray.devices.cpu.native.target import Target
from fxarray.kernel import sizes
from fxarray.primitives.sort import TopK

# The buffer holds 2k and so many records.
SLACK = 128


def top_k_routine(
    op: TopK, inputs: Sequence[ArrayType], outputs: Sequence[ArrayType], target: Target
) -> Routine:
    """The routine of `top_k`."""
    (x,) = inputs
    shape = sizes.kernel_shape(x.shape)
    n, inner = shape[op.axis], sizes.product(shape[op.axis + 1 :])
    k = sizes.kernel_shape(outputs[0].shape)[op.axis]
    lanes = sizes.multiply(sizes.product(shape[: op.axis]), inner)
    dtype = elements.short_dtype(x)
    plan = make_plan([dtype, "u64"], 1, target, n)
    layout = Layout.of(1, 2, {"n": n, "inner": inner, "lanes": lanes, "k": k}, scratch=True)
    add_sorter(layout, plan.records, plan.quick)
    capacity = sizes.add(sizes.multiply(k, 2), SLACK + 64)
    scratch = sizes.add(record_bytes(plan.records, capacity), plan.records.histogram_bytes)
    width = max(1, 8 * target.vector_bytes // elements.key_bits(dtype))
    return Routine(
        _module(plan, layout, dtype, width),
        tuple(layout.words),
        thread_scratch=scratch,
        bytes_moved=sizes.multiply(sizes.multiply(n, lanes), itemsize(dtype)),
    )


def _module(plan: Plan, layout: Layout, dtype: str, width: int) -> str:
    text = ModuleText()
    _define_select(text, plan)
    f = text.part("top_part")
    n, inner, lanes, k = (layout.size(f, name) for name in ("n", "inner", "lanes", "k"))
    capacity = f.add(f.multiply(k, 2), SLACK)
    copies = thread_records(f, layout, plan.records, f.add(capacity, 64))
    count, bound = f.alloca("i64"), f.alloca("i64")
    sorter = Sorter.of(f, layout).pointer
    given = elements.key_bits(dtype)
    candidates = _Candidates(f, plan, copies, k, capacity, count, bound, sorter, given)
    low, high = part_bounds(f, lanes, _lanes_each(f, n))

    def lane(number: Operand) -> None:
        outer = f.new(f"udiv i64 {number}, {inner}")
        column = f.subtract(number, f.multiply(outer, inner))
        base = f.add(f.multiply(f.multiply(outer, n), inner), column)
        source = f.offset(layout.pointer(f, "in0"), f.multiply(base, itemsize(dtype)))
        first = f.add(f.multiply(f.multiply(outer, k), inner), column)
        candidates.choose(source, n, inner, dtype, width)
        _store(f, plan, layout, copies[0], source, first, dtype)

    f.loop(low, high, 1, lane)
    e = text.entry()
    n, lanes, k = (layout.size(e, name) for name in ("n", "lanes", "k"))
    parts = ceiling_divide(e, lanes, _lanes_each(e, n))
    e.branch(e.new(f"icmp sgt i64 {k}, 0"), lambda: run_parts(e, "top_part", parts))
    return text.text()


def _lanes_each(f: FunctionText, n: Operand) -> Operand:
    return f.larger(f.new(f"udiv i64 {PART_ELEMENTS}, {f.larger(n, 1)}"), 1)


def _store(
    f: FunctionText,
    plan: Plan,
    layout: Layout,
    records: Operand,
    source: Operand,
    first: Operand,
    dtype: str,
) -> None:
    """The elements of the first k records, and their positions, from element `first` on."""
    kind, inner = plan.records.type, layout.size(f, "inner")
    values, indices = layout.pointer(f, "out0"), layout.pointer(f, "out1")

    def put(i: Operand) -> None:
        record = f.new(f"load {kind}, ptr {f.offset(records, i, kind)}")
        low = elements.truncated(f, record, plan.records.bits, 32)
        position = elements.extended(f, low, 32, 64)
        where = f.offset(source, f.multiply(f.multiply(position, inner), itemsize(dtype)))
        to = f.add(first, f.multiply(i, inner))
        raw = elements.load_raw(f, where, dtype)
        elements.store_raw(f, raw, f.offset(values, f.multiply(to, itemsize(dtype))), dtype)
        f.do(f"store i32 {low}, ptr {f.offset(indices, to, 'i32')}")

    f.loop(0, layout.size(f, "k"), 1, put)


@dataclass
class _Candidates:
    """Writes the choice of one lane's candidates.

    Args:
      f: the function that is being written.
      plan: how records are sorted.
      copies: memory for two copies of candidates, and for histograms.
      k: how many are wanted.
      capacity: how many the buffer holds.
      count: the memory of the number of candidates.
      bound: the memory of the key (as i64) that others must be below.
      sorter: the address of what sorts records.
      given: the bits of keys.
    """

    f: FunctionText
    plan: Plan
    copies: tuple[Operand, Operand, Operand]
    k: Operand
    capacity: Operand
    count: Operand
    bound: Operand
    sorter: Operand
    given: int

    def choose(self, source: Operand, n: Operand, stride: Operand, dtype: str, width: int) -> None:
        """Make the first k records of the first copy those of the greatest elements, in order."""
        f = self.f
        size = itemsize(dtype)
        # All of the first elements are candidates.
        first = f.smaller(n, self.capacity)

        def take(i: Operand) -> None:
            where = f.offset(source, f.multiply(f.multiply(i, stride), size))
            self._append(self._key(where, dtype, 1).operand, i)

        f.do(f"store i64 0, ptr {self.count}")
        f.loop(0, first, 1, take)
        self._select()

        def visit(i: Operand, lanes: int) -> None:
            offset = f.multiply(f.multiply(i, stride), size)
            key = self._key(f.offset(source, offset), dtype, lanes)
            self._consider(key, i)

        f.branch(
            f.new(f"icmp eq i64 {stride}, 1"),
            lambda: vector_loop(f, first, n, width, visit),
            lambda: f.loop(first, n, 1, lambda i: visit(i, 1)),
        )
        more = f.new(f"icmp sgt i64 {f.new(f'load i64, ptr {self.count}')}, {self.k}")
        f.branch(more, self._select)

    def _key(self, pointer: Operand, dtype: str, lanes: int) -> Number:
        return ~elements.key_of(self.f, memory.load(self.f, pointer, dtype, lanes))

    def _append(self, key: Operand, position: Operand) -> None:
        f, records = self.f, self.plan.records
        record = elements.extended(f, key, self.given, records.bits)
        record = elements.shifted(f, record, records.bits, records.low)
        low = elements.extended(f, position, 64, records.bits)
        record = f.new(f"or {records.type} {record}, {low}")
        count = f.new(f"load i64, ptr {self.count}")
        f.do(f"store {records.type} {record}, ptr {f.offset(self.copies[0], count, records.type)}")
        f.do(f"store i64 {f.add(count, 1)}, ptr {self.count}")

    def _consider(self, key: Number, position: Operand) -> None:
        """Append the lanes that come before the bound; they are few."""
        f, lanes = self.f, key.lanes
        bound = f.new(f"load i64, ptr {self.bound}")
        bound = elements.truncated(f, bound, 64, self.given)
        if lanes > 1:
            bound = splat(f, bound, key.type, lanes)
        before = key.compare("ult", Number(f, key.type, lanes, bound))
        if lanes == 1:
            f.branch(before.operand, lambda: self._append_one(key.operand, position))
            return
        bits = f.new(f"bitcast <{lanes} x i1> {before.operand} to i{lanes}")
        if lanes < 64:
            bits = f.new(f"zext i{lanes} {bits} to i64")
        left = f.alloca("i64")
        spilled = f.alloca(key.whole_type)
        f.declare("declare i64 @llvm.cttz.i64(i64, i1)")

        def some() -> None:
            f.do(f"store i64 {bits}, ptr {left}")
            f.do(f"store {key.whole_type} {key.operand}, ptr {spilled}")

            def more() -> Operand:
                return f.new(f"icmp ne i64 {f.new(f'load i64, ptr {left}')}, 0")

            def one() -> None:
                now = f.new(f"load i64, ptr {left}")
                lane = f.new(f"call i64 @llvm.cttz.i64(i64 {now}, i1 true)")
                rest = f.new(f"and i64 {now}, {f.subtract(now, 1)}")
                f.do(f"store i64 {rest}, ptr {left}")
                where = f.offset(spilled, lane, key.type)
                chosen = f.new(f"load {key.type}, ptr {where}")
                self._append_one(chosen, f.add(position, lane))

            f.loop_while(more, one)

        f.branch(f.new(f"icmp ne i64 {bits}, 0"), some)

    def _append_one(self, key: Operand, position: Operand) -> None:
        f = self.f
        self._append(key, position)
        full = f.new(f"icmp sge i64 {f.new(f'load i64, ptr {self.count}')}, {self.capacity}")
        f.branch(full, self._select)

    def _select(self) -> None:
        """Sort the candidates, keep the first k, and bound others by the last of them."""
        f = self.f
        f.do(
            f"call void @select_candidates(ptr {self.copies[0]}, ptr {self.copies[1]}, "
            f"ptr {self.copies[2]}, i64 {self.k}, ptr {self.count}, ptr {self.bound}, "
            f"ptr {self.sorter})"
        )


def _define_select(text: ModuleText, plan: Plan) -> None:
    """`@select_candidates`, whose parameters are those of `_Candidates` and the sorter."""
    records = plan.records
    kind = records.type
    f = text.inner(
        "select_candidates",
        "ptr %a",
        "ptr %b",
        "ptr %histograms",
        "i64 %k",
        "ptr %count",
        "ptr %bound",
        "ptr %sorter",
    )
    count = f.load_word("%count", 0)
    done = Sorter(f, "%sorter").sort("%a", "%b", count, "%histograms")
    kept = f.smaller(count, "%k")
    f.declare("declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)")
    size = f.multiply(kept, records.bytes)
    f.do(f"call void @llvm.memmove.p0.p0.i64(ptr %a, ptr {done}, i64 {size}, i1 false)")
    f.do(f"store i64 {kept}, ptr %count")
    last = f.offset("%a", f.subtract(kept, 1), kind)
    record = f.new(f"load {kind}, ptr {last}")
    key = f.new(f"lshr {kind} {record}, {records.low}")
    if records.bits > 64:
        key = f.new(f"trunc {kind} {key} to i64")
    f.do(f"store i64 {key}, ptr %bound")
