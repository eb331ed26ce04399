"""Reductions over windows that slide over an array: the sums and extrema of pooling.

A window has `window_dimensions` elements, `window_dilation` apart. It starts at every multiple of
`window_strides` at which it fits into the operand, whose elements are first spread
`base_dilation` apart and then padded by the operation's identity.

The derivative of an extremum takes, from each window, the tangent at the first extremal element. So
one operation finds these positions, and a gather, whose transpose is a scatter, does the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from fxarray.core import dims, dtypes
from fxarray.core.canonical import canonical_key
from fxarray.core.dtypes import DType
from fxarray.core.errors import DTypeError, ShapeError
from fxarray.core.factors import Factors, letters
from fxarray.core.primitive import Primitive, Sample, Zero
from fxarray.core.types import ArrayType, Shape, Size
from fxarray.primitives.elementwise_base import check_group
from fxarray.primitives.movement import reshape, transpose
from fxarray.primitives.reductions import greatest, least
from fxarray.primitives.sort import take_along
from fxarray.primitives.support import (
    NUMBER,
    ORDERED,
    Values,
    quietly,
    random_operand,
    sample_dtypes,
    widened,
)

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


class WindowReduction(Primitive):
    """What the reductions over windows share."""

    window: Window
    EXCUSED: ClassVar[dict[str, str]] = {
        "lower": "windows arrive with the kernel compiler",
        "transpose": "it is not linear in its operand",
    }
    accepts: ClassVar[int] = NUMBER
    function: ClassVar[np.ufunc]
    identity: ClassVar[Callable[[DType], Any]]

    def infer(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        (x,) = types
        check_group(self.name, 0, x, self.accepts)
        self.window.check(self.name, x)
        return (ArrayType(self.window.counts(x.shape), x.dtype, x.weak),)

    def reference(self, *arrays: Values) -> tuple[Values, ...]:
        (x,) = arrays
        with np.errstate(all="ignore"):
            return (dtypes.cast(self._reduce(widened(x), x.dtype), x.dtype),)

    def eager(self, *arrays: Values) -> tuple[Values, ...]:
        (x,) = arrays
        wide: Any = dtypes.accumulator(x.dtype)
        wide_x = x.astype(wide, copy=False) if dtypes.is_inexact(x.dtype) else widened(x)
        value = quietly(self._reduce, (wide_x, x.dtype))
        return (dtypes.cast(value, x.dtype),)

    def _reduce(self, x: Values, dtype: DType) -> Values:
        # One dimension after the other: the work is the sum of the windows' sizes.
        window = self.window
        counts: Any = window.counts(x.shape)
        combine = type(self).function
        value = window.prepare(x, type(self).identity(dtype))
        for i, count in enumerate(counts):
            if window.is_trivial(i):
                continue
            places: list[slice] = [slice(None)] * x.ndim
            total: Any = None
            for offset in range(window.dimensions[i]):
                places[i] = window.place(i, offset, count) if count else slice(0, 0)
                part = value[tuple(places)]
                total = part if total is None else combine(total, part)
            value = total
        return value

    def batch(
        self, size: Any, axis_name: Hashable, operands: Sequence[Any], axes: Sequence[int | None]
    ) -> tuple[Sequence[Any], Sequence[int | None]]:
        (axis,) = axes
        assert axis is not None
        return type(self)(self.window.insert(axis)).bind(*operands), (axis,)

    def shard(self, *types: ArrayType) -> Factors:
        return window_factors(self.window, types[0].ndim, 1, self.linear_operands)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Any]:
        accepted = sample_dtypes(cls.accepts)
        for window, shape in sample_windows():
            x = random_operand(rng, shape, "float32", (-2.0, 2.0))
            # A window of padding alone gives an infinity.
            finite = bool(np.isfinite(cls(window).reference(x)[0]).all())
            yield Sample(cls(window), (x,), differentiable=finite)
        window = Window((1, 3), (1, 2), ((0, 0), (1, 1)), (1, 1), (1, 1))
        for dtype in accepted:
            # Extremes of narrow dtypes may tie, where there is no derivative.
            smooth = bool(cls.linear_operands) or dtype.itemsize >= 4
            x = random_operand(rng, (2, 7), dtype, (-2.0, 2.0))
            yield Sample(cls(window), (x,), differentiable=smooth)
        yield Sample(cls(window), (np.ones(4),), error=ShapeError)
        yield Sample(cls(window._replace(strides=(1, 0))), (np.ones((3, 4)),), error=ShapeError)
        yield Sample(cls(window), (np.ones((3, 4), dtypes.float0),), error=DTypeError)


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


class ReduceWindowSum(WindowReduction, name="reduce_window_sum"):
    """The sum over each window; floats narrower than float32 are summed in float32."""

    EXCUSED: ClassVar[dict[str, str]] = {"lower": "windows arrive with the kernel compiler"}
    linear_operands: ClassVar[tuple[int, ...]] = (0,)
    function: ClassVar[np.ufunc] = np.add
    identity: ClassVar[Callable[[DType], Any]] = staticmethod(lambda _: 0)

    def transpose(self, cotangents: Sequence[Any], *operands: Any) -> Sequence[Any]:
        # An element gets the cotangents of the windows that it lies in, which form a window in the
        # cotangent, spread by the strides.
        window = self.window
        (cotangent,), (x,) = cotangents, operands
        padding: list[tuple[Size, Size]] = []
        for i, size in enumerate(x.type.shape):
            extent = window.extent(i)
            low = extent - 1 - window.padding[i][0]
            have = spread(cotangent.type.shape[i], window.strides[i])
            padding.append((low, (size - 1) * window.base_dilation[i] + extent - low - have))
        back = window._replace(
            strides=window.base_dilation,
            padding=tuple(padding),
            base_dilation=window.strides,
        )
        return ReduceWindowSum(back).bind(cotangent)


class WindowExtremum(WindowReduction):
    """What maximum and minimum over windows share; the first extremal element gets the tangent."""

    accepts: ClassVar[int] = ORDERED
    locate: ClassVar[type[WindowPosition]]

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        (x,), (tangent,) = primals, tangents
        outputs = self.bind(x)
        if type(tangent) is Zero or dims.same(dims.shape_product(x.type.shape), 0):
            return outputs, (Zero(outputs[0].type.tangent()),)
        moving = tuple([i for i in range(x.type.ndim) if not self.window.is_trivial(i)])
        places = type(self).locate(self.window, moving)(x)
        return outputs, (take_positions(tangent, places, moving),)


def take_positions(x: Any, places: Any, moving: Sequence[int]) -> Any:
    """The elements of `x` at positions as found by a `WindowPosition`; 0 where there is none."""
    kept = [i for i in range(x.type.ndim) if i not in moving]
    order = (*kept, *moving)

    def merged(array: Any) -> Any:
        moved = transpose(array, order)
        lead, rest = moved.type.shape[: len(kept)], moved.type.shape[len(kept) :]
        return reshape(moved, (*lead, dims.shape_product(rest)))

    taken = take_along(merged(x), merged(places), len(kept), fill=True)
    shape = tuple([places.type.shape[i] for i in order])
    return transpose(reshape(taken, shape), tuple(np.argsort(order).tolist()))


class WindowPosition(Primitive):
    """Where the first extremal element of each window is, NaN counting as most extreme.

    The position is a row-major index into the dimensions `moving`; -1 if a window has no element.

    Args:
      window: the windows; trivial in all other dimensions.
      moving: the dimensions in which windows move.
    """

    window: Window
    moving: tuple[int, ...]
    EXCUSED: ClassVar[dict[str, str]] = WindowReduction.EXCUSED
    differentiable: ClassVar[bool] = False
    better: ClassVar[np.ufunc]

    def infer(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        (x,) = types
        check_group(self.name, 0, x, ORDERED)
        self.window.check(self.name, x)
        fixed = [i for i in range(x.ndim) if i not in self.moving]
        if not all(map(self.window.is_trivial, fixed)):
            raise ShapeError(
                f"{self.name}: windows must leave all dimensions but {self.moving} of {x} as they "
                f"are, got {self.window}"
            )
        return (ArrayType(self.window.counts(x.shape), self._dtype(x.shape)),)

    def _dtype(self, shape: Shape) -> np.dtype[Any]:
        size = dims.shape_product(tuple([shape[i] for i in self.moving]))
        return dtypes.int64 if type(size) is int and size >= 2**31 else dtypes.int32

    def reference(self, *arrays: Values) -> tuple[Values, ...]:
        x = widened(arrays[0]) if arrays[0].dtype.kind == "V" else arrays[0]
        window = self.window
        counts: Any = window.counts(x.shape)
        sizes = [size if i in self.moving else 1 for i, size in enumerate(x.shape)]
        dtype = self._dtype(x.shape)
        numbers = np.arange(int(np.prod(sizes)), dtype=dtype).reshape(sizes)
        values = window.prepare(x, 0)
        numbers = window.prepare(numbers, -1)
        chosen = np.full(counts, -1, dtype)
        if not chosen.size:
            return (chosen,)
        best = np.zeros(counts, x.dtype)
        for offset in np.ndindex(*window.dimensions):
            box = [
                window.place(i, o, c) for i, (o, c) in enumerate(zip(offset, counts, strict=True))
            ]
            places = [part if i in self.moving else slice(None) for i, part in enumerate(box)]
            value = values[tuple(box)]
            number = np.broadcast_to(numbers[tuple(places)], value.shape)
            better = type(self).better(value, best)
            if x.dtype.kind == "f":
                better |= np.isnan(value) & ~np.isnan(best)
            better |= chosen < 0
            better &= number >= 0
            np.copyto(best, value, where=better)
            np.copyto(chosen, number, where=better)
        return (chosen,)

    def batch(
        self, size: Any, axis_name: Hashable, operands: Sequence[Any], axes: Sequence[int | None]
    ) -> tuple[Sequence[Any], Sequence[int | None]]:
        (axis,) = axes
        assert axis is not None
        moving = tuple([i + (i >= axis) for i in self.moving])
        return type(self)(self.window.insert(axis), moving).bind(*operands), (axis,)

    def shard(self, *types: ArrayType) -> Factors:
        # Positions are counted in the whole operand along the moving dimensions.
        return window_factors(self.window, types[0].ndim, 1, moving=self.moving)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Any]:
        for window, shape in sample_windows():
            moving = tuple([i for i in range(len(shape)) if not window.is_trivial(i)])
            x = random_operand(rng, shape, "float32", (-2.0, 2.0))
            yield Sample(cls(window, moving), (x,))
        window = Window((1, 3), (1, 2), ((0, 0), (1, 1)), (1, 1), (1, 1))
        for dtype in sample_dtypes(ORDERED):
            x = np.round(widened(random_operand(rng, (2, 9), dtype, (-1.5, 1.5))))
            yield Sample(cls(window, (1,)), (x.astype(dtype),))
            yield Sample(cls(window, (0, 1)), (x.astype(dtype),))
        nans = np.array([[1, np.nan, 2, -np.inf, np.nan], [-np.inf] * 5, [np.inf, 0, 0, 0, 0]])
        yield Sample(cls(window, (1,)), (nans,))
        yield Sample(cls(window, (0,)), (np.ones((2, 4)),), error=ShapeError)
        yield Sample(cls(window, (1,)), (np.ones((2, 4), complex),), error=DTypeError)


class WindowArgMax(WindowPosition, name="window_argmax"):
    """Where the first greatest element of each window is; see `WindowPosition`."""

    better: ClassVar[np.ufunc] = np.greater


class WindowArgMin(WindowPosition, name="window_argmin"):
    """Where the first smallest element of each window is; see `WindowPosition`."""

    better: ClassVar[np.ufunc] = np.less


class ReduceWindowMax(WindowExtremum, name="reduce_window_max"):
    """The greatest element of each window; NaN if there is one."""

    function: ClassVar[np.ufunc] = np.maximum
    identity: ClassVar[Callable[[DType], Any]] = staticmethod(least)
    locate: ClassVar[type[WindowPosition]] = WindowArgMax


class ReduceWindowMin(WindowExtremum, name="reduce_window_min"):
    """The smallest element of each window; NaN if there is one."""

    function: ClassVar[np.ufunc] = np.minimum
    identity: ClassVar[Callable[[DType], Any]] = staticmethod(greatest)
    locate: ClassVar[type[WindowPosition]] = WindowArgMin
