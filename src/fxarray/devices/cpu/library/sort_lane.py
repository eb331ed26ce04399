"""From the elements of one lane to records, and back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fxarray.devices.cpu.emit.function import FunctionText, Operand
from fxarray.devices.cpu.emit.types import itemsize
from fxarray.devices.cpu.library import elements, keys
from fxarray.devices.cpu.library.quick import splat
from fxarray.devices.cpu.library.radix import Records
from fxarray.devices.cpu.library.sorter import Sorter
from fxarray.devices.cpu.library.text import Layout, number, vector, vector_loop

Bounds = tuple[Operand | int, Operand]
Copies = tuple[Operand, Operand, Operand]


@dataclass(frozen=True)
class Plan:
    """How operands are sorted.

    Args:
      dtypes: of the operands.
      columns: what is compared, in order: the number of the operand, the dtype, and which part of
        complex elements.
      records: their form.
      low: what their lower bits hold: "nothing", "operand" or "position".
      quick: whether they are sorted by `quick`, else by `radix`.
      width: records in a vector.
    """

    dtypes: tuple[str, ...]
    columns: tuple[tuple[int, str, int], ...]
    records: Records
    low: str
    quick: bool
    width: int


@dataclass
class Lane:
    """One lane: n elements of each operand from `base` on, `stride` apart."""

    f: FunctionText
    plan: Plan
    layout: Layout
    n: Operand
    stride: Operand
    base: Operand

    def sort(self, copies: Copies) -> None:
        """Sort the lane, with memory for two copies of its records and for histograms."""
        everything: Bounds = (0, self.n)
        if len(self.plan.columns) == 1:
            minus = self.f.alloca("i64", "0")
            copies = (self.first_copy(copies[0]), *copies[1:])
            self.fill(copies[0], everything, minus)
            self.finish(self._sorted(copies), everything)
            self.restore_zeros(minus)
            return
        done = ""
        for column in reversed(self.plan.columns):
            self._fill_column(column, copies[0], done)
            done = self._sorted(copies, done)
        self._gather(done, everything, range(len(self.plan.dtypes)))

    def first_copy(self, scratch: Operand) -> Operand:
        """Memory for records: the result's, where they fit into it, else scratch memory."""
        f, dtype = self.f, self.plan.dtypes[0]
        if self.plan.low != "nothing" or itemsize(dtype) != self.plan.records.bytes:
            return scratch
        contiguous = f.new(f"icmp eq i64 {self.stride}, 1")
        target = self._pointer("out0", dtype)
        return f.new(f"select i1 {contiguous}, ptr {target}, ptr {scratch}")

    def _sorted(self, copies: Copies, source: Operand = "") -> Operand:
        """Sort the records in the first copy, or at `source`, one of the two; where they are."""
        f = self.f
        a, b, histograms = copies
        if source:
            first = f.new(f"icmp eq ptr {source}, {a}")
            b = f.new(f"select i1 {first}, ptr {b}, ptr {a}")
            a = source
        return Sorter.of(f, self.layout).sort(a, b, self.n, histograms)

    # --- addresses --------------------------------------------------------------------------------

    def _pointer(self, name: str, dtype: str) -> Operand:
        f = self.f
        return f.offset(self.layout.pointer(f, name), f.multiply(self.base, itemsize(dtype)))

    def _at(self, pointer: Operand, i: Operand, dtype: str, strided: bool = True) -> Operand:
        position = self.f.multiply(i, self.stride) if strided else i
        return self.f.offset(pointer, self.f.multiply(position, itemsize(dtype)))

    def _each(self, bounds: Bounds, body: Callable[[Operand, int, bool], None]) -> None:
        """`body(i, lanes, strided)` for all elements: in vectors where they are contiguous."""
        f = self.f
        low, high = bounds
        f.branch(
            f.new(f"icmp eq i64 {self.stride}, 1"),
            lambda: vector_loop(f, low, high, self.plan.width, lambda i, w: body(i, w, False)),
            lambda: f.loop(low, high, 1, lambda i: body(i, 1, True)),
        )

    # --- one key ----------------------------------------------------------------------------------

    @property
    def has_zeros(self) -> bool:
        """Whether there are two zeros that are equal."""
        return elements.is_float(self.plan.columns[0][1])

    def fill(self, target: Operand, bounds: Bounds, minus: Operand) -> None:
        """Make the records of some elements, for a single key; note at `minus` if any is -0."""
        f, plan = self.f, self.plan
        records = plan.records
        ((_, dtype, _),) = plan.columns
        given = elements.key_bits(dtype)
        source = self._pointer("in0", dtype)
        other = plan.dtypes[1] if plan.low == "operand" else ""
        carried = self._pointer("in1", other) if other else ""
        seen = f.alloca("i1", "false") if self.has_zeros else ""

        def put(i: Operand, lanes: int, strided: bool) -> None:
            where = self._at(source, i, dtype, strided)
            if seen:
                value = elements.load_float(f, where, dtype, lanes)
                self._note_minus(value, given, lanes, seen)
                key = keys.key_of_float(f, value, given, lanes)
            else:
                key = elements.load_key(f, where, dtype, lanes)
            record = elements.extended(f, key, given, records.bits, lanes)
            record = elements.shifted(f, record, records.bits, records.low, lanes)
            low = ""
            if other:
                raw = elements.load_raw(f, self._at(carried, i, other, strided), other, lanes)
                low = elements.extended(f, raw, 8 * itemsize(other), records.bits, lanes)
            elif plan.low == "position":
                low = self._positions(i, lanes)
            if low:
                record = f.new(f"or {vector(records.type, lanes)} {record}, {low}")
            where = f.offset(target, i, records.type)
            kind = vector(records.type, lanes)
            f.do(f"store {kind} {record}, ptr {where}, align {records.bytes}")

        self._each(bounds, put)
        if seen:
            found = f.new(f"load i1, ptr {seen}")
            f.branch(found, lambda: f.do(f"store atomic i64 1, ptr {minus} monotonic, align 8"))

    def _note_minus(self, value: Operand, bits: int, lanes: int, seen: Operand) -> None:
        f = self.f
        whole, real = f"i{bits}", "float" if bits == 32 else "double"
        wholes = vector(whole, lanes)
        pattern = f.new(f"bitcast {vector(real, lanes)} {value} to {wholes}")
        found = f.new(f"icmp eq {wholes} {pattern}, {number(whole, -(2 ** (bits - 1)), lanes)}")
        if lanes > 1:
            mask = f.new(f"bitcast <{lanes} x i1> {found} to i{lanes}")
            found = f.new(f"icmp ne i{lanes} {mask}, 0")
        before = f.new(f"load i1, ptr {seen}")
        f.do(f"store i1 {f.new(f'or i1 {before}, {found}')}, ptr {seen}")

    def _positions(self, i: Operand, lanes: int) -> Operand:
        """i, i + 1, ... in the type of records."""
        f, kind = self.f, self.plan.records.type
        first = elements.extended(f, i, 64, max(64, self.plan.records.bits))
        if lanes == 1:
            return first
        numbers = ", ".join(f"{kind} {lane}" for lane in range(lanes))
        return f.new(f"add <{lanes} x {kind}> {splat(f, first, kind, lanes)}, <{numbers}>")

    def finish(self, done: Operand, bounds: Bounds) -> None:
        """Store some elements from sorted records, for a single key."""
        f, plan = self.f, self.plan
        records = plan.records
        ((_, dtype, _),) = plan.columns
        given = elements.key_bits(dtype)
        target = self._pointer("out0", dtype)
        other = plan.dtypes[1] if plan.low == "operand" else ""
        carried = self._pointer("out1", other) if other else ""

        def put(i: Operand, lanes: int, strided: bool) -> None:
            kind = vector(records.type, lanes)
            where = f.offset(done, i, records.type)
            record = f.new(f"load {kind}, ptr {where}, align {records.bytes}")
            key = elements.shifted(f, record, records.bits, -records.low, lanes)
            key = elements.truncated(f, key, records.bits, given, lanes)
            elements.store_key(f, key, self._at(target, i, dtype, strided), dtype, lanes)
            if other:
                raw = elements.truncated(f, record, records.bits, 8 * itemsize(other), lanes)
                place = self._at(carried, i, other, strided)
                elements.store_raw(f, raw, place, other, lanes)

        self._each(bounds, put)
        if plan.low == "position":
            self._gather(done, bounds, range(1, len(plan.dtypes)))

    def restore_zeros(self, minus: Operand) -> None:
        """Zeros of both signs are equal, so they stay in order: give them back their signs.

        Records have the same key for both, and the sorted zeros, which come after what is less, are
        those of the lane in its order.
        """
        if not self.has_zeros:
            return
        f = self.f
        ((_, dtype, _),) = self.plan.columns
        real = "double" if dtype == "f64" else "float"

        def restore() -> None:
            source, target = self._pointer("in0", dtype), self._pointer("out0", dtype)
            place = f.alloca("i64", "0")

            def value_of(i: Operand) -> Operand:
                return elements.load_float(f, self._at(source, i, dtype), dtype, 1)

            def count(i: Operand) -> None:
                less = f.new(f"fcmp olt {real} {value_of(i)}, 0.0")
                now = f.new(f"load i64, ptr {place}")
                f.do(f"store i64 {f.add(now, f.new(f'zext i1 {less} to i64'))}, ptr {place}")

            def visit(i: Operand) -> None:
                def put() -> None:
                    to = f.new(f"load i64, ptr {place}")
                    f.do(f"store i64 {f.add(to, 1)}, ptr {place}")
                    raw = elements.load_raw(f, self._at(source, i, dtype), dtype)
                    elements.store_raw(f, raw, self._at(target, to, dtype), dtype)

                f.branch(f.new(f"fcmp oeq {real} {value_of(i)}, 0.0"), put)

            f.loop(0, self.n, 1, count)
            f.loop(0, self.n, 1, visit)

        f.branch(f.new(f"icmp ne i64 {f.load_word(minus, 0)}, 0"), restore)

    # --- positions --------------------------------------------------------------------------------

    def _gather(self, done: Operand, bounds: Bounds, operands: range) -> None:
        """Store operands in the order of records."""
        f, kind = self.f, self.plan.records.type
        for operand in operands:
            dtype = self.plan.dtypes[operand]
            source = self._pointer(f"in{operand}", dtype)
            target = self._pointer(f"out{operand}", dtype)

            def put(
                i: Operand, source: Operand = source, target: Operand = target, dtype: str = dtype
            ) -> None:
                record = f.new(f"load {kind}, ptr {f.offset(done, i, kind)}")
                raw = elements.load_raw(f, self._at(source, self._position(record), dtype), dtype)
                elements.store_raw(f, raw, self._at(target, i, dtype), dtype)

            f.loop(bounds[0], bounds[1], 1, put)

    def _position(self, record: Operand) -> Operand:
        records = self.plan.records
        low = elements.truncated(self.f, record, records.bits, records.low)
        return elements.extended(self.f, low, records.low, 64)

    def _fill_column(self, column: tuple[int, str, int], target: Operand, done: Operand) -> None:
        """Records of a column's keys, in the order of the last sort if there was one."""
        operand, dtype, part = column
        f, records = self.f, self.plan.records
        kind = records.type
        element = self.plan.dtypes[operand]
        source = self._pointer(f"in{operand}", element)

        def put(i: Operand) -> None:
            position = i
            if done:
                record = f.new(f"load {kind}, ptr {f.offset(done, i, kind)}")
                position = self._position(record)
            where = f.offset(self._at(source, position, element), part * itemsize(dtype))
            key = elements.load_key(f, where, dtype, 1)
            record = elements.extended(f, key, elements.key_bits(dtype), records.bits)
            record = elements.shifted(f, record, records.bits, records.low)
            low = elements.extended(f, position, 64, records.bits)
            record = f.new(f"or {kind} {record}, {low}")
            f.do(f"store {kind} {record}, ptr {f.offset(done or target, i, kind)}")

        f.loop(0, self.n, 1, put)
