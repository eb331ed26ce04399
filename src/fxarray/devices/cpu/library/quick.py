"""Sorting unsigned integers by vectors, where the processor can compress them (AVX-512).

A quicksort whose partitions move whole vectors, and whose last blocks are sorted in registers by a
bitonic network. Equal integers cannot be told apart, so stability is no question: records that
carry positions are all different.

Sources: K. E. Batcher, "Sorting networks and their applications", AFIPS 1968; S. Gueron and
V. Krasnov, "Fast quicksort implementation using AVX instructions", The Computer Journal 59, 2016.
"""

from __future__ import annotations

from collections.abc import Callable

from fxarray.devices.cpu.emit.function import FunctionText, Operand
from fxarray.devices.cpu.library.radix import Records
from fxarray.devices.cpu.library.text import ModuleText, declare

# Records that the largest network sorts.
BLOCK = 128
# From the former number of records on, a pivot is the median of a block of samples, else of fewer.
MANY_SAMPLES, FEW_SAMPLES = 4096, 16


def define_quick_sort(text: ModuleText, records: Records) -> None:
    """Define `@sort_quick(ptr %x, ptr %y, ptr %final, i64 %n, i64 %depth, ptr %histograms)`.

    It sorts the n records at `x`, with equal memory at `y`; the sorted ones are at `final`, which
    is either of the two. `depth` bounds how often parts are parted again; then `@sort_wide`, which
    must be defined, takes over.
    """
    lanes = 512 // records.bits
    _define_blocks(text, records, lanes)
    _define_split(text, records, lanes)
    kind = records.type
    parameters = ("ptr %x", "ptr %y", "ptr %final", "i64 %n", "i64 %depth", "ptr %histograms")
    f = text.inner("sort_quick", *parameters)
    below = f.alloca("i64", "0")
    result = f.alloca("ptr")
    samples = f.alloca(f"[{BLOCK} x {kind}]")
    f.declare("declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)")

    def copy(target: Operand, source: Operand, n: Operand) -> None:
        def different() -> None:
            size = f.multiply(n, records.bytes)
            f.do(f"call void @llvm.memcpy.p0.p0.i64(ptr {target}, ptr {source}, i64 {size}, i1 0)")

        f.branch(f.new(f"icmp ne ptr {target}, {source}"), different)

    def give_up() -> None:
        f.do(f"call void @sort_wide(ptr %x, ptr %y, i64 %n, ptr %histograms, ptr {result})")
        copy("%final", f.new(f"load ptr, ptr {result}"), "%n")

    def split(pivot: Operand) -> Operand:
        f.do(f"call void @sort_split(ptr %x, ptr %y, i64 %n, {kind} {pivot}, ptr {below})")
        return f.new(f"load i64, ptr {below}")

    def recurse(x: Operand, y: Operand, final: Operand, n: Operand) -> None:
        deeper = f.subtract("%depth", 1)
        f.do(
            f"call void @sort_quick(ptr {x}, ptr {y}, ptr {final}, i64 {n}, i64 {deeper}, "
            "ptr %histograms)"
        )

    def part() -> None:
        chosen = f.alloca(kind)
        choose_pivot(f, records, samples, chosen)
        pivot = f.new(f"load {kind}, ptr {chosen}")
        count = split(pivot)

        def same() -> None:
            # Nothing exceeds the pivot: what equals it goes up and is done.
            def strictly() -> None:
                less = split(f.new(f"sub {kind} {pivot}, 1"))
                final = f.offset("%final", less, kind)
                copy(final, f.offset("%y", less, kind), f.subtract("%n", less))
                recurse("%x", "%y", "%final", less)

            some = f.new(f"icmp ne {kind} {pivot}, 0")
            f.branch(some, strictly, lambda: copy("%final", "%x", "%n"))

        def both() -> None:
            recurse("%x", "%y", "%final", count)
            x, y, final = (f.offset(name, count, kind) for name in ("%y", "%x", "%final"))
            recurse(x, y, final, f.subtract("%n", count))

        f.branch(f.new(f"icmp eq i64 {count}, %n"), same, both)

    def long() -> None:
        f.branch(f.new("icmp sle i64 %depth, 0"), give_up, part)

    small = f.new(f"icmp sle i64 %n, {BLOCK}")
    f.branch(small, lambda: f.do("call void @sort_block(ptr %x, ptr %final, i64 %n)"), long)


def choose_pivot(f: FunctionText, records: Records, samples: Operand, result: Operand) -> None:
    """Store the median of samples of the n records at `%x` to `result`."""
    kind = records.type

    def median(count: int) -> Callable[[], None]:
        def take() -> None:
            stride = f.new(f"udiv i64 %n, {count}")

            def sample(i: Operand) -> None:
                where = f.offset("%x", f.multiply(i, stride), kind)
                f.do(
                    f"store {kind} {f.new(f'load {kind}, ptr {where}')}, "
                    f"ptr {f.offset(samples, i, kind)}"
                )

            f.loop(0, count, 1, sample)
            f.do(f"call void @sort_block(ptr {samples}, ptr {samples}, i64 {count})")
            middle = f.new(f"load {kind}, ptr {f.offset(samples, count // 2, kind)}")
            f.do(f"store {kind} {middle}, ptr {result}")

        return take

    many = f.new(f"icmp sge i64 %n, {MANY_SAMPLES}")
    f.branch(many, median(BLOCK), median(FEW_SAMPLES))


# --- partition ------------------------------------------------------------------------------------


def _define_split(text: ModuleText, records: Records, lanes: int) -> None:
    """`@sort_split(ptr %x, ptr %y, i64 %n, R %pivot, ptr %below)`.

    Records up to the pivot go to the front of `x`, over ones that were read already; the others go
    to the end of `y`. The number of the former is stored to `below`.
    """
    kind = records.type
    wide, mask_type = f"<{lanes} x {kind}>", f"<{lanes} x i1>"
    f = text.inner("sort_split", "ptr %x", "ptr %y", "i64 %n", f"{kind} %pivot", "ptr %below")
    compress = declare(
        f, "void", f"llvm.masked.compressstore.v{lanes}{kind}", wide, "ptr", mask_type
    )
    ctpop = declare(f, f"i{lanes}", f"llvm.ctpop.i{lanes}", f"i{lanes}")
    masked_load = declare(
        f, wide, f"llvm.masked.load.v{lanes}{kind}.p0", "ptr", "i32", mask_type, wide
    )
    pivots = splat(f, "%pivot", kind, lanes)
    low, high = f.alloca("i64", "0"), f.alloca("i64", "%n")

    def count_of(mask: Operand) -> Operand:
        bits = f.new(f"bitcast {mask_type} {mask} to i{lanes}")
        return f.new(f"zext i{lanes} {f.new(f'call i{lanes} {ctpop}(i{lanes} {bits})')} to i64")

    def distribute(values: Operand, mask: Operand, others: Operand, total: Operand | int) -> None:
        at, end = f.new(f"load i64, ptr {low}"), f.new(f"load i64, ptr {high}")
        count = count_of(mask)
        start = f.subtract(end, f.subtract(total, count))
        for pointer, position, chosen in (("%x", at, mask), ("%y", start, others)):
            where = f.offset(pointer, position, kind)
            f.do(
                f"call void {compress}({wide} {values}, ptr align {records.bytes} {where}, "
                f"{mask_type} {chosen})"
            )
        f.do(f"store i64 {f.add(at, count)}, ptr {low}")
        f.do(f"store i64 {start}, ptr {high}")

    def whole(i: Operand) -> None:
        values = f.new(f"load {wide}, ptr {f.offset('%x', i, kind)}, align {records.bytes}")
        mask = f.new(f"icmp ule {wide} {values}, {pivots}")
        others = f.new(f"icmp ugt {wide} {values}, {pivots}")
        distribute(values, mask, others, lanes)

    middle = f.new(f"and i64 %n, {-lanes}")
    f.loop(0, middle, lanes, whole)
    rest = f.subtract("%n", middle)

    def tail() -> None:
        inside = first_lanes(f, rest, lanes)
        values = f.new(
            f"call {wide} {masked_load}(ptr {f.offset('%x', middle, kind)}, i32 {records.bytes}, "
            f"{mask_type} {inside}, {wide} zeroinitializer)"
        )
        mask = f.new(f"icmp ule {wide} {values}, {pivots}")
        others = f.new(f"icmp ugt {wide} {values}, {pivots}")
        mask = f.new(f"and {mask_type} {mask}, {inside}")
        distribute(values, mask, f.new(f"and {mask_type} {others}, {inside}"), rest)

    f.branch(f.new(f"icmp sgt i64 {rest}, 0"), tail)
    below = f.new(f"load i64, ptr {low}")
    f.do(f"store i64 {below}, ptr %below")


def splat(f: FunctionText, value: Operand, kind: str, lanes: int) -> Operand:
    """A vector with a scalar in all lanes."""
    wide = f"<{lanes} x {kind}>"
    one = f.new(f"insertelement {wide} poison, {kind} {value}, i64 0")
    return f.new(f"shufflevector {wide} {one}, {wide} poison, <{lanes} x i32> zeroinitializer")


def first_lanes(f: FunctionText, count: Operand, lanes: int, start: int = 0) -> Operand:
    """The mask of lanes whose number, counted from `start`, is less than `count`."""
    numbers = ", ".join(f"i64 {start + lane}" for lane in range(lanes))
    counts = splat(f, count, "i64", lanes)
    return f.new(f"icmp slt <{lanes} x i64> <{numbers}>, {counts}")


# --- networks -------------------------------------------------------------------------------------


def _define_blocks(text: ModuleText, records: Records, lanes: int) -> None:
    """`@sort_block(ptr %x, ptr %final, i64 %n)`: from `x` to `final`, `BLOCK` at most.

    Vectors are sorted one by one, then runs of them merged in pairs, all in memory on the stack,
    filled up with the greatest record.
    """
    kind = records.type
    wide, mask_type = f"<{lanes} x {kind}>", f"<{lanes} x i1>"
    f = text.inner("sort_block", "ptr %x", "ptr %final", "i64 %n")
    network = _Network(f, kind, lanes)
    masked_load = declare(
        f, wide, f"llvm.masked.load.v{lanes}{kind}.p0", "ptr", "i32", mask_type, wide
    )
    masked_store = declare(
        f, "void", f"llvm.masked.store.v{lanes}{kind}.p0", wide, "ptr", "i32", mask_type
    )
    block = f.alloca(f"[{BLOCK // lanes} x {wide}]")
    # The number of vectors, rounded up to a power of two.
    count = f.alloca("i64", "1")
    run = 1
    while run < BLOCK // lanes:
        longer = f.new(f"icmp sgt i64 %n, {run * lanes}")
        now = f.new(f"load i64, ptr {count}")
        f.do(f"store i64 {f.new(f'select i1 {longer}, i64 {2 * run}, i64 {now}')}, ptr {count}")
        run *= 2
    vectors = f.new(f"load i64, ptr {count}")

    def mask_of(number: Operand) -> Operand:
        return first_lanes(f, f.subtract("%n", f.multiply(number, lanes)), lanes)

    def sort_one(number: Operand) -> None:
        where = f.offset("%x", f.multiply(number, lanes), kind)
        value = f.new(
            f"call {wide} {masked_load}(ptr {where}, i32 {records.bytes}, "
            f"{mask_type} {mask_of(number)}, {wide} splat ({kind} -1))"
        )
        run = 1
        values = [value]
        while run < lanes:
            values = network.merge(values, 2 * run)
            run *= 2
        f.do(f"store {wide} {values[0]}, ptr {f.offset(block, number, wide)}")

    f.loop(0, vectors, 1, sort_one)
    size = 2
    while size <= BLOCK // lanes:

        def merge(first: Operand, size: int = size) -> None:
            places = [f.offset(block, f.add(first, number), wide) for number in range(size)]
            values = [f.new(f"load {wide}, ptr {place}") for place in places]
            for value, place in zip(network.merge(values, size * lanes), places, strict=True):
                f.do(f"store {wide} {value}, ptr {place}")

        whole = f.new(f"and i64 {vectors}, {-size}")
        f.loop(0, whole, size, merge)
        size *= 2

    def store(number: Operand) -> None:
        value = f.new(f"load {wide}, ptr {f.offset(block, number, wide)}")
        where = f.offset("%final", f.multiply(number, lanes), kind)
        f.do(
            f"call void {masked_store}({wide} {value}, ptr {where}, i32 {records.bytes}, "
            f"{mask_type} {mask_of(number)})"
        )

    f.loop(0, vectors, 1, store)


class _Network:
    """Steps of a bitonic network over vectors, element i being lane i % lanes of i // lanes."""

    def __init__(self, f: FunctionText, kind: str, lanes: int) -> None:
        self.f = f
        self.lanes = lanes
        self.wide = f"<{lanes} x {kind}>"
        # The lesser of 64-bit integers takes two instructions in one port, a comparison one.
        self.compares = kind == "i64"
        self.least = declare(f, self.wide, f"llvm.umin.v{lanes}{kind}", self.wide, self.wide)
        self.most = declare(f, self.wide, f"llvm.umax.v{lanes}{kind}", self.wide, self.wide)

    def _two(self, name: str, a: Operand, b: Operand) -> Operand:
        return self.f.new(f"call {self.wide} {name}({self.wide} {a}, {self.wide} {b})")

    def _pair(self, a: Operand, b: Operand) -> tuple[Operand, Operand]:
        """The lesser and the greater ones."""
        if not self.compares:
            return self._two(self.least, a, b), self._two(self.most, a, b)
        f, mask = self.f, f"<{self.lanes} x i1>"
        # LLVM would make minima and maxima of what it recognises as such.
        greater = f.new(f"freeze {mask} {f.new(f'icmp ugt {self.wide} {a}, {b}')}")
        return (
            f.new(f"select {mask} {greater}, {self.wide} {b}, {self.wide} {a}"),
            f.new(f"select {mask} {greater}, {self.wide} {a}, {self.wide} {b}"),
        )

    def _permuted(self, value: Operand, order: list[int]) -> Operand:
        indices = ", ".join(f"i32 {lane}" for lane in order)
        return self.f.new(
            f"shufflevector {self.wide} {value}, {self.wide} poison, "
            f"<{self.lanes} x i32> <{indices}>"
        )

    def _within(self, value: Operand, partners: list[int]) -> Operand:
        """Exchange with partners in the same vector: the lower lane gets the lesser."""
        other = self._permuted(value, partners)
        if self.compares:
            return self._chosen(value, other, partners)
        least, most = self._two(self.least, value, other), self._two(self.most, value, other)
        lower = ", ".join(
            f"i1 {'true' if lane < partner else 'false'}" for lane, partner in enumerate(partners)
        )
        return self.f.new(
            f"select <{self.lanes} x i1> <{lower}>, {self.wide} {least}, {self.wide} {most}"
        )

    def _chosen(self, value: Operand, other: Operand, partners: list[int]) -> Operand:
        greater = self.f.new(f"icmp ugt {self.wide} {value}, {other}")
        upper = ", ".join(
            f"i1 {'true' if lane > partner else 'false'}" for lane, partner in enumerate(partners)
        )
        # In upper lanes the other one is taken unless it is the lesser.
        taken = self.f.new(f"xor <{self.lanes} x i1> {greater}, <{upper}>")
        return self.f.new(
            f"select <{self.lanes} x i1> {taken}, {self.wide} {other}, {self.wide} {value}"
        )

    def merge(self, values: list[Operand], size: int) -> list[Operand]:
        """Merge the two sorted halves of each group of `size` elements.

        The first step compares each element of one half with its mirror image in the other, so that
        all comparisons put the lesser one first.
        """
        values = self.mirror(values, size)
        distance = size // 4
        while distance:
            values = self.exchange(values, distance)
            distance //= 2
        return values

    def mirror(self, values: list[Operand], size: int) -> list[Operand]:
        """Compare element i of each group of `size` with element size - 1 - i of it."""
        lanes = self.lanes
        if size <= lanes:
            partners = [lane ^ (size - 1) for lane in range(lanes)]
            return [self._within(value, partners) for value in values]
        reverse = list(range(lanes))[::-1]
        result = list(values)
        group = size // lanes
        for start in range(0, len(values), group):
            for number in range(group // 2):
                a, b = start + number, start + group - 1 - number
                turned = self._permuted(values[b], reverse)
                result[a], most = self._pair(values[a], turned)
                result[b] = self._permuted(most, reverse)
        return result

    def exchange(self, values: list[Operand], distance: int) -> list[Operand]:
        """Compare elements that are `distance` apart."""
        lanes = self.lanes
        if distance < lanes:
            partners = [lane ^ distance for lane in range(lanes)]
            return [self._within(value, partners) for value in values]
        result = list(values)
        apart = distance // lanes
        for a in range(len(values)):
            if not a & apart:
                b = a | apart
                result[a], result[b] = self._pair(values[a], values[b])
        return result
