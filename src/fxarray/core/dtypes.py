"""dtypes: their names and families, what Python scalars become, and promotion.

Promotion is JAX's lattice with 64-bit types switched on, and one rule more: a type that comes from
a *default* (a Python scalar, a true division of integers) is 32 bits wide, unless an operand is
already 64 bits wide. Python scalars are *weak*: they take the type of what they meet.

    >>> import numpy as np
    >>> promote((float16, float32), (False, True))  # a float16 array and a Python float
    (dtype('float16'), False)
    >>> promote_types("int32", "float16"), promote_types("bfloat16", "float16")
    (dtype('float16'), dtype('float32'))
"""

from __future__ import annotations

from typing import Any
from typing import cast as type_cast

import ml_dtypes
import numpy as np

from fxarray.core import dtype_table as table
from fxarray.core.casting import cast
from fxarray.core.dtype_table import (
    DType,
    KeyDType,
    bfloat16,
    bit_width,
    bool_,
    canonical,
    complex64,
    complex128,
    float0,
    float4_e2m1fn,
    float6_e2m3fn,
    float6_e3m2fn,
    float8_e3m4,
    float8_e4m3,
    float8_e4m3b11fnuz,
    float8_e4m3fn,
    float8_e4m3fnuz,
    float8_e5m2,
    float8_e5m2fnuz,
    float8_e8m0fnu,
    float16,
    float32,
    float64,
    from_short_name,
    int2,
    int4,
    int8,
    int16,
    int32,
    int64,
    is_bool,
    is_complex,
    is_float,
    is_inexact,
    is_integer,
    is_key,
    is_narrow_float,
    is_numeric,
    is_signed,
    is_unsigned,
    key_dtype,
    name,
    physical,
    short_name,
    uint2,
    uint4,
    uint8,
    uint16,
    uint32,
    uint64,
)
from fxarray.core.errors import DTypeError
from fxarray.core.promotion import (
    accumulator,
    promote,
    promote_types,
    sum_result,
    to_complex,
    to_inexact,
    to_real,
)

__all__ = [
    "DType",
    "KeyDType",
    "accumulator",
    "bfloat16",
    "bit_width",
    "bool_",
    "canonical",
    "cast",
    "complex64",
    "complex128",
    "extended",
    "finfo",
    "float0",
    "float4_e2m1fn",
    "float6_e2m3fn",
    "float6_e3m2fn",
    "float8_e3m4",
    "float8_e4m3",
    "float8_e4m3b11fnuz",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
    "float16",
    "float32",
    "float64",
    "from_short_name",
    "iinfo",
    "int2",
    "int4",
    "int8",
    "int16",
    "int32",
    "int64",
    "is_bool",
    "is_complex",
    "is_float",
    "is_inexact",
    "is_integer",
    "is_key",
    "is_narrow_float",
    "is_numeric",
    "is_signed",
    "is_unsigned",
    "issubdtype",
    "key_dtype",
    "name",
    "physical",
    "prng_key",
    "promote",
    "promote_types",
    "scalar_array",
    "scalar_dtype",
    "short_name",
    "sum_result",
    "to_complex",
    "to_inexact",
    "to_real",
    "uint2",
    "uint4",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
]

# --- ranges --------------------------------------------------------------------------------------


def finfo(dtype_like: Any) -> Any:
    """Range and precision of a floating-point or complex dtype, ml_dtypes' included.

    Raises:
      DTypeError: the dtype is not inexact.
    """
    dtype = canonical(dtype_like)
    if not is_inexact(dtype):
        raise DTypeError(f"finfo: {name(dtype)} is not a floating-point dtype; try iinfo")
    return ml_dtypes.finfo(type_cast("np.dtype[Any]", dtype))


def iinfo(dtype_like: Any) -> Any:
    """Range of an integer dtype, ml_dtypes' included.

    Raises:
      DTypeError: the dtype is not an integer type.
    """
    dtype = canonical(dtype_like)
    if not is_integer(dtype):
        raise DTypeError(f"iinfo: {name(dtype)} is not an integer dtype; try finfo")
    return ml_dtypes.iinfo(type_cast("np.dtype[Any]", dtype))


# --- abstract families, as in JAX ----------------------------------------------------------------


class extended(np.generic):  # noqa: N801
    """The abstract family of dtypes that NumPy does not have."""


class prng_key(extended):  # noqa: N801
    """The abstract family of random-key dtypes."""


_ABSTRACT = (np.generic, np.number, np.integer, np.signedinteger, np.unsignedinteger)
_ABSTRACT_TYPES = frozenset(
    (*_ABSTRACT, np.inexact, np.floating, np.complexfloating, np.flexible, np.character)
    + (extended, prng_key)
)


def _family(dtype_like: Any) -> type[np.generic]:
    """The scalar type, or for a dtype foreign to NumPy the abstract type, of `dtype_like`."""
    if isinstance(dtype_like, type) and dtype_like in _ABSTRACT_TYPES:
        return dtype_like
    dtype = canonical(dtype_like)
    if isinstance(dtype, KeyDType):
        return prng_key
    if dtype in table.NARROW_SIGNED:
        return np.signedinteger
    if dtype in table.NARROW_UNSIGNED:
        return np.unsignedinteger
    if dtype in table.EXTENSION:
        return np.floating
    return dtype.type


def issubdtype(a: Any, b: Any) -> bool:
    """Whether dtype `a` is `b`, or belongs to the abstract family `b`.

    Args:
      a: a dtype, or anything that stands for one, or an abstract NumPy scalar type.
      b: likewise, or `prng_key` or `extended`.

    >>> issubdtype(bfloat16, np.floating), issubdtype(int4, np.integer)
    (True, True)
    """
    if isinstance(b, type) and b in _ABSTRACT_TYPES:
        return issubclass(_family(a), b)
    if isinstance(a, type) and a in _ABSTRACT_TYPES:
        return False
    return canonical(a) == canonical(b)


# --- Python and NumPy scalars --------------------------------------------------------------------

# NumPy's functions of Python numbers return these; users mean them as numbers, not as a request
# for 64 bits (`x / np.sqrt(64)`), so they are weak like the Python numbers they came from.
_WEAK_SCALARS: dict[type, DType] = {
    int: int32,
    float: float32,
    complex: complex64,
    np.int64: int32,
    np.float64: float32,
    np.complex128: complex64,
}


def scalar_dtype(value: Any) -> tuple[DType, bool]:
    """The dtype of a Python or NumPy scalar on its own, and whether that dtype is weak.

    This looks at the type only. `scalar_array` gives the value its dtype and checks the range: on
    its own 2**40 overflows int32, while beside an int64 array it is fine.

    Raises:
      DTypeError: `value` is no number, or of a type that arrays cannot hold.

    >>> scalar_dtype(1.5), scalar_dtype(True), scalar_dtype(np.float16(2))
    ((dtype('float32'), True), (dtype('bool'), False), (dtype('float16'), False))
    """
    weak = _WEAK_SCALARS.get(type(value))
    if weak is not None:
        return weak, True
    if isinstance(value, bool):
        return bool_, False
    if isinstance(value, np.generic):
        return canonical(value.dtype), False
    for python_type in (int, float, complex):  # subclasses, IntEnum among them
        if isinstance(value, python_type):
            return canonical(python_type), True
    raise DTypeError(f"{value!r} of type {type(value).__name__} is not a number")


_PLAIN_NUMBERS = frozenset((float, int))


def scalar_array(value: Any, dtype: DType | None = None) -> np.ndarray[Any, Any]:
    """The 0-dimensional array of a scalar, in the dtype that promotion gave it.

    Args:
      value: a Python or NumPy scalar.
      dtype: the dtype to give it; by default its own, `scalar_dtype(value)[0]`.

    Raises:
      OverflowError: an integer that `dtype` cannot hold.
      DTypeError: `value` is no number, or `dtype` is that of keys.

    >>> scalar_array(2**40, int64)
    array(1099511627776)
    >>> scalar_array(2**40)
    Traceback (most recent call last):
    OverflowError: 1099511627776 does not fit int32, the default integer dtype; ...
    """
    if dtype is float32 and type(value) in _PLAIN_NUMBERS and -1e38 < value < 1e38:
        return np.array(value, np.float32)  # by far the most frequent case, and it cannot overflow
    own, weak = scalar_dtype(value)
    target = own if dtype is None else dtype
    if isinstance(target, KeyDType):
        raise DTypeError(f"the number {value!r} is not a random key; make one by random.key(seed)")
    if weak and own is int32:
        number = int(value)
        if target in _INTEGER_RANGES:
            low, high = _INTEGER_RANGES[target]
            if not low <= number <= high:
                raise OverflowError(_overflow_message(number, target))
            return np.array(number, target)
        if not is_bool(target):
            return cast(np.array(float(number), np.float64), target)
        return np.array(number != 0, target)
    # At full precision first: the default width applies only if nothing else was asked for.
    return cast(np.asarray(value), target)


_INTEGER_RANGES: dict[DType, tuple[int, int]] = {
    dtype: (int(ml_dtypes.iinfo(dtype).min), int(ml_dtypes.iinfo(dtype).max))
    for dtype in (*table.SIGNED, *table.UNSIGNED)
}


def _overflow_message(number: int, target: DType) -> str:
    default = ", the default integer dtype" if target == int32 else ""
    wider = [d for d in (int64, uint64) if _INTEGER_RANGES[d][0] <= number <= _INTEGER_RANGES[d][1]]
    advice = (
        f'; ask for a wider one, for instance numpy.asarray(value, dtype="{name(wider[0])}")'
        if wider
        else "; no integer dtype does, use a float"
    )
    return f"{number} does not fit {name(target)}{default}{advice}"
