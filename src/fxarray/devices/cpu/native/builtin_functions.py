"""Generated code as builtin functions of CPython, cheaper to call than foreign functions."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

FAST, ONE = 0x80, 0x8  # METH_FASTCALL: (self, arguments, count); METH_O: (self, argument)


class _Method(ctypes.Structure):
    """CPython's PyMethodDef."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


_methods: dict[tuple[str, int, int], _Method] = {}  # never freed: builtins point to them


def address_of(words: bytearray) -> int:
    """Where the bytes are; they must not be resized, and live as long as the address is used."""
    return ctypes.addressof((ctypes.c_char * 0).from_buffer(words))


def builtin(name: str, address: int, flags: int, owner: Any) -> Callable[..., Any]:
    """A function object.

    Args:
      name: its name.
      address: of a C function of the kind that `flags` says.
      flags: `FAST` or `ONE`.
      owner: what the function gets as its first argument; the function keeps it alive.
    """
    method = _methods.setdefault(
        (name, address, flags), _Method(name.encode(), address, flags, None)
    )
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.restype = ctypes.py_object
    make.argtypes = [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]
    return make(ctypes.addressof(method), owner, None)
