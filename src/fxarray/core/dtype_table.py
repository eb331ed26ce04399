"""The element types: what exists, how each is called, and to which families it belongs.

`fxarray.core.dtypes` is the module to import; this one is its table. A dtype is a `numpy.dtype`
(those of ml_dtypes included) or `key_dtype`, the type of a random key, which NumPy cannot express.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import ml_dtypes
import numpy as np

from fxarray.core.errors import DTypeError


class KeyDType:
    """The element type of typed random keys, written `key<fry>` as in JAX.

    There is one instance, `key_dtype`. A key is stored as ONE 64-bit word holding the two 32-bit
    words of a threefry key, so that indexing, stacking and reshaping work on keys as on numbers.
    """

    __slots__ = ()
    name = "key<fry>"
    kind = "key"
    itemsize = 8
    physical: np.dtype[Any] = np.dtype("uint64")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, KeyDType)

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> str:
        return "key_dtype"  # pickle and copy by reference to the module's one instance


DType: TypeAlias = np.dtype[Any] | KeyDType

key_dtype = KeyDType()

# --- every dtype ---------------------------------------------------------------------------------

bool_ = np.dtype("bool")
int8, int16, int32, int64 = (np.dtype(f"int{bits}") for bits in (8, 16, 32, 64))
uint8, uint16, uint32, uint64 = (np.dtype(f"uint{bits}") for bits in (8, 16, 32, 64))
float16, float32, float64 = (np.dtype(f"float{bits}") for bits in (16, 32, 64))
complex64, complex128 = np.dtype("complex64"), np.dtype("complex128")

int2, int4 = np.dtype(ml_dtypes.int2), np.dtype(ml_dtypes.int4)
uint2, uint4 = np.dtype(ml_dtypes.uint2), np.dtype(ml_dtypes.uint4)
bfloat16 = np.dtype(ml_dtypes.bfloat16)
float8_e3m4 = np.dtype(ml_dtypes.float8_e3m4)
float8_e4m3 = np.dtype(ml_dtypes.float8_e4m3)
float8_e4m3b11fnuz = np.dtype(ml_dtypes.float8_e4m3b11fnuz)
float8_e4m3fn = np.dtype(ml_dtypes.float8_e4m3fn)
float8_e4m3fnuz = np.dtype(ml_dtypes.float8_e4m3fnuz)
float8_e5m2 = np.dtype(ml_dtypes.float8_e5m2)
float8_e5m2fnuz = np.dtype(ml_dtypes.float8_e5m2fnuz)
float8_e8m0fnu = np.dtype(ml_dtypes.float8_e8m0fnu)
float6_e2m3fn = np.dtype(ml_dtypes.float6_e2m3fn)
float6_e3m2fn = np.dtype(ml_dtypes.float6_e3m2fn)
float4_e2m1fn = np.dtype(ml_dtypes.float4_e2m1fn)

# The type of derivatives with respect to integers: a vector space of dimension zero, no bytes.
float0: np.dtype[Any] = np.dtype([("float0", np.void, 0)])

NARROW_SIGNED = (int2, int4)
NARROW_UNSIGNED = (uint2, uint4)
SIGNED = (*NARROW_SIGNED, int8, int16, int32, int64)
UNSIGNED = (*NARROW_UNSIGNED, uint8, uint16, uint32, uint64)
# The floats that never take part in implicit promotion: too little range or precision for it.
SMALL_FLOATS = (
    float4_e2m1fn,
    float6_e2m3fn,
    float6_e3m2fn,
    float8_e3m4,
    float8_e4m3,
    float8_e8m0fnu,
    float8_e4m3b11fnuz,
    float8_e4m3fn,
    float8_e4m3fnuz,
    float8_e5m2,
    float8_e5m2fnuz,
)
NARROW_FLOATS = (*SMALL_FLOATS, bfloat16, float16)
FLOATS = (*NARROW_FLOATS, float32, float64)
COMPLEXES = (complex64, complex128)
NUMERIC = (bool_, *UNSIGNED, *SIGNED, *FLOATS, *COMPLEXES)
# The types that ml_dtypes adds to NumPy, whose `kind` is "V" and says nothing.
EXTENSION = (*NARROW_SIGNED, *NARROW_UNSIGNED, *SMALL_FLOATS, bfloat16)

_SIGNED = frozenset(SIGNED)
_UNSIGNED = frozenset(UNSIGNED)
_INTEGERS = _SIGNED | _UNSIGNED
_NARROW_FLOATS = frozenset(NARROW_FLOATS)
_FLOATS = frozenset(FLOATS)
_COMPLEXES = frozenset(COMPLEXES)
_INEXACT = _FLOATS | _COMPLEXES
_NUMERIC = frozenset(NUMERIC)

BIT_WIDTH: dict[DType, int] = {
    **{dtype: 8 * dtype.itemsize for dtype in NUMERIC},
    int2: 2,
    uint2: 2,
    int4: 4,
    uint4: 4,
    float4_e2m1fn: 4,
    float6_e2m3fn: 6,
    float6_e3m2fn: 6,
    float0: 0,
    key_dtype: 64,
}


# --- families ------------------------------------------------------------------------------------


def is_bool(dtype: DType) -> bool:
    """Whether `dtype` is bool."""
    return dtype == bool_


def is_signed(dtype: DType) -> bool:
    """Whether `dtype` is a signed integer type."""
    return dtype in _SIGNED


def is_unsigned(dtype: DType) -> bool:
    """Whether `dtype` is an unsigned integer type; bool is not."""
    return dtype in _UNSIGNED


def is_integer(dtype: DType) -> bool:
    """Whether `dtype` is an integer type of any width; bool is not."""
    return dtype in _INTEGERS


def is_float(dtype: DType) -> bool:
    """Whether `dtype` is a real floating-point type of any width; float0 is not."""
    return dtype in _FLOATS


def is_narrow_float(dtype: DType) -> bool:
    """Whether `dtype` is a float of at most 16 bits (bfloat16 and float16 included).

    Arithmetic in these is defined as: widen to float32, compute, round.
    """
    return dtype in _NARROW_FLOATS


def is_complex(dtype: DType) -> bool:
    """Whether `dtype` is a complex type."""
    return dtype in _COMPLEXES


def is_inexact(dtype: DType) -> bool:
    """Whether `dtype` is real or complex floating point, hence differentiable."""
    return dtype in _INEXACT


def is_numeric(dtype: DType) -> bool:
    """Whether `dtype` holds numbers or truth values: neither a key nor float0."""
    return dtype in _NUMERIC


def is_key(dtype: DType) -> bool:
    """Whether `dtype` is the type of random keys."""
    return isinstance(dtype, KeyDType)


def bit_width(dtype: DType) -> int:
    """The bits of information in one element, which for int4 is less than it occupies."""
    return BIT_WIDTH[dtype]


def physical(dtype: DType) -> np.dtype[Any]:
    """The NumPy dtype in which elements of `dtype` are stored: uint64 for keys, else itself."""
    return key_dtype.physical if isinstance(dtype, KeyDType) else dtype


# --- names ---------------------------------------------------------------------------------------


def _shorten(dtype: np.dtype[Any]) -> str:
    name = dtype.name
    for long, short in (("float", "f"), ("uint", "u"), ("int", "i"), ("complex", "c")):
        name = name.replace(long, short)
    return name


_SHORT_NAMES: dict[DType, str] = {
    **{dtype: _shorten(dtype) for dtype in NUMERIC},
    float0: "float0",
    key_dtype: "key",
}
_BY_SHORT_NAME: dict[str, DType] = {short: dtype for dtype, short in _SHORT_NAMES.items()}


def name(dtype: DType) -> str:
    """The full name of `dtype`: `float32`, `bfloat16`, `key<fry>`, `float0`."""
    return "float0" if dtype == float0 else dtype.name


def short_name(dtype: DType) -> str:
    """The name of `dtype` in printed types.

    >>> short_name(np.dtype("float32")), short_name(bfloat16), short_name(key_dtype)
    ('f32', 'bf16', 'key')
    """
    return _SHORT_NAMES[dtype]


def from_short_name(short: str) -> DType:
    """The dtype that `short_name` prints as `short`.

    Raises:
      KeyError: no dtype has that short name.

    >>> from_short_name("bf16")
    dtype(bfloat16)
    """
    return _BY_SHORT_NAME[short]


# --- from what users write to a dtype ------------------------------------------------------------

_PYTHON_TYPES: dict[type, DType] = {bool: bool_, int: int32, float: float32, complex: complex64}
_EVERY: tuple[DType, ...] = (*NUMERIC, float0, key_dtype)
_BY_NAME: dict[str, DType] = {name(dtype): dtype for dtype in _EVERY}
_CANONICAL: dict[Any, DType] = {
    **_PYTHON_TYPES,
    **{python_type.__name__: dtype for python_type, dtype in _PYTHON_TYPES.items()},
    **{dtype: dtype for dtype in _EVERY},
    **_BY_NAME,
    **{dtype.type: dtype for dtype in NUMERIC},
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
    if numpy_dtype in BIT_WIDTH or numpy_dtype.kind in "biufc":
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
