"""Recognising the arguments of a call in generated code, and taking them apart.

The arguments of one call become a table of instructions over registers, which walks the arguments
of later calls along the same path: exact classes, sizes and keys of containers, arrays of the same
types, static values that are the same objects. Whatever differs, or is of a kind not known here,
makes it give up, and the call is recognised by flattening and looking up, as in general.
"""

from __future__ import annotations

import types
from enum import Enum
from functools import lru_cache
from itertools import chain
from operator import is_not
from typing import Any

import numpy as np

from fxarray.compile.matching import Matcher, install_matcher
from fxarray.core.array import DeviceArray
from fxarray.devices.cpu.native.builtin_functions import FAST, address_of, builtin
from fxarray.devices.cpu.native.jit import symbols
from fxarray.devices.cpu.native.leaves_text import Step, matcher_text
from fxarray.devices.cpu.native.objects import Layout, layout
from fxarray.tree.operations import flatten
from fxarray.tree.registry import fields_of, is_tree_node


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
