"""Factors: how the sizes of an operation's operands and results correspond, for sharding.

A matrix product is `Factors.of("bmk,bkn->bmn", linear=(0, 1))`: each letter is a factor, the size
of every dimension that carries it. A factor that no result has has *vanished*, by a sum unless
`vanished` says otherwise; splitting such a factor over devices leaves partial results, to be
combined by that reduction. Factors in `whole` cannot be split (the sorted axis of a sort).

    >>> from fxarray.core.factors import Factors
    >>> Factors.of("mk,kn->mn").operands
    (('m', 'k'), ('k', 'n'))
    >>> Factors.of("mk,kn->mn").vanished
    {'k': 'sum'}
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

Factor = str


@dataclass(frozen=True)
class Factors:
    """The factor record of one application of an operation.

    Args:
      operands: for each operand, the factor of each dimension.
      results: the same for each result.
      vanished: for each factor that no result has, the reduction that removed it: "sum", "max",
        "min", "prod", "and", "or", or "any" where all devices compute the same.
      whole: factors that must not be split.
      linear: operands that the operation is linear in, so that partial sums may pass through.
    """

    operands: tuple[tuple[Factor, ...], ...]
    results: tuple[tuple[Factor, ...], ...]
    vanished: Mapping[Factor, str] = field(default_factory=dict[str, str])
    whole: frozenset[Factor] = frozenset()
    linear: tuple[int, ...] = ()

    @classmethod
    def of(
        cls,
        text: str,
        vanished: Mapping[Factor, str] | None = None,
        whole: Iterable[Factor] = (),
        linear: Sequence[int] = (),
    ) -> Factors:
        """Parse `"bmk,bkn->bmn"`: one letter per dimension."""
        left, right = text.split("->")
        operands = tuple(tuple(part.strip()) for part in left.split(",")) if left else ()
        results = tuple(tuple(part.strip()) for part in right.split(","))
        kept = {factor for result in results for factor in result}
        gone = {factor for operand in operands for factor in operand} - kept
        reductions = {factor: (vanished or {}).get(factor, "sum") for factor in sorted(gone)}
        return cls(operands, results, reductions, frozenset(whole), tuple(linear))

    @classmethod
    def elementwise(
        cls, ranks: Sequence[int], result_ranks: Sequence[int], linear: Sequence[int] = ()
    ) -> Factors:
        """All dimensions correspond from the last backwards; 0-dimensional operands have none."""
        names = letters(max([*ranks, *result_ranks], default=0))
        return cls(
            tuple(names if rank else () for rank in ranks),
            tuple(names if rank else () for rank in result_ranks),
            linear=tuple(linear),
        )


def letters(count: int, start: int = 0) -> tuple[Factor, ...]:
    """`count` distinct factor names."""
    return tuple(chr(97 + i) if i < 26 else f"f{i}" for i in range(start, start + count))
