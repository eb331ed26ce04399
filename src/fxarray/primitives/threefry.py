"""The counter-based generator Threefry-2x32 in NumPy: the definition, and a faster form of it.

A key is two 32-bit words k0, k1. Twenty rounds of addition, rotation and exclusive-or turn a
counter (x0, x1), also two words, into two random words that depend on every bit of key and
counter. Element i of a draw is made from counter i alone, split into its high and its low word, so
a draw can be cut anywhere and computed in any order, and the first n values do not depend on how
many follow. JAX calls this scheme "partitionable"; it is its default, and these are its numbers.

A key is stored as one uint64, `k0 << 32 | k1`, and so is a pair of output words.

Source: J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw, "Parallel random numbers: as easy as
1, 2, 3", SC 2011.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np

Words: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"

ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
PARITY = 0x1BD11BDA
UNSIGNED = {8: np.dtype("uint8"), 16: np.dtype("uint16"), 32: np.dtype("uint32")}

_MASK = 0xFFFFFFFF
_WORD = np.dtype("uint32")
_PAIR = np.dtype("uint64")
_THIRTY_TWO = np.uint64(32)
# Counters hashed at a time: five such arrays of words stay in a core's cache.
_BLOCK = 1 << 14
# Up to here plain integers are faster than NumPy, which takes about 130 calls for any size.
_FEW = 8


def threefry2x32(k0: Words, k1: Words, x0: Words, x1: Words) -> tuple[Words, Words]:
    """The two output words of counters (x0, x1) under keys (k0, k1), all uint32 arrays.

    >>> one = np.ones(1, np.uint32)
    >>> [int(word[0]) for word in threefry2x32(0 * one, 0 * one, 0 * one, 0 * one)]
    [1797259609, 2579123966]
    """
    schedule = (k0, k1, k0 ^ k1 ^ np.uint32(PARITY))
    x0, x1 = x0 + k0, x1 + k1
    for group in range(5):
        for rotation in ROTATIONS[group % 2]:
            x0 = x0 + x1
            x1 = ((x1 << np.uint32(rotation)) | (x1 >> np.uint32(32 - rotation))) ^ x0
        x0 = x0 + schedule[(group + 1) % 3]
        x1 = x1 + schedule[(group + 2) % 3] + np.uint32(group + 1)
    return x0, x1


def halves(pairs: Words) -> tuple[Words, Words]:
    """The high and the low words of uint64 values."""
    return (pairs >> _THIRTY_TWO).astype(_WORD), pairs.astype(_WORD)


def paired(high: Words, low: Words) -> Words:
    """The uint64 values of high and low words."""
    return (high.astype(_PAIR) << _THIRTY_TWO) | low


def fold_in(keys: Words, data: Words) -> Words:
    """For each key, the key that stands at counter `data` of it."""
    zero = np.zeros_like(data)
    return paired(*threefry2x32(*halves(keys), zero, data))


def draw(keys: Words, shape: tuple[int, ...], bit_width: int) -> Words:
    """Random bits of `bit_width` for each key: an array of shape `keys.shape + shape`."""
    count = math.prod(shape)
    k0, k1 = halves(keys[..., np.newaxis])
    y0, y1 = threefry2x32(k0, k1, *halves(np.arange(count, dtype=_PAIR)))
    bits = paired(y0, y1) if bit_width == 64 else (y0 ^ y1).astype(UNSIGNED[bit_width])
    return bits.reshape(keys.shape + shape)


# --- the same, faster -----------------------------------------------------------------------------


def hash_one(key: int, counter: int) -> int:
    """The output pair of one counter, both as plain integers."""
    k0, k1 = key >> 32, key & _MASK
    schedule = (k0, k1, k0 ^ k1 ^ PARITY)
    x0, x1 = ((counter >> 32) + k0) & _MASK, ((counter & _MASK) + k1) & _MASK
    for group in range(5):
        for rotation in ROTATIONS[group % 2]:
            x0 = (x0 + x1) & _MASK
            x1 = ((x1 << rotation) & _MASK | x1 >> (32 - rotation)) ^ x0
        x0 = (x0 + schedule[(group + 1) % 3]) & _MASK
        x1 = (x1 + schedule[(group + 2) % 3] + group + 1) & _MASK
    return x0 << 32 | x1


def _hash_in_place(k0: Words, k1: Words, x0: Words, x1: Words) -> None:
    """`threefry2x32`, leaving the output words in `x0` and `x1`."""
    schedule = (k0, k1, k0 ^ k1 ^ np.uint32(PARITY))
    spare = np.empty_like(x1)
    x0 += k0
    x1 += k1
    for group in range(5):
        for rotation in ROTATIONS[group % 2]:
            x0 += x1
            np.left_shift(x1, np.uint32(rotation), out=spare)
            x1 >>= np.uint32(32 - rotation)
            x1 |= spare
            x1 ^= x0
        x0 += schedule[(group + 1) % 3]
        x1 += schedule[(group + 2) % 3] + np.uint32(group + 1)


def _blocks(keys: Words, count: int) -> Iterator[tuple[int, int, Words, Words, Words, Words]]:
    """Cut the counters of all keys into blocks: start, stop, key words and counters of each."""
    if count >= _BLOCK // 4:
        for number, key in enumerate(keys.tolist()):
            k0, k1 = np.array([key >> 32], _WORD), np.array([key & _MASK], _WORD)
            for start in range(0, count, _BLOCK):
                stop = min(start + _BLOCK, count)
                x0, x1 = halves(np.arange(start, stop, dtype=_PAIR))
                offset = number * count
                yield offset + start, offset + stop, k0, k1, x0, x1
        return
    per_block = max(1, _BLOCK // max(1, count))
    counters = np.arange(count, dtype=_WORD)
    for first in range(0, len(keys), per_block):
        some = keys[first : first + per_block]
        k0, k1 = halves(np.repeat(some, count))
        x1 = np.tile(counters, len(some))
        yield first * count, first * count + len(x1), k0, k1, np.zeros_like(x1), x1


def draw_fast(keys: Words, shape: tuple[int, ...], bit_width: int) -> Words:
    """`draw`, by plain integers for a few values and by cache-sized blocks for many."""
    count = math.prod(shape)
    total = keys.size * count
    dtype = UNSIGNED.get(bit_width, _PAIR)
    if total <= _FEW:
        pairs = [hash_one(key, i) for key in keys.ravel().tolist() for i in range(count)]
        if bit_width != 64:
            mask = (1 << bit_width) - 1
            pairs = [(pair >> 32 ^ pair) & mask for pair in pairs]
        return np.array(pairs, dtype).reshape(keys.shape + shape)
    result = np.empty(total, dtype)
    for start, stop, k0, k1, x0, x1 in _blocks(keys.ravel(), count):
        _hash_in_place(k0, k1, x0, x1)
        if bit_width == 64:
            result[start:stop] = paired(x0, x1)
        else:
            x0 ^= x1
            result[start:stop] = x0
    return result.reshape(keys.shape + shape)
