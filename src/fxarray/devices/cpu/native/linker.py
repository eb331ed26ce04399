"""From objects to addresses: LLVM's just-in-time linker."""

from __future__ import annotations

import ctypes
import itertools
import threading
from collections.abc import Sequence
from pathlib import Path
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
MERGED_AFTER = 1000
_MAPPINGS = Path("/proc/self/maps")
_READ, _EXECUTE = 1, 4
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


def link(objects: Sequence[bytes], symbols: Sequence[str]) -> dict[str, int]:
    """Load objects together, which is faster than one by one; the code stays for good.

    Args:
      objects: they may use the symbols of this process.
      symbols: functions defined in them.

    Returns:
      The addresses of the symbols.

    Raises:
      CompilerError: if a symbol is missing or defined twice.
    """
    number = next(_names)
    if number % MERGED_AFTER == MERGED_AFTER - 1:
        merge_mappings()
    name = f"fxarray.{number}"
    return (_link_directly if AVAILABLE else _link_publicly)(name, objects, symbols)


def _link_directly(name: str, objects: Sequence[bytes], symbols: Sequence[str]) -> dict[str, int]:
    elements = (LinkElement * (len(objects) + 1))(
        *[LinkElement(_OBJECT, data, len(data)) for data in objects], LinkElement(_LIBRARY, b"", 0)
    )
    exports = (SymbolAddress * len(symbols))(
        *[SymbolAddress(symbol.encode(), 0) for symbol in symbols]
    )
    message = Message()
    tracker = functions["LLJIT_Link"](
        *(_linker(), name.encode(), elements, len(elements), (SymbolAddress * 0)(), 0),
        *(exports, len(symbols), ctypes.byref(message.pointer)),
    )
    if not tracker:
        raise CompilerError(_explain(message.take()))
    return {symbol: int(export.address) for symbol, export in zip(symbols, exports, strict=True)}


def _explain(reason: str) -> str:
    return f"LLVM could not link the code: {reason} (it has written more to the standard error)"


_trackers: list[Any] = []  # llvmlite unloads code that nothing holds


def _link_publicly(name: str, objects: Sequence[bytes], symbols: Sequence[str]) -> dict[str, int]:
    builder = llvm.JITLibraryBuilder()
    for data in objects:
        builder.add_object_img(data)
    builder.add_current_process()
    for symbol in symbols:
        builder.export_symbol(symbol)
    try:
        tracker = builder.link(_linker(), name)
    except RuntimeError as error:
        raise CompilerError(_explain(str(error))) from None
    _trackers.append(tracker)
    return {symbol: int(tracker[symbol]) for symbol in symbols}


def merge_mappings() -> int:
    """Let pages of linked code and of its constants be one mapping; how many were changed.

    Each link leaves two mappings, code that can be executed beside constants that can be read, and
    Linux ends a process that has more than 65530. Neighbours of equal protection are one to it, so
    constants that lie behind code are made executable too, which they may be: nothing writes them.
    """
    if not _MAPPINGS.exists():
        return 0
    protect = ctypes.CDLL(None, use_errno=True).mprotect
    protect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    changed, code_end = 0, 0
    for line in _MAPPINGS.read_text().splitlines():
        span, protection, _, _, inode, *name = line.split()
        start, end = (int(part, 16) for part in span.split("-"))
        anonymous = inode == "0" and not name
        if anonymous and protection == "r-xp":
            code_end = end
        elif anonymous and protection == "r--p" and start == code_end:
            changed += protect(start, end - start, _READ | _EXECUTE) == 0
            code_end = end
    return changed
