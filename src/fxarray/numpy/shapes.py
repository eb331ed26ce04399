"""Manipulation functions, part 1: shape and order of dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fxarray.core import dims, dtypes
from fxarray.core.array import Array
from fxarray.core.errors import ArgumentError, ShapeError
from fxarray.core.types import Shape
from fxarray.numpy.conversion import asarray, cast_to, place
from fxarray.numpy.promotion import (
    ArrayLike,
    DTypeLike,
    as_operand,
    broadcast_array,
    canonical_axes,
    canonical_axis,
    canonical_shape,
    common_shape,
    same_shape,
)
from fxarray.primitives import movement
from fxarray.primitives.convert import copy as copy_elements

# --- attributes as functions ----------------------------------------------------------------------


def shape(a: Any) -> Shape:
    """The shape of an array, a number, or a nested list."""
    return a.shape if isinstance(a, Array) else asarray(a).shape


def ndim(a: Any) -> int:
    """The number of dimensions."""
    return len(shape(a))


def size(a: Any, axis: int | Sequence[int] | None = None) -> Any:
    """The number of elements, or the length of one or several axes."""
    sizes = shape(a)
    axes = canonical_axes("size", axis, len(sizes))
    return dims.shape_product(tuple([sizes[i] for i in axes]))


def astype(x: ArrayLike, dtype: DTypeLike, /, *, copy: bool = False, device: Any = None) -> Array:
    """`x` with its elements converted.

    Floats become integers by truncation, saturating at the ends of the range; NaN becomes 0.
    Numbers become bools by comparison with zero.

    Args:
      x: an array.
      dtype: the dtype wanted; None for the default float dtype.
      copy: whether to copy when `x` has that dtype already.
      device: where to put the result.

    >>> import fxarray.numpy as fnp
    >>> fnp.astype(fnp.array([1.7, -3.2]), int)
    Array([ 1, -3], dtype=int32)
    """
    value = as_operand("astype", x)
    target = dtypes.float32 if dtype is None else dtypes.canonical(dtype)
    result = cast_to(value, target)
    if copy and result is value:
        result = copy_elements(result)
    return place("astype", result, device)


# --- reshaping ------------------------------------------------------------------------------------


def resolve_shape(function: str, x: Array, wanted: Any) -> Shape:
    """The shape that `wanted` means for `x`: a size of -1 is what remains."""
    given = tuple(wanted) if isinstance(wanted, tuple | list) else (wanted,)
    unknown = [i for i, s in enumerate(given) if type(s) is int and s == -1]
    if not unknown:
        return canonical_shape(function, given)
    if len(unknown) > 1:
        raise ShapeError(f"{function}: only one size may be -1, got shape {given}")
    known = canonical_shape(function, [s for i, s in enumerate(given) if i != unknown[0]])
    total, part = x.size, dims.shape_product(known)
    if type(total) is int and type(part) is int:
        if part == 0 or total % part:
            raise ShapeError(
                f"{function}: {x.type} has {total} elements, which cannot be arranged in shape "
                f"{given}: "
                f"{total} is not a multiple of {part}"
            )
        rest: Any = total // part
    else:
        rest = dims.divide_exact(total, part)
    return (*known[: unknown[0]], rest, *known[unknown[0] :])


def reshape(
    a: ArrayLike,
    shape: Any,
    order: str = "C",
    *,
    copy: bool | None = None,
    out_sharding: Any = None,
) -> Array:
    """`a` with its elements in another shape.

    Args:
      a: an array.
      shape: an int or a tuple; one size may be -1, which is worked out.
      order: "C" to read and write elements with the last index changing fastest, "F" the first.
      copy: whether to copy.
      out_sharding: how to split the result over a mesh.

    Raises:
      ShapeError: the shape has another number of elements.

    >>> import fxarray.numpy as fnp
    >>> fnp.reshape(fnp.arange(4), (2, -1))
    Array([[0, 1],
           [2, 3]], dtype=int32)
    """
    x = as_operand("reshape", a)
    sizes = resolve_shape("reshape", x, shape)
    if order in ("C", "K", "A"):
        result = movement.reshape(x, sizes)
    elif order == "F":
        flipped = movement.reshape(_reverse(x), sizes[::-1])
        result = _reverse(flipped)
    else:
        raise ArgumentError(f"reshape: order must be 'C' or 'F', got {order!r}")
    if copy and result is x:
        result = copy_elements(result)
    return place("reshape", result, None, out_sharding)


def _reverse(x: Array) -> Array:
    return movement.transpose(x, tuple(range(x.ndim))[::-1])


def ravel(a: ArrayLike, order: str = "C", *, out_sharding: Any = None) -> Array:
    """`a` in one dimension."""
    x = as_operand("ravel", a)
    return reshape(x, (x.size,), order, out_sharding=out_sharding)


def squeeze(a: ArrayLike, axis: int | Sequence[int] | None = None) -> Array:
    """`a` without axes of size 1: all of them, or the given ones.

    Raises:
      ShapeError: a given axis is of another size.
    """
    x = as_operand("squeeze", a)
    if axis is None:
        gone = tuple([i for i, s in enumerate(x.shape) if dims.same(s, 1)])
    else:
        gone = canonical_axes("squeeze", axis, x.ndim)
        for i in gone:
            if not dims.same(x.shape[i], 1):
                raise ShapeError(f"squeeze: axis {i} of {x.type} has size {x.shape[i]}, not 1")
    return movement.reshape(x, [s for i, s in enumerate(x.shape) if i not in gone])


def expand_dims(a: ArrayLike, axis: int | Sequence[int]) -> Array:
    """`a` with axes of size 1 put in, at these places of the result.

    >>> import fxarray.numpy as fnp
    >>> fnp.expand_dims(fnp.ones(3), (0, -1)).shape
    (1, 3, 1)
    """
    x = as_operand("expand_dims", a)
    count = len(axis) if isinstance(axis, tuple | list) else 1
    rank = x.ndim + count
    new = canonical_axes("expand_dims", axis, rank)
    kept = iter(x.shape)
    return movement.reshape(x, [1 if i in new else next(kept) for i in range(rank)])


# --- order of dimensions --------------------------------------------------------------------------


def transpose(a: ArrayLike, axes: Sequence[int] | None = None) -> Array:
    """`a` with its dimensions reversed, or in the order given.

    >>> import fxarray.numpy as fnp
    >>> fnp.transpose(fnp.ones((2, 3, 4)), (1, 0, 2)).shape
    (3, 2, 4)
    """
    x = as_operand("transpose", a)
    if axes is None:
        return _reverse(x)
    order = canonical_axes("transpose", tuple(axes), x.ndim)
    if len(order) != x.ndim:
        raise ShapeError(f"transpose: axes {tuple(axes)} must list each dimension of {x.type} once")
    return movement.transpose(x, order)


def permute_dims(a: ArrayLike, /, axes: Sequence[int]) -> Array:
    """`transpose` with the order given."""
    return transpose(a, axes)


def swapaxes(a: ArrayLike, axis1: int, axis2: int) -> Array:
    """`a` with two axes interchanged."""
    x = as_operand("swapaxes", a)
    i, j = (canonical_axis("swapaxes", axis, x.ndim) for axis in (axis1, axis2))
    order = list(range(x.ndim))
    order[i], order[j] = order[j], order[i]
    return movement.transpose(x, order)


def moveaxis(a: ArrayLike, source: int | Sequence[int], destination: int | Sequence[int]) -> Array:
    """`a` with axes moved to other places; the others keep their order."""
    x = as_operand("moveaxis", a)
    origin = canonical_axes("moveaxis", source, x.ndim)
    target = canonical_axes("moveaxis", destination, x.ndim)
    if len(origin) != len(target):
        raise ArgumentError(
            f"moveaxis: source {source} and destination {destination} must be equally many"
        )
    order = [i for i in range(x.ndim) if i not in origin]
    for place_, axis in sorted(zip(target, origin, strict=True)):
        order.insert(place_, axis)
    return movement.transpose(x, order)


def rollaxis(a: ArrayLike, axis: int, start: int = 0) -> Array:
    """`a` with `axis` moved to stand before the one that was at `start`."""
    x = as_operand("rollaxis", a)
    origin = canonical_axis("rollaxis", axis, x.ndim)
    # A negative start counts from the number of dimensions, a positive one may be that number.
    before = x.ndim if start == x.ndim else canonical_axis("rollaxis", start, x.ndim)
    return moveaxis(x, origin, before - (origin < before))


# --- broadcasting ---------------------------------------------------------------------------------


def broadcast_shapes(*shapes: Any) -> Shape:
    """The shape that arrays of these shapes broadcast to.

    >>> import fxarray.numpy as fnp
    >>> fnp.broadcast_shapes((3, 1), 4)
    (3, 4)
    """
    return common_shape(
        "broadcast_shapes", [canonical_shape("broadcast_shapes", s) for s in shapes]
    )


def broadcast_to(array: ArrayLike, shape: Any, *, out_sharding: Any = None) -> Array:
    """`array` repeated to a shape.

    Raises:
      ShapeError: the array does not broadcast to it.
    """
    x = as_operand("broadcast_to", array)
    sizes = canonical_shape("broadcast_to", shape)
    if x.ndim > len(sizes) or not same_shape(common_shape("broadcast_to", [x.shape, sizes]), sizes):
        raise ShapeError(f"broadcast_to: {x.type} cannot be repeated to shape {sizes}")
    return place("broadcast_to", broadcast_array(x, sizes), None, out_sharding)


def broadcast_arrays(*args: ArrayLike) -> list[Array]:
    """The arrays, each repeated to their common shape."""
    arrays = [as_operand("broadcast_arrays", a, i) for i, a in enumerate(args)]
    sizes = common_shape("broadcast_arrays", [x.shape for x in arrays])
    return [broadcast_array(x, sizes) for x in arrays]


def _at_least(function: str, arrays: Sequence[ArrayLike], rank: int) -> Any:
    results: list[Array] = []
    for position, a in enumerate(arrays):
        x = as_operand(function, a, position)
        if rank == 3 and x.ndim == 1:
            x = movement.reshape(x, (1, x.shape[0], 1))
        elif rank == 3 and x.ndim == 2:
            x = movement.reshape(x, (*x.shape, 1))
        elif x.ndim < rank:
            x = movement.reshape(x, (1,) * (rank - x.ndim) + x.shape)
        results.append(x)
    return results[0] if len(results) == 1 else results


def atleast_1d(*arys: ArrayLike) -> Any:
    """The arrays, with a dimension given to scalars."""
    return _at_least("atleast_1d", arys, 1)


def atleast_2d(*arys: ArrayLike) -> Any:
    """The arrays, with leading dimensions of size 1 added up to two."""
    return _at_least("atleast_2d", arys, 2)


def atleast_3d(*arys: ArrayLike) -> Any:
    """The arrays with at least three dimensions: vectors become (1, n, 1), matrices (m, n, 1)."""
    return _at_least("atleast_3d", arys, 3)


# --- reversing ------------------------------------------------------------------------------------


def flip(m: ArrayLike, axis: int | Sequence[int] | None = None) -> Array:
    """`m` with its elements in reverse order along all axes, or the given ones."""
    x = as_operand("flip", m)
    return movement.rev(x, sorted(canonical_axes("flip", axis, x.ndim)))


def fliplr(m: ArrayLike) -> Array:
    """`m` reversed along its second axis."""
    return flip(m, 1)


def flipud(m: ArrayLike) -> Array:
    """`m` reversed along its first axis."""
    return flip(m, 0)


def rot90(m: ArrayLike, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Array:
    """`m` turned by k quarter turns in the plane of two axes, from the first towards the second."""
    x = as_operand("rot90", m)
    first, second = canonical_axes("rot90", tuple(axes), x.ndim)
    turns = k % 4
    if turns == 0:
        return x
    if turns == 2:
        return flip(x, (first, second))
    if turns == 1:
        return swapaxes(flip(x, second), first, second)
    return flip(swapaxes(x, first, second), second)
