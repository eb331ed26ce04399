"""Registered classes: children, keys, static data, rebuilding with any children."""

import dataclasses
import functools
import pickle
from dataclasses import dataclass
from typing import Any

import jax
import pytest

from fxarray import tree


class Pair:
    def __init__(self, left: Any, right: Any, label: str = "") -> None:
        self.left, self.right, self.label = left, right, label


tree.register_pytree_with_keys(
    Pair,
    lambda p: (((tree.GetAttrKey("left"), p.left), ("right!", p.right)), p.label),
    lambda label, children: Pair(*children, label),
)


def test_keys_given_at_registration_are_used() -> None:
    paths = [path for path, _ in tree.leaves_with_path([Pair(1, (2,))])]
    assert [tree.keystr(path) for path in paths] == ["[0].left", "[0]right![0]"]
    assert paths[1] == (tree.SequenceKey(0), "right!", tree.SequenceKey(0))


def test_static_data_is_part_of_the_structure() -> None:
    assert tree.structure(Pair(1, 2, "a")) == tree.structure(Pair(3, 4, "a"))
    assert tree.structure(Pair(1, 2, "a")) != tree.structure(Pair(1, 2, "b"))
    with pytest.raises(tree.StructureMismatch, match="is a Pair with 'b', expected 'a'"):
        tree.map(lambda *_: None, Pair(1, 2, "a"), Pair(1, 2, "b"))


def test_children_without_keys_are_numbered() -> None:
    class Bag:
        def __init__(self, *items: Any) -> None:
            self.items = items

    tree.register_pytree_node(Bag, lambda b: (b.items, None), lambda _, items: Bag(*items))
    assert tree.keystr(tree.leaves_with_path(Bag(7))[0][0]) == "[<flat index 0>]"


def test_register_pytree_node_takes_a_function_with_keys() -> None:
    class Box:
        def __init__(self, item: Any) -> None:
            self.item = item

    tree.register_pytree_node(
        Box,
        lambda b: ((b.item,), None),
        lambda _, items: Box(*items),
        lambda b: (((tree.DictKey("item"), b.item),), None),
    )
    assert tree.leaves_with_path(Box(7)) == [((tree.DictKey("item"),), 7)]


def test_classes_with_methods_are_registered_by_decorator() -> None:
    @tree.register_pytree_with_keys_class
    class Named:
        def __init__(self, value: Any) -> None:
            self.value = value

        def tree_flatten_with_keys(self) -> Any:
            return ((tree.GetAttrKey("value"), self.value),), None

        @classmethod
        def tree_unflatten(cls, _: None, children: Any) -> "Named":
            return cls(*children)

    assert tree.map(lambda x: x + 1, Named(1)).value == 2
    assert tree.keystr(tree.leaves_with_path(Named(1))[0][0]) == ".value"


def test_a_class_is_registered_once() -> None:
    with pytest.raises(ValueError, match="registered as a node of trees already"):
        tree.register_pytree_node(Pair, lambda _: ((), None), lambda *_: None)
    with pytest.raises(ValueError, match="by itself"):
        tree.register_pytree_node(dict, lambda _: ((), None), lambda *_: None)


def test_a_class_defined_again_is_another_class() -> None:
    def define() -> Any:
        @tree.register_dataclass
        @dataclass
        class Layer:
            weight: Any

        return Layer(1)

    assert tree.difference([define()], [define()]) == [
        "[0] is a Layer of another class of that name; was the class defined again?"
    ]


def test_errors_of_a_class_pass_through_a_map() -> None:
    class Broken:
        pass

    def fail(_: Any) -> Any:
        raise KeyError("from the class")

    tree.register_pytree_node(Broken, fail, lambda *_: Broken())
    with pytest.raises(KeyError, match="from the class"):
        tree.map(lambda *_: None, [1], [Broken()]) and tree.leaves(Broken())


def test_static_classes_have_no_leaves_and_compare_by_value() -> None:
    @tree.register_static
    @dataclass(frozen=True)
    class Options:
        size: int

    assert tree.leaves([Options(1), 2]) == [2]
    assert tree.structure(Options(1)) == tree.structure(Options(1)) != tree.structure(Options(2))
    assert tree.map(lambda x: x + 1, [Options(1), 2]) == [Options(1), 3]


def test_static_classes_must_hash() -> None:
    @dataclass
    class Mutable:
        size: int

    with pytest.raises(TypeError, match="__hash__"):
        tree.register_static(Mutable)


# --- dataclasses --------------------------------------------------------------------------------


@tree.register_dataclass
@dataclass
class Layer:
    weight: Any
    bias: Any = None
    name: str = tree.static(default="layer")


@dataclass(frozen=True, slots=True)
class Slotted:
    first: Any
    second: Any
    mode: str


tree.register_dataclass(Slotted, ["first", "second"], ["mode"])


def test_dataclass_fields_are_children_and_static_fields_are_structure() -> None:
    layer = Layer(1, (2, 3))
    assert tree.leaves(layer) == [1, 2, 3]
    assert tree.map(lambda x: x * 2, layer) == Layer(2, (4, 6))
    assert tree.structure(layer) != tree.structure(Layer(1, (2, 3), "other"))
    assert [tree.keystr(path) for path, _ in tree.leaves_with_path(layer)] == [
        ".weight",
        ".bias[0]",
        ".bias[1]",
    ]


def test_frozen_dataclasses_with_slots_can_be_rebuilt() -> None:
    value = Slotted(1, [2], "m")
    assert tree.map(lambda x: x + 1, value) == Slotted(2, [3], "m")
    assert tree.keystr(tree.leaves_with_path(value)[1][0]) == ".second[0]"


def test_rebuilding_takes_any_objects_as_children() -> None:
    marker = object()
    treedef = tree.structure([Layer(1, 2), Slotted(1, 2, "m")])
    layer, slotted = tree.unflatten(treedef, [marker] * 4)
    assert layer.weight is layer.bias is slotted.first is slotted.second is marker


def test_plain_dataclasses_are_rebuilt_without_init() -> None:
    class Forbidden(Exception):
        pass

    @tree.register_dataclass
    @dataclass
    class Quiet:
        value: Any

    quiet = Quiet(1)
    original = Quiet.__init__

    def refuse(*_: Any) -> None:
        raise Forbidden

    Quiet.__init__ = refuse  # type: ignore[method-assign]
    assert tree.map(lambda x: x + 1, quiet).value == 2
    Quiet.__init__ = original  # type: ignore[method-assign]


def test_what_init_computes_is_computed_again() -> None:
    @tree.register_dataclass
    @dataclass
    class Derived:
        value: Any
        double: Any = dataclasses.field(init=False)

        def __post_init__(self) -> None:
            self.double = [self.value, self.value]

    assert tree.leaves(Derived(3)) == [3]
    assert tree.map(lambda x: x + 1, Derived(3)).double == [4, 4]


def test_dropped_fields_get_their_defaults() -> None:
    @dataclass
    class Cached:
        value: Any
        cache: Any = None

    tree.register_dataclass(Cached, ["value"], [], drop_fields=["cache"])
    assert tree.map(lambda x: x + 1, Cached(1, "old")) == Cached(2, None)


def test_wrong_field_names_are_refused() -> None:
    @dataclass
    class Two:
        a: Any
        b: Any

    with pytest.raises(ValueError, match=r"none of .*: b"):
        tree.register_dataclass(Two, ["a"], [])
    with pytest.raises(ValueError, match="no such fields: c"):
        tree.register_dataclass(Two, ["a", "b", "c"], [])
    with pytest.raises(ValueError, match="named twice"):
        tree.register_dataclass(Two, ["a", "b"], ["b"])
    with pytest.raises(TypeError, match="both"):
        tree.register_dataclass(Two, ["a", "b"])
    with pytest.raises(TypeError, match="is no dataclass"):
        tree.register_dataclass(int)
    tree.register_dataclass(Two, data_fields=["a"], meta_fields=["b"])
    assert tree.leaves(Two(1, "s")) == [1]


# --- partial ------------------------------------------------------------------------------------


def test_partial_arguments_are_children_and_the_function_is_structure() -> None:
    partial = tree.Partial(pow, 2, mod=5)
    assert tree.leaves(partial) == [2, 5]
    assert tree.map(lambda x: x + 1, partial)(2) == pow(3, 2, 6)
    assert tree.structure(partial) == tree.structure(tree.Partial(pow, 7, mod=9))
    assert tree.structure(partial) != tree.structure(tree.Partial(max, 7, mod=9))
    ours = [tree.keystr(path) for path, _ in tree.leaves_with_path(partial)]
    theirs = jax.tree_util.tree_leaves_with_path(jax.tree_util.Partial(pow, 2, mod=5))
    assert len(ours) == len(theirs)
    assert ours == [".args[0]", ".keywords['mod']"]


def test_partial_of_functools_partial_keeps_its_arguments_static() -> None:
    inner = functools.partial(pow, 2)
    outer = tree.Partial(inner, 3)
    assert tree.leaves(outer) == [3]
    assert outer() == 8
    assert tree.structure(outer) == tree.structure(tree.Partial(inner, 4))


def test_partial_of_partial_has_all_arguments_as_children() -> None:
    assert tree.leaves(tree.Partial(tree.Partial(pow, 2), 3)) == [2, 3]


def test_partial_survives_pickling() -> None:
    assert pickle.loads(pickle.dumps(tree.Partial(pow, 2)))(3) == 8
