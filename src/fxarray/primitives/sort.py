"""Sorting, and the largest elements. NaN comes after all numbers, and -0 equals 0."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from fxarray.core import dims, dtypes
from fxarray.core.errors import ArgumentError, AxisError, DTypeError, ShapeError
from fxarray.core.factors import Factors, letters
from fxarray.core.hooks import operators
from fxarray.core.primitive import Primitive, Sample, Zero
from fxarray.core.types import ArrayType, Size
from fxarray.primitives.create import Iota
from fxarray.primitives.elementwise_base import check_group
from fxarray.primitives.gather import Gather
from fxarray.primitives.movement import reshape
from fxarray.primitives.support import (
    NUMERIC,
    ORDERED,
    Values,
    random_operand,
    sample_dtypes,
    widened,
)
from fxarray.primitives.windows import GatherDimensionNumbers, GatherScatterMode

_EXCUSED = {
    "lower": "it is no expression of single elements, but a routine of a device",
    "transpose": "it is not linear in its operands; its derivative is a gather",
}


def take_along(x: Any, indices: Any, axis: int, fill: bool = False) -> Any:
    """`x[..., indices[..., j, ...], ...]` along one axis; other dimensions correspond.

    Args:
      x: the array to take from.
      indices: integers, of the rank of `x` and with its sizes except along `axis`.
      axis: non-negative.
      fill: whether indices may lie outside, where zero is taken; else all are promised to be valid.
    """
    rank = x.type.ndim
    others = tuple([i for i in range(rank) if i != axis])
    numbers = GatherDimensionNumbers((), (axis,), (axis,), others, others)
    mode = GatherScatterMode.FILL_OR_DROP if fill else GatherScatterMode.PROMISE_IN_BOUNDS
    op = Gather(numbers, (1,) * rank, False, not fill, mode, 0 if fill else None)
    return op(x, reshape(indices, (*indices.type.shape, 1)))


# --- orders, in NumPy -----------------------------------------------------------------------------


def _columns(key: Values) -> list[Values]:
    """Arrays that NumPy can compare; the first that differs decides."""
    if key.dtype.kind == "c":
        return [key.real, key.imag]
    if dtypes.is_narrow_float(key.dtype):
        return [key.astype(np.float32)]
    if key.dtype.kind in "biuf":
        return [key]
    return [widened(key)]


def stable_order(keys: Sequence[Values], axis: int) -> Values:
    """The positions, along an axis, of elements in ascending order; equal ones stay in order."""
    columns = [column for key in keys for column in _columns(key)]
    if len(columns) > 1:
        return np.asarray(np.lexsort(columns[::-1], axis=axis))
    return np.argsort(columns[0], axis=axis, kind="stable")


def _ordered_bits(column: Values) -> Values | None:
    """Unsigned 32-bit integers in the order of a column's elements; None if they are too few."""
    if column.dtype.kind == "f" and column.dtype.itemsize <= 4:
        # Adding zero makes -0 into 0; all NaN become one.
        values = column.astype(np.float32) + np.float32(0)
        values[np.isnan(values)] = np.nan
        bits = values.view(np.int32)
        flips = (bits >> 31) | np.int32(-(2**31))
        return (bits ^ flips).view(np.uint32)
    if column.dtype.kind in "bu" and column.dtype.itemsize <= 4:
        return column.astype(np.uint32)
    if column.dtype.kind == "i" and column.dtype.itemsize <= 4:
        return column.astype(np.int32).view(np.uint32) ^ np.uint32(2**31)
    return None


def _packed(key: Values, axis: int, descending: bool) -> Values | None:
    """Distinct 64-bit integers whose order is the stable one, with positions in the low bits.

    NumPy sorts them, and selects among them, several times faster than it sorts stably.
    """
    columns = _columns(key)
    size = key.shape[axis]
    bits = _ordered_bits(columns[0]) if len(columns) == 1 and size < 2**32 else None
    if bits is None:
        return None
    if descending:
        bits = ~bits
    places = [1] * key.ndim
    places[axis] = size
    return (bits.astype(np.uint64) << np.uint64(32)) | np.arange(size, dtype=np.uint64).reshape(
        places
    )


def _positions(packed: Values) -> Values:
    return (packed & np.uint64(2**32 - 1)).astype(np.int64)


def _fast_order(keys: Sequence[Values], axis: int) -> Values:
    packed = _packed(keys[0], axis, False) if len(keys) == 1 else None
    if packed is None:
        return stable_order(keys, axis)
    packed.sort(axis=axis)
    return _positions(packed)


# --- sort -----------------------------------------------------------------------------------------


class Sort(Primitive, name="sort"):
    """Sort several arrays together along a dimension, by the first `num_keys` of them.

    Later keys decide where earlier ones are equal. Complex keys are compared by their real parts,
    then by their imaginary parts.

    Args:
      dimension: the dimension to sort along.
      is_stable: whether elements with equal keys must keep their order (they always do here).
      num_keys: how many operands are keys.
    """

    dimension: int
    is_stable: bool = True
    num_keys: int = 1
    EXCUSED: ClassVar[dict[str, str]] = _EXCUSED

    def infer(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        if not types or not 1 <= self.num_keys <= len(types):
            raise ArgumentError(
                f"sort: num_keys={self.num_keys} must be between 1 and the number of operands, "
                f"{len(types)}"
            )
        for number, given in enumerate(types[: self.num_keys]):
            check_group("sort (its keys)", number, given, NUMERIC)
        first = types[0]
        if not 0 <= self.dimension < first.ndim:
            raise AxisError(
                f"sort: dimension {self.dimension} is not a dimension of the operand, {first}"
            )
        for number, given in enumerate(types):
            if given.ndim != first.ndim or not all(map(dims.same, given.shape, first.shape)):
                raise ShapeError(
                    f"sort: operand {number} is {given}, but operand 0 is {first}; shapes must be "
                    f"equal"
                )
        return tuple([ArrayType(first.shape, given.dtype, given.weak) for given in types])

    def reference(self, *arrays: Values) -> tuple[Values, ...]:
        order = stable_order(arrays[: self.num_keys], self.dimension)
        return tuple([np.take_along_axis(x, order, self.dimension) for x in arrays])

    def eager(self, *arrays: Values) -> tuple[Values, ...]:
        x, *others = arrays
        if others:
            order = _fast_order(arrays[: self.num_keys], self.dimension)
            return tuple([np.take_along_axis(each, order, self.dimension) for each in arrays])
        if x.dtype.kind == "c" or _has_both_zeros(x):
            return self.reference(x)
        # Equal elements look the same, so any way of sorting is stable.
        column = _columns(x)[0]
        return (np.sort(column, axis=self.dimension).astype(x.dtype, copy=False),)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        empty = dims.same(primals[0].type.shape[self.dimension], 0)
        if empty or all(type(tangent) is Zero for tangent in tangents):
            outputs = self.bind(*primals)
            return outputs, tuple(Zero(output.type.tangent()) for output in outputs)
        *outputs, order = self.bind(*primals, positions(primals[0].type, self.dimension))
        return outputs, [
            Zero(output.type.tangent())
            if type(tangent) is Zero
            else take_along(tangent, order, self.dimension)
            for output, tangent in zip(outputs, tangents, strict=True)
        ]

    def batch(
        self, size: Any, axis_name: Hashable, operands: Sequence[Any], axes: Sequence[int | None]
    ) -> tuple[Sequence[Any], Sequence[int | None]]:
        moved = [
            operators.broadcast_axis(x, size, 0)
            if axis is None
            else operators.move_axis(x, axis, 0)
            for x, axis in zip(operands, axes, strict=True)
        ]
        op = Sort(self.dimension + 1, self.is_stable, self.num_keys)
        return op.bind(*moved), (0,) * len(moved)

    def shard(self, *types: ArrayType) -> Factors:
        names = letters(types[0].ndim)
        each = (names,) * len(types)
        return Factors(each, each, {}, frozenset((names[self.dimension],)))

    def kept_outputs(self, used_outputs: Sequence[bool]) -> Sequence[bool]:
        return [number < self.num_keys or used for number, used in enumerate(used_outputs)]

    def used_operands(self, used_outputs: Sequence[bool]) -> tuple[Primitive, Sequence[bool]]:
        return self, used_outputs

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Any]:
        def draw(*shape: int, dtype: Any = "float32") -> Values:
            return random_operand(rng, shape, dtype, (-2.0, 2.0))

        def tied(*shape: int, dtype: Any = "float32") -> Values:
            return np.round(draw(*shape)).astype(dtype)

        yield Sample(cls(0), (draw(0, 3),))
        yield Sample(cls(1, False), (draw(0, 3),))
        yield Sample(cls(0), (draw(1),))
        yield Sample(cls(1), (draw(2, 7, 3),))
        for dtype in sample_dtypes(NUMERIC):
            yield Sample(cls(1), (draw(3, 8, dtype=dtype),))
            values = np.arange(24, dtype=np.int32).reshape(3, 8)
            yield Sample(cls(1), (draw(3, 8, dtype=dtype), values))
        several = (tied(9), draw(9), draw(9).astype("float64"))
        yield Sample(cls(0, True, 2), several, differentiable=False)
        yield Sample(cls(0, True, 2), (tied(9, dtype="int8"), tied(9, dtype="int64")))
        special = np.array([0.0, np.nan, -0.0, np.inf, -np.nan, -np.inf, 0.0, -1.0], np.float32)
        numbers = np.arange(8, dtype=np.int32)
        yield Sample(cls(0), (special,), differentiable=False)
        yield Sample(cls(0), (special, numbers), differentiable=False)
        yield Sample(cls(0), (special[::-1].astype(complex), numbers), differentiable=False)
        yield Sample(cls(0, True, 2), (special, special[::-1].copy()), differentiable=False)
        yield Sample(cls(0), (np.ones(3), np.ones(4)), error=ShapeError)
        yield Sample(cls(1), (np.ones(3),), error=AxisError)
        yield Sample(cls(0, True, 3), (np.ones(3), np.ones(3)), error=ArgumentError)
        yield Sample(cls(0, True, 0), (np.ones(3),), error=ArgumentError)
        yield Sample(cls(0), (np.ones(3, dtypes.float0),), error=DTypeError)


def _has_both_zeros(x: Values) -> bool:
    if not dtypes.is_float(x.dtype):
        return False
    zeros = x == 0
    if not zeros.any():
        return False
    negative = np.signbit(x[zeros])
    return bool(negative.any() and not negative.all())


def positions(type: ArrayType, axis: int) -> Any:
    """The position along an axis of each element of an array of `type`; int64 if it is large."""
    size = type.shape[axis]
    dtype = dtypes.int64 if isinstance(size, int) and size >= 2**31 else dtypes.int32
    return Iota(dtype, type.shape, axis)()


# --- top k ----------------------------------------------------------------------------------------


class TopK(Primitive, name="top_k"):
    """The `k` greatest elements along an axis, greatest first, and their positions as int32.

    NaN counts as greatest. Of equal elements the first comes first.
    """

    k: Size
    axis: int
    EXCUSED: ClassVar[dict[str, str]] = _EXCUSED

    def infer(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        (x,) = types
        check_group(self.name, 0, x, ORDERED)
        if not 0 <= self.axis < x.ndim:
            raise AxisError(f"top_k: axis {self.axis} is not a dimension of the operand, {x}")
        size = x.shape[self.axis]
        if type(self.k) is int and (self.k < 0 or (type(size) is int and self.k > size)):
            raise ShapeError(
                f"top_k: k={self.k} must be between 0 and the size {size} of axis {self.axis} of "
                f"the operand, {x}"
            )
        shape = (*x.shape[: self.axis], self.k, *x.shape[self.axis + 1 :])
        return (ArrayType(shape, x.dtype, x.weak), ArrayType(shape, dtypes.int32))

    def reference(self, *arrays: Values) -> tuple[Values, ...]:
        (x,) = arrays
        # Ascending order of the reversed array, reversed: descending, equal elements in order.
        order = stable_order([np.flip(x, self.axis)], self.axis)
        order = x.shape[self.axis] - 1 - np.flip(order, self.axis)
        return self._chosen(x, order)

    def _chosen(self, x: Values, order: Values) -> tuple[Values, ...]:
        places: list[Any] = [slice(None)] * x.ndim
        places[self.axis] = slice(0, self.k)
        order = order[tuple(places)]
        return np.take_along_axis(x, order, self.axis), order.astype(np.int32)

    def eager(self, *arrays: Values) -> tuple[Values, ...]:
        (x,) = arrays
        packed = _packed(x, self.axis, True)
        if packed is None:
            return self.reference(x)
        if type(self.k) is int and 0 < self.k < x.shape[self.axis]:
            packed.partition(self.k - 1, axis=self.axis)
            places: list[Any] = [slice(None)] * x.ndim
            places[self.axis] = slice(0, self.k)
            packed = packed[tuple(places)]
        packed.sort(axis=self.axis)
        return self._chosen(x, _positions(packed))

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        values, indices = self.bind(*primals)
        (tangent,) = tangents
        zero = Zero(indices.type.tangent())
        if type(tangent) is Zero or dims.same(self.k, 0):
            return (values, indices), (Zero(values.type.tangent()), zero)
        return (values, indices), (take_along(tangent, indices, self.axis), zero)

    def batch(
        self, size: Any, axis_name: Hashable, operands: Sequence[Any], axes: Sequence[int | None]
    ) -> tuple[Sequence[Any], Sequence[int | None]]:
        (axis,) = axes
        assert axis is not None
        op = TopK(self.k, self.axis + (self.axis >= axis))
        return op.bind(*operands), (axis, axis)

    def shard(self, *types: ArrayType) -> Factors:
        names = letters(types[0].ndim)
        gone = names[self.axis]
        result = tuple("k" if name == gone else f"{name}" for name in names)
        return Factors((names,), (result, result), {gone: "any"}, frozenset((gone, "k")))

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Any]:
        def draw(*shape: int, dtype: Any = "float32") -> Values:
            return random_operand(rng, shape, dtype, (-2.0, 2.0))

        yield Sample(cls(0, 0), (draw(0, 3),))
        yield Sample(cls(2, 1), (draw(0, 3),))
        yield Sample(cls(1, 0), (draw(1),))
        yield Sample(cls(4, 1), (draw(2, 7, 3),))
        for dtype in sample_dtypes(ORDERED):
            distinct = dtypes.is_inexact(dtype) and dtype.itemsize > 2
            yield Sample(cls(3, 1), (draw(4, 9, dtype=dtype),), differentiable=distinct)
        special = np.array([0.0, np.nan, -0.0, np.inf, -np.nan, -np.inf, 0.0, -1.0], np.float32)
        yield Sample(cls(8, 0), (special,), differentiable=False)
        yield Sample(cls(4, 0), (special.astype("float64"),), differentiable=False)
        yield Sample(cls(4, 0), (np.ones(3),), error=ShapeError)
        yield Sample(cls(-1, 0), (np.ones(3),), error=ShapeError)
        yield Sample(cls(1, 1), (np.ones(3),), error=AxisError)
        yield Sample(cls(1, 0), (np.ones(3, complex),), error=DTypeError)


# --- functions used by rules and by the layers above ----------------------------------------------


def sort(x: Any, axis: int) -> Any:
    """`x` in ascending order along `axis` (non-negative)."""
    return Sort(axis)(x)


def sort_together(operands: Sequence[Any], axis: int, num_keys: int = 1) -> tuple[Any, ...]:
    """Several arrays, sorted along `axis` (non-negative) by the first `num_keys` of them."""
    return Sort(axis, True, num_keys).bind(*operands)


def argsort(x: Any, axis: int) -> Any:
    """The positions along `axis` (non-negative) of elements in ascending order, stably; int32."""
    return Sort(axis).bind(x, positions(x.type, axis))[1]


def top_k(x: Any, k: Size, axis: int) -> tuple[Any, Any]:
    """The `k` greatest elements along `axis` (non-negative), and their positions."""
    values, indices = TopK(k, axis).bind(x)
    return values, indices
