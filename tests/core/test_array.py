"""Arrays: immutable, without hash, at home in Python and NumPy."""

import copy
import pickle

import ml_dtypes
import numpy as np
import pytest

import fxarray
import fxarray.numpy as fnp
from fxarray.core.errors import (
    ArgumentError,
    DeletedArrayError,
    DTypeError,
    ImmutableArrayError,
    ShapeError,
)

X = fnp.asarray(np.arange(6.0).reshape(2, 3))


def test_arrays_are_immutable():
    with pytest.raises(ImmutableArrayError, match=r"\.at\[index\]\.set"):
        X[0] = 1
    with pytest.raises(ImmutableArrayError):
        del X[0]
    with pytest.raises(ImmutableArrayError):
        X[0, 1] += 1
    y = X
    y += 1
    assert float(X[0, 0]) == 0


def test_arrays_have_no_hash():
    with pytest.raises(TypeError, match="hash"):
        hash(X)
    with pytest.raises(TypeError):
        {X: 1}


def test_numpy_sees_the_values_and_cannot_write():
    view = np.asarray(X)
    assert view.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert not view.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        view[0] = 1
    copied = np.array(X)
    copied[0] = 7
    assert float(X[0, 0]) == 0
    assert np.asarray(X, np.float32).dtype == np.float32


def test_changing_the_source_does_not_change_the_array():
    source = np.arange(3.0)
    array = fnp.array(source)
    source[0] = 9
    assert float(array[0]) == 0


def test_numpy_reads_arrays_by_dlpack():
    view = np.from_dlpack(X)
    assert view.tolist() == X.tolist()
    assert X.__dlpack_device__() == (1, 0)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int4", "complex64", "bool", "uint64"])
@pytest.mark.parametrize("shape", [(), (0, 2), (2, 3)])
def test_pickled_array_is_the_same(dtype, shape):
    array = fnp.ones(shape, dtype)
    again = pickle.loads(pickle.dumps(array))
    assert again.type == array.type
    assert np.array_equal(np.asarray(again), np.asarray(array))


def test_pickling_keeps_weakness_and_keys():
    weak = fnp.sin(1.0)
    assert pickle.loads(pickle.dumps(weak)).weak_type
    key = fxarray.random.key(3)
    again = pickle.loads(pickle.dumps(key))
    assert again.dtype == key.dtype
    assert fxarray.random.key_data(again).tolist() == fxarray.random.key_data(key).tolist()


def test_transposed_buffer_is_pickled_in_order():
    array = fnp.asarray(np.arange(6).reshape(2, 3).T)
    assert pickle.loads(pickle.dumps(array)).tolist() == array.tolist()


def test_copies_are_the_array_itself():
    assert copy.copy(X) is X
    assert copy.deepcopy([X])[0] is X


def test_scalars_convert_to_python_numbers():
    assert float(fnp.float32(1.5)) == 1.5
    assert int(fnp.asarray(3.7)) == 3
    assert complex(fnp.asarray(1 + 2j)) == 1 + 2j
    assert bool(fnp.asarray(0.0)) is False
    assert bool(fnp.ones((1, 1))) is True
    assert [10, 20, 30][fnp.asarray(1)] == 20
    assert range(fnp.asarray(3)).stop == 3
    assert X.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert X.item(4) == 4
    assert fnp.asarray(2.5).item() == 2.5
    assert f"{fnp.asarray(2.5):.2f}" == "2.50"


@pytest.mark.parametrize("convert", [float, int, complex])
def test_only_scalars_convert(convert):
    with pytest.raises(ShapeError, match="0-dimensional"):
        convert(X)


def test_truth_of_several_elements_is_refused():
    with pytest.raises(ArgumentError, match=r"\.any\(\) or \.all\(\)"):
        bool(X)


def test_floats_are_no_indices():
    with pytest.raises(DTypeError, match="integer"):
        [1, 2][fnp.asarray(1.0)]


def test_arrays_of_several_elements_take_no_format():
    with pytest.raises(ArgumentError, match="format"):
        f"{X:.2f}"
    assert f"{X}" == str(np.asarray(X))


def test_iteration_gives_rows():
    assert [row.tolist() for row in X] == [[0, 1, 2], [3, 4, 5]]
    assert len(X) == 2
    first, second = X
    assert second.shape == (3,)
    assert first.shape == (3,)
    with pytest.raises(ShapeError):
        iter(fnp.asarray(1))
    with pytest.raises(ShapeError):
        len(fnp.asarray(1))
    assert 4 in X
    assert 9 not in X


@pytest.mark.parametrize(
    ("array", "text"),
    [
        (fnp.asarray([1, 2]), "Array([1, 2], dtype=int32)"),
        (fnp.asarray([1.5]), "Array([1.5], dtype=float32)"),
        (fnp.zeros((0, 2)), "Array([], dtype=float32, shape=(0, 2))"),
        (fnp.ones(2, "bfloat16"), "Array([1., 1.], dtype=bfloat16)"),
        (fxarray.random.key(0), "Array(keys of shape (), dtype=key<fry>)"),
    ],
)
def test_arrays_print_like_their_constructors(array, text):
    assert repr(array) == text


def test_properties_are_those_of_the_type():
    assert (X.shape, X.ndim, X.size, X.itemsize, X.nbytes) == ((2, 3), 2, 6, 8, 48)
    assert X.aval is X.type
    assert X.dtype == np.float64
    assert not X.weak_type
    assert isinstance(X, fxarray.Array)


def test_deleted_array_says_so():
    array = fnp.ones(3) + 1
    assert array.is_ready()
    array.delete()
    array.delete()
    assert array.is_deleted()
    assert "deleted" in repr(array)
    assert "deleted" in str(array)
    for use in (
        lambda: array + 1,
        lambda: np.asarray(array),
        array.tolist,
        array.block_until_ready,
    ):
        with pytest.raises(DeletedArrayError, match="donated"):
            use()


def test_keys_have_no_numbers():
    key = fxarray.random.key(0)
    with pytest.raises(DTypeError, match="key_data"):
        np.asarray(key)
    with pytest.raises(DTypeError, match="key"):
        int(key)


def test_numpy_leaves_operators_to_arrays():
    result = np.ones(3) + fnp.ones(3, "float32")
    assert isinstance(result, fxarray.Array)
    assert isinstance(np.float32(2) * fnp.ones(3), fxarray.Array)
    assert (np.ones(3, ml_dtypes.bfloat16) - fnp.ones(3, "bfloat16")).dtype == ml_dtypes.bfloat16


def test_rounding_and_block_until_ready_give_arrays():
    assert round(fnp.asarray(2.567), 2).shape == ()
    assert X.block_until_ready() is X
