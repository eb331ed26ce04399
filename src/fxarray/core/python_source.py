"""Programs as runnable Python source: run, it gives the same Program.

    >>> import fxarray, fxarray.numpy as fnp
    >>> from fxarray.core.python_source import program_from_source
    >>> def main(x):
    ...     return fnp.sin(x) * 2
    >>> program = fxarray.make_program(main)(1.0)
    >>> print(program.to_python())
    from fxarray.core.python_source import *
    <BLANKLINE>
    <BLANKLINE>
    @program(array_type((), "float32", True))
    def main(a):
        b = ops.sin()(a)
        c = ops.mul()(b, scalar(2.0, "float32", True))
        return (c,)
    >>> program_from_source(program.to_python()) == program
    True

An operation is written `ops.name(parameters)`. What has no literal form (functions, long arrays) is
written `table[...]`, and is kept in the `table` of the text that `to_python` returns.
"""

from __future__ import annotations

import importlib
import keyword
import sys
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any, Self, cast

import numpy as np

from fxarray.core import dtypes, hooks
from fxarray.core.array import DeviceArray
from fxarray.core.canonical import canonical_key
from fxarray.core.dims import Dim, ShapeVar, parse_dim
from fxarray.core.errors import ArgumentError
from fxarray.core.ir import Atom, Equation, Literal, Program, Var
from fxarray.core.pretty import function_name, variable_name
from fxarray.core.primitive import REGISTRY, Primitive
from fxarray.core.types import ArrayType

__all__ = ["array", "array_type", "dtype", "inf", "nan", "ops", "program", "scalar", "size"]

_LONGEST_ARRAY = 64
nan, inf = float("nan"), float("inf")


class PythonSource(str):
    """The source of a Program, and the objects that it refers to as `table[...]`."""

    __slots__ = ("table",)
    table: dict[str, Any]

    def __new__(cls, text: str, table: dict[str, Any]) -> Self:
        self = super().__new__(cls, text)
        self.table = table
        return self


# --- what the source calls ------------------------------------------------------------------------


def dtype(name: str) -> Any:
    """The dtype of a name, that of random keys included."""
    return dtypes.key_dtype if name == dtypes.key_dtype.name else dtypes.canonical(name)


def array_type(shape: tuple[Any, ...], dtype_name: str, *placement: Any) -> ArrayType:
    """The type of an array; `placement` is whether it is weak, and how it lies on a mesh."""
    return ArrayType(shape, dtype(dtype_name), *placement)


def size(text: str, **variables: tuple[int, int | None, int]) -> Any:
    """A symbolic size; each variable is given by its least and greatest value and its divisor."""
    known = [ShapeVar(name, *promises) for name, promises in variables.items()]
    return parse_dim(text, *known)


def array(values: Any, dtype_name: str) -> np.ndarray[Any, Any]:
    """A NumPy array."""
    return np.array(values, dtypes.physical(dtype(dtype_name)))


def scalar(value: Any, dtype_name: str, weak: bool = False) -> Literal:
    """A 0-dimensional constant; as bytes where that is the only exact way to write it."""
    physical = dtypes.physical(dtype(dtype_name))
    if isinstance(value, bytes):
        buffer = np.frombuffer(value, physical).reshape(())
    else:
        buffer = np.array(value, physical)
    return Literal(DeviceArray(buffer, ArrayType((), dtype(dtype_name), weak)))


class _Call:
    """An operation that records its equation."""

    __slots__ = ("op",)

    def __init__(self, op: Primitive) -> None:
        self.op = op

    def __call__(self, *operands: Atom) -> Any:
        equation = Equation(self.op, operands)
        _OPEN[-1].append(equation)
        return equation.outputs[0] if len(equation.outputs) == 1 else equation.outputs


# The equations of the functions that are being read, innermost last.
_OPEN: list[list[Equation]] = []


class _Operations:
    """`ops.name(parameters)` is the operation of that name."""

    def __getattr__(self, name: str) -> Callable[..., _Call]:
        cls = REGISTRY.get(name)
        if cls is None:
            raise ArgumentError(f"there is no operation called {name!r}")
        return lambda **parameters: _Call(cls(**parameters))

    def __getitem__(self, name: str) -> Callable[..., _Call]:
        return getattr(self, name)


ops = _Operations()


def program(
    *types: ArrayType, name: str = "", constants: tuple[Any, ...] = ()
) -> Callable[[Callable[..., tuple[Atom, ...]]], Program]:
    """Turn a function on variables into a Program.

    Args:
      *types: the types of its parameters.
      name: the Program's name; default: the function's.
      constants: values of the first parameters.
    """

    def build(function: Callable[..., tuple[Atom, ...]]) -> Program:
        variables = [Var(type) for type in types]
        _OPEN.append([])
        try:
            outputs = function(*variables)
        finally:
            equations = _OPEN.pop()
        count = len(constants)
        pairs = tuple(zip(variables[:count], constants, strict=True))
        return Program(variables[count:], equations, outputs, pairs, name or function.__name__)

    return build


def program_from_source(source: str, table: Mapping[str, Any] | None = None) -> Program:
    """Run the source of a Program.

    Args:
      source: from `Program.to_python`.
      table: what the source refers to as `table[...]`; default: the source's own.

    Returns:
      The Program called `main` in the source.
    """
    known = source.table if isinstance(source, PythonSource) else {}
    namespace: dict[str, Any] = {"table": dict(known if table is None else table)}
    exec(compile(source, "<program>", "exec"), namespace)
    return namespace["main"]


# --- writing it -----------------------------------------------------------------------------------


class _Writer:
    """Writes a Program and the Programs inside it as functions, innermost first."""

    def __init__(self, source: bool) -> None:
        self.source = source
        self.functions: list[str] = []
        self.names: dict[int, str] = {}
        self.used: set[str] = {"main", "table", *__all__}
        self.imports: set[str] = set()
        self.table: dict[str, Any] = {}
        # Objects are known by identity, so they must live as long as the writer.
        self.kept: list[Any] = []

    def entry(self, kind: str, value: Any) -> str:
        """An expression for an object that goes into the table."""
        for key, known in self.table.items():
            if known is value:
                return f"table[{key!r}]"
        key = f"{kind}_{len(self.table)}"
        self.table[key] = value
        return f"table[{key!r}]"

    # --- values -----------------------------------------------------------------------------

    def value(self, value: Any) -> str:
        """An expression that gives a value equal to this one."""
        kind = type(value)
        if value is None or kind in (bool, int, str, bytes):
            return repr(value)
        if kind is float or kind is complex:
            return self.number(value)
        if kind is tuple:
            items = ", ".join(map(self.value, value))
            return f"({items},)" if len(value) == 1 else f"({items})"
        if kind is list:
            return f"[{', '.join(map(self.value, value))}]"
        if kind is dict:
            return f"{{{', '.join(f'{self.value(k)}: {self.value(v)}' for k, v in value.items())}}}"
        if kind is frozenset:
            return f"frozenset([{', '.join(sorted(map(self.value, value)))}])"
        if kind is slice:
            return f"slice({', '.join(map(self.value, (value.start, value.stop, value.step)))})"
        return self.object(value)

    def number(self, value: complex) -> str:
        if isinstance(value, float):
            return repr(value)
        return f"complex({self.number(value.real)}, {self.number(value.imag)})"

    def object(self, value: Any) -> str:
        if isinstance(value, (np.dtype, dtypes.KeyDType)):
            return self.dtype(value)
        if isinstance(value, ArrayType):
            return self.type(value)
        if isinstance(value, Program):
            return self.function(value)
        if isinstance(value, Primitive):
            return f"{self.operation(value)}.op"
        if isinstance(value, Dim):
            return self.dim(value)
        if isinstance(value, np.ndarray):
            return self.array(value)
        if isinstance(value, Enum):
            return f"{self.imported(type(value), value)}.{value.name}"
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            items = cast("tuple[Any, ...]", value)
            return f"{self.imported(type(value), value)}({', '.join(map(self.value, items))})"
        if is_dataclass(value) and not isinstance(value, type) and importable(type(value)):
            items = ", ".join(
                f"{field.name}={self.value(getattr(value, field.name))}"
                for field in fields(value)
                if field.init
            )
            return f"{self.imported(type(value), value)}({items})"
        if callable(value) and importable(value):
            return self.imported(value, value)
        return self.entry("object", value)

    def imported(self, item: Any, value: Any) -> str:
        """The name of a class or function, imported; its table entry if it has no such name."""
        if not importable(item) or item.__name__ in self.used:
            return self.entry("object", item)
        self.imports.add(f"from {item.__module__} import {item.__name__}")
        return item.__name__

    def dtype(self, value: Any) -> str:
        return f'dtype("{dtypes.name(value)}")'

    def dim(self, value: Dim) -> str:
        promises = {v.name: (v.minimum, v.maximum, v.multiple_of) for v in value.key.variables}
        given = "".join(f", {name}={promise}" for name, promise in sorted(promises.items()))
        return f'size("{value}"{given})'

    def type(self, type: ArrayType) -> str:
        placement: list[Any] = [type.weak, type.spec, type.unreduced, type.varying]
        while placement and not placement[-1]:
            placement.pop()
        arguments = [self.value(type.shape), f'"{dtypes.name(type.dtype)}"']
        return f"array_type({', '.join([*arguments, *map(self.value, placement)])})"

    def array(self, value: np.ndarray[Any, Any]) -> str:
        if value.size <= _LONGEST_ARRAY:
            name = dtypes.name(value.dtype)
            again = array(value.tolist(), name).reshape(value.shape)
            if canonical_key(again) == canonical_key(value):
                reshape = "" if value.size else f".reshape({value.shape})"
                return f'array({self.value(value.tolist())}, "{name}"){reshape}'
        return self.entry("array", value)

    def literal(self, literal: Literal) -> str:
        assert isinstance(literal.value, DeviceArray)
        buffer = literal.value.numpy_view()
        type = literal.type
        weak = ", True" if type.weak else ""
        name = dtypes.name(type.dtype)
        plain = buffer.item()
        known = not isinstance(plain, (bool, int, float, complex))
        if known or scalar(plain, name, type.weak).key != literal.key:
            return f'scalar({buffer.tobytes()!r}, "{name}"{weak})'
        return f'scalar({self.value(plain)}, "{name}"{weak})'

    # --- functions --------------------------------------------------------------------------

    def operation(self, op: Primitive) -> str:
        parameters = ", ".join(
            f"{name}={self.value(value)}" for name, value in op.parameters().items()
        )
        place = (
            f"ops.{op.name}" if op.name.isidentifier() and not keyword.iskeyword(op.name) else ""
        )
        return f"{place or f'ops[{op.name!r}]'}({parameters})"

    def function(self, program: Program, name: str = "") -> str:
        """Write a Program as a function; returns its name."""
        known = self.names.get(id(program))
        if known is not None:
            return known
        self.kept.append(program)
        if not name:
            stem = function_name(program.name)
            stem = f"{stem}_program" if len(stem) < 3 else stem  # variables have short names
            name, number = stem, 1
            while name in self.used or name in self.names.values():
                number += 1
                name = f"{stem}_{number}"
        self.used.add(name)
        self.names[id(program)] = name
        self.functions.append("\n".join(self.lines(program, name)))
        return name

    def lines(self, program: Program, name: str) -> list[str]:
        names: dict[Any, str] = {}

        def new_name(variable: Any) -> str:
            text = variable_name(len(names))
            # Three letters or more may spell the name of a function.
            names[variable] = f"{text}_" if len(text) > 2 else text
            return names[variable]

        def atom(value: Any) -> str:
            return self.literal(value) if type(value) is Literal else names[value]

        variables = [*[v for v, _ in program.constants], *program.inputs]
        arguments = [self.type(variable.type) for variable in variables]
        if name != program.name:
            arguments.append(f"name={program.name!r}")
        if program.constants:
            entries = [self.entry("constant", value) for _, value in program.constants]
            arguments.append(f"constants=({', '.join(entries)},)")
        parameters = ", ".join(map(new_name, variables))
        lines = [f"@program({', '.join(arguments)})", f"def {name}({parameters}):"]
        for equation in program.equations:
            operands = ", ".join(map(atom, equation.inputs))
            call = f"{self.operation(equation.op)}({operands})"
            results = ", ".join(map(new_name, equation.outputs))
            line = f"    {results} = {call}" if results else f"    {call}"
            if self.source and equation.source is not None:
                place = equation.source
                line += f"  # {place.file}:{place.line} ({place.function})"
            lines.append(line)
        outputs = ", ".join(map(atom, program.outputs))
        lines.append(
            f"    return ({outputs},)" if len(program.outputs) == 1 else f"    return ({outputs})"
        )
        return lines


def importable(item: Any) -> bool:
    """Whether an import statement finds this very class or function by its name."""
    module, name = getattr(item, "__module__", None), getattr(item, "__name__", "")
    if module is None or not str(module).startswith("fxarray.") or not name.isidentifier():
        return False
    loaded = sys.modules.get(module) or importlib.import_module(module)
    return getattr(loaded, name, None) is item


def to_python(program: Program, source: bool = False) -> PythonSource:
    """The source of a Program.

    Args:
      program: what to write.
      source: whether each line ends with the user's file, line and function.

    Returns:
      A string; `program_from_source` runs it. Its `table` holds what has no literal form.
    """
    writer = _Writer(source)
    writer.function(program, "main")
    imports = ["from fxarray.core.python_source import *", *sorted(writer.imports)]
    text = "\n\n\n".join(["\n".join(imports), *writer.functions])
    return PythonSource(text + "\n", writer.table)


hooks.printing.python = to_python
