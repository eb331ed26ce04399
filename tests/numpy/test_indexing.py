"""`x[index]` against NumPy, and where it differs from it on purpose."""

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fxarray
import fxarray.numpy as fnp
from fxarray import random
from fxarray.core.dims import ShapeVar
from fxarray.core.errors import (
    DTypeError,
    IndexingError,
    NonConcreteBooleanIndexError,
    OutOfBoundsError,
    ShapeError,
)


def values(shape, dtype="float32"):
    return (np.arange(int(np.prod(shape))).reshape(shape) * 3 % 17 + 1).astype(dtype)


@settings(max_examples=400)
@given(data=st.data())
def test_getitem_is_numpys(indexing, data):
    shape = data.draw(st.sampled_from(indexing.SHAPES))
    index = data.draw(indexing.indices(shape))
    x = values(shape)
    expected = indexing.valid(x, index)
    if expected is None:
        return
    for way in (index, indexing.unknown(index)):
        result = fnp.asarray(x)[way]
        assert result.shape == expected.shape, (index, result.shape, expected.shape)
        np.testing.assert_array_equal(np.asarray(result), expected)


@settings(max_examples=60)
@given(data=st.data())
def test_getitem_is_numpys_when_staged_and_when_positions_are_traced(indexing, data):
    shape = data.draw(st.sampled_from(indexing.SHAPES))
    index = data.draw(indexing.indices(shape))
    x = values(shape)
    expected = indexing.valid(x, index)
    if expected is None:
        return
    arrays, rebuild = indexing.positions_of(index)
    np.testing.assert_array_equal(fxarray.jit(lambda x: x[index])(x), expected)
    result = fxarray.jit(lambda x, *arrays: x[rebuild(arrays)])(x, *arrays)
    np.testing.assert_array_equal(np.asarray(result), expected)


@settings(max_examples=60)
@given(data=st.data())
def test_getitem_under_vmap_is_a_loop(indexing, data):
    shape = data.draw(st.sampled_from([(5,), (4, 3), (2, 5, 3)]))
    index = data.draw(indexing.indices(shape))
    xs = np.stack([values(shape), values(shape)[::-1] * 2])
    if indexing.valid(xs[0], index) is None:
        return
    arrays, rebuild = indexing.positions_of(index)
    expected = np.stack([x[index] for x in xs])
    np.testing.assert_array_equal(fxarray.vmap(lambda x: x[index])(xs), expected)
    if arrays:
        flipped = [np.stack([a, np.flip(a)]) for a in arrays]
        both = np.stack([x[rebuild([a[i] for a in flipped])] for i, x in enumerate(xs)])
        result = fxarray.vmap(lambda x, *a: x[rebuild(a)])(xs, *flipped)
        np.testing.assert_array_equal(result, both)
        alone = np.stack([xs[0][rebuild([a[i] for a in flipped])] for i in range(2)])
        result = fxarray.vmap(lambda *a: fnp.asarray(xs[0])[rebuild(a)])(*flipped)
        np.testing.assert_array_equal(result, alone)


@settings(max_examples=60)
@given(data=st.data())
def test_the_gradient_of_reading_adds_where_elements_were_read(indexing, data):
    shape = data.draw(st.sampled_from([(5,), (4, 3), (2, 5, 3)]))
    index = data.draw(indexing.indices(shape))
    x = values(shape)
    read = indexing.valid(x, index)
    if read is None:
        return
    weights = values(read.shape) / 7
    expected = np.zeros(shape)
    np.add.at(expected, index, weights)

    # Used twice, so that the second use adds to the first one's cotangent.
    def loss(x):
        return (x[index] * weights).sum() + (x[index] * weights).sum()

    np.testing.assert_allclose(fxarray.grad(loss)(x), 2 * expected, rtol=1e-6)

    def loss(x):
        return (x[indexing.unknown(index)] * weights).sum() * 2

    np.testing.assert_allclose(fxarray.grad(loss)(x), 2 * expected, rtol=1e-6)


@pytest.mark.parametrize("index", [5, -6, (0, 7), (slice(None), -4), np.array([0, 9]), [0, -6]])
def test_a_known_index_out_of_bounds_raises(index):
    x = fnp.asarray(values((5, 3)))
    for operation in (
        lambda x: x[index],
        lambda x: x.at[index].get(),
        lambda x: x.at[index].set(0),
        lambda x: x.at[index].add(1),
    ):
        with pytest.raises(OutOfBoundsError, match="out of bounds") as error:
            operation(x)
        assert isinstance(error.value, IndexError)
        with pytest.raises(OutOfBoundsError):
            fxarray.jit(operation)(x)


def test_unknown_positions_clamp_when_read_and_are_dropped_when_written():
    x = fnp.asarray(values(5))
    index = fnp.array([1, 7, -2, -9])
    np.testing.assert_array_equal(x[index], np.asarray(x)[[1, 4, 3, 0]])
    assert float(x[fnp.asarray(99)]) == float(x[4])
    assert float(x[fnp.asarray(-99)]) == float(x[0])
    np.testing.assert_array_equal(x.at[index].set(0.0), [x[0], 0, x[2], 0, x[4]])
    np.testing.assert_array_equal(x.at[fnp.asarray(99)].add(1), x)


@pytest.mark.parametrize("mode", ["fill", "clip", "wrap", "promise_in_bounds", "drop", None])
@pytest.mark.parametrize("negative", [True, False])
def test_get_modes_agree_with_jax(mode, negative):
    x = values((5, 2))
    index = (
        np.array([1, 4, -2, 0], np.int32)
        if mode == "promise_in_bounds"
        else np.array([1, 7, -2, -9, 4, 5])
    )
    if mode == "wrap":
        np.testing.assert_array_equal(fnp.asarray(x).at[index].get(mode=mode), x[index % 5])
        return
    if mode is None:
        index = index % 5
    if mode == "promise_in_bounds" and not negative:
        index = np.abs(index)
    index = index.astype(np.int32)
    expected = jnp.asarray(x).at[index].get(mode=mode, wrap_negative_indices=negative)
    got = fnp.asarray(x).at[index].get(mode=mode, wrap_negative_indices=negative)
    np.testing.assert_array_equal(got, expected)
    got = fnp.asarray(x).at[fnp.asarray(index)].get(mode=mode, wrap_negative_indices=negative)
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("position", [1, 7, -2, -9])
def test_get_with_a_known_integer_and_a_mode(position):
    x = values((5, 2))
    for mode, options in (("fill", {}), ("fill", {"fill_value": 3}), ("clip", {})):
        expected = jnp.asarray(x).at[np.int32(position)].get(mode=mode, **options)
        got = fnp.asarray(x).at[position].get(mode=mode, **options)
        np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize(
    ("dtype", "fill"),
    [("float16", np.nan), ("int8", -128), ("uint16", 65535), ("bool", True), ("complex64", np.nan)],
)
def test_the_default_fill_value(dtype, fill):
    x = fnp.zeros(3, dtype)
    result = np.asarray(x.at[fnp.array([0, 5])].get(mode="fill"))
    assert result[0] == 0
    np.testing.assert_array_equal(result[1], np.asarray(fill, dtype))


def test_a_fill_value_alone_chooses_mode_fill():
    x = fnp.arange(3)
    assert x.at[fnp.array([7, 1])].get(fill_value=9).tolist() == [9, 1]


def test_an_axis_of_size_zero():
    x = fnp.zeros((0, 2))
    assert x[fnp.zeros(0, int)].shape == (0, 2)
    assert x[:, fnp.array([1])].shape == (0, 1)
    with pytest.raises(OutOfBoundsError, match="size 0"):
        x[fnp.array([0])]
    np.testing.assert_array_equal(x.at[fnp.array([0])].get(mode="fill", fill_value=7), [[7, 7]])
    assert x.at[fnp.array([0])].set(1).shape == (0, 2)


def test_bools_without_dimensions():
    x = values((4, 3))
    ours = fnp.asarray(x)
    for index in (True, False, np.bool_(True), (True, 1), (slice(1, 3), True), (True, [1, 2])):
        np.testing.assert_array_equal(ours[index], x[index])
    np.testing.assert_array_equal(ours.at[True].add(1), x + 1)
    np.testing.assert_array_equal(ours.at[False].add(1), x)


def test_lists_are_arrays():
    x = values((4, 3))
    np.testing.assert_array_equal(fnp.asarray(x)[[2, 0]], x[[2, 0]])
    np.testing.assert_array_equal(fnp.asarray(x)[[]], x[[]])
    traced = fxarray.jit(lambda x, i: x[[i, 0], [1, i]])(x, 2)
    np.testing.assert_array_equal(traced, x[[2, 0], [1, 2]])
    with pytest.raises(IndexingError, match="tuple"):
        fnp.asarray(x)[[slice(None), 1]]


def test_masks():
    x = values((4, 3))
    ours = fnp.asarray(x)
    np.testing.assert_array_equal(ours[x > 5], x[x > 5])
    np.testing.assert_array_equal(ours[ours > 5], x[x > 5])
    np.testing.assert_array_equal(ours[ours[:, 0] > 5], x[x[:, 0] > 5])
    np.testing.assert_array_equal(ours[:, ours[0] > 5], x[:, x[0] > 5])
    np.testing.assert_array_equal(ours[ours > 99], x[x > 99])
    with pytest.raises(IndexingError, match="does not fit"):
        ours[np.ones(3, bool)]

    # A mask computed from the differentiated value is known outside jit.
    def loss(x):
        return (x[x > 5] ** 2).sum()

    np.testing.assert_allclose(fxarray.grad(loss)(x), np.where(x > 5, 2 * x, 0))


def test_a_traced_mask_cannot_be_read():
    for transform in (fxarray.jit, fxarray.vmap):
        with pytest.raises(NonConcreteBooleanIndexError, match="where"):
            transform(lambda x: x[x > 3])(values((4, 3)))


@pytest.mark.parametrize(
    ("index", "error", "text"),
    [
        ((0, 0, 0), IndexingError, "too many indices"),
        ((..., ...), IndexingError, "single ellipsis"),
        (1.5, IndexingError, "float"),
        ("a", IndexingError, "str"),
        (np.array([0.5]), IndexingError, "integers or bools"),
        (slice(0, 1.5), IndexingError, "integers"),
        (slice(None, None, 0), ValueError, "step"),
        ((np.array([0, 1]), np.array([0, 1, 2])), ShapeError, "broadcast"),
    ],
)
def test_indices_that_mean_nothing(index, error, text):
    x = fnp.asarray(values((4, 3)))
    with pytest.raises(error, match=text):
        x[index]
    with pytest.raises(error, match=text):
        x.at[index].set(1)


def test_a_slice_with_traced_bounds_points_to_dynamic_slice():
    with pytest.raises(IndexingError, match="dynamic_slice"):
        fxarray.jit(lambda x, i: x[i : i + 2])(values(5), 1)


def test_slice_bounds_may_be_concrete_arrays():
    x = values(5)
    np.testing.assert_array_equal(fnp.asarray(x)[fnp.asarray(1) : np.int8(4)], x[1:4])
    np.testing.assert_array_equal(
        fxarray.grad(lambda x: x[: int(x[0])].sum())(np.ones(3)), [1, 0, 0]
    )


def test_arrays_are_immutable():
    x = fnp.zeros(3)
    with pytest.raises(TypeError, match="at"):
        x[0] = 1


def test_weak_types_stay_weak():
    x = fnp.asarray(1.0)[None]
    assert x.weak_type
    assert x[0].weak_type
    assert x[fnp.array([0])].weak_type
    assert x.at[0].set(2).weak_type


def test_iteration_and_unpacking():
    a, b = fnp.asarray(values((2, 3)))
    np.testing.assert_array_equal(b, values((2, 3))[1])
    assert a.shape == (3,)


def test_random_keys_can_be_indexed():
    keys = random.split(random.key(0), 5)
    data = np.asarray(random.key_data(keys))

    def check(result, expected):
        np.testing.assert_array_equal(random.key_data(result), expected)

    check(keys[2], data[2])
    check(keys[1:4:2], data[1:4:2])
    check(keys[fnp.array([3, 0])], data[[3, 0]])
    check(fxarray.jit(lambda k, i: k[i])(keys, 3), data[3])
    changed = data.copy()
    changed[[1, 3]] = data[0]
    check(keys.at[fnp.array([1, 3])].set(keys[0]), changed)
    check(keys.at[1::2].set(keys[0]), changed)
    check(keys.at[np.array([False, True, False, True, False])].set(keys[0]), changed)
    with pytest.raises(DTypeError):
        keys.at[0].set(1)
    with pytest.raises(DTypeError):
        keys.at[0].add(keys[1])


def test_symbolic_sizes():
    n = ShapeVar("n", min=2)
    typed = fxarray.ShapeDtypeStruct((n, 3), "float32")

    def shape(f):
        return fxarray.eval_shape(f, typed).shape

    assert shape(lambda x: x[0]) == (3,)
    assert shape(lambda x: x[-1, 1:]) == (2,)
    assert shape(lambda x: x[1:])[0].key == (n - 1).key
    assert shape(lambda x: x[:-1])[0].key == (n - 1).key
    assert shape(lambda x: x[:2])[0] == 2
    assert shape(lambda x: x[::-1])[0].key == n.key
    assert shape(lambda x: x[None, ..., 0])[1].key == n.key
    assert shape(lambda x: x[:, fnp.array([0, 2, 2, 1])])[0].key == n.key
    assert shape(lambda x: x.at[1:].add(1.0))[0].key == n.key
    assert shape(lambda x: x.at[0].set(1.0))[0].key == n.key
    with pytest.raises(TypeError, match="n"):
        shape(lambda x: x[5])
