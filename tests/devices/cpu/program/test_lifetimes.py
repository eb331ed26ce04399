"""Calls own what they run with: caches may be cleared while calls are kept, or under way."""

from __future__ import annotations

import gc
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np

import fxarray
import fxarray.numpy as fnp
from fxarray.compile.driver import compile_program
from fxarray.devices.cpu.program.executable import Bound, NativeExecutable


def test_a_call_outlives_the_executable_that_made_it() -> None:
    program = fxarray.make_program(lambda x: fnp.cumsum(fnp.sin(x)) @ fnp.cos(x))(np.zeros(300))
    executable = compile_program(program, backend="cpu")
    assert isinstance(executable, NativeExecutable)
    bound: Bound = executable.bound
    call, gone = bound.call, weakref.ref(bound)
    x = fnp.asarray(np.linspace(0, 1, 300))
    wanted = float(call([x])[0])
    del executable, bound
    fxarray.clear_caches()
    gc.collect()
    assert gone() is None
    garbage = [np.full(4096, -1, np.int64) for _ in range(200)]
    assert float(call([x])[0]) == wanted
    del garbage


def test_caches_may_be_cleared_while_other_threads_call() -> None:
    step = fxarray.jit(lambda x, n: fnp.sin(x) * n, static_argnums=1, backend="cpu")
    inputs = [fnp.arange(float(1 + i % 7)) for i in range(120)]

    def work(i: int) -> bytes:
        if i % 20 == 0:
            fxarray.clear_caches()
        return np.asarray(step(inputs[i], i % 3)).tobytes()

    alone = [work(i) for i in range(120)]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(work, range(120))) == alone
