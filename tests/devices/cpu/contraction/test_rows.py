"""Kernels of rows equal their definition: attention, its gradients, normalised products."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from fxarray.devices.cpu.contraction.render import render
from fxarray.devices.cpu.contraction.rows import recognise_rows
from fxarray.devices.cpu.contraction.rows_bound import Bounds
from fxarray.devices.cpu.native.target import host
from fxarray.kernel.build import Builder
from fxarray.kernel.ir import Affine, Kernel

Check = Callable[..., None]
INF = float("inf")


def attention(
    heads: int,
    queries: int,
    keys: int,
    width: int,
    columns: int,
    causal: bool = True,
    keep: bool = False,
    dtype: str = "f32",
) -> Kernel:
    """`keep` stores the weights and the statistics as well."""
    k = Builder("attention", {"h": heads, "q": queries, "s": keys, "d": width, "e": columns})
    query, key = (
        k.input("query", (heads, queries, width), dtype),
        k.input("key", (heads, keys, width), dtype),
    )
    value = k.input("value", (heads, keys, columns), dtype)
    result = k.output("result", (heads, queries, columns), dtype)
    scores = k.contract(k.load(query, "hqd"), k.load(key, "hsd"), ("d",), dtype)
    z = k.op("mul", scores, k.constant(0.125, dtype))
    if causal:
        z = k.op("select", k.op("ge", k.iota("q"), k.iota("s")), z, k.constant(-INF, dtype))
    (greatest,) = k.reduce("max", ("s",), z)
    p = k.op("exp", k.op("sub", z, greatest))
    (total,) = k.reduce("sum", ("s",), p)
    weights = k.op("div", p, total)
    if keep:
        k.store(k.output("weights", (heads, queries, keys), dtype), "hqs", weights)
        k.store(k.output("total", (heads, queries), dtype), "hq", total)
    k.store(result, "hqe", k.contract(weights, k.load(value, "hse"), ("s",), dtype))
    return k.build()


SHAPES = [
    *[(2, 64, 64, 32, 32), (3, 37, 37, 16, 20), (1, 5, 70, 8, 3), (2, 50, 81, 7, 33)],
    *[(1, 1, 1, 1, 1), (2, 100, 100, 64, 64), (1, 200, 30, 10, 10)],
]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("keep", [False, True])
def test_attention(check: Check, shape: tuple[int, ...], causal: bool, keep: bool) -> None:
    check(attention(*shape, causal, keep))
    check(attention(*shape, causal, keep, "f64"))


def test_attention_with_shorter_vectors(check_avx2: Check) -> None:
    check_avx2(attention(2, 50, 81, 7, 33, causal=False, keep=True))
    check_avx2(attention(2, 64, 64, 32, 32))


def test_a_causal_mask_bounds_the_loop_over_keys() -> None:
    causal = recognise_rows(attention(2, 64, 64, 32, 32, causal=True))
    whole = recognise_rows(attention(2, 64, 64, 32, 32, causal=False))
    assert causal is not None
    assert whole is not None
    assert causal.bounds == Bounds(after=0)
    assert whole.bounds == Bounds()


def test_masked_scores_may_be_anything(check: Check) -> None:
    kernel = attention(2, 40, 40, 8, 16)
    rng = np.random.default_rng(0)
    query, key, value = [rng.standard_normal(b.shape).astype(np.float32) for b in kernel.inputs]
    key[:, 39] = np.nan
    query[:, 39] = 0.0
    got = query.copy()
    got[:, :39] = rng.standard_normal((2, 39, 8))
    kernel = attention(2, 39, 40, 8, 16)
    check(kernel, [got[:, :39], key, value])


def test_memory_grows_with_the_length_and_not_its_square() -> None:
    routines = [render(attention(1, n, n, 64, 64), host()) for n in (2048, 4096)]
    first, second = [r for r in routines if r is not None]
    assert isinstance(first.scratch, int)
    assert isinstance(second.scratch, int)
    assert second.scratch + int(second.thread_scratch) <= 2.1 * (
        first.scratch + int(first.thread_scratch)
    )
    assert second.scratch < 4096 * 4096


def test_very_long_rows_make_low_tiles(check: Check) -> None:
    check(attention(1, 17, 70_000, 2, 3, causal=False))


def test_the_gradient_of_attention_by_rows(check: Check) -> None:
    # ds = p * (dy v' - delta), with p from the scores again; dq = ds k.
    heads, queries, keys, width = 2, 45, 39, 16
    k = Builder("gradient", {"h": heads, "q": queries, "s": keys, "d": width, "f": width})
    inputs = {
        name: k.input(name, (heads, rows, width), "f32")
        for name, rows in (("q", queries), ("k", keys), ("v", keys), ("dy", queries))
    }
    statistics = k.input("greatest", (heads, queries), "f32")
    dq = k.output("dq", (heads, queries, width), "f32")
    ds_out = k.output("ds", (heads, queries, keys), "f32")
    scores = k.contract(k.load(inputs["q"], "hqd"), k.load(inputs["k"], "hsd"), ("d",), "f32")
    p = k.op("exp", k.op("sub", scores, k.load(statistics, "hq")))
    dp = k.contract(k.load(inputs["dy"], "hqd"), k.load(inputs["v"], "hsd"), ("d",), "f32")
    (delta,) = k.reduce("sum", ("s",), k.op("mul", dp, p))
    ds = k.op("mul", p, k.op("sub", dp, delta))
    k.store(ds_out, "hqs", ds)
    k.store(dq, "hqf", k.contract(ds, k.load(inputs["k"], "hsf"), ("s",), "f32"))
    check(k.build())


def test_the_gradient_of_attention_by_columns(check: Check) -> None:
    # Rows are keys here: statistics of queries lie along them, and two products follow.
    heads, queries, keys, width = 2, 45, 39, 16
    k = Builder("gradient", {"h": heads, "q": queries, "s": keys, "d": width, "f": width})
    inputs = {
        name: k.input(name, (heads, rows, width), "f32")
        for name, rows in (("q", queries), ("k", keys), ("v", keys), ("dy", queries))
    }
    greatest = k.input("greatest", (heads, queries), "f32")
    delta = k.input("delta", (heads, queries), "f32")
    dk, dv = [k.output(name, (heads, keys, width), "f32") for name in ("dk", "dv")]
    scores = k.contract(k.load(inputs["k"], "hsd"), k.load(inputs["q"], "hqd"), ("d",), "f32")
    p = k.op("exp", k.op("sub", scores, k.load(greatest, "hq")))
    dp = k.contract(k.load(inputs["v"], "hsd"), k.load(inputs["dy"], "hqd"), ("d",), "f32")
    ds = k.op("mul", p, k.op("sub", dp, k.load(delta, "hq")))
    k.store(dv, "hsf", k.contract(p, k.load(inputs["dy"], "hqf"), ("q",), "f32"))
    k.store(dk, "hsf", k.contract(ds, k.load(inputs["q"], "hqf"), ("q",), "f32"))
    check(k.build())


def causal_gradient(queries: int, keys: int, offset: int, by_rows: bool) -> Kernel:
    """dq and the sum that it takes, by rows; or dk and dv by columns."""
    heads, width = 2, 16
    k = Builder("gradient", {"h": heads, "q": queries, "s": keys, "d": width, "f": width})
    inputs = {
        name: k.input(name, (heads, rows, width), "f32")
        for name, rows in (("q", queries), ("k", keys), ("v", keys), ("dy", queries))
    }
    greatest = k.load(k.input("greatest", (heads, queries), "f32"), "hq")
    scores = k.contract(k.load(inputs["q"], "hqd"), k.load(inputs["k"], "hsd"), ("d",), "f32")
    seen = k.op("ge", k.iota(Affine.of("q") + offset), k.iota("s"))
    z = k.op("select", seen, scores, k.constant(-INF, "f32"))
    p = k.op("exp", k.op("sub", z, greatest))
    dp = k.contract(k.load(inputs["dy"], "hqd"), k.load(inputs["v"], "hsd"), ("d",), "f32")
    if by_rows:
        (delta,) = k.reduce("sum", ("s",), k.op("mul", dp, p))
        k.store(k.output("delta", (heads, queries), "f32"), "hq", delta)
    else:
        delta = k.load(k.input("delta", (heads, queries), "f32"), "hq")
    ds = k.op("select", seen, k.op("mul", k.op("sub", dp, delta), p), k.constant(0.0, "f32"))
    if by_rows:
        dq = k.contract(ds, k.load(inputs["k"], "hsf"), ("s",), "f32")
        k.store(k.output("dq", (heads, queries, width), "f32"), "hqf", dq)
        return k.build()
    dv = k.contract(p, k.load(inputs["dy"], "hqf"), ("q",), "f32")
    dk = k.contract(ds, k.load(inputs["q"], "hqf"), ("q",), "f32")
    k.store(k.output("dv", (heads, keys, width), "f32"), "hsf", dv)
    k.store(k.output("dk", (heads, keys, width), "f32"), "hsf", dk)
    return k.build()


@pytest.mark.parametrize(
    ("queries", "keys", "offset"), [(300, 300, 0), (150, 400, 0), (400, 150, 0), (260, 270, 5)]
)
@pytest.mark.parametrize("by_rows", [True, False])
def test_a_causal_mask_bounds_the_gradient(
    check: Check, queries: int, keys: int, offset: int, by_rows: bool
) -> None:
    kernel = causal_gradient(queries, keys, offset, by_rows)
    rows = recognise_rows(kernel)
    assert rows is not None
    assert rows.bounds == (Bounds(after=offset) if by_rows else Bounds(before=offset))
    check(kernel)


def test_a_mask_that_hides_nothing_of_a_sum_bounds_nothing() -> None:
    k = Builder("sums", {"q": 64, "s": 64, "d": 16, "f": 16})
    x, y = k.input("x", (64, 16), "f32"), k.input("y", (64, 16), "f32")
    scores = k.contract(k.load(x, "qd"), k.load(y, "sd"), ("d",), "f32")
    seen = k.op("ge", k.iota("q"), k.iota("s"))
    p = k.op("exp", k.op("select", seen, scores, k.constant(0.0, "f32")))
    (total,) = k.reduce("sum", ("s",), p)
    result = k.contract(k.op("div", p, total), k.load(y, "sf"), ("s",), "f32")
    k.store(k.output("z", (64, 16), "f32"), "qf", result)
    rows = recognise_rows(k.build())
    assert rows is not None
    assert rows.bounds == Bounds()


def test_a_product_whose_rows_are_normalised(check: Check) -> None:
    rows, columns, depth = 53, 85, 20
    k = Builder("normalised", {"m": rows, "n": columns, "k": depth})
    x, w = k.input("x", (rows, depth), "f32"), k.input("w", (depth, columns), "f32")
    scale, y = k.input("scale", (columns,), "f32"), k.output("y", (rows, columns), "f32")
    z = k.contract(k.load(x, "mk"), k.load(w, "kn"), ("k",), "f32")
    count = k.constant(float(columns), "f32")
    mean = k.op("div", k.reduce("sum", ("n",), z)[0], count)
    centred = k.op("sub", z, mean)
    variance = k.op("div", k.reduce("sum", ("n",), k.op("mul", centred, centred))[0], count)
    factor = k.op("rsqrt", k.op("add", variance, k.constant(1e-5, "f32")))
    normal = k.op("mul", k.op("mul", centred, factor), k.load(scale, "n"))
    k.store(y, "mn", normal)
    check(k.build())


def test_grouped_queries_share_keys(check: Check) -> None:
    sizes = {"b": 2, "h": 2, "g": 3, "q": 21, "s": 25, "d": 8, "e": 12}
    k = Builder("grouped", sizes)
    query = k.input("query", (2, 2, 3, 21, 8), "f32")
    key, value = k.input("key", (2, 25, 2, 8), "f32"), k.input("value", (2, 25, 2, 12), "f32")
    result = k.output("result", (2, 21, 2, 3, 12), "f32")
    z = k.contract(k.load(query, "bhgqd"), k.load(key, "bshd"), ("d",), "f32")
    p = k.op("exp", k.op("sub", z, k.reduce("max", ("s",), z)[0]))
    weights = k.op("div", p, k.reduce("sum", ("s",), p)[0])
    k.store(result, "bqhge", k.contract(weights, k.load(value, "bshe"), ("s",), "f32"))
    check(k.build())


def test_operands_in_bfloat16(check: Check) -> None:
    k = Builder("narrow", {"q": 30, "s": 40, "d": 16, "e": 20})
    query, key = k.input("query", (30, 16), "bf16"), k.input("key", (40, 16), "bf16")
    value, result = k.input("value", (40, 20), "bf16"), k.output("result", (30, 20), "bf16")
    z = k.contract(k.load(query, "qd"), k.load(key, "sd"), ("d",), "f32")
    p = k.op("exp", k.op("sub", z, k.reduce("max", ("s",), z)[0]))
    weights = k.op("div", p, k.reduce("sum", ("s",), p)[0])
    total = k.contract(weights, k.load(value, "se"), ("s",), "f32")
    k.store(result, "qe", k.convert(total, "bf16"))
    check(k.build())
