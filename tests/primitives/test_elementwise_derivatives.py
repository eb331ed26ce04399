"""Derivatives of elementwise operations: against central differences, and at singular points."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import fxarray
import fxarray.numpy as fnp
from fxarray import lax
from fxarray.core import dtypes
from fxarray.core.errors import MissingRuleError
from fxarray.core.primitive import REGISTRY
from fxarray.primitives.elementwise_base import Elementwise
from fxarray.primitives.support import COMPLEX, FLOAT, random_operand

WIDE = (np.dtype("float64"), np.dtype("complex128"))

# Operations whose derivative is, by definition, not the slope of their values.
DEFINED_OTHERWISE = ("stop_gradient", "nextafter", "reduce_precision")


def rows() -> Iterator[tuple[str, type[Elementwise]]]:
    for name, cls in sorted(REGISTRY.items()):
        if issubclass(cls, Elementwise) and name not in DEFINED_OTHERWISE:
            yield name, cls


def trials(cls: type[Elementwise]) -> Iterator[tuple[Any, list[np.ndarray], list[int]]]:
    """Operations, operands in float64 or complex128, and which operands to differentiate in."""
    rng = np.random.default_rng(0)
    for sample in cls.samples(rng):
        operands = [np.asarray(operand) for operand in sample.operands]
        wide = [i for i, operand in enumerate(operands) if operand.dtype in WIDE]
        if sample.error is None and sample.differentiable and wide:
            yield sample.op, operands, wide


def random_direction(rng: np.random.Generator, like: np.ndarray) -> np.ndarray:
    return random_operand(rng, like.shape, like.dtype, (-1.0, 1.0))


@pytest.mark.parametrize(("name", "cls"), list(rows()))
def test_derivative_agrees_with_central_differences(name: str, cls: type[Elementwise]) -> None:
    rng = np.random.default_rng(1)
    tried = 0
    for op, operands, wide in trials(cls):
        (result_type,) = op.infer(*[fnp.asarray(x).type for x in operands])
        if result_type.dtype not in WIDE:
            continue
        directions = [random_direction(rng, operands[i]) for i in wide]

        def apply(*varied: Any, op: Any = op, operands: Any = operands, wide: Any = wide) -> Any:
            full = [fnp.asarray(x) for x in operands]
            for i, x in zip(wide, varied, strict=True):
                full[i] = x
            return op(*full)

        points = [operands[i] for i in wide]
        _, tangent = fxarray.jvp(
            apply, tuple(map(fnp.asarray, points)), tuple(map(fnp.asarray, directions))
        )
        step = 1e-6

        def at(side: float, points: Any = points, directions: Any = directions) -> np.ndarray:
            moved = [np.asarray(x + side * d) for x, d in zip(points, directions, strict=True)]
            return np.asarray(apply(*map(fnp.asarray, moved)))

        slope = (at(step) - at(-step)) / (2 * step)
        np.testing.assert_allclose(np.asarray(tangent), slope, rtol=2e-7, atol=2e-8)
        tried += 1
    accepts_wide = cls.accepts & (FLOAT | COMPLEX)
    makes_wide = any(True for _ in trials(cls))
    if accepts_wide and makes_wide and cls.differentiable:
        assert tried, f"{name} has derivatives, but no sample tried them"


@pytest.mark.parametrize(("name", "cls"), list(rows()))
def test_reverse_mode_is_the_transpose_of_forward_mode(name: str, cls: type[Elementwise]) -> None:
    rng = np.random.default_rng(2)
    for op, operands, wide in trials(cls):
        (result_type,) = op.infer(*[fnp.asarray(x).type for x in operands])
        if result_type.dtype not in WIDE:
            continue

        def apply(*varied: Any, op: Any = op, operands: Any = operands, wide: Any = wide) -> Any:
            full = [fnp.asarray(x) for x in operands]
            for i, x in zip(wide, varied, strict=True):
                full[i] = x
            return op(*full)

        points = tuple(fnp.asarray(operands[i]) for i in wide)
        directions = tuple(fnp.asarray(random_direction(rng, operands[i])) for i in wide)
        output, tangent = fxarray.jvp(apply, points, directions)
        cotangent = fnp.asarray(random_direction(rng, np.asarray(output)))
        _, pull = fxarray.vjp(apply, *points)
        pulled = pull(cotangent)
        forward = np.sum(np.asarray(cotangent) * np.asarray(tangent)).real
        backward = sum(
            np.sum(np.asarray(c) * np.asarray(d)).real
            for c, d in zip(pulled, directions, strict=True)
        )
        np.testing.assert_allclose(backward, forward, rtol=1e-10, atol=1e-12)
        assert [c.type.same_array(x.type) for c, x in zip(pulled, points, strict=True)] == [
            True
        ] * len(points)


@pytest.mark.parametrize(
    "name",
    [
        n
        for n, cls in rows()
        if cls.arity == 1 and cls.differentiable and cls.accepts & FLOAT and n != "select_n"
    ],
)
def test_second_derivative_agrees_with_differences_of_the_first(name: str) -> None:
    cls = REGISTRY[name]
    tried = 0
    for op, operands, _ in trials(cls):
        if operands[0].dtype != np.float64:
            continue
        (result_type,) = op.infer(fnp.asarray(operands[0]).type)
        if result_type.dtype != np.float64:
            continue

        def first(x: Any, op: Any = op) -> Any:
            return fxarray.grad(lambda x: op(x).sum())(x)

        x = fnp.asarray(operands[0])
        second = fxarray.grad(lambda x: first(x).sum())(x)
        high, low = (np.asarray(first(x + step)) for step in (1e-6, -1e-6))
        np.testing.assert_allclose(np.asarray(second), (high - low) / 2e-6, rtol=1e-6, atol=1e-7)
        tried += 1
    assert tried


def slope(function: Callable[..., Any], x: Any, dtype: str = "float64") -> Any:
    return fxarray.grad(function)(fnp.asarray(x, dtype)).item()


# --- conventions at kinks and singular points -----------------------------------------------------


def test_abs_has_slope_one_at_zero_as_in_jax() -> None:
    assert slope(lax.abs, 0.0) == 1.0
    assert slope(lax.abs, -0.0) == 1.0


def test_complex_abs_has_a_finite_gradient_at_zero() -> None:
    assert fxarray.grad(lax.abs)(fnp.asarray(0j, "complex128")).item() == 0


def test_gradient_of_squared_magnitude_is_the_conjugate_as_in_jax() -> None:
    def squared(z: Any) -> Any:
        return lax.square(lax.real(z)) + lax.square(lax.imag(z))

    assert fxarray.grad(squared)(fnp.asarray(1 + 2j, "complex128")).item() == 2 - 4j


def test_holomorphic_gradient_of_a_square() -> None:
    gradient = fxarray.grad(lax.square, holomorphic=True)(fnp.asarray(1 + 2j, "complex128"))
    assert gradient.item() == 2 + 4j


@pytest.mark.parametrize("function", [lax.max, lax.min])
def test_a_tie_of_max_or_min_is_split_evenly(function: Callable[..., Any]) -> None:
    both = fxarray.grad(function, argnums=(0, 1))(1.0, 1.0)
    assert [g.item() for g in both] == [0.5, 0.5]


def test_clamp_has_slope_zero_on_its_ends() -> None:
    assert [slope(lambda x: lax.clamp(0.0, x, 1.0), x) for x in (0.0, 0.5, 1.0)] == [0.0, 1.0, 0.0]


def test_clamp_passes_the_derivative_to_the_bound_that_holds() -> None:
    for x, expected in ((-1.0, [1, 0, 0]), (0.5, [0, 1, 0]), (2.0, [0, 0, 1])):
        gradients = fxarray.grad(lax.clamp, argnums=(0, 1, 2))(0.0, x, 1.0)
        assert [g.item() for g in gradients] == expected


@pytest.mark.parametrize("exponent", [2, 2.0, "array"])
def test_square_by_power_has_slope_zero_at_zero(exponent: Any) -> None:
    y = fnp.asarray(2.0, "float64") if exponent == "array" else exponent
    assert slope(lambda x: lax.pow(x, y), 0.0) == 0.0


@pytest.mark.parametrize("exponent", [2, 2.0])
def test_square_by_power_has_a_finite_slope_at_a_negative_base(exponent: Any) -> None:
    assert slope(lambda x: lax.pow(x, exponent), -3.0) == -6.0


def test_power_zero_and_one_have_constant_slopes_at_zero() -> None:
    for zero, one in ((0, 1), (0.0, 1.0)):
        assert slope(lambda x, zero=zero: lax.pow(x, zero), 0.0) == 0.0
        assert slope(lambda x, one=one: lax.pow(x, one), 0.0) == 1.0


def test_power_of_a_zero_base_has_slope_zero_in_the_exponent() -> None:
    assert slope(lambda y: lax.pow(fnp.asarray(0.0, "float64"), y), 2.0) == 0.0


def test_second_derivative_of_a_cube_at_zero_is_zero() -> None:
    assert slope(fxarray.grad(lambda x: lax.integer_pow(x, 3)), 0.0) == 0.0


def test_angle_has_finite_slopes_at_the_origin() -> None:
    gradients = fxarray.grad(lax.atan2, argnums=(0, 1))(0.0, 0.0)
    assert [g.item() for g in gradients] == [0.0, 0.0]


@pytest.mark.parametrize("size", [1e-30, 1e30])
def test_slope_of_the_angle_neither_overflows_nor_vanishes(size: float) -> None:
    x = fnp.asarray(size, "float32")
    gradients = fxarray.grad(lax.atan2, argnums=(0, 1))(x, x)
    np.testing.assert_allclose([g.item() for g in gradients], [0.5 / size, -0.5 / size], rtol=1e-5)


def test_square_root_has_an_infinite_slope_at_zero() -> None:
    assert slope(lax.sqrt, 0.0) == np.inf


def test_bessel_function_of_order_one_has_slope_one_half_at_zero() -> None:
    assert slope(lax.bessel_i1e, 0.0) == 0.5


@pytest.mark.parametrize("function", [lax.floor, lax.ceil, lax.round, lax.sign, lax.stop_gradient])
def test_steps_have_slope_zero(function: Callable[..., Any]) -> None:
    assert slope(function, 0.4) == 0.0


def test_derivative_of_the_direction_of_a_complex_number_is_at_right_angles_to_it() -> None:
    z, step = fnp.asarray(3 + 4j), fnp.asarray(3 + 4j)
    _, along = fxarray.jvp(lax.sign, (z,), (step,))
    _, across = fxarray.jvp(lax.sign, (z,), (step * 1j,))
    np.testing.assert_allclose(np.asarray(along), 0, atol=1e-6)
    np.testing.assert_allclose(np.asarray(across), 1j * (0.6 + 0.8j), rtol=1e-6)


@pytest.mark.parametrize("point", [-2 + 0.5j, -2 - 0.5j, 0.3 + 2j])
def test_derivative_of_acosh_is_that_of_its_branch(point: complex) -> None:
    z = fnp.asarray(point, "complex128")
    step = 1e-6
    high, low = (np.asarray(lax.acosh(z + s)) for s in (step, -step))
    derivative = fxarray.grad(lax.acosh, holomorphic=True)(z)
    np.testing.assert_allclose(np.asarray(derivative), (high - low) / (2 * step), rtol=1e-7)


# --- selection and conversion ---------------------------------------------------------------------


def test_selection_stops_the_derivative_of_the_case_not_taken() -> None:
    def guarded(x: Any) -> Any:
        return lax.select(x > 0, lax.log(lax.select(x > 0, x, fnp.ones_like(x))), x)

    assert slope(guarded, -2.0) == 1.0


def test_selector_numbers_share_out_the_derivative() -> None:
    which = fnp.asarray([0, 1, 2, 5], "int32")

    def total(a: Any, b: Any, c: Any) -> Any:
        return lax.select_n(which, a, b, c).sum()

    x = fnp.ones(4)
    gradients = fxarray.grad(total, argnums=(0, 1, 2))(x, x, x)
    assert [np.asarray(g).tolist() for g in gradients] == [
        [1, 0, 0, 0],
        [0, 1, 0, 0],
        [0, 0, 1, 1],
    ]


def test_scalar_cases_gather_the_derivatives_of_all_their_uses() -> None:
    mask = fnp.asarray([True, False, True])
    gradient = fxarray.grad(lambda s: lax.select(mask, s, 0.0).sum())(2.0)
    assert gradient.item() == 2.0


@pytest.mark.parametrize("target", ["int32", "bool"])
def test_conversion_to_a_discrete_dtype_has_no_derivative(target: str) -> None:
    def there_and_back(x: Any) -> Any:
        return lax.convert_element_type(lax.convert_element_type(x, target), "float32")

    assert slope(there_and_back, 1.5, "float32") == 0.0


def test_gradient_comes_back_in_the_dtype_of_the_operand() -> None:
    x = fnp.asarray(1.5, "bfloat16")
    gradient = fxarray.grad(lambda x: lax.convert_element_type(x, "float32") * 3.0)(x)
    assert gradient.dtype == dtypes.bfloat16
    assert gradient.item() == 3.0


def test_dropping_the_imaginary_part_pulls_back_a_real_number() -> None:
    gradient = fxarray.grad(lambda z: lax.convert_element_type(z, "float32") * 2.0)(
        fnp.asarray(1 + 2j, "complex64")
    )
    assert gradient.item() == 2 + 0j


def test_stop_gradient_takes_trees_with_integers() -> None:
    tree = {"n": fnp.asarray(3), "x": fnp.asarray(2.0), "name": "w"}
    stopped = lax.stop_gradient(tree)
    assert stopped["name"] == "w"
    assert stopped["n"].item() == 3
    assert slope(lambda x: lax.stop_gradient({"x": x})["x"] * x, 3.0) == 3.0


# --- derivatives that are not defined -------------------------------------------------------------


@pytest.mark.parametrize(
    "function", [lax.polygamma, lax.zeta, lambda a, x: lax.betainc(a, 1.0, x * 0.1)]
)
def test_missing_derivative_is_an_error_and_not_zero(function: Callable[..., Any]) -> None:
    with pytest.raises(MissingRuleError, match="no derivative with respect to"):
        fxarray.grad(function)(2.0, 3.0)


@pytest.mark.parametrize(
    ("function", "operands"),
    [
        (lax.polygamma, (2.0, 1.3)),
        (lax.zeta, (2.5, 1.3)),
        (lambda a, x: lax.betainc(a, 1.7, x), (2.2, 0.4)),
    ],
)
def test_derivative_in_the_last_operand_of_partly_differentiable_functions(
    function: Callable[..., Any], operands: tuple[float, float]
) -> None:
    first, last = (fnp.asarray(x, "float64") for x in operands)
    step = 1e-5
    high, low = (function(first, last + s).item() for s in (step, -step))
    derivative = fxarray.grad(function, argnums=1)(first, last).item()
    np.testing.assert_allclose(derivative, (high - low) / (2 * step), rtol=1e-7)
