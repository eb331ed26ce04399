"""Gathers and scatters.

A scatter works on a copy of the operand, or in its memory if the result is there. Updates are
combined in their order. Where many updates meet few elements, they are cut into a fixed number of
parts, which have a copy of their own each, so that all threads can work; floats narrower than f32
are combined in such copies in f32, to be rounded once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fxarray.core import dtypes
from fxarray.core.primitive import Primitive
from fxarray.core.types import ArrayType
from fxarray.devices.cpu.emit import combine, memory, scalars
from fxarray.devices.cpu.emit.constants import constant
from fxarray.devices.cpu.emit.function import FunctionText, Operand
from fxarray.devices.cpu.emit.types import Value, is_float, is_narrow_float, itemsize
from fxarray.devices.cpu.library.copying import copy_words, define_copy, start_copy
from fxarray.devices.cpu.library.elements import MOVED, short_dtype
from fxarray.devices.cpu.library.text import (
    Layout,
    ModuleText,
    ceiling_divide,
    part_bounds,
    run_parts,
)
from fxarray.devices.cpu.library.windows import (
    WindowWords,
    contiguous_loop,
    plan_windows,
    walk_window,
)
from fxarray.devices.cpu.native.routine import Routine, SizeWord
from fxarray.devices.cpu.native.target import Target
from fxarray.kernel import sizes
from fxarray.primitives.gather import Gather, ScatterAdd, default_fill
from fxarray.primitives.scatter import ScatterMax, ScatterMin, ScatterMul
from fxarray.primitives.scatter_base import ScatterBase

# Parts of updates that have copies of the operand, and the least number of updates for it.
PARTS, MANY = 8, 1 << 16
# The most bytes of all copies: they should stay in a cache.
COPY_BYTES = 1 << 21
# Elements in a part where parts do not meet.
PART_ELEMENTS = 1 << 15

_COMBINERS: dict[type[Primitive], str] = {
    ScatterAdd: "sum",
    ScatterMul: "prod",
    ScatterMin: "min",
    ScatterMax: "max",
}


@dataclass(frozen=True)
class _Kind:
    """What is done with elements.

    Args:
      combiner: how updates meet elements; "" replaces them, "gather" reads them.
      dtype: of elements.
      inner: in which they are combined.
      lanes: of a vector.
      copies: of the operand, for parts of the updates.
    """

    combiner: str
    dtype: str
    inner: str
    lanes: int
    copies: int = 0


def scatter_routine(
    op: ScatterBase, inputs: Sequence[ArrayType], _outputs: Sequence[ArrayType], target: Target
) -> Routine:
    """The routine of a scatter; the result may be in the operand's memory."""
    x, indices, updates = inputs
    combiner = _COMBINERS.get(type(op), "")
    dtype = short_dtype(x)
    size = itemsize(dtype)
    words = 1
    if not combiner:
        dtype = MOVED[size]
        words = max(1, size // 8)
    numbers = op.dimension_numbers.as_gather()
    windows = plan_windows(numbers, x, indices, updates, op.mode, words, op.counts_from_end)
    inner = dtype
    if is_narrow_float(dtype) and combiner in ("sum", "prod"):
        inner = "f32"
    kind = _Kind(combiner, dtype, inner, max(1, target.vector_bytes // itemsize(inner)))
    count = sizes.product(sizes.kernel_shape(x.shape))
    many = sizes.typical(windows.updates)
    held = sizes.typical(count) * itemsize(inner) * PARTS
    shared = windows.batch and windows.batch[0].x == 0
    if combiner and shared and many >= max(MANY, held // 2) and held <= COPY_BYTES:
        kind = replace(kind, copies=PARTS)
    elif inner != dtype:
        kind = replace(kind, copies=1)
    layout = Layout.of(3, 1, {"count": count}, scratch=bool(kind.copies))
    copy_words(layout, sizes.multiply(count, size))
    layout.append("batch", SizeWord(sizes.product(walk.size for walk in windows.batch)))
    text = _scatter_module(kind, WindowWords(windows, layout))
    moved = sizes.add(sizes.multiply(windows.updates, 2 * size), sizes.multiply(count, 2 * size))
    scratch = sizes.multiply(sizes.add(sizes.multiply(count, itemsize(inner)), 64), kind.copies)
    return Routine(text, tuple(layout.words), scratch, flops=windows.updates, bytes_moved=moved)


def gather_routine(
    op: Gather, inputs: Sequence[ArrayType], outputs: Sequence[ArrayType], target: Target
) -> Routine:
    """The routine of a gather."""
    x, indices = inputs
    size = itemsize(short_dtype(x))
    dtype, words = MOVED[size], max(1, size // 8)
    windows = plan_windows(op.dimension_numbers, x, indices, outputs[0], op.mode, words)
    kind = _Kind("gather", dtype, dtype, max(1, target.vector_bytes // itemsize(dtype)))
    layout = Layout.of(2, 1)
    fill = default_fill(x.dtype) if op.fill_value is None else op.fill_value
    raw = np.asarray(dtypes.cast(np.asarray(fill), dtypes.physical(x.dtype)))
    pattern = raw.reshape(1).view(np.uint8).tobytes()
    for word in range(words):
        part = pattern[8 * word : 8 * word + 8]
        layout.append(f"fill{word}", SizeWord(int.from_bytes(part, "little", signed=True)))
    text = _gather_module(kind, WindowWords(windows, layout), words)
    moved = sizes.multiply(windows.updates, 2 * size)
    return Routine(text, tuple(layout.words), bytes_moved=moved)


# --- loops ----------------------------------------------------------------------------------------

_Body = Callable[[Operand, Operand, Operand], None]


def _walk_batch(
    f: FunctionText, words: WindowWords, bounds: tuple[Operand, Operand] | None, body: _Body
) -> None:
    """`body(offset in x, offset in u, number of the index vector)` for the batch, in order.

    Args:
      f: the function that is being written.
      words: the loops.
      bounds: of the first loop, if it is not whole.
      body: what to do.
    """
    count = len(words.windows.batch)

    def level(number: int, x: Operand, u: Operand, i: Operand) -> None:
        if number == count:
            body(x, u, i)
            return
        low, high = "0", words.size(f, number)
        if number == 0 and bounds:
            low, high = bounds

        def step(k: Operand) -> None:
            moved = [
                f.add(at, f.multiply(k, words.step(f, name, number)))
                for name, at in (("x", x), ("u", u), ("i", i))
            ]
            level(number + 1, *moved)

        f.loop(low, high, 1, step)

    level(0, "0", "0", "0")


# --- scatter --------------------------------------------------------------------------------------


def _scatter_module(kind: _Kind, words: WindowWords) -> str:
    text = ModuleText()
    layout = words.layout
    copies = kind.copies
    f = text.part("scatter_part")
    if copies:
        target, bounds = _own_copy(f, kind, words)
    else:
        target, bounds = layout.pointer(f, "out0"), _lane_bounds(f, words)
    indices, updates = layout.pointer(f, "in1"), layout.pointer(f, "in2")

    def window(x: Operand, u: Operand, i: Operand) -> None:
        offset, inside = words.locate(f, indices, i)
        start = f.add(x, offset)

        def write() -> None:
            walk_window(f, words, kind.lanes, start, u, element)

        if inside == "true":
            write()
        else:
            f.branch(inside, write)

    def element(x: Operand, u: Operand, lanes: int, mask: Operand | None) -> None:
        where = f.offset(target, f.multiply(x, itemsize(kind.inner)))
        source = f.offset(updates, f.multiply(u, itemsize(kind.dtype)))
        value = memory.load(f, source, kind.dtype, lanes, mask)
        if kind.combiner:
            if kind.inner != kind.dtype:
                value = scalars.convert(f, value, kind.inner)
            before = memory.load(f, where, kind.inner, lanes, mask)
            (value,) = combine.combine(f, kind.combiner, [before], [value])
        memory.store(f, value, where, mask)

    _walk_batch(f, words, bounds, window)
    if copies:
        _define_merge(text, kind, layout)
    else:
        define_copy(text, layout)
    e = text.entry()

    def start() -> None:
        if copies:
            run_parts(e, "scatter_part", str(copies))
            parts = ceiling_divide(e, layout.size(e, "count"), PART_ELEMENTS)
            run_parts(e, "merge_part", parts)
            return
        start_copy(e, layout)
        run_parts(e, "scatter_part", _lane_parts(e, words))

    e.branch(e.new(f"icmp sgt i64 {layout.size(e, 'count')}, 0"), start)
    return text.text()


def _has_lanes(words: WindowWords) -> bool:
    """Whether the first batch loop is over parts of the operand that do not meet."""
    batch = words.windows.batch
    return bool(batch) and batch[0].x != 0


def _lanes_each(f: FunctionText, words: WindowWords) -> Operand:
    """How many lanes make a part."""
    others: Operand = "1"
    for number in range(1, len(words.windows.batch) + len(words.windows.window)):
        others = f.multiply(others, words.size(f, number))
    return f.larger(f.new(f"udiv i64 {PART_ELEMENTS}, {f.larger(others, 1)}"), 1)


def _lane_parts(f: FunctionText, words: WindowWords) -> Operand:
    if not _has_lanes(words):
        return "1"
    return ceiling_divide(f, words.size(f, 0), _lanes_each(f, words))


def _lane_bounds(f: FunctionText, words: WindowWords) -> tuple[Operand, Operand] | None:
    if not _has_lanes(words):
        return None
    return part_bounds(f, words.size(f, 0), _lanes_each(f, words))


# --- copies for parts -----------------------------------------------------------------------------


def _copy_at(f: FunctionText, kind: _Kind, layout: Layout, number: Operand | int) -> Operand:
    size = f.multiply(layout.size(f, "count"), itemsize(kind.inner))
    step = f.new(f"and i64 {f.add(size, 63)}, -64")
    return f.offset(layout.pointer(f, "scratch"), f.multiply(number, step))


def _neutral(kind: _Kind, lanes: int) -> Value:
    """What changes nothing, the sign of zero included."""
    if kind.combiner == "sum" and is_float(kind.inner):
        return constant(-0.0, kind.inner, lanes)
    return combine.identity(kind.combiner, 0, kind.inner, lanes)


def _own_copy(
    f: FunctionText, kind: _Kind, words: WindowWords
) -> tuple[Operand, tuple[Operand, Operand] | None]:
    """The copy of a part, filled with what changes nothing, and the part's bounds."""
    layout = words.layout
    target = _copy_at(f, kind, layout, "%part")

    def clear(k: Operand, lanes: int, mask: Operand | None) -> None:
        where = f.offset(target, f.multiply(k, itemsize(kind.inner)))
        memory.store(f, _neutral(kind, lanes), where, mask)

    contiguous_loop(f, layout.size(f, "count"), kind.lanes, clear)
    if kind.copies == 1 or not words.windows.batch:
        return target, None
    size = words.size(f, 0)
    return target, part_bounds(f, size, ceiling_divide(f, size, kind.copies))


def _define_merge(text: ModuleText, kind: _Kind, layout: Layout) -> None:
    """`@merge_part`: the operand's elements and those of all copies, combined in order."""
    f = text.part("merge_part")
    low, high = part_bounds(f, layout.size(f, "count"), PART_ELEMENTS)
    source, target = layout.pointer(f, "in0"), layout.pointer(f, "out0")
    copies = [_copy_at(f, kind, layout, number) for number in range(kind.copies)]

    def element(k: Operand, lanes: int, mask: Operand | None) -> None:
        position = f.add(low, k)
        where = f.multiply(position, itemsize(kind.dtype))
        value = memory.load(f, f.offset(source, where), kind.dtype, lanes, mask)
        if kind.inner != kind.dtype:
            value = scalars.convert(f, value, kind.inner)
        place = f.multiply(position, itemsize(kind.inner))
        for copy in copies:
            other = memory.load(f, f.offset(copy, place), kind.inner, lanes, mask)
            (value,) = combine.combine(f, kind.combiner, [value], [other])
        if kind.inner != kind.dtype:
            value = scalars.convert(f, value, kind.dtype)
        memory.store(f, value, f.offset(target, where), mask)

    contiguous_loop(f, f.subtract(high, low), kind.lanes, element)


# --- gather ---------------------------------------------------------------------------------------


def _gather_module(kind: _Kind, words: WindowWords, element_words: int) -> str:
    text = ModuleText()
    layout = words.layout
    f = text.part("gather_part")
    source, indices = layout.pointer(f, "in0"), layout.pointer(f, "in1")
    target = layout.pointer(f, "out0")
    bounds = None
    if words.windows.batch:
        bounds = part_bounds(f, words.size(f, 0), _lanes_each(f, words))
    fills = [layout.size(f, f"fill{word}") for word in range(element_words)]

    def place(u: Operand) -> Operand:
        return f.offset(target, f.multiply(u, itemsize(kind.dtype)))

    def window(x: Operand, u: Operand, i: Operand) -> None:
        offset, inside = words.locate(f, indices, i)
        start = f.add(x, offset)

        def read(x: Operand, u: Operand, lanes: int, mask: Operand | None) -> None:
            where = f.offset(source, f.multiply(x, itemsize(kind.dtype)))
            memory.store(f, memory.load(f, where, kind.dtype, lanes, mask), place(u), mask)

        def fill(x: Operand, u: Operand, _lanes: int, _mask: Operand | None) -> None:
            _store_fill(f, kind.dtype, fills, x, place(u))

        def inside_body() -> None:
            walk_window(f, words, kind.lanes, start, u, read)

        def outside_body() -> None:
            # Offsets count from the window's start, so that words of an element can be told.
            walk_window(f, words, 1, "0", u, fill)

        if inside == "true":
            inside_body()
        else:
            f.branch(inside, inside_body, outside_body)

    _walk_batch(f, words, bounds, window)
    e = text.entry()
    parts: Any = "1"
    if words.windows.batch:
        parts = ceiling_divide(e, words.size(e, 0), _lanes_each(e, words))
    run_parts(e, "gather_part", parts)
    return text.text()


def _store_fill(
    f: FunctionText, dtype: str, fills: Sequence[Operand], x: Operand, pointer: Operand
) -> None:
    fill = fills[0]
    if len(fills) > 1:
        odd = f.new(f"trunc i64 {x} to i1")
        fill = f.new(f"select i1 {odd}, i64 {fills[1]}, i64 {fills[0]}")
    bits = 8 * itemsize(dtype)
    if bits < 64:
        fill = f.new(f"trunc i64 {fill} to i{bits}")
    f.do(f"store i{bits} {fill}, ptr {pointer}, align {itemsize(dtype)}")
