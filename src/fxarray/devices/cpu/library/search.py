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

# Vectors of queries that are searched for together, since each waits for memory; such groups in a
# part.
UNROLL, PART_GROUPS = 4, 64


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
    group = UNROLL * lanes
    each = ceiling_divide(f, count, group)
    low, high = part_bounds(f, f.multiply(rows, each), PART_GROUPS)

    def some(number: Operand) -> None:
        row = f.new(f"udiv i64 {number}, {each}")
        first = f.multiply(f.subtract(number, f.multiply(row, each)), group)
        position = f.add(f.multiply(row, count), first)
        rest = f.subtract(count, first)
        wanted: list[Number] = []
        masks: list[Operand] = []
        for vector in range(UNROLL):
            left_over = f.larger(f.smaller(f.subtract(rest, vector * lanes), lanes), 0)
            masks.append(tail_mask(f, left_over, lanes))
            place = f.multiply(f.add(position, vector * lanes), itemsize(dtype))
            value = memory.load(f, f.offset(queries, place), dtype, lanes, masks[-1])
            wanted.append(elements.key_of(f, value))
        start = f.offset(table, f.multiply(f.multiply(row, n), itemsize(dtype)))
        for vector, found in enumerate(_found(f, start, n, dtype, wanted, left)):
            result = Value("i64", lanes, (found.operand,))
            if index != "i64":
                result = scalars.convert(f, result, index)
            place = f.multiply(f.add(position, vector * lanes), itemsize(index))
            memory.store(f, result, f.offset(target, place), masks[vector])

    f.loop(low, high, 1, some)
    e = text.entry()
    groups = ceiling_divide(e, layout.size(e, "count"), group)
    groups = e.multiply(layout.size(e, "lanes"), groups)
    run_parts(e, "search_part", ceiling_divide(e, groups, PART_GROUPS))
    return text.text()


def _found(
    f: FunctionText, table: Operand, n: Operand, dtype: str, wanted: list[Number], left: bool
) -> list[Number]:
    """The number of keys in the table that come before the wanted ones.

    Steps are powers of two from the greatest one up to n down: a lane goes on if the key that it
    would leave behind last comes before.
    """
    lanes = wanted[0].lanes
    kind = f"<{lanes} x i64>" if lanes > 1 else "i64"
    places = [f.alloca(kind, wanted[0].like(0, "i64").operand) for _ in wanted]
    f.declare("declare i64 @llvm.ctlz.i64(i64, i1)")
    zeros = f.new(f"call i64 @llvm.ctlz.i64(i64 {f.new(f'or i64 {n}, 1')}, i1 false)")
    step = f.alloca("i64", f.new(f"lshr i64 {-(2**63)}, {zeros}"))

    def here(place: Operand) -> Number:
        return Number(f, "i64", lanes, f.new(f"load {kind}, ptr {place}"))

    def search() -> None:
        size = Number(f, "i64", lanes, _splat(f, n, lanes))

        def more() -> Operand:
            return f.new(f"icmp ne i64 {f.new(f'load i64, ptr {step}')}, 0")

        def advance() -> None:
            width = f.new(f"load i64, ptr {step}")
            widths = Number(f, "i64", lanes, _splat(f, width, lanes))
            for place, key in zip(places, wanted, strict=True):
                now = here(place)
                last = now + widths
                inside = last <= size
                probe = select(inside, last - 1, 0)
                value = memory.gather(f, table, probe.operand, dtype, lanes)
                before = elements.key_of(f, value).compare("ult" if left else "ule", key)
                following = select(before & inside, last, now)
                f.do(f"store {kind} {following.operand}, ptr {place}")
            f.do(f"store i64 {f.new(f'lshr i64 {width}, 1')}, ptr {step}")

        f.loop_while(more, advance)

    f.branch(f.new(f"icmp sgt i64 {n}, 0"), search)
    return [here(place) for place in places]


def _splat(f: FunctionText, value: Operand, lanes: int) -> Operand:
    return splat(f, value, "i64", lanes) if lanes > 1 else value
