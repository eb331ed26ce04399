"""The way from a Program to something that runs: passes, a backend, and a cache by content.

Executables are remembered by what the Program says, not by which function it came from. Arrays that
the function closed over are arguments, so a fresh lambda that computes the same costs a trace but
no compile.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from typing import Any, NamedTuple

from fxarray.compile.backend import CompileOptions, Executable, get_backend
from fxarray.compile.dumps import GRAPH, dump
from fxarray.compile.simplify import simplify
from fxarray.core import config
from fxarray.core.caches import register_cache
from fxarray.core.ir import Program

_CACHE: OrderedDict[Any, tuple[Program, Executable]] = OrderedDict()
_CACHE_LIMIT = 4096
_NO_OPTIONS = CompileOptions()
_lock = threading.Lock()


class Statistics(NamedTuple):
    """How often the cache of executables was asked, and how often it had to compile."""

    hits: int
    misses: int
    size: int


_counts = {"hits": 0, "misses": 0}


def compile_program(
    program: Program, options: CompileOptions = _NO_OPTIONS, backend: str | None = None
) -> Executable:
    """The executable of a Program, compiled at most once for the same content.

    Args:
      program: a Program without constants.
      options: what may change its code.
      backend: the backend's name; None is the default.
    """
    device = get_backend(backend)
    key = (program, options, device.name)
    with _lock:
        known = _CACHE.get(key)
        _counts["misses" if known is None else "hits"] += 1
        if known is not None:
            _CACHE.move_to_end(key)
    if known is not None:
        same, executable = known
        return executable if same is program else executable.located(program)
    start = time.perf_counter()
    executable = device.compile(simplify(program), options)
    level = config.get("debug")
    if level >= GRAPH:
        dump(program, executable, time.perf_counter() - start, level)
    with _lock:
        _CACHE[key] = program, executable
        if len(_CACHE) > _CACHE_LIMIT:
            _CACHE.popitem(last=False)
    return executable


def statistics() -> Statistics:
    """Hits, misses and size of the cache of executables."""
    return Statistics(_counts["hits"], _counts["misses"], len(_CACHE))


@register_cache
def clear() -> None:
    """Forget all executables."""
    with _lock:
        _CACHE.clear()
