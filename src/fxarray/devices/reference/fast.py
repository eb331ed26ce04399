"""Operators of concrete arrays, without the way through promotion, traces and rules.

`x + y` on small arrays costs what Python spends around NumPy's addition. The general way finds the
result's type; it is taken once for each pair of operand types, and what it gave is remembered, so
that later calls are one look-up and one NumPy call. While something is staged or a setting is
changed, and for all operands that are not in the tables, everything goes the general way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fxarray.core import dtypes
from fxarray.core.array import Array, DeviceArray
from fxarray.core.caches import register_cache
from fxarray.core.context import context
from fxarray.core.tracebacks import shorten
from fxarray.core.types import ArrayType
from fxarray.primitives.support import ERROR_STATE, IGNORE

_LIMIT = 10_000
_set_errors, _reset_errors = ERROR_STATE.set, ERROR_STATE.reset
_ndarray, _asarray = np.ndarray, np.asarray

# NumPy computes these dtypes as we define them, in every operation below.
_FLOATS = frozenset((dtypes.float32, dtypes.float64))
_INEXACT = _FLOATS | {dtypes.complex64, dtypes.complex128}
_INTEGERS = frozenset(
    (
        *(dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64),
        *(dtypes.uint8, dtypes.uint16, dtypes.uint32, dtypes.uint64),
    )
)
_NUMBERS = _INEXACT | _INTEGERS
_REAL = _FLOATS | _INTEGERS
# Integers that fit all of these are the same number to NumPy and to us.
_WIDE = _INEXACT | {dtypes.int32, dtypes.int64}
_LOW, _HIGH = -(2**31), 2**31 - 1

# Remembered result types, by operator and operand types; a number's type is its class.
_TABLES: list[dict[Any, ArrayType]] = []


def _is_plain(type: ArrayType) -> bool:
    return type.is_static and type.spec is None and not type.unreduced and not type.varying


def _remember(table: dict[Any, ArrayType], key: Any, result: Any) -> None:
    if type(result) is DeviceArray and _is_plain(result.type):
        if len(table) >= _LIMIT:
            table.clear()
        table[key] = result.type


def _binary(
    name: str, function: Callable[..., Any], accepted: frozenset[Any], reflected: bool
) -> Callable[[Any, Any], Any]:
    """An operator's method for concrete arrays.

    Args:
      name: of the general method.
      function: NumPy's function.
      accepted: the dtypes for which it is ours.
      reflected: whether the method is given its operands in reverse.
    """
    general = getattr(Array, name)
    table: dict[Any, ArrayType] = {}
    _TABLES.append(table)
    find = table.get
    by_int, by_float = accepted & _WIDE, accepted & _INEXACT

    def learn(self: Any, other: Any) -> Any:
        result = general(self, other)
        own = self.type
        if own.dtype not in accepted or not _is_plain(own) or context.settings:
            return result
        kind = type(other)
        if kind is DeviceArray:
            if other.type.dtype == own.dtype and _is_plain(other.type):
                _remember(table, (own, other.type), result)
        elif own.dtype in (by_float if kind is float else by_int if kind is int else ()):
            _remember(table, (own, kind), result)
        return result

    def operate(self: Any, other: Any) -> Any:
        try:
            kind = type(other)
            if kind is DeviceArray:
                found = find((self.type, other.type))
            elif kind is float or (kind is int and _LOW <= other <= _HIGH):
                found = find((self.type, kind))
            else:
                return general(self, other)
            state = context
            if state.staging is not None or state.settings:
                return general(self, other)
            if found is None:
                return learn(self, other)
            try:
                x = self._np
                y = other._np if kind is DeviceArray else other
            except AttributeError:
                return general(self, other)  # says which one is deleted
            token = _set_errors(IGNORE)
            try:
                values = function(y, x) if reflected else function(x, y)
            finally:
                _reset_errors(token)
            if type(values) is not _ndarray:
                values = _asarray(values)
            return DeviceArray(values, found)
        except Exception as error:
            shorten(error)
            raise

    operate.__name__ = name
    return operate


def _unary(
    name: str, function: Callable[..., Any], accepted: frozenset[Any]
) -> Callable[[Any], Any]:
    general = getattr(Array, name)
    table: dict[Any, ArrayType] = {}
    _TABLES.append(table)
    find = table.get

    def operate(self: Any) -> Any:
        try:
            found = find(self.type)
            state = context
            if state.staging is not None or state.settings:
                return general(self)
            if found is None:
                result = general(self)
                if self.type.dtype in accepted:
                    _remember(table, self.type, result)
                return result
            try:
                x = self._np
            except AttributeError:
                return general(self)
            token = _set_errors(IGNORE)
            try:
                values = function(x)
            finally:
                _reset_errors(token)
            if type(values) is not _ndarray:
                values = _asarray(values)
            return DeviceArray(values, found)
        except Exception as error:
            shorten(error)
            raise

    operate.__name__ = name
    return operate


_ARITHMETIC: dict[str, tuple[Callable[..., Any], frozenset[Any]]] = {
    "add": (np.add, _NUMBERS),
    "sub": (np.subtract, _NUMBERS),
    "mul": (np.multiply, _NUMBERS),
    "truediv": (np.true_divide, _FLOATS),
}
_COMPARISONS: dict[str, tuple[Callable[..., Any], frozenset[Any]]] = {
    "eq": (np.equal, _NUMBERS),
    "ne": (np.not_equal, _NUMBERS),
    "lt": (np.less, _REAL),
    "le": (np.less_equal, _REAL),
    "gt": (np.greater, _REAL),
    "ge": (np.greater_equal, _REAL),
}
_UNARY: dict[str, tuple[Callable[..., Any], frozenset[Any]]] = {
    "neg": (np.negative, _NUMBERS),
    "abs": (np.absolute, _FLOATS),
}


def install() -> None:
    """Give concrete arrays these operators."""
    for name, (function, accepted) in _ARITHMETIC.items():
        for method, reflected in ((f"__{name}__", False), (f"__r{name}__", True)):
            setattr(DeviceArray, method, _binary(method, function, accepted, reflected))
    for name, (function, accepted) in _COMPARISONS.items():
        method = f"__{name}__"
        setattr(DeviceArray, method, _binary(method, function, accepted, False))
    for name, (function, accepted) in _UNARY.items():
        method = f"__{name}__"
        setattr(DeviceArray, method, _unary(method, function, accepted))


@register_cache
def clear() -> None:
    """Forget all remembered types."""
    for table in _TABLES:
        table.clear()


install()
