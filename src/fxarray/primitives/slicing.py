"""Cutting a box out of an array, and padding it: each is the other's transpose."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from fxarray.core import dims, dtypes
from fxarray.core.errors import DTypeError, ShapeError
from fxarray.core.factors import Factors, letters
from fxarray.core.hooks import operators
from fxarray.core.primitive import Linear, Primitive, Sample
from fxarray.core.types import ArrayType, Shape, Size
from fxarray.kernel.build import Builder, Index, Lowered
from fxarray.kernel.ir import Affine, Bound
from fxarray.kernel.sizes import kernel_shape, kernel_size, user_size
from fxarray.primitives.comparison import select
from fxarray.primitives.create import scalar
from fxarray.primitives.dynamic_slicing import dynamic_update_slice
from fxarray.primitives.elementwise import add
from fxarray.primitives.lowering import between, inside_or, view
from fxarray.primitives.movement import broadcast_in_dim
from fxarray.primitives.reduce import reduce_sum
from fxarray.primitives.support import Values, number_like


def is_known(*sizes: Size) -> bool:
    """Whether all of `sizes` are plain integers, so that comparing them always has an answer."""
    return all(type(size) is int for size in sizes)


def count_steps(start: Size, limit: Size, stride: int) -> Size:
    """The number of indices in `range(start, limit, stride)`, for `start <= limit`."""
    extent = limit - start
    return extent if stride == 1 else (extent + (stride - 1)) // stride


class Slice(Primitive, name="slice"):
    """Elements `start`, `start + stride`, ... below `limit` of each dimension."""

    start_indices: Shape
    limit_indices: Shape
    strides: tuple[int, ...]
    linear_operands: ClassVar[tuple[int, ...]] = (0,)
    accumulates: ClassVar[bool] = True

    def infer(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        (x,) = types
        bounds = (self.start_indices, self.limit_indices, self.strides)
        if any(len(bound) != x.ndim for bound in bounds):
            raise ShapeError(
                f"slice: start_indices={self.start_indices}, limit_indices={self.limit_indices} "
                f"and strides={self.strides} must have one entry for each of the {x.ndim} "
                f"dimensions of {x}"
            )
        sizes: list[Size] = []
        for dimension, (start, limit, stride) in enumerate(zip(*bounds, strict=True)):
            size = x.shape[dimension]
            if stride < 1 or (is_known(start) and start < 0):
                raise ShapeError(
                    f"slice: dimension {dimension} starts at {start} with stride {stride}; starts "
                    f"must be at least 0 and strides at least 1"
                )
            if (is_known(start, limit) and start > limit) or (
                is_known(limit, size) and limit > size
            ):
                raise ShapeError(
                    f"slice: dimension {dimension} of {x} cannot be cut from {start} to {limit}; a "
                    f"slice needs start <= limit <= {size}"
                )
            sizes.append(count_steps(start, limit, stride))
        return (ArrayType(tuple(sizes), x.dtype, x.weak),)

    def reference(self, *arrays: Values) -> tuple[Values, ...]:
        return (arrays[0][(*map(slice, *self._bounds()), ...)],)

    def lower(self, builder: Builder, *operands: Lowered) -> tuple[Lowered, ...]:
        (x,) = operands
        starts = kernel_shape(self.start_indices)
        shape = kernel_shape(map(count_steps, *self._bounds()))

        def place(index: Index) -> Index:
            steps = zip(index, starts, self.strides, strict=True)
            return tuple([here * stride + start for here, start, stride in steps])

        return (view(builder, x, shape, place),)

    def _bounds(self) -> tuple[Any, ...]:
        return (self.start_indices, self.limit_indices, self.strides)

    def transpose(self, cotangents: Sequence[Any], *operands: Any) -> Sequence[Any]:
        (cotangent,), (x,) = cotangents, operands
        config: list[tuple[Size, Size, int]] = []
        for start, stride, size, count in zip(
            self.start_indices, self.strides, x.type.shape, cotangent.type.shape, strict=True
        ):
            taken = count if stride == 1 else _spread(count, stride - 1)
            config.append((start, size - start - taken, stride - 1))
        return (pad(cotangent, number_like(cotangent, 0), config),)

    def transpose_into(
        self, running: Sequence[Any], cotangents: Sequence[Any], *operands: Any
    ) -> Sequence[Any]:
        (total,), (cotangent,) = running, cotangents
        if any(stride != 1 for stride in self.strides) or not is_known(*self.start_indices):
            (contribution,) = self.transpose(cotangents, *operands)
            return (add(total, contribution),)
        starts = [scalar(start, dtypes.int32) for start in self.start_indices]
        return (dynamic_update_slice(total, add(self(total), cotangent), starts),)

    def batch(
        self, size: Any, axis_name: Hashable, operands: Sequence[Any], axes: Sequence[int | None]
    ) -> tuple[Sequence[Any], Sequence[int | None]]:
        (axis,) = axes
        assert axis is not None
        starts, limits, strides = map(list[Any], self._bounds())
        starts.insert(axis, 0)
        limits.insert(axis, size)
        strides.insert(axis, 1)
        return Slice(tuple(starts), tuple(limits), tuple(strides)).bind(*operands), (axis,)

    def shard(self, *types: ArrayType) -> Factors:
        (x,) = types
        (result,) = self.types(*types)
        return partly_whole(x, result, linear=(0,))

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Any]:
        yield Sample(cls((), (), ()), (np.float32(1),))
        yield Sample(cls((0, 1), (0, 3), (1, 1)), (rng.normal(size=(0, 4)),))
        yield Sample(cls((2,), (2,), (1,)), (rng.normal(size=5),))
        yield Sample(cls((1, 0), (3, 5), (1, 2)), (rng.normal(size=(4, 5)).astype("float32"),))
        yield Sample(cls((0, 1, 2), (2, 6, 3), (1, 3, 4)), (rng.normal(size=(2, 7, 3)),))
        yield Sample(cls((1,), (4,), (2,)), (rng.integers(0, 99, size=6).astype("int16"),))
        yield Sample(cls((1,), (5,), (1,)), (np.ones(4),), error=ShapeError)
        yield Sample(cls((-1,), (3,), (1,)), (np.ones(4),), error=ShapeError)
        yield Sample(cls((1,), (3,), (1,)), (np.ones((4, 2)),), error=ShapeError)


def partly_whole(x: ArrayType, result: ArrayType, linear: tuple[int, ...]) -> Factors:
    """Factors of an operation on corresponding dimensions: those that change size must be whole."""
    names = list(letters(x.ndim))
    results = list(names)
    vanished: dict[str, str] = {}
    for dimension, name in enumerate(names):
        if not dims.same(x.shape[dimension], result.shape[dimension]):
            vanished[name] = "any"
            results[dimension] = f"new_{name}"
    whole = frozenset(vanished) | frozenset(f"new_{name}" for name in vanished)
    return Factors((tuple(names),), (tuple(results),), vanished, whole, linear)


# --- pad -----------------------------------------------------------------------------------------


def _spread(count: Size, interior: int) -> Size:
    """How far `count` elements reach with `interior` elements between neighbours."""
    if interior == 0:
        return count
    if type(count) is int:
        return max(count * (interior + 1) - interior, 0)
    return dims.dim_max(count * (interior + 1) - interior, 0)


class Pad(Primitive, name="pad"):
    """The operand with a value put before, after and between the elements of each dimension.

    `padding_config` has a triple (low, high, interior) per dimension; a negative low or high
    removes elements instead.
    """

    padding_config: tuple[tuple[Size, Size, int], ...]
    linear_operands: ClassVar[tuple[int, ...]] = (0, 1)

    def infer(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        x, value = types
        if value.dtype != x.dtype:
            raise DTypeError(
                f"pad: the padding value is {value}, but the operand is {x}; dtypes must be equal"
            )
        if value.shape:
            raise ShapeError(f"pad: the padding value must be 0-dimensional, got {value}")
        if len(self.padding_config) != x.ndim:
            raise ShapeError(
                f"pad: padding_config={self.padding_config} must have one (low, high, interior) "
                f"for each of the {x.ndim} dimensions of {x}"
            )
        sizes: list[Size] = []
        for dimension, (low, high, interior) in enumerate(self.padding_config):
            if interior < 0:
                raise ShapeError(
                    f"pad: interior padding of dimension {dimension} is {interior}, must be at "
                    "least 0"
                )
            size = low + _spread(x.shape[dimension], interior) + high
            if is_known(size) and size < 0:
                raise ShapeError(
                    f"pad: dimension {dimension} of {x} would get size {size} by "
                    f"padding_config={self.padding_config}"
                )
            sizes.append(size)
        return (ArrayType(tuple(sizes), x.dtype, x.weak and value.weak),)

    def reference(self, *arrays: Values) -> tuple[Values, ...]:
        x, value = arrays
        into: list[slice] = []
        source: list[slice] = []
        shape: list[int] = []
        for size, (low, high, interior) in zip(x.shape, self.padding_config, strict=True):
            assert type(low) is int
            assert type(high) is int
            step = interior + 1
            total = low + max(size * step - interior, 0) + high
            # Element i goes to low + i * step; only some of these may lie inside the result.
            first = max(-(low // step), 0)
            last = min(size, max(-((low - total) // step), 0))
            first = min(first, last)
            into.append(
                slice(low + first * step, low + last * step, step) if last > first else _NONE
            )
            source.append(slice(first, last))
            shape.append(total)
        result = np.full(shape, value, x.dtype)
        result[tuple(into)] = x[tuple(source)]
        return (result,)

    def lower(self, builder: Builder, *operands: Lowered) -> tuple[Lowered, ...]:
        x, value = operands
        shape = kernel_shape(
            [
                low + _spread(user_size(size), interior) + high
                for size, (low, high, interior) in zip(x.shape, self.padding_config, strict=True)
            ]
        )

        def element(index: Index) -> int:
            bounds: list[Bound] = []
            places: list[Affine] = []
            for here, size, (low, _, interior) in zip(
                index, x.shape, self.padding_config, strict=True
            ):
                position = here - kernel_size(low)
                inside, place = between(builder, position, size, interior + 1)
                bounds.extend(inside)
                places.append(place)
            return inside_or(builder, bounds, lambda: x.element(tuple(places)), value.at())

        return (builder.lowered(shape, x.dtype, element),)

    def transpose(self, cotangents: Sequence[Any], *operands: Any) -> Sequence[Any]:
        (cotangent,), (x, value) = cotangents, operands
        results: list[Any] = [None, None]
        if type(x) is Linear:
            removal = [(-low, -high, 0) for low, high, _ in self.padding_config]
            kept = pad(cotangent, number_like(cotangent, 0), removal)
            results[0] = strided(kept, [interior + 1 for _, _, interior in self.padding_config])
        if type(value) is Linear:
            padded = self(_falses(x.type.shape), scalar(True, dtypes.bool_))
            only = select(padded, cotangent, number_like(cotangent, 0))
            results[1] = reduce_sum(only, range(only.type.ndim))
        return results

    def batch(
        self, size: Any, axis_name: Hashable, operands: Sequence[Any], axes: Sequence[int | None]
    ) -> tuple[Sequence[Any], Sequence[int | None]]:
        (x, value), (axis, value_axis) = operands, axes
        if value_axis is None:
            assert axis is not None
            config = (*self.padding_config[:axis], (0, 0, 0), *self.padding_config[axis:])
            return Pad(config).bind(x, value), (axis,)
        # Each lane has a padding value of its own: pad with anything, then put it in.
        x = (
            operators.broadcast_axis(x, size, 0)
            if axis is None
            else operators.move_axis(x, axis, 0)
        )
        config = ((0, 0, 0), *self.padding_config)
        padded = Pad(config)(x, number_like(x, 0))
        shape = padded.type.shape
        mask = self(_falses(x.type.shape[1:]), scalar(True, dtypes.bool_))
        mask = broadcast_in_dim(mask, shape, tuple(range(1, len(shape))))
        return (select(mask, broadcast_in_dim(value, shape, (0,)), padded),), (0,)

    def shard(self, *types: ArrayType) -> Factors:
        x, _ = types
        names = list(letters(x.ndim))
        results = list(names)
        vanished: dict[str, str] = {}
        for dimension, (low, high, interior) in enumerate(self.padding_config):
            if not (dims.same(low, 0) and dims.same(high, 0) and interior == 0):
                vanished[names[dimension]] = "any"
                results[dimension] = f"new_{names[dimension]}"
        whole = frozenset(vanished) | frozenset(f"new_{name}" for name in vanished)
        return Factors((tuple(names), ()), (tuple(results),), vanished, whole, (0, 1))

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Any]:
        value = np.float64(rng.normal())
        yield Sample(cls(()), (np.float32(1), np.float32(2)))
        yield Sample(cls(((1, 2, 3), (0, 0, 0))), (rng.normal(size=(0, 2)), value))
        yield Sample(cls(((1, 2, 0), (0, 3, 0))), (rng.normal(size=(2, 3)), value))
        yield Sample(cls(((-1, 2, 0), (1, -3, 0))), (rng.normal(size=(2, 5)), value))
        yield Sample(cls(((0, 1, 2), (-1, -2, 1))), (rng.normal(size=(2, 4)), value))
        yield Sample(cls(((-4, -5, 2),)), (rng.normal(size=4), value))
        yield Sample(cls(((2, 0, 1),)), (np.arange(3, dtype="int32"), np.int32(7)))
        yield Sample(cls(((1, 1, 0),)), (np.array([True, False]), np.bool_(True)))
        yield Sample(cls(((1, 1, 0),)), (np.ones((2, 3)), value), error=ShapeError)
        yield Sample(cls(((-3, 0, 0),)), (np.ones(2), value), error=ShapeError)
        yield Sample(cls(((1, 1, 0),)), (np.ones(2), np.float32(0)), error=DTypeError)


_NONE = slice(0, 0)


def _falses(shape: Shape) -> Any:
    return broadcast_in_dim(scalar(False, dtypes.bool_), shape, ())


# --- functions used by rules ----------------------------------------------------------------------


def slice_box(
    x: Any, starts: Sequence[Size], limits: Sequence[Size], strides: Sequence[int] | None = None
) -> Any:
    """The box from `starts` to `limits` of `x`; `x` itself if that is all of it."""
    strides = (1,) * len(starts) if strides is None else tuple(strides)
    shape = x.type.shape
    if (
        all(stride == 1 for stride in strides)
        and all(dims.same(start, 0) for start in starts)
        and all(dims.same(limit, size) for limit, size in zip(limits, shape, strict=True))
    ):
        return x
    return Slice(tuple(starts), tuple(limits), strides)(x)


def slice_in_axis(x: Any, start: Size, limit: Size, axis: int) -> Any:
    """`x` cut from `start` to `limit` along one axis."""
    starts: list[Size] = [0] * x.type.ndim
    limits = list(x.type.shape)
    starts[axis], limits[axis] = start, limit
    return slice_box(x, starts, limits)


def strided(x: Any, strides: Sequence[int]) -> Any:
    """Every `strides[i]`-th element along dimension i."""
    return slice_box(x, (0,) * x.type.ndim, x.type.shape, strides)


def pad(x: Any, value: Any, config: Sequence[tuple[Size, Size, int]]) -> Any:
    """`x` padded with a 0-dimensional `value`; `x` itself if there is nothing to do."""
    if all(dims.same(a, 0) and dims.same(b, 0) and interior == 0 for a, b, interior in config):
        return x
    return Pad(tuple(config))(x, value)
