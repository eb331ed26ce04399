"""asarray and array: Arrays from anything that holds numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from fxarray.core import dims, dtypes
from fxarray.core.array import Array, DeviceArray
from fxarray.core.context import context
from fxarray.core.dtypes import DType
from fxarray.core.errors import ArgumentError, ShapeError
from fxarray.core.types import ArrayType
from fxarray.devices.placement import device_put
from fxarray.numpy.promotion import ArrayLike, DTypeLike, Scalar, from_numpy
from fxarray.primitives.convert import convert
from fxarray.primitives.convert import copy as copy_elements
from fxarray.primitives.joining import concatenate
from fxarray.primitives.movement import broadcast_axis, reshape
from fxarray.primitives.sizes import size_value

_PYTHON_NUMBERS = frozenset((bool, int, float, complex))


def asarray(
    a: Any,
    dtype: DTypeLike = None,
    order: str | None = None,
    *,
    copy: bool | None = None,
    device: Any = None,
    out_sharding: Any = None,
) -> Array:
    """`a` as an Array.

    Arrays are returned as they are where nothing changes. NumPy's memory is always copied, since it
    may be written to later. Python numbers become weak 32-bit scalars; lists of them strong 32-bit
    arrays; NumPy arrays keep their dtype.

    Args:
      a: an array, a number, nested lists of them, or an object with `__jax_array__`, `__array__`,
        `__dlpack__` or the buffer protocol.
      dtype: the result's dtype; default: that of the values.
      order: only "C" and "K" (None) are accepted; arrays have no other memory order.
      copy: True to copy an Array too; False to raise where a copy is needed.
      device: where to put the array.
      out_sharding: how to split it over a mesh.

    Raises:
      ArgumentError: `a` holds no numbers, rows have different lengths, or copy=False is impossible.
      OverflowError: a Python integer does not fit its dtype.

    >>> import fxarray.numpy as fnp
    >>> fnp.asarray([1, 2.5])
    Array([1. , 2.5], dtype=float32)
    """
    if type(a) is DeviceArray and dtype is None and order is None and not copy:
        return place("asarray", a, device, out_sharding)
    if order not in (None, "C", "K", "A"):
        raise ArgumentError(f"asarray: order={order!r} is not supported; arrays are in C order")
    target = None if dtype is None else dtypes.canonical(dtype)
    if isinstance(a, Array):
        changed = target is not None and target != a.type.dtype
        if changed and copy is False:
            raise ArgumentError(f"asarray: copy=False, but {a.type} to {dtype} needs a copy")
        array = a if target is None else cast_to(a, target)
        if copy and not changed:
            array = copy_elements(array)
    elif copy is False:
        raise ArgumentError(
            f"asarray: copy=False, but the values of a {type(a).__name__} must be copied"
        )
    else:
        array = _from_anything(a, target)
    return place("asarray", array, device, out_sharding)


def array(
    object: Any,
    dtype: DTypeLike = None,
    copy: bool = True,
    order: str | None = "K",
    ndmin: int = 0,
    *,
    device: Any = None,
    out_sharding: Any = None,
) -> Array:
    """`asarray` that copies, so that its result owns its memory, and can add leading axes.

    Args:
      object: as for `asarray`.
      dtype: the result's dtype.
      copy: whether an Array is copied.
      order: "K" or "C".
      ndmin: the least number of dimensions; axes of size 1 are put in front.
      device: where to put the array.
      out_sharding: how to split it over a mesh.

    >>> import fxarray.numpy as fnp
    >>> fnp.array([[1, 2], [3, 4]], dtype=float).shape
    (2, 2)
    """
    keep = copy and isinstance(object, Array)
    result = asarray(
        object, dtype, order, copy=keep or None, device=device, out_sharding=out_sharding
    )
    missing = ndmin - result.ndim
    return reshape(result, (1,) * missing + result.shape) if missing > 0 else result


def copy(a: ArrayLike, order: str | None = None) -> Array:
    """A copy of an array, in memory of its own.

    Args:
      a: anything that `asarray` takes.
      order: "C" or "K"; arrays have no other memory order.
    """
    return asarray(a, order=order, copy=True if isinstance(a, Array) else None)


def cast_to(x: Array, dtype: DType) -> Array:
    """`x` in `dtype`, and no longer weak."""
    if x.type.dtype == dtype and not x.type.weak:
        return x
    return convert(x, dtype)


def place(function: str, x: Array, device: Any, out_sharding: Any = None) -> Array:
    """`x` on a device or sharding; None leaves it where it is."""
    if device is None and out_sharding is None:
        return x
    if device is not None and out_sharding is not None:
        raise ArgumentError(f"{function}: give device or out_sharding, not both")
    return device_put(x, out_sharding if device is None else device)


def _from_anything(a: Any, dtype: DType | None) -> Array:
    if isinstance(a, Scalar):
        own, weak = dtypes.scalar_dtype(a)
        buffer = dtypes.scalar_array(a, own if dtype is None else dtype)
        if dtype is None:
            return DeviceArray(buffer, ArrayType((), own, weak))
        return DeviceArray(buffer, ArrayType((), dtype))
    if isinstance(a, np.ndarray):
        result = from_numpy(a)
        return result if dtype is None else cast_concrete(result, dtype)
    if isinstance(a, list | tuple):
        return _from_sequence(a, dtype)
    if isinstance(a, dims.Dim):
        return size_value(a) if dtype is None else convert(size_value(a), dtype)
    convertible = getattr(a, "__jax_array__", None)
    if convertible is not None:
        return asarray(convertible(), dtype=dtype)
    if isinstance(a, str | bytes) or a is None:
        raise ArgumentError(f"asarray: {a!r} is not a number or an array of numbers")
    if hasattr(a, "__array__") or hasattr(a, "__array_interface__"):
        return _from_anything(np.asarray(a), dtype)
    if hasattr(a, "__dlpack__"):
        return _from_anything(np.from_dlpack(a), dtype)
    if isinstance(a, memoryview | bytearray) or hasattr(a, "typecode"):
        return _from_anything(np.asarray(memoryview(a)), dtype)
    if isinstance(a, Iterable) and hasattr(a, "__len__") and hasattr(a, "__getitem__"):
        return _from_sequence(list(a), dtype)
    raise ArgumentError(
        f"asarray: cannot make an array of a {type(a).__name__}; pass an array, a number, or "
        "nested "
        f"lists of numbers"
    )


def cast_concrete(x: DeviceArray, dtype: DType) -> DeviceArray:
    """`x` cast now, also while tracing."""
    if x.type.dtype == dtype:
        return x
    return DeviceArray(dtypes.cast(x.numpy_view(), dtype), ArrayType(x.shape, dtype))


# --- nested lists ---------------------------------------------------------------------------------


def _leaf_types(values: Sequence[Any], found: set[type]) -> None:
    """Collect the types of all leaves of nested lists and tuples."""
    kinds = set(map(type, values))
    found |= kinds - {list, tuple}
    if list in kinds or tuple in kinds:
        for value in values:
            if type(value) is list or type(value) is tuple:
                _leaf_types(value, found)


def _from_sequence(values: Sequence[Any], dtype: DType | None) -> Array:
    kinds: set[type] = set()
    _leaf_types(values, kinds)
    if kinds <= _PYTHON_NUMBERS:
        return _from_numbers(values, kinds, dtype)
    if dtype is None:
        found: list[tuple[DType, bool]] = []
        _leaf_dtypes(values, found)
        dtype = dtypes.promote([d for d, _ in found], [weak for _, weak in found])[0]
    return _stack_nested(values, dtype)


def _from_numbers(values: Sequence[Any], kinds: set[type], dtype: DType | None) -> Array:
    try:
        raw = np.array(values)
    except (ValueError, OverflowError) as error:
        raise ArgumentError(f"asarray: {_regular_or_else(values, error)}") from None
    if raw.dtype.kind == "O":
        raise OverflowError("asarray: an integer in the list does not fit 64 bits")
    own = _widest(kinds) if dtype is None else dtype
    if dtypes.is_integer(own) and raw.dtype.kind in "iu" and raw.size:
        for extreme in (raw.min(), raw.max()):
            dtypes.scalar_array(int(extreme), own)  # raises the error that names the remedy
    return DeviceArray(dtypes.cast(raw, own), ArrayType(raw.shape, own))


def _widest(kinds: set[type]) -> DType:
    for kind in (complex, float, int):
        if kind in kinds:
            return dtypes.canonical(kind)
    return dtypes.bool_ if kinds else dtypes.float32


def _regular_or_else(values: Sequence[Any], error: Exception) -> str:
    lengths = {len(v) if isinstance(v, list | tuple) else None for v in values}
    if len(lengths) > 1:
        described = ", ".join("a number" if n is None else f"a list of {n}" for n in lengths)
        return f"rows of a nested list must have one length, but there are {described}"
    return str(error)


def _leaf_dtypes(values: Sequence[Any], found: list[tuple[DType, bool]]) -> None:
    for value in values:
        if isinstance(value, list | tuple):
            _leaf_dtypes(value, found)
        elif isinstance(value, Array):
            found.append((value.type.dtype, value.type.weak))
        elif isinstance(value, Scalar):
            found.append(dtypes.scalar_dtype(value))
        else:
            found.append((_from_anything(value, None).type.dtype, False))


def _stack_nested(values: Sequence[Any], dtype: DType) -> Array:
    parts: list[Array] = []
    for value in values:
        if isinstance(value, list | tuple):
            parts.append(_stack_nested(value, dtype))
        elif isinstance(value, Array):
            parts.append(cast_to(value, dtype))
        else:
            parts.append(_from_anything(value, dtype))
    if not parts:
        return DeviceArray(np.empty((0,), dtypes.physical(dtype)), ArrayType((0,), dtype))
    shape = parts[0].type.shape
    for position, part in enumerate(parts):
        if part.type.shape != shape:
            raise ShapeError(
                f"asarray: all elements of a list must have one shape, but element 0 has {shape} "
                "and "
                f"element {position} has {part.type.shape}"
            )
    if context.staging is None and all(type(part) is DeviceArray for part in parts):
        buffer = np.stack([part.numpy_view() for part in parts])  # type: ignore[attr-defined]
        return DeviceArray(buffer, ArrayType(buffer.shape, dtype))
    return concatenate([broadcast_axis(part, 1, 0) for part in parts], 0)
