"""Binary search: all lanes of a vector at once."""

from __future__ import annotations

from collections.abc import Sequence

from fxarray.core.types import ArrayType
from fxarray.devices.cpu.emit import memory, scalars
from fxarray.devices.cpu.emit.function import FunctionText, Operand
from fxarray.devices.cpu.emit.lanes import tail_mask
from fxarray.devices.cpu.emit.number import Number, select
from fxarray.devices.cpu.emit.types import Value, itemsize
from fxarray.devices.cpu.library import elements
from fxarray.devices.cpu.library.quick import splat
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
from fxarray.primitives.search import SearchSorted

# Vectors of queries in a part.
PART_VECTORS = 256


def search_routine(
    op: SearchSorted, inputs: Sequence[ArrayType], outputs: Sequence[ArrayType], target: Target
) -> Routine | None:
    """The routine of `searchsorted`; None for complex numbers."""
    dtype = elements.short_dtype(inputs[0])
    if elements.is_complex(dtype):
        return None
    table, queries = (sizes.kernel_shape(given.shape) for given in inputs)
    layout = Layout.of(
        2,
        1,
        {
            "n": table[-1],
            "lanes": sizes.product(queries[: op.batch_rank]),
            "count": sizes.product(queries[op.batch_rank :]),
        },
    )
    lanes = max(1, target.vector_bytes // 8)
    index = elements.short_dtype(outputs[0])
    text = _module(layout, dtype, index, lanes, op.side == "left")
    return Routine(text, tuple(layout.words))


def _module(layout: Layout, dtype: str, index: str, lanes: int, left: bool) -> str:
    text = ModuleText()
    f = text.part("search_part")
    n, count, rows = (layout.size(f, name) for name in ("n", "count", "lanes"))
    table, queries = layout.pointer(f, "in0"), layout.pointer(f, "in1")
    target = layout.pointer(f, "out0")
    each = ceiling_divide(f, count, lanes)
    low, high = part_bounds(f, f.multiply(rows, each), PART_VECTORS)

    def some(number: Operand) -> None:
        row = f.new(f"udiv i64 {number}, {each}")
        first = f.multiply(f.subtract(number, f.multiply(row, each)), lanes)
        rest = f.smaller(f.subtract(count, first), lanes)
        mask = tail_mask(f, rest, lanes)
        position = f.add(f.multiply(row, count), first)
        where = f.offset(queries, f.multiply(position, itemsize(dtype)))
        wanted = elements.key_of(f, memory.load(f, where, dtype, lanes, mask))
        start = f.offset(table, f.multiply(f.multiply(row, n), itemsize(dtype)))
        found = _found(f, start, n, dtype, wanted, left)
        result = Value("i64", lanes, (found.operand,))
        if index != "i64":
            result = scalars.convert(f, result, index)
        memory.store(f, result, f.offset(target, f.multiply(position, itemsize(index))), mask)

    f.loop(low, high, 1, some)
    e = text.entry()
    vectors = ceiling_divide(e, layout.size(e, "count"), lanes)
    vectors = e.multiply(layout.size(e, "lanes"), vectors)
    run_parts(e, "search_part", ceiling_divide(e, vectors, PART_VECTORS))
    return text.text()


def _found(
    f: FunctionText, table: Operand, n: Operand, dtype: str, wanted: Number, left: bool
) -> Number:
    """The number of keys in the table that come before the wanted ones.

    Steps are powers of two from the greatest one up to n down: a lane goes on if the key that it
    would leave behind last comes before.
    """
    lanes = wanted.lanes
    place = f.alloca(f"<{lanes} x i64>" if lanes > 1 else "i64")
    kind = f"<{lanes} x i64>" if lanes > 1 else "i64"
    f.do(f"store {kind} {wanted.like(0, 'i64').operand}, ptr {place}")
    f.declare("declare i64 @llvm.ctlz.i64(i64, i1)")
    zeros = f.new(f"call i64 @llvm.ctlz.i64(i64 {f.new(f'or i64 {n}, 1')}, i1 false)")
    step = f.alloca("i64", f.new(f"lshr i64 {-(2**63)}, {zeros}"))
    some = f.new(f"icmp sgt i64 {n}, 0")

    def search() -> None:
        def more() -> Operand:
            return f.new(f"icmp ne i64 {f.new(f'load i64, ptr {step}')}, 0")

        def advance() -> None:
            width = f.new(f"load i64, ptr {step}")
            here = Number(f, "i64", lanes, f.new(f"load {kind}, ptr {place}"))
            last = here + Number(f, "i64", lanes, _splat(f, width, lanes))
            size = Number(f, "i64", lanes, _splat(f, n, lanes))
            inside = last <= size
            probe = select(inside, last - 1, 0)
            value = memory.gather(f, table, probe.operand, dtype, lanes)
            key = elements.key_of(f, value)
            before = key.compare("ult" if left else "ule", wanted)
            following = select(before & inside, last, here)
            f.do(f"store {kind} {following.operand}, ptr {place}")
            f.do(f"store i64 {f.new(f'lshr i64 {width}, 1')}, ptr {step}")

        f.loop_while(more, advance)

    f.branch(some, search)
    return Number(f, "i64", lanes, f.new(f"load {kind}, ptr {place}"))


def _splat(f: FunctionText, value: Operand, lanes: int) -> Operand:
    return splat(f, value, "i64", lanes) if lanes > 1 else value
