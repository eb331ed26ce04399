"""Running kernels with contractions, and comparing with their definition."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from fxarray.devices.cpu.contraction.render import render
from fxarray.devices.cpu.native.jit import addresses
from fxarray.devices.cpu.native.memory import empty
from fxarray.devices.cpu.native.routine import (
    Address,
    FunctionPointer,
    InputPointer,
    OutputPointer,
    Routine,
    ScratchPointer,
    SizeWord,
)
from fxarray.devices.cpu.native.runtime import default_runtime
from fxarray.devices.cpu.native.target import OTHERS, Target, host
from fxarray.kernel import sizes
from fxarray.kernel.interpret import interpret
from fxarray.kernel.ir import Kernel
from fxarray.kernel.scalars import numpy_dtype

Array = np.ndarray[Any, Any]
Check = Callable[..., None]
_GUARD = 64


class Bound:
    """A routine with its arrays, ready to be called.

    Outputs and scratch memory hold garbage before, and what lies behind them is checked after.
    """

    def __init__(
        self, kernel: Kernel, routine: Routine, arrays: Sequence[Array], known: Mapping[str, int]
    ) -> None:
        self.inputs = [_aligned(array) for array in arrays]
        self.memory: list[Array] = []
        self.outputs: list[Array] = []
        for buffer in kernel.outputs:
            shape = tuple([sizes.evaluate(size, known) for size in buffer.shape])
            dtype = numpy_dtype(buffer.dtype)
            count = int(np.prod(shape)) * dtype.itemsize
            self.outputs.append(self._guarded(count).view(dtype).reshape(shape))
        runtime = default_runtime()
        scratch = sizes.evaluate(routine.scratch, known)
        scratch += sizes.evaluate(routine.thread_scratch, known) * runtime.threads
        start = self._guarded(scratch)
        texts = [word.text for word in routine.words if isinstance(word, FunctionPointer)]
        entry, *found = addresses([routine.text, *texts])
        functions = iter(found)
        words: list[int] = []
        for word in routine.words:
            match word:
                case InputPointer():
                    words.append(self.inputs[word.number].ctypes.data)
                case OutputPointer():
                    words.append(self.outputs[word.number].ctypes.data)
                case ScratchPointer():
                    words.append(start.ctypes.data)
                case SizeWord():
                    words.append(sizes.evaluate(word.size, known))
                case FunctionPointer():
                    words.append(next(functions))
                case Address():
                    words.append(word.value)
        self.words = (ctypes.c_int64 * len(words))(*words)
        self.runtime = runtime.address
        self.entry = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(entry)

    def _guarded(self, count: int) -> Array:
        whole = empty((count + _GUARD,), np.uint8)
        whole[:] = 0xFE
        self.memory.append(whole)
        return whole[:count]

    def __call__(self) -> list[Array]:
        self.entry(self.runtime, ctypes.addressof(self.words))
        for whole in self.memory:
            assert (whole[-_GUARD:] == 0xFE).all(), "something was written beyond the end"
        return self.outputs


def _aligned(array: Array) -> Array:
    copy = empty(array.shape, array.dtype)
    copy[...] = array
    return copy


def random_arrays(kernel: Kernel, known: Mapping[str, int], seed: int = 0) -> list[Array]:
    """An array for each input."""
    rng = np.random.default_rng(seed)
    arrays: list[Array] = []
    for buffer in kernel.inputs:
        shape = tuple([sizes.evaluate(size, known) for size in buffer.shape])
        dtype = numpy_dtype(buffer.dtype)
        if dtype.kind in "iub":
            low, high = (-9 if dtype.kind == "i" else 0), (2 if dtype.kind == "b" else 10)
            arrays.append(rng.integers(low, high, shape).astype(dtype))
            continue
        values = rng.standard_normal(shape)
        if dtype.kind == "c":
            values = values + 1j * rng.standard_normal(shape)
        arrays.append(values.astype(dtype))
    return arrays


def assert_equal(got: Array, want: Array) -> None:
    """Integers exactly; floats to a few units of their dtype, times the sum's length."""
    assert got.shape == want.shape
    assert got.dtype == want.dtype
    if got.dtype.kind in "iub":
        np.testing.assert_array_equal(got, want)
        return
    digits = {"float32": 2e-5, "complex64": 2e-5, "float64": 1e-12, "complex128": 1e-12}
    tolerance = digits.get(str(got.dtype), 0.07 if got.dtype.itemsize == 1 else 1e-2)
    wide = np.complex128 if got.dtype.kind == "c" else np.float64
    got, want = got.astype(wide), want.astype(wide)
    scale = 1 + np.abs(want[np.isfinite(want)]).max(initial=0)
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance * scale)


def run_and_compare(
    kernel: Kernel, target: Target, arrays: Sequence[Array] | None, known: Mapping[str, int]
) -> None:
    """Runs a kernel twice and compares with its definition."""
    routine = render(kernel, target)
    assert routine is not None, f"not rendered: {kernel}"
    given = random_arrays(kernel, known) if arrays is None else arrays
    bound = Bound(kernel, routine, given, known)
    want = interpret(kernel, *given, sizes=dict(known))
    for _ in range(2):
        for got, expected in zip(bound(), want, strict=True):
            assert_equal(got, expected)


@pytest.fixture
def check() -> Check:
    """Compares what a kernel gives on this machine with its definition."""

    def run(kernel: Kernel, arrays: Sequence[Array] | None = None, **known: int) -> None:
        run_and_compare(kernel, host(), arrays, known)

    return run


@pytest.fixture
def check_avx2() -> Check:
    """The same with code for a lesser processor of this machine's kind."""
    target = OTHERS["avx2"]
    if target.architecture != host().architecture or host().vector_bytes < target.vector_bytes:
        pytest.skip("the code of this processor does not run here")

    def run(kernel: Kernel, arrays: Sequence[Array] | None = None, **known: int) -> None:
        run_and_compare(kernel, target, arrays, known)

    return run
