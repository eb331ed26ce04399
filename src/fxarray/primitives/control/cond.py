"""Cond: one of several Programs, chosen by an index; `lax.cond` and `lax.switch`."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Any

import numpy as np

from fxarray.core import dims, dtypes
from fxarray.core.effects import must_keep
from fxarray.core.errors import ProgramError
from fxarray.core.hooks import operators
from fxarray.core.ir import Program
from fxarray.core.primitive import Linear, Primitive, Sample, Zero
from fxarray.core.types import ArrayType, Shape
from fxarray.interpreters.batch import to_axis
from fxarray.interpreters.staging import stage_closed
from fxarray.primitives.control.branches import (
    batch_branches,
    jvp_branches,
    linearize_branches,
    selections,
    shrink_branches,
    transpose_branches,
)
from fxarray.primitives.control.lanes import (
    add_lane_axis,
    lane_type,
    over_lanes,
    take_lanes,
    type_in_lane,
)
from fxarray.primitives.control.numpy_runner import numpy_function
from fxarray.primitives.control.surgery import ControlFlow, nonzero_flags, spread
from fxarray.primitives.reduce import reduce_sum


class Cond(ControlFlow, name="cond"):
    """`branches[index](*operands)`, the index clamped to the branches that there are.

    All branches take and return the same types (outputs may differ in weakness). With `lanes`, the
    index has that shape and each lane takes its own branch: a branch is never run on the operands
    of a lane that does not take it, so neither NaN nor a loop without end can come from one.

    Args:
      branches: the Programs.
      lanes: the sizes over which vmap mapped the index.
      mapped: with lanes, which operands after the index are mapped over them.
    """

    branches: tuple[Program, ...]
    lanes: Shape = ()
    mapped: tuple[bool, ...] = ()

    @property
    def programs(self) -> tuple[Program, ...]:
        return self.branches

    def infer(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        index, *operands = types
        if index.dtype != np.dtype("int32") or not (
            len(index.shape) == len(self.lanes) and all(map(dims.same, index.shape, self.lanes))
        ):
            raise ProgramError(f"cond: the index is {index}, expected i32{list(self.lanes)}")
        self._check_operands(operands)
        outputs: list[ArrayType] = []
        for position, columns in enumerate(
            zip(*[b.output_types for b in self.branches], strict=True)
        ):
            first = columns[0]
            for number, other in enumerate(columns):
                if not other.same_array(first):
                    raise ProgramError(
                        f"cond: output {position} is {other} of branch {number}, but {first} of "
                        f"branch 0"
                    )
            joined = first.replace(weak=all(column.weak for column in columns))
            outputs.append(lane_type(joined, self.lanes, True))
        return tuple(outputs)

    def _check_operands(self, operands: Sequence[ArrayType]) -> None:
        flags = self.operand_flags(len(operands))
        for branch_number, branch in enumerate(self.branches):
            if len(branch.inputs) != len(operands):
                raise ProgramError(
                    f"cond: branch {branch_number} takes {len(branch.inputs)} operands, got "
                    f"{len(operands)}"
                )
            for number, (variable, given) in enumerate(zip(branch.inputs, operands, strict=True)):
                in_lane = type_in_lane(given, self.lanes, flags[number], f"cond: operand {number}")
                if not in_lane.same_array(variable.type):
                    raise ProgramError(
                        f"cond: operand {number} is {in_lane}, branch {branch_number} takes "
                        f"{variable.type}"
                    )

    def operand_flags(self, count: int) -> tuple[bool, ...]:
        """Which operands after the index are mapped over lanes."""
        return self.mapped if self.lanes else (False,) * count

    # --- values -----------------------------------------------------------------------------

    def _choose(self, index: np.ndarray) -> np.ndarray:
        return np.clip(index, 0, len(self.branches) - 1)

    def reference(self, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        return self._run_each_lane(arrays, "reference")

    def eager(self, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        if not self.lanes:
            number = min(max(int(arrays[0]), 0), len(self.branches) - 1)
            return numpy_function(self.branches[number])(*arrays[1:])
        if must_keep(self.effects):
            return self._run_each_lane(arrays, "eager")
        return self._run_all_lanes(arrays)

    def _run_each_lane(self, arrays: Sequence[np.ndarray], rule: str) -> tuple[np.ndarray, ...]:
        choice, operands = self._choose(arrays[0]), arrays[1:]
        shape = choice.shape
        results = self._empty_results(shape)
        for lane in np.ndindex(shape):
            values = [
                operand[(*lane, ...)] if flag else operand
                for operand, flag in zip(operands, self.operand_flags(len(operands)), strict=True)
            ]
            outputs = numpy_function(self.branches[choice[lane]], rule)(*values)
            if not shape:
                return outputs
            for result, output in zip(results, outputs, strict=True):
                result[lane] = output
        return tuple(results)

    def _run_all_lanes(self, arrays: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
        choice, operands = self._choose(arrays[0]), arrays[1:]
        results: list[np.ndarray] | None = None
        for number, branch in enumerate(self.branches):
            taking = choice == number
            if not taking.any():
                continue
            run = numpy_function(over_lanes(branch, choice.shape, self.mapped))
            if taking.all():
                return run(*operands)
            # Lanes that take another branch compute on the operands of one that takes this.
            source = np.where(taking, np.arange(taking.size).reshape(taking.shape), taking.argmax())
            outputs = run(*take_lanes(operands, self.mapped, source))
            if results is None:
                results = self._empty_results(choice.shape)
            for result, output in zip(results, outputs, strict=True):
                result[taking] = output[taking]
        return tuple(self._empty_results(choice.shape) if results is None else results)

    def _empty_results(self, shape: tuple[int, ...]) -> list[np.ndarray]:
        return [
            np.empty((*shape, *type.shape), dtypes.physical(type.dtype))  # type: ignore[arg-type]
            for type in self.branches[0].output_types
        ]

    # --- derivatives ------------------------------------------------------------------------

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        nonzeros = nonzero_flags(tangents[1:])
        branches, out_nonzeros = jvp_branches(self.branches, nonzeros)
        given = [t for t in tangents[1:] if type(t) is not Zero]
        op = Cond(branches, self.lanes, self._with_tangents(self.mapped, nonzeros))
        results = op.bind(*primals, *given)
        outputs = results[: len(out_nonzeros)]
        types = [output.type.tangent() for output in outputs]
        return outputs, spread(results[len(out_nonzeros) :], out_nonzeros, types)

    def _with_tangents(
        self, mapped: tuple[bool, ...], nonzeros: Sequence[bool]
    ) -> tuple[bool, ...]:
        if not self.lanes:
            return ()
        return mapped + tuple([m for m, n in zip(mapped, nonzeros, strict=True) if n])

    def linearize(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        nonzeros = nonzero_flags(tangents[1:])
        parts = linearize_branches(self.branches, nonzeros)
        index, operands = primals[0], primals[1:]
        results = Cond(parts.known, self.lanes, self.mapped).bind(*primals)
        count = len(parts.out_nonzeros)
        outputs = results[:count]
        residuals = [operands[i] for i in parts.inputs] + [outputs[i] for i in parts.outputs]
        residuals += results[count:]
        mapped: tuple[bool, ...] = ()
        if self.lanes:
            mapped = tuple([self.mapped[i] for i in parts.inputs])
            mapped += (True,) * (len(residuals) - len(mapped))
            mapped += tuple([m for m, n in zip(self.mapped, nonzeros, strict=True) if n])
        given = [t for t in tangents[1:] if type(t) is not Zero]
        linear = Cond(parts.linear, self.lanes, mapped).bind(index, *residuals, *given)
        types = [output.type.tangent() for output in outputs]
        return outputs, spread(linear, parts.out_nonzeros, types)

    def transpose(self, cotangents: Sequence[Any], *operands: Any) -> Sequence[Any]:
        index, *rest = operands
        linear = tuple([type(operand) is Linear for operand in rest])
        nonzeros = nonzero_flags(cotangents)
        branches, found = transpose_branches(self.branches, linear, nonzeros)
        values = [x for x in rest if type(x) is not Linear]
        given = [ct for ct in cotangents if type(ct) is not Zero]
        flags = self.operand_flags(len(rest))
        mapped: tuple[bool, ...] = ()
        if self.lanes:
            mapped = tuple([m for m, is_linear in zip(flags, linear, strict=True) if not is_linear])
            mapped += (True,) * len(given)
        results = iter(Cond(branches, self.lanes, mapped).bind(index, *values, *given))
        wanted = iter(found)
        answers: list[Any] = [None]
        for operand, flag in zip(rest, flags, strict=True):
            if type(operand) is not Linear:
                answers.append(None)
            elif not next(wanted):
                answers.append(Zero(operand.type))
            else:
                answer = next(results)
                answers.append(answer if flag else reduce_sum(answer, range(len(self.lanes))))
        return answers

    # --- vmap and dead code -----------------------------------------------------------------

    def batch(
        self, size: Any, axis_name: Hashable, operands: Sequence[Any], axes: Sequence[int | None]
    ) -> tuple[Sequence[Any], Sequence[int | None]]:
        if axes[0] is not None:
            if axis_name is not None and axis_name in self.axis_names:
                return self._batch_by_selection(size, axis_name, operands, axes)
            return self._batch_index(size, operands, axes)
        flags = self.operand_flags(len(operands) - 1)
        places = [len(self.lanes) if flag else 0 for flag in flags]
        moved = [
            x if axis is None else to_axis(x, size, axis, place)
            for x, axis, place in zip(operands[1:], axes[1:], places, strict=True)
        ]
        lane_axes = tuple([None if axis is None else 0 for axis in axes[1:]])
        branches, out_mapped = batch_branches(self.branches, size, axis_name, lane_axes)
        results = Cond(branches, self.lanes, self.mapped).bind(operands[0], *moved)
        return results, [len(self.lanes) if flag else None for flag in out_mapped]

    def _batch_index(
        self, size: Any, operands: Sequence[Any], axes: Sequence[int | None]
    ) -> tuple[Sequence[Any], Sequence[int | None]]:
        index = to_axis(operands[0], size, axes[0], 0)
        flags = self.operand_flags(len(operands) - 1)
        pairs = [
            add_lane_axis(x, axis, size, self.lanes, flag)
            for x, axis, flag in zip(operands[1:], axes[1:], flags, strict=True)
        ]
        mapped = tuple([flag for _, flag in pairs])
        op = Cond(self.branches, (size, *self.lanes), mapped)
        results = op.bind(index, *[x for x, _ in pairs])
        return results, (0,) * len(results)

    def _batch_by_selection(
        self, size: Any, axis_name: Hashable, operands: Sequence[Any], axes: Sequence[int | None]
    ) -> tuple[Sequence[Any], Sequence[int | None]]:
        # Collectives over the mapped axis involve all lanes, whatever branch each takes: so every
        # branch is run for all lanes, and the results are chosen afterwards.
        count = len(self.branches)
        everywhere = [Cond((branch,), self.lanes, self.mapped) for branch in self.branches]
        zero_index = operators.zeros(ArrayType(self.lanes, np.dtype("int32")))
        columns: list[list[Any]] = []
        for op in everywhere:
            results, out_axes = op.batch(
                size, axis_name, [zero_index, *operands[1:]], [None, *axes[1:]]
            )
            columns.append([to_axis(r, size, a, 0) for r, a in zip(results, out_axes, strict=True)])
        index = to_axis(operands[0], size, axes[0], 0)
        results = [pick for column in columns for pick in column]
        width = len(columns[0])
        types = [r.type.replace(shape=r.type.shape[index.ndim :]) for r in results]
        op = Cond(selections(tuple(types), count), index.type.shape, (True,) * len(results))
        picked = op.bind(index, *results)
        return picked, (0,) * width

    def used_operands(self, used_outputs: Sequence[bool]) -> tuple[Primitive, Sequence[bool]]:
        branches, used = shrink_branches(self.branches, tuple(used_outputs))
        flags = (
            tuple([m for m, u in zip(self.mapped, used, strict=True) if u]) if self.lanes else ()
        )
        return Cond(branches, self.lanes, flags), (True, *used)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Any]:
        float32 = np.dtype("float32")
        types = (ArrayType((3,), float32), ArrayType((), float32))
        branches = (
            stage_closed(lambda x, y: [operators.add_cotangents(x, y), y], types, "first"),
            stage_closed(lambda x, y: [x, operators.zeros(y.type)], types, "second"),
        )
        x, y = rng.normal(size=3).astype(float32), np.float32(2.5)
        yield Sample(cls(branches), (np.int32(0), x, y))
        yield Sample(cls(branches), (np.int32(7), x, y))
        lanes = cls(branches, (4,), (False, True))
        yield Sample(
            lanes, (np.array([0, 1, 1, -2], "int32"), x, rng.normal(size=4).astype(float32))
        )
        yield Sample(cls(branches), (np.int32(0), y, y), error=ProgramError)
