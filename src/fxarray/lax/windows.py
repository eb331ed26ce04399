"""Reductions over windows, and the padding that they take."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from fxarray.core import dims
from fxarray.core.errors import ArgumentError, ShapeError
from fxarray.core.types import Shape
from fxarray.lax.reducers import as_reducer
from fxarray.primitives.combine import ReduceWindow
from fxarray.primitives.window_places import Window

Padding = str | Sequence[tuple[int, int]]


def padtype_to_pads(
    in_shape: Sequence[Any],
    window_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: str,
) -> list[tuple[Any, Any]]:
    """How much a named kind of padding adds before and after each dimension.

    "VALID" adds nothing. "SAME" adds just enough for one window at each multiple of the strides
    that lies in the operand, as evenly as possible, an odd one after it; "SAME_LOWER" adds an odd
    one before it.

    Args:
      in_shape: the sizes of the operand.
      window_shape: the sizes of a window, dilated if it is.
      window_strides: the distances between windows.
      padding: "VALID", "SAME" or "SAME_LOWER", in any case.

    >>> from fxarray import lax
    >>> lax.padtype_to_pads((5,), (2,), (2,), "SAME")
    [(0, 1)]
    """
    kind = padding.upper() if isinstance(padding, str) else padding
    if kind not in ("VALID", "SAME", "SAME_LOWER"):
        raise ArgumentError(f'padding={padding!r} must be "VALID", "SAME" or "SAME_LOWER"')
    pads: list[tuple[Any, Any]] = []
    for size, extent, stride in zip(in_shape, window_shape, window_strides, strict=True):
        if kind == "VALID":
            pads.append((0, 0))
            continue
        needed: Any = extent - 1
        if stride != 1:
            count = (size + (stride - 1)) // stride
            needed = (count - 1) * stride + extent - size
            needed = max(needed, 0) if type(needed) is int else dims.dim_max(needed, 0)
        half = needed // 2
        pads.append((half, needed - half) if kind == "SAME" else (needed - half, half))
    return pads


def reduce_window_shape_tuple(
    operand_shape: Shape,
    window_dimensions: Sequence[int],
    window_strides: Sequence[int],
    padding: Sequence[tuple[int, int]],
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> Shape:
    """How many windows there are along each dimension; arguments as for `reduce_window`.

    >>> from fxarray import lax
    >>> lax.reduce_window_shape_tuple((5,), (2,), (2,), [(0, 1)])
    (3,)
    """
    window = _window(
        operand_shape, window_dimensions, window_strides, padding, base_dilation, window_dilation
    )
    return window.counts(operand_shape)


def _window(
    shape: Shape,
    dimensions: Sequence[int],
    strides: Sequence[int] | None,
    padding: Padding,
    base_dilation: Sequence[int] | None,
    dilation: Sequence[int] | None,
) -> Window:
    ones = (1,) * len(shape)

    def entries(what: str, values: Sequence[Any]) -> tuple[int, ...]:
        if len(values) != len(shape):
            raise ShapeError(
                f"reduce_window: {what}={tuple(values)} must have one entry for each of the "
                f"{len(shape)} dimensions of the operand, of shape {shape}"
            )
        return tuple(map(operator.index, values))

    sizes = entries("window_dimensions", dimensions)
    steps = entries("window_strides", ones if strides is None else strides)
    base = entries("base_dilation", ones if base_dilation is None else base_dilation)
    between = entries("window_dilation", ones if dilation is None else dilation)
    window = Window(sizes, steps, ((0, 0),) * len(shape), base, between)
    if isinstance(padding, str):
        extents = [window.extent(i) for i in range(len(shape))]
        pads = padtype_to_pads(shape, extents, steps, padding)
    else:
        pads = [(low, high) for low, high in padding]
    return window._replace(padding=tuple(pads))


def reduce_window(
    operand: Any,
    init_value: Any,
    computation: Callable[[Any, Any], Any],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None = None,
    padding: Padding = "VALID",
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> Any:
    """Combine the elements of windows that slide over an array.

    `lax.add`, `max` and `min` are recognised, however they are written; the first extremal element
    of a window gets the derivative of an extremum. The derivative by an unrecognised function needs
    an operation for each element of a window, so such windows should be small.

    Args:
      operand: an array, or a tree of arrays of one shape.
      init_value: a scalar (or a tree of scalars) that each window starts with, and that padding is
        made of; usually the function's identity.
      computation: an associative function of two scalars (or of two trees of scalars).
      window_dimensions: the size of a window in each dimension.
      window_strides: the distance from one window to the next (default: 1).
      padding: "VALID", "SAME" or "SAME_LOWER" (see `padtype_to_pads`), or for each dimension how
        much to add before and after.
      base_dilation: the distance between elements of the operand (default: 1).
      window_dilation: the distance between elements of a window (default: 1).

    >>> import fxarray.numpy as fnp
    >>> from fxarray import lax
    >>> lax.reduce_window(fnp.arange(5.0), -fnp.inf, lax.max, (3,), (2,), "SAME")
    Array([1., 3., 4.], dtype=float32)
    """
    reducer = as_reducer("reduce_window", operand, init_value, computation)
    arrays, inits = reducer.arrays, reducer.inits
    window = _window(
        arrays[0].shape, window_dimensions, window_strides, padding, base_dilation, window_dilation
    )
    monoid = reducer.monoid()
    if monoid is not None and monoid.windows is not None and not inits[0].ndim:
        neutral = monoid.is_identity(inits[0])
        # Taking the initial value in more than once, with the padding, changes nothing.
        if inits[0].type.dtype == arrays[0].type.dtype and (neutral or monoid.idempotent):
            result = monoid.windows(window)(arrays[0])
            if not neutral:
                result = monoid.combine(inits[0], result)
            return reducer.structure.unflatten([result])
    op = ReduceWindow(reducer.program, window)
    results = op.bind(*reducer.captured, *arrays, *inits)
    return reducer.structure.unflatten(results)
