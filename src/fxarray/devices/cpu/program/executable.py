"""Compiled Programs of the CPU."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np

from fxarray.compile.backend import Call, NotConcreteError
from fxarray.compile.blocks import Plan
from fxarray.compile.graph import ScanStep, WhileStep
from fxarray.core import dtypes
from fxarray.core.array import DeviceArray
from fxarray.core.context import context
from fxarray.core.dims import Dim, solve
from fxarray.core.errors import ArgumentError, NonFiniteError
from fxarray.core.ir import Program
from fxarray.core.types import ArrayType
from fxarray.devices.cpu.native.dispatch import NewOutput, Target, prepare
from fxarray.devices.cpu.native.jit import addresses
from fxarray.devices.cpu.native.runtime import runtime
from fxarray.devices.cpu.program import profiling, reports
from fxarray.devices.cpu.program.code import Code, Table
from fxarray.devices.cpu.program.compiled import Compiled
from fxarray.devices.cpu.program.host import HOST_ADDRESS, host_step, run_with_host
from fxarray.devices.cpu.program.walker import Operation, Record, walker_text
from fxarray.interpreters.fixed_sizes import fixed_type
from fxarray.kernel import sizes
from fxarray.primitives.numeric_checks import checks_wanted, is_offending, offence, search
from fxarray.primitives.support import quietly

_SIZES_LIMIT = 256
_OUTSIDE = (Operation.HOST, Operation.TURN, Operation.REPORT)
# Below so many bytes and operations a call is shorter than another thread's turn to begin.
_LONG_WORK = 1 << 15


@lru_cache(maxsize=2)
def walker(traced: bool = False) -> int:
    """The address of the walker's entry."""
    return addresses([walker_text(traced)])[0]


class Bound:
    """A Program's code for certain sizes, ready to be called.

    Args:
      compiled: the Program.
      values: sizes by name.
      types: of the results.
    """

    def __init__(
        self, compiled: Compiled, values: Mapping[str, int], types: Sequence[ArrayType]
    ) -> None:
        code, plan = compiled.code, compiled.plan
        layout = plan.layout(values, compiled.checked)
        self.table: Table = code.table(compiled.entries, layout, values)
        self.arena = layout.arena
        self.host_steps = tuple([host_step(step, values) for step in code.host_steps])
        self.values = dict(values)
        self.record = self._record(code)
        self._may_stop = any(
            operation in _OUTSIDE or isinstance(step, WhileStep | ScanStep)
            for operation, _, step in code.instructions
        )
        self._target = Target(
            entry=walker(),
            inputs=code.inputs,
            outputs=tuple(
                [NewOutput(types[position], plan.reuse.get(position)) for position in plan.fresh]
            ),
            scratch=self.table.scratch,
            extra=tuple(self.table.bases.tolist()),
            release_gil=self._may_stop or self._work(compiled, values) > _LONG_WORK,
            context=self.record.ctypes.data,
            kept=(compiled, self.table, self.record),
        )
        self._others = _others(plan, types)
        self.call = self._finished(prepare(self._target))
        self.compiled = compiled

    def _record(self, code: Code) -> np.ndarray[Any, Any]:
        table = self.table
        record = np.zeros(Record.SIZE, np.int64)
        record[Record.RUNTIME] = runtime()
        record[Record.CODE] = table.code.ctypes.data
        record[Record.TEMPLATE] = table.words.ctypes.data
        record[Record.WORDS] = len(table.words)
        record[Record.SCRATCH] = code.scratch_base
        record[Record.ARENA] = table.arena_offset
        record[Record.HOST] = HOST_ADDRESS
        return record

    def _work(self, compiled: Compiled, values: Mapping[str, int]) -> int:
        found = [routine for routine in compiled.routines.values() if routine is not None]
        return sum(
            sizes.evaluate(routine.flops, values) + sizes.evaluate(routine.bytes_moved, values)
            for routine in found
        )

    def _finished(self, call: Call) -> Call:
        """A call with what native code leaves to Python."""
        others, steps = self._others, self.host_steps

        def with_host(arrays: list[Any]) -> list[DeviceArray]:
            return run_with_host(call, arrays, steps)

        run = with_host if self._may_stop else call

        def complete(arrays: list[Any]) -> list[DeviceArray]:
            made = run(arrays)
            return [other.result(arrays, made) for other in others]

        return complete if others else run

    def traced(self, record: np.ndarray[Any, Any]) -> Call:
        """A call that writes down when its routines run.

        Args:
          record: a copy of this one's, with memory for events and a clock.
        """
        target = replace(
            self._target,
            entry=walker(True),
            context=record.ctypes.data,
            kept=(self._target.kept, record),
        )
        return self._finished(prepare(target))


class _Other(NamedTuple):
    """How a result comes from what the native call gives and takes.

    Args:
      source: "made", "input" or "constant".
      number: of what was made, or of the input.
      type: of the result.
      same: whether it is that array as it is.
      value: a constant.
    """

    source: str
    number: int
    type: ArrayType
    same: bool
    value: DeviceArray | None = None

    def result(self, arrays: Sequence[Any], made: Sequence[DeviceArray]) -> DeviceArray:
        if self.value is not None:
            return DeviceArray(self.value.numpy_view(), self.type)
        given = made[self.number] if self.source == "made" else arrays[self.number]
        return given if self.same else _viewed(given.numpy_view(), self.type)


def _viewed(buffer: np.ndarray[Any, Any], type_: ArrayType) -> DeviceArray:
    """An array of a type over the memory of another of as many bytes."""
    shape = tuple([int(size) for size in type_.shape])
    dtype = np.dtype(dtypes.physical(type_.dtype))
    if buffer.dtype == dtype and buffer.shape == shape:
        return DeviceArray(buffer, type_)
    if buffer.dtype != dtype:
        buffer = np.ascontiguousarray(buffer).reshape(-1).view(dtype)
    return DeviceArray(buffer.reshape(shape), type_)


def _others(plan: Plan, types: Sequence[ArrayType]) -> tuple[_Other, ...]:
    """How to make all results, if that is not just what the native call gives."""
    if len(plan.fresh) == len(plan.outputs):
        return ()
    place = {position: number for number, position in enumerate(plan.fresh)}
    found: list[_Other] = []
    for position, (block, type_) in enumerate(zip(plan.outputs, types, strict=True)):
        if block.kind == "constant":
            assert block.array is not None
            value = _viewed(block.array, type_)
            found.append(_Other("constant", 0, type_, True, value))
        elif block.kind == "input":
            found.append(_Other("input", block.number, type_, False))
        else:
            number = place[block.number]
            found.append(_Other("made", number, type_, block.number == position))
    return tuple(found)


class NativeExecutable:
    """A Program as native code."""

    stages = reports.STAGES

    def __init__(self, compiled: Compiled) -> None:
        self.compiled = compiled
        self.origin = compiled.program
        self._sizes: Mapping[str, int] | None = None
        self._of_sizes: OrderedDict[Any, NativeExecutable] = OrderedDict()
        self._lock = threading.Lock()

    @cached_property
    def types(self) -> tuple[ArrayType, ...]:
        """The types of the results."""
        return tuple([fixed_type(t, self._sizes or {}) for t in self.origin.output_types])

    @cached_property
    def bound(self) -> Bound:
        """The code for this executable's sizes."""
        return Bound(self.compiled, self._sizes or {}, self.types)

    @cached_property
    def _is_dynamic(self) -> bool:
        given = [size for type_ in self.compiled.program.input_types for size in type_.shape]
        return self._sizes is None and any(isinstance(size, Dim) for size in given)

    def located(self, program: Program) -> NativeExecutable:
        """The same code, for an equal Program: errors name the places in the user's code of it."""
        other = copy(self)
        other.origin = program
        return other

    def at_sizes(self, sizes: Mapping[str, int]) -> NativeExecutable:
        """The same code for given sizes."""
        key = tuple(sorted(sizes.items()))
        with self._lock:
            known = self._of_sizes.get(key)
            if known is not None:
                self._of_sizes.move_to_end(key)
                return known
        other = copy(self)
        for name in ("types", "bound", "_is_dynamic"):
            other.__dict__.pop(name, None)
        other._sizes = dict(sizes)
        with self._lock:
            self._of_sizes[key] = other
            if len(self._of_sizes) > _SIZES_LIMIT:
                self._of_sizes.popitem(last=False)
        return other

    def direct(self) -> Call | None:
        """The native call itself, where nothing else is to be looked at."""
        if self._is_dynamic or profiling.active():
            return None
        return self._checking if context.settings else self.bound.call

    def _checking(self, arrays: list[Any]) -> list[DeviceArray]:
        if not all(type(array) is DeviceArray for array in arrays):
            raise NotConcreteError
        return self(arrays)

    def __call__(self, arguments: Sequence[DeviceArray]) -> list[DeviceArray]:
        if self._is_dynamic:
            shapes: Any = [argument.type.shape for argument in arguments]
            found = solve([type_.shape for type_ in self.origin.input_types], shapes)
            return self.at_sizes(found)(arguments)
        arrays = list(arguments)
        if profiling.active():
            results = profiling.run(self.bound, arrays)
        else:
            results = self.bound.call(arrays)
        if context.settings and checks_wanted():
            buffers = [result.numpy_view() for result in results]
            if any(map(is_offending, buffers)):
                self._find_offender(arrays)
        return results

    def _find_offender(self, arrays: Sequence[DeviceArray]) -> None:
        """Run again, one equation after the other, to say which one gives the NaN or inf."""
        program = self.origin
        if not program.effects:  # what it does to the world must not be done twice
            quietly(search, (program, [array.numpy_view() for array in arrays]))
        raise NonFiniteError(
            f"{program.name}: a result is {offence()}, but no single operation can be named"
        )

    def as_text(self, stage: str) -> str:
        """The code at a stage.

        Raises:
          ArgumentError: if there is no such stage.
        """
        if stage not in self.stages:
            raise ArgumentError(f"there is no stage {stage!r}; the stages are: {self.stages}")
        return reports.as_text(self.compiled, stage)

    def cost_analysis(self) -> Mapping[str, float]:
        """Floating-point operations, bytes read and written, and kernels."""
        return reports.cost(self.compiled, self._sizes or {})

    def memory_analysis(self) -> Mapping[str, int]:
        """Bytes of arguments, results and temporaries."""
        return reports.memory(self.compiled, self._sizes or {})
