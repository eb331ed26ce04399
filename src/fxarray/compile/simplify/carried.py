"""What one step of a while loop computes of its new carries, and the next one again, is carried.

A loop over lanes ends its step with the condition of the next one. So a step often computes
something of the new carries (of `x`: `x * x`, to compare it) that the next step computes at once
of its carries, which are the same. It becomes one more carry: computed once, and the same number
in the condition as in the step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fxarray.compile.simplify.rewriting import Rewriter, inner_programs
from fxarray.core.ir import Atom, Equation, Literal, Program, Var
from fxarray.primitives.control.surgery import append_inputs, substitute
from fxarray.primitives.control.while_loop import While

# One unit of arithmetic each; comparisons, selections and moves cost less than a carry.
_COMPUTED = frozenset(
    ["mul", "div", "sqrt", "rsqrt", "exp", "log", "sin", "cos", "tan", "tanh", "logistic", "pow"]
)
_MOST = 4  # carries that a loop is given


def carry_shared_values(program: Program) -> Program:
    """Apply this to every while loop of a Program."""
    if not any(type(equation.op) is While for equation in program.equations):
        return program
    rewriter = Rewriter(program)
    for equation in program.equations:
        inputs = rewriter.atoms(equation)
        op = equation.op
        pairs = _pairs(op) if isinstance(op, While) and not op.lanes else []
        if isinstance(op, While) and pairs:
            _rewrite(rewriter, equation, op, inputs, pairs)
        else:
            rewriter.keep(equation, inputs)
    return rewriter.finish()


def _pairs(op: While) -> list[tuple[Equation, Equation]]:
    """Equations of the body of carries, each with the one that does the same of the new carries."""
    body = op.body_program
    shapes = {type.shape for type in op.carry_types}
    if len(shapes) != 1:
        return []  # not lanes: a value may be larger than the carries that it is computed of
    now: dict[Any, Any] = dict(zip(body.inputs, range(len(body.inputs)), strict=True))
    later: dict[Any, Any] = {v: now[v] for v in body.inputs[: op.body_count]}
    for position, atom in enumerate(body.outputs, op.body_count):
        if type(atom) is Var:
            later.setdefault(atom, position)
    found: dict[Any, Equation] = {}
    for equation in body.equations:
        key = _key(equation, later)
        if key is not None:
            found.setdefault(key, equation)
    pairs: list[tuple[Equation, Equation]] = []
    for equation in body.equations:
        key = _key(equation, now)
        if key is not None and key in found and found[key] is not equation:
            pairs.append((equation, found[key]))
    return pairs[:_MOST]


def _key(equation: Equation, names: Mapping[Any, Any]) -> Any:
    """What an equation computes of named variables; None for any other equation."""
    op = equation.op
    if op.name not in _COMPUTED or op.effects or inner_programs(op):
        return None
    if any(type(a) is not Literal and a not in names for a in equation.inputs):
        return None
    if all(type(a) is Literal for a in equation.inputs):
        return None
    return op, *[a.key if type(a) is Literal else names[a] for a in equation.inputs]


def _rewrite(
    rewriter: Rewriter,
    equation: Equation,
    op: While,
    inputs: Sequence[Atom],
    pairs: Sequence[tuple[Equation, Equation]],
) -> None:
    body = op.body_program
    outside: dict[Any, Atom] = dict(zip(body.inputs, inputs[op.cond_count :], strict=True))
    initial: list[Atom] = []
    carried: dict[Any, Atom] = {}
    for first, _ in pairs:
        operands = [outside.get(a, a) for a in first.inputs]
        initial += rewriter.add(first.op, operands, equation)
        carried[first.outputs[0]] = Var(first.outputs[0].type)
    known = {id(first) for first, _ in pairs}
    rest = [e for e in body.equations if id(e) not in known]
    outputs = [*body.outputs, *[second.outputs[0] for _, second in pairs]]
    added: list[Any] = list(carried.values())
    new = op.replace(
        cond_program=append_inputs(op.cond_program, [v.type for v in added]),
        body_program=body.replace(
            inputs=[*body.inputs, *added],
            equations=substitute(rest, carried),
            outputs=[carried.get(a, a) for a in outputs],
        ),
    )
    results = rewriter.add(new, [*inputs, *initial], equation)
    rewriter.replace(equation.outputs, results[: len(equation.outputs)])
