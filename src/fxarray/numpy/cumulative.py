"""Running sums and products, differences, and integrals along an axis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fxarray.core import dtypes
from fxarray.core.array import Array
from fxarray.core.dtypes import DType
from fxarray.core.errors import ArgumentError, ShapeError
from fxarray.core.types import ArrayType
from fxarray.numpy.arithmetic import multiply, subtract
from fxarray.numpy.comparison import not_equal
from fxarray.numpy.conversion import asarray, cast_to
from fxarray.numpy.joining import concatenate
from fxarray.numpy.promotion import (
    ArrayLike,
    DTypeLike,
    as_operand,
    broadcast_array,
    canonical_axes,
    canonical_axis,
    promote,
    reject_out,
)
from fxarray.primitives import create, cumulative
from fxarray.primitives import elementwise as e
from fxarray.primitives.movement import reshape
from fxarray.primitives.slicing import slice_in_axis


def _running(
    function: str,
    op: Callable[..., Any],
    a: ArrayLike,
    axis: int | None,
    dtype: DTypeLike,
    neutral: float | None = None,
) -> Array:
    x = as_operand(function, a)
    if axis is None:
        x, place = reshape(x, (x.size,)), 0
    else:
        place = canonical_axis(function, axis, x.ndim)
    if neutral is not None:
        x = e.select(not_equal(x, x), e.number_like(x, neutral), x)
    own: DType = x.type.dtype
    target = dtypes.canonical(dtype) if dtype is not None else own
    if dtypes.is_bool(target):
        target = dtypes.int32
    return op(cast_to(x, target), place)


def cumsum(
    a: ArrayLike, axis: int | None = None, dtype: DTypeLike = None, out: None = None
) -> Array:
    """Running sums along an axis, or of `a` flattened; bools are summed as int32.

    >>> import fxarray.numpy as fnp
    >>> fnp.cumsum(fnp.array([1, 2, 3]))
    Array([1, 3, 6], dtype=int32)
    """
    reject_out("cumsum", out)
    return _running("cumsum", cumulative.cumsum, a, axis, dtype)


def cumprod(
    a: ArrayLike, axis: int | None = None, dtype: DTypeLike = None, out: None = None
) -> Array:
    """Running products along an axis, or of `a` flattened."""
    reject_out("cumprod", out)
    return _running("cumprod", cumulative.cumprod, a, axis, dtype)


def nancumsum(
    a: ArrayLike, axis: int | None = None, dtype: DTypeLike = None, out: None = None
) -> Array:
    """Running sums in which NaN counts as 0."""
    reject_out("nancumsum", out)
    return _running("nancumsum", cumulative.cumsum, a, axis, dtype, 0)


def nancumprod(
    a: ArrayLike, axis: int | None = None, dtype: DTypeLike = None, out: None = None
) -> Array:
    """Running products in which NaN counts as 1."""
    reject_out("nancumprod", out)
    return _running("nancumprod", cumulative.cumprod, a, axis, dtype, 1)


def _standard(
    function: str,
    op: Callable[..., Any],
    start: int,
    x: ArrayLike,
    axis: int | None,
    dtype: DTypeLike,
    include_initial: bool,
) -> Array:
    value = as_operand(function, x)
    if not value.ndim:
        raise ShapeError(f"{function}: a scalar has no axis to run along")
    if axis is None:
        if value.ndim > 1:
            raise ArgumentError(f"{function}: axis must be given for {value.type}")
        axis = 0
    place = canonical_axis(function, axis, value.ndim)
    target = dtypes.sum_result(value.type.dtype) if dtype is None else dtypes.canonical(dtype)
    result = _running(function, op, value, place, target)
    if not include_initial:
        return result
    shape = tuple([1 if i == place else s for i, s in enumerate(result.shape)])
    first = create.full(ArrayType(shape, result.type.dtype), start)
    return concatenate([first, result], place)


def cumulative_sum(
    x: ArrayLike,
    /,
    *,
    axis: int | None = None,
    dtype: DTypeLike = None,
    include_initial: bool = False,
) -> Array:
    """Running sums along an axis, by the array-API standard; optionally with a leading 0."""
    return _standard("cumulative_sum", cumulative.cumsum, 0, x, axis, dtype, include_initial)


def cumulative_prod(
    x: ArrayLike,
    /,
    *,
    axis: int | None = None,
    dtype: DTypeLike = None,
    include_initial: bool = False,
) -> Array:
    """Running products along an axis, by the array-API standard; optionally with a leading 1."""
    return _standard("cumulative_prod", cumulative.cumprod, 1, x, axis, dtype, include_initial)


# --- differences ----------------------------------------------------------------------------------


def _neighbours(x: Array, axis: int) -> tuple[Array, Array]:
    """All elements along an axis but the last, and all but the first."""
    length = x.shape[axis]
    return slice_in_axis(x, 0, length - 1, axis), slice_in_axis(x, 1, length, axis)


def diff(
    a: ArrayLike,
    n: int = 1,
    axis: int = -1,
    prepend: ArrayLike | None = None,
    append: ArrayLike | None = None,
) -> Array:
    """Differences between neighbours along an axis, taken n times.

    Args:
      a: an array.
      n: how often.
      axis: the axis.
      prepend: values to put before `a` first.
      append: values to put behind it.

    >>> import fxarray.numpy as fnp
    >>> fnp.diff(fnp.array([1, 4, 9]))
    Array([3, 5], dtype=int32)
    """
    x = as_operand("diff", a)
    if n < 0:
        raise ArgumentError(f"diff: n must not be negative, got {n}")
    if not x.ndim:
        raise ShapeError("diff: a scalar has no neighbours")
    place = canonical_axis("diff", axis, x.ndim)
    if n == 0:
        return x

    def edge(value: ArrayLike) -> Array:
        array = as_operand("diff", value)
        if array.ndim:
            return array
        return broadcast_array(array, (*x.shape[:place], 1, *x.shape[place + 1 :]))

    parts = [edge(prepend)] if prepend is not None else []
    parts.append(x)
    if append is not None:
        parts.append(edge(append))
    if len(parts) > 1:
        x = concatenate(parts, place)
    for _ in range(n):
        length = x.shape[place]
        if type(length) is int and length == 0:
            return x
        before, after = _neighbours(x, place)
        x = not_equal(after, before) if dtypes.is_bool(x.type.dtype) else subtract(after, before)
    return x


def ediff1d(
    ary: ArrayLike, to_end: ArrayLike | None = None, to_begin: ArrayLike | None = None
) -> Array:
    """Differences between neighbours of `ary` flattened, between optional other values."""
    x = as_operand("ediff1d", ary)
    result = diff(reshape(x, (x.size,)))
    parts = [result]
    if to_begin is not None:
        parts.insert(0, asarray(to_begin, dtype=x.type.dtype).ravel())
    if to_end is not None:
        parts.append(asarray(to_end, dtype=x.type.dtype).ravel())
    return concatenate(parts) if len(parts) > 1 else result


def gradient(
    f: ArrayLike,
    *varargs: ArrayLike,
    axis: int | Sequence[int] | None = None,
    edge_order: int | None = None,
) -> Any:
    """Slopes along axes, by central differences inside and one-sided ones at the ends.

    Args:
      f: values on a grid.
      varargs: the distance between neighbours: one number for all axes, or for each axis a number
        or the vector of coordinates. Default 1.
      axis: one axis or several; None for all.
      edge_order: 1; NumPy's 2 is not supported.

    Returns:
      An array, or a list with one for each axis.
    """
    if edge_order not in (None, 1):
        raise ArgumentError(f"gradient: edge_order must be 1, got {edge_order}")
    (x,) = promote("gradient", f, inexact=True)
    axes = canonical_axes("gradient", axis, x.ndim)
    if not varargs:
        steps: list[Any] = [1.0] * len(axes)
    elif len(varargs) == 1:
        steps = list(varargs) * len(axes)
    elif len(varargs) == len(axes):
        steps = list(varargs)
    else:
        raise ArgumentError(f"gradient: {len(varargs)} distances do not go with {len(axes)} axes")
    results = [_slope(x, place, step) for place, step in zip(axes, steps, strict=True)]
    return results[0] if len(results) == 1 else results


def _slope(x: Array, axis: int, step: Any) -> Array:
    length = x.shape[axis]
    if length < 2:
        raise ShapeError(f"gradient: axis {axis} of {x.type} must have at least 2 elements")
    step = asarray(step, dtype=x.type.dtype)
    first = subtract(slice_in_axis(x, 1, 2, axis), slice_in_axis(x, 0, 1, axis))
    last = subtract(
        slice_in_axis(x, length - 1, length, axis), slice_in_axis(x, length - 2, length - 1, axis)
    )
    before = slice_in_axis(x, 0, length - 2, axis)
    after = slice_in_axis(x, 2, length, axis)
    if not step.ndim:
        inside = e.div(e.sub(after, before), e.scale(step, 2))
        return concatenate([e.div(first, step), inside, e.div(last, step)], axis)
    if step.ndim != 1 or step.shape[0] != length:
        raise ShapeError(f"gradient: coordinates {step.type} must be a vector of {length} numbers")
    sizes: list[Any] = [1] * x.ndim
    sizes[axis] = length - 1
    gaps = reshape(diff(step), sizes)
    left = slice_in_axis(gaps, 0, length - 2, axis)
    right = slice_in_axis(gaps, 1, length - 1, axis)
    middle = slice_in_axis(x, 1, length - 1, axis)
    rise_left = multiply(subtract(middle, before), e.div(right, left))
    rise_right = multiply(subtract(after, middle), e.div(left, right))
    inside = (rise_left + rise_right) / (left + right)
    gap_first = slice_in_axis(gaps, 0, 1, axis)
    gap_last = slice_in_axis(gaps, length - 2, length - 1, axis)
    return concatenate([first / gap_first, inside, last / gap_last], axis)


def trapezoid(
    y: ArrayLike, x: ArrayLike | None = None, dx: ArrayLike = 1.0, axis: int = -1
) -> Array:
    """The integral along an axis by the trapezoidal rule.

    Args:
      y: values.
      x: where they were taken; default: at distances `dx`.
      dx: the distance between neighbours, if `x` is not given.
      axis: the axis.
    """
    if x is None:
        (values,) = promote("trapezoid", y, inexact=True)
        step: Any = asarray(dx, dtype=values.type.dtype)
        place = canonical_axis("trapezoid", axis, values.ndim)
    else:
        values, where = (promote("trapezoid", v, inexact=True)[0] for v in (y, x))
        place = canonical_axis("trapezoid", axis, values.ndim)
        if where.ndim == 1:
            step = diff(where)
            sizes = [1] * values.ndim
            sizes[place] = step.shape[0]
            step = reshape(step, sizes)
        else:
            step = diff(where, axis=axis)
    before, after = _neighbours(values, place)
    return multiply(multiply(before + after, step), 0.5).sum(axis=place)
