"""The greatest elements and their positions equal the reference."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from fxarray.core import dtypes
from fxarray.core.dtype_table import NUMERIC
from fxarray.primitives.sort import TopK
from fxarray.primitives.support import random_operand

Check = Callable[..., None]


def test_samples(check: Check) -> None:
    for sample in TopK.samples(np.random.default_rng(0)):
        if sample.error is None:
            check(sample.op, *sample.operands)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "bfloat16", "uint8"])
def test_every_k_and_order(check: Check, dtype: str) -> None:
    rng = np.random.default_rng(1)
    kind = dtypes.physical(dtypes.canonical(dtype))
    for n in (1, 40, 1000, 5000):
        rows = (
            rng.normal(size=n) * 50,
            np.arange(n) % 120,
            -np.arange(n) % 120,
            np.full(n, 3),
            rng.integers(0, 3, n),
        )
        x = np.stack(rows).clip(0 if kind.kind == "u" else -120, 120).astype(kind)
        for k in (1, 7, 200, n):
            if k <= n:
                check(TopK(k, 1), x)
                check(TopK(k, 0), x.T.copy())


def test_nan_and_zeros(check: Check) -> None:
    rng = np.random.default_rng(2)
    special = np.array([0.0, -0.0, np.nan, -1, 1, np.inf, -np.inf, -np.nan], np.float32)
    for n in (8, 3000):
        for k in (3, 8):
            check(TopK(k, 0), rng.choice(special, n))


def test_every_dtype(check: Check) -> None:
    rng = np.random.default_rng(3)
    for dtype in NUMERIC:
        if not dtypes.is_complex(dtype):
            x = dtypes.cast(
                random_operand(rng, (300,), np.int8, (0.0, 1.0)), dtypes.physical(dtype)
            )
            check(TopK(5, 0), x)
