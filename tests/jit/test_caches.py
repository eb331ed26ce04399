"""What is remembered is bounded, can be forgotten, and is never stale."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

import fxarray
import fxarray.numpy as fnp
from fxarray.compile import driver

SCALE = 2.0


def test_a_rerun_definition_with_another_constant_computes_anew() -> None:
    results: list[float] = []
    for factor in ("2.0", "3.0"):  # as a notebook cell run twice
        namespace: dict[str, Any] = {"fxarray": fxarray}
        exec(f"@fxarray.jit\ndef f(x, k={factor}):\n    return x * {factor} + k", namespace)
        results.append(float(namespace["f"](1.0)))
    assert results == [4.0, 6.0]


def test_a_fresh_closure_sees_the_new_value_of_a_global() -> None:
    global SCALE
    first = float(fxarray.jit(lambda x: x * SCALE)(1.0))
    SCALE = 5.0
    try:
        assert (first, float(fxarray.jit(lambda x: x * SCALE)(1.0))) == (2.0, 5.0)
    finally:
        SCALE = 2.0


def test_a_mutated_array_argument_is_read_anew() -> None:
    total = fxarray.jit(lambda x: x.sum())
    x = np.ones(3, np.float32)
    assert float(total(x)) == 3
    x[:] = 2
    assert float(total(x)) == 6


def test_clear_caches_forgets_traces_executables_and_short_ways() -> None:
    traced: list[int] = []

    @fxarray.jit
    def function(x: Any) -> Any:
        traced.append(1)
        return fnp.sin(x) + 1

    x = fnp.ones(3)
    expected = np.asarray(function(x))
    function(x)
    assert len(traced) == 1
    fxarray.clear_caches()
    assert driver.statistics().size == 0
    assert function.cache_info().size == 0
    assert np.array_equal(np.asarray(function(x)), expected)
    assert len(traced) == 2


def test_the_short_ways_of_one_function_are_bounded() -> None:
    pick = fxarray.jit(lambda x, n: x * n, static_argnums=1)
    x = fnp.ones(())
    for n in range(1100):
        assert float(pick(x, n)) == n
    assert len(pick._fast.by_key) <= 1024


def test_many_threads_get_the_results_of_one() -> None:
    step = fxarray.jit(lambda x, n: fnp.sin(x) * n, static_argnums=1)
    gradient = fxarray.grad(lambda x: fnp.sum(fnp.sin(x * x)))
    inputs = [fnp.arange(float(1 + i % 7)) for i in range(200)]

    def work(i: int) -> tuple[bytes, bytes]:
        if i % 50 == 0:
            fxarray.clear_caches()
        stepped, slope = step(inputs[i], i % 3), gradient(inputs[i])
        return np.asarray(stepped).tobytes(), np.asarray(slope).tobytes()

    alone = [work(i) for i in range(200)]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(work, range(200))) == alone
