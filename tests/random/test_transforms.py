"""Draws under vmap, jit, grad and control flow are the draws made eagerly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from fxarray import grad, jit, lax, make_program, random, vmap
from fxarray import numpy as fnp

LOGITS = np.log(np.array([[0.1, 0.2, 0.7], [0.5, 0.25, 0.25]], np.float32))

DRAWS: dict[str, Callable[[Any], Any]] = {
    "bits": lambda key: random.bits(key, (3, 2), "uint8"),
    "bits 64": lambda key: random.bits(key, (), "uint64"),
    "split": lambda key: random.key_data(random.split(key, (2, 2))),
    "fold_in": lambda key: random.key_data(random.fold_in(key, 5)),
    "uniform": lambda key: random.uniform(key, (4,), minval=-1.3, maxval=1.7),
    "normal": lambda key: random.normal(key, (2, 3)),
    "complex normal": lambda key: random.normal(key, (3,), "complex64"),
    "randint": lambda key: random.randint(key, (5,), 0, 10),
    "randint by arrays": lambda key: random.randint(key, (3,), fnp.arange(3), 7, "int8"),
    "bernoulli": lambda key: random.bernoulli(key, 0.3, (7,)),
    "categorical": lambda key: random.categorical(key, LOGITS),
    "permutation": lambda key: random.permutation(key, 11),
    "permutation of rows": lambda key: random.permutation(key, fnp.arange(6).reshape(3, 2)),
    "independent permutation": lambda key: random.permutation(
        key, fnp.arange(6).reshape(3, 2), independent=True
    ),
    "choice": lambda key: random.choice(key, fnp.arange(9), (2, 2), replace=False),
    "truncated_normal": lambda key: random.truncated_normal(key, -1.0, 2.0, (4,)),
    "gumbel": lambda key: random.gumbel(key, (3,), mode="highest"),
    "exponential": lambda key: random.exponential(key, (3,)),
    "laplace": lambda key: random.laplace(key, (3,)),
    "logistic": lambda key: random.logistic(key, (3,)),
    "cauchy": lambda key: random.cauchy(key, (3,)),
    "rademacher": lambda key: random.rademacher(key, (3,)),
    "gamma": lambda key: random.gamma(key, 0.7, (3,)),
    "loggamma": lambda key: random.loggamma(key, 0.05, (2,)),
    "beta": lambda key: random.beta(key, 0.5, fnp.array([1.0, 2.0])),
    "t": lambda key: random.t(key, 3.0, (3,)),
    "dirichlet": lambda key: random.dirichlet(key, fnp.array([1.0, 2.0, 3.0])),
}


def same(actual: Any, expected: Any) -> None:
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.dtype == expected.dtype
    assert np.array_equal(actual, expected)


def same_within_rounding(actual: Any, expected: Any) -> None:
    """Bits and integers to the last bit; compiled logarithms and roots round on their own."""
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.dtype == expected.dtype
    if actual.dtype.kind not in "fc":
        assert np.array_equal(actual, expected)
    else:
        largest = 1 + np.abs(expected)
        assert np.all(np.abs(actual - expected) <= 64 * np.finfo(actual.dtype).eps * largest)


@pytest.fixture(params=DRAWS.values(), ids=DRAWS.keys())
def draw(request: pytest.FixtureRequest) -> Callable[[Any], Any]:
    return request.param


def test_vmap_over_keys_equals_a_python_loop(draw: Callable[[Any], Any]) -> None:
    keys = random.split(random.key(8), 3)
    same(vmap(draw)(keys), np.stack([draw(key) for key in keys]))


def test_vmap_twice_over_keys_equals_two_loops(draw: Callable[[Any], Any]) -> None:
    keys = random.split(random.key(8), (2, 3))
    looped = np.stack([np.stack([draw(keys[i, j]) for i in range(2)]) for j in range(3)])
    same(vmap(vmap(draw), in_axes=1)(keys), looped)


def test_a_key_that_is_not_mapped_draws_the_same_in_each_lane(draw: Callable[[Any], Any]) -> None:
    key = random.key(5)
    lanes, _ = vmap(lambda x: (draw(key), x))(fnp.arange(3))
    same(lanes, np.stack([draw(key)] * 3))


def test_jit_equals_eager(draw: Callable[[Any], Any]) -> None:
    key = random.key(6)
    same_within_rounding(jit(draw)(key), draw(key))


def test_jit_of_vmap_over_raw_keys_equals_a_loop(draw: Callable[[Any], Any]) -> None:
    keys = random.split(random.PRNGKey(6), 3)
    same_within_rounding(jit(vmap(draw))(keys), np.stack([draw(key) for key in keys]))


def test_a_draw_begins_with_the_shorter_draw() -> None:
    key = random.key(3)
    for name in (random.normal, random.bits, random.uniform):
        same(name(key, (4,))[:2], name(key, (2,)))


def test_mapped_bounds_draw_like_a_loop() -> None:
    keys, high = random.split(random.key(1), 3), fnp.array([1.0, 2.0, 5.0])
    drawn = vmap(lambda key, top: random.uniform(key, (4,), maxval=top))(keys, high)
    same(
        drawn,
        np.stack([random.uniform(k, (4,), maxval=h) for k, h in zip(keys, high, strict=True)]),
    )
    tops = fnp.array([1, 20, 500])
    drawn = vmap(lambda key, top: random.randint(key, (4,), 0, top))(keys, tops)
    same(
        drawn,
        np.stack([random.randint(k, (4,), 0, int(t)) for k, t in zip(keys, tops, strict=True)]),
    )


def test_keys_are_carried_through_scan() -> None:
    def step(key: Any, _: Any) -> tuple[Any, Any]:
        key, own = random.split(key)
        return key, random.normal(own, (2,))

    last, drawn = lax.scan(step, random.key(0), None, length=4)
    key, expected = random.key(0), []
    for _ in range(4):
        key, value = step(key, None)
        expected.append(value)
    same(drawn, np.stack(expected))
    same(random.key_data(last), random.key_data(key))


def test_keys_are_scanned_over_and_chosen_by_cond() -> None:
    keys = random.split(random.key(2), 3)
    _, drawn = lax.scan(lambda c, key: (c, random.bits(key)), 0, keys)
    same(drawn, np.stack([random.bits(key) for key in keys]))
    chosen = lax.cond(True, lambda k: k[0], lambda k: k[1], keys)
    same(random.key_data(chosen), random.key_data(keys[0]))


def test_derivatives_pass_to_the_parameters_and_not_to_the_key() -> None:
    key = random.key(4)
    unit = np.asarray(random.uniform(key, (5,)))
    slope = grad(lambda high: random.uniform(key, (5,), minval=1.0, maxval=high).sum())(3.0)
    np.testing.assert_allclose(slope, unit.sum(), rtol=1e-5)
    slope = grad(lambda scale: (scale * random.normal(key, (5,))).sum())(2.0)
    np.testing.assert_allclose(slope, np.asarray(random.normal(key, (5,))).sum(), rtol=1e-5)


def test_derivatives_of_truncated_normal_agree_with_differences() -> None:
    key = random.key(7)

    def total(upper: Any) -> Any:
        return random.truncated_normal(key, -0.5, upper, (6,), "float64").sum()

    upper = np.array(0.8)
    step = 1e-6
    difference = (total(upper + step) - total(upper - step)) / (2 * step)
    np.testing.assert_allclose(grad(total)(upper), difference, rtol=1e-6)


def test_a_draw_is_few_equations() -> None:
    drawing = make_program(lambda key: random.normal(key, (1000,)))(random.key(0))
    assert len(drawing.equations) <= 10
