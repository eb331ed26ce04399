"""What all scatters share; see `windows` for the terms."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from fxarray.core import dims, dtypes
from fxarray.core.errors import DTypeError, ShapeError
from fxarray.core.factors import Factors
from fxarray.core.hooks import operators
from fxarray.core.primitive import Primitive, Sample
from fxarray.core.types import ArrayType, Size
from fxarray.primitives.support import NUMERIC, Values, describe_groups, group_of, quietly, widened
from fxarray.primitives.windows import (
    GatherScatterMode,
    ScatterDimensionNumbers,
    as_scatter,
    batch_dims,
    check_numbers,
    check_windows,
    index_columns,
    integer_starts,
    locate,
    window_dims,
    with_lanes,
)


class ScatterBase(Primitive):
    """Combine `updates` into windows of the operand; operands are (x, indices, updates).

    Where windows overlap, updates are combined in the order of the batch, so the result is the same
    every time. `indices_are_sorted` and `unique_indices` (no two windows overlap) are promises.
    With `counts_from_end`, negative indices count from the end of their dimension; compilation says
    so in place of operations on the indices, after derivatives.
    """

    dimension_numbers: ScatterDimensionNumbers
    indices_are_sorted: bool = False
    unique_indices: bool = False
    mode: GatherScatterMode = GatherScatterMode.FILL_OR_DROP
    counts_from_end: bool = False
    EXCUSED: ClassVar[dict[str, str]] = {
        "lower": "an element of its result may have many updates, which a routine sorts out"
    }
    accepts: ClassVar[int] = NUMERIC
    # The NumPy ufunc that combines; None: an update replaces what was there.
    combine: ClassVar[Any] = None

    def infer(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        x, indices, updates = types
        numbers = self.dimension_numbers.as_gather()
        if updates.dtype != x.dtype:
            raise DTypeError(
                f"{self.name}: updates are {updates}, but the operand is {x}; dtypes must be equal"
            )
        if not group_of(x.dtype) & self.accepts:
            raise DTypeError(
                f"{self.name}: the operand is {x}, but {self.name} takes dtypes: "
                f"{describe_groups(self.accepts)}"
            )
        check_numbers(self.name, numbers, x, indices)
        if updates.ndim != indices.ndim - 1 + len(numbers.offset_dims):
            raise ShapeError(
                f"{self.name}: updates are {updates}, but must have {indices.ndim - 1} dimensions "
                f"for those of the indices, {indices}, and {len(numbers.offset_dims)} for the "
                "windows"
            )
        batch = [updates.shape[d] for d in batch_dims(numbers.offset_dims, updates.ndim)]
        if not all(dims.same(a, b) for a, b in zip(batch, indices.shape, strict=False)):
            raise ShapeError(
                f"{self.name}: updates {updates} have sizes {tuple(batch)} where the indices, "
                f"{indices}, have {indices.shape[:-1]}"
            )
        check_windows(self.name, numbers, self.slice_sizes(x, updates), x)
        return (ArrayType(x.shape, x.dtype, x.weak),)

    def slice_sizes(self, x: Any, updates: Any) -> tuple[Size, ...]:
        """The size of a window in each operand dimension."""
        sizes: list[Size] = [1] * len(x.shape)
        numbers = self.dimension_numbers.as_gather()
        windowed = window_dims(numbers, len(x.shape))
        for dimension, source in zip(windowed, numbers.offset_dims, strict=True):
            sizes[dimension] = updates.shape[source]
        return tuple(sizes)

    def _windows_last(self, updates: Values, sizes: Sequence[int]) -> Values:
        """Updates in the shape batch + window."""
        source = self.dimension_numbers.update_window_dims
        batch_rank = updates.ndim - len(source)
        moved = np.moveaxis(updates, source, range(batch_rank, updates.ndim))
        return moved.reshape(moved.shape[:batch_rank] + tuple(sizes))

    def _counted(self, x: Values, indices: Values) -> Values:
        """Indices none of which is to be counted from the end."""
        if not self.counts_from_end:
            return indices
        starts = integer_starts(indices)
        taken = self.dimension_numbers.as_gather().start_index_map
        return np.where(starts < 0, starts + np.array([x.shape[d] for d in taken]), starts)

    def reference(self, *arrays: Values) -> tuple[Values, ...]:
        x, indices, updates = arrays
        indices = self._counted(x, indices)
        numbers = self.dimension_numbers.as_gather()
        sizes: Any = self.slice_sizes(x, updates)
        positions, inside = locate(x.shape, indices, numbers, sizes, self.mode)
        updates = self._windows_last(updates, sizes)
        positions = tuple([np.broadcast_to(p, updates.shape) for p in positions])
        if inside is not None:
            positions = tuple([position[inside] for position in positions])
            updates = updates[inside]
        return (self._combined(x, positions, updates, widened),)

    def _combined(
        self, x: Values, positions: Any, updates: Values, widen: Callable[[Values], Values]
    ) -> Values:
        if self.combine is None:
            result = np.array(x)
            if x.ndim:
                result[positions] = updates
            elif updates.size:
                result[()] = updates.reshape(-1)[-1]
            return result
        wide = widen(x)
        result = np.array(wide) if wide is x else wide
        if x.ndim:
            quietly(self.combine.at, (result, positions, widen(updates)))
        else:
            updates = updates.reshape(-1)
            where = np.zeros(len(updates), np.int64)
            result = result.reshape(1)
            quietly(self.combine.at, (result, where, widen(updates)))
            result = result.reshape(())
        return dtypes.cast(result, x.dtype) if result.dtype != x.dtype else result

    def eager(self, *arrays: Values) -> tuple[Values, ...]:
        x, given, updates = arrays
        indices = self._counted(x, given)
        sizes = self.slice_sizes(x, updates)
        numbers = self.dimension_numbers.as_gather()
        plan = index_columns(x.shape, indices, numbers, sizes)
        if plan is None or not x.ndim or not plan[0]:
            return self.reference(x, given, updates)
        taken, columns = plan
        batch_rank = indices.ndim - 1
        source = self.dimension_numbers.update_window_dims
        updates = np.moveaxis(updates, source, range(batch_rank, updates.ndim))
        columns = [integer_starts(column) for column in columns]
        if self.mode is GatherScatterMode.FILL_OR_DROP:
            inside: Any = True
            for column, d in zip(columns, taken, strict=True):
                inside = inside & (column >= 0) & (column < x.shape[d])
            inside = np.broadcast_to(inside, indices.shape[:-1])
            if not inside.all():
                columns = [np.broadcast_to(c, inside.shape)[inside] for c in columns]
                updates = updates[inside]
                batch_rank = 1
        else:
            columns = [
                np.clip(column, 0, x.shape[d] - 1) for column, d in zip(columns, taken, strict=True)
            ]
        if taken == tuple(range(len(taken))):
            shape = updates.shape[:batch_rank]
            positions = tuple([np.broadcast_to(column, shape) for column in columns])
            return (self._combined(x, positions, updates, _in_float32),)
        rest = [d for d in range(x.ndim) if d not in taken]
        order = (*taken, *rest)
        front = np.transpose(x, order)
        positions = tuple([np.broadcast_to(c, updates.shape[:batch_rank]) for c in columns])
        result = self._combined(front, positions, updates, _in_float32)
        return (np.transpose(result, np.argsort(order)),)

    def batch(
        self, size: Any, axis_name: Hashable, operands: Sequence[Any], axes: Sequence[int | None]
    ) -> tuple[Sequence[Any], Sequence[int | None]]:
        x, indices, updates = operands
        x_axis, indices_axis, updates_axis = axes
        x, updates = (
            operators.broadcast_axis(value, size, 0)
            if axis is None
            else operators.move_axis(value, axis, 0)
            for value, axis in ((x, x_axis), (updates, updates_axis))
        )
        mapped = indices_axis is not None
        if mapped:
            indices = operators.move_axis(indices, indices_axis, 0)
        numbers = as_scatter(with_lanes(self.dimension_numbers.as_gather(), True, mapped))
        lanes_sorted = self.indices_are_sorted and not mapped
        op = type(self)(numbers, lanes_sorted, self.unique_indices, self.mode, self.counts_from_end)
        return op.bind(x, indices, updates), (0,)

    def has_one_window(self, indices: ArrayType) -> bool:
        """Whether it is known that no two windows overlap."""
        return self.unique_indices or all(dims.same(size, 1) for size in indices.shape[:-1])

    def shard(self, *types: ArrayType) -> Factors:
        x, indices, updates = types
        numbers = self.dimension_numbers.as_gather()
        operand = [f"x{d}" for d in range(x.ndim)]
        batch = [f"batch{d}" for d in range(indices.ndim - 1)]
        whole = {*batch, "vector"}
        for d, lane in zip(
            numbers.operand_batching_dims, numbers.start_indices_batching_dims, strict=True
        ):
            operand[d] = batch[lane]
            whole.discard(batch[lane])
        window: list[str] = []
        for d, source in zip(window_dims(numbers, x.ndim), numbers.offset_dims, strict=True):
            same = dims.same(updates.shape[source], x.shape[d])
            if same and d not in numbers.start_index_map:
                window.append(operand[d])
            else:
                window.append(f"window{d}")
                whole.update((f"window{d}", operand[d]))
        whole.update(operand[d] for d in numbers.collapsed_slice_dims)
        rest, windows = iter(batch), iter(window)
        given = tuple(
            [next(windows) if d in numbers.offset_dims else next(rest) for d in range(updates.ndim)]
        )
        gone = {factor for factor in (*batch, *window, "vector") if factor not in operand}
        linear = tuple(self.linear_operands)
        return Factors(
            (tuple(operand), (*batch, "vector"), given),
            (tuple(operand),),
            dict.fromkeys(sorted(gone), "any"),
            frozenset(whole),
            linear,
        )

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Any]:
        clip, drop = GatherScatterMode.CLIP, GatherScatterMode.FILL_OR_DROP
        rows = ScatterDimensionNumbers((1,), (0,), (0,))
        integers = np.int32

        def numbers(*shape: int, dtype: str = "float64") -> Values:
            # Products and extremes are differentiable away from zeros and ties.
            return (
                rng.permuted(np.arange(1, 1 + int(np.prod(shape))) / 8).reshape(shape).astype(dtype)
            )

        def signed(*shape: int) -> Values:
            return rng.normal(size=shape)

        yield Sample(
            cls(ScatterDimensionNumbers((), (), ())),
            (numbers(), np.zeros((0,), integers), numbers() * 3),
        )
        yield Sample(cls(rows), (numbers(3, 2), np.zeros((0, 1), integers), numbers(0, 2)))
        yield Sample(
            cls(rows, False, True, drop),
            (signed(4, 2), np.array([[2], [0], [7]], integers), signed(3, 2)),
        )
        yield Sample(
            cls(rows, False, False, clip),
            (signed(4, 2), np.array([[2], [0], [9], [-3], [0]], integers), signed(5, 2)),
        )
        single = ScatterDimensionNumbers((), (0, 1), (1, 0))
        yield Sample(
            cls(single),
            (signed(3, 4), np.array([[[1, 2], [3, 0], [1, 2]]], np.int64), signed(1, 3)),
        )
        boxes = ScatterDimensionNumbers((0, 2), (1,), (0, 1))
        yield Sample(
            cls(boxes, mode=drop),
            (
                signed(5, 3, 2),
                np.array([[1, 2], [0, 2], [3, 0], [2, 1]], integers),
                signed(3, 4, 2),
            ),
        )
        lanes = ScatterDimensionNumbers((1,), (1,), (1,), (0,), (0,))
        yield Sample(
            cls(lanes),
            (signed(3, 4, 2), np.array([[1], [3], [1]], np.uint8), signed(3, 2)),
        )
        middle = ScatterDimensionNumbers((0, 2), (1,), (1,))
        yield Sample(
            cls(middle),
            (
                signed(2, 5, 3).astype("float32"),
                np.array([[4], [1], [4], [0]], integers),
                signed(2, 4, 3).astype("float32"),
            ),
        )
        yield Sample(
            cls(rows),
            (
                rng.integers(0, 9, size=(4, 2)).astype("int8"),
                np.array([[2], [2]], integers),
                rng.integers(0, 9, size=(2, 2)).astype("int8"),
            ),
        )
        ones = np.ones((3, 2))
        where = np.zeros((4, 1), integers)
        yield Sample(cls(rows), (ones, where, np.ones((5, 2))), error=ShapeError)
        yield Sample(cls(rows), (ones, where, np.ones((4, 3))), error=ShapeError)
        yield Sample(cls(rows), (ones, where.astype("float32"), np.ones((4, 2))), error=DTypeError)
        yield Sample(cls(rows), (ones, where, np.ones((4, 2), "float32")), error=DTypeError)


def _in_float32(array: Values) -> Values:
    """Floats narrower than float32, and integers narrower than a byte, widened."""
    narrow = dtypes.is_narrow_float(array.dtype)
    if narrow:
        return array.astype(np.float32)
    return widened(array) if array.dtype.kind == "V" else array
