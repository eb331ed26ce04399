"""What one sees of compiled programs: text, cost, memory, timelines."""

import json

import numpy as np
import pytest

import fxarray
import fxarray.numpy as fnp
from fxarray import lax
from fxarray.core.errors import ArgumentError

X = np.ones((32, 64), np.float32)


def f(x):
    y = fnp.sort(fnp.tanh(x) * 2, 1)
    return lax.fori_loop(0, 10, lambda i, c: fnp.sort(c) + i, y[0])


@pytest.fixture(scope="module")
def compiled():
    return fxarray.jit(f, backend="cpu").lower(X).compile()


class TestText:
    def test_every_stage_can_be_read(self, compiled):
        lowered = fxarray.jit(f, backend="cpu").lower(X)
        assert "tanh" in lowered.as_text("program")
        for stage in compiled.stages:
            assert compiled.as_text(stage)
        assert "scan[10]" in compiled.as_text("graph")
        assert "tanh" in compiled.as_text("kernels")
        assert "define void @entry(" in compiled.as_text("llvm")
        assert ".text" in compiled.as_text("assembly")

    def test_an_unknown_stage_is_an_error_that_lists_them(self, compiled):
        with pytest.raises(ArgumentError, match="assembly"):
            compiled.as_text("ptx")


class TestCost:
    def test_flops_bytes_and_kernels(self):
        n = 64
        x, y = fnp.ones((n, n)), fnp.zeros((n, n))
        compiled = fxarray.jit(lambda x, y: x @ y, backend="cpu").lower(x, y).compile()
        cost = compiled.cost_analysis()
        assert cost["flops"] == 2 * n**3
        assert cost["bytes accessed"] == 3 * n * n * 4
        assert cost["kernels"] == 1

    def test_a_scan_counts_all_its_turns(self):
        def g(x, turns):
            return lax.fori_loop(0, turns, lambda i, c: c * 0.9 + i, x)

        costs = [
            fxarray.jit(lambda x, n=n: g(x, n), backend="cpu")
            .lower(fnp.ones(1000))
            .compile()
            .cost_analysis()["flops"]
            for n in (20, 40)
        ]
        assert costs[1] == pytest.approx(2 * costs[0], rel=0.1)


class TestTimelines:
    def test_a_row_for_each_kernel(self, tmp_path):
        jitted = fxarray.jit(f, backend="cpu")
        jitted(X)
        file = tmp_path / "trace.json"
        note = fxarray.profiler.TraceAnnotation("two calls", step=3)
        with fxarray.profiler.trace(file), note:
            first, second = jitted(X), jitted(X)
        jitted(X)
        assert np.array_equal(first, second)
        content = json.loads(file.read_text())
        events = content["traceEvents"]
        programs = [e for e in events if e["cat"] == "program"]
        kernels = [e for e in events if e["cat"] == "kernel"]
        assert [e["name"] for e in programs] == ["f", "f"]
        assert sum(e["name"] == "sort" for e in kernels) == 2 * 11
        tanh = next(e for e in kernels if "tanh" in e["name"])
        assert tanh["args"]["bytes"] > 0
        assert tanh["args"]["flops"] > 0
        assert tanh["args"]["share of roofline"] > 0
        assert __file__ in tanh["args"]["where"]
        (note,) = [e for e in events if e["cat"] == "annotation"]
        assert note["args"] == {"step": 3}
        for event in kernels:
            assert any(
                p["ts"] <= event["ts"] and event["ts"] + event["dur"] <= p["ts"] + p["dur"]
                for p in programs
            )

    def test_a_directory_gets_a_file(self, tmp_path):
        fxarray.profiler.start_trace(tmp_path / "new")
        file = fxarray.profiler.stop_trace()
        assert file.parent == tmp_path / "new"
        assert json.loads(file.read_text())["traceEvents"] == []

    def test_one_at_a_time(self, tmp_path):
        with fxarray.profiler.trace(tmp_path), pytest.raises(ArgumentError, match="already"):
            fxarray.profiler.start_trace(tmp_path)
        with pytest.raises(ArgumentError, match="begin one"):
            fxarray.profiler.stop_trace()
