"""Discrete Fourier transforms by NumPy's names.

>>> import fxarray.numpy as fnp
>>> fnp.fft.rfft(fnp.ones(4))
Array([4.+0.j, 0.+0.j, 0.+0.j], dtype=complex64)
"""

from fxarray.numpy.fft.frequencies import fftfreq, fftshift, ifftshift, rfftfreq
from fxarray.numpy.fft.transforms import (
    fft,
    fft2,
    fftn,
    hfft,
    ifft,
    ifft2,
    ifftn,
    ihfft,
    irfft,
    irfft2,
    irfftn,
    rfft,
    rfft2,
    rfftn,
)

__all__ = [
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ihfft",
    "irfft",
    "irfft2",
    "irfftn",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
]
