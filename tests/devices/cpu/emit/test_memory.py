"""Loads and stores: in a row, strided, at offsets, under masks; and nothing beyond the mask."""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np
import pytest

from fxarray.core import dtypes
from fxarray.devices.cpu.emit import lanes as lane
from fxarray.devices.cpu.emit import memory
from fxarray.devices.cpu.emit.types import Value, itemsize, storage_type
from fxarray.kernel.scalars import numpy_dtype

DTYPES = (
    *("bool", "i4", "u2", "i8", "u16", "i32", "u64", "f16", "bf16", "f8_e5m2", "f8_e8m0fnu"),
    *("f4_e2m1fn", "f32", "f64", "c64", "c128"),
)
LANES = (1, 2, 4, 16)
SIZE = 256


def numbers(dtype: str) -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(0)
    wide: Any = rng.uniform(0.5, 3, SIZE)
    if dtype == "bool":
        return wide > 1.5
    if dtype[0] == "c":
        wide = wide + 1j * rng.normal(size=SIZE)
    return dtypes.cast(np.asarray(wide), numpy_dtype(dtype))


@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_elements_in_a_row_under_masks(run, assert_same, dtype, lanes):
    x = numbers(dtype)
    for count in {0, 1, lanes - 1, lanes}:
        loaded, stored = np.zeros_like(x), np.zeros_like(x)

        def build(f, source, first, second, count=count):
            mask = lane.tail_mask(f, count, lanes)
            value = memory.load(f, source, dtype, lanes, mask, 1)
            memory.store(f, value, first)
            memory.store(f, value, second, mask)

        run(build, x, loaded, stored)
        expected = np.zeros_like(x)
        expected[:count] = x[:count]
        assert_same(stored, expected)
        expected[count:lanes] = dtypes.cast(np.ones(1), x.dtype)
        assert_same(loaded, expected)


@pytest.mark.parametrize("stride", [-3, -1, 0, 2, 5])
@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_strided_elements(run, assert_same, dtype, lanes, stride):
    x = numbers(dtype)
    start = 100
    results = [np.zeros_like(x) for _ in range(3)]
    type_ = storage_type(dtype)
    steps = np.array([stride], np.int64)

    def build(f, source, word, *places):
        first = f.offset(source, start, type_)
        value = memory.load_strided(f, first, stride, dtype, lanes)
        memory.store(f, value, places[0])
        runtime = f.load_word(word, 0)
        memory.store(f, memory.load_strided(f, first, runtime, dtype, lanes), places[1])
        if stride:
            memory.store_strided(f, value, f.offset(places[2], start, type_), stride)

    run(build, x, steps, *results)
    where = start + stride * np.arange(lanes)
    expected = np.zeros_like(x)
    expected[:lanes] = x[where]
    assert_same(results[0], expected)
    assert_same(results[1], expected)
    scattered = np.zeros_like(x)
    if stride:
        scattered[where] = x[where]
    assert_same(results[2], scattered)


@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_elements_at_offsets_under_masks(run, assert_same, dtype, lanes):
    x = numbers(dtype)
    rng = np.random.default_rng(1)
    offsets = rng.permutation(SIZE)[:lanes].astype(np.int64)
    gathered, scattered = np.zeros_like(x), np.zeros_like(x)
    count = max(lanes - 1, 1)

    def build(f, source, where, first, second):
        vector = memory.load(f, where, "i64", lanes).operand
        mask = lane.tail_mask(f, count, lanes)
        value = memory.gather(f, source, vector, dtype, lanes, mask, 1)
        memory.store(f, value, first)
        memory.scatter(f, value, second, vector, mask)

    run(build, x, offsets, gathered, scattered)
    expected = np.zeros_like(x)
    expected[:count] = x[offsets[:count]]
    expected[count:lanes] = dtypes.cast(np.ones(1), x.dtype)
    assert_same(gathered, expected)
    expected = np.zeros_like(x)
    expected[offsets[:count]] = x[offsets[:count]]
    assert_same(scattered, expected)


@pytest.mark.parametrize("dtype", ["i8", "bf16", "f32", "f64", "c64"])
def test_what_a_mask_excludes_is_not_touched(run, dtype):
    """The first page of a mapping without access follows the last element."""
    page = mmap.PAGESIZE
    size = itemsize(dtype)
    mapping = mmap.mmap(-1, 2 * page)
    protect = _protect(mapping, page)
    if protect is None:
        pytest.skip("this system does not let pages be protected")
    count, lanes = 3, 16
    x = np.frombuffer(mapping, numpy_dtype(dtype), count, page - count * size)
    result = np.zeros(lanes, numpy_dtype(dtype))

    def build(f, source, place):
        mask = lane.tail_mask(f, count, lanes)
        value = memory.load(f, source, dtype, lanes, mask)
        memory.store(f, value, source, mask)
        memory.store(f, value, place)

    try:
        run(build, x, result)
    finally:
        protect(restore=True)
    assert not result.astype(np.complex128).any()


def _protect(mapping: mmap.mmap, page: int) -> Any:
    import ctypes

    library = ctypes.CDLL(None, use_errno=True)
    if not hasattr(library, "mprotect"):
        return None
    address = ctypes.addressof(ctypes.c_char.from_buffer(mapping)) + page

    def set_access(restore: bool = False) -> int:
        access = mmap.PROT_READ | mmap.PROT_WRITE if restore else 0
        return library.mprotect(ctypes.c_void_p(address), ctypes.c_size_t(page), access)

    return set_access if set_access() == 0 else None


def test_stores_past_the_caches_write_the_same(run):
    from fxarray.devices.cpu.native.memory import empty

    x, result = np.arange(64, dtype=np.float32), empty((64,), np.dtype(np.float32))

    def build(f, source, place):
        for start in range(0, 64, 16):
            value = memory.load(f, f.offset(source, start, "float"), "f32", 16)
            memory.store(f, value, f.offset(place, start, "float"), nontemporal=True)

    run(build, x, result)
    assert np.array_equal(result, x)


def test_a_load_fills_with_a_value(run):
    x, result = np.arange(16, dtype=np.float32), np.zeros(16, np.float32)

    def build(f, source, place):
        mask = lane.tail_mask(f, 5, 16)
        other = memory.load(f, f.offset(source, 0, "float"), "f32", 16)
        value = memory.load(f, source, "f32", 16, mask, Value("f32", 16, (other.operand,)))
        memory.store(f, value, place)

    run(build, x, result)
    assert np.array_equal(result, x)
