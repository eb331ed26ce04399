"""From LLVM text to addresses: the compiler, the linker, and what remembers their results."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from hashlib import blake2b

from fxarray.devices.cpu.native.compiler import compile_objects
from fxarray.devices.cpu.native.linker import Library

_libraries: dict[bytes, Library] = {}
_lock = threading.Lock()


def _key(text: str) -> bytes:
    return blake2b(text.encode(), digest_size=20).digest()


def addresses(texts: Sequence[str]) -> list[int]:
    """The address of `@entry` of each module; what is not known yet is compiled, in parallel.

    Args:
      texts: LLVM modules without data layout and triple.

    Raises:
      CompilerError: if LLVM refuses one.
    """
    keys = [_key(text) for text in texts]
    missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in _libraries}
    if missing:
        objects = compile_objects(list(missing.values()))
        for key, data in zip(missing, objects, strict=True):
            with _lock:
                if key not in _libraries:
                    _libraries[key] = Library(data)
    return [_libraries[key].address for key in keys]
