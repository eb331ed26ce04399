"""Scan: a Program applied to each slice of its operands in turn, carrying values along."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Any

import numpy as np

from fxarray.core import dims, dtypes
from fxarray.core.errors import ProgramError
from fxarray.core.hooks import operators
from fxarray.core.ir import Program
from fxarray.core.primitive import Primitive, Sample, instantiate
from fxarray.core.types import ArrayType, Size
from fxarray.interpreters.batch import to_axis
from fxarray.interpreters.dce import eliminate_dead_code
from fxarray.interpreters.staging import stage_closed
from fxarray.primitives.arithmetic import add
from fxarray.primitives.control import scan_linearize, scan_transpose
from fxarray.primitives.control.loop_programs import (
    batch_body,
    jvp_of_body,
    live_carries,
    skipping_body,
)
from fxarray.primitives.control.numpy_runner import numpy_function
from fxarray.primitives.control.surgery import (
    INT32,
    ControlFlow,
    chosen,
    nonzero_flags,
    split,
    spread,
)
from fxarray.primitives.create import Iota
from fxarray.primitives.reductions import reduce_max


class Scan(ControlFlow, name="scan"):
    """Apply `body(*consts, *carry, *xs[i]) -> (*carry, *ys[i])` for each i in turn.

    Operands are the number of steps (if `bounded`), consts, the initial carry, and xs; results are
    the final carry and ys, whose slices are stacked along a new first axis.

    Args:
      body: the Program.
      const_count: the number of consts.
      carry_count: the number of carries.
      length: the size of the first axis of xs and ys.
      reverse: whether to go from the last slice to the first.
      unroll: how many steps a compiler should write out in a row.
      bounded: whether the first operand, an int32, says how many steps there are (`length` at
        most): then only the first so many slices of xs are read, and other slices of ys are zero.
      recompute: whether reverse-mode computes the carries again, segment by segment, instead of
        storing what it needs of each step; bounded scans only. Memory grows like the square root
        of the length.
    """

    body: Program
    const_count: int
    carry_count: int
    length: Size
    reverse: bool = False
    unroll: int = 1
    bounded: bool = False
    recompute: bool = False

    @property
    def programs(self) -> tuple[Program, ...]:
        return (self.body,)

    def replace(self, **changes: Any) -> Scan:
        """A changed copy."""
        return Scan(**{**self.parameters(), **changes})

    def parts(self, operands: Sequence[Any]) -> tuple[list[Any], list[Any], list[Any], list[Any]]:
        """Operands as (count of steps or nothing, consts, carry, xs)."""
        count, consts, carry, xs = split(
            operands, int(self.bounded), self.const_count, self.carry_count
        )
        return count, consts, carry, xs

    def infer(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        if len(types) != len(self.body.inputs) + self.bounded:
            raise ProgramError(
                f"scan: the body takes {len(self.body.inputs)} operands, got "
                f"{len(types) - self.bounded}"
            )
        count, consts, carry, xs = self.parts(types)
        if count and count[0] != ArrayType((), INT32):
            raise ProgramError(f"scan: the number of steps is {count[0]}, expected i32[]")
        slices: list[ArrayType] = []
        for number, type in enumerate(xs):
            if not type.shape or not dims.same(type.shape[0], self.length):
                raise ProgramError(
                    f"scan: operand {number} of xs is {type}, its first size must be {self.length}"
                )
            slices.append(type.replace(shape=type.shape[1:]))
        given = [*consts, *carry, *slices]
        for number, (actual, wanted) in enumerate(zip(given, self.body.input_types, strict=True)):
            if not actual.same_array(wanted):
                raise ProgramError(
                    f"scan: operand {number} of the body is {actual}, expected {wanted}"
                )
        out_types = self.body.output_types
        carry_types = self.body.input_types[self.const_count : self.const_count + self.carry_count]
        for number, (wanted, actual) in enumerate(zip(carry_types, out_types, strict=False)):
            if not actual.same_array(wanted):
                raise ProgramError(f"scan: carry {number} is {wanted}, after a step {actual}")
        ys = [t.replace(shape=(self.length, *t.shape)) for t in out_types[self.carry_count :]]
        return (*carry_types, *ys)

    # --- values -----------------------------------------------------------------------------

    def reference(self, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        return self._run(arrays, "reference")

    def eager(self, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        return self._run(arrays, "eager")

    def _run(self, arrays: Sequence[np.ndarray], rule: str) -> tuple[np.ndarray, ...]:
        run = numpy_function(self.body, rule)
        count, consts, carry, xs = self.parts(arrays)
        length = xs[0].shape[0] if xs else int(self.length)
        steps = min(max(int(count[0]), 0), length) if count else length
        allocate = np.empty if steps == length else np.zeros
        ys = [
            allocate((length, *type.shape), dtypes.physical(type.dtype))  # type: ignore[arg-type]
            for type in self.body.output_types[self.carry_count :]
        ]
        carry_count = self.carry_count
        with np.errstate(all="ignore"):
            for i in range(steps - 1, -1, -1) if self.reverse else range(steps):
                results = run(*consts, *carry, *[x[i, ...] for x in xs])
                carry = results[:carry_count]
                for stacked, y in zip(ys, results[carry_count:], strict=True):
                    stacked[i] = y
        return (*carry, *ys)

    # --- derivatives ------------------------------------------------------------------------

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        count, consts, carry, xs = self.parts(primals)
        _, *given = self.parts(tangents)
        nonzeros = nonzero_flags([t for part in given for t in part])
        body, carry_nonzeros, y_nonzeros = jvp_of_body(
            self.body, self.const_count, self.carry_count, nonzeros
        )
        operands, op = self.with_tangents(body, carry_nonzeros, (consts, carry, xs), given)
        results = op.bind(*count, *operands)
        return self.split_tangents(results, carry_nonzeros, y_nonzeros)

    def with_tangents(
        self,
        body: Program,
        carry_nonzeros: Sequence[bool],
        primals: Sequence[Sequence[Any]],
        tangents: Sequence[Sequence[Any]],
    ) -> tuple[list[Any], Scan]:
        """The loop of a body made by `jvp_of_body`, and its operands (consts, carry and xs)."""
        consts, carry, xs = primals
        of_consts = chosen(tangents[0], nonzero_flags(tangents[0]))
        of_carry = [instantiate(t) for t in chosen(tangents[1], carry_nonzeros)]
        of_xs = chosen(tangents[2], nonzero_flags(tangents[2]))
        op = self.replace(
            body=body,
            const_count=self.const_count + len(of_consts),
            carry_count=self.carry_count + len(of_carry),
        )
        return [*consts, *of_consts, *carry, *of_carry, *xs, *of_xs], op

    def split_tangents(
        self, results: Sequence[Any], carry_nonzeros: Sequence[bool], y_nonzeros: Sequence[bool]
    ) -> tuple[list[Any], list[Any]]:
        """Results of such a loop, taken apart into outputs and tangents."""
        carry, of_carry, ys, of_ys = split(
            results, self.carry_count, sum(carry_nonzeros), len(y_nonzeros)
        )
        outputs = [*carry, *ys]
        types = [output.type.tangent() for output in outputs]
        return outputs, spread([*of_carry, *of_ys], [*carry_nonzeros, *y_nonzeros], types)

    def linearize(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        if self.recompute:
            return scan_linearize.linearize_by_recomputing(self, primals, tangents)
        return scan_linearize.linearize_by_storing(self, primals, tangents)

    def transpose(self, cotangents: Sequence[Any], *operands: Any) -> Sequence[Any]:
        return scan_transpose.transpose(self, cotangents, operands)

    # --- vmap and dead code -----------------------------------------------------------------

    def batch(
        self, size: Any, axis_name: Hashable, operands: Sequence[Any], axes: Sequence[int | None]
    ) -> tuple[Sequence[Any], Sequence[int | None]]:
        if self.bounded and axes[0] is not None:
            return self._batch_count(size, axis_name, operands, axes)
        count, consts, carry, xs = self.parts(operands)
        _, const_axes, carry_axes, x_axes = self.parts(axes)
        mapped = tuple([axis is not None for axis in (*const_axes, *carry_axes, *x_axes)])
        body, carry_mapped, y_mapped = batch_body(
            self.body, self.const_count, self.carry_count, size, axis_name, mapped
        )
        moved = [
            *[
                x if a is None else to_axis(x, size, a, 0)
                for x, a in zip(consts, const_axes, strict=True)
            ],
            *[
                to_axis(x, size, a, 0) if flag else x
                for x, a, flag in zip(carry, carry_axes, carry_mapped, strict=True)
            ],
            # The scanned axis stays first, so the mapped one is first in each slice.
            *[x if a is None else to_axis(x, size, a, 1) for x, a in zip(xs, x_axes, strict=True)],
        ]
        results = self.replace(body=body).bind(*count, *moved)
        out_axes: list[int | None] = [0 if flag else None for flag in carry_mapped]
        return results, out_axes + [1 if flag else None for flag in y_mapped]

    def _batch_count(
        self, size: Any, axis_name: Hashable, operands: Sequence[Any], axes: Sequence[int | None]
    ) -> tuple[Sequence[Any], Sequence[int | None]]:
        # All lanes go on until the last is done; each skips the steps beyond its own number.
        (counts,), consts, carry, xs = self.parts(operands)
        (count_axis,), const_axes, carry_axes, x_axes = self.parts(axes)
        counts = to_axis(counts, size, count_axis, 0)
        op = self.replace(
            body=skipping_body(self.body, self.const_count, self.carry_count),
            const_count=self.const_count + 1,
        )
        positions = Iota(INT32, (self.length,), 0)()
        return op.batch(
            size,
            axis_name,
            [reduce_max(counts, (0,)), counts, *consts, *carry, positions, *xs],
            [None, 0, *const_axes, *carry_axes, None, *x_axes],
        )

    def kept_outputs(self, used_outputs: Sequence[bool]) -> Sequence[bool]:
        return live_carries(self.body, self.const_count, self.carry_count, tuple(used_outputs))

    def used_operands(self, used_outputs: Sequence[bool]) -> tuple[Primitive, Sequence[bool]]:
        start, stop = self.const_count, self.const_count + self.carry_count
        keep = [False] * len(self.body.inputs)
        keep[start:stop] = used_outputs[: self.carry_count]
        body, used = eliminate_dead_code(self.body, used_outputs, keep)
        op = self.replace(
            body=body, const_count=sum(used[:start]), carry_count=sum(used[start:stop])
        )
        return op, (True, *used) if self.bounded else used

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Any]:
        float32 = np.dtype("float32")
        types = [ArrayType((3,), float32)] * 3
        body = stage_closed(lambda d, c, x: [add(c, x), add(c, d)], types, "step")
        d, c = rng.normal(size=3).astype(float32), rng.normal(size=3).astype(float32)
        for length in (0, 1, 5):
            for reverse in (False, True):
                xs = rng.normal(size=(length, 3)).astype(float32)
                yield Sample(cls(body, 1, 1, length, reverse), (d, c, xs))
        xs = rng.normal(size=(5, 3)).astype(float32)
        for steps, reverse in ((3, True), (9, False), (-1, False)):
            op = cls(body, 1, 1, 5, reverse, bounded=True, recompute=True)
            yield Sample(op, (np.int32(steps), d, c, xs))
        yield Sample(cls(body, 1, 1, 4), (d, c, xs), error=ProgramError)
        constant = stage_closed(lambda c: [c, operators.zeros(c.type)], [ArrayType((), INT32)])
        yield Sample(cls(constant, 0, 1, 3), (np.int32(4),))
