"""Where the windows of gathers and scatters lie in memory, as loops with strides.

A loop over a batch dimension walks index vectors and updates (of a gather: its result), and lanes
of the operand if the dimension is batched; one over a window dimension walks the operand and the
updates. Loops that together walk memory as one loop would are merged, so that what is left says
what matters: rows of a matrix are one contiguous loop however many dimensions they have.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fxarray.core.types import ArrayType
from fxarray.devices.cpu.emit.function import FunctionText, Operand
from fxarray.devices.cpu.emit.lanes import tail_mask
from fxarray.devices.cpu.emit.types import itemsize
from fxarray.devices.cpu.library.elements import short_dtype
from fxarray.devices.cpu.library.text import Layout
from fxarray.devices.cpu.native.routine import SizeWord
from fxarray.kernel import sizes
from fxarray.kernel.sizes import Size
from fxarray.primitives.windows import (
    GatherDimensionNumbers,
    GatherScatterMode,
    batch_dims,
    window_dims,
)

# The most elements of a window's innermost loop that is code of its own.
SHORT = 64


@dataclass(frozen=True)
class Walk:
    """A loop: its size, and how far each step goes in operand, updates and index vectors."""

    size: Size
    x: Size
    u: Size
    i: Size


@dataclass(frozen=True)
class Start:
    """A component of index vectors.

    Args:
      upper: the greatest start.
      x: what one step is in the operand.
      size: of the operand's dimension, which negative starts count from the end of; None: they do
        not.
    """

    upper: Size
    x: Size
    size: Size | None = None


@dataclass(frozen=True)
class Windows:
    """A gather or scatter.

    Args:
      batch: loops over the batch.
      window: loops over windows.
      starts: components of index vectors.
      index_dtype: of the indices.
      drops: whether windows that are not inside are left out; else they are moved inside.
    """

    batch: tuple[Walk, ...]
    window: tuple[Walk, ...]
    starts: tuple[Start, ...]
    index_dtype: str
    drops: bool

    @property
    def contiguous(self) -> bool:
        """Whether the innermost loop is over windows, and contiguous."""
        return bool(self.window) and self.window[-1].x == 1 and self.window[-1].u == 1

    @property
    def updates(self) -> Size:
        """The number of elements in all windows."""
        return sizes.product(walk.size for walk in (*self.batch, *self.window))


def strides(shape: Sequence[Size]) -> list[Size]:
    """How many elements one step is, in each dimension of a row-major array."""
    return [sizes.product(shape[d + 1 :]) for d in range(len(shape))]


def plan_windows(
    numbers: GatherDimensionNumbers,
    x: ArrayType,
    indices: ArrayType,
    updates: ArrayType,
    mode: GatherScatterMode,
    words: int = 1,
    counts_from_end: bool = False,
) -> Windows:
    """The loops of a gather or scatter.

    Args:
      numbers: its dimension numbers, those of a scatter in the form of a gather.
      x: the operand's type.
      indices: the indices' type.
      updates: the type of updates (or of a gather's result).
      mode: what happens to windows outside.
      words: of which each element consists, all sizes and steps being in words.
      counts_from_end: whether negative indices count from the end.
    """
    x_shape, u_shape = sizes.kernel_shape(x.shape), sizes.kernel_shape(updates.shape)
    x_strides = [sizes.multiply(words, step) for step in strides(x_shape)]
    u_strides = [sizes.multiply(words, step) for step in strides(u_shape)]
    i_strides = strides(sizes.kernel_shape(indices.shape)[:-1])
    batch: list[Walk] = []
    for lane, d in enumerate(batch_dims(numbers.offset_dims, updates.ndim)):
        step: Size = 0
        if lane in numbers.start_indices_batching_dims:
            place = numbers.start_indices_batching_dims.index(lane)
            step = x_strides[numbers.operand_batching_dims[place]]
        batch.append(Walk(u_shape[d], step, u_strides[d], i_strides[lane]))
    windowed = window_dims(numbers, x.ndim)
    window = [
        Walk(u_shape[offset], x_strides[d], u_strides[offset], 0)
        for d, offset in zip(windowed, numbers.offset_dims, strict=True)
    ]
    extent: list[Size] = [1] * x.ndim
    for d, offset in zip(windowed, numbers.offset_dims, strict=True):
        extent[d] = u_shape[offset]
    if words > 1:
        window.append(Walk(words, 1, 1, 0))
    starts = [
        Start(
            sizes.subtract(x_shape[d], extent[d]),
            x_strides[d],
            x_shape[d] if counts_from_end else None,
        )
        for d in numbers.start_index_map
    ]
    return Windows(
        merged(batch),
        merged(window),
        tuple(starts),
        short_dtype(indices),
        mode is GatherScatterMode.FILL_OR_DROP,
    )


def merged(walks: Sequence[Walk]) -> tuple[Walk, ...]:
    """The same walk in as few loops as possible."""
    result: list[Walk] = []
    for walk in walks:
        if walk.size == 1:
            continue
        if result:
            outer = result[-1]
            steps = [sizes.multiply(walk.size, step) for step in (walk.x, walk.u, walk.i)]
            if steps == [outer.x, outer.u, outer.i]:
                whole = sizes.multiply(outer.size, walk.size)
                result[-1] = Walk(whole, walk.x, walk.u, walk.i)
                continue
        result.append(walk)
    return tuple(result)


class WindowWords:
    """The sizes of windows as words of a routine, but for what code knows.

    It knows steps of 0 and 1, and short rows, whose vectors are then counted when compiling.

    Args:
      windows: the loops.
      layout: where words are added.
    """

    def __init__(self, windows: Windows, layout: Layout) -> None:
        self.windows = windows
        self.layout = layout
        for number, walk in enumerate((*windows.batch, *windows.window)):
            if not self._is_short(number):
                layout.append(f"size{number}", SizeWord(walk.size))
            for name, step in (("x", walk.x), ("u", walk.u), ("i", walk.i)):
                if step not in (0, 1):
                    layout.append(f"{name}{number}", SizeWord(step))
        for number, start in enumerate(windows.starts):
            layout.append(f"upper{number}", SizeWord(start.upper))
            if start.x != 1:
                layout.append(f"start{number}", SizeWord(start.x))
            if start.size is not None:
                layout.append(f"whole{number}", SizeWord(start.size))

    def size(self, f: FunctionText, number: int) -> Operand:
        """The size of a loop, batch loops first."""
        if self._is_short(number):
            return str((*self.windows.batch, *self.windows.window)[number].size)
        return self.layout.size(f, f"size{number}")

    def _is_short(self, number: int) -> bool:
        """Whether code knows the size of a loop: the innermost one of a window, written out."""
        window = self.windows.window
        last = len(self.windows.batch) + len(window) - 1
        if not window or number != last:
            return False
        size = window[-1].size
        return isinstance(size, int) and size <= SHORT

    def step(self, f: FunctionText, name: str, number: int) -> Operand:
        """The step of a loop in "x", "u" or "i"."""
        key = f"{name}{number}"
        if key in self.layout.places:
            return self.layout.size(f, key)
        walk = (*self.windows.batch, *self.windows.window)[number]
        return str({"x": walk.x, "u": walk.u, "i": walk.i}[name])

    def start_step(self, f: FunctionText, number: int) -> Operand:
        """What one step of a component of index vectors is in the operand."""
        key = f"start{number}"
        return self.layout.size(f, key) if key in self.layout.places else "1"

    def locate(
        self, f: FunctionText, indices: Operand, position: Operand
    ) -> tuple[Operand, Operand]:
        """Where a window starts in the operand, and whether it is inside (`true` if all are).

        Args:
          f: the function that is being written.
          indices: the address of the index vectors.
          position: the number of the window's.
        """
        dtype = self.windows.index_dtype
        count = len(self.windows.starts)
        first = f.multiply(position, count)
        offset: Operand = "0"
        inside: Operand = "true"
        for number in range(count):
            where = f.offset(indices, f.multiply(f.add(first, number), itemsize(dtype)))
            start = load_index(f, where, dtype)
            if self.windows.starts[number].size is not None:
                negative = f.new(f"icmp slt i64 {start}, 0")
                counted = f.add(start, self.layout.size(f, f"whole{number}"))
                start = f.new(f"select i1 {negative}, i64 {counted}, i64 {start}")
            upper = self.layout.size(f, f"upper{number}")
            if self.windows.drops:
                # A negative start is a large one, unsigned.
                here = f.new(f"icmp ule i64 {start}, {upper}")
                inside = here if inside == "true" else f.new(f"and i1 {inside}, {here}")
            else:
                start = f.larger(f.smaller(start, upper), 0)
            offset = f.add(offset, f.multiply(start, self.start_step(f, number)))
        return offset, inside


def load_index(f: FunctionText, pointer: Operand, dtype: str) -> Operand:
    """An index of any integer dtype as i64; what is larger becomes the greatest one."""
    bits = 8 * itemsize(dtype)
    raw = f.new(f"load i{bits}, ptr {pointer}, align {itemsize(dtype)}")
    if bits < 64:
        return f.new(f"{'sext' if dtype[0] == 'i' else 'zext'} i{bits} {raw} to i64")
    if dtype == "u64":
        f.declare("declare i64 @llvm.umin.i64(i64, i64)")
        return f.new(f"call i64 @llvm.umin.i64(i64 {raw}, i64 {2**63 - 1})")
    return raw


def walk_window(
    f: FunctionText,
    words: WindowWords,
    lanes: int,
    x: Operand,
    u: Operand,
    body: Callable[[Operand, Operand, int, Operand | None], None],
    bounds: tuple[Operand, Operand] | None = None,
) -> None:
    """`body(offset in x, offset in u, lanes, mask)` for all elements of a window.

    Args:
      f: the function that is being written.
      words: the loops.
      lanes: of vectors, where the last loop is contiguous.
      x: where the window starts in the operand.
      u: where it starts in the updates.
      body: what to do.
      bounds: of the first loop, if it is not whole.
    """
    windows = words.windows
    first, count = len(windows.batch), len(windows.window)

    def level(number: int, x: Operand, u: Operand) -> None:
        if number == count:
            body(x, u, 1, None)
            return
        low, high = "0", words.size(f, first + number)
        if number == 0 and bounds:
            low, high = bounds
        if number == count - 1 and windows.contiguous and lanes > 1:
            x, u = f.add(x, low), f.add(u, low)
            length = f.subtract(high, low)
            contiguous_loop(f, length, lanes, lambda k, w, m: body(f.add(x, k), f.add(u, k), w, m))
            return
        x_step, u_step = (words.step(f, name, first + number) for name in "xu")

        def step(k: Operand) -> None:
            level(number + 1, f.add(x, f.multiply(k, x_step)), f.add(u, f.multiply(k, u_step)))

        f.loop(low, high, 1, step)

    level(0, x, u)


def contiguous_loop(
    f: FunctionText, size: Operand, lanes: int, body: Callable[[Operand, int, Operand | None], None]
) -> None:
    """`body(k, lanes, mask)` for whole vectors, and with a mask for the rest."""
    whole = f.new(f"and i64 {size}, {-lanes}")
    f.loop(0, whole, lanes, lambda k: body(k, lanes, None))
    rest = f.subtract(size, whole)

    def tail() -> None:
        body(whole, lanes, tail_mask(f, rest, lanes))

    f.branch(f.new(f"icmp sgt i64 {rest}, 0"), tail)
