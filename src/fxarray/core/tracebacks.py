"""Tracebacks without fxarray's own frames.

A shape error inside `jit(vmap(grad(...)))` passes through some fifty frames of fxarray, of which
the user wants none. Public functions that call the user's code are *boundaries*: an exception that
leaves one loses the frames of fxarray that it has passed so far. It costs nothing until there is
an exception. The setting `traceback_filtering` turns it off.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from types import TracebackType
from typing import ParamSpec, TypeVar

from fxarray.core import config
from fxarray.core.errors import FxArrayError
from fxarray.core.source import is_internal_file

P = ParamSpec("P")
R = TypeVar("R")


def _entries(traceback: TracebackType | None) -> list[TracebackType]:
    found: list[TracebackType] = []
    while traceback is not None:
        found.append(traceback)
        traceback = traceback.tb_next
    return found


def _is_internal(entry: TracebackType) -> bool:
    return is_internal_file(entry.tb_frame.f_code.co_filename)


def shorten(error: BaseException) -> None:
    """Take fxarray's frames out of the traceback of an exception and of those that led to it.

    Errors that fxarray does not raise on purpose keep what comes after the user's last frame: it is
    where something went wrong.
    """
    if not config.get("traceback_filtering"):
        return
    seen: set[int] = set()
    pending: list[BaseException | None] = [error]
    while pending:
        current = pending.pop()
        if current is None or id(current) in seen:
            continue
        seen.add(id(current))
        pending += [current.__cause__, current.__context__]
        entries = _entries(current.__traceback__)
        kept: list[TracebackType] = []
        if not isinstance(current, FxArrayError):
            while entries and _is_internal(entries[-1]):
                kept.append(entries.pop())
            if not entries:
                continue  # it comes from here: nothing is the user's
        kept += [entry for entry in reversed(entries) if not _is_internal(entry)]
        shorter: TracebackType | None = None
        for entry in kept:
            shorter = TracebackType(shorter, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
        current.__traceback__ = shorter


def boundary(function: Callable[P, R]) -> Callable[P, R]:
    """Make `function` a boundary.

    Args:
      function: a public function that calls the user's code, or often fails.
    """

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except Exception as error:
            shorten(error)
            raise

    return call
