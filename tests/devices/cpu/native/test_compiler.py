"""From LLVM text to objects and assembly, on this and other machines, in several threads."""

import ctypes
import logging
import threading
import time
from itertools import pairwise

import llvmlite.binding as llvm
import pytest

from fxarray.devices.cpu.native import compiler, jit, linker
from fxarray.devices.cpu.native.target import OTHERS, Target, host, vector_bytes
from fxarray.errors import CompilerError

ADD = """
define void @entry(ptr %runtime, ptr %arguments) {{
  %slot = alloca i64
  store i64 {number}, ptr %slot
  %value = load i64, ptr %slot
  %old = load i64, ptr %arguments
  %new = add i64 %old, %value
  store i64 %new, ptr %arguments
  ret void
}}
"""


def run(address: int, value: int) -> int:
    word = ctypes.c_int64(value)
    ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(address)(0, ctypes.addressof(word))
    return word.value


def test_code_runs():
    first, second = jit.addresses([ADD.format(number=3), ADD.format(number=70)])
    assert (run(first, 1), run(second, 1)) == (4, 71)


def test_equal_text_is_compiled_once():
    text = ADD.format(number=5)
    before = jit.statistics()
    a, b = jit.addresses([text, text])
    (c,) = jit.addresses([text])
    after = jit.statistics()
    assert a == b == c
    assert sum(after) - sum(before) <= 1


def test_stack_memory_becomes_registers():
    assert "(%rsp)" not in compiler.compile_assembly(ADD.format(number=3), OTHERS["avx512"])


def test_calls_reach_functions_of_the_process():
    text = """
declare i64 @labs(i64)
define void @entry(ptr %runtime, ptr %arguments) {
  %old = load i64, ptr %arguments
  %new = call i64 @labs(i64 %old)
  store i64 %new, ptr %arguments
  ret void
}
"""
    assert run(jit.addresses([text])[0], -12) == 12


def test_text_that_llvm_refuses_names_reason_and_line():
    with pytest.raises(CompilerError, match=r"(?s)i64.*line \d+: %new = add i64 %old, %wide"):
        jit.addresses([ADD.format(number=3).replace("i64 %old, %value", "i64 %old, %wide")])


def test_text_that_is_well_formed_and_wrong_is_refused():
    text = """
define void @entry(ptr %runtime, ptr %arguments) {
  %x = add i64 %y, 1
  %y = add i64 1, 1
  ret void
}
"""
    with pytest.raises(CompilerError, match="dominate"):
        jit.addresses([text])


def test_one_wrong_module_among_several_is_reported():
    texts = [ADD.format(number=n) for n in range(200, 206)]
    texts[3] = texts[3].replace("%new = add", "%new = nothing")
    with pytest.raises(CompilerError, match="nothing"):
        compiler.compile_objects(texts, threads=3)


def test_symbols_that_are_nowhere_are_named(capfd):
    text = """
declare void @there_is_no_such_function()
define void @entry(ptr %a, ptr %b) {
  call void @there_is_no_such_function()
  ret void
}
"""
    with pytest.raises(CompilerError, match="could not link"):
        jit.addresses([text])
    assert "there_is_no_such_function" in capfd.readouterr().err


def test_threads_compile_the_same_objects_as_one():
    texts = [ADD.format(number=n) for n in range(12)]
    alone = compiler.compile_objects(texts, threads=1)
    assert compiler.compile_objects(texts, threads=4) == alone
    assert len(set(alone)) == 12


def test_threads_compile_at_the_same_time(monkeypatch):
    emit, spans = compiler.functions["TargetMachineEmitToMemory"], []

    def watched(*arguments):
        start = time.perf_counter()
        result = emit(*arguments)
        spans.append((start, time.perf_counter(), threading.get_ident()))
        return result

    monkeypatch.setitem(compiler.functions, "TargetMachineEmitToMemory", watched)
    compiler.compile_objects([ADD.format(number=n) for n in range(40)], threads=2)
    spans.sort()
    assert len({thread for _, _, thread in spans}) == 2
    assert any(second[0] < first[1] and first[2] != second[2] for first, second in pairwise(spans))


def test_llvmlites_own_functions_give_the_same_code(monkeypatch):
    text = ADD.format(number=9)
    direct = compiler.compile_object(text)
    monkeypatch.setattr(compiler, "AVAILABLE", False)
    assert compiler.compile_object(text) == direct
    monkeypatch.setattr(linker, "AVAILABLE", False)
    monkeypatch.setattr(linker, "_linkers", [])
    assert run(linker.link([direct], ["entry"])["entry"], 1) == 10
    with pytest.raises(CompilerError, match="missing"):
        linker.link([direct], ["missing"])
    with pytest.raises(CompilerError, match="line 3: define what"):
        compiler.compile_object("define what @entry() {\n")


def test_others_use_llvm_while_we_compile():
    """Compiling holds neither the GIL nor llvmlite's lock for long."""
    stop, turns = threading.Event(), []

    def others():
        while not stop.is_set():
            turns.append(llvm.get_process_triple())

    text = "\n".join(ADD.format(number=n).replace("@entry", f"@f{n}") for n in range(400))
    thread = threading.Thread(target=others)
    thread.start()
    compiler.compile_object(text)
    stop.set()
    thread.join()
    assert len(turns) > 100


@pytest.mark.parametrize("name", OTHERS)
def test_code_is_made_for_other_machines(name):
    target = OTHERS[name]
    lanes = target.vector_bytes // 4
    text = f"""
define void @entry(ptr %runtime, ptr %arguments) {{
  %a = load <{lanes} x float>, ptr %runtime, align 4
  %b = fadd <{lanes} x float> %a, %a
  store <{lanes} x float> %b, ptr %arguments, align 4
  ret void
}}
"""
    register = {"sse": "xmm", "avx2": "ymm", "avx512": "zmm"}.get(name, "v0.4s")
    assembly = compiler.compile_assembly(text, target)
    assert register in assembly.replace("fadd.4s\tv0", "v0.4s")
    assert len(compiler.compile_object(text, target)) > 100


def test_unknown_machines_are_named():
    with pytest.raises(Exception, match="nonsense"):
        compiler.compile_object("", Target("x", "", 16, "nonsense-unknown-linux"))


def test_width_follows_the_features():
    avx512 = frozenset(("avx512f", "avx512bw", "avx512dq", "avx512vl", "avx2", "fma"))
    assert vector_bytes("x86_64", avx512) == 64
    assert vector_bytes("x86_64", avx512 - {"avx512vl"}) == 32
    assert vector_bytes("x86_64", frozenset(("avx",))) == 16
    assert vector_bytes("aarch64", frozenset(("neon", "sve"))) == 16


def test_host_is_known():
    target = host()
    assert target.vector_bytes in (16, 32, 64)
    assert target.architecture in ("x86_64", "aarch64")
    assert target.has("avx512f") == (target.vector_bytes == 64)


def test_a_processor_that_llvm_does_not_know_gets_code_for_the_least(monkeypatch, caplog):
    def fails():
        raise RuntimeError("unknown processor")

    monkeypatch.setattr("llvmlite.binding.get_host_cpu_features", fails)
    host.cache_clear()
    try:
        with caplog.at_level(logging.DEBUG, "fxarray"):
            target = host()
        assert "unknown processor" in caplog.text
        assert (target.name, target.features, target.vector_bytes) == ("generic", "", 16)
        assert compiler.compile_object(ADD.format(number=1))
    finally:
        host.cache_clear()
