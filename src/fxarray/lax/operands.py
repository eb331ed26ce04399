"""From what callers of `lax` pass to operands of primitives.

`lax` takes arrays, NumPy arrays and numbers. It neither promotes nor broadcasts, except that
0-dimensional operands go with any shape, and that weak operands (Python numbers, and what is
computed from them alone) take the dtype of the others where promotion would change no other.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from fxarray.core import dtypes
from fxarray.core.array import Array, DeviceArray
from fxarray.core.errors import ArgumentError
from fxarray.core.hooks import operators
from fxarray.core.types import ArrayType
from fxarray.primitives.convert import convert

ArrayLike: TypeAlias = "Array | np.ndarray[Any, Any] | np.generic | bool | int | float | complex"

SCALARS = (int, float, complex, np.generic)  # bool is an int


def as_operand(function: str, value: Any, position: int = 0) -> Array:
    """`value` as an Array.

    Args:
      function: whose argument it is, for the message.
      value: an array, a NumPy array or a number.
      position: which argument it is.

    Raises:
      ArgumentError: anything else.
    """
    if isinstance(value, Array):
        return value
    if isinstance(value, (np.ndarray, *SCALARS)) or hasattr(value, "__jax_array__"):
        return operators.asarray(value)
    hint = "; convert it with fxarray.numpy.asarray" if isinstance(value, list | tuple) else ""
    raise ArgumentError(
        f"lax.{function} takes arrays and numbers, but argument {position} is of type "
        f"{type(value).__name__}{hint}"
    )


def as_operands(function: str, *values: Any) -> list[Array]:
    """Operands that shall have one dtype: weak ones take that of the others.

    Where there is no such dtype they are returned as they are, and the operation's own type rule
    says what is wrong.

    Raises:
      ArgumentError: a value is neither an array nor a number.
    """
    found: list[Any] = []
    own: list[Any] = []
    weaks: list[bool] = []
    for position, value in enumerate(values):
        if isinstance(value, Array):
            own.append(value.type.dtype)
            weaks.append(value.type.weak)
        elif isinstance(value, SCALARS):
            dtype, weak = dtypes.scalar_dtype(value)
            own.append(dtype)
            weaks.append(weak)
        else:
            value = as_operand(function, value, position)
            own.append(value.type.dtype)
            weaks.append(value.type.weak)
        found.append(value)
    target = own[0]
    if any(dtype != target for dtype in own):
        strong = {dtype for dtype, weak in zip(own, weaks, strict=True) if not weak}
        target = None
        if len(strong) < 2 and all(map(dtypes.is_numeric, own)):
            target = dtypes.promote(own, weaks)[0]
            if strong and target not in strong:
                target = None
    results: list[Array] = []
    for value, dtype, weak in zip(found, own, weaks, strict=True):
        wanted = dtype if target is None else target
        if not isinstance(value, Array):
            buffer = dtypes.scalar_array(value, wanted)
            results.append(DeviceArray(buffer, ArrayType((), wanted, weak)))
        elif dtype != wanted:
            results.append(convert(value, wanted, weak))
        else:
            results.append(value)
    return results
