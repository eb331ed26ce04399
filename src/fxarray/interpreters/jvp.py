"""Forward-mode differentiation: pairs of values and tangents, pushed through each operation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fxarray.core.context import open_trace
from fxarray.core.hooks import operators
from fxarray.core.ir import Program
from fxarray.core.primitive import Primitive, Zero, instantiate
from fxarray.core.tracer import Trace, Tracer, check_closure
from fxarray.interpreters.evaluate import evaluate
from fxarray.interpreters.memo import memoised
from fxarray.interpreters.staging import stage_closed


class JVPTracer(Tracer):
    """A value and its tangent."""

    __slots__ = ("primal", "tangent", "type")

    def __init__(self, trace: Trace, primal: Any, tangent: Any) -> None:
        self._trace = trace
        self.primal = primal
        self.tangent = tangent
        self.type = primal.type

    def concrete(self) -> Any:
        primal = self.primal
        return primal.concrete() if isinstance(primal, Tracer) else primal


class JVPTrace(Trace):
    """Applies each operation's jvp rule."""

    __slots__ = ()
    kind = "jvp"

    def process(self, op: Primitive, operands: Sequence[Any]) -> tuple[Any, ...]:
        primals: list[Any] = []
        tangents: list[Any] = []
        for operand in operands:
            if type(operand) is JVPTracer and operand._trace is self:
                if not self.alive:
                    operand.check_alive()
                primals.append(operand.primal)
                tangents.append(operand.tangent)
            else:
                primals.append(operand)
                tangents.append(Zero(operand.type.tangent()))
        outputs, out_tangents = op.jvp(primals, tangents)
        if op.runs_function:
            check_closure(self, op, (*outputs, *out_tangents))
        return tuple(
            [
                output if type(tangent) is Zero else JVPTracer(self, output, tangent)
                for output, tangent in zip(outputs, out_tangents, strict=True)
            ]
        )


def jvp_flat(
    function: Callable[..., Sequence[Any]], primals: Sequence[Any], tangents: Sequence[Any]
) -> tuple[list[Any], list[Any]]:
    """Values and tangents of a flat function; tangents in and out may be Zeros."""
    trace = JVPTrace()
    with open_trace(trace):
        arguments = [
            primal if type(tangent) is Zero else JVPTracer(trace, primal, tangent)
            for primal, tangent in zip(primals, tangents, strict=True)
        ]
        results = function(*arguments)
        outputs: list[Any] = []
        out_tangents: list[Any] = []
        for result in results:
            if type(result) is JVPTracer and result._trace is trace:
                outputs.append(result.primal)
                out_tangents.append(result.tangent)
            else:
                value = result if hasattr(result, "type") else operators.asarray(result)
                outputs.append(value)
                out_tangents.append(Zero(value.type.tangent()))
    return outputs, out_tangents


@memoised
def jvp_program(
    program: Program, nonzeros: tuple[bool, ...], instantiated: tuple[bool, ...] = ()
) -> tuple[Program, tuple[bool, ...]]:
    """The Program of a Program's derivative.

    Args:
      program: what to differentiate.
      nonzeros: for each input, whether it has a tangent.
      instantiated: outputs whose tangents are wanted even if zero (default: none).

    Returns:
      A Program from (inputs, tangents of the nonzero inputs) to (outputs, nonzero tangents), and
      which outputs have a tangent.
    """
    out_nonzeros: list[bool] = []
    wanted = instantiated or (False,) * len(program.outputs)

    def differentiated(*arguments: Any) -> list[Any]:
        primals = arguments[: len(program.inputs)]
        given = iter(arguments[len(program.inputs) :])
        tangents = [
            next(given) if nonzero else Zero(primal.type.tangent())
            for primal, nonzero in zip(primals, nonzeros, strict=True)
        ]
        outputs, out_tangents = jvp_flat(
            lambda *values: evaluate(program, values), primals, tangents
        )
        out_tangents = [
            instantiate(t) if w else t for t, w in zip(out_tangents, wanted, strict=True)
        ]
        out_nonzeros.extend(type(tangent) is not Zero for tangent in out_tangents)
        return outputs + [t for t in out_tangents if type(t) is not Zero]

    tangent_types = [
        var.type.tangent() for var, nonzero in zip(program.inputs, nonzeros, strict=True) if nonzero
    ]
    result = stage_closed(
        differentiated, [*program.input_types, *tangent_types], f"jvp_of_{program.name}"
    )
    return result, tuple(out_nonzeros)
