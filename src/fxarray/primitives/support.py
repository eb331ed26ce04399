"""What the rules of several families share: dtype groups, narrow floats, random operands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fxarray.core import dtypes
from fxarray.core.dtypes import DType

# Groups of dtypes that a row accepts.
BOOL, SIGNED, UNSIGNED, FLOAT, COMPLEX, KEY = 1, 2, 4, 8, 16, 32
INTEGER = SIGNED | UNSIGNED
BITS = BOOL | INTEGER
REAL = INTEGER | FLOAT
NUMBER = REAL | COMPLEX
INEXACT = FLOAT | COMPLEX
ANY = BOOL | NUMBER | KEY

_GROUP_NAMES = {
    BOOL: "bool",
    SIGNED: "signed integer",
    UNSIGNED: "unsigned integer",
    FLOAT: "float",
    COMPLEX: "complex",
    KEY: "random key",
}


def group_of(dtype: DType) -> int:
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
    return ", ".join(name for bit, name in _GROUP_NAMES.items() if groups & bit)



def narrow_in_float32(arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Operands as NumPy computes them: floats narrower than float32 are widened to it."""
    return [
        array.astype(np.float32) if dtypes.is_narrow_float(array.dtype) else array
        for array in arrays
    ]


def sample_dtypes(accepts: int) -> list[np.dtype]:
    """One or two dtypes of each accepted group, most telling first."""
    table = {
        FLOAT: ["float32", "float64", "float16"],
        COMPLEX: ["complex64", "complex128"],
        SIGNED: ["int32", "int8"],
        UNSIGNED: ["uint8", "uint32"],
        BOOL: ["bool"],
    }
    return [np.dtype(name) for group, names in table.items() if accepts & group for name in names]


def random_operand(
    rng: np.random.Generator, shape: tuple[int, ...], dtype: Any, domain: tuple[float, float]
) -> np.ndarray:
    """Random values of any dtype in `domain` (for integers: rounded, and clipped to the dtype)."""
    dtype = np.dtype(dtype)
    low, high = domain
    values = rng.uniform(low, high, size=shape)
    if dtype.kind == "c":
        values = values + 1j * rng.uniform(low, high, size=shape)
    if dtype.kind == "b":
        values = rng.uniform(-1, 1, size=shape) > 0
    elif dtype.kind == "u":
        values = np.abs(values * 3)
    elif dtype.kind == "i":
        values = values * 3
    return np.asarray(values).astype(dtype)
