"""Bounds of symbolic sizes: the largest number proved to be below one, and the least above it.

The interval of a polynomial is taken after moving every atom to its own lower bound (`x = low + x'`
with `x' >= 0`), which is exact for linear forms and good for products of positive sizes. Operations
are then replaced by what their definition says of them: `e - k + 1 <= k*floor(e/k) <= e`,
`min(a, b) <= a`, and so on; and known inequalities are subtracted. All of it is sound and none of
it complete: None means that no bound was found.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

from fxarray.core.dims.polynomial import (
    UNIT,
    Atom,
    Coefficient,
    Monomial,
    Operation,
    Polynomial,
    Variable,
)

_DEPTH = 4
# Polynomials looked at for one bound. More would prove a little more, at a price that a user feels.
_BUDGET = 150
Facts = tuple[Polynomial, ...]


@lru_cache(maxsize=4096)
def bounds(polynomial: Polynomial, facts: Facts = ()) -> tuple[int | None, int | None]:
    """The least and greatest integer that `polynomial` can be, None where no bound is known.

    Args:
      polynomial: a polynomial whose values are integers.
      facts: polynomials known not to be negative.
    """
    low = _best_lower(polynomial, facts)
    high = _best_lower(polynomial.scale(-1), facts)
    return (
        None if low is None else math.ceil(low),
        None if high is None else math.floor(-high),
    )


def _best_lower(polynomial: Polynomial, facts: Facts) -> Coefficient | None:
    if polynomial.value is not None:
        return polynomial.value
    search = _Search()
    best: Coefficient | None = None
    # Deepening by steps spends the budget on short proofs first.
    for depth in range(_DEPTH + 1):
        best = _greater(best, search.lower(polynomial, facts, depth))
        if search.spent >= _BUDGET or not search.cut_off:
            break
        search.cut_off = False
    return best


def is_at_least(polynomial: Polynomial, number: int, facts: Facts = ()) -> bool:
    """Whether `polynomial >= number` is proved."""
    low = bounds(polynomial, facts)[0]
    return low is not None and low >= number


def _weights(polynomial: Polynomial, fact: Polynomial) -> set[Fraction]:
    """The positive multiples of `fact` that cancel a term of `polynomial`."""
    known = dict(fact.terms)
    return {
        Fraction(coefficient) / known[monomial]
        for monomial, coefficient in polynomial.terms
        if monomial != UNIT and monomial in known and coefficient * known[monomial] > 0
    }


def _greater(a: Coefficient | None, b: Coefficient | None) -> Coefficient | None:
    return b if a is None else a if b is None else max(a, b)


def _least(values: Sequence[Coefficient | None]) -> Coefficient | None:
    return None if None in values else min(v for v in values if v is not None)


# --- intervals -----------------------------------------------------------------------------------


def _interval_lower(polynomial: Polynomial) -> Coefficient | None:
    if all(sum(power for _, power in monomial) < 2 for monomial, _ in polynomial.terms):
        return _linear_lower(polynomial)
    widths = dict[Atom, int | None]()
    moved = Polynomial({UNIT: polynomial.constant_term})
    shifted = dict[Atom, Polynomial]()
    for atom in polynomial.atoms:
        low, high = atom_bounds(atom)
        itself = Polynomial.of(atom)
        widths[atom] = None if low is None or high is None else high - low
        if low is not None:
            shifted[atom] = Polynomial.constant(low) + itself
        elif high is not None:
            shifted[atom] = Polynomial.constant(high) - itself
        else:
            return None
    for monomial, coefficient in polynomial.terms:
        if monomial != UNIT:
            product = Polynomial.constant(coefficient)
            for atom, power in monomial:
                for _ in range(power):
                    product = product * shifted[atom]
            moved = moved + product
    total: Coefficient = 0
    for monomial, coefficient in moved.terms:
        if monomial == UNIT:
            total += coefficient
        elif coefficient < 0:
            most = _monomial_upper(monomial, widths)
            if most is None:
                return None
            total += coefficient * most
    return total


def _linear_lower(polynomial: Polynomial) -> Coefficient | None:
    total: Coefficient = 0
    for monomial, coefficient in polynomial.terms:
        if monomial == UNIT:
            total += coefficient
            continue
        low, high = atom_bounds(monomial[0][0])
        extreme = low if coefficient > 0 else high
        if extreme is None:
            return None
        total += coefficient * extreme
    return total


def _monomial_upper(monomial: Monomial, widths: dict[Atom, int | None]) -> int | None:
    product = 1
    for atom, power in monomial:
        width = widths[atom]
        if width is None:
            return None
        product *= width**power
    return product


@lru_cache(maxsize=4096)
def atom_bounds(atom: Atom) -> tuple[int | None, int | None]:
    """The least and greatest value of one atom, from what is promised of its variables."""
    if isinstance(atom, Variable):
        low, high, step = atom.minimum, atom.maximum, atom.multiple_of
        return -(-low // step) * step, None if high is None else high // step * step
    each = [bounds(operand) for operand in atom.operands]
    lows, highs = [low for low, _ in each], [high for _, high in each]
    if atom.kind == "min":
        known = [high for high in highs if high is not None]
        low = None if None in lows else min(low for low in lows if low is not None)
        return low, min(known) if known else None
    if atom.kind == "max":
        known = [low for low in lows if low is not None]
        high = None if None in highs else max(high for high in highs if high is not None)
        return max(known) if known else None, high
    if lows[1] is None or lows[1] < 1:
        return None, None  # the divisor may be zero or negative
    if atom.kind == "mod":
        return _mod_bounds(each[0], highs[1])
    return _floordiv_bounds(each[0], lows[1], highs[1])


def _mod_bounds(
    dividend: tuple[int | None, int | None], divisor_high: int | None
) -> tuple[int, int | None]:
    limits = [] if divisor_high is None else [divisor_high - 1]
    low, high = dividend
    if low is not None and low >= 0 and high is not None:
        limits.append(high)
    return 0, min(limits) if limits else None


def _floordiv_bounds(
    dividend: tuple[int | None, int | None], divisor_low: int, divisor_high: int | None
) -> tuple[int | None, int | None]:
    """Bounds of floor(e / k) with k >= 1: e / k is extreme at an extreme e, and k by its sign."""

    def quotient(value: int, divisor: int | None) -> int:
        return (0 if value >= 0 else -1) if divisor is None else value // divisor

    low, high = dividend
    return (
        None if low is None else quotient(low, divisor_high if low >= 0 else divisor_low),
        None if high is None else quotient(high, divisor_low if high >= 0 else divisor_high),
    )


# --- the search ----------------------------------------------------------------------------------


class _Search:
    """One search for a lower bound: remembers what it has seen, and stops when it costs too much.

    Attributes:
      spent: the number of polynomials looked at.
      cut_off: whether a deeper search could look at more.
    """

    def __init__(self) -> None:
        self.spent = 0
        self.cut_off = False
        self._seen = dict[tuple[Polynomial, Facts, int], Coefficient | None]()

    def lower(self, polynomial: Polynomial, facts: Facts, depth: int) -> Coefficient | None:
        """A lower bound found by at most `depth` replacements, None if none is found."""
        if polynomial.value is not None:
            return polynomial.value
        key = (polynomial, facts, depth)
        if key not in self._seen:
            self._seen[key] = self._lower(polynomial, facts, depth)
        return self._seen[key]

    def _lower(self, polynomial: Polynomial, facts: Facts, depth: int) -> Coefficient | None:
        self.spent += 1
        best = _interval_lower(polynomial)
        operations = [atom for atom in polynomial.atoms if isinstance(atom, Operation)]
        if depth == 0:
            self.cut_off = self.cut_off or bool(operations or facts)
            return best
        for atom in operations:
            if self.spent >= _BUDGET:
                return best
            best = _greater(best, self._without(polynomial, atom, facts, depth - 1))
        for position, fact in enumerate(facts):
            others = facts[:position] + facts[position + 1 :]
            for weight in _weights(polynomial, fact):
                if self.spent >= _BUDGET:
                    return best
                # polynomial = (polynomial - weight * fact) + something not negative
                rest = polynomial - fact.scale(weight)
                best = _greater(best, self.lower(rest, others, depth - 1))
        return best

    def _not_negative(self, polynomial: Polynomial, facts: Facts, depth: int) -> bool:
        low = self.lower(polynomial, facts, depth)
        return low is not None and low >= 0

    def _without(
        self, polynomial: Polynomial, atom: Operation, facts: Facts, depth: int
    ) -> Coefficient | None:
        """A lower bound of `polynomial` found by replacing `atom` by its definition."""
        split = polynomial.split_by(atom)
        if split is None:
            return None
        factor, rest = split
        if atom.kind == "mod":
            dividend, divisor = atom.operands
            quotient = Polynomial.of(Operation("floordiv", atom.operands))
            return self.lower(factor * (dividend - divisor * quotient) + rest, facts, depth)
        grows = self._not_negative(factor, facts, depth)
        if not grows and not self._not_negative(factor.scale(-1), facts, depth):
            return None
        if atom.kind == "floordiv":
            return self._without_floordiv(factor, atom, rest, grows, facts, depth)
        found = [self.lower(factor * operand + rest, facts, depth) for operand in atom.operands]
        if grows == (atom.kind == "min"):
            # It equals one of its operands, and which is unknown.
            return _least(found)
        best: Coefficient | None = None
        for candidate in found:
            best = _greater(best, candidate)
        return best

    def _without_floordiv(
        self,
        factor: Polynomial,
        atom: Operation,
        rest: Polynomial,
        grows: bool,
        facts: Facts,
        depth: int,
    ) -> Coefficient | None:
        dividend, divisor = atom.operands
        low = self.lower(divisor, (), depth)
        if low is None or low < 1:
            return None
        multiplier = factor.divide(divisor)  # factor * floor = multiplier * (divisor * floor)
        if multiplier is None:
            return None
        replacement = dividend - divisor + Polynomial.constant(1) if grows else dividend
        return self.lower(multiplier * replacement + rest, facts, depth)
