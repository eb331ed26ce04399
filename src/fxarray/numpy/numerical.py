"""Interpolation, functions applied along axes, windows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fxarray.core import dtypes
from fxarray.core.array import Array
from fxarray.core.errors import ArgumentError, ShapeError
from fxarray.core.types import ArrayType
from fxarray.numpy.arithmetic import clip, remainder
from fxarray.numpy.conversion import asarray
from fxarray.numpy.floating import i0
from fxarray.numpy.joining import concatenate
from fxarray.numpy.promotion import (
    ArrayLike,
    as_operand,
    broadcast_operands,
    canonical_axes,
    canonical_axis,
    promote_dtypes,
)
from fxarray.numpy.shapes import expand_dims
from fxarray.numpy.sorting import argsort, searchsorted
from fxarray.numpy.taking import take_axis
from fxarray.primitives import create
from fxarray.primitives import elementwise as e
from fxarray.primitives.convert import convert
from fxarray.primitives.movement import move_axis, reshape
from fxarray.transforms.vmap import vmap

# --- interpolation --------------------------------------------------------------------------------


def interp(
    x: ArrayLike,
    xp: ArrayLike,
    fp: ArrayLike,
    left: Any = None,
    right: Any = None,
    period: ArrayLike | None = None,
) -> Array:
    """The function that goes straight from point to point, at given places.

    Args:
      x: where to evaluate it.
      xp: the points' places, a vector in increasing order.
      fp: the values there.
      left: the value before the first point; default: the first value; or "extrapolate".
      right: the value behind the last point; default: the last value; or "extrapolate".
      period: the period of the function, if it has one; `xp` need not be in order then.

    >>> import fxarray.numpy as fnp
    >>> fnp.interp(2.5, fnp.array([1.0, 2.0, 3.0]), fnp.array([3.0, 2.0, 0.0]))
    Array(1., dtype=float32)
    """
    points = as_operand("interp", xp, 1)
    heights = as_operand("interp", fp, 2)
    if points.ndim != 1 or points.shape != heights.shape:
        raise ShapeError(
            f"interp: xp and fp must be vectors of one length, got {points.type} and {heights.type}"
        )
    if dtypes.is_complex(heights.type.dtype):
        parts = [
            interp(x, points, part, left, right, period) for part in (heights.real, heights.imag)
        ]
        return e.complex(*parts)
    place, points, heights = promote_dtypes("interp", x, points, heights, inexact=True)
    if period is not None:
        length = abs(asarray(period, dtype=place.type.dtype))
        place, points = remainder(place, length), remainder(points, length)
        order = argsort(points)
        points, heights = take_axis(points, order, 0), take_axis(heights, order, 0)
        points = concatenate([points[-1:] - length, points, points[:1] + length])
        heights = concatenate([heights[-1:], heights, heights[:1]])
    count = points.shape[0]
    index = clip(searchsorted(points, place, side="right"), 1, count - 1)
    before = e.sub(index, e.number_like(index, 1))
    x0, x1 = take_axis(points, before, 0), take_axis(points, index, 0)
    y0, y1 = take_axis(heights, before, 0), take_axis(heights, index, 0)
    run = e.sub(x1, x0)
    # Points in one place: the later value holds.
    same = e.eq(run, e.number_like(run, 0))
    slope = e.div(e.sub(y1, y0), e.select(same, e.number_like(run, 1), run))
    value = e.add(y0, e.mul(e.sub(place, x0), slope))
    value = e.select(same, y0, value)
    for bound, given, outside, at_end in (
        (points[0], left, e.lt(place, points[0]), heights[0]),
        (points[-1], right, e.gt(place, points[-1]), heights[-1]),
    ):
        del bound
        if isinstance(given, str):
            if given != "extrapolate":
                raise ArgumentError(
                    f"interp: left and right must be numbers or 'extrapolate', got {given!r}"
                )
            continue
        if period is not None:
            continue
        end = at_end if given is None else asarray(given, dtype=value.type.dtype)
        value = e.select(*broadcast_operands("interp", [outside, end, value]))
    return value


# --- functions along axes -------------------------------------------------------------------------


def apply_along_axis(
    func1d: Callable[..., Any], axis: int, arr: ArrayLike, *args: Any, **kwargs: Any
) -> Array:
    """A function of vectors applied to every vector along an axis, by vmap.

    Args:
      func1d: takes a vector; its result may have any shape.
      axis: the axis.
      arr: an array.
      args: more arguments of the function.
      kwargs: keyword arguments of the function.
    """
    x = as_operand("apply_along_axis", arr, 2)
    place = canonical_axis("apply_along_axis", axis, x.ndim)

    def function(vector: Array) -> Any:
        return func1d(vector, *args, **kwargs)

    mapped = function
    for i in range(1, x.ndim - place):
        # The axes behind the vectors come one by one, each behind those mapped before.
        mapped = vmap(mapped, in_axes=i, out_axes=-1)
    for _ in range(place):
        mapped = vmap(mapped, in_axes=0, out_axes=0)
    return mapped(x)


def apply_over_axes(
    func: Callable[[Array, int], Any], a: ArrayLike, axes: int | Sequence[int]
) -> Array:
    """A function of an array and an axis applied over several axes, one after the other."""
    x = as_operand("apply_over_axes", a, 1)
    for axis in canonical_axes("apply_over_axes", axes, x.ndim):
        result = asarray(func(x, axis))
        if result.ndim == x.ndim - 1:
            result = expand_dims(result, axis)
        if result.ndim != x.ndim:
            raise ShapeError(
                "apply_over_axes: the function must keep the number of dimensions or take one "
                "away, but "
                f"made {result.type} of {x.type}"
            )
        x = result
    return x


# --- windows --------------------------------------------------------------------------------------


def _window(function: str, M: Any, weights: Sequence[float]) -> Array:
    """A sum of cosines over M points; a single point is 1."""
    count = M.__index__()
    if count <= 1:
        return create.full(ArrayType((max(count, 0),), dtypes.float32), 1)
    del function
    angle = 2 * np.pi * np.arange(count) / (count - 1)
    values = sum(w * np.cos(k * angle) for k, w in enumerate(weights))
    return asarray(values, dtype=dtypes.float32)


def hamming(M: int) -> Array:
    """The Hamming window of M points."""
    return _window("hamming", M, (0.54, -0.46))


def hanning(M: int) -> Array:
    """The Hann window of M points."""
    return _window("hanning", M, (0.5, -0.5))


def blackman(M: int) -> Array:
    """The Blackman window of M points."""
    return _window("blackman", M, (0.42, -0.5, 0.08))


def bartlett(M: int) -> Array:
    """The triangular window of M points."""
    count = M.__index__()
    if count <= 1:
        return create.full(ArrayType((max(count, 0),), dtypes.float32), 1)
    return asarray(np.bartlett(count), dtype=dtypes.float32)


def kaiser(M: int, beta: ArrayLike) -> Array:
    """The Kaiser window of M points, whose shape `beta` sets."""
    count = M.__index__()
    if count <= 1:
        return create.full(ArrayType((max(count, 0),), dtypes.float32), 1)
    shape = asarray(beta, dtype=dtypes.float32)
    centred = (np.arange(count) - (count - 1) / 2) / ((count - 1) / 2)
    root = asarray(np.sqrt(np.clip(1 - centred**2, 0, None)), dtype=dtypes.float32)
    return i0(shape * root) / i0(shape)


# --- bits in bytes --------------------------------------------------------------------------------


def _bit_order(function: str, bitorder: str) -> np.ndarray[Any, Any]:
    if bitorder not in ("big", "little"):
        raise ArgumentError(f"{function}: bitorder must be 'big' or 'little', got {bitorder!r}")
    shifts = np.arange(8, dtype=np.uint8)
    return shifts[::-1] if bitorder == "big" else shifts


def packbits(a: ArrayLike, axis: int | None = None, bitorder: str = "big") -> Array:
    """Truth values as the bits of bytes, filled up with zeros.

    Args:
      a: integers or bools.
      axis: the axis to pack along; None: flatten first.
      bitorder: whether the first value is the highest bit ("big") or the lowest ("little").
    """
    shifts = asarray(np.ascontiguousarray(_bit_order("packbits", bitorder)))
    x = as_operand("packbits", a)
    if dtypes.is_inexact(x.type.dtype):
        raise ArgumentError(f"packbits takes integers or bools, got {x.type}")
    if axis is None:
        x, place = reshape(x, (x.size,)), 0
    else:
        place = canonical_axis("packbits", axis, x.ndim)
    bits = move_axis(convert(convert(x, dtypes.bool_), dtypes.uint8), place, x.ndim - 1)
    missing = -bits.shape[-1] % 8
    if missing:
        blank = create.full(ArrayType((*bits.shape[:-1], missing), dtypes.uint8), 0)
        bits = concatenate([bits, blank], -1)
    octets = reshape(bits, (*bits.shape[:-1], bits.shape[-1] // 8, 8))
    packed = (octets << shifts).sum(axis=-1, dtype=dtypes.uint8)
    return move_axis(packed, packed.ndim - 1, place)


def unpackbits(
    a: ArrayLike, axis: int | None = None, count: int | None = None, bitorder: str = "big"
) -> Array:
    """The bits of bytes as zeros and ones.

    Args:
      a: an array of uint8.
      axis: the axis to unpack along; None: flatten first.
      count: how many bits to return along the axis; negative: how many to leave out.
      bitorder: whether the highest bit comes first ("big") or the lowest ("little").
    """
    shifts = asarray(np.ascontiguousarray(_bit_order("unpackbits", bitorder)))
    x = as_operand("unpackbits", a)
    if x.type.dtype != dtypes.uint8:
        raise ArgumentError(f"unpackbits takes uint8, got {x.type}")
    if axis is None:
        x, place = reshape(x, (x.size,)), 0
    else:
        place = canonical_axis("unpackbits", axis, x.ndim)
    octets = move_axis(x, place, x.ndim - 1)
    bits = (reshape(octets, (*octets.shape, 1)) >> shifts) & 1
    bits = reshape(bits, (*octets.shape[:-1], octets.shape[-1] * 8))
    if count is not None:
        length = bits.shape[-1]
        if count > length:
            blank = create.full(ArrayType((*bits.shape[:-1], count - length), dtypes.uint8), 0)
            bits = concatenate([bits, blank], -1)
        else:
            bits = bits[..., :count]
    return move_axis(bits, bits.ndim - 1, place)
