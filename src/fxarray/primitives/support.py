"""What the rules of several families share: dtype groups, constants, NumPy's warnings, samples."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from fxarray.core import dtypes
from fxarray.core.array import DeviceArray
from fxarray.core.dtypes import DType
from fxarray.core.types import ArrayType

Values: TypeAlias = np.ndarray[Any, Any]

# --- dtype groups --------------------------------------------------------------------------------

BOOL, SIGNED, UNSIGNED, FLOAT, COMPLEX, KEY = 1, 2, 4, 8, 16, 32
INTEGER = SIGNED | UNSIGNED
BITS = BOOL | INTEGER
REAL = INTEGER | FLOAT
NUMBER = REAL | COMPLEX
INEXACT = FLOAT | COMPLEX
ORDERED = BOOL | REAL
NUMERIC = BOOL | NUMBER
ANY = NUMERIC | KEY

_GROUP_NAMES = {
    BOOL: "bool",
    SIGNED: "signed integer",
    UNSIGNED: "unsigned integer",
    FLOAT: "float",
    COMPLEX: "complex",
    KEY: "random key",
}


def group_of(dtype: DType) -> int:
    """The group of a dtype; 0 for float0."""
    if dtypes.is_key(dtype):
        return KEY
    if dtypes.is_bool(dtype):
        return BOOL
    if dtypes.is_float(dtype):
        return FLOAT
    if dtypes.is_complex(dtype):
        return COMPLEX
    if dtypes.is_unsigned(dtype):
        return UNSIGNED
    if dtypes.is_integer(dtype):
        return SIGNED
    return 0


def describe_groups(groups: int) -> str:
    """The names of the groups, for messages."""
    return ", ".join(name for bit, name in _GROUP_NAMES.items() if groups & bit)


# --- constants in rule bodies --------------------------------------------------------------------

_CONSTANTS: dict[Any, DeviceArray] = {}


def number_like(x: Any, value: float) -> DeviceArray:
    """The number `value` in the dtype of `x`: 0-dimensional, weak, concrete also while tracing."""
    dtype: DType = x.type.dtype
    # Zeros are told apart by their text, since 0. == -0.
    key = (dtype, value or str(value))
    known = _CONSTANTS.get(key)
    if known is None:
        buffer = dtypes.cast(np.asarray(value), dtypes.physical(dtype))
        known = _CONSTANTS[key] = DeviceArray(buffer, ArrayType((), dtype, True))
    return known


# --- NumPy as a definition -----------------------------------------------------------------------


def widened(array: Values) -> Values:
    """`array`, exactly, in a wide dtype of its kind: float64, complex128; narrow ints in 8 bits.

    A float32 sum, product, quotient or root that is computed in float64 and rounded once more is
    the correctly rounded one, and other functions come within a hair of it.
    """
    dtype = array.dtype
    if dtypes.is_float(dtype):
        return array.astype(np.float64)
    if dtypes.is_complex(dtype):
        return array.astype(np.complex128)
    if dtype in (dtypes.int2, dtypes.int4):
        return array.astype(np.int8)
    if dtype in (dtypes.uint2, dtypes.uint4):
        return array.astype(np.uint8)
    return array


class _ErrorState:
    """`numpy.errstate` with the methods of a context variable, where NumPy does not have one."""

    def set(self, value: Any) -> np.errstate:
        state = np.errstate(all="ignore")
        state.__enter__()
        return state

    def reset(self, token: np.errstate) -> None:
        token.__exit__(None, None, None)


def _quiet_context() -> tuple[Any, Any]:
    """NumPy's context variable for error handling, and the value that ignores all errors.

    `numpy.errstate` sets this variable, at four times the cost of doing it here, which is more than
    an addition takes.
    """
    variable = getattr(importlib.import_module("numpy._core.umath"), "_extobj_contextvar", None)
    if variable is None:
        return _ErrorState(), None
    with np.errstate(all="ignore"):
        ignore = variable.get()
    token = variable.set(ignore)
    works = set(np.geterr().values()) == {"ignore"}
    variable.reset(token)
    return (variable, ignore) if works else (_ErrorState(), None)


# `token = ERROR_STATE.set(IGNORE)`, and in a `finally` `ERROR_STATE.reset(token)`: what between the
# two is computed gives no floating-point warnings.
ERROR_STATE, IGNORE = _quiet_context()


def quietly(function: Callable[..., Any], arrays: Sequence[Any]) -> Any:
    """`function(*arrays)` without NumPy's floating-point warnings."""
    token = ERROR_STATE.set(IGNORE)
    try:
        return function(*arrays)
    finally:
        ERROR_STATE.reset(token)


# --- samples -------------------------------------------------------------------------------------

_SAMPLE_DTYPES = {
    FLOAT: ("float32", "float64", "float16", "bfloat16"),
    COMPLEX: ("complex64", "complex128"),
    SIGNED: ("int32", "int8"),
    UNSIGNED: ("uint8", "uint32"),
    BOOL: ("bool",),
}


def sample_dtypes(accepts: int) -> list[np.dtype[Any]]:
    """A few dtypes of each accepted group, most telling first."""
    return [
        dtypes.physical(dtypes.canonical(name))
        for group, names in _SAMPLE_DTYPES.items()
        if accepts & group
        for name in names
    ]


def random_operand(
    rng: np.random.Generator, shape: tuple[int, ...], dtype: Any, domain: tuple[float, float]
) -> Values:
    """Random values of any dtype in `domain` (for integers: rounded, and clipped to the dtype)."""
    dtype = np.dtype(dtype)
    low, high = domain
    values: Any = rng.uniform(low, high, size=shape)
    if dtype.kind == "c":
        values = values + 1j * rng.uniform(low, high, size=shape)
    elif dtype.kind == "b":
        values = rng.uniform(-1, 1, size=shape) > 0
    elif dtype.kind == "u":
        values = np.abs(values * 3)
    elif dtype.kind == "i":
        values = values * 3
    return dtypes.cast(np.asarray(values), dtype)
