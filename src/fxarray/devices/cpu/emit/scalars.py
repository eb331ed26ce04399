"""Every operation of `kernel.operations` on values in registers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fxarray.devices.cpu.emit import complex_numbers, conversions, elementary, integers, real
from fxarray.devices.cpu.emit.constants import constant, splat
from fxarray.devices.cpu.emit.function import FunctionText
from fxarray.devices.cpu.emit.number import Number, select
from fxarray.devices.cpu.emit.types import (
    Value,
    compute_type,
    is_complex,
    is_float,
    is_narrow_float,
)

__all__ = ["apply", "constant", "convert", "numbers", "splat", "value_of"]

convert = conversions.convert

_Rule = Callable[..., Number]


def apply(
    f: FunctionText, op: str, values: Sequence[Value], dtype: str, contract: bool = True
) -> Value:
    """An operation of values of one dtype; scalars among them go with vectors.

    Args:
      f: the function that is being written.
      op: its name in `kernel.operations`.
      values: its arguments.
      dtype: the dtype of the result.
      contract: whether a product of real floats may become part of an fma.
    """
    lanes = max([value.lanes for value in values])
    values = [splat(f, value, lanes) for value in values]
    if op == "convert":
        return convert(f, values[0], dtype)
    if op == "bitcast":
        return conversions.bitcast(f, values[0], dtype)
    if op == "select":
        return _select(f, values)
    operand_dtype = values[0].dtype
    if is_complex(operand_dtype) or op == "complex":
        return complex_numbers.apply(f, op, values, dtype)
    if op in ("real", "conj"):
        return values[0]
    if op == "imag":
        return constant(0, dtype, lanes)
    arguments = [numbers(f, value) for value in values]
    if is_float(operand_dtype):
        if op == "mul" and not contract:
            result = arguments[0] * arguments[1]
        else:
            result = _float_rule(op)(*arguments)
        if op == "next_after" and is_narrow_float(operand_dtype):
            return conversions.next_after(f, values[0], values[1])
        if is_narrow_float(dtype) and not (op in real.EXACT and dtype in ("f16", "bf16")):
            return conversions.round_to(result, dtype)
        return value_of(result, dtype)
    return value_of(integers.apply(op, arguments, operand_dtype), dtype)


def _float_rule(op: str) -> _Rule:
    rule = real.RULES.get(op) or elementary.RULES.get(op)
    if rule is None:
        raise NotImplementedError(f"{op} is not an operation of floats")
    return rule


def numbers(f: FunctionText, value: Value) -> Number:
    """The one part of a value, for formulas."""
    return Number(f, compute_type(value.dtype), value.lanes, value.operand)


def value_of(number: Number, dtype: str) -> Value:
    """A value of one part."""
    return Value(dtype, number.lanes, (number.operand,))


def _select(f: FunctionText, values: Sequence[Value]) -> Value:
    condition, if_true, if_false = values
    truth = numbers(f, condition)
    type_ = compute_type(if_true.dtype)
    parts = [
        select(
            truth, Number(f, type_, if_true.lanes, a), Number(f, type_, if_true.lanes, b)
        ).operand
        for a, b in zip(if_true.parts, if_false.parts, strict=True)
    ]
    return Value(if_true.dtype, if_true.lanes, tuple(parts))
