"""Constants, and scalars on every lane."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from fxarray.core import dtypes
from fxarray.devices.cpu.emit.function import FunctionText
from fxarray.devices.cpu.emit.number import is_constant, splat_literal
from fxarray.devices.cpu.emit.types import Value, compute_type, is_complex, vector_type


def constant(value: complex | bool, dtype: str, lanes: int = 1) -> Value:
    """A number as a value of a dtype, rounded or wrapped to it, on every lane."""
    return _constant(repr(value), value, dtype, lanes)


@lru_cache(maxsize=4096)
def _constant(_: str, value: Any, dtype: str, lanes: int) -> Value:
    type_ = compute_type(dtype)
    if dtype == "bool":
        return Value(dtype, lanes, (splat_literal(bool(value), type_, lanes),))
    if is_complex(dtype):
        number = complex(value)
        parts = tuple([_float(part, type_, lanes) for part in (number.real, number.imag)])
        return Value(dtype, lanes, parts)
    if type_ in ("float", "double"):
        numpy_dtype = dtypes.physical(dtypes.from_short_name(dtype))
        rounded = dtypes.cast(np.asarray(float(value)), numpy_dtype)
        return Value(dtype, lanes, (_float(float(rounded), type_, lanes),))
    return Value(dtype, lanes, (splat_literal(_wrap(int(value), dtype), type_, lanes),))


def _float(value: float, type_: str, lanes: int) -> str:
    return splat_literal(value, type_, lanes, np.signbit(value).item())


def _wrap(value: int, dtype: str) -> int:
    if dtype == "key":
        return value & (2**64 - 1)
    bits = int(dtype[1:])
    low = value & ((1 << bits) - 1)
    return low - (1 << bits) if dtype[0] == "i" and low >> (bits - 1) else low


def splat(f: FunctionText, value: Value, lanes: int) -> Value:
    """A scalar on every lane; a vector of so many lanes as it is."""
    if value.lanes == lanes:
        return value
    assert value.lanes == 1, f"{value.lanes} lanes cannot become {lanes}"
    type_ = compute_type(value.dtype)
    return Value(
        value.dtype, lanes, tuple([splat_operand(f, part, type_, lanes) for part in value.parts])
    )


def splat_operand(f: FunctionText, operand: str, type_: str, lanes: int) -> str:
    """A scalar operand of an LLVM type on every lane."""
    if lanes == 1:
        return operand
    if is_constant(operand):
        return f"splat ({type_} {operand})"
    vector = vector_type(type_, lanes)
    first = f.new(f"insertelement {vector} poison, {type_} {operand}, i64 0")
    return f.new(
        f"shufflevector {vector} {first}, {vector} poison, <{lanes} x i32> zeroinitializer"
    )
