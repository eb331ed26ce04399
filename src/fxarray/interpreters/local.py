"""Derivatives of single operations on concrete arrays, worked out once per types.

What an operation's linearize rule does depends on the operands' types alone, if the operation is a
plain one (`Primitive.plain_rules`). So after a few calls the rule is traced: into a Program of the
values and residuals, and into one that pulls cotangents back. Later calls run these two, which a
device prepares as one function each, instead of recording and transposing operation by operation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fxarray.core.array import DeviceArray
from fxarray.core.caches import register_cache
from fxarray.core.context import context, current_location
from fxarray.core.errors import FxArrayError
from fxarray.core.hooks import execution
from fxarray.core.ir import Program
from fxarray.core.primitive import Linear, Primitive, Zero
from fxarray.core.types import ArrayType
from fxarray.interpreters.evaluate import evaluate
from fxarray.interpreters.linearize import (
    LinearEquation,
    LinearizedProgram,
    LinearizeTrace,
    LinearizeTracer,
    TangentTracer,
    install_shortcut,
    linearize_program,
)
from fxarray.interpreters.staging import stage_closed
from fxarray.interpreters.transpose import transpose_flat, transpose_program

Prepared = Callable[[Sequence[Any]], list[DeviceArray]]

_LIMIT = 4096
# A rule is traced when its operation comes for the third time with the same types: tracing takes as
# long as a hundred calls, and types that come once or twice are not worth it.
_CALLS_BEFORE = 2


class Pull:
    """A recorded operation that pulls cotangents of an operation's results back to its operands.

    It stands in a record of linear equations like an operation: residuals first, then tangents.
    """

    accumulates = False

    def __init__(self, linear: Program, residuals: int) -> None:
        self.name = linear.name
        self.linear = linear
        self.residuals = residuals
        self.mask = tuple([number >= residuals for number in range(len(linear.inputs))])
        self.types = linear.output_types
        self._prepared: tuple[Prepared, tuple[bool, ...]] | None = None

    def bind(self, *operands: Any) -> tuple[Any, ...]:
        """The tangents of the results."""
        return evaluate(self.linear, operands)

    def transpose(self, cotangents: Sequence[Any], *operands: Any) -> Sequence[Any]:
        """The cotangents of the operands; None for residuals."""
        count = self.residuals
        given = [*operands[:count], *cotangents]
        if not self._is_plain(given, cotangents):
            return transpose_flat(self.linear, operands, cotangents)
        run, present = self._prepared or self._prepare()
        results = iter(run(given))
        pulled = [
            next(results) if there else Zero(operand.type)
            for operand, there in zip(operands[count:], present, strict=True)
        ]
        return [None] * count + pulled

    def _is_plain(self, given: list[Any], cotangents: Sequence[Any]) -> bool:
        if context.staging is not None or context.settings:
            return False
        for value in given:
            if type(value) is not DeviceArray:
                return False
        for cotangent, expected in zip(cotangents, self.types, strict=True):
            if cotangent.type is not expected:
                return False
        return True

    def _prepare(self) -> tuple[Prepared, tuple[bool, ...]]:
        nonzeros = (True,) * len(self.types)
        program, present = transpose_program(self.linear, self.mask, nonzeros)
        self._prepared = execution.prepare(program), present
        return self._prepared


class Local:
    """An operation on operands of certain types, some of which have tangents."""

    def __init__(self, found: LinearizedProgram, tangents: int) -> None:
        self.known = execution.prepare(found.known)
        self.out_nonzeros = found.out_nonzeros
        # Where each residual is among the operands and then all that `known` gives.
        start = {"input": 0, "output": len(found.known.inputs)}
        start["computed"] = start["output"] + len(found.out_nonzeros)
        self.residuals = [start[kind] + number for kind, number in found.residuals]
        self.pull = Pull(found.linear, len(found.linear.inputs) - tangents)


_LOCALS: dict[Any, Local | int | None] = {}


def _work_out(
    op: Primitive, types: Sequence[ArrayType], nonzeros: tuple[bool, ...]
) -> Local | None:
    """What there is to know, None if the rule looks at values."""
    try:
        program = stage_closed(op.bind, types, op.name)
        found = linearize_program(program, nonzeros)
        return Local(found, sum(nonzeros))
    except FxArrayError:
        return None


def _shortcut(
    trace: LinearizeTrace, op: Primitive, operands: Sequence[Any]
) -> tuple[Any, ...] | None:
    """The results of a plain operation, None if it must go the general way."""
    if context.staging is not None or context.settings:
        return None
    primals: list[Any] = []
    tangents: list[Linear] = []
    key: list[Any] = [op]
    for operand in operands:
        if type(operand) is DeviceArray:
            key.append(operand.type)
            primals.append(operand)
        elif type(operand) is LinearizeTracer and operand._trace is trace and trace.alive:
            primal = operand.primal
            if type(primal) is not DeviceArray:
                return None
            key.append(None)
            key.append(primal.type)
            primals.append(primal)
            tangents.append(operand.tangent.variable)
        else:
            return None
    known = _LOCALS.get(tuple(key), 0)
    if type(known) is not Local:
        return _counted(trace, op, operands, tuple(key), known)
    results = known.known(primals)
    pull = known.pull
    if not pull.types:
        return tuple(results[: len(known.out_nonzeros)])
    values = primals + results
    residuals: list[Any] = [values[place] for place in known.residuals]
    outputs = [Linear(type_) for type_ in pull.types]
    trace.tangents.equations.append(
        LinearEquation(
            pull,
            residuals + tangents,
            tuple(outputs),
            context.source or current_location(3),
            context.scopes,
        )
    )
    variables = iter(outputs)
    return tuple(
        [
            LinearizeTracer(trace, result, TangentTracer(trace.tangents, next(variables)))
            if nonzero
            else result
            for result, nonzero in zip(results, known.out_nonzeros, strict=False)
        ]
    )


def _counted(
    trace: LinearizeTrace, op: Primitive, operands: Sequence[Any], key: Any, known: Any
) -> tuple[Any, ...] | None:
    """Count a call of an operation whose derivative has not been worked out."""
    if known is None:
        return None
    if known < _CALLS_BEFORE:
        if len(_LOCALS) >= _LIMIT:
            _LOCALS.clear()
        _LOCALS[key] = known + 1
        return None
    nonzeros = tuple([type(operand) is LinearizeTracer for operand in operands])
    worked_out = _work_out(op, [operand.type for operand in operands], nonzeros)
    _LOCALS[key] = worked_out
    return None if worked_out is None else _shortcut(trace, op, operands)


install_shortcut(_shortcut)
register_cache(_LOCALS.clear)
