"""Points 48 to 51: bounds, masks, the order of NaN and ties, trees."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, namedtuple
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
import pytest

import fxarray as fx
import fxarray.numpy as fnp
from fxarray import lax, tree_util
from fxarray.core.errors import NonConcreteBooleanIndexError, OutOfBoundsError

X = np.array([10.0, 11.0, 12.0, 13.0, 14.0], np.float32)
NAN = np.nan

# --- point 48: bounds ---------------------------------------------------------------------------


@pytest.mark.parametrize("index", [5, 10, -6, (slice(None), 3), np.array([0, 9])])
def test_a_known_index_out_of_bounds_is_an_index_error(index):
    """Point 48, improved: x[10] raises where JAX returns x[-1], in jit too."""
    x = fnp.zeros((5, 3))
    for read in (lambda x: x[index], lambda x: x.at[index].set(1.0)):
        with pytest.raises(IndexError, match="out of bounds"):
            read(x)
        with pytest.raises(OutOfBoundsError, match="out of bounds"):
            fx.jit(read)(x)


def test_traced_reads_clamp_and_negative_ones_wrap():
    """Point 48: x[i] for a traced i clamps; -1 is the last element even if traced."""
    read = fx.jit(lambda x, i: x[i])
    assert [float(read(X, i)) for i in (0, 4, 99, -1, -5, -99)] == [10, 14, 14, 14, 10, 10]
    assert fx.vmap(lambda i: fnp.asarray(X)[i])(fnp.array([7, -1])).tolist() == [14, 14]


def test_take_fills_and_scatter_drops_out_of_bounds():
    """Point 48: take and take_along_axis give NaN out of bounds; updates there are dropped."""
    index = fnp.array([1, 7, -1, -9])
    np.testing.assert_array_equal(fx.jit(fnp.take)(X, index), [11, NAN, 14, NAN])
    np.testing.assert_array_equal(fx.jit(fnp.take_along_axis)(X, index), [11, NAN, 14, NAN])
    update = fx.jit(lambda x, i: x.at[i].add(100.0))
    np.testing.assert_array_equal(update(X, index), [10, 111, 12, 13, 114])


@pytest.mark.parametrize("mode", ["fill", "drop", "clip"])
def test_the_modes_of_reading_and_writing_are_jaxs(mode):
    """Point 48: mode=fill, drop and clip, on reading and on writing."""
    index = np.array([1, 7, 4], np.int32)
    ours = fx.jit(lambda x, i: x.at[i].get(mode=mode))(X, index)
    np.testing.assert_array_equal(ours, jnp.asarray(X).at[index].get(mode=mode))
    ours = fx.jit(lambda x, i: fnp.asarray(x).at[i].add(1.0, mode=mode))(X, index)
    np.testing.assert_array_equal(ours, jnp.asarray(X).at[index].add(1.0, mode=mode))


def test_mode_wrap_counts_around():
    """Point 48: mode=wrap takes the index modulo the size, on reading and on writing."""
    index = fnp.array([1, 7, -6])
    assert fx.jit(lambda x, i: x.at[i].get(mode="wrap"))(X, index).tolist() == [11, 12, 14]
    added = fx.jit(lambda x, i: x.at[i].add(1.0, mode="wrap"))(X, index)
    assert added.tolist() == [10, 12, 13, 13, 15]
    assert fx.jit(lambda x, i: fnp.take(x, i, mode="wrap"))(X, index).tolist() == [11, 12, 14]


def test_promise_in_bounds_reads_what_is_in_bounds():
    """Point 48: mode=promise_in_bounds is an ordinary read for indices that keep the promise."""
    index = fnp.array([3, 0])
    result = fx.jit(lambda x, i: x.at[i].get(mode="promise_in_bounds"))(X, index)
    assert result.tolist() == [13, 10]


@pytest.mark.parametrize("start", [-9, -1, 0, 2, 3, 4, 99])
def test_dynamic_slices_clamp_their_start(start):
    """Point 48: dynamic_slice and dynamic_update_slice move the start so that all fits."""
    # lax counts a negative start from the end first, as JAX does.
    clamped = min(max(start + 5 if start < 0 else start, 0), 3)
    got = fx.jit(lambda x, i: lax.dynamic_slice(x, (i,), (2,)))(X, start)
    np.testing.assert_array_equal(got, X[clamped : clamped + 2])
    expected = X.copy()
    expected[clamped : clamped + 2] = 0
    update = fx.jit(lambda x, i: lax.dynamic_update_slice(x, np.zeros(2, np.float32), (i,)))
    np.testing.assert_array_equal(update(X, start), expected)


# --- point 49: masks ----------------------------------------------------------------------------


def test_reading_by_a_traced_mask_says_what_to_do():
    """Point 49: x[mask] under jit and vmap is an error that names where."""
    for transform in (fx.jit, lambda f: fx.vmap(f, in_axes=0)):
        with pytest.raises(NonConcreteBooleanIndexError, match="where"):
            transform(lambda x: x[x > 0])(np.ones((2, 3), np.float32))


def test_setting_by_a_traced_mask_works():
    """Point 49, pain point 14: x.at[mask].set(value) has a known shape, and works under jit."""
    np.testing.assert_array_equal(
        fx.jit(lambda x: x.at[x > 11].set(0.0))(X), np.where(X > 11, 0, X)
    )
    rows = np.arange(6, dtype=np.float32).reshape(3, 2)
    got = fx.jit(lambda x: x.at[x[:, 0] > 1].multiply(fnp.array([2.0, 3.0])))(rows)
    np.testing.assert_array_equal(got, np.where(rows[:, :1] > 1, rows * [2, 3], rows))
    gradient = fx.grad(lambda x: (x.at[x > 11].set(0.0) ** 2).sum())(X)
    np.testing.assert_array_equal(gradient, np.where(X > 11, 0, 2 * X))


@pytest.mark.parametrize("name", ["nonzero", "flatnonzero", "argwhere", "unique"])
def test_results_of_unknown_size_need_size_under_jit(name):
    """Point 49: nonzero, unique and argwhere need size= when traced, and take fill_value=."""
    x = np.array([3, 0, 5, 3, 0], np.int32)
    function = getattr(fnp, name)
    with pytest.raises(TypeError, match="size"):
        fx.jit(lambda x: function(x))(x)
    got = fx.jit(lambda x: function(x, size=6, fill_value=-1))(x)
    expected = getattr(jnp, name)(x, size=6, fill_value=-1)
    np.testing.assert_array_equal(np.asarray(got), np.asarray(expected))
    short = fx.jit(lambda x: function(x, size=2))(x)
    np.testing.assert_array_equal(np.asarray(short), np.asarray(getattr(jnp, name)(x, size=2)))


# --- point 50: NaN and ties ---------------------------------------------------------------------

NANS = np.array([2.0, NAN, 5.0, NAN, 5.0, -1.0], np.float32)
TIES = np.array([1, 7, 7, 0, 0, 7], np.int32)


def test_maxima_pass_nan_on_and_argmax_finds_the_first():
    """Point 50: max, min, maximum propagate NaN; fmax and fmin ignore it."""
    for transform in (lambda f: f, fx.jit):
        assert [int(transform(f)(NANS)) for f in (fnp.argmax, fnp.argmin)] == [1, 1]
        assert all(np.isnan(transform(f)(NANS)) for f in (fnp.max, fnp.min))
    np.testing.assert_array_equal(fnp.maximum(NANS, 3), np.maximum(NANS, 3))
    np.testing.assert_array_equal(fnp.minimum(3, NANS), np.minimum(3, NANS))
    np.testing.assert_array_equal(fnp.fmax(NANS, 3), [3, 3, 5, 3, 5, 3])
    np.testing.assert_array_equal(fnp.fmin(NANS, NAN), NANS)


def test_sorting_puts_nan_last_and_is_stable():
    """Point 50: NaN comes last, -0.0 and 0.0 are equal, equal elements keep their order."""
    np.testing.assert_array_equal(fnp.sort(NANS), np.sort(NANS))
    assert fnp.argsort(NANS).tolist() == [5, 0, 2, 4, 1, 3]
    zeros = np.array([0.0, -0.0, 0.0, -0.0], np.float32)
    assert fnp.argsort(zeros).tolist() == [0, 1, 2, 3]
    assert np.signbit(fnp.sort(zeros)).tolist() == [False, True, False, True]


@pytest.mark.parametrize("values", [TIES, TIES.astype(np.float32), TIES > 3])
def test_ties_go_to_the_lowest_index(values):
    """Point 50: argmax, top_k and argsort, also descending, prefer the lower index."""
    assert int(fnp.argmax(values)) == 1
    assert fnp.argsort(values).tolist() == np.argsort(values, kind="stable").tolist()
    descending = fnp.argsort(values, descending=True)
    assert descending.tolist() == jnp.argsort(values, descending=True).tolist()
    if values.dtype != bool:
        assert lax.top_k(values, 4)[1].tolist() == [1, 2, 5, 0]


@pytest.mark.parametrize("name", ["max", "min", "argmax", "argmin"])
def test_a_maximum_of_nothing_is_a_value_error(name):
    """Point 50: there is no maximum of an empty array, unless `initial` says so."""
    with pytest.raises(ValueError, match=r"empty|zero|size 0|no elements"):
        getattr(fnp, name)(fnp.zeros(0))
    with pytest.raises(ValueError, match=r"empty|zero|size 0|no elements"):
        fx.jit(getattr(fnp, name))(fnp.zeros((2, 0)))
    if not name.startswith("arg"):
        assert float(getattr(fnp, name)(fnp.zeros(0), initial=3.0)) == 3.0


# --- point 51: trees ----------------------------------------------------------------------------

Point = namedtuple("Point", ["x", "y"])


@tree_util.register_dataclass
@dataclass
class Pair:
    left: object
    right: object


@pytest.mark.parametrize(
    "tree",
    [
        None,
        (),
        {"b": 1.0, "a": (2.0, None)},
        Point(1.0, [2.0]),
        OrderedDict(b=1.0, a=2.0),
        defaultdict(list, {"z": 1.0}),
        Pair(1.0, {"k": 2.0}),
    ],
    ids=lambda tree: type(tree).__name__,
)
def test_containers_pass_through_every_transform(tree):
    """Point 51: tuples, dicts, None, namedtuples, ordered and default dicts, dataclasses."""
    double = lambda tree: tree_util.tree_map(lambda x: x * 2, tree)  # noqa: E731
    result = fx.jit(double)(tree)
    assert type(result) is type(tree)
    assert tree_util.tree_structure(result) == tree_util.tree_structure(tree)
    leaves = [float(leaf) for leaf in tree_util.tree_leaves(result)]
    assert leaves == [2 * leaf for leaf in tree_util.tree_leaves(tree)]


def test_none_is_an_empty_tree_and_no_leaf():
    """Point 51: None has no leaves."""
    assert tree_util.tree_leaves([None, 1, {"a": None}]) == [1]
    assert fx.grad(lambda tree: tree[0] * 2)((1.0, None))[1] is None


def test_keys_of_dicts_are_sorted_and_those_of_ordered_dicts_are_not():
    """Point 51: leaves of a dict come in the order of its keys."""
    assert tree_util.tree_leaves({"b": 1, "a": 2}) == [2, 1]
    assert tree_util.tree_leaves(OrderedDict(b=1, a=2)) == [1, 2]


def test_keys_that_cannot_be_compared_have_an_order_all_the_same():
    """Point 51, improved: keys of several classes are ordered by class, where JAX gives up."""
    one, other = {1: 10.0, "a": 20.0, 0: 30.0}, {"a": 20.0, 0: 30.0, 1: 10.0}
    assert tree_util.tree_leaves(one) == tree_util.tree_leaves(other) == [30.0, 10.0, 20.0]
    assert tree_util.tree_structure(one) == tree_util.tree_structure(other)
    doubled = fx.jit(lambda tree: tree_util.tree_map(lambda x: 2 * x, tree))(other)
    assert {key: float(value) for key, value in doubled.items()} == {1: 20, "a": 40, 0: 60}


def test_static_data_of_a_node_is_compared_by_equality():
    """Point 51: what a node says about itself is part of the structure, compared by ==."""

    class Tagged:
        def __init__(self, value, tag):
            self.value, self.tag = value, tag

    tree_util.register_pytree_node(
        Tagged, lambda node: ((node.value,), node.tag), lambda tag, children: Tagged(*children, tag)
    )
    structure = tree_util.tree_structure
    assert structure(Tagged(1, ("a", 2))) == structure(Tagged(5, ("a", 2)))
    assert structure(Tagged(1, "a")) != structure(Tagged(1, "b"))
    runs = []
    jitted = fx.jit(lambda node: (runs.append(node.tag), node.value)[1])
    jitted(Tagged(1.0, "a")), jitted(Tagged(2.0, "a")), jitted(Tagged(2.0, "b"))
    assert runs == ["a", "b"]


def test_nodes_are_rebuilt_around_any_object():
    """Point 51: unflatten takes sentinels of any kind in the places of leaves."""
    sentinel = object()
    for tree in ({"a": 1, "b": (2, 3)}, Point(1, 2), Pair(1, [2])):
        leaves, structure = tree_util.tree_flatten(tree)
        rebuilt = tree_util.tree_unflatten(structure, [sentinel] * len(leaves))
        assert all(leaf is sentinel for leaf in tree_util.tree_leaves(rebuilt))


def test_a_mismatch_names_the_place():
    """Point 51: trees of different structure are an error that has the path to the difference."""
    left, right = {"a": (1, {"deep": 2})}, {"a": (1, {"other": 2})}
    with pytest.raises(ValueError, match=r"\['a'\]\[1\]"):
        tree_util.tree_map(lambda x, y: x, left, right)
