"""Functions with derivative rules of their own.

Called eagerly, or under grad, jvp or vmap outside `jit`, such a function is an operation that
carries
Python functions (`CustomJVP`, `CustomVJP`), so Python control flow on values works inside. When it
is recorded in a Program it becomes one that carries a Program (`CustomJVPProgram`,
`CustomVJPProgram`), with its rule still a function, traced when a derivative is taken. vmap keeps
the rule: it maps the function and the rule alike.

All functions here are flat: they take and return arrays. Derivative rules see operands only; a rule
or function that closes over a value being differentiated is reported, never taken as constant.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

import numpy as np

from fxarray.core import dtypes
from fxarray.core.errors import NonDifferentiableError
from fxarray.core.ir import Program
from fxarray.core.primitive import Primitive, Sample, Zero
from fxarray.core.types import ArrayType
from fxarray.interpreters.batch import BatchTrace, batch_flat, batch_program, to_axis
from fxarray.interpreters.staging import stage, stage_closed
from fxarray.primitives.control.program_call import JitCall, ProgramCall

Flat = Callable[..., Sequence[Any]]

FUNCTION_EXCUSES = {
    "infer": "its results are known only by running or tracing its function",
    "reference": "it runs the user's function; its Program form has a reference",
    "transpose": "a function with a rule of its own is not linear",
    "shard": "the function inside is partitioned, not the call",
    "lower": "the function inside is compiled, not the call",
}


@dataclass(frozen=True)
class BatchedFunction:
    """A flat function mapped along axes; every result is mapped along its first axis.

    Args:
      outer: the vmap that maps it; the function may close over values of its.
    """

    function: Flat
    size: Any
    axis_name: Hashable
    axes: tuple[int | None, ...]
    outer: BatchTrace | None = field(default=None, compare=False, repr=False)

    def __call__(self, *operands: Any) -> list[Any]:
        results, axes = batch_flat(
            self.function, self.size, self.axis_name, operands, self.axes, self.outer
        )
        return [
            to_axis(result, self.size, axis, 0) for result, axis in zip(results, axes, strict=True)
        ]


# --- custom_jvp -----------------------------------------------------------------------------------


def _apply_jvp_rule(
    rule: Flat, primals: Sequence[Any], tangents: Sequence[Any]
) -> tuple[Sequence[Any], Sequence[Any]]:
    """Results and tangents by a rule `(zeros, *primals, *tangents) -> (*outputs, *tangents)`.

    Tangents go in and come out for inexact arrays only. `zeros` says which of them are known to be
    zero; those do not go in.
    """
    given = [
        tangent
        for primal, tangent in zip(primals, tangents, strict=True)
        if dtypes.is_inexact(primal.type.dtype)
    ]
    zeros = tuple([type(tangent) is Zero for tangent in given])
    present = [tangent for tangent in given if type(tangent) is not Zero]
    results = list(rule(zeros, *primals, *present))
    count = 0
    inexact = 0
    while count + inexact < len(results):
        inexact += dtypes.is_inexact(results[count].type.dtype)
        count += 1
    outputs = results[:count]
    found = iter(results[count:])
    return outputs, [
        next(found) if dtypes.is_inexact(output.type.dtype) else Zero(output.type.tangent())
        for output in outputs
    ]


@dataclass(frozen=True)
class _BatchedJVPRule:
    """A rule, mapped: the primals along `axes`, their tangents along the same."""

    rule: Flat
    size: Any
    axis_name: Hashable
    axes: tuple[int | None, ...]
    tangent_axes: tuple[int | None, ...]
    outer: BatchTrace | None = field(default=None, compare=False, repr=False)

    @classmethod
    def of(
        cls,
        rule: Flat,
        size: Any,
        axis_name: Hashable,
        axes: Sequence[int | None],
        operands: Sequence[Any],
        outer: BatchTrace | None = None,
    ) -> _BatchedJVPRule:
        tangent_axes = [
            axis
            for axis, operand in zip(axes, operands, strict=True)
            if dtypes.is_inexact(operand.type.dtype)
        ]
        return cls(rule, size, axis_name, tuple(axes), tuple(tangent_axes), outer)

    def __call__(self, zeros: tuple[bool, ...], *operands: Any) -> list[Any]:
        present = [axis for axis, zero in zip(self.tangent_axes, zeros, strict=True) if not zero]
        mapped = BatchedFunction(
            partial(self.rule, zeros),
            self.size,
            self.axis_name,
            (*self.axes, *present),
            self.outer,
        )
        return mapped(*operands)


class CustomJVP(Primitive, name="custom_jvp_function"):
    """Call a Python function whose derivative is given by another."""

    function: Flat
    rule: Flat
    runs_function: ClassVar[bool] = True
    EXCUSED: ClassVar[dict[str, str]] = {
        **FUNCTION_EXCUSES,
        "samples": "it is tested through its Program form, and by the tests of custom_jvp",
    }

    def run_function(self, operands: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(self.function(*operands))

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        return _apply_jvp_rule(self.rule, primals, tangents)

    def batch(
        self, size: Any, axis_name: Hashable, operands: Sequence[Any], axes: Sequence[int | None]
    ) -> tuple[Sequence[Any], Sequence[int | None]]:
        return self.batch_function(None, size, axis_name, operands, axes)

    def batch_function(
        self,
        outer: Any,
        size: Any,
        axis_name: Hashable,
        operands: Sequence[Any],
        axes: Sequence[int | None],
    ) -> tuple[Sequence[Any], Sequence[int | None]]:
        place = tuple(axes)
        op = CustomJVP(
            BatchedFunction(self.function, size, axis_name, place, outer),
            _BatchedJVPRule.of(self.rule, size, axis_name, axes, operands, outer),
        )
        results = op.bind(*operands)
        return results, (0,) * len(results)

    def staged(self, trace: Any, operands: Sequence[Any]) -> tuple[Primitive, Sequence[Any]]:
        program, captured = stage(self.function, [x.type for x in operands], "custom_jvp")
        op = CustomJVPProgram(program, self.rule, len(captured))
        return op, (*captured, *operands)


class CustomJVPProgram(ProgramCall, name="custom_jvp"):
    """Apply a Program whose derivative is given by a function.

    Args:
      program: takes what the function closed over, then its arguments.
      rule: `(zeros, *primals, *tangents) -> (*outputs, *tangents)`, of the arguments alone, as
        `_apply_jvp_rule` calls it.
      captured: how many inputs the function closed over.
    """

    rule: Flat = None  # type: ignore[assignment]
    captured: int = 0

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        if all_zero(tangents[self.captured :]):
            # Only what it closes over is differentiated: the rule says nothing about that.
            return super().jvp(primals, tangents)
        check_captured("custom_jvp", tangents[: self.captured])
        return _apply_jvp_rule(self.rule, primals[self.captured :], tangents[self.captured :])

    def linearize(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        if all_zero(tangents[self.captured :]):
            return super().linearize(primals, tangents)
        return self.jvp(primals, tangents)

    def with_program(self, program: Program, role: str) -> ProgramCall:
        return JitCall(program, self.name)

    # A rule may apply its function to tangents (a safe division divides them safely too). What is
    # linear already needs no derivative, so the function is transposed as it stands.

    def batch(
        self, size: Any, axis_name: Hashable, operands: Sequence[Any], axes: Sequence[int | None]
    ) -> tuple[Sequence[Any], Sequence[int | None]]:
        all_mapped = (True,) * len(self.program.outputs)
        program, _ = batch_program(self.program, size, axis_name, tuple(axes), all_mapped)
        own = slice(self.captured, None)
        rule = _BatchedJVPRule.of(self.rule, size, axis_name, axes[own], operands[own])
        op = CustomJVPProgram(program, rule, self.captured)
        return op.bind(*operands), (0,) * len(all_mapped)

    def used_operands(self, used_outputs: Sequence[bool]) -> tuple[Primitive, Sequence[bool]]:
        return self, ()

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Any]:
        types = [ArrayType((3,), np.dtype("float64")), ArrayType((), np.dtype("float64"))]
        program = stage_closed(lambda x, y: [x * y], types, "product")

        def rule(zeros: tuple[bool, ...], x: Any, y: Any, *tangents: Any) -> list[Any]:
            given = iter(tangents)
            dx, dy = [
                0.0 * x if zero else next(given) for zero, x in zip(zeros, (x, y), strict=True)
            ]
            return [x * y, dx * y + x * dy]

        yield Sample(cls(program, rule, 0), (rng.normal(size=3), np.float64(2.5)))


def all_zero(tangents: Sequence[Any]) -> bool:
    return all(type(tangent) is Zero for tangent in tangents)


def check_captured(name: str, tangents: Sequence[Any]) -> None:
    for tangent in tangents:
        if type(tangent) is not Zero:
            raise NonDifferentiableError(
                f"{name}: the function closes over a value of type {tangent.type} that is being "
                f"differentiated, but its rule gives derivatives of its arguments only. Pass the "
                f"value as an argument, or use closure_convert."
            )
