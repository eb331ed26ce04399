"""The commonest reads and updates of concrete arrays, done by NumPy at once.

Each function returns None where it does not apply; the way through primitives, which takes all
cases and says what is wrong, is tested against the same expectations.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fxarray.core.array import Array, DeviceArray
from fxarray.core.context import context
from fxarray.core.types import ArrayType
from fxarray.primitives.support import quietly

# The type of x[i] by the type of x, for integers.
_ROW_TYPES: dict[ArrayType, ArrayType] = {}
_ROW_TYPES_LIMIT = 10_000
_PLAIN = frozenset((int, slice, type(None), type(Ellipsis)))
_PLAIN_BOUNDS = frozenset((int, type(None)))
_UFUNCS: dict[str, Any] = {
    "add": np.add,
    "multiply": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
}


def row_type(type: ArrayType) -> ArrayType:
    """The type of `x[i]` for an integer i."""
    known = _ROW_TYPES.get(type)
    if known is None:
        if len(_ROW_TYPES) >= _ROW_TYPES_LIMIT:
            _ROW_TYPES.clear()
        known = _ROW_TYPES[type] = ArrayType(type.shape[1:], type.dtype, type.weak)
    return known


def is_plain(index: tuple[Any, ...]) -> bool:
    """Whether an index is all ints, slices of ints, None and `...`: those NumPy takes as we do."""
    for item in index:
        kind = type(item)
        if kind not in _PLAIN:
            return False
        if kind is slice and not (
            type(item.start) in _PLAIN_BOUNDS
            and type(item.stop) in _PLAIN_BOUNDS
            and type(item.step) in _PLAIN_BOUNDS
        ):
            return False
    return True


def read_box(x: DeviceArray, buffer: Any, index: tuple[Any, ...]) -> DeviceArray | None:
    """`x[index]` for a plain index: a view."""
    try:
        view = buffer[index if Ellipsis in index else (*index, ...)]
    except (IndexError, ValueError):
        return None
    own = x.type
    return DeviceArray(view, ArrayType(view.shape, own.dtype, own.weak))


def read_positions(x: DeviceArray, buffer: Any, index: DeviceArray) -> DeviceArray | None:
    """`x[index]` for one concrete index array."""
    shape = buffer.shape
    given = index.numpy_view()
    own = x.type
    if given.dtype == np.bool_:
        if not given.ndim or given.shape != shape[: given.ndim]:
            return None
        values = buffer[given]
        return DeviceArray(values, ArrayType(values.shape, own.dtype, own.weak))
    if not shape or not shape[0]:
        return None
    positions = _from_start(given, shape[0])
    if positions is None:
        return None
    values = np.asarray(buffer.take(positions, 0, mode="clip"))
    return DeviceArray(values, ArrayType(values.shape, own.dtype, own.weak))


def _from_start(given: Any, size: int) -> Any:
    """Positions in which negative ones are counted from the end."""
    if given.dtype.kind not in "iu" or given.dtype == np.uint64:
        return None
    positions = given.astype(np.intp)
    negative = positions < 0
    return positions + negative * size if negative.any() else positions


def update_at_once(kind: str, x: Array, index: Any, values: Any) -> DeviceArray | None:
    """`x.at[index].set(values)`, or another kind of update, without options."""
    if type(x) is not DeviceArray or context.staging is not None:
        return None
    own = x.type
    dtype: Any = own.dtype
    buffer = x.numpy_view()
    if type(values) is DeviceArray:
        if values.type.dtype is not dtype and values.type.dtype != dtype:
            return None
        value: Any = values.numpy_view()
    elif not _fits(values, dtype):
        return None
    elif kind == "set":
        value = values
        if type(index) is int and buffer.ndim and -buffer.shape[0] <= index < buffer.shape[0]:
            result = buffer.copy()
            result[index] = value
            return DeviceArray(result, own)
    else:
        value = np.array(values, dtype)
    if kind != "set" and (dtype.kind not in "iuf" or dtype.itemsize < 4):
        return None  # narrow sums are carried in a wider dtype
    if type(index) is int:
        shape = buffer.shape
        if not shape or not -shape[0] <= index < shape[0]:
            return None
        where: Any = (index,)
        result = buffer.copy()
    elif type(index) is DeviceArray:
        return _update_positions(kind, own, buffer, index.numpy_view(), value)
    else:
        where = index if type(index) is tuple else (index,)
        if not is_plain(where):
            return None
        result = buffer.copy()
    try:
        part = result[where if Ellipsis in where else (*where, ...)]
        if type(values) is DeviceArray and value.ndim and value.shape != part.shape:
            return None
        if kind == "set":
            part[...] = value
        else:
            quietly(_UFUNCS[kind], (part, value, part))
    except (IndexError, ValueError):
        return None
    return DeviceArray(result, own)


def _fits(value: Any, dtype: Any) -> bool:
    """Whether a value is a Python number that NumPy would put into an array without a warning."""
    kind = type(value)
    if kind is float:
        return dtype.kind == "f" and dtype.itemsize > 2 and -3e38 < value < 3e38
    if kind is int:
        return dtype.kind in "if" and dtype.itemsize > 2 and -(2**31) <= value < 2**31
    return kind is bool and dtype.kind == "b"


def _update_positions(
    kind: str, own: ArrayType, buffer: Any, given: Any, value: Any
) -> DeviceArray | None:
    shape = buffer.shape
    if not shape:
        return None
    positions = _from_start(given, shape[0])
    rank = getattr(value, "ndim", 0)
    if positions is None or (rank and value.shape != positions.shape + shape[1:]):
        return None
    inside = (positions >= 0) & (positions < shape[0])
    if not inside.all():
        value = value[inside] if rank else value
        positions = positions[inside]
    result = buffer.copy()
    if kind == "set":
        result[positions] = value
    else:
        quietly(_UFUNCS[kind].at, (result, positions, value))
    return DeviceArray(result, own)
