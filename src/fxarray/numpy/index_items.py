"""The parts of an index: what kinds there are, and which dimensions they take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fxarray.core import dims, dtypes
from fxarray.core.array import Array, DeviceArray
from fxarray.core.errors import (
    IndexingError,
    NonConcreteBooleanIndexError,
    TracerArrayConversionError,
)
from fxarray.core.hooks import operators
from fxarray.core.tracer import Tracer
from fxarray.core.types import ArrayType, Shape, shape_key


def as_items(index: Any) -> tuple[Any, ...]:
    """An index as a tuple of ints, `Dim`s, slices, None, Ellipsis, bools, NumPy arrays and Arrays.

    Raises:
      IndexingError: part of it is nothing of the kind.
    """
    given: tuple[Any, ...] = index if isinstance(index, tuple) else (index,)
    return tuple([_as_item(item) for item in given])


def _as_item(item: Any) -> Any:
    kind = type(item)
    if kind in _PLAIN or isinstance(item, dims.Dim):
        return item
    if isinstance(item, np.bool_):
        return bool(item)
    if isinstance(item, Array):
        dtype = item.type.dtype
        if not dtypes.is_integer(dtype) and not dtypes.is_bool(dtype):
            raise _wrong_dtype(item.type)
        return item
    if isinstance(item, list):
        item = _from_list(item)
        if isinstance(item, Array):
            return _as_item(item)
    if isinstance(item, np.ndarray):
        if item.dtype.kind not in "iub":
            raise _wrong_dtype(ArrayType(item.shape, item.dtype))
        return item[()].item() if item.ndim == 0 else item
    try:
        return item.__index__()
    except (AttributeError, TypeError):
        raise IndexingError(
            f"an index of type {kind.__name__} ({item!r}) is not possible; indices are integers, "
            f"slices, None, ..., and arrays of integers or bools"
        ) from None


_PLAIN = frozenset((int, bool, slice, type(None), type(Ellipsis)))


def _wrong_dtype(type: ArrayType) -> IndexingError:
    return IndexingError(
        f"indices must be integers or bools, got an array of type {type}; cast it with .astype(int)"
    )


def _from_list(item: list[Any]) -> Any:
    if any(isinstance(entry, slice | type(None) | type(Ellipsis)) for entry in item):
        raise IndexingError(
            f"a list is an array of indices, and cannot hold slices, None or ...: {item!r}. "
            f"Use a tuple: x[tuple(index)]"
        )
    try:
        array = np.asarray(item)
    except TracerArrayConversionError:
        return operators.asarray(item)
    return array.astype(np.int32) if array.size == 0 else array


def concrete_mask(mask: Any) -> np.ndarray[Any, Any] | None:
    """The values of a bool index array, None if they are not known yet."""
    if isinstance(mask, Tracer):
        mask = mask.concrete()
    return mask.numpy_view() if isinstance(mask, DeviceArray) else mask


def is_mask(item: Any) -> bool:
    """Whether an item is a bool array (of at least one dimension)."""
    if isinstance(item, Array):
        return dtypes.is_bool(item.type.dtype)
    return isinstance(item, np.ndarray) and item.dtype == np.bool_


def expand_ellipsis(items: Sequence[Any], shape: Shape) -> list[Any]:
    """Items that index every dimension: `...`, and what is missing at the end, become `:`.

    An ellipsis that stands for nothing stays, since it still separates what stands around it.

    Raises:
      IndexingError: there are too many indices, or several ellipses.
    """
    consumed = 0
    ellipsis: int | None = None
    for position, item in enumerate(items):
        if item is Ellipsis:
            if ellipsis is not None:
                raise IndexingError("an index can only have a single ellipsis ('...')")
            ellipsis = position
        elif is_mask(item):
            consumed += item.ndim
        elif item is not None and type(item) is not bool:
            consumed += 1
    missing = len(shape) - consumed
    if missing < 0:
        raise IndexingError(
            f"too many indices: {consumed} for an array of {len(shape)} dimensions (shape {shape})"
        )
    whole = [slice(None)] * missing
    if ellipsis is None:
        return [*items, *whole]
    return [*items[:ellipsis], *(whole or [Ellipsis]), *items[ellipsis + 1 :]]


# --- masks ----------------------------------------------------------------------------------------


def mask_positions(mask: Any, shape: Shape) -> tuple[Any, ...]:
    """The positions at which a mask is true, as one integer array per dimension.

    Raises:
      IndexingError: the mask has another shape.
      NonConcreteBooleanIndexError: the mask is traced.
    """
    check_mask(mask, shape)
    values = concrete_mask(mask)
    if values is None:
        raise NonConcreteBooleanIndexError(
            f"a traced bool array ({mask.type}) is used as an index, but the size of the result "
            f"would depend on its values. Use fxarray.numpy.where(mask, x, fill), "
            f"x.at[mask].set(value) with one value for all, or fxarray.numpy.nonzero(mask, size=n)."
        )
    return tuple([column.astype(np.int32) for column in np.nonzero(values)])


def check_mask(mask: Any, shape: Shape) -> None:
    """Raise unless a mask has the sizes of the dimensions that it masks."""
    if shape_key(mask.shape) != shape_key(shape):
        raise IndexingError(
            f"a bool index of shape {tuple(mask.shape)} does not fit the dimensions that it masks, "
            f"of sizes {shape}"
        )
