"""Random bits: Threefry on vectors of counters; `primitives.threefry` is the definition."""

from __future__ import annotations

from collections.abc import Sequence

from fxarray.core.types import ArrayType
from fxarray.devices.cpu.emit import memory
from fxarray.devices.cpu.emit.function import FunctionText, Operand
from fxarray.devices.cpu.emit.lanes import iota, tail_mask
from fxarray.devices.cpu.emit.number import Number
from fxarray.devices.cpu.emit.types import Value
from fxarray.devices.cpu.library.quick import splat
from fxarray.devices.cpu.library.text import (
    Layout,
    ModuleText,
    ceiling_divide,
    part_bounds,
    run_parts,
)
from fxarray.devices.cpu.library.windows import contiguous_loop
from fxarray.devices.cpu.native.routine import Routine
from fxarray.devices.cpu.native.target import Target
from fxarray.kernel import sizes
from fxarray.primitives.bits import FoldIn, RandomBits, RandomSplit
from fxarray.primitives.threefry import PARITY, ROTATIONS

# Vectors that are hashed at a time: rounds depend on each other, vectors do not.
UNROLL = 4
# Blocks of vectors, and elements, in a part.
PART_BLOCKS, PART_ELEMENTS = 512, 1 << 14


def threefry(k0: Number, k1: Number, x0: Number, x1: Number) -> tuple[Number, Number]:
    """The two output words of counters (x0, x1) under keys (k0, k1), all i32."""
    schedule = (k0, k1, k0 ^ k1 ^ PARITY)
    x0, x1 = x0 + k0, x1 + k1
    for group in range(5):
        for rotation in ROTATIONS[group % 2]:
            x0 = x0 + x1
            x1 = _rotated(x1, rotation) ^ x0
        x0 = x0 + schedule[(group + 1) % 3]
        x1 = x1 + schedule[(group + 2) % 3] + (group + 1)
    return x0, x1


def _rotated(x: Number, by: int) -> Number:
    name = f"llvm.fshl.v{x.lanes}i32" if x.lanes > 1 else "llvm.fshl.i32"
    kind = x.whole_type
    x.f.declare(f"declare {kind} @{name}({kind}, {kind}, {kind})")
    amount = x.like(by).operand
    return x.new(f"call {kind} @{name}({kind} {x.operand}, {kind} {x.operand}, {kind} {amount})")


def _pairs(y0: Number, y1: Number) -> Number:
    """Two words as one of 64 bits."""
    return (y0.cast("zext", "i64") << 32) | y1.cast("zext", "i64")


def bits_routine(
    op: RandomBits | RandomSplit,
    inputs: Sequence[ArrayType],
    _outputs: Sequence[ArrayType],
    target: Target,
) -> Routine:
    """The routine of `random_bits` and `random_split`."""
    width = op.bit_width if isinstance(op, RandomBits) else 64
    keys = sizes.product(sizes.kernel_shape(inputs[0].shape))
    count = sizes.product(sizes.kernel_shape(op.shape))
    layout = Layout.of(1, 1, {"keys": keys, "count": count})
    total = sizes.multiply(keys, count)
    return Routine(
        _bits_module(layout, width, target.vector_bytes // 4),
        tuple(layout.words),
        flops=sizes.multiply(total, 75),
        bytes_moved=sizes.multiply(total, width // 8),
    )


def _bits_module(layout: Layout, width: int, lanes: int) -> str:
    text = ModuleText()
    f = text.part("bits_part")
    block = UNROLL * lanes
    keys, count = layout.size(f, "keys"), layout.size(f, "count")
    source, target = layout.pointer(f, "in0"), layout.pointer(f, "out0")
    each = ceiling_divide(f, count, block)
    low, high = part_bounds(f, f.multiply(keys, each), PART_BLOCKS)

    def hashed(key: Operand, first: Operand, vectors: int) -> list[Value]:
        k0, k1 = (
            Number(f, "i32", lanes, splat(f, word, "i32", lanes))
            for word in (
                f.new(f"trunc i64 {f.new(f'lshr i64 {key}, 32')} to i32"),
                f.new(f"trunc i64 {key} to i32"),
            )
        )
        # `first` is a multiple of the lanes, so no counter of a vector differs in its high word.
        high_word = f.new(f"trunc i64 {f.new(f'lshr i64 {first}, 32')} to i32")
        low_word = f.new(f"trunc i64 {first} to i32")
        x0 = Number(f, "i32", lanes, splat(f, high_word, "i32", lanes))
        x1 = Number(f, "i32", lanes, splat(f, low_word, "i32", lanes))
        x1 = x1 + Number(f, "i32", lanes, iota(f, lanes, "i32"))
        return [
            _result(*threefry(k0, k1, x0, x1 + number * lanes if number else x1), width)
            for number in range(vectors)
        ]

    def one(number: Operand) -> None:
        which = f.new(f"udiv i64 {number}, {each}")
        first = f.multiply(f.subtract(number, f.multiply(which, each)), block)
        key = f.new(f"load i64, ptr {f.offset(source, which, 'i64')}")
        start = f.add(f.multiply(which, count), first)
        rest = f.subtract(count, first)

        def place(offset: Operand | int) -> Operand:
            return f.offset(target, f.multiply(f.add(start, offset), width // 8))

        def whole() -> None:
            for place_number, value in enumerate(hashed(key, first, UNROLL)):
                memory.store(f, value, place(place_number * lanes))

        def partly() -> None:
            def some(k: Operand) -> None:
                (value,) = hashed(key, f.add(first, k), 1)
                memory.store(f, value, place(k), tail_mask(f, f.subtract(rest, k), lanes))

            f.loop(0, rest, lanes, some)

        f.branch(f.new(f"icmp sge i64 {rest}, {block}"), whole, partly)

    f.loop(low, high, 1, one)
    e = text.entry()
    blocks = ceiling_divide(e, layout.size(e, "count"), block)
    blocks = e.multiply(layout.size(e, "keys"), blocks)
    run_parts(e, "bits_part", ceiling_divide(e, blocks, PART_BLOCKS))
    return text.text()


def _result(y0: Number, y1: Number, width: int) -> Value:
    if width == 64:
        pairs = _pairs(y0, y1)
        return Value("u64", pairs.lanes, (pairs.operand,))
    bits = y0 ^ y1
    if width < 32:
        bits = bits.cast("trunc", f"i{width}")
    return Value(f"u{width}", bits.lanes, (bits.operand,))


def fold_routine(
    _op: FoldIn, inputs: Sequence[ArrayType], outputs: Sequence[ArrayType], target: Target
) -> Routine:
    """The routine of `fold_in`."""
    count = sizes.product(sizes.kernel_shape(outputs[0].shape))
    layout = Layout.of(2, 1, {"count": count})
    single = (not inputs[0].ndim, not inputs[1].ndim)
    text = _fold_module(layout, single, target.vector_bytes // 4)
    return Routine(text, tuple(layout.words), bytes_moved=sizes.multiply(count, 20))


def _fold_module(layout: Layout, single: tuple[bool, bool], lanes: int) -> str:
    text = ModuleText()
    f = text.part("fold_part")
    keys, data, target = (layout.pointer(f, name) for name in ("in0", "in1", "out0"))
    low, high = part_bounds(f, layout.size(f, "count"), PART_ELEMENTS)

    def some(k: Operand, width: int, mask: Operand | None) -> None:
        position = f.add(low, k)
        key = _loaded(f, keys, position, "u64", single[0], width, mask)
        words = _loaded(f, data, position, "u32", single[1], width, mask)
        k0 = key.shift_in_zeros(32).cast("trunc", "i32")
        y0, y1 = threefry(k0, key.cast("trunc", "i32"), words.like(0), words)
        pairs = _pairs(y0, y1)
        value = Value("u64", width, (pairs.operand,))
        memory.store(f, value, f.offset(target, position, "i64"), mask)

    contiguous_loop(f, f.subtract(high, low), lanes, some)
    e = text.entry()
    run_parts(e, "fold_part", ceiling_divide(e, layout.size(e, "count"), PART_ELEMENTS))
    return text.text()


def _loaded(
    f: FunctionText,
    pointer: Operand,
    position: Operand,
    dtype: str,
    single: bool,
    lanes: int,
    mask: Operand | None,
) -> Number:
    kind = "i64" if dtype == "u64" else "i32"
    if single:
        one = f.new(f"load {kind}, ptr {pointer}")
        return Number(f, kind, lanes, splat(f, one, kind, lanes))
    value = memory.load(f, f.offset(pointer, position, kind), dtype, lanes, mask)
    return Number(f, kind, lanes, value.operand)
