"""Compiling modules before they are asked for, while Python writes the next ones.

Threads of this module live as long as there is something to compile. They hold the GIL for moments
only, so on a second processor their work is free. What is begun is kept until it is taken.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Iterable

from fxarray.core.caches import register_cache
from fxarray.devices.cpu.native.cache import default_cache
from fxarray.devices.cpu.native.compiler import compile_object, without_strength_reduction
from fxarray.devices.cpu.native.llvm import AVAILABLE
from fxarray.devices.cpu.native.target import processors

_LIMIT = 512  # of modules that are begun and not taken


class _Job:
    """A module.

    Args:
      key: its name in the cache.
      text: LLVM text.
    """

    __slots__ = ("data", "done", "key", "text")

    def __init__(self, key: str, text: str) -> None:
        self.key = key
        self.text = text
        self.data: bytes | None = None
        self.done = threading.Event()

    def run(self) -> None:
        """Compile. What LLVM refuses has no data: whoever takes it compiles it again, and raises
        the error where it belongs."""
        try:
            self.data = compile_object(self.text)
            default_cache().put(self.key, self.data)
        except Exception:  # noqa: BLE001, as said above
            self.data = None
        finally:
            self.done.set()


class _Queue:
    """What is begun."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.jobs: dict[str, _Job] = {}
        self.waiting: deque[_Job] = deque()
        self.threads = 0

    def forget(self) -> None:
        """Drop all that has not been taken."""
        with self.lock:
            self.waiting.clear()
            self.jobs.clear()

    def after_fork(self) -> None:
        """In a child process, which has no threads of these."""
        self.__init__()


_queue = _Queue()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_queue.after_fork)
register_cache(_queue.forget)


def begin(key: str, text: str) -> None:
    """Compile a module soon, unless no processor is free for that.

    Args:
      key: its name in the cache, where it is not.
      text: LLVM text.
    """
    most = processors() - 1
    if most < 1 or not AVAILABLE:
        return
    with _queue.lock:
        if key in _queue.jobs or len(_queue.jobs) >= _LIMIT:
            return
        job = _queue.jobs[key] = _Job(key, text)
        _queue.waiting.append(job)
        start = _queue.threads < most
        _queue.threads += start
    if start:
        threading.Thread(target=_work, name="fxarray compiler").start()


def is_begun(key: str) -> bool:
    """Whether a module is waiting, being compiled, or compiled and not taken."""
    return key in _queue.jobs


def _work() -> None:
    with without_strength_reduction():
        while True:
            with _queue.lock:
                if not _queue.waiting:
                    _queue.threads -= 1
                    return
                job = _queue.waiting.popleft()
            job.run()


def withdraw(keys: Iterable[str]) -> dict[str, _Job]:
    """Jobs of these keys that threads have taken up; those that none has are given up."""
    found: dict[str, _Job] = {}
    with _queue.lock:
        for key in keys:
            job = _queue.jobs.pop(key, None)
            if job is None:
                continue
            try:
                _queue.waiting.remove(job)
            except ValueError:
                found[key] = job
    return found


def results(jobs: dict[str, _Job]) -> dict[str, bytes]:
    """The objects of jobs, when they are done; those that failed are left out."""
    found: dict[str, bytes] = {}
    for key, job in jobs.items():
        job.done.wait()
        if job.data is not None:
            found[key] = job.data
    return found
