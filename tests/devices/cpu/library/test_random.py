"""Random bits are those of the definition, bit by bit."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from fxarray.core import dtypes
from fxarray.core.dims import ShapeVar
from fxarray.core.types import ArrayType
from fxarray.devices.cpu.library import routine
from fxarray.devices.cpu.native.target import host
from fxarray.primitives.bits import FoldIn, RandomBits, RandomSplit, random_keys

Check = Callable[..., None]


@pytest.mark.parametrize("kind", [RandomBits, RandomSplit, FoldIn])
def test_samples(check: Check, kind: type[RandomBits | RandomSplit | FoldIn]) -> None:
    for sample in kind.samples(np.random.default_rng(0)):
        if sample.error is None:
            check(sample.op, *sample.operands)


@pytest.mark.parametrize("width", [8, 16, 32, 64])
def test_every_width_and_size(check: Check, width: int) -> None:
    rng = np.random.default_rng(1)
    for keys, shape in (((), (1,)), ((3,), (63,)), ((), (64,)), ((2,), (5, 13)), ((500,), (3,))):
        check(RandomBits(shape, width), random_keys(rng, keys))
    check(RandomBits((70_000,), width), random_keys(rng, ()))


def test_one_code_for_all_sizes() -> None:
    keys = ArrayType((), dtypes.key_dtype)

    def text(*shape: object) -> str:
        op = RandomBits(shape, 32)  # type: ignore[arg-type]
        made = routine(op, [keys], op.infer(keys), host())
        assert made is not None
        return made.text

    assert text(3) == text(1000, 7) == text(ShapeVar("n"))
