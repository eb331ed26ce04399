"""What the tests of transforms share: comparison of trees, and functions for fxarray and JAX."""

import types

import numpy as np
import optree
import pytest


def compare(actual, expected, tolerance=1e-5):
    got, wanted = optree.tree_leaves(actual), optree.tree_leaves(expected)
    assert optree.tree_structure(actual) == optree.tree_structure(expected)
    for a, b in zip(got, wanted, strict=True):
        a, b = np.asarray(a), np.asarray(b)
        assert a.shape == b.shape
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


def smooth(np_, x):
    """A function of a vector with many operations: products, sums, indexing, broadcasting."""
    y = np_.sin(x) * x[0] + np_.exp(-x * x)
    return np_.tanh(y) * x.sum() - y[1] / (1.0 + x * x)


def loss(np_, x):
    """A scalar function of a vector."""
    return (smooth(np_, x) * x).sum()


def branching(np_, x):
    """A scalar function with Python control flow on values."""
    total = 0.0
    for i in range(3):
        total = total + np_.sin(x[i]) if x[i] > 0.5 else total * x[i] + 1.0
    while total > 1.0:
        total = total / 2.0
    return total


@pytest.fixture
def assert_same():
    """Asserts that trees have one structure, with equal shapes and dtypes, and close values."""
    return compare


@pytest.fixture
def functions():
    """Functions of (numpy-like module, vector)."""
    return types.SimpleNamespace(smooth=smooth, loss=loss, branching=branching)
