"""What is an array, what is static, and how both pass through transforms."""

import enum
import functools
import types
from dataclasses import dataclass

import numpy as np
import pytest

import fxarray
import fxarray.numpy as fnp
from fxarray.core.errors import StaticArgumentError
from fxarray.core.primitive import canonical_key
from fxarray.transforms.arguments import flatten_arguments, flatten_tree, mark_static
from fxarray.transforms.statics import Static, is_array_like, static_key


class Color(enum.Enum):
    RED = 1


class Level(enum.IntEnum):
    LOW = 1


@dataclass(frozen=True)
class Config:
    size: int
    key: str = "k"


@dataclass
class Unhashable:
    size: int


class Mutable:
    def __init__(self):
        self.scale = 2.0


class Slotted:
    __slots__ = ("scale",)


class CallableWithState:
    def __init__(self):
        self.calls = 0

    def __call__(self, x):
        return x


STATICS = [
    "relu",
    b"bytes",
    len,
    np.sin,
    Config(3),
    Config,
    Color.RED,
    Level.LOW,
    types,
    np.dtype("float32"),
    np.float32,
    ...,
    slice(1, 2),
    functools.partial(len),
    object(),
    range(3),
    np.str_("text"),
]


@pytest.mark.parametrize("value", STATICS)
def test_values_that_are_no_arrays_are_static(value):
    assert not is_array_like(value)
    arrays, structure = flatten_tree({"s": value, "x": 1.0})
    assert len(arrays) == 1
    assert structure.unflatten(arrays)["s"] is value
    assert isinstance(hash(structure), int)


@pytest.mark.parametrize(
    "value", [1, 1.5, 1j, True, np.float32(1), np.int8(2), np.bool_(True), np.ones(3)], ids=repr
)
def test_numbers_and_numeric_numpy_arrays_are_arrays(value):
    assert is_array_like(value)
    (array,), _ = flatten_tree(value)
    assert isinstance(array, fxarray.Array)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (Mutable(), "by identity"),
        (Slotted(), "by identity"),
        (CallableWithState(), "by identity"),
        (Unhashable(3), "cannot be hashed"),
        (np.array([object()]), "dtype object"),
        (np.array(["a"]), "dtype <U1"),
        ({1, 2}, "cannot be hashed"),
    ],
    ids=["mutable", "slots", "callable", "unhashable", "objects", "strings", "set"],
)
def test_what_could_go_stale_is_refused_with_the_name_of_the_argument(value, words):
    def loss(x, config):
        return x

    with pytest.raises(StaticArgumentError, match=words) as error:
        flatten_arguments((1.0, {"a": [value]}), None, loss)
    assert "argument config['a'][0] of loss" in str(error.value)


def test_a_refused_keyword_argument_is_named():
    with pytest.raises(StaticArgumentError, match=r"argument model\[0\] of <lambda>"):
        fxarray.vmap(lambda x, model: x)(fnp.ones(2), model=[Mutable()])


def test_structures_tell_apart_what_python_confuses():
    keys = [
        flatten_arguments((Static(value),)).structure
        for value in (1, 1.0, True, -0.0, 0.0, "1", (1,), [1], np.int32(1), np.int64(1))
    ]
    assert len(set(keys)) == len(keys)


def test_structures_of_equal_statics_are_equal():
    first = flatten_arguments((1.0, Config(3), "a", slice(1, 2)), {"f": len}).structure
    second = flatten_arguments((2.0, Config(3), "a", slice(1, 2)), {"f": len}).structure
    assert first == second
    assert hash(first) == hash(second)
    assert first != flatten_arguments((1.0, Config(4), "a", slice(1, 2)), {"f": len}).structure


def test_a_field_called_key_is_not_mistaken_for_the_whole_value():
    assert static_key(Config(1, "k")) != static_key(Config(2, "k"))


def test_parameters_of_operations_are_not_known_by_a_field_called_key():
    assert canonical_key(Config(1, "k")) != canonical_key(Config(2, "k"))


def test_nan_and_containers_have_keys_by_value():
    assert static_key(float("nan")) == static_key(float("nan"))
    assert static_key({"a": [1, np.ones(2)]}) == static_key({"a": [1, np.ones(2)]})
    assert static_key({"a": [1, np.ones(2)]}) != static_key({"a": [1, np.zeros(2)]})


def test_partials_over_arrays_are_told_apart_by_identity():
    one = functools.partial(np.add, fnp.ones(2))
    other = functools.partial(np.add, fnp.ones(2))
    assert static_key(one) == static_key(one)
    assert static_key(one) != static_key(other)


def test_marked_statics_are_unwrapped_for_the_function():
    args, kwargs = mark_static((1.0, [1, 2]), {"mode": {"a": 1}}, (1,), ("mode",))
    flat = flatten_arguments(args, kwargs)
    assert len(flat.arrays) == 1
    assert flat.restore(["x"]) == (("x", [1, 2]), {"mode": {"a": 1}})


def test_an_unhashable_static_argument_is_named():
    def f(x, y):
        return x

    with pytest.raises(StaticArgumentError, match="static argument y of f"):
        mark_static((1.0, {1, 2}), {}, (1,), (), f)


def test_names_of_arguments_follow_the_signature():
    def f(params, *rest, scale, **options):
        return params

    args = ({"w": [1.0, 2.0]}, 3.0, 4.0)
    names = flatten_arguments(args, {"scale": 5.0, "tail": (6.0, "s")}, f).names()
    assert names == ["params['w'][0]", "params['w'][1]", "rest[0]", "rest[1]", "scale", "tail[0]"]


@pytest.mark.parametrize("value", STATICS)
def test_statics_pass_through_every_value_carrying_transform(value):
    def f(x, s):
        assert s is value
        return x * 2.0, s

    x = fnp.ones(3)
    assert fxarray.vmap(f)(x, value)[1] is value
    (_, static), (_, no_tangent) = fxarray.jvp(f, (x, value), (x, None))
    assert static is value
    assert no_tangent is None
    (_, static), pullback = fxarray.vjp(f, x, value)
    assert static is value
    assert pullback((x, None))[1] is None
    (_, static), pushforward = fxarray.linearize(f, x, value)
    assert static is value
    assert pushforward(x, None)[1] is None
    assert fxarray.eval_shape(f, x, value)[1] is value


def test_gradients_of_trees_with_statics_are_none_there():
    def loss(layer):
        assert layer["activation"] is np.tanh
        return layer["w"] * layer["w"]

    gradient = fxarray.grad(loss)({"w": 3.0, "activation": np.tanh, "name": "dense"})
    assert gradient["activation"] is None
    assert gradient["name"] is None
    assert float(gradient["w"]) == 6.0


def test_arguments_that_are_not_differentiated_may_be_anything():
    model = Mutable()
    assert float(fxarray.grad(lambda x, m: x * m.scale)(1.0, model)) == 2.0
    assert float(fxarray.grad(lambda x, m: x * m.scale)(1.0, m=model)) == 2.0
