"""Associative combinations, as data: what a reduction or a scan does with two partial results.

A combiner has one or more states. `body` says, per state, how the states `a0, a1, ...` of the
earlier part and `b0, b1, ...` of the later part combine, in operations of `kernel.operations`;
nested tuples `(operation, operand, ...)`, where a leaf is a state or a number. The dtype of a state
is the dtype of what is reduced; identities are named, since they depend on it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

Expression: TypeAlias = Any


@dataclass(frozen=True)
class Combiner:
    """One associative combination.

    Args:
      identities: per state, "zero", "one", "lowest" (-inf or the least integer), "highest",
        "all_ones" (all bits set; True) or "last_index" (the greatest i32).
      body: per state, the expression of its combination.
      commutative: whether the parts may be combined in any order. All are, since states that depend
        on an order carry the index.
    """

    identities: tuple[str, ...]
    body: tuple[Expression, ...]
    commutative: bool = True

    @property
    def states(self) -> int:
        return len(self.identities)


def _best(comparison: str) -> Expression:
    """Whether the later state (value b0, index b1) wins: better, or equal and of lower index.

    NaN is better than every number, and the first NaN wins.
    """
    nan_wins = ("and", ("ne", "b0", "b0"), ("or", ("eq", "a0", "a0"), ("lt", "b1", "a1")))
    number = ("or", (comparison, "b0", "a0"), ("and", ("eq", "b0", "a0"), ("lt", "b1", "a1")))
    return ("or", nan_wins, ("and", ("eq", "a0", "a0"), number))


def _extremum(comparison: str, identity: str) -> Combiner:
    wins = _best(comparison)
    return Combiner(
        (identity, "last_index"), (("select", wins, "b0", "a0"), ("select", wins, "b1", "a1"))
    )


_GREATEST: Expression = ("max", "a0", "b0")


def _shrunk(side: str) -> Expression:
    """A sum of exponentials relative to the greatest value of both sides.

    The side that has it keeps its sum as it is: the difference of two infinities is NaN.
    """
    value, total = f"{side}0", f"{side}1"
    smaller = ("mul", total, ("exp", ("sub", value, _GREATEST)))
    return ("select", ("eq", value, _GREATEST), total, smaller)


COMBINERS: dict[str, Combiner] = {
    "sum": Combiner(("zero",), (("add", "a0", "b0"),)),
    "prod": Combiner(("one",), (("mul", "a0", "b0"),)),
    "max": Combiner(("lowest",), (("max", "a0", "b0"),)),
    "min": Combiner(("highest",), (("min", "a0", "b0"),)),
    "and": Combiner(("all_ones",), (("and", "a0", "b0"),)),
    "or": Combiner(("zero",), (("or", "a0", "b0"),)),
    "xor": Combiner(("zero",), (("xor", "a0", "b0"),)),
    "argmax": _extremum("gt", "lowest"),
    "argmin": _extremum("lt", "highest"),
    # log(sum(exp)): the greatest value so far, and the sum of exp(value - greatest).
    "logsumexp": Combiner(("lowest", "zero"), (_GREATEST, ("add", _shrunk("a"), _shrunk("b")))),
    # x -> a * x + b, composed: the recurrence of a linear scan.
    "linear": Combiner(
        ("one", "zero"),
        (("mul", "b0", "a0"), ("add", ("mul", "b0", "a1"), "b1")),
        commutative=False,
    ),
}
