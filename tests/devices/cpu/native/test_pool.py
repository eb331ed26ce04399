"""The worker pool: every part is done once, whoever calls, however threads sleep."""

import ctypes
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from fxarray.devices.cpu.native import compiler, jit, pool
from fxarray.devices.cpu.native import runtime as runtime_module
from fxarray.devices.cpu.native.runtime import Runtime, default_runtime, runtime, thread_count
from fxarray.devices.cpu.native.target import OTHERS, processors
from fxarray.errors import ArgumentError

# arguments: parts, turns that each part spins, then a counter per part and a flag per thread.
COUNT = """
define void @entry(ptr %runtime, ptr %arguments) {
  %run = load ptr, ptr %runtime
  %parts = load i64, ptr %arguments
  call void %run(ptr %runtime, ptr @part, ptr %arguments, i64 %parts)
  ret void
}
define internal void @part(ptr %runtime, ptr %arguments, i64 %thread, i64 %part) {
start:
  %turns.at = getelementptr i64, ptr %arguments, i64 1
  %turns = load volatile i64, ptr %turns.at
  br label %loop
loop:
  %i = phi i64 [0, %start], [%next, %loop]
  %again = load volatile i64, ptr %turns.at
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %turns
  br i1 %more, label %loop, label %end
end:
  %where = add i64 %part, 10
  %counter = getelementptr i64, ptr %arguments, i64 %where
  %old = load i64, ptr %counter
  %new = add i64 %old, 1
  store i64 %new, ptr %counter
  %flag.at = add i64 %thread, 2
  %flag = getelementptr i64, ptr %arguments, i64 %flag.at
  store i64 1, ptr %flag
  ret void
}
"""
# Each of 4 parts calls `run` with 4 parts of its own.
NESTED = """
define void @entry(ptr %runtime, ptr %arguments) {
  %run = load ptr, ptr %runtime
  call void %run(ptr %runtime, ptr @outer, ptr %arguments, i64 4)
  ret void
}
define internal void @outer(ptr %runtime, ptr %arguments, i64 %thread, i64 %part) {
  %run = load ptr, ptr %runtime
  %offset = mul i64 %part, 4
  %own = getelementptr i64, ptr %arguments, i64 %offset
  call void %run(ptr %runtime, ptr @inner, ptr %own, i64 4)
  ret void
}
define internal void @inner(ptr %runtime, ptr %arguments, i64 %thread, i64 %part) {
  %counter = getelementptr i64, ptr %arguments, i64 %part
  %old = load i64, ptr %counter
  %new = add i64 %old, 1
  store i64 %new, ptr %counter
  ret void
}
"""


def native(text: str):
    (address,) = jit.addresses([text])
    return ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(address)


def words(parts: int, turns: int = 1) -> np.ndarray:
    made = np.zeros(10 + parts, np.int64)
    made[:2] = parts, turns
    return made


RUNTIMES = {
    "one": lambda: Runtime(1),
    "two": lambda: Runtime(2),
    "many": lambda: Runtime(5),
    "mutex": lambda: Runtime(3, pool.CONDITION),
}


@pytest.fixture(scope="module", params=RUNTIMES)
def some_runtime(request) -> Runtime:
    return RUNTIMES[request.param]()


def test_every_part_is_done_once(some_runtime):
    count = native(COUNT)
    for parts in (0, 1, 2, 3, 17, 300):
        arguments = words(parts)
        for _ in range(20):
            count(some_runtime.address, arguments.ctypes.data)
        assert (arguments[10:] == 20).all()


def test_workers_that_sleep_wake_up(some_runtime):
    count, arguments = native(COUNT), words(8, 100)
    for _ in range(30):
        time.sleep(0.001)
        count(some_runtime.address, arguments.ctypes.data)
    assert (arguments[10:] == 30).all()


def test_long_parts_are_shared_and_waited_for(some_runtime):
    count, arguments = native(COUNT), words(16, 2_000_000)
    for _ in range(3):
        count(some_runtime.address, arguments.ctypes.data)
    assert (arguments[10:] == 3).all()
    used = np.flatnonzero(arguments[2:10])
    assert len(used) == 1 if some_runtime.threads == 1 else len(used) > 1
    assert used.max() < some_runtime.threads


def test_a_part_may_call_run(some_runtime):
    nested, counters = native(NESTED), np.zeros(16, np.int64)
    for _ in range(200):
        nested(some_runtime.address, counters.ctypes.data)
    assert (counters == 200).all()


def test_python_threads_may_call_at_once(some_runtime):
    count = native(COUNT)
    made = [words(9, 50) for _ in range(5)]

    def work(arguments: np.ndarray) -> None:
        for _ in range(300):
            count(some_runtime.address, arguments.ctypes.data)

    threads = [threading.Thread(target=work, args=(arguments,)) for arguments in made]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all((arguments[10:] == 300).all() for arguments in made)


def test_one_runtime_serves_the_process():
    assert runtime() == runtime() == default_runtime().address
    assert runtime() % 64 == 0
    assert default_runtime().threads == thread_count()


def test_thread_count_follows_the_environment(monkeypatch):
    monkeypatch.setenv("FXARRAY_NUM_THREADS", "3")
    assert thread_count() == 3
    for wrong in ("0", "-1", "two", "1.5"):
        monkeypatch.setenv("FXARRAY_NUM_THREADS", wrong)
        with pytest.raises(ArgumentError, match="FXARRAY_NUM_THREADS"):
            thread_count()
    monkeypatch.delenv("FXARRAY_NUM_THREADS")
    assert thread_count() == processors() <= len(os.sched_getaffinity(0))


@pytest.mark.parametrize(
    ("text", "expected"), [("150000 100000", 2), ("max 100000", None), ("nonsense", None)]
)
def test_processors_are_no_more_than_the_control_group_pays_for(monkeypatch, text, expected):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(64)))
    monkeypatch.setattr(Path, "read_text", lambda self: text)
    assert processors() == (expected or 64)


def test_code_of_the_pool_is_made_for_arm():
    text = pool.pool_text("aarch64", pool.futex(98))
    assembly = compiler.compile_assembly(text, OTHERS["neon"])
    assert "isb" in assembly
    assert "#98" in assembly
    assert compiler.compile_object(pool.pool_text("aarch64", pool.CONDITION), OTHERS["apple"])


CHILD = """
import ctypes, os, sys, threading
import numpy as np
sys.path.insert(0, {here!r})
from test_pool import COUNT, native, words
from fxarray.devices.cpu.native.runtime import default_runtime
count = native(COUNT)
def run():
    arguments = words(32, 1000)
    count(default_runtime().address, arguments.ctypes.data)
    assert (arguments[10:] == 1).all()
"""


def child(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    head = CHILD.format(here=str(Path(__file__).parent))
    return subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", head + code],
        env={**os.environ, "FXARRAY_NUM_THREADS": "3", **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_forked_child_has_a_pool_of_its_own():
    """The fork happens while another thread's job runs, whose workers the child does not have."""
    result = child(
        """
stop = threading.Event()
def busy():
    while not stop.is_set():
        run()
thread = threading.Thread(target=busy)
thread.start()
for _ in range(20):
    run()
    pid = os.fork()
    if pid == 0:
        for _ in range(20):
            run()
        used = len(os.listdir("/proc/self/task"))
        os._exit(0 if used == 3 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
stop.set()
thread.join()
print("done")
"""
    )
    assert (result.stdout.strip(), result.returncode) == ("done", 0), result.stderr


def test_no_thread_is_started_before_there_is_work():
    result = child(
        """
default_runtime()
before = len(os.listdir("/proc/self/task"))
run()
print(len(os.listdir("/proc/self/task")) - before)
"""
    )
    assert result.stdout.strip() == "2", result.stderr


def test_the_interpreter_ends_cleanly_while_workers_wait_and_work():
    result = child(
        """
import atexit
atexit.register(run)
for _ in range(3):
    threading.Thread(target=lambda: [run() for _ in range(100000)], daemon=True).start()
run()
"""
    )
    assert (result.returncode, result.stderr) == (0, "")


def test_signals_reach_python_not_the_workers():
    result = child(
        """
import signal, time
run()
caught = []
signal.signal(signal.SIGALRM, lambda *_: caught.append(threading.current_thread().name))
signal.setitimer(signal.ITIMER_REAL, 0.05)
start = time.monotonic()
signal.pause()
assert time.monotonic() - start < 10
masks = [line.split()[1] for task in os.listdir("/proc/self/task")
         for line in open(f"/proc/self/task/{task}/status") if line.startswith("SigBlk")]
blocking = [mask for mask in masks if int(mask, 16) >> (signal.SIGALRM - 1) & 1]
print(caught[0], len(blocking))
"""
    )
    assert result.stdout.split() == ["MainThread", "2"], result.stderr


def test_a_wrong_count_is_named_when_the_runtime_is_made(monkeypatch):
    monkeypatch.setenv("FXARRAY_NUM_THREADS", "none")
    monkeypatch.setattr(runtime_module, "_runtimes", [])
    with pytest.raises(ArgumentError, match="none"):
        runtime()
