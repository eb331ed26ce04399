"""Windows that slide over an array: where they lie, and what lies in them.

A window has `window_dimensions` elements, `window_dilation` apart. It starts at every multiple of
`window_strides` at which it fits into the operand, whose elements are first spread
`base_dilation` apart and then padded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import gcd
from typing import Any, NamedTuple

import numpy as np

from fxarray.core import dims
from fxarray.core.canonical import canonical_key
from fxarray.core.errors import ShapeError
from fxarray.core.factors import Factors, letters
from fxarray.core.types import ArrayType, Shape, Size
from fxarray.kernel.build import Builder, Index, NotAffine, SplitAxis
from fxarray.kernel.indices import divided
from fxarray.kernel.ir import Affine, Bound
from fxarray.kernel.sizes import Size as KernelSize
from fxarray.kernel.sizes import kernel_shape, kernel_size, user_size
from fxarray.primitives.lowering import between
from fxarray.primitives.support import Values

Pads = tuple[tuple[Size, Size], ...]


class Window(NamedTuple):
    """Where windows lie; one entry per dimension of the operand. See the module's docstring."""

    dimensions: tuple[int, ...]
    strides: tuple[int, ...]
    padding: Pads
    base_dilation: tuple[int, ...]
    dilation: tuple[int, ...]

    @property
    def key(self) -> Any:
        """What tells windows apart, symbolic padding included; see `canonical_key`."""
        return canonical_key(tuple(self))

    def check(self, name: str, x: ArrayType) -> None:
        """Raise unless these are windows of `x`."""
        for what, values in zip(self._fields, self, strict=True):
            if len(values) != x.ndim:
                raise ShapeError(
                    f"{name}: {what}={values} of the window must have one entry for each of the "
                    f"{x.ndim} dimensions of {x}"
                )
            if what != "padding" and not all(type(v) is int and v > 0 for v in values):
                raise ShapeError(f"{name}: {what}={values} of the window must be at least 1")

    def counts(self, shape: Shape) -> Shape:
        """How many windows there are along each dimension."""
        counts: list[Size] = []
        for i, size in enumerate(shape):
            low, high = self.padding[i]
            room = spread(size, self.base_dilation[i]) + low + high - self.extent(i)
            count = room + 1 if self.strides[i] == 1 else room // self.strides[i] + 1
            counts.append(max(count, 0) if type(count) is int else count)
        return tuple(counts)

    def extent(self, i: int) -> int:
        """The size of the box around a window."""
        return (self.dimensions[i] - 1) * self.dilation[i] + 1

    def is_trivial(self, i: int) -> bool:
        """Whether windows have one element in a dimension, and there is one for each element."""
        return (
            self.dimensions[i] == self.strides[i] == self.base_dilation[i] == 1
            and dims.same(self.padding[i][0], 0)
            and dims.same(self.padding[i][1], 0)
        )

    def insert(self, i: int) -> Window:
        """These windows in an array with one more dimension, which stays as it is."""
        parts: list[Any] = []
        for what, values in zip(self._fields, self, strict=True):
            parts.append((*values[:i], (0, 0) if what == "padding" else 1, *values[i:]))
        return Window(*parts)

    def place(self, i: int, offset: int, count: int) -> slice:
        """In the padded operand, the elements at one offset of all windows."""
        start = offset * self.dilation[i]
        return slice(start, start + (count - 1) * self.strides[i] + 1, self.strides[i])

    def prepare(self, x: Values, fill: Any) -> Values:
        """The operand, spread and padded."""
        shape: list[int] = []
        into: list[slice] = []
        source: list[slice] = []
        for size, step, (low, high) in zip(x.shape, self.base_dilation, self.padding, strict=True):
            total: Any = max(spread(size, step) + low + high, 0)
            # Negative padding removes elements: those from `first` up to `last` stay.
            first: Any = max(-(low // step), 0)
            last: Any = max(min(size, -((low - total) // step)), first)
            shape.append(total)
            source.append(slice(first, last))
            into.append(slice(first * step + low, (last - 1) * step + low + 1, step))
        if shape == list(x.shape) and all(step == 1 for step in self.base_dilation):
            return x
        result = np.full(shape, fill, x.dtype)
        if all(part.stop > part.start for part in source):
            result[tuple(into)] = x[tuple(source)]
        return result


def spread(size: Size, step: int) -> Size:
    """How far `size` elements reach if they are `step` apart."""
    if step == 1:
        return size
    reach = (size - 1) * step + 1
    return max(reach, 0) if type(reach) is int else dims.dim_max(reach, 0)


def window_counts(window: Window, shape: Sequence[KernelSize]) -> tuple[KernelSize, ...]:
    """How many windows there are along each dimension, as kernels write sizes."""
    return kernel_shape(window.counts(tuple(map(user_size, shape))))


def window_place(
    builder: Builder, window: Window, shape: Sequence[KernelSize], index: Index, offset: Index
) -> tuple[list[Bound], Index]:
    """Where an element of a window stands in the operand, and the bounds within which it does."""
    bounds: list[Bound] = []
    places: list[Affine] = []
    for d, (here, inner) in enumerate(zip(index, offset, strict=True)):
        position = here * window.strides[d] + inner * window.dilation[d]
        position = position - kernel_size(window.padding[d][0])
        inside, place = between(builder, position, shape[d], window.base_dilation[d])
        bounds.extend(inside)
        places.append(place)
    return bounds, tuple(places)


def window_factors(
    window: Window,
    rank: int,
    operands: int,
    linear: tuple[int, ...] = (),
    results: int = 1,
    moving: tuple[int, ...] = (),
) -> Factors:
    """Dimensions that windows leave as they are correspond; others, and `moving`, must be whole."""
    names = letters(rank)
    moved = [name for i, name in enumerate(names) if i in moving or not window.is_trivial(i)]
    result = tuple(f"new_{name}" if name in moved else name for name in names)
    whole = frozenset((*moved, *[f"new_{name}" for name in moved]))
    gone = dict.fromkeys(moved, "any")
    return Factors((names,) * operands, (result,) * results, gone, whole, linear)


def sample_windows() -> Iterator[tuple[Window, tuple[int, ...]]]:
    """Windows of every kind, and shapes to slide them over."""
    yield Window((), (), (), (), ()), ()
    yield Window((2,), (1,), ((0, 0),), (1,), (1,)), (0,)
    yield Window((2,), (1,), ((0, 0),), (1,), (1,)), (1,)
    yield Window((3,), (2,), ((1, 2),), (1,), (1,)), (6,)
    yield Window((2,), (1,), ((2, 1),), (1,), (3,)), (7,)
    yield Window((2,), (2,), ((1, 0),), (3,), (1,)), (4,)
    yield Window((2,), (1,), ((-1, -2),), (1,), (1,)), (8,)
    yield Window((3,), (1,), ((-2, 1),), (2,), (1,)), (5,)
    yield Window((1, 2, 3), (1, 2, 1), ((0, 0), (0, 1), (1, 1)), (1, 1, 2), (1, 1, 2)), (2, 5, 4)


# --- steps of a window ----------------------------------------------------------------------------

# Where an element of a window stands in its operand: the bounds within which it does, and where.
Standing = tuple[tuple[Bound, ...], Affine]


class WindowSteps(NamedTuple):
    """The elements of a window that may lie on elements of a spread operand, in one dimension.

    Args:
      steps: how many there are.
      tap: the element of the window at a step; after its end there may be one step more.
      place: where the step stands in the operand.
    """

    steps: KernelSize
    tap: Callable[[Affine], Affine]
    place: Callable[[Affine], Standing]


def window_steps(
    builder: Builder, window: Window, d: int, place: Affine, size: KernelSize
) -> WindowSteps:
    """The steps of the window at a place, in dimension `d` of an operand of a size.

    Offset k of window y lies at p = y s + k d - low of the operand, whose elements are b apart. If
    b is 1, all do. Else an element is there where b divides p. Where b and d have no common factor,
    that is so for every b-th k, from one on that depends on y modulo b alone; so no step is wasted
    if y can be written as a multiple of b and a rest.

    Raises:
      SplitAxis: y can be written so.
    """
    apart, dilation = window.base_dilation[d], window.dilation[d]
    low = kernel_size(window.padding[d][0])
    stride, length = window.strides[d], kernel_size(window.dimensions[d])

    def every(step: Affine) -> Standing:
        return between(builder, place * stride + step * dilation - low, size, apart)

    all_steps = WindowSteps(length, lambda step: step, every)
    if apart == 1 or gcd(apart, dilation) != 1:
        return all_steps
    if not isinstance(low, int) or not isinstance(length, int):
        return all_steps
    try:
        whole, rest = divided(place, apart, builder.axes)
    except SplitAxis:
        raise
    except NotAffine:
        return all_steps
    # first = (low - rest s) / d modulo b, and p there over b.
    inverse = pow(dilation, -1, apart)
    dtype = builder.index_dtype(place * max(stride, dilation))

    def op(name: str, left: int, right: int) -> int:
        return builder.op(name, left, builder.constant(right, dtype))

    number = op("mul", builder.iota(rest, dtype), -stride * inverse % apart)
    first = op("rem", op("add", number, low * inverse % apart), apart)
    builder.ranges[first] = (0, apart - 1)
    position = builder.op(
        "add", builder.iota(rest * stride - low, dtype), op("mul", first, dilation)
    )
    there = op("div", position, apart)
    firsts = [(low - r * stride) * inverse % apart for r in range(apart)]
    spots = [(r * stride - low + f * dilation) // apart for r, f in enumerate(firsts)]
    builder.ranges[there] = (min(spots), max(spots))
    start = whole * stride + Affine(((there, 1),))

    def standing(step: Affine) -> Standing:
        spot = step * dilation + start
        return ((spot, 0, size),), spot

    return WindowSteps(
        -(-length // apart), lambda step: step * apart + Affine(((first, 1),)), standing
    )
