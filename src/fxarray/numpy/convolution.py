"""Convolution and correlation of vectors."""

from __future__ import annotations

from typing import Any

from fxarray.core import dims
from fxarray.core.array import Array
from fxarray.core.errors import ArgumentError, ShapeError
from fxarray.lax.convolution import conv_general_dilated
from fxarray.numpy.elementary import conjugate
from fxarray.numpy.promotion import ArrayLike, DTypeLike, promote_dtypes
from fxarray.primitives.movement import reshape, rev


def _slide(
    function: str, a: Array, kernel: Array, mode: str, precision: Any, preferred: Any
) -> Array:
    """Products of `kernel` with every stretch of `a`; `a` is the longer one."""
    long, short = a.shape[0], kernel.shape[0]
    ends: tuple[Any, Any]
    if mode == "full":
        ends = (short - 1, short - 1)
    elif mode == "same":
        ends = (short // 2, short - short // 2 - 1)
    elif mode == "valid":
        ends = (0, 0)
    else:
        raise ArgumentError(f"{function}: mode must be 'full', 'same' or 'valid', got {mode!r}")
    result = conv_general_dilated(
        reshape(a, (1, 1, long)),
        reshape(kernel, (1, 1, short)),
        (1,),
        [ends],
        precision=precision,
        preferred_element_type=preferred,
    )
    return reshape(result, result.shape[2:])


def _vectors(function: str, a: Any, v: Any) -> tuple[Array, Array]:
    x, y = promote_dtypes(function, a, v, inexact=True)
    if x.ndim != 1 or y.ndim != 1:
        raise ShapeError(f"{function} takes vectors, got {x.type} and {y.type}")
    if dims.same(x.shape[0], 0) or dims.same(y.shape[0], 0):
        raise ShapeError(f"{function}: vectors must not be empty, got {x.type} and {y.type}")
    return x, y


def convolve(
    a: ArrayLike,
    v: ArrayLike,
    mode: str = "full",
    *,
    precision: Any = None,
    preferred_element_type: DTypeLike = None,
) -> Array:
    """The convolution of two vectors: element n is the sum over k of a[n - k] * v[k], in floats.

    Args:
      a: a vector.
      v: another.
      mode: "full" for every overlap, "same" for as many as the longer vector has, "valid" for
        those where the shorter one lies inside the longer.
      precision: how exactly to multiply, where a device offers a choice.
      preferred_element_type: the dtype of sums and result.

    >>> import fxarray.numpy as fnp
    >>> fnp.convolve(fnp.array([1, 2, 3]), fnp.array([1, 1]))
    Array([1., 3., 5., 3.], dtype=float32)
    """
    x, y = _vectors("convolve", a, v)
    if y.shape[0] > x.shape[0]:
        x, y = y, x
    return _slide("convolve", x, rev(y, (0,)), mode, precision, preferred_element_type)


def correlate(
    a: ArrayLike,
    v: ArrayLike,
    mode: str = "valid",
    *,
    precision: Any = None,
    preferred_element_type: DTypeLike = None,
) -> Array:
    """The correlation of two vectors: element n is the sum over k of a[n + k] * conj(v[k]).

    Arguments are those of `convolve`.
    """
    x, y = _vectors("correlate", a, v)
    y = conjugate(y)
    if y.shape[0] <= x.shape[0]:
        return _slide("correlate", x, y, mode, precision, preferred_element_type)
    # The other way round, shifts count backwards.
    result = _slide("correlate", y, x, mode, precision, preferred_element_type)
    return rev(result, (0,))
