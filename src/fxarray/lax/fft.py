"""The discrete Fourier transform."""

from __future__ import annotations

import enum
from collections.abc import Sequence

from fxarray.core import dtypes
from fxarray.core.array import Array
from fxarray.core.errors import ArgumentError, DTypeError
from fxarray.lax.operands import ArrayLike, as_operand
from fxarray.lax.shapes import as_sizes
from fxarray.primitives.convert import convert
from fxarray.primitives.fft import KINDS, Fft


class FftType(enum.IntEnum):
    """Kinds of transforms; see `fft`."""

    FFT = 0
    IFFT = 1
    RFFT = 2
    IRFFT = 3


def fft(x: ArrayLike, fft_type: FftType | str, fft_lengths: Sequence[int]) -> Array:
    """The discrete Fourier transform over the last dimensions.

    Args:
      x: an array; real for "RFFT".
      fft_type: "FFT"; "IFFT", its inverse, with factor 1/n; "RFFT", that of real numbers, without
        the results that follow from others; "IRFFT", the inverse of this.
      fft_lengths: the sizes of the transforms; those of the last dimensions of `x`, except that
        the last dimension of an "IRFFT" has fft_lengths[-1] // 2 + 1.

    Raises:
      ShapeError: sizes are others.

    >>> from fxarray import lax, numpy as fnp
    >>> lax.fft(fnp.ones(4), "FFT", (4,))
    Array([4.+0.j, 0.+0.j, 0.+0.j, 0.+0.j], dtype=complex64)
    """
    kind = fft_type.name if isinstance(fft_type, FftType) else str(fft_type).upper()
    if kind not in KINDS:
        raise ArgumentError(f"lax.fft: fft_type={fft_type!r} must be one of {KINDS}")
    value = as_operand("fft", x)
    dtype = dtypes.to_inexact(value.type.dtype)
    if dtypes.is_narrow_float(dtype):
        dtype = dtypes.float32
    if kind != "RFFT":
        dtype = dtypes.to_complex(dtype)
    elif dtypes.is_complex(dtype):
        raise DTypeError(f"lax.fft: RFFT takes real numbers, got {value.type}")
    return Fft(kind, as_sizes("fft", fft_lengths))(convert(value, dtype))  # type: ignore[arg-type]
