"""Take trees apart and map over them with the key path of every leaf."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator
from typing import Any

from fxarray.tree.difference import structure_mismatch
from fxarray.tree.keys import KeyPath, child_keys, treedef_paths
from fxarray.tree.structure import PyTreeDef, flatten_native


def flatten_with_path(
    tree: Any, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False
) -> tuple[list[tuple[KeyPath, Any]], PyTreeDef]:
    """Take a tree apart into its leaves, each with its key path, and its structure.

    Args:
        tree: the tree.
        is_leaf: what else to count as a leaf.
        is_leaf_takes_path: whether `is_leaf` is called with the key path and the subtree.

    >>> from fxarray.tree import keystr
    >>> for path, leaf in flatten_with_path({"a": 1, "b": [2, 3]})[0]:
    ...     print(keystr(path), leaf)
    ['a'] 1
    ['b'][0] 2
    ['b'][1] 3
    """
    if is_leaf is not None and is_leaf_takes_path:
        is_leaf = _without_path(tree, is_leaf)
    items, treedef = flatten_native(tree, is_leaf)
    return list(zip(treedef_paths(treedef), items, strict=True)), treedef


def leaves_with_path(
    tree: Any, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False
) -> list[tuple[KeyPath, Any]]:
    """Return the leaves of a tree, each with its key path.

    >>> leaves_with_path({"a": 1})
    [((DictKey(key='a'),), 1)]
    """
    return flatten_with_path(tree, is_leaf, is_leaf_takes_path)[0]


def map_with_path(
    f: Callable[..., Any],
    tree: Any,
    *rest: Any,
    is_leaf: Callable[..., bool] | None = None,
    is_leaf_takes_path: bool = False,
) -> Any:
    """Apply a function to every leaf and its key path, and return a tree of the results.

    Args:
        f: takes a key path, the leaf of `tree` there, and what stands there in each tree of `rest`.
        tree: the tree that gives the structure.
        *rest: trees of the same structure, or with subtrees where `tree` has leaves.
        is_leaf: what else to count as a leaf of `tree`.
        is_leaf_takes_path: whether `is_leaf` is called with the key path and the subtree.

    Raises:
        StructureMismatch: when a tree of `rest` has another structure; the message says where.

    >>> from fxarray.tree import keystr
    >>> map_with_path(lambda path, x: f"{keystr(path)}={x}", {"a": 1, "b": (2,)})
    {'a': "['a']=1", 'b': ("['b'][0]=2",)}
    """
    if is_leaf is not None and is_leaf_takes_path:
        is_leaf = _without_path(tree, is_leaf)
    items, treedef = flatten_native(tree, is_leaf)
    try:
        others = [treedef.flatten_up_to(other) for other in rest]
    except ValueError as error:
        raise structure_mismatch("tree.map", tree, rest, is_leaf, error) from None
    return treedef.unflatten(builtins.map(f, treedef_paths(treedef), items, *others))


def _without_path(tree: Any, is_leaf: Callable[[KeyPath, Any], bool]) -> Callable[[Any], bool]:
    """Turn a test of path and subtree into one of subtrees, to be called in flattening order."""

    def visits(path: KeyPath, subtree: Any) -> Iterator[bool]:
        decision = is_leaf(path, subtree)
        yield decision
        children, treedef = flatten_native(subtree, lambda x: x is not subtree)
        if decision or treedef.is_leaf():
            return
        for key, child in zip(child_keys(treedef), children, strict=True):
            yield from visits((*path, key), child)

    decisions = visits((), tree)
    return lambda _subtree: next(decisions)
