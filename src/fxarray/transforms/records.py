"""Records of linearized calls as trees: their residuals are leaves, the rest is static.

So the function that `vjp` or `linearize` returned can itself be a result or an argument of a
transformed function, such as a jitted one.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from fxarray.core.primitive import Linear, Zero
from fxarray.interpreters.linearize import LinearEquation, Linearization


class Skeleton:
    """A record without its residuals; two are equal if they apply the same operations."""

    __slots__ = ("_hash", "key", "record")

    def __init__(self, record: Linearization, key: Hashable) -> None:
        self.record = record
        self.key = key
        self._hash = hash(key)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Skeleton) and self.key == other.key)

    def __hash__(self) -> int:
        return self._hash

    def fill(self, residuals: Sequence[Any]) -> Linearization:
        """The record with other residuals."""
        given = iter(residuals)
        equations = [
            LinearEquation(
                equation.op,
                [x if type(x) is Linear else next(given) for x in equation.operands],
                equation.outputs,
                equation.source,
                equation.scopes,
            )
            for equation in self.record.equations
        ]
        return Linearization(self.record.inputs, equations, self.record.outputs)


def take_apart(record: Linearization) -> tuple[list[Any], Skeleton]:
    """A record's residuals, in order of use, and the rest."""
    numbers: dict[Any, int] = {}

    def name(variable: Any) -> Hashable:
        if type(variable) is Zero:
            return ("zero", variable.type)
        return (numbers.setdefault(variable, len(numbers)), variable.type)

    residuals: list[Any] = []
    bare: list[LinearEquation] = []
    inputs = tuple(map(name, record.inputs))
    body: list[Hashable] = []
    for equation in record.equations:
        operands: list[Hashable] = []
        for operand in equation.operands:
            if type(operand) is Linear:
                operands.append(name(operand))
            else:
                operands.append(None)
                residuals.append(operand)
        body.append((equation.op, tuple(operands), tuple(map(name, equation.outputs))))
        # The static part of a tree may live long, in a cache: it must not hold the residuals.
        kept = [x if type(x) is Linear else None for x in equation.operands]
        bare.append(
            LinearEquation(equation.op, kept, equation.outputs, equation.source, equation.scopes)
        )
    key = (inputs, tuple(body), tuple(map(name, record.outputs)))
    return residuals, Skeleton(Linearization(record.inputs, bare, record.outputs), key)
