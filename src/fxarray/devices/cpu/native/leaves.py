"""Recognising the arguments of a call in generated code, and taking them apart.

The arguments of one call become a table of instructions over registers, which walks the arguments
of later calls along the same path: exact classes, sizes and keys of containers, arrays of the same
types, static values that are the same objects. Whatever differs, or is of a kind not known here,
makes it give up, and the call is recognised by flattening and looking up, as in general.
"""

from __future__ import annotations

import types
from enum import Enum, IntEnum
from functools import lru_cache
from itertools import chain
from operator import is_not
from typing import Any

import numpy as np

from fxarray.compile.matching import Matcher, install_matcher
from fxarray.core.array import DeviceArray
from fxarray.devices.cpu.native.builtin_functions import FAST, address_of, builtin
from fxarray.devices.cpu.native.jit import symbols
from fxarray.devices.cpu.native.objects import Layout, layout
from fxarray.tree.operations import flatten
from fxarray.tree.registry import fields_of, is_tree_node


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


_WORDS = 4


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
  %offset = mul i64 %position, {8 * _WORDS}
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


class _UnknownKind(Exception):
    """An argument is of a kind that has no instructions."""


# Static leaves that cannot change: the same object is the same value. Others of these classes
# compare by value, and no code of the user's runs for that.
_CONSTANT = frozenset(
    (types.FunctionType, types.BuiltinFunctionType, types.ModuleType, np.ufunc, type(None))
)
_COMPARED = frozenset((str, bytes))
_NUMBERS = frozenset((float, bool, complex, np.float32, np.float64, np.bool_))


class _Path:
    """The instructions that walk given arguments."""

    def __init__(self, found: Layout) -> None:
        self.found = found
        self.steps: list[tuple[int, int, int, int]] = []
        self.registers = 2
        self.leaves: list[Any] = []
        self.alive: list[Any] = []

    def add(self, step: Step, source: int, what: int = 0) -> None:
        """An instruction without a target."""
        self.steps.append((step, source, what, 0))

    def fetch(self, step: Step, source: int, what: int = 0) -> int:
        """An instruction whose target is a new register."""
        target = self.registers
        self.registers += 1
        self.steps.append((step, source, what, target))
        return target

    def address(self, thing: Any) -> int:
        """An object that instructions refer to."""
        self.alive.append(thing)
        return id(thing)

    def visit(self, node: Any, register: int) -> None:
        """The instructions for a node or leaf in a register."""
        kind: type[Any] = type(node)
        if node is None:
            self.add(Step.SAME, register, id(None))
        elif kind is tuple or kind is list:
            whole, item = Step.SIZE_LIST, Step.LIST
            if kind is tuple:
                whole, item = Step.SIZE_TUPLE, Step.TUPLE
            self.add(Step.CLASS, register, id(kind))
            self.add(whole, register, len(node))
            for number, child in enumerate(node):
                self.visit(child, self.fetch(item, register, number))
        elif kind is dict:
            if not all(type(key) is str for key in node):
                raise _UnknownKind
            self.add(Step.CLASS, register, id(kind))
            self.add(Step.SIZE_DICT, register, len(node))
            for key in sorted(node):
                self.visit(node[key], self.fetch(Step.DICT, register, self.address(key)))
        elif is_tree_node(kind):
            self._visit_object(node, kind, register)
        else:
            self._visit_leaf(node, kind, register)

    def _visit_object(self, node: Any, kind: type[Any], register: int) -> None:
        names = fields_of(kind)
        if names is None:
            raise _UnknownKind
        children, static = names
        self.add(Step.CLASS, register, self.address(kind))
        fields, values = self.fetch(Step.FIELDS, register), vars(node)
        for name in static:
            value = self.fetch(Step.DICT, fields, self.address(name))
            self.add(Step.SAME, value, self.address(values[name]))
        for name in children:
            self.visit(values[name], self.fetch(Step.DICT, fields, self.address(name)))

    def visit_static(self, value: Any, register: int) -> None:
        """The instructions for an argument that is static whatever its class."""
        kind: type[Any] = type(value)
        if kind is int or kind is bool:
            self._compare(value, kind, register)
        elif not self._visit_constant(value, kind, register):
            raise _UnknownKind
        self.add(Step.LEAF, register)
        self.leaves.append(value)

    def _visit_constant(self, value: Any, kind: type[Any], register: int) -> bool:
        if kind in _COMPARED:
            self._compare(value, kind, register)
        elif kind in _CONSTANT or isinstance(value, (Enum, type, np.dtype)):
            self.add(Step.SAME, register, self.address(value))
        else:
            return False
        return True

    def _compare(self, value: Any, kind: type[Any], register: int) -> None:
        self.add(Step.CLASS, register, id(kind))
        self.add(Step.EQUAL, register, self.address(value))

    def _visit_leaf(self, leaf: Any, kind: type[Any], register: int) -> None:
        if self._visit_constant(leaf, kind, register):
            pass
        elif kind is np.ndarray:
            self.add(Step.CLASS, register, id(kind))
            shape = [self.address(leaf.dtype), leaf.ndim, *leaf.shape]
            table = bytearray(b"".join([word.to_bytes(8, "little") for word in shape]))
            self.alive.append(table)
            self.add(Step.NUMPY, register, address_of(table))
        elif kind is DeviceArray or kind is int or kind in _NUMBERS:
            self.add(Step.CLASS, register, id(kind))
            if kind is DeviceArray:
                self.add(Step.ARRAY, register, self.address(leaf.type))
            elif kind is int:
                self.add(Step.SMALL, register)
        else:
            raise _UnknownKind
        self.add(Step.LEAF, register)
        self.leaves.append(leaf)


@lru_cache(maxsize=1)
def _entry(found: Layout) -> int:
    return symbols(matcher_text(found), ("match",))["match"]


def make_matcher(
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    static: frozenset[int | str] = frozenset(),
) -> Matcher | None:
    """What recognises calls with arguments like these, None if something in them is not known.

    Args:
      args: the positional arguments.
      kwargs: the others.
      static: positions and names of arguments that are static: they compare by value, and are one
        leaf each.
    """
    found = layout()
    if found is None:
        return None
    path = _Path(found)
    leaves: list[Any] = []
    try:
        path.add(Step.SIZE_TUPLE, 0, len(args))
        path.add(Step.SIZE_DICT, 1, len(kwargs))
        arguments = [*enumerate(args), *sorted(kwargs.items())]
        for name, value in arguments:
            if isinstance(name, int):
                register = path.fetch(Step.TUPLE, 0, name)
            else:
                register = path.fetch(Step.DICT, 1, path.address(name))
            if name in static:
                path.visit_static(value, register)
                leaves.append(value)
            else:
                path.visit(value, register)
                leaves.extend(flatten(value)[0])
    except (_UnknownKind, KeyError, RecursionError):
        return None
    if len(leaves) != len(path.leaves) or any(map(is_not, leaves, path.leaves)):
        return None  # a class is taken apart in another way than its fields say
    path.add(Step.END, 0)
    words = [path.registers, len(leaves), id(None), *chain.from_iterable(path.steps)]
    table = bytearray(b"".join([word.to_bytes(8, "little") for word in words]))
    return builtin("match", _entry(found), FAST, (table, *path.alive))


install_matcher(make_matcher)
