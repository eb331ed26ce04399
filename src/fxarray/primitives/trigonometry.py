"""Trigonometric and hyperbolic functions and their inverses.

For complex operands the branch cuts are those of the C standard, and derivatives are those of the
principal branch.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fxarray.primitives.arithmetic import abs, add, div, mul, neg, square, sub
from fxarray.primitives.arithmetic import max as maximum
from fxarray.primitives.comparison import eq, select
from fxarray.primitives.elementwise_base import row
from fxarray.primitives.power import rsqrt
from fxarray.primitives.support import INEXACT, Values, number_like


def _one(x: Any) -> Any:
    return number_like(x, 1)


def _one_plus_square(x: Any) -> Any:
    return add(_one(x), square(x))


def _one_minus_square(x: Any) -> Any:
    # The factors keep digits that 1 - x * x loses where x is near 1.
    return mul(sub(_one(x), x), add(_one(x), x))


# --- trigonometric --------------------------------------------------------------------------------

sin = row(
    "sin", np.sin, INEXACT, fast=np.sin, derivatives=[lambda t, z, x: mul(t, cos(x))],
    lowering="sin",
    doc="The sine of x in radians.",
)  # fmt: skip
cos = row(
    "cos", np.cos, INEXACT, fast=np.cos, derivatives=[lambda t, z, x: neg(mul(t, sin(x)))],
    lowering="cos",
    doc="The cosine of x in radians.",
)  # fmt: skip
tan = row(
    "tan", np.tan, INEXACT, fast=np.tan,
    derivatives=[lambda t, z, x: mul(t, _one_plus_square(z))], domain=(-1.2, 1.2),
    lowering="tan",
    doc="The tangent of x in radians.",
)  # fmt: skip
asin = row(
    "asin", np.arcsin, INEXACT, fast=np.arcsin,
    derivatives=[lambda t, z, x: mul(t, rsqrt(_one_minus_square(x)))], domain=(-0.9, 0.9),
    lowering="asin",
    doc="The angle in [-pi/2, pi/2] whose sine is x.",
)  # fmt: skip
acos = row(
    "acos", np.arccos, INEXACT, fast=np.arccos,
    derivatives=[lambda t, z, x: neg(mul(t, rsqrt(_one_minus_square(x))))], domain=(-0.9, 0.9),
    lowering="acos",
    doc="The angle in [0, pi] whose cosine is x.",
)  # fmt: skip
atan = row(
    "atan", np.arctan, INEXACT, fast=np.arctan,
    derivatives=[lambda t, z, x: div(t, _one_plus_square(x))], domain=(-0.7, 0.7),
    lowering="atan",
    doc="The angle in [-pi/2, pi/2] whose tangent is x.",
)  # fmt: skip


def _angle(y: Values, x: Values) -> Values:
    if y.dtype.kind != "c":
        return np.arctan2(y, x)
    return -1j * np.log((x + 1j * y) / np.sqrt(x * x + y * y))


def _over_square_norm(a: Any, x: Any, y: Any) -> Any:
    """a / (x^2 + y^2) for a in (x, y): 0 at the origin; squares neither overflow nor vanish."""
    if np.dtype(x.type.dtype).kind == "c":
        return div(a, add(square(x), square(y)))
    size = maximum(abs(x), abs(y))
    size = select(eq(size, number_like(size, 0)), _one(size), size)
    norm = add(square(div(x, size)), square(div(y, size)))
    norm = select(eq(norm, number_like(norm, 0)), _one(norm), norm)
    return div(div(div(a, size), norm), size)


atan2 = row(
    "atan2", _angle, INEXACT, arity=2, fast=_angle,
    derivatives=[
        lambda t, z, y, x: mul(t, _over_square_norm(x, x, y)),
        lambda t, z, y, x: neg(mul(t, _over_square_norm(y, x, y))),
    ],
    domain=((-2.0, 2.0), (0.3, 2.0)),
    lowering="atan2",
    doc="The angle of the point (x, y), from operands (y, x). Its derivative at the origin is 0.",
)  # fmt: skip

# --- hyperbolic -----------------------------------------------------------------------------------

sinh = row(
    "sinh", np.sinh, INEXACT, fast=np.sinh, derivatives=[lambda t, z, x: mul(t, cosh(x))],
    lowering="sinh",
    doc="The hyperbolic sine.",
)  # fmt: skip
cosh = row(
    "cosh", np.cosh, INEXACT, fast=np.cosh, derivatives=[lambda t, z, x: mul(t, sinh(x))],
    lowering="cosh",
    doc="The hyperbolic cosine.",
)  # fmt: skip
tanh = row(
    "tanh", np.tanh, INEXACT, fast=np.tanh,
    derivatives=[lambda t, z, x: mul(t, _one_minus_square(z))], domain=(-1.2, 1.2),
    lowering="tanh",
    doc="The hyperbolic tangent.",
)  # fmt: skip
asinh = row(
    "asinh", np.arcsinh, INEXACT, fast=np.arcsinh,
    derivatives=[lambda t, z, x: mul(t, rsqrt(_one_plus_square(x)))], domain=(-0.7, 0.7),
    lowering="asinh",
    doc="The number whose hyperbolic sine is x.",
)  # fmt: skip
# One root of (x - 1)(x + 1) would be on the wrong side where the real part is negative.
acosh = row(
    "acosh", np.arccosh, INEXACT, fast=np.arccosh,
    derivatives=[lambda t, z, x: mul(t, mul(rsqrt(sub(x, _one(x))), rsqrt(add(x, _one(x)))))],
    domain=(1.2, 3.0),
    lowering="acosh",
    doc="The number, not negative, whose hyperbolic cosine is x.",
)  # fmt: skip
atanh = row(
    "atanh", np.arctanh, INEXACT, fast=np.arctanh,
    derivatives=[lambda t, z, x: div(t, _one_minus_square(x))], domain=(-0.8, 0.8),
    lowering="atanh",
    doc="The number whose hyperbolic tangent is x.",
)  # fmt: skip
