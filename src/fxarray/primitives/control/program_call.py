"""ProgramCall: the one mechanism behind every operation that applies a Program.

Its derivative, linearization, transpose and vectorization are those of the Program, so a subclass
says only what differs: how the new Program is wrapped (`with_program`), or a rule of its own.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from fxarray.core.effects import Effect, named_axes
from fxarray.core.errors import ProgramError
from fxarray.core.ir import Program
from fxarray.core.primitive import Linear, Primitive, Sample, Zero
from fxarray.core.types import ArrayType
from fxarray.interpreters.batch import batch_program
from fxarray.interpreters.dce import eliminate_dead_code
from fxarray.interpreters.jvp import jvp_program
from fxarray.interpreters.linearize import linearize_program
from fxarray.interpreters.staging import stage_closed
from fxarray.interpreters.transpose import transpose_program
from fxarray.primitives.control.numpy_runner import numpy_function


class ProgramCall(Primitive):
    """Apply `program` to the operands."""

    program: Program
    memoise_infer: ClassVar[bool] = False
    EXCUSED: ClassVar[dict[str, str]] = {
        "shard": "the Program inside is partitioned, not the call",
        "lower": "the Program inside is compiled, not the call",
    }

    @property
    def effects(self) -> frozenset[Effect]:
        return self.program.effects

    @property
    def axis_names(self) -> tuple[Hashable, ...]:
        return named_axes(self.program.effects)

    @property
    def compiled_program(self) -> Program:
        return self.program

    def with_program(self, program: Program, role: str) -> ProgramCall:
        """This operation with another Program; `role` says what that is (jvp, known, ...)."""
        return type(self)(**{**self.parameters(), "program": program})

    def infer(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        expected = self.program.input_types
        if len(types) != len(expected):
            raise ProgramError(
                f"{self.name}: {self.program.name} takes {len(expected)} operands, got {len(types)}"
            )
        for number, (given, wanted) in enumerate(zip(types, expected, strict=True)):
            if not given.same_array(wanted):
                raise ProgramError(
                    f"{self.name}: operand {number} of {self.program.name} is {given}, expected "
                    f"{wanted}"
                )
        return self.program.output_types

    def reference(self, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        with np.errstate(all="ignore"):
            return numpy_function(self.program, "reference")(*arrays)

    def eager(self, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        with np.errstate(all="ignore"):
            return numpy_function(self.program)(*arrays)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        nonzeros = tuple([type(tangent) is not Zero for tangent in tangents])
        program, out_nonzeros = jvp_program(self.program, nonzeros)
        given = [tangent for tangent in tangents if type(tangent) is not Zero]
        results = self.with_program(program, "jvp").bind(*primals, *given)
        outputs = results[: len(out_nonzeros)]
        return outputs, spread_zeros(outputs, out_nonzeros, results[len(out_nonzeros) :])

    def linearize(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        nonzeros = tuple([type(tangent) is not Zero for tangent in tangents])
        linearized = linearize_program(self.program, nonzeros)
        known = self.with_program(linearized.known, "known").bind(*primals)
        outputs = list(known[: len(linearized.out_nonzeros)])
        residuals = linearized.pick_residuals(primals, known)
        given = [tangent for tangent in tangents if type(tangent) is not Zero]
        linear = self.with_program(linearized.linear, "linear").bind(*residuals, *given)
        return outputs, spread_zeros(outputs, linearized.out_nonzeros, linear)

    def transpose(self, cotangents: Sequence[Any], *operands: Any) -> Sequence[Any]:
        linear = tuple([type(operand) is Linear for operand in operands])
        nonzeros = tuple([type(cotangent) is not Zero for cotangent in cotangents])
        program, found = transpose_program(self.program, linear, nonzeros)
        values = [operand for operand in operands if type(operand) is not Linear]
        given = [cotangent for cotangent in cotangents if type(cotangent) is not Zero]
        results = iter(self.with_program(program, "transpose").bind(*values, *given))
        wanted = iter(found)
        return [
            None
            if type(operand) is not Linear
            else next(results)
            if next(wanted)
            else Zero(operand.type)
            for operand in operands
        ]

    def batch(
        self, size: Any, axis_name: Hashable, operands: Sequence[Any], axes: Sequence[int | None]
    ) -> tuple[Sequence[Any], Sequence[int | None]]:
        program, mapped = batch_program(self.program, size, axis_name, tuple(axes))
        results = self.with_program(program, "batch").bind(*operands)
        return results, [0 if is_mapped else None for is_mapped in mapped]

    def used_operands(self, used_outputs: Sequence[bool]) -> tuple[Primitive, Sequence[bool]]:
        program, used = eliminate_dead_code(self.program, used_outputs, keep_inputs=False)
        return self.with_program(program, "dce"), used

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Any]:
        types = (ArrayType((3,), np.dtype("float32")), ArrayType((), np.dtype("float32")))
        program = stage_closed(lambda x, y: [x * y + x, y], types, "sample")
        op = cls(program=program)
        yield Sample(op, (rng.normal(size=3).astype("float32"), np.float32(2.5)))
        yield Sample(op, (np.ones(4, "float32"), np.float32(1)), error=ProgramError)


def spread_zeros(
    outputs: Sequence[Any], nonzeros: Sequence[bool], tangents: Sequence[Any]
) -> list[Any]:
    """One tangent per output: the given ones, and Zeros in between."""
    given = iter(tangents)
    return [
        next(given) if nonzero else Zero(output.type.tangent())
        for output, nonzero in zip(outputs, nonzeros, strict=True)
    ]


class JitCall(ProgramCall, name="jit"):
    """A call of a jitted function from within another traced function."""

    label: str = "jit"
    inline: bool = False
