"""Where in the user's own code something happened.

Every equation keeps a `Location`: a code object and an instruction offset, which cost about a
microsecond to take; file, line and function name are worked out only when they are printed.
"""

from __future__ import annotations

import linecache
import os
import sys
import warnings
from types import CodeType, FrameType

import optree

PACKAGE_DIRECTORY = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_is_internal: dict[str, bool] = {}
_INTERNAL_PREFIXES = [PACKAGE_DIRECTORY]
_MACHINERY = (
    "<frozen ",
    "<string>",
    "<fxarray ",
    os.path.dirname(os.__file__) + os.sep + "functools",
    os.path.dirname(os.__file__) + os.sep + "contextlib",
    os.path.dirname(optree.__file__) + os.sep,
)


def hide_package(directory: str) -> None:
    """Treat files under `directory` as machinery, not as the user's code, in error messages."""
    _INTERNAL_PREFIXES.append(os.path.abspath(directory) + os.sep)
    _is_internal.clear()


def is_internal_file(filename: str) -> bool:
    known = _is_internal.get(filename)
    if known is None:
        known = filename.startswith((*_INTERNAL_PREFIXES, *_MACHINERY))
        _is_internal[filename] = known
    return known


class Location:
    """A place in source code, resolved to file and line when printed."""

    __slots__ = ("_line", "code", "offset")

    def __init__(self, code: CodeType, offset: int) -> None:
        self.code = code
        self.offset = offset

    @property
    def file(self) -> str:
        return self.code.co_filename

    @property
    def function(self) -> str:
        return self.code.co_name

    @property
    def line(self) -> int:
        line = self.code.co_firstlineno
        for start, stop, number in self.code.co_lines():
            if start <= self.offset < stop and number is not None:
                return number
        return line

    @property
    def text(self) -> str:
        return linecache.getline(self.file, self.line).strip()

    def __str__(self) -> str:
        text = self.text
        where = f"{self.file}:{self.line} ({self.function})"
        return f"{where}: {text}" if text else where

    def __repr__(self) -> str:
        return f"Location({os.path.basename(self.file)}:{self.line})"


def user_frame(depth: int = 1) -> FrameType | None:
    frame: FrameType | None = sys._getframe(depth)
    while frame is not None:
        filename = frame.f_code.co_filename
        internal = _is_internal.get(filename)
        if internal is None:
            internal = is_internal_file(filename)
        if not internal:
            return frame
        frame = frame.f_back
    return None


def user_frames(depth: int = 1, skip_internal: bool = True) -> list[FrameType]:
    """The frames of the call stack, innermost first; by default those outside fxarray."""
    found: list[FrameType] = []
    frame: FrameType | None = sys._getframe(depth + 1)
    while frame is not None:
        if not skip_internal or not is_internal_file(frame.f_code.co_filename):
            found.append(frame)
        frame = frame.f_back
    return found


def user_location() -> Location | None:
    """The innermost place outside fxarray in the current call stack, or None."""
    frame = user_frame(2)
    return None if frame is None else Location(frame.f_code, frame.f_lasti)


def warn(message: str) -> None:
    """Issue a UserWarning at the innermost place outside fxarray, however deep the call is."""
    frame = user_frame(2)
    if frame is None:
        warnings.warn(message, stacklevel=2)
        return
    registry = frame.f_globals.setdefault("__warningregistry__", {})
    warnings.warn_explicit(
        message, UserWarning, frame.f_code.co_filename, frame.f_lineno, registry=registry
    )
