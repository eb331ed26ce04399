"""Boxes at places known when the program runs: `dynamic_slice` and `dynamic_update_slice`."""

from __future__ import annotations

from collections.abc import Sequence

from fxarray.core.types import ArrayType
from fxarray.devices.cpu.emit import memory
from fxarray.devices.cpu.emit.function import FunctionText, Operand
from fxarray.devices.cpu.emit.types import itemsize
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
    Start,
    Walk,
    Windows,
    WindowWords,
    load_index,
    merged,
    strides,
    walk_window,
)
from fxarray.devices.cpu.native.routine import Routine
from fxarray.devices.cpu.native.target import Target
from fxarray.kernel import sizes
from fxarray.primitives.dynamic_slicing import DynamicSlice, DynamicUpdateSlice

# Words that a part copies.
PART_ELEMENTS = 1 << 16


def update_routine(
    _op: DynamicUpdateSlice,
    inputs: Sequence[ArrayType],
    _outputs: Sequence[ArrayType],
    target: Target,
) -> Routine:
    """The routine of `dynamic_update_slice`; the result may be in the operand's memory."""
    x, box, *starts = inputs
    return _routine(x, box, starts, 2, target, update=True)


def slice_routine(
    _op: DynamicSlice, inputs: Sequence[ArrayType], outputs: Sequence[ArrayType], target: Target
) -> Routine:
    """The routine of `dynamic_slice`."""
    x, *starts = inputs
    return _routine(x, outputs[0], starts, 1, target, update=False)


def _routine(
    x: ArrayType,
    box: ArrayType,
    starts: Sequence[ArrayType],
    first: int,
    target: Target,
    update: bool,
) -> Routine:
    size = itemsize(short_dtype(x))
    dtype, words = MOVED[size], max(1, size // 8)
    x_shape, box_shape = sizes.kernel_shape(x.shape), sizes.kernel_shape(box.shape)
    steps = list(zip(strides(x_shape), strides(box_shape), strict=True))
    walks = [
        Walk(part, sizes.multiply(words, step), sizes.multiply(words, box_step), 0)
        for part, (step, box_step) in zip(box_shape, steps, strict=True)
    ]
    if words > 1:
        walks.append(Walk(words, 1, 1, 0))
    # A box that is whole in a dimension can start in one place only.
    moving = [d for d, part in enumerate(box_shape) if part != x_shape[d]]
    places = [
        Start(sizes.subtract(x_shape[d], box_shape[d]), sizes.multiply(words, steps[d][0]))
        for d in moving
    ]
    windows = Windows((), merged(walks) or (Walk(1, 1, 1, 0),), tuple(places), "", False)
    count = sizes.product(x_shape)
    layout = Layout.of(first + len(starts), 1)
    copy_words(layout, sizes.multiply(count, size))
    wide = WindowWords(windows, layout)
    lanes = max(1, target.vector_bytes // itemsize(dtype))
    given = [(first + d, short_dtype(starts[d])) for d in moving]
    text = _module(wide, given, dtype, lanes, update)
    moved = sizes.multiply(sizes.product(box_shape), 2 * size)
    return Routine(text, tuple(layout.words), bytes_moved=moved)


def _module(
    words: WindowWords, starts: Sequence[tuple[int, str]], dtype: str, lanes: int, update: bool
) -> str:
    text = ModuleText()
    layout = words.layout
    f = text.part("box_part")
    whole, box = ("out0", "in1") if update else ("in0", "out0")
    x, u = layout.pointer(f, whole), layout.pointer(f, box)
    offset: Operand = "0"
    for number, (operand, index_dtype) in enumerate(starts):
        start = load_index(f, layout.pointer(f, f"in{operand}"), index_dtype)
        start = f.larger(f.smaller(start, layout.size(f, f"upper{number}")), 0)
        offset = f.add(offset, f.multiply(start, words.start_step(f, number)))

    def element(a: Operand, b: Operand, width: int, mask: Operand | None) -> None:
        inside = f.offset(x, f.multiply(a, itemsize(dtype)))
        outside = f.offset(u, f.multiply(b, itemsize(dtype)))
        source, target = (outside, inside) if update else (inside, outside)
        memory.store(f, memory.load(f, source, dtype, width, mask), target, mask)

    bounds = part_bounds(f, words.size(f, 0), _each(f, words))
    walk_window(f, words, lanes, offset, "0", element, bounds)
    if update:
        define_copy(text, layout)
    e = text.entry()
    if update:
        start_copy(e, layout)
    run_parts(e, "box_part", ceiling_divide(e, words.size(e, 0), _each(e, words)))
    return text.text()


def _each(f: FunctionText, words: WindowWords) -> Operand:
    """How many steps of the outermost loop make a part."""
    others: Operand = "1"
    for number in range(1, len(words.windows.window)):
        others = f.multiply(others, words.size(f, number))
    return f.larger(f.new(f"udiv i64 {PART_ELEMENTS}, {f.larger(others, 1)}"), 1)
