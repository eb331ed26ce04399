"""Eager calls: one operation on concrete arrays, run by NumPy at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fxarray.core.array import DeviceArray
from fxarray.core.hooks import execution
from fxarray.core.primitive import Primitive


def execute(op: Primitive, operands: Sequence[Any]) -> tuple[DeviceArray, ...]:
    """Apply `op` to concrete arrays."""
    types = op.types(*[operand.type for operand in operands])
    values = op.eager(*[operand.numpy_view() for operand in operands])
    return tuple([DeviceArray(value, type) for value, type in zip(values, types, strict=True)])


execution.execute = execute
