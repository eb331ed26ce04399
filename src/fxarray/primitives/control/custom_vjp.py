"""Operations of functions with reverse-mode rules of their own; see `custom` for the whole."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from fxarray.core import dtypes
from fxarray.core.errors import NonDifferentiableError
from fxarray.core.ir import Program
from fxarray.core.primitive import Linear, Primitive, Sample, Zero
from fxarray.core.types import ArrayType
from fxarray.interpreters.batch import BatchTrace, batch_flat, batch_program, to_axis
from fxarray.interpreters.staging import stage, stage_closed
from fxarray.primitives.control.custom import (
    FUNCTION_EXCUSES,
    BatchedFunction,
    Flat,
    all_zero,
    check_captured,
)
from fxarray.primitives.control.program_call import JitCall, ProgramCall
from fxarray.primitives.reduce import reduce_sum


@dataclass(frozen=True)
class VJPRule:
    """The two halves of a reverse-mode rule, flat.

    Args:
      forward: `(perturbed, *primals) -> (*outputs, *residuals)`; `perturbed` says which
        operands are differentiated.
      backward: `(cotangents, *residuals) -> cotangents of the primals` (Zeros allowed both ways).
      output_count: called after `forward`, how many of its results are outputs.
    """

    forward: Callable[..., Sequence[Any]]
    backward: Callable[..., Sequence[Any]]
    output_count: Callable[[], int]


@dataclass(frozen=True)
class _BatchedForward:
    rule: VJPRule
    size: Any
    axis_name: Hashable
    axes: tuple[int | None, ...]
    outer: BatchTrace | None = field(default=None, compare=False, repr=False)

    def __call__(self, perturbed: tuple[bool, ...], *operands: Any) -> list[Any]:
        def forward(*values: Any) -> Sequence[Any]:
            return self.rule.forward(perturbed, *values)

        mapped = BatchedFunction(forward, self.size, self.axis_name, self.axes, self.outer)
        return mapped(*operands)


@dataclass(frozen=True)
class _BatchedBackward:
    """Backward, mapped: residuals and cotangents along axis 0; sums where an operand was shared."""

    rule: VJPRule
    size: Any
    axis_name: Hashable
    axes: tuple[int | None, ...]
    outer: BatchTrace | None = field(default=None, compare=False, repr=False)

    def __call__(self, cotangents: Sequence[Any], *residuals: Any) -> list[Any]:
        given = [c for c in cotangents if type(c) is not Zero]
        zeros: list[Zero | None] = []

        def backward(*values: Any) -> list[Any]:
            parts = iter(values[: len(given)])
            inner = [
                Zero(_without_axis(c.type)) if type(c) is Zero else next(parts) for c in cotangents
            ]
            results = self.rule.backward(inner, *values[len(given) :])
            zeros.extend(r if type(r) is Zero else None for r in results)
            return [r for r in results if type(r) is not Zero]

        count = len(given) + len(residuals)
        results, places = batch_flat(
            backward, self.size, self.axis_name, [*given, *residuals], (0,) * count, self.outer
        )
        values = iter(zip(results, places, strict=True))
        finished: list[Any] = []
        for zero, axis in zip(zeros, self.axes, strict=True):
            if zero is not None:
                shape = zero.type.shape if axis is None else _inserted(zero.type, self.size, axis)
                finished.append(Zero(zero.type.replace(shape=shape)))
                continue
            value, place = next(values)
            if axis is None:
                # One operand for all lanes: its cotangent is the sum over them.
                value = to_axis(value, self.size, place, 0)
                finished.append(reduce_sum(value, (0,)))
            else:
                finished.append(to_axis(value, self.size, place, axis))
        return finished


def _without_axis(type: ArrayType) -> ArrayType:
    return type.replace(shape=type.shape[1:])


def _inserted(type: ArrayType, size: Any, axis: int) -> tuple[Any, ...]:
    return (*type.shape[:axis], size, *type.shape[axis:])


def _batched_rule(
    rule: VJPRule,
    size: Any,
    axis_name: Hashable,
    axes: tuple[int | None, ...],
    outer: BatchTrace | None = None,
) -> VJPRule:
    return VJPRule(
        _BatchedForward(rule, size, axis_name, axes, outer),
        _BatchedBackward(rule, size, axis_name, axes, outer),
        rule.output_count,
    )


def _linearize_by_rule(
    rule: VJPRule, primals: Sequence[Any], tangents: Sequence[Any]
) -> tuple[Sequence[Any], Sequence[Any]]:
    perturbed = tuple([type(tangent) is not Zero for tangent in tangents])
    results = list(rule.forward(perturbed, *primals))
    count = rule.output_count()
    outputs, residuals = results[:count], results[count:]
    given = [tangent for tangent in tangents if type(tangent) is not Zero]
    op = CustomVJPLinear(
        rule.backward,
        perturbed,
        tuple([primal.type.tangent() for primal in primals]),
        tuple([output.type.tangent() for output in outputs]),
    )
    return outputs, [
        tangent if dtypes.is_inexact(output.type.dtype) else Zero(output.type.tangent())
        for output, tangent in zip(outputs, op.bind(*residuals, *given), strict=True)
    ]


def _no_forward_mode(name: str) -> NonDifferentiableError:
    return NonDifferentiableError(
        f"{name}: forward-mode differentiation (jvp, jacfwd, hessian) of a function with a "
        f"custom_vjp rule is not defined, since the rule only goes backwards. Use reverse mode "
        f"(grad, vjp, jacrev), "
        f"or custom_jvp."
    )


class CustomVJP(Primitive, name="custom_vjp_function"):
    """Call a Python function whose reverse-mode derivative is given by a rule."""

    function: Flat
    rule: VJPRule
    runs_function: ClassVar[bool] = True
    EXCUSED: ClassVar[dict[str, str]] = {
        **FUNCTION_EXCUSES,
        "jvp": "a custom_vjp rule only goes backwards",
        "samples": "it is tested by the tests of custom_vjp",
    }

    def run_function(self, operands: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(self.function(*operands))

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        raise _no_forward_mode("custom_vjp")

    def linearize(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        return _linearize_by_rule(self.rule, primals, tangents)

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
        function = BatchedFunction(self.function, size, axis_name, place, outer)
        op = CustomVJP(function, _batched_rule(self.rule, size, axis_name, place, outer))
        results = op.bind(*operands)
        return results, (0,) * len(results)

    def staged(self, trace: Any, operands: Sequence[Any]) -> tuple[Primitive, Sequence[Any]]:
        program, captured = stage(self.function, [x.type for x in operands], "custom_vjp")
        op = CustomVJPProgram(program, self.rule, len(captured))
        return op, (*captured, *operands)


class CustomVJPProgram(ProgramCall, name="custom_vjp"):
    """Apply a Program whose reverse-mode derivative is given by a rule.

    Args:
      program: takes what the function closed over, then its arguments.
      rule: of the arguments alone.
      captured: how many inputs the function closed over.
    """

    rule: VJPRule = None  # type: ignore[assignment]
    captured: int = 0
    EXCUSED: ClassVar[dict[str, str]] = {
        **ProgramCall.EXCUSED,
        "jvp": "a custom_vjp rule only goes backwards",
        "transpose": FUNCTION_EXCUSES["transpose"],
    }

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        if all_zero(tangents[self.captured :]):
            return super().jvp(primals, tangents)
        raise _no_forward_mode("custom_vjp")

    def with_program(self, program: Program, role: str) -> ProgramCall:
        return JitCall(program, self.name)

    def linearize(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        if all_zero(tangents[self.captured :]):
            return super().linearize(primals, tangents)
        check_captured("custom_vjp", tangents[: self.captured])
        return _linearize_by_rule(self.rule, primals[self.captured :], tangents[self.captured :])

    def transpose(self, cotangents: Sequence[Any], *operands: Any) -> Sequence[Any]:
        raise self.missing("transpose")

    def batch(
        self, size: Any, axis_name: Hashable, operands: Sequence[Any], axes: Sequence[int | None]
    ) -> tuple[Sequence[Any], Sequence[int | None]]:
        all_mapped = (True,) * len(self.program.outputs)
        program, _ = batch_program(self.program, size, axis_name, tuple(axes), all_mapped)
        rule = _batched_rule(self.rule, size, axis_name, tuple(axes[self.captured :]))
        op = CustomVJPProgram(program, rule, self.captured)
        return op.bind(*operands), (0,) * len(all_mapped)

    def used_operands(self, used_outputs: Sequence[bool]) -> tuple[Primitive, Sequence[bool]]:
        return self, ()

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Any]:
        types = [ArrayType((3,), np.dtype("float64"))]
        program = stage_closed(lambda x: [x * x], types, "square")
        rule = VJPRule(
            lambda perturbed, x: [x * x, x],
            lambda cotangents, x: [2.0 * x * cotangents[0]],
            lambda: 1,
        )
        yield Sample(cls(program, rule, 0), (rng.normal(size=3),))


class CustomVJPLinear(Primitive, name="custom_vjp_linear"):
    """The derivative of a function with a custom_vjp rule, which exists only as its transpose.

    Operands are the residuals, then the tangents of the perturbed operands.

    Args:
      backward: `(cotangents, *residuals) -> cotangents`, of all operands of the function.
      perturbed: which operands of the function have tangents here.
      input_types: the tangent types of all operands.
      output_types: the tangent types of the results.
    """

    backward: Callable[..., Sequence[Any]]
    perturbed: tuple[bool, ...]
    input_types: tuple[ArrayType, ...]
    output_types: tuple[ArrayType, ...]
    memoise_infer: ClassVar[bool] = False
    EXCUSED: ClassVar[dict[str, str]] = {
        "reference": "forwards it has no value; only its transpose is defined",
        "jvp": "forwards it has no value; only its transpose is defined",
        "batch": "vmap maps the function before it is linearized",
        "shard": "its transpose runs the user's rule, which is partitioned itself",
        "lower": "only its transpose runs",
        "samples": "it has no value; the tests of custom_vjp cover its transpose",
    }

    def infer(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        return self.output_types

    def reference(self, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        raise _no_forward_mode("custom_vjp")

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        raise NonDifferentiableError(
            "custom_vjp: the rule for the backward pass is being differentiated itself, in forward "
            "mode, or the function closes over a value that is being differentiated, of which its "
            "rule gives no derivative. Pass that value as an argument, or use closure_convert."
        )

    def transpose(self, cotangents: Sequence[Any], *operands: Any) -> Sequence[Any]:
        count = sum(self.perturbed)
        residuals = operands[: len(operands) - count]
        results = list(self.backward(cotangents, *residuals))
        wanted = [r for r, p in zip(results, self.perturbed, strict=True) if p]
        given = operands[len(operands) - count :]
        return [
            *[None] * len(residuals),
            *[r if type(x) is Linear else None for r, x in zip(wanted, given, strict=True)],
        ]
