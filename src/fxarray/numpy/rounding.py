"""Elementwise functions, part 2: rounding."""

from __future__ import annotations

from typing import Any

import numpy as np

from fxarray.core import dtypes
from fxarray.core.array import Array
from fxarray.numpy.arithmetic import constant, floor_divide, remainder
from fxarray.numpy.promotion import ArrayLike, as_operand, promote, reject_out, require_real
from fxarray.primitives import create
from fxarray.primitives import elementwise as e
from fxarray.primitives.convert import convert

_round_half_even = e.Round(True)


def _rounded(function: str, op: Any, x: ArrayLike) -> Array:
    value = as_operand(function, x)
    if dtypes.is_integer(value.type.dtype) or dtypes.is_bool(value.type.dtype):
        return value
    return op(require_real(function, value))


def floor(x: ArrayLike, /) -> Array:
    """The largest integer not greater than x, in x's dtype."""
    return _rounded("floor", e.floor, x)


def ceil(x: ArrayLike, /) -> Array:
    """The smallest integer not less than x, in x's dtype."""
    return _rounded("ceil", e.ceil, x)


def trunc(x: ArrayLike) -> Array:
    """x rounded towards zero."""
    value = as_operand("trunc", x)
    if not dtypes.is_float(value.type.dtype):
        return _rounded("trunc", e.floor, value)
    return e.select(e.lt(value, constant(0, value)), e.ceil(value), e.floor(value))


fix = trunc


def rint(x: ArrayLike, /) -> Array:
    """x rounded to the nearest integer, halves to even, in floating point."""
    (value,) = promote("rint", x, inexact=True)
    return round(value)


def round(a: ArrayLike, decimals: int = 0, out: None = None) -> Array:
    """`a` rounded to `decimals` places, halves to even.

    Args:
      a: real or complex numbers.
      decimals: the number of places after the point; negative: before it.
      out: not supported.

    >>> import fxarray.numpy as fnp
    >>> fnp.round(fnp.array([0.5, 1.5, 2.345]), 2)
    Array([0.5 , 1.5 , 2.34], dtype=float32)
    """
    reject_out("round", out)
    places = decimals.__index__()
    x = as_operand("round", a)
    dtype = x.type.dtype
    if dtypes.is_integer(dtype) or dtypes.is_bool(dtype):
        if places >= 0 or dtypes.is_bool(dtype):
            return x
        factor = constant(10**-places, x) if 10**-places <= dtypes.iinfo(dtype).max else None
        return create.full(x.type, 0) if factor is None else _round_integer(x, factor)
    if dtypes.is_complex(dtype):
        return e.complex(round(e.real(x), places), round(e.imag(x), places))
    if places == 0:
        return _round_half_even(x)
    wide = convert(x, dtypes.accumulator(dtype), x.type.weak)
    factor = constant(10.0 ** np.abs(places), wide)
    if places > 0:
        rounded = e.div(_round_half_even(e.mul(wide, factor)), factor)
    else:
        rounded = e.mul(_round_half_even(e.div(wide, factor)), factor)
    return convert(rounded, dtype, x.type.weak)


def _round_integer(x: Array, factor: Array) -> Array:
    below = e.mul(floor_divide(x, factor), factor)
    over = e.sub(x, below)
    half = e.div(factor, constant(2, factor))
    odd = e.ne(remainder(floor_divide(x, factor), constant(2, x)), constant(0, x))
    up = e.bitwise_or(e.gt(over, half), e.bitwise_and(e.eq(over, half), odd))
    return e.select(up, e.add(below, factor), below)


around = round
