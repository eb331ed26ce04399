"""From LLVM text to addresses: compiler and linker, and what remembers their results.

Code is looked for in memory, then on disk; the rest is compiled, several modules at a time.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from fxarray.devices.cpu.native.ahead import begin, is_begun, results, withdraw
from fxarray.devices.cpu.native.cache import default_cache, key_of
from fxarray.devices.cpu.native.compiler import compile_objects
from fxarray.devices.cpu.native.linker import link
from fxarray.devices.cpu.native.target import host

_ENTRY = re.compile(r"@entry\b")
_addresses: dict[str, int] = {}
_lock = threading.Lock()


class Statistics(NamedTuple):
    """Where code came from since the process began.

    Args:
      loaded: modules whose object code was on disk.
      compiled: modules that were compiled.
    """

    loaded: int
    compiled: int


_counts = {"loaded": 0, "compiled": 0}


def addresses(texts: Sequence[str]) -> list[int]:
    """The address of `@entry` of each module. The code stays for the life of the process.

    Args:
      texts: LLVM modules without data layout and triple.

    Raises:
      CompilerError: if LLVM refuses one.
    """
    target = host()
    keys = [key_of(text, target) for text in texts]
    missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in _addresses}
    if missing:
        _load(missing)
    return [_addresses[key] for key in keys]


def objects(texts: Mapping[str, str]) -> dict[str, bytes]:
    """Object code by key, from disk or the compiler.

    Args:
      texts: modules by their keys.
    """
    cache = default_cache()
    begun = withdraw(texts)
    found: dict[str, bytes] = {}
    for key in texts:
        data = None if key in begun else cache.get(key)
        if data is not None:
            found[key] = data
    _counts["loaded"] += len(found)
    _counts["compiled"] += len(texts) - len(found)

    def compile_rest(keys: Iterable[str]) -> None:
        new = [key for key in keys if key not in found]
        for key, data in zip(new, compile_objects([texts[key] for key in new]), strict=True):
            cache.put(key, data)
            found[key] = data

    compile_rest([key for key in texts if key not in begun])
    found.update(results(begun))
    compile_rest(texts)  # what could not be compiled ahead raises its error here
    return found


def prepare(text: str) -> None:
    """Begin to compile a module that `addresses` will be asked for.

    Args:
      text: an LLVM module, as for `addresses`.
    """
    key = key_of(text, host())
    if key not in _addresses and not is_begun(key) and not default_cache().has(key):
        begin(key, _named(key, text))


def symbols(text: str, names: Sequence[str]) -> dict[str, int]:
    """The addresses of functions of a module of its own, which is linked at each call.

    Args:
      text: an LLVM module.
      names: functions that it defines.
    """
    key = key_of(text, host())
    return link([objects({key: text})[key]], names)


def _load(texts: Mapping[str, str]) -> None:
    # Each module's `@entry` gets a name of its own, so that all can be linked at once.
    found = objects({key: _named(key, text) for key, text in texts.items()})
    with _lock:
        new = [key for key in texts if key not in _addresses]
        linked = link([found[key] for key in new], [_symbol(key) for key in new])
        _addresses.update({key: linked[_symbol(key)] for key in new})


def _named(key: str, text: str) -> str:
    return _ENTRY.sub(f"@{_symbol(key)}", text)


def _symbol(key: str) -> str:
    return f"entry_{key}"


def statistics() -> Statistics:
    """How many modules came from disk and from the compiler."""
    return Statistics(**_counts)
