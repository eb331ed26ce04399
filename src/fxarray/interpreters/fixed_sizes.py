"""A Program with its symbolic sizes replaced by numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, cast

from fxarray.core.dims import Dim
from fxarray.core.dims.polynomial import Polynomial
from fxarray.core.ir import Equation, Literal, Program, Var
from fxarray.core.primitive import Primitive
from fxarray.core.types import ArrayType


def size_variables(program: Program) -> tuple[str, ...]:
    """The names of the sizes that a Program's inputs depend on, in order."""
    found: set[str] = set()
    for type_ in program.input_types:
        for size in type_.shape:
            if isinstance(size, Dim):
                found.update(size.variables)
    return tuple(sorted(found))


def fixed_type(type_: ArrayType, sizes: Mapping[str, int]) -> ArrayType:
    """A type with its symbolic sizes replaced by numbers."""
    if type_.is_static:
        return type_
    shape = tuple([s.evaluate(sizes) if isinstance(s, Dim) else s for s in type_.shape])
    return type_.replace(shape=shape)


def fixed_sizes(program: Program, sizes: Mapping[str, int]) -> Program:
    """The Program for given sizes: what a device runs that compiles for numbers only.

    Args:
      program: has symbolic sizes in its types and in parameters of its operations.
      sizes: the size of each variable.
    """
    variables: dict[Any, Any] = {}

    def variable(var: Var) -> Var:
        known = variables.get(var)
        if known is None:
            known = variables[var] = Var(fixed_type(var.type, sizes))
        return known

    def atom(given: Any) -> Any:
        return given if type(given) is Literal else variable(given)

    inputs = tuple(map(variable, program.inputs))
    equations: list[Equation] = []
    for equation in program.equations:
        op = _fixed(equation.op, sizes)
        new = Equation(
            op, tuple(map(atom, equation.inputs)), None, equation.source, equation.scopes
        )
        variables.update(zip(equation.outputs, new.outputs, strict=True))
        equations.append(new)
    constants = tuple([(variable(var), value) for var, value in program.constants])
    outputs = tuple(map(atom, program.outputs))
    return Program(inputs, equations, outputs, constants, program.name)


def with_sizes(op: Primitive, sizes: Mapping[str, int]) -> Primitive:
    """An operation whose parameters' symbolic sizes are replaced by numbers."""
    return _fixed(op, sizes)


def _fixed(value: Any, sizes: Mapping[str, int]) -> Any:
    """A parameter with its symbolic sizes replaced; the same object where it has none."""
    if isinstance(value, Dim):
        return value.evaluate(sizes)
    if isinstance(value, Polynomial):
        return value.evaluate(sizes)
    if isinstance(value, ArrayType):
        return fixed_type(value, sizes)
    if isinstance(value, Program):
        return fixed_sizes(value, sizes)
    if isinstance(value, tuple):
        items = cast("tuple[Any, ...]", value)
        new = [_fixed(item, sizes) for item in items]
        if all(a is b for a, b in zip(new, items, strict=True)):
            return items
        return type(items)(*new) if hasattr(items, "_fields") else tuple(new)
    if isinstance(value, Primitive) or (is_dataclass(value) and not isinstance(value, type)):
        parts = {field.name: getattr(value, field.name) for field in fields(cast("Any", value))}
        new_parts = {name: _fixed(part, sizes) for name, part in parts.items()}
        if all(new_parts[name] is part for name, part in parts.items()):
            return value
        return type(value)(**new_parts)
    return value
