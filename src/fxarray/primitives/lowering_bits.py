"""Reading bits as other dtypes, rounding to fewer of them, and drawing them, in kernel IR."""

from __future__ import annotations

from functools import partial

from fxarray.core import dtypes
from fxarray.kernel import sizes
from fxarray.kernel.build import Builder, Index, Lowered, Value
from fxarray.kernel.ir import Affine
from fxarray.kernel.scalars import numpy_dtype
from fxarray.primitives.lowering import elementwise, in_float32, number_of
from fxarray.primitives.threefry import PARITY, ROTATIONS


def _width(dtype: str) -> int:
    return dtypes.bit_width(numpy_dtype(dtype))


def _bits(builder: Builder, value: Value) -> Value:
    """The bits of a value, as an unsigned integer of its width."""
    dtype = builder.dtypes[value]
    unsigned = f"u{_width(dtype)}"
    return value if dtype == unsigned else builder.op("bitcast", value, dtype=unsigned)


def _from_bits(builder: Builder, bits: Value, dtype: str) -> Value:
    return bits if builder.dtypes[bits] == dtype else builder.op("bitcast", bits, dtype=dtype)


def bits_read(builder: Builder, x: Lowered, dtype: str, split: int, join: int) -> Lowered:
    """Elements read as another dtype.

    Args:
      builder: the kernel's.
      x: the array.
      dtype: the dtype.
      split: how many results one element makes, along a new last dimension.
      join: how many elements make one result, along the last dimension.
    """
    if split == join == 1:
        return elementwise(
            builder, (x,), dtype, lambda k, value: _from_bits(k, _bits(k, value), dtype)
        )
    wider, narrower = (x.dtype, dtype) if split > 1 else (dtype, x.dtype)
    whole, width = f"u{_width(wider)}", _width(narrower)

    def part(index: Index) -> Value:
        bits = _bits(builder, x.element(index[:-1]))
        place = builder.convert(builder.iota(index[-1] * width, "i32"), whole)
        low = builder.convert(builder.op("shr_logical", bits, place), f"u{width}")
        return _from_bits(builder, low, dtype)

    def joined(index: Index) -> Value:
        total = builder.constant(0, whole)
        for part_number in range(join):
            bits = _bits(builder, x.element((*index, Affine((), part_number))))
            place = builder.constant(part_number * width, whole)
            more = builder.op("shl", builder.convert(bits, whole), place)
            total = builder.op("or", total, more)
        return _from_bits(builder, total, dtype)

    if split > 1:
        return builder.lowered((*x.shape, split), dtype, part)
    return builder.lowered(x.shape[:-1], dtype, joined)


# --- rounding -------------------------------------------------------------------------------------


def rounded_to(
    builder: Builder, x: Value, exponent_bits: int | None, mantissa_bits: int | None
) -> Value:
    """A float rounded to a format of fewer bits; None keeps all that there are.

    Ties are rounded to even; too large values become infinite, those too small for a normal number
    of the format zero.
    """
    if exponent_bits is None and mantissa_bits is None:
        return x
    function = partial(_rounded, exponent_bits=exponent_bits, mantissa_bits=mantissa_bits)
    return in_float32(function)(builder, x)


def _rounded(k: Builder, x: Value, exponent_bits: int | None, mantissa_bits: int | None) -> Value:
    result = x
    if mantissa_bits is not None:
        result = _rounded_mantissa(k, x, mantissa_bits)
    if exponent_bits is not None:
        bias = (1 << (exponent_bits - 1)) - 1
        size = k.op("abs", result)
        above = k.op("ge", size, number_of(k, x, 2.0 ** (bias + 1)))
        below = k.op("lt", size, number_of(k, x, 2.0 ** (1 - bias)))
        infinity = k.op("copysign", number_of(k, x, float("inf")), x)
        zero = k.op("copysign", number_of(k, x, 0.0), x)
        result = k.op("select", above, infinity, k.op("select", below, zero, result))
    return k.op("select", k.op("is_finite", x), result, x)


def _rounded_mantissa(k: Builder, x: Value, kept: int) -> Value:
    """The leading bit and so many more, ties to even: an addition to the bits, which carries."""
    dtype = k.dtypes[x]
    info = dtypes.finfo(numpy_dtype(dtype))
    unsigned, dropped = f"u{_width(dtype)}", int(info.nmant) - kept
    # Bits of a subnormal number do not begin with the leading one.
    scale = 2.0 ** (info.nmant + 1)
    small = k.op("lt", k.op("abs", x), number_of(k, x, float(info.tiny)))
    scaled = k.op("select", small, k.op("mul", x, number_of(k, x, scale)), x)
    bits = k.op("bitcast", scaled, dtype=unsigned)

    def constant(value: int) -> Value:
        return k.constant(value, unsigned)

    last = k.op("and", k.op("shr_logical", bits, constant(dropped)), constant(1))
    bits = k.op("add", bits, k.op("add", last, constant((1 << (dropped - 1)) - 1)))
    bits = k.op("and", bits, k.op("not", constant((1 << dropped) - 1)))
    result = k.op("bitcast", bits, dtype=dtype)
    return k.op("select", small, k.op("mul", result, number_of(k, x, 1 / scale)), result)


# --- random bits ----------------------------------------------------------------------------------


def counter_words(builder: Builder, number: Affine) -> tuple[Value, Value]:
    """The high and the low u32 word of an index that counts."""
    low = builder.iota(number, "u32")
    last = builder.greatest(number)
    if last is not None and (sizes.bounds(last)[1] or 2**32) < 2**32:
        return builder.constant(0, "u32"), low
    whole = builder.iota(number, "i64")
    high = builder.op("shr_logical", whole, builder.constant(32, "i64"))
    return builder.convert(high, "u32"), low


def paired_words(builder: Builder, high: Value, low: Value) -> Value:
    """The u64 of two words."""
    upper = builder.op("shl", builder.convert(high, "u64"), builder.constant(32, "u64"))
    return builder.op("or", upper, builder.convert(low, "u64"))


def threefry_words(builder: Builder, key: Value, high: Value, low: Value) -> tuple[Value, Value]:
    """The two words of Threefry-2x32 for a u64 key and a counter of two u32 words."""

    def op(name: str, *args: Value) -> Value:
        return builder.op(name, *args)

    def constant(value: int) -> Value:
        return builder.constant(value, "u32")

    k0 = builder.convert(op("shr_logical", key, builder.constant(32, "u64")), "u32")
    k1 = builder.convert(key, "u32")
    schedule = (k0, k1, op("xor", op("xor", k0, k1), constant(PARITY)))
    x0, x1 = op("add", high, k0), op("add", low, k1)
    for group in range(5):
        for rotation in ROTATIONS[group % 2]:
            x0 = op("add", x0, x1)
            left = op("shl", x1, constant(rotation))
            right = op("shr_logical", x1, constant(32 - rotation))
            x1 = op("xor", op("or", left, right), x0)
        x0 = op("add", x0, schedule[(group + 1) % 3])
        x1 = op("add", op("add", x1, schedule[(group + 2) % 3]), constant(group + 1))
    return x0, x1
