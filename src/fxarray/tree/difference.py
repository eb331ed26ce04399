"""Say in words how two tree structures differ, for the errors of everything that compares them."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

from fxarray.tree.keys import GetAttrKey, KeyPath, child_keys, keystr
from fxarray.tree.structure import (
    IsLeaf,
    PyTreeDef,
    StructureMismatch,
    flatten_native,
    node_data,
)

SHOWN = 5
"""How many differences an error message lists before it counts the rest."""


def difference(
    expected: Any, actual: Any, is_leaf: IsLeaf = None, *, name: str = "", prefix: bool = False
) -> list[str]:
    """Say how the structure of one tree differs from that of another, a sentence for each place.

    Args:
        expected: the tree whose structure is right.
        actual: the tree that should have it.
        is_leaf: what else to count as a leaf, in both trees or in the prefix.
        name: what the tree is called in the sentences, such as "carry".
        prefix: whether a leaf of `expected` may meet any subtree.

    Returns:
        No sentence when the structures agree.

    >>> difference({"w": (1, 2), "b": 0}, {"w": [1, 2, 3], "b": 0})
    ["['w'] is a list of 3, expected a tuple of 2"]
    """
    return _differences(
        flatten_native(expected, is_leaf)[1],
        flatten_native(actual, None if prefix else is_leaf)[1],
        name,
        prefix,
    )


def explain_difference(
    expected: PyTreeDef, actual: PyTreeDef, *, name: str = "", prefix: bool = False
) -> str:
    """Say how one structure differs from another, in one text of at most a few sentences.

    Args:
        expected: the right structure.
        actual: the structure that differs.
        name: what the tree is called in the sentences, such as "carry".
        prefix: whether a leaf of `expected` may meet any subtree.

    Returns:
        The empty text when the structures agree.

    >>> from fxarray import tree
    >>> explain_difference(tree.structure((1, 2)), tree.structure((1, {"a": 2})), name="carry")
    "carry[1] is a dict with keys 'a', expected a leaf"
    """
    return _join(_differences(expected, actual, name, prefix))


def structure_mismatch(
    what: str, tree: Any, rest: Sequence[Any], is_leaf: IsLeaf, error: ValueError
) -> Exception:
    """Return the error to raise when a tree of `rest` was found not to fit `tree`."""
    for number, other in enumerate(rest):
        sentences = difference(tree, other, is_leaf, prefix=True)
        if sentences:
            which = (
                f"tree {number + 2} does not fit tree 1"
                if what == "tree.map"
                else "the trees differ"
            )
            return StructureMismatch(f"{what}: {which}: " + _join(sentences))
    return error  # not about structure: raised by a registered class's own flattening


def _join(sentences: list[str]) -> str:
    text = "; ".join(sentences[:SHOWN])
    rest = len(sentences) - SHOWN
    return f"{text}; and {rest} more" if rest > 0 else text


def _differences(expected: PyTreeDef, actual: PyTreeDef, name: str, prefix: bool) -> list[str]:
    if expected == actual:
        return []
    sentences: list[str] = []
    pending: deque[tuple[KeyPath, PyTreeDef, PyTreeDef]] = deque([((), expected, actual)])
    while pending:
        path, left, right = pending.popleft()
        if left == right or (prefix and left.is_leaf()):
            continue
        problem = _root_difference(left, right)
        if problem is not None:
            place = f"{name}{keystr(path)}" or "the tree"
            sentences.append(f"{place} {problem}")
            continue
        children = list(zip(child_keys(left), left.children(), right.children(), strict=True))
        # Depth first and in order, so that sentences come in the order of the leaves.
        pending.extendleft(((*path, key), one, other) for key, one, other in reversed(children))
    return sentences


def _root_difference(expected: PyTreeDef, actual: PyTreeDef) -> str | None:
    if expected.type != actual.type or expected.is_leaf() or actual.is_leaf():
        found, wanted = _describe(actual), _describe(expected)
        if found == wanted:
            return f"is {found} of another class of that name; was the class defined again?"
        return f"is {found}, expected {wanted}"
    if _is_keyed(expected):
        left, right = child_keys(expected), child_keys(actual)
        missing = [key for key in left if key not in right]
        extra = [key for key in right if key not in left]
        faults: list[str] = []
        if missing:
            faults.append(f"lacks {_names(missing)}")
        if extra:
            faults.append(f"has an unexpected {_names(extra)}")
        if faults:
            return " and ".join(faults)
        if left != right:
            return f"has its keys in the order {_names(right)}, expected {_names(left)}"
        if node_data(expected) != node_data(actual):
            return "is a defaultdict with another default factory"
        return None
    if expected.num_children != actual.num_children:
        return f"is {_describe(actual)}, expected {_describe(expected)}"
    left_data, right_data = node_data(expected), node_data(actual)
    if left_data != right_data:
        kind = expected.type.__name__ if expected.type is not None else "None"
        return f"is {_article(kind)} with {right_data!r}, expected {left_data!r}"
    return None


def _is_keyed(treedef: PyTreeDef) -> bool:
    return isinstance(treedef.type, type) and issubclass(treedef.type, dict)


def _describe(treedef: PyTreeDef) -> str:
    kind = treedef.type
    if treedef.is_leaf():
        return "a leaf"
    if kind is None or kind is type(None):
        return "None"
    if _is_keyed(treedef):
        keys = child_keys(treedef)
        return f"{_article(kind.__name__)} with keys {_names(keys)}" if keys else "an empty dict"
    if kind in {list, tuple, deque}:
        count = treedef.num_children
        return f"{_article(kind.__name__)} of {count}" if count else f"an empty {kind.__name__}"
    return _article(kind.__name__)


def _names(keys: list[Any]) -> str:
    shown = [
        str(key) if isinstance(key, GetAttrKey) else repr(getattr(key, "key", key)) for key in keys
    ]
    rest = len(shown) - SHOWN
    return ", ".join(shown[:SHOWN]) + (f" and {rest} more" if rest > 0 else "")


def _article(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeiouAEIOU' else 'a'} {noun}"
