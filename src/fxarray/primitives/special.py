"""Special functions, defined by SciPy.

SciPy loads `scipy.special` when it is first asked for, so importing fxarray does not pay for it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy

from fxarray.core.errors import MissingRuleError
from fxarray.primitives.arithmetic import add, div, mul, neg, scale, sign, square, sub
from fxarray.primitives.comparison import eq, select
from fxarray.primitives.elementwise_base import Derivative, row
from fxarray.primitives.gamma_slope import gamma_slope
from fxarray.primitives.power import exp, log, log1p
from fxarray.primitives.support import FLOAT, Values, number_like

_FRACTION = (0.1, 0.9)
_POSITIVE = (0.4, 3.0)


def _scipy(name: str) -> Callable[..., Any]:
    def function(*arrays: Values) -> Any:
        return getattr(scipy.special, name)(*arrays)

    return function


def _underivable(name: str, operand: str) -> Derivative:
    def derivative(*_: Any) -> Any:
        raise MissingRuleError(
            f"{name} has no derivative with respect to {operand}; apply stop_gradient to it, or "
            f"define one with custom_jvp"
        )

    return derivative


# --- the error function ---------------------------------------------------------------------------


def _bell(x: Any) -> Any:
    return scale(exp(neg(square(x))), 2 / math.sqrt(math.pi))


erf = row(
    "erf", _scipy("erf"), FLOAT, fast=_scipy("erf"),
    derivatives=[lambda t, z, x: mul(t, _bell(x))],
    lowering="erf",
    doc="The error function.",
)  # fmt: skip
erfc = row(
    "erfc", _scipy("erfc"), FLOAT, fast=_scipy("erfc"),
    derivatives=[lambda t, z, x: neg(mul(t, _bell(x)))],
    lowering="erfc",
    doc="1 - erf(x), exact also where that is small.",
)  # fmt: skip
erf_inv = row(
    "erf_inv", _scipy("erfinv"), FLOAT, fast=_scipy("erfinv"),
    derivatives=[lambda t, z, x: mul(t, scale(exp(square(z)), math.sqrt(math.pi) / 2))],
    domain=(-0.9, 0.9),
    lowering="erf_inv",
    doc="The number whose error function is x.",
)  # fmt: skip

# --- the gamma function and its relatives ---------------------------------------------------------

lgamma = row(
    "lgamma", _scipy("gammaln"), FLOAT, fast=_scipy("gammaln"),
    derivatives=[lambda t, z, x: mul(t, digamma(x))], domain=(2.2, 9.0),  # its zeros are at 1 and 2
    lowering="lgamma",
    doc="The logarithm of the magnitude of the gamma function.",
)  # fmt: skip
digamma = row(
    "digamma", _scipy("psi"), FLOAT, fast=_scipy("psi"),
    derivatives=[lambda t, z, x: mul(t, polygamma(number_like(x, 1), x))], domain=_POSITIVE,
    lowering="digamma",
    doc="The derivative of lgamma.",
)  # fmt: skip


def _zeta(x: Values, q: Values) -> Values:
    return np.where(np.isnan(x) | np.isnan(q), np.nan, scipy.special.zeta(x, q))


def _polygamma(m: Values, x: Values) -> Values:
    sign_of_m = np.where(m % 2 == 0, -1.0, 1.0)
    value = sign_of_m * scipy.special.gamma(m + 1) * _zeta(m + 1, x)
    value = np.where(m == 0, scipy.special.psi(x), value)
    return np.where((m < 0) | (m != np.floor(m)), np.nan, value)


polygamma = row(
    "polygamma", _polygamma, FLOAT, arity=2,
    derivatives=[
        _underivable("polygamma", "its order m"),
        lambda t, z, m, x: mul(t, polygamma(add(m, number_like(m, 1)), x)),
    ],
    domain=((1.0, 1.0), _POSITIVE), sampled_derivatives=False,
    doc="The m-th derivative of digamma at x; m is a whole number in a float dtype.",
)  # fmt: skip
zeta = row(
    "zeta", _zeta, FLOAT, arity=2,
    derivatives=[
        _underivable("zeta", "its exponent x"),
        lambda t, z, x, q: neg(mul(t, mul(x, zeta(add(x, number_like(x, 1)), q)))),
    ],
    domain=((1.5, 4.0), _POSITIVE), sampled_derivatives=False,
    doc="The Hurwitz zeta function, the sum over k of (k + q) ** -x.",
)  # fmt: skip


def _gamma_density(a: Any, x: Any) -> Any:
    """The density of the gamma distribution of shape a at x."""
    power = mul(sub(a, number_like(a, 1)), log(x))
    return exp(sub(sub(power, x), lgamma(a)))


igamma = row(
    "igamma", _scipy("gammainc"), FLOAT, arity=2,
    fast=_scipy("gammainc"),
    derivatives=[
        lambda t, z, a, x: mul(t, igamma_grad_a(a, x)),
        lambda t, z, a, x: mul(t, _gamma_density(a, x)),
    ],
    domain=_POSITIVE,
    doc="The regularized lower incomplete gamma function P(a, x).",
)  # fmt: skip
igammac = row(
    "igammac", _scipy("gammaincc"), FLOAT, arity=2,
    fast=_scipy("gammaincc"),
    derivatives=[
        lambda t, z, a, x: neg(mul(t, igamma_grad_a(a, x))),
        lambda t, z, a, x: neg(mul(t, _gamma_density(a, x))),
    ],
    domain=_POSITIVE,
    doc="The regularized upper incomplete gamma function Q(a, x).",
)  # fmt: skip


def _igamma_grad_a(a: Values, x: Values) -> Values:
    density = np.exp(scipy.special.xlogy(a - 1, x) - x - scipy.special.gammaln(a))
    value = -density * gamma_slope(a, x)
    return np.where((x == 0) & (a > 0) | np.isposinf(x), 0.0, value)


_SECOND_ORDER = {"jvp": "the second derivative of the incomplete gamma function is not implemented"}

igamma_grad_a = row(
    "igamma_grad_a", _igamma_grad_a, FLOAT, arity=2,
    derivatives=[_underivable("igamma_grad_a", "a"), _underivable("igamma_grad_a", "x")],
    domain=_POSITIVE, excused=_SECOND_ORDER, sampled_derivatives=False,
    doc="The derivative of igamma(a, x) with respect to a.",
)  # fmt: skip
random_gamma_grad = row(
    "random_gamma_grad", gamma_slope, FLOAT, arity=2,
    derivatives=[_underivable("random_gamma_grad", "a"), _underivable("random_gamma_grad", "x")],
    domain=_POSITIVE, excused=_SECOND_ORDER, sampled_derivatives=False,
    doc="How a sample x of the gamma distribution changes with its shape a at a fixed quantile.",
)  # fmt: skip


def _beta_density(a: Any, b: Any, x: Any) -> Any:
    one = number_like(x, 1)
    powers = add(mul(sub(a, one), log(x)), mul(sub(b, one), log1p(neg(x))))
    return exp(sub(add(powers, lgamma(add(a, b))), add(lgamma(a), lgamma(b))))


betainc = row(
    "betainc", _scipy("betainc"), FLOAT, arity=3,
    derivatives=[
        _underivable("betainc", "a"),
        _underivable("betainc", "b"),
        lambda t, z, a, b, x: mul(t, _beta_density(a, b, x)),
    ],
    domain=(_POSITIVE, _POSITIVE, _FRACTION), sampled_derivatives=False,
    doc="The regularized incomplete beta function I_x(a, b).",
)  # fmt: skip

# --- Bessel functions -----------------------------------------------------------------------------

bessel_i0e = row(
    "bessel_i0e", _scipy("i0e"), FLOAT, fast=_scipy("i0e"),
    derivatives=[lambda t, z, x: mul(t, sub(bessel_i1e(x), mul(sign(x), z)))], domain=_POSITIVE,
    doc="exp(-|x|) times the modified Bessel function of order 0.",
)  # fmt: skip


def _i1e_slope(z: Any, x: Any) -> Any:
    # z / x tends to 1/2 at 0.
    at_zero = eq(x, number_like(x, 0))
    ratio = select(at_zero, number_like(x, 0.5), div(z, select(at_zero, number_like(x, 1), x)))
    return sub(bessel_i0e(x), add(mul(sign(x), z), ratio))


bessel_i1e = row(
    "bessel_i1e", _scipy("i1e"), FLOAT, fast=_scipy("i1e"),
    derivatives=[lambda t, z, x: mul(t, _i1e_slope(z, x))], domain=_POSITIVE,
    doc="exp(-|x|) times the modified Bessel function of order 1.",
)  # fmt: skip
