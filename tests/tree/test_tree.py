"""Trees: what is a node, in which order leaves come, which structures are equal."""

import collections
import operator
import pickle
import re
import subprocess
import sys
from collections import OrderedDict, defaultdict, namedtuple
from typing import Any, NamedTuple

import jax
import optree
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fxarray import tree

Point = namedtuple("Point", "x y")


class Typed(NamedTuple):
    x: Any
    y: Any


TREES = [
    1.0,
    None,
    (),
    [],
    {},
    (1, [2, {"b": 3, "a": 4}], None),
    {"z": 1, "a": {"k": (2, 3)}, "m": [None, 4]},
    Point(1, (2, 3)),
    Typed([1], {"a": 2}),
    OrderedDict([("z", 1), ("a", 2)]),
    defaultdict(int, {"z": 1, "a": [2]}),
    {3: "x", 1: "y"},
    [[], {}, (), None],
]


@pytest.mark.parametrize("value", TREES, ids=repr)
def test_leaves_come_in_the_order_of_jax(value: Any) -> None:
    assert tree.leaves(value) == jax.tree.leaves(value)


@pytest.mark.parametrize("value", TREES, ids=repr)
def test_unflatten_undoes_flatten(value: Any) -> None:
    leaves, treedef = tree.flatten(value)
    again = tree.unflatten(treedef, leaves)
    assert again == value
    assert type(again) is type(value)
    assert treedef.num_leaves == len(leaves)


@pytest.mark.parametrize("value", TREES, ids=repr)
def test_structures_survive_pickling_and_hash_by_value(value: Any) -> None:
    treedef = tree.structure(value)
    again = pickle.loads(pickle.dumps(treedef))
    assert again == treedef
    assert hash(again) == hash(treedef)


def test_structures_of_different_trees_differ_and_of_equal_trees_are_equal() -> None:
    for i, one in enumerate(TREES):
        for j, other in enumerate(TREES):
            equal = tree.structure(one) == tree.structure(other)
            assert equal == (i == j), (one, other)


def test_none_is_an_empty_node_unless_is_leaf_says_otherwise() -> None:
    assert tree.leaves([None, 1, (None,)]) == [1]
    assert tree.leaves([None, 1, (None,)], is_leaf=lambda x: x is None) == [None, 1, None]
    assert tree.map(lambda x: x + 1, (1, None)) == (2, None)


def test_the_order_of_dict_entries_does_not_matter() -> None:
    one, other = {"a": 1, "b": 2}, {"b": 2, "a": 1}
    assert tree.structure(one) == tree.structure(other)
    assert tree.leaves(one) == tree.leaves(other) == [1, 2]
    assert tree.map(operator.sub, one, other) == {"a": 0, "b": 0}


def test_the_order_of_ordered_dict_entries_matters() -> None:
    one, other = OrderedDict(a=1, b=2), OrderedDict(b=2, a=1)
    assert tree.structure(one) != tree.structure(other)


def test_keys_without_an_order_are_matched_by_key() -> None:
    class Key:
        pass

    first, second = Key(), Key()
    result = tree.map(operator.sub, {first: 5, second: 7}, {second: 7, first: 5})
    assert result == {first: 0, second: 0}


def test_subclasses_of_containers_are_leaves() -> None:
    class MyList(list):
        pass

    assert len(tree.leaves(MyList([1, 2]))) == 1


def test_strings_are_leaves() -> None:
    assert tree.leaves(["ab", ("c",)]) == ["ab", "c"]


def test_map_takes_subtrees_where_the_first_tree_has_leaves() -> None:
    assert tree.map(lambda x, y: (x, y), {"a": 1}, {"a": [2, 3]}) == {"a": (1, [2, 3])}


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ({"w": (1, 2)}, {"w": [1, 2, 3]}, "['w'] is a list of 3, expected a tuple of 2"),
        ({"w": [1, 2]}, {"w": [1]}, "['w'] is a list of 1, expected a list of 2"),
        ({"a": 1, "b": 2}, {"a": 1}, "the tree lacks 'b'"),
        ([{"a": 1}], [{"a": 1, "c": 2}], "[0] has an unexpected 'c'"),
        ((1, None), (1, 2), "[1] is a leaf, expected None"),
        (Point(1, (2,)), Point(1, 2), ".y is a leaf, expected a tuple of 1"),
        ((1, 2), Point(1, 2), "the tree is a Point, expected a tuple of 2"),
        ([()], [(1,)], "[0] is a tuple of 1, expected an empty tuple"),
    ],
)
def test_a_mismatch_names_the_place_and_both_kinds(first: Any, second: Any, message: str) -> None:
    with pytest.raises(tree.StructureMismatch, match=re.escape(message)):
        tree.map(lambda *_: None, first, second)


def test_a_mismatch_says_which_tree_of_several_differs() -> None:
    with pytest.raises(ValueError, match="tree 3 does not fit tree 1"):
        tree.map(lambda *_: None, [1], [2], (3,))


def test_errors_of_the_mapped_function_pass_through() -> None:
    with pytest.raises(ZeroDivisionError):
        tree.map(lambda x: 1 / x, [0])


def test_unflatten_refuses_a_wrong_number_of_leaves() -> None:
    treedef = tree.structure([0, 0])
    with pytest.raises(ValueError, match="Too few leaves"):
        tree.unflatten(treedef, [1])
    with pytest.raises(ValueError, match="Too many leaves"):
        tree.unflatten(treedef, [1, 2, 3])


def test_reduce_agrees_with_jax() -> None:
    value = {"a": "x", "b": ("y", "z")}
    assert tree.reduce(operator.add, value) == jax.tree.reduce(operator.add, value) == "xyz"
    assert tree.reduce(operator.add, value, "0") == "0xyz"
    assert tree.reduce(operator.add, [], 7) == 7
    with pytest.raises(TypeError):
        tree.reduce(operator.add, [])


@given(st.lists(st.text(max_size=2), min_size=1, max_size=20))
def test_reduce_associative_keeps_the_order(items: list[str]) -> None:
    assert tree.reduce_associative(operator.add, items) == "".join(items)


def test_reduce_associative_of_nothing_needs_an_identity() -> None:
    assert tree.reduce_associative(operator.add, (), identity=3) == 3
    with pytest.raises(TypeError, match="identity"):
        tree.reduce_associative(operator.add, ())


def test_all_and_any() -> None:
    assert tree.all([]) is True
    assert tree.any([]) is False
    assert tree.all({"a": 1, "b": 0}) is False
    assert tree.any({"a": 1, "b": 0}) is True


def test_transpose_agrees_with_jax() -> None:
    value = {"x": [1, (2, 3)], "y": [4, (5, 6)]}
    outer, inner = {"x": 0, "y": 0}, [0, (0, 0)]
    ours = tree.transpose(tree.structure(outer), tree.structure(inner), value)
    theirs = jax.tree.transpose(jax.tree.structure(outer), jax.tree.structure(inner), value)
    assert ours == theirs == [{"x": 1, "y": 4}, ({"x": 2, "y": 5}, {"x": 3, "y": 6})]
    assert tree.transpose(tree.structure(outer), None, value) == ours


def test_transpose_names_the_place_that_does_not_fit() -> None:
    with pytest.raises(tree.StructureMismatch, match=r"\[1\] is a leaf"):
        tree.transpose(tree.structure([0]), tree.structure([0, (0,)]), [[1, 2]])
    with pytest.raises(tree.StructureMismatch, match="a tuple of 1, expected a list of 1"):
        tree.transpose(tree.structure([0]), tree.structure([0, (0,)]), ([1, (2,)],))


def test_deep_trees_are_refused_cleanly() -> None:
    deep: Any = 0
    for _ in range(5000):
        deep = [deep]
    with pytest.raises(RecursionError):
        tree.flatten(deep)


def test_trees_of_other_users_of_optree_are_unseen() -> None:
    class Foreign:
        pass

    optree.register_pytree_node(
        Foreign, lambda _: ((1, 2), None), lambda *_: Foreign(), namespace="elsewhere"
    )
    assert len(tree.leaves(Foreign())) == 1


def test_treedef_helpers_agree_with_jax() -> None:
    for value in TREES:
        ours, theirs = tree.structure(value), jax.tree.structure(value)
        assert tree.treedef_is_leaf(ours) == jax.tree_util.treedef_is_leaf(theirs)
        children = tree.treedef_children(ours)
        assert [child.num_leaves for child in children] == [
            child.num_leaves for child in theirs.children()
        ]
        assert tree.treedef_tuple([ours, ours]) == tree.structure((value, value))


def test_flatten_one_level_and_is_tree_node() -> None:
    children, treedef = tree.flatten_one_level({"a": [1, 2], "b": 3})
    assert children == [[1, 2], 3]
    assert treedef == tree.structure({"a": 0, "b": 0})
    for kind in (dict, list, tuple, Point, type(None), collections.deque, tree.Partial):
        assert tree.is_tree_node(kind)
    assert not tree.is_tree_node(str)


nested = st.recursive(
    st.none() | st.integers(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text(max_size=2), inner, max_size=3)
    ),
    max_leaves=15,
)


@given(nested)
def test_any_tree_goes_round_and_agrees_with_jax(value: Any) -> None:
    leaves, treedef = tree.flatten(value)
    assert leaves == jax.tree.leaves(value)
    assert tree.unflatten(treedef, leaves) == value
    paths = [tree.keystr(path) for path, _ in tree.leaves_with_path(value)]
    assert paths == [
        jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_leaves_with_path(value)
    ]


@given(nested, nested)
def test_difference_is_empty_exactly_when_structures_are_equal(one: Any, other: Any) -> None:
    equal = tree.structure(one) == tree.structure(other)
    assert (tree.difference(one, other) == []) == equal
    assert (tree.explain_difference(tree.structure(one), tree.structure(other)) == "") == equal


def test_the_tree_package_imports_nothing_else_of_fxarray() -> None:
    program = (
        "import sys, types, pathlib, importlib.util as u\n"
        "root = u.find_spec('fxarray').submodule_search_locations\n"
        "package = types.ModuleType('fxarray'); package.__path__ = root\n"
        "sys.modules['fxarray'] = package\n"
        "import fxarray.tree\n"
        "print([m for m in sys.modules if m.startswith('fxarray.')\n"
        "       and not m.startswith('fxarray.tree')])\n"
    )
    output = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert output.stdout.strip() == "[]"
