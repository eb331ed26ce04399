"""Traces of functions, remembered by the function's identity and everything they depend on.

A trace is known by the function (weakly held: no function is kept alive), the structure of its
arguments with their static leaves, the arguments' types, and the trace context. It does not look
into the function: a changed global or default is noticed only because it makes another function,
as in JAX.
"""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

from fxarray.core.array import DeviceArray
from fxarray.core.caches import register_cache
from fxarray.core.context import context
from fxarray.core.ir import Program
from fxarray.core.types import ArrayType
from fxarray.interpreters.staging import stage
from fxarray.transforms.arguments import (
    FlatFunction,
    Structure,
    argument_names,
    function_name,
)

_LIMIT = 4096


@dataclass(frozen=True)
class TraceKey:
    """What a trace depends on besides the function."""

    structure: Structure
    types: tuple[ArrayType, ...]
    context: Hashable

    def difference(self, other: TraceKey, names: Sequence[str]) -> str:
        """One line on how this key differs from `other`; `names` are those of the arrays."""
        if self.structure.treedef != other.structure.treedef:
            return (
                f"the arguments have another tree structure: {self.structure.treedef} instead of "
                f"{other.structure.treedef}"
            )
        if self.structure != other.structure:
            for (_, now), (_, before) in zip(
                self.structure.static_leaves, other.structure.static_leaves, strict=True
            ):
                now, before = getattr(now, "value", now), getattr(before, "value", before)
                if type(now) is not type(before) or now is not before:
                    return f"a static argument is {now!r} instead of {before!r}"
            return "a static argument differs"
        for name, now, before in zip(names, self.types, other.types, strict=True):
            if now != before:
                reason = ""
                if now.same_array(before) and now.weak != before.weak:
                    reason = " (only the weakness differs: one was a Python number)"
                return f"argument {name} is {now} instead of {before}{reason}"
        return "the trace context (axis names, mesh, settings) differs"


@dataclass
class Trace:
    """A traced function: its Program, the arrays that it closed over, and its result's structure.

    `captured` are the values of the Program's first inputs.
    """

    program: Program
    captured: tuple[Any, ...]
    output: Structure
    names: list[str]
    name: str

    @property
    def reusable(self) -> bool:
        """Whether later calls may use it: not if it closed over a value of an outer trace."""
        return all(isinstance(value, DeviceArray) for value in self.captured)


@dataclass
class FunctionTraces:
    """All traces of one function."""

    traces: OrderedDict[TraceKey, Trace] = field(default_factory=OrderedDict[TraceKey, Trace])
    count: int = 0
    last_explanation: str = ""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def explain(self, key: TraceKey, trace: Trace) -> str:
        if not self.traces:
            return f"{trace.name} was traced for the first time"
        nearest = max(self.traces, key=lambda known: _likeness(known, key))
        return f"{trace.name} was traced again: {key.difference(nearest, trace.names)}"

    def clear(self) -> None:
        """Forget all of them."""
        with self.lock:
            self.traces.clear()


def _likeness(known: TraceKey, key: TraceKey) -> int:
    score = 4 * (known.structure.treedef == key.structure.treedef)
    score += 2 * (known.structure == key.structure) + (known.context == key.context)
    return 1000 * score + sum(a == b for a, b in zip(known.types, key.types, strict=False))


_FUNCTIONS: weakref.WeakKeyDictionary[Callable[..., Any], FunctionTraces] = (
    weakref.WeakKeyDictionary()
)
_functions_lock = threading.Lock()


def traces_of(function: Callable[..., Any]) -> FunctionTraces:
    """The traces remembered for a function; a new, unshared record if it cannot be weakly held."""
    if not hasattr(function, "__code__") and not isinstance(function, type):
        # A bound method or callable object may compare equal to another one, or change.
        return FunctionTraces()
    with _functions_lock:
        known = _FUNCTIONS.get(function)
        if known is None:
            known = _FUNCTIONS[function] = FunctionTraces()
        return known


def trace_function(
    function: Callable[..., Any], structure: Structure, types: Sequence[ArrayType]
) -> Trace:
    """Trace `function` for arguments of this structure and these types."""
    flat = FlatFunction(function, structure)
    names = structure.select(argument_names(function, structure.treedef))
    name = function_name(function)
    program, captured = stage(flat, types, name, names)
    return Trace(program, captured, flat.output, names, name)


def remembered_trace(
    known: FunctionTraces,
    function: Callable[..., Any],
    structure: Structure,
    types: Sequence[ArrayType],
) -> tuple[Trace, bool]:
    """The trace for these arguments, and whether it was remembered.

    A function that fails to trace leaves nothing behind.
    """
    key = TraceKey(structure, tuple(types), context.key())
    with known.lock:
        trace = known.traces.get(key)
        if trace is not None:
            known.traces.move_to_end(key)
            return trace, True
    trace = trace_function(function, structure, types)
    with known.lock:
        known.count += 1
        known.last_explanation = known.explain(key, trace)
        if trace.reusable:
            known.traces[key] = trace
            if len(known.traces) > _LIMIT:
                known.traces.popitem(last=False)
    return trace, False


@register_cache
def clear() -> None:
    """Forget the traces of all functions."""
    with _functions_lock:
        known = list(_FUNCTIONS.values())
    for traces in known:  # the records stay: jitted functions hold them
        traces.clear()
