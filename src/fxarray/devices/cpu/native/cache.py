"""The cache of object code on disk.

A file per object, named by a hash of all that its code depends on. Files are written aside and
renamed, so other processes see whole files or none, and hold a checksum, so a damaged one is
compiled again. When the files take more than the limit, those not used for longest go first.

`FXARRAY_CACHE_DIR` says where (by default `fxarray` in `$XDG_CACHE_HOME` or `~/.cache`),
`FXARRAY_CACHE_SIZE` how much (by default `1G`; 0 turns the cache off). If the directory cannot be
used, code is compiled in every process anew, and a debug message of the logger `fxarray` says why.
"""

from __future__ import annotations

import atexit
import logging
import os
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from math import log2
from pathlib import Path

import llvmlite

from fxarray._version import __version__
from fxarray.core.errors import ArgumentError
from fxarray.devices.cpu.native.llvm import VERSION
from fxarray.devices.cpu.native.target import Target

_log = logging.getLogger("fxarray")
_MAGIC = b"fxarray\x01"
_DIGEST = 20
_DEFAULT_SIZE = "1G"
_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
# A file's time says when it was last used, give or take this much.
_TOUCH_SECONDS = 3600.0
# What is left after files have been dropped, and how much is written between looks.
_KEEP, _LOOK = 0.8, 0.1


def parse_size(text: str, variable: str = "FXARRAY_CACHE_SIZE") -> int:
    """A number of bytes: `1500000`, `64M`, `1.5G`.

    Args:
      text: the number.
      variable: where it stands, for the error.

    Raises:
      ArgumentError: if it is no such number.
    """
    number, unit = (text[:-1], text[-1].upper()) if text[-1:].upper() in _UNITS else (text, "")
    try:
        size = float(number) * _UNITS.get(unit, 1)
        if not 0 <= size < 2**63:
            raise ValueError
    except ValueError:
        raise ArgumentError(
            f"{variable} must be a number of bytes such as 500M or 2G, not {text!r}"
        ) from None
    return int(size)


def byte_count(size: float) -> str:
    """A number of bytes, for reading: `3.2 MiB`."""
    if size < 1024:
        return f"{size:.0f} B"
    power = min(4, int(log2(size)) // 10)
    return f"{size / 1024**power:.1f} {' KMGT'[power]}iB"


def default_directory() -> Path:
    """Where the cache is."""
    chosen = os.environ.get("FXARRAY_CACHE_DIR", "")
    if chosen:
        return Path(chosen).expanduser()
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if base else Path("~/.cache").expanduser()) / "fxarray"


@lru_cache(maxsize=16)
def _salt(target: Target) -> bytes:
    versions = (__version__, llvmlite.__version__, VERSION, _compiler_digest())
    return "\0".join(map(str, (*versions, *vars(target).values()))).encode()


def _compiler_digest() -> str:
    """A hash of the compiler's source: which passes it runs decides what objects hold."""
    digest = blake2b(digest_size=_DIGEST)
    for name in ("compiler.py", "jit.py"):
        with suppress(OSError):  # installed without sources: then the version says enough
            digest.update(Path(__file__).with_name(name).read_bytes())
    return digest.hexdigest()


def key_of(text: str, target: Target) -> str:
    """The name of the object of an LLVM module."""
    state = blake2b(_salt(target), digest_size=_DIGEST)
    state.update(text.encode())
    return state.hexdigest()


@dataclass(frozen=True)
class Entry:
    """A file of the cache."""

    path: Path
    size: int
    used: float


class ObjectCache:
    """Objects in a directory.

    Args:
      directory: made when the first object is stored.
      limit: bytes that the files may take.
    """

    def __init__(self, directory: Path, limit: int) -> None:
        self.directory = directory
        self.limit = limit
        self._files = str(directory / "objects")
        self._readable: bool | None = None
        self._writable = limit > 0
        self._written = 0
        self._lock = threading.Lock()

    # --- one object -----------------------------------------------------------------------------

    def get(self, key: str) -> bytes | None:
        """An object, None if it is not there or damaged."""
        if not self._can_read():
            return None
        path = self._path(key)
        try:
            file = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        except OSError:
            return None
        try:
            status = os.fstat(file)
            content = os.read(file, status.st_size)
        except OSError:
            return None
        finally:
            os.close(file)
        start = len(_MAGIC) + _DIGEST
        data = content[start:]
        if content[:start] != _MAGIC + _checksum(key, data):
            _log.debug("%s is damaged; its code is compiled again", path)
            _remove(Path(path))
            return None
        if time.time() - status.st_mtime > _TOUCH_SECONDS:
            with suppress(OSError):  # a read-only cache is of use too
                os.utime(path)
        return data

    def has(self, key: str) -> bool:
        """Whether there is a file of an object; it may be damaged."""
        return self._can_read() and os.path.exists(self._path(key))

    def put(self, key: str, data: bytes) -> None:
        """Keep an object."""
        if not self._writable or not self._can_read():
            return
        path = Path(self._path(key))
        aside = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            aside.write_bytes(_MAGIC + _checksum(key, data) + data)
            aside.replace(path)
        except OSError as error:
            _remove(aside)
            self._writable = False
            _log.debug("no more object code is stored in %s: %s", self.directory, error)
            return
        self._account(len(data))

    def _path(self, key: str) -> str:
        return os.path.join(self._files, key[:2], key[2:])  # a Path takes ten times as long

    def _can_read(self) -> bool:
        """Whether the directory is safe to run code from, where there is one."""
        if self._readable is None:
            self._readable = self.limit > 0 and self._is_safe()
        return self._readable

    def _is_safe(self) -> bool:
        # Whoever can write here can have this process run their code.
        try:
            os.makedirs(self._files, mode=0o700, exist_ok=True)
        except OSError as error:
            self._writable = False
            _log.debug("object code is not stored: %s", error)
        for directory in (self.directory, self._files):
            try:
                status = os.stat(directory)
            except OSError:
                return False
            if os.name == "posix" and (
                status.st_uid not in (os.getuid(), 0) or status.st_mode & 0o002
            ):
                self._writable = False
                _log.debug("the cache in %s is not used: others may write to it", directory)
                return False
        return True

    # --- all of them ----------------------------------------------------------------------------

    def _account(self, size: int) -> None:
        with self._lock:
            if not self._written:
                atexit.register(self.shrink)
            before = self._written
            self._written += size
            step = max(1, int(self.limit * _LOOK))
            due = before // step != self._written // step
        if due:
            self.shrink()

    def entries(self) -> Iterator[Entry]:
        """The files, those that are being written included."""
        try:
            with os.scandir(self._files) as groups:
                directories = [group.path for group in groups if group.is_dir()]
            for directory in directories:
                with os.scandir(directory) as files:
                    for file in files:
                        try:
                            status = file.stat(follow_symlinks=False)
                        except OSError:  # gone meanwhile
                            continue
                        yield Entry(Path(file.path), status.st_size, status.st_mtime)
        except OSError:
            return

    def shrink(self) -> None:
        """Drop what was not used for longest if the files take more than the limit."""
        found = sorted(self.entries(), key=lambda entry: entry.used)
        abandoned = [e for e in found if e.path.name[0] == "." and time.time() - e.used > 600]
        for entry in abandoned:
            _remove(entry.path)
        total = sum(entry.size for entry in found)
        if total <= self.limit:
            return
        for entry in found:
            if total <= self.limit * _KEEP:
                break
            _remove(entry.path)
            total -= entry.size

    def clear(self) -> int:
        """Drop all files; how many there were."""
        count = 0
        for entry in self.entries():
            _remove(entry.path)
            count += 1
        return count


def _checksum(key: str, data: bytes) -> bytes:
    state = blake2b(key.encode(), digest_size=_DIGEST)
    state.update(data)
    return state.digest()


def _remove(path: Path) -> None:
    with suppress(OSError):
        path.unlink(missing_ok=True)


@lru_cache(maxsize=1)
def default_cache() -> ObjectCache:
    """The process's cache."""
    size = os.environ.get("FXARRAY_CACHE_SIZE", "") or _DEFAULT_SIZE
    return ObjectCache(default_directory(), parse_size(size))
