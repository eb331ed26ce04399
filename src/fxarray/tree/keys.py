"""Key paths: where in a tree a leaf stands, printed as the Python that reaches it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import optree

from fxarray.tree.structure import PyTreeDef


@dataclass(frozen=True)
class DictKey:
    """A step into a dict: `['name']`."""

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"


@dataclass(frozen=True)
class SequenceKey:
    """A step into a list or tuple: `[0]`."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"


@dataclass(frozen=True)
class GetAttrKey:
    """A step into an attribute: `.name`."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"


@dataclass(frozen=True)
class FlattenedIndexKey:
    """A step into a node whose class was registered without keys: its child's number."""

    key: int

    def __str__(self) -> str:
        return f"[<flat index {self.key}>]"


KeyEntry: TypeAlias = Any
"""A step of a key path: a class above, or any object that a registered class gives its children."""

KeyPath: TypeAlias = tuple[KeyEntry, ...]


class OwnKeyEntry(optree.PyTreeEntry):
    """Marks nodes whose class was registered together with keys of its own."""

    __slots__ = ()


def keystr(keys: Iterable[KeyEntry], *, simple: bool = False, separator: str = "") -> str:
    """Write a key path as text.

    Args:
        keys: a key path, as `flatten_with_path` returns.
        simple: write only names and numbers, without brackets, quotes and dots.
        separator: what to write between two keys.

    >>> keystr((DictKey("layers"), SequenceKey(0), GetAttrKey("weight")))
    "['layers'][0].weight"
    >>> keystr((DictKey("layers"), SequenceKey(0)), simple=True, separator="/")
    'layers/0'
    """
    return separator.join(map(_simple_text if simple else str, keys))


def _simple_text(key: KeyEntry) -> str:
    match key:
        case DictKey(key=name) | FlattenedIndexKey(key=name):
            return str(name)
        case SequenceKey(idx=index):
            return str(index)
        case GetAttrKey(name=name):
            return str(name)
        case _:
            return str(key)


def treedef_paths(treedef: PyTreeDef) -> list[KeyPath]:
    """Return the key path of every leaf of a structure."""
    accessors = cast("list[tuple[optree.PyTreeEntry, ...]]", treedef.accessors())
    return [tuple(map(_key_of_entry, accessor)) for accessor in accessors]


def child_keys(treedef: PyTreeDef) -> list[KeyEntry]:
    """Return the key of every child of a structure's root."""
    root = treedef.one_level()
    if root is None:
        return []
    return [path[0] for path in treedef_paths(root)]


def _key_of_entry(entry: optree.PyTreeEntry) -> KeyEntry:
    match entry:
        case OwnKeyEntry():
            return entry.entry
        case optree.NamedTupleEntry() | optree.StructSequenceEntry():
            return GetAttrKey(entry.field)
        case optree.GetAttrEntry():
            return GetAttrKey(entry.entry)
        case optree.SequenceEntry():
            return SequenceKey(entry.entry)
        case optree.MappingEntry():
            return DictKey(entry.entry)
        case _:
            return FlattenedIndexKey(entry.entry)
