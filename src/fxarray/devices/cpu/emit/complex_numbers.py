"""Operations on complex numbers, whose parts are apart in registers."""

from __future__ import annotations

from collections.abc import Sequence

from fxarray.devices.cpu.emit.function import FunctionText
from fxarray.devices.cpu.emit.number import Number
from fxarray.devices.cpu.emit.types import Value, compute_type


def _parts(f: FunctionText, value: Value) -> tuple[Number, ...]:
    type_ = compute_type(value.dtype)
    return tuple([Number(f, type_, value.lanes, part) for part in value.parts])


def _value(dtype: str, *parts: Number) -> Value:
    return Value(dtype, parts[0].lanes, tuple([part.operand for part in parts]))


def apply(f: FunctionText, op: str, values: Sequence[Value], dtype: str) -> Value:
    """An operation of complex numbers, or of the parts of one ("complex")."""
    arguments = [_parts(f, value) for value in values]
    if op == "complex":
        return _value(dtype, *[part for (part,) in arguments])
    first = arguments[0]
    match op:
        case "real":
            return _value(dtype, first[0])
        case "imag":
            return _value(dtype, first[1])
        case "conj":
            return _value(dtype, first[0], -first[1])
        case "neg":
            return _value(dtype, *[-part for part in first])
        case "add" | "sub":
            pairs = zip(first, arguments[1], strict=True)
            return _value(dtype, *[a + b if op == "add" else a - b for a, b in pairs])
        case "eq":
            (a, b), (c, d) = first, arguments[1]
            return _value(dtype, a.equals(c) & b.equals(d))
        case "ne":
            (a, b), (c, d) = first, arguments[1]
            return _value(dtype, a.differs(c) | b.differs(d))
        case "mul":
            (a, b), (c, d) = first, arguments[1]
            return _value(dtype, a * c - b * d, a * d + b * c)
        case _:
            raise NotImplementedError(f"{op} is not an operation of {values[0].dtype}")
