"""The runtime block: what all native code is given, and the pool of threads in it."""

from __future__ import annotations

import ctypes
import os
import threading
import time

from fxarray.core.errors import ArgumentError
from fxarray.devices.cpu.native import pool
from fxarray.devices.cpu.native.jit import symbols
from fxarray.devices.cpu.native.memory import the_allocator
from fxarray.devices.cpu.native.target import host, processors

# How long a thread waits awake before it sleeps: the time between two parallel kernels of a Program
# is shorter, waking up takes as long.
_AWAKE_SECONDS = 60e-6
_STACK_BYTES = 8 << 20


def thread_count() -> int:
    """How many threads a call may use, itself included.

    `FXARRAY_NUM_THREADS` if it is set, else the processors that this process may run on, or the
    share of them that its control group may use.

    Raises:
      ArgumentError: if the variable is no positive number.
    """
    text = os.environ.get("FXARRAY_NUM_THREADS", "")
    if text:
        if not text.isdecimal() or int(text) < 1:
            raise ArgumentError(f"FXARRAY_NUM_THREADS must be a positive number, not {text!r}")
        return int(text)
    return processors()


class Runtime:
    """A runtime block and its threads, which start with the first job of several parts.

    The block and the code stay for the life of the process: threads may still look at them while
    the interpreter is being taken down.

    Args:
      threads: how many work on a job, the caller included.
      way: how threads sleep; None is the system's own way.
    """

    def __init__(self, threads: int, way: pool.Waiting | None = None) -> None:
        architecture = host().architecture
        libc = ctypes.CDLL(None)
        text = pool.pool_text(architecture, way or pool.waiting(architecture))
        code = symbols(text, ("entry", "spin"))
        size = pool.WORKERS + 16 * threads
        block = ctypes.c_void_p()
        if libc.posix_memalign(ctypes.byref(block), ctypes.c_size_t(64), ctypes.c_size_t(size)):
            raise MemoryError
        self.address = block.value or 0
        self._libc = libc
        ctypes.memset(self.address, 0, size)
        self._set(pool.RUN, code["entry"])
        self._set(pool.THREADS, threads)
        memory = the_allocator()
        for number, word in enumerate((memory.pool, memory.allocate, memory.release)):
            self._set(pool.ALLOCATOR + 8 * number, word)
        attributes = ctypes.c_void_p(self.address + pool.ATTRIBUTES)
        libc.pthread_attr_init(attributes)
        libc.pthread_attr_setstacksize(attributes, ctypes.c_size_t(_STACK_BYTES))
        libc.pthread_attr_setdetachstate(attributes, _detached())
        self._prepare_sleep()
        self._set(pool.SPINS, _spins(code["spin"]))

    def _set(self, offset: int, value: int) -> None:
        ctypes.c_uint64.from_address(self.address + offset).value = value

    def _prepare_sleep(self) -> None:
        mutex = ctypes.c_void_p(self.address + pool.SLEEP)
        condition = ctypes.c_void_p(self.address + pool.SLEEP + 128)
        self._libc.pthread_mutex_init(mutex, None)
        self._libc.pthread_cond_init(condition, None)

    @property
    def threads(self) -> int:
        """How many work on a job."""
        return ctypes.c_uint64.from_address(self.address + pool.THREADS).value

    def after_fork(self) -> None:
        """In a child process: no worker lives, whatever job ran is not ours, start anew."""
        for offset in (pool.STARTED, pool.OWNER, pool.CLAIMS, pool.DONE, pool.EPOCH):
            self._set(offset, 0)
        ctypes.memset(self.address + pool.SLEEP, 0, 256)
        self._prepare_sleep()


def _detached() -> int:
    """PTHREAD_CREATE_DETACHED."""
    return 1 if os.uname().sysname == "Linux" else 2


def _spins(address: int) -> int:
    """How many turns of the waiting loop take `_AWAKE_SECONDS`."""
    spin = ctypes.CFUNCTYPE(None, ctypes.c_int64)(address)
    turns, best = 200, float("inf")
    for _ in range(3):
        start = time.perf_counter()
        spin(turns)
        best = min(best, time.perf_counter() - start)
    return max(16, int(turns * _AWAKE_SECONDS / best))


_runtimes: list[Runtime] = []
_lock = threading.Lock()


def default_runtime() -> Runtime:
    """The process's runtime."""
    if not _runtimes:
        with _lock:
            if not _runtimes:
                made = Runtime(thread_count())
                os.register_at_fork(after_in_child=made.after_fork)
                _runtimes.append(made)
    return _runtimes[0]


def runtime() -> int:
    """The address of the process's runtime block."""
    return default_runtime().address
