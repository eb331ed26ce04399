"""Running the routine of one operation on arrays."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from fxarray.core import dtypes
from fxarray.core.array import DeviceArray
from fxarray.core.primitive import Primitive
from fxarray.core.types import ArrayType
from fxarray.devices.cpu.library import routine
from fxarray.devices.cpu.native.jit import addresses
from fxarray.devices.cpu.native.memory import empty
from fxarray.devices.cpu.native.routine import (
    Address,
    FunctionPointer,
    InputPointer,
    OutputPointer,
    ScratchPointer,
    SizeWord,
    Word,
)
from fxarray.devices.cpu.native.runtime import runtime, thread_count
from fxarray.devices.cpu.native.target import OTHERS, Target, host
from fxarray.kernel.sizes import Size, evaluate

_ENTRY = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)
Values = np.ndarray[Any, Any]
Run = Callable[..., "list[Values] | None"]


class Call:
    """An operation's routine, bound to arrays.

    Args:
      op: the operation.
      operands: its operands.
      target: the processor that code is for, which must run here.
      in_place: whether the first result is in the first operand's memory.
      dims: for each operand, its shape with variables in it.
      values: of these variables.
    """

    def __init__(
        self,
        op: Primitive,
        operands: Sequence[Any],
        target: Target,
        in_place: bool = False,
        dims: Sequence[tuple[Any, ...]] | None = None,
        values: Mapping[str, int] | None = None,
    ) -> None:
        self.values = values or {}
        given = [x if isinstance(x, DeviceArray) else np.asarray(x) for x in operands]
        types = [
            x.type if isinstance(x, DeviceArray) else ArrayType(x.shape, x.dtype) for x in given
        ]
        results = op.infer(*types)
        self.inputs = [aligned(np.asarray(buffer(x))) for x in given]
        self.outputs = [aligned(zeros(t)) for t in results]
        if in_place:
            self.outputs[0] = self.inputs[0]
        if dims is not None:
            types = [ArrayType(shape, t.dtype) for shape, t in zip(dims, types, strict=True)]
            results = op.infer(*types)
        made = routine(op, types, results, target)
        self.exists = made is not None
        if made is None:
            return
        (address,) = addresses([made.text])
        threads = thread_count()
        size = self._number(made.scratch) + threads * self._number(made.thread_scratch)
        # What lies behind is checked: a routine writes no more than it asked for.
        self.scratch = empty((size + 64,), np.uint8)
        self.scratch[:] = 0xA5
        self.words = np.array([self._word(word) for word in made.words], np.uint64)
        self._entry = _ENTRY(address)

    def _number(self, size: Size) -> int:
        return evaluate(size, self.values)

    def _word(self, word: Word) -> int:
        match word:
            case InputPointer(number):
                return self.inputs[number].ctypes.data
            case OutputPointer(number):
                return self.outputs[number].ctypes.data
            case ScratchPointer():
                return self.scratch.ctypes.data
            case SizeWord(size):
                return self._number(size) % 2**64
            case Address(value):
                return value
            case FunctionPointer(text):
                return addresses([text])[0]

    def __call__(self) -> list[Values]:
        self._entry(runtime(), self.words.ctypes.data)
        assert (self.scratch[-64:] == 0xA5).all()
        return self.outputs


def buffer(x: Any) -> Values:
    """The memory of an operand."""
    return x.numpy_view() if isinstance(x, DeviceArray) else x


def zeros(type: ArrayType) -> Values:
    """An array for a result."""
    return np.zeros(type.shape, dtypes.physical(type.dtype))  # type: ignore[arg-type]


def aligned(x: Values) -> Values:
    """A copy in memory as the device has it."""
    copy = empty(x.shape, x.dtype)
    copy[...] = x
    return copy


@pytest.fixture(params=["host", "avx2"])
def target(request: pytest.FixtureRequest) -> Iterator[Target]:
    """The host, and a lesser processor of its kind, whose code must run here too."""
    if request.param == "host":
        yield host()
        return
    other = OTHERS[request.param]
    if other.architecture != host().architecture or host().vector_bytes <= other.vector_bytes:
        pytest.skip("the code of this processor is that of the host, or does not run on it")
    yield other


@pytest.fixture
def run(target: Target) -> Run:
    """From an operation and operands to results; None where there is no routine."""

    def call(op: Primitive, *operands: Any, **options: Any) -> list[Values] | None:
        bound = Call(op, operands, target, **options)
        return bound() if bound.exists else None

    return call


def assert_same(got: Sequence[Values], wanted: Sequence[Values], roundings: float = 0) -> None:
    """Equal elements, dtypes and signs of zeros.

    Args:
      got: results.
      wanted: what they should be.
      roundings: how many roundings of the greatest element finite ones may be off.
    """
    assert len(got) == len(wanted)
    for ours, theirs in zip(got, wanted, strict=True):
        assert ours.dtype == theirs.dtype
        assert ours.shape == theirs.shape
        if roundings and dtypes.is_inexact(theirs.dtype) and theirs.size:
            unit = float(dtypes.finfo(theirs.dtype).eps)
            wide = np.complex128 if theirs.dtype.kind == "c" else np.float64
            ours, theirs = ours.astype(wide), theirs.astype(wide)
            largest = np.max(np.abs(theirs), where=np.isfinite(theirs), initial=0.0)
            np.testing.assert_allclose(ours, theirs, rtol=0, atol=roundings * unit * largest)
            continue
        if theirs.dtype.kind in "V" or theirs.dtype.itemsize < 4:
            ours, theirs = ours.astype(np.float64), theirs.astype(np.float64)
        np.testing.assert_array_equal(ours, theirs)
        if theirs.dtype.kind == "f":
            number = ~np.isnan(theirs)
            np.testing.assert_array_equal(np.signbit(ours)[number], np.signbit(theirs)[number])


@pytest.fixture
def check(run: Run) -> Callable[..., None]:
    """Assert that a routine's results are the reference's, to some roundings, by default none."""

    def compare(op: Primitive, *operands: Any, roundings: float = 0, **options: Any) -> None:
        wanted = op.reference(*[np.asarray(buffer(x)) for x in operands])
        got = run(op, *operands, **options)
        assert got is not None
        assert_same(got, wanted, roundings)

    return compare
