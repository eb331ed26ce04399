"""Operations on the bits of integers, and the neighbours of floats."""

from __future__ import annotations

from typing import Any

import numpy as np

from fxarray.core import dtypes
from fxarray.primitives.convert import bits_of, from_bits
from fxarray.primitives.elementwise_base import row
from fxarray.primitives.lowering import high_product
from fxarray.primitives.support import FLOAT, INTEGER, Values

# --- shifts ---------------------------------------------------------------------------------------


def _amount(y: Values, limit: int) -> Values:
    """Shift amounts as uint64, at most `limit`; negative amounts count as too large."""
    wide = dtypes.cast(y, dtypes.int64 if dtypes.is_signed(y.dtype) else dtypes.uint64)
    return np.where((wide < 0) | (wide > limit), limit, wide).astype(np.uint64)


def _shift_left(x: Values, y: Values) -> Values:
    width = dtypes.bit_width(x.dtype)
    amount = _amount(y, width)
    shifted = bits_of(x) << np.minimum(amount, np.uint64(63))
    return from_bits(np.where(amount == width, np.uint64(0), shifted), x.dtype)


def _shift_right_logical(x: Values, y: Values) -> Values:
    width = dtypes.bit_width(x.dtype)
    amount = _amount(y, width)
    shifted = bits_of(x) >> np.minimum(amount, np.uint64(63))
    return from_bits(np.where(amount == width, np.uint64(0), shifted), x.dtype)


def _shift_right_arithmetic(x: Values, y: Values) -> Values:
    # All bits are the highest one once they are shifted by the width less one.
    width = dtypes.bit_width(x.dtype)
    amount = _amount(y, width - 1)
    unused = np.uint64(64 - width)
    signed = (bits_of(x) << unused).view(np.int64) >> (amount + unused).astype(np.int64)
    return dtypes.cast(np.asarray(signed), x.dtype)


def _fast_shift_right_logical(x: Values, y: Values) -> Any:
    unsigned = np.dtype(f"uint{8 * x.dtype.itemsize}")
    return np.right_shift(x.view(unsigned), y.view(unsigned)).view(x.dtype)


def _fast_shift_right_arithmetic(x: Values, y: Values) -> Any:
    signed = np.dtype(f"int{8 * x.dtype.itemsize}")
    return np.right_shift(x.view(signed), y.view(signed)).view(x.dtype)


# NumPy too shifts everything out, or fills with the sign, where the amount is out of range.
shift_left = row(
    "shift_left", _shift_left, INTEGER, arity=2, native=True, fast=np.left_shift,
    lowering="shl",
    doc="x shifted left by y bits; 0 if y is negative or at least the width.",
)  # fmt: skip
shift_right_logical = row(
    "shift_right_logical", _shift_right_logical, INTEGER, arity=2, native=True,
    fast=_fast_shift_right_logical,
    lowering="shr_logical",
    doc="x shifted right by y bits, zeros moving in; 0 if y is negative or at least the width.",
)  # fmt: skip
shift_right_arithmetic = row(
    "shift_right_arithmetic", _shift_right_arithmetic, INTEGER, arity=2, native=True,
    fast=_fast_shift_right_arithmetic,
    lowering="shr_arithmetic",
    doc="x shifted right by y bits, its highest bit moving in, also if x is unsigned; nothing but "
    "that bit if y is negative or at least the width.",
)  # fmt: skip

# --- counting -------------------------------------------------------------------------------------


def _population_count(x: Values) -> Values:
    return dtypes.cast(np.bitwise_count(bits_of(x)), x.dtype)


def _count_leading_zeros(x: Values) -> Values:
    bits = bits_of(x)
    length = np.zeros(bits.shape, np.uint64)
    for step in (32, 16, 8, 4, 2, 1):
        upper = bits >> np.uint64(step)
        length = np.where(upper != 0, length + np.uint64(step), length)
        bits = np.where(upper != 0, upper, bits)
    length = length + (bits != 0)
    return dtypes.cast(np.asarray(dtypes.bit_width(x.dtype) - length.astype(np.int64)), x.dtype)


population_count = row(
    "population_count", _population_count, INTEGER, native=True,
    lowering="popcount",
    doc="The number of bits set in x.",
)  # fmt: skip
clz = row(
    "clz", _count_leading_zeros, INTEGER, native=True,
    lowering="clz",
    doc="The number of zero bits above the highest bit set in x.",
)  # fmt: skip


def _high_product(x: Values, y: Values) -> Values:
    width = dtypes.bit_width(x.dtype)
    # Python's integers have no width; products of 64-bit numbers need 128 bits.
    product = np.multiply(x.astype(object), y.astype(object))
    high = np.right_shift(product, width)
    return np.asarray(high).astype(np.int64 if dtypes.is_signed(x.dtype) else np.uint64)


mulhi = row(
    "mulhi", _high_product, INTEGER, arity=2, native=True,
    lowering=high_product,
    doc="The upper half of the product of x and y, which has twice their width.",
)  # fmt: skip

# --- floats ---------------------------------------------------------------------------------------


def _next_after(x: Values, y: Values) -> Values:
    """The neighbour of x in the direction of y, for every float dtype, by stepping its bits."""
    if x.dtype in (np.float32, np.float64):
        return np.nextafter(x, y)
    x, y = np.broadcast_arrays(x, y)
    wide_x, wide_y = x.astype(np.float32), y.astype(np.float32)
    width = dtypes.bit_width(x.dtype)
    sign = np.uint64(1) << np.uint64(width - 1)
    bits = bits_of(x)
    away = (wide_y > wide_x) == (wide_x > 0)  # magnitudes are ordered as their bits are
    stepped = np.where(away, bits + np.uint64(1), bits - np.uint64(1))
    smallest = np.where(wide_y > 0, np.uint64(1), sign | np.uint64(1))
    stepped = np.where(wide_x == 0, smallest, stepped)
    moved = from_bits(stepped, x.dtype)
    moved = np.where((wide_x == wide_y) | np.isnan(wide_y), y, moved)
    return np.where(np.isnan(wide_x), x, moved)


nextafter = row(
    "nextafter", _next_after, FLOAT, arity=2, native=True, fast=np.nextafter,
    sampled_derivatives=False,
    lowering="next_after",
    doc="The next number after x in the direction of y; its derivative is taken to be 0.",
)  # fmt: skip
