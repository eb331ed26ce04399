"""The order of elements as the order of unsigned integers, their keys.

NaN comes after all numbers, and -0 equals 0. Elements that are equal have equal keys.
"""

from __future__ import annotations

from fxarray.devices.cpu.emit.function import FunctionText, Operand
from fxarray.devices.cpu.library.text import number, vector


def key_of_float(f: FunctionText, value: Operand, bits: int, lanes: int = 1) -> Operand:
    """The key of f32 or f64 values."""
    real, whole = ("float", "i32") if bits == 32 else ("double", "i64")
    reals, wholes, flags = vector(real, lanes), vector(whole, lanes), vector("i1", lanes)
    # Adding 0 makes -0 into 0.
    plain = f.new(f"fadd {reals} {value}, {number(real, '0.0', lanes)}")
    pattern = f.new(f"bitcast {reals} {plain} to {wholes}")
    signs = f.new(f"ashr {wholes} {pattern}, {number(whole, bits - 1, lanes)}")
    flips = f.new(f"or {wholes} {signs}, {number(whole, -(2 ** (bits - 1)), lanes)}")
    key = f.new(f"xor {wholes} {pattern}, {flips}")
    is_nan = f.new(f"fcmp uno {reals} {value}, {number(real, '0.0', lanes)}")
    last = number(whole, -1, lanes)
    return f.new(f"select {flags} {is_nan}, {wholes} {last}, {wholes} {key}")


def float_of_key(f: FunctionText, key: Operand, bits: int, lanes: int = 1) -> Operand:
    """The f32 or f64 values of keys; all zeros are positive."""
    real, whole = ("float", "i32") if bits == 32 else ("double", "i64")
    reals, wholes = vector(real, lanes), vector(whole, lanes)
    signs = f.new(f"ashr {wholes} {key}, {number(whole, bits - 1, lanes)}")
    turned = f.new(f"xor {wholes} {signs}, {number(whole, -1, lanes)}")
    flips = f.new(f"or {wholes} {turned}, {number(whole, -(2 ** (bits - 1)), lanes)}")
    pattern = f.new(f"xor {wholes} {key}, {flips}")
    return f.new(f"bitcast {wholes} {pattern} to {reals}")


def key_of_integer(
    f: FunctionText, value: Operand, given: int, signed: bool, lanes: int = 1
) -> Operand:
    """The key of integers of `given` bits; bool is 1 bit."""
    bits = 64 if given == 64 else 32
    whole = f"i{bits}"
    wholes = vector(whole, lanes)
    if given < bits:
        extend = "sext" if signed else "zext"
        value = f.new(f"{extend} {vector(f'i{given}', lanes)} {value} to {wholes}")
    if not signed:
        return value
    return f.new(f"xor {wholes} {value}, {number(whole, -(2 ** (bits - 1)), lanes)}")


def integer_of_key(
    f: FunctionText, key: Operand, given: int, signed: bool, lanes: int = 1
) -> Operand:
    """The integers of keys."""
    bits = 64 if given == 64 else 32
    whole = f"i{bits}"
    wholes = vector(whole, lanes)
    if signed:
        key = f.new(f"xor {wholes} {key}, {number(whole, -(2 ** (bits - 1)), lanes)}")
    if given < bits:
        return f.new(f"trunc {wholes} {key} to {vector(f'i{given}', lanes)}")
    return key
