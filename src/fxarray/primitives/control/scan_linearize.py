"""Linearizing scans: a loop that computes values and residuals, and a linear one.

Of the residuals, those that are consts, xs or ys are used where they are, those that depend on
consts alone are computed once, outside the loop, and only the others are stacked.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from fxarray.core.ir import Atom, Literal, Program, Var
from fxarray.core.primitive import instantiate
from fxarray.core.types import ArrayType
from fxarray.interpreters.dce import eliminate_dead_code
from fxarray.interpreters.evaluate import evaluate
from fxarray.interpreters.linearize import linearize_program
from fxarray.interpreters.memo import memoised
from fxarray.primitives.control.loop_programs import derivative_of_body
from fxarray.primitives.control.surgery import (
    chosen,
    either,
    nonzero_flags,
    place_inputs,
    silenced,
    split,
    spread,
    substitute,
)

if TYPE_CHECKING:
    from fxarray.primitives.control.scan import Scan

Flags: TypeAlias = tuple[bool, ...]


class LinearizedBody(NamedTuple):
    """A loop body split into values and derivative.

    invariant: consts -> residuals that depend on consts alone
    known: (consts, invariants, carry, xs) -> (carry, ys, residuals to stack)
    linear: (const residuals, invariants, tangents of consts | tangents of carry | x residuals,
      y residuals, stacked residuals, tangents of xs) -> (tangents of carry, tangents of ys)
    consts, xs, ys: which of them are residuals
    """

    invariant: Program
    known: Program
    linear: Program
    consts: tuple[int, ...]
    xs: tuple[int, ...]
    ys: tuple[int, ...]
    carry_nonzeros: Flags
    y_nonzeros: Flags


@memoised
def linearize_body(
    body: Program, const_count: int, carry_count: int, nonzeros: Flags
) -> LinearizedBody:
    """Linearize the body of a scan for tangents of the inputs marked in `nonzeros`."""
    start, stop = const_count, const_count + carry_count
    carry = nonzeros[start:stop]
    no_ys = (False,) * (len(body.outputs) - carry_count)
    while True:
        flags = (*nonzeros[:start], *carry, *nonzeros[stop:])
        parts = linearize_program(body, flags, (*carry, *no_ys))
        joined = either(carry, parts.out_nonzeros[:carry_count])
        if joined == carry:
            break
        carry = joined

    count = len(body.outputs)
    known = parts.known
    atoms = parts.pick_residuals(parts.known.inputs, parts.known.outputs)
    invariant_atoms = _invariants(known, const_count)
    consts: dict[int, int] = {}
    xs: dict[int, int] = {}
    ys: dict[int, int] = {}
    invariants: dict[Any, int] = {}
    stacked: dict[Any, int] = {}
    places: list[tuple[str, int]] = []
    for atom, (kind, i) in zip(atoms, parts.residuals, strict=True):
        if kind == "input" and i < start:
            places.append(("const", consts.setdefault(i, len(consts))))
        elif kind == "input" and i >= stop:
            places.append(("x", xs.setdefault(i - stop, len(xs))))
        elif type(atom) is Literal or atom in invariant_atoms:
            places.append(("invariant", invariants.setdefault(atom, len(invariants))))
        elif kind == "output" and i >= carry_count:
            places.append(("y", ys.setdefault(i - carry_count, len(ys))))
        else:
            places.append(("stacked", stacked.setdefault(atom, len(stacked))))

    types = {
        "const": [known.inputs[i].type for i in consts],
        "invariant": [atom.type for atom in invariants],
        "x": [known.inputs[stop + i].type for i in xs],
        "y": [known.outputs[carry_count + i].type for i in ys],
        "stacked": [atom.type for atom in stacked],
    }
    tangents = [v.type.tangent() for v, flag in zip(body.inputs, flags, strict=True) if flag]
    of_consts, of_carry, of_xs = split(tangents, sum(flags[:start]), sum(carry))
    offsets: dict[str, int] = {}
    layout: list[ArrayType] = []
    for name, group in (
        ("const", types["const"]),
        ("invariant", types["invariant"]),
        ("tangents of consts", of_consts),
        ("tangents of carry", of_carry),
        ("x", types["x"]),
        ("y", types["y"]),
        ("stacked", types["stacked"]),
        ("tangents of xs", of_xs),
    ):
        offsets[name] = len(layout)
        layout += group
    positions = [offsets[name] + i for name, i in places]
    for name, group in (("consts", of_consts), ("carry", of_carry), ("xs", of_xs)):
        positions += range(offset := offsets[f"tangents of {name}"], offset + len(group))
    linear = place_inputs(parts.linear, layout, positions)
    invariant, known = _hoist(known, const_count, list(invariants), list(stacked), count)
    return LinearizedBody(
        invariant, known, linear, tuple(consts), tuple(xs), tuple(ys), carry,
        parts.out_nonzeros[carry_count:],
    )  # fmt: skip


def _invariants(program: Program, const_count: int) -> set[Any]:
    """Variables that depend on the first inputs alone."""
    found: set[Any] = set(program.inputs[:const_count])
    for equation in program.equations:
        if not equation.effects and all(
            type(atom) is Literal or atom in found for atom in equation.inputs
        ):
            found.update(equation.outputs)
    return found


def _hoist(
    known: Program, const_count: int, invariants: list[Atom], stacked: list[Atom], output_count: int
) -> tuple[Program, Program]:
    """Move the computation of `invariants` out of a loop body, which then takes them as inputs."""
    consts = known.inputs[:const_count]
    scope = _invariants(known, const_count)
    invariant = Program(
        consts,
        [e for e in known.equations if all(v in scope for v in e.outputs) and not e.effects],
        invariants,
        name=f"invariants_of_{known.name}",
    )
    invariant, _ = eliminate_dead_code(invariant)
    inputs = [Var(atom.type) for atom in invariants]
    mapping: dict[Any, Atom] = {
        atom: variable
        for atom, variable in zip(invariants, inputs, strict=True)
        if type(atom) is Var
    }
    outputs = [*known.outputs[:output_count], *stacked]
    body = Program(
        [*consts, *inputs, *known.inputs[const_count:]],
        substitute(known.equations, mapping),
        [mapping.get(atom, atom) for atom in outputs],
        name=known.name,
    )
    return invariant, eliminate_dead_code(body)[0]


def linearize_by_storing(
    op: Scan, primals: Sequence[Any], tangents: Sequence[Any]
) -> tuple[Any, Any]:
    """The linearize rule that stacks the residuals of all steps."""
    count, consts, carry, xs = op.parts(primals)
    _, const_tangents, carry_tangents, x_tangents = op.parts(tangents)
    nonzeros = nonzero_flags([*const_tangents, *carry_tangents, *x_tangents])
    parts = linearize_body(op.body, op.const_count, op.carry_count, nonzeros)
    invariants = evaluate(parts.invariant, consts)
    known = op.replace(body=parts.known, const_count=op.const_count + len(invariants))
    results = known.bind(*count, *consts, *invariants, *carry, *xs)
    output_count = len(op.body.outputs)
    outputs, stacked = list(results[:output_count]), results[output_count:]
    ys = outputs[op.carry_count :]
    given_consts = [
        *[consts[i] for i in parts.consts],
        *invariants,
        *chosen(const_tangents, nonzero_flags(const_tangents)),
    ]
    given_carry = [instantiate(t) for t in chosen(carry_tangents, parts.carry_nonzeros)]
    given_xs = [
        *[xs[i] for i in parts.xs],
        *[ys[i] for i in parts.ys],
        *stacked,
        *chosen(x_tangents, nonzero_flags(x_tangents)),
    ]
    linear = op.replace(
        body=parts.linear, const_count=len(given_consts), carry_count=len(given_carry)
    )
    results = linear.bind(*count, *given_consts, *given_carry, *given_xs)
    types = [output.type.tangent() for output in outputs]
    return outputs, spread(results, [*parts.carry_nonzeros, *parts.y_nonzeros], types)


def linearize_by_recomputing(
    op: Scan, primals: Sequence[Any], tangents: Sequence[Any]
) -> tuple[Any, Any]:
    """The linearize rule that stores nothing: the derivative is a loop that repeats the values."""
    count, *given = op.parts(primals)
    _, *given_tangents = op.parts(tangents)
    nonzeros = nonzero_flags([t for part in given_tangents for t in part])
    outputs = op.bind(*primals)
    body, carry_nonzeros, y_nonzeros = derivative_of_body(
        silenced(op.body), op.const_count, op.carry_count, nonzeros
    )
    operands, derivative = op.with_tangents(body, carry_nonzeros, given, given_tangents)
    results = derivative.bind(*count, *operands)
    return outputs, op.split_tangents(results, carry_nonzeros, y_nonzeros)[1]
