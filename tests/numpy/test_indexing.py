"""`x[index]` and `x.at[index]` against NumPy, and where they differ from it on purpose."""

import functools

import jax
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

SHAPES = [(), (5,), (4, 3), (2, 5, 3), (3, 1, 4, 2), (0, 3), (2, 0)]


def values(shape, dtype="float32"):
    return (np.arange(int(np.prod(shape))).reshape(shape) * 3 % 17 + 1).astype(dtype)


# --- drawing indices ------------------------------------------------------------------------------


@st.composite
def slices(draw, size):
    bound = st.none() | st.integers(-size - 2, size + 2)
    step = draw(st.none() | st.integers(-3, 3).filter(bool))
    return slice(draw(bound), draw(bound), step)


@st.composite
def indices(draw, shape, arrays=True):
    """An index of an array, in NumPy's terms."""
    group = draw(st.sampled_from([(3,), (2, 1), (1, 3), (0,), ()])) if arrays else ()
    items = []
    dimension = 0
    count = draw(st.integers(0, len(shape)))
    ellipsis = draw(st.none() | st.integers(0, count))
    taken = 0
    while taken < count:
        if ellipsis is not None and taken == ellipsis:
            items.append(Ellipsis)
            dimension = len(shape) - (count - taken)
            ellipsis = None
        if draw(st.booleans()) and draw(st.booleans()):
            items.append(None)
        size = shape[dimension]
        kinds = ["slice"]
        if size:
            kinds.append("int")
            if arrays:
                kinds += ["array", "mask"]
        elif arrays:
            kinds.append("empty")
        kind = draw(st.sampled_from(kinds))
        if kind == "slice":
            items.append(draw(slices(size)))
        elif kind == "int":
            items.append(draw(st.integers(-size, size - 1)))
        elif kind == "empty":
            items.append(np.zeros((0,), np.int32))
            group = (0,)
        elif kind == "mask":
            mask = np.zeros(size, bool)
            # As many as the group broadcasts with.
            number = draw(st.sampled_from([n for n in (group[-1] if group else 1, 1) if n <= size]))
            mask[draw(st.permutations(range(size)))[:number]] = True
            items.append(mask)
        else:
            entries = st.integers(-size, size - 1)
            flat = draw(
                st.lists(entries, min_size=int(np.prod(group)), max_size=int(np.prod(group)))
            )
            items.append(
                np.array(flat, draw(st.sampled_from(["int32", "int64", "int8"]))).reshape(group)
            )
        dimension += 1
        taken += 1
    if ellipsis is not None:
        items.append(Ellipsis)
    if draw(st.booleans()) and draw(st.booleans()):
        items.append(None)
    return tuple(items)


def valid(x, index):
    """What NumPy gives, or None if it refuses."""
    try:
        return x[index]
    except IndexError:
        return None


def unknown(index):
    """The index with its arrays and integers as arrays of ours, whose values are not looked at."""
    return tuple(
        fnp.asarray(item)
        if isinstance(item, np.ndarray | int) and not isinstance(item, bool)
        else item
        for item in index
    )


def positions_of(index):
    """Split an index into the arrays of its integers and the function that puts them back."""
    arrays = [np.asarray(i) for i in index if isinstance(i, int) or _is_integers(i)]

    def rebuild(traced):
        given_arrays = iter(traced)
        return tuple(
            next(given_arrays) if isinstance(i, int) or _is_integers(i) else i for i in index
        )

    return arrays, rebuild


def _is_integers(item):
    return isinstance(item, np.ndarray) and item.dtype != bool


# --- reading --------------------------------------------------------------------------------------


@settings(max_examples=400)
@given(st.data())
def test_getitem_is_numpys(data):
    shape = data.draw(st.sampled_from(SHAPES))
    index = data.draw(indices(shape))
    x = values(shape)
    expected = valid(x, index)
    if expected is None:
        return
    for way in (index, unknown(index)):
        result = fnp.asarray(x)[way]
        assert result.shape == expected.shape, (index, result.shape, expected.shape)
        np.testing.assert_array_equal(np.asarray(result), expected)


@settings(max_examples=60)
@given(st.data())
def test_getitem_is_numpys_when_staged_and_when_positions_are_traced(data):
    shape = data.draw(st.sampled_from(SHAPES))
    index = data.draw(indices(shape))
    x = values(shape)
    expected = valid(x, index)
    if expected is None:
        return
    arrays, rebuild = positions_of(index)
    np.testing.assert_array_equal(fxarray.jit(lambda x: x[index])(x), expected)
    result = fxarray.jit(lambda x, *arrays: x[rebuild(arrays)])(x, *arrays)
    np.testing.assert_array_equal(np.asarray(result), expected)


@settings(max_examples=60)
@given(st.data())
def test_getitem_under_vmap_is_a_loop(data):
    shape = data.draw(st.sampled_from([(5,), (4, 3), (2, 5, 3)]))
    index = data.draw(indices(shape))
    xs = np.stack([values(shape), values(shape)[::-1] * 2])
    if valid(xs[0], index) is None:
        return
    arrays, rebuild = positions_of(index)
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
@given(st.data())
def test_the_gradient_of_reading_adds_where_elements_were_read(data):
    shape = data.draw(st.sampled_from([(5,), (4, 3), (2, 5, 3)]))
    index = data.draw(indices(shape))
    x = values(shape)
    read = valid(x, index)
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
        return (x[unknown(index)] * weights).sum() * 2

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
        (slice(None, None, 0), IndexingError, "step"),
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


# --- writing --------------------------------------------------------------------------------------

OPERATIONS = {
    "set": None,
    "add": np.add,
    "multiply": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
    "subtract": np.subtract,
}


def numpy_update(x, index, kind, new):
    result = np.array(x)
    if kind == "set":
        result[index] = new
    else:
        OPERATIONS[kind].at(result, index, new)
    return result


@settings(max_examples=400)
@given(st.data())
def test_updates_are_numpys(data):
    shape = data.draw(st.sampled_from(SHAPES))
    index = data.draw(indices(shape))
    x = values(shape)
    read = valid(x, index)
    if read is None:
        return
    kind = data.draw(st.sampled_from(sorted(OPERATIONS)))
    whole = data.draw(st.booleans())
    new = np.float32(2.5) if not whole else values(read.shape) / 2
    if whole and read.ndim and data.draw(st.booleans()):
        new = new[..., :1]
    expected = numpy_update(x, index, kind, new)
    for way in (index, unknown(index)):
        result = getattr(fnp.asarray(x).at[way], kind)(new)
        assert result.dtype == x.dtype
        np.testing.assert_allclose(np.asarray(result), expected, rtol=1e-6, err_msg=str(index))
    staged = fxarray.jit(lambda x, new: getattr(x.at[index], kind)(new))(x, new)
    np.testing.assert_allclose(np.asarray(staged), expected, rtol=1e-6)


@settings(max_examples=60)
@given(st.data())
def test_updates_under_vmap_are_a_loop(data):
    shape = data.draw(st.sampled_from([(5,), (4, 3), (2, 5, 3)]))
    index = data.draw(indices(shape))
    if valid(values(shape), index) is None:
        return
    kind = data.draw(st.sampled_from(sorted(OPERATIONS)))
    xs = np.stack([values(shape), values(shape)[::-1] * 2])
    new = np.array([0.5, 3], np.float32)
    arrays, rebuild = positions_of(index)
    flipped = [np.stack([a, np.flip(a)]) for a in arrays]
    expected = np.stack(
        [numpy_update(x, rebuild([a[i] for a in flipped]), kind, new[i]) for i, x in enumerate(xs)]
    )

    def function(x, new, *a):
        return getattr(x.at[rebuild(a)], kind)(new)

    np.testing.assert_allclose(fxarray.vmap(function)(xs, new, *flipped), expected, rtol=1e-6)


@settings(max_examples=80)
@given(st.data())
def test_gradients_of_updates_agree_with_central_differences(data):
    shape = data.draw(st.sampled_from([(5,), (4, 3)]))
    index = data.draw(indices(shape))
    x = values(shape, "float64") / 3
    read = valid(x, index)
    if read is None:
        return
    kind = data.draw(st.sampled_from(sorted(OPERATIONS)))
    # No two values are equal, so there are no ties.
    new = np.asarray(np.arange(1, 1 + read.size).reshape(read.shape) * 0.37 + 1.011)
    weights = values(shape, "float64") / 5
    rng = np.random.default_rng(0)
    along = (rng.normal(size=x.shape), np.asarray(rng.normal(size=new.shape)))

    def loss(x, new):
        return (getattr(x.at[index], kind)(new) * weights).sum()

    step = 1e-6
    high = numpy_update(x + step * along[0], index, kind, new + step * along[1])
    low = numpy_update(x - step * along[0], index, kind, new - step * along[1])
    expected = ((high - low) * weights).sum() / (2 * step)
    gradients = fxarray.grad(loss, argnums=(0, 1))(x, new)
    result = sum((np.asarray(g) * a).sum() for g, a in zip(gradients, along, strict=True))
    np.testing.assert_allclose(result, expected, rtol=1e-6, atol=1e-6)
    tangent = fxarray.jvp(loss, (x, new), along)[1]
    np.testing.assert_allclose(tangent, expected, rtol=1e-6, atol=1e-6)


def test_set_keeps_the_last_value_of_a_repeated_position():
    x = fnp.zeros(3)
    index = fnp.array([1, 1, 0, 1])
    np.testing.assert_array_equal(x.at[index].set(fnp.array([5.0, 6, 7, 8])), [7, 8, 0])

    def loss(new):
        return (x.at[index].set(new) * fnp.array([2.0, 3, 4])).sum()

    np.testing.assert_array_equal(fxarray.grad(loss)(np.ones(4)), [0, 0, 2, 3])


@pytest.mark.parametrize("kind", ["min", "max"])
def test_ties_share_the_derivative_as_in_jax(kind):
    x, new = np.arange(5.0), np.array([0.0, 0.0, 1.0, 7.0])
    index = np.array([0, 0, 1, 1])

    def loss(module):
        return lambda x, new: getattr(module.asarray(x).at[index], kind)(new).sum()

    expected = jax.grad(loss(jnp), argnums=(0, 1))(jnp.asarray(x), jnp.asarray(new))
    got = fxarray.grad(loss(fnp), argnums=(0, 1))(x, new)
    for a, b in zip(got, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_products_with_repeated_positions_and_zeros_have_exact_derivatives():
    x = np.array([2.0, 3.0])
    index = np.array([0, 0, 0, 1, 1])
    new = np.array([0.0, 5.0, 4.0, 0.0, 0.0])

    def loss(new):
        return fnp.asarray(x).at[index].multiply(new).sum()

    np.testing.assert_array_equal(fxarray.grad(loss)(new), [40, 0, 0, 0, 0])

    def twice(x):
        return x.at[fnp.array([0, 0])].multiply(2).sum()

    np.testing.assert_array_equal(fxarray.grad(twice)(x), [4, 1])


def test_overwritten_elements_have_no_derivative():
    x = values(5)
    np.testing.assert_array_equal(
        fxarray.grad(lambda x: x.at[1:3].set(0).sum())(x), [1, 0, 0, 1, 1]
    )
    np.testing.assert_array_equal(
        fxarray.grad(lambda x: x.at[fnp.array([1, 4])].set(0).sum())(x), [1, 0, 1, 1, 0]
    )


def test_divide_and_power():
    x = values((4, 3))
    ours = fnp.asarray(x)
    expected = x.copy()
    expected[1] /= 2
    np.testing.assert_allclose(ours.at[1].divide(2), expected)
    expected = x.copy()
    expected[:, 1] **= 2
    np.testing.assert_allclose(ours.at[:, 1].power(2), expected)
    whole = fnp.arange(3).at[2].divide(2)
    assert whole.dtype == np.float32
    assert whole.tolist() == [0, 1, 1]
    assert fnp.arange(3).at[2].divide(2.5).tolist() == pytest.approx([0, 1, 0.8])


@pytest.mark.parametrize("kind", ["set", "add", "multiply", "min", "max"])
def test_an_update_under_a_traced_mask(kind):
    x = values((4, 3))
    masks = [
        (lambda x: x > 5, lambda m: (m,), 2.5),
        (lambda x: x[:, 0] > 5, lambda m: (m,), np.array([1.0, 2.0, 3.0], np.float32)),
        (lambda x: x[0] > 5, lambda m: (slice(None), m), 2.5),
        (
            lambda x: x[0] > 5,
            lambda m: (slice(None, None, 2), m),
            np.array([[1.0], [2.0]], np.float32),
        ),
        (lambda x: x[0] > 5, lambda m: (1, m), 2.5),
        (lambda x: x[:, 0] > 5, lambda m: (m, -1), 2.5),
        (lambda x: x[0] > 5, lambda m: (None, slice(None, None, -1), m), 2.5),
    ]
    for mask, index, new in masks:
        expected = numpy_update(x, index(mask(x)), kind, new)
        operation = functools.partial(update_under_mask, kind, mask, index, new)
        for result in (
            fxarray.jit(operation)(x),
            operation(fnp.asarray(x)),
            fxarray.vmap(operation)(x[None])[0],
        ):
            np.testing.assert_allclose(np.asarray(result), expected, rtol=1e-6)


def update_under_mask(kind, mask, index, new, x):
    return getattr(x.at[index(mask(x))], kind)(new)


def test_a_mask_between_separated_indices():
    x = values((2, 4, 3))
    mask = x[0, 0] > 5
    new = np.arange(4, dtype=np.float32)
    expected = x.copy()
    expected[1, :, mask] = new
    result = fxarray.jit(lambda x, m: x.at[1, :, m].set(new))(x, mask)
    np.testing.assert_array_equal(result, expected)


def test_a_traced_mask_takes_one_value_only():
    x = values((4, 3))
    with pytest.raises(NonConcreteBooleanIndexError, match="one value"):
        fxarray.jit(lambda x: x.at[x > 5].set(fnp.ones(3)))(x)
    # A known one takes as many as there are.
    count = int((x > 5).sum())
    expected = x.copy()
    expected[x > 5] = np.arange(count)
    np.testing.assert_array_equal(fnp.asarray(x).at[x > 5].set(np.arange(count)), expected)


def test_values_that_would_lose_something_are_refused():
    counts = fnp.zeros(3, int)
    with pytest.raises(DTypeError, match="fraction"):
        counts.at[0].set(1.5)
    with pytest.raises(DTypeError, match="fraction"):
        counts.at[0].add(fnp.ones(()))
    with pytest.raises(DTypeError, match="imaginary"):
        fnp.zeros(3).at[0].set(1j)
    with pytest.raises(OverflowError):
        fnp.zeros(3, "int8").at[0].set(300)
    assert fnp.zeros(3, "bfloat16").at[0].set(np.float32(1.5)).tolist() == [1.5, 0, 0]
    assert fnp.zeros(3, bool).at[1].set(True).tolist() == [False, True, False]


def test_values_that_do_not_broadcast_are_refused():
    x = fnp.zeros((4, 3))
    for index in (0, slice(1, 3), fnp.array([0, 1])):
        with pytest.raises(ValueError, match="broadcast"):
            x.at[index].set(np.ones(5))
        with pytest.raises(ValueError, match="broadcast"):
            x.at[index].set(np.ones((7, 1, 3)))


def test_update_modes():
    x = np.zeros(5, np.float32)
    for index in (7, np.array([7, 1])):
        for mode in ("drop", "clip", "fill"):
            expected = jnp.asarray(x).at[jnp.asarray(index)].add(1, mode=mode)
            np.testing.assert_array_equal(fnp.asarray(x).at[index].add(1, mode=mode), expected)
    assert fnp.asarray(x).at[7].set(1, mode="wrap").tolist() == [0, 0, 1, 0, 0]
    assert (
        fnp.asarray(x).at[-1].set(1, mode="drop", wrap_negative_indices=False).tolist() == [0] * 5
    )
    with pytest.raises(ValueError, match="mode"):
        fnp.asarray(x).at[0].set(1, mode="sideways")


def test_updates_leave_the_array_as_it_was():
    x = fnp.zeros(3)
    assert x.at[0].set(1.0).tolist() == [1, 0, 0]
    assert x.at[:].set(1.0).tolist() == [1, 1, 1]
    assert x.tolist() == [0, 0, 0]


def test_updating_a_deleted_array_raises():
    x = fnp.zeros(3)
    x.delete()
    with pytest.raises(RuntimeError, match="deleted"):
        x[0]
    with pytest.raises(RuntimeError, match="deleted"):
        x.at[0].set(1.0)


def test_apply():
    x = values((4, 3))

    def double(v):
        return v * 2 + 1

    ours = fnp.asarray(x)
    for index in (1, slice(None, None, 2), (slice(None), -1), np.array([2, 0]), x > 5):
        expected = x.copy()
        expected[index] = double(expected[index])
        np.testing.assert_array_equal(ours.at[index].apply(double), expected)
    # Once for each time that a position is given, as NumPy's ufunc.at does.
    expected = x.copy()
    np.negative.at(expected, [0, 0, 0, 1, 2, 2])
    index = fnp.array([0, 0, 0, 1, 2, 2])
    np.testing.assert_array_equal(ours.at[index].apply(lambda v: -v), expected)
    staged = fxarray.jit(lambda x, i: x.at[i].apply(lambda v: -v))(x, index)
    np.testing.assert_array_equal(staged, expected)
    gradient = fxarray.grad(lambda x: x.at[index].apply(lambda v: 3 * v).sum())(x)
    np.testing.assert_array_equal(gradient[:, 0], [27, 3, 9, 1])
    assert fnp.asarray(x).at[9].apply(double, mode="drop").tolist() == x.tolist()
    masked = fxarray.jit(lambda x: x.at[x > 5].apply(double))(x)
    np.testing.assert_array_equal(masked, np.where(x > 5, double(x), x))
