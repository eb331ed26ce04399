"""From what callers pass to operands of primitives: conversion, promotion, broadcasting.

Functions of `fxarray.numpy` take arrays, tracers, NumPy arrays and numbers, of any mixture of
dtypes and shapes; primitives want Arrays of one dtype and one shape (0-dimensional operands aside).
What stands here is all that lies between.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from fxarray.core import config, dims, dtypes
from fxarray.core.array import Array, DeviceArray
from fxarray.core.context import context
from fxarray.core.dtypes import DType
from fxarray.core.errors import (
    ArgumentError,
    AxisError,
    DTypeError,
    ShapeError,
    SymbolicSizeError,
    TypePromotionError,
)
from fxarray.core.source import warn
from fxarray.core.types import ArrayType, Shape, Size, shape_key
from fxarray.lax.shapes import common_shape as common_shape
from fxarray.primitives.convert import convert
from fxarray.primitives.movement import broadcast_in_dim, reshape
from fxarray.primitives.sizes import size_value

ArrayLike: TypeAlias = (
    "Array | np.ndarray[Any, Any] | np.generic | bool | int | float | complex | dims.Dim"
)
DTypeLike: TypeAlias = Any

Scalar = (int, float, complex, np.generic)  # bool is an int
OPERANDS = (Array, np.ndarray, *Scalar, dims.Dim)

# Arrays of numbers written in the source are made over and over; each is made once. Only operations
# that never return an operand itself may be given one, so that none escapes to be deleted.
_NUMBERS: dict[Any, DeviceArray] = {}
_NUMBERS_LIMIT = 4096
_INT32_LOW, _INT32_HIGH = -(2**31), 2**31 - 1


def number(value: Any, dtype: DType, weak: bool) -> DeviceArray:
    """A 0-dimensional operand holding a Python or NumPy scalar.

    Integers that fit int32 wrap into narrower dtypes, as JAX lets them; wider ones must fit.
    """
    key = (value, type(value), dtype, weak)
    known = _NUMBERS.get(key) if value else None  # 0.0 and -0.0 are equal keys
    if known is not None:
        return known
    if type(value) is int and _INT32_LOW <= value <= _INT32_HIGH and not dtypes.is_key(dtype):
        buffer = dtypes.cast(np.array(value, np.int64), dtype)
    else:
        buffer = dtypes.scalar_array(value, dtype)
    array = DeviceArray(buffer, ArrayType((), dtype, weak))
    if value and value == value:
        if len(_NUMBERS) >= _NUMBERS_LIMIT:
            _NUMBERS.clear()
        _NUMBERS[key] = array
    return array


def as_operand(function: str, value: Any, position: int = 0) -> Array:
    """`value` as an Array, for functions that take no lists.

    Args:
      function: whose argument it is, for the message.
      value: an array, a NumPy array (copied) or a number.
      position: which argument it is.

    Raises:
      ArgumentError: anything else.
    """
    if isinstance(value, Array):
        return value
    if isinstance(value, Scalar):
        dtype, weak = dtypes.scalar_dtype(value)
        return DeviceArray(dtypes.scalar_array(value, dtype), ArrayType((), dtype, weak))
    if isinstance(value, np.ndarray):
        return from_numpy(value)
    if isinstance(value, dims.Dim):
        return size_value(value)
    convertible = getattr(value, "__jax_array__", None)
    if convertible is not None:
        return as_operand(function, convertible(), position)
    remedy = (
        "; convert it with fxarray.numpy.asarray first" if isinstance(value, list | tuple) else ""
    )
    raise ArgumentError(
        f"{function} takes arrays and numbers, but argument {position} is of type "
        f"{type(value).__name__}{remedy}"
    )


def from_numpy(value: np.ndarray[Any, Any], copy: bool = True) -> DeviceArray:
    """A NumPy array as an Array; its memory is copied unless told otherwise."""
    dtype = dtypes.canonical(value.dtype)
    physical = dtypes.physical(dtype)
    buffer = np.array(value, dtype=physical, copy=True if copy else None, order="C", subok=False)
    return DeviceArray(buffer, ArrayType(value.shape, dtype))


def promote_dtypes(function: str, *values: Any, inexact: bool = False) -> list[Array]:
    """Operands in their common dtype, shapes as they are.

    Args:
      function: the caller, for messages.
      values: arrays and numbers.
      inexact: whether integers and bools become floats.

    Raises:
      ArgumentError: a value is neither an array nor a number.
      TypePromotionError: there is no common dtype.
    """
    found: list[Any] = []
    own: list[DType] = []
    weaks: list[bool] = []
    for position, value in enumerate(values):
        if not isinstance(value, Array):
            if isinstance(value, Scalar):
                dtype, weak = dtypes.scalar_dtype(value)
                found.append(value)
                own.append(dtype)
                weaks.append(weak)
                continue
            value = as_operand(function, value, position)
        found.append(value)
        own.append(value.type.dtype)
        weaks.append(value.type.weak)
    dtype, weak = dtypes.promote(own, weaks)
    if context.settings:
        _check_strictly(function, own, weaks, dtype)
    if inexact:
        dtype = dtypes.to_inexact(dtype)
    shared = len(values) > 1
    results: list[Array] = []
    for value in found:
        if isinstance(value, Array):
            results.append(value if value.type.dtype == dtype else convert(value, dtype, weak))
        elif shared:
            results.append(number(value, dtype, weak))
        else:
            buffer = dtypes.scalar_array(value, dtype)
            results.append(DeviceArray(buffer, ArrayType((), dtype, weak)))
    return results


def _check_strictly(
    function: str, own: Sequence[DType], weaks: Sequence[bool], common: DType
) -> None:
    """Under `numpy_dtype_promotion="strict"`, let no array change its dtype to meet another's."""
    if config.get("numpy_dtype_promotion") != "strict":
        return
    arrays = [dtype for dtype, weak in zip(own, weaks, strict=True) if not weak]
    for dtype in arrays:
        if dtype != common:
            others = ", ".join(map(str, own))
            raise TypePromotionError(
                f"{function}: operands of dtypes {others} have no common dtype under "
                f"numpy_dtype_promotion='strict'; convert {dtype} with .astype({common})"
            )


def promote(function: str, *values: Any, inexact: bool = False) -> list[Array]:
    """Operands of an elementwise operation: of one dtype, and one shape save 0-dimensional ones.

    Raises:
      ArgumentError: a value is neither an array nor a number.
      TypePromotionError: there is no common dtype.
      ShapeError: shapes do not broadcast.
    """
    return broadcast_operands(function, promote_dtypes(function, *values, inexact=inexact))


def broadcast_operands(function: str, operands: Sequence[Array]) -> list[Array]:
    """Operands broadcast to one shape; 0-dimensional ones stay as they are."""
    shape: Shape = ()
    for operand in operands:
        own = operand.type.shape
        if own and own is not shape:
            if shape and not same_shape(own, shape):
                break
            shape = own
    else:
        return list(operands)
    shapes = [operand.type.shape for operand in operands]
    shape = common_shape(function, shapes)
    if context.settings:
        _check_ranks(function, shapes)
    return [
        operand if not operand.type.shape else broadcast_array(operand, shape)
        for operand in operands
    ]


def _check_ranks(function: str, shapes: Sequence[Shape]) -> None:
    """Warn or raise, as `numpy_rank_promotion` says, where arrays of different ranks broadcast."""
    action = config.get("numpy_rank_promotion")
    if action == "allow" or len({len(shape) for shape in shapes if shape}) < 2:
        return
    listed = ", ".join(map(str, shapes))
    message = (
        f"{function}: operands of shapes {listed} differ in rank, and numpy_rank_promotion is "
        f"{action!r}; add the axes, as in x[None, :]"
    )
    if action == "raise":
        raise ShapeError(message)
    warn(message)


def same_shape(a: Shape, b: Shape) -> bool:
    """Whether two shapes are equal, symbolic sizes by structure."""
    return a is b or shape_key(a) == shape_key(b)


def broadcast_array(x: Array, shape: Shape) -> Array:
    """`x` repeated to `shape`, which must be what its own shape broadcasts to."""
    rank = len(shape)
    own = x.type.shape
    if same_shape(own, shape):
        return x
    return broadcast_in_dim(x, shape, range(rank - len(own), rank))


# --- arguments that many functions share ----------------------------------------------------------


def canonical_axis(function: str, axis: Any, rank: int) -> int:
    """An axis as a non-negative int.

    Raises:
      AxisError: it is out of range.
      ArgumentError: it is no integer.
    """
    try:
        index = axis.__index__()
    except AttributeError:
        raise ArgumentError(f"{function}: axis must be an integer, got {axis!r}") from None
    if not -rank <= index < rank:
        raise AxisError(
            f"{function}: axis {index} is out of range for an array of {rank} dimensions"
        )
    return index + rank if index < 0 else index


def canonical_axes(function: str, axis: Any, rank: int) -> tuple[int, ...]:
    """`axis` (None for all, an int or several) as distinct non-negative ints, in their order."""
    if axis is None:
        return tuple(range(rank))
    given = axis if isinstance(axis, tuple | list) else (axis,)
    axes = tuple([canonical_axis(function, a, rank) for a in given])
    if len(set(axes)) != len(axes):
        raise AxisError(f"{function}: an axis is given twice in axis={axis}")
    return axes


def canonical_shape(function: str, shape: Any) -> Shape:
    """A shape given as an int, a `Dim`, or a sequence of them.

    Raises:
      ShapeError: a size is negative or not an integer.
    """
    given = shape if isinstance(shape, tuple | list) else _sequence(shape)
    sizes: list[Any] = []
    for size in given:
        if type(size) is not int and not isinstance(size, dims.Dim):
            try:
                size = size.__index__()
            except AttributeError:
                raise ShapeError(
                    f"{function}: shapes are made of integers, got {size!r} in {shape!r}"
                ) from None
        if type(size) is int and size < 0:
            raise ShapeError(f"{function}: sizes must not be negative, got shape {shape!r}")
        sizes.append(size)
    return tuple(sizes)


def _sequence(shape: Any) -> Sequence[Any]:
    if isinstance(shape, int | dims.Dim) or not hasattr(shape, "__iter__"):
        return (shape,)
    if isinstance(shape, Array | np.ndarray) and not shape.shape:
        return (shape,)
    return tuple(shape)


def known_size(function: str, size: Size) -> int:
    """A size as an int, for functions whose result is worked out from it.

    Raises:
      SymbolicSizeError: it is symbolic.
    """
    if type(size) is int:
        return size
    raise SymbolicSizeError(f"{function} needs an axis of known size, but this one has size {size}")


def reject_out(function: str, out: Any) -> None:
    """Refuse NumPy's argument `out`, which would write to an array."""
    if out is not None:
        raise ArgumentError(f"{function}: out= is not supported, since arrays are immutable")


def require_real(function: str, x: Array) -> Array:
    """`x`, unless it is complex.

    Raises:
      DTypeError: it is.
    """
    if dtypes.is_complex(x.type.dtype):
        raise DTypeError(f"{function} is not defined for complex numbers, got {x.type}")
    return x


def expand_reduced(x: Array, axes: Sequence[int], rank: int) -> Array:
    """`x`, the result of a reduction, with the reduced axes back as size 1."""
    kept = iter(x.type.shape)
    return reshape(x, tuple([1 if axis in axes else next(kept) for axis in range(rank)]))
