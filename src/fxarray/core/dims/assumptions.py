"""Assumptions about symbolic sizes, and deciding comparisons with them.

    >>> from fxarray.core.dims import ShapeVar, assuming
    >>> rows, columns = ShapeVar("rows"), ShapeVar("columns")
    >>> with assuming("rows == 2*columns"):
    ...     rows >= columns
    True

An assumption names its variables by name only, so it can be written before they are made. Inside
the scope it takes part in every decision; the sizes that are later bound are checked against it.
"""

from __future__ import annotations

import contextlib
import contextvars
import math
from collections.abc import Generator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from fxarray.core.dims import build
from fxarray.core.dims.bounds import Facts, bounds, is_at_least
from fxarray.core.dims.polynomial import (
    UNIT,
    Atom,
    Operation,
    Polynomial,
    Variable,
)
from fxarray.core.dims.text import COMPARISONS, parse_comparison, unknown_variable


@dataclass(frozen=True)
class Assumption:
    """A comparison that is taken to hold; `relation` is one of == != < <= > >=."""

    left: Polynomial
    relation: str
    right: Polynomial

    def __str__(self) -> str:
        return f"{self.left} {self.relation} {self.right}"

    def holds(self, sizes: Mapping[str, int]) -> bool | None:
        """Whether it holds for `sizes`; None if one of its variables has no size there."""
        names = {variable.name for variable in self.left.variables | self.right.variables}
        if not names <= sizes.keys():
            return None
        left, right = self.left.evaluate(sizes), self.right.evaluate(sizes)
        return COMPARISONS[self.relation](left, right)


_scope: contextvars.ContextVar[tuple[Assumption, ...]] = contextvars.ContextVar(
    "fxarray_size_assumptions", default=()
)


def assumptions_in_scope() -> tuple[Assumption, ...]:
    """The assumptions that hold here: what a trace may depend on, hence part of its cache key."""
    return _scope.get()


@contextlib.contextmanager
def assuming(*assumptions: str) -> Generator[tuple[Assumption, ...]]:
    """Within the block, take comparisons of sizes to hold.

    Args:
      *assumptions: comparisons as text: `"batch % 2 == 0"`, `"queries <= keys"`.

    Yields:
      All assumptions now in scope.

    Raises:
      ArgumentError: a text is no comparison of sizes.

    >>> from fxarray.core.dims import ShapeVar
    >>> batch = ShapeVar("batch")
    >>> with assuming("batch % 2 == 0"):
    ...     batch // 2 * 2 == batch
    True
    """
    added = tuple(Assumption(*parse_comparison(text)) for text in assumptions)
    token = _scope.set(_scope.get() + added)
    try:
        yield _scope.get()
    finally:
        _scope.reset(token)


# --- what assumptions say about some variables ---------------------------------------------------


@dataclass(frozen=True)
class Knowledge:
    """Assumptions made ready for proofs: atoms to replace, and polynomials of known sign.

    `facts` are known not to be negative, `nonzero` are known not to be zero.
    """

    replacements: tuple[tuple[Atom, Polynomial], ...] = ()
    facts: Facts = ()
    nonzero: tuple[Polynomial, ...] = ()

    def rewrite(self, polynomial: Polynomial) -> Polynomial:
        for atom, replacement in self.replacements:
            polynomial = build.substitute(polynomial, {atom: replacement})
        return polynomial

    def replacing(self, atom: Atom, replacement: Polynomial) -> Knowledge:
        """This knowledge after one more replacement, carried through what is known so far."""
        step = {atom: replacement}
        return Knowledge(
            (*self.replacements, (atom, replacement)),
            tuple(build.substitute(fact, step) for fact in self.facts),
            tuple(build.substitute(each, step) for each in self.nonzero),
        )


@lru_cache(maxsize=1024)
def knowledge(assumptions: tuple[Assumption, ...], variables: frozenset[Variable]) -> Knowledge:
    """What `assumptions` say, with names meaning the given `variables` of that name."""
    named: dict[Atom, Polynomial] = {unknown_variable(v.name): _of(v) for v in variables}
    known = Knowledge()
    # Equalities first, so that the sizes which they eliminate are gone from the inequalities.
    for assumption in sorted(assumptions, key=lambda each: each.relation != "=="):
        left, right = (
            known.rewrite(build.substitute(side, named))
            for side in (assumption.left, assumption.right)
        )
        known = _learn(known, left - right, assumption.relation)
    return known


def _learn(known: Knowledge, difference: Polynomial, relation: str) -> Knowledge:
    if difference.value is not None:
        return known
    one = Polynomial.constant(1)
    if relation == "==":
        return _learn_zero(known, difference)
    if relation == "!=":
        return replace(known, nonzero=(*known.nonzero, difference))
    fact = difference if relation.startswith(">") else difference.scale(-1)
    if relation in (">", "<"):
        fact = fact - one
    return _learn_not_negative(known, fact)


def _learn_not_negative(known: Knowledge, fact: Polynomial) -> Knowledge:
    """A bound on one variable becomes part of the variable, where all rules see it."""
    fact = known.rewrite(fact)
    atoms = fact.atoms
    if len(atoms) == 1 and isinstance(variable := atoms[0], Variable):
        split = fact.split_by(variable)
        if split is not None and (slope := split[0].value) is not None:
            limit = -split[1].constant_term / slope
            low, high = variable.minimum, variable.maximum
            if slope > 0:
                bound = math.ceil(limit)
                low = max(low, bound)
            else:
                bound = math.floor(limit)
                high = bound if high is None else min(high, bound)
            narrowed = replace(variable, minimum=low, maximum=high)
            return known if narrowed == variable else known.replacing(variable, _of(narrowed))
    return replace(known, facts=(*known.facts, fact))


def _learn_zero(known: Knowledge, difference: Polynomial) -> Knowledge:
    """`difference == 0`, used to eliminate an atom where it can be solved for one."""
    sole = difference.sole_atom() or difference.scale(-1).sole_atom()
    if isinstance(sole, Operation) and sole.kind == "mod":
        dividend, divisor = sole.operands
        number, variable = divisor.value, dividend.sole_atom()
        if number is not None and isinstance(variable, Variable):
            multiple = math.lcm(variable.multiple_of, int(number))
            return known.replacing(variable, _of(replace(variable, multiple_of=multiple)))
    for atom in sorted(difference.atoms, key=lambda each: isinstance(each, Operation)):
        split = difference.split_by(atom)
        if split is None or split[0].value not in (1, -1):
            continue
        solution = split[1].scale(-1 if split[0].value == 1 else 1)
        if _occurs(atom, solution):
            continue
        eliminated = known.replacing(atom, solution)
        # What held of the atom now holds of its replacement.
        if isinstance(atom, Operation) and atom.kind == "floordiv":
            dividend, divisor = atom.operands
            if is_at_least(divisor, 1):
                remainder = dividend - divisor * solution
                eliminated = _learn_not_negative(eliminated, remainder)
                last = divisor - Polynomial.constant(1)
                eliminated = _learn_not_negative(eliminated, last - remainder)
        low, high = bounds(Polynomial.of(atom))
        if low is not None:
            eliminated = _learn_not_negative(eliminated, solution - Polynomial.constant(low))
        if high is not None:
            eliminated = _learn_not_negative(eliminated, Polynomial.constant(high) - solution)
        return eliminated
    return replace(known, facts=(*known.facts, difference, difference.scale(-1)))


def _occurs(atom: Atom, polynomial: Polynomial) -> bool:
    if isinstance(atom, Variable):
        return atom in polynomial.variables
    return any(
        each == atom
        or (isinstance(each, Operation) and any(_occurs(atom, part) for part in each.operands))
        for each in polynomial.atoms
    )


def _of(variable: Variable) -> Polynomial:
    return Polynomial.of(variable)


# --- decisions -----------------------------------------------------------------------------------


def decide(difference: Polynomial, relation: str) -> bool | None:
    """Whether `difference` stands in `relation` to zero for all sizes (True), for none (False).

    None means that neither is proved, with the promises of the variables and the assumptions in
    scope.
    """
    return _decide(difference, relation, _scope.get())


@lru_cache(maxsize=8192)
def _decide(
    difference: Polynomial, relation: str, assumptions: tuple[Assumption, ...]
) -> bool | None:
    if relation == "!=":
        equal = _decide(difference, "==", assumptions)
        return None if equal is None else not equal
    known = knowledge(assumptions, difference.variables) if assumptions else Knowledge()
    difference = known.rewrite(difference)
    low, high = bounds(difference, known.facts)
    if relation == "==":
        if low == 0 and high == 0:
            return True
        if (low is not None and low > 0) or (high is not None and high < 0):
            return False
        return False if _is_nonzero(difference, known) else None
    if relation in ("<", "<="):
        low, high = (None if high is None else -high), (None if low is None else -low)
        difference, relation = difference.scale(-1), {"<": ">", "<=": ">="}[relation]
    threshold = 0 if relation == ">=" else 1
    if threshold == 0 and low == -1 and _is_nonzero(difference + Polynomial.constant(1), known):
        low = 0
    if threshold == 1 and low == 0 and _is_nonzero(difference, known):
        low = 1
    if low is not None and low >= threshold:
        return True
    return False if high is not None and high < threshold else None


def _is_nonzero(difference: Polynomial, known: Knowledge) -> bool:
    if any(difference in (each, each.scale(-1)) for each in known.nonzero):
        return True
    varying = Polynomial({m: c for m, c in difference.terms if m != UNIT})
    step = build.known_multiple(varying)
    return step > 1 and int(difference.constant_term) % step != 0
