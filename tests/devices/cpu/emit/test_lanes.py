"""Shuffles, transposes, reductions and scans inside a vector, with every combiner."""

from __future__ import annotations

import numpy as np
import pytest

from fxarray.core import dtypes
from fxarray.devices.cpu.emit import lanes as lane
from fxarray.devices.cpu.emit import memory
from fxarray.devices.cpu.emit.combine import combine, identity
from fxarray.devices.cpu.emit.types import Value, storage_type
from fxarray.kernel.combiners import COMBINERS
from fxarray.kernel.scalars import evaluate, numpy_dtype

WIDTHS = (1, 2, 4, 8, 16)


@pytest.mark.parametrize("lanes", WIDTHS)
@pytest.mark.parametrize("dtype", ["i8", "bf16", "f32", "f64", "c64"])
def test_transposes_exchange_rows_and_lanes(run, dtype, lanes):
    x = dtypes.cast(np.arange(lanes * lanes), numpy_dtype(dtype))
    result = np.zeros_like(x)
    type_ = storage_type(dtype)

    def build(f, source, place):
        rows = [
            memory.load(f, f.offset(source, row * lanes, type_), dtype, lanes)
            for row in range(lanes)
        ]
        for row, value in enumerate(lane.transpose(f, rows)):
            memory.store(f, value, f.offset(place, row * lanes, type_))

    run(build, x, result)
    assert np.array_equal(result.reshape(lanes, lanes), x.reshape(lanes, lanes).T)


@pytest.mark.parametrize("dtype", ["bool", "i16", "f32", "c128"])
def test_lanes_are_reversed_joined_and_taken(run, dtype):
    x = dtypes.cast(np.arange(16) % 3, numpy_dtype(dtype))
    reversed_, joined, taken = np.zeros_like(x), np.zeros_like(x), np.zeros_like(x)
    type_ = storage_type(dtype)

    def build(f, source, *places):
        low = memory.load(f, source, dtype, 8)
        high = memory.load(f, f.offset(source, 8, type_), dtype, 8)
        both = lane.join(f, low, high)
        memory.store(f, lane.reverse(f, both), places[0])
        memory.store(f, both, places[1])
        memory.store(f, lane.extract(f, both, 5), places[2])
        pair = lane.join(f, lane.extract(f, low, 1), lane.extract(f, high, 2))
        memory.store(f, pair, f.offset(places[2], 1, type_))

    run(build, x, reversed_, joined, taken)
    assert np.array_equal(reversed_, x[::-1])
    assert np.array_equal(joined, x)
    assert np.array_equal(taken[:3], [x[5], x[1], x[10]])


def operands(combiner: str, dtype: str, count: int) -> list[np.ndarray]:
    rng = np.random.default_rng(3)
    states = []
    for number in range(COMBINERS[combiner].states):
        if combiner in ("argmax", "argmin") and number == 1:
            states.append(np.arange(count, dtype=np.int32))
            continue
        wide = rng.integers(-4, 5, count) / (1 if dtype[0] in "iu" else 2)
        if combiner == "logsumexp" and number == 1:
            wide = np.abs(wide) + 1
        x = dtypes.cast(np.asarray(wide > 0 if dtype == "bool" else wide), numpy_dtype(dtype))
        if dtype == "f32" and combiner in ("argmax", "argmin", "max", "min") and count > 4:
            x[count // 2] = np.nan
        states.append(x)
    return states


def expected_prefixes(combiner: str, states: list[np.ndarray]) -> list[np.ndarray]:
    """Element after element, by the definition of operations."""

    def value(expression, known):
        if isinstance(expression, str):
            return known[expression]
        op, *inner = expression
        args = [value(leaf, known) for leaf in inner]
        comparison = op in ("lt", "gt", "eq", "ne")
        result = "bool" if comparison else dtypes.short_name(args[-1].dtype)
        return evaluate(op, args, result)

    running = [state[:1] for state in states]
    rows = [running]
    for position in range(1, len(states[0])):
        known = {f"a{n}": state for n, state in enumerate(running)}
        known |= {f"b{n}": state[position : position + 1] for n, state in enumerate(states)}
        running = [value(body, known) for body in COMBINERS[combiner].body]
        rows.append(running)
    return [np.concatenate(column) for column in zip(*rows, strict=True)]


CASES = [
    *[(name, dtype) for name in ("sum", "prod", "max", "min") for dtype in ("f32", "i32", "u8")],
    *[(name, dtype) for name in ("and", "or", "xor") for dtype in ("bool", "i32", "u8")],
    *[(name, dtype) for name in ("argmax", "argmin") for dtype in ("f32", "i32", "bf16")],
    *[("sum", "c64"), ("prod", "c64"), ("sum", "bf16"), ("max", "f8_e4m3fn"), ("max", "i4")],
    *[("logsumexp", "f64"), ("linear", "f32"), ("linear", "i32")],
]


def test_every_combiner_is_tried():
    assert {name for name, _ in CASES} == set(COMBINERS)


@pytest.mark.parametrize("lanes", WIDTHS)
@pytest.mark.parametrize(("combiner", "dtype"), CASES)
def test_lanes_are_combined(run, combiner, dtype, lanes):
    states = operands(combiner, dtype, lanes)
    names = [dtypes.short_name(state.dtype) for state in states]
    totals = [np.zeros(1, state.dtype) for state in states]
    forward = [np.zeros_like(state) for state in states]
    with_identity = [np.zeros_like(state) for state in states]
    backward = [np.zeros_like(state) for state in states]
    outputs = [*totals, *forward, *with_identity, *backward]

    def build(f, *pointers):
        count = len(states)
        values = [
            memory.load(f, pointer, name, lanes)
            for pointer, name in zip(pointers[:count], names, strict=True)
        ]
        neutral = [identity(combiner, n, name, lanes) for n, name in enumerate(names)]
        results = [
            *lane.horizontal(f, combiner, values),
            *lane.prefix(f, combiner, values),
            *combine(f, combiner, neutral, values),
            *lane.prefix(f, combiner, values, reverse_order=True),
        ]
        for value, pointer in zip(results, pointers[count:], strict=True):
            memory.store(f, value, pointer)

    run(build, *states, *outputs)
    prefixes = expected_prefixes(combiner, states)
    for got, expected in zip(forward, prefixes, strict=True):
        assert_near(got, expected)
    if combiner != "linear":  # the lanes of a reduction are combined in any order
        for got, expected in zip(totals, prefixes, strict=True):
            assert_near(got, expected[-1:])
        flipped = expected_prefixes(combiner, [state[::-1] for state in states])
        for got, expected in zip(backward, flipped, strict=True):
            assert_near(got, expected[::-1])
    for got, expected in zip(with_identity, states, strict=True):
        assert_near(got, expected)


def assert_near(got: np.ndarray, expected: np.ndarray) -> None:
    wide = np.complex128 if got.dtype.kind == "c" else np.float64
    rtol = 0.02 if got.dtype.itemsize == 2 and got.dtype.kind == "V" else 1e-5
    assert np.allclose(
        got.astype(wide), expected.astype(wide), rtol=rtol, atol=1e-6, equal_nan=True
    )


def test_tails_of_every_length(run):
    for lanes in (1, 4, 16, 64):
        for count in (-1, 0, 1, lanes - 1, lanes, lanes + 5, 1 << 40):
            sizes, result = np.array([count], np.int64), np.zeros(lanes, np.bool_)

            def build(f, word, place, lanes=lanes):
                mask = lane.tail_mask(f, f.load_word(word, 0), lanes)
                memory.store(f, Value("bool", lanes, (mask,)), place)

            run(build, sizes, result)
            assert np.array_equal(result, np.arange(lanes) < count)
