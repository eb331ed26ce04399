"""Long operations as functions of their own, which a module holds once however often they are used.

What is longer than some fifty instructions, or has loops or rare branches, is emitted so: compile
time grows with the text, and the call costs less than a hundredth of what it runs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from fxarray.devices.cpu.emit import features
from fxarray.devices.cpu.emit.function import FunctionText
from fxarray.devices.cpu.emit.number import Number
from fxarray.devices.cpu.emit.types import vector_type
from fxarray.devices.cpu.native.target import Target

Formula = Callable[..., "tuple[Number, ...]"]


def outlined(
    name: str, formula: Formula, *arguments: Number, widest: str = "", rare: bool = False
) -> tuple[Number, ...]:
    """The results of a formula, computed by a function that is written when first needed.

    Vectors longer than the processor's are passed in parts, so that the function is not written for
    two or four of them at once.

    Args:
      name: of the formula, which with the types of its arguments says all about it.
      formula: from Numbers to Numbers.
      arguments: its arguments, of equal lanes.
      widest: the widest type that the formula computes in, where that is not an argument's.
      rare: whether it stands on a branch that is seldom taken, and the other one keeps registers.
    """
    lanes = arguments[0].lanes
    widths = [_BYTES[type_] for type_ in (*[argument.type for argument in arguments], widest)]
    if lanes > 1 and lanes * max(widths) > features.target().vector_bytes:
        low, high = (
            outlined(name, formula, *part, widest=widest, rare=rare) for part in _halved(arguments)
        )
        return tuple([_joined(a, b) for a, b in zip(low, high, strict=True)])
    return _called(name, formula, arguments, "cold" if rare else "")


_BYTES = {"": 0, "i1": 1, "i8": 1, "i16": 2, "i32": 4, "i64": 8, "float": 4, "double": 8}


def _halved(numbers: tuple[Number, ...]) -> list[list[Number]]:
    half = numbers[0].lanes // 2
    return [
        [_lanes(number, range(start, start + half)) for number in numbers] for start in (0, half)
    ]


def _lanes(number: Number, chosen: range) -> Number:
    f, whole = number.f, number.whole_type
    if len(chosen) == 1:
        text = f.new(f"extractelement {whole} {number.operand}, i64 {chosen[0]}")
        return Number(f, number.type, 1, text)
    indices = ", ".join([f"i32 {lane}" for lane in chosen])
    mask = f"<{len(chosen)} x i32> <{indices}>"
    text = f.new(f"shufflevector {whole} {number.operand}, {whole} poison, {mask}")
    return Number(f, number.type, len(chosen), text)


def _joined(low: Number, high: Number) -> Number:
    f, type_, lanes = low.f, low.type, 2 * low.lanes
    whole = vector_type(type_, lanes)
    if low.lanes == 1:
        first = f.new(f"insertelement {whole} poison, {type_} {low.operand}, i64 0")
        both = f.new(f"insertelement {whole} {first}, {type_} {high.operand}, i64 1")
        return Number(f, type_, lanes, both)
    indices = ", ".join([f"i32 {lane}" for lane in range(lanes)])
    operands = f"{low.whole_type} {low.operand}, {low.whole_type} {high.operand}"
    both = f.new(f"shufflevector {operands}, <{lanes} x i32> <{indices}>")
    return Number(f, type_, lanes, both)


def _called(
    name: str, formula: Formula, arguments: tuple[Number, ...], attribute: str
) -> tuple[Number, ...]:
    f = arguments[0].f
    lanes = arguments[0].lanes
    types = tuple([argument.type for argument in arguments])
    key = (name, types, lanes, attribute, features.target())
    written = _written.get(key)
    if written is None:
        written = _written[key] = _write(name, formula, types, lanes, attribute)
    function, result, results, declarations = written
    f.declarations |= declarations
    passed = ", ".join([f"{a.whole_type} {a.operand}" for a in arguments])
    returned = f.new(f"call {result} @{function}({passed})")
    if len(results) == 1:
        return (Number(f, results[0], lanes, returned),)
    taken = [f.new(f"extractvalue {result} {returned}, {k}") for k in range(len(results))]
    return tuple([Number(f, t, lanes, v) for t, v in zip(results, taken, strict=True)])


Written: TypeAlias = tuple[str, str, tuple[str, ...], frozenset[str]]

# By all that decides the text. There are few names, and few types and lengths of vectors.
_written: dict[tuple[str, tuple[str, ...], int, str, Target], Written] = {}


def _write(
    name: str, formula: Formula, types: tuple[str, ...], lanes: int, attribute: str
) -> Written:
    """The function's name, its LLVM result type, the types of its results, and what it needs."""
    inner = FunctionText()
    arguments = [Number(inner, type_, lanes, f"%a{k}") for k, type_ in enumerate(types)]
    results = formula(*arguments)
    parts = [result.whole_type for result in results]
    if len(parts) == 1:
        result_type, returned = parts[0], results[0].operand
    else:
        result_type, returned = f"{{ {', '.join(parts)} }}", "poison"
        for position, (part, result) in enumerate(zip(parts, results, strict=True)):
            inserted = f"insertvalue {result_type} {returned}, {part} {result.operand}, {position}"
            returned = inner.new(inserted)
    function = ".".join(["fx", name, *types, str(lanes)])
    signature = ", ".join([f"{vector_type(t, lanes)} %a{k}" for k, t in enumerate(types)])
    body = "\n".join(["start:", *inner.allocas, *inner.lines])
    text = (
        f"define internal {result_type} @{function}({signature}) noinline nounwind {attribute} {{\n"
        f"{body}\n  ret {result_type} {returned}\n}}"
    )
    declarations = frozenset([*inner.declarations, text])
    return function, result_type, tuple([result.type for result in results]), declarations
