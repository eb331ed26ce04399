"""Derivatives of fxarray.numpy: those of JAX, and finite where JAX gives NaN."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fxarray
import fxarray.numpy as fnp

# Expressions in `x`, a number, with the point at which they are differentiated once and twice.
_LIKE_JAX = [
    ("xp.abs(x)", 0.0),
    ("xp.maximum(x, 0.0)", 0.0),
    ("xp.clip(x, 0.0, 1.0)", 0.0),
    ("xp.clip(x, 0.0, 1.0)", 1.0),
    ("xp.sqrt(x)", 0.0),
    ("xp.where(x > 0, xp.sqrt(x), 0.0)", 0.0),
    ("xp.logaddexp(x, x)", 1.0),
    ("xp.sinc(x)", 0.0),
    ("xp.sinc(x)", 0.02),
    ("xp.sinc(x)", 0.3),
    ("x**2", 0.0),
    ("x**2.0", 0.0),
    ("x**xp.array(2.0)", 0.0),
    ("x**3", -2.0),
    ("x**2.0", -2.0),
    ("x**xp.array(3)", -2.0),
    ("2.0**x", 3.0),
    ("0.0**x", 1.0),
    ("x**0", 0.0),
    ("x**-1", 2.0),
    ("xp.cbrt(x)", 8.0),
    ("xp.max(xp.stack([x, x, 0 * x]))", 1.0),
    ("xp.min(xp.stack([x, 2 * x]))", 1.0),
    ("xp.prod(xp.stack([x, 0 * x + 2, 3 + x]))", 0.0),
    ("xp.cumprod(xp.stack([x, x + 1, x])).sum()", 0.0),
    ("xp.sort(xp.stack([x, -x]))[0]", 1.0),
    ("xp.median(xp.stack([x, 2 * x, 3 * x]))", 1.0),
    ("xp.floor(x)", 1.5),
    ("xp.round(x)", 1.5),
    ("xp.sign(x)", 0.0),
    ("xp.mod(x, 2.0)", 3.5),
    ("xp.floor_divide(x, 2.0)", 3.5),
    ("xp.fmod(x, 2.0)", 3.5),
    ("xp.nan_to_num(x)", 1.0),
    ("xp.interp(x, xp.array([0.0, 1, 2]), xp.array([0.0, 2, 3]))", 0.5),
    ("xp.quantile(xp.stack([x, 2 * x, 4 * x]), 0.3)", 1.0),
    ("xp.trapezoid(xp.stack([x, x * x]))", 2.0),
    ("xp.convolve(xp.stack([x, x]), xp.stack([x, 1 + x])).sum()", 2.0),
    ("xp.unwrap(xp.stack([x, x + 7]))[1]", 1.0),
    ("xp.heaviside(x, 0.5)", 0.0),
    ("xp.copysign(x, -1.0)", 2.0),
    ("xp.angle(x + 1j)", 1.0),
    ("xp.real((x + 1j) ** 2)", 1.0),
    ("xp.abs(x + 1j)", 1.0),
    ("xp.i0(x)", 1.0),
    ("xp.fmax(x, x)", 1.0),
    ("xp.fmax(x, xp.nan)", 1.0),
    ("xp.nansum(xp.stack([x, xp.nan * x]))", 1.0),
    ("xp.nanstd(xp.stack([x, 2 * x]))", 1.0),
    ("xp.take(xp.stack([x, 2 * x]), xp.array([1, 5])).sum()", 1.0),
    ("xp.diff(xp.stack([x, x * x])).sum()", 2.0),
    ("xp.gradient(xp.stack([x, x * x, x])).sum()", 2.0),
    ("xp.polyval(xp.array([1.0, 2.0, 3.0]), x)", 2.0),
    ("xp.modf(x)[0]", 1.5),
    ("xp.frexp(x)[0]", 3.0),
    ("xp.ldexp(x, 3)", 1.0),
    ("xp.logspace(0.0, x, 3).sum()", 1.0),
    ("xp.linspace(0.0, x, 3).sum()", 1.0),
    ("xp.geomspace(1.0, x, 3).sum()", 4.0),
    ("xp.einsum('i,i', xp.stack([x, x]), xp.stack([x, 1.0 + x]))", 2.0),
    ("xp.cov(xp.stack([x, x * x, 1.0 + 0 * x]))", 2.0),
    ("xp.ptp(xp.stack([x, x * x]))", 2.0),
    ("xp.average(xp.stack([x, x * x]), weights=xp.stack([x, 1 + x]))", 2.0),
    ("xp.log2(x)", 2.0),
    ("xp.degrees(x)", 2.0),
    ("xp.tril(x * xp.ones((2, 2))).sum()", 2.0),
    ("xp.pad(xp.stack([x, x]), 2, mode='reflect').sum()", 2.0),
]
# Where JAX gives NaN (or, for hypot, half a slope): what we give.
_BETTER = [
    ("fnp.linalg.norm(fnp.stack([x, x]))", 0.0, 0.0),
    ("fnp.std(fnp.stack([x, x]))", 1.0, 0.0),
    ("fnp.logaddexp(x, -fnp.inf)", -np.inf, 0.5),
    ("fnp.arctan2(x, 0.0)", 0.0, 0.0),
    ("fnp.arctan2(0.0, x)", 0.0, 0.0),
    ("fnp.hypot(x, 0.0)", 0.0, 0.0),
    ("x**0.0", 0.0, 0.0),
]


def _differentiated(module, text, xp, order):
    def function(x):
        return eval(text, {"xp": xp, "fnp": fnp, "x": x})

    for _ in range(order):
        function = module.grad(function)
    return function


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize(("text", "point"), _LIKE_JAX)
def test_derivatives_are_those_of_jax(text, point, order):
    actual = _differentiated(fxarray, text, fnp, order)(point)
    with jax.enable_x64(False):
        expected = _differentiated(jax, text, jnp, order)(point)
    np.testing.assert_allclose(np.asarray(actual), np.asarray(expected), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("text", "point", "slope"), _BETTER)
def test_slope_is_finite_where_jax_gives_nan(text, point, slope):
    assert _differentiated(fxarray, text, fnp, 1)(point).item() == pytest.approx(slope)
    assert np.isfinite(_differentiated(fxarray, text, fnp, 2)(point).item())


@pytest.mark.parametrize("count", [2, 3, 5])
def test_slope_of_the_maximum_is_shared_by_ties(count):
    slopes = fxarray.grad(fnp.max)(fnp.ones(count))
    np.testing.assert_allclose(slopes, np.full(count, 1 / count), rtol=1e-6)


def test_hypot_has_right_second_derivatives_on_an_axis():
    hessian = fxarray.hessian(lambda v: fnp.hypot(v[0], v[1]))(fnp.array([0.0, 2.0]))
    np.testing.assert_allclose(hessian, [[0.5, 0], [0, 0]], atol=1e-6)


def test_hypot_neither_overflows_nor_loses_infinities():
    large = fnp.hypot(fnp.array([3e30, 3e-30, 0.0]), fnp.array([4e30, 4e-30, 0.0]))
    np.testing.assert_allclose(large, [5e30, 5e-30, 0], rtol=1e-6)
    special = fnp.hypot(fnp.array([np.inf, -np.inf, np.nan]), fnp.array([np.nan, 1.0, 1.0]))
    np.testing.assert_array_equal(special, [np.inf, np.inf, np.nan])


def test_logaddexp_has_right_second_derivative_at_a_tie():
    second = fxarray.grad(fxarray.grad(lambda x: fnp.logaddexp(x, 1.0)))(1.0)
    assert second.item() == pytest.approx(0.25)


def test_slope_of_a_power_of_zero_by_its_exponent_is_zero():
    assert fxarray.grad(lambda y: 0.0**y)(2.0).item() == 0


def test_where_sends_the_slope_to_what_it_chose():
    x = fnp.array([1.0, 2.0, 3.0])
    chosen = fxarray.grad(lambda v: fnp.where(v > 1.5, v * 2, v * 5).sum())(x)
    np.testing.assert_array_equal(chosen, [5, 2, 2])


@pytest.mark.parametrize("method", ["sum", "mean", "var", "std", "max", "prod"])
def test_slopes_of_masked_reductions_are_zero_outside_the_mask(method):
    x = fnp.array([1.0, 2.0, 4.0, -3.0])
    mask = fnp.array([True, True, True, False])
    extra = {"initial": -9.0} if method == "max" else {}

    def masked(v):
        return getattr(fnp, method)(v, where=mask, **extra)

    slopes = np.asarray(fxarray.grad(masked)(x))
    expected = fxarray.grad(lambda v: getattr(fnp, method)(v))(x[:3])
    np.testing.assert_allclose(slopes, [*np.asarray(expected), 0], rtol=1e-5, atol=1e-6)
