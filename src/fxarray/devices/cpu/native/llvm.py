"""The functions of llvmlite's library that compiling needs, bound without llvmlite's lock.

llvmlite holds one lock around every call into LLVM, so threads that compile through it take turns.
LLVM itself needs no such lock as long as each thread uses contexts, modules and target machines of
its own, which is how this module is used. The names bound here are private to llvmlite: they are
looked up when this module is imported, and `AVAILABLE` is false if one is missing; then the same
work goes through llvmlite's public functions, one thread at a time.
"""

from __future__ import annotations

import ctypes
from collections.abc import Generator
from contextlib import contextmanager
from ctypes import c_bool, c_char_p, c_int, c_size_t, c_uint8, c_uint64, c_void_p
from typing import Any

import llvmlite.binding as llvm
from llvmlite.binding import ffi

_STRING = ctypes.POINTER(c_char_p)


class LinkElement(ctypes.Structure):
    """One input of a link: an object, or a library to take symbols from."""

    _fields_ = (("kind", c_uint8), ("value", c_char_p), ("length", c_size_t))


class SymbolAddress(ctypes.Structure):
    """A symbol that a link exports or imports."""

    _fields_ = (("name", c_char_p), ("address", c_uint64))


# Arguments and result of each function; objects of LLVM are opaque pointers.
_SIGNATURES: dict[str, tuple[list[Any], Any]] = {
    "LLVMPY_ContextCreate": ([], c_void_p),
    "LLVMPY_ContextDispose": ([c_void_p], None),
    "LLVMPY_ParseAssembly": ([c_void_p, c_char_p, _STRING], c_void_p),
    "LLVMPY_VerifyModule": ([c_void_p, _STRING], c_bool),
    "LLVMPY_DisposeModule": ([c_void_p], None),
    "LLVMPY_DisposeString": ([c_char_p], None),
    "LLVMPY_GetTargetFromTriple": ([c_char_p, _STRING], c_void_p),
    "LLVMPY_CreateTargetMachine": (
        [c_void_p, c_char_p, c_char_p, c_char_p, c_int]
        + [c_char_p, c_char_p, c_int, c_int, c_char_p],
        c_void_p,
    ),
    "LLVMPY_CreatePipelineTuningOptions": ([c_int, c_int], c_void_p),
    "LLVMPY_DisposePipelineTuningOptions": ([c_void_p], None),
    "LLVMPY_CreatePassBuilder": ([c_void_p, c_void_p], c_void_p),
    "LLVMPY_DisposePassBuilder": ([c_void_p], None),
    "LLVMPY_CreateNewModulePassManager": ([], c_void_p),
    "LLVMPY_DisposeNewModulePassManger": ([c_void_p], None),
    "LLVMPY_module_AddSROAPass": ([c_void_p], None),
    "LLVMPY_module_AddAlwaysInlinerPass": ([c_void_p], None),
    "LLVMPY_module_AddInstCombinePass": ([c_void_p], None),
    "LLVMPY_module_AddSimplifyCFGPass": ([c_void_p], None),
    "LLVMPY_RunNewModulePassManager": ([c_void_p, c_void_p, c_void_p], None),
    "LLVMPY_TargetMachineEmitToMemory": ([c_void_p, c_void_p, c_int, _STRING], c_void_p),
    "LLVMPY_GetBufferStart": ([c_void_p], c_void_p),
    "LLVMPY_GetBufferSize": ([c_void_p], c_size_t),
    "LLVMPY_DisposeMemoryBuffer": ([c_void_p], None),
    "LLVMPY_CreateLLJITCompiler": ([c_void_p, c_bool, c_bool, _STRING], c_void_p),
    "LLVMPY_LLJIT_Link": (
        [c_void_p, c_char_p, ctypes.POINTER(LinkElement), c_size_t]
        + [ctypes.POINTER(SymbolAddress), c_size_t]
        + [ctypes.POINTER(SymbolAddress), c_size_t, _STRING],
        c_void_p,
    ),
    "LLVMPY_LLJIT_Dylib_Tracker_Dispose": ([c_void_p, _STRING], c_bool),
}


def _bind() -> dict[str, Any]:
    try:
        library = ctypes.CDLL(ffi.lib._name)
        functions = {name: getattr(library, name) for name in _SIGNATURES}
    except (AttributeError, OSError):
        return {}
    for name, (arguments, result) in _SIGNATURES.items():
        functions[name].argtypes, functions[name].restype = arguments, result
    return functions


# By name without the prefix: `functions["ParseAssembly"]`. They release the GIL.
functions: dict[str, Any] = {name.removeprefix("LLVMPY_"): f for name, f in _bind().items()}
AVAILABLE = bool(functions)
VERSION: tuple[int, ...] = tuple(llvm.llvm_version_info)

llvm.initialize_native_target()
llvm.initialize_native_asmprinter()
llvm.initialize_native_asmparser()


class Message:
    """A string that LLVM may write, as the reason of a failure."""

    def __init__(self) -> None:
        self.pointer = c_char_p()

    def take(self) -> str:
        """The text; its memory goes back to LLVM."""
        text = self.pointer.value
        if text is None:
            return ""
        functions["DisposeString"](self.pointer)
        self.pointer = c_char_p()
        return text.decode(errors="replace").strip()


@contextmanager
def new_context() -> Generator[int]:
    """An LLVM context of one's own, so that threads share nothing."""
    context = functions["ContextCreate"]()
    try:
        yield context
    finally:
        functions["ContextDispose"](context)
