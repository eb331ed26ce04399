"""Keys: what they are, what they refuse, and that every array operation moves them."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

from fxarray import jit, random, vmap
from fxarray import numpy as fnp
from fxarray.core import dtypes
from fxarray.core.errors import ArgumentError, DTypeError, FxArrayError, ShapeError


def words(keys: Any) -> Any:
    return random.key_data(keys).tolist()


def test_a_key_is_a_scalar_array_of_dtype_key_fry() -> None:
    key = random.key(0)
    assert key.shape == ()
    assert key.dtype == dtypes.key_dtype
    assert str(key.dtype) == "key<fry>"
    assert random.key_dtype() == key.dtype


@pytest.mark.parametrize("seed", [0, 1, -1, 2**31 - 1, 2**32 - 1, -(2**31)])
def test_numpy_integer_seeds_equal_python_ones(seed: int) -> None:
    assert words(random.key(np.int64(seed))) == words(random.key(seed))


def test_narrow_array_seeds_wrap_to_32_bits() -> None:
    assert words(random.key(np.array(-3, np.int16))) == [0, 2**32 - 3]
    assert words(random.key(np.array(7, np.uint8))) == [0, 7]
    assert words(random.key(np.array(2**32 - 1, np.uint32))) == [0, 2**32 - 1]


def test_every_bit_of_a_64_bit_array_seed_counts() -> None:
    assert words(random.key(np.array(2**40 + 3, np.int64))) == [2**8, 3]
    assert words(random.key(np.array(-5, np.int64))) == [2**32 - 1, 2**32 - 5]
    assert words(random.key(np.array(2**63 + 1, np.uint64))) == [2**31, 1]


@pytest.mark.parametrize("dtype", ["int8", "int32", "uint32", "int64", "uint64"])
def test_traced_seeds_give_the_keys_of_concrete_arrays(dtype: str) -> None:
    seed = np.array(77, dtype)
    assert words(jit(random.key)(seed)) == words(random.key(seed))


@pytest.mark.parametrize("seed", [2**64, -(2**63) - 1])
def test_seeds_of_more_than_64_bits_overflow(seed: int) -> None:
    with pytest.raises(OverflowError, match="64 bits"):
        random.key(seed)


@pytest.mark.parametrize("seed", [1.5, "7", None, np.float32(1), np.array(1.0), random.key(0)])
def test_seeds_that_are_no_integers_are_refused(seed: Any) -> None:
    with pytest.raises(TypeError, match="integer seed"):
        random.key(seed)


def test_several_seeds_are_refused_and_vmap_is_named() -> None:
    seeds = np.arange(3, dtype=np.int32)
    with pytest.raises(ShapeError, match="vmap"):
        random.key(seeds)
    assert words(vmap(random.key)(seeds)) == [words(random.key(i)) for i in range(3)]


def test_other_generators_are_refused() -> None:
    assert words(random.key(1, impl="threefry2x32")) == words(random.key(1, dtype="fry"))
    with pytest.raises(ArgumentError, match="rbg"):
        random.key(0, impl="rbg")
    with pytest.raises(ArgumentError, match="not both"):
        random.key(0, impl="fry", dtype="fry")


@pytest.mark.parametrize(
    "operation",
    [
        lambda key: key + 1,
        lambda key: 1 + key,
        lambda key: key + key,
        lambda key: key * 2.0,
        lambda key: -key,
        lambda key: fnp.sin(key),
        lambda key: key.astype(np.uint64),
        lambda key: fnp.zeros(2).astype(key.dtype),
    ],
)
def test_arithmetic_on_keys_is_a_type_error_that_speaks_of_keys(operation: Any) -> None:
    for apply in (operation, jit(operation)):
        with pytest.raises(TypeError, match="key"):
            apply(random.key(0))


@pytest.mark.parametrize(
    "value", [0, 1.5, None, "key", np.zeros(2, np.int32), np.zeros(3, np.uint32)]
)
def test_what_is_no_key_is_refused_with_the_remedy(value: Any) -> None:
    for draw in (random.normal, random.bits, random.split, lambda k: random.permutation(k, 3)):
        with pytest.raises(DTypeError, match=r"random\.key\(seed\)"):
            draw(value)


def test_several_keys_are_refused_and_vmap_is_named() -> None:
    keys = random.split(random.key(0), 3)
    for draw in (random.normal, random.split, lambda k: random.fold_in(k, 1)):
        with pytest.raises(ValueError, match=r"single key.*vmap"):
            draw(keys)


def test_a_key_has_no_numpy_form() -> None:
    with pytest.raises(DTypeError, match="key_data"):
        np.asarray(random.key(0))


@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3), (2, 0, 3)])
def test_split_gives_keys_of_any_shape(shape: tuple[int, ...]) -> None:
    keys = random.split(random.key(4), shape)
    assert keys.shape == shape
    assert keys.dtype == dtypes.key_dtype
    assert random.split(random.PRNGKey(4), shape).shape == (*shape, 2)
    assert words(keys) == random.split(random.PRNGKey(4), shape).tolist()


def test_split_into_a_negative_number_is_refused() -> None:
    with pytest.raises(ShapeError, match="negative"):
        random.split(random.key(0), -1)


def test_the_ith_key_of_a_split_is_fold_in_of_i() -> None:
    key = random.key(9)
    assert words(random.split(key, 4)) == [words(random.fold_in(key, i)) for i in range(4)]


def test_fold_in_takes_uint32_numbers_and_wraps_arrays() -> None:
    key = random.key(0)
    for bad in (-1, 2**32):
        with pytest.raises(OverflowError, match="fold_in"):
            random.fold_in(key, bad)
    assert words(random.fold_in(key, np.array(-1, np.int32))) == words(
        random.fold_in(key, 2**32 - 1)
    )
    with pytest.raises(DTypeError, match="integer"):
        random.fold_in(key, 1.0)
    with pytest.raises(ShapeError, match="vmap"):
        random.fold_in(key, np.arange(2))


def test_keys_are_moved_like_numbers() -> None:
    keys = random.split(random.key(1), (2, 3))
    expected = np.array(words(keys))
    assert words(keys[1, 2]) == expected[1, 2].tolist()
    assert words(keys[:, ::-1]) == expected[:, ::-1].tolist()
    assert words(keys.reshape(6)) == expected.reshape(6, 2).tolist()
    assert words(keys.T) == expected.transpose(1, 0, 2).tolist()
    assert words(fnp.stack([keys[0], keys[1]], axis=1)) == expected.transpose(1, 0, 2).tolist()
    assert words(fnp.concatenate([keys, keys])) == np.concatenate([expected, expected]).tolist()
    assert words(keys[fnp.array([1, 0])]) == expected[[1, 0]].tolist()
    assert [words(key) for key in keys[0]] == expected[0].tolist()
    assert (
        words(fnp.where(fnp.array([True, False, True]), keys[0], keys[1]))[1]
        == expected[1, 1].tolist()
    )
    assert words(keys.at[0, 0].set(keys[1, 1]))[0][0] == expected[1, 1].tolist()
    assert bool((keys == keys).all())
    assert not bool((keys[0] == keys[1]).any())


def test_keys_survive_pickle_and_copies() -> None:
    keys = random.split(random.key(2), 3)
    assert words(pickle.loads(pickle.dumps(keys))) == words(keys)
    assert words(copy.deepcopy(keys)) == words(keys)
    assert "key<fry>" in repr(keys)


def test_wrapping_and_unwrapping_words_are_inverses() -> None:
    raw = np.random.default_rng(0).integers(0, 2**32, (3, 4, 2), np.uint32)
    keys = random.wrap_key_data(raw)
    assert keys.shape == (3, 4)
    assert np.array_equal(random.key_data(keys), raw)
    assert words(random.clone(keys)) == raw.tolist()
    assert random.key_impl(keys) == "threefry2x32"
    for bad in (np.zeros((2, 3), np.uint32), np.zeros(2, np.int32), np.uint32(3)):
        with pytest.raises(FxArrayError):
            random.wrap_key_data(bad)


def test_raw_keys_draw_what_typed_keys_draw() -> None:
    typed, raw = random.key(33), random.PRNGKey(33)
    assert np.array_equal(random.normal(raw, (5,)), random.normal(typed, (5,)))
    assert np.array_equal(random.permutation(raw, 9), random.permutation(typed, 9))
    assert np.array_equal(jit(random.bits)(raw), random.bits(typed))
