"""Memory for arrays: NumPy arrays whose memory comes from our allocator.

NumPy lets others provide the memory of arrays: an array holds the "memory handler" that frees it.
The arrays made here hold ours, and are NumPy's own in all other respects.
`FXARRAY_POOL_SIZE` says how many bytes of freed memory are kept for later arrays (an eighth of the
machine's by default; `512M`, `2G`, ...).
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

import numpy as np

from fxarray.core.caches import register_cache
from fxarray.core.errors import OutOfMemoryError
from fxarray.devices.cpu.native import allocator
from fxarray.devices.cpu.native.builtin_functions import FAST, builtin
from fxarray.devices.cpu.native.cache import byte_count, parse_size
from fxarray.devices.cpu.native.jit import symbols
from fxarray.devices.cpu.native.objects import (
    ALIGNED,
    C_CONTIGUOUS,
    OWNS_DATA,
    WRITEABLE,
    Layout,
    layout,
)

ALIGNMENT = 64
_LEAST_KEPT = 256 << 20


@dataclass(frozen=True)
class Allocator:
    """Our allocator.

    Args:
      pool: the address of its state.
      allocate: the address of `ptr allocate(ptr %pool, i64 %bytes)`; null if there is no memory.
      release: the address of `void release(ptr %pool, ptr %data)`.
      trim: the address of `void trim(ptr %pool)`, which gives back to the system what is kept.
      handler: the capsule by which NumPy's arrays know it.
    """

    pool: int
    allocate: int
    release: int
    trim: int
    handler: Any


class Statistics(NamedTuple):
    """Bytes of the allocator.

    Args:
      live: in use.
      peak: the most that was in use.
      kept: freed, and kept for later.
    """

    live: int
    peak: int
    kept: int


def _limit() -> int:
    text = os.environ.get("FXARRAY_POOL_SIZE", "")
    if text:
        return parse_size(text, "FXARRAY_POOL_SIZE")
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return _LEAST_KEPT
    return max(_LEAST_KEPT, total // 8)


class _Handler(ctypes.Structure):
    """NumPy's PyDataMem_Handler."""

    _fields_ = (
        ("name", ctypes.c_char * 127),
        ("version", ctypes.c_uint8),
        ("context", ctypes.c_void_p),
        ("allocate", ctypes.c_void_p),
        ("calloc", ctypes.c_void_p),
        ("realloc", ctypes.c_void_p),
        ("free", ctypes.c_void_p),
    )


@lru_cache(maxsize=1)
def the_allocator() -> Allocator:
    """The process's allocator."""
    names = ("allocate", "release", "trim", "numpy_calloc", "numpy_realloc", "numpy_free")
    address = symbols(allocator.allocator_text(os.uname().sysname == "Linux"), names)
    libc = ctypes.CDLL(None)
    libc.calloc.restype, libc.calloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t] * 2
    raw = libc.calloc(1, allocator.STATE_BYTES + ALIGNMENT)
    pool = -(-raw // ALIGNMENT) * ALIGNMENT
    ctypes.c_uint64.from_address(pool + allocator.LIMIT).value = _limit()

    def after_fork() -> None:
        for number in range(allocator.CLASS_COUNT):
            ctypes.c_uint32.from_address(pool + allocator.CLASSES + 64 * number).value = 0

    os.register_at_fork(after_in_child=after_fork)
    handler = _Handler(
        *(b"fxarray", 1, pool, address["allocate"], address["numpy_calloc"]),
        *(address["numpy_realloc"], address["numpy_free"]),
    )
    make = ctypes.pythonapi.PyCapsule_New
    make.restype = ctypes.py_object
    make.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    capsule = make(ctypes.addressof(handler), b"mem_handler", None)
    # Arrays may be freed until the very end, so one reference to each is never given back.
    for thing in (handler, capsule):
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))
    return Allocator(
        *(pool, address["allocate"], address["release"], address["trim"]), handler=capsule
    )


# --- arrays --------------------------------------------------------------------------------------


def array_text(found: Layout) -> str:
    """`ptr @new_array(context, dtype, ndim, shape, bytes)`: an array that owns memory of ours.

    An array that is made around given memory does not own it; it is told so afterwards, and which
    handler frees the memory, as NumPy would have set it. The words of the context: pool, allocate,
    NumPy's array class, its function that makes an array, the handler.
    """
    return f"""
declare ptr @PyTuple_GetItem(ptr, i64)
declare i64 @PyTuple_Size(ptr)
declare ptr @PyByteArray_AsString(ptr)
declare i64 @PyLong_AsSsize_t(ptr)
declare ptr @PyErr_NoMemory()
declare void @Py_IncRef(ptr)
declare {{i64, i1}} @llvm.smul.with.overflow.i64(i64, i64)

define internal ptr @new_array(ptr %context, ptr %dtype, i64 %ndim, ptr %shape, i64 %bytes) {{
  %allocate.at = getelementptr ptr, ptr %context, i64 1
  %class.at = getelementptr ptr, ptr %context, i64 2
  %make.at = getelementptr ptr, ptr %context, i64 3
  %handler.at = getelementptr ptr, ptr %context, i64 4
  %pool = load ptr, ptr %context, align 1
  %allocate = load ptr, ptr %allocate.at, align 1
  %class = load ptr, ptr %class.at, align 1
  %make = load ptr, ptr %make.at, align 1
  %handler = load ptr, ptr %handler.at, align 1
  %data = call ptr %allocate(ptr %pool, i64 %bytes)
  %none = icmp eq ptr %data, null
  br i1 %none, label %lost, label %wrap
wrap:
  call void @Py_IncRef(ptr %dtype)
  %dimensions = trunc i64 %ndim to i32
  %array = call ptr %make(ptr %class, ptr %dtype, i32 %dimensions, ptr %shape, ptr null, ptr %data,
      i32 {_FLAGS}, ptr null)
  %failed = icmp eq ptr %array, null
  br i1 %failed, label %free, label %own
own:
  %flags.at = getelementptr i8, ptr %array, i64 {found.flags}
  %flags = load i32, ptr %flags.at
  %owning = or i32 %flags, {OWNS_DATA}
  store i32 %owning, ptr %flags.at
  call void @Py_IncRef(ptr %handler)
  %field = getelementptr i8, ptr %array, i64 {found.handler}
  store ptr %handler, ptr %field
  ret ptr %array
free:
  %release.at = getelementptr ptr, ptr %context, i64 5
  %release = load ptr, ptr %release.at, align 1
  call void %release(ptr %pool, ptr %data)
  ret ptr null
lost:
  %raised = call ptr @PyErr_NoMemory()
  ret ptr null
}}
"""


# What NumPy is told of memory given to it: contiguous (C), aligned, writeable.
_FLAGS = C_CONTIGUOUS | ALIGNED | WRITEABLE


def _empty_text(found: Layout) -> str:
    """`empty(shape, dtype)`: `shape` is a tuple of ints, `dtype` a NumPy dtype."""
    return f"""
{array_text(found)}
define ptr @empty(ptr %self, ptr %arguments, i64 %count) {{
start:
  %holder = call ptr @PyTuple_GetItem(ptr %self, i64 0)
  %context = call ptr @PyByteArray_AsString(ptr %holder)
  %shape.given = load ptr, ptr %arguments
  %dtype.at = getelementptr ptr, ptr %arguments, i64 1
  %dtype = load ptr, ptr %dtype.at
  %ndim = call i64 @PyTuple_Size(ptr %shape.given)
  %no_tuple = icmp slt i64 %ndim, 0
  br i1 %no_tuple, label %wrong, label %begin
begin:
  %shape = alloca i64, i64 %ndim, align 8
  %itemsize.at = getelementptr i8, ptr %dtype, i64 {found.itemsize}
  %itemsize = load i64, ptr %itemsize.at
  %any = icmp ne i64 %ndim, 0
  br i1 %any, label %each, label %make
each:
  %i = phi i64 [0, %begin], [%next, %use]
  %bytes = phi i64 [%itemsize, %begin], [%product, %use]
  %item = call ptr @PyTuple_GetItem(ptr %shape.given, i64 %i)
  %size = call i64 @PyLong_AsSsize_t(ptr %item)
  %negative = icmp slt i64 %size, 0
  br i1 %negative, label %refuse, label %use
use:
  %at = getelementptr i64, ptr %shape, i64 %i
  store i64 %size, ptr %at
  %pair = call {{i64, i1}} @llvm.smul.with.overflow.i64(i64 %bytes, i64 %size)
  %exact = extractvalue {{i64, i1}} %pair, 0
  %over = extractvalue {{i64, i1}} %pair, 1
  %product = select i1 %over, i64 {1 << 62}, i64 %exact
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %ndim
  br i1 %more, label %each, label %make
make:
  %total = phi i64 [%itemsize, %begin], [%product, %use]
  %array = call ptr @new_array(ptr %context, ptr %dtype, i64 %ndim, ptr %shape, i64 %total)
  ret ptr %array
refuse:
  %raised = call ptr @PyErr_Occurred()
  %known = icmp ne ptr %raised, null
  br i1 %known, label %wrong, label %memory
memory:
  %set = call ptr @PyErr_NoMemory()
  br label %wrong
wrong:
  ret ptr null
}}
declare ptr @PyErr_Occurred()
"""


def array_context() -> bytearray:
    """The words that `new_array` of `array_text` takes."""
    found, places = the_allocator(), layout()
    assert places is not None
    values = (
        *(found.pool, found.allocate, id(np.ndarray), places.new_array),
        *(id(found.handler), found.release),
    )
    return bytearray(b"".join([value.to_bytes(8, "little") for value in values]))


def _maker() -> Callable[..., np.ndarray[Any, Any]]:
    """What makes arrays of a shape and a dtype."""
    found = layout()
    if found is None:
        return _aligned
    address = symbols(_empty_text(found), ("empty",))["empty"]
    return builtin("empty", address, FAST, (array_context(), the_allocator().handler))


_makers: list[Callable[..., np.ndarray[Any, Any]]] = []


def empty(shape: tuple[int, ...], dtype: Any) -> np.ndarray[Any, Any]:
    """A NumPy array with arbitrary values whose memory starts at a multiple of 64 bytes.

    Raises:
      OutOfMemoryError: if there is no memory for it.
    """
    if type(dtype) is not np.dtype:
        dtype = np.dtype(dtype)
    try:
        return _makers[0](shape, dtype)
    except IndexError:
        _makers.append(_maker())
        return empty(shape, dtype)
    except MemoryError:
        size = prod(shape) * dtype.itemsize
        raise out_of_memory(size, f"an array of shape {shape} and dtype {dtype}") from None


def out_of_memory(size: int, what: str) -> OutOfMemoryError:
    """The error that says so."""
    found = statistics()
    return OutOfMemoryError(
        f"there is no memory for {what}: {byte_count(size)}; arrays made by compiled functions "
        f"take {byte_count(found.live)} now"
    )


def _aligned(shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    size = prod(shape) * dtype.itemsize
    raw = np.empty(size + ALIGNMENT, np.uint8)
    start = -raw.ctypes.data % ALIGNMENT
    return raw[start : start + size].view(dtype).reshape(shape)


def statistics() -> Statistics:
    """What the allocator has given out and kept."""
    pool = the_allocator().pool
    places = (allocator.LIVE, allocator.PEAK, allocator.KEPT)
    return Statistics(*[ctypes.c_uint64.from_address(pool + place).value for place in places])


def reset_peak() -> None:
    """Let `statistics().peak` be what is in use now."""
    pool = the_allocator().pool
    live = ctypes.c_uint64.from_address(pool + allocator.LIVE).value
    ctypes.c_uint64.from_address(pool + allocator.PEAK).value = live


@register_cache
def trim() -> None:
    """Give all freed memory back to the system."""
    if the_allocator.cache_info().currsize:
        found = the_allocator()
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(found.trim)(found.pool)
