"""Fourier transforms against NumPy and JAX: values, gradients, arguments."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fxarray
import fxarray.numpy as fnp
from fxarray import lax
from fxarray.core.errors import ArgumentError, AxisError, DTypeError, ShapeError

RNG = np.random.default_rng(3)


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


REAL = RNG.normal(size=(3, 4, 6))
COMPLEX = RNG.normal(size=(3, 4, 6)) + 1j * RNG.normal(size=(3, 4, 6))


def operand(name):
    return REAL if name in ("rfft", "rfft2", "rfftn", "ihfft") else COMPLEX


def assert_same(ours, theirs):
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    assert ours.shape == theirs.shape
    assert ours.dtype == theirs.dtype
    np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-10)


def agrees(name, *args, **kwargs):
    """Whether value and pullback of a function of `fft` are JAX's."""
    x = operand(name)
    ours, pullback = fxarray.vjp(lambda x: getattr(fnp.fft, name)(x, *args, **kwargs), x)
    f = lambda x: getattr(jnp.fft, name)(x, *args, **kwargs)  # noqa: E731
    theirs, pullback_of_jax = jax.vjp(f, x)
    assert_same(ours, theirs)
    assert_same(ours, getattr(np.fft, name)(x, *args, **kwargs))
    cotangent = RNG.normal(size=theirs.shape).astype(theirs.dtype)
    if np.iscomplexobj(theirs):
        cotangent = cotangent + 1j * RNG.normal(size=theirs.shape)
    (ours,), (theirs,) = pullback(fnp.asarray(cotangent)), pullback_of_jax(jnp.asarray(cotangent))
    assert_same(ours, theirs)


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
@pytest.mark.parametrize(
    ("n", "axis", "norm"),
    [(None, -1, None), (5, 1, "ortho"), (9, 0, "forward"), (2, -1, "backward"), (1, 2, None)],
)
def test_one_axis_agrees_with_jax(name, n, axis, norm):
    agrees(name, n, axis, norm)


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft"])
@pytest.mark.parametrize("norm", [None, "ortho", "forward"])
def test_several_axes_agree_with_jax(name, norm):
    agrees(name + "2", norm=norm)
    agrees(name + "2", s=(3, 7), axes=(2, 0), norm=norm)
    agrees(name + "n", norm=norm)
    agrees(name + "n", s=(5, 4), axes=(0, 1), norm=norm)


def test_transforms_map_jit_and_differentiate_together():
    f = lambda x: fnp.abs(fnp.fft.irfft(fnp.fft.rfft(x) ** 2)).sum()  # noqa: E731
    g = lambda x: jnp.abs(jnp.fft.irfft(jnp.fft.rfft(x) ** 2)).sum()  # noqa: E731
    together = fxarray.jit(fxarray.vmap(fxarray.grad(f), in_axes=1))(REAL[0])
    assert_same(together, jax.vmap(jax.grad(g), in_axes=1)(REAL[0]))


def test_float32_stays_single_precision():
    x = REAL.astype("float32")
    assert fnp.fft.rfft(x).dtype == np.complex64
    assert fnp.fft.irfft(fnp.fft.rfft(x)).dtype == np.float32
    assert fnp.fft.fft(np.arange(3, dtype=np.int32)).dtype == np.complex64


@pytest.mark.parametrize("n", [1, 4, 5])
def test_frequencies_and_shifts_are_numpys(n):
    for name in ("fftfreq", "rfftfreq"):
        ours = getattr(fnp.fft, name)(n, 0.5, dtype="float64")
        np.testing.assert_allclose(np.asarray(ours), getattr(np.fft, name)(n, 0.5))
    x = RNG.normal(size=(n, n + 1))
    for axes in (None, 0, (1,)):
        assert_same(fnp.fft.fftshift(x, axes), np.fft.fftshift(x, axes))
        assert_same(fnp.fft.ifftshift(x, axes), np.fft.ifftshift(x, axes))


def test_lax_fft_takes_names_and_enums():
    x = COMPLEX[0]
    assert_same(lax.fft(x, "FFT", (4, 6)), np.fft.fft2(x))
    assert_same(lax.fft(x, lax.FftType.IFFT, (6,)), np.fft.ifft(x))
    assert_same(lax.fft(REAL[0], lax.FftType.RFFT, (6,)), np.fft.rfft(REAL[0]))


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: fnp.fft.rfft(COMPLEX), DTypeError),
        (lambda: fnp.fft.fft(REAL, axis=3), AxisError),
        (lambda: fnp.fft.fft(REAL, n=0), ArgumentError),
        (lambda: fnp.fft.fft(REAL, norm="max"), ArgumentError),
        (lambda: fnp.fft.fft2(REAL, axes=(0,)), ArgumentError),
        (lambda: fnp.fft.fftn(REAL, axes=(0, 0)), AxisError),
        (lambda: fnp.fft.fftn(REAL, s=(2,), axes=(0, 1)), ArgumentError),
        (lambda: lax.fft(COMPLEX, "FFT", (5,)), ShapeError),
        (lambda: lax.fft(COMPLEX, "DCT", (6,)), ArgumentError),
    ],
)
def test_what_makes_no_sense_is_an_error(call, error):
    with pytest.raises(error, match="fft"):
        call()
