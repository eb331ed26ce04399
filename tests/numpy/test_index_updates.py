"""`x.at[index]` against NumPy, and where it differs from it on purpose."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fxarray
import fxarray.numpy as fnp
from fxarray.core.errors import DTypeError, NonConcreteBooleanIndexError


def values(shape, dtype="float32"):
    return (np.arange(int(np.prod(shape))).reshape(shape) * 3 % 17 + 1).astype(dtype)


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
@given(data=st.data())
def test_updates_are_numpys(indexing, data):
    shape = data.draw(st.sampled_from(indexing.SHAPES))
    index = data.draw(indexing.indices(shape))
    x = values(shape)
    read = indexing.valid(x, index)
    if read is None:
        return
    kind = data.draw(st.sampled_from(sorted(OPERATIONS)))
    whole = data.draw(st.booleans())
    new = np.float32(2.5) if not whole else values(read.shape) / 2
    if whole and read.ndim and data.draw(st.booleans()):
        new = new[..., :1]
    expected = numpy_update(x, index, kind, new)
    for way in (index, indexing.unknown(index)):
        result = getattr(fnp.asarray(x).at[way], kind)(new)
        assert result.dtype == x.dtype
        np.testing.assert_allclose(np.asarray(result), expected, rtol=1e-6, err_msg=str(index))
    staged = fxarray.jit(lambda x, new: getattr(x.at[index], kind)(new))(x, new)
    np.testing.assert_allclose(np.asarray(staged), expected, rtol=1e-6)


@settings(max_examples=60)
@given(data=st.data())
def test_updates_under_vmap_are_a_loop(indexing, data):
    shape = data.draw(st.sampled_from([(5,), (4, 3), (2, 5, 3)]))
    index = data.draw(indexing.indices(shape))
    if indexing.valid(values(shape), index) is None:
        return
    kind = data.draw(st.sampled_from(sorted(OPERATIONS)))
    xs = np.stack([values(shape), values(shape)[::-1] * 2])
    new = np.array([0.5, 3], np.float32)
    arrays, rebuild = indexing.positions_of(index)
    flipped = [np.stack([a, np.flip(a)]) for a in arrays]
    expected = np.stack(
        [numpy_update(x, rebuild([a[i] for a in flipped]), kind, new[i]) for i, x in enumerate(xs)]
    )

    def function(x, new, *a):
        return getattr(x.at[rebuild(a)], kind)(new)

    np.testing.assert_allclose(fxarray.vmap(function)(xs, new, *flipped), expected, rtol=1e-6)


@settings(max_examples=80)
@given(data=st.data())
def test_gradients_of_updates_agree_with_central_differences(indexing, data):
    shape = data.draw(st.sampled_from([(5,), (4, 3)]))
    index = data.draw(indexing.indices(shape))
    x = values(shape, "float64") / 3
    read = indexing.valid(x, index)
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
