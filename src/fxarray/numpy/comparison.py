"""Elementwise functions, part 3: comparison, logic, bits, tests, closeness."""

from __future__ import annotations

from typing import Any

import numpy as np

from fxarray.core import dims, dtypes
from fxarray.core.array import Array
from fxarray.core.errors import DTypeError
from fxarray.numpy.apply import binary, require_integer, unary
from fxarray.numpy.arithmetic import constant
from fxarray.numpy.conversion import asarray
from fxarray.numpy.promotion import ArrayLike, as_operand, promote, reject_out
from fxarray.primitives import create
from fxarray.primitives import elementwise as e
from fxarray.primitives.convert import convert


def equal(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Whether x equals y; NaN equals nothing.

    >>> import fxarray.numpy as fnp
    >>> fnp.equal(fnp.arange(3), 1)
    Array([False,  True, False], dtype=bool)
    """
    return binary("equal", e.eq, x, y)


def not_equal(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Whether x differs from y."""
    return binary("not_equal", e.ne, x, y)


def _ordered(function: str, op: Any, x: ArrayLike, y: ArrayLike) -> Array:
    a, b = promote(function, x, y)
    if not dtypes.is_complex(a.type.dtype):
        return op(a, b)
    # Complex numbers are ordered as pairs, as NumPy does.
    real_a, real_b = e.real(a), e.real(b)
    return e.select(e.eq(real_a, real_b), op(e.imag(a), e.imag(b)), op(real_a, real_b))


def less(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Whether x < y; complex numbers are compared by real part, then by imaginary part."""
    return _ordered("less", e.lt, x, y)


def less_equal(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Whether x <= y."""
    return _ordered("less_equal", e.le, x, y)


def greater(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Whether x > y."""
    return _ordered("greater", e.gt, x, y)


def greater_equal(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Whether x >= y."""
    return _ordered("greater_equal", e.ge, x, y)


# --- logic ----------------------------------------------------------------------------------------


def as_bool(function: str, x: Any, position: int = 0) -> Array:
    """`x` as bools: whether elements differ from zero."""
    return convert(as_operand(function, x, position), dtypes.bool_)


def _logical(function: str, op: Any, x: Any, y: Any) -> Array:
    return binary(function, op, as_bool(function, x), as_bool(function, y, 1))


def logical_and(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Whether both are true (not zero)."""
    return _logical("logical_and", e.bitwise_and, x, y)


def logical_or(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Whether one or both are true (not zero)."""
    return _logical("logical_or", e.bitwise_or, x, y)


def logical_xor(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Whether exactly one is true (not zero)."""
    return _logical("logical_xor", e.bitwise_xor, x, y)


def logical_not(x: ArrayLike, /) -> Array:
    """Whether x is false (zero)."""
    return e.bitwise_not(as_bool("logical_not", x))


# --- bits -----------------------------------------------------------------------------------------


def bitwise_and(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The bits set in both; of bools, the logical and."""
    return binary("bitwise_and", e.bitwise_and, x, y)


def bitwise_or(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The bits set in either; of bools, the logical or."""
    return binary("bitwise_or", e.bitwise_or, x, y)


def bitwise_xor(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The bits set in exactly one."""
    return binary("bitwise_xor", e.bitwise_xor, x, y)


def bitwise_not(x: ArrayLike, /) -> Array:
    """All bits flipped; of bools, the logical not."""
    return unary("bitwise_not", e.bitwise_not, x)


bitwise_invert = bitwise_not
invert = bitwise_not


def left_shift(x: ArrayLike, y: ArrayLike, /) -> Array:
    """x with its bits moved y places up; 0 if y is the width of the dtype or more."""
    a, b = promote("left_shift", x, y)
    require_integer("left_shift", a)
    return e.shift_left(a, b)


bitwise_left_shift = left_shift


def right_shift(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """x1 with its bits moved x2 places down; the sign is kept."""
    a, b = promote("right_shift", x1, x2)
    require_integer("right_shift", a)
    if dtypes.is_unsigned(a.type.dtype):
        return e.shift_right_logical(a, b)
    return e.shift_right_arithmetic(a, b)


bitwise_right_shift = right_shift

# --- tests ----------------------------------------------------------------------------------------


def _false(x: Array) -> Array:
    return create.full(x.type.replace(dtype=dtypes.bool_, weak=False), False)


def _numbers(function: str, x: Any) -> Array:
    value = as_operand(function, x)
    if dtypes.is_key(value.type.dtype):
        raise DTypeError(f"{function} takes numbers, got random keys of type {value.type}")
    return value


def isnan(x: ArrayLike, /) -> Array:
    """Whether x is NaN."""
    value = _numbers("isnan", x)
    return e.ne(value, value)


def isfinite(x: ArrayLike, /) -> Array:
    """Whether x is neither NaN nor infinite."""
    value = _numbers("isfinite", x)
    if dtypes.is_complex(value.type.dtype):
        return e.bitwise_and(e.is_finite(e.real(value)), e.is_finite(e.imag(value)))
    if dtypes.is_float(value.type.dtype):
        return e.is_finite(value)
    return e.bitwise_not(_false(value))


def isinf(x: ArrayLike, /) -> Array:
    """Whether x is infinite, of either sign."""
    value = _numbers("isinf", x)
    if dtypes.is_complex(value.type.dtype):
        return e.bitwise_or(isinf(e.real(value)), isinf(e.imag(value)))
    if dtypes.is_float(value.type.dtype):
        return e.eq(e.abs(value), constant(np.inf, value))
    return _false(value)


def _is_infinity(function: str, x: Any, infinity: float) -> Array:
    value = _numbers(function, x)
    if dtypes.is_float(value.type.dtype):
        return e.eq(value, constant(infinity, value))
    return _false(value)


def isposinf(x: ArrayLike, /, out: None = None) -> Array:
    """Whether x is positive infinity."""
    reject_out("isposinf", out)
    return _is_infinity("isposinf", x, np.inf)


def isneginf(x: ArrayLike, /, out: None = None) -> Array:
    """Whether x is negative infinity."""
    reject_out("isneginf", out)
    return _is_infinity("isneginf", x, -np.inf)


def iscomplex(x: ArrayLike) -> Array:
    """Whether the imaginary part differs from zero."""
    value = as_operand("iscomplex", x)
    if not dtypes.is_complex(value.type.dtype):
        return _false(value)
    part = e.imag(value)
    return e.ne(part, constant(0, part))


def isreal(x: ArrayLike) -> Array:
    """Whether the imaginary part is zero."""
    return e.bitwise_not(iscomplex(x))


def signbit(x: ArrayLike, /) -> Array:
    """Whether the sign is negative, also of -0.0 and of NaN."""
    value = as_operand("signbit", x)
    if dtypes.is_float(value.type.dtype):
        width = dtypes.bit_width(value.type.dtype)
        integer = dtypes.canonical(f"int{width}")
        bits = e.BitcastConvertType(integer)(value)
        return e.lt(bits, constant(0, bits))
    if dtypes.is_bool(value.type.dtype) or dtypes.is_unsigned(value.type.dtype):
        return _false(value)
    return e.lt(value, constant(0, value))


# --- closeness ------------------------------------------------------------------------------------


def isclose(
    a: ArrayLike,
    b: ArrayLike,
    rtol: ArrayLike = 1e-5,
    atol: ArrayLike = 1e-8,
    equal_nan: bool = False,
) -> Array:
    """Whether |a - b| <= atol + rtol * |b|.

    Args:
      a: an array.
      b: the array taken as the reference.
      rtol: the relative tolerance.
      atol: the absolute tolerance.
      equal_nan: whether two NaNs are close.
    """
    x, y = promote("isclose", a, b)
    if not dtypes.is_inexact(x.type.dtype):
        x, y = promote("isclose", x, y, inexact=True)
    relative, absolute = (asarray(t, dtype=dtypes.to_real(x.type.dtype)) for t in (rtol, atol))
    limit = (
        e.add(absolute, e.mul(relative, e.abs(y)))
        if not relative.ndim and not absolute.ndim
        else None
    )
    if limit is None:
        scaled = binary("isclose", e.mul, relative, e.abs(y))
        limit = binary("isclose", e.add, absolute, scaled)
    near = binary("isclose", e.le, e.abs(e.sub(x, y)), limit)
    finite = (
        e.bitwise_and(isfinite(x), isfinite(y))
        if x.ndim == y.ndim
        else logical_and(isfinite(x), isfinite(y))
    )
    result = logical_or(logical_and(near, finite), e.eq(x, y))
    return logical_or(result, logical_and(isnan(x), isnan(y))) if equal_nan else result


def allclose(
    a: ArrayLike,
    b: ArrayLike,
    rtol: ArrayLike = 1e-5,
    atol: ArrayLike = 1e-8,
    equal_nan: bool = False,
) -> Array:
    """Whether all elements are close; see `isclose`."""
    return isclose(a, b, rtol, atol, equal_nan).all()


def array_equal(a1: ArrayLike, a2: ArrayLike, equal_nan: bool = False) -> Array:
    """Whether shapes and all elements are equal.

    Args:
      a1: an array.
      a2: another.
      equal_nan: whether two NaNs are equal.
    """
    x, y = asarray(a1), asarray(a2)
    if len(x.shape) != len(y.shape) or not all(map(dims.same, x.shape, y.shape)):
        return asarray(False)
    same = equal(x, y)
    if equal_nan:
        same = logical_or(same, logical_and(isnan(x), isnan(y)))
    return same.all()


def array_equiv(a1: ArrayLike, a2: ArrayLike) -> Array:
    """Whether the arrays are equal after broadcasting; False where they do not broadcast."""
    x, y = asarray(a1), asarray(a2)
    try:
        np.broadcast_shapes(x.shape, y.shape)  # type: ignore[arg-type]
    except ValueError:
        return asarray(False)
    return equal(x, y).all()
