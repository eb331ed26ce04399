"""Which products become part of an fma does not depend on how code is arranged."""

from __future__ import annotations

import numpy as np
import pytest

import fxarray
import fxarray.numpy as xnp
from fxarray.devices.cpu.native.target import host

HAS_FMA = host().architecture == "aarch64" or "+fma" in host().features.split(",")


def squares(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of numbers whose squares are rounded, rounded ones and exact ones."""
    return x * x, x.astype(np.float64) ** 2


def test_a_product_with_two_readers_is_rounded() -> None:
    x = np.random.default_rng(0).standard_normal(1000).astype(np.float32)
    y = np.random.default_rng(1).standard_normal(1000).astype(np.float32)
    rounded, _ = squares(x)
    run = fxarray.jit(lambda x, y: (x * x + y, x * x - y), backend="cpu")
    total, difference = map(np.asarray, run(xnp.asarray(x), xnp.asarray(y)))
    np.testing.assert_array_equal(total, rounded + y)
    np.testing.assert_array_equal(difference, rounded - y)


@pytest.mark.skipif(not HAS_FMA, reason="this processor has no fma")
def test_a_product_with_one_reader_is_not() -> None:
    x = np.random.default_rng(0).standard_normal(1000).astype(np.float32)
    rounded, exact = squares(x)
    run = fxarray.jit(lambda x, y: x * x - y, backend="cpu")
    rest = np.asarray(run(xnp.asarray(x), xnp.asarray(rounded)))
    np.testing.assert_array_equal(rest, (exact - rounded).astype(np.float32))
