"""Branches: `cond` and `switch`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fxarray.core import dims, dtypes
from fxarray.core.context import context
from fxarray.core.errors import ArgumentError, CarryTypeError, DTypeError, ShapeError
from fxarray.core.hooks import operators
from fxarray.core.tracebacks import boundary
from fxarray.core.types import ArrayType
from fxarray.lax.bodies import check_structure, describe_function, share_captured, trace_body
from fxarray.primitives.arithmetic import clamp
from fxarray.primitives.comparison import ne
from fxarray.primitives.control.cond import Cond
from fxarray.primitives.convert import convert
from fxarray.primitives.create import scalar
from fxarray.transforms.arguments import flatten_arguments
from fxarray.transforms.statics import is_array_like
from fxarray.transforms.trace_cache import Trace

_INT32 = np.dtype("int32")
_MISSING = object()


@boundary
def cond(
    pred: Any,
    true_fun: Callable[..., Any],
    false_fun: Callable[..., Any],
    *operands: Any,
    operand: Any = _MISSING,
    linear: Any = None,
) -> Any:
    """Apply `true_fun` where `pred` is true, else `false_fun`, to the operands.

    Only the branch taken is run; both are traced, and must return the same structure and types.
    Under `vmap` with a mapped `pred`, each lane takes its own branch: no branch is run on the
    values of a lane that does not take it, so derivatives are free of what it would have given.

    Args:
      pred: a scalar; numbers count as true unless they are zero.
      true_fun: a function of the operands.
      false_fun: likewise.
      *operands: pytrees; leaves that are not arrays are static.
      operand: one operand, by name.
      linear: accepted for old callers, and ignored.

    Raises:
      TreeStructureError, CarryTypeError: if the branches return different structures or types.

    >>> from fxarray import lax
    >>> print(lax.cond(True, lambda x: x + 1.0, lambda x: x * 10.0, 2.0))
    3.0
    """
    del linear
    if operand is not _MISSING:
        operands = (*operands, operand)
    if not (callable(true_fun) and callable(false_fun)):
        raise ArgumentError("cond takes (pred, true_fun, false_fun, *operands): two functions")
    predicate = _scalar("cond: pred", pred)
    if not (dtypes.is_numeric(predicate.dtype) or dtypes.is_bool(predicate.dtype)):
        raise DTypeError(f"cond: pred must be a bool or a number, got {predicate.type}")
    if context.disable_jit:
        return (true_fun if predicate else false_fun)(*operands)
    if not dtypes.is_bool(predicate.dtype):
        predicate = ne(predicate, operators.zeros(predicate.type))
    index = convert(predicate, _INT32)
    return _choose("cond", index, [false_fun, true_fun], operands, ("false_fun", "true_fun"))


@boundary
def switch(
    index: Any,
    branches: Sequence[Callable[..., Any]],
    *operands: Any,
    operand: Any = _MISSING,
) -> Any:
    """Apply one of several functions to the operands: `branches[index]`, the index clamped.

    Like `cond`, with more branches.

    Args:
      index: an integer scalar; numbers out of range choose the first or last branch.
      branches: functions of the operands that return the same structure and types.
      *operands: pytrees; leaves that are not arrays are static.
      operand: one operand, by name.

    >>> from fxarray import lax
    >>> print(lax.switch(7, [lambda x: x, lambda x: x * 2.0, lambda x: x * 3.0], 5.0))
    15.0
    """
    if operand is not _MISSING:
        operands = (*operands, operand)
    branches = list(branches)
    for number, branch in enumerate(branches):
        if not callable(branch):
            raise ArgumentError(f"switch: branch {number} is not a function but {branch!r}")
    number = _scalar("switch: index", index)
    if not dtypes.is_integer(number.dtype):
        raise DTypeError(f"switch: index must be an integer, got {number.type}")
    if not branches:
        raise ArgumentError("switch: there are no branches")
    if len(branches) == 1:
        return branches[0](*operands)
    if context.disable_jit:
        return branches[min(max(int(number), 0), len(branches) - 1)](*operands)
    names = tuple([f"branch {number}" for number in range(len(branches))])
    return _choose("switch", _as_int32(number, len(branches)), branches, operands, names)


def _as_int32(index: Any, count: int) -> Any:
    """The index clamped before a conversion that might wrap it."""
    if index.dtype == _INT32 and not index.weak_type:
        return index
    last = min(count - 1, int(dtypes.iinfo(index.dtype).max))
    return convert(clamp(scalar(0, index.dtype), index, scalar(last, index.dtype)), _INT32)


def _scalar(what: str, value: Any) -> Any:
    if not is_array_like(value) and not isinstance(value, dims.Dim):
        raise ArgumentError(
            f"{what} must be a scalar, got {value!r} of class {type(value).__name__}"
        )
    array = operators.asarray(value)
    if array.type.shape:
        raise ShapeError(
            f"{what} must be a scalar, got {array.type}. To choose for each element, use "
            f"numpy.where; to branch for each row, vmap."
        )
    return array


def _choose(
    name: str,
    index: Any,
    branches: Sequence[Callable[..., Any]],
    operands: Sequence[Any],
    names: Sequence[str],
) -> Any:
    arguments = flatten_arguments(tuple(operands), {}, branches[-1])
    types = [array.type for array in arguments.arrays]
    traces = [trace_body(branch, arguments.structure, types) for branch in branches]
    first = traces[0]
    for number in range(1, len(traces)):
        _check_agreement(name, traces, branches, names, number)
    captured = share_captured(traces)
    outputs = Cond(tuple(captured.programs)).bind(index, *captured.values, *arguments.arrays)
    return first.output.unflatten(outputs)


def _check_agreement(
    name: str,
    traces: Sequence[Trace],
    branches: Sequence[Callable[..., Any]],
    names: Sequence[str],
    number: int,
) -> None:
    described = [f"{names[i]} = {describe_function(branches[i])}" for i in (0, number)]
    what = f"{name}: the branches must return the same structure and types, but {described[1]} "
    what += f"differs from {described[0]}"
    expected, actual = traces[0], traces[number]
    advice = "Make the branches return the same containers and keys."
    check_structure(what, advice, expected.output, actual.output, "result")
    wrong = [
        f"result{path} is {after}, there {before}"
        for path, before, after in zip(
            expected.output.paths(), _types(expected), _types(actual), strict=True
        )
        if not before.same_array(after)
    ]
    if wrong:
        raise CarryTypeError(
            f"{what}: {'; '.join(wrong)}. Convert the results to one shape and dtype, as by "
            f".astype()."
        )


def _types(trace: Trace) -> Sequence[ArrayType]:
    return trace.program.output_types
