"""Steps of the host: callbacks, their errors, signals."""

import os
import signal
import threading
import time

import numpy as np
import pytest

import fxarray
import fxarray.numpy as fnp
from fxarray import lax
from fxarray.core.errors import CallbackError

X = np.arange(6, dtype=np.float32)


def native(function):
    return fxarray.jit(function, backend="cpu")


def call(function, x):
    return fxarray.pure_callback(function, fxarray.ShapeDtypeStruct(x.shape, x.dtype), x)


def test_a_callback_between_kernels():
    f = native(lambda x: call(lambda a: np.asarray(a)[::-1] * 2, x + 1) - 1)
    assert np.array_equal(f(X), (X + 1)[::-1] * 2 - 1)


def test_a_callback_may_keep_what_it_is_given():
    kept = []

    def f(x):
        call(lambda a: kept.append(a) or a, fnp.sort(x) * 3)
        return fnp.cumsum(fnp.sort(x + 1) * 5)

    def g(x):
        return call(lambda a: kept.append(a) or a, fnp.sort(x) * 3) + fnp.cumsum(fnp.sort(x) * 5)

    native(g)(X)
    native(f)(X + 7)
    assert np.array_equal(kept[0], X * 3)


def test_callbacks_in_a_loop_run_in_order():
    seen = []

    def body(i, c):
        fxarray.io_callback(lambda i: seen.append(int(i)), None, i, ordered=True)
        return fnp.sort(c) + 1

    result = native(lambda x: lax.fori_loop(0, 12, body, x))(X)
    assert seen == list(range(12))
    assert np.array_equal(result, X + 12)


def test_an_error_in_a_callback_stops_the_program_and_names_its_cause():
    after = []

    def fail(a):
        raise ValueError("no such thing")

    def f(x):
        y = call(fail, x)
        return fxarray.io_callback(
            lambda a: after.append(1) or np.asarray(a),
            fxarray.ShapeDtypeStruct(x.shape, x.dtype),
            y,
        )

    for _ in range(2):
        with pytest.raises(CallbackError, match="no such thing") as caught:
            native(f)(X)
        assert isinstance(caught.value.__cause__, ValueError)
    assert not after


def test_an_error_in_a_loop_leaves_the_function_usable():
    limit = [5]

    def check(i):
        if int(i) >= limit[0]:
            raise ValueError("too far")

    def body(i, c):
        fxarray.io_callback(check, None, i, ordered=True)
        return c + 1

    f = native(lambda x: lax.fori_loop(0, 12, body, x))
    with pytest.raises(CallbackError, match="too far"):
        f(X)
    limit[0] = 100
    assert np.array_equal(f(X), X + 12)


def test_an_interrupt_in_a_callback_reaches_the_caller():
    def interrupt(a):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        native(lambda x: call(interrupt, x) + 1)(X)


def test_a_callback_may_call_compiled_functions():
    inner = native(lambda x: fnp.sort(x) * 2)
    f = native(lambda x: call(lambda a: np.asarray(inner(np.asarray(a))), x + 1) + 1)
    assert np.array_equal(f(X), (X + 1) * 2 + 1)


@pytest.mark.parametrize("shape", [(), (1000,)])
def test_a_loop_that_does_not_end_can_be_interrupted(shape):
    """As a routine of scalars, and walked."""
    f = native(lambda x: lax.while_loop(lambda c: c.sum() > 0, lambda c: c * 0.999 + 1, x))
    timer = threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        f(np.ones(shape, np.float32))
    timer.join()
    assert time.monotonic() - start < 20


def test_other_threads_run_while_native_code_does():
    f = native(lambda x: lax.fori_loop(0, 20_000_000, lambda i, c: c * 0.999 + 1, x))
    f.lower(np.float32(1)).compile()
    done = threading.Event()
    ticks = []

    def tick():
        while not done.is_set():
            ticks.append(time.monotonic())
            time.sleep(0.001)

    thread = threading.Thread(target=tick)
    thread.start()
    start = time.monotonic()
    f(np.float32(1))
    end = time.monotonic()
    done.set()
    thread.join()
    assert sum(start < t < end for t in ticks) > 3
