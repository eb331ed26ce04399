"""Manipulation functions, part 3: padding."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fxarray.core import dims, dtypes
from fxarray.core.array import Array
from fxarray.core.errors import ArgumentError, ShapeError
from fxarray.numpy import averages, reductions
from fxarray.numpy.conversion import asarray
from fxarray.numpy.promotion import ArrayLike, as_operand, broadcast_array
from fxarray.numpy.rounding import round
from fxarray.numpy.taking import static_indices, take_axis
from fxarray.primitives import elementwise as e
from fxarray.primitives import slicing
from fxarray.primitives.convert import convert
from fxarray.primitives.create import Iota
from fxarray.primitives.joining import concatenate
from fxarray.primitives.movement import reshape, rev

_INDEX_MODES = ("edge", "reflect", "symmetric", "wrap")
_STATISTICS: dict[str, Callable[..., Array]] = {
    "maximum": reductions.max,
    "minimum": reductions.min,
    "mean": averages.mean,
}
_ARGUMENTS = {
    "constant": {"constant_values"},
    "linear_ramp": {"end_values"},
    "reflect": {"reflect_type"},
    "symmetric": {"reflect_type"},
    **{mode: {"stat_length"} for mode in (*_STATISTICS, "median")},
}


def _pairs(name: str, value: Any, rank: int) -> list[tuple[Any, Any]]:
    """One pair for each axis, from a number, a pair, or one pair for each."""
    if isinstance(value, dict):
        result = [(0, 0)] * rank
        for axis, pair in value.items():
            result[axis] = tuple(pair) if isinstance(pair, tuple | list) else (pair, pair)
        return result
    if not isinstance(value, tuple | list) and getattr(value, "ndim", 0) == 0:
        return [(value, value)] * rank
    rows = list(value) if isinstance(value, tuple | list) else list(np.asarray(value))
    nested = [isinstance(r, tuple | list) or getattr(r, "ndim", 0) > 0 for r in rows]
    if not any(nested):
        if len(rows) == 1:
            return [(rows[0], rows[0])] * rank
        if len(rows) == 2:
            return [(rows[0], rows[1])] * rank
    else:
        pairs = [tuple(r) * 2 if len(r) == 1 else tuple(r) for r in rows]
        if len(pairs) == 1:
            pairs = pairs * rank
        if len(pairs) == rank and all(len(p) == 2 for p in pairs):
            return pairs  # type: ignore[return-value]
    raise ArgumentError(
        f"pad: {name}={value!r} must be a number, a pair (before, after), or one pair for each of "
        "the "
        f"{rank} axes"
    )


def _width(value: Any) -> Any:
    if isinstance(value, dims.Dim):
        return value
    width = value.__index__()
    if width < 0:
        raise ArgumentError(f"pad: widths must not be negative, got {width}")
    return width


def pad(array: ArrayLike, pad_width: Any, mode: Any = "constant", **kwargs: Any) -> Array:
    """`array` made longer at the ends of its axes.

    Args:
      array: an array.
      pad_width: how much longer: a number, a pair (before, after), one pair for each axis, or a
        dict from axes to pairs.
      mode: what to put there: "constant" (`constant_values`, default 0), "empty", "edge" (the last
        element repeated), "reflect", "symmetric" (`reflect_type` "even" or "odd"), "wrap",
        "linear_ramp" (`end_values`), "maximum", "minimum", "mean", "median" (over `stat_length`),
        or a function as NumPy's `pad` takes it.
      kwargs: arguments of the mode, and of a function.

    >>> import fxarray.numpy as fnp
    >>> fnp.pad(fnp.array([1, 2]), (1, 2), constant_values=9)
    Array([9, 1, 2, 9, 9], dtype=int32)
    """
    x = as_operand("pad", array)
    widths = [(_width(low), _width(high)) for low, high in _pairs("pad_width", pad_width, x.ndim)]
    if callable(mode):
        return _by_function(x, widths, mode, kwargs)
    unknown = set(kwargs) - _ARGUMENTS.get(mode, set())
    if unknown:
        raise ArgumentError(f"pad: mode {mode!r} does not take {', '.join(sorted(unknown))}")
    if mode in ("constant", "empty"):
        return _constant(x, widths, kwargs.get("constant_values", 0))
    if mode in ("reflect", "symmetric") and kwargs.get("reflect_type", "even") == "odd":
        return _odd_reflection(x, widths, mode)
    if mode in _INDEX_MODES:
        return _by_index(x, widths, mode)
    if mode == "linear_ramp":
        return _ramp(x, widths, _pairs("end_values", kwargs.get("end_values", 0), x.ndim))
    if mode in _STATISTICS or mode == "median":
        lengths = _pairs("stat_length", kwargs.get("stat_length"), x.ndim)
        return _statistic(x, widths, mode, lengths)
    raise ArgumentError(f"pad: unknown mode {mode!r}")


def _constant(x: Array, widths: Sequence[tuple[Any, Any]], values: Any) -> Array:
    fills = _pairs("constant_values", values, x.ndim)
    arrays = [convert(asarray(v), x.type.dtype) for pair in fills for v in pair]
    if not arrays:
        return x
    same = all(v is fills[0][0] for pair in fills for v in pair)
    if same and not arrays[0].ndim:
        return slicing.pad(x, arrays[0], [(low, high, 0) for low, high in widths])
    for axis, (low, high) in enumerate(widths):
        for config, value in (
            ((low, 0, 0), arrays[2 * axis]),
            ((0, high, 0), arrays[2 * axis + 1]),
        ):
            edges: list[Any] = [(0, 0, 0)] * x.ndim
            edges[axis] = config
            x = slicing.pad(x, reshape(value, ()), edges)
    return x


def _by_index(x: Array, widths: Sequence[tuple[Any, Any]], mode: str) -> Array:
    """Modes in which every new element is a copy of an old one."""
    for axis, (low, high) in enumerate(widths):
        if low or high:
            length = _known_length(x, axis)
            positions = np.pad(np.arange(length), (low, high), mode=mode)  # type: ignore[call-overload]
            x = take_axis(x, static_indices(positions), axis)
    return x


def _known_length(x: Array, axis: int) -> int:
    length = x.shape[axis]
    if length == 0:
        raise ShapeError(
            f"pad: axis {axis} of {x.type} is empty; only mode='constant' can extend it"
        )
    return length  # type: ignore[return-value]


def _odd_reflection(x: Array, widths: Sequence[tuple[Any, Any]], mode: str) -> Array:
    """Reflection in the point at the edge: twice the edge minus the mirrored element."""
    for axis, (low, high) in enumerate(widths):
        left, right = low, high
        while left or right:
            length = _known_length(x, axis)
            most = length - 1 if mode == "reflect" else length
            first = slicing.slice_in_axis(x, 0, 1, axis)
            last = slicing.slice_in_axis(x, length - 1, length, axis)
            if most == 0:
                parts = [
                    broadcast_array(first, (*x.shape[:axis], left, *x.shape[axis + 1 :])),
                    x,
                    broadcast_array(last, (*x.shape[:axis], right, *x.shape[axis + 1 :])),
                ]
                x, left, right = concatenate(parts, axis), 0, 0
                continue
            now_left, now_right = min(left, most), min(right, most)
            shift = 1 if mode == "reflect" else 0
            before = take_axis(x, static_indices(np.arange(now_left)[::-1] + shift), axis)
            after = take_axis(x, static_indices(length - 1 - shift - np.arange(now_right)), axis)
            parts = [
                e.sub(broadcast_array(e.scale(first, 2), before.shape), before),
                x,
                e.sub(broadcast_array(e.scale(last, 2), after.shape), after),
            ]
            x = concatenate(parts, axis)
            left, right = left - now_left, right - now_right
    return x


def _ramp(x: Array, widths: Sequence[tuple[Any, Any]], ends: Sequence[tuple[Any, Any]]) -> Array:
    for axis, (low, high) in enumerate(widths):
        length = _known_length(x, axis)
        first = slicing.slice_in_axis(x, 0, 1, axis)
        last = slicing.slice_in_axis(x, length - 1, length, axis)
        before = _line(ends[axis][0], first, low, axis)
        after = rev(_line(ends[axis][1], last, high, axis), (axis,))
        x = concatenate([before, x, after], axis)
    return x


def _line(end: Any, edge: Array, count: int, axis: int) -> Array:
    """`count` values from `end` towards `edge`, which is not reached."""
    dtype = edge.type.dtype
    wide = dtypes.to_inexact(dtype)
    shape = (*edge.shape[:axis], count, *edge.shape[axis + 1 :])
    if count == 0:
        return convert(broadcast_array(edge, shape), dtype)
    start = convert(asarray(end), wide)
    fraction = e.div(Iota(wide, shape, axis)(), asarray(count, dtype=wide))
    rise = e.sub(convert(edge, wide), start)
    values = e.add(e.mul(broadcast_array(rise, shape), fraction), start)
    if dtypes.is_integer(dtype):
        values = e.floor(values)
    return convert(values, dtype)


def _statistic(
    x: Array, widths: Sequence[tuple[Any, Any]], mode: str, lengths: Sequence[tuple[Any, Any]]
) -> Array:
    dtype = x.type.dtype
    for axis, (low, high) in enumerate(widths):
        length = _known_length(x, axis)
        parts: list[Array] = []
        for width, used, at_end in ((low, lengths[axis][0], False), (high, lengths[axis][1], True)):
            count = length if used is None else min(used.__index__(), length)
            if count < 1:
                raise ArgumentError(f"pad: stat_length must be at least 1, got {count}")
            start, stop = (length - count, length) if at_end else (0, count)
            part = slicing.slice_in_axis(x, start, stop, axis)
            if mode == "median":
                value = _median(part, axis)
            else:
                value = _STATISTICS[mode](part, axis, keepdims=True)
            if dtypes.is_integer(dtype) and dtypes.is_float(value.type.dtype):
                value = round(value)
            shape = (*x.shape[:axis], width, *x.shape[axis + 1 :])
            parts.append(broadcast_array(convert(value, dtype), shape))
        x = concatenate([parts[0], x, parts[1]], axis)
    return x


def _median(x: Array, axis: int) -> Array:
    ordered = x.sort(axis)
    length = _known_length(x, axis)
    low, high = (length - 1) // 2, length // 2
    pair = [slicing.slice_in_axis(ordered, i, i + 1, axis) for i in (low, high)]
    return averages.mean(concatenate(pair, axis), axis, keepdims=True)


def _by_function(
    x: Array,
    widths: Sequence[tuple[Any, Any]],
    function: Callable[..., Any],
    kwargs: dict[str, Any],
) -> Array:
    """Pad with zeros, then let the function set the ends of every vector, axis by axis."""
    x = _constant(x, widths, 0)
    for axis, width in enumerate(widths):
        rest = x.shape[:axis] + x.shape[axis + 1 :]
        vectors = reshape(_last(x, axis), (_count(rest), x.shape[axis]))
        rows = [function(vectors[i], width, axis, kwargs) for i in range(vectors.shape[0])]
        joined = concatenate([reshape(asarray(row), (1, x.shape[axis])) for row in rows], 0)
        x = _from_last(reshape(joined, (*rest, x.shape[axis])), axis)
    return x


def _count(shape: Sequence[Any]) -> Any:
    return dims.shape_product(tuple(shape))


def _last(x: Array, axis: int) -> Array:
    order = [i for i in range(x.ndim) if i != axis]
    return x.transpose((*order, axis))


def _from_last(x: Array, axis: int) -> Array:
    order = list(range(x.ndim - 1))
    order.insert(axis, x.ndim - 1)
    return x.transpose(tuple(order))
