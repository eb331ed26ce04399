"""A Program as one Python function on NumPy arrays: what eager loops call in each iteration, and
what the reference backend makes of a Program.

The function is generated source, one line an equation, with each operation's `eager` (or
`reference`) method bound to a name: several times faster than looking variables up in a dict.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary

import numpy as np

from fxarray.core.caches import register_cache
from fxarray.core.ir import Equation, Literal, Program
from fxarray.interpreters.evaluate import last_uses
from fxarray.primitives.numeric_checks import is_searching, run_checked

NumpyFunction: TypeAlias = Callable[..., tuple[np.ndarray, ...]]
_FUNCTIONS: dict[str, WeakKeyDictionary[Program, NumpyFunction]] = {
    "eager": WeakKeyDictionary(),
    "reference": WeakKeyDictionary(),
}


def numpy_function(program: Program, rule: str = "eager") -> NumpyFunction:
    """The function that runs `program` by each operation's `rule`; equal Programs share one.

    Call it within `np.errstate(all="ignore")`.

    Args:
      program: has no constants.
      rule: "eager" or "reference".
    """
    if rule == "eager" and is_searching():
        return partial(run_checked, program)
    known = _FUNCTIONS[rule].get(program)
    if known is None:
        known = _FUNCTIONS[rule][program] = generate(program, rule)[0]
    return known


def _rule(equation: Equation, rule: str) -> tuple[Any, bool]:
    """What to call for an equation, and whether it returns its one result bare."""
    op = equation.op
    if rule == "eager" and equation.inputs:
        fast = op.bare_function(equation.inputs[0].type.dtype)
        if fast is not None:
            return fast, True
    return getattr(op, rule), False


def generate(program: Program, rule: str) -> tuple[NumpyFunction, str]:
    """The Python function that runs a Program by each operation's `rule`, and its source."""
    scope: dict[str, Any] = {"asarray": np.asarray}
    names: dict[Any, str] = {}

    def name(atom: Any) -> str:
        if type(atom) is Literal:
            return constant(atom.value)
        known = names.get(atom)
        if known is None:
            known = names[atom] = f"v{len(names)}"
        return known

    def constant(value: Any) -> str:
        key = f"c{len(scope)}"
        scope[key] = value.numpy_view()
        return key

    # Inputs live as long as the caller holds them, and constants as long as the function, so
    # forgetting them gains nothing.
    kept = {*program.inputs, *[variable for variable, _ in program.constants]}
    parameters = ", ".join(map(name, program.inputs))
    names.update((variable, constant(value)) for variable, value in program.constants)
    lines = [f"def run({parameters}):"]
    for equation, dying in zip(program.equations, last_uses(program), strict=True):
        function = f"f{len(scope)}"
        scope[function], bare = _rule(equation, rule)
        call = f"{function}({', '.join(map(name, equation.inputs))})"
        results = ", ".join(map(name, equation.outputs))
        if bare:
            # NumPy's functions give scalars for 0-dimensional arrays; rules take arrays.
            value = call if equation.outputs[0].type.shape else f"asarray({call})"
            lines.append(f"    {results} = {value}")
        else:
            lines.append(f"    {results}, = {call}" if results else f"    {call}")
        dead = [name(variable) for variable in dying if variable not in kept]
        if dead:
            lines.append(f"    del {', '.join(dead)}")
    outputs = "".join(f"{name(atom)}, " for atom in program.outputs)
    lines.append(f"    return ({outputs})")
    source = "\n".join(lines)
    exec(compile(source, f"<fxarray {program.name}>", "exec"), scope)
    return scope["run"], source


@register_cache
def clear() -> None:
    """Forget all functions."""
    for known in _FUNCTIONS.values():
        known.clear()
