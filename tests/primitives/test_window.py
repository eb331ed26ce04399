"""Reductions over windows: geometry, values and derivatives against JAX."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fxarray
import fxarray.numpy as fnp
from fxarray import lax
from fxarray.core import dtypes
from fxarray.core.dims import ShapeVar
from fxarray.core.errors import ArgumentError, DTypeError, ShapeError
from fxarray.core.types import ArrayType
from fxarray.interpreters.linearize import linearize_program
from fxarray.interpreters.staging import stage_closed
from fxarray.interpreters.transpose import transpose_program
from fxarray.primitives.window import ReduceWindowMax, ReduceWindowSum
from fxarray.primitives.window_places import Window

REDUCERS = {"add": 0.0, "max": -np.inf, "min": np.inf}


def draw(shape: tuple[int, ...], dtype: str = "float64", seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return (
        rng.permutation(np.linspace(-4, 4, int(np.prod(shape))))
        .reshape(shape)
        .astype(dtypes.canonical(dtype))
    )


@st.composite
def windows(draw: Any) -> dict[str, Any]:
    """Any windows over an array of two dimensions."""
    small, pad = st.integers(1, 3), st.integers(-1, 3)

    def pair(strategy: Any) -> Any:
        return (draw(strategy), draw(strategy))

    return {
        "window_dimensions": pair(small),
        "window_strides": pair(small),
        "padding": (pair(pad), pair(pad)),
        "base_dilation": pair(st.integers(1, 2)),
        "window_dilation": pair(st.integers(1, 2)),
    }


def elements(shape: tuple[int, ...], window: dict[str, Any]) -> Any:
    """For each window, its index and the list of its elements' indices (None: padding)."""
    size, stride, padding, base, dilation = window.values()

    def positions(d: int) -> list[list[int | None]]:
        spread = max((shape[d] - 1) * base[d] + 1, 0)
        low, high = padding[d]
        found: list[list[int | None]] = []
        start = -low
        while start + (size[d] - 1) * dilation[d] < spread + high:
            places = [start + k * dilation[d] for k in range(size[d])]
            inside = [p if 0 <= p < spread and p % base[d] == 0 else None for p in places]
            found.append([None if p is None else p // base[d] for p in inside])
            start += stride[d]
        return found

    rows, columns = positions(0), positions(1)
    for i, row in enumerate(rows):
        for j, column in enumerate(columns):
            yield (
                (i, j),
                [None if a is None or b is None else (a, b) for a in row for b in column],
            )
    yield (len(rows), len(columns)), None


def by_definition(name: str, x: np.ndarray, window: dict[str, Any], init: float) -> Any:
    """The reduction over windows, and its Jacobian, element by element."""
    *found, (shape, _) = elements(x.shape, window)
    value = np.empty(shape)
    jacobian = np.zeros((*shape, *x.shape))
    for place, members in found:
        inside = [m for m in members if m is not None]
        numbers = [init, *[init if m is None else x[m] for m in members]]
        if name == "add":
            value[place] = sum(numbers)
            for member in inside:
                jacobian[(*place, *member)] += 1
        else:
            value[place] = max(numbers) if name == "max" else min(numbers)
            first = next((m for m in inside if x[m] == value[place]), None)
            if first is not None:
                jacobian[(*place, *first)] = 1
    return value, jacobian


def run(np_: Any, lax_: Any, name: str, x: Any, window: dict[str, Any], init: Any = None) -> Any:
    init = np_.asarray(REDUCERS[name] if init is None else init, x.dtype)
    return lax_.reduce_window(x, init, getattr(lax_, name), **window)


@pytest.mark.parametrize("name", REDUCERS)
@given(window=windows())
def test_any_window_gives_its_definition_and_derivative(name, window):
    x = draw((4, 6))
    value, jacobian = by_definition(name, x, window, REDUCERS[name])
    actual = np.asarray(run(fnp, lax, name, fnp.asarray(x), window))
    np.testing.assert_allclose(actual, value, rtol=1e-12, atol=1e-12)
    slopes = np.asarray(fxarray.jacrev(lambda x: run(fnp, lax, name, x, window))(x))
    np.testing.assert_array_equal(slopes, jacobian)


@pytest.mark.parametrize("name", REDUCERS)
@given(window=windows())
def test_initial_values_fill_the_padding_and_start_each_window(name, window):
    x = draw((4, 6))
    value, _ = by_definition(name, x, window, 0.5)
    actual = np.asarray(run(fnp, lax, name, fnp.asarray(x), window, 0.5))
    np.testing.assert_allclose(actual, value, rtol=1e-12, atol=1e-12)


WINDOWS: list[dict[str, Any]] = [
    {"window_dimensions": (2, 3)},
    {"window_dimensions": (2, 3), "window_strides": (2, 1), "padding": "SAME"},
    {"window_dimensions": (1, 4), "window_strides": (1, 3), "padding": "SAME_LOWER"},
    {"window_dimensions": (3, 2), "padding": ((1, 2), (0, 1)), "window_dilation": (1, 2)},
    {
        "window_dimensions": (2, 2),
        "window_strides": (1, 2),
        "padding": "SAME",
        "base_dilation": (2, 3),
    },
]


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("name", REDUCERS)
def test_windows_and_their_derivatives_equal_those_of_jax(name, window):
    x = draw((4, 6))

    def loss(np_: Any, lax_: Any, x: Any) -> Any:
        y = run(np_, lax_, name, x, window)
        return (np_.where(np_.isfinite(y), y, 0.0) * np_.arange(1.0, y.shape[1] + 1)).sum()

    with jax.enable_x64(True):
        wanted = run(jnp, jax.lax, name, jnp.asarray(x), window)
    np.testing.assert_allclose(
        np.asarray(run(fnp, lax, name, fnp.asarray(x), window)), np.asarray(wanted), rtol=1e-12
    )
    if name != "add" and "window_dilation" in window:
        return  # JAX has no such derivative; the definition above has
    with jax.enable_x64(True):
        slope = jax.grad(lambda x: loss(jnp, jax.lax, x))(jnp.asarray(x))
    actual = fxarray.grad(lambda x: loss(fnp, lax, x))(x)
    np.testing.assert_allclose(np.asarray(actual), np.asarray(slope), rtol=1e-12)


def test_the_first_extremal_element_gets_the_derivative():
    x = fnp.ones((2, 6))
    grad = fxarray.grad(
        lambda x: lax.reduce_window(x, -np.inf, lax.max, (1, 3), (1, 3), "VALID").sum()
    )(x)
    np.testing.assert_array_equal(np.asarray(grad), [[1, 0, 0, 1, 0, 0]] * 2)


def test_a_real_infinity_is_preferred_to_padding():
    x = fnp.array([-np.inf, -np.inf])
    grad = fxarray.grad(
        lambda x: lax.reduce_window(x, -np.inf, lax.max, (2,), (2,), ((1, 1),)).sum()
    )(x)
    np.testing.assert_array_equal(np.asarray(grad), [1, 1])


def test_nan_is_the_extremum_of_its_window_and_gets_the_derivative():
    x = fnp.array([1.0, np.nan, 3.0, 4.0])
    out, back = fxarray.vjp(lambda x: lax.reduce_window(x, -np.inf, lax.max, (2,), (2,)), x)
    np.testing.assert_array_equal(np.asarray(out), [np.nan, 4.0])
    np.testing.assert_array_equal(np.asarray(back(fnp.ones(2))[0]), [0, 1, 0, 1])


def test_pooling_in_a_batch_of_images_and_second_derivatives():
    x = draw((2, 5, 6, 3))

    def pooled(np_: Any, lax_: Any, x: Any) -> Any:
        sums = lax_.reduce_window(x, 0.0, lax_.add, (1, 2, 3, 1), (1, 2, 1, 1), "SAME")
        tops = lax_.reduce_window(x, -np_.inf, lax_.max, (1, 3, 2, 1), (1, 2, 1, 1), "SAME_LOWER")
        return (sums * sums * tops).sum()

    with jax.enable_x64(True):
        wanted = jax.grad(lambda x: pooled(jnp, jax.lax, x))(x)
        _, second = jax.jvp(jax.grad(lambda x: pooled(jnp, jax.lax, x)), (x,), (x,))
    ours = fxarray.grad(lambda x: pooled(fnp, lax, x))
    np.testing.assert_allclose(np.asarray(ours(x)), np.asarray(wanted), rtol=1e-10, atol=1e-10)
    _, actual = fxarray.jvp(ours, (x,), (x,))
    np.testing.assert_allclose(np.asarray(actual), np.asarray(second), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_vmap_of_pooling_and_of_its_gradient_equals_a_loop(axis):
    x = draw((3, 4, 5))

    def slope(x: Any) -> Any:
        return fxarray.grad(
            lambda x: (lax.reduce_window(x, -np.inf, lax.max, (2, 2), (1, 2), "SAME") ** 2).sum()
        )(x)

    lanes = np.asarray(fxarray.vmap(slope, axis, axis)(x))
    for i in range(x.shape[axis]):
        lane = np.asarray(slope(np.take(x, i, axis)))
        np.testing.assert_array_equal(np.take(lanes, i, axis), lane)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int8", "uint8", "int32", "bool"])
def test_windows_of_narrow_dtypes(dtype):
    x = draw((3, 8), dtype)
    if dtype != "bool":
        actual = np.asarray(lax.reduce_window(x, np.zeros((), x.dtype), lax.add, (2, 3)))
        wide = x.astype("float64") if dtypes.is_float(x.dtype) else x.astype("int64")
        exact = np.lib.stride_tricks.sliding_window_view(wide, (2, 3)).sum((2, 3))
        np.testing.assert_array_equal(actual, exact.astype(x.dtype))
    least = -np.inf if dtypes.is_float(x.dtype) else np.zeros((), x.dtype)
    if dtype in ("int8", "int32"):
        least = np.iinfo(x.dtype).min
    top = np.asarray(lax.reduce_window(x, np.asarray(least, x.dtype), lax.max, (2, 3)))
    view = np.lib.stride_tricks.sliding_window_view(x.astype("float64"), (2, 3))
    np.testing.assert_array_equal(top.astype("float64"), view.max((2, 3)))


# --- other functions ------------------------------------------------------------------------------


def test_products_over_windows_and_their_derivatives():
    x = draw((3, 7))
    x[1, 2] = 0.0
    weights = draw((3, 4), seed=2)

    def ours(x: Any) -> Any:
        return (lax.reduce_window(x, 1.0, lax.mul, (1, 3), (1, 2), "SAME") * weights).sum()

    def exact(x: np.ndarray) -> float:
        padded = np.pad(x, ((0, 0), (1, 1)), constant_values=1.0)
        view = np.lib.stride_tricks.sliding_window_view(padded, 3, 1)[:, ::2]
        return float((view.prod(2) * weights).sum())

    np.testing.assert_allclose(float(ours(x)), exact(x), rtol=1e-12)
    grad = np.asarray(fxarray.grad(ours)(x))
    for i, j in np.ndindex(*x.shape):
        step = np.zeros_like(x)
        step[i, j] = 1e-3
        slope = (exact(x + step) - exact(x - step)) / 2e-3
        np.testing.assert_allclose(grad[i, j], slope, rtol=1e-6, atol=1e-8)


def test_windows_of_two_arrays_reduced_together():
    x = draw((8,), "float32")
    places = np.arange(8, dtype=np.int32)

    def smaller(a: Any, b: Any) -> Any:
        first = a[0] <= b[0]
        return fnp.where(first, a[0], b[0]), fnp.where(first, a[1], b[1])

    values, where = lax.reduce_window(
        (x, places), (np.float32(np.inf), np.int32(-1)), smaller, (3,), (2,), "SAME"
    )
    np.testing.assert_array_equal(np.asarray(values), x[np.asarray(where)])
    np.testing.assert_array_equal(
        np.asarray(values), [x[0:3].min(), x[2:5].min(), x[4:7].min(), x[6:].min()]
    )


def test_known_functions_are_recognised_however_they_are_written():
    def operations(function: Any, init: Any) -> list[str]:
        program = fxarray.make_program(lambda x: lax.reduce_window(x, init, function, (2,)))(
            fnp.ones(5)
        )
        return [equation.op.name for equation in program.equations]

    assert operations(lambda a, b: a + b, 0.0) == ["reduce_window_sum"]
    assert operations(fnp.maximum, -np.inf) == ["reduce_window_max"]
    assert operations(lambda a, b: fnp.minimum(b, a), np.inf) == ["reduce_window_min"]
    assert operations(lambda a, b: a + b, 1.0) == ["reduce_window"]


# --- padding and types ----------------------------------------------------------------------------


@given(
    st.lists(st.tuples(st.integers(1, 9), st.integers(1, 4), st.integers(1, 4)), max_size=3),
    st.sampled_from(["SAME", "VALID", "SAME_LOWER", "same"]),
)
def test_named_padding_is_that_of_jax(dimensions, padding):
    shape, window, strides = zip(*dimensions, strict=True) if dimensions else ((), (), ())
    actual = lax.padtype_to_pads(shape, window, strides, padding)
    wanted = jax.lax.padtype_to_pads(shape, window, strides, padding)
    assert [tuple(map(int, pair)) for pair in wanted] == actual


def test_windows_take_symbolic_sizes():
    batch = ShapeVar("batch", min=8)
    x = ArrayType((batch, 9, 3), dtypes.float32)
    window = Window((1, 2, 1), (1, 2, 1), ((0, 0), (0, 1), (0, 0)), (1,) * 3, (1,) * 3)
    assert ReduceWindowSum(window).infer(x)[0].shape == (batch, 5, 3)
    along = Window((3, 1, 1), (1, 1, 1), ((0, 0),) * 3, (1,) * 3, (1,) * 3)
    assert str(ReduceWindowMax(along).infer(x)[0].shape[0]) == "batch - 2"
    record = ReduceWindowMax(window).shard(x)
    assert record.whole == {"b", "new_b"}
    assert record.results == (("a", "new_b", "c"),)


@pytest.mark.parametrize("along", [False, True])
@pytest.mark.parametrize("op", [ReduceWindowSum, ReduceWindowMax])
def test_derivatives_take_symbolic_sizes(op, along):
    """Also where the window moves along the symbolic dimension."""
    x = ArrayType((ShapeVar("rows", min=8), 9), dtypes.float32)
    sizes = (3, 2) if along else (1, 2)
    window = Window(sizes, (1, 2), ((1 if along else 0, 0), (0, 1)), (1, 1), (1, 1))
    program = stage_closed(lambda x: op(window).bind(x), [x])
    linearized = linearize_program(program, (True,))
    linear = (False,) * (len(linearized.linear.inputs) - 1) + (True,)
    back, _ = transpose_program(linearized.linear, linear, (True,))
    assert back.output_types == (x,)
    assert hash(op(window)) == hash(op(Window(*window)))


def test_refusals_say_what_is_wrong():
    x = fnp.ones((3, 4))
    with pytest.raises(ShapeError, match="window_dimensions"):
        lax.reduce_window(x, 0.0, lax.add, (2,))
    with pytest.raises(ShapeError, match="strides"):
        lax.reduce_window(x, 0.0, lax.add, (2, 2), (0, 1))
    with pytest.raises(ShapeError, match="padding"):
        lax.reduce_window(x, 0.0, lax.add, (2, 2), (1, 1), ((0, 0),))
    with pytest.raises(ArgumentError, match="SAME_LOWER"):
        lax.reduce_window(x, 0.0, lax.add, (2, 2), (1, 1), "FULL")
    with pytest.raises(DTypeError, match="initial value"):
        lax.reduce_window(x, fnp.zeros((), "int8"), lax.add, (2, 2))
