"""NumPy arrays in memory of ours: aligned, reused, counted, else like any."""

import ctypes
import gc
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import fxarray
from fxarray.devices.cpu.native import allocator, memory
from fxarray.devices.cpu.native.memory import empty, reset_peak, statistics, the_allocator, trim
from fxarray.errors import ArgumentError, OutOfMemoryError


def blocks() -> tuple:
    """The allocator's own functions."""
    found = the_allocator()
    pointer, size = ctypes.c_void_p, ctypes.c_size_t
    allocate = ctypes.CFUNCTYPE(pointer, pointer, size)(found.allocate)
    release = ctypes.CFUNCTYPE(None, pointer, pointer)(found.release)
    return (lambda n: allocate(found.pool, n)), (lambda p: release(found.pool, p))


@pytest.mark.parametrize("shape", [(), (0,), (1,), (3, 4), (2, 0, 5), (100, 100, 100), (1 << 21,)])
@pytest.mark.parametrize("dtype", [np.bool_, np.float32, np.complex128, np.dtype("V3")])
def test_arrays_are_plain_aligned_numpy_arrays(shape, dtype):
    array = empty(shape, dtype)
    assert type(array) is np.ndarray
    assert (array.shape, array.dtype) == (shape, np.dtype(dtype))
    assert array.ctypes.data % 64 == 0
    assert array.base is None
    flags = array.flags
    assert all((flags.c_contiguous, flags.owndata, flags.writeable, flags.aligned))
    array[...] = np.zeros((), dtype)
    assert array.copy().tobytes() == bytes(array.nbytes)


def test_memory_is_counted_and_returned():
    before = statistics().live
    array = empty((1000,), np.float32)
    assert statistics().live == before + 4096
    view = array[::2]
    del array
    assert statistics().live == before + 4096
    del view
    assert statistics().live == before


def test_freed_memory_is_given_out_again():
    trim()
    array = empty((5000,), np.float64)
    address = array.ctypes.data
    del array
    assert statistics().kept >= 40_000
    assert empty((4900,), np.float64).ctypes.data == address
    fxarray.clear_caches()
    assert statistics().kept == 0


def test_the_peak_is_that_of_what_was_in_use():
    reset_peak()
    start = statistics().live
    arrays = [empty((1 << 20,), np.uint8) for _ in range(3)]
    del arrays
    empty((1 << 20,), np.uint8)
    assert statistics().peak - start == 3 << 20


def test_classes_waste_at_most_a_quarter():
    allocate, release = blocks()
    for size in [*range(65, 3000, 7), 4097, 65537, 1_000_003]:
        before = statistics().live
        block = allocate(size)
        assert size <= statistics().live - before <= 1.25 * size + 1
        assert block % 64 == 0
        release(block)


def test_live_blocks_never_overlap():
    generator = np.random.default_rng(0)
    live: list[tuple[np.ndarray, int]] = []
    for number in range(4000):
        array = empty((int(2 ** generator.uniform(0, 18)),), np.uint8)
        array.fill(number % 251)
        live.append((array, number % 251))
        if len(live) > 40:
            old, value = live.pop(int(generator.integers(len(live))))
            assert (old == value).all()
    assert all((array == value).all() for array, value in live)


def test_what_is_kept_is_bounded():
    pool = the_allocator().pool
    limit = ctypes.c_uint64.from_address(pool + allocator.LIMIT)
    before = limit.value
    trim()
    try:
        limit.value = 100_000
        arrays = [empty((30_000,), np.uint8) for _ in range(10)]
        while arrays:
            arrays.pop()
            assert statistics().kept <= 100_000
        large = empty((1 << 20,), np.uint8)
        del large
        assert statistics().kept <= 100_000
    finally:
        limit.value = before


def test_numpy_may_resize_an_array():
    array = empty((3, 4), np.float32)
    array[...] = np.arange(12).reshape(3, 4)
    array.resize((1000, 4), refcheck=False)
    np.testing.assert_array_equal(array[:3], np.arange(12).reshape(3, 4))
    array.resize((2,), refcheck=False)
    np.testing.assert_array_equal(array, [0, 1])


def test_other_arrays_keep_their_allocator():
    empty((10,), np.float32)
    before = statistics().live
    kept = [np.empty(1000), np.zeros(1000)]
    assert statistics().live == before
    assert len(kept) == 2


def test_threads_allocate_and_free_at_once():
    trim()
    before = statistics().live
    handed: list[np.ndarray] = []

    def work() -> None:
        for number in range(3000):
            array = empty((number % 700 + 1,), np.uint8)
            array.fill(number % 251)
            handed.append(array)  # another thread may free it
            if number % 3:
                handed.pop()
            assert (array == number % 251).all()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    handed.clear()
    gc.collect()
    assert statistics().live == before


@pytest.mark.parametrize("shape", [(1 << 43,), (1 << 60,), (1 << 40, 1 << 40)])
def test_too_large_an_array_is_an_error_with_its_size(shape):
    with pytest.raises(OutOfMemoryError, match=r"no memory for an array of shape .*TiB"):
        empty(shape, np.float32)
    with pytest.raises(MemoryError):
        empty(shape, np.float32)


def test_wrong_shapes_are_errors():
    with pytest.raises(TypeError):
        empty((2.5,), np.float32)  # type: ignore[arg-type]
    with pytest.raises((TypeError, SystemError)):
        empty([2], np.float32)  # type: ignore[arg-type]
    with pytest.raises(OutOfMemoryError):
        empty((-3,), np.float32)


def test_without_known_layouts_arrays_are_aligned_too(monkeypatch):
    monkeypatch.setattr(memory, "layout", lambda: None)
    monkeypatch.setattr(memory, "_makers", [])
    for shape in ((), (1,), (7, 3)):
        array = empty(shape, np.float32)
        assert (array.shape, array.ctypes.data % 64) == (shape, 0)
    with pytest.raises(OutOfMemoryError, match="TiB"):
        empty((1 << 50,), np.float32)


def test_how_much_is_kept_follows_the_environment(monkeypatch):
    monkeypatch.setenv("FXARRAY_POOL_SIZE", "3M")
    assert memory._limit() == 3 << 20
    monkeypatch.setenv("FXARRAY_POOL_SIZE", "much")
    with pytest.raises(ArgumentError, match="FXARRAY_POOL_SIZE"):
        memory._limit()
    monkeypatch.delenv("FXARRAY_POOL_SIZE")
    assert memory._limit() >= 256 << 20


def test_a_forked_child_can_allocate():
    code = """
import os, threading
import numpy as np
from fxarray.devices.cpu.native.memory import empty
stop = threading.Event()
def busy():
    while not stop.is_set():
        empty((100,), np.uint8)
thread = threading.Thread(target=busy)
thread.start()
for _ in range(30):
    pid = os.fork()
    if pid == 0:
        for _ in range(100):
            empty((100,), np.uint8)
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
stop.set()
thread.join()
"""
    options = ["-W", "ignore::DeprecationWarning"]
    result = subprocess.run(
        [sys.executable, *options, "-c", code], env={**os.environ}, timeout=60, check=False
    )
    assert result.returncode == 0
