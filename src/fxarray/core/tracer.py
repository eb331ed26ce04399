"""Trace and Tracer: how a transformation sees the operations of a function.

A Trace interprets each operation that touches its Tracers. A Tracer is an Array (`isinstance` says
so), without a buffer of its own; what it holds depends on the trace: `jvp` and `grad` hold values
and tangents, `vmap` a value with one axis more, staging only a type.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from fxarray.core.array import Array
from fxarray.core.errors import (
    NonDifferentiableError,
    TracerArrayConversionError,
    TracerBoolConversionError,
    TracerIntegerConversionError,
    UnexpectedTracerError,
)

if TYPE_CHECKING:
    from fxarray.core.primitive import Primitive


class Trace:
    """The interpretation of operations by one transformation, while it runs."""

    __slots__ = ("__weakref__", "alive", "level")
    kind = "trace"

    def __init__(self) -> None:
        self.level = 0
        self.alive = True

    def process(self, op: Primitive, operands: Sequence[Any]) -> tuple[Any, ...]:
        """Apply `op`; at least one operand (or a named axis of `op`) belongs to this trace."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"<{type(self).__name__} level {self.level}{'' if self.alive else ', ended'}>"


class Tracer(Array):
    """A value inside a transformation."""

    __slots__ = ("_trace",)
    _trace: Trace

    def concrete(self) -> Any:
        """The concrete array that this tracer stands for, or None where there is none."""
        return None

    @property
    def origin(self) -> str:
        """A sentence about where this tracer was made, for error messages."""
        return ""

    def _explain(self) -> str:
        text = f"the value has type {self.type} and is traced by {self._trace.kind}"
        return f"{text}; {self.origin}" if self.origin else text

    def check_alive(self) -> None:
        """Raise UnexpectedTracerError if the transformation that made this tracer has ended."""
        if not self._trace.alive:
            raise leaked(self)

    def __bool__(self) -> bool:
        value = self.concrete()
        if value is not None:
            return bool(value)
        self.check_alive()
        raise TracerBoolConversionError(
            f"a traced value was used as a Python bool, as in `if`, `while` or `and`: "
            f"{self._explain()}. Use fxarray.lax.cond, lax.while_loop or fxarray.numpy.where; or "
            f"mark the argument that it depends on as static (static_argnums)."
        )

    def _as_number(self, convert: Any, name: str) -> Any:
        value = self.concrete()
        if value is not None:
            return convert(value)
        self.check_alive()
        raise TracerIntegerConversionError(
            f"a traced value was given to {name}(), which needs a concrete value (as do range(), "
            f"shapes and list indices): {self._explain()}. Use fxarray.lax.fori_loop for a loop, "
            f"x.astype() for a cast, or mark the argument that it depends on as static."
        )

    def __int__(self) -> int:
        return self._as_number(int, "int")

    def __index__(self) -> int:
        value = self.concrete()
        if value is not None:
            return value.__index__()
        return self._as_number(int, "__index__")

    def __float__(self) -> float:
        return self._as_number(float, "float")

    def __complex__(self) -> complex:
        return self._as_number(complex, "complex")

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        # Derivatives must not be lost silently, so value-carrying tracers refuse as well.
        self.check_alive()
        raise TracerArrayConversionError(
            f"NumPy was asked to convert a traced value: {self._explain()}. Use the function of "
            f"the same name in fxarray.numpy, or fxarray.pure_callback to call NumPy at run time."
        )

    def item(self, *args: Any) -> Any:
        value = self.concrete()
        if value is not None:
            return value.item(*args)
        return self._as_number(None, "item")

    def tolist(self) -> Any:
        value = self.concrete()
        if value is not None:
            return value.tolist()
        return self._as_number(None, "tolist")

    def __repr__(self) -> str:
        value = self.concrete()
        inside = "" if value is None else f", value={value!r}"
        return f"Tracer<{self.type}, {self._trace.kind}{inside}>"


def check_closure(trace: Trace, op: Primitive, results: Sequence[Any]) -> None:
    """Raise if a custom rule of `op` closed over a value that `trace` differentiates."""
    for result in results:
        if isinstance(result, Tracer) and result._trace is trace:
            raise NonDifferentiableError(
                f"{op.name}: the function or its rule closes over a value of type {result.type} "
                f"that is being differentiated, but the rule gives derivatives of its arguments "
                f"only. Pass the "
                f"value as an argument, or use closure_convert."
            )


def leaked(tracer: Tracer) -> UnexpectedTracerError:
    """The error about a tracer that outlived its transformation."""
    origin = f" It was made here: {tracer.origin}." if tracer.origin else ""
    return UnexpectedTracerError(
        f"a value of type {tracer.type}, traced by {tracer._trace.kind}, is used after that "
        f"transformation has ended (it leaked through a global, an attribute or a "
        f"closure).{origin} Return it from the transformed function instead of storing it."
    )
