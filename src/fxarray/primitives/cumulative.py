"""Running sums, products, extrema; and the linear recurrence by which they are differentiated.

A cumulative operation is y[k] = f(y[k-1], x[k]), so its derivative is a linear recurrence,
dy[k] = (df/dy) dy[k-1] + (df/dx) dx[k]. `LinearRecurrence` is closed under differentiation and
transposition, and divides by nothing, which makes derivatives of every order exact at zeros.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from itertools import accumulate
from typing import Any, ClassVar

import numpy as np

from fxarray.core import dtypes
from fxarray.core.errors import ArgumentError, AxisError, DTypeError
from fxarray.core.factors import Factors, letters
from fxarray.core.hooks import operators
from fxarray.core.primitive import Linear, Primitive, Sample, Zero, add_tangents
from fxarray.core.types import ArrayType
from fxarray.kernel.build import Builder, Lowered
from fxarray.primitives.arithmetic import div, mul, sub
from fxarray.primitives.arithmetic import max as maximum
from fxarray.primitives.comparison import eq, select
from fxarray.primitives.convert import convert
from fxarray.primitives.elementwise_base import check_equal_dtypes, check_group, common_shape
from fxarray.primitives.lowering import combiner_for, number_of, prefixes
from fxarray.primitives.power import logistic
from fxarray.primitives.slicing import pad
from fxarray.primitives.support import (
    FLOAT,
    NUMBER,
    Values,
    number_like,
    quietly,
    random_operand,
    sample_dtypes,
)


def check_axis(name: str, axis: int, type: ArrayType) -> None:
    """Raise unless `axis` is a dimension of the operand, counted from the first."""
    if not 0 <= axis < type.ndim:
        raise AxisError(f"{name}: axis {axis} is not a dimension of the operand, {type}")


def previous(x: Any, axis: int, reverse: bool, start: float) -> Any:
    """Each element's predecessor along an axis (its successor, if `reverse`); `start` before it."""
    config = [(0, 0, 0)] * x.type.ndim
    config[axis] = (-1, 1, 0) if reverse else (1, -1, 0)
    return pad(x, number_like(x, start), config)


def _whole_axis(operands: int, axis: int, rank: int, linear: tuple[int, ...] = ()) -> Factors:
    names = letters(rank)
    return Factors((names,) * operands, (names,), {}, frozenset((names[axis],)), linear)


class Cumulative(Primitive):
    """What the running reductions share: the result at k combines the elements up to k.

    Floats narrower than float32 are combined in float32.

    Args:
      axis: the axis to run along.
      reverse: whether to run from the end.
    """

    axis: int
    reverse: bool = False
    EXCUSED: ClassVar[dict[str, str]] = {"transpose": "it is not linear in its operand"}
    accepts: ClassVar[int] = NUMBER
    function: ClassVar[np.ufunc] = np.add

    def infer(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        (x,) = types
        check_group(self.name, 0, x, self.accepts)
        check_axis(self.name, self.axis, x)
        return (ArrayType(x.shape, x.dtype, x.weak),)

    def reference(self, *arrays: Values) -> tuple[Values, ...]:
        (x,) = arrays
        wide: Any = dtypes.accumulator(x.dtype)
        value = x.astype(_COMPUTABLE.get(x.dtype, wide), copy=False)
        value = np.flip(value, self.axis) if self.reverse else value
        with np.errstate(all="ignore"):
            value = self._accumulate(value)
        value = np.flip(value, self.axis) if self.reverse else value
        return (dtypes.cast(np.asarray(value), x.dtype),)

    def lower(self, builder: Builder, *operands: Lowered) -> tuple[Lowered, ...]:
        return (prefixes(builder, operands, self.axis, self._prefix),)

    def _prefix(self, builder: Builder, axis: str | None, x: int) -> int:
        if axis is None:
            return x
        combiner = combiner_for(builder, self.name.removeprefix("cum"), x)
        return builder.scan(combiner, axis, x, reverse=self.reverse)[0]

    def _accumulate(self, x: Values) -> Values:
        return type(self).function.accumulate(x, axis=self.axis, dtype=x.dtype)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        (x,), (tangent,) = primals, tangents
        outputs = self.bind(x)
        if type(tangent) is Zero:
            return outputs, (Zero(outputs[0].type.tangent()),)
        return outputs, (self.derivative(x, outputs[0], tangent),)

    def derivative(self, x: Any, y: Any, tangent: Any) -> Any:
        """The tangent of the result `y`."""
        raise self.missing("jvp")

    def recur(self, factor: Any, term: Any) -> Any:
        """The recurrence in this operation's direction."""
        return LinearRecurrence(self.axis, self.reverse)(factor, term)

    def before(self, y: Any, start: float) -> Any:
        """The result one step earlier."""
        return previous(y, self.axis, self.reverse, start)

    def batch(
        self, size: Any, axis_name: Hashable, operands: Sequence[Any], axes: Sequence[int | None]
    ) -> tuple[Sequence[Any], Sequence[int | None]]:
        (axis,) = axes
        assert axis is not None
        op = type(self)(self.axis + (self.axis >= axis), self.reverse)
        return op.bind(*operands), (axis,)

    def shard(self, *types: ArrayType) -> Factors:
        return _whole_axis(1, self.axis, types[0].ndim, self.linear_operands)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Any]:
        def draw(*shape: int, dtype: Any = "float32") -> Values:
            return random_operand(rng, shape, dtype, (-1.5, 1.5))

        yield Sample(cls(0), (draw(0, 2),))
        yield Sample(cls(1), (draw(0, 2),))
        yield Sample(cls(0), (draw(1),))
        yield Sample(cls(1, True), (draw(2, 5, 3),))
        for dtype in sample_dtypes(cls.accepts):
            yield Sample(cls(1), (draw(3, 4, dtype=dtype),))
        yield Sample(cls(2), (draw(2, 3),), error=AxisError)
        yield Sample(cls(-1), (draw(2, 3),), error=AxisError)
        yield Sample(cls(0), (np.array([True, False]),), error=DTypeError)


# Where NumPy's ufuncs do not take the dtype: the narrowest that it has.
_COMPUTABLE: dict[Any, Any] = {
    dtypes.int2: np.dtype(np.int8),
    dtypes.int4: np.dtype(np.int8),
    dtypes.uint2: np.dtype(np.uint8),
    dtypes.uint4: np.dtype(np.uint8),
}


class CumSum(Cumulative, name="cumsum"):
    """The sum of all elements up to each."""

    EXCUSED: ClassVar[dict[str, str]] = {}
    linear_operands: ClassVar[tuple[int, ...]] = (0,)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        return Primitive.jvp(self, primals, tangents)

    def transpose(self, cotangents: Sequence[Any], *operands: Any) -> Sequence[Any]:
        return CumSum(self.axis, not self.reverse).bind(cotangents[0])


class CumProd(Cumulative, name="cumprod"):
    """The product of all elements up to each; derivatives are exact where elements are zero."""

    function: ClassVar[np.ufunc] = np.multiply

    def derivative(self, x: Any, y: Any, tangent: Any) -> Any:
        return self.recur(x, mul(tangent, self.before(y, 1)))


class CumExtremum(Cumulative):
    """A running extremum: NaN from the first NaN on. Ties share the derivative equally."""

    def derivative(self, x: Any, y: Any, tangent: Any) -> Any:
        # Between changes of the extremum, add up tangents where it is attained and count them.
        dtype = tangent.type.dtype
        attained = eq(x, y)
        same = convert(eq(y, self.before(y, np.nan)), dtype)
        total = self.recur(same, select(attained, tangent, number_like(tangent, 0)))
        return div(total, self.recur(same, convert(attained, dtype)))


class CumMax(CumExtremum, name="cummax"):
    """The greatest of all elements up to each; NaN from the first NaN on."""

    function: ClassVar[np.ufunc] = np.maximum


class CumMin(CumExtremum, name="cummin"):
    """The smallest of all elements up to each; NaN from the first NaN on."""

    function: ClassVar[np.ufunc] = np.minimum


class CumLogSumExp(Cumulative, name="cumlogsumexp"):
    """The logarithm of the sum of the exponentials of all elements up to each."""

    accepts: ClassVar[int] = FLOAT
    function: ClassVar[np.ufunc] = np.logaddexp

    def _prefix(self, builder: Builder, axis: str | None, x: int) -> int:
        if axis is None:
            return x
        one = number_of(builder, x, 1)
        top, total = builder.scan("logsumexp", axis, x, one, reverse=self.reverse)
        return builder.op("add", top, builder.op("log", total))

    def derivative(self, x: Any, y: Any, tangent: Any) -> Any:
        before = self.before(y, -np.inf)
        # The shares of the two in exp(before) + exp(x); halves where both are the same infinity,
        # but all of it is the first element's own.
        equal = eq(x, before)
        share = logistic(select(equal, number_like(x, 0), sub(x, before)))
        share = maximum(share, self.before(operators.zeros(x.type), 1))
        rest = logistic(select(equal, number_like(x, 0), sub(before, x)))
        return self.recur(rest, mul(tangent, share))


class LinearRecurrence(Primitive, name="linear_recurrence"):
    """z[k] = factor[k] * z[k-1] + term[k] along an axis, where z before the first is 0.

    Args:
      axis: the axis to run along.
      reverse: whether to run from the end.
    """

    axis: int
    reverse: bool = False

    def infer(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        factor, term = types
        for number, given in enumerate(types):
            check_group(self.name, number, given, NUMBER)
        check_equal_dtypes(self.name, types)
        if factor.ndim != term.ndim:
            raise ArgumentError(f"linear_recurrence: ranks differ: {factor}, {term}")
        check_axis(self.name, self.axis, term)
        shape = common_shape(self.name, types)
        return (ArrayType(shape, term.dtype, factor.weak and term.weak),)

    def reference(self, *arrays: Values) -> tuple[Values, ...]:
        dtype = arrays[0].dtype
        wide: Any = dtypes.accumulator(dtype)
        if dtype.itemsize <= 4 and dtypes.is_float(dtype):
            wide = np.dtype(np.float64)
        factor, term = [
            np.moveaxis(x.astype(_COMPUTABLE.get(dtype, wide)), self.axis, 0) for x in arrays
        ]
        result = np.empty(term.shape, term.dtype)
        order = range(len(term) - 1, -1, -1) if self.reverse else range(len(term))
        value: Any = np.zeros(term.shape[1:], term.dtype)
        with np.errstate(all="ignore"):
            for k in order:
                value = factor[k] * value + term[k]
                result[k] = value
        return (dtypes.cast(np.moveaxis(result, 0, self.axis), dtype),)

    def lower(self, builder: Builder, *operands: Lowered) -> tuple[Lowered, ...]:
        return (prefixes(builder, operands, self.axis, self._prefix),)

    def _prefix(self, builder: Builder, axis: str | None, factor: int, term: int) -> int:
        if axis is None:
            return term
        return builder.scan("linear", axis, factor, term, reverse=self.reverse)[1]

    def eager(self, *arrays: Values) -> tuple[Values, ...]:
        factor, term = arrays
        if term.size != term.shape[self.axis] or term.dtype not in (np.float32, np.float64):
            return self.reference(*arrays)
        # A single line: Python's floats are faster than arrays of one element.
        step = -1 if self.reverse else 1
        pairs: Any = zip(
            factor.ravel()[::step].tolist(), term.ravel()[::step].tolist(), strict=True
        )
        values = list(accumulate(pairs, _advance, initial=0.0))[1:]
        result = quietly(np.array(values, np.float64).astype, (term.dtype,))
        return (result[::step].reshape(term.shape),)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        (factor, _), (d_factor, d_term) = primals, tangents
        outputs = self.bind(*primals)
        forcing: Any = d_term
        if type(d_factor) is not Zero:
            before = previous(outputs[0], self.axis, self.reverse, 0)
            forcing = add_tangents(mul(d_factor, before), d_term)
        if type(forcing) is Zero:
            return outputs, (Zero(outputs[0].type.tangent()),)
        return outputs, self.bind(factor, forcing)

    def transpose(self, cotangents: Sequence[Any], *operands: Any) -> Sequence[Any]:
        factor, term = operands
        if type(factor) is Linear or type(term) is not Linear:
            raise self.missing("transpose", "it is linear in its second operand only")
        following = previous(factor, self.axis, not self.reverse, 0)
        op = LinearRecurrence(self.axis, not self.reverse)
        return None, op(following, cotangents[0])

    def batch(
        self, size: Any, axis_name: Hashable, operands: Sequence[Any], axes: Sequence[int | None]
    ) -> tuple[Sequence[Any], Sequence[int | None]]:
        moved = [
            operators.broadcast_axis(x, size, 0)
            if axis is None
            else operators.move_axis(x, axis, 0)
            for x, axis in zip(operands, axes, strict=True)
        ]
        return LinearRecurrence(self.axis + 1, self.reverse).bind(*moved), (0,)

    def shard(self, *types: ArrayType) -> Factors:
        return _whole_axis(2, self.axis, types[0].ndim, (1,))

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Any]:
        def draw(*shape: int, dtype: Any = "float32") -> tuple[Values, Values]:
            return (
                random_operand(rng, shape, dtype, (-1.0, 1.0)),
                random_operand(rng, shape, dtype, (-2.0, 2.0)),
            )

        yield Sample(cls(0), draw(0, 2))
        yield Sample(cls(0), draw(1))
        yield Sample(cls(0, True), draw(6))
        yield Sample(cls(1, True), draw(2, 5, 3))
        for dtype in sample_dtypes(NUMBER):
            yield Sample(cls(1), draw(3, 4, dtype=dtype))
        yield Sample(cls(2), draw(2, 3), error=AxisError)
        yield Sample(cls(0), (np.ones(3), np.ones(3, np.float32)), error=DTypeError)


def _advance(value: float, pair: Any) -> Any:
    return pair[0] * value + pair[1]


# --- functions used by rules and by the layers above ----------------------------------------------


def cumsum(x: Any, axis: int, reverse: bool = False) -> Any:
    """Running sums along `axis` (non-negative)."""
    return CumSum(axis, reverse)(x)


def cumprod(x: Any, axis: int, reverse: bool = False) -> Any:
    """Running products along `axis` (non-negative)."""
    return CumProd(axis, reverse)(x)


def cummax(x: Any, axis: int, reverse: bool = False) -> Any:
    """Running maxima along `axis` (non-negative)."""
    return CumMax(axis, reverse)(x)


def cummin(x: Any, axis: int, reverse: bool = False) -> Any:
    """Running minima along `axis` (non-negative)."""
    return CumMin(axis, reverse)(x)


def cumlogsumexp(x: Any, axis: int, reverse: bool = False) -> Any:
    """Running logarithms of sums of exponentials along `axis` (non-negative)."""
    return CumLogSumExp(axis, reverse)(x)


def linear_recurrence(factor: Any, term: Any, axis: int, reverse: bool = False) -> Any:
    """z[k] = factor[k] * z[k-1] + term[k] along `axis` (non-negative)."""
    return LinearRecurrence(axis, reverse)(factor, term)
