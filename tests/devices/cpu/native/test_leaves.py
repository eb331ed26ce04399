"""Calls recognised in generated code: the same leaves as by flattening, for the same calls only."""

import dataclasses
import enum
import gc
import sys
from collections import OrderedDict, namedtuple
from typing import Any

import numpy as np
import pytest

import fxarray
import fxarray.numpy as fnp
from fxarray import tree
from fxarray.devices.cpu.native import leaves as leaves_module
from fxarray.devices.cpu.native.leaves import make_matcher
from fxarray.nn import Module
from fxarray.tree_util import register_dataclass, register_pytree_node
from fxarray.typing import Array


class Mode(enum.Enum):
    TRAIN = 1


class Linear(Module):
    weight: Array
    bias: Array | None
    name: str = "linear"


class Model(Module):
    layers: list[Linear]
    scale: Any
    width: int = 3


@register_dataclass
@dataclasses.dataclass
class Point:
    x: Any
    y: Any
    unit: str = dataclasses.field(default="m", metadata={"static": True})


def vector(*values: float) -> Array:
    return fnp.array(values, np.float32)


def model(width: int = 3) -> Model:
    rows = [Linear(vector(1, 2), vector(3)), Linear(vector(4, 5), None, "last")]
    return Model(rows, vector(1, 2, 3), width)


def same(args: tuple, kwargs: dict[str, Any]) -> bool:
    """Whether a matcher of a call takes it apart as flattening does."""
    match = make_matcher(args, kwargs)
    assert match is not None
    assert match(args, kwargs) is not None
    found, expected = match(args, kwargs), tree.leaves((args, kwargs))
    assert found is not None
    return len(found) == len(expected) and all(map(lambda a, b: a is b, found, expected))


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [
        ((), {}),
        ((vector(1),), {}),
        ((vector(1), [vector(2), (vector(3, 4), None)]), {"b": vector(5), "a": {"z": 1, "c": 2.0}}),
        (({"b": vector(1), "a": vector(2), "B": [], "": ()},), {}),
        ((1, 2.5, True, 3j, np.float32(2), "text", b"bytes", len, int, Mode.TRAIN), {}),
        ((np.dtype("f4"), np.add, np, lambda: 0), {}),
        ((model(), [model()]), {"m": model()}),
        ((Point(vector(1), [Point(1, 2.0)]),), {}),
        ((np.ones((2, 3)), np.ones(()), np.ones((0, 4), np.int8)[:, ::2]), {}),
    ],
    ids=[
        *("nothing", "one", "nested", "dict", "statics", "more statics", "modules"),
        *("dataclasses", "NumPy"),
    ],
)
def test_a_call_is_taken_apart_as_by_flattening(args, kwargs):
    assert same(args, kwargs)


def test_equal_structures_with_other_arrays_are_recognised():
    match = make_matcher((model(), {"k": 1}), {})
    assert match is not None
    other = model()
    found = match((other, {"k": -5}), {})
    assert found is not None
    assert found[0] is other.layers[0].weight
    assert found[-1] == -5


BASE = (vector(1), [vector(2)], (vector(3),), {"a": vector(4)}, None, 5, 1.5, "static", model())


@pytest.mark.parametrize(
    ("place", "other"),
    [
        (0, vector(1, 2)),
        (0, fnp.array([1], np.int32)),
        (0, np.ones(1, np.float32)),
        (0, 1.0),
        (0, None),
        (1, [vector(2), vector(2)]),
        (1, []),
        (1, (vector(2),)),
        (2, [vector(3)]),
        (2, namedtuple("Pair", "a")(vector(3))),
        (3, {"b": vector(4)}),
        (3, {"a": vector(4), "b": vector(4)}),
        (3, {}),
        (3, OrderedDict(a=vector(4))),
        (4, vector(1)),
        (4, ()),
        (5, True),
        (5, 2**31),
        (5, -(2**31) - 1),
        (5, 2**70),
        (5, 5.0),
        (5, np.int32(5)),
        (6, 1),
        (6, np.float64(1.5)),
        (7, "other"),
        (7, b"static"),
        (8, model(4)),
        (8, Point(vector(1), vector(2))),
        (8, model().replace(scale=None)),
        (8, model().replace(scale=vector(1))),
    ],
)
def test_what_differs_is_not_recognised(place, other):
    match = make_matcher(BASE, {})
    assert match is not None
    assert match(BASE, {}) is not None
    changed = (*BASE[:place], other, *BASE[place + 1 :])
    assert match(changed, {}) is None
    assert match(BASE[:-1], {}) is None
    assert match(BASE, {"more": 1}) is None
    assert match(BASE, {}) is not None


@pytest.mark.parametrize(
    "other",
    [
        np.ones((3, 2), np.float32),
        np.ones((2, 3, 1), np.float32),
        np.ones((2,), np.float32),
        np.ones((), np.float32),
        np.ones((2, 3)),
        np.ones((2, 3), ">f4"),
        np.ma.masked_array(np.ones((2, 3), np.float32)),
        fnp.ones((2, 3)),
    ],
)
def test_numpy_arrays_of_other_types_are_not_recognised(other):
    match = make_matcher((np.ones((2, 3), np.float32),), {})
    assert match is not None
    assert match((np.zeros((3, 2), np.float32).T,), {}) is not None
    assert match((other,), {}) is None


def test_static_arguments_compare_by_value():
    static = frozenset((0, "name", "flag", "number"))
    match = make_matcher((10**20, vector(1)), {"name": "abc", "flag": True, "number": 1}, static)
    assert match is not None
    equal = "".join(["a", "b", "c"])
    given = {"name": equal, "flag": True, "number": int("1")}
    found = match((10**20 + 0, vector(2)), given)
    assert found is not None
    assert [found[0], *found[2:]] == [10**20, True, equal, 1]
    for changed in (
        {"name": "abd"},
        {"flag": 1},
        {"number": True},
        {"number": 1.0},
        {"name": None},
    ):
        assert match((10**20, vector(1)), {**given, **changed}) is None
    assert match((10**20 + 1, vector(1)), given) is None


def test_static_arguments_that_may_change_have_no_matcher():
    for value in ((1, 2), 1.5, Hashed(1), [1]):
        assert make_matcher((value,), {}, frozenset((0,))) is None


def test_tracers_are_not_recognised():
    match = make_matcher((vector(1),), {})
    assert match is not None
    seen = []
    fxarray.grad(lambda x: seen.append(match((x,), {})) or x.sum())(vector(1))
    assert seen == [None]


class Own:
    """Taken apart by a function of its own."""

    def __init__(self, value: Any) -> None:
        self.value = value


register_pytree_node(Own, lambda own: ((own.value,), None), lambda _, children: Own(*children))


class Hashed:
    """Static, since it compares by value; but it may change."""

    def __init__(self, value: int) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Hashed) and self.value == other.value

    def __hash__(self) -> int:
        return hash(self.value)


@register_dataclass
@dataclasses.dataclass
class Computed:
    """Reads one of its fields in a way of its own."""

    x: Any

    def __getattribute__(self, name: str) -> Any:
        value = object.__getattribute__(self, name)
        return [value] if name == "x" else value


@pytest.mark.parametrize(
    "argument",
    [
        Own(1),
        Hashed(1),
        Computed(1),
        {1: 2},
        {"a": 1, 2: 3},
        OrderedDict(a=1),
        namedtuple("Pair", "a b")(1, 2),
        np.ma.masked_array([1]),
        object(),
    ],
    ids=lambda x: type(x).__name__,
)
def test_kinds_that_are_not_known_have_no_matcher(argument):
    assert make_matcher((argument,), {}) is None


def test_references_are_balanced():
    call = (BASE, {"a": BASE})
    match = make_matcher(*call)
    assert match is not None
    things = (BASE[0], BASE[8], BASE[8].layers[0].weight, BASE[7])

    def references() -> list[int]:
        gc.collect()
        return [sys.getrefcount(thing) for thing in things]

    before = references()
    for _ in range(100):
        match(*call)
        match((BASE[1:],), {"a": BASE})
        match((), {"a": (*BASE[:5], None)})
    assert references() == before


def test_a_deep_tree_has_a_matcher_or_none_but_no_error():
    deep: Any = vector(1)
    for _ in range(5000):
        deep = [deep]
    assert make_matcher((deep,), {}) is None


def test_without_known_layouts_there_are_no_matchers(monkeypatch):
    monkeypatch.setattr(leaves_module, "layout", lambda: None)
    assert make_matcher((), {}) is None


# --- in jit --------------------------------------------------------------------------------------


def recognised(function) -> int:
    return len(function._fast.recognised)


def test_jit_recognises_calls_from_the_third_on():
    function = fxarray.jit(lambda m, t: m.scale * t["k"], backend="cpu")
    for number in range(5):
        result = function(model(), {"k": vector(number)})
        np.testing.assert_array_equal(np.asarray(result), np.array([1, 2, 3]) * number)
    assert recognised(function) == 1
    assert function.cache_info().hits == 4


def test_jit_tells_kinds_of_calls_apart():
    function = fxarray.jit(lambda x, flag=None: x * 2 if flag else x + 1, backend="cpu")
    for _ in range(4):
        assert float(function(vector(3)[0])) == 4
        assert float(function(vector(3)[0], flag="yes")) == 6
        assert float(function(vector(3)[0], "yes")) == 6
        assert float(function(3.0)) == 4
        np.testing.assert_array_equal(function(vector(1, 2)), [2, 3])
    assert recognised(function) == 4


def test_jit_keeps_settings_apart():
    function = fxarray.jit(lambda x: fnp.log(x), backend="cpu")
    for _ in range(3):
        function(vector(-1))
    with fxarray.debug_nans(True), pytest.raises(fxarray.errors.NonFiniteError):
        function(vector(-1))
    assert np.isnan(function(vector(-1))[0])


def test_jit_forgets_recognised_calls_with_its_caches():
    function = fxarray.jit(lambda x: x + 1, backend="cpu")
    for _ in range(3):
        function(vector(1))
    assert recognised(function) == 1
    fxarray.clear_caches()
    assert recognised(function) == 0
    assert float(function(vector(1))[0]) == 2


def test_jit_stops_looking_for_what_never_comes_again():
    function = fxarray.jit(lambda x, name: x + 1, backend="cpu")
    for number in range(20):
        function(vector(1), f"{number % 2}" * 30)  # equal strings, but other objects
    assert recognised(function) <= 4


def test_jit_of_donated_arguments_deletes_them_however_they_are_recognised():
    function = fxarray.jit(lambda x: x + 1, donate_argnums=0, backend="cpu")
    for _ in range(4):
        given = vector(1, 2)
        result = function(given)
        assert given.is_deleted()
        np.testing.assert_array_equal(result, [2, 3])
    with pytest.raises(fxarray.errors.DeletedArrayError):
        function(given)


def test_jit_of_static_arguments_recognises_their_values():
    seen = []

    def function(x, n, name):
        seen.append((n, name))
        return x * n

    jitted = fxarray.jit(function, static_argnums=1, static_argnames="name", backend="cpu")
    for _ in range(4):
        for n in (2, 1000, True):
            for name in ("a", "b"):
                np.testing.assert_array_equal(jitted(vector(1, 2), n, name=name), [n, 2 * n])
    assert len(seen) == 6
    assert recognised(jitted) == 4


def test_jit_copies_numpy_arrays_that_it_is_given():
    jitted = fxarray.jit(lambda x, y: (x, x * y), backend="cpu")
    for _ in range(4):
        given = np.arange(6, dtype=np.float32).reshape(2, 3).T
        same, product = jitted(given, 2.0)
        given[...] = -1
        np.testing.assert_array_equal(same, [[0, 3], [1, 4], [2, 5]])
        np.testing.assert_array_equal(product, [[0, 6], [2, 8], [4, 10]])
    assert recognised(jitted) == 1


def test_jit_under_grad_traces_as_ever():
    function = fxarray.jit(lambda x: (x * x).sum(), backend="cpu")
    for _ in range(3):
        function(vector(3))
    np.testing.assert_array_equal(fxarray.grad(function)(vector(3)), [6])
    np.testing.assert_array_equal(fxarray.vmap(function)(vector(3, 4)[:, None]), [9, 16])
