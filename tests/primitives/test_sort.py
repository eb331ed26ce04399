"""Sorting, top k and binary search: orders where definitions differ, and derivatives."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import fxarray
import fxarray.numpy as fnp
from fxarray import lax
from fxarray.core import dtypes
from fxarray.core.dims import ShapeVar
from fxarray.core.errors import ArgumentError, AxisError, DTypeError, ShapeError
from fxarray.core.types import ArrayType
from fxarray.primitives.search import SearchSorted, searchsorted
from fxarray.primitives.sort import Sort, TopK, argsort

REAL = (
    "bool",
    "int8",
    "uint8",
    "int16",
    "int32",
    "uint32",
    "int64",
    "uint64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
)
SPECIAL = [0.0, np.nan, -0.0, np.inf, -np.nan, -np.inf, 0.0, -1.0, 1.0, -0.0]


def draw(dtype: str, shape: tuple[int, ...] = (3, 40), seed: int = 0) -> np.ndarray:
    """Few distinct values, so that there are ties."""
    rng = np.random.default_rng(seed)
    values: Any = rng.integers(-9, 9, size=shape)
    if dtype.startswith("complex"):
        values = values // 3 + 1j * rng.integers(-2, 2, size=shape)
    if dtype.startswith("uint"):
        values = np.abs(values)
    if dtype == "bool":
        return values < 0
    return values.astype(dtypes.canonical(dtype))


def same(actual: Any, wanted: Any) -> None:
    """Equal in value and dtype, NaN and signs of zeros included."""
    actual, wanted = np.asarray(actual), np.asarray(wanted)
    assert actual.dtype == wanted.dtype
    if actual.dtype.kind == "V":
        actual, wanted = actual.astype("float32"), wanted.astype("float32")
    np.testing.assert_array_equal(actual, wanted)
    if actual.dtype.kind == "f":
        np.testing.assert_array_equal(
            np.signbit(actual[actual == 0]), np.signbit(wanted[wanted == 0])
        )


@pytest.mark.parametrize("dimension", [0, -1])
@pytest.mark.parametrize("dtype", [*REAL, "complex64", "complex128"])
def test_sort_equals_that_of_jax(dtype, dimension):
    x = draw(dtype)
    with jax.enable_x64(True):
        wanted = jax.lax.sort(jnp.asarray(x), dimension)
        wanted_pair = jax.lax.sort_key_val(jnp.asarray(x), jnp.asarray(order_of(x)), dimension)
    same(lax.sort(x, dimension), wanted)
    for actual, want in zip(lax.sort_key_val(x, order_of(x), dimension), wanted_pair, strict=True):
        same(actual, want)


def order_of(x: np.ndarray) -> np.ndarray:
    return np.arange(x.size, dtype=np.int32).reshape(x.shape)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_nan_comes_last_and_negative_zero_equals_zero(dtype):
    x = np.array(SPECIAL).astype(dtypes.canonical(dtype))
    with jax.enable_x64(True):
        wanted = jax.lax.sort([jnp.asarray(x), jnp.arange(10)])
    for actual, want in zip(lax.sort([x, np.arange(10)]), wanted, strict=True):
        same(actual, want)
    same(lax.sort(x), wanted[0])


def test_complex_numbers_are_sorted_by_real_then_imaginary_part():
    parts = [0.0, np.nan, 1.0, -0.0]
    x = np.array([complex(a, b) for a in parts for b in parts], "complex64")
    wanted = jax.lax.sort([jnp.asarray(x), jnp.arange(16)])
    for actual, want in zip(lax.sort([x, np.arange(16, dtype=np.int32)]), wanted, strict=True):
        same(actual, want)


@pytest.mark.parametrize("num_keys", [1, 2, 3])
def test_later_keys_decide_ties_of_earlier_ones(num_keys):
    operands = [draw("int8", seed=1), draw("float32", seed=2), draw("complex64", seed=3)]
    wanted = jax.lax.sort([jnp.asarray(x) for x in operands], num_keys=num_keys)
    for actual, want in zip(lax.sort(operands, num_keys=num_keys), wanted, strict=True):
        same(actual, want)


arrays_of_floats = hnp.arrays(
    np.float32,
    st.integers(0, 30),
    elements=st.floats(width=32, allow_nan=True) | st.sampled_from(SPECIAL),
)


@given(arrays_of_floats)
def test_order_is_stable_for_all_floats(x):
    order = np.asarray(argsort(fnp.asarray(x), 0))
    ranks = sorted(range(len(x)), key=lambda i: (np.isnan(x[i]), 0.0 if np.isnan(x[i]) else x[i]))
    assert list(order) == ranks


@given(arrays_of_floats, st.data())
def test_top_k_is_the_head_of_the_stable_descending_order(x, data):
    k = data.draw(st.integers(0, len(x)))
    values, indices = lax.top_k(fnp.asarray(x), k)
    ranks = sorted(
        range(len(x)), key=lambda i: (not np.isnan(x[i]), 0.0 if np.isnan(x[i]) else -x[i])
    )[:k]
    assert list(np.asarray(indices)) == ranks
    np.testing.assert_array_equal(np.asarray(values), x[ranks])


@pytest.mark.parametrize("dtype", REAL)
def test_top_k_equals_that_of_jax(dtype):
    x = draw(dtype)
    with jax.enable_x64(True):
        wanted = jax.lax.top_k(jnp.asarray(x), 7)
    for actual, want in zip(lax.top_k(x, 7), wanted, strict=True):
        same(actual, want)
    for actual, want in zip(lax.top_k(x.T, 7, axis=0), wanted, strict=True):
        same(np.asarray(actual).T, want)


def test_top_k_finds_the_greatest_of_wide_integers():
    x = np.array([2**63 + 5, 3, 2**63 + 5, 2**63 + 6], np.uint64)
    values, indices = lax.top_k(x, 3)
    assert [int(v) for v in values] == [2**63 + 6, 2**63 + 5, 2**63 + 5]
    assert list(np.asarray(indices)) == [3, 0, 2]


def test_least_elements_without_approximation():
    values, indices = lax.approx_min_k(fnp.array([3.0, 1.0, 2.0]), 2)
    assert list(np.asarray(values)) == [1.0, 2.0]
    assert list(np.asarray(indices)) == [1, 2]


# --- derivatives and vmap -------------------------------------------------------------------------


def test_the_derivative_of_a_sort_follows_the_stable_order():
    x = np.array([2.0, 1.0, 2.0, 1.0])
    jacobian = np.asarray(fxarray.jacrev(lax.sort)(x))
    wanted = np.zeros((4, 4))
    wanted[range(4), [1, 3, 0, 2]] = 1
    np.testing.assert_array_equal(jacobian, wanted)
    np.testing.assert_array_equal(np.asarray(fxarray.jacfwd(lax.sort)(x)), wanted)


def test_derivatives_of_sorted_values_and_of_top_k_equal_those_of_jax():
    rng = np.random.default_rng(0)
    keys, values, weights = rng.normal(size=(3, 4, 5))

    def loss(lax_: Any, keys: Any, values: Any) -> Any:
        a, b = lax_.sort([keys, values], dimension=0)
        c, _ = lax_.top_k(values, 3)
        return (a * a * b * weights).sum() + (c**3).sum()

    with jax.enable_x64(True):
        wanted = jax.grad(lambda k, v: loss(jax.lax, k, v), (0, 1))(keys, values)
    actual = fxarray.grad(lambda k, v: loss(lax, k, v), (0, 1))(keys, values)
    for a, w in zip(actual, wanted, strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(w), rtol=1e-10)


def test_an_unmapped_operand_is_sorted_in_each_lane():
    keys, values = draw("float32", (4, 6)), np.arange(6, dtype=np.int32)
    _, lanes = fxarray.vmap(lambda k, v: lax.sort([k, v]), (0, None))(keys, values)
    for lane, key in zip(np.asarray(lanes), keys, strict=True):
        np.testing.assert_array_equal(lane, np.argsort(key, kind="stable"))


def test_operands_whose_results_nobody_uses_are_not_sorted():
    program = fxarray.make_program(
        lambda x: fxarray.jit(lambda x: lax.sort([x, x * 2.0, fnp.arange(3)])[2])(x)
    )(fnp.ones(3))
    from_dce = fxarray.jit(lambda x: lax.sort([x, x * 2.0, fnp.arange(3)])[2]).lower(fnp.ones(3))
    assert "mul" in str(program)
    assert "mul" not in from_dce.as_text()


def test_refusals_name_the_operation_and_the_operand():
    with pytest.raises(ShapeError, match="operand 1 is"):
        lax.sort([fnp.ones(3), fnp.ones(4)])
    with pytest.raises(ArgumentError, match="num_keys=3"):
        lax.sort([fnp.ones(3), fnp.ones(3)], num_keys=3)
    with pytest.raises(ArgumentError, match="empty"):
        lax.sort([])
    with pytest.raises(AxisError, match="sort"):
        lax.sort(fnp.ones(()))
    with pytest.raises(ValueError, match="k=4 must be between 0 and the size 3"):
        lax.top_k(fnp.ones(3), 4)
    with pytest.raises(DTypeError, match="complex"):
        lax.top_k(fnp.ones(3, "complex64"), 1)


# --- binary search --------------------------------------------------------------------------------


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("dtype", [*REAL, "complex64"])
def test_binary_search_equals_that_of_numpy(dtype, side):
    table = np.asarray(lax.sort(draw(dtype, (25,))))
    queries = draw(dtype, (4, 6), seed=1)
    actual = np.asarray(searchsorted(fnp.asarray(table), fnp.asarray(queries), side))
    wide = [x.astype("float32") if x.dtype.kind == "V" else x for x in (table, queries)]
    np.testing.assert_array_equal(actual, np.searchsorted(*wide, side))
    assert actual.dtype == np.int32


def test_binary_search_in_each_lane():
    tables, queries = np.sort(draw("float32", (3, 9)), 1), draw("float32", (3, 5), seed=2)
    both = np.asarray(fxarray.vmap(searchsorted)(tables, queries))
    only_queries = np.asarray(fxarray.vmap(searchsorted, (None, 1), 1)(tables[0], queries))
    only_tables = np.asarray(fxarray.vmap(searchsorted, (0, None))(tables, queries[0]))
    for i in range(3):
        np.testing.assert_array_equal(both[i], np.searchsorted(tables[i], queries[i]))
        np.testing.assert_array_equal(only_tables[i], np.searchsorted(tables[i], queries[0]))
    np.testing.assert_array_equal(only_queries, np.searchsorted(tables[0], queries))


# --- types ----------------------------------------------------------------------------------------


def test_symbolic_sizes_and_factor_records():
    batch = ShapeVar("batch")
    x = ArrayType((batch, 8), dtypes.float32)
    assert Sort(0).infer(x) == (x,)
    assert Sort(1).shard(x).whole == {"b"}
    values, indices = TopK(3, 1).infer(x)
    assert values.shape[0] is batch
    assert indices.shape[1] == 3
    assert TopK(3, 1).shard(x).results == (("a", "k"), ("a", "k"))
    op = SearchSorted("left", dtypes.int32)
    assert op.infer(ArrayType((batch,), dtypes.float32), x)[0].shape == x.shape
