"""Eager calls: one operation on concrete arrays, run by NumPy at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fxarray.compile.driver import compile_program
from fxarray.core.array import DeviceArray
from fxarray.core.hooks import execution
from fxarray.core.primitive import Primitive


def execute(op: Primitive, operands: Sequence[Any]) -> tuple[Any, ...]:
    """Apply `op` to concrete arrays."""
    if op.run_function is not None:
        return op.run_function(operands)
    types = op.types(*[operand.type for operand in operands])
    program = op.compiled_program
    if program is not None:
        return tuple(compile_program(program)(operands))
    values = op.eager(*[operand.numpy_view() for operand in operands])
    return tuple([DeviceArray(value, type) for value, type in zip(values, types, strict=True)])


execution.execute = execute
