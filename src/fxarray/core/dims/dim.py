"""Dim: a size of an array that is not a number yet."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NoReturn, TypeAlias

import numpy as np

from fxarray.core.dims import build, explain
from fxarray.core.dims.assumptions import decide
from fxarray.core.dims.bounds import bounds
from fxarray.core.dims.polynomial import Polynomial, Variable
from fxarray.core.dims.text import parse_polynomial
from fxarray.core.errors import (
    ArgumentError,
    InconclusiveDimension,
    ShapeError,
    SymbolicSizeError,
)


class Dim:
    """An integer expression over named sizes, usable wherever a size of an array is.

    Made by `ShapeVar` and by arithmetic with `+ - * // % **` on such sizes and integers, by
    `dim_min` and `dim_max`. Results that do not depend on a variable are plain ints. Comparisons
    hold for *all* sizes that the variables may have, or raise.

    >>> batch = ShapeVar("batch")
    >>> 2 * batch + 1, (batch + 3) // 2, batch - batch
    (2*batch + 1, floor((batch + 1) / 2) + 1, 0)
    >>> batch + 1 > batch
    True
    """

    __slots__ = ("_polynomial",)
    _polynomial: Polynomial
    # NumPy must leave `np.int64(2) * dim` to us, and not make an array of objects of it.
    __array_ufunc__ = None

    def __init__(self, polynomial: Polynomial) -> None:
        variables = polynomial.variables
        named = dict[str, Variable]()
        for variable in variables if len(variables) > 1 else ():
            other = named.setdefault(variable.name, variable)
            if other != variable:
                raise ArgumentError(
                    f"two different size variables are both called {variable.name!r}: one is "
                    f"{variable.promise()}, the other {other.promise()}. Make the ShapeVar once "
                    "and use it in all places, or rename one"
                )
        self._polynomial = polynomial

    @property
    def key(self) -> Polynomial:
        """The structure of the size, for caches: compares and hashes without deciding anything."""
        return self._polynomial

    @property
    def variables(self) -> tuple[str, ...]:
        """The names of the variables, sorted."""
        return tuple(sorted(variable.name for variable in self._polynomial.variables))

    @property
    def bounds(self) -> tuple[int | None, int | None]:
        """The least and the greatest value that are proved, None where there is none."""
        return bounds(self._polynomial)

    def evaluate(self, sizes: Mapping[str, int]) -> int:
        """The number that this size is, for given sizes of its variables.

        Raises:
          ArgumentError: a variable has no size in `sizes`.

        >>> (ShapeVar("batch") // 2).evaluate({"batch": 7})
        3
        """
        try:
            return self._polynomial.evaluate(sizes)
        except KeyError as error:
            raise ArgumentError(
                f"the size {self} needs a value for {error.args[0]!r}; given are "
                f"{', '.join(sorted(sizes)) or 'none'}"
            ) from None

    def __repr__(self) -> str:
        return self._polynomial.text

    def __hash__(self) -> int:
        return hash(self._polynomial)

    def __reduce__(self) -> tuple[type[Dim], tuple[Polynomial]]:
        return (Dim, (self._polynomial,))

    # --- arithmetic --------------------------------------------------------------------------

    def __add__(self, other: Size) -> Size:
        return _operate(build.add, self, other)

    def __radd__(self, other: int) -> Size:
        return _operate(build.add, other, self)

    def __sub__(self, other: Size) -> Size:
        return _operate(build.subtract, self, other)

    def __rsub__(self, other: int) -> Size:
        return _operate(build.subtract, other, self)

    def __mul__(self, other: Size) -> Size:
        return _operate(build.multiply, self, other)

    def __rmul__(self, other: int) -> Size:
        return _operate(build.multiply, other, self)

    def __floordiv__(self, other: Size) -> Size:
        return _operate(build.floordiv, self, other)

    def __rfloordiv__(self, other: int) -> Size:
        return _operate(build.floordiv, other, self)

    def __mod__(self, other: Size) -> Size:
        return _operate(build.mod, self, other)

    def __rmod__(self, other: int) -> Size:
        return _operate(build.mod, other, self)

    def __divmod__(self, other: Size) -> tuple[Size, Size]:
        return self // other, self % other

    def __rdivmod__(self, other: int) -> tuple[Size, Size]:
        return other // self, other % self

    def __neg__(self) -> Size:
        return to_size(self._polynomial.scale(-1))

    def __pos__(self) -> Size:
        return self

    def __pow__(self, exponent: int) -> Size:
        if not isinstance(exponent, int):
            return NotImplemented
        if exponent < 0:
            raise ArgumentError(f"({self})**{exponent} is not an integer; sizes need powers >= 0")
        result = build.ONE
        for _ in range(exponent):
            result = build.multiply(result, self._polynomial)
        return to_size(result)

    # --- comparison --------------------------------------------------------------------------

    def __eq__(self, other: object) -> bool:
        return _compare(self, "==", other)

    def __ne__(self, other: object) -> bool:
        return _compare(self, "!=", other)

    def __lt__(self, other: Size) -> bool:
        return _compare(self, "<", other)

    def __le__(self, other: Size) -> bool:
        return _compare(self, "<=", other)

    def __gt__(self, other: Size) -> bool:
        return _compare(self, ">", other)

    def __ge__(self, other: Size) -> bool:
        return _compare(self, ">=", other)

    def __bool__(self) -> bool:
        return _compare(self, "!=", 0)

    # --- what a size that is not known cannot do ---------------------------------------------

    def __index__(self) -> NoReturn:
        raise SymbolicSizeError(explain.no_number(self.key))

    def __int__(self) -> NoReturn:
        raise SymbolicSizeError(explain.no_number(self.key))

    def __float__(self) -> NoReturn:
        raise SymbolicSizeError(explain.no_number(self.key))


Size: TypeAlias = int | Dim


def ShapeVar(name: str, min: int = 1, max: int | None = None, multiple_of: int = 1) -> Dim:
    """A size with a name, for which a compiled function takes any number.

    Args:
      name: a Python identifier; the same name is the same size.
      min: the least size, 1 unless given; 0 allows empty arrays, at the price of fewer proofs.
      max: the greatest size, no limit unless given.
      multiple_of: a positive number that divides every size.

    Raises:
      ArgumentError: the name is no identifier, or no size fulfils the promises.

    >>> ShapeVar("tokens", max=4096, multiple_of=128) % 64
    0
    """
    if not isinstance(name, str) or not name.isidentifier() or name in _RESERVED:
        raise ArgumentError(
            f"{name!r} cannot name a size: use an identifier other than {', '.join(_RESERVED)}"
        )
    least = operator.index(min)
    most = None if max is None else operator.index(max)
    step = operator.index(multiple_of)
    if step < 1:
        raise ArgumentError(f"size {name!r}: multiple_of={step} is not positive")
    if least < 0:
        raise ArgumentError(f"size {name!r}: min={least} is negative, and sizes are not")
    variable = Variable(name, least, most, step)
    if most is not None and -(-least // step) * step > most:
        raise ArgumentError(f"size {name!r}: no size is {variable.promise()}")
    return Dim(Polynomial.of(variable))


_RESERVED = ("floor", "mod", "min", "max")


def parse_dim(text: str, *variables: Dim) -> Size:
    """The size that `text` denotes, in the notation in which sizes print.

    Args:
      text: names, integers, `+ - * // % **`, `floor(a / b)`, `mod(a, b)`, `min`, `max`.
      *variables: sizes whose variables the names mean; another name makes `ShapeVar(name)`.

    Raises:
      ArgumentError: the text is no such expression.

    >>> parse_dim("2*batch + floor(batch / 2)")
    2*batch + floor(batch / 2)
    """
    named = {v.name: v for dim in variables for v in dim.key.variables}
    for variable in parse_polynomial(text, {}).variables:
        named.setdefault(variable.name, Variable(variable.name, minimum=1))
    return to_size(parse_polynomial(text, named))


# --- working with sizes that may be ints ---------------------------------------------------------


def to_polynomial(size: Size) -> Polynomial:
    """The polynomial of a size, constant for an int."""
    if isinstance(size, Dim):
        return size.key
    return Polynomial.constant(operator.index(size))


def to_size(polynomial: Polynomial) -> Size:
    """The size of a polynomial: an int where it is constant."""
    value = polynomial.value
    return Dim(polynomial) if value is None else int(value)


def is_constant(size: Size) -> bool:
    """Whether `size` is a number."""
    return not isinstance(size, Dim)


def same(a: Size, b: Size) -> bool:
    """Whether two sizes are known to be equal; False where that is not known. Never raises.

    >>> batch = ShapeVar("batch")
    >>> same(batch * 2, batch + batch), same(batch, 4)
    (True, False)
    """
    if a is b:
        return True
    if not isinstance(a, Dim) and not isinstance(b, Dim):
        return a == b
    left, right = to_polynomial(a), to_polynomial(b)
    return left == right or decide(left - right, "==") is True


def dim_max(*sizes: Size) -> Size:
    """The greatest of some sizes, as a size.

    >>> dim_max(ShapeVar("batch") - 3, 0)
    max(0, batch - 3)
    """
    return to_size(build.maximum(*map(to_polynomial, sizes)))


def dim_min(*sizes: Size) -> Size:
    """The least of some sizes, as a size.

    >>> dim_min(ShapeVar("batch"), ShapeVar("batch") + 1)
    batch
    """
    return to_size(build.minimum(*map(to_polynomial, sizes)))


def shape_product(shape: Iterable[Size]) -> Size:
    """The number of elements of an array of that shape.

    >>> shape_product((2, ShapeVar("batch"), 3)), shape_product(())
    (6*batch, 1)
    """
    total: Size = 1
    for size in shape:
        total = total * size
    return total


def divide_exact(total: Size, part: Size) -> Size:
    """`total / part`, where that is a whole number: the size that -1 stands for in a reshape.

    Raises:
      ShapeError: `part` is zero, or does not divide `total`.
      InconclusiveDimension: it depends on the variables whether `part` divides `total`.

    >>> batch = ShapeVar("batch")
    >>> divide_exact(6 * batch, 2), divide_exact(batch * 4, batch)
    (3*batch, 4)
    """
    if not isinstance(part, Dim) and part == 0:
        raise ShapeError(f"a size of {total} cannot be divided into parts of size 0")
    remainder = total % part
    if isinstance(remainder, Dim):
        divisible = decide(remainder.key, "==")
        if divisible is None:
            raise InconclusiveDimension(
                explain.undecided_division(to_polynomial(total), to_polynomial(part))
            )
    else:
        divisible = remainder == 0
    if not divisible:
        raise ShapeError(f"{part} does not divide {total}")
    return total // part


# --- operands of operators ------------------------------------------------------------------------


def _operate(
    function: Callable[[Polynomial, Polynomial], Polynomial], left: Any, right: Any
) -> Size:
    try:
        return to_size(function(_operand(left), _operand(right)))
    except _NotASize:
        return NotImplemented


class _NotASize(Exception):
    """An operand is neither an int nor a Dim: another class's operator may know it."""


_constant = functools.lru_cache(maxsize=1024)(Polynomial.constant)


def _operand(size: Any) -> Polynomial:
    if isinstance(size, Dim):
        return size._polynomial
    if type(size) is int:
        return _constant(size)
    if isinstance(size, float | complex) or not hasattr(size, "__index__"):
        raise _NotASize
    if getattr(size, "shape", None) is not None and not isinstance(size, np.integer):
        raise _NotASize  # an array: adding a size to it is the array's business
    return Polynomial.constant(operator.index(size))


def _compare(left: Dim, relation: str, other: Any) -> bool:
    try:
        right = _operand(other)
    except _NotASize:
        return NotImplemented
    answer = decide(build.subtract(left.key, right), relation)
    if answer is None:
        raise InconclusiveDimension(explain.undecided(left.key, relation, right))
    return answer
