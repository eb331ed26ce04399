"""Promotion: the common dtype of operands, and the dtypes derived from one.

The lattice is JAX's with 64-bit types switched on. What a *default* contributes (a Python scalar, a
float made of integers) is 32 bits wide, unless an operand is 64 bits wide already.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

from fxarray.core.dtype_table import (
    NUMERIC,
    SMALL_FLOATS,
    DType,
    bfloat16,
    bit_width,
    bool_,
    canonical,
    complex64,
    complex128,
    float16,
    float32,
    float64,
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
    is_narrow_float,
    is_numeric,
    is_signed,
    is_unsigned,
    key_dtype,
    name,
    uint2,
    uint4,
    uint8,
    uint16,
    uint32,
    uint64,
)
from fxarray.core.errors import DTypeError, TypePromotionError

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
    float: (*SMALL_FLOATS, bfloat16, float16, complex),
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

    for dtype in NUMERIC:
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
