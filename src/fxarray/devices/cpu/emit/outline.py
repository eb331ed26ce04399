"""Long operations as functions of their own, which a module holds once however often they are used.

What is longer than some fifty instructions, or has loops or rare branches, is emitted so: compile
time grows with the text, and the call costs less than a hundredth of what it runs.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from fxarray.devices.cpu.emit import features
from fxarray.devices.cpu.emit.function import FunctionText
from fxarray.devices.cpu.emit.number import Number
from fxarray.devices.cpu.emit.types import vector_type
from fxarray.devices.cpu.native.target import Target

Formula = Callable[..., "tuple[Number, ...]"]


def outlined(name: str, formula: Formula, *arguments: Number) -> tuple[Number, ...]:
    """The results of a formula, computed by a function that is written when first needed.

    Args:
      name: of the formula, which with the types of its arguments says all about it.
      formula: from Numbers to Numbers.
      arguments: its arguments, of equal lanes.
    """
    f = arguments[0].f
    lanes = arguments[0].lanes
    types = tuple([argument.type for argument in arguments])
    written = _write(name, formula, types, lanes, features.target())
    function, result, results, declarations = written
    f.declarations |= declarations
    passed = ", ".join([f"{a.whole_type} {a.operand}" for a in arguments])
    returned = f.new(f"call {result} @{function}({passed})")
    if len(results) == 1:
        return (Number(f, results[0], lanes, returned),)
    return tuple([
        Number(f, type_, lanes, f.new(f"extractvalue {result} {returned}, {position}"))
        for position, type_ in enumerate(results)
    ])  # fmt: skip


@lru_cache(maxsize=1024)
def _write(
    name: str, formula: Formula, types: tuple[str, ...], lanes: int, _: Target
) -> tuple[str, str, tuple[str, ...], frozenset[str]]:
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
        f"define internal {result_type} @{function}({signature}) noinline nounwind {{\n"
        f"{body}\n  ret {result_type} {returned}\n}}"
    )
    declarations = frozenset([*inner.declarations, text])
    return function, result_type, tuple([result.type for result in results]), declarations
