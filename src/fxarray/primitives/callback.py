"""Callbacks: Python functions called with concrete values while a Program runs."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from fxarray.core import dtypes
from fxarray.core.effects import Effect, Ordered, Unordered
from fxarray.core.errors import ArgumentError, CallbackError, NonDifferentiableError
from fxarray.core.primitive import NO_EFFECTS, Primitive, Sample
from fxarray.core.types import ArrayType
from fxarray.interpreters.batch import to_axis

PURE, IO, DEBUG = "pure", "io", "debug"
VMAP_METHODS = (
    "sequential",
    "sequential_unrolled",
    "expand_dims",
    "broadcast_all",
    "legacy_vectorized",
)
HostFunction = Callable[..., Sequence[Any]]


class Callback(Primitive, name="callback"):
    """Call a Python function on NumPy arrays.

    Args:
      function: takes one NumPy array per operand, returns one per result type.
      result_types: the types of its results.
      kind: "pure" (may be left out or repeated), "io" (runs exactly once), or "debug" (looks on:
        it has no results, and derivatives pass it by).
      ordered: whether it keeps its place among other ordered callbacks.
      vmap_method: how vmap calls it; see `pure_callback`.
    """

    function: HostFunction
    result_types: tuple[ArrayType, ...]
    kind: str
    ordered: bool = False
    vmap_method: str | None = None
    memoise_infer: ClassVar[bool] = False
    EXCUSED: ClassVar[dict[str, str]] = {
        "transpose": "a Python function is not known to be linear",
        "shard": "the Python function needs whole arrays",
        "lower": "it returns to Python; a device calls it as it is",
    }

    @property
    def effects(self) -> frozenset[Effect]:
        if self.kind == PURE:
            return NO_EFFECTS
        return frozenset([Ordered(self.kind) if self.ordered else Unordered(self.kind)])

    def infer(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        return self.result_types

    def reference(self, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        given: list[np.ndarray] = []
        for array in arrays:
            view = np.asarray(array).view()
            view.flags.writeable = False
            given.append(view)
        try:
            results = self.function(*given)
        except Exception as error:
            raise CallbackError(
                f"the {self.kind} callback {self.function} raised {type(error).__name__}: {error}"
            ) from error
        return tuple(
            [
                self._checked(number, result, type)
                for number, (result, type) in enumerate(
                    zip(results, self.result_types, strict=True)
                )
            ]
        )

    def _checked(self, number: int, result: Any, type: ArrayType) -> np.ndarray:
        array = np.asarray(result)
        if array.shape != type.shape:
            raise CallbackError(
                f"the {self.kind} callback {self.function} returned an array of shape "
                f"{array.shape} as result {number}, but result_shape_dtypes says {type}"
            )
        if array.dtype != type.dtype:
            if not np.can_cast(array.dtype, dtypes.physical(type.dtype), "same_kind"):
                raise CallbackError(
                    f"the {self.kind} callback {self.function} returned dtype {array.dtype} as "
                    f"result {number}, but result_shape_dtypes says {type}"
                )
            array = dtypes.cast(array, type.dtype)
        return array

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        if self.kind == DEBUG:
            return self.bind(*primals), ()
        raise NonDifferentiableError(
            f"{self.kind}_callback has no derivative: fxarray cannot look into the Python function "
            f"{self.function}. Give it one with custom_jvp or custom_vjp, or put stop_gradient "
            f"on its arguments."
        )

    def batch(
        self, size: Any, axis_name: Hashable, operands: Sequence[Any], axes: Sequence[int | None]
    ) -> tuple[Sequence[Any], Sequence[int | None]]:
        method = self.vmap_method
        if self.kind == IO and self.ordered:
            raise ArgumentError(
                "an ordered io_callback cannot be mapped: the order of its calls is not defined"
            )
        if method is None:
            if self.kind == PURE:
                raise ArgumentError(
                    f"pure_callback under vmap needs vmap_method, one of "
                    f"{', '.join(VMAP_METHODS)}: "
                    f"fxarray cannot know whether {self.function} takes a leading axis"
                )
            method = "sequential"
        types = tuple([t.replace(shape=(size, *t.shape)) for t in self.result_types])
        moved = [
            x if axis is None else to_axis(x, size, axis, 0)
            for x, axis in zip(operands, axes, strict=True)
        ]
        function: HostFunction = self.function
        if method in ("sequential", "sequential_unrolled"):
            mapped = tuple([axis is not None for axis in axes])
            function = _Sequential(function, mapped, len(types))
        elif method == "broadcast_all":
            moved = [
                to_axis(x, size, None, 0) if axis is None else x
                for x, axis in zip(moved, axes, strict=True)
            ]
        elif method == "expand_dims":
            moved = [
                to_axis(x, 1, None, 0) if axis is None else x
                for x, axis in zip(moved, axes, strict=True)
            ]
        op = Callback(function, types, self.kind, self.ordered, self.vmap_method)
        return op.bind(*moved), (0,) * len(types)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Any]:
        type = ArrayType((3,), np.dtype("float32"))
        op = cls(_double, (type,), PURE, vmap_method="sequential")
        yield Sample(op, (rng.normal(size=3).astype("float32"),), differentiable=False)


def _double(x: np.ndarray) -> list[np.ndarray]:
    return [2 * x]


@dataclass(frozen=True)
class _Sequential:
    """Calls a function lane by lane, and stacks what it returns."""

    function: HostFunction
    mapped: tuple[bool, ...]
    result_count: int

    def __call__(self, *arrays: np.ndarray) -> list[np.ndarray]:
        size = next(len(a) for a, m in zip(arrays, self.mapped, strict=True) if m)
        lanes = [
            self.function(*[a[i] if m else a for a, m in zip(arrays, self.mapped, strict=True)])
            for i in range(size)
        ]
        return [np.stack([np.asarray(lane[k]) for lane in lanes]) for k in range(self.result_count)]

    def __repr__(self) -> str:
        return repr(self.function)
