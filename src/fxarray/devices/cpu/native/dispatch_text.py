"""The function that a compiled call goes through, as LLVM text.

It is a builtin of CPython made of generated code: it reads the data pointers of a list of
DeviceArrays, makes the arrays of the results, and calls native code, in about the time that Python
takes to enter a function. An array that is not contiguous or misaligned gets memory of its own.
What is anything else than arrays with memory, and memory that runs out, is declined by returning
None; the caller then takes a way through Python, which says what is wrong.

`self` is a tuple whose first item is a bytearray of the words below; its other items keep alive
what the words point to. The frame that native code gets has one word for each input, for each
output, for the scratch memory, and then the extra words.
"""

from __future__ import annotations

from fxarray.devices.cpu.native.memory import array_text
from fxarray.devices.cpu.native.objects import (
    ALIGNED,
    C_CONTIGUOUS,
    OWNS_DATA,
    WRITEABLE,
    Layout,
)

# Words of the context.
CONTEXT = (
    *("entry", "runtime", "inputs", "outputs", "extras", "release_gil", "output_table"),
    *("extra_words", "scratch", "pool", "allocate", "release", "array_class", "numpy_class"),
    *("array_context", "none", "new_copy"),
)
# Words of an output, and its kinds. A `DONATED` output takes the memory of an input if nothing else
# holds it, and is a `NEW` one otherwise.
OUTPUT = ("kind", "source", "thing", "ndim", "shape", "bytes", "type")
NEW, INPUT, CONSTANT, DONATED = range(4)


def _read(index: str, names: tuple[str, ...], base: str, *wanted: str) -> str:
    """Loads of words by name: `%name`, a pointer where it is used as one."""
    lines: list[str] = []
    for name in wanted:
        kind = "ptr" if name in _POINTERS else "i64"
        lines += [
            f"  %{name}.at{index} = getelementptr i64, ptr %{base}, i64 {names.index(name)}",
            f"  %{name} = load {kind}, ptr %{name}.at{index}, align 1",
        ]
    return "\n".join(lines)


_POINTERS = frozenset(
    (
        *("entry", "runtime", "output_table", "extra_words", "pool", "allocate", "release"),
        *("array_class", "numpy_class", "array_context", "none", "new_copy"),
        *("thing", "shape", "type"),
    )
)


def dispatch_text(layout: Layout) -> str:
    """The module; `entry` is a function of CPython's METH_O kind."""
    good = C_CONTIGUOUS | ALIGNED
    own = OWNS_DATA | WRITEABLE
    return f"""
{array_text(layout)}
declare i64 @PyList_Size(ptr)
declare ptr @PyList_GetItem(ptr, i64)
declare ptr @PyList_New(i64)
declare i32 @PyList_SetItem(ptr, i64, ptr)
declare ptr @PyType_GenericAlloc(ptr, i64)
declare void @Py_DecRef(ptr)
declare void @PyErr_Clear()
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

; Undo what a call that declines has done.
define internal ptr @decline(ptr %none, ptr %arrays, i64 %held, ptr %results) noinline {{
  call void @PyErr_Clear()
  call void @drop(ptr %arrays, i64 %held)
  call void @Py_DecRef(ptr %results)
  call void @Py_IncRef(ptr %none)
  ret ptr %none
}}

define internal void @drop(ptr %arrays, i64 %count) {{
start:
  %some = icmp ne i64 %count, 0
  br i1 %some, label %each, label %end
each:
  %i = phi i64 [0, %start], [%next, %each]
  %at = getelementptr ptr, ptr %arrays, i64 %i
  %array = load ptr, ptr %at
  call void @Py_DecRef(ptr %array)
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %count
  br i1 %more, label %each, label %end
end:
  ret void
}}

define ptr @entry(ptr %self, ptr %leaves) {{
start:
  %holder = call ptr @PyTuple_GetItem(ptr %self, i64 0)
  %context = call ptr @PyByteArray_AsString(ptr %holder)
{_read("", CONTEXT, "context", *CONTEXT)}
  %sum = add i64 %inputs, %outputs
  %extra_from = add i64 %sum, 1
  %words = add i64 %extra_from, %extras
  %frame = alloca i64, i64 %words, align 16
  %arrays = alloca ptr, i64 %inputs, align 16
  %count = call i64 @PyList_Size(ptr %leaves)
  %fits = icmp eq i64 %count, %inputs
  br i1 %fits, label %inputs.begin, label %decline.first

inputs.begin:
  %any_inputs = icmp ne i64 %inputs, 0
  br i1 %any_inputs, label %input, label %outputs.begin
input:
  %i = phi i64 [0, %inputs.begin], [%i.next, %input.read]
  %leaf = call ptr @PyList_GetItem(ptr %leaves, i64 %i)
  %leaf.class.at = getelementptr i8, ptr %leaf, i64 {layout.type}
  %leaf.class = load ptr, ptr %leaf.class.at
  %is_ours = icmp eq ptr %leaf.class, %array_class
  br i1 %is_ours, label %input.array, label %decline.inputs
input.array:
  %array.at = getelementptr i8, ptr %leaf, i64 {layout.buffer}
  %array = load ptr, ptr %array.at
  %deleted = icmp eq ptr %array, null
  br i1 %deleted, label %decline.inputs, label %input.class
input.class:
  %class.at = getelementptr i8, ptr %array, i64 {layout.type}
  %class = load ptr, ptr %class.at
  %is_numpy = icmp eq ptr %class, %numpy_class
  br i1 %is_numpy, label %input.flags, label %decline.inputs
input.flags:
  %flags.at = getelementptr i8, ptr %array, i64 {layout.flags}
  %flags = load i32, ptr %flags.at
  %needed = and i32 %flags, {good}
  %plain = icmp eq i32 %needed, {good}
  br i1 %plain, label %input.read, label %input.copy
input.copy:
  ; The array keeps the copy, so that only its first use pays for it.
  %copy = call ptr %new_copy(ptr %array, i32 0)
  %no_copy = icmp eq ptr %copy, null
  br i1 %no_copy, label %decline.inputs, label %input.keep
input.keep:
  store ptr %copy, ptr %array.at
  call void @Py_DecRef(ptr %array)
  br label %input.read
input.read:
  %values = phi ptr [%array, %input.flags], [%copy, %input.keep]
  %data.at = getelementptr i8, ptr %values, i64 {layout.data}
  %data = load i64, ptr %data.at
  %word.at = getelementptr i64, ptr %frame, i64 %i
  store i64 %data, ptr %word.at
  %held.at = getelementptr ptr, ptr %arrays, i64 %i
  store ptr %values, ptr %held.at
  call void @Py_IncRef(ptr %values)
  %i.next = add i64 %i, 1
  %i.more = icmp ult i64 %i.next, %inputs
  br i1 %i.more, label %input, label %outputs.begin

outputs.begin:
  %results = call ptr @PyList_New(i64 %outputs)
  %no_results = icmp eq ptr %results, null
  br i1 %no_results, label %decline.results, label %outputs.first
outputs.first:
  %any_outputs = icmp ne i64 %outputs, 0
  br i1 %any_outputs, label %output, label %scratch.begin
output:
  %j = phi i64 [0, %outputs.first], [%j.next, %output.set]
  %offset = mul i64 %j, {8 * len(OUTPUT)}
  %spec = getelementptr i8, ptr %output_table, i64 %offset
{_read("", OUTPUT, "spec", *OUTPUT)}
  %place = add i64 %inputs, %j
  %out.at = getelementptr i64, ptr %frame, i64 %place
  switch i64 %kind, label %output.new [
    i64 {INPUT}, label %output.input
    i64 {CONSTANT}, label %output.constant
    i64 {DONATED}, label %output.donated
  ]
output.input:
  %same.at = getelementptr i64, ptr %frame, i64 %source
  %same.data = load i64, ptr %same.at
  store i64 %same.data, ptr %out.at
  %same = call ptr @PyList_GetItem(ptr %leaves, i64 %source)
  call void @Py_IncRef(ptr %same)
  br label %output.set
output.constant:
  store i64 0, ptr %out.at
  call void @Py_IncRef(ptr %thing)
  br label %output.set
output.donated:
  ; Its own array holds it, and we do; more than two is somebody else.
  %donor.at = getelementptr ptr, ptr %arrays, i64 %source
  %source.array = load ptr, ptr %donor.at
  %references.at = getelementptr i8, ptr %source.array, i64 {layout.references}
  %references = load i32, ptr %references.at
  %alone = icmp eq i32 %references, 2
  %source.flags.at = getelementptr i8, ptr %source.array, i64 {layout.flags}
  %source.flags = load i32, ptr %source.flags.at
  %owned = and i32 %source.flags, {own}
  %owns = icmp eq i32 %owned, {own}
  %usable = and i1 %alone, %owns
  br i1 %usable, label %output.take, label %output.new
output.take:
  call void @Py_IncRef(ptr %source.array)
  br label %output.wrap
output.new:
  %new = call ptr @new_array(ptr %array_context, ptr %thing, i64 %ndim, ptr %shape, i64 %bytes)
  %no_memory = icmp eq ptr %new, null
  br i1 %no_memory, label %decline.outputs, label %output.wrap
output.wrap:
  %inner = phi ptr [%source.array, %output.take], [%new, %output.new]
  %outer = call ptr @PyType_GenericAlloc(ptr %array_class, i64 0)
  %no_outer = icmp eq ptr %outer, null
  br i1 %no_outer, label %output.lost, label %output.fill
output.lost:
  call void @Py_DecRef(ptr %inner)
  br label %decline.outputs
output.fill:
  %inner.at = getelementptr i8, ptr %outer, i64 {layout.buffer}
  store ptr %inner, ptr %inner.at
  call void @Py_IncRef(ptr %type)
  %type.slot = getelementptr i8, ptr %outer, i64 {layout.array_type}
  store ptr %type, ptr %type.slot
  %inner.data.at = getelementptr i8, ptr %inner, i64 {layout.data}
  %inner.data = load i64, ptr %inner.data.at
  store i64 %inner.data, ptr %out.at
  br label %output.set
output.set:
  %result = phi ptr [%same, %output.input], [%thing, %output.constant], [%outer, %output.fill]
  %set = call i32 @PyList_SetItem(ptr %results, i64 %j, ptr %result)
  %j.next = add i64 %j, 1
  %j.more = icmp ult i64 %j.next, %outputs
  br i1 %j.more, label %output, label %scratch.begin

scratch.begin:
  %scratch.slot = getelementptr i64, ptr %frame, i64 %sum
  %needs_scratch = icmp ne i64 %scratch, 0
  br i1 %needs_scratch, label %scratch.make, label %extra
scratch.make:
  %scratch.made = call ptr %allocate(ptr %pool, i64 %scratch)
  %no_scratch = icmp eq ptr %scratch.made, null
  br i1 %no_scratch, label %decline.scratch, label %extra
extra:
  %scratch.data = phi ptr [null, %scratch.begin], [%scratch.made, %scratch.make]
  store ptr %scratch.data, ptr %scratch.slot
  %extra.at = getelementptr i64, ptr %frame, i64 %extra_from
  %extra.bytes = shl i64 %extras, 3
  call void @llvm.memcpy.p0.p0.i64(ptr align 8 %extra.at, ptr align 1 %extra_words,
      i64 %extra.bytes, i1 false)
  %without_gil = icmp ne i64 %release_gil, 0
  br i1 %without_gil, label %run.free, label %run.held
run.free:
  %thread = call ptr @PyEval_SaveThread()
  call void %entry(ptr %runtime, ptr %frame)
  call void @PyEval_RestoreThread(ptr %thread)
  br label %finish
run.held:
  call void %entry(ptr %runtime, ptr %frame)
  br label %finish
finish:
  call void %release(ptr %pool, ptr %scratch.data)
  call void @drop(ptr %arrays, i64 %inputs)
  ret ptr %results

decline.first:
  br label %decline
decline.inputs:
  br label %decline
decline.results:
  br label %decline
decline.outputs:
  br label %decline
decline.scratch:
  br label %decline
decline:
  %held = phi i64 [0, %decline.first], [%i, %decline.inputs], [%inputs, %decline.results],
      [%inputs, %decline.outputs], [%inputs, %decline.scratch]
  %made = phi ptr [null, %decline.first], [null, %decline.inputs], [null, %decline.results],
      [%results, %decline.outputs], [%results, %decline.scratch]
  %declined = call ptr @decline(ptr %none, ptr %arrays, i64 %held, ptr %made)
  ret ptr %declined
}}
"""
