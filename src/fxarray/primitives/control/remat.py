"""Rematerialization: compute again in the backward pass instead of storing.

Linearizing `remat` of a Program P first linearizes P, into `known` (inputs -> outputs, residuals)
and
`linear` (residuals, tangents -> tangents). The policy then marks equations of `known` whose results
are worth keeping. What runs at once gives the outputs and the kept values; what is recorded for the
backward pass is again a `remat`, of

    inputs, kept values, tangents  ->  linear(residuals(inputs, kept values), tangents)

whose transpose, derived like that of any Program, first computes the residuals and then runs
backwards. The barrier effect keeps the two computations of the residuals from being merged into
one (Griewank and Walther, "Evaluating Derivatives", 2008, chapter 12).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from fxarray.core.effects import Barrier, Effect
from fxarray.core.factors import Factors, letters
from fxarray.core.ir import Atom, Equation, Program, Var
from fxarray.core.primitive import Primitive, Sample, Zero
from fxarray.core.types import ArrayType
from fxarray.interpreters.dce import eliminate_dead_code
from fxarray.interpreters.linearize import linearize_program
from fxarray.interpreters.memo import memoised
from fxarray.primitives.control.inline import inline_calls
from fxarray.primitives.control.program_call import ProgramCall, spread_zeros
from fxarray.primitives.control.surgery import substitute

# `policy(op, *input types, **parameters)`: whether to keep the results of an equation.
Policy = Callable[..., bool]
_BARRIER: frozenset[Effect] = frozenset([Barrier()])


class CheckpointName(Primitive, name="checkpoint_name"):
    """The identity, with a name that checkpoint policies can refer to."""

    label: str
    EXCUSED: ClassVar[dict[str, str]] = {"lower": "it is dropped before kernels are made"}
    linear_operands: ClassVar[tuple[int, ...]] = (0,)

    def infer(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        return types

    def reference(self, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        return arrays

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        return self.bind(*primals), tuple(tangents)

    def transpose(self, cotangents: Sequence[Any], *operands: Any) -> Sequence[Any]:
        return cotangents

    def batch(
        self, size: Any, axis_name: Hashable, operands: Sequence[Any], axes: Sequence[int | None]
    ) -> tuple[Sequence[Any], Sequence[int | None]]:
        return self.bind(*operands), axes

    def shard(self, *types: ArrayType) -> Factors:
        names = letters(types[0].ndim)
        return Factors((names,), (names,), linear=(0,))

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Any]:
        yield Sample(cls("a"), (np.float32(1),))
        yield Sample(cls("b"), (rng.normal(size=(2, 3)),))


class Split(NamedTuple):
    """A linearized Program, cut by a policy.

    now: inputs -> outputs, kept values
    later: inputs, kept values, tangents -> tangents of `out_nonzeros` outputs
    """

    now: Program
    later: Program
    used_inputs: tuple[bool, ...]
    out_nonzeros: tuple[bool, ...]


def _keeps(policy: Policy | None, equation: Equation) -> bool:
    if policy is None:
        return False
    op = equation.op
    return bool(policy(op, *[atom.type for atom in equation.inputs], **op.parameters()))


@memoised
def split_by_policy(program: Program, nonzeros: tuple[bool, ...], policy: Policy | None) -> Split:
    """Linearize a Program, and cut what it stores down to what the policy keeps."""
    linearized = linearize_program(inline_calls(program), nonzeros)
    known, linear = inline_calls(linearized.known), linearized.linear
    count = len(program.outputs)

    kept: list[Var] = []
    recomputed: list[Equation] = []
    for equation in known.equations:
        if _keeps(policy, equation):
            kept.extend(equation.outputs)
        else:
            recomputed.append(equation)
    residuals = linearized.pick_residuals(known.inputs, known.outputs)

    # inputs, kept -> residuals, without the kept values that no residual needs.
    again = Program([*known.inputs, *kept], recomputed, residuals, name=f"again_{program.name}")
    flags = (True,) * len(known.inputs) + (False,) * len(kept)
    again, used = eliminate_dead_code(again, None, flags)
    kept = [v for v, u in zip(kept, used[len(known.inputs) :], strict=True) if u]

    now, _ = eliminate_dead_code(known.replace(outputs=[*known.outputs[:count], *kept]))
    tangents = linear.inputs[len(residuals) :]
    names: dict[Any, Atom] = dict(zip(linear.inputs, again.outputs, strict=False))
    later = Program(
        [*again.inputs, *tangents],
        [*again.equations, *substitute(linear.equations, names)],
        [names.get(atom, atom) for atom in linear.outputs],
        name=f"derivative_of_{program.name}",
    )
    rest = len(kept) + len(tangents)
    later, used = eliminate_dead_code(later, None, (False,) * len(known.inputs) + (True,) * rest)
    return Split(now, later, used[: len(known.inputs)], linearized.out_nonzeros)


class Remat(ProgramCall, name="checkpoint"):
    """Apply a Program whose intermediate values are computed again in the backward pass."""

    policy: Policy | None = None
    prevent_cse: bool = True

    @property
    def effects(self) -> frozenset[Effect]:
        return self.program.effects | _BARRIER if self.prevent_cse else self.program.effects

    def linearize(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        nonzeros = tuple([type(tangent) is not Zero for tangent in tangents])
        split = split_by_policy(self.program, nonzeros, self.policy)
        results = self.with_program(split.now, "known").bind(*primals)
        count = len(split.out_nonzeros)
        outputs, kept = results[:count], results[count:]
        given = [tangent for tangent in tangents if type(tangent) is not Zero]
        inputs = [p for p, used in zip(primals, split.used_inputs, strict=True) if used]
        linear = self.with_program(split.later, "linear").bind(*inputs, *kept, *given)
        return outputs, spread_zeros(outputs, split.out_nonzeros, linear)
