"""Products, extrema, logic and positions of extrema over axes."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from fxarray.core import dims, dtypes
from fxarray.core.dtypes import DType
from fxarray.core.errors import AxisError, DTypeError, ShapeError
from fxarray.core.factors import Factors, letters
from fxarray.core.primitive import Primitive, Sample, Zero
from fxarray.core.types import ArrayType
from fxarray.kernel.build import Builder, Index, Lowered, kernel_dtype
from fxarray.primitives.arithmetic import div, mul
from fxarray.primitives.comparison import eq, select
from fxarray.primitives.convert import convert
from fxarray.primitives.cumulative import cumprod, previous
from fxarray.primitives.elementwise_base import check_group
from fxarray.primitives.lowering import reduced, wide, with_axes, without
from fxarray.primitives.movement import broadcast_in_dim, reshape, transpose
from fxarray.primitives.reduce import batched_axes, check_axes, reduce_sum, reduced_type
from fxarray.primitives.support import (
    BITS,
    NUMBER,
    NUMERIC,
    ORDERED,
    Values,
    number_like,
    quietly,
    random_operand,
    sample_dtypes,
    widened,
)

# --- identities -----------------------------------------------------------------------------------


def least(dtype: DType) -> Any:
    """The number of a dtype that no other is less than: the maximum of no elements."""
    if dtypes.is_bool(dtype):
        return False
    if dtypes.is_integer(dtype):
        return int(dtypes.iinfo(dtype).min)
    if dtypes.is_complex(dtype):
        return complex(-np.inf, -np.inf)
    return -np.inf if _has_infinity(dtype) else float(dtypes.finfo(dtype).min)


def greatest(dtype: DType) -> Any:
    """The number of a dtype that no other is greater than: the minimum of no elements."""
    if dtypes.is_bool(dtype):
        return True
    if dtypes.is_integer(dtype):
        return int(dtypes.iinfo(dtype).max)
    if dtypes.is_complex(dtype):
        return complex(np.inf, np.inf)
    return np.inf if _has_infinity(dtype) else float(dtypes.finfo(dtype).max)


def _has_infinity(dtype: DType) -> bool:
    infinity = dtypes.cast(np.asarray(np.inf), dtype).astype(np.float64)
    return bool(np.isinf(infinity))


def all_bits(dtype: DType) -> Any:
    """The number of a dtype in which all bits are set: the conjunction of no elements."""
    if dtypes.is_bool(dtype):
        return True
    return -1 if dtypes.is_signed(dtype) else int(dtypes.iinfo(dtype).max)


def _nothing(_: DType) -> Any:
    return 0


def _one(_: DType) -> Any:
    return 1


# --- reductions -----------------------------------------------------------------------------------


class Reduction(Primitive):
    """Combine the elements along `axes`; of no elements, the result is the identity."""

    axes: tuple[int, ...]
    EXCUSED: ClassVar[dict[str, str]] = {"transpose": "it is not linear in its operand"}
    accepts: ClassVar[int] = NUMERIC
    function: ClassVar[np.ufunc]
    identity: ClassVar[Callable[[DType], Any]]
    # What combines the parts of an axis that is split over devices; None: it cannot be split.
    combined_by: ClassVar[str | None] = None

    def infer(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        (x,) = types
        check_group(self.name, 0, x, self.accepts)
        check_axes(self.name, self.axes, x)
        return (reduced_type(self.axes, x),)

    def reference(self, *arrays: Values) -> tuple[Values, ...]:
        (x,) = arrays
        wide = self.widen(x)
        start = type(self).identity(x.dtype)
        with np.errstate(all="ignore"):
            value = type(self).function.reduce(
                wide, axis=self.axes, initial=start, dtype=wide.dtype
            )
        return (dtypes.cast(np.asarray(value), x.dtype),)

    def widen(self, x: Values) -> Values:
        """The operand in a dtype that NumPy computes with."""
        return widened(x)

    def eager(self, *arrays: Values) -> tuple[Values, ...]:
        (x,) = arrays
        if x.dtype.kind == "V" or x.dtype.char == "e" or not x.size:
            return self.reference(x)
        value = quietly(type(self).function.reduce, (x, self.axes, x.dtype))
        return (np.asarray(value),)

    def lower(self, builder: Builder, *operands: Lowered) -> tuple[Lowered, ...]:
        combiner = self.name.removeprefix("reduce_")
        return (reduced(builder, operands[0], self.axes, combiner),)

    def spread(self, y: Any, x: Any) -> Any:
        """The result, repeated along the axes that it was reduced over."""
        kept = [i for i in range(x.type.ndim) if i not in self.axes]
        return broadcast_in_dim(y, x.type.shape, kept)

    def batch(
        self, size: Any, axis_name: Hashable, operands: Sequence[Any], axes: Sequence[int | None]
    ) -> tuple[Sequence[Any], Sequence[int | None]]:
        (axis,) = axes
        assert axis is not None
        moved, out_axis = batched_axes(self.axes, axis)
        return type(self)(moved).bind(*operands), (out_axis,)

    def shard(self, *types: ArrayType) -> Factors:
        names = letters(types[0].ndim)
        kept = tuple(f for i, f in enumerate(names) if i not in self.axes)
        gone = [names[i] for i in self.axes]
        whole = frozenset(gone) if self.combined_by is None else frozenset[str]()
        return Factors((names,), (kept,), dict.fromkeys(gone, self.combined_by or "any"), whole)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Any]:
        accepted = sample_dtypes(cls.accepts)

        def draw(*shape: int, dtype: Any = accepted[0]) -> Values:
            return random_operand(rng, shape, dtype, (-2.0, 2.0))

        yield Sample(cls(()), (draw(),))
        yield Sample(cls((0,)), (draw(0, 2, dtype="int32"),))
        yield Sample(cls((1,)), (draw(0, 2),))
        yield Sample(cls((0, 2)), (draw(2, 3, 4),))
        for dtype in accepted:
            yield Sample(cls((1,)), (draw(2, 5, dtype=dtype),))
        yield Sample(cls((2,)), (draw(2, 3),), error=AxisError)
        yield Sample(cls((0, 0)), (draw(2, 3),), error=AxisError)


class ReduceProd(Reduction, name="reduce_prod"):
    """The product over `axes`; floats narrower than float32 are multiplied in float32.

    Derivatives are exact where elements are zero.
    """

    accepts: ClassVar[int] = NUMBER
    function: ClassVar[np.ufunc] = np.multiply
    identity: ClassVar[Callable[[DType], Any]] = staticmethod(_one)
    combined_by: ClassVar[str | None] = "prod"

    def widen(self, x: Values) -> Values:
        wide: Any = dtypes.accumulator(x.dtype)
        return x.astype(wide) if dtypes.is_inexact(x.dtype) else widened(x)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        (x,), (tangent,) = primals, tangents
        outputs = self.bind(x)
        if type(tangent) is Zero:
            return outputs, (Zero(outputs[0].type.tangent()),)
        # The derivative by an element is the product of those before and of those after it.
        x, tangent = self._in_one_axis(x), self._in_one_axis(tangent)
        last = x.type.ndim - 1
        before = previous(cumprod(x, last), last, False, 1)
        after = previous(cumprod(x, last, True), last, True, 1)
        return outputs, (reduce_sum(mul(tangent, mul(before, after)), (last,)),)

    def _in_one_axis(self, x: Any) -> Any:
        """The operand with its reduced axes merged, last."""
        kept = [i for i in range(x.type.ndim) if i not in self.axes]
        shape = x.type.shape
        merged = dims.shape_product(tuple([shape[i] for i in self.axes]))
        moved = transpose(x, (*kept, *self.axes))
        return reshape(moved, (*[shape[i] for i in kept], merged))


class ReduceExtremum(Reduction):
    """What maximum and minimum share: elements that are the result share the derivative equally."""

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        (x,), (tangent,) = primals, tangents
        outputs = self.bind(x)
        empty = any(dims.same(x.type.shape[i], 0) for i in self.axes)
        if empty or type(tangent) is Zero:
            return outputs, (Zero(outputs[0].type.tangent()),)
        attained = eq(x, self.spread(outputs[0], x))
        count = reduce_sum(convert(attained, tangent.type.dtype), self.axes)
        total = reduce_sum(select(attained, tangent, number_like(tangent, 0)), self.axes)
        return outputs, (div(total, count),)


class ReduceMax(ReduceExtremum, name="reduce_max"):
    """The greatest element over `axes`; NaN if there is one."""

    function: ClassVar[np.ufunc] = np.maximum
    identity: ClassVar[Callable[[DType], Any]] = staticmethod(least)
    combined_by: ClassVar[str | None] = "max"


class ReduceMin(ReduceExtremum, name="reduce_min"):
    """The smallest element over `axes`; NaN if there is one."""

    function: ClassVar[np.ufunc] = np.minimum
    identity: ClassVar[Callable[[DType], Any]] = staticmethod(greatest)
    combined_by: ClassVar[str | None] = "min"


class ReduceAnd(Reduction, name="reduce_and"):
    """The bits set in all elements over `axes`; for bools, whether all are true."""

    accepts: ClassVar[int] = BITS
    differentiable: ClassVar[bool] = False
    function: ClassVar[np.ufunc] = np.bitwise_and
    identity: ClassVar[Callable[[DType], Any]] = staticmethod(all_bits)
    combined_by: ClassVar[str | None] = "and"


class ReduceOr(Reduction, name="reduce_or"):
    """The bits set in any element over `axes`; for bools, whether any is true."""

    accepts: ClassVar[int] = BITS
    differentiable: ClassVar[bool] = False
    function: ClassVar[np.ufunc] = np.bitwise_or
    identity: ClassVar[Callable[[DType], Any]] = staticmethod(_nothing)
    combined_by: ClassVar[str | None] = "or"


class ReduceXor(Reduction, name="reduce_xor"):
    """The bits set in an odd number of elements over `axes`; for bools, the parity of trues."""

    accepts: ClassVar[int] = BITS
    differentiable: ClassVar[bool] = False
    function: ClassVar[np.ufunc] = np.bitwise_xor
    identity: ClassVar[Callable[[DType], Any]] = staticmethod(_nothing)


# --- positions ------------------------------------------------------------------------------------


class ArgExtremum(Primitive):
    """The position of an extremum along one axis: of the first NaN, or the first of equals."""

    axis: int
    index_dtype: DType
    EXCUSED: ClassVar[dict[str, str]] = {"transpose": "it is not linear in its operand"}
    differentiable: ClassVar[bool] = False
    function: ClassVar[Callable[..., Any]]

    def infer(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        (x,) = types
        check_group(self.name, 0, x, ORDERED)
        if not 0 <= self.axis < x.ndim:
            raise AxisError(f"{self.name}: axis {self.axis} is not a dimension of the operand, {x}")
        if not dtypes.is_integer(self.index_dtype):
            raise DTypeError(
                f"{self.name}: index_dtype must be an integer's, got {self.index_dtype}"
            )
        size = x.shape[self.axis]
        if dims.same(size, 0):
            raise ShapeError(f"{self.name}: axis {self.axis} of the operand, {x}, has no elements")
        if type(size) is int and size - 1 > dtypes.iinfo(self.index_dtype).max:
            raise DTypeError(
                f"{self.name}: axis {self.axis} of the operand, {x}, has more elements than "
                f"index_dtype {dtypes.name(self.index_dtype)} can count"
            )
        shape = tuple([s for i, s in enumerate(x.shape) if i != self.axis])
        return (ArrayType(shape, self.index_dtype),)

    def reference(self, *arrays: Values) -> tuple[Values, ...]:
        (x,) = arrays
        x = x if x.dtype.kind in "biuf" and x.dtype.char != "e" else widened(x)
        index = type(self).function(x, axis=self.axis)
        return (dtypes.cast(np.asarray(index), self.index_dtype),)

    def lower(self, builder: Builder, *operands: Lowered) -> tuple[Lowered, ...]:
        (x,), dtype = operands, kernel_dtype(self.index_dtype)

        def element(index: Index) -> int:
            names, (value, place) = builder.over(
                [x.shape[self.axis]], index, lambda spans: self._candidate(builder, x, index, spans)
            )
            _, best = builder.reduce(self.name, names, value, place)
            return builder.convert(best, dtype)

        return (builder.lowered(without(x.shape, (self.axis,)), dtype, element),)

    def _candidate(
        self, builder: Builder, x: Lowered, index: Index, spans: Index
    ) -> tuple[int, int]:
        value = wide(builder, x.element(with_axes(index, (self.axis,), spans)))
        value = builder.convert(value, "i8") if builder.dtypes[value] == "bool" else value
        # What i32 cannot count, an index of 32 bits could not either.
        narrow = dtypes.bit_width(self.index_dtype) <= 32
        return value, builder.iota(spans[0], "i32" if narrow else builder.index_dtype(spans[0]))

    def batch(
        self, size: Any, axis_name: Hashable, operands: Sequence[Any], axes: Sequence[int | None]
    ) -> tuple[Sequence[Any], Sequence[int | None]]:
        (axis,) = axes
        assert axis is not None
        (moved,), out_axis = batched_axes((self.axis,), axis)
        return type(self)(moved, self.index_dtype).bind(*operands), (out_axis,)

    def shard(self, *types: ArrayType) -> Factors:
        names = letters(types[0].ndim)
        gone = names[self.axis]
        kept = tuple(f for f in names if f != gone)
        return Factors((names,), (kept,), {gone: "any"}, frozenset((gone,)))

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Any]:
        int32 = dtypes.int32
        yield Sample(cls(0, int32), (rng.normal(size=1).astype("float32"),))
        yield Sample(cls(1, int32), (rng.normal(size=(0, 2)),))
        yield Sample(cls(1, dtypes.int64), (rng.normal(size=(2, 5, 3)),))
        for dtype in sample_dtypes(ORDERED):
            # Few distinct values, so that there are ties.
            x = random_operand(rng, (3, 7), dtype, (-1.0, 1.0))
            yield Sample(cls(1, int32), (np.round(widened(x)).astype(dtype),))
        nans = np.array([[1, np.nan, 3, np.nan], [np.nan, np.inf, -np.inf, 0]])
        yield Sample(cls(1, dtypes.uint8), (nans,))
        yield Sample(cls(2, int32), (np.ones((2, 3)),), error=AxisError)
        yield Sample(cls(0, int32), (np.ones((0, 3)),), error=ShapeError)
        yield Sample(cls(0, dtypes.float32), (np.ones(3),), error=DTypeError)
        yield Sample(cls(0, int32), (np.ones(3, complex),), error=DTypeError)


class ArgMax(ArgExtremum, name="argmax"):
    """The position of the greatest element along an axis; of the first NaN, if there is one."""

    function: ClassVar[Callable[..., Any]] = staticmethod(np.argmax)


class ArgMin(ArgExtremum, name="argmin"):
    """The position of the smallest element along an axis; of the first NaN, if there is one."""

    function: ClassVar[Callable[..., Any]] = staticmethod(np.argmin)


# --- functions used by rules and by the layers above ----------------------------------------------


def _reduce(op: type[Reduction], x: Any, axes: Iterable[int]) -> Any:
    axes = tuple(sorted(axes))
    return op(axes)(x) if axes else x


def reduce_prod(x: Any, axes: Iterable[int]) -> Any:
    """The product of `x` over `axes` (non-negative); `x` itself if there are none."""
    return _reduce(ReduceProd, x, axes)


def reduce_max(x: Any, axes: Iterable[int]) -> Any:
    """The greatest element of `x` over `axes` (non-negative); `x` itself if there are none."""
    return _reduce(ReduceMax, x, axes)


def reduce_min(x: Any, axes: Iterable[int]) -> Any:
    """The smallest element of `x` over `axes` (non-negative); `x` itself if there are none."""
    return _reduce(ReduceMin, x, axes)


def reduce_and(x: Any, axes: Iterable[int]) -> Any:
    """The bits set in all elements over `axes` (non-negative); `x` itself if there are none."""
    return _reduce(ReduceAnd, x, axes)


def reduce_or(x: Any, axes: Iterable[int]) -> Any:
    """The bits set in any element over `axes` (non-negative); `x` itself if there are none."""
    return _reduce(ReduceOr, x, axes)


def reduce_xor(x: Any, axes: Iterable[int]) -> Any:
    """The bits set in an odd number of elements over `axes` (non-negative)."""
    return _reduce(ReduceXor, x, axes)


def argmax(x: Any, axis: int, index_dtype: DType) -> Any:
    """The position of the greatest element along `axis` (non-negative)."""
    return ArgMax(axis, index_dtype)(x)


def argmin(x: Any, axis: int, index_dtype: DType) -> Any:
    """The position of the smallest element along `axis` (non-negative)."""
    return ArgMin(axis, index_dtype)(x)
