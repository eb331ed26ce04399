"""What is written out before kernels are made: `checkpoint`, and control flow over lanes.

vmap of a branch or loop with a mapped predicate keeps one operation for all lanes. It becomes

- a selection, or a loop in which all lanes step together and those that are done keep their values,
  where the Programs are cheap and surely end, so that running them for nothing does no harm;
- else a loop over the lanes, each of which takes its own branch, or loops on its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fxarray.compile.simplify import simplify
from fxarray.compile.simplify.inlining import Opened, write_out
from fxarray.core import dims
from fxarray.core.effects import must_keep
from fxarray.core.ir import Atom, Program
from fxarray.core.primitive import Primitive
from fxarray.core.types import ArrayType
from fxarray.interpreters.evaluate import evaluate
from fxarray.interpreters.memo import memoised
from fxarray.interpreters.staging import stage_closed
from fxarray.kernel import sizes
from fxarray.primitives.comparison import select_n
from fxarray.primitives.control.cond import Cond
from fxarray.primitives.control.lanes import over_lanes
from fxarray.primitives.control.loop_programs import lockstep_programs
from fxarray.primitives.control.program_call import ProgramCall
from fxarray.primitives.control.remat import Remat
from fxarray.primitives.control.scan import Scan
from fxarray.primitives.control.surgery import INT32, chosen, rejected, split
from fxarray.primitives.control.while_loop import While
from fxarray.primitives.create import scalar
from fxarray.primitives.movement import broadcast_in_dim, reshape

# Elements of one lane's values from which on a lane is worth a loop of its own.
_LARGE_LANE = 1024


def expand(program: Program) -> tuple[Program, list[int]]:
    """The Program without `checkpoint` and lanes.

    Returns:
      The Program, and a number for each of its equations: what `checkpoint` computes again must not
      be merged with anything else, so each has its own.
    """
    return write_out(program, _open)


def _open(op: Primitive, inputs: Sequence[Atom]) -> Opened:
    match op:
        case Remat():
            return op.program, inputs, op.prevent_cse
        case Cond() if op.lanes:
            return _branches(op, tuple([a.type for a in inputs])), inputs, False
        case While() if op.lanes:
            return _loop(op, tuple([a.type for a in inputs])), inputs, False
        case _:
            return None


def _may_run_for_nothing(programs: Sequence[Program]) -> bool:
    """Whether Programs are cheap in each lane and surely end."""
    stack = list(programs)
    while stack:
        program = stack.pop()
        for equation in program.equations:
            op = equation.op
            if must_keep(op.effects) or isinstance(op, While):
                return False
            if any(_elements(v.type) > _LARGE_LANE for v in equation.outputs):
                return False
            if isinstance(op, Cond | Scan):
                stack.extend(op.programs)
            elif isinstance(op, ProgramCall):
                stack.append(op.program)
    return True


def _elements(type: ArrayType) -> int:
    return sizes.typical(sizes.product(sizes.kernel_shape(type.shape)))


def _flat(value: Any, rank: int) -> Any:
    """A value over lanes with one axis for them."""
    shape = value.type.shape
    count = dims.shape_product(shape[:rank])
    return reshape(value, (count, *shape[rank:]))


# --- branches -------------------------------------------------------------------------------------


@memoised
def _branches(op: Cond, types: tuple[ArrayType, ...]) -> Program:
    selects = _may_run_for_nothing(op.branches)
    run = _select_lanes if selects else _branch_in_each_lane
    return simplify(stage_closed(lambda *values: run(op, values), types, "lanes"))


def _select_lanes(op: Cond, values: Sequence[Any]) -> list[Any]:
    index, *operands = values
    cases = [evaluate(over_lanes(branch, op.lanes, op.mapped), operands) for branch in op.branches]
    results: list[Any] = []
    for candidates in zip(*cases, strict=True):
        shape = candidates[0].type.shape
        which = broadcast_in_dim(index, shape, tuple(range(len(op.lanes))))
        results.append(select_n(which, *candidates))
    return results


def _branch_in_each_lane(op: Cond, values: Sequence[Any]) -> list[Any]:
    index, *operands = values
    rank = len(op.lanes)
    consts = rejected(operands, op.mapped)
    xs = [_flat(x, rank) for x in (index, *chosen(operands, op.mapped))]

    def step(*given: Any) -> Sequence[Any]:
        own, (which, *slices) = given[: len(consts)], given[len(consts) :]
        each, parts = iter(own), iter(slices)
        inputs = [next(parts) if mapped else next(each) for mapped in op.mapped]
        return Cond(op.branches).bind(which, *inputs)

    return _over_each_lane(op.lanes, step, consts, xs)


def _over_each_lane(lanes: Any, step: Any, consts: Sequence[Any], xs: Sequence[Any]) -> list[Any]:
    """A scan over lanes, whose results have the shape of the lanes again."""
    types = [*[c.type for c in consts], *[x.type.replace(shape=x.type.shape[1:]) for x in xs]]
    body = stage_closed(step, types, "lane")
    loop = Scan(body, len(consts), 0, dims.shape_product(lanes))
    results = loop.bind(*consts, *xs)
    return [reshape(y, (*lanes, *y.type.shape[1:])) for y in results]


# --- loops ----------------------------------------------------------------------------------------


@memoised
def _loop(op: While, types: tuple[ArrayType, ...]) -> Program:
    small = sum(map(_elements, op.carry_types)) <= _LARGE_LANE
    together = small and _may_run_for_nothing(op.programs)
    run = _step_together if together else _loop_in_each_lane
    return simplify(stage_closed(lambda *values: run(op, values), types, "lanes"))


def _loop_in_each_lane(op: While, values: Sequence[Any]) -> list[Any]:
    rank = len(op.lanes)
    flags = op.flags
    consts = rejected(values, flags)
    xs = [_flat(x, rank) for x in chosen(values, flags)]

    def step(*given: Any) -> Sequence[Any]:
        each, parts = iter(given[: len(consts)]), iter(given[len(consts) :])
        inputs = [next(parts) if flag else next(each) for flag in flags]
        return op.replace(lanes=(), mapped=()).bind(*inputs)

    return _over_each_lane(op.lanes, step, consts, xs)


def _step_together(op: While, values: Sequence[Any]) -> list[Any]:
    rank = len(op.lanes)
    count: Any = dims.shape_product(op.lanes)
    flat = [_flat(x, rank) if flag else x for x, flag in zip(values, op.flags, strict=True)]
    first, cond, body = lockstep_programs(
        op.cond_program, op.body_program, op.cond_count, count, None, op.flags
    )
    start = op.cond_count + op.body_count
    consts, carry = split(flat, start)
    active = Cond((first,)).bind(scalar(0, INT32), *consts[: op.cond_count], *carry)
    results = While(cond, body, 0, start, op.max_steps).bind(*consts, *active, *carry)[1:]
    return [reshape(y, (*op.lanes, *y.type.shape[1:])) for y in results]
