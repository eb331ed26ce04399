"""Make classes nodes of trees."""

from __future__ import annotations

import functools
import operator
import types
from collections.abc import Callable, Hashable, Iterable, Sequence
from inspect import getattr_static
from typing import Any, Self, TypeVar, cast
from weakref import WeakKeyDictionary

import optree

from fxarray.tree.keys import GetAttrKey, KeyEntry, OwnKeyEntry
from fxarray.tree.structure import NAMESPACE

T = TypeVar("T")
Class = TypeVar("Class", bound="type[Any]")

Flatten = Callable[[Any], tuple[Iterable[Any], Any]]
FlattenWithKeys = Callable[[Any], tuple[Iterable[tuple[KeyEntry, Any]], Any]]
Unflatten = Callable[[Any, Any], Any]

_BUILT_IN: tuple[type, ...] = (tuple, list, dict, type(None))


def register_pytree_node(
    nodetype: type[T],
    flatten_func: Flatten,
    unflatten_func: Unflatten,
    flatten_with_keys_func: FlattenWithKeys | None = None,
) -> None:
    """Make a class a node of trees.

    Args:
        nodetype: the class; its subclasses are registered on their own.
        flatten_func: takes an instance; returns its children, and its static data, which must
            compare and hash by value.
        unflatten_func: takes static data and children; returns an instance. The children may be any
            objects, so it should not look at them.
        flatten_with_keys_func: as `flatten_func`, with a pair of key and child for each child.

    Raises:
        ValueError: when the class is registered already, or is a node by itself.

    >>> class Pair:
    ...     def __init__(self, left, right):
    ...         self.left, self.right = left, right
    >>> register_pytree_node(
    ...     Pair, lambda p: ((p.left, p.right), None), lambda _, children: Pair(*children)
    ... )
    >>> from fxarray import tree
    >>> tree.map(lambda x: x + 1, Pair(1, 2)).right
    3
    """
    if flatten_with_keys_func is not None:
        register_pytree_with_keys(nodetype, flatten_with_keys_func, unflatten_func)
        return
    register_native(nodetype, flatten_func, unflatten_func, optree.AutoEntry)


def register_pytree_with_keys(
    nodetype: type[T],
    flatten_with_keys: FlattenWithKeys,
    unflatten_func: Unflatten,
    flatten_func: Flatten | None = None,
) -> None:
    """Make a class a node of trees whose children have keys of their own.

    Args:
        nodetype: the class.
        flatten_with_keys: takes an instance; returns a pair of key and child for each child, and
            the static data. Keys are `DictKey`, `GetAttrKey`, ... or any objects that print well.
        unflatten_func: takes static data and children; returns an instance.
        flatten_func: accepted as in JAX, and not needed: structures remember their keys, so that
            errors can name places without the tree at hand.

    Raises:
        ValueError: when the class is registered already, or is a node by itself.
    """
    del flatten_func

    def flatten_native_with_keys(node: T) -> tuple[tuple[Any, ...], Any, tuple[KeyEntry, ...]]:
        pairs, data = flatten_with_keys(node)
        keys: list[KeyEntry] = []
        children: list[Any] = []
        for key, child in pairs:
            keys.append(key)
            children.append(child)
        return tuple(children), data, tuple(keys)

    register_native(nodetype, flatten_native_with_keys, unflatten_func, OwnKeyEntry)


def register_pytree_node_class(cls: Class) -> Class:
    """Make a class with methods `tree_flatten` and `tree_unflatten` a node of trees; a decorator.

    Args:
        cls: a class with `tree_flatten(self) -> (children, static_data)` and the class method
            `tree_unflatten(cls, static_data, children)`.
    """
    register_pytree_node(cls, operator.methodcaller("tree_flatten"), cls.tree_unflatten)
    return cls


def register_pytree_with_keys_class(cls: Class) -> Class:
    """Make a class with methods `tree_flatten_with_keys` and `tree_unflatten` a node; a decorator.

    Args:
        cls: a class with `tree_flatten_with_keys(self) -> (pairs of key and child, static_data)`
            and the class method `tree_unflatten(cls, static_data, children)`.
    """
    register_pytree_with_keys(
        cls, operator.methodcaller("tree_flatten_with_keys"), cls.tree_unflatten
    )
    return cls


def register_static(cls: Class) -> Class:
    """Make the instances of a class part of the structure of trees, without leaves; a decorator.

    Args:
        cls: a class whose instances compare and hash by value.

    Raises:
        TypeError: when instances cannot be hashed.

    >>> @register_static
    ... class Mode(str): ...
    >>> from fxarray import tree
    >>> tree.leaves([Mode("train"), 1])
    [1]
    """
    if getattr(cls, "__hash__", None) is None:
        raise TypeError(
            f"register_static: instances of {cls.__name__} cannot be hashed; "
            "define __hash__ beside __eq__"
        )

    def unflatten(data: Hashable, _children: Sequence[Any]) -> Hashable:
        return data

    register_native(cls, lambda node: ((), node), unflatten, optree.AutoEntry)
    return cls


# Of classes whose children are what their instances' `__dict__` holds under some names, and whose
# static data is what it holds under others.
_FIELDS: WeakKeyDictionary[type, tuple[tuple[str, ...], tuple[str, ...]]] = WeakKeyDictionary()


def declare_fields(cls: type, children: Sequence[str], static: Sequence[str]) -> None:
    """Say that a node's children and static data are these items of its `__dict__`, in order.

    Nothing is said of a class that has other ways to find its attributes.
    """
    names = (*children, *static)
    plain = cls.__getattribute__ is object.__getattribute__ and bool(cls.__dictoffset__)
    if plain and not any(hasattr(getattr_static(cls, name, None), "__set__") for name in names):
        _FIELDS[cls] = (tuple(children), tuple(static))


def fields_of(cls: type) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """The names of a node's children and static data in its `__dict__`; None if not declared."""
    return _FIELDS.get(cls)


def is_tree_node(typ: type) -> bool:
    """Return whether instances of a class are nodes of trees.

    >>> is_tree_node(dict), is_tree_node(int)
    (True, False)
    """
    if optree.is_namedtuple_class(typ) or optree.is_structseq_class(typ):
        return True
    return optree.register_pytree_node.get(typ, namespace=NAMESPACE) is not None


def register_native(
    nodetype: type, flatten_func: Callable[[Any], Any], unflatten_func: Unflatten, entry: type
) -> None:
    """Register with optree, whose flatten functions may return keys as a third item."""
    if nodetype in _BUILT_IN:
        raise ValueError(f"{nodetype.__name__} is a node of trees by itself")
    try:
        optree.register_pytree_node(
            cast("Any", nodetype),
            flatten_func,
            unflatten_func,
            path_entry_type=entry,
            namespace=NAMESPACE,
        )
    except ValueError as error:
        raise ValueError(
            f"{nodetype.__name__} is registered as a node of trees already; register a class once"
        ) from error


# --- partial application ------------------------------------------------------------------------


class Partial(functools.partial[Any]):
    """A `functools.partial` whose bound arguments are children, to be passed through transforms.

    The function is static data, so that two Partials of one function have the same structure. Of a
    bound method, the object that it is bound to is the first argument, if it is a node of trees.

    >>> from fxarray import tree
    >>> add_two = Partial(pow, 3)
    >>> tree.leaves(add_two), tree.map(lambda x: x + 2, add_two)(2)
    ([3], 25)
    """

    def __new__(cls, func: Callable[..., Any], /, *args: Any, **keywords: Any) -> Self:
        if isinstance(func, functools.partial) and not isinstance(func, Partial):
            # functools merges a partial of a partial, and its arguments would become leaves.
            return super().__new__(cls, _Opaque(func), *args, **keywords)
        if isinstance(func, types.MethodType) and is_tree_node(type(func.__self__)):
            return super().__new__(cls, func.__func__, func.__self__, *args, **keywords)
        return super().__new__(cls, func, *args, **keywords)


class _Opaque:
    """Calls a function without showing that it is a `functools.partial`."""

    __slots__ = ("function",)

    def __init__(self, function: functools.partial[Any]) -> None:
        self.function = function

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        return self.function(*args, **keywords)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Opaque) and self.function == other.function

    def __hash__(self) -> int:
        return hash(self.function)

    def __repr__(self) -> str:
        return repr(self.function)


def _flatten_partial(partial: Partial) -> tuple[Any, Any, Any]:
    return (
        (partial.args, partial.keywords),
        partial.func,
        (GetAttrKey("args"), GetAttrKey("keywords")),
    )


def _unflatten_partial(function: Callable[..., Any], children: Sequence[Any]) -> Partial:
    args, keywords = children
    return Partial(function, *args, **keywords)


register_native(Partial, _flatten_partial, _unflatten_partial, OwnKeyEntry)
