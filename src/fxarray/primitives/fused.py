"""x * y + z with one rounding at the end.

Processors have it as one instruction, and compilers put it in where they find a product that is
added to something; whether they do changes the last bit of a result. Where that bit matters
(uniform numbers in a range equal JAX's to the last), the operation is asked for by name.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fxarray.core.errors import DTypeError
from fxarray.kernel.scalars import multiply_add_once
from fxarray.primitives.elementwise import mul
from fxarray.primitives.elementwise_base import row
from fxarray.primitives.support import FLOAT

_Floats = np.ndarray[Any, np.dtype[Any]]

# Magnitudes between which the error terms of float64 products neither overflow nor underflow.
_SMALL, _LARGE = 2.0**-400, 2.0**400
# The bits of a float64 that a float32 lacks, their pattern half-way between two float32, and the
# least normal float32.
_BELOW_FLOAT32, _HALF_WAY, _NORMAL_FLOAT32 = (1 << 29) - 1, 1 << 28, 2.0**-126
_SPLITTER = 2.0**27 + 1.0


def multiply_add_exactly(x: Any, y: Any, z: Any) -> _Floats:
    """The definition: float64 operands by rational arithmetic, narrower ones in float64.

    Raises:
      DTypeError: the operands are of no dtype that it can compute.
    """
    x, y, z = np.broadcast_arrays(x, y, z)
    if x.dtype == np.float32:
        return _multiply_add_float32(x, y, z)
    if x.dtype != np.float64:
        raise DTypeError(f"fused_multiply_add is not defined for {x.dtype}")
    return multiply_add_once(x, y, z)


def _two_sum(x: _Floats, y: _Floats) -> tuple[_Floats, _Floats]:
    """The rounded sum and its error, exactly (D. E. Knuth, TAOCP 2, theorem 4.2.2 B)."""
    total = x + y
    back = total - x
    return total, (x - (total - back)) + (y - back)


def _sum_to_odd(x: _Floats, y: _Floats) -> _Floats:
    """The sum, where inexact rounded to the neighbour whose last bit is set.

    Rounding that once more, to a shorter format, gives what one rounding would have given.
    """
    total, error = _two_sum(x, y)
    even = (total.view(np.int64) & 1) == 0
    towards = np.where(error > 0, np.inf, -np.inf)
    return np.where((error != 0) & even, np.nextafter(total, towards), total)


def _multiply_add_float32(x: _Floats, y: _Floats, z: _Floats) -> _Floats:
    # A product of two float32 is exact in float64; only the sum is rounded, to odd.
    product = x.astype(np.float64) * y.astype(np.float64)
    return _sum_to_odd(product, z.astype(np.float64)).astype(np.float32)


def _multiply_add_float32_fast(x: Any, y: Any, z: Any) -> _Floats:
    total = np.asarray(x.astype(np.float64) * y.astype(np.float64) + z)
    result = total.astype(np.float32)
    # Rounding twice goes wrong only from half-way between two float32, or below their normal range.
    doubtful = (total.view(np.int64) & _BELOW_FLOAT32) == _HALF_WAY
    doubtful |= np.abs(total) < _NORMAL_FLOAT32
    if doubtful.any():
        x, y, z = np.broadcast_arrays(x, y, z)
        result[doubtful] = _multiply_add_float32(x[doubtful], y[doubtful], z[doubtful])
    return result


def _split(x: _Floats) -> tuple[_Floats, _Floats]:
    scaled = _SPLITTER * x
    high = scaled - (scaled - x)
    return high, x - high


def _multiply_add_float64(x: _Floats, y: _Floats, z: _Floats) -> _Floats:
    """Emulated with float64 operations.

    Source: S. Boldo, G. Melquiond, "Emulation of FMA and correctly rounded sums: proved algorithms
    using rounding to odd", IEEE Transactions on Computers 57(4), 2008.
    """
    (x_high, x_low), (y_high, y_low) = _split(x), _split(y)
    product = x * y
    error = x_low * y_low - (((product - x_high * y_high) - x_low * y_high) - x_high * y_low)
    high, low = _two_sum(z, error)
    total, rest = _two_sum(product, high)
    return total + _sum_to_odd(rest, low)


def multiply_add_fast(x: Any, y: Any, z: Any) -> _Floats:
    """The same in whole-array operations; elements of extreme size go the slow way."""
    with np.errstate(all="ignore"):
        if x.dtype == np.float32:
            return _multiply_add_float32_fast(x, y, z)
        x, y, z = np.broadcast_arrays(x, y, z)
        result = _multiply_add_float64(x, y, z)
        usual = np.ones(x.shape, bool)
        for operand in (x, y, z):
            size = np.abs(operand)
            usual &= ((size > _SMALL) & (size < _LARGE)) | (size == 0)
        # A zero result has its sign from the operands, not from the error terms.
        unusual = ~usual | (result == 0)
        if unusual.any():
            result = np.array(result)
            result[unusual] = multiply_add_exactly(x[unusual], y[unusual], z[unusual])
        return result


fused_multiply_add = row(
    "fused_multiply_add",
    multiply_add_exactly,
    FLOAT,
    arity=3,
    fast=multiply_add_fast,
    derivatives=[
        lambda t, w, x, y, z: mul(t, y),
        lambda t, w, x, y, z: mul(x, t),
        lambda t, w, x, y, z: t,
    ],
    transposes=[
        lambda ct, x, y, z: mul(ct, y),
        lambda ct, x, y, z: mul(x, ct),
        lambda ct, x, y, z: ct,
    ],
    lowering="fma",
    doc="Elementwise x * y + z, rounded once.",
)
