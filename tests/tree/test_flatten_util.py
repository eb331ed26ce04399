"""`ravel_pytree`: order, dtypes, the way back, and under transforms."""

import itertools
from typing import Any

import jax
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree as jax_ravel_pytree

from fxarray.core.errors import DTypeError, ShapeError
from fxarray.flatten_util import ravel_pytree
from fxarray.transforms.grad import grad
from fxarray.transforms.jit import jit
from fxarray.transforms.vmap import vmap

TREES = [
    {},
    1.5,
    [np.float32(2)],
    {"b": np.ones((2, 3), np.float32), "a": (np.arange(3, dtype=np.int32), None)},
    (1, np.arange(2, dtype=np.int8)),
    [np.zeros((0, 2), np.float32), np.ones(1, np.float16)],
    [np.array([True, False]), np.array(7, np.uint8)],
    [np.ones(2, np.complex64), np.ones(1, np.float32)],
]


@pytest.mark.parametrize("value", TREES, ids=repr)
def test_vector_and_way_back_agree_with_jax(value: Any) -> None:
    ours, unravel = ravel_pytree(value)
    theirs, jax_unravel = jax_ravel_pytree(value)
    np.testing.assert_array_equal(np.asarray(ours), np.asarray(theirs))
    assert ours.dtype == theirs.dtype
    back, jax_back = unravel(ours), jax_unravel(theirs)
    pairs = itertools.zip_longest(jax.tree.leaves(back), jax.tree.leaves(jax_back))
    for one, other in pairs:
        np.testing.assert_array_equal(np.asarray(one), np.asarray(other))
        assert (one.shape, one.dtype) == (other.shape, other.dtype)


def test_a_vector_of_another_size_or_dtype_is_refused() -> None:
    _, unravel = ravel_pytree([np.ones(2, np.float32), np.ones(1, np.float32)])
    with pytest.raises(ShapeError, match=r"given f32\[4\], but the tree was raveled to f32\[3\]"):
        unravel(np.ones(4, np.float32))
    with pytest.raises(DTypeError, match=r"vector\.astype\('float32'\)"):
        unravel(np.ones(3, np.int32))


def test_the_way_back_compares_by_value() -> None:
    one, other = (ravel_pytree({"a": np.ones(2, np.float32)})[1] for _ in range(2))
    assert one == other
    assert hash(one) == hash(other)
    assert one != ravel_pytree({"b": np.ones(2, np.float32)})[1]


def test_it_can_be_traced_mapped_and_differentiated() -> None:
    params = {"w": np.float32([[1, 2], [3, 4]]), "b": np.float32([5, 6])}
    flat, unravel = ravel_pytree(params)

    def loss(vector: Any) -> Any:
        parts = unravel(vector)
        product = parts["w"] * parts["b"]
        return ravel_pytree(product)[0] @ np.ones(4, np.float32)

    expected = np.float32([4, 6, 5, 6, 5, 6])  # leaves in order of their keys: b, then w
    np.testing.assert_allclose(np.asarray(grad(loss)(flat)), expected)
    np.testing.assert_allclose(np.asarray(jit(grad(loss))(flat)), expected)
    batch = np.stack([np.asarray(flat), 2 * np.asarray(flat)])
    np.testing.assert_allclose(
        np.asarray(vmap(grad(loss))(batch)), np.stack([expected, 2 * expected])
    )
