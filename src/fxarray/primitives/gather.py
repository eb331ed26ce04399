"""Gather and scatter-add, which are each other's transposes; see `windows` for the terms."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from fxarray.core import dims, dtypes
from fxarray.core.dtypes import DType
from fxarray.core.errors import ArgumentError, DTypeError, ShapeError
from fxarray.core.factors import Factors
from fxarray.core.hooks import operators
from fxarray.core.primitive import Linear, Primitive, Sample, Zero
from fxarray.core.types import ArrayType, Shape
from fxarray.kernel.build import Builder, Index, Lowered
from fxarray.kernel.ir import Affine, Bound
from fxarray.kernel.sizes import add, kernel_shape, subtract, user_size
from fxarray.primitives.create import zeros
from fxarray.primitives.lowering import clamped, index_number, inside_or, without
from fxarray.primitives.scatter_base import ScatterBase
from fxarray.primitives.support import NUMBER, Values
from fxarray.primitives.windows import (
    GatherDimensionNumbers,
    GatherScatterMode,
    as_scatter,
    check_numbers,
    check_windows,
    gathered_shape,
    index_columns,
    integer_starts,
    locate,
    window_dims,
    with_lanes,
)


def default_fill(dtype: DType) -> Any:
    """What reading outside an array gives: NaN, or the least signed, the largest unsigned "
    "integer."""
    if dtypes.is_inexact(dtype):
        return np.nan
    if dtypes.is_key(dtype):
        return np.iinfo(np.uint64).max
    if dtypes.is_bool(dtype):
        return True
    information = dtypes.iinfo(dtype)
    return information.max if dtypes.is_unsigned(dtype) else information.min


class Gather(Primitive, name="gather"):
    """Windows of the operand, one for each index vector; operands are (x, indices).

    `fill_value` is for windows outside the operand in mode FILL_OR_DROP; None is the dtype's
    default.
    """

    dimension_numbers: GatherDimensionNumbers
    slice_sizes: Shape
    indices_are_sorted: bool = False
    unique_indices: bool = False
    mode: GatherScatterMode = GatherScatterMode.CLIP
    fill_value: Any = None
    linear_operands: ClassVar[tuple[int, ...]] = (0,)
    accumulates: ClassVar[bool] = True

    def infer(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        x, indices = types
        numbers = self.dimension_numbers
        check_numbers("gather", numbers, x, indices)
        check_windows("gather", numbers, self.slice_sizes, x)
        return (
            ArrayType(gathered_shape(numbers, self.slice_sizes, indices.shape), x.dtype, x.weak),
        )

    def _fill(self, array: Values) -> Any:
        return default_fill(array.dtype) if self.fill_value is None else self.fill_value

    def reference(self, *arrays: Values) -> tuple[Values, ...]:
        x, indices = arrays
        numbers = self.dimension_numbers
        sizes: Any = self.slice_sizes
        positions, inside = locate(x.shape, indices, numbers, sizes, self.mode)
        batch = indices.shape[:-1]
        values = np.broadcast_to(x[positions], batch + sizes)
        if inside is not None and not inside.all():
            values = np.array(values)
            values[~inside] = dtypes.cast(np.asarray(self._fill(x)), x.dtype)
        kept = window_dims(numbers, x.ndim)
        gone = tuple([len(batch) + d for d in range(x.ndim) if d not in kept])
        values = np.squeeze(values, gone)
        return (np.moveaxis(values, range(len(batch), values.ndim), numbers.offset_dims),)

    def eager(self, *arrays: Values) -> tuple[Values, ...]:
        x, indices = arrays
        numbers = self.dimension_numbers
        plan = index_columns(x.shape, indices, numbers, self.slice_sizes)
        if plan is None or not plan[0]:
            return self.reference(x, indices)
        taken, columns = plan
        batch_rank = indices.ndim - 1
        columns = [integer_starts(column) for column in columns]
        inside: Any = True
        if self.mode is GatherScatterMode.FILL_OR_DROP:
            for column, d in zip(columns, taken, strict=True):
                inside = inside & (column >= 0) & (column < x.shape[d])
        if len(taken) == 1:
            (d,), (column,) = taken, columns
            mode = "clip" if x.size else "raise"
            values = np.asarray(np.take(x, column, axis=d, mode=mode))
            if not np.all(inside):
                values[(slice(None),) * d + (~inside,)] = self._cast_fill(x)
            windowed = (*range(d), *range(d + batch_rank, values.ndim))
            if windowed == numbers.offset_dims:
                return (values,)
            return (np.moveaxis(values, windowed, numbers.offset_dims),)
        columns = [np.clip(c, 0, x.shape[d] - 1) for c, d in zip(columns, taken, strict=True)]
        kept = window_dims(numbers, x.ndim)
        values = np.asarray(np.transpose(x, (*taken, *kept))[tuple(columns)])
        if not np.all(inside):
            values[~inside] = self._cast_fill(x)
        return (np.moveaxis(values, range(batch_rank, values.ndim), numbers.offset_dims),)

    def lower(self, builder: Builder, *operands: Lowered) -> tuple[Lowered, ...]:
        x, indices = operands
        numbers = self.dimension_numbers
        rank, sizes = len(x.shape), kernel_shape(self.slice_sizes)
        batch_shape = tuple(map(user_size, indices.shape))
        shape = kernel_shape(gathered_shape(numbers, self.slice_sizes, batch_shape))
        dtype: Any = dtypes.from_short_name(x.dtype)
        fill = default_fill(dtype) if self.fill_value is None else self.fill_value
        dropping = self.mode is GatherScatterMode.FILL_OR_DROP

        def element(index: Index) -> int:
            batch = without(index, numbers.offset_dims)
            places = [Affine()] * rank
            for d, here in zip(window_dims(numbers, rank), numbers.offset_dims, strict=True):
                places[d] = index[here]
            for d, lane in zip(
                numbers.operand_batching_dims, numbers.start_indices_batching_dims, strict=True
            ):
                places[d] = batch[lane]
            bounds: list[Bound] = []
            for component, d in enumerate(numbers.start_index_map):
                start = indices.element((*batch, Affine((), component)))
                limit = subtract(x.shape[d], sizes[d])
                if dropping:
                    first = Affine(((index_number(builder, start, limit), 1),))
                    bounds.append((first, 0, add(limit, 1)))
                else:
                    first = clamped(builder, start, limit)
                places[d] = places[d] + first
            outside = builder.constant(fill, x.dtype)
            return inside_or(builder, bounds, lambda: x.element(tuple(places)), outside)

        return (builder.lowered(shape, x.dtype, element),)

    def _cast_fill(self, x: Values) -> Values:
        return dtypes.cast(np.asarray(self._fill(x)), x.dtype)

    def with_zero_fill(self) -> Gather:
        """The linear part of the operation."""
        if self.fill_value == 0 or self.mode is not GatherScatterMode.FILL_OR_DROP:
            return self
        return Gather(
            self.dimension_numbers,
            self.slice_sizes,
            self.indices_are_sorted,
            self.unique_indices,
            self.mode,
            0,
        )

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        outputs = self.bind(*primals)
        if type(tangents[0]) is Zero:
            return outputs, (Zero(outputs[0].type.tangent()),)
        return outputs, self.with_zero_fill().bind(tangents[0], primals[1])

    def _scatter(self) -> ScatterAdd:
        numbers = as_scatter(self.dimension_numbers)
        return ScatterAdd(numbers, self.indices_are_sorted, self.unique_indices, self.mode)

    def transpose(self, cotangents: Sequence[Any], *operands: Any) -> Sequence[Any]:
        (cotangent,), (x, indices) = cotangents, operands
        return (self._scatter()(zeros(x.type), indices, cotangent), None)

    def transpose_into(
        self, running: Sequence[Any], cotangents: Sequence[Any], *operands: Any
    ) -> Sequence[Any]:
        return (self._scatter()(running[0], operands[1], cotangents[0]), None)

    def batch(
        self, size: Any, axis_name: Hashable, operands: Sequence[Any], axes: Sequence[int | None]
    ) -> tuple[Sequence[Any], Sequence[int | None]]:
        (x, indices), (x_axis, indices_axis) = operands, axes
        sizes = self.slice_sizes
        if x_axis is not None:
            x = operators.move_axis(x, x_axis, 0)
            sizes = (1 if indices_axis is not None else size, *sizes)
        if indices_axis is not None:
            indices = operators.move_axis(indices, indices_axis, 0)
        numbers = with_lanes(self.dimension_numbers, x_axis is not None, indices_axis is not None)
        op = Gather(
            numbers,
            sizes,
            self.indices_are_sorted and indices_axis is None,
            self.unique_indices and x_axis is not None,
            self.mode,
            self.fill_value,
        )
        return op.bind(x, indices), (0,)

    def shard(self, *types: ArrayType) -> Factors:
        x, indices = types
        numbers = self.dimension_numbers
        operand = [f"x{d}" for d in range(x.ndim)]
        batch = [f"batch{d}" for d in range(indices.ndim - 1)]
        whole = {"vector"}
        for d, lane in zip(
            numbers.operand_batching_dims, numbers.start_indices_batching_dims, strict=True
        ):
            operand[d] = batch[lane]
        window: list[str] = []
        for d in window_dims(numbers, x.ndim):
            if dims.same(self.slice_sizes[d], x.shape[d]) and d not in numbers.start_index_map:
                window.append(operand[d])
            else:
                window.append(f"window{d}")
                whole.update((f"window{d}", operand[d]))
        whole.update(operand[d] for d in numbers.collapsed_slice_dims)
        rest, windows = iter(batch), iter(window)
        rank = len(batch) + len(window)
        result = tuple(
            [next(windows) if d in numbers.offset_dims else next(rest) for d in range(rank)]
        )
        gone = {factor for factor in (*operand, "vector") if factor not in result}
        return Factors(
            (tuple(operand), (*batch, "vector")),
            (result,),
            dict.fromkeys(sorted(gone), "any"),
            frozenset(whole),
            (0,),
        )

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Any]:
        clip, fill = GatherScatterMode.CLIP, GatherScatterMode.FILL_OR_DROP
        rows = GatherDimensionNumbers((1,), (0,), (0,))
        yield Sample(
            cls(GatherDimensionNumbers((), (), ()), ()), (np.float32(2), np.zeros((0,), "int32"))
        )
        yield Sample(cls(rows, (1, 3)), (rng.normal(size=(2, 3)), np.zeros((0, 1), "int32")))
        where = np.array([[2], [0], [9], [-4], [0]], "int32")
        table = rng.normal(size=(4, 2))
        yield Sample(cls(rows, (1, 2)), (table, where))
        yield Sample(cls(rows, (1, 2), mode=fill, fill_value=0), (table, where))
        yield Sample(cls(rows, (1, 2), mode=fill), (table, where), differentiable=False)
        counts = rng.integers(0, 9, size=(4, 2)).astype("int16")
        yield Sample(cls(rows, (1, 2), mode=fill), (counts, where))
        yield Sample(cls(rows, (1, 2), mode=fill, fill_value=-1), (counts, where))
        single = GatherDimensionNumbers((), (0, 1), (1, 0))
        pairs = np.array([[[1, 2], [3, 0], [1, 2]]], np.int64)
        yield Sample(cls(single, (1, 1)), (rng.normal(size=(3, 4)), pairs))
        boxes = GatherDimensionNumbers((0, 2), (1,), (0, 1))
        starts = np.array([[1, 2], [0, 2], [3, 0], [2, 1]], "int32")
        cube = rng.normal(size=(4, 3, 2)).astype("float32")
        yield Sample(cls(boxes, (2, 1, 2)), (cube, starts))
        yield Sample(cls(boxes, (2, 1, 1), mode=fill, fill_value=0), (cube, starts))
        lanes = GatherDimensionNumbers((1,), (1,), (1,), (0,), (0,))
        yield Sample(
            cls(lanes, (1, 1, 2), mode=clip),
            (rng.normal(size=(3, 4, 2)), np.array([[1], [3], [1]], np.uint8)),
        )
        middle = GatherDimensionNumbers((0, 2), (1,), (1,))
        yield Sample(
            cls(middle, (2, 1, 3)),
            (rng.normal(size=(2, 5, 3)), np.array([[4], [1], [4], [0]], "int32")),
        )
        yield Sample(cls(rows, (1, 3)), (np.ones((4, 2)), where), error=ShapeError)
        yield Sample(cls(rows, (2, 2)), (np.ones((4, 2)), where), error=ShapeError)
        yield Sample(cls(rows, (1, 2)), (np.ones((4, 2)), where[:, 0]), error=ShapeError)
        yield Sample(cls(rows, (1, 2)), (np.ones((4, 2)), where / 2), error=DTypeError)


class ScatterAdd(ScatterBase, name="scatter_add"):
    """Add updates to windows of the operand; where windows overlap, all of them are added."""

    EXCUSED: ClassVar[dict[str, str]] = ScatterBase.EXCUSED
    accepts: ClassVar[int] = NUMBER
    combine: ClassVar[Any] = np.add
    linear_operands: ClassVar[tuple[int, ...]] = (0, 2)

    def transpose(self, cotangents: Sequence[Any], *operands: Any) -> Sequence[Any]:
        (cotangent,), (x, indices, updates) = cotangents, operands
        back = None
        if type(updates) is Linear:
            back = windows_written(self, x.type, updates.type)(cotangent, indices)
        return (cotangent if type(x) is Linear else None, None, back)


def windows_written(scatter: ScatterBase, x: ArrayType, updates: ArrayType) -> Gather:
    """The gather that reads the windows that a scatter writes, and zeros where it drops updates.

    Raises:
      MissingRuleError: the scatter counts indices from the end, as compiled ones do.
    """
    if scatter.counts_from_end:
        raise scatter.missing("transpose", "it was compiled, which comes after derivatives")
    return Gather(
        scatter.dimension_numbers.as_gather(),
        scatter.slice_sizes(x, updates),
        scatter.indices_are_sorted,
        scatter.unique_indices,
        scatter.mode,
        0 if scatter.mode is GatherScatterMode.FILL_OR_DROP else None,
    )


def check_fill_value(fill_value: Any) -> Any:
    """A fill value as a Python or NumPy scalar, which is what the operation keeps.

    Raises:
      ArgumentError: it is no scalar whose value is known.
    """
    if fill_value is None or isinstance(fill_value, (bool, int, float, complex, np.generic)):
        return fill_value
    value = np.asarray(fill_value)
    if value.ndim:
        raise ArgumentError(f"fill_value must be a scalar, got shape {value.shape}")
    return value[()]
