"""Tracing the bodies of loops and branches, and comparing what goes in with what comes out."""

from __future__ import annotations

import types as python_types
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from fxarray.core import dtypes
from fxarray.core.array import Array, DeviceArray
from fxarray.core.errors import CarryTypeError, TreeStructureError
from fxarray.core.ir import Program
from fxarray.core.types import ArrayType
from fxarray.primitives.control.surgery import place_inputs
from fxarray.primitives.convert import convert
from fxarray.transforms.arguments import Structure, flatten_tree, function_name
from fxarray.transforms.trace_cache import FunctionTraces, Trace, remembered_trace, traces_of
from fxarray.tree.difference import explain_difference


def trace_body(
    function: Callable[..., Any], structure: Structure, types: Sequence[ArrayType]
) -> Trace:
    """The trace of a loop's body or a branch, remembered by the function's identity.

    Args:
      function: what is traced.
      structure: the structure of `(args, {})`.
      types: the types of the arrays in it.
    """
    return remembered_trace(_known_traces(function), function, structure, types)[0]


# A jitted function is known to keep the values that it closed over; that a loop's body does so is
# not obvious, so bodies are traced again when a variable that they read has been rebound.
_RECORDS: weakref.WeakKeyDictionary[Any, tuple[list[Any], FunctionTraces]] = (
    weakref.WeakKeyDictionary()
)
_VALUES = (Array, np.ndarray, np.generic, int, float, complex, str, python_types.NoneType)


def _known_traces(function: Callable[..., Any]) -> FunctionTraces:
    if type(function) is not python_types.FunctionType:
        return traces_of(function)
    read = _values_read(function)
    record = _RECORDS.get(function)
    if record is not None and list(map(id, record[0])) == list(map(id, read)):
        return record[1]
    traces = FunctionTraces()
    _RECORDS[function] = (read, traces)
    return traces


def _values_read(function: python_types.FunctionType) -> list[Any]:
    """The arrays and numbers that a function reads from its closure and from its module."""
    found: list[Any] = []
    for cell in function.__closure__ or ():
        try:
            found.append(cell.cell_contents)
        except ValueError:  # not yet assigned
            found.append(None)
    variables = function.__globals__
    found += [variables[name] for name in function.__code__.co_names if name in variables]
    return [value for value in found if isinstance(value, _VALUES)]


class Captured(NamedTuple):
    """Programs of several traces, all taking the values that any of them closed over, first."""

    values: list[Any]
    programs: list[Program]


def share_captured(traces: Sequence[Trace]) -> Captured:
    """Give the Programs of several traces with equal arguments the same captured inputs."""
    values: list[Any] = []
    places: dict[int, int] = {}
    for trace in traces:
        for value in trace.captured:
            if id(value) not in places:
                places[id(value)] = len(values)
                values.append(value)
    types = [value.type for value in values]
    programs: list[Program] = []
    for trace in traces:
        count = len(trace.captured)
        arguments = trace.program.input_types[count:]
        positions = [places[id(value)] for value in trace.captured]
        positions += range(len(values), len(values) + len(arguments))
        programs.append(place_inputs(trace.program, [*types, *arguments], positions))
    return Captured(values, programs)


# --- structures ---------------------------------------------------------------------------------


def parts_of(structure: Structure) -> list[Structure]:
    """The structures of the children of a tree's root."""
    children = structure.treedef.children()
    parts: list[Structure] = []
    start = 0
    for child in children:
        stop = start + child.num_leaves
        statics = tuple(
            [
                (place - start, leaf)
                for place, leaf in structure.static_leaves
                if start <= place < stop
            ]
        )
        parts.append(Structure(child, statics))
        start = stop
    return parts


def check_structure(
    what: str, advice: str, expected: Structure, actual: Structure, name: str
) -> None:
    """Raise unless two structures are equal.

    Args:
      what: the beginning of the message, a clause.
      advice: its end.
      expected: the right structure.
      actual: the structure to check.
      name: what the tree is called.
    """
    if expected == actual:
        return
    if expected.treedef != actual.treedef:
        reason = explain_difference(expected.treedef, actual.treedef, name=name)
        raise TreeStructureError(f"{what}: {reason}. {advice}")
    for (place, before), (_, after) in zip(
        expected.static_leaves, actual.static_leaves, strict=False
    ):
        if before is not after and before != after:
            raise TreeStructureError(
                f"{what}: leaf {place} of {name}, which is not an array, was {before!r} and is now "
                f"{after!r}. {advice}"
            )
    raise TreeStructureError(
        f"{what}: a leaf of {name} is an array in one and a static value in the other. {advice}"
    )


# --- carries ------------------------------------------------------------------------------------


class Carry:
    """The initial carry of a loop, which takes the types that the body needs.

    Args:
      name: the loop's name, for messages.
      init: the initial value.
      noun: what the value is called in messages.
    """

    def __init__(self, name: str, init: Any, noun: str = "carry") -> None:
        self.name = name
        self.noun = noun
        self.arrays, self.structure = flatten_tree(init, f"{name}: {noun}")

    @property
    def types(self) -> list[ArrayType]:
        return [array.type for array in self.arrays]

    def settle(
        self,
        trace: Callable[[], Trace],
        result: Callable[[Trace], tuple[Structure, Sequence[ArrayType]]],
    ) -> Trace:
        """Trace a body until its carry has the same types before and after a step.

        Where the initial value is weakly typed (it came from a Python number) and the body returns
        another type, the initial value is converted and the body traced again.

        Args:
          trace: traces the body for the present `types`.
          result: takes the structure and the types of the carry from the trace.

        Raises:
          CarryTypeError: naming the leaf whose type the body changes.
          TreeStructureError: naming the part whose structure it changes.
        """
        while True:
            traced = trace()
            structure, types = result(traced)
            check_structure(
                f"{self.name}: {traced.name} must return a {self.noun} of the structure that it "
                f"was given",
                "Return the same containers with the same keys.",
                self.structure,
                structure,
                self.noun,
            )
            # Ends soon: a leaf yields to a wider type each time, and only while it is weak.
            if not self._yield_to(types):
                self._check(traced, types)
                return traced

    def _yield_to(self, types: Sequence[ArrayType]) -> bool:
        changed = False
        for number, (array, after) in enumerate(zip(self.arrays, types, strict=True)):
            before = array.type
            if not before.weak or (after.dtype == before.dtype and after.weak):
                continue
            dtype, weak = dtypes.promote((before.dtype, after.dtype), (before.weak, after.weak))
            if (dtype, weak) != (before.dtype, before.weak):
                self.arrays[number] = _converted(array, dtype, weak)
                changed = True
        return changed

    def _check(self, trace: Trace, types: Sequence[ArrayType]) -> None:
        wrong = [
            f"{self.noun}{path} is {before} going in and {after} coming out"
            for path, before, after in zip(self.structure.paths(), self.types, types, strict=True)
            if not before.same_array(after)
        ]
        if wrong:
            raise CarryTypeError(
                f"{self.name}: {trace.name} changes the type of its {self.noun}: "
                f"{'; '.join(wrong)}. Shape and dtype must stay the same: convert the initial "
                f"value or the one that the body returns, as by .astype()."
            )


def _converted(array: Any, dtype: dtypes.DType, weak: bool) -> Any:
    if isinstance(array, DeviceArray):
        # Not an operation: a Program that is being traced need not contain it.
        type = array.type.replace(dtype=dtype, weak=weak)
        return DeviceArray(dtypes.cast(array.numpy_view(), dtype), type)
    return convert(array, dtype, weak)


def describe_function(function: Callable[..., Any]) -> str:
    """A function's name and where it was defined, to tell lambdas apart in messages."""
    name = function_name(function)
    code = getattr(function, "__code__", None)
    if code is None:
        return name
    return f"{name} ({code.co_filename}:{code.co_firstlineno})"
