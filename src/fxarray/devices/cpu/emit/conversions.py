"""Values converted to other dtypes, and their bits.

The rules are those of `core.casting.cast`: floats become integers by truncation, limited to the
range, NaN becomes 0; integers wrap; narrow floats are reached through f32.
"""

from __future__ import annotations

from fxarray.devices.cpu.emit import integers, narrow_floats
from fxarray.devices.cpu.emit.constants import constant
from fxarray.devices.cpu.emit.function import FunctionText
from fxarray.devices.cpu.emit.number import Number, select
from fxarray.devices.cpu.emit.types import (
    NARROW_INTEGERS,
    Value,
    bit_width,
    compute_type,
    is_complex,
    is_float,
    is_narrow_float,
    is_signed,
    part_dtype,
    storage_type,
)


def _number(f: FunctionText, value: Value, part: int = 0) -> Number:
    return Number(f, compute_type(value.dtype), value.lanes, value.parts[part])


def _value(number: Number, dtype: str) -> Value:
    return Value(dtype, number.lanes, (number.operand,))


def round_to(number: Number, dtype: str) -> Value:
    """Floats rounded to a narrow float dtype."""
    return _value(narrow_floats.round_to(number, dtype), dtype)


def convert(f: FunctionText, value: Value, dtype: str) -> Value:
    """A value converted to another dtype."""
    source = value.dtype
    if source == dtype:
        return value
    if is_complex(dtype):
        return _to_complex(f, value, dtype)
    if is_complex(source):
        if dtype == "bool":
            real, imaginary = (_number(f, value, part) for part in (0, 1))
            return _value(real.differs(0.0) | imaginary.differs(0.0), dtype)
        return convert(f, Value(part_dtype(source), value.lanes, value.parts[:1]), dtype)
    x = _number(f, value)
    if dtype == "bool":
        return _value(x.differs(0), dtype)
    if is_float(dtype):
        return _to_float(x, source, dtype)
    if is_float(source):
        return _value(_to_integer(x, dtype), dtype)
    return _value(_between_integers(x, source, dtype), dtype)


def _to_complex(f: FunctionText, value: Value, dtype: str) -> Value:
    part = part_dtype(dtype)
    if is_complex(value.dtype):
        own = part_dtype(value.dtype)
        parts = [convert(f, Value(own, value.lanes, (p,)), part).operand for p in value.parts]
        return Value(dtype, value.lanes, tuple(parts))
    real = convert(f, value, part)
    return Value(dtype, value.lanes, (real.operand, constant(0.0, part, value.lanes).operand))


def _to_float(x: Number, source: str, dtype: str) -> Value:
    target = compute_type(dtype)
    if source == "bool":
        one, zero = (constant(number, dtype, x.lanes).operand for number in (1, 0))
        lanes = x.lanes
        chosen = select(x, Number(x.f, target, lanes, one), Number(x.f, target, lanes, zero))
        return _value(chosen, dtype)
    if is_float(source):
        wide = x.cast("fpext" if target == "double" else "fptrunc", target)
    else:
        wide = x.cast("sitofp" if is_signed(source) else "uitofp", target)
    return round_to(wide, dtype) if is_narrow_float(dtype) else _value(wide, dtype)


def _to_integer(x: Number, dtype: str) -> Number:
    type_ = compute_type(dtype)
    name = "fptosi" if is_signed(dtype) else "fptoui"
    number = integers.saturating(x, name, type_)
    if dtype not in NARROW_INTEGERS:
        return number
    bits = bit_width(dtype)
    if not is_signed(dtype):
        return number.intrinsic("umin", (1 << bits) - 1)
    half = 1 << (bits - 1)
    return number.intrinsic("smin", half - 1).intrinsic("smax", -half)


def _between_integers(x: Number, source: str, dtype: str) -> Number:
    before, after = int(x.type[1:]), int(compute_type(dtype)[1:])
    if after > before:
        x = x.cast("sext" if is_signed(source) else "zext", f"i{after}")
    elif after < before:
        x = x.cast("trunc", f"i{after}")
    return integers.wrap(x, dtype)


# --- bits -----------------------------------------------------------------------------------------


def to_storage(number: Number, dtype: str) -> Number:
    """A part as it stands in memory."""
    if dtype == "bool":
        return number.cast("zext", "i8")
    if is_narrow_float(dtype):
        return narrow_floats.encode(number, dtype)
    if dtype in NARROW_INTEGERS:
        return integers.low_bits(number, dtype)
    return number


def from_storage(stored: Number, dtype: str) -> Number:
    """A part from what stands in memory."""
    if dtype == "bool":
        return stored.differs(0)
    if is_narrow_float(dtype):
        return narrow_floats.decode(stored, dtype)
    if dtype in NARROW_INTEGERS:
        return integers.wrap(stored, dtype)
    return stored


def storage_part(dtype: str) -> str:
    """The LLVM type of a part in memory: that of the element, unless it is complex."""
    return compute_type(dtype) if is_complex(dtype) else storage_type(dtype)


def bitcast(f: FunctionText, value: Value, dtype: str) -> Value:
    """The same bits as another dtype of equal width."""
    stored = to_storage(_number(f, value), value.dtype)
    target = storage_part(dtype)
    return _value(from_storage(stored.cast("bitcast", target), dtype), dtype)


def next_after(f: FunctionText, x: Value, y: Value) -> Value:
    """The neighbour of x towards y in a narrow float dtype."""
    dtype = x.dtype
    a, b = _number(f, x), _number(f, y)
    code = narrow_floats.encode(a, dtype)
    sign = 1 << (8 - 1) if dtype == narrow_floats.POWERS else narrow_floats.FORMATS[dtype].sign
    away = ~((b > a) ^ (a > 0.0))
    stepped = code + select(away, code.like(1), code.like(-1))
    smallest = select(b > 0.0, code.like(1), code.like(sign | 1))
    stepped = select(a.equals(0.0), smallest, stepped)
    moved = narrow_floats.decode(stepped, dtype)
    moved = select(b.is_nan() | a.equals(b), b, moved)
    return _value(select(a.is_nan(), a, moved), dtype)
