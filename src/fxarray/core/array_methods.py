"""The methods of Array: `x.sum(axis)` is `fxarray.numpy.sum(x, axis)`, and so on."""

from __future__ import annotations

from typing import Any

from fxarray.core import hooks

_operators = hooks.operators


class ArrayMethods:
    """Methods that every array has, each defined by the function of that name."""

    __slots__ = ()

    def _call(self, name: str, *args: Any, **kwargs: Any) -> Any:
        return _operators.methods[name](self, *args, **kwargs)  # type: ignore[index]

    def sum(self, axis: Any = None, dtype: Any = None, **kwargs: Any) -> Any:
        return self._call("sum", axis=axis, dtype=dtype, **kwargs)

    def any(self, axis: Any = None, **kwargs: Any) -> Any:
        return self._call("any", axis=axis, **kwargs)

    def round(self, decimals: int = 0) -> Any:
        return self._call("round", decimals)
