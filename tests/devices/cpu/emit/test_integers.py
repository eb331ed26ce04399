"""Operations on integers and truth values against their definition in NumPy."""

import numpy as np
import pytest

from fxarray.core import dtypes
from fxarray.kernel.operations import COMPARISONS, arity
from fxarray.kernel.scalars import evaluate, numpy_dtype

ARITHMETIC = ("add", "sub", "mul", "div", "rem", "min", "max", "neg", "abs", "sign", "pow", "fma")
BITS = ("and", "or", "xor", "not", "shl", "shr_logical", "shr_arithmetic", "popcount", "clz", "ctz")
OPERATIONS = (*ARITHMETIC, *BITS, *sorted(COMPARISONS))


def operands(dtype: str, count: int) -> list[np.ndarray]:
    """All pairs of 8-bit numbers; of wider ones, numbers of every size and the ends of ranges."""
    target = numpy_dtype(dtype)
    bits = dtypes.bit_width(target)
    rng = np.random.default_rng(bits)
    if bits <= 8:
        every = dtypes.cast(np.arange(-(1 << (bits - 1)), 1 << (bits - 1)), target)
        if dtypes.is_unsigned(target):
            every = dtypes.cast(np.arange(1 << bits), target)
        first, second = (grid.ravel() for grid in np.meshgrid(every, every))
        third = np.resize(every, first.size)
        return [np.ascontiguousarray(array) for array in (first, second, third)][:count]
    ends = [0, 1, 2, 3, 7, bits - 1, bits, 1 << (bits - 1), (1 << (bits - 1)) - 1, (1 << bits) - 1]
    pairs = np.array([(a, b) for a in ends for b in ends], np.uint64)
    size = 1024
    result = []
    for number in range(count):
        wide = rng.integers(0, 2**64 - 1, size, np.uint64) >> rng.integers(0, 64, size, np.uint64)
        wide = np.where(rng.random(size) < 0.4, np.uint64(0) - wide, wide)
        wide[: len(pairs)] = pairs[:, number % 2]
        result.append(dtypes.cast(wide, target))
    return result


@pytest.mark.parametrize("lanes", [1, 16])
@pytest.mark.parametrize("dtype", ["i2", "u4", "i4", "i8", "u8", "i16", "u16"])
def test_narrow_integers_are_as_defined(apply, assert_same, dtype, lanes):
    check(apply, assert_same, dtype, lanes)


@pytest.mark.parametrize("lanes", [1, 8])
@pytest.mark.parametrize("dtype", ["i32", "u32", "i64", "u64"])
def test_wide_integers_are_as_defined(apply, assert_same, dtype, lanes):
    check(apply, assert_same, dtype, lanes)


def check(apply, assert_same, dtype, lanes):
    for op in OPERATIONS:
        if op == "abs" and dtype[0] == "u":
            continue
        arrays = operands(dtype, arity(op))
        result = "bool" if op in COMPARISONS else dtype
        expected = evaluate(op, arrays, result)
        got = apply(op, arrays, [dtype] * len(arrays), result, lanes)
        assert_same(got, expected, *arrays)


@pytest.mark.parametrize("dtype", ["i8", "i32", "u32", "i64"])
@pytest.mark.parametrize("divisor", [-7, -1, 0, 1, 3, 8, 100])
def test_division_by_constants(run, assert_same, dtype, divisor):
    from fxarray.devices.cpu.emit import memory, scalars
    from fxarray.devices.cpu.emit.types import storage_type

    if dtype[0] == "u":
        divisor = abs(divisor)
    (x,) = operands(dtype, 1)
    x = x[: len(x) // 16 * 16]
    results = [np.empty_like(x), np.empty_like(x)]

    def build(f, source, *places):
        def body(index):
            value = memory.load(f, f.offset(source, index, storage_type(dtype)), dtype, 16)
            by = scalars.constant(divisor, dtype)
            for op, place in zip(("div", "rem"), places, strict=True):
                result = scalars.apply(f, op, [value, by], dtype)
                memory.store(f, result, f.offset(place, index, storage_type(dtype)))

        f.loop(0, len(x), 16, body)

    run(build, x, *results)
    by = np.full_like(x, divisor)
    for op, result in zip(("div", "rem"), results, strict=True):
        assert_same(result, evaluate(op, [x, by], dtype), x)


@pytest.mark.parametrize("lanes", [1, 16])
def test_truth_values_are_as_defined(apply, assert_same, lanes):
    x = np.tile([False, False, True, True], 16)
    y = np.tile([False, True], 32)
    for op in ("and", "or", "xor", "min", "max", "add", "mul", *sorted(COMPARISONS)):
        expected = evaluate(op, [x, y], "bool")
        assert_same(apply(op, [x, y], ["bool", "bool"], "bool", lanes), expected, x, y)
    assert_same(apply("not", [x], ["bool"], "bool", lanes), ~x, x)


def test_truth_values_of_other_bytes_are_true(apply):
    odd = np.array([0, 1, 2, 255] * 16, np.uint8).view(np.bool_)
    assert apply("convert", [odd], ["bool"], "i32").tolist() == [0, 1, 1, 1] * 16


def test_selection_takes_either_by_a_truth_value(apply):
    x, y = np.arange(64, dtype=np.int16), -np.arange(64, dtype=np.int16)
    condition = np.arange(64) % 3 == 0
    got = apply("select", [condition, x, y], ["bool", "i16", "i16"], "i16")
    assert got.tolist() == np.where(condition, x, y).tolist()
