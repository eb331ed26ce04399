"""Uniform numbers: bits, floats in a range, integers in a range, coin flips.

All of them equal JAX's to the last bit.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from fxarray import numpy as fnp
from fxarray.core import dtypes
from fxarray.core.array import Array
from fxarray.core.dtypes import DType
from fxarray.core.errors import ArgumentError, DTypeError, ShapeError
from fxarray.core.types import Shape
from fxarray.numpy.conversion import cast_to, place
from fxarray.numpy.promotion import (
    Scalar,
    as_operand,
    broadcast_array,
    canonical_shape,
    common_shape,
    same_shape,
)
from fxarray.primitives.bits import FoldIn, RandomBits
from fxarray.primitives.create import scalar
from fxarray.primitives.fused import fused_multiply_add
from fxarray.random.keys import single_key

_FUSED = (dtypes.float32, dtypes.float64, dtypes.float16)


# --- arguments that many functions share ----------------------------------------------------------


def float_dtype(function: str, dtype: Any) -> DType:
    """The float dtype asked for; float32 by default.

    Raises:
      DTypeError: `dtype` is no float dtype.
    """
    found = dtypes.float32 if dtype is None else dtypes.canonical(dtype)
    if not dtypes.is_float(found):
        raise DTypeError(f"{function}: dtype must be a float dtype, got {found}")
    return found


def parameter(function: str, value: Any, dtype: DType, position: int) -> Array:
    """A parameter of a distribution as an array of `dtype`; numbers keep all their digits.

    Raises:
      ArgumentError: it is neither an array nor a number.
    """
    if isinstance(value, Scalar):
        return scalar(dtypes.scalar_array(value, dtype), dtype)
    return cast_to(as_operand(function, value, position), dtype)


def spread(function: str, x: Array, shape: Shape) -> Array:
    """`x` repeated to `shape`, or as it is if it is 0-dimensional.

    Raises:
      ShapeError: it does not broadcast to `shape`.
    """
    if not x.type.shape:
        return x
    if not same_shape(common_shape(function, [x.type.shape, shape]), shape):
        raise ShapeError(
            f"{function}: a parameter of shape {x.type.shape} does not broadcast to the shape "
            f"{shape} of the result"
        )
    return broadcast_array(x, shape)


def result_shape(function: str, shape: Any, *parameters: Array) -> Shape:
    """The shape asked for, or by default the one that the parameters broadcast to."""
    if shape is None:
        return common_shape(function, [parameter.type.shape for parameter in parameters])
    return canonical_shape(function, shape)


# --- bits and floats ------------------------------------------------------------------------------


def bits(key: Any, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None) -> Array:
    """Random bits, as unsigned integers that take every value equally often.

    Args:
      key: a random key.
      shape: of the result.
      dtype: uint8, uint16, uint32 (default) or uint64.
      out_sharding: how to split the result over a mesh.

    Raises:
      DTypeError: `dtype` is not unsigned, or `key` no key.

    >>> from fxarray import random
    >>> random.bits(random.key(0), (2,))
    Array([4070199207, 4202968722], dtype=uint32)
    """
    single, _ = single_key("bits", key)
    found = dtypes.uint32 if dtype is None else dtypes.canonical(dtype)
    if not dtypes.is_unsigned(found) or dtypes.bit_width(found) < 8:
        raise DTypeError(f"bits: dtype must be uint8, uint16, uint32 or uint64, got {found}")
    op = RandomBits(canonical_shape("bits", shape), dtypes.bit_width(found))
    return place("bits", op(single), None, out_sharding)


def unit(function: str, key: Array, shape: Shape, dtype: DType, end: int = 1) -> Array:
    """Multiples of the dtype's epsilon in [0, 1), each equally often; times `end`, a power of 2.

    Raises:
      DTypeError: the format has no fraction to fill.
    """
    info = ml_dtypes.finfo(dtype)
    width, digits = dtypes.bit_width(dtype), int(info.nmant)
    if width < 8 or not digits:
        raise DTypeError(f"{function} cannot draw {dtype}; draw float32 and convert with .astype()")
    width = 8 if digits < 8 else width
    return cast_to(RandomBits(shape, width)(key) >> (width - digits), dtype) * (end * 2.0**-digits)


def ranged(
    function: str, key: Array, shape: Shape, dtype: DType, minval: Any, maxval: Any
) -> Array:
    """Uniform values in [minval, maxval)."""
    values = unit(function, key, shape, dtype)
    if _is_number(minval, 0) and _is_number(maxval, 1):
        return values
    low = spread(function, parameter(function, minval, dtype, 3), shape)
    high = spread(function, parameter(function, maxval, dtype, 4), shape)
    span = high - low
    # XLA contracts the product and the sum to one rounding, but not in the narrowest formats.
    fused = dtype in _FUSED
    values = fused_multiply_add(values, span, low) if fused else values * span + low
    # Rounding must not lead below the range.
    return fnp.maximum(low, values)


def _is_number(value: Any, number: int) -> bool:
    return isinstance(value, int | float) and value == number


def uniform(
    key: Any,
    shape: Any = (),
    dtype: Any = None,
    minval: Any = 0.0,
    maxval: Any = 1.0,
    *,
    out_sharding: Any = None,
) -> Array:
    """Uniform random floats in [minval, maxval).

    Args:
      key: a random key.
      shape: of the result.
      dtype: a float dtype; default float32.
      minval: the least value; broadcasts to `shape`.
      maxval: the end of the range; broadcasts to `shape`.
      out_sharding: how to split the result over a mesh.

    Raises:
      DTypeError: `dtype` is no float dtype, or `key` no key.
      ShapeError: a bound does not broadcast to `shape`.

    >>> from fxarray import random
    >>> random.uniform(random.key(0), (2,), minval=-1.0)
    Array([0.895334  , 0.95715976], dtype=float32)
    """
    single, _ = single_key("uniform", key)
    found, sizes = float_dtype("uniform", dtype), canonical_shape("uniform", shape)
    values = ranged("uniform", single, sizes, found, minval, maxval)
    return place("uniform", values, None, out_sharding)


# --- integers -------------------------------------------------------------------------------------


def randint(
    key: Any, shape: Any, minval: Any, maxval: Any, dtype: Any = None, *, out_sharding: Any = None
) -> Array:
    """Uniform random integers in [minval, maxval).

    Bounds outside the dtype's range count as its ends, and an empty range gives `minval`. Values
    are remainders of twice as many random bits as the dtype has, so that their bias is small
    unless the range is a large part of the dtype's.

    Args:
      key: a random key.
      shape: of the result.
      minval: the least value; broadcasts to `shape`.
      maxval: one more than the greatest value; broadcasts to `shape`.
      dtype: an integer dtype; default int32.
      out_sharding: how to split the result over a mesh.

    Raises:
      DTypeError: `dtype` is no integer dtype, or `key` no key.
      ShapeError: a bound does not broadcast to `shape`.

    >>> from fxarray import random
    >>> random.randint(random.key(0), (3,), 0, 10)
    Array([9, 0, 2], dtype=int32)
    """
    single, _ = single_key("randint", key)
    found = dtypes.int32 if dtype is None else dtypes.canonical(dtype)
    if not dtypes.is_integer(found):
        raise DTypeError(f"randint: dtype must be an integer dtype, got {found}")
    sizes = canonical_shape("randint", shape)
    if isinstance(minval, _INTEGERS) and isinstance(maxval, _INTEGERS):
        values = _static_randint(single, sizes, int(minval), int(maxval), found)
    else:
        values = _traced_randint(single, sizes, minval, maxval, found)
    return place("randint", values, None, out_sharding)


_INTEGERS = (int, np.integer)


def _sampled(dtype: DType) -> tuple[DType, int, int]:
    """What is drawn for `dtype`, and its limits; narrow integers are drawn in 32 bits."""
    narrow = dtypes.bit_width(dtype) < 32
    sampled = dtypes.int32 if narrow else dtype
    info = ml_dtypes.iinfo(sampled)
    return sampled, int(info.min), int(info.max)


def _static_randint(key: Array, shape: Shape, low: int, high: int, dtype: DType) -> Array:
    """`randint` where the bounds are numbers, so that only the drawing is left to do."""
    sampled, least, greatest = _sampled(dtype)
    width = dtypes.bit_width(sampled)
    if sampled != dtype:
        info = ml_dtypes.iinfo(dtype)
        low, high = max(low, int(info.min)), min(high, int(info.max) + 1)
    beyond = high > greatest
    low = min(max(low, least), greatest)
    high = min(max(high, least), greatest)
    span = (high - low + beyond) % 2**width if high > low else 1
    draw = RandomBits(shape, width)
    offset = draw(_half_key(key, 1))
    if span:  # else the range has every value of the dtype
        offset = offset % span
        weight = _weight(span, width)
        if weight:
            offset = (draw(_half_key(key, 0)) % span * weight + offset) % span
    return cast_to(cast_to(offset, sampled) + low, dtype)


def _half_key(key: Array, number: int) -> Array:
    """One of the two keys that a split would give."""
    return FoldIn()(key, scalar(number, dtypes.uint32))


def _weight(span: int, width: int) -> int:
    """What a unit of the higher bits counts modulo `span`, in arithmetic of `width` bits.

    It is 2**width modulo span where span has at most half the bits, and zero above: there the
    product would overflow, and the lower bits are taken alone.
    """
    root = 2 ** (width // 2) % span
    return root * root % 2**width % span


def _bound(value: Any, position: int, dtype: DType) -> Array:
    """A bound of randint as an array: integers, clipped to the range of a narrow dtype."""
    if isinstance(value, _INTEGERS):
        # Plain integers count as 64-bit ones, so that 2**32 can end a range of uint32.
        value = np.array(value, np.int64 if int(value) < 2**63 else np.uint64)
    bound = as_operand("randint", value, position)
    if not dtypes.is_integer(bound.type.dtype):
        bound = cast_to(bound, dtypes.int32)
    if dtypes.bit_width(dtype) < 32:
        info = ml_dtypes.iinfo(dtype)
        wide = cast_to(bound, dtypes.int64)
        bound = fnp.clip(wide, int(info.min), int(info.max) + (position == 3))
    return bound


def _convert_clipped(x: Array, dtype: DType) -> Array:
    """Integers in another dtype, those out of its range at its ends."""
    source, target = ml_dtypes.iinfo(x.type.dtype), ml_dtypes.iinfo(dtype)
    low = max(int(source.min), int(target.min))
    high = min(int(source.max), int(target.max))
    return cast_to(fnp.clip(x, low, high), dtype)


def _traced_randint(key: Array, shape: Shape, minval: Any, maxval: Any, dtype: DType) -> Array:
    sampled, _, greatest = _sampled(dtype)
    width = dtypes.bit_width(sampled)
    unsigned = np.dtype(f"uint{width}")
    lower, upper = _bound(minval, 2, dtype), _bound(maxval, 3, dtype)
    beyond = upper > min(greatest, int(ml_dtypes.iinfo(upper.type.dtype).max))
    low = spread("randint", _convert_clipped(lower, sampled), shape)
    high = spread("randint", _convert_clipped(upper, sampled), shape)
    wanted = high > low
    span = cast_to(high - low, unsigned) + cast_to(spread("randint", beyond, shape), unsigned)
    span = fnp.where(wanted, span, 1)
    # A span of 2**width has wrapped to zero: the range has every value of the dtype.
    whole = span == 0
    divisor = fnp.where(whole, 1, span)
    draw = RandomBits(shape, width)
    higher, offset = draw(_half_key(key, 0)), draw(_half_key(key, 1))
    root = scalar(2 ** (width // 2), unsigned) % divisor
    weight = root * root % divisor
    remainder = (higher % divisor * weight + offset % divisor) % divisor
    offset = fnp.where(whole, offset, remainder)
    return cast_to(cast_to(offset, sampled) + low, dtype)


# --- coins ----------------------------------------------------------------------------------------


def bernoulli(
    key: Any, p: Any = 0.5, shape: Any = None, mode: str = "low", *, out_sharding: Any = None
) -> Array:
    """Random bools that are true with probability `p`.

    Args:
      key: a random key.
      p: probabilities, floats.
      shape: of the result; default: that of `p`, which must broadcast to it.
      mode: "low" compares `p` with one uniform number, which has the resolution of the dtype
        (1e-7 in float32); "high" with two, for small probabilities.
      out_sharding: how to split the result over a mesh.

    Raises:
      DTypeError: `p` holds no floats, or `key` is no key.
      ArgumentError: an unknown mode.

    >>> from fxarray import random
    >>> random.bernoulli(random.key(0), 0.9, (3,))
    Array([False, False,  True], dtype=bool)
    """
    single, _ = single_key("bernoulli", key)
    if mode not in ("high", "low"):
        raise ArgumentError(f"bernoulli: mode must be 'high' or 'low', got {mode!r}")
    chance = as_operand("bernoulli", p, 1)
    dtype = chance.type.dtype
    if not dtypes.is_float(dtype):
        raise DTypeError(f"bernoulli: p must be floats, got {chance.type}")
    sizes = result_shape("bernoulli", shape, chance)
    chance = spread("bernoulli", chance, sizes)
    if mode == "low":
        drawn = unit("bernoulli", single, sizes, dtype) < chance
    else:
        pair = unit("bernoulli", single, (2, *sizes), dtype)
        drawn = pair[1] * 2.0 ** -int(ml_dtypes.finfo(dtype).nmant) < chance - pair[0]
    return place("bernoulli", drawn, None, out_sharding)


def rademacher(key: Any, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None) -> Array:
    """Random signs: -1 or 1, equally often.

    Args:
      key: a random key.
      shape: of the result.
      dtype: any dtype of numbers; default int32.
      out_sharding: how to split the result over a mesh.

    >>> from fxarray import random
    >>> random.rademacher(random.key(0), (4,))
    Array([-1, -1,  1,  1], dtype=int32)
    """
    found = dtypes.int32 if dtype is None else dtypes.canonical(dtype)
    heads = bernoulli(key, 0.5, canonical_shape("rademacher", shape))
    signs = cast_to(2 * cast_to(heads, dtypes.int32) - 1, found)
    return place("rademacher", signs, None, out_sharding)
