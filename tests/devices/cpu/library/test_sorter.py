"""Sorting records: every way to sort gives the order of integers."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from fxarray.devices.cpu.library.quick import define_quick_sort
from fxarray.devices.cpu.library.radix import Records, define_radix_sort
from fxarray.devices.cpu.library.text import ModuleText
from fxarray.devices.cpu.native.jit import addresses
from fxarray.devices.cpu.native.target import host

_ENTRY = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4, ctypes.c_int64, ctypes.c_int64)


def quick_sort(bits: int, values: np.ndarray, depth: int) -> np.ndarray:
    """Sorted, by at most `depth` partitions of partitions, then by digits."""
    records = Records(bits, bits)
    text = ModuleText()
    define_radix_sort(text, records)
    define_quick_sort(text, records)
    f = text.function("@entry(ptr %x, ptr %y, ptr %final, ptr %histograms, i64 %n, i64 %depth)")
    f.do("call void @sort_quick(ptr %x, ptr %y, ptr %final, i64 %n, i64 %depth, ptr %histograms)")
    (address,) = addresses([text.text()])
    x, y = values.copy(), np.zeros_like(values)
    histograms = np.zeros(records.histogram_bytes, np.uint8)
    pointers = [array.ctypes.data for array in (x, y, y, histograms)]
    _ENTRY(address)(*pointers, len(values), depth)
    return y


@pytest.mark.skipif(host().vector_bytes < 64, reason="the processor does not compress vectors")
@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("depth", [0, 1, 3, 64])
def test_partitions_and_what_takes_over(bits: int, depth: int) -> None:
    rng = np.random.default_rng(0)
    dtype = np.dtype(f"uint{bits}")
    for n in (0, 1, 129, 1000, 20_000):
        for values in (
            rng.integers(0, 2**bits, n, dtype),
            rng.integers(0, 4, n).astype(dtype),
            np.full(n, 2**bits - 1, dtype),
            np.zeros(n, dtype),
            np.sort(rng.integers(0, 2**bits, n, dtype)),
            np.concatenate([np.arange(n // 2), np.arange(n - n // 2)[::-1]]).astype(dtype),
        ):
            np.testing.assert_array_equal(quick_sort(bits, values, depth), np.sort(values))
