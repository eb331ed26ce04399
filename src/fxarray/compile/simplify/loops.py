"""Loops: what does not change in them is computed before them, and short ones are written out.

- A carry that a step returns as it was is a constant.
- An operation on constants alone is done once, before the loop. Moves of elements (broadcasts) are
  left inside, where they cost nothing, unless something computed needs them; so are control flow
  and operations with effects.
- A scan of one step, or of a few small ones, is written out.
- A branch whose index is known is written out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fxarray.compile.simplify.rewriting import Rewriter, inner_programs
from fxarray.core.ir import Atom, Equation, Literal, Program, Var
from fxarray.core.primitive import Primitive
from fxarray.primitives.control.cond import Cond
from fxarray.primitives.control.scan import Scan
from fxarray.primitives.control.surgery import substitute
from fxarray.primitives.control.while_loop import While
from fxarray.primitives.joining import Concatenate
from fxarray.primitives.movement import BroadcastInDim, Reshape
from fxarray.primitives.slicing import Slice

# A scan of at most so many steps, and steps times equations, is written out.
_STEPS, _FEW = 4, 16
# Operations that only move elements, or make them from nothing.
_MOVING = """
broadcast_in_dim reshape transpose rev slice iota convert_element_type concatenate pad
bitcast_convert_type real imag size_value
"""
_MOVES = frozenset(_MOVING.split())


def simplify_loops(program: Program) -> Program:
    """Apply all of this to every loop and branch of a Program."""
    if not any(type(e.op) in (Scan, While, Cond) for e in program.equations):
        return program
    rewriter = Rewriter(program)
    for equation in program.equations:
        inputs = rewriter.atoms(equation)
        match equation.op:
            case Cond() if _known_branch(equation.op, inputs):
                _write_branch(rewriter, equation, inputs)
            case Scan():
                _scan(rewriter, equation, inputs)
            case While():
                _while(rewriter, equation, inputs)
            case _:
                rewriter.keep(equation, inputs)
    return rewriter.finish()


# --- writing out ----------------------------------------------------------------------------------


def _write(rewriter: Rewriter, program: Program, operands: Sequence[Atom]) -> list[Atom]:
    """Write a Program's equations for some operands; its outputs."""
    names: dict[Any, Atom] = dict(zip(program.inputs, operands, strict=True))
    for equation in program.equations:
        inputs = [names.get(a, a) for a in equation.inputs]
        names.update(
            zip(equation.outputs, rewriter.add(equation.op, inputs, equation), strict=True)
        )
    return [names.get(a, a) for a in program.outputs]


def _known_branch(op: Cond, inputs: Sequence[Atom]) -> bool:
    return not op.lanes and (type(inputs[0]) is Literal or len(op.branches) == 1)


def _write_branch(rewriter: Rewriter, equation: Equation, inputs: Sequence[Atom]) -> None:
    op: Any = equation.op
    index = int(inputs[0].value.numpy_view()) if type(inputs[0]) is Literal else 0
    branch = op.branches[min(max(index, 0), len(op.branches) - 1)]
    rewriter.replace(equation.outputs, _write(rewriter, branch, inputs[1:]))


# --- scan -----------------------------------------------------------------------------------------


def _scan(rewriter: Rewriter, equation: Equation, inputs: Sequence[Atom]) -> None:
    op: Any = equation.op
    steps = op.length
    if not op.bounded and isinstance(steps, int):
        small = steps * len(op.body.equations) <= _FEW and not _has_inner(op.body)
        if steps == 1 or (0 < steps <= _STEPS and small):
            rewriter.replace(equation.outputs, _unrolled(rewriter, equation, op, inputs))
            return
    count, consts, carry, xs = op.parts(inputs)
    loop = _Loop(op.body, consts, carry, list(op.body.inputs[op.const_count + op.carry_count :]))
    kept = loop.drop_constant_carries()
    loop.hoist(rewriter)
    if not loop.changed:
        rewriter.keep(equation, inputs)
        return
    new = op.replace(body=loop.body, const_count=len(loop.consts), carry_count=len(loop.carry))
    results = list(rewriter.add(new, [*count, *loop.consts, *loop.carry, *xs], equation))
    place = len(loop.carry)
    outputs = loop.outputs(carry, kept, results[:place])
    rewriter.replace(equation.outputs, [*outputs, *results[place:]])


def _has_inner(program: Program) -> bool:
    return any(inner_programs(equation.op) for equation in program.equations)


def _unrolled(
    rewriter: Rewriter, equation: Equation, op: Scan, inputs: Sequence[Atom]
) -> list[Atom]:
    _, consts, carry, xs = op.parts(inputs)
    length: Any = op.length
    stacks: list[list[Atom]] = [[] for _ in op.body.outputs[op.carry_count :]]
    order = range(length - 1, -1, -1) if op.reverse else range(length)
    for step in order:
        slices = [_take(rewriter, equation, x, step) for x in xs]
        results = _write(rewriter, op.body, [*consts, *carry, *slices])
        carry = results[: op.carry_count]
        for stack, y in zip(stacks, results[op.carry_count :], strict=True):
            stack.append(y)
    ys: list[Atom] = []
    for stack in stacks:
        parts = list(reversed(stack)) if op.reverse else stack
        rows: list[Atom] = []
        for part in parts:
            shape = part.type.shape
            dimensions = tuple(range(1, len(shape) + 1))
            rows.append(rewriter.add(BroadcastInDim((1, *shape), dimensions), [part], equation)[0])
        ys.append(rewriter.add(Concatenate(0), rows, equation)[0] if len(rows) > 1 else rows[0])
    return [*carry, *ys]


def _take(rewriter: Rewriter, equation: Equation, x: Atom, step: int) -> Atom:
    shape = x.type.shape
    if shape[0] != 1:
        starts = (step, *[0] * (len(shape) - 1))
        cut = Slice(starts, (step + 1, *shape[1:]), (1,) * len(shape))
        x = rewriter.add(cut, [x], equation)[0]
    return rewriter.add(Reshape(shape[1:]), [x], equation)[0]


# --- while ----------------------------------------------------------------------------------------


def _while(rewriter: Rewriter, equation: Equation, inputs: Sequence[Atom]) -> None:
    op: Any = equation.op
    start = op.cond_count + op.body_count
    if op.lanes:
        rewriter.keep(equation, inputs)
        return
    of_cond, of_body = list(inputs[: op.cond_count]), list(inputs[op.cond_count : start])
    carry = list(inputs[start:])
    body = _Loop(op.body_program, of_body, carry, [])
    kept = body.drop_constant_carries()
    cond = _Loop(op.cond_program, of_cond, carry, [])
    cond.fix_carries(kept, carry)
    body.hoist(rewriter)
    cond.hoist(rewriter)
    if not body.changed and not cond.changed:
        rewriter.keep(equation, inputs)
        return
    new = op.replace(
        cond_program=cond.body,
        body_program=body.body,
        cond_count=len(cond.consts),
        body_count=len(body.consts),
    )
    results = rewriter.add(new, [*cond.consts, *body.consts, *body.carry], equation)
    rewriter.replace(equation.outputs, body.outputs(carry, kept, results))


# --- what both have -------------------------------------------------------------------------------


@dataclass
class _Loop:
    """A Program that is run in each step, `(consts, carry, xs) -> (carry, ys)`, being changed."""

    body: Program
    consts: list[Atom]
    carry: list[Atom]
    xs: list[Var]
    changed: bool = False

    @property
    def const_inputs(self) -> tuple[Var, ...]:
        return self.body.inputs[: len(self.consts)]

    @property
    def carry_inputs(self) -> tuple[Var, ...]:
        return self.body.inputs[len(self.consts) : len(self.consts) + len(self.carry)]

    def drop_constant_carries(self) -> list[bool]:
        """Make constants of the carries that stay as they are; which carries remain."""
        outputs = self.body.outputs
        kept = [i is not o for i, o in zip(self.carry_inputs, outputs, strict=False)]
        if not all(kept):
            ys = outputs[len(self.carry) :]
            new = [o for o, keep in zip(outputs, kept, strict=False) if keep]
            self.fix_carries(kept, self.carry)
            self.body = self.body.replace(outputs=[*new, *ys])
        return kept

    def fix_carries(self, kept: Sequence[bool], initial: Sequence[Atom]) -> None:
        """Make constants of the carries that are not kept; the outputs stay."""
        if all(kept):
            return
        inputs = self.carry_inputs
        fixed = [v for v, keep in zip(inputs, kept, strict=True) if not keep]
        rest = [v for v, keep in zip(inputs, kept, strict=True) if keep]
        self.body = self.body.replace(inputs=[*self.const_inputs, *fixed, *rest, *self.xs])
        self.consts = self.consts + [a for a, k in zip(initial, kept, strict=True) if not k]
        self.carry = [a for a, k in zip(initial, kept, strict=True) if k]
        self.changed = True

    def outputs(
        self, initial: Sequence[Atom], kept: Sequence[bool], results: Sequence[Atom]
    ) -> list[Atom]:
        """The final carries: results of the loop, or what they were at the start."""
        given = iter(results)
        return [next(given) if k else a for a, k in zip(initial, kept, strict=True)]

    def hoist(self, rewriter: Rewriter) -> None:
        """Move what depends on constants alone to before the loop."""
        outside: dict[Any, Atom] = dict(zip(self.const_inputs, self.consts, strict=True))
        fixed = set(outside)
        invariant: list[Equation] = []
        for equation in self.body.equations:
            if _movable(equation.op) and all(
                type(a) is Literal or a in fixed for a in equation.inputs
            ):
                invariant.append(equation)
                fixed.update(equation.outputs)
        wanted: set[Any] = set()
        hoisted: list[Equation] = []
        for equation in reversed(invariant):
            if equation.op.name not in _MOVES or any(v in wanted for v in equation.outputs):
                hoisted.append(equation)
                wanted.update(a for a in equation.inputs if type(a) is Var)
        if not hoisted:
            return
        moved = {id(equation) for equation in hoisted}
        for equation in reversed(hoisted):
            inputs = [outside.get(a, a) for a in equation.inputs]
            results = rewriter.add(equation.op, inputs, equation)
            outside.update(zip(equation.outputs, results, strict=True))
        rest = [e for e in self.body.equations if id(e) not in moved]
        used = {a for e in rest for a in e.inputs if type(a) is Var}
        used.update(a for a in self.body.outputs if type(a) is Var)
        made = [v for e in reversed(hoisted) for v in e.outputs if v in used]
        old = [v for v in self.const_inputs if v in used]
        self._enter(old, made, outside, rest)

    def _enter(
        self,
        old: Sequence[Var],
        made: Sequence[Var],
        outside: dict[Any, Atom],
        rest: Sequence[Equation],
    ) -> None:
        """Take constants that were computed before the loop; literals go where they are used."""
        literals = {v: outside[v] for v in (*old, *made) if type(outside[v]) is Literal}
        variables = [v for v in (*old, *made) if v not in literals]
        fresh: dict[Any, Atom] = {v: Var(outside[v].type) for v in variables}
        names: dict[Any, Atom] = {**literals, **fresh}
        self.consts = [outside[v] for v in variables]
        inputs: list[Any] = [fresh[v] for v in variables]
        self.body = self.body.replace(
            inputs=[*inputs, *self.carry_inputs_of(len(self.xs))],
            equations=substitute(rest, names),
            outputs=[names.get(a, a) for a in self.body.outputs],
        )
        self.changed = True

    def carry_inputs_of(self, xs: int) -> tuple[Var, ...]:
        """The last inputs: carries and xs."""
        return self.body.inputs[len(self.body.inputs) - len(self.carry) - xs :]


def _movable(op: Primitive) -> bool:
    return not op.effects and not op.axis_names and not inner_programs(op)
