"""What all of `fxarray.tree` stands on: namespace, type of structures, the mismatch error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import optree
from optree import _C as native

NAMESPACE = "fxarray"
"""Node types are registered under this name, unseen by other users of optree in the process."""

PyTreeDef: TypeAlias = optree.PyTreeSpec
"""The structure of a tree without its leaves: compares and hashes by value, and can be pickled."""

IsLeaf: TypeAlias = Callable[[Any], bool] | None


class StructureMismatch(ValueError, TypeError):
    """Two trees that must have the same structure differ; the message says where and how.

    `tree.map(operator.add, {"w": [1, 2]}, {"w": (1, 2)})` raises this: a list is not a tuple. Build
    both trees from the same containers, with the same keys and sizes.
    """


def flatten_native(tree: Any, is_leaf: IsLeaf = None) -> tuple[list[Any], PyTreeDef]:
    """Flatten by one native call; None is an empty node."""
    return native.flatten(tree, is_leaf, False, NAMESPACE)


def node_data(treedef: PyTreeDef) -> Any:
    """Return the static data of a structure's root: a dict's keys, a class's own metadata, ..."""
    root = treedef.one_level()
    if root is None:
        return None
    return root.walk(range(root.num_leaves), lambda _type, data, _children: data)
