"""One trace and one compile for all sizes."""

from __future__ import annotations

import numpy as np
import pytest

import fxarray
import fxarray.numpy as fnp
from fxarray import lax, nn
from fxarray.core.dims import ShapeVar, assuming
from fxarray.errors import ArgumentError, InconclusiveDimension, ShapeError

batch = ShapeVar("batch", min=1, max=64)


def _floats(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def test_one_trace_serves_every_size_within_the_bounds() -> None:
    traces = []

    @fxarray.dynamic_spec({"x": (batch, None)})
    def f(x):
        traces.append(x.shape)
        return fnp.sum(nn.softmax(x), 0) / x.shape[0]

    for size in (1, 3, 64, 5, 3):
        x = _floats(size, 4)
        e = np.exp(x - x.max(-1, keepdims=True))
        np.testing.assert_allclose(f(x), (e / e.sum(-1, keepdims=True)).mean(0), rtol=1e-5)
    assert len(traces) == 1
    assert f.cache_info().misses == 1


def test_a_static_dimension_that_changes_is_traced_again() -> None:
    @fxarray.dynamic_spec({"x": (batch, None)})
    def f(x):
        return x * 2

    f(_floats(2, 3)), f(_floats(5, 3)), f(_floats(5, 4))
    assert f.cache_info().misses == 2


def test_results_have_numbers_for_sizes_and_derived_sizes_work() -> None:
    @fxarray.dynamic_spec({"x": batch, "y": (2 * batch,)})
    def f(x, y):
        return fnp.concatenate([y, y[:2]]), y.reshape(x.shape[0], 2).T, fnp.zeros(x.shape[0] * 3)

    for size in (1, 4):
        first, second, third = f(_floats(size), _floats(2 * size))
        assert first.shape == (2 * size + 2,)
        assert second.shape == (2, size)
        assert third.shape == (3 * size,)
        assert all(type(n) is int for n in first.shape + second.shape + third.shape)


@pytest.mark.parametrize(
    ("x", "y", "words"),
    [
        ((65, 4), (130,), r"batch = 65.*argument x of f.*up to 64"),
        ((3, 4), (7,), r"dimension 0 of argument y of f is 7, where 2\*batch = 6"),
        ((4,), (8,), r"has 1 dimensions, but 2 are specified"),
    ],
)
def test_sizes_that_break_the_specification_are_named(x, y, words) -> None:
    @fxarray.dynamic_spec({"x": (batch, None), "y": (2 * batch,)})
    def f(x, y):
        return x.sum() + y.sum()

    with pytest.raises(ShapeError, match=words):
        f(np.zeros(x), np.zeros(y))


def test_a_branch_on_a_variable_size_names_the_assumption_that_would_decide_it() -> None:
    @fxarray.dynamic_spec({"x": "rows, _"})
    def f(x):
        return x if x.shape[0] > 10 else x * 2

    with pytest.raises(InconclusiveDimension, match=r'assuming\("rows > 10"\)'):
        f(_floats(3, 4))


def test_assumptions_decide_while_tracing_and_are_checked_at_each_call() -> None:
    @fxarray.dynamic_spec({"x": "n"}, assumptions="n % 2 == 0")
    def f(x):
        return x.reshape(-1, 2).sum(1)

    np.testing.assert_allclose(f(np.arange(4.0)), [1.0, 5.0])
    np.testing.assert_allclose(f(np.arange(6.0)), [1.0, 5.0, 9.0])
    assert f.cache_info().misses == 1
    with pytest.raises(ShapeError, match=r"assumption mod\(n, 2\) == 0 does not hold: n = 5"):
        f(np.arange(5.0))


def test_assumptions_around_the_call_are_part_of_the_trace() -> None:
    f = fxarray.jit(lambda x: x.reshape(-1, 3), dynamic_shapes={"x": "n"})
    with assuming("n % 3 == 0"):
        assert f(np.arange(6.0)).shape == (2, 3)
    with pytest.raises(InconclusiveDimension):
        f(np.arange(9.0).astype(np.float32))


@pytest.mark.parametrize(
    "specification",
    [
        {"tree": {"a": (batch, None), "b": batch}},
        {"tree": {"a": {0: batch}, "b": "batch"}},
        {"tree": batch},
        {0: batch},
        {...: batch},
        {"tree": {...: batch}},
    ],
)
def test_specifications_are_prefixes_of_the_arguments(specification) -> None:
    f = fxarray.jit(lambda tree: tree["a"].sum(1) + tree["b"], dynamic_shapes=specification)
    for size in (2, 5):
        a, b = _floats(size, 3), _floats(size)
        np.testing.assert_allclose(f({"a": a, "b": b}), a.sum(1) + b, rtol=1e-6)
    assert f.cache_info().misses == 1


def test_an_argument_that_does_not_exist_is_named() -> None:
    f = fxarray.jit(lambda x: x, dynamic_shapes={"y": batch})
    with pytest.raises(ArgumentError, match="no array argument 'y'; this call has: 0"):
        f(_floats(2))


@pytest.mark.parametrize("specification", [{}, None, batch])
def test_a_specification_that_says_nothing_is_refused(specification) -> None:
    with pytest.raises(ArgumentError, match="mapping from names of arguments"):
        fxarray.dynamic_spec(specification)(lambda x: x)


def test_transforms_inside_work_at_every_size() -> None:
    @fxarray.dynamic_spec({"x": batch})
    @fxarray.jit
    def f(x):
        slope = fxarray.grad(lambda x: (fnp.sin(x) ** 2).mean())(x)
        rows = fxarray.vmap(lambda row: row.sum())(x)
        last, partial = lax.scan(lambda c, row: (c + row.sum(), c), 0.0, x)
        return slope, rows, last, partial

    for size in (1, 7):
        x = _floats(size, 3)
        slope, rows, last, partial = f(x)
        np.testing.assert_allclose(slope, np.sin(2 * x) / x.size, rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(rows, x.sum(1), rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(last, x.sum(), rtol=1e-4, atol=1e-5)
        assert partial.shape == (size,)
    assert f.cache_info().misses == 1


def test_within_another_transform_sizes_are_those_of_the_arrays() -> None:
    f = fxarray.jit(lambda x: (x * x).sum() / x.shape[0], dynamic_shapes={"x": batch})
    np.testing.assert_allclose(fxarray.grad(f)(fnp.arange(4.0)), np.arange(4) / 2)
    np.testing.assert_allclose(fxarray.vmap(f)(fnp.ones((3, 2))), np.ones(3))


def test_compiled_ahead_of_time_it_takes_every_size() -> None:
    f = fxarray.jit(lambda x: x.sum(0))
    compiled = f.lower(fxarray.ShapeDtypeStruct((batch, 3), "float32")).compile()
    for size in (2, 9):
        x = _floats(size, 3)
        np.testing.assert_allclose(compiled(fnp.asarray(x)), x.sum(0), rtol=1e-5, atol=1e-6)
    with pytest.raises(ShapeError, match="up to 64"):
        compiled(fnp.zeros((65, 3)))


def test_sizes_are_numbers_in_arithmetic_with_arrays() -> None:
    @fxarray.dynamic_spec({"x": batch})
    def f(x):
        n = x.shape[0]
        return x / n, n * x, x + n, x - (2 * n + 1), fnp.where(x > n, x, n)

    x = _floats(3)
    wanted = (x / 3, 3 * x, x + 3, x - 7, np.where(x > 3, x, 3))
    for got, expected in zip(f(x), wanted, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-6)
        assert got.dtype == np.float32
