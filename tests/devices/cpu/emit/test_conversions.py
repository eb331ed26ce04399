"""Conversions between all dtypes, and arithmetic of narrow floats on all of their numbers."""

import ml_dtypes
import numpy as np
import pytest

from fxarray.core import dtypes
from fxarray.devices.cpu.emit.types import NARROW_FLOATS, NARROW_INTEGERS
from fxarray.devices.cpu.native.target import OTHERS
from fxarray.kernel.operations import COMPARISONS, arity
from fxarray.kernel.scalars import evaluate, numpy_dtype

INTEGERS = (*NARROW_INTEGERS, "i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64")
DTYPES = ("bool", *INTEGERS, *NARROW_FLOATS, "f32", "f64", "c64", "c128")
SMALL = tuple(name for name in NARROW_FLOATS if name not in ("f16", "bf16"))


def every(dtype: str) -> np.ndarray:
    """All numbers of a dtype of at most 16 bits."""
    target = numpy_dtype(dtype)
    codes = np.arange(1 << dtypes.bit_width(target))
    return codes.astype(f"u{target.itemsize}").view(target)


def halfway() -> np.ndarray:
    """The numbers of the narrow formats, what is between them, and the neighbours of that."""
    parts = []
    for name in SMALL:
        numbers = np.unique(every(name).astype(np.float64))
        numbers = numbers[np.isfinite(numbers)]
        middle = (numbers[1:] + numbers[:-1]) / 2
        parts += [numbers, middle]
        parts += [np.nextafter(middle.astype(np.float32), s * np.inf) for s in (-1, 1)]
    return np.concatenate(parts)


def sample(dtype: str) -> np.ndarray:
    target = numpy_dtype(dtype)
    rng = np.random.default_rng(0)
    if dtype == "bool":
        return np.tile([False, True], 32)
    if dtypes.bit_width(target) <= 16:
        return every(dtype)
    if dtype[0] in "iu":
        wide = rng.integers(0, 2**64 - 1, 512, np.uint64) >> rng.integers(0, 64, 512, np.uint64)
        return np.where(rng.random(512) < 0.4, np.uint64(0) - wide, wide).astype(target)
    if dtype[0] == "c":
        real = sample({"c64": "f32", "c128": "f64"}[dtype])
        pairs = np.stack([real, np.roll(real, 7)], axis=1)
        return pairs.view(target)[:, 0]
    powers = [
        s * 2.0**k + d for k in (7, 8, 15, 16, 31, 32, 63, 64) for s in (1, -1) for d in (0, -1)
    ]
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, 0.5, 1.5, 2.5, -2.5, 448, 464, 465, 65519, 65520]
    unsigned = f"u{target.itemsize}"
    bits = rng.integers(0, np.iinfo(unsigned).max, 1024, unsigned, endpoint=True).view(target)
    with np.errstate(over="ignore", invalid="ignore"):
        return np.concatenate([bits, halfway(), powers, special]).astype(target)


@pytest.mark.parametrize("lanes", [1, 16])
@pytest.mark.parametrize("source", DTYPES)
def test_every_dtype_converts_to_every_other(run, assert_same, source, lanes):
    from fxarray.devices.cpu.emit import memory, scalars
    from fxarray.devices.cpu.emit.types import storage_type

    x = sample(source)
    x = np.resize(x, len(x) + -len(x) % 16)
    targets = [target for target in DTYPES if target != source]
    results = [np.empty(len(x), numpy_dtype(target)) for target in targets]

    def build(f, pointer, *places):
        def body(index):
            value = memory.load(f, f.offset(pointer, index, storage_type(source)), source, lanes)
            for target, place in zip(targets, places, strict=True):
                result = scalars.convert(f, value, target)
                memory.store(f, result, f.offset(place, index, storage_type(target)))

        f.loop(0, len(x), lanes, body)

    run(build, x, *results)
    for target, result in zip(targets, results, strict=True):
        assert_same(result, dtypes.cast(x, numpy_dtype(target)), x)


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f8_e5m2"])
def test_halves_are_rounded_without_the_instruction_too(apply, assert_same, dtype):
    target = numpy_dtype(dtype)
    x = sample("f32")
    got = apply("convert", [x], ["f32"], dtype, 4, OTHERS["sse"])
    assert_same(got, dtypes.cast(x, target), x)
    back = apply("convert", [every(dtype)], [dtype], "f32", 4, OTHERS["sse"])
    assert_same(back, every(dtype).astype(np.float32), every(dtype))


ARITHMETIC = (
    *("add", "sub", "mul", "div", "rem", "min", "max", "neg", "abs", "sign", "floor", "ceil"),
    *("trunc", "round", "sqrt", "copysign", "next_after", *sorted(COMPARISONS)),
    *("is_nan", "is_finite", "is_inf"),
)


@pytest.mark.parametrize("dtype", NARROW_FLOATS)
def test_narrow_floats_are_rounded_after_every_operation(apply, assert_same, dtype):
    numbers = every(dtype)
    if len(numbers) > 256:
        x = np.resize(numbers, 1 << 14)
        y = x[np.random.default_rng(0).permutation(len(x))]
    else:
        x, y = (np.ascontiguousarray(grid.ravel()) for grid in np.meshgrid(numbers, numbers))
    for op in ARITHMETIC:
        if dtype == "f8_e8m0fnu" and op == "copysign":
            continue  # it has no sign to copy
        arrays = [x, y][: arity(op)]
        result = "bool" if op in COMPARISONS or op.startswith("is_") else dtype
        expected = evaluate(op, arrays, result)
        got = apply(op, arrays, [dtype] * len(arrays), result)
        if op in ("div", "rem"):
            # The NaN of 0 / 0 and the like has any sign, also in formats where it is a zero.
            same_number = got.astype(np.float32) == expected.astype(np.float32)
            got = np.where(same_number, expected, got)
        assert_same(got, expected, *arrays)


@pytest.mark.parametrize(
    "dtype", [n for n in NARROW_FLOATS if ml_dtypes.finfo(numpy_dtype(n)).bits != 6]
)
def test_bits_of_narrow_floats_are_kept(apply, dtype):
    numbers = every(dtype)
    plain = ~np.isnan(numbers.astype(np.float32))
    bits = {4: "u4", 8: "u8", 16: "u16"}[dtypes.bit_width(numpy_dtype(dtype))]
    got = apply("bitcast", [numbers], [dtype], bits)
    codes = np.arange(len(numbers))
    assert (got.astype(np.int64) == codes)[plain].all()
    back = apply("bitcast", [got], [bits], dtype)
    assert (back.astype(np.float32) == numbers.astype(np.float32))[plain].all()
    assert np.isnan(back.astype(np.float32))[~plain].all()
