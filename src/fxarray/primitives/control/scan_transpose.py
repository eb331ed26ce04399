"""Transposing scans.

A transposed scan runs the other way, with the cotangents of the carry as its carry. If carries are
left that are not linear, their values are needed at each step: they are stacked by a scan of their
own or, with `recompute`, stored at the starts of about sqrt(length) segments and computed again
within each.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isqrt
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from fxarray.core.hooks import operators
from fxarray.core.ir import Program
from fxarray.core.primitive import Linear, instantiate
from fxarray.core.types import ArrayType
from fxarray.interpreters.dce import eliminate_dead_code
from fxarray.interpreters.evaluate import evaluate
from fxarray.interpreters.memo import memoised
from fxarray.interpreters.staging import stage_closed
from fxarray.interpreters.transpose import transpose_program
from fxarray.primitives.arithmetic import add, clamp, div, mul, sub
from fxarray.primitives.control.surgery import (
    INT32,
    chosen,
    depends_on,
    either,
    nonzero_flags,
    rejected,
    silenced,
    split,
    spread,
)
from fxarray.primitives.create import Iota, scalar
from fxarray.primitives.joining import concatenate
from fxarray.primitives.movement import reshape
from fxarray.primitives.slicing import slice_in_axis

if TYPE_CHECKING:
    from fxarray.primitives.control.scan import Scan

Flags: TypeAlias = tuple[bool, ...]


class TransposedBody(NamedTuple):
    """The transpose of a loop body in its linear inputs.

    advance: (other consts, other carry, other xs) -> other carry: how the carries that are not
      linear go on
    step: (other consts | totals of the cotangents of linear consts, cotangents of linear carries |
      other carry, other xs, cotangents of ys) -> (totals, cotangents of carries, cotangents of xs)
    linear_carry: which carries are linear
    const_found, carry_found, x_found: which linear consts, carries and xs get a cotangent
    y_wanted: which ys have a cotangent that matters
    """

    advance: Program
    step: Program
    linear_carry: Flags
    const_found: Flags
    carry_found: Flags
    x_found: Flags
    y_wanted: Flags


@memoised
def linear_carries(body: Program, const_count: int, carry_count: int, linear: Flags) -> Flags:
    """Which carries depend on linear inputs, at any step."""
    start, stop = const_count, const_count + carry_count
    carry = linear[start:stop]
    while True:
        found = depends_on(body, (*linear[:start], *carry, *linear[stop:]))
        joined = either(carry, found[:carry_count])
        if joined == carry:
            return carry
        carry = joined


@memoised
def transpose_body(
    body: Program, const_count: int, carry_count: int, linear: Flags, nonzeros: Flags
) -> TransposedBody:
    """Transpose the body of a scan.

    Args:
      body: (consts, carry, xs) -> (carry, ys).
      const_count: the number of consts.
      carry_count: the number of carries.
      linear: which inputs are linear.
      nonzeros: which outputs of the loop have cotangents.
    """
    start, stop = const_count, const_count + carry_count
    body = silenced(body)
    linear_carry = linear_carries(body, const_count, carry_count, linear)
    linear = (*linear[:start], *linear_carry, *linear[stop:])
    results_linear = depends_on(body, linear)
    # Cotangents of what is not linear say nothing about linear inputs.
    wanted = tuple([a and b for a, b in zip(nonzeros, results_linear, strict=True)])
    carry = wanted[:carry_count]
    while True:
        used = (*carry, *wanted[carry_count:])
        smaller, _ = eliminate_dead_code(body, used)
        program, found = transpose_program(smaller, linear, (True,) * sum(used))
        found_by_input = dict(zip([i for i, flag in enumerate(linear) if flag], found, strict=True))
        carry_found = tuple([found_by_input.get(start + i, False) for i in range(carry_count)])
        joined = either(carry, carry_found)
        if joined == carry:
            break
        carry = joined
    const_found = tuple([found_by_input[i] for i in range(start) if linear[i]])
    x_found = tuple([found_by_input[i] for i in range(stop, len(linear)) if linear[i]])
    carry_types = body.input_types[start:stop]
    const_types = chosen(chosen(body.input_types[:start], linear[:start]), const_found)
    other_types = [
        rejected(body.input_types[:start], linear[:start]),
        rejected(carry_types, linear_carry),
        rejected(body.input_types[stop:], linear[stop:]),
    ]
    carry_cotangents = chosen(carry_types, carry)
    y_cotangents = chosen(body.output_types[carry_count:], wanted[carry_count:])

    def step(*values: Any) -> list[Any]:
        other_consts, totals, cotangents, other_carry, other_xs, of_ys = split(
            values,
            len(other_types[0]),
            len(const_types),
            len(carry_cotangents),
            len(other_types[1]),
            len(other_types[2]),
        )
        others = [*other_consts, *other_carry, *other_xs]
        results = iter(evaluate(program, [*others, *cotangents, *of_ys]))
        new_totals = [operators.add_cotangents(total, next(results)) for total in totals]
        new_cotangents = [
            next(results) if have else operators.zeros(type)
            for type, have, want in zip(carry_types, carry_found, carry, strict=True)
            if want
        ]
        return [*new_totals, *new_cotangents, *results]

    step_types = [
        *other_types[0], *const_types, *carry_cotangents, *other_types[1], *other_types[2],
        *y_cotangents,
    ]  # fmt: skip
    not_linear = [not flag for flag in linear_carry]
    keep = [not flag for flag in linear]
    advance, taken = eliminate_dead_code(
        body, (*not_linear, *(False,) * (len(body.outputs) - carry_count)), keep
    )
    assert list(taken) == keep, "a carry that is not linear depends on a linear operand"
    return TransposedBody(
        advance,
        eliminate_dead_code(stage_closed(step, step_types, f"transpose_of_{body.name}"))[0],
        linear_carry,
        const_found,
        carry,
        x_found,
        wanted[carry_count:],
    )


def transpose(op: Scan, cotangents: Sequence[Any], operands: Sequence[Any]) -> Sequence[Any]:
    """The transpose rule of Scan."""
    count, consts, carry, xs = op.parts(operands)
    given_linear = tuple([type(x) is Linear for x in (*consts, *carry, *xs)])
    parts = transpose_body(
        op.body, op.const_count, op.carry_count, given_linear, nonzero_flags(cotangents)
    )
    of_carry, of_ys = split(cotangents, op.carry_count)
    linear_consts = chosen([x for x in consts if type(x) is Linear], parts.const_found)
    initial = [operators.zeros(x.type) for x in linear_consts]
    initial += [instantiate(ct) for ct in chosen(of_carry, parts.carry_found)]
    other_consts = [x for x in consts if type(x) is not Linear]
    other_carry = rejected(carry, parts.linear_carry)
    other_xs = [x for x in xs if type(x) is not Linear]
    of_ys = chosen(of_ys, parts.y_wanted)
    if other_carry and op.recompute:
        results = _by_segments(
            op, parts, count[0], other_consts, initial, other_carry, other_xs, of_ys
        )
    else:
        if other_carry:
            forwards = storing(op, parts.advance, len(other_consts), len(other_carry))
            stacks = forwards.bind(*count, *other_consts, *other_carry, *other_xs)
            other_xs = [*stacks[len(other_carry) :], *other_xs]
        backwards = sweep(op, parts.step, len(other_consts), len(initial))
        results = backwards.bind(*count, *other_consts, *initial, *other_xs, *of_ys)
    found = split(results, len(linear_consts), sum(parts.carry_found))
    of_consts = iter(spread(found[0], parts.const_found, _linear_types(consts)))
    of_carries = spread(found[1], parts.carry_found, [x.type for x in carry])
    of_xs = iter(spread(found[2], parts.x_found, _linear_types(xs)))
    return [
        *[None] * len(count),
        *[next(of_consts) if type(x) is Linear else None for x in consts],
        *[ct if type(x) is Linear else None for x, ct in zip(carry, of_carries, strict=True)],
        *[next(of_xs) if type(x) is Linear else None for x in xs],
    ]


def _linear_types(operands: Sequence[Any]) -> list[ArrayType]:
    return [x.type for x in operands if type(x) is Linear]


def storing(op: Scan, advance: Program, const_count: int, carry_count: int) -> Scan:
    """The loop that runs `advance` and stacks its carry as it is before each step."""
    before = advance.inputs[const_count : const_count + carry_count]
    body = advance.replace(outputs=[*advance.outputs, *before])
    return op.replace(body=body, const_count=const_count, carry_count=carry_count)


def sweep(op: Scan, step: Program, const_count: int, carry_count: int) -> Scan:
    """The loop that goes backwards, with cotangents as its carry."""
    return op.replace(
        body=step, const_count=const_count, carry_count=carry_count, reverse=not op.reverse
    )


# --- recomputation ------------------------------------------------------------------------------


class SegmentLoops(NamedTuple):
    """Two loops over segments of steps: `mark` stacks the carry before each, `back` goes back."""

    mark: Scan
    back: Scan


@memoised
def _segment_loops(
    op: Scan, parts: TransposedBody, length: int, counts: tuple[int, int, int, int, int]
) -> SegmentLoops:
    const_count, initial_count, carry_count, x_count, y_count = counts
    segments = -(-int(op.length) // length)
    inner = op.replace(length=length)
    forwards = inner.replace(body=parts.advance, const_count=const_count, carry_count=carry_count)
    store = storing(inner, parts.advance, const_count, carry_count)
    backwards = sweep(inner, parts.step, const_count, initial_count)
    most = scalar(length, INT32)
    none = scalar(0, INT32)

    def steps_of(segment: Any, count: Any) -> Any:
        return clamp(none, sub(count, mul(segment, most)), most)

    def mark(count: Any, *values: Any) -> Sequence[Any]:
        consts, carry, (segment, *xs) = split(values, const_count, carry_count)
        return [*forwards.bind(steps_of(segment, count), *consts, *carry, *xs), *carry]

    def back(count: Any, *values: Any) -> Sequence[Any]:
        consts, initial, (segment, *carry_and_xs) = split(values, const_count, initial_count)
        carry, xs, of_ys = split(carry_and_xs, carry_count, x_count)
        steps = steps_of(segment, count)
        stacks = store.bind(steps, *consts, *carry, *xs)[carry_count:]
        return backwards.bind(steps, *consts, *initial, *stacks, *xs, *of_ys)

    number = ArrayType((), INT32)
    consts, carry, xs = split(parts.advance.input_types, const_count, carry_count)
    initial = parts.step.input_types[const_count : const_count + initial_count]
    of_ys = parts.step.input_types[len(parts.step.input_types) - y_count :] if y_count else ()
    long = [t.replace(shape=(length, *t.shape)) for t in (*xs, *of_ys)]
    mark_types = [number, *consts, *carry, number, *long[:x_count]]
    back_types = [number, *consts, *initial, number, *carry, *long]
    outer = op.replace(length=segments, const_count=const_count + 1)
    return SegmentLoops(
        outer.replace(body=stage_closed(mark, mark_types, "mark"), carry_count=carry_count),
        outer.replace(
            body=stage_closed(back, back_types, "back"),
            carry_count=initial_count,
            reverse=not op.reverse,
        ),
    )


def _by_segments(
    op: Scan,
    parts: TransposedBody,
    count: Any,
    consts: Sequence[Any],
    initial: Sequence[Any],
    carry: Sequence[Any],
    xs: Sequence[Any],
    of_ys: Sequence[Any],
) -> list[Any]:
    """Go backwards segment by segment, computing the carries of each again from its start.

    With n steps in segments of about sqrt(n), the carries of one segment and those at the starts of
    all are stored: 2 sqrt(n). Each step is computed once more than by storing everything (twice,
    with the pass that finds the starts).
    """
    total = int(op.length)
    length = max(1, isqrt(max(total - 1, 0)) + 1)
    segments = -(-total // length)
    counts = (len(consts), len(initial), len(carry), len(xs), len(of_ys))
    loops = _segment_loops(op, parts, length, counts)
    long = [_segmented(x, segments, length) for x in (*xs, *of_ys)]
    positions = Iota(INT32, (segments,), 0)()
    count = clamp(scalar(0, INT32), count, scalar(total, INT32))
    used = div(add(count, scalar(length - 1, INT32)), scalar(length, INT32))
    marks = loops.mark.bind(used, count, *consts, *carry, positions, *long[: len(xs)])[len(carry) :]
    results = loops.back.bind(used, count, *consts, *initial, positions, *marks, *long)
    totals, found_xs = split(results, len(initial))
    return [*totals, *[_joined(x, total) for x in found_xs]]


def _segmented(x: Any, segments: int, length: int) -> Any:
    """`x` cut along its first axis into segments, the last filled up with zeros."""
    missing = segments * length - x.type.shape[0]
    if missing:
        filler = operators.zeros(x.type.replace(shape=(missing, *x.type.shape[1:])))
        x = concatenate([x, filler], 0)
    return reshape(x, (segments, length, *x.type.shape[1:]))


def _joined(x: Any, total: int) -> Any:
    """The inverse of `_segmented`."""
    segments, length, *rest = x.type.shape
    flat = reshape(x, (segments * length, *rest))
    return flat if segments * length == total else slice_in_axis(flat, 0, total, 0)
