"""Primitives as values: keys, equality, registration, missing rules, symbolic zeros."""

import copy
import pickle
from functools import partial
from typing import ClassVar

import numpy as np
import pytest

import fxarray.numpy as fnp
from fxarray.core.dims import ShapeVar
from fxarray.core.errors import MissingRuleError
from fxarray.core.primitive import (
    REGISTRY,
    Linear,
    Primitive,
    Zero,
    add_tangents,
    canonical_key,
    instantiate,
)
from fxarray.core.types import ArrayType

F32 = ArrayType((3,), np.dtype("float32"))


class Scaled(Primitive, name="test_scaled"):
    """Multiply by a number."""

    factor: object

    EXCUSED: ClassVar = {"batch": "this one is for a test"}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (0.0, -0.0),
        (1, 1.0),
        (1, True),
        (1.0, 1 + 0j),
        ((1,), [1]),
        (np.arange(3), np.arange(3.0)),
        (np.arange(4), np.arange(4).reshape(2, 2)),
        (np.float32(1), np.float64(1)),
        ("a", b"a"),
        (partial(int, base=2), partial(int, base=3)),
        (slice(1), slice(2)),
        ({"a": 1}, {"a": 1.0}),
        (ShapeVar("n"), ShapeVar("m")),
    ],
)
def test_parameters_that_python_confuses_are_told_apart(one, other):
    assert canonical_key(one) != canonical_key(other)
    assert Scaled(one) != Scaled(other)


@pytest.mark.parametrize(
    "value",
    [float("nan"), complex(float("nan"), 1), np.array([np.nan, 1]), (1, (2.0, "x")), ShapeVar("n")],
)
def test_equal_parameters_make_equal_operations(value):
    again = copy.deepcopy(value)
    assert Scaled(value) == Scaled(again)
    assert hash(Scaled(value)) == hash(Scaled(again))
    assert len({Scaled(value), Scaled(again)}) == 1


def test_operation_without_parameters_is_one_object():
    sin = REGISTRY["sin"]
    assert sin() is sin()
    assert pickle.loads(pickle.dumps(sin())) is sin()


def test_operations_are_frozen():
    with pytest.raises(AttributeError):
        Scaled(1).factor = 2


def test_pickling_does_not_keep_the_hash():
    op = Scaled((1, "x"))
    hash(op)
    again = pickle.loads(pickle.dumps(op))
    assert "_hash" not in vars(again)
    assert again == op


def test_name_is_taken_once():
    with pytest.raises(ValueError, match="test_scaled"):

        class Other(Primitive, name="test_scaled"):
            """Another."""


def test_missing_rules_say_why():
    op = Scaled(2)
    x = fnp.ones(3)
    with pytest.raises(MissingRuleError, match="this one is for a test"):
        op.batch(3, None, [x], [0])
    for rule, arguments in (
        ("infer", (F32,)),
        ("reference", (np.ones(3),)),
        ("jvp", ([x], [x])),
        ("transpose", ([x], x)),
        ("transpose_into", ([None], [x], x)),
        ("shard", (F32,)),
        ("lower", (None,)),
    ):
        with pytest.raises(MissingRuleError, match=f"test_scaled has no {rule} rule"):
            getattr(op, rule)(*arguments)
    with pytest.raises(MissingRuleError, match="samples"):
        Scaled.samples(np.random.default_rng(0))


def test_repr_shows_parameters():
    assert repr(Scaled(2)) == "test_scaled[factor=2]"
    assert repr(REGISTRY["sin"]()) == "sin"


def test_zeros_cost_nothing_until_they_are_needed():
    zero, x = Zero(F32), fnp.ones(3)
    assert add_tangents(zero, x) is x
    assert add_tangents(x, zero) is x
    assert add_tangents(zero, zero) is zero
    assert np.array_equal(instantiate(zero), np.zeros(3))
    assert instantiate(x) is x
    assert (zero.shape, zero.dtype) == ((3,), np.dtype("float32"))
    assert "f32[3]" in repr(zero)
    assert "f32[3]" in repr(Linear(F32))


def test_product_of_linear_operands_is_explained():
    with pytest.raises(MissingRuleError, match="not linear"):
        REGISTRY["mul"]()(Linear(F32), Linear(F32))


def test_infer_is_remembered_by_operation_and_types():
    calls = []

    class Counted(Primitive, name="test_counted"):
        """Counts how often its types are inferred."""

        number: int

        def infer(self, *types):
            calls.append(types)
            return types

    assert Counted(1).types(F32) == Counted(1).types(F32) == (F32,)
    assert len(calls) == 1
    Counted(2).types(F32)
    assert len(calls) == 2


def test_operations_convert_what_is_like_an_array():
    assert float(REGISTRY["sin"]()(0.0)) == 0
    assert REGISTRY["add"]()(np.ones(2), np.ones(2)).tolist() == [2, 2]
