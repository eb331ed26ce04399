"""Python's operators on arrays: `x + y`, `-x`, `x @ y`, `x == y`.

They are the functions of the same meaning, and differ in two things: an operand that is no array
and no number is left to the other operand's class (`NotImplemented`), and the commonest cases, two
arrays of one type and an array with a Python number, go to the primitive directly.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fxarray.core import dtypes
from fxarray.core.array import Array
from fxarray.core.errors import ArgumentError
from fxarray.core.hooks import operators
from fxarray.numpy import arithmetic, comparison, conversion, linear_algebra
from fxarray.numpy.promotion import OPERANDS, number
from fxarray.primitives import elementwise as e

Operator = Callable[[Any, Any], Any]

_NUMBERS = frozenset(
    dtype
    for dtype in (
        *(dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64),
        *(dtypes.uint8, dtypes.uint16, dtypes.uint32, dtypes.uint64),
        *(dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64),
        *(dtypes.complex64, dtypes.complex128),
    )
)
_INEXACT = frozenset(dtype for dtype in _NUMBERS if dtypes.is_inexact(dtype))
_REAL = _NUMBERS - {dtypes.complex64, dtypes.complex128}
_CONTAINERS = (list, tuple, set, dict)


def _reject_container(symbol: str, x: Any, y: Any) -> Any:
    """Lists would otherwise surprise: NumPy converts them, Python repeats or appends."""
    for operand in (x, y):
        if isinstance(operand, _CONTAINERS):
            raise ArgumentError(
                f"{symbol} is not defined between an array and a {type(operand).__name__}; convert "
                "it "
                f"with fxarray.numpy.asarray first"
            )
    return NotImplemented


def _general(symbol: str, function: Operator) -> Operator:
    def operator(x: Any, y: Any) -> Any:
        if isinstance(x, OPERANDS) and isinstance(y, OPERANDS):
            return function(x, y)
        if hasattr(x, "__jax_array__") or hasattr(y, "__jax_array__"):
            return function(x, y)
        return _reject_container(symbol, x, y)

    return operator


def _direct(symbol: str, function: Operator, op: Any, accepted: frozenset[Any]) -> Operator:
    """An operator with short cuts to `op` for arrays whose dtype is one of `accepted`."""
    general = _general(symbol, function)
    bind = op.bind
    accepts_float = accepted & _INEXACT

    def operator(x: Any, y: Any) -> Any:
        kind = type(y)
        if kind is type(x):
            own = x.type
            if own is y.type and own.dtype in accepted:
                return bind(x, y)[0]
        elif kind is float or kind is int:
            if isinstance(x, Array):
                own = x.type
                if own.dtype in (accepts_float if kind is float else accepted):
                    return bind(x, number(y, own.dtype, True))[0]
        elif type(x) is float and isinstance(y, Array) and y.type.dtype in accepts_float:
            return bind(number(x, y.type.dtype, True), y)[0]
        return general(x, y)

    return operator


operators.fill(
    asarray=conversion.asarray,
    unary={
        "neg": arithmetic.negative,
        "pos": arithmetic.positive,
        "abs": arithmetic.absolute,
        "invert": comparison.invert,
    },
    binary={
        "add": _direct("+", arithmetic.add, e.add, _NUMBERS),
        "sub": _direct("-", arithmetic.subtract, e.sub, _NUMBERS),
        "mul": _direct("*", arithmetic.multiply, e.mul, _NUMBERS),
        "truediv": _direct("/", arithmetic.true_divide, e.div, _INEXACT),
        "floordiv": _general("//", arithmetic.floor_divide),
        "mod": _general("%", arithmetic.remainder),
        "divmod": _general("divmod", arithmetic.divmod),
        "pow": _general("**", arithmetic.power),
        "matmul": _general("@", linear_algebra.matmul),
        "and": _general("&", comparison.bitwise_and),
        "or": _general("|", comparison.bitwise_or),
        "xor": _general("^", comparison.bitwise_xor),
        "lshift": _general("<<", comparison.left_shift),
        "rshift": _general(">>", comparison.right_shift),
        "eq": _direct("==", comparison.equal, e.eq, _NUMBERS),
        "ne": _direct("!=", comparison.not_equal, e.ne, _NUMBERS),
        "lt": _direct("<", comparison.less, e.lt, _REAL),
        "le": _direct("<=", comparison.less_equal, e.le, _REAL),
        "gt": _direct(">", comparison.greater, e.gt, _REAL),
        "ge": _direct(">=", comparison.greater_equal, e.ge, _REAL),
    },
)
