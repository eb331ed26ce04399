"""Spread a prefix of a tree, such as `in_axes`, over the whole tree."""

from __future__ import annotations

import builtins
from typing import Any

from fxarray.tree.difference import structure_mismatch
from fxarray.tree.structure import IsLeaf, flatten_native


def broadcast_prefix(prefix: Any, full_tree: Any, is_leaf: IsLeaf = None) -> list[Any]:
    """Spread the leaves of a prefix of a tree over the tree's leaves.

    A prefix is the tree with some subtrees replaced by leaves, such as `in_axes` for the arguments.

    Args:
        prefix: the prefix.
        full_tree: the tree.
        is_leaf: what else to count as a leaf of the prefix, such as None.

    Returns:
        For each leaf of `full_tree`, the leaf of `prefix` that stands at or above it.

    Raises:
        StructureMismatch: when it is no prefix of the tree; the message says where.

    >>> broadcast_prefix((0, None), ([1, 2], {"a": 3}), is_leaf=lambda x: x is None)
    [0, 0, None]
    """
    values, treedef = flatten_native(prefix, is_leaf)
    try:
        subtrees = treedef.flatten_up_to(full_tree)
    except ValueError as error:
        raise structure_mismatch("prefix tree", prefix, (full_tree,), is_leaf, error) from None
    result: list[Any] = []
    for value, subtree in zip(values, subtrees, strict=True):
        result.extend([value] * flatten_native(subtree)[1].num_leaves)
    return result


def broadcast(prefix_tree: Any, full_tree: Any, is_leaf: IsLeaf = None) -> Any:
    """Spread the leaves of a prefix of a tree over the tree.

    Args:
        prefix_tree: the tree with some subtrees replaced by leaves.
        full_tree: the tree.
        is_leaf: what else to count as a leaf of either tree.

    Returns:
        A tree with the structure of `full_tree`.

    Raises:
        StructureMismatch: when it is no prefix of the tree; the message says where.

    >>> broadcast({"a": 1, "b": 2}, {"a": [0, 0], "b": 0})
    {'a': [1, 1], 'b': 2}
    """

    def spread(value: Any, subtree: Any) -> Any:
        treedef = flatten_native(subtree, is_leaf)[1]
        return treedef.unflatten([value] * treedef.num_leaves)

    values, treedef = flatten_native(prefix_tree, is_leaf)
    try:
        subtrees = treedef.flatten_up_to(full_tree)
    except ValueError as error:
        raise structure_mismatch(
            "tree.broadcast", prefix_tree, (full_tree,), is_leaf, error
        ) from None
    return treedef.unflatten(builtins.map(spread, values, subtrees))
