"""Where core calls upward, as typed objects filled once at import.

`operators` gives Array its operators, indexing and methods (defined by `fxarray.numpy`), and the
interpreters the few operations that they name. `execution.execute` is how an eager call reaches a
device. `printing` is for core itself, whose printers import what they print.
`tests/core/test_hooks.py` checks that every field is filled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fxarray.core.array import Array
    from fxarray.core.ir import Program
    from fxarray.core.primitive import Primitive
    from fxarray.core.types import ArrayType


def _unfilled(*_: Any, **__: Any) -> Any:
    raise RuntimeError("fxarray.core is used before `import fxarray` has filled its hooks")


@dataclass
class Operators:
    """What `x + y`, `x[i]`, `x.at[i]` and the methods of an array do."""

    # Named by the interpreters.
    zeros: Callable[[ArrayType], Array] = _unfilled
    add_cotangents: Callable[[Array, Array], Array] = _unfilled
    move_axis: Callable[[Array, int, int], Array] = _unfilled
    broadcast_axis: Callable[[Array, Any, int], Array] = _unfilled
    # Conversion of anything array-like (NumPy arrays, Python scalars, nested lists).
    asarray: Callable[..., Array] = _unfilled
    # Python's operators: `binary[name](x, y)` may return NotImplemented.
    unary: dict[str, Callable[[Any], Any]] | None = None
    binary: dict[str, Callable[[Any, Any], Any]] | None = None
    getitem: Callable[[Array, Any], Array] = _unfilled
    at: Callable[[Array], Any] = _unfilled
    # Methods by name: `x.sum(...)` calls `methods["sum"](x, ...)`.
    methods: dict[str, Callable[..., Any]] | None = None

    def fill(self, **values: Any) -> None:
        for name, value in values.items():
            if name not in {field.name for field in fields(self)}:
                raise TypeError(f"there is no hook called {name!r}")
            setattr(self, name, value)


@dataclass
class Execution:
    """How operations on concrete arrays reach a device."""

    execute: Callable[[Primitive, Sequence[Any]], tuple[Array, ...]] = _unfilled
    # A small Program as a function of concrete arrays, to be called often.
    prepare: Callable[[Program], Callable[[Sequence[Any]], list[Any]]] = _unfilled


@dataclass
class Printing:
    """How Programs print; filled by what imports `core.ir`: `pretty` and `python_source`."""

    program: Callable[..., str] = _unfilled
    python: Callable[..., str] = _unfilled


operators = Operators()
printing = Printing()
execution = Execution()
