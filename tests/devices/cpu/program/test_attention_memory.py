"""The memory that attention takes grows with the length, and not with its square."""

import numpy as np
import pytest

import fxarray
import fxarray.nn
import fxarray.numpy as fnp
from fxarray.devices.cpu.native.memory import reset_peak, statistics

LENGTH, WIDTH = 8192, 8
# What 64 arrays of the size of an operand take; the matrix of scores takes 1024.
LINEAR = 64 * LENGTH * WIDTH * 4


def attention(q, k, v):
    places = fnp.arange(q.shape[-2])
    scores = fnp.einsum("hqd,hkd->hqk", q, k) / WIDTH**0.5
    scores = fnp.where(places[:, None] >= places, scores, -fnp.inf)
    return fnp.einsum("hqk,hkd->hqd", fxarray.nn.softmax(scores), v)


def loss(q, k, v):
    return fnp.sum(attention(q, k, v) ** 2)


def arrays(length):
    rng = np.random.default_rng(0)
    return [fnp.asarray(rng.normal(size=(1, length, WIDTH)).astype(np.float32)) for _ in range(3)]


@pytest.mark.parametrize(
    "function", [attention, fxarray.value_and_grad(loss, argnums=(0, 1, 2))], ids=["of", "grad"]
)
def test_memory_is_linear_in_the_length(function):
    q, k, v = arrays(LENGTH)
    compiled = fxarray.jit(function, backend="cpu").lower(q, k, v).compile()
    assert compiled.memory_analysis()["temp_size_in_bytes"] <= LINEAR
    reset_peak()
    before = statistics().peak
    results = fxarray.tree.leaves(compiled(q, k, v))
    assert statistics().peak - before <= LINEAR
    assert all(np.isfinite(np.asarray(result)).all() for result in results)


def test_the_gradient_without_the_matrix_is_that_with_it():
    # Long enough for the matrix not to be stored.
    q, k, v = arrays(4096)
    value, (dq, dk, dv) = fxarray.jit(
        fxarray.value_and_grad(loss, argnums=(0, 1, 2)), backend="cpu"
    )(q, k, v)

    def definition():
        a, b, c = [np.asarray(x, np.float64)[0] for x in (q, k, v)]
        s = a @ b.T / WIDTH**0.5
        s[np.triu_indices(len(s), 1)] = -np.inf
        p = np.exp(s - s.max(-1, keepdims=True))
        p /= p.sum(-1, keepdims=True)
        y = p @ c
        dy = 2 * y
        dp = dy @ c.T
        ds = p * (dp - (dp * p).sum(-1, keepdims=True)) / WIDTH**0.5
        return (y**2).sum(), ds @ b, ds.T @ a, p.T @ dy

    for got, wanted in zip((value, dq, dk, dv), definition(), strict=True):
        got = np.asarray(got)
        got = got[0] if got.ndim else got
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-4 * np.abs(wanted).max())
