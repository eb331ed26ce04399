"""The arithmetic under random numbers: threefry, and products and sums rounded once."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from fxarray.primitives import threefry
from fxarray.primitives.fused import multiply_add_exactly, multiply_add_fast

# Published with the generator (Random123's known-answer vectors): counter, key, result.
KNOWN_ANSWERS = [
    ((0x00000000, 0x00000000), (0x00000000, 0x00000000), (0x6B200159, 0x99BA4EFE)),
    ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
    ((0x243F6A88, 0x85A308D3), (0x13198A2E, 0x03707344), (0xC4923A9C, 0x483DF7A0)),
]


def word(value: int) -> np.ndarray:
    return np.array([value], np.uint32)


@pytest.mark.parametrize(("counter", "key", "result"), KNOWN_ANSWERS)
def test_known_answers_of_the_published_generator(
    counter: tuple[int, int], key: tuple[int, int], result: tuple[int, int]
) -> None:
    words = threefry.threefry2x32(*map(word, key), *map(word, counter))
    assert tuple(int(w[0]) for w in words) == result
    pair = threefry.hash_one(key[0] << 32 | key[1], counter[0] << 32 | counter[1])
    assert (pair >> 32, pair & 0xFFFFFFFF) == result


KEYS = np.array([0, 5, 2**63 + 7, 12345678901234], np.uint64)


@pytest.mark.parametrize("keys", [KEYS[2], KEYS[:0], KEYS, KEYS.reshape(2, 2)], ids=np.shape)
@pytest.mark.parametrize("shape", [(), (0,), (1,), (7, 3), (4095,), (4097,), (40001,)], ids=str)
@pytest.mark.parametrize("width", [8, 16, 32, 64])
def test_fast_draws_equal_the_definition(
    keys: np.ndarray, shape: tuple[int, ...], width: int
) -> None:
    keys = np.asarray(keys)
    slow = threefry.draw(keys, shape, width)
    fast = threefry.draw_fast(keys, shape, width)
    assert fast.dtype == slow.dtype == np.dtype(f"uint{width}")
    assert fast.shape == slow.shape == keys.shape + shape
    assert np.array_equal(fast, slow)


def test_counters_beyond_32_bits_use_the_high_word() -> None:
    low, high = threefry.hash_one(7, 1), threefry.hash_one(7, 2**32 + 1)
    words = threefry.threefry2x32(word(0), word(7), word(1), word(1))
    assert high == int(threefry.paired(*words)[0]) != low


def test_folding_in_gives_the_keys_of_a_split() -> None:
    split = threefry.draw(KEYS, (5,), 64)
    folded = threefry.fold_in(KEYS[:, None], np.arange(5, dtype=np.uint32)[None])
    assert np.array_equal(split, folded)


# --- fused multiply-add ---------------------------------------------------------------------------


def wide(rng: np.random.Generator, dtype: type, size: int, exponent: int) -> np.ndarray:
    with np.errstate(all="ignore"):
        values = np.ldexp(rng.normal(size=size), rng.integers(-exponent, exponent + 1, size))
        return values.astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("exponent", [0, 5, 60, 140, 600])
def test_multiply_add_rounds_once(dtype: type, exponent: int) -> None:
    rng = np.random.default_rng(exponent)
    x, y = wide(rng, dtype, 1500, exponent), wide(rng, dtype, 1500, exponent)
    with np.errstate(all="ignore"):
        z = np.where(rng.random(1500) < 0.5, wide(rng, dtype, 1500, exponent), -(x * y))
        z = (z * dtype(1 + 2**-20)).astype(dtype)
        z[::7] = -(x * y)[::7]
        z[::11], x[::13] = 0, 0
        exact, fast = multiply_add_exactly(x, y, z), multiply_add_fast(x, y, z)
        usual = np.isfinite(exact) & np.isfinite(x * y) & np.isfinite(z)
    bits = np.dtype(f"int{8 * exact.itemsize}")
    both_nan = np.isnan(exact) & np.isnan(fast)
    assert ((exact.view(bits) == fast.view(bits)) | both_nan).all()
    for i in np.flatnonzero(usual):
        value = Fraction(float(x[i])) * Fraction(float(y[i])) + Fraction(float(z[i]))
        error = abs(Fraction(float(exact[i])) - value)
        for neighbour in (
            np.nextafter(exact[i], dtype(-np.inf)),
            np.nextafter(exact[i], dtype(np.inf)),
        ):
            if np.isfinite(neighbour):
                assert error <= abs(Fraction(float(neighbour)) - value)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_multiply_add_of_infinities_nans_and_zeros_follows_ieee(dtype: type) -> None:
    cases = [(np.inf, 0, 1), (np.nan, 1, 1), (np.inf, 1, -np.inf), (np.inf, -1, 2), (0, -1, 0)]
    cases += [(-0.0, 1, -0.0), (1, 1, -1), (0, 0, -0.0)]
    x, y, z = (np.array(column, dtype) for column in zip(*cases, strict=True))
    with np.errstate(all="ignore"):
        expected = x * y + z
        for compute in (multiply_add_exactly, multiply_add_fast):
            value = compute(x, y, z)
            assert np.array_equal(value, expected, equal_nan=True)
            assert np.array_equal(np.signbit(value[4:]), np.signbit(expected[4:]))


def test_multiply_add_of_a_product_beyond_all_floats() -> None:
    largest = np.finfo(np.float64).max
    x, y = np.full(3, 2.0), np.full(3, largest)
    z = np.array([-np.inf, -largest, 0.0])
    for compute in (multiply_add_exactly, multiply_add_fast):
        with np.errstate(all="ignore"):
            assert compute(x, y, z).tolist() == [-np.inf, largest, np.inf]
