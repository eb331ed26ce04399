"""The elementary functions of f32 and f64, within 2 units in the last place, by name."""

from __future__ import annotations

from collections.abc import Callable

from fxarray.devices.cpu.emit import (
    error_function,
    exponential,
    gamma,
    hyperbolic,
    inverse_trigonometric,
    logarithm,
    power,
    reciprocal_root,
    trigonometric,
)
from fxarray.devices.cpu.emit.number import Number

RULES: dict[str, Callable[..., Number]] = {
    "exp": exponential.exp,
    "exp2": exponential.exp2,
    "expm1": hyperbolic.expm1,
    "log": logarithm.log,
    "log2": logarithm.log2,
    "log10": logarithm.log10,
    "log1p": logarithm.log1p,
    "sin": trigonometric.sin,
    "cos": trigonometric.cos,
    "tan": trigonometric.tan,
    "asin": inverse_trigonometric.asin,
    "acos": inverse_trigonometric.acos,
    "atan": inverse_trigonometric.atan,
    "atan2": inverse_trigonometric.atan2,
    "cbrt": power.cbrt,
    "pow": power.power,
    "sinh": hyperbolic.sinh,
    "cosh": hyperbolic.cosh,
    "tanh": hyperbolic.tanh,
    "asinh": hyperbolic.asinh,
    "acosh": hyperbolic.acosh,
    "atanh": hyperbolic.atanh,
    "logistic": hyperbolic.logistic,
    "erf": error_function.erf,
    "erfc": error_function.erfc,
    "erf_inv": error_function.erf_inv,
    "lgamma": gamma.lgamma,
    "digamma": gamma.digamma,
    "rsqrt": reciprocal_root.reciprocal_root,
}
