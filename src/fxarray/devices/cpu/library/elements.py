"""Loading elements as keys, storing keys as elements, and copying elements whatever they are."""

from __future__ import annotations

from fxarray.core import dtypes
from fxarray.core.types import ArrayType
from fxarray.devices.cpu.emit import memory, scalars
from fxarray.devices.cpu.emit.function import FunctionText, Operand
from fxarray.devices.cpu.emit.number import Number
from fxarray.devices.cpu.emit.types import Value, itemsize
from fxarray.devices.cpu.library import keys
from fxarray.devices.cpu.library.text import number, vector

# The dtype as which elements are moved that are not computed with, by their bytes; the widest are
# two words.
MOVED = {1: "u8", 2: "u16", 4: "u32", 8: "u64", 16: "u64"}


def short_dtype(type: ArrayType) -> str:
    """The dtype of an array as kernels write it; random keys are u64."""
    return dtypes.short_name(dtypes.physical(type.dtype))


def raw_type(dtype: str) -> str:
    """The LLVM integer type of an element's bytes."""
    return f"i{8 * itemsize(dtype)}"


def is_float(dtype: str) -> bool:
    """Whether elements are compared as floats; narrow ones are, in f32."""
    return dtype[0] in "fb" and dtype != "bool"


def is_complex(dtype: str) -> bool:
    """Whether elements have two parts."""
    return dtype in ("c64", "c128")


def part_dtype(dtype: str) -> str:
    """The dtype of the parts of complex elements; other dtypes as they are."""
    return {"c64": "f32", "c128": "f64"}.get(dtype, dtype)


def key_bits(dtype: str) -> int:
    """The width of the keys of a dtype: 32 or 64."""
    return 64 if dtype in ("f64", "i64", "u64") else 32


def _integer_bits(dtype: str) -> int:
    # Integers narrower than a byte are held in one.
    return 1 if dtype == "bool" else 8 * itemsize(dtype)


def load_float(f: FunctionText, pointer: Operand, dtype: str, lanes: int) -> Operand:
    """Contiguous float elements as f32 (f64 stays)."""
    value = memory.load(f, pointer, dtype, lanes)
    if dtype not in ("f32", "f64"):
        value = scalars.convert(f, value, "f32")
    return value.parts[0]


def key_of(f: FunctionText, value: Value) -> Number:
    """The keys of real values."""
    dtype, lanes = value.dtype, value.lanes
    bits = key_bits(dtype)
    if is_float(dtype):
        if dtype not in ("f32", "f64"):
            value = scalars.convert(f, value, "f32")
        key = keys.key_of_float(f, value.operand, bits, lanes)
    else:
        key = keys.key_of_integer(f, value.operand, _integer_bits(dtype), dtype[0] == "i", lanes)
    return Number(f, f"i{bits}", lanes, key)


def load_key(f: FunctionText, pointer: Operand, dtype: str, lanes: int) -> Operand:
    """The keys of contiguous elements: i32 or i64 lanes."""
    return key_of(f, memory.load(f, pointer, dtype, lanes)).operand


def store_key(f: FunctionText, key: Operand, pointer: Operand, dtype: str, lanes: int) -> None:
    """Store the elements of keys, contiguously."""
    if is_float(dtype):
        real = keys.float_of_key(f, key, key_bits(dtype), lanes)
        value = Value("f64" if dtype == "f64" else "f32", lanes, (real,))
        if value.dtype != dtype:
            value = scalars.convert(f, value, dtype)
    else:
        whole = keys.integer_of_key(f, key, _integer_bits(dtype), dtype[0] == "i", lanes)
        value = Value(dtype, lanes, (whole,))
    memory.store(f, value, pointer)


def load_raw(f: FunctionText, pointer: Operand, dtype: str, lanes: int = 1) -> Operand:
    """The bytes of contiguous elements."""
    return f.new(f"load {vector(raw_type(dtype), lanes)}, ptr {pointer}, align {itemsize(dtype)}")


def store_raw(f: FunctionText, raw: Operand, pointer: Operand, dtype: str, lanes: int = 1) -> None:
    """Store the bytes of contiguous elements."""
    f.do(f"store {vector(raw_type(dtype), lanes)} {raw}, ptr {pointer}, align {itemsize(dtype)}")


def extended(f: FunctionText, value: Operand, given: int, wanted: int, lanes: int = 1) -> Operand:
    """Unsigned integers of `given` bits in `wanted` bits, which are no fewer."""
    if given == wanted:
        return value
    return f.new(f"zext {vector(f'i{given}', lanes)} {value} to {vector(f'i{wanted}', lanes)}")


def truncated(f: FunctionText, value: Operand, given: int, wanted: int, lanes: int = 1) -> Operand:
    """The low `wanted` bits of integers of `given` bits."""
    if given == wanted:
        return value
    return f.new(f"trunc {vector(f'i{given}', lanes)} {value} to {vector(f'i{wanted}', lanes)}")


def shifted(f: FunctionText, value: Operand, bits: int, by: int, lanes: int = 1) -> Operand:
    """Integers moved up (or down, if `by` is negative) by a number of bits."""
    if not by:
        return value
    op, amount = ("shl", by) if by > 0 else ("lshr", -by)
    type_ = f"i{bits}"
    return f.new(f"{op} {vector(type_, lanes)} {value}, {number(type_, amount, lanes)}")
