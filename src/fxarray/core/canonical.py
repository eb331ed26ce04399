"""Keys that tell apart what Python's == confuses, for the parameters of operations."""

from __future__ import annotations

import struct
from collections.abc import Hashable
from functools import partial
from typing import Any

import numpy as np

from fxarray.core.dims import Dim


def canonical_key(value: Any) -> Hashable:
    """A hashable stand-in for a parameter that tells apart what Python's == confuses."""
    kind = type(value)
    if kind is int or kind is str or value is None:
        return value
    if kind is tuple or kind is list:
        return (kind.__name__, *map(canonical_key, value))
    if kind is bool:
        return ("bool", value)
    if kind is float:
        return ("float", b"nan" if value != value else struct.pack("<d", value))
    if kind is complex:
        return ("complex", canonical_key(value.real), canonical_key(value.imag))
    if isinstance(value, (np.ndarray, np.generic)):
        array = np.asarray(value)
        return ("array", array.dtype.str, array.dtype.name, array.shape, array.tobytes())
    if kind is dict:
        return ("dict", *((canonical_key(k), canonical_key(v)) for k, v in value.items()))
    if kind is slice:
        return ("slice", value.start, value.stop, value.step)
    if isinstance(value, Dim):  # compares by meaning, which may be undecided
        return (kind, value.key)
    if kind is partial:
        return (
            "partial",
            canonical_key(value.func),
            canonical_key(value.args),
            canonical_key(value.keywords),
        )
    return value
