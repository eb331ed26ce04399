"""Modules: what is a child, what is structure, how they are made, changed, printed and rebuilt."""

from __future__ import annotations

import copy
import dataclasses
import enum
import functools
import gc
import pickle
import re
import typing
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Generic, Literal, Optional, TypeVar, Union

import ml_dtypes
import numpy as np
import pytest

from fxarray import tree
from fxarray.core.errors import ArgumentError, ImmutableModuleError, StaticArgumentError
from fxarray.nn.module import Module, field, static_field
from fxarray.nn.static_fields import is_static_annotation

T = TypeVar("T")


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


def array(*shape: int) -> np.ndarray:
    return np.zeros(shape, np.float32)


class Linear(Module):
    weight: Any
    bias: Any = None
    activation: Callable[[Any], Any] = np.tanh

    def __call__(self, x: Any) -> Any:
        return self.activation(self.weight * x)


class Attention(Module):
    query: Linear
    key: Linear
    heads: int
    causal: bool = True


# What annotations may name; `Imaginary` is missing, as is what is imported for type checkers alone.
SCOPE = {
    "Any": Any,
    "Callable": Callable,
    "Colour": Colour,
    "Linear": Linear,
    "Literal": Literal,
    "Optional": Optional,
    "Union": Union,
    "np": np,
    "typing": typing,
}


def attention(heads: int = 2) -> Attention:
    return Attention(Linear(1.0), Linear(2.0, 3.0), heads)


# --- children and structure ---------------------------------------------------------------------


def test_arrays_and_modules_are_children_and_settings_are_structure() -> None:
    model = attention()
    assert tree.leaves(model) == [1.0, 2.0, 3.0]
    assert [tree.keystr(path) for path, _ in tree.leaves_with_path(model)] == [
        ".query.weight",
        ".key.weight",
        ".key.bias",
    ]
    doubled = tree.map(lambda leaf: leaf * 2, model)
    assert type(doubled) is Attention
    assert (doubled.query.weight, doubled.key.bias, doubled.heads) == (2.0, 6.0, 2)
    assert tree.structure(model) == tree.structure(attention())
    assert tree.structure(model) != tree.structure(attention(heads=4))


@pytest.mark.parametrize(
    ("annotation", "static"),
    [
        ("int", True),
        ("float", True),
        ("bool", True),
        ("str", True),
        ("Callable", True),
        ("Callable[[Any], Any]", True),
        ("typing.Callable[[Any], Any]", True),
        ("Colour", True),
        ("np.dtype", True),
        ("np.dtype[Any]", True),
        ("np.typing.DTypeLike", True),
        ("int | None", True),
        ("Optional[int]", True),
        ("Union[int, str]", True),
        ("Optional[Callable[[Imaginary], Any]]", True),
        ("Callable[[Imaginary], Any] | None", True),
        ("tuple[int, ...]", True),
        ("tuple[int, Colour]", True),
        ("Literal['a', 'b']", True),
        ("type[Linear]", True),
        ("typing.Annotated[int, 'heads']", True),
        ("Any", False),
        ("np.ndarray", False),
        ("np.float64", False),
        ("int | np.ndarray", False),
        ("Optional[np.ndarray]", False),
        ("list[int]", False),
        ("tuple[np.ndarray, int]", False),
        ("tuple", False),
        ("dict[str, int]", False),
        ("Linear", False),
        ("Imaginary", False),
        ("Imaginary[int]", False),
        ("Imaginary | int", False),
        ("'Linear'", False),
        ("'int'", True),
        ("None", False),
    ],
)
def test_annotations_decide(annotation: str, static: bool) -> None:
    assert is_static_annotation(annotation, SCOPE) == static
    if "Imaginary" not in annotation:  # the same as objects, without postponed evaluation
        value = eval(annotation, {}, SCOPE)
        if value is not None:
            assert is_static_annotation(value, SCOPE) == static


def test_annotations_may_name_what_is_local_to_a_function() -> None:
    class Mode(enum.Enum):
        FAST = 1

    class Local(Module):
        mode: Mode
        value: Any

    assert tree.leaves(Local(Mode.FAST, 1)) == [1]


def test_field_overrides_the_annotation() -> None:
    class Overridden(Module):
        temperature: float = field(static=False)
        names: Any = static_field(default=("a", "b"))
        shift: int = field(static=False, default=3)

    value = Overridden(0.5)
    assert tree.leaves(value) == [0.5, 3]
    assert tree.structure(value) != tree.structure(value.replace(names=("c",)))


def test_class_variables_are_no_fields() -> None:
    class Counted(Module):
        kind: ClassVar[str] = "counted"
        value: Any

    assert tree.leaves(Counted(1)) == [1]
    assert Counted.kind == "counted"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, 1.0),
        (1, True),
        (0.0, -0.0),
        ((1, 2), (1.0, 2.0)),
        ((1, (True,)), (1, (1,))),
        (np.float32(1), np.float64(1)),
        ("1", 1),
        (None, False),
        (Colour.RED, Colour.BLUE),
        (np.tanh, np.sin),
        (np.dtype("float32"), np.dtype(ml_dtypes.bfloat16)),
        (functools.partial(pow, 2), functools.partial(pow, 3)),
    ],
)
def test_static_values_that_differ_make_different_structures(one: Any, other: Any) -> None:
    class Setting(Module):
        value: Any = static_field()

    assert tree.structure(Setting(one)) != tree.structure(Setting(other))


@pytest.mark.parametrize(
    "make",
    [
        lambda: 1.5,
        lambda: float("nan"),
        lambda: (1, ("a", None)),
        lambda: functools.partial(pow, 2, mod=3),
        lambda: np.float32(2),
        lambda: np.dtype("int8"),
        lambda: frozenset({1, 2}),
        lambda: Setting0(3),
    ],
)
def test_equal_static_values_make_equal_structures(make: Callable[[], Any]) -> None:
    class Setting(Module):
        value: Any = static_field()

    one, other = tree.structure(Setting(make())), tree.structure(Setting(make()))
    assert one == other
    assert hash(one) == hash(other)


class Setting0(Module):
    """A Module without leaves, which may itself be a static value."""

    value: int


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (array(3, 4), "holds an array f32[3,4]"),
        ((1, array(2)), "holds an array f32[2]"),
        (Linear(array(2)), "holds an array f32[2]"),
        (Linear(array(2)).__call__, "holds an array f32[2]"),
        (functools.partial(pow, array(2)), "holds an array f32[2]"),
        (np.zeros(2, "M8[s]"), "holds an array datetime64[s][2]"),
        ([1, 2], "cannot be a list, which may change. Use a tuple"),
        ({"a": 1}, "cannot be a dict, which may change. Use a tuple of pairs"),
        (({1},), "cannot be hashed"),
    ],
)
def test_static_fields_refuse_arrays_and_what_can_change(value: Any, message: str) -> None:
    class Setting(Module):
        value: Any = static_field()

    with pytest.raises(StaticArgumentError, match=r"Setting\.value.*" + re.escape(message)):
        Setting(value)


def test_static_fields_refuse_mutable_objects_that_compare_by_identity() -> None:
    class Counter:
        def __init__(self) -> None:
            self.count = 0

    class Setting(Module):
        value: Any = static_field()

    with pytest.raises(StaticArgumentError, match=r"Setting\.value .*__eq__ and __hash__"):
        Setting(Counter())


def test_metadata_lives_no_longer_than_its_modules() -> None:
    from fxarray.nn import metadata

    class Setting(Module):
        value: Any = static_field()

    before = len(metadata._known)
    settings = [Setting(i) for i in range(10)]
    assert len(metadata._known) == before + 10
    del settings
    gc.collect()
    assert len(metadata._known) == before


# --- making -------------------------------------------------------------------------------------


def test_generated_init_takes_fields_in_order_and_by_name() -> None:
    model = Linear(1, activation=np.sin)
    assert (model.weight, model.bias, model.activation) == (1, None, np.sin)
    with pytest.raises(TypeError, match="weight"):
        Linear()  # type: ignore[call-arg]


def test_own_init_assigns_to_self() -> None:
    class Dense(Module):
        weight: Any
        size: int
        scale: float = 2.0
        names: list[str] = field(default_factory=lambda: ["x"])

        def __init__(self, size: int, *, value: float = 0.5) -> None:
            self.size = size
            self.weight = [value] * size

    dense = Dense(3, value=1.5)
    assert (dense.size, dense.weight, dense.scale, dense.names) == (3, [1.5] * 3, 2.0, ["x"])
    assert tree.leaves(dense) == [1.5, 1.5, 1.5, "x"]
    assert tree.map(lambda x: x, dense).scale == 2.0


def test_an_init_that_forgets_a_field_is_told_so() -> None:
    class Forgetful(Module):
        weight: Any
        bias: Any

        def __init__(self) -> None:
            self.weight = 1

    with pytest.raises(ArgumentError, match=r"Forgetful\.__init__ did not assign bias"):
        Forgetful()


def test_only_declared_fields_can_be_assigned() -> None:
    class Typo(Module):
        weight: Any

        def __init__(self) -> None:
            self.wieght = 1  # type: ignore[attr-defined]

    with pytest.raises(AttributeError, match="no field 'wieght'; did you mean 'weight'"):
        Typo()


def test_post_init_may_check_and_assign() -> None:
    class Checked(Module):
        size: int
        weight: Any = None

        def __post_init__(self) -> None:
            if self.weight is None:
                self.weight = [0] * self.size

    assert Checked(2).weight == [0, 0]
    assert tree.map(lambda x: x + 1, Checked(2)).weight == [1, 1]


def test_using_a_module_before_it_is_complete_is_refused() -> None:
    class Eager(Module):
        weight: Any

        def __init__(self) -> None:
            self.weight = 1
            tree.leaves(self)

    with pytest.raises(ArgumentError, match="Eager was used as a tree before its __init__"):
        Eager()


def test_subclasses_extend_fields_and_register_themselves() -> None:
    class Wide(Linear):
        width: int = 4
        extra: Any = None

    wide = Wide(1, 2, extra=3)
    assert tree.leaves(wide) == [1, 2, 3]
    assert tree.structure(wide) != tree.structure(wide.replace(width=5))
    assert type(tree.map(lambda x: x, wide)) is Wide


def test_an_own_init_is_inherited_and_can_be_extended() -> None:
    class Base(Module):
        weight: Any

        def __init__(self, weight: Any) -> None:
            self.weight = weight

    class Same(Base):
        note: str = "none"

    class More(Base):
        bias: Any

        def __init__(self, weight: Any, bias: Any) -> None:
            super().__init__(weight)
            self.bias = bias

    assert (Same(3).weight, Same(3).note) == (3, "none")
    assert tree.leaves(More(3, 4)) == [3, 4]


def test_keyword_only_classes() -> None:
    class Options(Module, kw_only=True):
        first: Any = 1
        second: Any

    assert tree.leaves(Options(second=2)) == [1, 2]
    with pytest.raises(TypeError):
        Options(1, 2)  # type: ignore[misc]


def test_abstract_and_generic_modules() -> None:
    class Shape(Module, ABC):
        size: Any

        @abstractmethod
        def area(self) -> Any: ...

    class Square(Shape):
        def area(self) -> Any:
            return self.size**2

    class Box(Module, Generic[T]):
        item: T

    with pytest.raises(TypeError, match="abstract"):
        Shape(1)  # type: ignore[abstract]
    assert tree.map(lambda x: x + 1, Square(2)).area() == 9
    assert tree.leaves(Box[int](5)) == [5]


# --- frozen -------------------------------------------------------------------------------------


def test_modules_are_frozen_and_the_error_names_replace() -> None:
    model = attention()
    with pytest.raises(ImmutableModuleError, match=r"model\.replace\(heads=\.\.\.\)"):
        model.heads = 3
    with pytest.raises(dataclasses.FrozenInstanceError):
        tree.map(lambda x: x, model).query.weight = 3
    with pytest.raises(AttributeError, match="cannot be deleted"):
        del model.heads


def test_replace_changes_a_copy() -> None:
    model = attention()
    changed = model.replace(heads=8, query=Linear(9.0))
    assert (changed.heads, changed.query.weight, changed.causal) == (8, 9.0, True)
    assert (model.heads, model.query.weight) == (2, 1.0)
    assert tree.structure(changed) == tree.structure(attention(heads=8))
    with pytest.raises(ArgumentError, match="no field 'head'; did you mean 'heads'"):
        model.replace(head=3)
    with pytest.raises(StaticArgumentError, match=r"Attention\.heads .*array f32\[2\]"):
        model.replace(heads=array(2))


def test_replace_works_with_an_own_init() -> None:
    class Dense(Module):
        weight: Any

        def __init__(self, size: int) -> None:
            self.weight = [0.0] * size

    assert Dense(2).replace(weight=7).weight == 7


# --- rebuilding ---------------------------------------------------------------------------------


def test_rebuilding_calls_no_init_and_takes_any_objects() -> None:
    calls = []

    class Noisy(Module):
        weight: Any
        size: int

        def __init__(self, weight: Any, size: int) -> None:
            calls.append(1)
            self.weight, self.size = weight, size

        def __post_init__(self) -> None:
            calls.append(2)

    treedef = tree.structure(Noisy(1, 2))
    marker = object()
    rebuilt = tree.unflatten(treedef, [marker])
    assert rebuilt.weight is marker
    assert rebuilt.size == 2
    assert calls == [1]
    assert tree.structure(rebuilt) == treedef


def test_modules_and_structures_can_be_pickled_and_copied() -> None:
    model = attention()
    for again in (pickle.loads(pickle.dumps(model)), copy.copy(model), copy.deepcopy(model)):
        assert tree.structure(again) == tree.structure(model)
        assert tree.leaves(again) == tree.leaves(model)
        with pytest.raises(ImmutableModuleError):
            again.heads = 1
    treedef = tree.structure(model)
    assert pickle.loads(pickle.dumps(treedef)) == treedef


def test_a_method_is_a_tree_as_a_partial() -> None:
    method = tree.Partial(Linear(2.0).__call__)
    assert tree.leaves(method) == [2.0]
    assert method(0.25) == np.tanh(0.5)
    assert tree.map(lambda w: w * 2, method)(0.25) == np.tanh(1.0)


def test_a_structural_difference_names_the_static_values() -> None:
    sentences = tree.difference([attention(2)], [attention(4)])
    assert sentences == [
        "[0] is an Attention with heads=4, causal=True, expected heads=2, causal=True"
    ]


# --- printing -----------------------------------------------------------------------------------


def test_short_modules_print_on_a_line_with_types_of_arrays() -> None:
    model = Linear(array(3, 4), None)
    assert repr(model) == "Linear(weight=f32[3,4], bias=None, activation=tanh)"
    assert repr(Linear((np.zeros(2, ml_dtypes.bfloat16),))) == (
        "Linear(weight=(bf16[2],), bias=None, activation=tanh)"
    )


def test_long_modules_print_nested() -> None:
    class Model(Module):
        layers: list[Linear]
        table: dict[str, Any]
        name: str
        hidden: int = field(repr=False, default=0)

    model = Model([Linear(array(3, 4), array(4)), Linear(array(4, 1))], {"embed": array(9, 3)}, "m")
    assert repr(model) == (
        "Model(\n"
        "  layers=[\n"
        "    Linear(weight=f32[3,4], bias=f32[4], activation=tanh),\n"
        "    Linear(weight=f32[4,1], bias=None, activation=tanh),\n"
        "  ],\n"
        "  table={'embed': f32[9,3]},\n"
        "  name='m',\n"
        ")"
    )
