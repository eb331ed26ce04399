"""Choosing between arrays by conditions, and finding the places where a condition holds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fxarray.core import dims, dtypes
from fxarray.core.array import Array
from fxarray.core.context import context
from fxarray.core.errors import ArgumentError, ConcretizationError, ShapeError
from fxarray.core.tracer import Tracer
from fxarray.core.types import ArrayType
from fxarray.numpy.comparison import as_bool
from fxarray.numpy.conversion import asarray
from fxarray.numpy.joining import stack
from fxarray.numpy.promotion import (
    ArrayLike,
    as_operand,
    broadcast_array,
    broadcast_operands,
    canonical_axis,
    promote_dtypes,
    reject_out,
)
from fxarray.numpy.taking import as_indices, take_axis
from fxarray.primitives import create, cumulative
from fxarray.primitives import elementwise as e
from fxarray.primitives.convert import convert
from fxarray.primitives.movement import broadcast_in_dim, reshape
from fxarray.primitives.reduce import reduce_sum


def where(
    condition: ArrayLike,
    x: ArrayLike | None = None,
    y: ArrayLike | None = None,
    /,
    *,
    size: int | None = None,
    fill_value: Any = None,
) -> Any:
    """Elements of x where the condition holds, else of y; with the condition alone, `nonzero`.

    A derivative passes only through what was chosen: but an infinite derivative of the other side
    times zero is NaN, so make that side finite too, by a `where` inside it.

    Args:
      condition: truth values, or numbers to compare with zero.
      x: an array or number; the three broadcast.
      y: an array or number.
      size: for `nonzero`.
      fill_value: for `nonzero`.

    >>> import fxarray.numpy as fnp
    >>> fnp.where(fnp.arange(3) > 0, 1.5, 0)
    Array([0. , 1.5, 1.5], dtype=float32, weak_type=True)
    """
    if x is None and y is None:
        return nonzero(condition, size=size, fill_value=fill_value)
    if x is None or y is None:
        raise ArgumentError("where takes the condition alone, or both x and y")
    if size is not None or fill_value is not None:
        raise ArgumentError("where: size and fill_value are for the form with the condition alone")
    mask = as_bool("where", condition)
    return choose_between("where", mask, *promote_dtypes("where", x, y))


def choose_between(function: str, mask: Array, x: Array, y: Array) -> Array:
    """x where the mask holds, else y; x and y have one dtype, shapes broadcast."""
    mask, x, y = broadcast_operands(function, [mask, x, y])
    return e.select(mask, x, y)


def select(condlist: Sequence[Any], choicelist: Sequence[Any], default: ArrayLike = 0) -> Array:
    """For each element, the choice that belongs to the first condition that holds.

    Args:
      condlist: conditions.
      choicelist: as many arrays or numbers.
      default: where no condition holds.
    """
    if len(condlist) != len(choicelist) or not condlist:
        raise ArgumentError(
            f"select: {len(condlist)} conditions and {len(choicelist)} choices; there must be as "
            "many, "
            f"and at least one"
        )
    *choices, result = promote_dtypes("select", *choicelist, default)
    for condition, choice in zip(reversed(condlist), reversed(choices), strict=True):
        result = choose_between("select", as_bool("select", condition), choice, result)
    return result


def choose(a: ArrayLike, choices: Any, out: None = None, mode: str = "raise") -> Array:
    """For each element, that element of the array among `choices` whose number it is.

    Args:
      a: integers.
      choices: a list of arrays, or an array whose first axis lists them.
      out: not supported.
      mode: "wrap" or "clip" for numbers out of range; "raise" works for known values only.
    """
    reject_out("choose", out)
    index = as_indices("choose", a)
    arrays = (
        list(choices)
        if isinstance(choices, list | tuple)
        else [choices[i] for i in range(len(choices))]
    )
    count = len(arrays)
    if mode == "raise":
        known = concrete_values(index, "choose", "a", "use mode='clip' or mode='wrap'")
        if known.size and not (known.min() >= 0 and known.max() < count):
            raise ArgumentError(f"choose: numbers must lie between 0 and {count - 1}")
    elif mode == "wrap":
        index = index % count
    elif mode != "clip":
        raise ArgumentError(f"choose: mode must be 'raise', 'wrap' or 'clip', got {mode!r}")
    number = convert(index, dtypes.int32)
    cases = promote_dtypes("choose", *arrays)
    number, *cases = broadcast_operands("choose", [number, *cases])
    return e.select_n(number, *cases)


def piecewise(
    x: ArrayLike,
    condlist: Any,
    funclist: Sequence[Any],
    *args: Any,
    **kw: Any,
) -> Array:
    """A function defined by parts: where a condition holds, the function that belongs to it.

    Args:
      x: the argument.
      condlist: conditions.
      funclist: as many functions or numbers, or one more, for where no condition holds.
      args: more arguments of the functions.
      kw: keyword arguments of the functions.
    """
    value = as_operand("piecewise", x)
    conditions = list(condlist) if isinstance(condlist, list | tuple) else [condlist]
    parts = list(funclist)
    if len(parts) == len(conditions):
        parts.append(0)
    elif len(parts) != len(conditions) + 1:
        raise ArgumentError(
            f"piecewise: {len(conditions)} conditions take as many functions or one more, got "
            f"{len(parts)}"
        )
    results = [f(value, *args, **kw) if isinstance(f, Callable) else f for f in parts]
    results = [convert(as_operand("piecewise", r), value.type.dtype) for r in results]
    # Among several conditions that hold, NumPy takes the last.
    answer = results[-1]
    for condition, result in zip(conditions, results[:-1], strict=True):
        answer = choose_between("piecewise", as_bool("piecewise", condition), result, answer)
    return broadcast_array(answer, value.shape) if answer.ndim != value.ndim else answer


# --- places where something holds -----------------------------------------------------------------


def concrete_values(x: Any, function: str, name: str, remedy: str) -> np.ndarray[Any, Any]:
    """The values of an array, which must be known.

    Raises:
      ConcretizationError: they are traced.
    """
    if isinstance(x, Tracer):
        known = x.concrete()
        if known is None:
            raise ConcretizationError(
                f"{function}: the shape of the result depends on the values of {name}, which is "
                "traced; "
                f"{remedy}. It is: {x!r}"
            )
        x = known
    return np.asarray(x)


def nonzero(a: ArrayLike, *, size: int | None = None, fill_value: Any = None) -> tuple[Array, ...]:
    """The indices of elements that are not zero, one array for each dimension.

    Args:
      a: an array.
      size: how many indices to return; needed where `a` is traced. Surplus ones are cut off.
      fill_value: what to fill up with: a number, or one for each dimension; default 0.

    Raises:
      ConcretizationError: `a` is traced, and there is no `size`.

    >>> import fxarray.numpy as fnp
    >>> fnp.nonzero(fnp.array([0, 5, 0, 7]))
    (Array([1, 3], dtype=int32),)
    """
    x = as_operand("nonzero", a)
    if not x.ndim:
        raise ShapeError("nonzero: a scalar has no indices; use fxarray.numpy.atleast_1d first")
    mask = as_bool("nonzero", x)
    if size is None:
        remedy = "give size=, the number of indices wanted"
        known = concrete_values(mask, "nonzero", "a", remedy)
        if context.staging is None or not isinstance(mask, Tracer):
            return tuple([asarray(i.astype(np.int32)) for i in np.nonzero(known)])
    flat = reshape(mask, (mask.size,))
    count = size.__index__() if size is not None else 0
    positions, total = true_positions(flat, count)
    fills = fill_value if isinstance(fill_value, tuple) else (fill_value,) * x.ndim
    if len(fills) != x.ndim:
        raise ArgumentError(f"nonzero: {len(fills)} fill values do not go with {x.type}")
    places = create.Iota(dtypes.int32, (count,), 0)()
    found = e.lt(places, total)
    results: list[Array] = []
    rest = positions
    for length, fill in zip(reversed(x.shape), reversed(fills), strict=True):
        divisor = asarray(length, dtype=dtypes.int32)
        index = e.rem(rest, divisor)
        rest = e.div(rest, divisor)
        filler = asarray(0 if fill is None else fill, dtype=dtypes.int32)
        results.append(e.select(found, index, filler))
    return tuple(reversed(results))


def true_positions(mask: Array, count: int) -> tuple[Array, Array]:
    """The first `count` positions at which a vector of bools is True, and how many there are."""
    length = mask.shape[0]
    if dims.same(length, 0):
        empty = create.full(ArrayType((count,), dtypes.int32), 0)
        return empty, e.number_like(empty, 0)
    numbers = cumulative.cumsum(convert(mask, dtypes.int32), 0)
    total = reduce_sum(convert(mask, dtypes.int32), (0,))
    # The k-th True goes to place k - 1; everything else to a place outside, which is dropped.
    outside = e.number_like(numbers, count)
    goal = e.select(mask, e.sub(numbers, e.number_like(numbers, 1)), outside)
    positions = create.Iota(dtypes.int32, (length,), 0)()
    blank = create.full(ArrayType((count,), dtypes.int32), 0)
    return blank.at[goal].set(positions, mode="drop", unique_indices=True), total


def flatnonzero(a: ArrayLike, *, size: int | None = None, fill_value: Any = None) -> Array:
    """The indices in `a` flattened of elements that are not zero; arguments as for `nonzero`."""
    x = as_operand("flatnonzero", a)
    return nonzero(reshape(x, (x.size,)), size=size, fill_value=fill_value)[0]


def argwhere(a: ArrayLike, *, size: int | None = None, fill_value: Any = None) -> Array:
    """The indices of elements that are not zero, one row for each; arguments as for `nonzero`."""
    x = as_operand("argwhere", a)
    if not x.ndim:
        known = concrete_values(as_bool("argwhere", x), "argwhere", "a", "index it first")
        return create.full(ArrayType((int(known), 0), dtypes.int32), 0)
    return stack(nonzero(x, size=size, fill_value=fill_value), axis=1)


def extract(
    condition: ArrayLike, arr: ArrayLike, *, size: int | None = None, fill_value: Any = 0
) -> Array:
    """The elements of `arr` flattened where the condition holds.

    Args:
      condition: as many truth values.
      arr: an array.
      size: how many elements to return; needed where the condition is traced.
      fill_value: what to fill up with.
    """
    x = as_operand("extract", arr)
    mask = as_operand("extract", condition)
    return compress(
        reshape(mask, (mask.size,)), reshape(x, (x.size,)), size=size, fill_value=fill_value
    )


def compress(
    condition: ArrayLike,
    a: ArrayLike,
    axis: int | None = None,
    *,
    size: int | None = None,
    fill_value: Any = 0,
    out: None = None,
) -> Array:
    """The slices of `a` along an axis (or elements of it flattened) where the condition holds.

    Args:
      condition: a vector of truth values, no longer than the axis.
      a: an array.
      axis: the axis; None: flatten first.
      size: how many slices to return; needed where the condition is traced.
      fill_value: what to fill up with.
      out: not supported.
    """
    reject_out("compress", out)
    x = as_operand("compress", a)
    mask = as_bool("compress", asarray(condition))
    if mask.ndim != 1:
        raise ShapeError(f"compress: the condition must be a vector, got {mask.type}")
    if axis is None:
        x, place = reshape(x, (x.size,)), 0
    else:
        place = canonical_axis("compress", axis, x.ndim)
    if size is None:
        positions = nonzero(mask)[0]
        return take_axis(x, positions, place)
    positions, total = true_positions(mask, size)
    taken = take_axis(x, positions, place)
    found = e.lt(create.Iota(dtypes.int32, (size,), 0)(), total)
    spread = broadcast_in_dim(found, taken.shape, (place,))
    return e.select(spread, taken, asarray(fill_value, dtype=taken.type.dtype))
