"""The backend itself: chosen by an environment variable, and sharing the code of equal kernels."""

import os
import subprocess
import sys

import numpy as np
import pytest

import fxarray
import fxarray.numpy as fnp
from fxarray.devices.cpu.native import jit

BACKENDS = [("cpu", "assembly"), ("numpy", "python"), ("nonesuch", "nonesuch")]
PROGRAM = """
import fxarray, fxarray.numpy as fnp
print(fxarray.jit(lambda x: x + 1).lower(fnp.ones(3)).compile().stages[-1])
"""


@pytest.mark.parametrize(("name", "said"), BACKENDS)
def test_the_environment_chooses_the_default(name, said):
    environment = {**os.environ, "FXARRAY_BACKEND": name}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert said in done.stdout + done.stderr
    assert (done.returncode == 0) == (name != "nonesuch")


def test_equal_layers_share_their_code():
    def layers(count):
        def f(x, w):
            for _ in range(count):
                x = fnp.tanh(x @ w) + fnp.sort(x, 1)
            return x

        x = np.ones((20, 20), np.float32)
        return fxarray.jit(f, backend="cpu").lower(x, x).compile()

    few, many = layers(3), layers(9)
    code = [c._executable.compiled.code for c in (few, many)]
    assert len(code[1].instructions) > 2 * len(code[0].instructions)
    assert len(code[1].texts) == len(code[0].texts)


def test_code_that_is_known_is_not_compiled_again():
    def f(x):
        return fnp.cos(x) * 0.3125 - 11

    fxarray.jit(f, backend="cpu")(np.ones(5, np.float32))
    before = jit.statistics()
    fxarray.clear_caches()
    fxarray.jit(f, backend="cpu")(np.ones(5, np.float32))
    assert jit.statistics() == before
