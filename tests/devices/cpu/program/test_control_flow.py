"""Loops and branches: in the walker and as routines of their own."""

import time

import numpy as np
import pytest

import fxarray
import fxarray.numpy as fnp
from fxarray import lax
from fxarray.core import config
from fxarray.core.errors import LoopBoundError

X = np.random.default_rng(0).normal(size=(6, 8)).astype(np.float32)
ONE = np.float32(1.5)

# A scalar loop becomes one routine; the same over rows of 100, with a sort, is walked.
SIZES = {"scalar": (np.float32(0.7), lambda x: x), "row": (np.tile(X[0], 13), fnp.sort)}


@pytest.fixture(params=SIZES)
def value(request):
    return SIZES[request.param]


def routines(jitted, *arguments):
    """How many loops of a compiled function are routines of their own."""
    compiled = jitted.lower(*arguments).compile()._executable.compiled
    return sum(type(s).__name__ in ("WhileStep", "ScanStep") for s in compiled.routines)


class TestLoops:
    def test_a_fori_loop(self, agree, value):
        x, step = value
        agree(lambda x: lax.fori_loop(0, 50, lambda i, c: step(c * 0.9 + i), x), x)

    def test_values_go_round(self, agree, value):
        x, step = value

        def body(i, c):
            return c[1], step(c[2]), c[0] * 0.5 + c[1]

        agree(lambda x: lax.fori_loop(0, 31, body, (x, x + 1, x + 2)), x)

    def test_the_number_of_turns_is_an_argument(self, agree, value):
        x, step = value

        def f(n, x):
            return lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, step(c[1] * 2)), (0, x))

        for turns in (0, 1, 7):
            agree(f, np.int32(turns), x)

    def test_a_bound_on_the_turns(self, agree, value):
        x, step = value

        def f(x):
            return lax.while_loop(
                lambda c: c[0] < 100, lambda c: (c[0] + 1, step(c[1])), (0, x), max_steps=9
            )

        jitted = agree(f, x)
        with config.using(debug=1), pytest.raises(LoopBoundError, match="max_steps=9"):
            jitted(fnp.asarray(x))

    @pytest.mark.parametrize("reverse", [False, True])
    def test_a_scan(self, agree, value, reverse):
        x, step = value
        xs = np.stack([x * n for n in range(20)])

        def f(x, xs):
            return lax.scan(lambda c, a: (step(c * 0.5 + a), (c + a, a, c)), x, xs, reverse=reverse)

        agree(f, x, xs)

    def test_a_scan_of_no_turns(self, agree, value):
        x, step = value
        agree(lambda x: lax.scan(lambda c, _: (step(c), c), x, None, length=0), x)

    def test_a_scan_in_a_scan(self, agree, value):
        x, step = value
        table = np.stack([np.stack([x * (i + j) for j in range(5)]) for i in range(4)])

        def outer(c, row):
            c, ys = lax.scan(lambda d, a: (step(d * 0.5 + a), d - a), c, row)
            return c, fnp.sum(ys, 0)

        agree(lambda x, t: lax.scan(outer, x, t), x, table)

    def test_a_loop_with_turns_counted_at_run_time_in_a_loop(self, agree, value):
        x, step = value

        def body(i, c):
            return lax.while_loop(lambda d: d[0] < i, lambda d: (d[0] + 1, step(d[1] + i)), (0, c))[
                1
            ]

        agree(lambda x: lax.fori_loop(0, 13, body, x), x)

    def test_the_gradient_of_a_scan(self, agree, value):
        x, _ = value

        def loss(x, xs):
            c, ys = lax.scan(lambda c, a: (fnp.tanh(c + a), c * a), x, xs)
            return fnp.sum(c) + fnp.sum(ys)

        agree(fxarray.grad(loss, (0, 1)), x, np.stack([x * n for n in range(20)]))

    def test_the_gradient_of_a_bounded_while_loop(self, agree, value):
        x, _ = value

        def loss(x):
            return fnp.sum(
                lax.while_loop(
                    lambda c: c[0] < 6, lambda c: (c[0] + 1, fnp.sin(c[1])), (0, x), max_steps=9
                )[1]
            )

        agree(fxarray.grad(loss), x)

    def test_updates_in_a_table(self, agree):
        def f(table):
            return lax.fori_loop(1, 40, lambda i, t: t.at[i].set(t[i - 1] * 2 + i), table)

        agree(f, np.ones(40, np.int64))

    def test_small_vectors_complex_numbers_and_bools_in_registers(self, agree):
        def body(c):
            flag, z, v, n = c
            return ~flag, z * (0.9 + 0.1j), fnp.where(flag, v[::-1], v + 1), n + 1

        def f(z, v):
            return lax.while_loop(lambda c: c[3] < 9, body, (False, z, v, 0))

        agree(f, np.complex64(1 + 2j), np.arange(5, dtype=np.float32))


class TestInlining:
    def test_loops_over_scalars_are_routines(self):
        f = fxarray.jit(lambda x: lax.fori_loop(0, 50, lambda i, c: c * 0.9 + i, x), backend="cpu")
        assert routines(f, ONE) == 1
        assert routines(f, np.ones(1000, np.float32)) == 0

    def test_an_inner_loop_over_scalars_is_a_routine_of_a_walked_one(self, agree):
        def body(i, c):
            total = lax.fori_loop(0, 20, lambda j, s: s * 0.9 + j, fnp.sum(c))
            return fnp.sort(c) + total

        f = agree(lambda x: lax.fori_loop(0, 30, body, x), np.ones(500, np.float32) * 0.1)
        assert routines(f, np.ones(500, np.float32)) == 1

    def test_equal_loops_share_their_code(self):
        def f(x):
            once = lax.fori_loop(0, 50, lambda i, c: c * 0.9 + i, x)
            return once, lax.fori_loop(0, 50, lambda i, c: c * 0.9 + i, once + 1)

        text = fxarray.jit(f, backend="cpu").lower(ONE).compile().as_text("llvm")
        assert text.count("define void @entry(") <= 3

    def test_turns_take_nanoseconds(self):
        f = fxarray.jit(
            lambda x: lax.fori_loop(0, 1_000_000, lambda i, c: c * 0.999 + 1, x), backend="cpu"
        )
        f(ONE)
        best = min(_time(f, time.perf_counter) for _ in range(5))
        assert best / 1_000_000 < 50e-9


def _time(f, clock):
    start = clock()
    f(ONE)
    return clock() - start


class TestBranches:
    @pytest.mark.parametrize("index", [-3, 0, 1, 2, 9])
    def test_the_index_is_clamped(self, agree, index):
        branches = [lambda x: x, lambda x: fnp.sort(-x), lambda x: fnp.ones_like(x)]
        agree(lambda i, x: lax.switch(i, branches, x), np.int32(index), X)

    @pytest.mark.parametrize("flag", [False, True])
    def test_results_that_are_operands_and_swapped(self, agree, flag):
        def f(flag, x, y):
            return lax.cond(flag, lambda x, y: (y, x), lambda x, y: (x, x), x, y)

        agree(f, np.bool_(flag), X, X + 1)

    def test_a_branch_in_a_loop(self, agree, value):
        x, step = value

        def body(i, c):
            return lax.switch(i % 3, [lambda c: c + 1, lambda c: step(c * 2), lambda c: -c], c)

        agree(lambda x: lax.fori_loop(0, 20, body, x), x)

    def test_a_loop_in_a_branch(self, agree, value):
        x, step = value

        def f(flag, x):
            def loop(x):
                return lax.fori_loop(0, 20, lambda i, c: step(c * 0.5 + i), x)

            return lax.cond(flag, loop, lambda x: x, x)

        for flag in (False, True):
            agree(f, np.bool_(flag), x)
