"""Points 36 and 37: random numbers and keys."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import fxarray as fx
import fxarray.numpy as fnp
from fxarray import lax, random

DRAWS = [
    lambda key: random.bits(key, (5,)),
    lambda key: random.uniform(key, (5,)),
    lambda key: random.normal(key, (5,)),
    lambda key: random.randint(key, (5,), 0, 10),
    lambda key: random.permutation(key, 5),
    lambda key: random.bernoulli(key, 0.3, (5,)),
    lambda key: random.categorical(key, fnp.arange(4.0), shape=(5,)),
    lambda key: random.gumbel(key, (5,)),
    lambda key: random.truncated_normal(key, -1.0, 1.0, (5,)),
    lambda key: random.key_data(random.fold_in(key, 7)),
    lambda key: random.key_data(random.split(key, 3)),
    lambda key: random.uniform(key, (5,), fnp.float64),
    lambda key: random.normal(key, (5,), fnp.bfloat16),
]


@pytest.mark.parametrize("draw", DRAWS)
def test_draws_are_equal_bit_for_bit_in_every_mode(draw):
    """Point 36: eager, jit, vmap over keys, a Python loop and scan agree to the last bit."""
    keys = random.split(random.key(3), 4)
    rows = np.stack([np.asarray(draw(key)) for key in keys])
    np.testing.assert_array_equal(fx.vmap(draw)(keys), rows)
    np.testing.assert_array_equal(fx.jit(draw)(keys[0]), rows[0])
    np.testing.assert_array_equal(fx.jit(fx.vmap(draw))(keys), rows)
    np.testing.assert_array_equal(lax.scan(lambda c, k: (c, draw(k)), 0, keys)[1], rows)
    np.testing.assert_array_equal(draw(keys[1]), rows[1])


def test_a_key_that_is_not_mapped_gives_every_lane_one_draw():
    """Point 36: vmap over something else does not change the draw."""
    key = random.key(0)
    got = fx.vmap(lambda x: x + random.uniform(key))(fnp.zeros(3))
    np.testing.assert_array_equal(got, np.full(3, np.asarray(random.uniform(key))))


def test_draws_are_stable_under_longer_shapes():
    """Point 36: normal(4)[:2] equals normal(2)."""
    key = random.key(5)
    for draw in (random.normal, random.uniform, random.bits):
        np.testing.assert_array_equal(draw(key, (4,))[:2], draw(key, (2,)))
    np.testing.assert_array_equal(
        random.key_data(random.split(key, 5))[:2], random.key_data(random.split(key, 2))
    )


def test_typed_keys_take_no_arithmetic():
    """Point 37: key + 1 is a TypeError; the dtype is a key dtype."""
    key = random.key(0)
    assert str(key.dtype) == "key<fry>"
    assert key.shape == ()
    for misuse in (
        lambda k: k + 1,
        lambda k: fnp.sin(k),
        lambda k: k * k,
        lambda k: -k,
        lambda k: k < k,
        lambda k: k.astype(int),
        *(
            fnp.sum,
            fnp.prod,
            fnp.mean,
            fnp.max,
            lambda k: fnp.sort(fnp.ravel(k)),
            fnp.cumsum,
            fnp.isnan,
            fnp.isfinite,
        ),
    ):
        for given in (key, random.split(key)):
            with pytest.raises(TypeError):
                misuse(given)
            with pytest.raises(TypeError):
                fx.jit(misuse)(given)
    for conversion in (bool, int, float, lambda k: k.item(), lambda k: k.tolist()):
        with pytest.raises(TypeError):
            conversion(key)
    with pytest.raises(TypeError):
        fx.grad(lambda k: 1.0)(key)


def test_key_arrays_are_arrays():
    """Point 37: they index, stack, reshape, map, donate, carry, compare and pickle."""
    keys = random.split(random.key(0), (2, 3))
    assert keys.shape == (2, 3)
    assert keys[1].shape == (3,)
    data = np.asarray(random.key_data(keys))
    assert data.shape == (2, 3, 2)
    assert data.dtype == np.uint32
    np.testing.assert_array_equal(random.key_data(keys[0, 1]), data[0, 1])
    np.testing.assert_array_equal(random.key_data(keys.reshape(6)[4]), data[1, 1])
    np.testing.assert_array_equal(random.key_data(fnp.stack([keys, keys])[1, 0]), data[0])
    np.testing.assert_array_equal(random.key_data(fnp.concatenate([keys, keys])[3]), data[1])
    np.testing.assert_array_equal(random.key_data(keys.at[0].set(keys[1])[0]), data[1])
    np.testing.assert_array_equal(
        random.key_data(fnp.where(fnp.asarray([True, False, True]), keys[0], keys[1])),
        np.where([[True], [False], [True]], data[0], data[1]),
    )
    np.testing.assert_array_equal(random.key_data(fx.vmap(lambda k: k[0])(keys)), data[:, 0])
    np.testing.assert_array_equal(random.key_data(pickle.loads(pickle.dumps(keys))), data)
    donated = random.key(9)
    fx.jit(lambda k: random.fold_in(k, 1), donate_argnums=0)(donated)
    with pytest.raises(RuntimeError, match="deleted|donated"):
        random.normal(donated)
    wrapped = random.wrap_key_data(data)
    np.testing.assert_array_equal(random.key_data(wrapped), data)
    assert bool((wrapped == keys).all())


def test_raw_keys_are_accepted():
    """Point 37: PRNGKey gives uint32[2], which every sampler takes, with the same draws."""
    raw, typed = random.PRNGKey(7), random.key(7)
    assert (raw.shape, str(raw.dtype)) == ((2,), "uint32")
    np.testing.assert_array_equal(random.normal(raw, (3,)), random.normal(typed, (3,)))
    first, second = random.split(raw)
    assert first.shape == (2,)
    np.testing.assert_array_equal(second, random.key_data(random.split(typed)[1]))


def test_misused_keys_are_errors():
    """Point 37: what is no key, and a batch of keys where one is meant, are refused."""
    with pytest.raises(TypeError):
        random.normal(fnp.ones(3))
    with pytest.raises((TypeError, ValueError), match="vmap|single|one key|batch"):
        random.normal(random.split(random.key(0)))
    with pytest.raises(TypeError):
        random.normal(0)
