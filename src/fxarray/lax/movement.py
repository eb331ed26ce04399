"""Moving elements: broadcasting, reshaping, transposing, joining, padding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fxarray.core import dims
from fxarray.core.array import Array
from fxarray.core.errors import ShapeError
from fxarray.core.types import ArrayType
from fxarray.lax.operands import ArrayLike, as_operand, as_operands
from fxarray.lax.shapes import as_axes, as_axis, as_shape, as_sizes, reject_sharding
from fxarray.primitives import create, joining, movement, slicing


def broadcast(operand: ArrayLike, sizes: Sequence[int], *, out_sharding: Any = None) -> Array:
    """`operand` repeated along new leading dimensions.

    Args:
      operand: an array.
      sizes: the sizes of the new dimensions.
      out_sharding: not supported.

    >>> from fxarray import lax
    >>> lax.broadcast(lax.iota("int32", 2), (3,)).shape
    (3, 2)
    """
    reject_sharding("broadcast", out_sharding)
    x = as_operand("broadcast", operand)
    new = as_shape("broadcast", sizes)
    shape = (*new, *x.shape)
    return movement.broadcast_in_dim(x, shape, range(len(new), len(shape)))


def broadcast_in_dim(
    operand: ArrayLike, shape: Any, broadcast_dimensions: Sequence[int], *, out_sharding: Any = None
) -> Array:
    """`operand` with its dimension i at `broadcast_dimensions[i]` of `shape`, repeated elsewhere.

    Args:
      operand: an array; its sizes are those of `shape` there, or 1.
      shape: the result's shape.
      broadcast_dimensions: increasing.
      out_sharding: not supported.

    Raises:
      ShapeError: sizes do not agree.

    >>> from fxarray import lax
    >>> lax.broadcast_in_dim(lax.iota("int32", 2), (2, 3), (0,))
    Array([[0, 0, 0],
           [1, 1, 1]], dtype=int32)
    """
    reject_sharding("broadcast_in_dim", out_sharding)
    x = as_operand("broadcast_in_dim", operand)
    sizes = as_shape("broadcast_in_dim", shape)
    axes = as_axes("broadcast_in_dim", broadcast_dimensions, len(sizes))
    return movement.broadcast_in_dim(x, sizes, axes)


def reshape(
    operand: ArrayLike,
    new_sizes: Any,
    dimensions: Sequence[int] | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """The elements of `operand`, in row-major order, in another shape.

    Args:
      operand: an array.
      new_sizes: a shape of as many elements.
      dimensions: the order in which to read the operand's dimensions (default: as they are).
      out_sharding: not supported.

    Raises:
      ShapeError: the number of elements differs.

    >>> from fxarray import lax
    >>> lax.reshape(lax.iota("int32", 4), (2, 2))
    Array([[0, 1],
           [2, 3]], dtype=int32)
    """
    reject_sharding("reshape", out_sharding)
    x = as_operand("reshape", operand)
    if dimensions is not None:
        x = transpose(x, dimensions)
    return movement.reshape(x, as_shape("reshape", new_sizes))


def transpose(operand: ArrayLike, permutation: Any) -> Array:
    """`operand` with dimension i taken from `permutation[i]`.

    Raises:
      AxisError: the permutation does not list every dimension once.

    >>> from fxarray import lax
    >>> lax.transpose(lax.full((2, 3), 1.0), (1, 0)).shape
    (3, 2)
    """
    x = as_operand("transpose", operand)
    order = tuple([int(p) for p in permutation])
    if order == tuple(range(x.ndim)):
        return x
    return movement.Transpose(order)(x)


def rev(operand: ArrayLike, dimensions: Sequence[int]) -> Array:
    """`operand` in reverse order along `dimensions`.

    Raises:
      AxisError: a dimension is out of range, or given twice.

    >>> from fxarray import lax
    >>> lax.rev(lax.iota("int32", 3), (0,))
    Array([2, 1, 0], dtype=int32)
    """
    x = as_operand("rev", operand)
    return movement.rev(x, as_axes("rev", dimensions, x.ndim))


def squeeze(array: ArrayLike, dimensions: Sequence[int]) -> Array:
    """`array` without the given dimensions, which have size 1.

    Raises:
      ShapeError: a dimension has another size.

    >>> from fxarray import lax
    >>> lax.squeeze(lax.full((1, 2, 1), 0.0), (0,)).shape
    (2, 1)
    """
    x = as_operand("squeeze", array)
    axes = as_axes("squeeze", dimensions, x.ndim)
    if not all(dims.same(x.shape[axis], 1) for axis in axes):
        raise ShapeError(f"lax.squeeze: dimensions {axes} of {x.type} do not all have size 1")
    return movement.reshape(x, [size for axis, size in enumerate(x.shape) if axis not in axes])


def expand_dims(array: ArrayLike, dimensions: Sequence[int]) -> Array:
    """`array` with new dimensions of size 1, at `dimensions` of the result.

    Raises:
      AxisError: a dimension is out of range, or given twice.

    >>> from fxarray import lax
    >>> lax.expand_dims(lax.iota("int32", 3), (0, -1)).shape
    (1, 3, 1)
    """
    x = as_operand("expand_dims", array)
    axes = as_axes("expand_dims", dimensions, x.ndim + len(tuple(dimensions)))
    rank = x.ndim + len(axes)
    sizes = iter(x.shape)
    shape = tuple([1 if axis in axes else next(sizes) for axis in range(rank)])
    kept = [axis for axis in range(rank) if axis not in axes]
    return movement.broadcast_in_dim(x, shape, kept)


def collapse(operand: ArrayLike, start_dimension: int, stop_dimension: int | None = None) -> Array:
    """`operand` with the dimensions from start up to, but not including, stop made into one.

    >>> from fxarray import lax
    >>> lax.collapse(lax.full((2, 3, 4), 0), 1).shape
    (2, 12)
    """
    x = as_operand("collapse", operand)
    start, stop, _ = slice(start_dimension, stop_dimension).indices(x.ndim)
    size = dims.shape_product(x.shape[start:stop])
    return movement.reshape(x, (*x.shape[:start], size, *x.shape[max(start, stop) :]))


def concatenate(operands: Any, dimension: int) -> Array:
    """The operands one after the other along `dimension`.

    Args:
      operands: arrays of one dtype, equal in all other sizes.
      dimension: the dimension along which to join.

    Raises:
      ShapeError: another size differs.

    >>> from fxarray import lax
    >>> lax.concatenate([lax.iota("int32", 2), lax.iota("int32", 1)], 0)
    Array([0, 1, 0], dtype=int32)
    """
    arrays = as_operands("concatenate", *operands) if len(operands) else []
    if not arrays:
        return joining.Concatenate(0)()
    return joining.concatenate(arrays, as_axis("concatenate", dimension, arrays[0].ndim))


def split(operand: ArrayLike, sizes: Sequence[int], axis: int = 0) -> list[Array]:
    """Consecutive pieces of `operand`.

    Args:
      operand: an array.
      sizes: the sizes of the pieces; they add up to the size of the axis.
      axis: the axis along which to cut.

    Raises:
      ShapeError: they do not add up.

    >>> from fxarray import lax
    >>> lax.split(lax.iota("int32", 3), (1, 2))
    [Array([0], dtype=int32), Array([1, 2], dtype=int32)]
    """
    x = as_operand("split", operand)
    return list(joining.Split(as_sizes("split", sizes), as_axis("split", axis, x.ndim)).bind(x))


def pad(
    operand: ArrayLike, padding_value: ArrayLike, padding_config: Sequence[tuple[int, int, int]]
) -> Array:
    """`operand` with a value put before, after and between the elements of each dimension.

    Args:
      operand: an array.
      padding_value: 0-dimensional, of the same dtype.
      padding_config: per dimension (low, high, interior): how many to put before and after
        (negative: how many to remove), and how many between neighbours.

    Raises:
      ShapeError: a size would become negative.

    >>> from fxarray import lax
    >>> lax.pad(lax.iota("int32", 3), 9, [(1, -1, 1)])
    Array([9, 0, 9, 1, 9], dtype=int32)
    """
    x, value = as_operands("pad", operand, padding_value)
    config = tuple([as_sizes("pad", triple) for triple in padding_config])
    if any(len(triple) != 3 for triple in config):
        raise ShapeError(
            f"lax.pad: padding_config holds triples (low, high, interior), got {config}"
        )
    if len(config) != x.ndim:
        return slicing.Pad(config)(x, value)  # type: ignore[arg-type] # raises
    return slicing.pad(x, value, config)  # type: ignore[arg-type]


def tile(operand: ArrayLike, reps: Sequence[int]) -> Array:
    """`operand` repeated `reps[i]` times along dimension i.

    Raises:
      ShapeError: there is not one number for each dimension.

    >>> from fxarray import lax
    >>> lax.tile(lax.iota("int32", 2), (2,))
    Array([0, 1, 0, 1], dtype=int32)
    """
    x = as_operand("tile", operand)
    counts = as_shape("tile", reps)
    if len(counts) != x.ndim:
        raise ShapeError(f"lax.tile: reps={counts} must have one number per dimension of {x.type}")
    shape = [size for pair in zip(counts, x.shape, strict=True) for size in pair]
    wide = movement.broadcast_in_dim(x, shape, range(1, 2 * x.ndim, 2))
    return movement.reshape(
        wide, [count * size for count, size in zip(counts, x.shape, strict=True)]
    )


def zeros_like_array(x: ArrayLike) -> Array:
    """Zeros of the type of `x`."""
    own = as_operand("zeros_like_array", x).type
    return create.zeros(ArrayType(own.shape, own.dtype, own.weak))
