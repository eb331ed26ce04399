"""Direct linearization: compute the values at once, record only what is linear in the tangents.

Each operation's `linearize` rule (its jvp, unless it has a better one) runs with real primals and
with tangents that are placeholders. Operations on placeholders are recorded as linear equations;
everything else simply runs. The record can be walked backwards at once (`backward`, what `grad`
does) or turned into a Program (`linearize_program`, what loops and `jit` need).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from fxarray.core.context import context, current_location, open_trace
from fxarray.core.errors import NonDifferentiableError, ProgramError
from fxarray.core.hooks import operators
from fxarray.core.ir import Program
from fxarray.core.primitive import Linear, Primitive, Zero, add_tangents, instantiate
from fxarray.core.source import Location
from fxarray.core.tracer import Trace, Tracer, check_closure
from fxarray.core.types import ArrayType
from fxarray.interpreters.dce import eliminate_dead_code
from fxarray.interpreters.evaluate import evaluate
from fxarray.interpreters.memo import memoised
from fxarray.interpreters.staging import stage


class LinearOperation(Protocol):
    """What a record holds: a primitive, or what stands for several."""

    def bind(self, *operands: Any) -> tuple[Any, ...]: ...

    def transpose(self, cotangents: Sequence[Any], *operands: Any) -> Sequence[Any]: ...


class LinearEquation:
    """A recorded linear operation: operands are `Linear` variables or plain values (residuals)."""

    __slots__ = ("op", "operands", "outputs", "scopes", "source")

    def __init__(
        self,
        op: LinearOperation,
        operands: list[Any],
        outputs: tuple[Linear, ...],
        source: Location | None,
        scopes: tuple[str, ...],
    ) -> None:
        self.op = op
        self.operands = operands
        self.outputs = outputs
        self.source = source
        self.scopes = scopes


class TangentTracer(Tracer):
    """A placeholder for a tangent; operations on it are recorded, not run."""

    __slots__ = ("type", "variable")

    def __init__(self, trace: TangentTrace, variable: Linear) -> None:
        self._trace = trace
        self.variable = variable
        self.type = variable.type


class TangentTrace(Trace):
    """Records linear equations."""

    __slots__ = ("equations",)
    kind = "linearize (a tangent)"

    def __init__(self) -> None:
        super().__init__()
        self.equations: list[LinearEquation] = []

    def process(self, op: Primitive, operands: Sequence[Any]) -> tuple[Any, ...]:
        recorded: list[Any] = []
        for operand in operands:
            if type(operand) is TangentTracer and operand._trace is self:
                if not self.alive:
                    operand.check_alive()
                recorded.append(operand.variable)
            elif isinstance(operand, LinearizeTracer) and operand._trace.level == self.level:
                raise NonDifferentiableError(
                    f"{op}: a derivative rule closes over a value that is being differentiated; "
                    f"pass it as an argument of the function with the custom rule, or use "
                    f"closure_convert"
                )
            else:
                recorded.append(operand)
        op, recorded_operands = op.staged(self, recorded)
        outputs = tuple(
            [Linear(type) for type in op.types(*[operand.type for operand in recorded_operands])]
        )
        source = context.source or current_location(2)
        self.equations.append(
            LinearEquation(op, list(recorded_operands), outputs, source, context.scopes)
        )
        return tuple([TangentTracer(self, output) for output in outputs])

    def new_input(self, type: ArrayType) -> TangentTracer:
        return TangentTracer(self, Linear(type))


class LinearizeTracer(Tracer):
    """A value whose tangent is recorded."""

    __slots__ = ("primal", "tangent", "type")

    def __init__(self, trace: LinearizeTrace, primal: Any, tangent: TangentTracer) -> None:
        self._trace = trace
        self.primal = primal
        self.tangent = tangent
        self.type = primal.type

    def concrete(self) -> Any:
        primal = self.primal
        return primal.concrete() if isinstance(primal, Tracer) else primal


class LinearizeTrace(Trace):
    """Applies each operation's linearize rule."""

    __slots__ = ("tangents",)
    kind = "grad"

    def __init__(self, tangents: TangentTrace) -> None:
        super().__init__()
        self.tangents = tangents

    def process(self, op: Primitive, operands: Sequence[Any]) -> tuple[Any, ...]:
        if op.plain_rules:
            for shortcut in _shortcuts:
                short = shortcut(self, op, operands)
                if short is not None:
                    return short
        primals: list[Any] = []
        tangents: list[Any] = []
        for operand in operands:
            if type(operand) is LinearizeTracer and operand._trace is self:
                if not self.alive:
                    operand.check_alive()
                primals.append(operand.primal)
                tangents.append(operand.tangent)
            else:
                primals.append(operand)
                tangents.append(Zero(operand.type.tangent()))
        if op.runs_function:  # its rule is the user's code, with places of its own
            outputs, out_tangents = op.linearize(primals, tangents)
            check_closure(self, op, outputs)
        elif context.source is None:
            context.source = current_location(2)
            try:
                outputs, out_tangents = op.linearize(primals, tangents)
            finally:
                context.source = None
        else:
            outputs, out_tangents = op.linearize(primals, tangents)
        return tuple(
            [
                output if type(tangent) is Zero else self.attach(output, tangent)
                for output, tangent in zip(outputs, out_tangents, strict=True)
            ]
        )

    def attach(self, output: Any, tangent: Any) -> Any:
        """A tracer of `output`; a tangent that does not depend on the placeholders is zero."""
        if type(tangent) is TangentTracer and tangent._trace is self.tangents:
            return LinearizeTracer(self, output, tangent)
        raise ProgramError(
            f"a derivative rule returned a tangent of type {tangent.type} that is not linear in "
            f"the input tangents"
        )


# How plain operations on concrete arrays are linearized (`interpreters.local`); None from it means
# that they go the general way.
Shortcut = Callable[[LinearizeTrace, Primitive, Sequence[Any]], "tuple[Any, ...] | None"]
_shortcuts: list[Shortcut] = []


def install_shortcut(shortcut: Shortcut) -> None:
    """Have plain operations be linearized by `shortcut` where it can."""
    _shortcuts[:] = [shortcut]


class Linearization(NamedTuple):
    """The record of a linearized call.

    `inputs` and `outputs` have one entry per argument and result; a Zero stands for one without a
    tangent.
    """

    inputs: list[Any]
    equations: list[LinearEquation]
    outputs: list[Any]


def linearize_flat(
    function: Callable[..., Sequence[Any]], primals: Sequence[Any], nonzeros: Sequence[bool]
) -> tuple[list[Any], Linearization]:
    """Run a flat function on `primals`, recording its derivative.

    Args:
      function: takes and returns flat arrays.
      primals: its arguments.
      nonzeros: which arguments have tangents.

    Returns:
      The function's results, and the record.
    """
    tangents = TangentTrace()
    trace = LinearizeTrace(tangents)
    with open_trace(trace):
        tangents.level = trace.level
        inputs: list[Any] = []
        arguments: list[Any] = []
        for primal, nonzero in zip(primals, nonzeros, strict=True):
            if nonzero:
                placeholder = tangents.new_input(primal.type.tangent())
                inputs.append(placeholder.variable)
                arguments.append(LinearizeTracer(trace, primal, placeholder))
            else:
                inputs.append(Zero(primal.type.tangent()))
                arguments.append(primal)
        outputs: list[Any] = []
        out_variables: list[Any] = []
        for result in function(*arguments):
            if type(result) is LinearizeTracer and result._trace is trace:
                outputs.append(result.primal)
                out_variables.append(result.tangent.variable)
            else:
                value = result if hasattr(result, "type") else operators.asarray(result)
                outputs.append(value)
                out_variables.append(Zero(value.type.tangent()))
    tangents.alive = False
    return outputs, Linearization(inputs, tangents.equations, out_variables)


def backward(record: Linearization, cotangents: Sequence[Any]) -> list[Any]:
    """Walk a record backwards: cotangents of the outputs to cotangents of the inputs.

    Args:
      record: from `linearize_flat`.
      cotangents: one per output; may be Zeros.
    """
    running: dict[Linear, Any] = {}
    for variable, cotangent in zip(record.outputs, cotangents, strict=True):
        if type(variable) is not Zero and type(cotangent) is not Zero:
            known = running.get(variable)
            running[variable] = cotangent if known is None else add_tangents(known, cotangent)
    outer_source = context.source
    try:
        for equation in reversed(record.equations):
            outputs = equation.outputs
            if len(outputs) == 1:
                cotangent = running.pop(outputs[0], None)
                if cotangent is None:
                    continue
                given: list[Any] = [cotangent]
            else:
                given = [running.pop(v, None) for v in outputs]
                if all(value is None for value in given):
                    continue
                given = [
                    Zero(variable.type) if value is None else value
                    for value, variable in zip(given, outputs, strict=True)
                ]
            context.source = equation.source
            accumulate_cotangents(equation.op, given, equation.operands, running)
    finally:
        context.source = outer_source
    return [
        running[variable] if variable in running else Zero(variable.type)
        for variable in record.inputs
    ]


def accumulate_cotangents(
    op: Any, cotangents: Sequence[Any], operands: Sequence[Any], running: dict[Linear, Any]
) -> None:
    """Apply a transpose rule and add what it gives to the running cotangents."""
    if op.accumulates:
        known = [running.get(x) if type(x) is Linear else None for x in operands]
        if any(value is not None for value in known):
            totals = op.transpose_into(known, cotangents, *operands)
            running.update(
                (operand, total)
                for operand, total in zip(operands, totals, strict=True)
                if type(operand) is Linear and total is not None and type(total) is not Zero
            )
            return
    for operand, contribution in zip(operands, op.transpose(cotangents, *operands), strict=True):
        if type(operand) is Linear and contribution is not None and type(contribution) is not Zero:
            total = running.get(operand)
            running[operand] = (
                contribution if total is None else operators.add_cotangents(total, contribution)
            )


def apply_record(record: Linearization, tangents: Sequence[Any]) -> list[Any]:
    """Push tangents (Zeros where an input has none) through a record."""
    environment: dict[Linear, Any] = {
        variable: instantiate(tangent)
        for variable, tangent in zip(record.inputs, tangents, strict=True)
        if type(variable) is not Zero
    }
    outer_source = context.source
    try:
        for equation in record.equations:
            operands = [
                environment[operand] if type(operand) is Linear else operand
                for operand in equation.operands
            ]
            context.source = equation.source or outer_source
            environment.update(zip(equation.outputs, equation.op.bind(*operands), strict=True))
    finally:
        context.source = outer_source
    return [
        variable if type(variable) is Zero else environment[variable] for variable in record.outputs
    ]


class LinearizedProgram(NamedTuple):
    """A Program split into its values and its derivative.

    known: inputs -> (outputs, computed residuals)
    linear: (residuals, tangents of nonzero inputs) -> tangents of `out_nonzeros` outputs
    residuals: where each residual is found: ("input", i), ("output", i) of known, or
      ("computed", i), the i-th result of known after its outputs
    """

    known: Program
    linear: Program
    residuals: tuple[tuple[str, int], ...]
    out_nonzeros: tuple[bool, ...]

    def pick_residuals(self, inputs: Sequence[Any], results: Sequence[Any]) -> list[Any]:
        """The residuals, out of the inputs and results of `known`: their values or its atoms."""
        count = len(self.out_nonzeros)
        pools = {"input": inputs, "output": results[:count], "computed": results[count:]}
        return [pools[kind][position] for kind, position in self.residuals]


@memoised
def linearize_program(
    program: Program, nonzeros: tuple[bool, ...], instantiated: tuple[bool, ...] = ()
) -> LinearizedProgram:
    """Split a Program into one that computes values and residuals, and a linear one.

    Args:
      program: what to linearize.
      nonzeros: for each input, whether it has a tangent.
      instantiated: outputs whose tangents are wanted even if zero.
    """
    wanted = instantiated or (False,) * len(program.outputs)
    found: list[Any] = []

    def known_function(*arguments: Any) -> list[Any]:
        outputs, record = linearize_flat(
            lambda *values: evaluate(program, values), arguments, nonzeros
        )
        tangent_inputs = [v for v in record.inputs if type(v) is not Zero]

        def linear_function(*tangents: Any) -> list[Any]:
            given = iter(tangents)
            all_tangents = [v if type(v) is Zero else next(given) for v in record.inputs]
            results = apply_record(record, all_tangents)
            results = [instantiate(r) if w else r for r, w in zip(results, wanted, strict=True)]
            found.append(tuple(type(result) is not Zero for result in results))
            return [result for result in results if type(result) is not Zero]

        linear, residuals = stage(
            linear_function, [v.type for v in tangent_inputs], f"derivative_of_{program.name}"
        )
        keep = (False,) * len(residuals) + (True,) * len(tangent_inputs)
        linear, used = eliminate_dead_code(linear, None, keep)
        residuals = [r for r, u in zip(residuals, used, strict=False) if u]
        found.append(linear)
        return [*outputs, *residuals]

    known, captured = stage(known_function, program.input_types, program.name)
    if captured:
        raise ProgramError(f"{program.name}: linearization closes over values from outside")
    out_nonzeros, linear = found
    known, sources = _forward_residuals(known, len(program.outputs))
    return LinearizedProgram(known, linear, sources, out_nonzeros)


def _forward_residuals(
    known: Program, output_count: int
) -> tuple[Program, tuple[tuple[str, int], ...]]:
    """Do not compute again, or return twice, residuals that are inputs or outputs."""
    outputs = known.outputs[:output_count]
    places: dict[Any, tuple[str, int]] = {}
    for position, variable in enumerate(known.inputs):
        places[variable] = ("input", position)
    for position, atom in enumerate(outputs):
        places.setdefault(atom, ("output", position))
    computed: list[Any] = []
    sources: list[tuple[str, int]] = []
    for atom in known.outputs[output_count:]:
        if atom not in places:
            places[atom] = ("computed", len(computed))
            computed.append(atom)
        sources.append(places[atom])
    return known.replace(outputs=[*outputs, *computed]), tuple(sources)
