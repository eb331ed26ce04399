"""Staging: run a function on typed placeholders and record a Program.

Staging is by context: while a function is staged, every operation in its dynamic extent is
recorded, also one on concrete arrays. Arrays and tracers from outside become inputs of the Program
(`captured`), 0-dimensional concrete arrays become literals.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from fxarray.core.array import Array, DeviceArray
from fxarray.core.context import context, current_location, open_trace
from fxarray.core.errors import ProgramError
from fxarray.core.hooks import operators
from fxarray.core.ir import Atom, Equation, Literal, Program, Var
from fxarray.core.primitive import Primitive
from fxarray.core.source import Location
from fxarray.core.tracer import Trace, Tracer, leaked
from fxarray.core.types import ArrayType


class StagingTracer(Tracer):
    """A placeholder for a value that a Program will compute."""

    __slots__ = ("source", "type", "variable")

    def __init__(self, trace: StagingTrace, variable: Atom, source: Location | None) -> None:
        self._trace = trace
        self.variable = variable
        self.type = variable.type
        self.source = source

    @property
    def origin(self) -> str:
        trace = self._trace
        assert isinstance(trace, StagingTrace)
        for position, variable in enumerate(trace.inputs):
            if variable is self.variable:
                name = trace.input_names[position] if position < len(trace.input_names) else None
                what = f"argument {name}" if name else f"input {position}"
                return f"it is {what} of the traced function {trace.name}"
        return f"it was computed at {self.source}" if self.source is not None else ""


class StagingTrace(Trace):
    """Records equations."""

    __slots__ = ("_captured_by_id", "captured", "equations", "input_names", "inputs", "name")
    kind = "jit or a control-flow body"

    def __init__(self, name: str = "program", input_names: Sequence[str] = ()) -> None:
        super().__init__()
        self.name = name
        self.inputs: list[Var] = []
        self.input_names = input_names
        self.equations: list[Equation] = []
        self.captured: list[tuple[Var, Any]] = []
        self._captured_by_id: dict[int, Var] = {}

    def new_input(self, type: ArrayType) -> StagingTracer:
        variable = Var(type)
        self.inputs.append(variable)
        return StagingTracer(self, variable, None)

    def atom(self, value: Any) -> Atom:
        """The variable or literal for `value`, capturing it if it comes from outside."""
        if type(value) is StagingTracer and value._trace is self:
            return value.variable
        variable = self._captured_by_id.get(id(value))
        if variable is not None:
            return variable
        if isinstance(value, DeviceArray):
            if not value.type.shape:
                return Literal(value)
        elif isinstance(value, Tracer):
            value.check_alive()
            if value._trace.level > self.level:
                raise leaked(value)
        else:
            return self.atom(operators.asarray(value))
        variable = Var(value.type)
        self._captured_by_id[id(value)] = variable
        self.captured.append((variable, value))  # keeps `value` alive, so its id stays unique
        return variable

    def process(self, op: Primitive, operands: Sequence[Any]) -> tuple[Any, ...]:
        if not self.alive:
            self._raise_leak(operands)
        recorded, operands = op.staged(self, operands)
        if recorded is not op:
            op = recorded
            # What a function closed over is an operand now, and may belong to a transformation
            # inside this one, which then comes first.
            if any(x._trace is not None and x._trace.level > self.level for x in operands):
                return op.bind(*operands)
        source = context.source or current_location(2)
        atoms = [
            value.variable
            if type(value) is StagingTracer and value._trace is self
            else self.atom(value)
            for value in operands
        ]
        equation = Equation(op, atoms, None, source, context.scopes)
        self.equations.append(equation)
        return tuple([StagingTracer(self, variable, source) for variable in equation.outputs])

    def _raise_leak(self, operands: Sequence[Any]) -> None:
        for operand in operands:
            if isinstance(operand, Tracer) and operand._trace is self:
                raise leaked(operand)


class Staged(NamedTuple):
    """A Program whose first inputs stand for `captured`, values from outside the function."""

    program: Program
    captured: tuple[Any, ...]


def stage(
    function: Callable[..., Sequence[Any]],
    types: Sequence[ArrayType],
    name: str = "program",
    input_names: Sequence[str] = (),
) -> Staged:
    """Trace `function`, which takes and returns flat arrays, into a Program.

    Args:
      function: takes one array per type; returns a sequence of arrays.
      types: the types of its arguments.
      name: the function's name, for printing and messages.
      input_names: names of the arguments, for messages.
    """
    trace = StagingTrace(name, input_names)
    with open_trace(trace, staging=True):
        tracers = [trace.new_input(type) for type in types]
        results = function(*tracers)
        outputs = [trace.atom(result) for result in results]
    variables = [variable for variable, _ in trace.captured]
    program = Program([*variables, *trace.inputs], trace.equations, outputs, name=name)
    return Staged(program, tuple([value for _, value in trace.captured]))


def stage_closed(
    function: Callable[..., Sequence[Any]], types: Sequence[ArrayType], name: str = "program"
) -> Program:
    """Like `stage`, for functions that may close over nothing (program-to-program transforms)."""
    program, captured = stage(function, types, name)
    if captured:
        described = ", ".join(str(value.type) for value in captured if isinstance(value, Array))
        raise ProgramError(f"{name}: the function closes over values from outside: {described}")
    return program
