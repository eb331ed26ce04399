"""Checks of operations as values: equality, hashing, pickling, printing, and completeness."""

from __future__ import annotations

import dis
import pickle
from collections.abc import Sequence
from typing import Any

import numpy as np

from fxarray.core import dtypes
from fxarray.core.errors import FxArrayError
from fxarray.core.primitive import RULES, Linear, Primitive, Sample, Zero
from fxarray.core.python_source import program_from_source
from fxarray.interpreters.staging import stage
from fxarray.primitives.coverage import defines
from fxarray.testing.rules.operands import (
    device_arrays,
    inexact_positions,
    random_values,
    types_of,
)


def check_identity(sample: Sample) -> None:
    """An equal operation made from the parameters is equal, hashes alike, prints with its name."""
    op = sample.op
    again = type(op)(**op.parameters())
    assert again == op, f"{op}: not equal to one made from its parameters"
    assert hash(again) == hash(op), f"{op}: equal operations hash differently"
    assert again.key == op.key, f"{op}: equal operations have different keys"
    assert op.name, f"{op!r} has no name"
    assert repr(op).startswith(op.name), f"{op!r} does not start with its name"
    assert op != Primitive(), f"{op}: equal to an operation of another class"


def check_pickle(sample: Sample) -> None:
    """Pickling and unpickling gives an equal operation; those that hold a function may refuse."""
    op = sample.op
    try:
        data = pickle.dumps(op)
    except (pickle.PicklingError, AttributeError, TypeError):
        functions = [value for value in _parameters(op) if callable(value)]
        assert functions, f"{op}: cannot be pickled, although it holds no function"
        return
    assert pickle.loads(data) == op, f"{op}: not equal to its copy by pickle"


def _parameters(op: Primitive) -> list[Any]:
    """The values among an operation's parameters, those of operations in its Programs included."""
    found: list[Any] = []
    queue: list[Any] = list(op.parameters().values())
    while queue:
        value = queue.pop()
        found.append(value)
        if isinstance(value, (tuple, list)):
            queue.extend(value)
        for equation in getattr(value, "equations", ()):
            queue.extend(equation.op.parameters().values())
        queue.extend(getattr(value, "__dict__", {}).values())
    return found


def check_python_source(sample: Sample) -> None:
    """The operation's Program, printed as Python and run, is the same Program."""
    program, _ = stage(sample.op.bind, types_of(device_arrays(sample)), sample.op.name)
    source = program.to_python()
    again = program_from_source(source)
    assert again == program, f"{sample.op}: from\n{source}\ncomes\n{again}\nnot\n{program}"


# --- completeness ---------------------------------------------------------------------------------


def check_complete(cls: type[Primitive]) -> None:
    """Each rule is there, or a sentence says why not; and nothing else is excused."""
    for rule in RULES:
        excuse = cls.EXCUSED.get(rule)
        if excuse is None:
            assert defines(cls, rule), f"{cls.name} has neither a rule {rule} nor an excuse for it"
        else:
            assert len(excuse.split()) >= 3, f"{cls.name}: {excuse!r} is no excuse for {rule}"
            # Whether these three do raise, `check_excuses` finds out by calling them.
            tried = rule in ("jvp", "transpose", "shard")
            assert tried or rule not in vars(cls) or _refuses(cls, rule), (
                f"{cls.name} has a rule {rule}, and yet an excuse for it: {excuse}"
            )
    unknown = set(cls.EXCUSED) - set(RULES) - {"eager", "linearize", "transpose_into"}
    assert not unknown, f"{cls.name} excuses {sorted(unknown)}, which are no rules"
    assert cls.__doc__, f"{cls.name} has no docstring"


def _refuses(cls: type[Primitive], rule: str) -> bool:
    """Whether an excused rule does nothing but raise."""
    instructions = dis.get_instructions(vars(cls)[rule])
    return not any(i.opname in ("RETURN_VALUE", "RETURN_CONST") for i in instructions)


def check_excuses(sample: Sample) -> None:
    """A rule that is excused raises an error that says why."""
    op, arrays = sample.op, device_arrays(sample)
    if "shard" in op.EXCUSED:
        _assert_raises(op, "shard", types_of(arrays))
    if not inexact_positions(arrays):
        return
    results = op.infer(*types_of(arrays))
    if "jvp" in op.EXCUSED and op.differentiable:
        tangents = [
            random_values(np.random.default_rng(8), array.type)
            if i in inexact_positions(arrays)
            else Zero(array.type.tangent())
            for i, array in enumerate(arrays)
        ]
        _assert_raises(op, "jvp", (arrays, tangents))
    if "transpose" in op.EXCUSED:
        rng = np.random.default_rng(8)
        cotangents = [
            random_values(rng, r) if dtypes.is_inexact(r.dtype) else Zero(r) for r in results
        ]
        for chosen in {
            *[(i,) for i in inexact_positions(arrays)],
            tuple(inexact_positions(arrays)),
        }:
            operands = [Linear(a.type) if i in chosen else a for i, a in enumerate(arrays)]
            _assert_raises(op, "transpose", (cotangents, *operands))


def _assert_raises(op: Primitive, rule: str, arguments: Sequence[Any]) -> None:
    try:
        result = getattr(op, rule)(*arguments)
    except FxArrayError:
        return
    raise AssertionError(f"{op}: {rule} is excused ({op.EXCUSED[rule]}), but gives {result}")
