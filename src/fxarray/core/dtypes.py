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

import functools
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias
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
from fxarray.core.errors import DTypeError, TypePromotionError

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

# --- from what users write to a dtype ------------------------------------------------------------

_PYTHON_TYPES: dict[type, DType] = {bool: bool_, int: int32, float: float32, complex: complex64}
_EVERY: tuple[DType, ...] = (*table.NUMERIC, float0, key_dtype)
_BY_NAME: dict[str, DType] = {name(dtype): dtype for dtype in _EVERY}
_CANONICAL: dict[Any, DType] = {
    **_PYTHON_TYPES,
    **{python_type.__name__: dtype for python_type, dtype in _PYTHON_TYPES.items()},
    **{dtype: dtype for dtype in _EVERY},
    **_BY_NAME,
    **{dtype.type: dtype for dtype in table.NUMERIC},
}


def canonical(dtype_like: Any) -> DType:
    """The dtype that `dtype_like` stands for.

    Args:
      dtype_like: a dtype, a name (`"bfloat16"`), a scalar type (`np.float32`), an object with a
        `dtype` attribute, or one of Python's bool, int, float, complex, which mean the defaults
        bool, int32, float32, complex64. Explicit 64-bit types are kept.

    Raises:
      DTypeError: no array of fxarray can hold such elements.

    >>> canonical(float), canonical("float64"), canonical("key<fry>")
    (dtype('float32'), dtype('float64'), key<fry>)
    """
    try:
        return _CANONICAL[dtype_like]
    except (KeyError, TypeError):
        return _canonical_uncommon(dtype_like)


def _canonical_uncommon(dtype_like: Any) -> DType:
    if dtype_like is None:
        raise DTypeError("None is not a dtype; leave the argument out to get the default")
    held = None if isinstance(dtype_like, type) else getattr(dtype_like, "dtype", None)
    if isinstance(held, np.dtype | KeyDType) and held is not dtype_like:
        return canonical(held)
    try:
        numpy_dtype = np.dtype(dtype_like)
    except (TypeError, ValueError, SyntaxError):  # NumPy parses "i4, f" as a list of fields
        raise DTypeError(f"{dtype_like!r} is not a dtype{_help_with(dtype_like)}") from None
    # By name: this maps other byte orders and C type aliases to the one native dtype.
    if numpy_dtype in table.BIT_WIDTH or numpy_dtype.kind in "biufc":
        known = _BY_NAME.get(numpy_dtype.name)
        if known is not None:
            return known
    raise DTypeError(f"arrays of dtype {numpy_dtype} are not supported{_help_with(numpy_dtype)}")


def _help_with(dtype_like: Any) -> str:
    kind = getattr(dtype_like, "kind", "")
    if kind == "O":
        return (
            ": the values are Python objects of different or unknown types (a ragged list, None?); "
            "make all rows equally long, or convert with numpy.asarray(values, dtype=...)"
        )
    if kind in ("U", "S", "T"):
        return ": text cannot stand in an array; pass strings as static values instead"
    if kind in ("M", "m"):
        return ': convert times to numbers first, for instance x.astype("int64")'
    if kind == "V":
        return ": use one array per field, for instance in a dict"
    if kind in ("f", "c"):
        return "; the widest are float64 and complex128"
    if isinstance(dtype_like, type) and issubclass(dtype_like, np.generic):
        return ": it is an abstract family; name a dtype of it, such as float32"
    return '; write for instance "float32", fxarray.numpy.int8 or float'


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
            return _PYTHON_TYPES[python_type], True
    raise DTypeError(f"{value!r} of type {type(value).__name__} is not a number")


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
    source = np.float64 if own is float32 and weak else np.complex128 if own is complex64 else own
    return cast(np.array(value, source), target)


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


# --- promotion -----------------------------------------------------------------------------------

# Nodes of the lattice: dtypes, and the types of weak Python scalars. An edge leads to the next
# higher node; the result of a promotion is the lowest node above all operands.
_Node: TypeAlias = DType | type
_EDGES: dict[_Node, tuple[_Node, ...]] = {
    bool_: (int,),
    int: (uint8, uint2, uint4, int8, int2, int4),
    uint8: (uint16, int16),
    uint16: (uint32, int32),
    uint32: (uint64, int64),
    uint64: (float,),
    int8: (int16,),
    int16: (int32,),
    int32: (int64,),
    int64: (float,),
    float: (*table.SMALL_FLOATS, bfloat16, float16, complex),
    bfloat16: (float32,),
    float16: (float32,),
    float32: (float64, complex64),
    float64: (complex128,),
    complex: (complex64,),
    complex64: (complex128,),
}
_WIDE = frozenset((int64, uint64, float64, complex128))
_DEFAULTS: dict[tuple[_Node, bool], DType] = {
    (int, False): int32,
    (int, True): int64,
    (float, False): float32,
    (float, True): float64,
    (complex, False): complex64,
    (complex, True): complex128,
}


def _upper_bounds() -> dict[_Node, frozenset[_Node]]:
    bounds: dict[_Node, frozenset[_Node]] = {}

    def above(node: _Node) -> frozenset[_Node]:
        if node not in bounds:
            higher = (above(next_node) for next_node in _EDGES.get(node, ()))
            bounds[node] = frozenset((node,)).union(*higher)
        return bounds[node]

    for dtype in table.NUMERIC:
        above(dtype)
    return bounds


_UPPER_BOUNDS = _upper_bounds()


def _weak_node(dtype: DType) -> _Node:
    if is_integer(dtype):
        return int
    if is_float(dtype):
        return float
    return complex if is_complex(dtype) else dtype


def _join(nodes: Iterable[_Node], operands: Iterable[DType]) -> _Node:
    """The lowest node above all of `nodes`; the dtypes of `operands` are for the message."""
    common = frozenset.intersection(*(_UPPER_BOUNDS[node] for node in nodes))
    for candidate in common:
        if common == _UPPER_BOUNDS[candidate]:
            return candidate
    raise TypePromotionError(_no_promotion_message(operands))


def _no_promotion_message(operands: Iterable[DType]) -> str:
    names = list(dict.fromkeys(name(dtype) for dtype in operands))
    text = f"no implicit promotion between {' and '.join(names)}"
    if key_dtype.name in names:
        return (
            f"{text}: a random key is not a number; draw numbers from it, as random.bits(key), "
            "or take its words by random.key_data(key)"
        )
    if "float0" in names:
        return f"{text}: float0 is the derivative type of integers and has no values"
    wide = next((each for each in names if each in ("bfloat16", "float16", "float32")), names[-1])
    return f"{text}; say which dtype you mean by an explicit cast, as x.astype({wide!r})"


@functools.lru_cache(maxsize=8192)
def _promote(dtypes: tuple[DType, ...], weaks: tuple[bool, ...]) -> tuple[DType, bool]:
    distinct = dict.fromkeys(dtypes)
    all_weak = all(weaks)
    if len(distinct) == 1:
        return dtypes[0], all_weak
    if any(dtype not in _UPPER_BOUNDS for dtype in distinct):
        raise TypePromotionError(_no_promotion_message(distinct))
    # Weak operands alone: their dtypes decide as if strong, and the result stays weak.
    nodes = {
        _weak_node(dtype) if weak and not all_weak else dtype
        for dtype, weak in zip(dtypes, weaks, strict=True)
    }
    node = _join(nodes, distinct)
    if isinstance(node, type):
        return _DEFAULTS[node, not _WIDE.isdisjoint(distinct)], True
    return node, all_weak


def promote(dtypes: Sequence[DType], weaks: Sequence[bool]) -> tuple[DType, bool]:
    """The common dtype of the operands of an operation, and whether it is weak.

    Args:
      dtypes: the operands' dtypes, at least one.
      weaks: for each, whether it is weak.

    Raises:
      TypePromotionError: the operands have no common dtype: keys with numbers, float8 kinds or
        int4 with other dtypes.
    """
    return _promote(tuple(dtypes), tuple(weaks))


def promote_types(a: Any, b: Any) -> DType:
    """The common dtype of two dtypes; Python's int, float and complex count as weak.

    Raises:
      TypePromotionError: the two have no common dtype.

    >>> promote_types("uint8", "int8"), promote_types("int8", float)
    (dtype('int16'), dtype('float32'))
    """
    weaks = tuple(any(x is t for t in (int, float, complex)) for x in (a, b))
    return _promote((canonical(a), canonical(b)), weaks)[0]


# --- derived dtypes ------------------------------------------------------------------------------


def to_inexact(dtype: DType) -> DType:
    """The floating dtype in which `sin` or `/` of `dtype` is computed: float64 for 64-bit integers.

    Raises:
      DTypeError: `dtype` holds no numbers.
    """
    if is_inexact(dtype):
        return dtype
    if not is_numeric(dtype):
        raise DTypeError(f"{name(dtype)} has no floating-point counterpart")
    return float64 if dtype in _WIDE else float32


def to_real(dtype: DType) -> DType:
    """The dtype of the real part: float32 for complex64; real dtypes are returned as they are."""
    return {complex64: float32, complex128: float64}.get(dtype, dtype)  # type: ignore[arg-type]


def to_complex(dtype: DType) -> DType:
    """The complex dtype whose parts hold `dtype`: complex128 for 64-bit dtypes, else complex64.

    Raises:
      DTypeError: `dtype` holds no numbers.
    """
    if not is_numeric(dtype):
        raise DTypeError(f"{name(dtype)} has no complex counterpart")
    return complex128 if dtype in _WIDE else complex64


def accumulator(dtype: DType) -> DType:
    """The dtype in which sums over `dtype` are carried: float32 for narrower floats."""
    return float32 if is_narrow_float(dtype) else dtype


def sum_result(dtype: DType) -> DType:
    """The dtype of `numpy.sum` over `dtype`: bool and narrow integers widen to 32 bits."""
    if is_bool(dtype) or (is_signed(dtype) and bit_width(dtype) < 32):
        return int32
    return uint32 if is_unsigned(dtype) and bit_width(dtype) < 32 else dtype
