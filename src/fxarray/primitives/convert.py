"""Conversion between dtypes, and operations that return their operand."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from fxarray.core import dims, dtypes
from fxarray.core.dtypes import DType
from fxarray.core.errors import ArgumentError, DTypeError, ShapeError
from fxarray.core.factors import Factors, letters
from fxarray.core.primitive import Primitive, Sample, Zero, remembered
from fxarray.core.types import ArrayType
from fxarray.kernel.build import Builder, Lowered, kernel_dtype
from fxarray.primitives.elementwise_base import (
    Elementwise,
    check_count,
    check_group,
    elementwise_samples,
)
from fxarray.primitives.lowering import elementwise
from fxarray.primitives.lowering_bits import bits_read, rounded_to
from fxarray.primitives.movement import transpose
from fxarray.primitives.support import (
    ANY,
    FLOAT,
    NUMERIC,
    Values,
    quietly,
    random_operand,
    sample_dtypes,
    widened,
)

# Where NumPy converts as `cast` does, from which kinds of dtypes.
_NUMPY_CASTS: dict[DType, str] = {
    **dict.fromkeys((dtypes.bool_, dtypes.complex64, dtypes.complex128), "biufc"),
    **dict.fromkeys((dtypes.float32, dtypes.float64), "biuf"),
    **dict.fromkeys((dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64), "biu"),
    **dict.fromkeys((dtypes.uint8, dtypes.uint16, dtypes.uint32, dtypes.uint64), "biu"),
}


class ConvertElementType(Elementwise, name="convert_element_type"):
    """Elements converted to another dtype, as `core.casting.cast` defines it."""

    dtype: DType
    weak: bool = False
    accepts: ClassVar[int] = NUMERIC

    def infer(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        check_count(self.name, types, 1)
        (x,) = types
        if dtypes.is_key(x.dtype) and dtypes.is_key(self.dtype):
            return types
        check_group(self.name, 0, x, NUMERIC)
        if not dtypes.is_numeric(self.dtype):
            raise DTypeError(
                f"convert_element_type: numbers ({x}) cannot become {dtypes.name(self.dtype)}; "
                f"make random keys by fxarray.random.key(seed)"
            )
        return (ArrayType(x.shape, self.dtype, self.weak),)

    def reference(self, *arrays: Values) -> tuple[Values, ...]:
        if dtypes.is_key(self.dtype):
            return arrays
        return (dtypes.cast(arrays[0], self.dtype),)

    def eager(self, *arrays: Values) -> tuple[Values, ...]:
        (x,) = arrays
        kinds = _NUMPY_CASTS.get(self.dtype)
        if kinds is None or x.dtype.kind not in kinds:
            return self.reference(x)
        return (quietly(x.astype, (self.dtype,)),)

    def lower(self, builder: Builder, *operands: Lowered) -> tuple[Lowered, ...]:
        (x,) = operands
        dtype = kernel_dtype(self.dtype)
        return (elementwise(builder, (x,), dtype, lambda k, value: k.convert(value, dtype)),)

    def derivative(self, position: int, tangent: Any, output: Any, primals: Sequence[Any]) -> Any:
        return self(tangent) if dtypes.is_inexact(self.dtype) else None

    def transposed(self, position: int, cotangent: Any, operands: Sequence[Any]) -> Any:
        operand = operands[position].type
        return ConvertElementType(operand.dtype, operand.weak)(cotangent)

    def shard(self, *types: ArrayType) -> Factors:
        return Factors.elementwise([types[0].ndim], [types[0].ndim], (0,))

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Any]:
        for source in sample_dtypes(NUMERIC):
            for target in (*sample_dtypes(NUMERIC), dtypes.float8_e5m2, dtypes.int4):
                operand = random_operand(rng, (2, 3), source, (-3.0, 3.0))
                # Where digits are lost, the result is not as smooth as its derivative says.
                exact = dtypes.to_real(target).itemsize >= dtypes.to_real(source).itemsize
                yield Sample(cls(target), (operand,), differentiable=exact)
        yield Sample(cls(dtypes.int32), (np.float32(2.5),))
        yield Sample(cls(dtypes.float32), (np.zeros((0, 2), np.int8),))
        yield Sample(cls(dtypes.uint8), (np.array([-1.0, 300.0, np.nan, np.inf]),))
        yield Sample(cls(dtypes.key_dtype), (np.float32(1),), error=DTypeError)


def convert(x: Any, dtype: DType, weak: bool = False) -> Any:
    """`x` with another dtype, or weakness; `x` itself where nothing changes."""
    known = x.type
    if known.dtype == dtype and known.weak == weak:
        return x
    return remembered(ConvertElementType, dtype, weak)(x)


class BitcastConvertType(Primitive, name="bitcast_convert_type"):
    """The same bits read as another dtype.

    To a narrower dtype, the result has one dimension more, which holds the parts of each element,
    lowest bits first; to a wider one, the last dimension holds the parts and vanishes.
    """

    dtype: DType
    EXCUSED: ClassVar[dict[str, str]] = {"transpose": "bits are not linear"}
    differentiable: ClassVar[bool] = False

    def ratio(self, source: DType) -> tuple[int, int]:
        """How many result elements one element makes, and how many it takes to make one."""
        before, after = dtypes.bit_width(source), dtypes.bit_width(self.dtype)
        return (before // after or 1, after // before or 1)

    def infer(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        check_count(self.name, types, 1)
        (x,) = types
        check_group(self.name, 0, x, ANY)
        for dtype in (x.dtype, self.dtype):
            if not _has_plain_bits(dtype):
                raise DTypeError(
                    f"bitcast_convert_type: {dtypes.name(dtype)} cannot be read as other bits "
                    f"(from {x} to {dtypes.name(self.dtype)})"
                )
        split, join = self.ratio(x.dtype)
        if split > 1:
            return (ArrayType((*x.shape, split), self.dtype),)
        if join == 1:
            return (ArrayType(x.shape, self.dtype, x.weak and x.dtype == self.dtype),)
        if not x.shape or not dims.same(x.shape[-1], join):
            raise ShapeError(
                f"bitcast_convert_type: {x} to {dtypes.name(self.dtype)} joins {join} elements "
                f"into one, so the last dimension must have size {join}"
            )
        return (ArrayType(x.shape[:-1], self.dtype),)

    def reference(self, *arrays: Values) -> tuple[Values, ...]:
        (x,) = arrays
        target = dtypes.physical(self.dtype)
        if target.itemsize == x.dtype.itemsize and self.ratio(x.dtype) == (1, 1):
            return (np.ascontiguousarray(x).reshape(x.shape).view(target),)
        # Narrow integers occupy a byte each, so parts are taken apart as integers.
        before, after = dtypes.bit_width(x.dtype), dtypes.bit_width(target)
        bits = bits_of(x)
        split, join = self.ratio(x.dtype)
        if split > 1:
            shifts = np.arange(split, dtype=np.uint64) * np.uint64(after)
            parts = (bits[..., None] >> shifts) & _low_bits(after)
        else:
            shifts = np.arange(join, dtype=np.uint64) * np.uint64(before)
            parts = np.bitwise_or.reduce(bits << shifts, axis=-1)
        return (from_bits(np.asarray(parts), target),)

    def eager(self, *arrays: Values) -> tuple[Values, ...]:
        (x,) = arrays
        target = dtypes.physical(self.dtype)
        if dtypes.bit_width(x.dtype) < 8 or dtypes.bit_width(target) < 8:
            return self.reference(x)
        split, join = self.ratio(x.dtype)
        if split == join == 1:
            return (np.ascontiguousarray(x).reshape(x.shape).view(target),)
        whole = np.ascontiguousarray(x[..., None] if split > 1 else x)
        return (whole.view(target) if split > 1 else whole.view(target)[..., 0],)

    def lower(self, builder: Builder, *operands: Lowered) -> tuple[Lowered, ...]:
        (x,) = operands
        split, join = self.ratio(dtypes.from_short_name(x.dtype))
        return (bits_read(builder, x, kernel_dtype(self.dtype), split, join),)

    def batch(
        self, size: Any, axis_name: Hashable, operands: Sequence[Any], axes: Sequence[int | None]
    ) -> tuple[Sequence[Any], Sequence[int | None]]:
        (x,), (axis,) = operands, axes
        assert axis is not None
        if x.type.ndim == 1:
            self.infer(x.type.replace(shape=()))
        # The last dimension may be the parts of an element; it must stay last.
        if axis == x.type.ndim - 1 and axis > 0:
            order = (axis, *range(axis))
            x, axis = transpose(x, order), 0
        return self.bind(x), (axis,)

    def shard(self, *types: ArrayType) -> Factors:
        (x,) = types
        names = letters(x.ndim)
        split, join = self.ratio(x.dtype)
        if split > 1:
            part = letters(1, x.ndim)
            return Factors((names,), ((*names, *part),), whole=frozenset(part))
        if join > 1:
            parts = names[-1:]
            return Factors((names,), (names[:-1],), {parts[0]: "any"}, frozenset(parts))
        return Factors((names,), (names,))

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Any]:
        values = rng.normal(size=(2, 4)).astype("float32")
        yield Sample(cls(dtypes.int32), (np.float32(1.5),))
        yield Sample(cls(dtypes.uint32), (np.zeros((0, 3), np.float32),))
        for dtype in (dtypes.uint32, dtypes.int16, dtypes.uint8, dtypes.bfloat16, dtypes.int4):
            # Between floats it has no derivative, although bits of a wider dtype would.
            plain = not dtypes.is_float(dtype)
            yield Sample(cls(dtype), (values,), differentiable=plain)
        yield Sample(cls(dtypes.float32), (values.view("uint8").reshape(2, 4, 4),))
        yield Sample(cls(dtypes.int64), (rng.integers(0, 9, size=(3, 2)).astype("int32"),))
        yield Sample(cls(dtypes.float64), (np.ones(3, np.float32),), error=ShapeError)


def _has_plain_bits(dtype: DType) -> bool:
    return (dtypes.is_integer(dtype) or dtypes.is_float(dtype)) and dtypes.bit_width(dtype) != 6


def _low_bits(count: int) -> np.uint64:
    return np.uint64((1 << count) - 1)


def bits_of(array: Values) -> Values:
    """The bits of each element, as the low bits of a uint64."""
    unsigned = np.dtype(f"uint{8 * array.dtype.itemsize}")
    bits = np.ascontiguousarray(array).reshape(array.shape).view(unsigned).astype(np.uint64)
    return np.asarray(bits & _low_bits(dtypes.bit_width(array.dtype)))


def from_bits(bits: Values, dtype: np.dtype[Any]) -> Values:
    """The inverse of `bits_of`."""
    if dtype in (dtypes.int2, dtypes.int4, dtypes.uint2, dtypes.uint4):
        return dtypes.cast(bits, dtype)
    unsigned = np.dtype(f"uint{8 * dtype.itemsize}")
    return np.asarray(bits.astype(unsigned)).view(dtype)


class ReducePrecision(Elementwise, name="reduce_precision"):
    """Values rounded to a format with fewer exponent and mantissa bits, dtype unchanged.

    Ties are rounded to even; values too large become infinite, those too small for a normal number
    of that format become zero.
    """

    exponent_bits: int
    mantissa_bits: int
    accepts: ClassVar[int] = FLOAT

    def infer(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        if self.exponent_bits < 1 or self.mantissa_bits < 0:
            raise ArgumentError(
                f"reduce_precision: exponent_bits={self.exponent_bits} must be at least 1 and "
                f"mantissa_bits={self.mantissa_bits} at least 0"
            )
        return super().infer(*types)

    def reference(self, *arrays: Values) -> tuple[Values, ...]:
        (x,) = arrays
        own = dtypes.finfo(x.dtype)
        if self.mantissa_bits >= own.nmant and self.exponent_bits >= own.nexp:
            return arrays
        with np.errstate(all="ignore"):
            wide = widened(x)
            rounded = _round_mantissa(wide, self.mantissa_bits)
            # With all its exponents, the dtype keeps its subnormal numbers as well.
            if self.exponent_bits < own.nexp:
                bias = (1 << (self.exponent_bits - 1)) - 1
                size = np.abs(rounded)
                rounded = np.where(size >= 2.0 ** (bias + 1), np.copysign(np.inf, wide), rounded)
                rounded = np.where(size < 2.0 ** (1 - bias), np.copysign(0.0, wide), rounded)
            result = np.where(np.isfinite(wide), rounded, wide)
        return (dtypes.cast(np.asarray(result), x.dtype),)

    def scalar(self, builder: Builder, *values: int) -> int:
        (x,) = values
        own = dtypes.finfo(dtypes.from_short_name(builder.dtypes[x]))
        mantissa_bits = self.mantissa_bits if self.mantissa_bits < own.nmant else None
        exponent_bits = self.exponent_bits if self.exponent_bits < own.nexp else None
        return rounded_to(builder, x, exponent_bits, mantissa_bits)

    def derivative(self, position: int, tangent: Any, output: Any, primals: Sequence[Any]) -> Any:
        return self(tangent)

    def transposed(self, position: int, cotangent: Any, operands: Sequence[Any]) -> Any:
        return self(cotangent)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Any]:
        # Full precision is the one case in which the operation is the linear map that its
        # derivative takes it for.
        yield from elementwise_samples(cls(11, 52), rng)
        for exponent_bits, mantissa_bits in ((5, 10), (8, 7), (4, 3)):
            for dtype in sample_dtypes(FLOAT):
                x = rng.normal(size=(2, 3)) * 10.0 ** rng.integers(-3, 4, size=(2, 3))
                operand = dtypes.cast(x, dtype)
                yield Sample(cls(exponent_bits, mantissa_bits), (operand,), differentiable=False)
        yield Sample(cls(0, 3), (np.ones(3),), error=ArgumentError)


def _round_mantissa(x: Values, bits: int) -> Values:
    """float64 values rounded to a leading bit and `bits` more, ties to even."""
    fraction, exponent = np.frexp(x)
    # The leading bit of frexp's fraction stands just after the point.
    rounded = np.rint(np.ldexp(fraction, bits + 1))
    if bits == 0:
        # The last bit kept, by which a number is even, is then that of the (biased) exponent.
        down = (np.abs(fraction) == 0.75) & (exponent % 2 == 0)
        rounded = np.where(down, np.sign(x), rounded)
    return np.copysign(np.ldexp(rounded, exponent - (bits + 1)), x)


class StopGradient(Elementwise, name="stop_gradient"):
    """The operand; its derivative is taken to be zero."""

    EXCUSED: ClassVar[dict[str, str]] = {"transpose": "its derivative is zero"}
    accepts: ClassVar[int] = ANY
    differentiable: ClassVar[bool] = False

    def reference(self, *arrays: Values) -> tuple[Values, ...]:
        return arrays

    def scalar(self, builder: Builder, *values: int) -> int:
        return values[0]

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        outputs = self.bind(*primals)
        return outputs, (Zero(outputs[0].type.tangent()),)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Any]:
        for sample in elementwise_samples(cls(), rng):
            yield Sample(sample.op, sample.operands, differentiable=False)


class Copy(Elementwise, name="copy"):
    """The operand's elements, in memory of their own."""

    accepts: ClassVar[int] = ANY

    def reference(self, *arrays: Values) -> tuple[Values, ...]:
        return (np.array(arrays[0]),)

    def scalar(self, builder: Builder, *values: int) -> int:
        return values[0]

    def derivative(self, position: int, tangent: Any, output: Any, primals: Sequence[Any]) -> Any:
        return tangent

    def transposed(self, position: int, cotangent: Any, operands: Sequence[Any]) -> Any:
        return cotangent


stop_gradient = StopGradient()
copy = Copy()
