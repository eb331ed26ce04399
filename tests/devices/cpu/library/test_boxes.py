"""Boxes at places known at run time equal the reference."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from fxarray.core import dtypes
from fxarray.core.dtype_table import NUMERIC
from fxarray.devices.cpu.native.target import Target, host
from fxarray.primitives.dynamic_slicing import DynamicSlice, DynamicUpdateSlice
from fxarray.primitives.support import random_operand

Check = Callable[..., None]


@pytest.fixture
def target() -> Target:
    """The host alone: vectors only make the loops over windows shorter."""
    return host()


def test_samples(check: Check) -> None:
    rng = np.random.default_rng(0)
    for sample in DynamicSlice.samples(rng):
        if sample.error is None:
            check(sample.op, *sample.operands)
    for sample in DynamicUpdateSlice.samples(rng):
        if sample.error is None:
            check(sample.op, *sample.operands)
            check(sample.op, *sample.operands, in_place=True)


@pytest.mark.parametrize(
    "box", [(1, 1, 1), (4, 5, 70), (4, 5, 33), (2, 5, 70), (2, 3, 70), (3, 1, 5)]
)
def test_boxes_of_every_kind(check: Check, box: tuple[int, ...]) -> None:
    rng = np.random.default_rng(1)
    x, update = rng.normal(size=(4, 5, 70)), rng.normal(size=box)
    for place in ((0, 0, 0), (1, 2, 30), (9, -3, 99), (-1, 1, 36)):
        starts = [np.int32(place[0]), np.int64(place[1]), np.int8(place[2])]
        check(DynamicSlice(box), x, *starts)
        check(DynamicUpdateSlice(), x, update, *starts)
        check(DynamicUpdateSlice(), x, update, *starts, in_place=True)


def test_every_dtype(check: Check) -> None:
    rng = np.random.default_rng(2)
    for dtype in NUMERIC:
        values = random_operand(rng, (6, 9), np.int8, (0.0, 0.5))
        x = dtypes.cast(values, dtypes.physical(dtype))
        check(DynamicSlice((3, 5)), x, np.uint8(2), np.uint64(2**64 - 1))
        check(DynamicUpdateSlice(), x, x[:2, :3].copy(), np.int16(1), np.uint32(4))


def test_large_boxes(check: Check) -> None:
    rng = np.random.default_rng(3)
    x = rng.normal(size=(600, 500)).astype(np.float32)
    check(DynamicSlice((550, 480)), x, np.int32(20), np.int32(7))
    check(DynamicUpdateSlice(), x, x[:550, :480].copy() + 1, np.int32(20), np.int32(7))
    check(DynamicUpdateSlice(), x, x[:550] + 1, np.int32(50), np.int32(0), in_place=True)
