"""Running what is emitted: loops over arrays, on this machine, as if for this or another one."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from fxarray.devices.cpu.emit import features, memory, scalars
from fxarray.devices.cpu.emit.function import FunctionText, module
from fxarray.devices.cpu.emit.types import storage_type
from fxarray.devices.cpu.native.jit import addresses
from fxarray.devices.cpu.native.target import Target, host
from fxarray.kernel.scalars import numpy_dtype

_ENTRY = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)
Values = np.ndarray[Any, Any]
Build = Callable[..., None]


def text_of(build: Build, pointers: int) -> str:
    """A module whose entry does what `build(f, pointer, ...)` writes."""
    f = FunctionText()
    build(f, *[f.load_word("%arguments", number, "ptr") for number in range(pointers)])
    return module([(f, f.definition("@entry(ptr %runtime, ptr %arguments)"))])


def call(text: str, arrays: Sequence[Values]) -> None:
    (address,) = addresses([text])
    words = (ctypes.c_int64 * len(arrays))(*[array.ctypes.data for array in arrays])
    _ENTRY(address)(None, ctypes.addressof(words))


def operation_text(op: str, dtypes: Sequence[str], result: str, lanes: int, count: int) -> str:
    def build(f: FunctionText, *pointers: str) -> None:
        def body(index: str) -> None:
            values = [
                memory.load(f, f.offset(pointer, index, storage_type(dtype)), dtype, lanes)
                for pointer, dtype in zip(pointers, dtypes, strict=False)
            ]
            value = scalars.apply(f, op, values, result)
            memory.store(f, value, f.offset(pointers[-1], index, storage_type(result)))

        f.loop(0, count, lanes, body)

    return text_of(build, len(dtypes) + 1)


@pytest.fixture(scope="session")
def run() -> Callable[..., None]:
    """`run(build, *arrays)` runs what `build(f, pointer, ...)` writes on the arrays."""

    def run(build: Callable[..., Any], *arrays: Values) -> None:
        call(text_of(build, len(arrays)), arrays)

    return run


@pytest.fixture(scope="session")
def apply() -> Callable[..., Values]:
    """`apply(op, arrays, dtypes, result)`: an operation on arrays, in vectors of some lanes."""

    def apply(
        op: str,
        arrays: Sequence[Values],
        dtypes: Sequence[str],
        result: str,
        lanes: int = 16,
        target: Target | None = None,
    ) -> Values:
        count = len(arrays[0])
        padded = count + -count % 64
        operands = [np.resize(array, padded) for array in arrays]
        output = np.empty(padded, numpy_dtype(result))
        with features.using(target or host()):
            text = operation_text(op, dtypes, result, lanes, padded)
        call(text, [*operands, output])
        return output[:count]

    return apply


def same(a: Values, b: Values) -> Values:
    """Where two arrays are equal: zeros by sign, NaN by being NaN."""
    if a.dtype.kind == "c":
        return same(a.real, b.real) & same(a.imag, b.imag)
    if a.dtype.kind in "fV":
        with np.errstate(invalid="ignore"):  # of signalling NaN
            x, y = a.astype(np.float64), b.astype(np.float64)
        equal = (x == y) & (np.signbit(x) == np.signbit(y))
        return equal | (np.isnan(x) & np.isnan(y))
    return a == b


@pytest.fixture(scope="session")
def assert_same() -> Callable[..., None]:
    """Fails, naming the first operands, unless results are the same bit for bit (but NaN's)."""

    def check(got: Values, expected: Values, *operands: Values) -> None:
        wrong = np.flatnonzero(~same(np.asarray(expected), got))
        where = wrong[:3]
        assert not len(wrong), (
            f"{len(wrong)} differ: of {[operand[where] for operand in operands]} "
            f"got {got[where]}, expected {expected[where]}"
        )

    return check


@pytest.fixture(scope="session")
def text() -> Callable[..., str]:
    """`text(op, dtypes, result, lanes, count)`: the module of a loop over an operation."""
    return operation_text
