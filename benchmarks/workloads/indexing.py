"""Gathers, scatters, sorting, random numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.workloads.registry import integers, normal, workload


@workload("index", numpy=lambda table, i: table[i], torch=lambda t, table, i: table[i.long()])
def gather_rows(m: Any) -> Any:
    return (lambda table, i: table[i]), (normal(20_000, 128), integers(20_000, 6000))


@workload("index", numpy=lambda x, i: np.take_along_axis(x, i, 1))
def gather_in_rows(m: Any) -> Any:
    return (
        lambda x, i: m.numpy.take_along_axis(x, i, 1),
        (normal(2000, 500), integers(500, 2000, 100)),
    )


@workload("index")
def scatter_rows(m: Any) -> Any:
    return (
        lambda x, i, u: x.at[i].add(u),
        (normal(5000, 64), integers(5000, 20_000), normal(20_000, 64, seed=1)),
    )


@workload("index", numpy=lambda i: np.bincount(i, minlength=512))
def histogram(m: Any) -> Any:
    return (lambda i: m.numpy.zeros(512, "int32").at[i].add(1)), (integers(512, 800_000),)


@workload("index", numpy=np.sort, torch=lambda t, x: x.sort().values)
def sort_floats(m: Any) -> Any:
    return m.numpy.sort, (normal(700_000),)


@workload("index", numpy=lambda x: np.sort(x, 1))
def sort_rows_of_integers(m: Any) -> Any:
    return (lambda x: m.numpy.sort(x, axis=1)), (integers(10_000, 500, 1000),)


@workload("index", numpy=lambda x: np.argsort(x, kind="stable"))
def argsort_floats(m: Any) -> Any:
    return m.numpy.argsort, (normal(150_000),)


@workload("index", torch=lambda t, x: t.topk(x, 20))
def top_20(m: Any) -> Any:
    return (lambda x: m.lax.top_k(x, 20)), (normal(200, 5000),)


@workload("index")
def binary_search(m: Any) -> Any:
    return (
        m.numpy.searchsorted,
        (np.sort(normal(50_000)), normal(200_000, seed=1)),
    )


@workload("index")
def dropout(m: Any) -> Any:
    def f(seed: Any, x: Any) -> Any:
        kept = m.random.bernoulli(m.random.key(seed), 0.9, x.shape)
        return m.numpy.where(kept, x / 0.9, 0)

    return f, (np.int32(0), normal(1000, 1000))


@workload("index")
def normal_numbers(m: Any) -> Any:
    return (lambda seed: m.random.normal(m.random.key(seed), (500_000,))), (np.int32(0),)
