"""Loads and stores of values: contiguous, strided, and at given offsets.

Pointers are to elements in memory of the dtype's storage type, aligned to it or to its parts. Where
a mask is false nothing is read or written, and a load gives `fill`.
"""

from __future__ import annotations

from fxarray.devices.cpu.emit.constants import constant, splat_operand
from fxarray.devices.cpu.emit.conversions import from_storage, storage_part, to_storage
from fxarray.devices.cpu.emit.function import FunctionText, Operand
from fxarray.devices.cpu.emit.lanes import iota, shuffle_operands
from fxarray.devices.cpu.emit.number import Number
from fxarray.devices.cpu.emit.types import (
    Value,
    compute_type,
    is_complex,
    itemsize,
    storage_type,
    vector_type,
)

_SUFFIX = {"float": "f32", "double": "f64"}
_ZEROS = ("0", "0.0", "0j", "False")


def load(
    f: FunctionText,
    pointer: Operand,
    dtype: str,
    lanes: int,
    mask: Operand | None = None,
    fill: complex | Value | None = None,
) -> Value:
    """So many elements in a row.

    Args:
      f: the function that is being written.
      pointer: to the first element.
      dtype: of the elements.
      lanes: how many.
      mask: which of them are read; None is all.
      fill: the others: a number or a value; None is zero.
    """
    if is_complex(dtype):
        return _load_complex(f, pointer, dtype, lanes, mask, fill)
    type_ = storage_type(dtype)
    stored = _load_part(f, pointer, type_, lanes, mask, itemsize(dtype))
    return _filled(f, _value(from_storage(stored, dtype), dtype), mask, fill)


def store(
    f: FunctionText,
    value: Value,
    pointer: Operand,
    mask: Operand | None = None,
    nontemporal: bool = False,
) -> None:
    """A value to memory in a row.

    Args:
      f: the function that is being written.
      value: what to write.
      pointer: to the first element.
      mask: which elements are written; None is all.
      nontemporal: past the caches, for memory that is not read soon; the pointer is aligned to the
        whole vector then.
    """
    dtype, lanes = value.dtype, value.lanes
    if is_complex(dtype):
        _store_complex(f, value, pointer, mask)
        return
    stored = to_storage(_number(f, value), dtype)
    _store_part(f, stored, pointer, mask, itemsize(dtype), nontemporal and lanes > 1)


def load_strided(
    f: FunctionText,
    pointer: Operand,
    stride: Operand | int,
    dtype: str,
    lanes: int,
    mask: Operand | None = None,
    fill: complex | Value | None = None,
) -> Value:
    """Elements `stride` elements apart; the stride is a number or an i64."""
    step = str(stride)
    if lanes == 1 or step == "1":
        return load(f, pointer, dtype, lanes, mask, fill)
    return gather(f, pointer, _multiples(f, step, lanes), dtype, lanes, mask, fill)


def store_strided(
    f: FunctionText,
    value: Value,
    pointer: Operand,
    stride: Operand | int,
    mask: Operand | None = None,
) -> None:
    """A value to elements `stride` elements apart."""
    step = str(stride)
    if value.lanes == 1 or step == "1":
        store(f, value, pointer, mask)
        return
    scatter(f, value, pointer, _multiples(f, step, value.lanes), mask)


def _multiples(f: FunctionText, step: Operand, lanes: int) -> Operand:
    """0, step, 2 * step, ... as a vector of i64."""
    if step.lstrip("-").isdigit():
        return "<" + ", ".join([f"i64 {int(step) * lane}" for lane in range(lanes)]) + ">"
    vector = vector_type("i64", lanes)
    steps = splat_operand(f, step, "i64", lanes)
    return f.new(f"mul nsw {vector} {iota(f, lanes, 'i64')}, {steps}")


def gather(
    f: FunctionText,
    base: Operand,
    offsets: Operand,
    dtype: str,
    lanes: int,
    mask: Operand | None = None,
    fill: complex | Value | None = None,
) -> Value:
    """The elements at given offsets, in elements, a vector of i64 (an i64 for one lane)."""
    pointers = _addresses(f, base, offsets, dtype, lanes)
    if is_complex(dtype):
        part = compute_type(dtype)
        imaginary = _following(f, pointers, part, lanes)
        parts = [
            _gather_part(f, where, part, lanes, mask, itemsize(dtype) // 2).operand
            for where in (pointers, imaginary)
        ]
        return _filled(f, Value(dtype, lanes, tuple(parts)), mask, fill)
    stored = _gather_part(f, pointers, storage_type(dtype), lanes, mask, itemsize(dtype))
    return _filled(f, _value(from_storage(stored, dtype), dtype), mask, fill)


def scatter(
    f: FunctionText, value: Value, base: Operand, offsets: Operand, mask: Operand | None = None
) -> None:
    """A value to the elements at given offsets; of equal offsets the last lane stays."""
    dtype, lanes = value.dtype, value.lanes
    pointers = _addresses(f, base, offsets, dtype, lanes)
    if is_complex(dtype):
        part = compute_type(dtype)
        places = (pointers, _following(f, pointers, part, lanes))
        for where, operand in zip(places, value.parts, strict=True):
            number = Number(f, part, lanes, operand)
            _scatter_part(f, number, where, mask, itemsize(dtype) // 2)
        return
    _scatter_part(f, to_storage(_number(f, value), dtype), pointers, mask, itemsize(dtype))


# --- parts ----------------------------------------------------------------------------------------


def _number(f: FunctionText, value: Value) -> Number:
    return Number(f, compute_type(value.dtype), value.lanes, value.operand)


def _value(number: Number, dtype: str) -> Value:
    return Value(dtype, number.lanes, (number.operand,))


def _filled(
    f: FunctionText, value: Value, mask: Operand | None, fill: complex | Value | None
) -> Value:
    """The value with `fill` where the mask is false. Loads have given zero bits there."""
    if mask is None or fill is None or repr(fill) in _ZEROS:
        return value
    other = fill if isinstance(fill, Value) else constant(fill, value.dtype, value.lanes)
    condition = vector_type("i1", value.lanes)
    type_ = value.type
    parts = [
        f.new(f"select {condition} {mask}, {type_} {a}, {type_} {b}")
        for a, b in zip(value.parts, other.parts, strict=True)
    ]
    return Value(value.dtype, value.lanes, tuple(parts))


def _load_part(
    f: FunctionText, pointer: Operand, type_: str, lanes: int, mask: Operand | None, align: int
) -> Number:
    vector = vector_type(type_, lanes)
    if mask is None:
        return Number(f, type_, lanes, f.new(f"load {vector}, ptr {pointer}, align {align}"))
    if lanes == 1:
        slot = f.alloca(type_, "zeroinitializer")

        def read() -> None:
            element = f.new(f"load {type_}, ptr {pointer}, align {align}")
            f.do(f"store {type_} {element}, ptr {slot}")

        f.branch(mask, read)
        return Number(f, type_, lanes, f.new(f"load {type_}, ptr {slot}"))
    name = f"@llvm.masked.load.v{lanes}{_SUFFIX.get(type_, type_)}.p0"
    truth = vector_type("i1", lanes)
    f.declare(f"declare {vector} {name}(ptr, i32, {truth}, {vector})")
    operands = f"ptr {pointer}, i32 {align}, {truth} {mask}, {vector} zeroinitializer"
    return Number(f, type_, lanes, f.new(f"call {vector} {name}({operands})"))


def _store_part(
    f: FunctionText,
    part: Number,
    pointer: Operand,
    mask: Operand | None,
    align: int,
    nontemporal: bool = False,
) -> None:
    vector = part.whole_type
    if mask is None:
        if nontemporal:
            f.declare("!0 = !{i32 1}")
            align *= part.lanes
        suffix = ", !nontemporal !0" if nontemporal else ""
        f.do(f"store {vector} {part.operand}, ptr {pointer}, align {align}{suffix}")
        return
    if part.lanes == 1:
        f.branch(
            mask,
            lambda: f.do(f"store {vector} {part.operand}, ptr {pointer}, align {align}"),
        )
        return
    only = _only_lane(mask)
    if only is not None:
        # LLVM 22 writes a wide element here where a constant mask of one lane meets a truncation.
        element = f.new(f"extractelement {vector} {part.operand}, i64 {only}")
        where = f.offset(pointer, only, part.type)
        f.do(f"store {part.type} {element}, ptr {where}, align {align}")
        return
    name = f"@llvm.masked.store.v{part.lanes}{_SUFFIX.get(part.type, part.type)}.p0"
    truth = vector_type("i1", part.lanes)
    f.declare(f"declare void {name}({vector}, ptr, i32, {truth})")
    f.do(f"call void {name}({vector} {part.operand}, ptr {pointer}, i32 {align}, {truth} {mask})")


def _only_lane(mask: Operand) -> int | None:
    """The lane that is true in a constant mask that has just one."""
    if not mask.startswith("<") or mask.count("true") != 1:
        return None
    return next(lane for lane, bit in enumerate(mask.split(",")) if "true" in bit)


def _addresses(f: FunctionText, base: Operand, offsets: Operand, dtype: str, lanes: int) -> Operand:
    type_ = storage_type(dtype)
    return f.new(f"getelementptr {type_}, ptr {base}, {vector_type('i64', lanes)} {offsets}")


def _following(f: FunctionText, pointers: Operand, part: str, lanes: int) -> Operand:
    """The addresses of imaginary parts."""
    return f.new(f"getelementptr {part}, {vector_type('ptr', lanes)} {pointers}, i64 1")


def _gather_part(
    f: FunctionText, pointers: Operand, type_: str, lanes: int, mask: Operand | None, align: int
) -> Number:
    if lanes == 1:
        return _load_part(f, pointers, type_, lanes, mask, align)
    vector, truth = vector_type(type_, lanes), vector_type("i1", lanes)
    many = vector_type("ptr", lanes)
    name = f"@llvm.masked.gather.v{lanes}{_SUFFIX.get(type_, type_)}.v{lanes}p0"
    f.declare(f"declare {vector} {name}({many}, i32, {truth}, {vector})")
    guard = mask or "splat (i1 true)"
    operands = f"{many} {pointers}, i32 {align}, {truth} {guard}, {vector} zeroinitializer"
    return Number(f, type_, lanes, f.new(f"call {vector} {name}({operands})"))


def _scatter_part(
    f: FunctionText, part: Number, pointers: Operand, mask: Operand | None, align: int
) -> None:
    lanes = part.lanes
    if lanes == 1:
        _store_part(f, part, pointers, mask, align)
        return
    truth, many = vector_type("i1", lanes), vector_type("ptr", lanes)
    name = f"@llvm.masked.scatter.v{lanes}{_SUFFIX.get(part.type, part.type)}.v{lanes}p0"
    f.declare(f"declare void {name}({part.whole_type}, {many}, i32, {truth})")
    guard = mask or "splat (i1 true)"
    f.do(
        f"call void {name}({part.whole_type} {part.operand}, {many} {pointers}, i32 {align}, "
        f"{truth} {guard})"
    )


# --- complex elements in a row --------------------------------------------------------------------


def _doubled(f: FunctionText, mask: Operand | None, lanes: int) -> Operand | None:
    """A mask of elements as a mask of their parts."""
    if mask is None or lanes == 1:
        return mask
    indices = [lane // 2 for lane in range(2 * lanes)]
    return shuffle_operands(f, "i1", lanes, mask, "poison", indices)


def _load_complex(
    f: FunctionText,
    pointer: Operand,
    dtype: str,
    lanes: int,
    mask: Operand | None,
    fill: complex | Value | None,
) -> Value:
    type_, align = storage_part(dtype), itemsize(dtype) // 2
    if lanes == 1:
        second = f.offset(pointer, 1, type_)
        parts = [_load_part(f, where, type_, 1, mask, align) for where in (pointer, second)]
        value = Value(dtype, 1, tuple([part.operand for part in parts]))
    else:
        wide = _load_part(f, pointer, type_, 2 * lanes, _doubled(f, mask, lanes), align)
        operands = [
            shuffle_operands(
                f, type_, 2 * lanes, wide.operand, "poison", [2 * k + part for k in range(lanes)]
            )
            for part in (0, 1)
        ]
        value = Value(dtype, lanes, tuple(operands))
    return _filled(f, value, mask, fill)


def _store_complex(f: FunctionText, value: Value, pointer: Operand, mask: Operand | None) -> None:
    dtype, lanes = value.dtype, value.lanes
    type_, align = storage_part(dtype), itemsize(dtype) // 2
    real, imaginary = value.parts
    if lanes == 1:
        second = f.offset(pointer, 1, type_)
        for where, part in ((pointer, real), (second, imaginary)):
            _store_part(f, Number(f, type_, 1, part), where, mask, align)
        return
    indices = [k // 2 + (k % 2) * lanes for k in range(2 * lanes)]
    wide = shuffle_operands(f, type_, lanes, real, imaginary, indices)
    _store_part(f, Number(f, type_, 2 * lanes, wide), pointer, _doubled(f, mask, lanes), align)
