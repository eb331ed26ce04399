"""The transforms: each is one `lax.fft` over last dimensions that are cut or padded to size.

Arguments that all of them share: `n` or `s`, the sizes of the transforms, to which axes are cut or
padded with zeros (default: their own sizes); `axis` or `axes`, what to transform along (default of
the functions of n axes: all, or the last ones if `s` is given); `norm`, what divides: "backward"
(the default) only the inverse, by n; "forward" only the transform, by n; "ortho" both, by the root
of n.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from fxarray.core import dtypes
from fxarray.core.array import Array
from fxarray.core.errors import ArgumentError, AxisError, DTypeError
from fxarray.lax.fft import fft as lax_fft
from fxarray.numpy.promotion import ArrayLike, canonical_axes, canonical_axis, promote_dtypes
from fxarray.primitives.elementwise import conjugate, number_like
from fxarray.primitives.movement import transpose
from fxarray.primitives.slicing import pad, slice_in_axis

Norm = str | None
Axes = Sequence[int] | None

_OPPOSITE = {None: "forward", "backward": "forward", "forward": "backward", "ortho": "ortho"}


def _check_norm(function: str, norm: Norm) -> None:
    if norm not in _OPPOSITE:
        raise ArgumentError(
            f'fft.{function}: norm={norm!r} must be None, "backward", "ortho" or "forward"'
        )


def _resized(x: Array, axis: int, size: Any) -> Array:
    """`x` cut or padded with zeros to a size of one axis."""
    own = x.shape[axis]
    if size < own:
        return slice_in_axis(x, 0, size, axis)
    if size > own:
        config = [(0, size - own if i == axis else 0, 0) for i in range(x.ndim)]
        return pad(x, number_like(x, 0), config)
    return x


def _transform(function: str, a: Any, s: Any, axes: Any, norm: Norm) -> Array:
    """The transform that `function` (with its number of axes taken off) names."""
    kind = function.rstrip("2n").upper()
    _check_norm(function, norm)
    (x,) = promote_dtypes(f"fft.{function}", a, inexact=True)
    if kind == "RFFT" and dtypes.is_complex(x.type.dtype):
        raise DTypeError(f"fft.{function} takes real numbers, got {x.type}; see fft.fft")
    if axes is None:
        axes = range(x.ndim) if s is None else range(x.ndim - len(s), x.ndim)
    chosen = canonical_axes(f"fft.{function}", tuple(axes), x.ndim)
    if not chosen:
        if kind in ("RFFT", "IRFFT"):
            raise AxisError(f"fft.{function}: at least one axis must be transformed")
        return x.astype(dtypes.to_complex(x.type.dtype))
    lengths: list[Any]
    if s is None:
        lengths = [x.shape[axis] for axis in chosen]
        if kind == "IRFFT":
            lengths[-1] = 2 * (lengths[-1] - 1)
    else:
        lengths = list(s)
        if len(lengths) != len(chosen):
            raise ArgumentError(
                f"fft.{function}: s={tuple(s)} must have one size for each of the axes {chosen}"
            )
    if any(length < 1 for length in lengths):
        raise ArgumentError(f"fft.{function}: sizes must be at least 1, got {tuple(lengths)}")
    for axis, length in zip(chosen, lengths, strict=True):
        half = kind == "IRFFT" and axis == chosen[-1]
        x = _resized(x, axis, length // 2 + 1 if half else length)
    order = (*[i for i in range(x.ndim) if i not in chosen], *chosen)
    result = lax_fft(transpose(x, order), kind, lengths)
    result = transpose(result, sorted(range(x.ndim), key=order.__getitem__))
    inverse = kind in ("IFFT", "IRFFT")
    size = math.prod(lengths)
    if norm == "ortho":
        return result * (math.sqrt(size) if inverse else 1 / math.sqrt(size))
    if norm == "forward":
        return result * (size if inverse else 1 / size)
    return result


def _one_axis(function: str, a: Any, n: Any, axis: Any, norm: Norm) -> Array:
    (x,) = promote_dtypes(f"fft.{function}", a, inexact=True)
    chosen = canonical_axis(f"fft.{function}", axis, x.ndim)
    return _transform(function, x, None if n is None else (n.__index__(),), (chosen,), norm)


def fft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: Norm = None) -> Array:
    """The discrete Fourier transform along an axis.

    >>> import fxarray.numpy as fnp
    >>> fnp.fft.fft(fnp.ones(2))
    Array([2.+0.j, 0.+0.j], dtype=complex64)
    """
    return _one_axis("fft", a, n, axis, norm)


def ifft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: Norm = None) -> Array:
    """The inverse of `fft`.

    >>> import fxarray.numpy as fnp
    >>> fnp.fft.ifft(fnp.ones(2))
    Array([1.+0.j, 0.+0.j], dtype=complex64)
    """
    return _one_axis("ifft", a, n, axis, norm)


def rfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: Norm = None) -> Array:
    """The first n // 2 + 1 results of `fft` of real numbers, which determine the others.

    >>> import fxarray.numpy as fnp
    >>> fnp.fft.rfft(fnp.ones(4))
    Array([4.+0.j, 0.+0.j, 0.+0.j], dtype=complex64)
    """
    return _one_axis("rfft", a, n, axis, norm)


def irfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: Norm = None) -> Array:
    """The inverse of `rfft`; the size `n` of the result is by default 2 (m - 1) for m elements.

    >>> import fxarray.numpy as fnp
    >>> fnp.fft.irfft(fnp.ones(3))
    Array([1., 0., 0., 0.], dtype=float32)
    """
    return _one_axis("irfft", a, n, axis, norm)


def fft2(a: ArrayLike, s: Any = None, axes: Sequence[int] = (-2, -1), norm: Norm = None) -> Array:
    """The discrete Fourier transform along two axes."""
    if len(axes) != 2:
        raise ArgumentError(f"fft.fft2 transforms along two axes, got {tuple(axes)}")
    return _transform("fft2", a, s, axes, norm)


def fftn(a: ArrayLike, s: Any = None, axes: Axes = None, norm: Norm = None) -> Array:
    """The discrete Fourier transform along some axes."""
    return _transform("fftn", a, s, axes, norm)


def ifft2(a: ArrayLike, s: Any = None, axes: Sequence[int] = (-2, -1), norm: Norm = None) -> Array:
    """The inverse discrete Fourier transform along two axes."""
    if len(axes) != 2:
        raise ArgumentError(f"fft.ifft2 transforms along two axes, got {tuple(axes)}")
    return _transform("ifft2", a, s, axes, norm)


def ifftn(a: ArrayLike, s: Any = None, axes: Axes = None, norm: Norm = None) -> Array:
    """The inverse discrete Fourier transform along some axes."""
    return _transform("ifftn", a, s, axes, norm)


def rfft2(a: ArrayLike, s: Any = None, axes: Sequence[int] = (-2, -1), norm: Norm = None) -> Array:
    """The discrete Fourier transform of real numbers (see `rfft`) along two axes."""
    if len(axes) != 2:
        raise ArgumentError(f"fft.rfft2 transforms along two axes, got {tuple(axes)}")
    return _transform("rfft2", a, s, axes, norm)


def rfftn(a: ArrayLike, s: Any = None, axes: Axes = None, norm: Norm = None) -> Array:
    """The discrete Fourier transform of real numbers (see `rfft`) along some axes."""
    return _transform("rfftn", a, s, axes, norm)


def irfft2(a: ArrayLike, s: Any = None, axes: Sequence[int] = (-2, -1), norm: Norm = None) -> Array:
    """The inverse of the discrete Fourier transform of real numbers along two axes."""
    if len(axes) != 2:
        raise ArgumentError(f"fft.irfft2 transforms along two axes, got {tuple(axes)}")
    return _transform("irfft2", a, s, axes, norm)


def irfftn(a: ArrayLike, s: Any = None, axes: Axes = None, norm: Norm = None) -> Array:
    """The inverse of the discrete Fourier transform of real numbers along some axes."""
    return _transform("irfftn", a, s, axes, norm)


def hfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: Norm = None) -> Array:
    """The transform, which is real, of a Hermitian sequence given by its first half.

    >>> import fxarray.numpy as fnp
    >>> fnp.fft.hfft(fnp.ones(3))
    Array([4., 0., 0., 0.], dtype=float32)
    """
    _check_norm("hfft", norm)
    (x,) = promote_dtypes("fft.hfft", a, inexact=True)
    return irfft(conjugate(x), n, axis, _OPPOSITE[norm])


def ihfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: Norm = None) -> Array:
    """The inverse of `hfft`.

    >>> import fxarray.numpy as fnp
    >>> fnp.fft.ihfft(fnp.ones(4)).shape
    (3,)
    """
    _check_norm("ihfft", norm)
    return conjugate(rfft(a, n, axis, _OPPOSITE[norm]))
