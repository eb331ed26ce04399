"""Calling native code with DeviceArrays: reading their addresses, making the results.

`prepare` gives a function from a list of arrays to the list of results. It is a builtin made of
generated code where objects are laid out as known (`objects.layout`), and does the same in Python
otherwise, and for arrays that are not plain.

Native code is called as `entry(runtime, frame)`. The words of the frame: the address of each input,
of each output, of the scratch memory, then the extra words.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from fxarray.compile.backend import NotConcreteError
from fxarray.core import dtypes
from fxarray.core.array import DeviceArray
from fxarray.core.types import ArrayType
from fxarray.devices.cpu.native.builtin_functions import ONE, address_of, builtin
from fxarray.devices.cpu.native.dispatch_text import (
    CONSTANT,
    CONTEXT,
    DONATED,
    INPUT,
    NEW,
    dispatch_text,
)
from fxarray.devices.cpu.native.jit import symbols
from fxarray.devices.cpu.native.memory import array_context, empty, out_of_memory, the_allocator
from fxarray.devices.cpu.native.objects import Layout, layout
from fxarray.devices.cpu.native.runtime import runtime


@dataclass(frozen=True)
class NewOutput:
    """A result in memory of its own.

    Args:
      type: its type, of sizes that are numbers.
      donor: an input that is donated: the result takes its memory if nothing else holds it, so that
        the words of both are equal. Native code compares them, or need not care.
    """

    type: ArrayType
    donor: int | None = None


@dataclass(frozen=True)
class SameOutput:
    """A result that is an input, as it is."""

    number: int


@dataclass(frozen=True, eq=False)
class ConstantOutput:
    """A result that is known before the call; its word is 0."""

    value: DeviceArray


Output = NewOutput | SameOutput | ConstantOutput
Call = Callable[[list[Any]], list[DeviceArray]]


@dataclass(frozen=True)
class Target:
    """What is called.

    Args:
      entry: the address of `void entry(ptr %runtime, ptr %frame)`.
      inputs: how many arrays it takes.
      outputs: its results.
      scratch: bytes of scratch memory, aligned to 64.
      extra: the frame's last words.
      release_gil: whether other Python threads run meanwhile. It costs little, but a thread that
        computes takes the lock for 5 ms; so it is for calls that take longer than a look-up.
      context: what the entry is given first; None is the runtime block.
      kept: what owns the memory that `extra` and `context` are addresses of. A call may outlive
        whatever made it, in a cache or in another thread.
    """

    entry: int
    inputs: int
    outputs: tuple[Output, ...]
    scratch: int = 0
    extra: tuple[int, ...] = ()
    release_gil: bool = True
    context: int | None = None
    kept: object = None


def prepare(target: Target) -> Call:
    """The function that calls native code; it takes a list of `target.inputs` DeviceArrays.

    The function raises NotConcreteError for anything that is no DeviceArray, DeletedArrayError for
    a deleted array, OutOfMemoryError if there is no memory for results or scratch.
    """
    through_python = _ThroughPython(target)
    found = layout()
    if found is None:
        return through_python
    direct = _direct(target, found)

    def call(arrays: list[Any]) -> list[DeviceArray]:
        results = direct(arrays)
        return through_python(arrays) if results is None else results

    return call


# --- generated code ------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def _entry(found: Layout) -> int:
    return symbols(dispatch_text(found), ("entry",))["entry"]


def _words(*values: int) -> bytearray:
    return bytearray(b"".join([(value % 2**64).to_bytes(8, "little") for value in values]))


def _direct(target: Target, found: Layout) -> Callable[[list[Any]], list[DeviceArray] | None]:
    alive: list[Any] = []
    rows = [word for output in target.outputs for word in _row(output, alive)]
    table, extra = _words(*rows), _words(*target.extra)
    source, arrays = the_allocator(), array_context()
    values = {
        "entry": target.entry,
        "runtime": runtime() if target.context is None else target.context,
        "inputs": target.inputs,
        "outputs": len(target.outputs),
        "extras": len(target.extra),
        "release_gil": int(target.release_gil),
        "output_table": address_of(table),
        "extra_words": address_of(extra),
        "scratch": target.scratch,
        "pool": source.pool,
        "allocate": source.allocate,
        "release": source.release,
        "array_class": id(DeviceArray),
        "numpy_class": id(np.ndarray),
        "array_context": address_of(arrays),
        "none": id(None),
        "new_copy": found.new_copy,
    }
    context = _words(*[values[name] for name in CONTEXT])
    owner = (context, table, extra, arrays, alive, source.handler, target)
    return builtin("call", _entry(found), ONE, owner)


def _row(output: Output, alive: list[Any]) -> tuple[int, ...]:
    """The words of an output, in the order of `dispatch_text.OUTPUT`."""
    match output:
        case SameOutput():
            return (INPUT, output.number, 0, 0, 0, 0, 0)
        case ConstantOutput():
            alive.append(output.value)
            return (CONSTANT, 0, id(output.value), 0, 0, 0, 0)
        case NewOutput():
            dtype = np.dtype(dtypes.physical(output.type.dtype))
            sizes = _shape(output.type)
            shape = _words(*sizes)
            alive.extend((dtype, shape, output.type))
            kind, donor = (NEW, 0) if output.donor is None else (DONATED, output.donor)
            size = prod(sizes) * dtype.itemsize
            return (kind, donor, id(dtype), len(sizes), address_of(shape), size, id(output.type))


def _shape(type: ArrayType) -> tuple[int, ...]:
    """The shape of the buffer of an array of a type."""
    return tuple([int(size) for size in type.shape])


# --- in Python -----------------------------------------------------------------------------------


class _ThroughPython:
    """The same for any arrays: those that are not plain are copied."""

    def __init__(self, target: Target) -> None:
        self._target = target
        pointers = [ctypes.c_void_p, ctypes.c_void_p]
        kind = ctypes.CFUNCTYPE if target.release_gil else ctypes.PYFUNCTYPE
        self._entry = kind(None, *pointers)(target.entry)

    def __call__(self, arrays: list[Any]) -> list[DeviceArray]:
        target = self._target
        assert len(arrays) == target.inputs
        if not all(type(array) is DeviceArray for array in arrays):
            raise NotConcreteError
        buffers = [_plain(array.numpy_view()) for array in arrays]
        results: list[DeviceArray] = []
        words = [buffer.ctypes.data for buffer in buffers]
        for output in target.outputs:
            match output:
                case SameOutput(number):
                    results.append(arrays[number])
                    words.append(words[number])
                case ConstantOutput(value):
                    results.append(value)
                    words.append(0)
                case NewOutput(made_type):
                    made = empty(_shape(made_type), np.dtype(dtypes.physical(made_type.dtype)))
                    results.append(DeviceArray(made, made_type))
                    words.append(made.ctypes.data)
        scratch = self._scratch()
        frame = (ctypes.c_uint64 * (len(words) + 1 + len(target.extra)))(
            *words, scratch.ctypes.data, *[word % 2**64 for word in target.extra]
        )
        first = runtime() if target.context is None else target.context
        self._entry(first, ctypes.addressof(frame))
        return results

    def _scratch(self) -> np.ndarray[Any, Any]:
        try:
            return empty((self._target.scratch,), np.uint8)
        except MemoryError:
            size = self._target.scratch
            raise out_of_memory(size, "the temporaries of a compiled function") from None


def _plain(buffer: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The values in contiguous, aligned memory."""
    if buffer.flags.c_contiguous and buffer.flags.aligned:
        return buffer
    copy = empty(buffer.shape, buffer.dtype)
    np.copyto(copy, buffer)
    return copy
