"""Points 36 and 37: draws are functions of the key alone, and keys are typed arrays."""

from __future__ import annotations

import pickle

import jax
import numpy as np
import pytest

import fxarray as fx
import fxarray.numpy as fnp
from fxarray import lax, random
from fxarray.core.errors import DTypeError

DRAWS = {
    "bits": lambda key: random.bits(key, (3,)),
    "uniform": lambda key: random.uniform(key, (3,)),
    "normal": lambda key: random.normal(key, (3,)),
    "randint": lambda key: random.randint(key, (3,), 0, 100),
    "bernoulli": lambda key: random.bernoulli(key, 0.5, (3,)),
    "permutation": lambda key: random.permutation(key, 5),
    "categorical": lambda key: random.categorical(key, fnp.zeros(4), shape=(3,)),
    "exponential": lambda key: random.exponential(key, (3,)),
    "split": lambda key: random.key_data(random.split(key, 3)),
    "fold_in": lambda key: random.key_data(random.fold_in(key, 7)),
}

every_draw = pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)


def same(left, right):
    np.testing.assert_array_equal(np.asarray(left), np.asarray(right))


# --- point 36: counter-based, the same everywhere -----------------------------------------------


@every_draw
def test_vmap_over_keys_is_a_python_loop_bit_for_bit(draw):
    """Point 36: mapping a draw over keys gives each lane what a call with its key gives."""
    keys = random.split(random.key(3), 4)
    same(fx.vmap(draw)(keys), np.stack([np.asarray(draw(keys[i])) for i in range(4)]))


@every_draw
def test_a_key_shared_by_all_lanes_draws_the_same_in_each(draw):
    """Point 36: a key that is not mapped gives the same draw in each lane."""
    key = random.key(3)
    mapped = fx.vmap(lambda key, _: draw(key), in_axes=(None, 0))(key, fnp.zeros(4))
    same(mapped, np.broadcast_to(np.asarray(draw(key)), mapped.shape))


@every_draw
def test_jit_draws_what_eager_calls_draw(draw):
    """Point 36: jit and eager draws are equal: bits, integers and uniform values to the last bit,
    values made of them by logarithms and roots within rounding."""
    key = random.key(11)
    jitted, eager = np.asarray(fx.jit(draw)(key)), np.asarray(draw(key))
    if draw in (DRAWS["normal"], DRAWS["exponential"]):
        np.testing.assert_allclose(jitted, eager, rtol=1e-6)
    else:
        same(jitted, eager)


@pytest.mark.parametrize("name", ["bits", "uniform", "normal", "exponential", "gumbel", "laplace"])
def test_a_draw_begins_with_the_shorter_draw(name):
    """Point 36: draws are stable in the shape's prefix: normal(4)[:2] is normal(2)."""
    draw = getattr(random, name)
    key = random.key(5)
    same(draw(key, (4,))[:2], draw(key, (2,)))
    same(draw(key, (4, 3))[:2], draw(key, (2, 3)))


@pytest.mark.parametrize("name", ["bits", "uniform", "randint", "permutation", "split", "fold_in"])
def test_integers_and_uniform_draws_are_jaxs_bit_for_bit(name):
    """Point 36, and the first promise of the design: these draws are JAX's own bits."""
    calls = {
        "bits": lambda r, key: r.bits(key, (5,)),
        "uniform": lambda r, key: r.uniform(key, (5,), minval=-1.0, maxval=2.0),
        "randint": lambda r, key: r.randint(key, (5,), -7, 1000),
        "permutation": lambda r, key: r.permutation(key, 9),
        "split": lambda r, key: r.key_data(r.split(key, 3)),
        "fold_in": lambda r, key: r.key_data(r.fold_in(key, 2**31)),
    }
    for seed in (0, 42):
        same(calls[name](random, random.key(seed)), calls[name](jax.random, jax.random.key(seed)))


def test_children_of_a_split_draw_apart_from_each_other_and_the_parent():
    """Point 36: keys are splittable: no two of parent and children draw the same numbers."""
    parent = random.key(0)
    keys = [parent, *random.split(parent, 3), random.fold_in(parent, 100)]
    draws = {tuple(np.asarray(random.bits(key, (2,))).tolist()) for key in keys}
    assert len(draws) == len(keys)


def test_drawing_twice_with_a_key_gives_the_same():
    """Point 36: there is no hidden state: a key used twice draws the same numbers twice."""
    key = random.key(1)
    first = random.normal(key, (3,))
    random.uniform(random.key(2), (3,))
    same(first, random.normal(key, (3,)))


# --- point 37: typed keys -----------------------------------------------------------------------


def test_a_key_is_a_scalar_of_its_own_dtype():
    """Point 37: a key has shape () and the dtype key<fry>, a subtype of prng_key."""
    key = random.key(0)
    assert (key.shape, key.ndim, key.size) == ((), 0, 1)
    assert str(key.dtype) == "key<fry>"
    assert fnp.issubdtype(key.dtype, fx.dtypes.prng_key)
    assert not fnp.issubdtype(key.dtype, np.integer)


@pytest.mark.parametrize(
    "operation",
    [
        lambda key: key + 1,
        lambda key: 2 * key,
        lambda key: -key,
        lambda key: key < key,
        lambda key: fnp.sin(key),
        lambda key: fnp.sum(random.split(key)),
        lambda key: key.astype(fnp.uint32),
    ],
    ids=["add", "multiply", "negate", "less", "sin", "sum", "astype"],
)
def test_arithmetic_on_keys_is_a_type_error(operation):
    """Point 37: key + 1 is a TypeError, concretely, under jit and under vmap."""
    key = random.key(0)
    with pytest.raises(TypeError, match="key"):
        operation(key)
    with pytest.raises(DTypeError, match="key"):
        fx.jit(operation)(key)
    with pytest.raises(DTypeError, match="key"):
        fx.vmap(operation)(random.split(key))


@pytest.mark.parametrize("shape", [4, (2, 3), ()])
def test_split_takes_a_number_or_a_shape(shape):
    """Point 37: split(key, (2, 3)) gives keys of that shape, equal to JAX's."""
    keys = random.split(random.key(9), shape)
    assert keys.shape == (shape if isinstance(shape, tuple) else (shape,))
    theirs = jax.random.key_data(jax.random.split(jax.random.key(9), shape))
    same(random.key_data(keys), theirs)


def test_arrays_of_keys_are_indexed_stacked_and_compared_like_any_array():
    """Point 37: keys are indexed, stacked, reshaped, updated, selected and compared."""
    keys = random.split(random.key(0), 6)
    words = np.asarray(random.key_data(keys))
    same(random.key_data(keys[2]), words[2])
    same(random.key_data(keys[::-2]), words[::-2])
    same(random.key_data(keys.reshape(2, 3)), words.reshape(2, 3, 2))
    same(random.key_data(fnp.stack([keys[1], keys[4]])), words[[1, 4]])
    same(random.key_data(fnp.concatenate([keys[:1], keys[3:4]])), words[[0, 3]])
    same(random.key_data(keys.at[0].set(keys[5]))[0], words[5])
    chosen = fnp.where(fnp.arange(6) < 3, keys, keys[0])
    same(random.key_data(chosen), np.where((np.arange(6) < 3)[:, None], words, words[0]))
    same(keys == keys[1], np.arange(6) == 1)


def test_keys_pass_through_control_flow():
    """Point 37: keys are carried and scanned over as they are."""

    def step(key, _):
        key, use = random.split(key)
        return key, random.uniform(use)

    _, drawn = lax.scan(step, random.key(4), None, length=3)
    key, expected = random.key(4), []
    for _ in range(3):
        key, value = step(key, None)
        expected.append(np.asarray(value))
    same(drawn, np.stack(expected))


def test_keys_can_be_donated():
    """Point 37: a donated key is deleted, like any donated array."""
    key = random.key(0)
    advance = fx.jit(lambda key: random.fold_in(key, 1), donate_argnums=0)
    advance(key)
    assert key.is_deleted()


def test_keys_are_stored_by_pickle_and_by_their_words():
    """Point 37: keys can be serialised, whole or as raw words."""
    keys = random.split(random.key(8), 2)
    same(random.key_data(pickle.loads(pickle.dumps(keys))), random.key_data(keys))
    again = random.wrap_key_data(np.asarray(random.key_data(keys)))
    assert again.dtype == keys.dtype
    same(again == keys, [True, True])


def test_raw_keys_of_two_words_are_taken():
    """Point 37: PRNGKey gives uint32[2], and every function takes such keys."""
    raw = random.PRNGKey(7)
    assert (raw.dtype, raw.shape) == (np.uint32, (2,))
    same(random.normal(raw, (3,)), random.normal(random.key(7), (3,)))
    children = random.split(raw)
    assert (children.dtype, children.shape) == (np.uint32, (2, 2))
    same(children, random.key_data(random.split(random.key(7))))


def test_keys_have_no_derivative():
    """Point 37: asking for a derivative by a key is a TypeError; by other arguments it works."""
    draw = lambda scale, key: scale * random.normal(key)  # noqa: E731
    with pytest.raises(TypeError):
        fx.grad(draw, argnums=1)(2.0, random.key(0))
    same(fx.grad(draw)(2.0, random.key(0)), random.normal(random.key(0)))


def test_keys_are_not_numbers():
    """Point 37: no arithmetic, reduction, test or conversion takes keys, whatever their shape."""
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


def test_misused_keys_are_errors():
    """Point 37: what is no key, and a batch of keys where one is meant, are refused."""
    with pytest.raises(TypeError):
        random.normal(fnp.ones(3))
    with pytest.raises((TypeError, ValueError), match="vmap|single|one key|batch"):
        random.normal(random.split(random.key(0)))
    with pytest.raises(TypeError):
        random.normal(0)
