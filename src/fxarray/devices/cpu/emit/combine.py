"""The combinations of `kernel.combiners` on values in registers."""

from __future__ import annotations

from collections.abc import Sequence

import ml_dtypes
import numpy as np

from fxarray.core import dtypes
from fxarray.devices.cpu.emit.constants import constant
from fxarray.devices.cpu.emit.function import FunctionText
from fxarray.devices.cpu.emit.scalars import apply
from fxarray.devices.cpu.emit.types import Value, is_complex, is_float
from fxarray.kernel.combiners import COMBINERS, Expression
from fxarray.kernel.operations import result_dtype


def combine(f: FunctionText, combiner: str, a: Sequence[Value], b: Sequence[Value]) -> list[Value]:
    """The states of an earlier part and of a later one, combined.

    Args:
      f: the function that is being written.
      combiner: its name.
      a: the states of the earlier part.
      b: the states of the later part.
    """
    known: dict[Expression, Value] = {}
    known.update({f"a{number}": state for number, state in enumerate(a)})
    known.update({f"b{number}": state for number, state in enumerate(b)})
    return [_evaluate(f, expression, known) for expression in COMBINERS[combiner].body]


def _evaluate(f: FunctionText, expression: Expression, known: dict[Expression, Value]) -> Value:
    found = known.get(expression)
    if found is not None:
        return found
    op, *operands = expression
    # A number takes the dtype of what it meets.
    values = [None if _is_number(leaf) else _evaluate(f, leaf, known) for leaf in operands]
    model = next(value for value in reversed(values) if value is not None)
    full = [
        constant(leaf, model.dtype, model.lanes) if value is None else value
        for leaf, value in zip(operands, values, strict=True)
    ]
    dtype = result_dtype(op, tuple([value.dtype for value in full]))
    result = known[expression] = apply(f, op, full, dtype)
    return result


def _is_number(leaf: Expression) -> bool:
    return isinstance(leaf, int | float | complex)


def identity(combiner: str, state: int, dtype: str, lanes: int = 1) -> Value:
    """What changes nothing when combined with it.

    Args:
      combiner: its name.
      state: the number of the state.
      dtype: the dtype of that state.
      lanes: of the value.
    """
    return constant(_identity(COMBINERS[combiner].identities[state], dtype), dtype, lanes)


def _identity(name: str, dtype: str) -> complex | float | int | bool:
    if name in ("zero", "one"):
        return 0 if name == "zero" else 1
    if name == "last_index":
        return 2**31 - 1
    if name == "all_ones":
        return True if dtype == "bool" else -1
    highest = name == "highest"
    if is_complex(dtype):
        infinity = np.inf if highest else -np.inf
        return complex(infinity, infinity)
    if is_float(dtype):
        return _extreme_float(dtype, highest)
    if dtype == "bool":
        return highest
    info = ml_dtypes.iinfo(dtypes.physical(dtypes.from_short_name(dtype)))
    return int(info.max if highest else info.min)


def _extreme_float(dtype: str, highest: bool) -> float:
    """Infinity, or the greatest number of formats without it."""
    numpy_dtype = dtypes.physical(dtypes.from_short_name(dtype))
    infinity = np.inf if highest else -np.inf
    if np.isinf(float(dtypes.cast(np.asarray(infinity), numpy_dtype))):
        return infinity
    info = ml_dtypes.finfo(numpy_dtype)
    return float(info.max if highest else info.min)
