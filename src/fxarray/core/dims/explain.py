"""What to say when a symbolic size is asked for something that depends on its variables."""

from __future__ import annotations

from fxarray.core.dims.polynomial import Polynomial, Variable
from fxarray.core.dims.text import COMPARISONS

_OPPOSITE = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", "<=": ">", ">": "<="}
_WITNESS_TRIES = 64


def undecided(left: Polynomial, relation: str, right: Polynomial) -> str:
    """Why a comparison has no answer, and which assumptions would give it one."""
    difference = left - right
    text = (
        f"whether {left} {relation} {right} depends on {promises(difference)}"
        f"{_witnesses(difference, relation)}. If one always holds, say so: "
        f'assuming("{left} {relation} {right}") or assuming("{left} {_OPPOSITE[relation]} {right}")'
    )
    variable = left.sole_atom()
    if isinstance(variable, Variable) and right.value is not None:
        text += f"; bounds can also stand in ShapeVar({variable.name!r}, min=..., max=...)"
    return text


def undecided_division(total: Polynomial, part: Polynomial) -> str:
    """Why it is unknown whether `part` divides `total`, and which assumption would tell."""
    condition = f"{_as_operand(total)} % {_as_operand(part)} == 0"
    return (
        f"whether {part} divides {total} depends on {promises(total + part)}. If it always does, "
        f'say so: assuming("{condition}")'
    )


def no_number(size: Polynomial) -> str:
    """Why a size is not a Python number, and what to do instead."""
    names = " and ".join(repr(variable.name) for variable in _sorted_variables(size))
    return (
        f"the size {size} is not a number: it depends on {names}, of any size. Loops over it need "
        "lax.fori_loop or lax.scan, values of it fxarray.numpy.asarray(size); or make the size "
        f"static by passing arrays without the ShapeVar {names}"
    )


def promises(size: Polynomial) -> str:
    """The variables of `size` and what is promised of each."""
    return " and ".join(f"{v.name} ({v.promise()})" for v in _sorted_variables(size))


def _sorted_variables(size: Polynomial) -> list[Variable]:
    return sorted(size.variables, key=lambda variable: variable.name)


def _as_operand(size: Polynomial) -> str:
    return f"({size})" if " " in size.text or "*" in size.text else size.text


def _witnesses(difference: Polynomial, relation: str) -> str:
    """Small sizes for which the comparison with zero is true and false, if both are found."""
    found = dict[bool, str]()
    for attempt in range(_WITNESS_TRIES):
        sizes = dict[str, int]()
        for position, variable in enumerate(_sorted_variables(difference)):
            step = variable.multiple_of
            size = (-(-variable.minimum // step) + attempt // (1 + position)) * step
            sizes[variable.name] = size if variable.maximum is None else min(size, variable.maximum)
        try:
            answer = COMPARISONS[relation](difference.evaluate(sizes), 0)
        except ZeroDivisionError:
            continue
        found.setdefault(answer, ", ".join(f"{name}={size}" for name, size in sizes.items()))
    if len(found) < 2:
        return ""
    return f": true for {found[True]}, false for {found[False]}"
