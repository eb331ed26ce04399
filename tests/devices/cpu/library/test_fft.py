"""Fourier transforms of every kind and length equal the reference."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from fxarray.core import dtypes
from fxarray.core.dims import ShapeVar
from fxarray.core.types import ArrayType
from fxarray.devices.cpu.library import routine
from fxarray.devices.cpu.native.target import host
from fxarray.primitives.fft import FFT, IFFT, IRFFT, RFFT, Fft

Check = Callable[..., None]
# Powers of two, products of small primes, primes, products with them; cut in two or not.
LENGTHS = (1, 2, 3, 8, 13, 16, 17, 60, 64, 97, 120, 143, 210, 256, 289, 1000, 1009, 4096)


def draw(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    x: Any = rng.normal(size=shape)
    if dtype.startswith("complex"):
        x = x + 1j * rng.normal(size=shape)
    return x.astype(dtype)


def test_samples(check: Check) -> None:
    for sample in Fft.samples(np.random.default_rng(0)):
        if sample.error is None and np.asarray(sample.operands[0]).size:
            check(sample.op, *sample.operands, roundings=10)


@pytest.mark.parametrize("kind", [FFT, IFFT, RFFT, IRFFT])
@pytest.mark.parametrize("wide", [False, True])
def test_lengths(check: Check, kind: str, wide: bool) -> None:
    rng = np.random.default_rng(1)
    dtype = ("float64" if wide else "float32") if kind == RFFT else None
    dtype = dtype or ("complex128" if wide else "complex64")
    for n in LENGTHS:
        for rows in ((), (3,), (35,)):
            given = n // 2 + 1 if kind == IRFFT else n
            check(Fft(kind, (n,)), draw(rng, (*rows, given), dtype), roundings=20)


@pytest.mark.parametrize("kind", [FFT, IFFT, RFFT, IRFFT])
def test_several_dimensions(check: Check, kind: str) -> None:
    rng = np.random.default_rng(2)
    dtype = "float32" if kind == RFFT else "complex64"
    for lengths in ((5, 6), (40, 7, 10), (17, 128), (30, 1)):
        last = lengths[-1] // 2 + 1 if kind == IRFFT else lengths[-1]
        for rows in ((), (3,)):
            x = draw(rng, (*rows, *lengths[:-1], last), dtype)
            check(Fft(kind, lengths), x, roundings=20)


@pytest.mark.parametrize("kind", [FFT, RFFT, IRFFT])
def test_long_rows(check: Check, kind: str) -> None:
    rng = np.random.default_rng(3)
    dtype = "float64" if kind == RFFT else "complex128"
    for n in (1 << 15, 40_000):
        given = n // 2 + 1 if kind == IRFFT else n
        check(Fft(kind, (n,)), draw(rng, (2, given), dtype), roundings=20)


def test_large_primes_are_left_to_the_host() -> None:
    given = ArrayType((104_729,), dtypes.complex64)
    assert routine(Fft(FFT, (104_729,)), [given], [given], host()) is None


def test_any_number_of_rows() -> None:
    def text(rows: Any) -> str:
        given = ArrayType((rows, 12), dtypes.complex64)
        made = routine(Fft(FFT, (12,)), [given], [given], host())
        assert made is not None
        return made.text

    assert text(3) == text(ShapeVar("rows"))


def test_rows_known_at_run_time(check: Check) -> None:
    rng = np.random.default_rng(4)
    for kind, dtype, shape in ((FFT, "complex64", (8, 40)), (RFFT, "float32", (8, 128))):
        for rows in (1, 37):
            x = draw(rng, (rows, *shape), dtype)
            op = Fft(kind, shape)
            dims = [(ShapeVar("rows"), *shape)]
            check(op, x, roundings=20, dims=dims, values={"rows": rows})
