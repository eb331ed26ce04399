"""The function that recognises arguments and takes them apart, as LLVM text.

It runs a table of instructions over registers, which hold objects without owning them: nothing that
runs in between is the user's code, so what containers hold stays.
"""

from __future__ import annotations

from enum import IntEnum

from fxarray.devices.cpu.native.objects import Layout


class Step(IntEnum):
    """Instructions `(step, source, what, target)`; source and target are registers."""

    CLASS = 0  # source is of exactly the class `what`
    TUPLE = 1  # target = source[what]
    LIST = 2
    DICT = 3
    FIELDS = 4  # target = source.__dict__
    SAME = 5  # source is `what`
    SIZE_TUPLE = 6  # len(source) == what
    SIZE_LIST = 7
    SIZE_DICT = 8
    ARRAY = 9  # source, a DeviceArray, has the type `what`
    SMALL = 10  # source, an int, fits 32 bits
    NUMPY = 11  # source, a NumPy array, has the dtype and sizes that `what` points to
    EQUAL = 12  # source == what, both of one class of constants
    LEAF = 13  # source is the next leaf
    END = 14


WORDS = 4


def matcher_text(found: Layout) -> str:
    """`match(args, kwargs)`, given a tuple of a bytearray and what it refers to.

    The bytearray holds, as words: the number of registers, the number of leaves, None; then the
    instructions.
    """
    checks = "\n".join(
        f"""
{name}:
  %{name}.size = call i64 @{function}(ptr %source)
  %{name}.same = icmp eq i64 %{name}.size, %what
  br i1 %{name}.same, label %next, label %different"""
        for name, function in (
            ("size_tuple", "PyTuple_Size"),
            ("size_list", "PyList_Size"),
            ("size_dict", "PyDict_Size"),
        )
    )
    items = "\n".join(
        f"""
{name}:
  %{name}.item = call ptr @{function}(ptr %source, {kind} %{value})
  %{name}.none = icmp eq ptr %{name}.item, null
  store ptr %{name}.item, ptr %target.at
  br i1 %{name}.none, label %different, label %next"""
        for name, function, kind, value in (
            ("tuple", "PyTuple_GetItem", "i64", "what"),
            ("list", "PyList_GetItem", "i64", "what"),
            ("dict", "PyDict_GetItem", "ptr", "what.ptr"),
        )
    )
    return f"""
declare ptr @PyTuple_GetItem(ptr, i64)
declare ptr @PyByteArray_AsString(ptr)
declare ptr @PyList_GetItem(ptr, i64)
declare ptr @PyDict_GetItem(ptr, ptr)
declare ptr @PyObject_GenericGetDict(ptr, ptr)
declare i64 @PyTuple_Size(ptr)
declare i64 @PyList_Size(ptr)
declare i64 @PyDict_Size(ptr)
declare i64 @PyLong_AsLongLongAndOverflow(ptr, ptr)
declare ptr @PyList_New(i64)
declare i32 @PyList_SetItem(ptr, i64, ptr)
declare i32 @PyObject_RichCompareBool(ptr, ptr, i32)
declare void @Py_IncRef(ptr)
declare void @Py_DecRef(ptr)
declare void @PyErr_Clear()

define ptr @match(ptr %self, ptr %arguments, i64 %given) {{
start:
  %over = alloca i32, align 4
  %holder = call ptr @PyTuple_GetItem(ptr %self, i64 0)
  %words = call ptr @PyByteArray_AsString(ptr %holder)
  %registers.count = load i64, ptr %words, align 1
  %leaves.at = getelementptr i64, ptr %words, i64 1
  %leaves.count = load i64, ptr %leaves.at, align 1
  %none.at = getelementptr i64, ptr %words, i64 2
  %none = load ptr, ptr %none.at, align 1
  %program = getelementptr i64, ptr %words, i64 3
  %registers = alloca ptr, i64 %registers.count, align 8
  %args = load ptr, ptr %arguments
  store ptr %args, ptr %registers
  %kwargs.at = getelementptr ptr, ptr %arguments, i64 1
  %kwargs = load ptr, ptr %kwargs.at
  %second = getelementptr ptr, ptr %registers, i64 1
  store ptr %kwargs, ptr %second
  %leaves = call ptr @PyList_New(i64 %leaves.count)
  %failed = icmp eq ptr %leaves, null
  br i1 %failed, label %lost, label %step

step:
  %position = phi i64 [0, %start], [%position.next, %next]
  %leaf = phi i64 [0, %start], [%leaf.next, %next]
  %offset = mul i64 %position, {8 * WORDS}
  %at = getelementptr i8, ptr %program, i64 %offset
  %code = load i64, ptr %at, align 1
  %source.number.at = getelementptr i64, ptr %at, i64 1
  %source.number = load i64, ptr %source.number.at, align 1
  %source.at = getelementptr ptr, ptr %registers, i64 %source.number
  %source = load ptr, ptr %source.at
  %what.at = getelementptr i64, ptr %at, i64 2
  %what = load i64, ptr %what.at, align 1
  %what.ptr = load ptr, ptr %what.at, align 1
  %target.number.at = getelementptr i64, ptr %at, i64 3
  %target.number = load i64, ptr %target.number.at, align 1
  %target.at = getelementptr ptr, ptr %registers, i64 %target.number
  switch i64 %code, label %end [
    i64 {Step.CLASS}, label %class
    i64 {Step.TUPLE}, label %tuple
    i64 {Step.LIST}, label %list
    i64 {Step.DICT}, label %dict
    i64 {Step.FIELDS}, label %fields
    i64 {Step.SAME}, label %same
    i64 {Step.SIZE_TUPLE}, label %size_tuple
    i64 {Step.SIZE_LIST}, label %size_list
    i64 {Step.SIZE_DICT}, label %size_dict
    i64 {Step.ARRAY}, label %array
    i64 {Step.SMALL}, label %small
    i64 {Step.NUMPY}, label %numpy
    i64 {Step.EQUAL}, label %equal
    i64 {Step.LEAF}, label %leaf.take
  ]
next:
  %leaf.next = phi i64 [%leaf, %class], [%leaf, %tuple], [%leaf, %list], [%leaf, %dict],
      [%leaf, %fields.use], [%leaf, %same], [%leaf, %size_tuple], [%leaf, %size_list],
      [%leaf, %size_dict], [%leaf, %array], [%leaf, %small], [%leaf, %numpy.some],
      [%leaf, %numpy.dimension], [%leaf, %equal], [%leaf.more, %leaf.take]
  %position.next = add i64 %position, 1
  br label %step

class:
  %class.at = getelementptr i8, ptr %source, i64 {found.type}
  %class.is = load i64, ptr %class.at
  %class.same = icmp eq i64 %class.is, %what
  br i1 %class.same, label %next, label %different
{items}
{checks}
fields:
  %fields.new = call ptr @PyObject_GenericGetDict(ptr %source, ptr null)
  %fields.none = icmp eq ptr %fields.new, null
  br i1 %fields.none, label %different, label %fields.use
fields.use:
  ; The object holds it.
  call void @Py_DecRef(ptr %fields.new)
  store ptr %fields.new, ptr %target.at
  br label %next
same:
  %same.is = icmp eq ptr %source, %what.ptr
  br i1 %same.is, label %next, label %different
array:
  %array.at = getelementptr i8, ptr %source, i64 {found.array_type}
  %array.type = load i64, ptr %array.at
  %array.same = icmp eq i64 %array.type, %what
  br i1 %array.same, label %next, label %different
small:
  %value = call i64 @PyLong_AsLongLongAndOverflow(ptr %source, ptr %over)
  %up = add i64 %value, {1 << 31}
  %fits = icmp ult i64 %up, {1 << 32}
  %overflow = load i32, ptr %over
  %exact = icmp eq i32 %overflow, 0
  %good = and i1 %fits, %exact
  br i1 %good, label %next, label %different
numpy:
  %dtype.at = getelementptr i8, ptr %source, i64 {found.dtype}
  %dtype = load i64, ptr %dtype.at
  %dtype.wanted = load i64, ptr %what.ptr, align 1
  %dtype.same = icmp eq i64 %dtype, %dtype.wanted
  br i1 %dtype.same, label %numpy.ndim, label %different
numpy.ndim:
  %ndim.at = getelementptr i8, ptr %source, i64 {found.ndim}
  %ndim.narrow = load i32, ptr %ndim.at
  %ndim = zext i32 %ndim.narrow to i64
  %ndim.wanted.at = getelementptr i64, ptr %what.ptr, i64 1
  %ndim.wanted = load i64, ptr %ndim.wanted.at, align 1
  %shape.at = getelementptr i8, ptr %source, i64 {found.shape}
  %shape = load ptr, ptr %shape.at
  %shape.wanted = getelementptr i64, ptr %what.ptr, i64 2
  %ndim.same = icmp eq i64 %ndim, %ndim.wanted
  %ndim.zero = icmp eq i64 %ndim, 0
  br i1 %ndim.same, label %numpy.some, label %different
numpy.some:
  br i1 %ndim.zero, label %next, label %numpy.compare
numpy.compare:
  %axis = phi i64 [0, %numpy.some], [%axis.next, %numpy.dimension]
  %size.at = getelementptr i64, ptr %shape, i64 %axis
  %size = load i64, ptr %size.at
  %size.wanted.at = getelementptr i64, ptr %shape.wanted, i64 %axis
  %size.wanted = load i64, ptr %size.wanted.at, align 1
  %size.same = icmp eq i64 %size, %size.wanted
  br i1 %size.same, label %numpy.dimension, label %different
numpy.dimension:
  %axis.next = add i64 %axis, 1
  %axis.more = icmp ult i64 %axis.next, %ndim
  br i1 %axis.more, label %numpy.compare, label %next
equal:
  %compared = call i32 @PyObject_RichCompareBool(ptr %source, ptr %what.ptr, i32 2)
  %is_equal = icmp eq i32 %compared, 1
  br i1 %is_equal, label %next, label %different
leaf.take:
  call void @Py_IncRef(ptr %source)
  %set = call i32 @PyList_SetItem(ptr %leaves, i64 %leaf, ptr %source)
  %leaf.more = add i64 %leaf, 1
  br label %next

end:
  ret ptr %leaves
different:
  call void @Py_DecRef(ptr %leaves)
  call void @PyErr_Clear()
  call void @Py_IncRef(ptr %none)
  ret ptr %none
lost:
  ret ptr null
}}
"""
