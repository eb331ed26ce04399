"""What each scalar operation of the kernel IR does, in NumPy: the definition that devices follow.

Operands are arrays of the dtypes of the nodes. Floats of 16 bits or fewer are computed in float32,
float32 in float64, and rounded once; integers wrap; nothing warns.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import scipy

from fxarray.core import dtypes
from fxarray.kernel.operations import COMPARISONS, PREDICATES

Values: TypeAlias = np.ndarray[Any, Any]


def numpy_dtype(name: str) -> np.dtype[Any]:
    """The NumPy dtype of a kernel's dtype."""
    return dtypes.physical(dtypes.from_short_name(name))


def evaluate(op: str, args: Sequence[Values], dtype: str) -> Values:
    """The values of one operation.

    Args:
      op: its name.
      args: arrays whose shapes broadcast.
      dtype: the dtype of the result.
    """
    target = numpy_dtype(dtype)
    with np.errstate(all="ignore"):
        if op == "convert":
            return dtypes.cast(args[0], target)
        if op == "bitcast":
            return bits_to(bits_of(args[0]), target)
        if op == "next_after":
            return np.asarray(_next_after(*args))
        if op in ("clz", "ctz", "popcount", "shl", "shr_logical", "shr_arithmetic"):
            return _ON_BITS[op](*args)
        if op == "fma" and target == np.float64:
            return multiply_add_once(*args)
        wide = [_wide(array) for array in args]
        if op == "fma" and wide[0].dtype == np.float32:
            # The product is not rounded, so it does not overflow either.
            wide = [array.astype(np.float64) for array in wide]
        value = np.asarray(_FUNCTIONS[op](*wide))
        if op in COMPARISONS or op in PREDICATES:
            return value
        if dtypes.is_narrow_float(target):
            value = value.astype(np.float32)
        return dtypes.cast(value, target)


def _wide(array: Values) -> Values:
    """The operand in the dtype that its operation is computed in."""
    dtype = array.dtype
    if dtypes.is_narrow_float(dtype):
        return array.astype(np.float32)
    if dtype == np.float32:
        return array.astype(np.float64)
    if dtype == np.complex64:
        return array.astype(np.complex128)
    if dtypes.is_integer(dtype) and dtypes.bit_width(dtype) < 8:
        return array.astype(np.int8 if dtypes.is_signed(dtype) else np.uint8)
    return array


# --- bits -----------------------------------------------------------------------------------------


def bits_of(array: Values) -> Values:
    """The bits of each element, as the low bits of a uint64."""
    unsigned = np.dtype(f"uint{8 * array.dtype.itemsize}")
    bits = np.ascontiguousarray(array).reshape(array.shape).view(unsigned).astype(np.uint64)
    return bits & _low_bits(dtypes.bit_width(array.dtype))


def bits_to(bits: Values, dtype: np.dtype[Any]) -> Values:
    """The inverse of `bits_of`."""
    if dtypes.is_integer(dtype) and dtypes.bit_width(dtype) < 8:
        return dtypes.cast(bits, dtype)
    unsigned = np.dtype(f"uint{8 * dtype.itemsize}")
    return np.asarray(bits.astype(unsigned)).view(dtype)


def _low_bits(count: int) -> np.uint64:
    return np.uint64((1 << count) - 1)


def _amount(array: Values, limit: int) -> Values:
    """Shift amounts, at most `limit`; negative ones count as too large."""
    wide = dtypes.cast(array, dtypes.int64 if dtypes.is_signed(array.dtype) else dtypes.uint64)
    return np.where((wide < 0) | (wide > limit), limit, wide).astype(np.uint64)


def _shift(x: Values, y: Values, left: bool) -> Values:
    width = dtypes.bit_width(x.dtype)
    amount = _amount(y, width)
    safe = np.minimum(amount, np.uint64(63))
    shifted = bits_of(x) << safe if left else bits_of(x) >> safe
    kept = shifted & _low_bits(width)
    return bits_to(np.where(amount == width, np.uint64(0), kept), x.dtype)


def _shift_arithmetic(x: Values, y: Values) -> Values:
    # All bits are the highest one once they are shifted by the width less one.
    width = dtypes.bit_width(x.dtype)
    unused = np.uint64(64 - width)
    amount = (_amount(y, width - 1) + unused).astype(np.int64)
    signed = (bits_of(x) << unused).view(np.int64) >> amount
    return dtypes.cast(np.asarray(signed), x.dtype)


def _popcount(x: Values) -> Values:
    return dtypes.cast(np.asarray(np.bitwise_count(bits_of(x))), x.dtype)


def _length(bits: Values) -> Values:
    """The position after the highest bit set."""
    length = np.zeros(bits.shape, np.int64)
    for step in (32, 16, 8, 4, 2, 1):
        upper = bits >> np.uint64(step)
        length = np.where(upper != 0, length + step, length)
        bits = np.where(upper != 0, upper, bits)
    return length + (bits != 0)


def _leading_zeros(x: Values) -> Values:
    return dtypes.cast(dtypes.bit_width(x.dtype) - _length(bits_of(x)), x.dtype)


def _trailing_zeros(x: Values) -> Values:
    bits = bits_of(x)
    lowest = bits & (~bits + np.uint64(1))
    width = dtypes.bit_width(x.dtype)
    return dtypes.cast(np.where(bits == 0, width, _length(lowest) - 1), x.dtype)


_ON_BITS: dict[str, Callable[..., Values]] = {
    "shl": lambda x, y: _shift(x, y, True),
    "shr_logical": lambda x, y: _shift(x, y, False),
    "shr_arithmetic": _shift_arithmetic,
    "popcount": _popcount,
    "clz": _leading_zeros,
    "ctz": _trailing_zeros,
}


# --- arithmetic -----------------------------------------------------------------------------------


def _next_after(x: Values, y: Values) -> Values:
    """Neighbours, by stepping bits: magnitudes are ordered as their bits are."""
    x, y = np.broadcast_arrays(x, y)
    if x.dtype in (np.float32, np.float64):
        return np.nextafter(x, y)
    wide_x, wide_y = x.astype(np.float32), y.astype(np.float32)
    bits = bits_of(x)
    away = (wide_y > wide_x) == (wide_x > 0)
    stepped = np.where(away, bits + np.uint64(1), bits - np.uint64(1))
    sign = np.uint64(1) << np.uint64(dtypes.bit_width(x.dtype) - 1)
    stepped = np.where(wide_x == 0, np.where(wide_y > 0, 1, sign | np.uint64(1)), stepped)
    moved = np.where((wide_x == wide_y) | np.isnan(wide_y), y, bits_to(stepped, x.dtype))
    return np.where(np.isnan(wide_x), x, moved)


def _is_integer(x: Values) -> bool:
    return x.dtype.kind in "iu"


def _divide(x: Values, y: Values) -> Any:
    if x.dtype.kind == "c":
        return complex_quotient(x, y)
    if not _is_integer(x):
        return np.divide(x, y)
    safe = np.where(y == 0, np.ones((), y.dtype), y)
    whole = np.floor_divide(np.subtract(x, np.fmod(x, safe)), safe)
    return np.where(y == 0, np.zeros((), x.dtype), whole)


def complex_of(re: Values, im: Values) -> Values:
    """Complex numbers of their parts."""
    result = np.empty(np.broadcast_shapes(re.shape, im.shape), np.result_type(re, np.complex64))
    result.real, result.imag = re, im
    return result


def complex_quotient(x: Values, y: Values) -> Values:
    """x / y; infinite or zero, not NaN, where the C standard (annex G.5.1) says so."""
    x, y = np.broadcast_arrays(x, y)
    result: Values = np.asarray(np.divide(x, y))
    a, b, c, d = x.real, x.imag, y.real, y.imag
    lost = np.isnan(result.real) & np.isnan(result.imag)
    x_infinite, y_infinite = np.isinf(a) | np.isinf(b), np.isinf(c) | np.isinf(d)
    x_known, y_known = ~(np.isnan(a) | np.isnan(b)), ~(np.isnan(c) | np.isnan(d))
    by_zero = lost & (y == 0) & ~(np.isnan(a) & np.isnan(b))
    infinity = np.copysign(np.inf, c)
    result = np.where(by_zero, complex_of(infinity * a, infinity * b), result)
    a1, b1, c1, d1 = (np.copysign(np.isinf(part).astype(float), part) for part in (a, b, c, d))
    huge = complex_of(np.inf * (a1 * c + b1 * d), np.inf * (b1 * c - a1 * d))
    result = np.where(lost & ~by_zero & x_infinite & y_known & ~y_infinite, huge, result)
    tiny = complex_of(0.0 * (a * c1 + b * d1), 0.0 * (b * c1 - a * d1))
    return np.where(lost & y_infinite & x_known & ~x_infinite, tiny, result)


def _remainder(x: Values, y: Values) -> Any:
    if not _is_integer(x):
        return np.fmod(x, y)
    safe = np.where(y == 0, np.ones((), y.dtype), y)
    return np.where(y == 0, np.zeros((), x.dtype), np.fmod(x, safe))


def _power(x: Values, y: Values) -> Any:
    if x.dtype.kind == "c":
        value = np.where((x == 0) & (y.real > 0), 0.0, np.power(x, y))
        return np.where(y == 0, 1.0, value)
    if not _is_integer(x):
        return np.power(x, y)
    x, y = np.broadcast_arrays(x, y)
    remaining = np.where(y < 0, np.zeros((), y.dtype), y).astype(np.uint64)
    result, factor = np.ones(x.shape, x.dtype), x
    while remaining.any():
        odd = (remaining & np.uint64(1)).astype(bool)
        result = np.where(odd, np.multiply(result, factor), result)
        factor = np.multiply(factor, factor)
        remaining = remaining >> np.uint64(1)
    minus_one = np.where(y % 2 == 0, 1, -1).astype(x.dtype)
    inverse = np.where(x == np.array(-1).astype(x.dtype), minus_one, (x == 1).astype(x.dtype))
    return np.where(y < 0, inverse, result)


def _sign(x: Values) -> Any:
    if x.dtype.kind == "c":
        size = np.abs(x)
        return np.where(size == 0, np.zeros((), x.dtype), x / np.where(size == 0, 1.0, size))
    return np.where(x == 0, x, np.sign(x)) if x.dtype.kind == "f" else np.sign(x)


def _logistic(x: Values) -> Any:
    # The exponential of a negative number does not overflow.
    small = np.exp(np.where(x.real > 0, -x, x))
    return np.where(x.real > 0, np.ones((), x.dtype), small) / (1 + small)


def _angle(y: Values, x: Values) -> Any:
    if y.dtype.kind != "c":
        return np.arctan2(y, x)
    return -1j * np.log((x + 1j * y) / np.sqrt(x * x + y * y))


def _reciprocal_root(x: Values) -> Any:
    root = np.sqrt(x)
    return _divide(np.ones((), root.dtype), root)


def _exp2(x: Values) -> Any:
    return np.exp(x * np.log(2.0)) if x.dtype.kind == "c" else np.exp2(x)


def multiply_add_once(x: Values, y: Values, z: Values) -> Values:
    """x * y + z of float64, rounded once, by rational arithmetic."""
    x, y, z = np.broadcast_arrays(x, y, z)
    plain = x * y + z
    columns = [array.ravel().tolist() for array in (x, y, z, plain)]
    flat = [_rounded_once(*elements) for elements in zip(*columns, strict=True)]
    return np.array(flat, np.float64).reshape(x.shape)


def _rounded_once(x: float, y: float, z: float, plain: float) -> float:
    if not (math.isfinite(x) and math.isfinite(y) and math.isfinite(z)):
        # The product of finite numbers is finite before it is rounded.
        return z if math.isfinite(x) and math.isfinite(y) else plain
    exact = Fraction(x) * Fraction(y) + Fraction(z)
    if exact == 0:
        return plain  # a zero, with the sign that IEEE arithmetic gives it
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def _special(name: str) -> Callable[..., Any]:
    # SciPy loads `scipy.special` when it is first asked for.
    def function(*args: Values) -> Any:
        return getattr(scipy.special, name)(*args)

    return function


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "neg": np.negative,
    "abs": np.absolute,
    "sign": _sign,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "round": np.rint,
    "sqrt": np.sqrt,
    "rsqrt": _reciprocal_root,
    "cbrt": np.cbrt,
    "exp": np.exp,
    "exp2": _exp2,
    "expm1": np.expm1,
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "log1p": np.log1p,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "logistic": _logistic,
    "erf": _special("erf"),
    "erfc": _special("erfc"),
    "erf_inv": _special("erfinv"),
    "lgamma": _special("gammaln"),
    "digamma": _special("psi"),
    "not": np.invert,
    "conj": np.conjugate,
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": _divide,
    "rem": _remainder,
    "pow": _power,
    "min": np.minimum,
    "max": np.maximum,
    "atan2": _angle,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "copysign": np.copysign,
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "is_nan": np.isnan,
    "is_finite": np.isfinite,
    "is_inf": np.isinf,
    "sign_bit": np.signbit,
    "select": np.where,
    "fma": lambda a, b, c: a * b + c,
    "complex": complex_of,
    "real": np.real,
    "imag": np.imag,
}
