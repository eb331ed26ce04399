"""Arrays from and to files, buffers and other libraries, and as text."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import ml_dtypes
import numpy as np

from fxarray.core import dtypes
from fxarray.core.array import Array
from fxarray.core.errors import ArgumentError
from fxarray.numpy.conversion import array, asarray, place
from fxarray.numpy.promotion import ArrayLike, DTypeLike, from_numpy


def _numpy_dtype(dtype: DTypeLike) -> np.dtype[Any]:
    return dtypes.physical(dtypes.canonical(dtype))


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Array:
    """An array of another library through DLPack; its memory is copied.

    Args:
      x: an object with `__dlpack__`.
      device: where to put the array.
      copy: False is refused: memory that others may write to is never shared.
    """
    if copy is False:
        raise ArgumentError(
            "from_dlpack: copy=False is not possible, since the exporter may write to its memory "
            "later"
        )
    if isinstance(x, Array):
        return place("from_dlpack", array(x), device)
    return place("from_dlpack", from_numpy(np.from_dlpack(x)), device)


def frombuffer(buffer: Any, dtype: DTypeLike = float, count: int = -1, offset: int = 0) -> Array:
    """A vector from the bytes of a buffer.

    Args:
      buffer: bytes, or an object with the buffer protocol.
      dtype: the dtype of its elements.
      count: how many; -1 for all.
      offset: where to start, in bytes.
    """
    return from_numpy(np.frombuffer(buffer, _numpy_dtype(dtype), count, offset))


def fromfile(*args: Any, **kwargs: Any) -> Array:
    """`numpy.fromfile` as an array."""
    return asarray(np.fromfile(*args, **kwargs))


def fromiter(*args: Any, **kwargs: Any) -> Array:
    """`numpy.fromiter` as an array."""
    return asarray(np.fromiter(*args, **kwargs))


def fromstring(string: str, dtype: DTypeLike = float, count: int = -1, *, sep: str) -> Array:
    """A vector of the numbers in a text.

    Args:
      string: the text.
      dtype: the dtype of the elements.
      count: how many; -1 for all.
      sep: what stands between numbers.
    """
    return from_numpy(np.fromstring(string, _numpy_dtype(dtype), count, sep=sep))


# Files know NumPy's own dtypes only; the others are kept as their bits, and named.
_RENAMED = {
    name: np.dtype(getattr(ml_dtypes, name)) for name in dir(ml_dtypes) if name in dtypes.__all__
}


def load(file: Any, *args: Any, **kwargs: Any) -> Any:
    """An array, or a mapping from names to arrays, that `save` or `savez` wrote.

    Args:
      file: a path or an open file.
      args: further arguments of `numpy.load`.
      kwargs: further arguments of `numpy.load`.
    """
    loaded = np.load(file, *args, **kwargs)
    if isinstance(loaded, np.ndarray):
        return asarray(_restored(loaded))
    return {name: asarray(_restored(loaded[name])) for name in loaded.files}


def _restored(raw: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    if raw.dtype.names and len(raw.dtype.names) == 1 and raw.dtype.names[0] in _RENAMED:
        name = raw.dtype.names[0]
        return raw[name].view(_RENAMED[name])
    return raw


def _storable(value: Any) -> np.ndarray[Any, Any]:
    raw = np.asarray(asarray(value))
    name = raw.dtype.name
    if name in _RENAMED:
        bits = np.dtype(f"u{raw.dtype.itemsize}")
        return np.ascontiguousarray(raw).view(bits).view(np.dtype([(name, bits)]))
    return raw


def save(file: Any, arr: ArrayLike, allow_pickle: bool = True) -> None:
    """Write an array to a file in NumPy's format."""
    np.save(file, _storable(arr), allow_pickle=allow_pickle)


def savez(file: Any, *args: ArrayLike, allow_pickle: bool = True, **kwds: ArrayLike) -> None:
    """Write several arrays to one file in NumPy's format."""
    named = {name: _storable(value) for name, value in kwds.items()}
    np.savez(file, *map(_storable, args), allow_pickle=allow_pickle, **named)  # type: ignore[arg-type]


# --- text -----------------------------------------------------------------------------------------


def array_repr(
    arr: ArrayLike,
    max_line_width: int | None = None,
    precision: int | None = None,
    suppress_small: bool | None = None,
) -> str:
    """The text by which Python shows an array."""
    x = asarray(arr)
    if max_line_width is None and precision is None and suppress_small is None:
        return repr(x)
    options: dict[str, Any] = {
        "linewidth": max_line_width,
        "precision": precision,
        "suppress": suppress_small,
    }
    with np.printoptions(**{name: value for name, value in options.items() if value is not None}):
        return repr(x)


def array_str(
    a: ArrayLike,
    max_line_width: int | None = None,
    precision: int | None = None,
    suppress_small: bool | None = None,
) -> str:
    """The values of an array as text."""
    return np.array_str(np.asarray(asarray(a)), max_line_width, precision, suppress_small)


def set_printoptions(*args: Any, **kwargs: Any) -> None:
    """How arrays print; the options are NumPy's."""
    np.set_printoptions(*args, **kwargs)


def get_printoptions() -> dict[str, Any]:
    """How arrays print now."""
    return dict(np.get_printoptions())


@contextmanager
def printoptions(*args: Any, **kwargs: Any) -> Generator[dict[str, Any]]:
    """How arrays print inside a `with` block."""
    with np.printoptions(*args, **kwargs) as options:
        yield dict(options)
