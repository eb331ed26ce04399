"""Types for annotations: what functions of arrays take."""

from typing import Any, TypeAlias

import numpy as np

from fxarray.core.array import Array

ArrayLike: TypeAlias = Array | np.ndarray[Any, Any] | np.generic | bool | int | float | complex
"""What converts to an array: arrays, NumPy arrays and scalars, Python numbers."""

DTypeLike: TypeAlias = Any
"""What names a dtype: a NumPy dtype, a string, a scalar type such as `fxarray.numpy.float32`."""

__all__ = ["Array", "ArrayLike", "DTypeLike"]
