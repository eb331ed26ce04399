"""Polynomials over named sizes: the normal form behind symbolic sizes.

A polynomial is a sum of coefficient times monomial; a monomial is a product of powers of atoms; an
atom is a variable or an operation (floordiv, mod, min, max) on polynomials. Two polynomials in this
form are compared and hashed by structure: nothing here decides anything, so nothing raises.

Coefficients are integers in every size that a user sees. Proofs divide (`prove`), and there they
may be fractions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TypeAlias, Union

Coefficient: TypeAlias = int | Fraction


@dataclass(frozen=True)
class Variable:
    """A named size and what is promised of it.

    Args:
      name: a Python identifier.
      minimum: the least size; sizes are never negative.
      maximum: the greatest size, None for no limit.
      multiple_of: a positive number that divides every size.
    """

    name: str
    minimum: int = 0
    maximum: int | None = None
    multiple_of: int = 1

    @property
    def text(self) -> str:
        return self.name

    def promise(self) -> str:
        """What is promised of the size, in words."""
        high = "" if self.maximum is None else f" up to {self.maximum}"
        kind = "integer" if self.multiple_of == 1 else f"multiple of {self.multiple_of}"
        return f"any {kind} from {self.minimum}{high}"


@dataclass(frozen=True)
class Operation:
    """A part of a size that is not polynomial: `kind` is "floordiv", "mod", "min" or "max"."""

    kind: str
    operands: tuple[Polynomial, ...]

    @cached_property
    def text(self) -> str:
        texts = [operand.text for operand in self.operands]
        if self.kind == "floordiv":
            return f"floor({_in_parentheses(texts[0], 1)} / {_in_parentheses(texts[1], 2)})"
        if self.kind == "mod":
            return f"mod({texts[0]}, {texts[1]})"
        return f"{self.kind}({', '.join(texts)})"

    @cached_property
    def _hash(self) -> int:
        return hash((self.kind, self.operands))

    def __hash__(self) -> int:
        return self._hash


Atom: TypeAlias = Union[Variable, Operation]  # noqa: UP007 - evaluated before the classes' own |
Monomial: TypeAlias = "tuple[tuple[Atom, int], ...]"

UNIT: Monomial = ()


def _in_parentheses(text: str, strength: int) -> str:
    """`text` as an operand of `/`: a product needs parentheses on the right only."""
    weak = any(f" {sign} " in _outside_calls(text) for sign in "+-") or text.startswith("-")
    return f"({text})" if weak or (strength == 2 and "*" in _outside_calls(text)) else text


def _outside_calls(text: str) -> str:
    depth, kept = 0, list[str]()
    for character in text:
        depth -= character == ")"
        if depth == 0:
            kept.append(character)
        depth += character == "("
    return "".join(kept)


class Polynomial:
    """An immutable polynomial in normal form, with structural equality and hash."""

    __slots__ = ("_hash", "_text", "_variables", "terms")
    terms: tuple[tuple[Monomial, Coefficient], ...]

    def __init__(self, coefficients: Mapping[Monomial, Coefficient]) -> None:
        kept = [(monomial, _whole(c)) for monomial, c in coefficients.items() if c != 0]
        if len(kept) > 1:
            kept.sort(key=_print_order)
        self.terms = tuple(kept)
        self._hash: int | None = None
        self._text: str | None = None
        self._variables: frozenset[Variable] | None = None

    @classmethod
    def constant(cls, value: Coefficient) -> Polynomial:
        return cls({UNIT: value})

    @classmethod
    def of(cls, atom: Atom) -> Polynomial:
        return cls({((atom, 1),): 1})

    # --- identity ----------------------------------------------------------------------------

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Polynomial) and self.terms == other.terms)

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(self.terms)
        return self._hash

    def __repr__(self) -> str:
        return self.text

    def __reduce__(self) -> tuple[type[Polynomial], tuple[dict[Monomial, Coefficient]]]:
        return (Polynomial, (dict(self.terms),))

    @property
    def text(self) -> str:
        """The polynomial as a user would write it; `text.parse_dim` reads it back."""
        if self._text is None:
            self._text = _print(self.terms)
        return self._text

    # --- parts -------------------------------------------------------------------------------

    @property
    def value(self) -> Coefficient | None:
        """The number that this polynomial is, or None if it has a variable part."""
        if not self.terms:
            return 0
        if len(self.terms) == 1 and self.terms[0][0] == UNIT:
            return self.terms[0][1]
        return None

    @property
    def constant_term(self) -> Coefficient:
        return next((c for monomial, c in self.terms if monomial == UNIT), 0)

    @property
    def atoms(self) -> list[Atom]:
        """The atoms of all monomials, without those inside operations, each once."""
        return list(dict.fromkeys(atom for monomial, _ in self.terms for atom, _ in monomial))

    @property
    def variables(self) -> frozenset[Variable]:
        """All variables, those inside operations included."""
        if self._variables is None:
            found = set[Variable]()
            for atom in self.atoms:
                if isinstance(atom, Variable):
                    found.add(atom)
                else:
                    for operand in atom.operands:
                        found |= operand.variables
            self._variables = frozenset(found)
        return self._variables

    def sole_atom(self) -> Atom | None:
        """The atom that this polynomial is, if it is one atom and nothing else."""
        if len(self.terms) == 1 and self.terms[0][1] == 1:
            monomial = self.terms[0][0]
            if len(monomial) == 1 and monomial[0][1] == 1:
                return monomial[0][0]
        return None

    def split_by(self, atom: Atom) -> tuple[Polynomial, Polynomial] | None:
        """(A, R) with self = A * atom + R and neither containing `atom`, or None."""
        factor, rest = dict[Monomial, Coefficient](), dict[Monomial, Coefficient]()
        for monomial, coefficient in self.terms:
            power = dict(monomial).get(atom, 0)
            if power == 0:
                rest[monomial] = coefficient
            elif power == 1:
                factor[tuple(part for part in monomial if part[0] != atom)] = coefficient
            else:
                return None
        return Polynomial(factor), Polynomial(rest)

    # --- ring operations ---------------------------------------------------------------------

    def __add__(self, other: Polynomial) -> Polynomial:
        result = dict(self.terms)
        for monomial, coefficient in other.terms:
            result[monomial] = result.get(monomial, 0) + coefficient
        return Polynomial(result)

    def __sub__(self, other: Polynomial) -> Polynomial:
        return self + other.scale(-1)

    def __mul__(self, other: Polynomial) -> Polynomial:
        result = dict[Monomial, Coefficient]()
        for left, left_coefficient in self.terms:
            for right, right_coefficient in other.terms:
                monomial = multiply_monomials(left, right)
                product = left_coefficient * right_coefficient
                result[monomial] = result.get(monomial, 0) + product
        return Polynomial(result)

    def scale(self, factor: Coefficient) -> Polynomial:
        return Polynomial({monomial: c * factor for monomial, c in self.terms})

    def divide(self, divisor: Polynomial) -> Polynomial | None:
        """The polynomial Q with self = Q * divisor, with rational coefficients, or None."""
        if not divisor.terms:
            return None
        order = _monomial_order((*self.atoms, *divisor.atoms))
        lead, lead_coefficient = max(divisor.terms, key=order)
        quotient, rest = Polynomial({}), self
        while rest.terms:
            monomial, coefficient = max(rest.terms, key=order)
            factor = _divide_monomials(monomial, lead)
            if factor is None:
                return None
            step = Polynomial({factor: Fraction(coefficient) / lead_coefficient})
            quotient, rest = quotient + step, rest - step * divisor
        return quotient

    def is_integral(self) -> bool:
        """Whether all coefficients are integers."""
        return all(isinstance(c, int) for _, c in self.terms)

    # --- values ------------------------------------------------------------------------------

    def evaluate(self, sizes: Mapping[str, int]) -> int:
        """The size for given sizes of the variables; KeyError names a missing variable.

        Raises:
          ZeroDivisionError: a divisor that depends on variables is zero.
        """
        total: Coefficient = 0
        for monomial, coefficient in self.terms:
            product = coefficient
            for atom, power in monomial:
                product *= _evaluate_atom(atom, sizes) ** power
            total += product
        return int(total)


def _evaluate_atom(atom: Atom, sizes: Mapping[str, int]) -> int:
    if isinstance(atom, Variable):
        return sizes[atom.name]
    values = [operand.evaluate(sizes) for operand in atom.operands]
    if atom.kind == "floordiv":
        return values[0] // values[1]
    if atom.kind == "mod":
        return values[0] % values[1]
    return min(values) if atom.kind == "min" else max(values)


def _whole(coefficient: Coefficient) -> Coefficient:
    if isinstance(coefficient, Fraction) and coefficient.denominator == 1:
        return coefficient.numerator
    return coefficient


# --- monomials -----------------------------------------------------------------------------------


def multiply_monomials(left: Monomial, right: Monomial) -> Monomial:
    if not left or not right:
        return left or right
    powers = dict(left)
    for atom, power in right:
        powers[atom] = powers.get(atom, 0) + power
    return tuple(sorted(powers.items(), key=_atom_order))


def _divide_monomials(monomial: Monomial, divisor: Monomial) -> Monomial | None:
    powers = dict(monomial)
    for atom, power in divisor:
        left = powers.get(atom, 0) - power
        if left < 0:
            return None
        powers[atom] = left
    return tuple((atom, power) for atom, power in powers.items() if power)


def _atom_order(factor: tuple[Atom, int]) -> tuple[bool, str]:
    return (isinstance(factor[0], Operation), factor[0].text)


def _print_order(term: tuple[Monomial, Coefficient]) -> tuple[int, list[tuple[bool, str]]]:
    monomial = term[0]
    return (-sum(power for _, power in monomial), [_atom_order(factor) for factor in monomial])


def _monomial_order(
    atoms: Iterable[Atom],
) -> Callable[[tuple[Monomial, Coefficient]], tuple[int, ...]]:
    """An order of terms that multiplication respects: by degree, then by the powers of `atoms`."""
    ranked = sorted(dict.fromkeys(atoms), key=lambda atom: _atom_order((atom, 1)))

    def key(term: tuple[Monomial, Coefficient]) -> tuple[int, ...]:
        powers = dict(term[0])
        return (sum(powers.values()), *(powers.get(atom, 0) for atom in ranked))

    return key


def content(polynomial: Polynomial) -> int:
    """The greatest common divisor of the coefficients other than the constant term's."""
    return math.gcd(*(int(c) for monomial, c in polynomial.terms if monomial != UNIT))


# --- printing ------------------------------------------------------------------------------------


def _print(terms: tuple[tuple[Monomial, Coefficient], ...]) -> str:
    if not terms:
        return "0"
    pieces = list[str]()
    # A positive term first, where there is one: "8 - batch" and not "-batch + 8".
    first = next((i for i, (_, c) in enumerate(terms) if c > 0), 0)
    for monomial, coefficient in (terms[first], *terms[:first], *terms[first + 1 :]):
        factors = [atom.text if power == 1 else f"{atom.text}**{power}" for atom, power in monomial]
        if abs(coefficient) != 1 or not factors:
            factors.insert(0, str(abs(coefficient)))
        sign = ("-" if coefficient < 0 else "") if not pieces else "- " if coefficient < 0 else "+ "
        pieces.append(sign + "*".join(factors))
    return " ".join(pieces)
