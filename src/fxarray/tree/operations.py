"""Take trees apart, put them together, and map over them."""

from __future__ import annotations

import builtins
import functools
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import optree
from optree import _C as native

from fxarray.tree.difference import structure_mismatch
from fxarray.tree.structure import (
    NAMESPACE,
    IsLeaf,
    PyTreeDef,
    StructureMismatch,
    flatten_native,
)

T = TypeVar("T")

_MISSING: Any = object()


def flatten(tree: Any, is_leaf: IsLeaf = None) -> tuple[list[Any], PyTreeDef]:
    """Take a tree apart into its leaves and its structure.

    Nodes are tuples, lists, dicts (in the order of their sorted keys), namedtuples, `OrderedDict`,
    `defaultdict`, `deque`, None (which has no leaves) and registered classes; all else is a leaf.

    Args:
        tree: the tree.
        is_leaf: what else to count as a leaf.

    >>> leaves, treedef = flatten({"b": 1, "a": (2, None)})
    >>> leaves
    [2, 1]
    >>> unflatten(treedef, ["x", "y"])
    {'b': 'y', 'a': ('x', None)}
    """
    return native.flatten(tree, is_leaf, False, NAMESPACE)


def unflatten(treedef: PyTreeDef, leaves: Iterable[Any]) -> Any:
    """Put a tree together from its structure and its leaves, in `flatten`'s order.

    Args:
        treedef: the structure.
        leaves: any objects; their number must be that of the structure's leaves.

    Raises:
        ValueError: for too few or too many leaves.

    >>> unflatten(structure([0, (0, 0)]), "abc")
    ['a', ('b', 'c')]
    """
    return treedef.unflatten(leaves)


def leaves(tree: Any, is_leaf: IsLeaf = None) -> list[Any]:
    """Return the leaves of a tree.

    >>> leaves({"b": 1, "a": (2, None)})
    [2, 1]
    """
    return native.flatten(tree, is_leaf, False, NAMESPACE)[0]


def structure(tree: Any, is_leaf: IsLeaf = None) -> PyTreeDef:
    """Return the structure of a tree, without its leaves.

    >>> structure({"a": 1, "b": 2}) == structure({"b": 3, "a": 4})
    True
    >>> structure([1]) == structure((1,))
    False
    """
    return native.flatten(tree, is_leaf, False, NAMESPACE)[1]


def map(f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: IsLeaf = None) -> Any:
    """Apply a function to every leaf, and return a tree of the results.

    Args:
        f: takes a leaf of `tree`, and what stands at the same place in each tree of `rest`.
        tree: the tree that gives the structure.
        *rest: trees of the same structure, or with subtrees where `tree` has leaves.
        is_leaf: what else to count as a leaf of `tree`.

    Raises:
        StructureMismatch: when a tree of `rest` has another structure; the message says where.

    >>> map(lambda x, y: x * y, {"a": 2, "b": (3, 4)}, {"a": 5, "b": (6, 7)})
    {'a': 10, 'b': (18, 28)}
    """
    first, treedef = native.flatten(tree, is_leaf, False, NAMESPACE)
    if not rest:
        return treedef.unflatten(builtins.map(f, first))
    try:
        others = [treedef.flatten_up_to(other) for other in rest]
    except ValueError as error:
        raise structure_mismatch("tree.map", tree, rest, is_leaf, error) from None
    return treedef.unflatten(builtins.map(f, first, *others))


def reduce(
    function: Callable[[Any, Any], Any],
    tree: Any,
    initializer: Any = _MISSING,
    is_leaf: IsLeaf = None,
) -> Any:
    """Combine the leaves from left to right.

    Args:
        function: takes the result so far and a leaf.
        tree: the tree.
        initializer: the result so far before the first leaf; without it, the first leaf.
        is_leaf: what else to count as a leaf.

    Raises:
        TypeError: for a tree without leaves when there is no initializer.

    >>> reduce(lambda total, leaf: total + leaf, {"a": 1, "b": (2, 3)})
    6
    """
    items = leaves(tree, is_leaf)
    if initializer is _MISSING:
        return functools.reduce(function, items)
    return functools.reduce(function, items, initializer)


def reduce_associative(
    operation: Callable[[T, T], T], tree: Any, *, identity: Any = _MISSING, is_leaf: IsLeaf = None
) -> T:
    """Combine the leaves pairwise, so that the longest chain of operations is short.

    Args:
        operation: an associative function of two leaves.
        tree: the tree.
        identity: the result for a tree without leaves.
        is_leaf: what else to count as a leaf.

    Raises:
        TypeError: for a tree without leaves when there is no identity.

    >>> reduce_associative(lambda x, y: x + y, ["a", ("b", "c")])
    'abc'
    """
    items = leaves(tree, is_leaf)
    if not items:
        if identity is _MISSING:
            raise TypeError("reduce_associative: the tree has no leaves, and no identity is given")
        return identity
    while len(items) > 1:
        odd = items[len(items) & ~1 :]
        items = [operation(*pair) for pair in zip(items[::2], items[1::2], strict=False)] + odd
    return items[0]


def all(tree: Any, *, is_leaf: IsLeaf = None) -> bool:
    """Return whether every leaf is true.

    >>> all({"a": True, "b": (1, None)})
    True
    """
    return builtins.all(leaves(tree, is_leaf))


def any(tree: Any, *, is_leaf: IsLeaf = None) -> bool:
    """Return whether some leaf is true.

    >>> any({"a": False, "b": (0, None)})
    False
    """
    return builtins.any(leaves(tree, is_leaf))


def all_leaves(iterable: Iterable[Any], is_leaf: IsLeaf = None) -> bool:
    """Return whether every item is a leaf.

    >>> all_leaves([1, "a"]), all_leaves([1, (2,)])
    (True, False)
    """
    items = list(iterable)
    found = leaves(items, is_leaf)
    return len(found) == len(items) and builtins.all(
        item is leaf for item, leaf in zip(items, found, strict=True)
    )


def transpose(
    outer_treedef: PyTreeDef, inner_treedef: PyTreeDef | None, pytree_to_transpose: Any
) -> Any:
    """Turn a tree of trees inside out.

    Args:
        outer_treedef: the structure of the outer tree.
        inner_treedef: the structure of the subtree at each leaf of the outer tree, if known.
        pytree_to_transpose: the tree.

    Raises:
        StructureMismatch: when the tree is not a tree of that structure.

    >>> transpose(structure([0, 0]), structure({"a": 0}), [{"a": 1}, {"a": 2}])
    {'a': [1, 2]}
    """
    try:
        subtrees = outer_treedef.flatten_up_to(pytree_to_transpose)
    except ValueError as error:
        dummy = unflatten(outer_treedef, range(outer_treedef.num_leaves))
        raise structure_mismatch(
            "tree.transpose", dummy, (pytree_to_transpose,), None, error
        ) from None
    if inner_treedef is None:
        if not subtrees:
            raise StructureMismatch(
                "tree.transpose: the outer tree has no leaves; give the inner structure"
            )
        inner_treedef = structure(subtrees[0])
    inner_example = unflatten(inner_treedef, range(inner_treedef.num_leaves))
    columns: list[list[Any]] = []
    for subtree in subtrees:
        try:
            columns.append(inner_treedef.flatten_up_to(subtree))
        except ValueError as error:
            raise structure_mismatch(
                "tree.transpose", inner_example, (subtree,), None, error
            ) from None
    rows = zip(*columns, strict=True) if columns else [()] * inner_treedef.num_leaves
    return inner_treedef.unflatten(outer_treedef.unflatten(row) for row in rows)


# --- structures ---------------------------------------------------------------------------------


def treedef_children(treedef: PyTreeDef) -> list[PyTreeDef]:
    """Return the structures of the children of a structure's root.

    >>> treedef_children(structure((1, [2]))) == [structure(1), structure([2])]
    True
    """
    return treedef.children()


def treedef_is_leaf(treedef: PyTreeDef) -> bool:
    """Return whether a structure is one node: a leaf, None or an empty container.

    >>> treedef_is_leaf(structure(1)), treedef_is_leaf(structure([1]))
    (True, False)
    """
    return treedef.num_nodes == 1


def treedef_tuple(treedefs: Iterable[PyTreeDef]) -> PyTreeDef:
    """Return the structure of a tuple of trees with the given structures.

    >>> treedef_tuple([structure(1), structure([2])]) == structure((1, [2]))
    True
    """
    return optree.treespec_tuple(treedefs, namespace=NAMESPACE)


def flatten_one_level(tree: Any) -> tuple[list[Any], PyTreeDef]:
    """Return the children of a tree's root, and the root's structure with leaves for children.

    >>> flatten_one_level([1, (2, 3)])[0]
    [1, (2, 3)]
    """
    return flatten_native(tree, lambda subtree: subtree is not tree)
