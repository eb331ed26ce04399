"""Draws follow their distributions, and arguments are checked. Keys are fixed: no flakes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from fxarray import numpy as fnp
from fxarray import random
from fxarray.core.errors import ArgumentError, DTypeError, FxArrayError, ShapeError

COUNT = 20_000
KEY = random.key(2024)

CONTINUOUS: dict[str, tuple[Callable[..., Any], Any]] = {
    "uniform": (random.uniform, stats.uniform()),
    "normal": (random.normal, stats.norm()),
    "exponential": (random.exponential, stats.expon()),
    "gumbel": (random.gumbel, stats.gumbel_r()),
    "laplace": (random.laplace, stats.laplace()),
    "logistic": (random.logistic, stats.logistic()),
    "cauchy": (random.cauchy, stats.cauchy()),
}


@pytest.mark.parametrize("name", CONTINUOUS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_draws_follow_the_distribution(name: str, dtype: str) -> None:
    draw, distribution = CONTINUOUS[name]
    values = np.asarray(draw(KEY, (COUNT,), dtype))
    assert values.dtype == dtype
    assert stats.kstest(values, distribution.cdf).pvalue > 0.001


@pytest.mark.parametrize("mode", ["high", "highest"])
def test_gumbel_of_higher_resolution_follows_the_distribution(mode: str) -> None:
    values = np.asarray(random.gumbel(KEY, (COUNT,), mode=mode))
    assert stats.kstest(values, stats.gumbel_r().cdf).pvalue > 0.001


@pytest.mark.parametrize(("lower", "upper"), [(-1.0, 2.0), (0.5, 0.6), (-np.inf, 0.0), (2.0, 4.0)])
def test_truncated_normal_follows_the_distribution(lower: float, upper: float) -> None:
    values = np.asarray(random.truncated_normal(KEY, lower, upper, (COUNT,)))
    assert (values > lower).all()
    assert (values < upper).all()
    assert stats.kstest(values, stats.truncnorm(lower, upper).cdf).pvalue > 0.001


def test_complex_normal_has_variance_one_and_independent_parts() -> None:
    values = np.asarray(random.normal(KEY, (COUNT,), "complex64"))
    assert abs(np.mean(np.abs(values) ** 2) - 1) < 0.03
    for part in (values.real, values.imag):
        assert stats.kstest(part * 2**0.5, stats.norm().cdf).pvalue > 0.001
    assert abs(np.corrcoef(values.real, values.imag)[0, 1]) < 0.03


def test_keys_of_a_split_draw_uncorrelated_numbers() -> None:
    first, second = random.split(KEY)
    draws = [np.asarray(random.normal(key, (COUNT,))) for key in (KEY, first, second)]
    correlations = np.corrcoef(draws) - np.eye(3)
    assert np.abs(correlations).max() < 0.03


def chi_square(counts: np.ndarray, probabilities: np.ndarray) -> float:
    shares = probabilities / probabilities.sum()
    return stats.chisquare(counts, shares * counts.sum()).pvalue


def test_randint_draws_each_integer_equally_often() -> None:
    values = np.asarray(random.randint(KEY, (COUNT,), -3, 4))
    counts = np.bincount(values + 3, minlength=7)
    assert len(counts) == 7
    assert chi_square(counts, np.full(7, 1 / 7)) > 0.001


@pytest.mark.parametrize("mode", ["low", "high"])
def test_bernoulli_is_true_with_its_probability(mode: str) -> None:
    chances = np.array([0.0, 0.25, 1.0], np.float32)
    share = np.asarray(random.bernoulli(KEY, chances, (COUNT, 3), mode)).mean(axis=0)
    assert share[0] == 0
    assert share[2] == 1
    assert abs(share[1] - 0.25) < 0.02


@pytest.mark.parametrize("mode", ["low", "high"])
def test_categorical_draws_by_the_softmax(mode: str) -> None:
    chances = np.array([0.5, 0.0, 0.2, 0.3])
    with np.errstate(divide="ignore"):
        logits = np.log(chances).astype(np.float32) + 3
    values = np.asarray(random.categorical(KEY, logits, shape=(COUNT,), mode=mode))
    counts = np.bincount(values, minlength=4)
    assert counts[1] == 0
    assert chi_square(counts[[0, 2, 3]], chances[[0, 2, 3]]) > 0.001


def test_categorical_without_replacement_draws_different_categories() -> None:
    drawn = np.asarray(random.categorical(KEY, fnp.zeros((2, 5)), shape=(5, 2), replace=False))
    assert (np.sort(drawn, axis=0) == np.arange(5)[:, None]).all()


def test_choice_draws_by_its_probabilities() -> None:
    chances = np.array([0.1, 0.6, 0.3], np.float32)
    drawn = np.asarray(random.choice(KEY, 3, (COUNT,), p=chances))
    assert chi_square(np.bincount(drawn, minlength=3), chances.astype(np.float64)) > 0.001


def test_choice_without_replacement_draws_different_elements() -> None:
    for p in (None, np.full(10, 0.1, np.float32)):
        drawn = np.asarray(random.choice(KEY, 10, (10,), replace=False, p=p))
        assert sorted(drawn.tolist()) == list(range(10))


def test_rademacher_draws_both_signs() -> None:
    values = np.asarray(random.rademacher(KEY, (COUNT,)))
    assert set(values.tolist()) == {-1, 1}
    assert abs(values.mean()) < 0.03


def test_every_order_is_equally_likely() -> None:
    orders = np.stack([random.permutation(key, 3) for key in random.split(KEY, 1200)])
    _, counts = np.unique(orders @ [9, 3, 1], return_counts=True)
    assert len(counts) == 6
    assert chi_square(counts, np.full(6, 1 / 6)) > 0.001


# --- properties -----------------------------------------------------------------------------------

sizes = st.lists(st.integers(0, 5), max_size=3).map(tuple)
seeds = st.integers(-(2**31), 2**32 - 1)


@given(seeds, st.integers(0, 300))
def test_a_permutation_has_every_element_once(seed: int, size: int) -> None:
    order = np.asarray(random.permutation(random.key(seed), size))
    assert order.dtype == np.int32
    assert sorted(order.tolist()) == list(range(size))


@given(seeds, sizes, st.integers(-200, 200), st.integers(-200, 200))
def test_randint_stays_in_its_range(seed: int, shape: tuple[int, ...], low: int, high: int) -> None:
    values = np.asarray(random.randint(random.key(seed), shape, low, high))
    assert values.shape == shape
    assert (values >= low).all()
    assert (values < max(high, low + 1)).all()


@given(seeds, st.sampled_from(["int8", "uint8", "int16", "int32", "uint32", "int64", "uint64"]))
def test_randint_by_arrays_equals_randint_by_numbers(seed: int, dtype: str) -> None:
    key = random.key(seed)
    for low, high in ((0, 10), (7, 3), (-5, 100), (0, 2**31 - 1), (-(2**31), 2**31 - 1)):
        by_numbers = random.randint(key, (4,), low, high, dtype)
        by_arrays = random.randint(key, (4,), np.array(low), np.array([high]), dtype)
        assert np.array_equal(by_numbers, by_arrays)


@given(seeds, sizes, st.floats(-1e3, 1e3, width=32), st.floats(0, 1e3, width=32))
def test_uniform_stays_in_its_range(
    seed: int, shape: tuple[int, ...], low: float, width: float
) -> None:
    high = float(np.float32(low + width))
    values = np.asarray(random.uniform(random.key(seed), shape, minval=low, maxval=high))
    assert values.shape == shape
    assert (values >= low).all()
    assert (values <= high).all()


def test_sub_byte_integers_are_drawn() -> None:
    values = random.randint(KEY, (100,), -8, 8, "int4")
    assert str(values.dtype) == "int4"
    assert set(np.asarray(values).astype(int).tolist()) == set(range(-8, 8))


# --- arguments ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: random.bits(KEY, (2,), "int32"), DTypeError),
        (lambda: random.uniform(KEY, (2,), "int32"), DTypeError),
        (lambda: random.normal(KEY, (2,), "int32"), DTypeError),
        (lambda: random.randint(KEY, (2,), 0, 5, "float32"), DTypeError),
        (lambda: random.uniform(KEY, (-2,)), ShapeError),
        (lambda: random.uniform(KEY, (2,), minval=np.zeros(3)), ShapeError),
        (lambda: random.uniform(KEY, (), minval=np.zeros(3)), ShapeError),
        (lambda: random.randint(KEY, (2,), 0, np.arange(3)), ShapeError),
        (lambda: random.bernoulli(KEY, 1, (2,)), DTypeError),
        (lambda: random.bernoulli(KEY, 0.5, (2,), mode="middle"), ArgumentError),
        (lambda: random.gumbel(KEY, (2,), mode="middle"), ArgumentError),
        (lambda: random.categorical(KEY, np.zeros((3, 4), np.float32), shape=(2,)), ShapeError),
        (lambda: random.categorical(KEY, np.arange(3)), DTypeError),
        (
            lambda: random.categorical(KEY, np.zeros(3, np.float32), shape=(4,), replace=False),
            ShapeError,
        ),
        (lambda: random.permutation(KEY, 1.5), DTypeError),
        (lambda: random.permutation(KEY, np.arange(3), axis=1), FxArrayError),
        (lambda: random.choice(KEY, 3, (4,), replace=False), ArgumentError),
        (lambda: random.choice(KEY, 0, (4,)), ArgumentError),
        (lambda: random.choice(KEY, 3, (2,), p=np.ones(2, np.float32)), ShapeError),
        (lambda: random.choice(KEY, 3, 2), ArgumentError),
    ],
)
def test_bad_arguments_are_refused(call: Callable[[], Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        call()


def test_choice_of_nothing_from_nothing_is_empty() -> None:
    assert random.choice(KEY, 0, (0, 3)).shape == (0, 3)
