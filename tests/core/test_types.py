"""ArrayType: interning, printing, changed copies."""

import copy
import gc
import pickle

import numpy as np
import pytest

from fxarray.core import dtypes
from fxarray.core.dims import ShapeVar
from fxarray.core.types import ArrayType, scalar

F32 = np.dtype("float32")


def test_equal_types_are_one_object():
    assert ArrayType((2, 3), F32) is ArrayType((2, 3), F32)
    assert ArrayType((2,), F32) is not ArrayType((2,), F32, True)
    assert ArrayType((2,), F32) is not ArrayType((2,), np.dtype("float64"))
    assert scalar(F32) is ArrayType((), F32)


def test_symbolic_types_are_one_object():
    assert ArrayType((ShapeVar("n") * 2,), F32) is ArrayType((2 * ShapeVar("n"),), F32)
    assert ArrayType((ShapeVar("n"),), F32) is not ArrayType((ShapeVar("m"),), F32)


@pytest.mark.parametrize(
    "type",
    [
        ArrayType((), F32),
        ArrayType((2, 0), dtypes.bfloat16, True),
        ArrayType((ShapeVar("n"), 3), F32),
        ArrayType((4,), dtypes.key_dtype),
        ArrayType((4,), F32, False, ("x",), frozenset("y"), frozenset("z")),
    ],
)
def test_copies_and_pickles_are_the_same_object(type):
    assert pickle.loads(pickle.dumps(type)) is type
    assert copy.deepcopy(type) is type


@pytest.mark.parametrize(
    ("type", "text"),
    [
        (ArrayType((), F32), "f32[]"),
        (ArrayType((2, 3), F32, True), "f32[2,3]~"),
        (ArrayType((ShapeVar("batch"), 128), F32), "f32[batch,128]"),
        (ArrayType((4, 8), F32, False, ("x", None)), "f32[4@x,8]"),
        (ArrayType((4,), F32, False, None, frozenset(["y"])), "f32[4]{U:y}"),
        (ArrayType((4,), F32, False, None, frozenset(), frozenset(["b", "a"])), "f32[4]{V:a,b}"),
    ],
)
def test_types_print_shortly(type, text):
    assert str(type) == text


def test_types_know_their_sizes():
    type = ArrayType((2, 3), F32)
    assert (type.ndim, type.size, type.is_static) == (2, 6, True)
    symbolic = ArrayType((ShapeVar("n"), 3), F32)
    assert not symbolic.is_static
    assert str(symbolic.size) == "3*n"


def test_changed_copies():
    type = ArrayType((4, 8), F32, True, ("x", None))
    assert type.strong().weak is False
    assert type.strong().spec == ("x", None)
    assert type.replace(shape=(8, 4)).spec is None
    assert type.replace(shape=(4, 8)).spec == ("x", None)
    assert type.weak_type
    assert type.same_array(type.strong())
    assert not type.same_array(type.replace(dtype=np.dtype("int32")))


def test_tangents_of_integers_are_float0():
    assert ArrayType((3,), F32).tangent() is ArrayType((3,), F32)
    assert ArrayType((3,), np.dtype("int32")).tangent().dtype == dtypes.float0
    assert ArrayType((3,), dtypes.key_dtype).tangent().dtype == dtypes.float0


def test_types_that_nobody_has_are_forgotten():
    from fxarray.core import types as module

    type = ArrayType((12_345,), F32)
    assert any(key[0] == (12_345,) for key in module._POOL)
    del type
    gc.collect()
    assert not any(key[0] == (12_345,) for key in module._POOL)
