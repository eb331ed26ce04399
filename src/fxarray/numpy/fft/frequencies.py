"""The frequencies of a transform's results, and their order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fxarray.core.array import Array
from fxarray.core.errors import ArgumentError
from fxarray.numpy.conversion import cast_to, place
from fxarray.numpy.joining import concatenate, roll
from fxarray.numpy.promotion import (
    ArrayLike,
    DTypeLike,
    as_operand,
    canonical_axes,
    promote_dtypes,
)
from fxarray.numpy.ranges import arange


def _count(function: str, n: Any) -> int:
    if not isinstance(n, int) or isinstance(n, bool):
        raise ArgumentError(f"fft.{function}: n must be a static integer, got {n!r}")
    return n


def _frequencies(
    function: str, numbers: Array, n: int, d: ArrayLike, dtype: DTypeLike, device: Any
) -> Array:
    numbers = cast_to(numbers, promote_dtypes(function, 1.0)[0].dtype)
    result = numbers / (as_operand(f"fft.{function}", d, 1) * n)
    if dtype is not None:
        result = result.astype(dtype)
    return place(f"fft.{function}", result, device)


def fftfreq(n: int, d: ArrayLike = 1.0, *, dtype: DTypeLike = None, device: Any = None) -> Array:
    """The frequency of each result of a transform, in cycles per unit of `d`.

    Args:
      n: the size of the transform.
      d: the distance between samples.
      dtype: of the result.
      device: where to put it.

    >>> import fxarray.numpy as fnp
    >>> fnp.fft.fftfreq(4)
    Array([ 0.  ,  0.25, -0.5 , -0.25], dtype=float32)
    """
    count = _count("fftfreq", n)
    middle = (count + 1) // 2
    numbers = concatenate([arange(middle), arange(-(count // 2), 0)])
    return _frequencies("fftfreq", numbers, count, d, dtype, device)


def rfftfreq(n: int, d: ArrayLike = 1.0, *, dtype: DTypeLike = None, device: Any = None) -> Array:
    """The frequency of each result of a transform of real numbers; see `fftfreq`.

    >>> import fxarray.numpy as fnp
    >>> fnp.fft.rfftfreq(4)
    Array([0.  , 0.25, 0.5 ], dtype=float32)
    """
    count = _count("rfftfreq", n)
    return _frequencies("rfftfreq", arange(count // 2 + 1), count, d, dtype, device)


def fftshift(x: ArrayLike, axes: int | Sequence[int] | None = None) -> Array:
    """`x` with frequency zero moved to the middle of the axes (default: all).

    >>> import fxarray.numpy as fnp
    >>> fnp.fft.fftshift(fnp.arange(4))
    Array([2, 3, 0, 1], dtype=int32)
    """
    value = as_operand("fft.fftshift", x)
    chosen = canonical_axes("fft.fftshift", axes, value.ndim)
    return roll(value, tuple([value.shape[axis] // 2 for axis in chosen]), chosen)


def ifftshift(x: ArrayLike, axes: int | Sequence[int] | None = None) -> Array:
    """The inverse of `fftshift`.

    >>> import fxarray.numpy as fnp
    >>> fnp.fft.ifftshift(fnp.arange(5))
    Array([2, 3, 4, 0, 1], dtype=int32)
    """
    value = as_operand("fft.ifftshift", x)
    chosen = canonical_axes("fft.ifftshift", axes, value.ndim)
    return roll(value, tuple([-(value.shape[axis] // 2) for axis in chosen]), chosen)
