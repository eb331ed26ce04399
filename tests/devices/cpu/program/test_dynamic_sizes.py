"""Every family of operations at sizes known at run time, against the same at numbers."""

from __future__ import annotations

import numpy as np
import pytest

import fxarray
import fxarray.numpy as fnp
from fxarray import lax, nn, random
from fxarray.tree import leaves

N = fxarray.ShapeVar("n", min=1, max=200)

CASES = {}


def case(function):
    """Register a function of an array of f32[n, 6]."""
    CASES[function.__name__] = function
    return function


# --- elements -------------------------------------------------------------------------------------


@case
def elementwise_of_all_kinds(x):
    k = x.astype("int32")
    return (
        fnp.sin(x) * fnp.exp(-x) + fnp.sqrt(fnp.abs(x)),
        fnp.where(x > 0, x, k),
        (k << 2) ^ (k & 3),
        lax.population_count(k),
        fnp.power(fnp.abs(x), 1.5),
        lax.erf(x),
        lax.clamp(-0.5, x, 0.5),
    )


@case
def dtypes(x):
    return (
        x.astype("bfloat16") * 2,
        x.astype("float16") + 1,
        x.astype("int8"),
        x > 0,
        lax.complex(x, -x) * 1j,
        lax.bitcast_convert_type(x, "int32"),
        lax.reduce_precision(x, 5, 4),
    )


@case
def created(x):
    n = x.shape[0]
    return (
        fnp.zeros((n, 2)),
        fnp.full((3, n), 7),
        fnp.arange(n),
        fnp.eye(n),
        lax.broadcasted_iota("int32", (n, 4), 0),
        fnp.linspace(0.0, 1.0, 5) + x[:, :1],
        x / n + n * n,
    )


# --- movement -------------------------------------------------------------------------------------


@case
def moved(x):
    return (
        x.T,
        x[::-1],
        x[:, ::-2],
        x[:, None, 1:4],
        fnp.reshape(x, -1),
        fnp.reshape(x, (x.shape[0], 2, 3)),
        fnp.tile(x, (2, 1)),
        fnp.repeat(x, 3, axis=0),
        fnp.broadcast_to(x, (2, *x.shape)),
        fnp.roll(x, 1, axis=0),
        fnp.roll(x, -2, axis=1),
    )


@case
def joined(x):
    n = x.shape[0]
    return (
        fnp.concatenate([x, x * 2, x[:1]]),
        fnp.concatenate([x, x.T.reshape(n, 6)], 1),
        fnp.stack([x, -x], 1),
        lax.pad(x, 0.5, [(1, 2, 0), (0, 1, 1)]),
        lax.pad(x, 0.5, [(2, -1, 1), (-1, 0, 0)]),
        fnp.pad(x, ((0, 3), (2, 0))),
    )


@case
def strided_slices(x):
    n = x.shape[0]
    return x[:1], x[n - 1 :], x[-1], x[n // 2 :], x[::2], x[1::3], x[: n // 2 + 1]


# --- reductions -----------------------------------------------------------------------------------


@case
def reduced(x):
    k = x.astype("int32")
    return (
        x.sum(),
        x.sum(0),
        x.sum(1),
        x.mean(0),
        x.max(0),
        x.min(1),
        fnp.prod(x * 0.1 + 1, 0),
        fnp.any(x > 2, 0),
        fnp.all(x > -2, 1),
        lax.reduce_xor(k, [0]),
        fnp.argmax(x, 0),
        fnp.argmin(x, 1),
        fnp.argmax(x),
        fnp.var(x, 0),
        fnp.linalg.norm(x),
        nn.logsumexp(x, axis=0),
    )


@case
def reduced_by_a_function(x):
    return (
        lax.reduce(x, np.float32(0), lax.add, (0,)),
        lax.reduce((x, x * 2), (np.float32(0), np.float32(1)), _sum_and_greatest, (0,)),
    )


def _sum_and_greatest(a, b):
    return a[0] + b[0], fnp.maximum(a[1], b[1])


@case
def prefixes(x):
    return (
        fnp.cumsum(x, 0),
        fnp.cumsum(x, 1),
        fnp.cumprod(x * 0.1 + 1, 0),
        lax.cummax(x, 0, reverse=True),
        lax.cummin(x, 1),
        lax.cumlogsumexp(x, 0),
        lax.associative_scan(fnp.add, x, axis=1),
    )


@case
def windows(x):
    return (
        lax.reduce_window(x, np.float32(0), lax.add, (1, 3), (1, 2), "VALID"),
        lax.reduce_window(x, np.float32(-np.inf), lax.max, (3, 2), (1, 1), "SAME"),
        lax.reduce_window(
            x, np.float32(0), lax.add, (2, 1), (1, 1), ((1, 0), (0, 0)), window_dilation=(1, 1)
        ),
    )


@case
def normalised(x):
    return (
        nn.softmax(x, axis=0),
        nn.softmax(x, axis=1),
        nn.log_softmax(x, axis=0),
        (x - x.mean(1, keepdims=True)) / fnp.sqrt(x.var(1, keepdims=True) + 1e-5),
    )


# --- places ---------------------------------------------------------------------------------------


@case
def dynamic_slices(x):
    at = x.argmax(0)[0].astype("int32")
    return (
        lax.dynamic_slice(x, (at, 1), (1, 3)),
        lax.dynamic_slice(x, (at, -2), (x.shape[0], 3)),
        lax.dynamic_index_in_dim(x, -1, 0),
        lax.dynamic_index_in_dim(x, at, 0, keepdims=False),
        lax.dynamic_update_slice(x, x[:1] * 2, (at, 0)),
        lax.dynamic_update_slice(x, x[:1] * 2, (-1, 0)),
        lax.dynamic_update_slice(x, fnp.ones((1, 2)), (2, at)),
        lax.dynamic_update_slice(x, x * 3, (at, 0)),
        lax.dynamic_update_index_in_dim(x, x[0] + 1, at, 0),
    )


@case
def updated_only(x):
    return lax.dynamic_update_slice(x, fnp.ones((1, 2)), (-1, 0))


@case
def gathered(x):
    n = x.shape[0]
    where = (fnp.abs(x) * 100).astype("int32") % n
    return (
        x[where[:, 0]],
        x[where[:, 0], fnp.arange(6)[:, None]],
        x[fnp.array([0, -1, 500])],
        fnp.take(x, where, axis=0, mode="clip"),
        fnp.take(x, where[0], axis=0, mode="fill", fill_value=-1),
        fnp.take_along_axis(x, where, 0),
        x.at[where[:, 1]].get(mode="fill", fill_value=9),
        fnp.ones((10, 2))[where[:, 0] % 10],
    )


@case
def scattered(x):
    n = x.shape[0]
    where = (fnp.abs(x[:, 0]) * 100).astype("int32") % n
    return (
        x.at[0].set(1),
        x.at[-1, 2].add(1),
        x.at[:, 1].multiply(2),
        x.at[where].add(x),
        x.at[where].max(x * 2),
        x.at[where].min(x * 2),
        x.at[where].multiply(x),
        fnp.zeros(10).at[where % 10].add(x[:, 0]),
        fnp.zeros((n, 3)).at[where, 1].add(1.0),
        x.at[n + 3].set(2, mode="drop"),
        fnp.zeros(n).at[fnp.arange(n)].set(x[:, 0]),
    )


@case
def sorted_and_searched(x):
    return (
        fnp.sort(x, 0),
        fnp.sort(x, 1),
        fnp.argsort(x, 0),
        fnp.argsort(-x, 1),
        lax.sort_key_val(x, x * 2, 0),
        lax.top_k(x, 3),
        lax.top_k(x.T, 1),
        fnp.searchsorted(fnp.sort(x[:, 0]), x[:, 1]),
        fnp.median(x, 0),
        fnp.digitize(x, fnp.array([-1.0, 0.0, 1.0])),
    )


# --- products -------------------------------------------------------------------------------------


@case
def products(x):
    w = fnp.arange(12.0, dtype="float32").reshape(6, 2) / 12
    return (
        x @ w,
        x @ x.T,
        x.T @ x,
        nn.relu(x @ w + 1),
        fnp.einsum("ni,nj->nij", x, x),
        fnp.einsum("ni,ni->n", x, x),
        fnp.einsum("ni,mi->nm", x, x),
        (x.astype("int8") @ w.astype("int8")),
        x.astype("bfloat16") @ w.astype("bfloat16"),
        fnp.dot(x[:, 0], x[:, 1]),
        lax.complex(x, x) @ lax.complex(w, -w),
        fnp.matmul(fnp.broadcast_to(w, (x.shape[0], 6, 2)).swapaxes(1, 2), x[:, :, None]),
    )


@case
def convolutions(x):
    image = x.reshape(-1, 1, 2, 3)
    kernel = fnp.ones((4, 1, 2, 2)) * 0.25
    line = x.T[None]
    taps = fnp.arange(36.0, dtype="float32").reshape(2, 6, 3) / 36
    return (
        lax.conv(image, kernel, (1, 1), "SAME"),
        lax.conv_general_dilated(line, taps, (1,), [(2, 2)]),
        lax.conv_general_dilated(line, taps, (1,), [(1, 1)], rhs_dilation=(1,), lhs_dilation=(2,)),
    )


@case
def attention(x):
    heads = x.reshape(1, -1, 2, 3)
    return (
        nn.dot_product_attention(heads, heads, heads),
        nn.dot_product_attention(heads, heads, heads, is_causal=True),
    )


# --- whole operations -----------------------------------------------------------------------------


@case
def linear_algebra(x):
    square = fnp.einsum("ni,nj->nij", x, x) + 3 * fnp.eye(6)
    whole = x @ x.T + fnp.eye(x.shape[0])
    return (
        fnp.linalg.cholesky(square),
        fnp.linalg.solve(square, x[..., None]),
        fnp.linalg.inv(square),
        fnp.linalg.det(square),
        fnp.linalg.eigvalsh(square),
        fnp.linalg.svd(square, compute_uv=False),
        fnp.abs(fnp.linalg.qr(square)[1]),
        fnp.linalg.cholesky(whole),
        fnp.linalg.solve(whole, x),
        lax.linalg.triangular_solve(whole, x, left_side=True, lower=True),
    )


@case
def transforms_of_fourier(x):
    return (
        fnp.fft.fft(x),
        fnp.fft.rfft(x),
        fnp.fft.irfft(lax.complex(x, x)),
        fnp.fft.fft2(x.reshape(-1, 2, 3)),
    )


@case
def random_numbers(x):
    key = random.key(3)
    return (
        random.uniform(key, x.shape),
        random.normal(key, x.shape),
        random.bits(key, (x.shape[0],)),
        random.randint(key, x.shape, 0, 10),
        random.bernoulli(key, 0.4, x.shape),
    )


# --- control flow ---------------------------------------------------------------------------------


@case
def loops(x):
    return (
        lax.scan(lambda c, row: (c + row, c * row), x[0], x),
        lax.scan(lambda c, row: (c + row, c * row), x[0], x, reverse=True),
        lax.fori_loop(0, x.shape[0], lambda i, c: c + x[i], x[0]),
        lax.fori_loop(0, 3, lambda i, c: c.at[i % c.shape[0]].add(1), x),
        lax.while_loop(lambda c: c.sum() > 1, lambda c: c / 2, fnp.abs(x)),
        lax.map(lambda row: fnp.sin(row).sum(), x),
    )


@case
def branches(x):
    return (
        lax.cond(x[0, 0] > 0, lambda x: x * 2, lambda x: x[::-1], x),
        lax.switch(
            x.shape[0] % 3, [lambda x: x.sum(0), lambda x: x[0], lambda x: fnp.sort(x, 0)[0]], x
        ),
    )


@case
def callbacks(x):
    shape = fxarray.ShapeDtypeStruct((6,), "float32")
    return fxarray.pure_callback(lambda x: np.asarray(x).sum(0), shape, x)


# --- derivatives ----------------------------------------------------------------------------------


@case
def gradients(x):
    def loss(x):
        y = nn.softmax(fnp.tanh(x) @ fnp.ones((6, 6)), 1)
        return (fnp.cumsum(y, 0) * x).sum() + nn.logsumexp(x, axis=0).mean() + x.max()

    return fxarray.value_and_grad(loss)(x)


@case
def gradients_of_places(x):
    where = (fnp.abs(x[:, 0]) * 100).astype("int32") % x.shape[0]

    def loss(x):
        y = fnp.concatenate([x[where], x[::2], fnp.sort(x, 0)])
        z = lax.dynamic_update_slice(x * x, x[:1], (where[0], 0))
        window = lax.reduce_window(x, np.float32(-np.inf), lax.max, (1, 2), (1, 2), "VALID")
        return (y**2).sum() + (z**2).sum() + (window**2).sum() + lax.top_k(x, 2)[0].sum()

    return fxarray.grad(loss)(x)


@case
def gradients_of_loops(x):
    def loss(x):
        last, kept = lax.scan(lambda c, row: (fnp.tanh(c + row), c * row), x[0], x)
        return (last**2).sum() + kept.sum()

    return fxarray.grad(loss)(x)


@case
def batched(x):
    return (
        fxarray.vmap(lambda row: fnp.outer(row, row) @ row)(x),
        fxarray.vmap(lambda row: fnp.sort(row)[::-1])(x),
        fxarray.vmap(lambda row, at: lax.dynamic_slice(row, (at,), (2,)))(
            x, fnp.arange(x.shape[0]) % 5
        ),
        fxarray.vmap(lambda row, at: lax.dynamic_update_slice(row, row[:2] * 2, (at,)))(
            x, fnp.arange(x.shape[0]) % 5
        ),
        fxarray.jacfwd(lambda v: fnp.sin(x @ v))(x[0]),
        fxarray.jacrev(lambda v: (x @ v).sum() * v)(x[0]),
    )


@pytest.mark.parametrize("name", CASES)
def test_a_family_at_sizes_of_run_time_equals_it_at_numbers(name, monkeypatch) -> None:
    monkeypatch.setenv("FXARRAY_CHECK", "1")
    function = CASES[name]
    dynamic = fxarray.jit(function, dynamic_shapes={"x": (N, None)}, backend="cpu")
    for size in (7, 1, 34):
        x = np.random.default_rng(size).standard_normal((size, 6)).astype(np.float32)
        actual = leaves(dynamic(x))
        expected = leaves(fxarray.jit(function, backend="reference")(x))
        assert len(actual) == len(expected)
        for number, (a, b) in enumerate(zip(actual, expected, strict=True)):
            assert a.type == b.type, number
            tolerance = 0.05 if a.dtype == "bfloat16" else 2e-3 if a.dtype == "float16" else 2e-4
            a, b = (np.asarray(y.astype("float32") if y.dtype == "bfloat16" else y) for y in (a, b))
            np.testing.assert_allclose(
                a, b, rtol=tolerance, atol=tolerance, err_msg=f"result {number}, {size} rows"
            )
    assert dynamic.cache_info().misses == 1
