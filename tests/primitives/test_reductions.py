"""Reductions and positions of extrema: values and derivatives where definitions differ."""

from __future__ import annotations

import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fxarray
import fxarray.numpy as fnp
from fxarray import lax
from fxarray.core import dtypes
from fxarray.core.dims import ShapeVar
from fxarray.core.errors import (
    ArgumentError,
    AxisError,
    DTypeError,
    MissingRuleError,
    ShapeError,
    TreeStructureError,
)
from fxarray.core.primitive import REGISTRY
from fxarray.core.types import ArrayType
from fxarray.interpreters.jvp import jvp_program
from fxarray.interpreters.staging import stage_closed
from fxarray.primitives import reductions
from fxarray.primitives.combine import Reduce

FLOATS = ("float32", "float64", "float16", "bfloat16")
INTEGERS = ("int8", "uint8", "int32", "uint32", "int64", "uint64")


def both(name: str, x: np.ndarray, *args: Any) -> tuple[np.ndarray, np.ndarray]:
    with jax.enable_x64(True):
        wanted = np.asarray(getattr(jax.lax, name)(jnp.asarray(x), *args))
    return np.asarray(getattr(lax, name)(fnp.asarray(x), *args)), wanted


def draw(dtype: str, shape: tuple[int, ...] = (3, 4, 5), seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    values: Any = np.round(rng.uniform(-3, 3, size=shape) * 4) / 4
    if dtype.startswith("complex"):
        values = values + 1j * np.round(rng.uniform(-2, 2, size=shape))
    if dtype == "bool":
        return rng.uniform(size=shape) < 0.5
    if dtype.startswith("uint"):
        values = np.abs(values)
    return values.astype(dtypes.canonical(dtype))


@pytest.mark.parametrize("axes", [(), (0,), (1, 2), (0, 1, 2)])
@pytest.mark.parametrize(
    ("name", "accepted"),
    [
        ("reduce_sum", (*FLOATS, *INTEGERS, "complex64", "complex128")),
        ("reduce_prod", (*FLOATS, *INTEGERS, "complex64", "complex128")),
        ("reduce_max", (*FLOATS, *INTEGERS, "bool", "complex64")),
        ("reduce_min", (*FLOATS, *INTEGERS, "bool", "complex64")),
        ("reduce_and", (*INTEGERS, "bool")),
        ("reduce_or", (*INTEGERS, "bool")),
        ("reduce_xor", (*INTEGERS, "bool")),
    ],
)
def test_reductions_equal_those_of_jax(name, accepted, axes):
    for dtype in accepted:
        actual, wanted = both(name, draw(dtype), axes)
        assert actual.dtype == wanted.dtype
        # JAX multiplies narrow floats in their own precision.
        tolerance = 0.2 if dtypes.is_narrow_float(actual.dtype) and "prod" in name else 1e-5
        if dtypes.is_narrow_float(actual.dtype):
            actual, wanted = actual.astype("float32"), wanted.astype("float32")
            tolerance = max(tolerance, 1e-2)
        np.testing.assert_allclose(actual, wanted, rtol=tolerance, atol=tolerance, err_msg=dtype)


@pytest.mark.parametrize("name", ["reduce_max", "reduce_min"])
def test_extrema_of_nothing_are_the_identity_in_lax_and_an_error_in_numpy(name):
    for dtype in ("float32", "int32", "uint8", "bool"):
        actual, wanted = both(name, np.zeros((0, 2), dtype), (0,))
        np.testing.assert_array_equal(actual, wanted)
    with pytest.raises(ValueError, match="axis 1"):
        getattr(fnp, name.removeprefix("reduce_"))(fnp.ones((2, 0, 3)), axis=1)


def test_extremum_of_nothing_is_a_number_in_float_dtypes_without_infinity():
    e4m3 = dtypes.float8_e4m3fn
    assert float(reductions.least(e4m3)) == -448.0
    assert np.isinf(reductions.least(dtypes.bfloat16))
    op = REGISTRY["reduce_max"]((0,))  # type: ignore[call-arg]
    (value,) = op.reference(np.zeros((0,), e4m3))
    assert float(value) == -448.0


def test_nan_is_the_extremum_wherever_it_stands():
    x = np.array([[1, np.nan, 3], [np.nan, -np.inf, np.inf], [1, 2, 3]], "float32")
    for name in ("reduce_max", "reduce_min"):
        actual, wanted = both(name, x, (1,))
        np.testing.assert_array_equal(actual, wanted)
        assert np.isnan(actual[:2]).all()


def test_narrow_floats_are_accumulated_in_float32_and_integers_wrap():
    ones = fnp.ones(4096, "bfloat16")
    assert float(lax.reduce_sum(ones, (0,))) == 4096.0
    factors = fnp.full(1000, 1.001, "float16")
    exact = float(np.float16(1.001)) ** 1000
    np.testing.assert_allclose(float(lax.reduce_prod(factors, (0,))), exact, rtol=2e-3)
    assert int(lax.reduce_prod(fnp.array([100, 3], "int8"), (0,))) == 44
    assert int(lax.reduce_sum(fnp.array([100, 100], "int8"), (0,))) == -56


def test_no_warning_for_overflow_or_nan():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isinf(float(lax.reduce_prod(fnp.array([1e30, 1e30], "float32"), (0,))))
        assert np.isnan(float(lax.reduce_sum(fnp.array([np.inf, -np.inf]), (0,))))


# --- derivatives ----------------------------------------------------------------------------------


def test_ties_share_the_derivative_of_an_extremum_evenly():
    x = np.array([[1.0, 3.0, 3.0, 2.0], [5.0, 5.0, 5.0, 5.0]], "float32")
    for name in ("reduce_max", "reduce_min"):
        grad = fxarray.grad(lambda x, name=name: getattr(lax, name)(x, (1,)).sum())(x)
        wanted = jax.grad(lambda x, name=name: getattr(jax.lax, name)(x, (1,)).sum())(x)
        np.testing.assert_array_equal(np.asarray(grad), np.asarray(wanted))
    np.testing.assert_array_equal(np.asarray(grad)[1], [0.25] * 4)


def test_an_infinite_cotangent_elsewhere_does_not_disturb_an_extremum():
    tangent = fnp.array([np.inf, 1.0], "float32")
    _, slope = fxarray.jvp(lambda x: lax.reduce_max(x, (0,)), (fnp.array([1.0, 2.0]),), (tangent,))
    assert float(slope) == 1.0


@pytest.mark.parametrize("zeros", [(), (1,), (0, 3), (2, 1)])
def test_derivatives_of_products_are_exact_at_zeros(zeros):
    x = np.array([2.0, 3.0, 5.0, 7.0])
    x[list(zeros)] = 0.0
    grad = np.asarray(fxarray.grad(lambda x: lax.reduce_prod(x, (0,)))(x))
    others = [np.prod(np.delete(x, i)) for i in range(4)]
    np.testing.assert_array_equal(grad, others)
    hessian = np.asarray(fxarray.hessian(lambda x: lax.reduce_prod(x, (0,)))(x))
    for i in range(4):
        for j in range(4):
            pair = 0.0 if i == j else np.prod(np.delete(x, [i, j]))
            assert hessian[i, j] == pair


def test_derivative_of_a_product_over_several_axes():
    x = draw("float64", (2, 3, 4))
    x[0, 1, 2] = 0.0

    def ours(x: Any) -> Any:
        return (lax.reduce_prod(x, (0, 2)) * fnp.arange(1.0, 4.0)).sum()

    with jax.enable_x64(True):
        wanted = jax.grad(lambda x: (jax.lax.reduce_prod(x, (0, 2)) * jnp.arange(1.0, 4.0)).sum())(
            x
        )
    np.testing.assert_allclose(np.asarray(fxarray.grad(ours)(x)), np.asarray(wanted), rtol=1e-12)


def test_reductions_of_integers_have_no_tangent():
    out, tangent = fxarray.jvp(
        lambda x: lax.reduce_max(x, (0,)),
        (fnp.array([1, 2]),),
        (np.zeros(2, dtypes.float0),),
    )
    assert int(out) == 2
    assert tangent.dtype == dtypes.float0


# --- positions ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["argmax", "argmin"])
@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS, "bool"])
def test_positions_of_extrema_equal_those_of_jax(name, dtype):
    actual, wanted = both(name, draw(dtype, (4, 9)), 1, np.int32)
    np.testing.assert_array_equal(actual, wanted)
    assert actual.dtype == np.int32


@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_first_nan_and_first_of_equals_win(name):
    x = np.array(
        [[np.inf, np.nan, -np.inf, np.nan], [0.0, -0.0, 0.0, -0.0], [1, 1, 0, 0]], "float32"
    )
    for dtype in ("float32", "bfloat16", "float64"):
        actual, wanted = both(name, x.astype(dtypes.canonical(dtype)), 1, np.int32)
        np.testing.assert_array_equal(actual, wanted)
    assert list(actual[:2]) == [1, 0]


def test_positions_refuse_what_has_no_answer():
    with pytest.raises(ValueError, match=r"axis 0 .* has no elements"):
        lax.argmax(fnp.zeros((0, 2)), 0, "int32")
    with pytest.raises(DTypeError, match="int8 can count"):
        lax.argmax(fnp.zeros(200), 0, "int8")
    with pytest.raises(DTypeError, match="complex"):
        lax.argmin(fnp.zeros(2, "complex64"), 0, "int32")
    with pytest.raises(AxisError, match="argmax"):
        lax.argmax(fnp.zeros(2), 1, "int32")


# --- reduce ---------------------------------------------------------------------------------------

COMPUTATIONS = {
    "reduce_sum": (lambda np_, x, y: x + y, 0),
    "reduce_prod": (lambda np_, x, y: y * x, 1),
    "reduce_max": (lambda np_, x, y: np_.maximum(x, y), -np.inf),
    "reduce_min": (lambda np_, x, y: np_.minimum(x, y), np.inf),
}


@pytest.mark.parametrize("name", COMPUTATIONS)
def test_reduce_recognises_known_functions(name):
    function, identity = COMPUTATIONS[name]
    x = fnp.asarray(draw("float32", (3, 4)))
    program = fxarray.make_program(
        lambda x: lax.reduce(x, identity, lambda a, b: function(fnp, a, b), (1,))
    )(x)
    assert [equation.op.name for equation in program.equations] == [name]


@pytest.mark.parametrize("name", COMPUTATIONS)
def test_reduce_takes_in_an_initial_value_that_is_no_identity(name):
    function, _ = COMPUTATIONS[name]
    x = draw("float32", (3, 4))
    actual = lax.reduce(x, 2.0, lambda a, b: function(fnp, a, b), (1,))
    wanted = jax.lax.reduce(x, np.float32(2.0), lambda a, b: function(jnp, a, b), (1,))
    np.testing.assert_allclose(np.asarray(actual), np.asarray(wanted), rtol=1e-6)


@pytest.mark.parametrize("axes", [(0,), (1,), (0, 1), ()])
def test_reduce_by_any_associative_function(axes):
    x = draw("float32", (5, 7))

    def ours(x: Any) -> Any:
        return lax.reduce(x, -np.inf, fnp.logaddexp, axes)

    wanted = np.log(np.exp(x.astype("float64")).sum(axes))
    np.testing.assert_allclose(np.asarray(ours(x)), wanted, rtol=1e-5)
    np.testing.assert_allclose(np.asarray(fxarray.jit(ours)(x)), wanted, rtol=1e-5)
    grad = np.asarray(fxarray.grad(lambda x: ours(x).sum())(x))
    exact = np.exp(x) / np.exp(x).sum(axes, keepdims=True)
    np.testing.assert_allclose(grad, exact, rtol=1e-4)


def test_reduce_of_several_arrays_by_one_function():
    x = draw("float32", (3, 8))
    places = np.broadcast_to(np.arange(8, dtype=np.int32), x.shape)

    def smaller(np_: Any, a: Any, b: Any) -> Any:
        first = (a["value"] < b["value"]) | ((a["value"] == b["value"]) & (a["place"] < b["place"]))
        return {
            "value": np_.where(first, a["value"], b["value"]),
            "place": np_.where(first, a["place"], b["place"]),
        }

    operands = {"value": x, "place": places}
    inits = {"value": np.float32(np.inf), "place": np.int32(99)}
    actual = lax.reduce(operands, inits, lambda a, b: smaller(fnp, a, b), (1,))
    np.testing.assert_array_equal(np.asarray(actual["place"]), np.argmin(x, 1))
    np.testing.assert_array_equal(np.asarray(actual["value"]), np.min(x, 1))
    lanes = fxarray.vmap(
        lambda x, i: lax.reduce(
            {"value": x, "place": i}, inits, lambda a, b: smaller(fnp, a, b), (0,)
        )
    )(x, places)
    np.testing.assert_array_equal(np.asarray(lanes["place"]), np.argmin(x, 1))


def test_reduce_by_a_function_that_closes_over_a_mapped_or_differentiated_value():
    x = draw("float32", (3, 4))
    scale = fnp.array([1.0, 2.0, 4.0])

    def ours(x: Any, c: Any) -> Any:
        # x + y + c x y is associative, with identity 0.
        return lax.reduce(x, 0.0, lambda a, b: a + b + c * a * b, (0,))

    wanted = [
        (np.prod(1 + c * row.astype("float64")) - 1) / c
        for row, c in zip(x, [1, 2, 4], strict=True)
    ]
    actual = fxarray.vmap(ours)(x, scale)
    np.testing.assert_allclose(np.asarray(actual), wanted, rtol=1e-5, atol=1e-5)
    slope = fxarray.grad(lambda c: ours(x[0].astype("float64"), c))(np.float64(0.5))
    h = 1e-6
    high, low = ((np.prod(1 + c * x[0].astype("float64")) - 1) / c for c in (0.5 + h, 0.5 - h))
    np.testing.assert_allclose(float(slope), (high - low) / (2 * h), rtol=1e-4, atol=1e-6)


def test_reduce_by_a_function_with_operations_that_are_not_elementwise():
    x = draw("float32", (3, 6))
    pair = fxarray.jit(lambda a, b: fnp.stack([a, b]).sum() * 1.0)
    actual = lax.reduce(x, 0.0, pair, (1,))
    np.testing.assert_allclose(np.asarray(actual), x.sum(1), rtol=1e-5, atol=1e-5)


def test_reduce_says_what_is_wrong_with_its_function():
    x = fnp.ones((2, 3))
    with pytest.raises(DTypeError, match="returns bool"):
        lax.reduce(x, 0.0, lambda a, b: a < b, (0,))
    with pytest.raises(TreeStructureError, match="init_values"):
        lax.reduce((x, x), 0.0, lambda a, b: a, (0,))
    with pytest.raises(TreeStructureError, match="its result"):
        lax.reduce((x, x), (0.0, 0.0), lambda a, b: a[0], (0,))
    with pytest.raises(ShapeError, match="scalar"):
        lax.reduce(x, fnp.zeros(3), lax.add, (0,))
    with pytest.raises(DTypeError, match="initial value"):
        lax.reduce(x, fnp.zeros((), "int8"), lax.add, (0,))
    with pytest.raises(ArgumentError, match="no array"):
        lax.reduce((), (), lambda a, b: a, (0,))
    with pytest.raises(AxisError, match="reduce"):
        lax.reduce(x, 0.0, lax.add, (2,))


# --- symbolic sizes and sharding ------------------------------------------------------------------


def test_reductions_infer_symbolic_sizes():
    batch = ShapeVar("batch")
    x = ArrayType((batch, 3), dtypes.float32)
    for name in ("reduce_sum", "reduce_prod", "reduce_max", "reduce_min"):
        (over_batch,) = REGISTRY[name]((0,)).infer(x)  # type: ignore[call-arg]
        (over_rest,) = REGISTRY[name]((1,)).infer(x)  # type: ignore[call-arg]
        assert over_batch.shape == (3,)
        assert over_rest.shape[0] is batch
    (places,) = REGISTRY["argmax"](0, dtypes.int32).infer(x)  # type: ignore[call-arg]
    assert places == ArrayType((3,), dtypes.int32)


def test_factor_records_say_how_parts_are_combined():
    x = ArrayType((4, 6), dtypes.float32)
    bits = ArrayType((4, 6), dtypes.bool_)
    kinds = {
        "reduce_sum": "sum",
        "reduce_prod": "prod",
        "reduce_max": "max",
        "reduce_min": "min",
        "reduce_and": "and",
        "reduce_or": "or",
    }
    for name, kind in kinds.items():
        given = bits if kind in ("and", "or") else x
        record = REGISTRY[name]((1,)).shard(given)  # type: ignore[call-arg]
        assert dict(record.vanished) == {"b": kind}
        assert not record.whole
    assert REGISTRY["reduce_xor"]((1,)).shard(bits).whole == {"b"}  # type: ignore[call-arg]
    assert REGISTRY["argmax"](1, dtypes.int32).shard(x).whole == {"b"}  # type: ignore[call-arg]


def test_general_reduction_over_a_symbolic_number_of_elements_says_that_it_has_no_derivative():
    product = next(iter(Reduce.samples(np.random.default_rng(0)))).op.program
    op = Reduce(product, (0,))
    types = [ArrayType((ShapeVar("batch"), 3), dtypes.float32), ArrayType((), dtypes.float32)]
    program = stage_closed(lambda *operands: op.bind(*operands), types)
    assert program.output_types[0].shape == (3,)
    with pytest.raises(MissingRuleError, match="batch, is symbolic"):
        jvp_program(program, (True, False))
