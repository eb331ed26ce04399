"""Functions that replace, put in, or take out elements; they return new arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from fxarray.core import dtypes
from fxarray.core.array import Array
from fxarray.core.errors import ArgumentError, OutOfBoundsError, ShapeError
from fxarray.core.tracer import Tracer
from fxarray.core.types import ArrayType
from fxarray.numpy.comparison import as_bool
from fxarray.numpy.conversion import asarray
from fxarray.numpy.joining import concatenate
from fxarray.numpy.promotion import (
    ArrayLike,
    as_operand,
    broadcast_array,
    canonical_axis,
    canonical_shape,
    common_shape,
    known_size,
)
from fxarray.numpy.selection import concrete_values
from fxarray.numpy.taking import as_indices, static_indices, take_axis
from fxarray.primitives import create, cumulative
from fxarray.primitives import elementwise as e
from fxarray.primitives.convert import convert
from fxarray.primitives.movement import broadcast_in_dim, reshape


def put_along_axis(
    arr: ArrayLike,
    indices: Any,
    values: ArrayLike,
    axis: int | None,
    inplace: bool = True,
    *,
    mode: Any = None,
) -> Array:
    """`arr` with elements replaced at indices along an axis; the inverse of `take_along_axis`.

    Args:
      arr: an array.
      indices: integers with as many dimensions; sizes other than along `axis` broadcast.
      values: what to put there.
      axis: the axis; None: flatten first.
      inplace: must be False, since arrays are immutable: the result is a new array.
      mode: what happens to indices outside: "drop" (the default), "clip" or "promise_in_bounds".
    """
    require_not_inplace("put_along_axis", inplace)
    x = as_operand("put_along_axis", arr)
    index = as_indices("put_along_axis", indices)
    shape = x.shape
    if axis is None:
        x, place = reshape(x, (x.size,)), 0
    else:
        place = canonical_axis("put_along_axis", axis, x.ndim)
    if index.ndim != x.ndim:
        raise ShapeError(f"put_along_axis: {x.type} and indices {index.type} must have equal rank")
    others = [s for i, s in enumerate(x.shape) if i != place]
    lanes = [s for i, s in enumerate(index.shape) if i != place]
    full = list(common_shape("put_along_axis", [tuple(others), tuple(lanes)]))
    full.insert(place, index.shape[place])
    index = broadcast_array(index, tuple(full))
    coordinates: list[Any] = [create.Iota(dtypes.int32, tuple(full), i)() for i in range(x.ndim)]
    coordinates[place] = index
    result = x.at[tuple(coordinates)].set(values, mode=mode)
    return reshape(result, shape)


def require_not_inplace(function: str, inplace: bool) -> None:
    """Refuse to write to an array.

    Raises:
      ArgumentError: it was asked for.
    """
    if inplace:
        raise ArgumentError(
            f"{function}: arrays are immutable; pass inplace=False and use the result"
        )


def put(a: ArrayLike, ind: Any, v: ArrayLike, mode: Any = None, *, inplace: bool = True) -> Array:
    """`a` with elements replaced at indices into `a` flattened.

    Args:
      a: an array.
      ind: integers.
      v: values, repeated or cut off to as many.
      mode: "clip" (the default), "wrap", or a mode of `x.at`.
      inplace: must be False, since arrays are immutable: the result is a new array.
    """
    require_not_inplace("put", inplace)
    x = as_operand("put", a)
    index = as_indices("put", ind).ravel()
    values = as_operand("put", v).ravel()
    if not index.shape[0] or not values.shape[0]:
        return x
    repeats = -(-index.shape[0] // values.shape[0])
    if repeats > 1:
        values = broadcast_in_dim(values, (repeats, values.shape[0]), (1,)).ravel()
    values = values[: index.shape[0]]
    if mode == "wrap":
        index = index % x.size
        mode = None
    flat = reshape(x, (x.size,))
    return reshape(flat.at[index].set(values, mode=mode or "clip"), x.shape)


def place(arr: ArrayLike, mask: ArrayLike, vals: ArrayLike, *, inplace: bool = True) -> Array:
    """`arr` with the elements where the mask holds replaced by `vals` in order.

    Args:
      arr: an array.
      mask: truth values of the same shape.
      vals: a vector of values, repeated as needed.
      inplace: must be False, since arrays are immutable: the result is a new array.
    """
    require_not_inplace("place", inplace)
    x = as_operand("place", arr)
    values = as_operand("place", vals).ravel()
    truth = as_bool("place", mask)
    if not values.shape[0]:
        if truth.size:
            raise ArgumentError("place: vals must not be empty")
        return x
    flat = reshape(broadcast_array(truth, x.shape), (x.size,))
    numbers = cumulative.cumsum(convert(flat, dtypes.int32), 0)
    order = e.sub(numbers, e.number_like(numbers, 1))
    chosen = take_axis(values, order % values.shape[0], 0)
    result = e.select(flat, convert(chosen, x.type.dtype), reshape(x, (x.size,)))
    return reshape(result, x.shape)


# --- other sizes ----------------------------------------------------------------------------------


def delete(
    arr: ArrayLike, obj: Any, axis: int | None = None, *, assume_unique_indices: bool = False
) -> Array:
    """`arr` without some slices along an axis (or elements of it flattened).

    Args:
      arr: an array.
      obj: which: an index, a slice, a vector of indices, or a mask of the axis's length.
      axis: the axis; None: flatten first.
      assume_unique_indices: whether no index comes twice; traced indices need it.
    """
    x = as_operand("delete", arr)
    if axis is None:
        x, where_ = reshape(x, (x.size,)), 0
    else:
        where_ = canonical_axis("delete", axis, x.ndim)
    length: Any = x.shape[where_]
    if isinstance(obj, slice):
        gone = np.arange(known_size("delete", length))[obj]
    elif isinstance(obj, Tracer) and obj.concrete() is None:
        return _delete_traced(x, obj, where_, assume_unique_indices)
    else:
        gone = concrete_values(obj, "delete", "obj", "give known indices")
        if gone.dtype.kind == "b":
            if gone.shape != (length,):
                raise ShapeError(f"delete: the mask must have shape ({length},), got {gone.shape}")
            gone = np.flatnonzero(gone)
        gone = gone.ravel()
        if gone.size == 0:
            return x
        if gone.min() < -length or gone.max() >= length:
            raise OutOfBoundsError(f"delete: index out of range for axis {where_} of {x.type}")
    kept = np.delete(np.arange(known_size("delete", length)), gone)
    return take_axis(x, static_indices(kept), where_)


def _delete_traced(x: Array, obj: Array, axis: int, unique: bool) -> Array:
    if dtypes.is_bool(obj.type.dtype) or not (unique or obj.ndim == 0):
        concrete_values(
            obj, "delete", "obj", "pass assume_unique_indices=True if they are distinct"
        )
    length = x.shape[axis]
    index = reshape(as_indices("delete", obj), (obj.size,))
    index = e.select(e.lt(index, e.number_like(index, 0)), index + length, index)
    order = index.sort()
    # Position p of the result comes from p plus the number of deleted indices before it.
    count = order.shape[0]
    numbers = create.Iota(order.type.dtype, (count,), 0)()
    steps = e.sub(order, numbers)
    places = create.Iota(order.type.dtype, (length - count,), 0)()
    source = e.add(places, convert(steps.searchsorted(places, side="right"), places.type.dtype))
    return take_axis(x, source, axis)


def insert(arr: ArrayLike, obj: Any, values: ArrayLike, axis: int | None = None) -> Array:
    """`arr` with values put in before given indices along an axis (or of it flattened).

    Args:
      arr: an array.
      obj: where: an index, a slice, a vector of indices, or a mask; known or traced.
      values: what to put in.
      axis: the axis; None: flatten first.
    """
    x = as_operand("insert", arr)
    new = as_operand("insert", values, 2)
    if axis is None:
        x, where_ = reshape(x, (x.size,)), 0
    else:
        where_ = canonical_axis("insert", axis, x.ndim)
    length: Any = x.shape[where_]
    if isinstance(obj, slice):
        obj = np.arange(known_size("insert", length))[obj]
    index = asarray(obj)
    if dtypes.is_bool(index.type.dtype):
        known = concrete_values(index, "insert", "obj", "give known indices")
        index = asarray(np.flatnonzero(known).astype(np.int32))
    single = index.ndim == 0
    index = reshape(as_indices("insert", index), (index.size,))
    count = index.shape[0]
    index = e.select(e.lt(index, e.number_like(index, 0)), index + length, index)
    if count == 1:
        if single and new.ndim:
            # A single index takes a whole block, whose length is its own.
            if new.ndim == x.ndim:
                count = new.shape[where_]
            elif axis is not None:
                new = reshape(new, (*new.shape[:where_], 1, *new.shape[where_:]))
            else:
                count = new.shape[0]
        elif not single and new.ndim == x.ndim:
            count = new.shape[where_]
        if count != 1:
            index = broadcast_in_dim(reshape(index, ()), (count,), ())
    shape = (*x.shape[:where_], count, *x.shape[where_ + 1 :])
    new = broadcast_array(convert(new, x.type.dtype), shape)
    order = index.argsort()
    numbers = create.Iota(dtypes.int32, (count,), 0)()
    goal = e.add(convert(take_axis(index, order, 0), dtypes.int32), numbers)
    total = length + count
    taken = create.full(ArrayType((total,), dtypes.bool_), False)
    taken = taken.at[goal].set(True)
    before = cumulative.cumsum(convert(e.bitwise_not(taken), dtypes.int32), 0)
    source = e.sub(before, e.number_like(before, 1))
    inserted_before = cumulative.cumsum(convert(taken, dtypes.int32), 0)
    which = take_axis(order, e.sub(inserted_before, e.number_like(before, 1)), 0)
    everything = concatenate([x, new], where_)
    pick = e.select(taken, e.add(which, e.number_like(which, length)), source)
    return take_axis(everything, pick, where_)


def resize(a: ArrayLike, new_shape: Any) -> Array:
    """The elements of `a` in another shape, repeated or cut off as needed."""
    x = as_operand("resize", a)
    shape = canonical_shape("resize", new_shape)
    wanted = int(np.prod(shape))  # type: ignore[arg-type]
    flat = reshape(x, (x.size,))
    if x.size == 0:
        return create.full(ArrayType(shape, x.type.dtype), 0)
    repeats = -(-wanted // flat.shape[0])
    if repeats > 1:
        flat = reshape(
            broadcast_in_dim(flat, (repeats, flat.shape[0]), (1,)), (repeats * flat.shape[0],)
        )
    return reshape(flat[:wanted], shape)


def trim_zeros(filt: ArrayLike, trim: str = "fb", axis: Any = None) -> Array:
    """A vector without its leading ("f") and trailing ("b") zeros; its values must be known.

    Args:
      filt: an array.
      trim: which ends.
      axis: the axes to trim; None: all.
    """
    x = as_operand("trim_zeros", filt)
    known = concrete_values(x, "trim_zeros", "filt", "cut it with known indices")
    axes = (
        range(x.ndim)
        if axis is None
        else [
            canonical_axis("trim_zeros", i, x.ndim)
            for i in (axis if isinstance(axis, tuple | list) else (axis,))
        ]
    )
    index: list[Any] = [slice(None)] * x.ndim
    for place_ in axes:
        others = tuple(i for i in range(x.ndim) if i != place_)
        filled = np.flatnonzero((known != 0).any(axis=others))
        if not filled.size:
            index[place_] = slice(0, 0)
            continue
        start = int(filled[0]) if "f" in trim.lower() else 0
        stop = int(filled[-1]) + 1 if "b" in trim.lower() else x.shape[place_]
        index[place_] = slice(start, stop)
    return x[tuple(index)]


def fill_diagonal(
    a: ArrayLike, val: ArrayLike, wrap: bool = False, *, inplace: bool = True
) -> Array:
    """`a` with the elements whose indices are all equal replaced.

    Args:
      a: an array of at least 2 dimensions.
      val: a number, or a vector that is repeated.
      wrap: whether the diagonal of a tall matrix starts again at the top.
      inplace: must be False, since arrays are immutable: the result is a new array.
    """
    require_not_inplace("fill_diagonal", inplace)
    x = as_operand("fill_diagonal", a)
    if x.ndim < 2:
        raise ShapeError(f"fill_diagonal takes at least 2 dimensions, got {x.type}")
    if x.ndim > 2 and len(set(x.shape)) > 1:
        raise ShapeError(f"fill_diagonal: all axes of {x.type} must be equally long")
    if wrap and x.ndim == 2:
        rows, columns = (known_size("fill_diagonal", size) for size in x.shape)
        places = np.unravel_index(np.arange(0, rows * columns, columns + 1), (rows, columns))
    else:
        length = min(known_size("fill_diagonal", size) for size in x.shape)
        places = (np.arange(length),) * x.ndim
    count = len(places[0])
    values = convert(as_operand("fill_diagonal", val, 1).ravel(), x.type.dtype)
    filled = values[asarray((np.arange(count) % values.shape[0]).astype(np.int32))]
    index = tuple(static_indices(p) for p in places)
    return x.at[index].set(filled, unique_indices=True)
