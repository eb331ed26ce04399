"""While: a Program repeated as long as another one says so; `lax.while_loop`."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Any

import numpy as np

from fxarray.core import config
from fxarray.core.effects import must_keep
from fxarray.core.errors import ArgumentError, LoopBoundError, NonDifferentiableError, ProgramError
from fxarray.core.hooks import operators
from fxarray.core.ir import Program
from fxarray.core.primitive import Primitive, Sample, Zero, instantiate
from fxarray.core.types import ArrayType, Shape
from fxarray.interpreters.batch import to_axis
from fxarray.interpreters.dce import eliminate_dead_code
from fxarray.interpreters.staging import stage_closed
from fxarray.primitives.arithmetic import add
from fxarray.primitives.comparison import lt
from fxarray.primitives.control.cond import Cond
from fxarray.primitives.control.lanes import (
    add_lane_axis,
    bind_over_lanes,
    lane_type,
    merge_lanes,
    over_lanes,
    take_lanes,
    type_in_lane,
)
from fxarray.primitives.control.loop_programs import (
    batch_while,
    counting_body,
    derivative_of_body,
    jvp_of_body,
    live_carries_of_while,
    lockstep_programs,
)
from fxarray.primitives.control.numpy_runner import numpy_function
from fxarray.primitives.control.scan import Scan
from fxarray.primitives.control.surgery import (
    INT32,
    ControlFlow,
    append_inputs,
    check_types,
    nonzero_flags,
    silenced,
    split,
    spread,
)
from fxarray.primitives.create import scalar

BOOL = np.dtype("bool")


class While(ControlFlow, name="while"):
    """Repeat `carry = body(*body_consts, *carry)` while `cond(*cond_consts, *carry)`.

    Operands are the constants of the condition, those of the body, and the initial carry; results
    are the final carry. With `lanes`, each lane loops on its own: the carry is mapped over them,
    and so are the constants marked in `mapped`.

    Args:
      cond_program: (cond_consts, carry) -> one bool.
      body_program: (body_consts, carry) -> carry.
      cond_count: the number of constants of the condition.
      body_count: the number of constants of the body.
      max_steps: stop after that many steps (None: no bound); reverse-mode needs it.
      lanes: the sizes over which vmap mapped the condition.
      mapped: with lanes, which constants (the condition's, then the body's) are mapped.
    """

    cond_program: Program
    body_program: Program
    cond_count: int
    body_count: int
    max_steps: int | None = None
    lanes: Shape = ()
    mapped: tuple[bool, ...] = ()

    @property
    def programs(self) -> tuple[Program, ...]:
        return (self.cond_program, self.body_program)

    @property
    def carry_types(self) -> tuple[ArrayType, ...]:
        """The types of the carry, in one lane."""
        return self.body_program.input_types[self.body_count :]

    @property
    def flags(self) -> tuple[bool, ...]:
        """Which operands are mapped over lanes."""
        count = len(self.carry_types)
        if not self.lanes:
            return (False,) * (self.cond_count + self.body_count + count)
        return self.mapped + (True,) * count

    def replace(self, **changes: Any) -> While:
        """A changed copy."""
        return While(**{**self.parameters(), **changes})

    def infer(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        count = self.cond_count + self.body_count
        if len(types) != count + len(self.carry_types):
            raise ProgramError(
                f"while: expected {count} constants and a carry of {len(self.carry_types)}, got "
                f"{len(types)} operands"
            )
        flags = self.flags
        in_lane = [
            type_in_lane(type, self.lanes, flag, f"while: operand {number}")
            for number, (type, flag) in enumerate(zip(types, flags, strict=True))
        ]
        cond_consts, body_consts, carry = split(in_lane, self.cond_count, self.body_count)
        predicate = self.cond_program.output_types
        if len(predicate) != 1 or predicate[0].dtype != BOOL or predicate[0].shape:
            raise ProgramError(f"while: the condition gives {predicate}, expected one bool[]")
        for what, program, given in (
            ("condition", self.cond_program, cond_consts + carry),
            ("body", self.body_program, body_consts + carry),
        ):
            check_types(f"while: operand of the {what}", program.input_types, given)
        check_types("while: carry after a step", self.carry_types, self.body_program.output_types)
        return tuple([lane_type(type, self.lanes, True) for type in self.carry_types])

    # --- values -----------------------------------------------------------------------------

    def reference(self, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        return (
            self._run_each_lane(arrays, "reference")
            if self.lanes
            else self._run(arrays, "reference")
        )

    def eager(self, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        with np.errstate(all="ignore"):
            if not self.lanes:
                return self._run(arrays, "eager")
            if must_keep(self.effects):
                return self._run_each_lane(arrays, "eager")
            return self._run_all_lanes(arrays)

    def _run(self, arrays: Sequence[np.ndarray], rule: str) -> tuple[np.ndarray, ...]:
        cond = numpy_function(self.cond_program, rule)
        body = numpy_function(self.body_program, rule)
        cond_consts, body_consts, initial = split(arrays, self.cond_count, self.body_count)
        carry = tuple(initial)
        steps, limit = 0, self.max_steps
        while cond(*cond_consts, *carry)[0]:
            if steps == limit:
                self._check_bound(True)
                break
            carry = body(*body_consts, *carry)
            steps += 1
        return carry

    def _check_bound(self, unfinished: bool) -> None:
        if unfinished and config.get("debug"):
            raise LoopBoundError(
                f"while_loop: the condition still holds after max_steps={self.max_steps} steps. "
                f"Raise max_steps; without the debug setting the loop stops there silently."
            )

    def _run_each_lane(self, arrays: Sequence[np.ndarray], rule: str) -> tuple[np.ndarray, ...]:
        carry = arrays[self.cond_count + self.body_count :]
        shape = carry[0].shape[: len(self.lanes)] if carry else self.lanes
        results = [np.empty_like(x) for x in carry]
        for lane in np.ndindex(shape):  # type: ignore[arg-type]
            values = [x[(*lane, ...)] if f else x for x, f in zip(arrays, self.flags, strict=True)]
            for result, value in zip(results, self._run(values, rule), strict=True):
                result[lane] = value
        return tuple(results)

    def _run_all_lanes(self, arrays: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
        cond_consts, body_consts, initial = split(arrays, self.cond_count, self.body_count)
        flags = self.flags
        cond_flags, body_flags, carry_flags = split(flags, self.cond_count, self.body_count)
        shape = initial[0].shape[: len(self.lanes)] if initial else self.lanes
        cond = numpy_function(over_lanes(self.cond_program, shape, (*cond_flags, *carry_flags)))
        body = numpy_function(over_lanes(self.body_program, shape, (*body_flags, *carry_flags)))
        carry = tuple(initial)
        active = cond(*cond_consts, *carry)[0]
        steps = 0
        while active.any():
            if steps == self.max_steps:
                self._check_bound(True)
                break
            if active.all():
                carry = body(*body_consts, *carry)
            else:
                # Lanes that are done compute on the values of one that is not.
                lanes = np.arange(active.size).reshape(active.shape)
                source = np.where(active, lanes, active.argmax())
                values = take_lanes((*body_consts, *carry), (*body_flags, *carry_flags), source)
                stepped = body(*values)
                carry = tuple(
                    [merge_lanes(active, n, c) for n, c in zip(stepped, carry, strict=True)]
                )
            active = active & cond(*cond_consts, *carry)[0]
            steps += 1
        return carry

    # --- derivatives ------------------------------------------------------------------------

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        start = self.cond_count + self.body_count
        nonzeros = nonzero_flags(tangents[self.cond_count :])
        body, carry_nonzeros, _ = jvp_of_body(
            self.body_program, self.body_count, len(self.carry_types), nonzeros
        )
        const_tangents = [t for t in tangents[self.cond_count : start] if type(t) is not Zero]
        carry_tangents = [
            instantiate(t) for t, n in zip(tangents[start:], carry_nonzeros, strict=True) if n
        ]
        types = [type.tangent() for type in self.carry_types]
        extra = [type for type, n in zip(types, carry_nonzeros, strict=True) if n]
        op = self.replace(
            cond_program=append_inputs(self.cond_program, extra),
            body_program=body,
            body_count=self.body_count + len(const_tangents),
            mapped=self._mapped_with_tangents(nonzeros),
        )
        operands = [*primals[:start], *const_tangents, *primals[start:], *carry_tangents]
        results = op.bind(*operands)
        count = len(self.carry_types)
        out_types = [lane_type(type, self.lanes, True) for type in types]
        return results[:count], spread(results[count:], carry_nonzeros, out_types)

    def _mapped_with_tangents(self, nonzeros: Sequence[bool]) -> tuple[bool, ...]:
        if not self.lanes:
            return ()
        of_body = self.mapped[self.cond_count :]
        pairs = zip(of_body, nonzeros[: self.body_count], strict=True)
        return self.mapped + tuple([m for m, n in pairs if n])

    def linearize(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        if all(type(t) is Zero for t in tangents[self.cond_count :]):
            outputs = self.bind(*primals)
            return outputs, [Zero(output.type.tangent()) for output in outputs]
        if self.max_steps is None:
            # The derivative is a loop of its own, which computes the values again.
            outputs = self.bind(*primals)
            again = self.replace(
                cond_program=silenced(self.cond_program), body_program=silenced(self.body_program)
            )
            return outputs, again.jvp(primals, tangents)[1]
        *outputs, steps = self._counting().bind(*primals, self._zero_steps())
        start = self.cond_count + self.body_count
        nonzeros = nonzero_flags(tangents[self.cond_count :])
        body, carry_nonzeros, _ = derivative_of_body(
            silenced(self.body_program), self.body_count, len(self.carry_types), nonzeros
        )
        const_tangents = [t for t in tangents[self.cond_count : start] if type(t) is not Zero]
        carry_tangents = [
            instantiate(t) for t, n in zip(tangents[start:], carry_nonzeros, strict=True) if n
        ]
        count = len(self.carry_types)
        loop = Scan(
            body=body,
            const_count=self.body_count + len(const_tangents),
            carry_count=count + len(carry_tangents),
            length=self.max_steps,
            bounded=True,
            recompute=True,
        )
        consts = primals[self.cond_count : start]
        operands = [steps, *consts, *const_tangents, *primals[start:], *carry_tangents]
        if self.lanes:
            of_consts = self._mapped_with_tangents(nonzeros)[self.cond_count :]
            flags = (True, *of_consts, *[True] * (count + len(carry_tangents)))
            results = bind_over_lanes(loop, self.lanes, operands, flags)
        else:
            results = list(loop.bind(*operands))
        types = [output.type.tangent() for output in outputs]
        return outputs, spread(results[count:], carry_nonzeros, types)

    def _counting(self) -> While:
        """The same loop with one more carry, the number of steps."""
        return self.replace(
            cond_program=append_inputs(self.cond_program, [ArrayType((), INT32)]),
            body_program=counting_body(self.body_program),
        )

    def _zero_steps(self) -> Any:
        return operators.zeros(ArrayType(self.lanes, INT32))

    def transpose(self, cotangents: Sequence[Any], *operands: Any) -> Sequence[Any]:
        raise NonDifferentiableError(
            "reverse-mode differentiation of a while_loop needs a bound on its steps: pass "
            "max_steps=n (it stops there at the latest). A fori_loop whose bounds are known while "
            "tracing, and scan, are differentiable as they are; so is any while_loop by jvp."
        )

    # --- vmap and dead code -----------------------------------------------------------------

    def batch(
        self, size: Any, axis_name: Hashable, operands: Sequence[Any], axes: Sequence[int | None]
    ) -> tuple[Sequence[Any], Sequence[int | None]]:
        parts = batch_while(
            self.cond_program,
            self.body_program,
            self.cond_count,
            self.body_count,
            size,
            axis_name,
            tuple([axis is not None for axis in axes]),
        )
        if parts.predicate_mapped:
            if axis_name is not None and axis_name in self.axis_names:
                return self._batch_in_lockstep(size, axis_name, operands, axes)
            return self._batch_lanes(size, operands, axes)
        start = self.cond_count + self.body_count
        wanted = (*[axis is not None for axis in axes[:start]], *parts.carry_mapped)
        place = len(self.lanes)
        moved = [
            to_axis(x, size, axis, place if flag else 0) if want else x
            for x, axis, flag, want in zip(operands, axes, self.flags, wanted, strict=True)
        ]
        op = self.replace(cond_program=parts.cond_program, body_program=parts.body_program)
        return op.bind(*moved), [place if flag else None for flag in parts.carry_mapped]

    def _batch_lanes(
        self, size: Any, operands: Sequence[Any], axes: Sequence[int | None]
    ) -> tuple[Sequence[Any], Sequence[int | None]]:
        if any(effect.ordered for effect in self.effects):
            raise ArgumentError(
                "while_loop: vmap maps the condition, so that lanes stop at different steps, and "
                "an ordered callback in the loop has no order there. Use ordered=False."
            )
        start = self.cond_count + self.body_count
        pairs = [
            add_lane_axis(x, axis, size, self.lanes, flag, required=number >= start)
            for number, (x, axis, flag) in enumerate(zip(operands, axes, self.flags, strict=True))
        ]
        op = self.replace(
            lanes=(size, *self.lanes), mapped=tuple([flag for _, flag in pairs[:start]])
        )
        results = op.bind(*[x for x, _ in pairs])
        return results, (0,) * len(results)

    def _batch_in_lockstep(
        self, size: Any, axis_name: Hashable, operands: Sequence[Any], axes: Sequence[int | None]
    ) -> tuple[Sequence[Any], Sequence[int | None]]:
        # Collectives over the mapped axis involve all lanes: so all lanes step as long as any wants
        # to, and those that are done keep their values.
        if self.lanes:
            raise ProgramError(
                f"while: a collective over {axis_name!r} stands in a loop whose condition is "
                f"mapped by an inner vmap; map in the other order"
            )
        start = self.cond_count + self.body_count
        flags = (*[axis is not None for axis in axes[:start]], *[True] * len(self.carry_types))
        moved = [
            to_axis(x, size, axis, 0) if flag else x
            for x, axis, flag in zip(operands, axes, flags, strict=True)
        ]
        first, cond, body = lockstep_programs(
            self.cond_program, self.body_program, self.cond_count, size, axis_name, flags
        )
        consts, carry = moved[:start], moved[start:]
        active = Cond((first,)).bind(scalar(0, INT32), *consts[: self.cond_count], *carry)
        op = While(cond, body, 0, start, self.max_steps)
        results = op.bind(*consts, *active, *carry)[1:]
        return results, (0,) * len(results)

    def kept_outputs(self, used_outputs: Sequence[bool]) -> Sequence[bool]:
        return live_carries_of_while(
            self.cond_program,
            self.body_program,
            self.cond_count,
            self.body_count,
            tuple(used_outputs),
        )

    def used_operands(self, used_outputs: Sequence[bool]) -> tuple[Primitive, Sequence[bool]]:
        kept = tuple(used_outputs)
        body, body_used = eliminate_dead_code(
            self.body_program, kept, (*(False,) * self.body_count, *kept)
        )
        cond, cond_used = eliminate_dead_code(
            self.cond_program, None, (*(False,) * self.cond_count, *kept)
        )
        used = (*cond_used[: self.cond_count], *body_used[: self.body_count])
        op = self.replace(
            cond_program=cond,
            body_program=body,
            cond_count=sum(cond_used[: self.cond_count]),
            body_count=sum(body_used[: self.body_count]),
            mapped=tuple([m for m, u in zip(self.mapped, used, strict=True) if u])
            if self.lanes
            else (),
        )
        return op, (*used, *kept)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Any]:
        float32 = np.dtype("float32")
        types = (ArrayType((), INT32), ArrayType((3,), float32))
        one = scalar(1, INT32)
        cond = stage_closed(lambda n, i, x: [lt(i, n)], (types[0], *types), "below")
        body = stage_closed(lambda d, i, x: [add(i, one), add(x, d)], (types[1], *types), "step")
        x, d = rng.normal(size=3).astype(float32), rng.normal(size=3).astype(float32)
        for steps in (0, 4):
            operands = (np.int32(steps), d, np.int32(0), x)
            yield Sample(cls(cond, body, 1, 1), operands, differentiable=False)
        yield Sample(cls(cond, body, 1, 1, 3), (np.int32(9), d, np.int32(0), x))
        lanes = cls(cond, body, 1, 1, 5, (4,), (True, False))
        xs = rng.normal(size=(4, 3)).astype(float32)
        yield Sample(lanes, (np.array([0, 2, 9, 1], "int32"), d, np.zeros(4, "int32"), xs))
        yield Sample(
            cls(cond, body, 1, 1), (np.int32(1), d, np.int32(0), d[:2]), error=ProgramError
        )
