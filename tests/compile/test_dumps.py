"""The setting `debug` prints what the compiler does."""

import numpy as np
import pytest

import fxarray
import fxarray.numpy as fnp
from fxarray.core import config


@pytest.fixture
def printed(capfd):
    def run(level):
        def waves(x):
            return fnp.sin(x) * (level + 0.5) + 0 * x

        with config.using(debug=level):
            fxarray.jit(waves, backend="cpu")(np.ones(3, np.float32))
        return capfd.readouterr().err

    return run


def test_nothing_is_printed_below_two(printed):
    assert printed(0) == ""
    assert printed(1) == ""


def test_two_prints_the_graph_and_figures(printed):
    text = printed(2)
    assert "compiled waves" in text
    assert "kernels 1" in text
    assert "= kernel " in text
    assert "define void" not in text


def test_three_prints_every_stage(printed):
    text = printed(3)
    for stage in ("traced", "graph", "kernels", "llvm", "assembly"):
        assert f"--- {stage}\n" in text
    assert "define void" in text
