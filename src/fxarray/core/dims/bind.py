"""Finding the sizes of variables from the shapes of actual arrays, and checking them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fxarray.core.dims.assumptions import Assumption, assumptions_in_scope
from fxarray.core.dims.dim import Dim, Size
from fxarray.core.dims.polynomial import Coefficient, Polynomial, Variable
from fxarray.core.errors import ArgumentError, ShapeError


@dataclass(frozen=True)
class _Equation:
    """A symbolic size, the number found in its place, and where that was."""

    polynomial: Polynomial
    number: int
    place: str


def solve(
    shapes: Sequence[Sequence[Size]],
    actual: Sequence[Sequence[int]],
    names: Sequence[str] | None = None,
    assumptions: Sequence[Assumption] | None = None,
) -> dict[str, int]:
    """The sizes of all variables in `shapes`, found from the shapes of actual arrays.

    Args:
      shapes: for each array, its promised shape.
      actual: for each array, the shape it has.
      names: what to call each array in errors; by default "argument 0", "argument 1" ...
      assumptions: what the sizes must fulfil besides; by default the assumptions in scope.

    Raises:
      ShapeError: a number of dimensions, a size, a promise of a variable or an assumption is
        violated.
      ArgumentError: no shape determines some variable.

    >>> from fxarray.core.dims import ShapeVar
    >>> batch, width = ShapeVar("batch"), ShapeVar("width")
    >>> solve([(batch, 2 * width + 1), (width,)], [(5, 7), (3,)])
    {'batch': 5, 'width': 3}
    """
    labels = names or [f"argument {position}" for position in range(len(shapes))]
    equations = _equations(shapes, actual, labels)
    sizes, origin = _bind(equations)
    for equation in equations:
        value = _evaluate(equation, sizes)
        if value != equation.number:
            raise ShapeError(
                f"{equation.place} is {equation.number}, where {equation.polynomial} = {value} is "
                f"needed: {_explain(equation.polynomial, origin)}"
            )
    _check_promises(equations, sizes, origin)
    for assumption in assumptions_in_scope() if assumptions is None else assumptions:
        if assumption.holds(sizes) is False:
            raise ShapeError(
                f"the assumption {assumption} does not hold: "
                f"{_explain(assumption.left + assumption.right, origin)}"
            )
    return sizes


def _equations(
    shapes: Sequence[Sequence[Size]], actual: Sequence[Sequence[int]], labels: Sequence[str]
) -> list[_Equation]:
    equations = list[_Equation]()
    for label, shape, found in zip(labels, shapes, actual, strict=True):
        if len(shape) != len(found):
            raise ShapeError(
                f"{label} has shape {tuple(found)} of {len(found)} dimensions, where "
                f"{tuple(shape)} of {len(shape)} is needed"
            )
        for dimension, (size, number) in enumerate(zip(shape, found, strict=True)):
            place = f"dimension {dimension} of {label}"
            if isinstance(size, Dim):
                equations.append(_Equation(size.key, number, place))
            elif size != number:
                raise ShapeError(f"{place} is {number}, where {size} is needed")
    return equations


def _bind(equations: list[_Equation]) -> tuple[dict[str, int], dict[str, str]]:
    sizes, origin = dict[str, int](), dict[str, str]()
    needed = {v.name for equation in equations for v in equation.polynomial.variables}
    pending = equations
    while len(sizes) < len(needed):
        left = list[_Equation]()
        for equation in pending:
            unknown = {v for v in equation.polynomial.variables if v.name not in sizes}
            if len(unknown) == 1 and (found := _solve_one(equation, unknown.pop(), sizes)):
                name, size = found
                sizes[name], origin[name] = size, f"{name} = {size} from {equation.place}"
            elif unknown:
                left.append(equation)
        if len(left) == len(pending):
            missing = ", ".join(sorted(needed - sizes.keys()))
            places = "; ".join(f"{e.place} is {e.polynomial}" for e in left)
            raise ArgumentError(
                f"the size of {missing} does not follow from the shapes: {places}. Let some "
                f"argument have a dimension that is {missing} itself, or linear in it"
            )
        pending = left
    return sizes, origin


def _solve_one(
    equation: _Equation, variable: Variable, sizes: dict[str, int]
) -> tuple[str, int] | None:
    """The size of the one unknown of an equation that is linear in it, or a power of it."""
    # Evaluate all but the unknown: coefficient of each of its powers.
    by_power = dict[int, Coefficient]()
    for monomial, coefficient in equation.polynomial.terms:
        power, product = 0, coefficient
        for atom, exponent in monomial:
            if atom == variable:
                power = exponent
                continue
            factor = Polynomial.of(atom)
            if variable in factor.variables:
                return None  # inside floor, mod, min or max
            product *= factor.evaluate(sizes) ** exponent
        by_power[power] = by_power.get(power, 0) + product
    rest = equation.number - int(by_power.pop(0, 0))
    by_power = {power: c for power, c in by_power.items() if c != 0}
    if len(by_power) != 1:
        return None
    ((power, slope),) = by_power.items()
    quotient, remainder = divmod(rest, int(slope))
    size = _integer_root(quotient, power)
    if remainder or size**power != quotient:
        raise ShapeError(
            f"{equation.place} is {equation.number}, which is not {equation.polynomial} for any "
            f"integer {variable.name}"
        )
    return variable.name, size


def _integer_root(number: int, power: int) -> int:
    if power == 1 or number < 0:
        return number
    low, high = 0, number + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if middle**power <= number else (low, middle)
    return low


def _evaluate(equation: _Equation, sizes: dict[str, int]) -> int:
    try:
        return equation.polynomial.evaluate(sizes)
    except ZeroDivisionError:
        raise ShapeError(
            f"the size {equation.polynomial} of {equation.place} divides by zero for "
            f"{', '.join(f'{name} = {size}' for name, size in sizes.items())}"
        ) from None


def _check_promises(
    equations: list[_Equation], sizes: dict[str, int], origin: dict[str, str]
) -> None:
    for variable in {v for equation in equations for v in equation.polynomial.variables}:
        size = sizes[variable.name]
        too_small = size < variable.minimum
        too_big = variable.maximum is not None and size > variable.maximum
        if too_small or too_big or size % variable.multiple_of != 0:
            raise ShapeError(
                f"{origin[variable.name]}, but {variable.name} must be {variable.promise()}"
            )


def _explain(polynomial: Polynomial, origin: dict[str, str]) -> str:
    return ", ".join(sorted(origin[v.name] for v in polynomial.variables if v.name in origin))
