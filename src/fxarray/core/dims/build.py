"""Making the operations of symbolic sizes in one normal form, so that equal sizes look equal.

Every rule here is an identity of integers. Sources: the usual laws of floor (Graham, Knuth,
Patashnik, Concrete Mathematics, chapter 3), `floor(floor(x/a)/b) = floor(x/(a*b))` among them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

from fxarray.core.dims.bounds import bounds, is_at_least
from fxarray.core.dims.polynomial import (
    UNIT,
    Atom,
    Monomial,
    Operation,
    Polynomial,
    Variable,
    content,
)

ONE = Polynomial.constant(1)


def monomial_multiple(monomial: Monomial) -> int:
    """A number that divides the monomial whatever its variables' sizes."""
    product = 1
    for atom, power in monomial:
        if isinstance(atom, Variable):
            product *= atom.multiple_of**power
    return product


def known_multiple(polynomial: Polynomial) -> int:
    """The greatest number known to divide `polynomial` whatever its variables' sizes; 0 for 0."""
    return math.gcd(*(int(c) * monomial_multiple(m) for m, c in polynomial.terms))


# --- floor division and remainder ----------------------------------------------------------------


@lru_cache(maxsize=4096)
def floordiv(dividend: Polynomial, divisor: Polynomial) -> Polynomial:
    """The floor of `dividend / divisor`.

    Raises:
      ZeroDivisionError: the divisor is the constant zero.
    """
    number = divisor.value
    if number is not None:
        return _floordiv_by_number(dividend, int(number))
    exact = dividend.divide(divisor)
    if exact is not None and exact.is_integral():
        return exact
    if is_at_least(dividend, 0) and is_at_least(divisor - dividend, 1):
        return Polynomial({})
    return Polynomial.of(Operation("floordiv", (dividend, divisor)))


def _floordiv_by_number(dividend: Polynomial, divisor: int) -> Polynomial:
    if divisor == 0:
        raise ZeroDivisionError(f"floor division of the size {dividend.text} by zero")
    if divisor < 0:
        return _floordiv_by_number(dividend.scale(-1), -divisor)
    whole, rest = _split_multiples(dividend, divisor)
    exact = [m for m, c in rest.terms if m != UNIT and int(c) * monomial_multiple(m) % divisor == 0]
    if exact and len(rest.terms) > 1:
        # floor((t + r) / k) = t/k + floor(r/k) for a term t that k is known to divide
        for monomial in exact:
            term = Polynomial({monomial: dict(rest.terms)[monomial]})
            whole, rest = whole + _floordiv_by_number(term, divisor), rest - term
        return resolve_exact_quotients(whole + _floordiv_by_number(rest, divisor))
    # x is an integer: floor((g*x + c) / (g*m)) = floor((x + floor(c/g)) / m)
    common = math.gcd(content(rest), divisor)
    if common > 1:
        constant = int(rest.constant_term) // common
        varying = {m: int(c) // common for m, c in rest.terms if m != UNIT}
        rest, divisor = Polynomial({**varying, UNIT: constant}), divisor // common
    if divisor == 1:
        return whole + rest
    low, high = bounds(rest)
    if low is not None and high is not None and low // divisor == high // divisor:
        return whole + Polynomial.constant(low // divisor)
    return whole + _floordiv_atom(rest, divisor)


def _split_multiples(dividend: Polynomial, divisor: int) -> tuple[Polynomial, Polynomial]:
    """(W, R) with dividend = divisor * W + R and the coefficients of R as small as they can be."""
    whole, rest = dict[Monomial, int](), dict[Monomial, int]()
    for monomial, coefficient in dividend.terms:
        quotient, remainder = divmod(int(coefficient), divisor)
        if monomial != UNIT and 2 * remainder > divisor:
            quotient, remainder = quotient + 1, remainder - divisor
        whole[monomial], rest[monomial] = quotient, remainder
    return Polynomial(whole), Polynomial(rest)


def _floordiv_atom(rest: Polynomial, divisor: int) -> Polynomial:
    varying = [coefficient for monomial, coefficient in rest.terms if monomial != UNIT]
    if varying[0] < 0:
        # One spelling for ceil(x/k): floor(-y/k) = -floor((y + k - 1)/k)
        opposite = rest.scale(-1) + Polynomial.constant(divisor - 1)
        return _floordiv_by_number(opposite, divisor).scale(-1)
    nested = _as_shifted_floor(rest)
    if nested is not None:
        # floor((floor(x/a) + c) / b) = floor((x + a*c) / (a*b))
        inner, inner_divisor, shift = nested
        return _floordiv_by_number(
            inner + Polynomial.constant(inner_divisor * shift), inner_divisor * divisor
        )
    return Polynomial.of(Operation("floordiv", (rest, Polynomial.constant(divisor))))


def _as_shifted_floor(rest: Polynomial) -> tuple[Polynomial, int, int] | None:
    """(x, a, c) if `rest` is floor(x/a) + c with numbers a and c."""
    shift = int(rest.constant_term)
    atom = (rest - Polynomial.constant(shift)).sole_atom()
    if isinstance(atom, Operation) and atom.kind == "floordiv":
        number = atom.operands[1].value
        if number is not None:
            return atom.operands[0], int(number), shift
    return None


@lru_cache(maxsize=4096)
def mod(dividend: Polynomial, divisor: Polynomial) -> Polynomial:
    """The remainder of `dividend / divisor`, with the sign of the divisor as in Python.

    Raises:
      ZeroDivisionError: the divisor is the constant zero.
    """
    number = divisor.value
    if number is not None:
        return _mod_by_number(dividend, int(number))
    exact = dividend.divide(divisor)
    if exact is not None and exact.is_integral():
        return Polynomial({})
    if is_at_least(dividend, 0) and is_at_least(divisor - dividend, 1):
        return dividend
    return Polynomial.of(Operation("mod", (dividend, divisor)))


def _mod_by_number(dividend: Polynomial, divisor: int) -> Polynomial:
    if divisor == 0:
        raise ZeroDivisionError(f"remainder of the size {dividend.text} modulo zero")
    if divisor < 0:
        return _mod_by_number(dividend.scale(-1), -divisor).scale(-1)
    if known_multiple(dividend) % divisor == 0:
        return Polynomial({})
    rest = Polynomial(
        {m: c for m, c in dividend.terms if int(c) * monomial_multiple(m) % divisor != 0}
    )
    _, rest = _split_multiples(rest, divisor)
    low, high = bounds(rest)
    if low is not None and high is not None and low // divisor == high // divisor:
        return rest - Polynomial.constant(low // divisor * divisor)
    common = math.gcd(content(rest), int(rest.constant_term), divisor)
    if common > 1:
        smaller = Polynomial({m: int(c) // common for m, c in rest.terms})
        return _mod_by_number(smaller, divisor // common).scale(common)
    return Polynomial.of(Operation("mod", (rest, Polynomial.constant(divisor))))


# --- sums and products with exact quotients ------------------------------------------------------


@lru_cache(maxsize=4096)
def add(left: Polynomial, right: Polynomial) -> Polynomial:
    """The sum, with coefficients moved into quotients that are known to be exact."""
    return resolve_exact_quotients(left + right)


@lru_cache(maxsize=4096)
def subtract(left: Polynomial, right: Polynomial) -> Polynomial:
    """The difference, with coefficients moved into quotients that are known to be exact."""
    return resolve_exact_quotients(left - right)


@lru_cache(maxsize=4096)
def multiply(left: Polynomial, right: Polynomial) -> Polynomial:
    """The product, in which `k * floor(e / k)` is `e` where k is known to divide e."""
    return resolve_exact_quotients(left * right)


def resolve_exact_quotients(polynomial: Polynomial) -> Polynomial:
    """`polynomial` with coefficients moved into quotients that are known to be exact."""
    for monomial, coefficient in polynomial.terms:
        for atom, power in monomial:
            if power != 1 or not isinstance(atom, Operation) or atom.kind != "floordiv":
                continue
            divisor = atom.operands[1].value
            if divisor is None or known_multiple(atom.operands[0]) % int(divisor) != 0:
                continue
            common = math.gcd(int(coefficient), int(divisor))
            if common == 1:
                continue
            others = tuple(part for part in monomial if part[0] != atom)
            simpler = Polynomial({others: int(coefficient) // common}) * _floordiv_by_number(
                atom.operands[0], int(divisor) // common
            )
            rest = Polynomial({m: c for m, c in polynomial.terms if m != monomial})
            return resolve_exact_quotients(rest + simpler)
    return polynomial


# --- minimum and maximum -------------------------------------------------------------------------


def minimum(*operands: Polynomial) -> Polynomial:
    """The least of `operands`, without those that are proved never to be the least."""
    return _extreme("min", operands, lambda a, b: is_at_least(b - a, 0))


def maximum(*operands: Polynomial) -> Polynomial:
    """The greatest of `operands`, without those that are proved never to be the greatest."""
    return _extreme("max", operands, lambda a, b: is_at_least(a - b, 0))


def _extreme(
    kind: str,
    operands: tuple[Polynomial, ...],
    wins: Callable[[Polynomial, Polynomial], bool],
) -> Polynomial:
    flat = list[Polynomial]()
    for operand in operands:
        atom = operand.sole_atom()
        nested = isinstance(atom, Operation) and atom.kind == kind
        flat.extend(atom.operands if nested and isinstance(atom, Operation) else (operand,))
    kept = list[Polynomial]()
    for operand in flat:
        if not any(wins(other, operand) for other in kept):
            kept = [other for other in kept if not wins(operand, other)]
            kept.append(operand)
    if len(kept) == 1:
        return kept[0]
    return Polynomial.of(Operation(kind, tuple(sorted(kept, key=lambda each: each.text))))


# --- substitution --------------------------------------------------------------------------------


def apply(kind: str, operands: tuple[Polynomial, ...]) -> Polynomial:
    """The operation of that kind on `operands`, in normal form."""
    if kind == "floordiv":
        return floordiv(*operands)
    if kind == "mod":
        return mod(*operands)
    return minimum(*operands) if kind == "min" else maximum(*operands)


def substitute(polynomial: Polynomial, replacements: dict[Atom, Polynomial]) -> Polynomial:
    """`polynomial` with atoms replaced everywhere, inside operations too."""
    result = Polynomial({})
    for monomial, coefficient in polynomial.terms:
        product = Polynomial.constant(coefficient)
        for atom, power in monomial:
            replaced = _substitute_atom(atom, replacements)
            for _ in range(power):
                product = product * replaced
        result = result + product
    return resolve_exact_quotients(result) if result.is_integral() else result


def _substitute_atom(atom: Atom, replacements: dict[Atom, Polynomial]) -> Polynomial:
    if atom in replacements:
        return replacements[atom]
    if isinstance(atom, Variable):
        return Polynomial.of(atom)
    operands = tuple(substitute(operand, replacements) for operand in atom.operands)
    rebuilt = apply(atom.kind, operands)
    sole = rebuilt.sole_atom()
    return replacements.get(sole, rebuilt) if sole is not None else rebuilt
