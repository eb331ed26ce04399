"""Modules that are compiled before they are asked for."""

import ctypes
import itertools
import os
import threading

import pytest

from fxarray.devices.cpu.native import ahead, jit
from fxarray.errors import CompilerError

_numbers = itertools.count(os.getpid() * 1000)  # so that no cache has these
TEXT = """
define void @entry(ptr %runtime, ptr %arguments) {{
  store i64 {number}, ptr %arguments
  ret void
}}
"""


def fresh() -> tuple[int, str]:
    number = next(_numbers)
    return number, TEXT.format(number=number)


def value(address: int) -> int:
    word = ctypes.c_int64()
    ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(address)(0, ctypes.addressof(word))
    return word.value


@pytest.fixture(autouse=True)
def several_processors(monkeypatch):
    monkeypatch.setattr(ahead, "processors", lambda: 3)
    yield
    ahead._queue.forget()


@pytest.fixture
def compiled(monkeypatch) -> list[tuple[str, str]]:
    """Texts that are compiled, with the name of the thread."""
    seen = []
    original = ahead.compile_object

    def watched(text):
        seen.append((text, threading.current_thread().name))
        return original(text)

    monkeypatch.setattr(ahead, "compile_object", watched)
    return seen


def test_what_is_begun_is_compiled_once_by_another_thread(compiled):
    made = [fresh() for _ in range(6)]
    ahead._queue.forget()
    before = jit.statistics()
    for _, text in made:
        jit.prepare(text)
        jit.prepare(text)
    assert [value(a) for a in jit.addresses([text for _, text in made])] == [n for n, _ in made]
    assert jit.statistics().compiled - before.compiled == 6
    assert all(thread == "fxarray compiler" for _, thread in compiled)
    assert len({text for text, _ in compiled}) == len(compiled) <= 6
    assert ahead._queue.jobs == {}


def test_what_is_known_is_not_begun(compiled):
    _, text = fresh()
    jit.addresses([text])
    jit.prepare(text)
    jit._addresses.clear()
    jit.prepare(text)  # it is on disk
    assert compiled == []


def test_what_is_not_begun_is_compiled_with_the_rest():
    made = [fresh() for _ in range(6)]
    for _, text in made[::2]:
        jit.prepare(text)
    assert [value(a) for a in jit.addresses([text for _, text in made])] == [n for n, _ in made]


def test_errors_are_raised_where_the_code_is_asked_for():
    number, text = fresh()
    wrong = text.replace("store", f"nothing{number}")
    jit.prepare(wrong)
    with pytest.raises(CompilerError, match=f"nothing{number}"):
        jit.addresses([wrong])


def test_threads_end_when_there_is_nothing_to_do():
    _, text = fresh()
    jit.prepare(text)
    jit.addresses([text])
    for thread in threading.enumerate():
        if thread.name == "fxarray compiler":
            thread.join(10)
    assert ahead._queue.threads == 0


def test_threads_may_begin_and_ask_at_once():
    made = [fresh() for _ in range(12)]
    wrong: list[int] = []

    def work(shift: int) -> None:
        mine = made[shift:] + made[:shift]
        for _, text in mine:
            jit.prepare(text)
        found = jit.addresses([text for _, text in mine])
        wrong.extend(n for a, (n, _) in zip(found, mine, strict=True) if value(a) != n)

    threads = [threading.Thread(target=work, args=(3 * shift,)) for shift in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_one_processor_begins_nothing(monkeypatch):
    monkeypatch.setattr(ahead, "processors", lambda: 1)
    jit.prepare(fresh()[1])
    assert ahead._queue.jobs == {}


def test_what_is_never_taken_is_bounded(monkeypatch):
    monkeypatch.setattr(ahead, "_LIMIT", 3)
    for _ in range(8):
        jit.prepare(fresh()[1])
    assert len(ahead._queue.jobs) == 3


def test_a_forked_child_does_not_wait_for_its_parents_threads():
    made = [fresh() for _ in range(8)]
    for _, text in made:
        jit.prepare(text)
    ahead._queue.after_fork()  # what a child does first
    assert [value(a) for a in jit.addresses([text for _, text in made])] == [n for n, _ in made]
