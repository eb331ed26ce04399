"""Timelines of compiled functions: which kernel ran when, on how much data, how near to the limit.

    with fxarray.profiler.trace("step.json"):
        step(params, batch)

Open the file in https://ui.perfetto.dev or chrome://tracing. Each kernel has a row with its bytes,
its floating-point operations and its share of the roofline: 1 is as fast as the machine's memory
and arithmetic, as measured when the timeline begins, allow.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

from fxarray.transforms.jit import forget_short_ways

Function = TypeVar("Function", bound=Callable[..., Any])


def _profiling() -> Any:
    """The module that does it, which imports LLVM."""
    return import_module("fxarray.devices.cpu.program.profiling")


def start_trace(path: str | os.PathLike[str]) -> None:
    """Begin a timeline of all compiled functions, in all threads.

    Args:
      path: the file to write, whose name ends in .json, or the directory to write
        `fxarray_trace.json` to.

    Raises:
      ArgumentError: if one has been begun already.
    """
    file = Path(path)
    if file.suffix != ".json":
        file = file / "fxarray_trace.json"
    _profiling().start(file)
    forget_short_ways()


def stop_trace() -> Path:
    """End the timeline and write it; returns the file.

    Raises:
      ArgumentError: if none has been begun.
    """
    return _profiling().stop()


@contextmanager
def trace(path: str | os.PathLike[str]) -> Generator[None]:
    """Make a timeline of what compiled functions do in a `with` block.

    Args:
      path: as of `start_trace`.
    """
    start_trace(path)
    try:
        yield
    finally:
        stop_trace()


@contextmanager
def TraceAnnotation(name: str, **details: Any) -> Generator[None]:
    """Show a `with` block as a row of its own in the timeline, if one is being made.

    Args:
      name: of the row.
      details: shown with it.
    """
    with _profiling().annotated(name, details):
        yield


def annotate_function(function: Function, name: str | None = None, **details: Any) -> Function:
    """Show each call of a function as a row of the timeline."""

    @wraps(function)
    def annotated(*args: Any, **kwargs: Any) -> Any:
        with TraceAnnotation(name or getattr(function, "__name__", "function"), **details):
            return function(*args, **kwargs)

    return annotated  # type: ignore[return-value]
