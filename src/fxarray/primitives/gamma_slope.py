"""How a gamma sample moves with the shape of its distribution; what NumPy and SciPy do not have.

With P the distribution function of shape a, p its density, and x a quantile that is held fixed,
dx/da = -(dP/da) / p. Two forms of it are used, each where all its terms have one sign:

- for x up to a, the series P = x^a e^-x / Gamma(a + 1) * S, S = sum of x^n / ((a + 1) ... (a + n)),
  differentiated term by term (DLMF 8.7.1);
- for x beyond a, the integral of Q = 1 - P, differentiated under the integral sign, by the
  trapezoidal rule after a double-exponential substitution (Takahasi and Mori, 1974).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy

from fxarray.primitives.support import Values

_MOST_TERMS = 20_000
_STEPS = np.linspace(-4.2, 4.8, 361)


def gamma_slope(a: Values, x: Values) -> Values:
    """dx/da of the gamma distribution's quantile x, for shape a > 0 and x > 0, in float64.

    Zero at x = 0; NaN outside the domain.
    """
    a, x = np.broadcast_arrays(np.asarray(a, np.float64), np.asarray(x, np.float64))
    result = np.full(a.shape, np.nan)
    inside = (a > 0) & (x > 0) & np.isfinite(a) & np.isfinite(x)
    by_series = inside & ((x <= a) | (x < 0.5))
    by_integral = inside & ~by_series
    result[by_series] = _series(a[by_series], x[by_series])
    result[by_integral] = _integral(a[by_integral], x[by_integral])
    result[(a > 0) & (x == 0)] = 0.0
    return result


def _series(a: Any, x: Any) -> Any:
    term, slope = np.ones_like(x), np.zeros_like(x)
    total, total_slope = term.copy(), slope.copy()
    for n in range(1, _MOST_TERMS):
        ratio = x / (a + n)
        slope = (slope - term / (a + n)) * ratio
        term = term * ratio
        total += term
        total_slope += slope
        if not np.any(np.abs(slope) > 1e-17 * np.abs(total_slope)):
            break
    return -x / a * ((np.log(x) - scipy.special.psi(a + 1)) * total + total_slope)


def _integral(a: Any, x: Any) -> Any:
    step = _STEPS[1] - _STEPS[0]
    total = np.zeros_like(x)
    scale = 1 + np.sqrt(x)
    mean = scipy.special.psi(a)
    for y in _STEPS:
        s = scale * np.exp(y - np.exp(-y))
        weight = s * (1 + np.exp(-y))
        total += weight * (np.log(x + s) - mean) * np.exp((a - 1) * np.log1p(s / x) - s)
    return total * step
