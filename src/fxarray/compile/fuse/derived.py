"""What it would take to compute values again: found in one pass over a Program, forwards.

Many values are a few operations away from one other value of their size (a centred row from the row
and its mean, a derivative of an activation from its argument). Where several kernels need such
values, each may compute them again from that one, so that only that one is in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fxarray.compile.fuse.summary import Opaque, Summary
from fxarray.core.ir import Equation, Var
from fxarray.kernel import sizes

# What computing a value again may cost, in additions: about what moving it to memory and back does.
RECOMPUTED = 30
# How many smaller values (the mean of a row, a factor for each column) it may take besides.
_OTHERS = 4


@dataclass(frozen=True)
class Origin:
    """Where a value comes from.

    Args:
      base: the one value of its size that it is computed from; itself, or None for none.
      cost: of computing it from there, in additions.
      others: the smaller values that it takes besides.
      after_product: whether it is an elementwise function of a product of matrices.
    """

    base: Var | None
    cost: int
    after_product: bool
    others: frozenset[Var] = frozenset()


class Origins:
    """The origins of the results of a Program's operations."""

    def __init__(self) -> None:
        self._known: dict[Var, Origin] = {}

    def of(self, variable: Var) -> Origin:
        known = self._known.get(variable)
        return Origin(variable, 0, False) if known is None else known

    def is_recomputed(self, variable: Var) -> bool:
        """Whether to compute a value in each kernel that reads it, if it need not be in memory."""
        known = self._known.get(variable)
        return known is not None and known.base is not variable

    def add(self, equation: Equation, known: Sequence[Summary]) -> None:
        """Note the results of an operation whose operands are known."""
        for variable, summary in zip(equation.outputs, known, strict=True):
            self._known[variable] = self._origin(variable, equation, summary)

    def _origin(self, variable: Var, equation: Equation, summary: Summary) -> Origin:
        if summary.reduced or summary.scanned:
            return Origin(variable, 0, summary.contract)
        own = _elements(variable)
        bases: set[Var] = set()
        others: set[Var] = set()
        cost = summary.cost
        regular = not any(isinstance(p, Opaque) for d in summary.demands for p in d.index)
        after_product = False
        for operand in {a for a in equation.inputs if isinstance(a, Var)}:
            if 4 * _elements(operand) <= own:
                others.add(operand)
                continue
            origin = self.of(operand)
            others |= origin.others
            after_product = after_product or origin.after_product
            cost += origin.cost
            if origin.base is not None:
                bases.add(origin.base)
        many = len(bases) > 1 or len(others) > _OTHERS
        if many or not regular or cost > RECOMPUTED:
            return Origin(variable, 0, after_product)
        return Origin(next(iter(bases), None), cost, after_product, frozenset(others))


def _elements(variable: Var) -> int:
    return sizes.typical(sizes.product(sizes.kernel_shape(variable.type.shape)))
