"""Conversion between dtypes in NumPy: the definition of the primitive `convert_element_type`.

NumPy leaves a float outside an integer's range undefined and warns of what it does; here every
pair of dtypes has one defined result, and there are no warnings.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import ml_dtypes
import numpy as np

from fxarray.core import dtype_table as table
from fxarray.core.errors import DTypeError

_NATIVE_INTEGERS = tuple(d for d in (*table.SIGNED, *table.UNSIGNED) if table.bit_width(d) >= 8)
_WIDE_FLOATS = (table.float32, table.float64, *table.COMPLEXES)

# Pairs for which NumPy's own conversion is the definition and cannot warn: most casts in practice.
_DIRECT = frozenset(
    (source, target)
    for source in (table.bool_, *_NATIVE_INTEGERS, table.bfloat16, table.float16, *_WIDE_FLOATS)
    for target in (*_NATIVE_INTEGERS, *_WIDE_FLOATS)
    if table.is_integer(source)
    or table.is_bool(source)
    or (np.can_cast(source, target, "safe") and table.is_inexact(target))
    # Widening the bits of a signalling NaN to 64 warns.
    if not (table.is_inexact(source) and target in (table.float64, table.complex128))
)


def cast(array: np.ndarray[Any, Any], dtype: table.DType) -> np.ndarray[Any, Any]:
    """`array` with its elements converted to `dtype`.

    - To bool: whether the element differs from zero (NaN does).
    - Complex to real: the imaginary part is dropped.
    - Float to integer: truncated towards zero, saturated at the ends of the range, NaN becomes 0.
    - Integer to narrower integer: the low bits are kept (it wraps).
    - To a float: rounded to nearest, ties to even. Floats of 16 bits or fewer are reached through
      float32, as on every device.

    Args:
      array: any array of a supported dtype; it is returned itself when it has `dtype` already.
      dtype: the dtype to convert to.

    Raises:
      DTypeError: keys and float0 have no conversion to or from numbers.

    >>> cast(np.array([300.7, -1.0, np.nan]), np.dtype("uint8"))
    array([255,   0,   0], dtype=uint8)
    """
    if isinstance(dtype, table.KeyDType):
        raise DTypeError("numbers cannot be cast to random keys; make a key by random.key(seed)")
    source = array.dtype
    if source == dtype:
        return array
    if (source, dtype) in _DIRECT:
        return array.astype(dtype)
    if not table.is_numeric(source) or not table.is_numeric(dtype):
        raise DTypeError(f"no conversion from {table.name(source)} to {table.name(dtype)}")
    with np.errstate(all="ignore"):
        if dtype == table.bool_:
            return np.asarray(_plain(array) != 0)
        if table.is_complex(dtype):
            return np.asarray(_plain(array)).astype(dtype)
        if table.is_complex(source):
            array = array.real
        if table.is_float(dtype):
            return _to_float(array, dtype)
        if table.is_float(array.dtype):
            return _saturate(array, dtype)
        return _wrap(array, dtype)


def _plain(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """`array` exactly, in a dtype of NumPy's own."""
    dtype = array.dtype
    if dtype in table.NARROW_SIGNED:
        return array.astype(np.int8)
    if dtype in table.NARROW_UNSIGNED:
        return array.astype(np.uint8)
    return array.astype(np.float32) if dtype in table.EXTENSION else array


def _to_float(array: np.ndarray[Any, Any], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    plain = _plain(array)
    if table.is_narrow_float(dtype):
        plain = plain.astype(np.float32)
    return np.asarray(plain.astype(dtype))


@lru_cache(maxsize=64)
def _range(dtype: np.dtype[Any]) -> tuple[int, int]:
    info = ml_dtypes.iinfo(dtype)
    return int(info.min), int(info.max)


def _saturate(array: np.ndarray[Any, Any], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    low, high = _range(dtype)
    plain = _plain(array)
    # Where rounding moves a bound, it moves inwards, so what passes here is inside.
    if ((plain > low - 1.0) & (plain < high + 1.0)).all():
        return np.asarray(plain.astype(dtype))
    value = np.trunc(plain.astype(np.float64))
    # high + 1 is a power of two, hence exact in float64 even where high itself is not.
    above, below = value >= float(high + 1), value < float(low)
    inside = np.where(np.isnan(value) | above | below, 0.0, value)
    carrier = np.dtype(np.uint64 if low == 0 else np.int64)
    integers = inside.astype(carrier)
    integers = np.where(above, carrier.type(high), np.where(below, carrier.type(low), integers))
    return np.asarray(integers.astype(dtype))


def _wrap(array: np.ndarray[Any, Any], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    plain = _plain(array)
    bits = table.bit_width(dtype)
    if bits >= 8:
        return np.asarray(plain.astype(dtype))
    low_bits = plain.astype(np.uint8) & np.uint8((1 << bits) - 1)
    if table.is_unsigned(dtype):
        return np.asarray(low_bits.astype(dtype))
    shift = np.uint8(8 - bits)
    signed = (low_bits << shift).view(np.int8) >> np.int8(8 - bits)
    return np.asarray(signed.astype(dtype))
