"""Solutions defined by equations: roots, and solutions of linear systems.

Both are differentiated by what they solve, not by how: the derivative of the algorithm is never
taken (implicit function theorem; Christianson, Reverse accumulation and implicit functions, 1998).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from fxarray.core.errors import ArgumentError, ProgramError
from fxarray.core.ir import Program
from fxarray.core.primitive import Linear, Sample, Zero, add_tangents, instantiate
from fxarray.core.types import ArrayType
from fxarray.interpreters.batch import batch_program, to_axis
from fxarray.interpreters.evaluate import evaluate
from fxarray.interpreters.linearize import linearize_program
from fxarray.interpreters.memo import memoised
from fxarray.interpreters.staging import stage_closed
from fxarray.interpreters.transpose import transpose_program
from fxarray.primitives.arithmetic import add, div, mul, neg, sub
from fxarray.primitives.control.numpy_runner import numpy_function
from fxarray.primitives.control.surgery import (
    ControlFlow,
    check_types,
    nonzero_flags,
    split,
    spread,
)
from fxarray.primitives.create import scalar


def tangents_of(
    program: Program, primals: Sequence[Any], tangents: Sequence[Any]
) -> tuple[Any, ...]:
    """The tangents of a Program's outputs; they are linear in `tangents`, which may be Zeros."""
    nonzeros = nonzero_flags(tangents)
    if not any(nonzeros):
        return tuple([Zero(type.tangent()) for type in program.output_types])
    parts = linearize_program(program, nonzeros)
    known = evaluate(parts.known, primals)
    residuals = parts.pick_residuals(primals, known)
    given = [t for t in tangents if type(t) is not Zero]
    results = evaluate(parts.linear, [*residuals, *given])
    types = [type.tangent() for type in program.output_types]
    return tuple(spread(results, parts.out_nonzeros, types))


@memoised
def _batch_whole(
    program: Program, size: Any, axis_name: Hashable, mapped: tuple[bool, ...]
) -> Program:
    axes = tuple([0 if flag else None for flag in mapped])
    return batch_program(program, size, axis_name, axes, (True,) * len(program.outputs))[0]


def _to_front(operands: Sequence[Any], size: Any, axes: Sequence[int | None]) -> list[Any]:
    return [
        x if axis is None else to_axis(x, size, axis, 0)
        for x, axis in zip(operands, axes, strict=True)
    ]


class CustomRoot(ControlFlow, name="custom_root"):
    """The x at which `function` is zero, as `solve` finds it.

    Operands are the constants of the three Programs, in their order, and the initial guess; results
    are x and what else `solve` returns, which has no derivative.

    Args:
      function: (consts, x) -> values of x's types.
      solve: (consts, guess) -> (x, aux).
      tangent_solve: (consts, x, y) -> the dx whose image under the derivative at x is y.
      counts: how many constants each takes.
    """

    function: Program
    solve: Program
    tangent_solve: Program
    counts: tuple[int, int, int]
    EXCUSED: ClassVar[dict[str, str]] = {
        **ControlFlow.EXCUSED,
        "transpose": "it is not linear in any operand",
    }

    @property
    def programs(self) -> tuple[Program, ...]:
        return (self.function, self.solve, self.tangent_solve)

    def infer(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        of_function, of_solve, of_tangent, guess = split(types, *self.counts)
        outputs = self.solve.output_types
        solution = outputs[: len(guess)]
        check_types(f"{self.name}: operand of solve", self.solve.input_types, [*of_solve, *guess])
        check_types(f"{self.name}: result of solve", guess, solution)
        check_types(f"{self.name}: operand of f", self.function.input_types, [*of_function, *guess])
        check_types(f"{self.name}: result of f", guess, self.function.output_types)
        wanted = [*of_tangent, *guess, *guess]
        check_types(
            f"{self.name}: operand of tangent_solve", self.tangent_solve.input_types, wanted
        )
        return outputs

    def reference(self, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        return self._run(arrays, "reference")

    def eager(self, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        return self._run(arrays, "eager")

    def _run(self, arrays: Sequence[np.ndarray], rule: str) -> tuple[np.ndarray, ...]:
        _, of_solve, _, guess = split(arrays, *self.counts)
        with np.errstate(all="ignore"):
            return numpy_function(self.solve, rule)(*of_solve, *guess)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        outputs = self.bind(*primals)
        consts, _, of_tangent, guess = split(primals, *self.counts)
        solution = outputs[: len(guess)]
        # f(consts, x) = 0 along the way, so  df/dx dx = -df/dconsts dconsts.
        const_tangents = [
            *tangents[: self.counts[0]],
            *[Zero(x.type.tangent()) for x in solution],
        ]
        images = tangents_of(self.function, [*consts, *solution], const_tangents)
        zeros = [Zero(output.type.tangent()) for output in outputs]
        if all(type(image) is Zero for image in images):
            return outputs, zeros
        right = [instantiate(image) for image in images]
        found = evaluate(self.tangent_solve, [*of_tangent, *solution, *right])
        return outputs, [*map(neg, found), *zeros[len(solution) :]]

    def batch(
        self, size: Any, axis_name: Hashable, operands: Sequence[Any], axes: Sequence[int | None]
    ) -> tuple[Sequence[Any], Sequence[int | None]]:
        mapped = [axis is not None for axis in axes]
        of_function, of_solve, of_tangent, guess = split(mapped, *self.counts)
        everywhere = (True,) * len(guess)
        op = CustomRoot(
            _batch_whole(self.function, size, axis_name, (*of_function, *everywhere)),
            _batch_whole(self.solve, size, axis_name, (*of_solve, *everywhere)),
            _batch_whole(self.tangent_solve, size, axis_name, (*of_tangent, *everywhere * 2)),
            self.counts,
        )
        start = sum(self.counts)
        moved = _to_front(operands[:start], size, axes[:start])
        moved += [
            to_axis(x, size, a, 0) for x, a in zip(operands[start:], axes[start:], strict=True)
        ]
        results = op.bind(*moved)
        return results, (0,) * len(results)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Any]:
        vector = ArrayType((3,), np.dtype("float32"))
        function = stage_closed(lambda a, x: [sub(mul(a, x), a)], [vector] * 2, "f")
        solve = stage_closed(lambda a, guess: [div(a, a), guess], [vector] * 2, "solve")
        tangent = stage_closed(lambda a, x, y: [div(y, a)], [vector] * 3, "tangent_solve")
        op = cls(function, solve, tangent, (1, 1, 1))
        a = rng.uniform(1, 2, size=3).astype("float32")
        yield Sample(op, (a, a, a, np.zeros(3, "float32")), differentiable=False)
        yield Sample(op, (a, a, a, np.zeros(4, "float32")), error=ProgramError)


class LinearSolve(ControlFlow, name="custom_linear_solve"):
    """The x with `matvec(x) = b`, as `solve` finds it; linear in b.

    Operands are the constants of the four Programs, in their order, and b; results are x and what
    else `solve` returns, which has no derivative.

    Args:
      matvec: (consts, x) -> values of b's types, linear in x.
      vecmat: the transpose of matvec.
      solve: (consts, b) -> (x, aux).
      transpose_solve: (consts, b) -> (x, aux) with vecmat(x) = b, or None.
      counts: how many constants each takes.
      size: the number of arrays in x.
    """

    matvec: Program
    vecmat: Program
    solve: Program
    transpose_solve: Program | None
    counts: tuple[int, int, int, int]
    size: int

    @property
    def programs(self) -> tuple[Program, ...]:
        return (self.solve,)

    def infer(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        of_matvec, of_vecmat, of_solve, of_transpose, b = split(types, *self.counts)
        outputs = self.solve.output_types
        check_types(f"{self.name}: operand of matvec", self.matvec.input_types, [*of_matvec, *b])
        check_types(f"{self.name}: result of matvec", b, self.matvec.output_types)
        check_types(f"{self.name}: operand of vecmat", self.vecmat.input_types, [*of_vecmat, *b])
        check_types(f"{self.name}: operand of solve", self.solve.input_types, [*of_solve, *b])
        check_types(f"{self.name}: result of solve", b, outputs[: self.size])
        if self.transpose_solve is not None:
            given = self.transpose_solve.input_types
            check_types(f"{self.name}: operand of transpose_solve", given, [*of_transpose, *b])
        return outputs

    def reference(self, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        return self._run(arrays, "reference")

    def eager(self, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        return self._run(arrays, "eager")

    def _run(self, arrays: Sequence[np.ndarray], rule: str) -> tuple[np.ndarray, ...]:
        _, _, of_solve, _, b = split(arrays, *self.counts)
        with np.errstate(all="ignore"):
            return numpy_function(self.solve, rule)(*of_solve, *b)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        outputs = self.bind(*primals)
        solution = outputs[: self.size]
        start = sum(self.counts)
        # A x = b along the way, so  A dx = db - dA x.
        const_tangents = [
            *tangents[: self.counts[0]],
            *[Zero(x.type.tangent()) for x in solution],
        ]
        consts = primals[: self.counts[0]]
        images = tangents_of(self.matvec, [*consts, *solution], const_tangents)
        right = [
            db if type(image) is Zero else add_tangents(db, neg(image))
            for db, image in zip(tangents[start:], images, strict=True)
        ]
        zeros = [Zero(output.type.tangent()) for output in outputs]
        if all(type(value) is Zero for value in right):
            return outputs, zeros
        found = self.bind(*primals[:start], *map(instantiate, right))[: self.size]
        return outputs, [*found, *zeros[self.size :]]

    def transpose(self, cotangents: Sequence[Any], *operands: Any) -> Sequence[Any]:
        if self.transpose_solve is None:
            raise ArgumentError(
                "custom_linear_solve: reverse-mode differentiation needs transpose_solve (or "
                "symmetric=True, if matvec is its own transpose)"
            )
        of_matvec, of_vecmat, of_solve, of_transpose, b = split(operands, *self.counts)
        first, second, third, fourth = self.counts
        op = LinearSolve(
            self.vecmat,
            self.matvec,
            self.transpose_solve,
            self.solve,
            (second, first, fourth, third),
            self.size,
        )
        given = [instantiate(ct) for ct in cotangents[: self.size]]
        results = op.bind(*of_vecmat, *of_matvec, *of_transpose, *of_solve, *given)
        answers = zip(b, results, strict=False)
        return [
            *[None] * sum(self.counts),
            *[result if type(x) is Linear else None for x, result in answers],
        ]

    def batch(
        self, size: Any, axis_name: Hashable, operands: Sequence[Any], axes: Sequence[int | None]
    ) -> tuple[Sequence[Any], Sequence[int | None]]:
        mapped = [axis is not None for axis in axes]
        *groups, b = split(mapped, *self.counts)
        everywhere = (True,) * len(b)
        programs = [
            None
            if program is None
            else _batch_whole(program, size, axis_name, (*flags, *everywhere))
            for program, flags in zip(
                (self.matvec, self.vecmat, self.solve, self.transpose_solve), groups, strict=True
            )
        ]
        op = LinearSolve(*programs, self.counts, self.size)  # type: ignore[arg-type]
        start = sum(self.counts)
        moved = _to_front(operands[:start], size, axes[:start])
        moved += [
            to_axis(x, size, a, 0) for x, a in zip(operands[start:], axes[start:], strict=True)
        ]
        results = op.bind(*moved)
        return results, (0,) * len(results)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Any]:
        vector = ArrayType((3,), np.dtype("float32"))
        double = stage_closed(lambda x: [add(x, x)], [vector], "double")
        halve = stage_closed(lambda b: [mul(b, scalar(0.5, vector.dtype))], [vector], "halve")
        op = cls(double, double, halve, halve, (0, 0, 0, 0), 1)
        b = rng.normal(size=3).astype("float32")
        yield Sample(op, (b,))
        yield Sample(op, (b[:2],), error=ProgramError)


def transposed_matvec(matvec: Program, const_count: int) -> Program:
    """The transpose of `(consts, x) -> A x`, with a value for every array of x."""
    size = len(matvec.inputs) - const_count
    linear = (*(False,) * const_count, *(True,) * size)
    program, found = transpose_program(matvec, linear, (True,) * size)
    types = matvec.input_types

    def complete(*values: Any) -> list[Any]:
        results = spread(evaluate(program, values), found, types[const_count:])
        return [instantiate(result) for result in results]

    return stage_closed(complete, types, f"transpose_of_{matvec.name}")
