"""Calls of native code with DeviceArrays: addresses are read and results made, or it declines."""

import ctypes
import gc
import sys
import threading
import time

import numpy as np
import pytest

from fxarray.core.array import DeviceArray
from fxarray.core.types import ArrayType
from fxarray.devices.cpu.native import dispatch, jit, objects
from fxarray.devices.cpu.native.dispatch import (
    ConstantOutput,
    NewOutput,
    SameOutput,
    Target,
    prepare,
)
from fxarray.devices.cpu.native.memory import statistics
from fxarray.devices.cpu.native.runtime import runtime
from fxarray.errors import DeletedArrayError, OutOfMemoryError

F4 = ArrayType((4,), np.dtype(np.float32))
COPY_FRAME = """
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
define void @entry(ptr %runtime, ptr %frame) {{
  %last = getelementptr i64, ptr %frame, i64 {last}
  %address = load ptr, ptr %last
  %first = getelementptr i64, ptr %address, i64 1
  store ptr %runtime, ptr %address
  call void @llvm.memcpy.p0.p0.i64(ptr %first, ptr %frame, i64 {bytes}, i1 false)
  ret void
}}
"""
ADD_ONE = """
define void @entry(ptr %runtime, ptr %frame) {
  %from = load ptr, ptr %frame
  %to.at = getelementptr ptr, ptr %frame, i64 1
  %to = load ptr, ptr %to.at
  %x = load <4 x float>, ptr %from, align 4
  %y = fadd <4 x float> %x, splat (float 1.0)
  store <4 x float> %y, ptr %to, align 4
  ret void
}
"""


def entry(text: str) -> int:
    return jit.addresses([text])[0]


def array(*values: float) -> DeviceArray:
    return DeviceArray(np.array(values, np.float32), ArrayType((len(values),), np.dtype("f4")))


WAYS = {"generated": prepare, "python": dispatch._ThroughPython}


@pytest.fixture(params=WAYS)
def way(request):
    return WAYS[request.param]


def test_the_layout_of_objects_is_known_here():
    assert objects.layout() is not None


def test_a_call_computes(way):
    call = way(Target(entry(ADD_ONE), 1, (NewOutput(F4),)))
    (result,) = call([array(1, 2, 3, 4)])
    assert type(result) is DeviceArray
    assert result.type is F4
    np.testing.assert_array_equal(result.numpy_view(), [2, 3, 4, 5])
    assert result.numpy_view().ctypes.data % 64 == 0
    assert result.numpy_view().dtype == np.float32


def frame_of(way, inputs, outputs, scratch=0, extra=()):
    """What native code is given: the first argument, then the frame's words."""
    count = len(inputs) + len(outputs) + 1 + len(extra) + 1
    seen = np.zeros(count + 1, np.uint64)
    text = COPY_FRAME.format(last=count - 1, bytes=8 * count)
    target = Target(
        entry(text), len(inputs), tuple(outputs), scratch, (*extra, seen.ctypes.data), False
    )
    results = way(target)(inputs)
    return seen.tolist(), results


def test_the_frame_has_inputs_outputs_scratch_and_extra_words(way):
    inputs = [array(1, 2), array(3), array(4, 5, 6)]
    kinds = [ArrayType((2, 3), np.dtype(np.float64)), ArrayType((), np.dtype(np.bool_))]
    seen, results = frame_of(way, inputs, [NewOutput(kind) for kind in kinds], 300, (7, -8))
    assert seen[0] == runtime()
    assert seen[1:4] == [x.numpy_view().ctypes.data for x in inputs]
    assert seen[4:6] == [x.numpy_view().ctypes.data for x in results]
    assert seen[6] != 0
    assert seen[6] % 64 == 0
    assert seen[7:9] == [7, 2**64 - 8]
    assert [x.type for x in results] == kinds
    assert [x.numpy_view().shape for x in results] == [(2, 3), ()]


def test_results_may_be_inputs_and_constants(way):
    given, constant = array(1, 2), array(9)
    seen, results = frame_of(way, [given], [SameOutput(0), ConstantOutput(constant)])
    assert results[0] is given
    assert results[1] is constant
    assert seen[2:4] == [given.numpy_view().ctypes.data, 0]


def test_no_inputs_and_no_outputs(way):
    assert frame_of(way, [], [])[1] == []


def test_the_first_argument_may_be_chosen(way):
    text = """
define void @entry(ptr %context, ptr %frame) {
  store i64 5, ptr %context
  ret void
}
"""
    word = ctypes.c_int64()
    way(Target(entry(text), 0, (), context=ctypes.addressof(word)))([])
    assert word.value == 5


@pytest.mark.parametrize(
    "buffer",
    [
        np.arange(8, dtype=np.float32)[::2],
        np.arange(4, dtype=np.float32)[::-1],
        np.frombuffer(b"\0" + np.arange(4, dtype=np.float32).tobytes(), np.float32, 4, 1),
        np.broadcast_to(np.float32(3), (4,)),
    ],
    ids=["strided", "reversed", "misaligned", "broadcast"],
)
def test_arrays_that_are_not_plain_are_copied(way, buffer):
    before = buffer.copy()
    (result,) = way(Target(entry(ADD_ONE), 1, (NewOutput(F4),)))([DeviceArray(buffer, F4)])
    np.testing.assert_array_equal(result.numpy_view(), before + 1)
    np.testing.assert_array_equal(buffer, before)


def test_an_array_that_is_not_plain_is_copied_once():
    base = np.arange(8, dtype=np.float32)
    given = DeviceArray(base[::2], F4)
    held = sys.getrefcount(base)
    call = prepare(Target(entry(ADD_ONE), 1, (NewOutput(F4),)))
    call([given])
    kept = given.numpy_view()
    assert kept.flags.c_contiguous
    np.testing.assert_array_equal(kept, [0, 2, 4, 6])
    now = sys.getrefcount(base)
    assert now == held - 1
    call([given])
    assert given.numpy_view() is kept
    np.testing.assert_array_equal(base, np.arange(8))


def test_read_only_arrays_are_read(way):
    buffer = np.arange(4, dtype=np.float32)
    buffer.flags.writeable = False
    (result,) = way(Target(entry(ADD_ONE), 1, (NewOutput(F4),)))([DeviceArray(buffer, F4)])
    np.testing.assert_array_equal(result.numpy_view(), [1, 2, 3, 4])


def test_deleted_arrays_are_errors(way):
    call, given = way(Target(entry(ADD_ONE), 1, (NewOutput(F4),))), array(1, 2, 3, 4)
    given.delete()
    with pytest.raises(DeletedArrayError):
        call([given])


def test_the_wrong_number_of_arrays_is_an_error(way):
    call = way(Target(entry(ADD_ONE), 1, (NewOutput(F4),)))
    for wrong in ([], [array(1, 2, 3, 4)] * 2):
        with pytest.raises(AssertionError):
            call(wrong)


def test_memory_that_runs_out_is_an_error_and_leaves_nothing_behind(way):
    huge = ArrayType((1 << 45,), np.dtype(np.float32))
    given, before = [array(1, 2, 3, 4)], statistics().live
    references = sys.getrefcount(given[0].numpy_view())
    for target in (
        Target(entry(ADD_ONE), 1, (NewOutput(F4), NewOutput(huge))),
        Target(entry(ADD_ONE), 1, (NewOutput(F4),), scratch=1 << 47),
    ):
        with pytest.raises(OutOfMemoryError, match="128.0 TiB"):
            way(target)(given)
    gc.collect()
    assert statistics().live == before
    now = sys.getrefcount(given[0].numpy_view())  # not in an assert, which holds what it shows
    assert now == references


def test_references_are_balanced(way):
    constant = array(9)
    outputs = (NewOutput(F4), SameOutput(0), ConstantOutput(constant), NewOutput(F4, 0))
    target = Target(entry(ADD_ONE), 1, outputs, scratch=100)
    call, given = way(target), array(1, 2, 3, 4)
    call([given])

    def references():
        things = (given, given.numpy_view(), constant, F4, F4.dtype, None)
        return [sys.getrefcount(thing) for thing in things][:-1]

    before, live = references(), statistics().live
    for _ in range(1000):
        call([given])
    assert max(np.abs(np.subtract(references(), before))) < 20
    assert statistics().live == live


DONATED = Target(0, 2, (NewOutput(F4, 0), NewOutput(F4, 1)), extra=())


def donate(arrays: list[DeviceArray]) -> list[bool]:
    """Which results took the memory of the inputs."""
    text = "define void @entry(ptr %runtime, ptr %frame) {\n  ret void\n}"
    call = prepare(Target(**{**vars(DONATED), "entry": entry(text)}))
    addresses = [x.numpy_view().ctypes.data for x in arrays]
    results = call(arrays)
    return [
        result.numpy_view().ctypes.data == address
        for result, address in zip(results, addresses, strict=True)
    ]


def test_donated_memory_is_taken_where_nobody_else_has_it():
    assert donate([array(1, 2, 3, 4), array(1, 2, 3, 4)]) == [True, True]


def test_donated_memory_is_left_to_others_who_have_it():
    viewed, shared = array(1, 2, 3, 4), array(1, 2, 3, 4)
    view = np.asarray(viewed)
    other = DeviceArray(shared.numpy_view(), F4)
    assert donate([viewed, shared]) == [False, False]
    assert len(view) == len(other) == 4


def test_donated_memory_is_left_when_it_is_given_twice():
    twice = array(1, 2, 3, 4)
    assert donate([twice, twice]) == [False, False]


def test_donated_memory_that_belongs_to_others_is_left():
    owner = bytearray(16)
    borrowed = DeviceArray(np.frombuffer(owner, np.float32), F4)
    constant = array(1, 2, 3, 4)
    constant.numpy_view().flags.writeable = False
    assert donate([borrowed, constant]) == [False, False]


SLEEP = """
declare i32 @usleep(i32)
define void @entry(ptr %runtime, ptr %frame) {
  call i32 @usleep(i32 150000)
  ret void
}
"""


@pytest.mark.parametrize("released", [True, False])
def test_other_threads_run_meanwhile_where_that_is_asked_for(way, released):
    call = way(Target(entry(SLEEP), 0, (), release_gil=released))
    turns, stop = [], threading.Event()

    def work():
        while not stop.is_set():
            turns.append(time.perf_counter())
            time.sleep(0.001)

    thread = threading.Thread(target=work)
    thread.start()
    start = time.perf_counter()
    call([])
    end = time.perf_counter()
    stop.set()
    thread.join()
    meanwhile = [turn for turn in turns if start + 0.03 < turn < end - 0.03]
    assert bool(meanwhile) == released


def test_an_array_deleted_during_the_call_lives_until_its_end():
    call = prepare(Target(entry(SLEEP), 1, ()))
    given = array(1, 2, 3, 4)
    buffer = given.numpy_view()
    thread = threading.Thread(target=call, args=([given],))
    thread.start()
    time.sleep(0.05)
    given.delete()
    during = sys.getrefcount(buffer)
    thread.join()
    after = sys.getrefcount(buffer)
    assert after == during - 1


def test_layouts_that_are_not_as_known_go_through_python(monkeypatch):
    monkeypatch.setattr(dispatch, "layout", lambda: None)
    call = prepare(Target(entry(ADD_ONE), 1, (NewOutput(F4),)))
    assert isinstance(call, dispatch._ThroughPython)
    np.testing.assert_array_equal(call([array(1, 2, 3, 4)])[0].numpy_view(), [2, 3, 4, 5])


def test_objects_that_are_not_as_known_are_noticed(monkeypatch):
    monkeypatch.setattr(objects, "_places", lambda *_: [8, 16])
    assert objects._find() is None
    monkeypatch.undo()
    monkeypatch.setattr(objects, "_ABI_VERSION", 0x03000000)
    assert objects._find() is None
