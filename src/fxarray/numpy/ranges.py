"""Creation functions, part 2: evenly spaced values."""

from __future__ import annotations

from typing import Any

import numpy as np

from fxarray.core import dims, dtypes
from fxarray.core.array import Array
from fxarray.core.dtypes import DType
from fxarray.core.errors import ArgumentError, ConcretizationError, ShapeError
from fxarray.core.tracer import Tracer
from fxarray.core.types import ArrayType
from fxarray.numpy.conversion import asarray, cast_to, place
from fxarray.numpy.promotion import (
    ArrayLike,
    DTypeLike,
    Scalar,
    broadcast_array,
    broadcast_operands,
    canonical_axis,
    promote_dtypes,
)
from fxarray.primitives import create
from fxarray.primitives import elementwise as e
from fxarray.primitives.convert import convert
from fxarray.primitives.joining import concatenate, split
from fxarray.primitives.movement import broadcast_axis, broadcast_in_dim, move_axis, reshape


def _static_number(function: str, name: str, value: Any) -> Any:
    if isinstance(value, Tracer) and value.concrete() is None:
        raise ConcretizationError(
            f"{function}: {name} is traced, but the size of the result depends on it. Mark it as "
            f"static, or use fxarray.lax.iota({function} of a known size) and arithmetic. It is: "
            f"{value!r}"
        )
    if isinstance(value, Array):
        if value.ndim:
            raise ShapeError(f"{function}: {name} must be a number, got {value.type}")
        value = value.item()
    if isinstance(value, np.ndarray) and value.ndim == 0:
        return value[()]
    if not isinstance(value, (*Scalar, dims.Dim)):
        raise ArgumentError(f"{function}: {name} must be a number, got {type(value).__name__}")
    return value


def iota(dtype: DType, size: Any) -> Array:
    """0, 1, ..., size - 1."""
    if dtypes.is_bool(dtype):
        return convert(iota(dtypes.int32, size), dtype)
    return create.Iota(dtype, (size,), 0)()


def arange(
    start: Any,
    stop: Any = None,
    step: Any = None,
    dtype: DTypeLike = None,
    *,
    device: Any = None,
    out_sharding: Any = None,
) -> Array:
    """Evenly spaced values from `start` up to, but not including, `stop`.

    Args:
      start: the first value; with one argument only, that is `stop` and the first value is 0.
      stop: the end of the interval.
      step: the distance between values.
      dtype: default: int32 for integer arguments, float32 for floats; wider for wider scalars.
      device: where to put the array.
      out_sharding: how to split it over a mesh.

    Raises:
      ConcretizationError: an argument is traced, so that the result's size is unknown.

    >>> import fxarray.numpy as fnp
    >>> fnp.arange(2, 8, 3), fnp.arange(2.0)
    (Array([2, 5], dtype=int32), Array([0., 1.], dtype=float32))
    """
    given = [("start", start), ("stop", stop), ("step", step)]
    values = [_static_number("arange", n, v) for n, v in given if v is not None]
    if dtype is None:
        found = [
            (dtypes.int32, True) if isinstance(v, dims.Dim) else dtypes.scalar_dtype(v)
            for v in values
        ]
        target = dtypes.promote([d for d, _ in found], [weak for _, weak in found])[0]
        target = dtypes.int32 if dtypes.is_bool(target) else target
    else:
        target = dtypes.canonical(dtype)
    if stop is None:
        start, stop = 0, values[0]
        step = 1 if step is None else values[1]
    else:
        start, stop = values[0], values[1]
        step = 1 if step is None else values[2]
    if isinstance(start, dims.Dim) or isinstance(stop, dims.Dim) or isinstance(step, dims.Dim):
        if step != 1:
            raise ArgumentError("arange: symbolic bounds need step=1")
        result = iota(target, stop - start)
        if not dims.same(start, 0):
            result = e.add(result, asarray(start, dtype=target))
        return place("arange", result, device, out_sharding)
    if start == 0 and step == 1 and not dtypes.is_complex(target):
        size = max(int(np.ceil(stop)), 0)
        if dtypes.is_integer(target) and size:
            dtypes.scalar_array(size - 1, target)
        return place("arange", iota(target, size), device, out_sharding)
    if step == 0:
        raise ArgumentError("arange: step must not be zero")
    exact = all(isinstance(v, int | np.integer) for v in (start, stop, step))
    raw = np.arange(start, stop, step, dtype=np.int64 if exact else np.float64)
    result = asarray(dtypes.cast(raw, target))
    return place("arange", result, device, out_sharding)


def linspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: DTypeLike = None,
    axis: int = 0,
    *,
    device: Any = None,
) -> Any:
    """`num` evenly spaced values from `start` to `stop`.

    Args:
      start: the first value; arrays broadcast against `stop`.
      stop: the last value.
      num: how many; static.
      endpoint: whether `stop` is the last value (else it comes after it).
      retstep: whether to return `(values, step)`.
      dtype: default: float32, or float64 for 64-bit operands. Integers are rounded down.
      axis: where to put the new axis.
      device: where to put the array.

    >>> import fxarray.numpy as fnp
    >>> fnp.linspace(0, 1, 3)
    Array([0. , 0.5, 1. ], dtype=float32)
    """
    count = _static_number("linspace", "num", num).__index__()
    if count < 0:
        raise ArgumentError(f"linspace: num must not be negative, got {count}")
    first, last = promote_dtypes("linspace", start, stop, inexact=True)
    first, last = broadcast_operands("linspace", [first, last])
    target = first.type.dtype if dtype is None else dtypes.canonical(dtype)
    compute = first.type.dtype
    if dtypes.is_inexact(target) and dtypes.bit_width(target) > dtypes.bit_width(compute):
        compute = target
    first, last = cast_to(first, compute), cast_to(last, compute)
    intervals = count - 1 if endpoint else count
    delta = e.sub(last, first)
    rank = max(first.ndim, last.ndim)
    first, last, delta = (
        x if x.ndim == rank else broadcast_array(x, delta.shape) for x in (first, last, delta)
    )
    if intervals > 0:
        step = e.div(delta, create.scalar(intervals, compute))
        real = dtypes.to_real(compute)
        index = create.Iota(real, (count, *([1] * rank)), 0)()
        fraction = e.div(index, create.scalar(intervals, real))
        fraction = convert(broadcast_array(fraction, (count, *delta.shape)), compute)
        first_rows, last_rows = (broadcast_axis(x, count, 0) for x in (first, last))
        # Both ends are exact: 0 and 1 times a finite value.
        remaining = e.sub(create.scalar(1, compute), fraction)
        values = e.add(e.mul(first_rows, remaining), e.mul(last_rows, fraction))
    else:
        step = create.full(ArrayType(delta.shape, compute), np.nan)
        values = broadcast_axis(first, count, 0)
    if dtypes.is_integer(target) and not dtypes.is_complex(compute):
        values = e.floor(values)
    values = cast_to(values, target)
    position = canonical_axis("linspace", axis, rank + 1)
    values = place("linspace", move_axis(values, 0, position), device)
    return (values, step) if retstep else values


def logspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    base: ArrayLike = 10.0,
    dtype: DTypeLike = None,
    axis: int = 0,
) -> Array:
    """`num` values evenly spaced on a logarithmic scale, from `base**start` to `base**stop`."""
    exponents = linspace(start, stop, num, endpoint, axis=axis)
    base_array, exponents = promote_dtypes("logspace", base, exponents, inexact=True)
    if base_array.ndim:
        shape = list(base_array.shape)
        shape.insert(canonical_axis("logspace", axis, exponents.ndim), 1)
        base_array = reshape(base_array, shape)
    values = e.pow(*broadcast_operands("logspace", [base_array, exponents]))
    return values if dtype is None else cast_to(values, dtypes.canonical(dtype))


def geomspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    dtype: DTypeLike = None,
    axis: int = 0,
) -> Array:
    """`num` values in geometric progression from `start` to `stop`, both exact."""
    first, last = promote_dtypes("geomspace", start, stop, inexact=True)
    first, last = broadcast_operands("geomspace", [first, last])
    ratio = e.log(e.div(last, first))
    rank = ratio.ndim
    first, last = (x if x.ndim == rank else broadcast_array(x, ratio.shape) for x in (first, last))
    fraction = linspace(0, 1, num, endpoint, dtype=dtypes.to_real(first.type.dtype))
    fraction = convert(fraction, first.type.dtype)
    count = fraction.shape[0]
    powers = broadcast_in_dim(fraction, (count, *ratio.shape), (0,))
    values = e.mul(
        broadcast_axis(first, count, 0), e.exp(e.mul(powers, broadcast_axis(ratio, count, 0)))
    )
    if endpoint and count > 1:
        head, _ = split(values, (count - 1, 1), 0)
        values = concatenate([head, broadcast_axis(last, 1, 0)], 0)
    values = move_axis(values, 0, canonical_axis("geomspace", axis, rank + 1))
    return values if dtype is None else cast_to(values, dtypes.canonical(dtype))
