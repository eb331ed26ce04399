"""asarray, array and the scalar types: what becomes an array, and of which dtype."""

import array as python_array

import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

import fxarray
import fxarray.numpy as fnp
from fxarray.errors import ArgumentError, DTypeError, ShapeError


@pytest.mark.parametrize(
    ("value", "dtype", "weak"),
    [
        (True, "bool", False),
        (1, "int32", True),
        (1.5, "float32", True),
        (1j, "complex64", True),
        (np.float32(2), "float32", False),
        (np.float64(2), "float32", True),
        (np.int64(2), "int32", True),
        (np.int8(2), "int8", False),
        (ml_dtypes.bfloat16(2), "bfloat16", False),
        (np.zeros(2), "float64", False),
        (np.zeros(2, ">f4"), "float32", False),
        ([1, 2], "int32", False),
        ([1, 2.5], "float32", False),
        ([True, 2], "int32", False),
        ([1, 2j], "complex64", False),
        ([np.float64(1), 2], "float32", False),
        ([np.zeros(2), [1, 2]], "float64", False),
        ([np.float16(1), 2], "float16", False),
        ((1, (2)), "int32", False),
        ([], "float32", False),
        ([[], []], "float32", False),
        (range(3), "int32", False),
        (memoryview(bytearray(b"ab")), "uint8", False),
        (python_array.array("f", [1, 2]), "float32", False),
    ],
)
def test_dtype_and_weakness_of_what_is_converted(value, dtype, weak):
    result = fnp.asarray(value)
    assert result.dtype.name == dtype
    assert result.weak_type == weak


def test_nested_lists_may_hold_arrays_and_tracers():
    def pair(x):
        return fnp.array([[x, 1], [2, fnp.float32(3)]])

    for function in (pair, fxarray.jit(pair)):
        result = function(fnp.float32(7))
        np.testing.assert_array_equal(result, [[7, 1], [2, 3]])
        assert result.dtype == np.float32
    np.testing.assert_array_equal(fxarray.grad(lambda x: pair(x).sum())(2.0), 1)


def test_numpy_memory_is_never_shared():
    source = np.zeros(3)
    arrays = [fnp.asarray(source), fnp.array(source), source + fnp.zeros(3), fnp.negative(source)]
    captured = fxarray.jit(lambda: fnp.asarray(source))
    before = captured()
    source[:] = 7
    for array in (*arrays, before):
        np.testing.assert_array_equal(array, np.zeros(3))


def test_values_saved_for_the_backward_pass_are_not_shared_either():
    source = np.ones(2, "float32")
    _, backward = fxarray.vjp(lambda x: x * source, fnp.ones(2))
    source[:] = 9
    np.testing.assert_array_equal(backward(fnp.ones(2))[0], [1, 1])


def test_arrays_are_returned_as_they_are_and_copied_on_request():
    x = fnp.ones(3)
    assert fnp.asarray(x) is x
    assert fnp.asarray(x, dtype="float32") is x
    for copied in (fnp.array(x), fnp.asarray(x, copy=True), fnp.copy(x), x.copy()):
        assert copied is not x
        assert not np.shares_memory(np.asarray(copied), np.asarray(x))
    with pytest.raises(ValueError, match="copy"):
        fnp.asarray(np.ones(2), copy=False)
    with pytest.raises(ValueError, match="copy"):
        fnp.asarray(x, dtype=int, copy=False)


def test_ndmin_puts_axes_in_front():
    assert fnp.array([1, 2], ndmin=3).shape == (1, 1, 2)


def test_objects_of_other_libraries_are_converted_through_their_protocols():
    class Wrapped:
        def __jax_array__(self):
            return fnp.arange(3)

    class Exported:
        def __dlpack__(self, **arguments):
            return np.arange(3).__dlpack__(**arguments)

        def __dlpack_device__(self):
            return (1, 0)

    for value in (Wrapped(), Exported(), jnp.arange(3)):
        np.testing.assert_array_equal(fnp.asarray(value), [0, 1, 2])
    np.testing.assert_array_equal(Wrapped() + fnp.ones(3), [1, 2, 3])
    np.testing.assert_array_equal(fnp.sin(Wrapped()), np.sin(np.arange(3, dtype="float32")))
    np.testing.assert_array_equal(fnp.from_dlpack(Exported()), [0, 1, 2])


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (None, ArgumentError, "not a number"),
        ("text", ArgumentError, "not a number"),
        ([[1, 2], [3]], ArgumentError, "one length"),
        ([1, [2]], ArgumentError, "number"),
        ([fnp.ones(2), fnp.ones(3)], ShapeError, "one shape"),
        ([None], ArgumentError, "number"),
        (object(), ArgumentError, "object"),
        (np.array(["a"]), DTypeError, "text"),
        (np.array([None]), DTypeError, "objects"),
        (2**40, OverflowError, "int64"),
        ([1, 2**40], OverflowError, "int64"),
        (2**70, OverflowError, "float"),
    ],
)
def test_what_is_no_array_is_refused_with_a_remedy(value, error, text):
    with pytest.raises(error, match=text):
        fnp.asarray(value)


def test_large_integers_are_fine_where_the_dtype_holds_them():
    assert fnp.asarray(2**40, dtype="int64").item() == 2**40
    assert (fnp.zeros(1, "int64") + 2**40)[0].item() == 2**40
    assert fnp.array([2**40], dtype="uint64")[0].item() == 2**40


def test_small_integers_wrap_into_narrow_operands_as_in_jax():
    assert (fnp.uint8(0) + -1).item() == 255
    with pytest.raises(OverflowError, match="300"):
        fnp.asarray(300, dtype="int8")


# --- scalar types ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "bool_",
        "int8",
        "uint4",
        "int32",
        "uint64",
        "bfloat16",
        "float16",
        "float64",
        "float8_e4m3fn",
        "complex64",
    ],
)
def test_scalar_type_stands_for_its_dtype_and_converts(name):
    kind = getattr(fnp, name)
    dtype = np.dtype(kind)
    assert kind == dtype
    assert dtype == kind
    assert kind == dtype.name
    assert hash(kind) == hash(dtype)
    assert kind(1).dtype == dtype
    assert not kind(1).weak_type
    assert fnp.zeros(2, kind).dtype == dtype
    assert fnp.ones(2).astype(kind).dtype == dtype
    assert repr(kind) == f"fxarray.numpy.{dtype.name}"


def test_scalar_types_differ_from_each_other_and_from_what_is_no_dtype():
    assert fnp.float32 != fnp.float64
    assert fnp.float32 != "text"
    assert fnp.float32 != None  # noqa: E711
    assert fnp.issubdtype(fnp.bfloat16, fnp.floating)
    assert fnp.result_type(fnp.float16, 1.0) == fnp.float16


def test_python_types_mean_32_bits():
    assert fnp.zeros(1, float).dtype == np.float32
    assert fnp.zeros(1, int).dtype == np.int32
    assert fnp.zeros(1, complex).dtype == np.complex64
    assert fnp.zeros(1, "float64").dtype == np.float64
