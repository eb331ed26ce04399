"""Sorting records: unsigned integers whose upper bits are a key, in the stable order of the keys.

Long arrays are sorted digit by digit from the least significant one (a radix sort): each pass
moves all records to where the histogram of their digits says. A digit that all records share costs
no pass, so small integers and narrow floats take fewer. Short arrays are sorted by insertion.
"""

from __future__ import annotations

from dataclasses import dataclass

from fxarray.devices.cpu.emit.function import FunctionText, Operand
from fxarray.devices.cpu.library.text import ModuleText

INSERTION_LIMIT = 40
WIDE_DIGIT, NARROW_DIGIT = 11, 8
# From here on fewer passes pay for the larger histograms.
WIDE_FROM = 6000


@dataclass(frozen=True)
class Records:
    """The form of records.

    Args:
      bits: of a record: 32, 64 or 128.
      key_bits: of the key, in the upper part.
      counter_bits: of counts, which bound the number of records.
    """

    bits: int
    key_bits: int
    counter_bits: int = 32

    @property
    def type(self) -> str:
        return f"i{self.bits}"

    @property
    def bytes(self) -> int:
        return self.bits // 8

    @property
    def low(self) -> int:
        """The lowest bit of the key."""
        return self.bits - self.key_bits

    @property
    def histogram_bytes(self) -> int:
        """Of the memory for histograms that a sort needs."""
        wide = -(-self.key_bits // WIDE_DIGIT) << WIDE_DIGIT
        narrow = -(-self.key_bits // NARROW_DIGIT) << NARROW_DIGIT
        return self.counter_bits // 8 * max(wide, narrow)


def define_radix_sort(text: ModuleText, records: Records, instead: str = "") -> None:
    """Define `@sort_records(ptr %a, ptr %b, i64 %n, ptr %histograms, ptr %result)`.

    It sorts the n records at `a`, with equal memory at `b`, and stores the address of the sorted
    ones, `a` or `b`, to `result`. Counters must be able to hold n.

    Args:
      text: where to.
      records: their form.
      instead: a function such as `@sort_quick` that sorts what it can.
    """
    _define_radix(text, records, "sort_wide", WIDE_DIGIT)
    parameters = ("ptr %a", "ptr %b", "i64 %n", "ptr %histograms", "ptr %result")
    f = text.inner("sort_records", *parameters)
    if instead:
        f.do(f"call void {instead}(ptr %a, ptr %b, ptr %a, i64 %n, i64 64, ptr %histograms)")
        f.do("store ptr %a, ptr %result")
        return
    _define_insertion(text, records)
    _define_radix(text, records, "sort_narrow", NARROW_DIGIT)

    def short() -> None:
        f.do("call void @sort_insertion(ptr %a, i64 %n)")
        f.do("store ptr %a, ptr %result")

    def long() -> None:
        f.branch(
            f.new(f"icmp slt i64 %n, {WIDE_FROM}"),
            lambda: f.do(f"call void @sort_narrow({', '.join(parameters)})"),
            lambda: f.do(f"call void @sort_wide({', '.join(parameters)})"),
        )

    f.branch(f.new(f"icmp sle i64 %n, {INSERTION_LIMIT}"), short, long)


def key_of(f: FunctionText, record: Operand, records: Records) -> Operand:
    """The key of a record, in the record's type."""
    if not records.low:
        return record
    return f.new(f"lshr {records.type} {record}, {records.low}")


def _define_insertion(text: ModuleText, records: Records) -> None:
    kind = records.type
    f = text.inner("sort_insertion", "ptr %a", "i64 %n")

    def insert(i: Operand) -> None:
        record = f.new(f"load {kind}, ptr {f.offset('%a', i, kind)}")
        key = key_of(f, record, records)
        place = f.alloca("i64", i)

        def later() -> Operand:
            # The record before stays where it is unless its key is greater.
            here = f.new(f"load i64, ptr {place}")
            inside = f.new(f"icmp sgt i64 {here}, 0")
            before = f.new(f"select i1 {inside}, i64 {f.subtract(here, 1)}, i64 0")
            other = f.new(f"load {kind}, ptr {f.offset('%a', before, kind)}")
            greater = f.new(f"icmp ugt {kind} {key_of(f, other, records)}, {key}")
            f.do(f"store {kind} {other}, ptr {spare}")
            return f.new(f"and i1 {inside}, {greater}")

        def move() -> None:
            here = f.new(f"load i64, ptr {place}")
            other = f.new(f"load {kind}, ptr {spare}")
            f.do(f"store {kind} {other}, ptr {f.offset('%a', here, kind)}")
            f.do(f"store i64 {f.subtract(here, 1)}, ptr {place}")

        spare = f.alloca(kind)
        f.loop_while(later, move)
        here = f.new(f"load i64, ptr {place}")
        f.do(f"store {kind} {record}, ptr {f.offset('%a', here, kind)}")

    f.loop(1, "%n", 1, insert)


def _digit(f: FunctionText, record: Operand, records: Records, number: int, bits: int) -> Operand:
    """A digit of a record's key, as i64."""
    kind = records.type
    shift = records.low + number * bits
    shifted = f.new(f"lshr {kind} {record}, {shift}") if shift else record
    narrow = shifted
    if records.bits > 64:
        narrow = f.new(f"trunc {kind} {shifted} to i64")
    elif records.bits < 64:
        narrow = f.new(f"zext {kind} {shifted} to i64")
    return f.new(f"and i64 {narrow}, {(1 << bits) - 1}")


def _define_radix(text: ModuleText, records: Records, name: str, bits: int) -> None:
    kind, counter = records.type, f"i{records.counter_bits}"
    parameters = ("ptr %a", "ptr %b", "i64 %n", "ptr %histograms", "ptr %result")
    f = text.inner(name, *parameters)
    passes = -(-records.key_bits // bits)
    buckets = 1 << bits
    f.declare("declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)")
    size = records.counter_bits // 8 * buckets * passes
    f.do(f"call void @llvm.memset.p0.i64(ptr %histograms, i8 0, i64 {size}, i1 false)")

    def bucket(number: int, digit: Operand) -> Operand:
        return f.offset(f.offset("%histograms", number * buckets, counter), digit, counter)

    def count(i: Operand) -> None:
        record = f.new(f"load {kind}, ptr {f.offset('%a', i, kind)}")
        for number in range(passes):
            where = bucket(number, _digit(f, record, records, number, bits))
            so_far = f.new(f"load {counter}, ptr {where}")
            f.do(f"store {counter} {f.new(f'add {counter} {so_far}, 1')}, ptr {where}")

    f.loop(0, "%n", 1, count)
    source = f.alloca("ptr", "%a")
    target = f.alloca("ptr", "%b")
    for number in range(passes):
        current = f.new(f"load ptr, ptr {source}")
        first = f.new(f"load {kind}, ptr {current}")
        digit = _digit(f, first, records, number, bits)
        share = f.new(f"load {counter}, ptr {bucket(number, digit)}")
        all_share = f.new(f"icmp eq i64 {_as_index(f, share, counter)}, %n")

        def scatter(number: int = number, current: Operand = current) -> None:
            _prefix(f, bucket(number, "0"), buckets, counter)
            place = f.new(f"load ptr, ptr {target}")

            def move(i: Operand) -> None:
                record = f.new(f"load {kind}, ptr {f.offset(current, i, kind)}")
                where = bucket(number, _digit(f, record, records, number, bits))
                position = f.new(f"load {counter}, ptr {where}")
                f.do(f"store {counter} {f.new(f'add {counter} {position}, 1')}, ptr {where}")
                wide = _as_index(f, position, counter)
                f.do(f"store {kind} {record}, ptr {f.offset(place, wide, kind)}")

            f.loop(0, "%n", 1, move)
            f.do(f"store ptr {place}, ptr {source}")
            f.do(f"store ptr {current}, ptr {target}")

        f.branch(all_share, lambda: None, scatter)
    f.do(f"store ptr {f.new(f'load ptr, ptr {source}')}, ptr %result")


def _prefix(f: FunctionText, histogram: Operand, buckets: int, counter: str) -> None:
    """Turn counts into the positions where the records of each bucket start."""
    total = f.alloca(counter, "0")

    def step(i: Operand) -> None:
        where = f.offset(histogram, i, counter)
        count = f.new(f"load {counter}, ptr {where}")
        before = f.new(f"load {counter}, ptr {total}")
        f.do(f"store {counter} {before}, ptr {where}")
        f.do(f"store {counter} {f.new(f'add {counter} {before}, {count}')}, ptr {total}")

    f.loop(0, buckets, 1, step)


def _as_index(f: FunctionText, count: Operand, counter: str) -> Operand:
    return count if counter == "i64" else f.new(f"zext {counter} {count} to i64")
