"""Manipulation functions, part 2: joining, splitting, repeating, padding with a constant."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from fxarray.core import dims, dtypes
from fxarray.core.array import Array
from fxarray.core.errors import ArgumentError, ConcretizationError, ShapeError
from fxarray.core.tracer import Tracer
from fxarray.numpy.conversion import asarray, cast_to
from fxarray.numpy.promotion import (
    ArrayLike,
    DTypeLike,
    as_operand,
    canonical_axes,
    canonical_axis,
    known_size,
    promote_dtypes,
    reject_out,
)
from fxarray.numpy.shapes import atleast_1d, atleast_2d, atleast_3d, expand_dims
from fxarray.numpy.taking import static_indices, take, take_axis
from fxarray.primitives import elementwise as e
from fxarray.primitives import joining
from fxarray.primitives.create import Iota
from fxarray.primitives.movement import broadcast_in_dim, move_axis, reshape
from fxarray.primitives.search import searchsorted

# --- joining --------------------------------------------------------------------------------------


def _sequence(function: str, arrays: Any) -> list[Any]:
    if isinstance(arrays, Array | np.ndarray):
        return [arrays[i] for i in range(len(arrays))]
    if not isinstance(arrays, Sequence):
        if hasattr(arrays, "__iter__"):
            raise ArgumentError(f"{function} takes a list or tuple of arrays, not an iterator")
        raise ArgumentError(f"{function} takes a list of arrays, got {type(arrays).__name__}")
    if not arrays:
        raise ArgumentError(f"{function} needs at least one array")
    return list(arrays)


def concatenate(arrays: Any, axis: int | None = 0, dtype: DTypeLike = None) -> Array:
    """The arrays one after the other along an axis.

    Args:
      arrays: a list of arrays whose other sizes agree; dtypes are promoted.
      axis: the axis to join along; None: flatten first.
      dtype: the dtype of the result.

    Raises:
      ShapeError: sizes disagree, or an array is a scalar.

    >>> import fxarray.numpy as fnp
    >>> fnp.concatenate([fnp.zeros(1), fnp.ones(2)])
    Array([0., 1., 1.], dtype=float32)
    """
    parts = promote_dtypes("concatenate", *_sequence("concatenate", arrays))
    if dtype is not None:
        target = dtypes.canonical(dtype)
        parts = [cast_to(part, target) for part in parts]
    if axis is None:
        return joining.concatenate([reshape(part, (part.size,)) for part in parts], 0)
    if not parts[0].ndim:
        raise ShapeError(
            "concatenate: scalars cannot be joined; use stack, or give them a dimension"
        )
    return joining.concatenate(parts, canonical_axis("concatenate", axis, parts[0].ndim))


def concat(arrays: Any, /, *, axis: int | None = 0) -> Array:
    """`concatenate`, by the array-API standard's name."""
    return concatenate(arrays, axis)


def stack(arrays: Any, axis: int = 0, out: None = None, dtype: DTypeLike = None) -> Array:
    """Arrays of one shape along a new axis.

    >>> import fxarray.numpy as fnp
    >>> fnp.stack([fnp.zeros(2), fnp.ones(2)], axis=1)
    Array([[0., 1.],
           [0., 1.]], dtype=float32)
    """
    reject_out("stack", out)
    if isinstance(arrays, Array) and arrays.ndim:
        whole = arrays if dtype is None else cast_to(arrays, dtypes.canonical(dtype))
        return move_axis(whole, 0, canonical_axis("stack", axis, arrays.ndim))
    parts = promote_dtypes("stack", *_sequence("stack", arrays))
    place = canonical_axis("stack", axis, parts[0].ndim + 1)
    for position, part in enumerate(parts):
        if part.type.shape is not parts[0].type.shape and (
            part.ndim != parts[0].ndim or not all(map(dims.same, part.shape, parts[0].shape))
        ):
            raise ShapeError(
                f"stack: all arrays must have one shape, but array 0 is {parts[0].type} and array "
                f"{position} is {part.type}"
            )
    return concatenate([expand_dims(part, place) for part in parts], place, dtype)


def unstack(x: ArrayLike, /, *, axis: int = 0) -> tuple[Array, ...]:
    """The slices of an array along an axis, which they lose."""
    value = as_operand("unstack", x)
    if not value.ndim:
        raise ShapeError("unstack: a scalar has no axis to be taken apart along")
    place = canonical_axis("unstack", axis, value.ndim)
    count = value.shape[place].__index__()
    rest = value.shape[:place] + value.shape[place + 1 :]
    if not count:
        return ()
    return tuple([reshape(part, rest) for part in joining.split(value, (1,) * count, place)])


def _listed(made: Any) -> list[Array]:
    return made if isinstance(made, list) else [made]


def hstack(tup: Any, dtype: DTypeLike = None) -> Array:
    """Arrays side by side: along the second axis, vectors along their only one."""
    parts = _listed(atleast_1d(*_sequence("hstack", tup)))
    return concatenate(parts, 0 if parts[0].ndim == 1 else 1, dtype)


def vstack(tup: Any, dtype: DTypeLike = None) -> Array:
    """Arrays one below the other along the first axis; vectors count as rows."""
    return concatenate(_listed(atleast_2d(*_sequence("vstack", tup))), 0, dtype)


def dstack(tup: Any, dtype: DTypeLike = None) -> Array:
    """Arrays along the third axis."""
    return concatenate(_listed(atleast_3d(*_sequence("dstack", tup))), 2, dtype)


def column_stack(tup: Any) -> Array:
    """Vectors as the columns of a matrix; matrices side by side."""
    parts = [
        as_operand("column_stack", part, i) for i, part in enumerate(_sequence("column_stack", tup))
    ]
    return concatenate([p if p.ndim > 1 else reshape(p, (p.size, 1)) for p in parts], 1)


def block(arrays: Any) -> Array:
    """Arrays put together from nested lists of blocks; innermost lists join along the last axis."""

    def depth(value: Any) -> int:
        return 1 + max(map(depth, value)) if isinstance(value, list) else 0

    levels = depth(arrays)

    def rank(value: Any) -> int:
        return max(map(rank, value)) if isinstance(value, list) else as_operand("block", value).ndim

    total = max(levels, rank(arrays))

    def join(value: Any, level: int) -> Array:
        if not isinstance(value, list):
            x = as_operand("block", value)
            return reshape(x, (1,) * (total - x.ndim) + x.shape)
        if not value:
            raise ArgumentError("block: lists must not be empty")
        return concatenate([join(each, level - 1) for each in value], total - level)

    return join(arrays, levels)


def append(arr: ArrayLike, values: ArrayLike, axis: int | None = None) -> Array:
    """`values` after `arr` along an axis, or both flattened."""
    return concatenate([arr, values], axis)


# --- splitting ------------------------------------------------------------------------------------


def _split_sizes(function: str, length: Any, sections: Any, uneven: bool) -> list[Any]:
    if isinstance(sections, Tracer):
        sections = np.asarray(sections)  # raises the error about traced values
    if np.ndim(sections) == 0 and not isinstance(sections, list | tuple):
        count = sections.__index__()
        if count <= 0:
            raise ArgumentError(f"{function}: the number of sections must be positive, got {count}")
        if type(length) is not int:
            return [dims.divide_exact(length, count)] * count
        if length % count and not uneven:
            raise ShapeError(
                f"{function}: an axis of size {length} cannot be split into {count} equal parts; "
                "use "
                f"array_split, or give the indices to split at"
            )
        whole, more = divmod(length, count)
        return [whole + (i < more) for i in range(count)]
    points = [int(p) for p in np.asarray(sections)]
    clipped = [min(p + length if p < 0 else p, length) for p in points]
    edges = [0, *[max(p, 0) for p in clipped], length]
    return [max(stop - start, 0) for start, stop in pairwise(edges)]


def _split(function: str, ary: Any, sections: Any, axis: int, uneven: bool) -> list[Array]:
    x = as_operand(function, ary)
    place = canonical_axis(function, axis, x.ndim)
    sizes = _split_sizes(function, x.shape[place], sections, uneven)
    if type(x.shape[place]) is int and sum(sizes) != x.shape[place]:
        # Points that are not in order: pieces overlap or are empty, as NumPy has them.
        points = [0, *[int(p) for p in np.asarray(sections)], x.shape[place]]
        everything: list[Any] = [slice(None)] * place
        return [x[(*everything, slice(a, b))] for a, b in pairwise(points)]
    return list(joining.split(x, sizes, place))


def split(ary: ArrayLike, indices_or_sections: Any, axis: int = 0) -> list[Array]:
    """An array cut into equal parts, or at given indices, along an axis.

    Args:
      ary: an array.
      indices_or_sections: how many parts, or the (static) indices at which new parts start.
      axis: the axis to cut.

    Raises:
      ShapeError: the axis cannot be cut into that many equal parts.

    >>> import fxarray.numpy as fnp
    >>> [part.shape for part in fnp.split(fnp.arange(5), [2, 3])]
    [(2,), (1,), (2,)]
    """
    return _split("split", ary, indices_or_sections, axis, uneven=False)


def array_split(ary: ArrayLike, indices_or_sections: Any, axis: int = 0) -> list[Array]:
    """`split` whose parts need not be equal: the first ones may be one longer."""
    return _split("array_split", ary, indices_or_sections, axis, uneven=True)


def hsplit(ary: ArrayLike, indices_or_sections: Any) -> list[Array]:
    """`split` along the second axis (of vectors along the first)."""
    x = as_operand("hsplit", ary)
    return _split("hsplit", x, indices_or_sections, 0 if x.ndim == 1 else 1, uneven=False)


def vsplit(ary: ArrayLike, indices_or_sections: Any) -> list[Array]:
    """`split` along the first axis."""
    return _split("vsplit", ary, indices_or_sections, 0, uneven=False)


def dsplit(ary: ArrayLike, indices_or_sections: Any) -> list[Array]:
    """`split` along the third axis."""
    return _split("dsplit", ary, indices_or_sections, 2, uneven=False)


# --- repeating and rolling ------------------------------------------------------------------------


def tile(A: ArrayLike, reps: Any) -> Array:
    """`A` repeated as a whole, `reps` times along each of its last axes.

    >>> import fxarray.numpy as fnp
    >>> fnp.tile(fnp.array([1, 2]), (2, 2))
    Array([[1, 2, 1, 2],
           [1, 2, 1, 2]], dtype=int32)
    """
    x = as_operand("tile", A)
    counts = tuple(reps) if isinstance(reps, tuple | list) else (reps,)
    counts = tuple([c if isinstance(c, dims.Dim) else c.__index__() for c in counts])
    rank = max(len(counts), x.ndim)
    counts = (1,) * (rank - len(counts)) + counts
    shape = (1,) * (rank - x.ndim) + x.shape
    spread: list[Any] = []
    places: list[int] = []
    for count, size in zip(counts, shape, strict=True):
        spread += [count, size]
        places.append(len(spread) - 1)
    repeated = broadcast_in_dim(x, spread, places[rank - x.ndim :])
    return reshape(repeated, [c * s for c, s in zip(counts, shape, strict=True)])


def repeat(
    a: ArrayLike,
    repeats: Any,
    axis: int | None = None,
    *,
    total_repeat_length: int | None = None,
    out_sharding: Any = None,
) -> Array:
    """Every element of `a` repeated in place.

    Args:
      a: an array.
      repeats: how often: a number, or one for each position along the axis.
      axis: the axis to repeat along; None: flatten first.
      total_repeat_length: the length of the result along the axis, needed if `repeats` is traced;
        surplus is cut off, and what is missing repeats the last element.
      out_sharding: accepted for compatibility; must be None.

    >>> import fxarray.numpy as fnp
    >>> fnp.repeat(fnp.array([1, 2]), fnp.array([1, 3]))
    Array([1, 2, 2, 2], dtype=int32)
    """
    if out_sharding is not None:
        raise ArgumentError("repeat: out_sharding is not supported")
    x = as_operand("repeat", a)
    if axis is None:
        x, place = reshape(x, (x.size,)), 0
    else:
        if not x.ndim:
            x = reshape(x, (1,))
        place = canonical_axis("repeat", axis, x.ndim)
    length = x.shape[place]
    if isinstance(repeats, dims.Dim) or (
        not isinstance(repeats, Tracer) and np.ndim(repeats) == 0 and total_repeat_length is None
    ):
        count = repeats if isinstance(repeats, dims.Dim) else int(np.asarray(repeats))
        shape = (*x.shape[: place + 1], count, *x.shape[place + 1 :])
        kept = [*range(place + 1), *range(place + 2, x.ndim + 1)]
        return reshape(
            broadcast_in_dim(x, shape, kept),
            (*x.shape[:place], length * count, *x.shape[place + 1 :]),
        )
    if isinstance(repeats, Tracer) and repeats.concrete() is None:
        if total_repeat_length is None:
            raise ConcretizationError(
                f"repeat: repeats is traced, but the size of the result depends on it; give "
                f"total_repeat_length. It is: {repeats!r}"
            )
        return _repeat_traced(x, repeats, place, total_repeat_length)
    length = known_size("repeat", length)
    counts = np.broadcast_to(np.asarray(asarray(repeats)), (length,))
    positions = np.repeat(np.arange(length), counts)
    if total_repeat_length is not None:
        missing = total_repeat_length - len(positions)
        filler = np.full(max(missing, 0), max(length - 1, 0))
        positions = np.concatenate([positions, filler])[:total_repeat_length]
    return take_axis(x, static_indices(positions), place)


def _repeat_traced(x: Array, repeats: Array, axis: int, total: int) -> Array:
    length = x.shape[axis]
    if not repeats.ndim or dims.same(repeats.shape[0], 1):
        repeats = broadcast_in_dim(reshape(repeats, ()), (length,), ())
    ends = repeats.cumsum()
    # An element of the result comes from the first source whose end lies behind it.
    source = searchsorted(ends, Iota(ends.dtype, (total,), 0)(), "right")
    return take_axis(x, source, axis)


def roll(a: ArrayLike, shift: Any, axis: int | Sequence[int] | None = None) -> Array:
    """`a` with its elements moved along axes; what leaves at one end comes in at the other.

    Args:
      a: an array.
      shift: how far, for each axis; may be traced.
      axis: one or several axes; None: as if flattened.
    """
    x = as_operand("roll", a)
    if axis is None:
        return reshape(roll(reshape(x, (x.size,)), shift, 0), x.shape)
    axes = (
        canonical_axes("roll", axis, x.ndim)
        if isinstance(axis, tuple | list)
        else (canonical_axis("roll", axis, x.ndim),)
    )
    amounts = list(shift) if isinstance(shift, tuple | list) else [shift] * len(axes)
    if not isinstance(shift, tuple | list) and getattr(shift, "ndim", 0) == 1:
        amounts = [shift[i] for i in range(shift.shape[0])]
    if len(amounts) == 1:
        amounts = amounts * len(axes)
    if len(axes) == 1 and len(amounts) > 1:
        axes = axes * len(amounts)
    if len(amounts) != len(axes):
        raise ArgumentError(f"roll: {len(amounts)} shifts do not go with {len(axes)} axes")
    for amount, place in zip(amounts, axes, strict=True):
        x = _roll_axis(x, amount, place)
    return x


def _roll_axis(x: Array, amount: Any, axis: int) -> Array:
    length = x.shape[axis]
    if dims.same(length, 0):
        return x
    known = not isinstance(amount, Tracer) or amount.concrete() is not None
    if known and type(length) is int:
        cut = (length - amount.__index__()) % length
        if not cut:
            return x
        head, tail = joining.split(x, (cut, length - cut), axis)
        return joining.concatenate([tail, head], axis)
    positions = Iota(dtypes.int32, (length,), 0)()
    moved = e.sub(positions, asarray(amount, dtype=dtypes.int32))
    return take(x, moved, axis, mode="wrap")
