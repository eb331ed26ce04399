"""Key paths, prefixes and the words for differences."""

import re
from collections import OrderedDict, defaultdict, deque, namedtuple
from typing import Any

import jax
import pytest

from fxarray import tree

Point = namedtuple("Point", "x y")

VALUE = {
    "list": [1, (2, 3)],
    "point": Point(4, {"k": 5}),
    "ordered": OrderedDict([("b", 6), ("a", 7)]),
    "default": defaultdict(list, {1: 8}),
    "none": None,
}


def test_key_paths_print_as_in_jax() -> None:
    ours = [(tree.keystr(path), leaf) for path, leaf in tree.leaves_with_path(VALUE)]
    theirs = [
        (jax.tree_util.keystr(path), leaf)
        for path, leaf in jax.tree_util.tree_leaves_with_path(VALUE)
    ]
    assert ours == theirs


def test_simple_key_paths_print_as_in_jax() -> None:
    ours = [
        tree.keystr(path, simple=True, separator="/") for path, _ in tree.leaves_with_path(VALUE)
    ]
    theirs = [
        jax.tree_util.keystr(path, simple=True, separator="/")
        for path, _ in jax.tree_util.tree_leaves_with_path(VALUE)
    ]
    assert ours == theirs


def test_a_leaf_alone_has_the_empty_path() -> None:
    assert tree.leaves_with_path(3) == [((), 3)]
    assert tree.keystr(()) == ""


def test_keys_compare_and_hash_by_value() -> None:
    assert tree.DictKey("a") == tree.DictKey("a") != tree.DictKey("b")
    assert tree.GetAttrKey("a") != tree.DictKey("a")
    assert len({tree.SequenceKey(0), tree.SequenceKey(0), tree.FlattenedIndexKey(0)}) == 2
    path = tree.leaves_with_path(VALUE)[-1][0]
    assert path == (tree.DictKey("point"), tree.GetAttrKey("y"), tree.DictKey("k"))


def test_deque_children_have_numbers() -> None:
    assert [tree.keystr(path) for path, _ in tree.leaves_with_path(deque([5, 6]))] == ["[0]", "[1]"]


def test_map_with_path_passes_path_and_all_leaves() -> None:
    result = tree.map_with_path(lambda path, x, y: (tree.keystr(path), x, y), [1, 2], [3, (4,)])
    assert result == [("[0]", 1, 3), ("[1]", 2, (4,))]
    with pytest.raises(tree.StructureMismatch, match="a tuple of 2, expected a list of 2"):
        tree.map_with_path(lambda *_: None, [1, 2], (3, 4))


def test_is_leaf_may_look_at_the_path() -> None:
    def at_depth_one(path: Any, _subtree: Any) -> bool:
        return len(path) == 1

    value = {"a": [1, 2], "b": ({"c": 3}, None), "n": None}
    ours = tree.flatten_with_path(value, at_depth_one, is_leaf_takes_path=True)
    theirs = jax.tree.flatten_with_path(value, at_depth_one, is_leaf_takes_path=True)
    assert [leaf for _, leaf in ours[0]] == [leaf for _, leaf in theirs[0]]
    assert [leaf for _, leaf in ours[0]] == [[1, 2], ({"c": 3}, None), None]
    assert tree.unflatten(ours[1], [leaf for _, leaf in ours[0]]) == value
    mapped = tree.map_with_path(
        lambda _, x: str(x), value, is_leaf=at_depth_one, is_leaf_takes_path=True
    )
    assert mapped["a"] == "[1, 2]"


# --- prefixes -----------------------------------------------------------------------------------


def is_none(x: Any) -> bool:
    return x is None


@pytest.mark.parametrize(
    ("prefix", "full"),
    [
        (0, {"a": [1, 2], "b": 3}),
        ((0, 1), ([1, 2], {"b": 3})),
        ((None, 1), ([1, 2], {"b": 3})),
        (({"a": 5, "b": None},), ({"a": (1, 2), "b": [3, None]},)),
        ((), ()),
        (0, None),
        ([0, {"x": (1, 2)}], [None, {"x": (3, [4, 5])}]),
    ],
)
def test_broadcast_prefix_agrees_with_jax(prefix: Any, full: Any) -> None:
    from jax._src.tree_util import broadcast_prefix

    assert tree.broadcast_prefix(prefix, full, is_none) == broadcast_prefix(prefix, full, is_none)


def test_broadcast_returns_a_tree() -> None:
    prefix, full = {"a": 1, "b": (2, 3)}, {"a": [0, {"c": 0}], "b": (0, [0, 0])}
    assert tree.broadcast(prefix, full) == jax.tree.broadcast(prefix, full)
    assert tree.broadcast(prefix, full) == {"a": [1, {"c": 1}], "b": (2, [3, 3])}


@pytest.mark.parametrize(
    ("prefix", "full", "message"),
    [
        ((0, 1), (1, 2, 3), "the tree is a tuple of 3, expected a tuple of 2"),
        ((0, {"a": 0}), (1, {"b": 2}), "[1] lacks 'a' and has an unexpected 'b'"),
        ([0], (1,), "the tree is a tuple of 1, expected a list of 1"),
        (((0,),), (5,), "[0] is a leaf, expected a tuple of 1"),
    ],
)
def test_a_prefix_that_does_not_fit_is_named(prefix: Any, full: Any, message: str) -> None:
    with pytest.raises(tree.StructureMismatch, match=re.escape(message)):
        tree.broadcast_prefix(prefix, full)
    with pytest.raises(tree.StructureMismatch, match=re.escape(message)):
        tree.broadcast(prefix, full)


def test_a_prefix_mismatch_reports_only_real_differences() -> None:
    """None counts as a leaf of the prefix alone; where the tree has None it is no mismatch."""
    with pytest.raises(tree.StructureMismatch) as caught:
        tree.broadcast_prefix((0, (None,)), (None, 5), is_none)
    assert str(caught.value).endswith("the trees differ: [1] is a leaf, expected a tuple of 1")


# --- differences --------------------------------------------------------------------------------


def test_differences_are_listed_in_order_of_the_leaves() -> None:
    sentences = tree.difference({"a": (1,), "b": [2], "c": 3}, {"a": [1], "b": [2], "c": {"d": 4}})
    assert sentences == [
        "['a'] is a list of 1, expected a tuple of 1",
        "['c'] is a dict with keys 'd', expected a leaf",
    ]


def test_a_difference_can_carry_the_name_of_the_tree() -> None:
    expected, actual = tree.structure({"w": (1, 2)}), tree.structure({"w": [1, 2, 3]})
    text = tree.explain_difference(expected, actual, name="carry")
    assert text == "carry['w'] is a list of 3, expected a tuple of 2"
    assert (
        tree.explain_difference(tree.structure(0), actual, name="carry")
        == "carry is a dict with keys 'w', expected a leaf"
    )


def test_many_differences_are_counted() -> None:
    text = tree.explain_difference(
        tree.structure([0] * 9), tree.structure([(i,) for i in range(9)])
    )
    assert text.count("expected a leaf") == 5
    assert text.endswith("and 4 more")


def test_dict_subtleties_have_words() -> None:
    assert tree.difference(OrderedDict(a=1, b=2), OrderedDict(b=1, a=2)) == [
        "the tree has its keys in the order 'b', 'a', expected 'a', 'b'"
    ]
    assert tree.difference(defaultdict(int, a=1), defaultdict(list, a=1)) == [
        "the tree is a defaultdict with another default factory"
    ]
    assert tree.difference({}, {"a": 1}) == ["the tree has an unexpected 'a'"]
    assert tree.difference((), {}) == ["the tree is an empty dict, expected an empty tuple"]


def test_static_data_is_shown_when_it_is_what_differs() -> None:
    @tree.register_pytree_node_class
    class Scaled:
        def __init__(self, value: Any, unit: str) -> None:
            self.value, self.unit = value, unit

        def tree_flatten(self) -> Any:
            return (self.value,), self.unit

        @classmethod
        def tree_unflatten(cls, unit: str, children: Any) -> "Scaled":
            return cls(children[0], unit)

    sentences = tree.difference([Scaled(1, "m")], [Scaled(1, "km")])
    assert sentences == ["[0] is a Scaled with 'km', expected 'm'"]
