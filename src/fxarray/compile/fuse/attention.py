"""Attention, found in plain operations: a product, something done to its rows, another product.

The second product has been placed, and one of its factors is computed. If that factor comes from
another product by elementwise operations and reductions over the very dimension that the second
product sums over (softmax, with any scores and masks), all of it can be one kernel that never
stores the matrix between the two.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fxarray.compile.fuse.summary import Summary
from fxarray.core.ir import Program, Var

# How many operations may stand between the products.
_MOST = 64


def rows_between(
    program: Program,
    summaries: Sequence[tuple[Summary, ...] | None],
    producers: Mapping[Var, int],
    users: Mapping[Var, Sequence[int]],
    start: int,
    product: int,
) -> set[int]:
    """The operations from a product (included) to one whose result another product reads.

    Args:
      program: the Program.
      summaries: what the results of its operations need.
      producers: which operation makes a variable.
      users: which operations read a variable; -1 stands for the Program's outputs.
      start: the operation whose result the second product reads.
      product: the second product.

    Returns:
      Their places in the Program; empty if there is no such product or something else reads what is
      computed in between.
    """
    found: set[int] = {start}
    stack = [start]
    first: int | None = None
    reduces = False
    while stack:
        place = stack.pop()
        known = summaries[place]
        if known is None or len(known) != 1 or known[0].scanned or len(found) > _MOST:
            # It is computed elsewhere, unless the product is behind it: then there is no match.
            found.discard(place)
            continue
        if known[0].contract:
            if first is not None and first != place:
                return set()
            first = place
            continue
        reduces = reduces or bool(known[0].reduced)
        if len(known[0].reduced) > 1:
            return set()
        for atom in program.equations[place].inputs:
            producer = producers.get(atom) if isinstance(atom, Var) else None
            if producer is not None and producer not in found:
                found.add(producer)
                stack.append(producer)
    if first is None or not reduces:
        return set()
    after = _depending(program, found, first)
    if start not in after:
        return set()
    for place in after:
        for variable in program.equations[place].outputs:
            if any(user not in after and user != product for user in users.get(variable, ())):
                return set()
    return after


def _depending(program: Program, places: set[int], first: int) -> set[int]:
    """Those of the operations that depend on the first one, and it."""
    made = set(program.equations[first].outputs)
    result = {first}
    for place in sorted(places):
        equation = program.equations[place]
        if place > first and any(atom in made for atom in equation.inputs):
            result.add(place)
            made.update(equation.outputs)
    return result
