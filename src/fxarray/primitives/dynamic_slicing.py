"""Boxes whose place is known only when the operation runs.

Start indices are clamped so that the box lies inside the operand.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from fxarray.core import dims, dtypes
from fxarray.core.errors import DTypeError, ShapeError
from fxarray.core.factors import Factors
from fxarray.core.hooks import operators
from fxarray.core.primitive import Linear, Primitive, Sample, Zero, instantiate
from fxarray.core.types import ArrayType, Shape, Size
from fxarray.kernel.build import Builder, Index, Lowered
from fxarray.kernel.sizes import kernel_shape
from fxarray.primitives.convert import convert
from fxarray.primitives.create import scalar, zeros
from fxarray.primitives.elementwise import add
from fxarray.primitives.gather import Gather
from fxarray.primitives.joining import concatenate
from fxarray.primitives.lowering import box_start, inside_or, view
from fxarray.primitives.movement import broadcast_in_dim
from fxarray.primitives.scatter import Scatter
from fxarray.primitives.support import INTEGER, Values, group_of, number_like
from fxarray.primitives.windows import GatherDimensionNumbers, GatherScatterMode, as_scatter


def _check_starts(name: str, x: ArrayType, starts: Sequence[ArrayType]) -> None:
    if len(starts) != x.ndim:
        raise ShapeError(
            f"{name}: there must be one start index for each of the {x.ndim} dimensions of {x}, "
            f"got {len(starts)}"
        )
    for dimension, start in enumerate(starts):
        if start.shape:
            raise ShapeError(f"{name}: start index {dimension} must be 0-dimensional, got {start}")
        if not group_of(start.dtype) & INTEGER:
            raise DTypeError(f"{name}: start index {dimension} must be an integer, got {start}")


def _check_box(name: str, box: Sequence[Size], x: ArrayType) -> None:
    if len(box) != x.ndim:
        raise ShapeError(f"{name}: a box of sizes {tuple(box)} has another rank than {x}")
    for part, size in zip(box, x.shape, strict=True):
        if type(part) is int and (part < 0 or (type(size) is int and part > size)):
            raise ShapeError(f"{name}: a box of sizes {tuple(box)} does not fit into {x}")


def _box(shape: Sequence[int], starts: Sequence[Values], sizes: Sequence[int]) -> tuple[slice, ...]:
    """The box as slices, moved inside."""
    box: list[slice] = []
    for start, size, whole in zip(starts, sizes, shape, strict=True):
        first = max(min(int(start), whole - size), 0)
        box.append(slice(first, first + size))
    return tuple(box)


def _index_vectors(
    shape: Shape, sizes: Shape, starts: Sequence[Any], axes: Sequence[int | None], size: Any
) -> tuple[tuple[int, ...], Any]:
    """Mapped start indices as the rows of an index array, and the dimensions that they index.

    Dimensions in which the box is whole are left out: there is only one place for it.
    """
    indexed = tuple([d for d, s in enumerate(shape) if not dims.same(s, sizes[d])])
    given = {starts[d].type.dtype for d in indexed}
    if given == {dtypes.uint64}:
        dtype = dtypes.uint64
    elif all(g == dtypes.int32 or dtypes.bit_width(g) < 32 for g in given):
        dtype = dtypes.int32
    else:
        dtype = dtypes.int64
    columns: list[Any] = []
    for d in indexed:
        column = convert(starts[d], dtype)
        over = () if axes[d] is None else (0,)
        columns.append(broadcast_in_dim(column, (size, 1), over))
    if not columns:
        return (), zeros(ArrayType((size, 0), dtypes.int32))
    return indexed, concatenate(columns, 1)


class DynamicSlice(Primitive, name="dynamic_slice"):
    """The box of `slice_sizes` at a given place; operands are the array and a start per "
    "dimension."""

    slice_sizes: Shape
    linear_operands: ClassVar[tuple[int, ...]] = (0,)
    accumulates: ClassVar[bool] = True

    def infer(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        x, *starts = types
        _check_box("dynamic_slice", self.slice_sizes, x)
        _check_starts("dynamic_slice", x, starts)
        return (ArrayType(self.slice_sizes, x.dtype, x.weak),)

    def reference(self, *arrays: Values) -> tuple[Values, ...]:
        x, *starts = arrays
        sizes: Any = self.slice_sizes
        return (x[(*_box(x.shape, starts, sizes), ...)],)

    def lower(self, builder: Builder, *operands: Lowered) -> tuple[Lowered, ...]:
        x, *starts = operands
        shape = kernel_shape(self.slice_sizes)

        def place(index: Index) -> Index:
            first = box_start(builder, x.shape, shape, starts)
            return tuple([here + start for here, start in zip(index, first, strict=True)])

        return (view(builder, x, shape, place),)

    def transpose(self, cotangents: Sequence[Any], *operands: Any) -> Sequence[Any]:
        (cotangent,), (x, *starts) = cotangents, operands
        total = dynamic_update_slice(zeros(x.type), cotangent, starts)
        return (total, *[None] * len(starts))

    def transpose_into(
        self, running: Sequence[Any], cotangents: Sequence[Any], *operands: Any
    ) -> Sequence[Any]:
        (total, *_), (cotangent,), (_, *starts) = running, cotangents, operands
        changed = add(self(total, *starts), cotangent)
        return (dynamic_update_slice(total, changed, starts), *[None] * len(starts))

    def batch(
        self, size: Any, axis_name: Hashable, operands: Sequence[Any], axes: Sequence[int | None]
    ) -> tuple[Sequence[Any], Sequence[int | None]]:
        (x, *starts), (axis, *start_axes) = operands, axes
        if all(start_axis is None for start_axis in start_axes):
            assert axis is not None
            starts.insert(axis, scalar(0, dtypes.int32))
            sizes = (*self.slice_sizes[:axis], size, *self.slice_sizes[axis:])
            return DynamicSlice(sizes).bind(x, *starts), (axis,)
        mapped = axis is not None
        if mapped:
            x = operators.move_axis(x, axis, 0)
        shape = x.type.shape[1:] if mapped else x.type.shape
        indexed, indices = _index_vectors(shape, self.slice_sizes, starts, start_axes, size)
        numbers = _numbers_of_boxes(len(shape), indexed, mapped)
        sizes = (1, *self.slice_sizes) if mapped else self.slice_sizes
        return Gather(numbers, sizes, mode=GatherScatterMode.CLIP).bind(x, indices), (0,)

    def shard(self, *types: ArrayType) -> Factors:
        return _box_factors(types[0], self.slice_sizes, len(types) - 1)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Any]:
        yield Sample(cls(()), (np.float32(1),))
        yield Sample(cls((0, 2)), (rng.normal(size=(1, 2)), np.int32(0), np.int32(0)))
        x = rng.normal(size=(4, 5)).astype("float32")
        yield Sample(cls((2, 3)), (x, np.int32(1), np.int32(2)))
        yield Sample(cls((2, 5)), (rng.normal(size=(4, 5)), np.int64(9), np.uint8(3)))
        yield Sample(cls((3,)), (rng.integers(0, 9, size=5).astype("int8"), np.int32(-4)))
        yield Sample(cls((6,)), (np.ones(5), np.int32(0)), error=ShapeError)
        yield Sample(cls((2, 3)), (x, np.int32(1)), error=ShapeError)
        yield Sample(cls((2,)), (np.ones(5), np.float32(0)), error=DTypeError)


def _numbers_of_boxes(rank: int, indexed: tuple[int, ...], mapped: bool) -> GatherDimensionNumbers:
    """Dimension numbers of the boxes of all lanes, the lane in front."""
    offset = tuple(range(1, rank + 1))
    if not mapped:
        return GatherDimensionNumbers(offset, (), indexed)
    return GatherDimensionNumbers(offset, (), tuple([d + 1 for d in indexed]), (0,), (0,))


class DynamicUpdateSlice(Primitive, name="dynamic_update_slice"):
    """The array with a box replaced; operands are the array, the box, and a start per dimension."""

    linear_operands: ClassVar[tuple[int, ...]] = (0, 1)

    def infer(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        x, update, *starts = types
        if update.dtype != x.dtype:
            raise DTypeError(
                f"dynamic_update_slice: the update is {update}, but the operand is {x}; dtypes "
                f"must be equal"
            )
        _check_box("dynamic_update_slice", update.shape, x)
        _check_starts("dynamic_update_slice", x, starts)
        return (ArrayType(x.shape, x.dtype, x.weak),)

    def reference(self, *arrays: Values) -> tuple[Values, ...]:
        x, update, *starts = arrays
        result = np.array(x)
        result[(*_box(x.shape, starts, update.shape), ...)] = update
        return (result,)

    def lower(self, builder: Builder, *operands: Lowered) -> tuple[Lowered, ...]:
        x, update, *starts = operands

        def element(index: Index) -> int:
            first = box_start(builder, x.shape, update.shape, starts)
            places = tuple([here - start for here, start in zip(index, first, strict=True)])
            bounds = [(p, 0, size) for p, size in zip(places, update.shape, strict=True)]
            return inside_or(builder, bounds, lambda: update.element(places), x.element(index))

        return (builder.lowered(x.shape, x.dtype, element),)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        outputs = self.bind(*primals)
        if type(tangents[0]) is Zero and type(tangents[1]) is Zero:
            return outputs, (Zero(outputs[0].type.tangent()),)
        return outputs, self.bind(*map(instantiate, tangents[:2]), *primals[2:])

    def transpose(self, cotangents: Sequence[Any], *operands: Any) -> Sequence[Any]:
        (cotangent,), (x, update, *starts) = cotangents, operands
        results: list[Any] = [None] * len(operands)
        if type(x) is Linear:
            nothing = broadcast_in_dim(number_like(cotangent, 0), update.type.shape, ())
            results[0] = dynamic_update_slice(cotangent, nothing, starts)
        if type(update) is Linear:
            results[1] = DynamicSlice(update.type.shape)(cotangent, *starts)
        return results

    def batch(
        self, size: Any, axis_name: Hashable, operands: Sequence[Any], axes: Sequence[int | None]
    ) -> tuple[Sequence[Any], Sequence[int | None]]:
        (x, update, *starts), (axis, update_axis, *start_axes) = operands, axes
        x = (
            operators.broadcast_axis(x, size, 0)
            if axis is None
            else operators.move_axis(x, axis, 0)
        )
        update = (
            operators.broadcast_axis(update, size, 0)
            if update_axis is None
            else operators.move_axis(update, update_axis, 0)
        )
        if all(start_axis is None for start_axis in start_axes):
            return self.bind(x, update, scalar(0, dtypes.int32), *starts), (0,)
        shape, box = x.type.shape[1:], update.type.shape[1:]
        indexed, indices = _index_vectors(shape, box, starts, start_axes, size)
        numbers = as_scatter(_numbers_of_boxes(len(shape), indexed, True))
        op = Scatter(numbers, unique_indices=True, mode=GatherScatterMode.CLIP)
        return op.bind(x, indices, update), (0,)

    def shard(self, *types: ArrayType) -> Factors:
        x, update, *starts = types
        factors = _box_factors(x, update.shape, len(starts))
        operand, *rest = factors.operands
        (box,) = factors.results
        gone = {name: "any" for name in box if name not in operand}
        return Factors((operand, box, *rest), (operand,), gone, factors.whole, (0, 1))

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Any]:
        op = cls()
        yield Sample(op, (np.float32(1), np.float32(2)))
        yield Sample(op, (np.ones((1, 2)), np.ones((0, 2)), np.int32(0), np.int32(0)))
        x, box = rng.normal(size=(4, 5)), rng.normal(size=(2, 3))
        yield Sample(op, (x, box, np.int32(1), np.int32(2)))
        yield Sample(op, (x, rng.normal(size=(2, 5)), np.int64(9), np.uint8(3)))
        yield Sample(op, (np.arange(5, dtype="int8"), np.array([7, 8], "int8"), np.int32(-4)))
        yield Sample(op, (np.ones(5), np.ones(6), np.int32(0)), error=ShapeError)
        yield Sample(op, (x, box, np.int32(1)), error=ShapeError)
        yield Sample(op, (np.ones(5), np.ones(2, "float32"), np.int32(0)), error=DTypeError)


def _box_factors(x: ArrayType, box: Shape, starts: int) -> Factors:
    """Factors of an array and a box of it; dimensions in which the box is not whole must be."""
    names = [f"x{d}" for d in range(x.ndim)]
    parts = [
        name if dims.same(part, size) else f"box_{name}"
        for name, part, size in zip(names, box, x.shape, strict=True)
    ]
    gone = {name: "any" for name, part in zip(names, parts, strict=True) if name != part}
    whole = frozenset(gone) | frozenset(f"box_{name}" for name in gone)
    return Factors((tuple(names), *[()] * starts), (tuple(parts),), gone, whole, (0,))


def dynamic_update_slice(x: Any, update: Any, starts: Sequence[Any]) -> Any:
    """`x` with the box at `starts` replaced by `update`."""
    return DynamicUpdateSlice()(x, update, *starts)
