"""Many links in one process: its mappings stay few."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import fxarray
import fxarray.numpy as fnp
from fxarray.devices.cpu.native.linker import merge_mappings

MAPPINGS = Path("/proc/self/maps")


@pytest.mark.skipif(not MAPPINGS.exists(), reason="mappings are read from /proc")
def test_mappings_of_linked_code_are_merged_and_the_code_still_runs() -> None:
    x = fnp.arange(5.0)
    functions = [
        fxarray.jit(lambda x, k=k: x * (k + 0.371) + fnp.cos(x), backend="cpu") for k in range(20)
    ]
    before = [np.asarray(f(x)) for f in functions]
    mappings = len(MAPPINGS.read_text().splitlines())
    changed = merge_mappings()
    assert changed >= 10
    assert len(MAPPINGS.read_text().splitlines()) <= mappings - changed
    for f, value in zip(functions, before, strict=True):
        np.testing.assert_array_equal(f(x), value)
    assert merge_mappings() == 0
