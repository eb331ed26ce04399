"""Sorts equal the reference, bit by bit: stable, NaN last, zeros of both signs equal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from fxarray.core import dtypes
from fxarray.core.dims import ShapeVar
from fxarray.core.dtype_table import NUMERIC
from fxarray.core.primitive import Sample
from fxarray.core.types import ArrayType
from fxarray.devices.cpu.library import routine
from fxarray.devices.cpu.native.target import host
from fxarray.primitives.sort import Sort, TopK
from fxarray.primitives.support import random_operand

Check = Callable[..., None]
DTYPES = ("float32", "float64", "float16", "bfloat16", "int8", "uint16", "int32", "uint64", "bool")
# Around the limits of networks, insertion, digits, and of what is sorted by all threads.
SIZES = (1, 2, 16, 17, 41, 129, 1000, 7000)


def draw(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    return random_operand(rng, shape, dtypes.canonical(dtype), (-40.0, 40.0))


@pytest.mark.parametrize("dtype", DTYPES)
def test_keys_alone(check: Check, dtype: str) -> None:
    rng = np.random.default_rng(0)
    for size in SIZES:
        check(Sort(0), draw(rng, (size,), dtype))


@pytest.mark.parametrize("dtype", DTYPES)
def test_equal_keys_keep_their_order(check: Check, dtype: str) -> None:
    rng = np.random.default_rng(1)
    for size in SIZES:
        x = np.round(draw(rng, (size,), dtype).astype(np.float32) / 20)
        x = dtypes.cast(x, dtypes.canonical(dtype))
        check(Sort(0), x, np.arange(size, dtype=np.int32))
        check(Sort(0), x, np.arange(size, dtype=np.int64))
        check(Sort(0), x, rng.normal(size=size), np.arange(size, dtype=np.int8))


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_every_axis(check: Check, axis: int) -> None:
    rng = np.random.default_rng(2)
    x = draw(rng, (5, 70, 9), "float32")
    check(Sort(axis), x)
    check(Sort(axis), x, np.arange(x.size, dtype=np.int32).reshape(x.shape))
    check(Sort(axis), x.astype(np.float64), np.arange(x.size).reshape(x.shape))
    wide = draw(rng, (3, 4, 2000), "int32")
    check(Sort(2), wide)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_zeros_and_nan(check: Check, dtype: str) -> None:
    rng = np.random.default_rng(3)
    special = np.array([0.0, -0.0, np.nan, -1, 1, np.inf, -np.inf, -np.nan], dtype)
    for size in (8, 60, 5000):
        x = rng.choice(special, size)
        check(Sort(0), x)
        check(Sort(0), x, np.arange(size, dtype=np.int32))
        check(Sort(0, True, 2), x, rng.choice(special, size), np.arange(size, dtype=np.int32))


def test_several_keys(check: Check) -> None:
    rng = np.random.default_rng(4)
    for size in (30, 3000):
        low = rng.integers(0, 3, size).astype(np.int8)
        middle = rng.integers(0, 3, size).astype(np.float64)
        check(Sort(0, True, 2), low, middle, np.arange(size, dtype=np.int32))
        check(Sort(0, True, 3), low, low[::-1].copy(), rng.integers(0, 3, size).astype(np.int32))
        check(Sort(0), (low + 1j * middle).astype(np.complex64), np.arange(size))
        check(Sort(0), middle + 1j * low)


@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_long_arrays_of_every_kind_of_order(check: Check, dtype: str) -> None:
    rng = np.random.default_rng(5)
    n = 150_000
    for x in (
        rng.normal(size=n) * 1e6,
        np.arange(n),
        np.arange(n)[::-1],
        np.zeros(n),
        rng.integers(0, 3, n),
        np.where(rng.random(n) < 0.5, -0.0, np.abs(rng.normal(size=n))),
        np.repeat(np.arange(2), n // 2),
    ):
        check(Sort(0), x.astype(dtype))
    check(Sort(1), rng.normal(size=(2, n)).astype(dtype))
    check(Sort(0), rng.integers(0, 99, n).astype(dtype), np.arange(n, dtype=np.int32))


def test_samples(check: Check) -> None:
    for sample in Sort.samples(np.random.default_rng(6)):
        assert isinstance(sample, Sample)
        if sample.error is None:
            check(sample.op, *sample.operands)


def test_every_numeric_dtype(check: Check) -> None:
    rng = np.random.default_rng(7)
    for dtype in NUMERIC:
        values = random_operand(rng, (60,), np.int8, (-2.0, 2.0))
        x = dtypes.cast(values, dtypes.physical(dtype))
        check(Sort(0), x)
        check(Sort(0), x, np.arange(60, dtype=np.int32))


@pytest.mark.parametrize("dtype", ["float32", "int64", "float16"])
def test_sizes_without_a_bound(check: Check, dtype: str) -> None:
    # Counts and positions have 64 bits then.
    rng = np.random.default_rng(8)
    size = ShapeVar("n")
    for operands in (1, 2, 3):
        for n in (5, 3000):
            arrays = [draw(rng, (n,), dtype) for _ in range(operands)]
            check(Sort(0), *arrays, dims=[(size,)] * operands, values={"n": n})
            check(TopK(3, 0), arrays[0], dims=[(size,)], values={"n": n})


def test_one_code_for_all_sizes() -> None:
    def text(size: Any) -> str:
        given = ArrayType((4, size), dtypes.float32)
        made = routine(Sort(1), [given], [given], host())
        assert made is not None
        return made.text

    assert text(3) == text(1000)
    assert text(ShapeVar("n", max=5000)) == text(3)
