"""Programs for all sizes: one compile, numbers at each call."""

import numpy as np
import pytest

import fxarray
import fxarray.numpy as fnp
from fxarray import lax
from fxarray.compile import driver
from fxarray.core.errors import ShapeError

BATCH = fxarray.ShapeVar("batch", min=1, max=4096)


def dynamic(function, **specification):
    return fxarray.jit(function, dynamic_shapes=specification, backend="cpu")


def check(function, sizes, make, **specification):
    """One function at several sizes, compiled once, equals the same compiled for each."""
    jitted = dynamic(function, **specification)
    before = None
    for size in sizes:
        arguments = make(size)
        expected = fxarray.jit(function, backend="reference")(*arguments)
        for _ in range(2):
            actual = jitted(*arguments)
            for a, b in zip(
                fxarray.tree.leaves(actual), fxarray.tree.leaves(expected), strict=True
            ):
                assert a.type == b.type
                np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-5, atol=1e-6)
        now = jitted.cache_info().misses
        assert before in (None, now)
        before = now
    return jitted


def rows(size):
    return (np.random.default_rng(size).normal(size=(size, 7)).astype(np.float32),)


def test_elementwise_and_reductions():
    def f(x):
        return fnp.tanh(x) - fnp.mean(x, 0), fnp.sum(x, 1), fxarray.nn.softmax(x, axis=0)

    check(f, [1, 2, 33, 400], rows, x=(BATCH, None))


def test_one_compile_serves_all_sizes():
    def f(x):
        return fnp.sin(x) + 2

    jitted = dynamic(f, x=(BATCH, None))
    jitted(*rows(3))
    before = driver.statistics().misses
    for size in range(4, 30):
        assert np.allclose(jitted(*rows(size)), np.sin(rows(size)[0]) + 2, rtol=1e-5)
    assert driver.statistics().misses == before


def test_matrix_products():
    w = np.random.default_rng(0).normal(size=(7, 9)).astype(np.float32)
    check(lambda x: fnp.tanh(x @ w), [1, 5, 130], rows, x=(BATCH, None))


def test_sizes_derived_from_others():
    def f(x):
        return fnp.concatenate([x, x * 2]), fnp.reshape(x, -1), x / x.shape[0]

    check(f, [1, 6, 50], rows, x=(BATCH, None))


def test_whole_operations_and_loops():
    def f(x):
        y = fnp.sort(x, 0)
        return lax.scan(lambda c, a: (c + a, c * a), y[0], y)

    check(f, [1, 6, 50], rows, x=(BATCH, None))


def test_temporaries_have_room_at_every_size():
    def f(x):
        for _ in range(4):
            x = fnp.cumsum(fnp.sort(x, 0)[::-1], 0) / 2
        return x

    check(f, [300, 2, 40], rows, x=(BATCH, None))


def test_a_size_out_of_bounds_is_an_error():
    jitted = dynamic(lambda x: x + 1, x=(BATCH, None))
    with pytest.raises(ShapeError, match="batch"):
        jitted(np.ones((5000, 7), np.float32))
