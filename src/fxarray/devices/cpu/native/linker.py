"""From objects to addresses: LLVM's just-in-time linker."""

from __future__ import annotations

import ctypes
import itertools
import threading
from typing import Any

import llvmlite.binding as llvm

from fxarray.core.errors import CompilerError
from fxarray.devices.cpu.native.llvm import (
    AVAILABLE,
    LinkElement,
    Message,
    SymbolAddress,
    functions,
)

_OBJECT, _LIBRARY = 2, 3
_names = itertools.count()
_lock = threading.Lock()
_linkers: list[Any] = []


def _linker() -> Any:
    """The process's linker, never taken down: threads may run its code until the end."""
    if not _linkers:
        with _lock:
            if not _linkers:
                _linkers.append(_new_linker())
    return _linkers[0]


def _new_linker() -> Any:
    if not AVAILABLE:
        return llvm.create_lljit_compiler()
    message = Message()
    linker = functions["CreateLLJITCompiler"](None, False, False, ctypes.byref(message.pointer))
    if not linker:
        raise CompilerError(f"LLVM could not make a linker: {message.take()}")
    return linker


class Library:
    """Loaded code.

    Args:
      data: the bytes of an object.
      symbol: the function whose address is wanted.
    """

    def __init__(self, data: bytes, symbol: str = "entry") -> None:
        name = f"fxarray.{next(_names)}"
        self._tracker: Any = None
        if AVAILABLE:
            self.address = self._link(name, data, symbol)
        else:
            self.address = self._link_publicly(name, data, symbol)

    def _link(self, name: str, data: bytes, symbol: str) -> int:
        elements = (LinkElement * 2)(
            LinkElement(_OBJECT, data, len(data)), LinkElement(_LIBRARY, b"", 0)
        )
        exports = (SymbolAddress * 1)(SymbolAddress(symbol.encode(), 0))
        imports = (SymbolAddress * 0)()
        message = Message()
        tracker = functions["LLJIT_Link"](
            *(_linker(), name.encode(), elements, 2, imports, 0, exports, 1),
            ctypes.byref(message.pointer),
        )
        if not tracker:
            raise CompilerError(f"LLVM could not link the code: {message.take()}")
        self._tracker = tracker
        return int(exports[0].address)

    def _link_publicly(self, name: str, data: bytes, symbol: str) -> int:
        builder = llvm.JITLibraryBuilder()
        builder.add_object_img(data).add_current_process().export_symbol(symbol)
        try:
            self._tracker = builder.link(_linker(), name)
        except RuntimeError as error:
            raise CompilerError(f"LLVM could not link the code: {error}") from None
        return int(self._tracker[symbol])
