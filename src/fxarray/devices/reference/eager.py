"""Eager calls: one operation on concrete arrays, run by NumPy at once.

What there is to find out about a call (result types, which function computes) depends on the
operation and the operands' types alone, so it is found once and remembered as a plan.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from fxarray.compile.driver import compile_program
from fxarray.core.array import DeviceArray
from fxarray.core.caches import register_cache
from fxarray.core.context import context
from fxarray.core.hooks import execution
from fxarray.core.ir import Program
from fxarray.core.primitive import Primitive
from fxarray.core.types import ArrayType
from fxarray.primitives.control.numpy_runner import generate
from fxarray.primitives.numeric_checks import check_results, checks_wanted
from fxarray.primitives.support import ERROR_STATE, IGNORE

_LIMIT = 20_000


class Plan(NamedTuple):
    """How to run an operation on operands of certain types.

    Args:
      function: of NumPy arrays.
      types: of the results.
      bare: whether `function` returns its one result as it is, maybe as a NumPy scalar.
    """

    function: Callable[..., Any]
    types: tuple[ArrayType, ...]
    bare: bool


_PLANS: dict[Any, Plan] = {}
_lock = threading.Lock()
_set_errors, _reset_errors = ERROR_STATE.set, ERROR_STATE.reset
_ndarray, _asarray = np.ndarray, np.asarray


def _make_plan(op: Primitive, operands: Sequence[Any]) -> Plan:
    given = [operand.type for operand in operands]
    types = op.types(*given)
    function = op.bare_function(given[0].dtype) if given else None
    plan = Plan(op.eager, types, False) if function is None else Plan(function, types, True)
    with _lock:
        if len(_PLANS) >= _LIMIT:
            _PLANS.clear()
        _PLANS[op, *given] = plan
    return plan


def execute(op: Primitive, operands: Sequence[Any]) -> tuple[Any, ...]:
    """Apply `op` to concrete arrays."""
    plan = _PLANS.get((op, *[operand.type for operand in operands]))
    if plan is None:
        if op.runs_function:
            return op.run_function(operands)
        program = op.compiled_program
        if program is not None:
            op.types(*[operand.type for operand in operands])
            return tuple(compile_program(program)(operands))
        plan = _make_plan(op, operands)
    function, types, bare = plan
    try:
        buffers = [operand._np for operand in operands]
    except AttributeError:
        buffers = [operand.numpy_view() for operand in operands]  # says which one is deleted
    token = _set_errors(IGNORE)
    try:
        values = function(*buffers)
    finally:
        _reset_errors(token)
    if bare:
        if type(values) is not _ndarray:
            values = _asarray(values)
        results: tuple[DeviceArray, ...] = (DeviceArray(values, types[0]),)
    else:
        results = tuple(map(DeviceArray, values, types))
    if context.settings and checks_wanted():
        check_results(op, results)
    return results


def prepare(program: Program) -> Callable[[Sequence[Any]], list[DeviceArray]]:
    """A Program as a function from concrete arrays to concrete arrays."""
    function, types = generate(program, "eager")[0], program.output_types

    def run(operands: Sequence[Any]) -> list[DeviceArray]:
        try:
            buffers = [operand._np for operand in operands]
        except AttributeError:
            buffers = [operand.numpy_view() for operand in operands]  # says which one is deleted
        token = _set_errors(IGNORE)
        try:
            values = function(*buffers)
        finally:
            _reset_errors(token)
        return list(map(DeviceArray, values, types))

    return run


@register_cache
def clear() -> None:
    """Forget all plans."""
    with _lock:
        _PLANS.clear()


execution.execute = execute
execution.prepare = prepare
