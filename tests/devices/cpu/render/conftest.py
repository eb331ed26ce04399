"""Running a kernel's routine on arrays."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pytest

from fxarray.core import dtypes
from fxarray.devices.cpu.native.jit import addresses
from fxarray.devices.cpu.native.memory import empty
from fxarray.devices.cpu.native.routine import (
    InputPointer,
    OutputPointer,
    ScratchPointer,
    SizeWord,
    Word,
)
from fxarray.devices.cpu.native.runtime import Runtime, default_runtime
from fxarray.devices.cpu.native.target import OTHERS, Target, host
from fxarray.devices.cpu.render.routine import render
from fxarray.kernel import sizes as size_functions
from fxarray.kernel.check import check_kernel
from fxarray.kernel.interpret import interpret
from fxarray.kernel.ir import Kernel
from fxarray.kernel.scalars import numpy_dtype

_ENTRY = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)
Values = np.ndarray[Any, Any]
Run = Callable[..., "list[Values]"]


def aligned(x: Values) -> Values:
    """A copy in memory as the device has it."""
    copy = empty(x.shape, x.dtype)
    copy[...] = x
    return copy


class Call:
    """A kernel's routine, bound to copies of arrays."""

    def __init__(
        self,
        kernel: Kernel,
        arrays: tuple[Values, ...],
        sizes: Mapping[str, int],
        target: Target,
        in_place: bool,
        runtime: Runtime | None = None,
    ) -> None:
        self.runtime = runtime or default_runtime()
        self.routine = render(kernel, target)
        self.sizes = sizes
        self.inputs = [aligned(np.asarray(array)) for array in arrays]
        names = {buffer.name: n for n, buffer in enumerate(kernel.inputs)}
        self.outputs: list[Values] = []
        for buffer in kernel.outputs:
            if buffer.alias is not None and in_place:
                self.outputs.append(self.inputs[names[buffer.alias]])
                continue
            shape = tuple([size_functions.evaluate(size, sizes) for size in buffer.shape])
            made = empty(shape, numpy_dtype(buffer.dtype))
            made.reshape(-1).view(np.uint8)[...] = 1
            self.outputs.append(made)
        threads = self.runtime.threads
        scratch = size_functions.evaluate(self.routine.scratch, sizes)
        scratch += threads * size_functions.evaluate(self.routine.thread_scratch, sizes)
        # What lies behind is checked: a routine writes no more than it asked for.
        self.scratch = empty((scratch + 64,), np.uint8)
        self.scratch[:] = 0xA5
        self.words = np.array([self._word(word) for word in self.routine.words], np.uint64)
        (address,) = addresses([self.routine.text])
        self._entry = _ENTRY(address)

    def _word(self, word: Word) -> int:
        match word:
            case InputPointer(number):
                return self.inputs[number].ctypes.data
            case OutputPointer(number):
                return self.outputs[number].ctypes.data
            case ScratchPointer():
                return self.scratch.ctypes.data
            case SizeWord(size):
                return size_functions.evaluate(size, self.sizes)
            case _:
                raise AssertionError(f"{word} is no word of a kernel")

    def __call__(self) -> list[Values]:
        self._entry(self.runtime.address, self.words.ctypes.data)
        assert (self.scratch[-64:] == 0xA5).all()
        return self.outputs


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
    """From a kernel and arrays to its outputs."""

    def call(
        kernel: Kernel,
        *arrays: Values,
        sizes: Mapping[str, int] | None = None,
        in_place: bool = True,
        runtime: Runtime | None = None,
    ) -> list[Values]:
        return Call(kernel, arrays, sizes or {}, target, in_place, runtime)()

    return call


def assert_close(kernel: Kernel, got: list[Values], wanted: list[Values], roundings: float) -> None:
    """Equal but for roundings of the greatest element."""
    for ours, theirs in zip(got, wanted, strict=True):
        assert ours.dtype == theirs.dtype
        if not dtypes.is_inexact(theirs.dtype):
            np.testing.assert_array_equal(ours, theirs, err_msg=str(kernel))
            continue
        unit = float(dtypes.finfo(theirs.dtype).eps)
        wide = np.complex128 if theirs.dtype.kind == "c" else np.float64
        ours, theirs = ours.astype(wide), theirs.astype(wide)
        largest = np.max(np.abs(theirs), where=np.isfinite(theirs), initial=1.0)
        np.testing.assert_allclose(
            ours, theirs, rtol=roundings * unit, atol=roundings * unit * largest,
            err_msg=str(kernel),
        )  # fmt: skip


@pytest.fixture
def check(run: Run) -> Callable[..., None]:
    """A kernel does on arrays what the interpreter does."""

    def compare(
        kernel: Kernel,
        *arrays: Values,
        sizes: Mapping[str, int] | None = None,
        roundings: float = 64,
        in_place: bool = True,
    ) -> None:
        check_kernel(kernel)
        with np.errstate(all="ignore"):
            wanted = interpret(kernel, *arrays, sizes=sizes)
        got = run(kernel, *arrays, sizes=sizes, in_place=in_place)
        assert_close(kernel, got, wanted, roundings)

    return compare


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20261201)
