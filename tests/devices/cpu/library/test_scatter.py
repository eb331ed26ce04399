"""Gathers and scatters equal the reference: every mode, dtype and place of windows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from fxarray.core import dtypes
from fxarray.core.dims import ShapeVar
from fxarray.core.dtype_table import NUMERIC
from fxarray.core.types import ArrayType
from fxarray.devices.cpu.library import routine
from fxarray.devices.cpu.native.target import Target, host
from fxarray.primitives.bits import random_keys
from fxarray.primitives.gather import Gather, ScatterAdd
from fxarray.primitives.scatter import Scatter, ScatterMax, ScatterMin, ScatterMul
from fxarray.primitives.support import random_operand
from fxarray.primitives.windows import (
    GatherDimensionNumbers,
    GatherScatterMode,
    ScatterDimensionNumbers,
)

Check = Callable[..., None]
Run = Callable[..., Any]
KINDS = (Scatter, ScatterAdd, ScatterMul, ScatterMin, ScatterMax)
ROWS = ScatterDimensionNumbers((1,), (0,), (0,))
ELEMENTS = ScatterDimensionNumbers((), (0,), (0,))
MODES = tuple(GatherScatterMode)


@pytest.fixture
def target() -> Target:
    """The host alone: vectors only make the loops over windows shorter."""
    return host()


def small(rng: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """Numbers whose sums and products are exact."""
    values = random_operand(rng, shape, np.int8, (-0.9, 0.9))
    if dtypes.is_unsigned(dtype) or dtypes.is_bool(dtype) or dtype == dtypes.float8_e8m0fnu:
        values = np.abs(values) % 2
    return dtypes.cast(np.clip(values, -1, 1), dtypes.physical(dtype))


def indices(rng: np.random.Generator, count: int, size: int, mode: GatherScatterMode) -> np.ndarray:
    slack = 0 if mode is GatherScatterMode.PROMISE_IN_BOUNDS else 3
    return rng.integers(-slack, size + slack, (count, 1))


@pytest.mark.parametrize("kind", KINDS)
def test_samples(check: Check, kind: Any) -> None:
    for sample in kind.samples(np.random.default_rng(0)):
        if sample.error is None:
            check(sample.op, *sample.operands, roundings=2)
            check(sample.op, *sample.operands, roundings=2, in_place=True)


def test_gather_samples(check: Check) -> None:
    for sample in Gather.samples(np.random.default_rng(1)):
        if sample.error is None:
            check(sample.op, *sample.operands)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("mode", MODES)
def test_rows_and_elements(check: Check, kind: Any, mode: GatherScatterMode) -> None:
    rng = np.random.default_rng(2)
    for width in (1, 7, 16, 37):
        where = indices(rng, 90, 11, mode)
        x, updates = rng.normal(size=(11, width)), rng.normal(size=(90, width))
        check(kind(ROWS, mode=mode), x, where, updates)
        check(kind(ROWS, mode=mode), x, where.astype(np.int32), updates)
    where = indices(rng, 300, 9, mode)
    check(kind(ELEMENTS, mode=mode), rng.normal(size=9), where, rng.normal(size=300))


@pytest.mark.parametrize("kind", KINDS)
def test_every_dtype(check: Check, kind: Any) -> None:
    rng = np.random.default_rng(3)
    for dtype in NUMERIC:
        if not any(dtypes.physical(dtype) == t for t in (np.bool_,)) or kind is Scatter:
            if kind in (ScatterMin, ScatterMax) and dtypes.is_complex(dtype):
                continue
            where = rng.integers(0, 5, (12, 1)).astype(np.int32)
            check(kind(ROWS), small(rng, (5, 3), dtype), where, small(rng, (12, 3), dtype))


@pytest.mark.parametrize("dtype", ["uint8", "int16", "uint32", "uint64"])
def test_every_index_dtype(check: Check, dtype: str) -> None:
    where = np.array([[0], [3], [200], [2]], np.uint8).astype(dtype)
    if dtype == "uint64":
        where[1] = 2**64 - 1
    for mode in MODES[:2]:
        check(ScatterAdd(ELEMENTS, mode=mode), np.ones(5), where, np.arange(4.0))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "complex64"])
def test_many_updates_of_few_elements(run: Run, dtype: str) -> None:
    rng = np.random.default_rng(4)
    count = 90_000
    where = rng.integers(-1, 50, (count, 1))
    for kind, shape in ((ScatterAdd, ()), (ScatterAdd, (3,)), (ScatterMax, ()), (ScatterMin, (2,))):
        if dtype == "complex64" and kind is not ScatterAdd:
            continue
        numbers = ROWS if shape else ELEMENTS
        x = np.round(rng.normal(size=(49, *shape)) * 4).astype(dtype)
        updates = np.round(rng.normal(size=(count, *shape)) * 4).astype(dtype)
        op = kind(numbers)
        (got,) = run(op, x, where, updates)
        np.testing.assert_array_equal(got, op.reference(x, where, updates)[0])
        (again,) = run(op, x, where, updates, in_place=True)
        np.testing.assert_array_equal(got, again)


def test_narrow_floats_are_rounded_once(run: Run) -> None:
    where = np.zeros((5000, 1), np.int32)
    for dtype in (dtypes.bfloat16, dtypes.float16, dtypes.float8_e5m2):
        updates = np.ones(5000, dtype)
        (got,) = run(ScatterAdd(ELEMENTS), np.zeros(1, dtype), where, updates)
        np.testing.assert_array_equal(
            got.astype(float), np.array([5000.0]).astype(dtype).astype(float)
        )


def test_the_sign_of_zero_stays(check: Check) -> None:
    rng = np.random.default_rng(5)
    for count in (1, 100_000):
        where = np.zeros((count, 1), np.int32)
        check(ScatterAdd(ELEMENTS), -np.zeros(3, np.float32), where, -np.zeros(count, np.float32))
    assert rng is not None


def test_lanes_and_boxes(check: Check) -> None:
    rng = np.random.default_rng(6)
    lanes = ScatterDimensionNumbers((1,), (1,), (1,), (0,), (0,))
    x, where = rng.normal(size=(40, 6, 50)), rng.integers(-1, 7, (40, 1))
    check(ScatterAdd(lanes), x, where, rng.normal(size=(40, 50)))
    check(Gather(lanes.as_gather(), (1, 1, 50)), x, where)
    boxes = GatherDimensionNumbers((1, 2), (), (0, 1))
    starts = rng.integers(-2, 9, (30, 2))
    for mode in MODES[:2]:
        check(Gather(boxes, (3, 4), mode=mode, fill_value=-1), x[0], starts)
        op = ScatterAdd(ScatterDimensionNumbers(*boxes), mode=mode)
        check(op, np.zeros((6, 50)), starts, np.ones((30, 3, 4)))


def test_keys_and_wide_elements_are_moved(check: Check) -> None:
    rng = np.random.default_rng(7)
    keys = random_keys(rng, (6, 2))
    where = np.array([[5], [9], [1]])
    fill = GatherScatterMode.FILL_OR_DROP
    check(Gather(ROWS.as_gather(), (1, 2), mode=fill), keys, where)
    check(Scatter(ROWS), keys, where, random_keys(rng, (3, 2)))
    x = rng.normal(size=(6, 3)) + 1j
    check(Gather(ROWS.as_gather(), (1, 3), mode=fill), x, where)
    check(Gather(ROWS.as_gather(), (1, 3), mode=fill, fill_value=2 - 1j), x, where)
    check(Scatter(ROWS), x, where, x[:3] * 2)


def test_one_code_for_all_sizes() -> None:
    def text(rows: Any, count: Any) -> str:
        x, updates = (ArrayType((size, 8), dtypes.float32) for size in (rows, count))
        given = [x, ArrayType((count, 1), dtypes.int32), updates]
        made = routine(ScatterAdd(ROWS), given, [x], host())
        assert made is not None
        return made.text

    assert text(300, 20) == text(50, 500)
    assert text(ShapeVar("n"), ShapeVar("m")) == text(7, 8)


def test_sizes_known_at_run_time(check: Check) -> None:
    rng = np.random.default_rng(8)
    rows, count = ShapeVar("rows"), ShapeVar("count")
    for sizes in ({"rows": 3, "count": 50}, {"rows": 40, "count": 2}):
        x, updates = rng.normal(size=(sizes["rows"], 5)), rng.normal(size=(sizes["count"], 5))
        where = rng.integers(0, sizes["rows"], (sizes["count"], 1))
        dims = [(rows, 5), (count, 1), (count, 5)]
        check(ScatterAdd(ROWS), x, where, updates, dims=dims, values=sizes)
        op = Gather(ROWS.as_gather(), (1, 5))
        check(op, x, where, dims=dims[:2], values=sizes)
