"""Where CPython and NumPy keep what native code reads of their objects.

Offsets are found by looking: an object's words are compared with the addresses of what it is known
to hold. Unless exactly one place is found for everything, `layout()` is None, and callers go
through Python.
"""

from __future__ import annotations

import ctypes
import sys
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy._core import _multiarray_umath  # pyright: ignore[reportAttributeAccessIssue]

from fxarray.core.array import DeviceArray
from fxarray.core.types import ArrayType

# Positions in NumPy's table of C functions, fixed for all of NumPy 2.
_ABI, _COPY, _NEW, _GET_HANDLER = 0, 85, 94, 305
_ABI_VERSION = 0x02000000
C_CONTIGUOUS, OWNS_DATA, ALIGNED, WRITEABLE = 0x1, 0x4, 0x100, 0x400


@dataclass(frozen=True)
class Layout:
    """Byte offsets, and addresses of NumPy's functions.

    Args:
      type: of an object's type.
      references: of its reference count (the low 32 bits).
      buffer: of the NumPy array in a DeviceArray.
      array_type: of the ArrayType in a DeviceArray.
      data: of the data pointer in a NumPy array.
      flags: of the flags (i32) in a NumPy array.
      dtype: of the dtype in a NumPy array.
      ndim: of the number of its dimensions (i32).
      shape: of the pointer to its sizes (i64).
      handler: of the memory handler in a NumPy array that owns its memory.
      itemsize: in a NumPy dtype.
      new_array: `PyArray_NewFromDescr`.
      new_copy: `PyArray_NewCopy`.
    """

    type: int
    references: int
    buffer: int
    array_type: int
    data: int
    flags: int
    dtype: int
    ndim: int
    shape: int
    handler: int
    itemsize: int
    new_array: int
    new_copy: int


def _word(thing: Any, offset: int) -> int:
    return ctypes.c_uint64.from_address(id(thing) + offset).value


def _places(thing: Any, value: int, size: int) -> list[int]:
    """The offsets of the words of an object that have a value."""
    return [offset for offset in range(0, size, 8) if _word(thing, offset) == value]


def _find() -> Layout | None:
    if sys.implementation.name != "cpython" or sys.byteorder != "little":
        return None
    if ctypes.sizeof(ctypes.c_void_p) != 8 or not getattr(sys, "_is_gil_enabled", lambda: True)():
        return None
    functions = _numpy_functions()
    if functions is None:
        return None
    new_array, new_copy, handler = functions
    arrays = [
        np.arange(6.0),
        np.arange(6.0).reshape(2, 3).T,
        np.arange(7, dtype=np.uint8)[1:].view(),
        np.zeros((2, 2)),
    ]
    arrays[3].flags.writeable = False
    size = np.ndarray.__basicsize__
    data = [_places(x, x.ctypes.data, size) for x in arrays]
    flags = [
        [o for o in range(0, size, 4) if _word(x, o) & 0xFFFFFFFF == x.flags.num] for x in arrays
    ]
    array = DeviceArray(arrays[0], ArrayType((6,), np.dtype(np.float64)))
    width = DeviceArray.__basicsize__
    found = {
        "type": _places(array, id(DeviceArray), width),
        "references": [o for o in (0, 8) if _counts_references(o)],
        "buffer": _places(array, id(arrays[0]), width),
        "array_type": _places(array, id(array.type), width),
        "data": sorted(set.intersection(*map(set, data))),
        "flags": sorted(set.intersection(*map(set, flags))),
    }
    found["dtype"] = sorted(set.intersection(*[set(_places(x, id(x.dtype), size)) for x in arrays]))
    found["ndim"], found["shape"] = _find_shape()
    found["handler"] = [o for o in _places(arrays[0], id(handler), size) if o > 16]
    found["itemsize"] = sorted(set.intersection(*[set(places) for places in _itemsizes()]))
    if any(len(places) != 1 for places in found.values()):
        return None
    if _places(arrays[0], id(np.ndarray), size) != found["type"]:
        return None
    return Layout(
        **{name: places[0] for name, places in found.items()},
        new_array=new_array,
        new_copy=new_copy,
    )


def _find_shape() -> tuple[list[int], list[int]]:
    """The offsets of the number of dimensions and of the pointer to the sizes.

    The sizes lie before the strides, in one piece of memory: that is checked before the pointer is
    followed.
    """
    arrays = [np.zeros((7, 1, 5)[:ndim]) for ndim in (1, 2, 3)]
    size = np.ndarray.__basicsize__
    counts = [{o for o in range(0, size, 4) if _word(x, o) & 0xFFFFFFFF == x.ndim} for x in arrays]
    shapes = [
        {o for o in range(0, size - 8, 8) if _word(x, o + 8) - _word(x, o) == 8 * x.ndim}
        for x in arrays
    ]
    shape = sorted(set.intersection(*shapes))
    for array in arrays:
        for offset in shape:
            sizes = (ctypes.c_int64 * array.ndim).from_address(_word(array, offset))
            if tuple(sizes) != array.shape:
                return [], []
    return sorted(set.intersection(*counts)), shape


def _itemsizes() -> list[list[int]]:
    kinds = [np.dtype(name) for name in ("V24", "c16", "f4", "i2", "S13")]
    return [_places(kind, kind.itemsize, 64) for kind in kinds]


def _counts_references(offset: int) -> bool:
    """Whether the low half of the word there rises with each reference."""
    thing = np.zeros(1)
    before = _word(thing, offset) & 0xFFFFFFFF
    more = [thing] * 5
    return (_word(thing, offset) & 0xFFFFFFFF) - before == len(more)


def _numpy_functions() -> tuple[int, int, Any] | None:
    """The addresses of `PyArray_NewFromDescr` and `PyArray_NewCopy`, and the present memory
    handler; None if NumPy is not as known."""
    capsule = getattr(_multiarray_umath, "_ARRAY_API", None)
    if capsule is None:
        return None
    pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    table = ctypes.cast(pointer_of(capsule, None), ctypes.POINTER(ctypes.c_void_p))
    if ctypes.CFUNCTYPE(ctypes.c_uint)(table[_ABI] or 0)() != _ABI_VERSION:
        return None
    handler = ctypes.PYFUNCTYPE(ctypes.py_object)(table[_GET_HANDLER] or 0)()
    return table[_NEW] or 0, table[_COPY] or 0, handler


@lru_cache(maxsize=1)
def layout() -> Layout | None:
    """What was found, None if native code had better not look at objects."""
    return _find()
