"""How a function of `fxarray.numpy` applies an elementwise primitive to whatever it was given."""

from __future__ import annotations

from typing import Any

from fxarray.core import dtypes
from fxarray.core.array import Array
from fxarray.core.errors import DTypeError
from fxarray.numpy.promotion import as_operand, promote

_BOOL = dtypes.bool_
_FLOATS = frozenset((dtypes.float32, dtypes.float64, dtypes.float16, dtypes.bfloat16))


def unary(function: str, op: Any, x: Any) -> Array:
    """`op` of a number array, in its own dtype."""
    return op.bind(x if isinstance(x, Array) else as_operand(function, x))[0]


def unary_inexact(function: str, op: Any, x: Any) -> Array:
    """`op` of an array, integers and bools being converted to floats first."""
    if isinstance(x, Array) and x.type.dtype in _FLOATS:
        return op.bind(x)[0]
    return op.bind(*promote(function, x, inexact=True))[0]


def binary(function: str, op: Any, x1: Any, x2: Any) -> Array:
    """`op` of two arrays, promoted and broadcast."""
    if isinstance(x1, Array) and isinstance(x2, Array) and x1.type is x2.type:
        return op.bind(x1, x2)[0]
    return op.bind(*promote(function, x1, x2))[0]


def binary_inexact(function: str, op: Any, x1: Any, x2: Any) -> Array:
    """`op` of two arrays, promoted to a float dtype and broadcast."""
    return op.bind(*promote(function, x1, x2, inexact=True))[0]


def binary_or_logical(function: str, op: Any, logical: Any, x1: Any, x2: Any) -> Array:
    """`op` of two arrays, or `logical` where both are bools."""
    if isinstance(x1, Array) and isinstance(x2, Array) and x1.type is x2.type:
        return (logical if x1.type.dtype is _BOOL else op).bind(x1, x2)[0]
    x, y = promote(function, x1, x2)
    return (logical if x.type.dtype is _BOOL else op).bind(x, y)[0]


def require_integer(function: str, *arrays: Array) -> None:
    """Raise DTypeError unless all arrays hold integers or bools."""
    for x in arrays:
        if not (dtypes.is_integer(x.type.dtype) or dtypes.is_bool(x.type.dtype)):
            raise DTypeError(f"{function} takes integers or bools, got {x.type}")
