"""Reductions over windows that slide over an array: the sums and extrema of pooling.

`window_places` says where windows lie; what is between and around the elements of the operand is
the operation's identity.

The derivative of an extremum takes, from each window, the tangent at the first extremal element. So
one operation finds these positions, and a gather, whose transpose is a scatter, does the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from fxarray.core import dims, dtypes
from fxarray.core.dtypes import DType
from fxarray.core.errors import DTypeError, ShapeError
from fxarray.core.factors import Factors
from fxarray.core.primitive import Primitive, Sample, Zero
from fxarray.core.types import ArrayType, Shape, Size
from fxarray.kernel.build import Builder, Index, Lowered, kernel_dtype
from fxarray.kernel.ir import Affine
from fxarray.kernel.sizes import user_size
from fxarray.primitives.elementwise_base import check_group
from fxarray.primitives.lowering import combiner_for, inside_or, wide
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
from fxarray.primitives.window_places import (
    Window,
    sample_windows,
    spread,
    window_counts,
    window_factors,
    window_place,
)


class WindowReduction(Primitive):
    """What the reductions over windows share."""

    window: Window
    EXCUSED: ClassVar[dict[str, str]] = {"transpose": "it is not linear in its operand"}
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

    def lower(self, builder: Builder, *operands: Lowered) -> tuple[Lowered, ...]:
        (x,) = operands
        identity = type(self).identity(dtypes.from_short_name(x.dtype))
        combiner = self.name.removeprefix("reduce_window_")

        def element(index: Index) -> int:
            def value(spans: Index) -> int:
                bounds, place = window_place(builder, self.window, x.shape, index, spans)
                outside = builder.constant(identity, x.dtype)
                return wide(builder, inside_or(builder, bounds, lambda: x.element(place), outside))

            names, part = builder.over(self.window.dimensions, index, value)
            (total,) = builder.reduce(combiner_for(builder, combiner, part), names, part)
            return builder.convert(total, x.dtype)

        return (builder.lowered(window_counts(self.window, x.shape), x.dtype, element),)

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


class ReduceWindowSum(WindowReduction, name="reduce_window_sum"):
    """The sum over each window; floats narrower than float32 are summed in float32."""

    EXCUSED: ClassVar[dict[str, str]] = {}
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

    def lower(self, builder: Builder, *operands: Lowered) -> tuple[Lowered, ...]:
        (x,) = operands
        dtype = kernel_dtype(self._dtype(tuple(map(user_size, x.shape))))
        find = self.name.removeprefix("window_")
        last = builder.constant(2**31 - 1 if dtype == "i32" else 2**63 - 1, dtype)

        def element(index: Index) -> int:
            def candidate(spans: Index) -> tuple[int, int]:
                return self._candidate(builder, x, index, spans, last)

            names, (value, place) = builder.over(self.window.dimensions, index, candidate)
            _, best = builder.reduce(find, names, value, place)
            nothing = builder.op("eq", best, last)
            return builder.op("select", nothing, builder.constant(-1, dtype), best)

        return (builder.lowered(window_counts(self.window, x.shape), dtype, element),)

    def _candidate(
        self, builder: Builder, x: Lowered, index: Index, spans: Index, last: int
    ) -> tuple[int, int]:
        """An element of a window and its number; outside, what any element is better than."""
        bounds, place = window_place(builder, self.window, x.shape, index, spans)
        flat = Affine()
        for d in self.moving:
            flat = flat * x.shape[d] + place[d]
        zero = builder.constant(0, x.dtype)
        value = wide(builder, inside_or(builder, bounds, lambda: x.element(place), zero))
        value = builder.convert(value, "i8") if x.dtype == "bool" else value
        dtype = builder.dtypes[value]
        extreme = least if self.name == "window_argmax" else greatest
        worst = builder.constant(extreme(dtypes.from_short_name(dtype)), dtype)
        inside = builder.within(bounds)
        return (
            builder.op("select", inside, value, worst),
            builder.op("select", inside, builder.iota(flat, builder.dtypes[last]), last),
        )

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
