"""Moving elements without changing them: broadcast, transpose, reshape, reverse."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from math import prod
from typing import Any, ClassVar

import numpy as np

from fxarray.core import dims
from fxarray.core.errors import AxisError, ShapeError
from fxarray.core.factors import Factors, letters
from fxarray.core.hooks import operators
from fxarray.core.primitive import Primitive, Sample, remembered
from fxarray.core.types import ArrayType, Shape, shape_key
from fxarray.kernel.build import Builder, Index, Lowered
from fxarray.kernel.indices import reshaped
from fxarray.kernel.ir import Affine
from fxarray.kernel.sizes import kernel_shape, subtract
from fxarray.primitives.lowering import view
from fxarray.primitives.reduce import reduce_sum

_FEW = 1024


class BroadcastInDim(Primitive, name="broadcast_in_dim"):
    """Place operand dimension i at `dimensions[i]` of `shape`, and repeat along the others.

    An operand dimension of size 1 may be repeated too.
    """

    shape: Shape
    dimensions: tuple[int, ...]
    linear_operands: ClassVar[tuple[int, ...]] = (0,)

    def infer(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        (x,) = types
        if len(self.dimensions) != x.ndim or list(self.dimensions) != sorted(set(self.dimensions)):
            raise ShapeError(
                f"broadcast_in_dim: dimensions={self.dimensions} must name, in increasing order, "
                f"one result dimension for each of the {x.ndim} dimensions of {x}"
            )
        for position, dimension in enumerate(self.dimensions):
            if not 0 <= dimension < len(self.shape):
                raise AxisError(
                    f"broadcast_in_dim: dimension {dimension} is not one of shape {self.shape}"
                )
            size = x.shape[position]
            if not dims.same(size, self.shape[dimension]) and not dims.same(size, 1):
                raise ShapeError(
                    f"broadcast_in_dim: dimension {position} of {x} has size {size}, which is "
                    f"neither 1 nor the result's {self.shape[dimension]} (shape {self.shape})"
                )
        return (ArrayType(self.shape, x.dtype, x.weak),)

    def reference(self, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        (x,) = arrays
        shape: Any = self.shape
        sizes = [1] * len(shape)
        for position, dimension in enumerate(self.dimensions):
            sizes[dimension] = x.shape[position]
        return (np.broadcast_to(x.reshape(sizes), shape),)

    def eager(self, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        # One value is written a few times faster than NumPy makes a view that repeats it.
        (x,) = arrays
        shape: Any = self.shape
        if x.ndim or prod(shape) > _FEW:
            return self.reference(x)
        result = np.empty(shape, x.dtype)
        result[...] = x
        return (result,)

    def lower(self, builder: Builder, *operands: Lowered) -> tuple[Lowered, ...]:
        (x,) = operands

        def place(index: Index) -> Index:
            return tuple(
                [
                    Affine() if size == 1 else index[dimension]
                    for size, dimension in zip(x.shape, self.dimensions, strict=True)
                ]
            )

        return (view(builder, x, kernel_shape(self.shape), place),)

    def transpose(self, cotangents: Sequence[Any], *operands: Any) -> Sequence[Any]:
        (cotangent,), (x,) = cotangents, operands
        repeated = [
            dimension
            for position, dimension in enumerate(self.dimensions)
            if dims.same(x.shape[position], 1) and not dims.same(self.shape[dimension], 1)
        ]
        new = [d for d in range(len(self.shape)) if d not in self.dimensions]
        total = reduce_sum(cotangent, new + repeated)
        return (reshape(total, x.shape),)

    def batch(
        self, size: Any, axis_name: Hashable, operands: Sequence[Any], axes: Sequence[int | None]
    ) -> tuple[Sequence[Any], Sequence[int | None]]:
        (x,), (axis,) = operands, axes
        assert axis is not None
        x = operators.move_axis(x, axis, 0)
        dimensions = (0, *[d + 1 for d in self.dimensions])
        return BroadcastInDim((size, *self.shape), dimensions).bind(x), (0,)

    def shard(self, *types: ArrayType) -> Factors:
        result = letters(len(self.shape))
        operand = tuple(
            result[dimension] if dims.same(size, self.shape[dimension]) else f"one{dimension}"
            for size, dimension in zip(types[0].shape, self.dimensions, strict=True)
        )
        ones = [factor for factor in operand if factor.startswith("one")]
        return Factors((operand,), (result,), dict.fromkeys(ones, "any"), frozenset(ones), (0,))

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Any]:
        yield Sample(cls((), ()), (np.float32(2),))
        yield Sample(cls((0, 3), (1,)), (rng.normal(size=3).astype("float32"),))
        yield Sample(cls((2, 3, 4), (0, 2)), (rng.normal(size=(2, 4)),))
        yield Sample(cls((2, 3), (0, 1)), (rng.normal(size=(1, 3)),))
        yield Sample(cls((2, 3), ()), (np.int32(5),))
        yield Sample(cls((2, 3), (1,)), (np.ones(2),), error=ShapeError)


class Transpose(Primitive, name="transpose"):
    """Reorder dimensions: result dimension i is operand dimension `permutation[i]`."""

    permutation: tuple[int, ...]
    linear_operands: ClassVar[tuple[int, ...]] = (0,)

    def infer(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        (x,) = types
        if sorted(self.permutation) != list(range(x.ndim)):
            raise AxisError(
                f"transpose: permutation {self.permutation} must list each of the {x.ndim} "
                f"dimensions of {x} once"
            )
        return (ArrayType(tuple([x.shape[p] for p in self.permutation]), x.dtype, x.weak),)

    def reference(self, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        return (np.transpose(arrays[0], self.permutation),)

    def lower(self, builder: Builder, *operands: Lowered) -> tuple[Lowered, ...]:
        (x,) = operands
        shape = [x.shape[p] for p in self.permutation]
        inverse = sorted(range(len(shape)), key=self.permutation.__getitem__)
        return (view(builder, x, shape, lambda index: tuple([index[p] for p in inverse])),)

    def transpose(self, cotangents: Sequence[Any], *operands: Any) -> Sequence[Any]:
        inverse = tuple(sorted(range(len(self.permutation)), key=self.permutation.__getitem__))
        return Transpose(inverse).bind(cotangents[0])

    def batch(
        self, size: Any, axis_name: Hashable, operands: Sequence[Any], axes: Sequence[int | None]
    ) -> tuple[Sequence[Any], Sequence[int | None]]:
        (axis,) = axes
        assert axis is not None
        permutation = (axis, *[p + (p >= axis) for p in self.permutation])
        return Transpose(permutation).bind(*operands), (0,)

    def shard(self, *types: ArrayType) -> Factors:
        names = letters(len(self.permutation))
        return Factors((names,), (tuple(names[p] for p in self.permutation),), linear=(0,))

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Any]:
        yield Sample(cls(()), (np.float32(1),))
        yield Sample(cls((1, 0)), (rng.normal(size=(0, 3)),))
        yield Sample(cls((1, 0)), (rng.normal(size=(2, 3)).astype("float32"),))
        yield Sample(cls((2, 0, 1)), (rng.normal(size=(2, 3, 4)),))
        yield Sample(cls((0, 0)), (np.ones((2, 3)),), error=AxisError)


class Reshape(Primitive, name="reshape"):
    """The same elements, in row-major order, in another shape."""

    shape: Shape
    linear_operands: ClassVar[tuple[int, ...]] = (0,)

    def infer(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        (x,) = types
        if not dims.same(dims.shape_product(x.shape), dims.shape_product(self.shape)):
            raise ShapeError(
                f"reshape: {x} has {dims.shape_product(x.shape)} elements, but shape {self.shape} "
                f"has {dims.shape_product(self.shape)}"
            )
        return (ArrayType(self.shape, x.dtype, x.weak),)

    def reference(self, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        return (np.reshape(arrays[0], self.shape),)

    def lower(self, builder: Builder, *operands: Lowered) -> tuple[Lowered, ...]:
        (x,) = operands
        shape = kernel_shape(self.shape)

        def element(index: Index) -> int:
            if 0 in x.shape:
                return builder.constant(0, x.dtype)
            return x.element(reshaped(index, shape, x.shape, builder.axes))

        return (builder.lowered(shape, x.dtype, element),)

    def transpose(self, cotangents: Sequence[Any], *operands: Any) -> Sequence[Any]:
        return Reshape(operands[0].shape).bind(cotangents[0])

    def batch(
        self, size: Any, axis_name: Hashable, operands: Sequence[Any], axes: Sequence[int | None]
    ) -> tuple[Sequence[Any], Sequence[int | None]]:
        (x,), (axis,) = operands, axes
        assert axis is not None
        return Reshape((size, *self.shape)).bind(operators.move_axis(x, axis, 0)), (0,)

    def shard(self, *types: ArrayType) -> Factors:
        # Sizes that stand unchanged keep their factor: those before the first and after the last
        # that change, and, where dimensions of size 1 come or go, all the others in between.
        before, after = types[0].shape, self.shape
        names = letters(len(before) + len(after))
        operand = list(names[: len(before)])
        result = list(names[len(before) :])
        for position, source in _unchanged(before, after):
            result[position] = operand[source]
        changed = [f for f in (*operand, *result) if not (f in operand and f in result)]
        vanished = {f: "any" for f in changed if f in operand}
        return Factors((tuple(operand),), (tuple(result),), vanished, frozenset(changed), (0,))

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Any]:
        yield Sample(cls((1, 1)), (np.float32(3),))
        yield Sample(cls((0, 5)), (rng.normal(size=(3, 0)),))
        yield Sample(cls((3, 4)), (rng.normal(size=(2, 6)).astype("float32"),))
        yield Sample(cls((2, 3, 4)), (rng.normal(size=(2, 12)),))
        yield Sample(cls((5,)), (np.ones((2, 3)),), error=ShapeError)


def _unchanged(before: Shape, after: Shape) -> list[tuple[int, int]]:
    """Pairs (dimension of `after`, dimension of `before`) that a reshape carries over as they "
    "are."""
    old = [i for i, size in enumerate(before) if not dims.same(size, 1)]
    new = [i for i, size in enumerate(after) if not dims.same(size, 1)]
    pairs: list[tuple[int, int]] = []
    while old and new and dims.same(before[old[0]], after[new[0]]):
        pairs.append((new.pop(0), old.pop(0)))
    while old and new and dims.same(before[old[-1]], after[new[-1]]):
        pairs.append((new.pop(), old.pop()))
    return pairs


class Rev(Primitive, name="rev"):
    """The elements in reverse order along `dimensions`."""

    dimensions: tuple[int, ...]
    linear_operands: ClassVar[tuple[int, ...]] = (0,)

    def infer(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        (x,) = types
        known = set(self.dimensions)
        if len(known) != len(self.dimensions) or not known <= set(range(x.ndim)):
            raise AxisError(
                f"rev: dimensions {self.dimensions} must be distinct dimensions of the operand, {x}"
            )
        return (ArrayType(x.shape, x.dtype, x.weak),)

    def reference(self, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        return (np.asarray(np.flip(arrays[0], self.dimensions)),)

    def lower(self, builder: Builder, *operands: Lowered) -> tuple[Lowered, ...]:
        (x,) = operands

        def place(index: Index) -> Index:
            return tuple(
                [
                    here * -1 + subtract(x.shape[d], 1) if d in self.dimensions else here
                    for d, here in enumerate(index)
                ]
            )

        return (view(builder, x, x.shape, place),)

    def transpose(self, cotangents: Sequence[Any], *operands: Any) -> Sequence[Any]:
        return self.bind(cotangents[0])

    def batch(
        self, size: Any, axis_name: Hashable, operands: Sequence[Any], axes: Sequence[int | None]
    ) -> tuple[Sequence[Any], Sequence[int | None]]:
        (axis,) = axes
        assert axis is not None
        return Rev(tuple([d + (d >= axis) for d in self.dimensions])).bind(*operands), (axis,)

    def shard(self, *types: ArrayType) -> Factors:
        names = letters(types[0].ndim)
        reversed_factors = frozenset(names[d] for d in self.dimensions)
        return Factors((names,), (names,), whole=reversed_factors, linear=(0,))

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Any]:
        yield Sample(cls(()), (np.float32(1),))
        yield Sample(cls((0,)), (rng.normal(size=(0, 3)),))
        yield Sample(cls((1,)), (rng.normal(size=(2, 3)).astype("float32"),))
        yield Sample(cls((2, 0)), (rng.normal(size=(2, 3, 4)),))
        yield Sample(cls((0,)), (rng.integers(0, 9, size=5).astype("int8"),))
        yield Sample(cls((2,)), (np.ones((2, 3)),), error=AxisError)


# --- functions used by rules ----------------------------------------------------------------------


def broadcast_in_dim(x: Any, shape: Sequence[Any], dimensions: Sequence[int]) -> Any:
    """`x` with its dimensions at `dimensions` of `shape`, repeated along the others."""
    shape = tuple(shape)
    if len(dimensions) == len(shape) and shape_key(x.type.shape) == shape_key(shape):
        return x
    return remembered(BroadcastInDim, shape, tuple(dimensions))(x)


def reshape(x: Any, shape: Sequence[Any]) -> Any:
    """`x` in another shape of as many elements (sizes must be given, no -1)."""
    shape = tuple(shape)
    return x if shape_key(x.type.shape) == shape_key(shape) else remembered(Reshape, shape)(x)


def transpose(x: Any, permutation: Sequence[int]) -> Any:
    """`x` with dimension i taken from `permutation[i]`."""
    permutation = tuple(permutation)
    return (
        x
        if permutation == tuple(range(len(permutation)))
        else remembered(Transpose, permutation)(x)
    )


def rev(x: Any, dimensions: Sequence[int]) -> Any:
    """`x` in reverse order along `dimensions` (non-negative)."""
    dimensions = tuple(dimensions)
    return Rev(dimensions)(x) if dimensions else x


def move_axis(x: Any, source: int, destination: int) -> Any:
    """`x` with one axis moved (both positions non-negative)."""
    if source == destination:
        return x
    order = [i for i in range(x.type.ndim) if i != source]
    order.insert(destination, source)
    return Transpose(tuple(order))(x)


def broadcast_axis(x: Any, size: Any, axis: int) -> Any:
    """`x` repeated along a new axis."""
    rank = x.type.ndim
    if axis < 0:
        axis += rank + 1
    shape = (*x.type.shape[:axis], size, *x.type.shape[axis:])
    dimensions = (*range(axis), *range(axis + 1, rank + 1))
    return remembered(BroadcastInDim, shape, dimensions)(x)


operators.fill(move_axis=move_axis, broadcast_axis=broadcast_axis)
