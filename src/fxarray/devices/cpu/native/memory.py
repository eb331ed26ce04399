"""Memory for arrays."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

ALIGNMENT = 64


def empty(shape: tuple[int, ...], dtype: Any) -> np.ndarray[Any, Any]:
    """An array with arbitrary values whose memory starts at a multiple of 64 bytes."""
    size = prod(shape) * np.dtype(dtype).itemsize
    raw = np.empty(size + ALIGNMENT, np.uint8)
    start = -raw.ctypes.data % ALIGNMENT
    return raw[start : start + size].view(dtype).reshape(shape)
