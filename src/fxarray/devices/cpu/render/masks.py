"""Masks of lanes: those known when compiling are computed here, as text.

LLVM would fold them too, but what it makes of constant masks is not always right (see
`emit.memory.store`), so none may appear that is not recognised.
"""

from __future__ import annotations

from collections.abc import Sequence

from fxarray.devices.cpu.emit.function import FunctionText, Operand
from fxarray.devices.cpu.emit.lanes import reverse
from fxarray.devices.cpu.emit.types import Value


def constant_mask(bits: Sequence[bool]) -> Operand:
    """A mask whose lanes are known."""
    return "<" + ", ".join([f"i1 {'true' if bit else 'false'}" for bit in bits]) + ">"


def known_bits(mask: Operand) -> list[bool] | None:
    """The lanes of a mask, if they are known."""
    if not mask.startswith("<"):
        return None
    return ["true" in bit for bit in mask.split(",")]


def both(f: FunctionText, left: Operand, right: Operand, lanes: int) -> Operand:
    """The lanes that are in both masks."""
    a, b = known_bits(left), known_bits(right)
    if a is not None and b is not None:
        return constant_mask([x and y for x, y in zip(a, b, strict=True)])
    return f.new(f"and <{lanes} x i1> {left}, {right}")


def reversed_mask(f: FunctionText, mask: Operand, lanes: int) -> Operand:
    """The lanes in reverse order."""
    bits = known_bits(mask)
    if bits is not None:
        return constant_mask(bits[::-1])
    return reverse(f, Value("bool", lanes, (mask,))).operand
