"""What moves values between lanes: shuffles, transposes, reductions and scans of one vector."""

from __future__ import annotations

from collections.abc import Sequence

from fxarray.devices.cpu.emit.combine import combine, identity
from fxarray.devices.cpu.emit.constants import splat_operand
from fxarray.devices.cpu.emit.function import FunctionText, Operand
from fxarray.devices.cpu.emit.number import literal
from fxarray.devices.cpu.emit.types import Value, compute_type, vector_type


def iota(_: FunctionText, lanes: int, type_: str) -> Operand:
    """The numbers of the lanes, as a constant of an LLVM scalar type."""
    numbers = [literal(lane, type_) for lane in range(lanes)]
    return numbers[0] if lanes == 1 else f"<{', '.join([f'{type_} {n}' for n in numbers])}>"


def tail_mask(f: FunctionText, count: Operand | int, lanes: int) -> Operand:
    """True on the first `count` (an i64) lanes."""
    if lanes == 1:
        return f.new(f"icmp sgt i64 {count}, 0")
    # Narrow numbers, so that the comparison is one instruction.
    type_ = "i32" if lanes <= 16 else "i8"
    least = f.larger(f.smaller(count, lanes), 0)
    narrow = f.new(f"trunc i64 {least} to {type_}")
    vector = vector_type(type_, lanes)
    limit = splat_operand(f, narrow, type_, lanes)
    return f.new(f"icmp slt {vector} {iota(f, lanes, type_)}, {limit}")


def shuffle_operands(
    f: FunctionText, type_: str, lanes: int, a: Operand, b: Operand, indices: Sequence[int]
) -> Operand:
    """Lanes of two vectors by their numbers; those of b follow those of a."""
    vector = vector_type(type_, lanes)
    chosen = ", ".join([f"i32 {index}" for index in indices])
    return f.new(f"shufflevector {vector} {a}, {vector} {b}, <{len(indices)} x i32> <{chosen}>")


def shuffle(f: FunctionText, a: Value, indices: Sequence[int], b: Value | None = None) -> Value:
    """Lanes of a vector, or of two, by their numbers.

    Args:
      f: the function that is being written.
      a: the first vector.
      indices: which lanes; those of b follow those of a. One index gives a scalar.
      b: the second vector, if any.
    """
    type_ = compute_type(a.dtype)
    others = b.parts if b is not None else ("poison",) * len(a.parts)
    if len(indices) == 1:
        (index,) = indices
        source = a if index < a.lanes or b is None else b
        return extract(f, source, index % a.lanes)
    parts = [
        shuffle_operands(f, type_, a.lanes, mine, other, indices)
        for mine, other in zip(a.parts, others, strict=True)
    ]
    return Value(a.dtype, len(indices), tuple(parts))


def extract(f: FunctionText, value: Value, lane: Operand | int) -> Value:
    """One lane as a scalar."""
    if value.lanes == 1:
        return value
    parts = [f.new(f"extractelement {value.type} {part}, i64 {lane}") for part in value.parts]
    return Value(value.dtype, 1, tuple(parts))


def reverse(f: FunctionText, value: Value) -> Value:
    """The lanes in reverse order."""
    if value.lanes == 1:
        return value
    return shuffle(f, value, range(value.lanes - 1, -1, -1))


def join(f: FunctionText, low: Value, high: Value) -> Value:
    """The lanes of one vector and then those of another, which is as long."""
    if low.lanes == 1:
        type_ = vector_type(compute_type(low.dtype), 2)
        element = compute_type(low.dtype)
        parts: list[Operand] = []
        for a, b in zip(low.parts, high.parts, strict=True):
            first = f.new(f"insertelement {type_} poison, {element} {a}, i64 0")
            parts.append(f.new(f"insertelement {type_} {first}, {element} {b}, i64 1"))
        return Value(low.dtype, 2, tuple(parts))
    return shuffle(f, low, range(2 * low.lanes), high)


def transpose(f: FunctionText, rows: Sequence[Value]) -> list[Value]:
    """Column k of the rows as value k. The rows are as many as their lanes, a power of two."""
    lanes = rows[0].lanes
    assert len(rows) == lanes, f"{len(rows)} rows of {lanes} lanes are not square"
    current = list(rows)
    # Stage by stage, the off-diagonal blocks of size `step` change places.
    step = lanes // 2
    while step:
        low = [k if not k & step else k - step + lanes for k in range(lanes)]
        high = [k + step if not k & step else k + lanes for k in range(lanes)]
        following = list(current)
        for row in range(lanes):
            if not row & step:
                a, b = current[row], current[row + step]
                following[row] = shuffle(f, a, low, b)
                following[row + step] = shuffle(f, a, high, b)
        current = following
        step //= 2
    return current


def horizontal(f: FunctionText, combiner: str, states: Sequence[Value]) -> list[Value]:
    """All lanes combined, as scalars: halves with halves, so that the order is fixed."""
    current = list(states)
    while (lanes := current[0].lanes) > 1:
        low = [shuffle(f, state, range(lanes // 2)) for state in current]
        high = [shuffle(f, state, range(lanes // 2, lanes)) for state in current]
        current = combine(f, combiner, low, high)
    return current


def prefix(
    f: FunctionText, combiner: str, states: Sequence[Value], reverse_order: bool = False
) -> list[Value]:
    """Each lane combined with all before it (after it, in reverse order)."""
    current = list(states)
    lanes = current[0].lanes
    start = [identity(combiner, number, state.dtype, lanes) for number, state in enumerate(current)]
    distance = 1
    while distance < lanes:
        # Lanes that move in hold the identity.
        if reverse_order:
            indices = [k + distance if k + distance < lanes else lanes for k in range(lanes)]
        else:
            indices = [k - distance if k >= distance else lanes for k in range(lanes)]
        moved = [shuffle(f, a, indices, b) for a, b in zip(current, start, strict=True)]
        current = combine(f, combiner, moved, current)
        distance *= 2
    return current
