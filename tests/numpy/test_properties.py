"""Functions on arrays of all shapes give what NumPy gives."""

import string

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import fxarray.numpy as fnp
from fxarray.errors import ShapeError

_SHAPES = hnp.array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=4)
_SMALL_SHAPES = hnp.array_shapes(max_dims=3, max_side=3)
_ANY_SHAPE = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)
_MASKED = ("sum", "prod", "max", "min", "all", "any")
_SPECIAL = st.sampled_from([np.nan, -0.0, 0.0, 1.0, -np.inf])
_FLOATS = st.floats(-100, 100).map(lambda v: round(v, 3))


def _arrays(shape=_SHAPES, dtype=np.float64, elements=_FLOATS):
    return hnp.arrays(dtype, shape, elements=elements)


def _integers(shape=_SHAPES, low=-9, high=9):
    return hnp.arrays(np.int32, shape, elements=st.integers(low, high))


def _same(actual, expected):
    actual = np.asarray(actual)
    assert actual.shape == np.shape(expected)
    np.testing.assert_allclose(actual, expected, rtol=1e-9, atol=1e-9)


@st.composite
def _array_and_axes(draw, shape=_SHAPES):
    x = draw(_arrays(shape))
    axes = draw(st.none() | hnp.valid_tuple_axes(x.ndim))
    return x, axes


@st.composite
def _array_and_axis(draw, shape=_SHAPES):
    x = draw(_arrays(shape))
    return x, draw(st.integers(-x.ndim, x.ndim - 1))


# --- broadcasting ---------------------------------------------------------------------------------


@given(hnp.mutually_broadcastable_shapes(num_shapes=3, min_side=0, max_dims=3), st.data())
def test_operands_broadcast(shapes, data):
    x, y, z = (data.draw(_arrays(shape)) for shape in shapes.input_shapes)
    _same(fnp.add(x, y), x + y)
    _same(fnp.where(x > 0, y, z), np.where(x > 0, y, z))
    _same(fnp.clip(x, y, None), np.clip(x, y, None))
    for ours, theirs in zip(
        fnp.broadcast_arrays(x, y, z), np.broadcast_arrays(x, y, z), strict=True
    ):
        _same(ours, theirs)
    assert fnp.broadcast_shapes(*shapes.input_shapes) == shapes.result_shape
    _same(fnp.broadcast_to(x, shapes.result_shape), np.broadcast_to(x, shapes.result_shape))


@given(_ANY_SHAPE, _ANY_SHAPE)
def test_shapes_that_do_not_broadcast_are_refused_by_name(first, second):
    try:
        expected = np.broadcast_shapes(first, second)
    except ValueError:
        with pytest.raises(ShapeError, match="do not broadcast"):
            fnp.ones(first) + fnp.ones(second)
    else:
        assert (fnp.ones(first) + fnp.ones(second)).shape == expected


# --- shapes ---------------------------------------------------------------------------------------


@given(_arrays(_ANY_SHAPE), st.data())
def test_dimensions_are_reordered(x, data):
    order = data.draw(st.permutations(range(x.ndim)))
    _same(fnp.transpose(x, order), np.transpose(x, order))
    if x.ndim:
        a, b = (data.draw(st.integers(-x.ndim, x.ndim - 1)) for _ in range(2))
        _same(fnp.swapaxes(x, a, b), np.swapaxes(x, a, b))
        _same(fnp.moveaxis(x, a, b), np.moveaxis(x, a, b))
        _same(fnp.rollaxis(x, a, b), np.rollaxis(x, a, b))
        _same(fnp.flip(x, a), np.flip(x, a))
        _same(fnp.expand_dims(x, a), np.expand_dims(x, a))
    if x.ndim > 1:
        turns = data.draw(st.integers(-5, 5))
        _same(fnp.rot90(x, turns), np.rot90(x, turns))


@given(_arrays(), st.data())
def test_elements_are_rearranged(x, data):
    parts = data.draw(st.permutations(x.shape))
    for order in ("C", "F"):
        _same(fnp.reshape(x, parts, order=order), np.reshape(x, parts, order=order))
        _same(fnp.ravel(x, order=order), np.ravel(x, order=order))
    unknown = data.draw(st.integers(0, len(parts) - 1))
    shape = [-1 if i == unknown else size for i, size in enumerate(parts)]
    _same(fnp.reshape(x, shape), np.reshape(x, shape))
    _same(fnp.squeeze(x), np.squeeze(x))


@given(_array_and_axis(), st.integers(-7, 7), st.integers(0, 3))
def test_elements_are_moved_and_repeated_along_an_axis(case, shift, count):
    x, axis = case
    _same(fnp.roll(x, shift, axis), np.roll(x, shift, axis))
    _same(fnp.roll(x, shift), np.roll(x, shift))
    _same(fnp.repeat(x, count, axis), np.repeat(x, count, axis))
    _same(fnp.tile(x, count), np.tile(x, count))
    _same(fnp.tile(x, (count, 2)), np.tile(x, (count, 2)))
    counts = np.arange(x.shape[axis]) % 3
    _same(fnp.repeat(x, counts, axis), np.repeat(x, counts, axis))


@given(_array_and_axis(), st.integers(1, 3), st.lists(st.integers(0, 5), max_size=3))
def test_joining_undoes_splitting(case, sections, points):
    x, axis = case
    pieces = fnp.array_split(x, sections, axis)
    for ours, theirs in zip(pieces, np.array_split(x, sections, axis), strict=True):
        _same(ours, theirs)
    _same(fnp.concatenate(pieces, axis), x)
    for ours, theirs in zip(fnp.split(x, points, axis), np.split(x, points, axis), strict=True):
        _same(ours, theirs)
    _same(fnp.stack(fnp.unstack(x, axis=axis), axis), x)


@given(_arrays(hnp.array_shapes(max_dims=3, max_side=4)), st.data())
def test_padding(x, data):
    widths = [tuple(data.draw(st.tuples(*[st.integers(0, 5)] * 2))) for _ in range(x.ndim)]
    for mode in ("constant", "edge", "reflect", "symmetric", "wrap", "maximum", "mean", "median"):
        _same(fnp.pad(x, widths, mode=mode), np.pad(x, widths, mode=mode))
    ends = [(1.0, -2.0)] * x.ndim
    _same(fnp.pad(x, widths, mode="linear_ramp", end_values=ends),
          np.pad(x, widths, mode="linear_ramp", end_values=ends))  # fmt: skip
    _same(fnp.pad(x, widths, constant_values=ends), np.pad(x, widths, constant_values=ends))
    for mode in ("reflect", "symmetric"):
        _same(fnp.pad(x, widths, mode=mode, reflect_type="odd"),
              np.pad(x, widths, mode=mode, reflect_type="odd"))  # fmt: skip


def test_padding_by_a_function():
    def outside(vector, width, axis, kwargs):
        del axis
        low, high = width
        vector = vector.at[:low].set(kwargs["value"])
        return vector.at[len(vector) - high :].set(kwargs["value"])

    def in_place(vector, width, axis, kwargs):
        vector[:] = outside(fnp.asarray(vector), width, axis, kwargs)

    x, widths = np.arange(6.0).reshape(2, 3), ((1, 2), (2, 1))
    expected = np.pad(x, widths, in_place, value=7.0)
    _same(fnp.pad(x, widths, outside, value=7.0), expected)


# --- reductions -----------------------------------------------------------------------------------


@given(_array_and_axes(), st.booleans())
@pytest.mark.parametrize(
    "name", ["sum", "prod", "max", "min", "mean", "var", "std", "all", "any", "ptp"]
)
def test_reductions_over_axes(name, case, keepdims):
    x, axes = case
    x = x / 50 if name == "prod" else x
    expected = getattr(np, name)(x, axis=axes, keepdims=keepdims)
    _same(getattr(fnp, name)(x, axis=axes, keepdims=keepdims), expected)
    _same(getattr(fnp.asarray(x), name)(axis=axes, keepdims=keepdims), expected)


@given(_array_and_axes(), st.data())
@pytest.mark.parametrize("name", _MASKED)
def test_masked_reductions(name, case, data):
    x, axes = case
    x = x / 50 if name == "prod" else x
    where = data.draw(hnp.arrays(bool, x.shape))
    extra = {} if name in ("all", "any") else {"initial": 0.5}
    _same(getattr(fnp, name)(x, axis=axes, where=where, **extra),
          getattr(np, name)(x, axis=axes, where=where, **extra))  # fmt: skip


@given(_array_and_axes(), st.data())
def test_masked_means_and_variances(case, data):
    x, axes = case
    where = data.draw(hnp.arrays(bool, x.shape))
    assume((where.sum(axis=axes) > 1).all())
    _same(fnp.mean(x, axis=axes, where=where), np.mean(x, axis=axes, where=where))
    _same(fnp.var(x, axis=axes, where=where, ddof=1), np.var(x, axis=axes, where=where, ddof=1))


@given(_array_and_axis())
@pytest.mark.parametrize("name", ["argmax", "argmin", "cumsum", "cumprod", "median", "nansum"])
def test_reductions_along_an_axis(name, case):
    x, axis = case
    x = x / 50 if name == "cumprod" else x
    _same(getattr(fnp, name)(x, axis=axis), getattr(np, name)(x, axis=axis))
    _same(getattr(fnp, name)(x), getattr(np, name)(x))


@given(_array_and_axes(), st.data())
@pytest.mark.filterwarnings("ignore:All-NaN", "ignore:Mean of empty", "ignore:Degrees of freedom")
def test_reductions_without_nan(case, data):
    x, axes = case
    x = np.where(data.draw(hnp.arrays(bool, x.shape)), np.nan, x)
    for name in ("nansum", "nanmax", "nanmin", "nanmean", "nanstd", "nanvar", "nanmedian"):
        _same(getattr(fnp, name)(x, axis=axes), getattr(np, name)(x, axis=axes))
    _same(fnp.nanquantile(x, 0.3, axis=axes), np.nanquantile(x, 0.3, axis=axes))


@given(_array_and_axes(), st.floats(0, 1), st.booleans())
def test_quantiles(case, q, keepdims):
    x, axes = case
    for method in ("linear", "lower", "higher", "midpoint", "nearest", "inverted_cdf"):
        _same(fnp.quantile(x, q, axis=axes, method=method, keepdims=keepdims),
              np.quantile(x, q, axis=axes, method=method, keepdims=keepdims))  # fmt: skip
    percents = np.array([100 * q, 50.0])
    _same(fnp.percentile(x, percents, axis=axes), np.percentile(x, percents, axis=axes))


# --- sorting and searching ------------------------------------------------------------------------


@given(_integers(), st.data())
def test_sorting_is_stable_and_keeps_lanes_together(x, data):
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    _same(fnp.sort(x, axis), np.sort(x, axis))
    order = np.asarray(fnp.argsort(x, axis))
    _same(order, np.argsort(x, axis, kind="stable"))
    backwards = np.asarray(fnp.argsort(x, axis, descending=True))
    _same(backwards, np.argsort(-x, axis, kind="stable"))
    _same(fnp.take_along_axis(x, order, axis), np.sort(x, axis))
    kth = x.shape[axis] // 2
    part = np.take(np.asarray(fnp.partition(x, kth, axis)), kth, axis)
    _same(part, np.take(np.sort(x, axis), kth, axis))


@given(
    hnp.arrays(
        np.float64, st.integers(1, 8), elements=st.sampled_from([np.nan, -0.0, 0.0, 1.0, -np.inf])
    )
)
def test_special_values_sort_as_in_numpy(x):
    _same(fnp.sort(x), np.sort(x))
    _same(fnp.argsort(x), np.argsort(x, kind="stable"))
    _same(fnp.unique(x), np.unique(x))
    assert np.array_equal(np.signbit(fnp.sort(x)), np.signbit(x[np.argsort(x, kind="stable")]))


@given(_integers(st.integers(1, 9)), _integers(st.integers(1, 9)))
def test_sets(x, y):
    _same(fnp.unique(x), np.unique(x))
    options = {"return_index": True, "return_inverse": True, "return_counts": True}
    for ours, theirs in zip(fnp.unique(x, **options), np.unique(x, **options), strict=True):
        _same(ours, theirs)
    _same(fnp.isin(x, y), np.isin(x, y))
    _same(fnp.union1d(x, y), np.union1d(x, y))
    _same(fnp.setdiff1d(x, y), np.setdiff1d(x, y))
    _same(fnp.setxor1d(x, y), np.setxor1d(x, y))
    ours = fnp.intersect1d(x, y, return_indices=True)
    for left, right in zip(ours, np.intersect1d(x, y, return_indices=True), strict=True):
        _same(left, right)


@given(_integers(hnp.array_shapes(min_dims=2, max_dims=3, max_side=4), -1, 1), st.data())
def test_unique_slices_along_an_axis(x, data):
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    options = {"return_index": True, "return_counts": True, "axis": axis}
    for ours, theirs in zip(fnp.unique(x, **options), np.unique(x, **options), strict=True):
        _same(ours, theirs)


@given(_arrays(st.integers(1, 9)), _arrays())
def test_searching_in_a_sorted_vector(table, queries):
    table = np.sort(table)
    for side in ("left", "right"):
        _same(fnp.searchsorted(table, queries, side), np.searchsorted(table, queries, side))
        right = side == "left"
        _same(fnp.digitize(queries, table, right), np.digitize(queries, table, right))
        _same(fnp.digitize(queries, table[::-1], right), np.digitize(queries, table[::-1], right))
    order = np.random.default_rng(0).permutation(len(table))
    _same(fnp.searchsorted(table[order], queries, sorter=np.argsort(table[order])),
          np.searchsorted(table, queries))  # fmt: skip


# --- indexing functions ---------------------------------------------------------------------------


@given(_array_and_axis(), _integers(hnp.array_shapes(max_dims=2, max_side=3), -20, 20))
def test_taking_along_an_axis(case, indices):
    x, axis = case
    for mode in ("clip", "wrap"):
        _same(fnp.take(x, indices, axis, mode=mode), np.take(x, indices, axis, mode=mode))
        _same(fnp.take(x, indices, mode=mode), np.take(x, indices, mode=mode))
    length = x.shape[axis]
    outside = (indices < -length) | (indices >= length)
    inside = np.take(x, np.where(outside, 0, indices), axis)
    place = axis % x.ndim
    spread = outside.reshape((1,) * place + outside.shape + (1,) * (x.ndim - place - 1))
    _same(fnp.take(x, indices, axis), np.where(spread, np.nan, inside))


@given(_array_and_axis(), st.data())
def test_taking_out_and_putting_in(case, data):
    x, axis = case
    length = x.shape[axis]
    index = data.draw(st.integers(-length, length - 1))
    several = np.array(
        data.draw(st.lists(st.integers(-length, length - 1), min_size=1, max_size=4))
    )
    _same(fnp.delete(x, index, axis), np.delete(x, index, axis))
    _same(fnp.delete(x, several, axis), np.delete(x, several, axis))
    _same(fnp.insert(x, index, 7.0, axis), np.insert(x, index, 7.0, axis))
    _same(fnp.insert(x, several, 7.0, axis), np.insert(x, several, 7.0, axis))
    mask = data.draw(hnp.arrays(bool, length))
    _same(fnp.compress(mask, x, axis), np.compress(mask, x, axis))
    _same(fnp.delete(x, mask, axis), np.delete(x, mask, axis))


@given(_arrays(), st.data())
def test_finding_and_filling_by_masks(x, data):
    mask = data.draw(hnp.arrays(bool, x.shape))
    for ours, theirs in zip(fnp.nonzero(mask), np.nonzero(mask), strict=True):
        _same(ours, theirs)
    _same(fnp.argwhere(mask), np.argwhere(mask))
    _same(fnp.flatnonzero(mask), np.flatnonzero(mask))
    _same(fnp.extract(mask, x), np.extract(mask, x))
    expected = x.copy()
    np.place(expected, mask, [1.0, 2.0, 3.0])
    _same(fnp.place(x, mask, np.array([1.0, 2.0, 3.0]), inplace=False), expected)


# --- products -------------------------------------------------------------------------------------


@given(hnp.mutually_broadcastable_shapes(signature="(n?,k),(k,m?)->(n?,m?)", max_dims=2), st.data())
def test_matrix_products_of_stacks(shapes, data):
    x, y = (data.draw(_arrays(shape)) for shape in shapes.input_shapes)
    _same(fnp.matmul(x, y), np.matmul(x, y))


@given(
    _arrays(hnp.array_shapes(max_dims=3, max_side=3)),
    _arrays(hnp.array_shapes(max_dims=3, max_side=3)),
)
def test_outer_products(x, y):
    _same(fnp.kron(x, y), np.kron(x, y))
    _same(fnp.outer(x, y), np.outer(x, y))
    _same(fnp.tensordot(x, y, 0), np.tensordot(x, y, 0))


@st.composite
def _einsum(draw):
    sizes = {letter: draw(st.integers(1, 3)) for letter in string.ascii_lowercase[:5]}
    count = draw(st.integers(1, 3))
    inputs = [
        draw(st.lists(st.sampled_from(list(sizes)), min_size=1, max_size=3)) for _ in range(count)
    ]
    used = sorted({letter for labels in inputs for letter in labels})
    output = draw(st.permutations(used))[: draw(st.integers(0, len(used)))]
    text = ",".join("".join(labels) for labels in inputs)
    if draw(st.booleans()):
        text += "->" + "".join(output)
    return text, [draw(_arrays(tuple(sizes[letter] for letter in labels))) for labels in inputs]


@given(_einsum(), st.sampled_from([True, False, "greedy"]))
def test_einsum(case, optimize):
    text, operands = case
    actual = np.asarray(fnp.einsum(text, *operands, optimize=optimize))
    np.testing.assert_allclose(actual, np.einsum(text, *operands), rtol=1e-8, atol=1e-6)


@given(_arrays(st.integers(1, 7)), _arrays(st.integers(1, 7)))
def test_convolution(x, y):
    for mode in ("full", "same", "valid"):
        np.testing.assert_allclose(fnp.convolve(x, y, mode), np.convolve(x, y, mode), atol=1e-8)
        np.testing.assert_allclose(fnp.correlate(x, y, mode), np.correlate(x, y, mode), atol=1e-8)


# --- numbers --------------------------------------------------------------------------------------


@given(hnp.arrays(np.float64, st.integers(1, 8), elements=st.floats(allow_subnormal=True)))
def test_parts_of_floating_point_numbers(x):
    with np.errstate(all="ignore"):
        mantissa, exponent = fnp.frexp(x)
        expected_mantissa, expected_exponent = np.frexp(x)
        np.testing.assert_array_equal(mantissa, expected_mantissa)
        finite = np.isfinite(x)
        np.testing.assert_array_equal(np.asarray(exponent)[finite], expected_exponent[finite])
        np.testing.assert_array_equal(fnp.ldexp(mantissa, exponent), x)
        for ours, theirs in zip(fnp.modf(x), np.modf(x), strict=True):
            np.testing.assert_array_equal(ours, theirs)
        for name in (
            "signbit",
            "rint",
            "trunc",
            "floor",
            "ceil",
            "isnan",
            "isinf",
            "sign",
            "nan_to_num",
        ):
            np.testing.assert_array_equal(getattr(fnp, name)(x), getattr(np, name)(x))
        np.testing.assert_array_equal(fnp.copysign(1.5, x), np.copysign(1.5, x))


@given(_integers(st.just(6), -1000, 1000), _integers(st.just(6), -1000, 1000))
def test_divisors_and_multiples(x, y):
    np.testing.assert_array_equal(fnp.gcd(x, y), np.gcd(x, y))
    np.testing.assert_array_equal(fnp.lcm(x, y), np.lcm(x, y))
    nonzero = np.where(y == 0, 1, y)
    for ours, theirs in zip(fnp.divmod(x, nonzero), np.divmod(x, nonzero), strict=True):
        np.testing.assert_array_equal(ours, theirs)


@given(st.lists(_FLOATS, min_size=2, max_size=8), _arrays())
def test_interpolation(heights, places):
    points = np.cumsum(np.abs(heights) + 0.5)
    heights = np.array(heights)
    np.testing.assert_allclose(
        fnp.interp(places, points, heights),
        np.interp(places, points, heights),
        rtol=1e-9,
        atol=1e-6,
    )
    for ends in ({}, {"left": 1.0, "right": -1.0}):
        expected = np.interp(places, points, heights, **ends)
        actual = fnp.interp(places, points, heights, **ends)
        np.testing.assert_allclose(actual, expected, rtol=1e-9, atol=1e-6)


@given(_arrays(), st.integers(1, 6), st.booleans())
def test_histograms(x, bins, density):
    assume(np.ptp(x) > 0.1)
    inner = np.abs((x - x.min()) / np.ptp(x) * bins % 1 - 0.5) < 0.499  # away from edges
    x = x[inner | (x == x.min()) | (x == x.max())]
    counts, edges = fnp.histogram(x, bins, density=density)
    expected, expected_edges = np.histogram(x, bins, density=density)
    _same(edges, expected_edges)
    _same(counts, expected)
