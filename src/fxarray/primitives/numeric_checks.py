"""The settings `debug_nans` and `debug_infs`: the first operation that gives one raises."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fxarray.core import config, dtypes
from fxarray.core.errors import NonFiniteError
from fxarray.core.ir import Literal, Program
from fxarray.core.primitive import Primitive
from fxarray.core.source import Location

_TESTS: tuple[tuple[str, str, Callable[..., Any]], ...] = (
    ("debug_nans", "NaN", np.isnan),
    ("debug_infs", "inf", np.isinf),
)


def checks_wanted() -> bool:
    """Whether results are to be checked for NaN or infinity in this thread."""
    return config.get("debug_nans") or config.get("debug_infs")


def offence() -> str:
    """What the settings forbid."""
    return " or ".join([name for setting, name, _ in _TESTS if config.get(setting)])


def _count(values: np.ndarray[Any, Any], test: Callable[..., Any]) -> int:
    if dtypes.is_narrow_float(values.dtype):
        values = values.astype(np.float32)
    return int(np.count_nonzero(test(values)))


def is_offending(values: np.ndarray[Any, Any]) -> bool:
    """Whether an array holds what the settings forbid."""
    return dtypes.is_inexact(values.dtype) and any(
        config.get(setting) and _count(values, test) for setting, _, test in _TESTS
    )


def check_values(
    op: Primitive, number: int, values: np.ndarray[Any, Any], location: Location | None = None
) -> None:
    """Raise if result `number` of `op` holds what the settings forbid.

    Args:
      op: the operation.
      number: which of its results `values` is.
      values: the result.
      location: where the user called the operation, if that is not where it runs.

    Raises:
      NonFiniteError: naming the operation and the place.
    """
    if not dtypes.is_inexact(values.dtype):
        return
    for setting, name, test in _TESTS:
        found = _count(values, test) if config.get(setting) else 0
        if found:
            place = "" if location is None else f", called at {location}"
            raise NonFiniteError(
                f"{op.name}{place}: {found} of {values.size} elements of result {number} "
                f"({dtypes.short_name(values.dtype)}{list(values.shape)}) are {name} "
                f"(the setting {setting} is on)"
            )


def check_results(op: Primitive, results: Sequence[Any]) -> None:
    """Check all results of an eager operation."""
    for number, result in enumerate(results):
        check_values(op, number, result.numpy_view())


class _Search(threading.local):
    """Whether this thread runs Programs in search of an operation that gives a NaN or inf."""

    active: bool = False


_search = _Search()


def is_searching() -> bool:
    """Whether Programs inside operations should be run by `run_checked`."""
    return _search.active


def search(program: Program, buffers: Sequence[np.ndarray[Any, Any]]) -> None:
    """Run a Program, and raise at the first operation, also in loops, that gives a NaN or inf.

    Raises:
      NonFiniteError: naming the operation and where the user called it.
    """
    _search.active = True
    try:
        run_checked(program, *buffers)
    finally:
        _search.active = False


def run_checked(
    program: Program, *buffers: np.ndarray[Any, Any]
) -> tuple[np.ndarray[Any, Any], ...]:
    """Run a Program's equations one by one, checking what each gives."""
    values: dict[Any, Any] = dict(zip(program.inputs, buffers, strict=True))
    values.update((variable, _buffer(array)) for variable, array in program.constants)

    def read(atom: Any) -> Any:
        return _buffer(atom.value) if type(atom) is Literal else values[atom]

    for equation in program.equations:
        results = equation.op.eager(*map(read, equation.inputs))
        for number, value in enumerate(results):
            check_values(equation.op, number, value, equation.source)
        values.update(zip(equation.outputs, results, strict=True))
    return tuple(map(read, program.outputs))


def _buffer(array: Any) -> np.ndarray[Any, Any]:
    return array.numpy_view()
