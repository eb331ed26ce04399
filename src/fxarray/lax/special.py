"""Special functions, elementwise."""

from __future__ import annotations

from fxarray.core.array import Array
from fxarray.lax.operands import ArrayLike, as_operand, as_operands
from fxarray.primitives import elementwise as _ops


def erf(x: ArrayLike) -> Array:
    """The error function, elementwise.

    Args:
      x: of a float dtype.

    >>> import fxarray.numpy as fnp
    >>> from fxarray import lax
    >>> lax.erf(fnp.array([0.0, 1.0]))
    Array([0.       , 0.8427008], dtype=float32)
    """
    return _ops.erf(as_operand("erf", x))


def erfc(x: ArrayLike) -> Array:
    """1 - erf(x), elementwise, exact also where that is small.

    Args:
      x: of a float dtype.

    >>> import fxarray.numpy as fnp
    >>> from fxarray import lax
    >>> lax.erfc(fnp.array([0.0, 5.0]))
    Array([1.0000000e+00, 1.5374598e-12], dtype=float32)
    """
    return _ops.erfc(as_operand("erfc", x))


def erf_inv(x: ArrayLike) -> Array:
    """The number whose error function is x, elementwise.

    Args:
      x: of a float dtype.

    >>> import fxarray.numpy as fnp
    >>> from fxarray import lax
    >>> lax.erf_inv(fnp.array([0.0, 1.0]))
    Array([ 0., inf], dtype=float32)
    """
    return _ops.erf_inv(as_operand("erf_inv", x))


def lgamma(x: ArrayLike) -> Array:
    """The logarithm of the magnitude of the gamma function, elementwise.

    Args:
      x: of a float dtype.

    >>> import fxarray.numpy as fnp
    >>> from fxarray import lax
    >>> lax.lgamma(fnp.array([1.0, 5.0]))
    Array([0.       , 3.1780539], dtype=float32)
    """
    return _ops.lgamma(as_operand("lgamma", x))


def digamma(x: ArrayLike) -> Array:
    """The derivative of `lgamma`, elementwise.

    Args:
      x: of a float dtype.

    >>> import fxarray.numpy as fnp
    >>> from fxarray import lax
    >>> lax.digamma(fnp.array([1.0, 5.0]))
    Array([-0.5772157,  1.5061177], dtype=float32)
    """
    return _ops.digamma(as_operand("digamma", x))


def polygamma(m: ArrayLike, x: ArrayLike) -> Array:
    """The m-th derivative of `digamma` at x, elementwise.

    Args:
      m: the order, a whole number in the dtype of `x`.
      x: of a float dtype.

    >>> import fxarray.numpy as fnp
    >>> from fxarray import lax
    >>> lax.polygamma(1, fnp.array([1.0, 5.0]))
    Array([1.644934  , 0.22132295], dtype=float32)
    """
    return _ops.polygamma(*as_operands("polygamma", m, x))


def zeta(x: ArrayLike, q: ArrayLike) -> Array:
    """The Hurwitz zeta function, the sum over k of (k + q) ** -x, elementwise.

    Args:
      x: the exponent, greater than 1, of a float dtype.
      q: the first term, of the same dtype.

    >>> from fxarray import lax
    >>> lax.zeta(2.0, 1.0)
    Array(1.644934, dtype=float32, weak_type=True)
    """
    return _ops.zeta(*as_operands("zeta", x, q))


def igamma(a: ArrayLike, x: ArrayLike) -> Array:
    """The regularized lower incomplete gamma function P(a, x), elementwise.

    Args:
      a, x: of one float dtype, and of one shape or 0-dimensional.

    >>> from fxarray import lax
    >>> lax.igamma(1.0, 2.0)
    Array(0.86466473, dtype=float32, weak_type=True)
    """
    return _ops.igamma(*as_operands("igamma", a, x))


def igammac(a: ArrayLike, x: ArrayLike) -> Array:
    """The regularized upper incomplete gamma function Q(a, x), elementwise.

    Args:
      a, x: of one float dtype, and of one shape or 0-dimensional.

    >>> from fxarray import lax
    >>> lax.igammac(1.0, 2.0)
    Array(0.13533528, dtype=float32, weak_type=True)
    """
    return _ops.igammac(*as_operands("igammac", a, x))


def igamma_grad_a(a: ArrayLike, x: ArrayLike) -> Array:
    """The derivative of `igamma` with respect to a, elementwise.

    Args:
      a, x: of one float dtype, and of one shape or 0-dimensional.

    >>> from fxarray import lax
    >>> lax.igamma_grad_a(1.0, 2.0)
    Array(-0.22082542, dtype=float32, weak_type=True)
    """
    return _ops.igamma_grad_a(*as_operands("igamma_grad_a", a, x))


def random_gamma_grad(a: ArrayLike, x: ArrayLike) -> Array:
    """How a sample x of the gamma distribution changes with its shape a, elementwise.

    The sample's quantile is held fixed.

    Args:
      a, x: of one float dtype, and of one shape or 0-dimensional.

    >>> from fxarray import lax
    >>> lax.random_gamma_grad(1.0, 2.0)
    Array(1.6316915, dtype=float32, weak_type=True)
    """
    return _ops.random_gamma_grad(*as_operands("random_gamma_grad", a, x))


def betainc(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """The regularized incomplete beta function I_x(a, b), elementwise.

    Args:
      a, b: the parameters, of one float dtype.
      x: the upper end of the integral, in [0, 1], of the same dtype.

    >>> from fxarray import lax
    >>> lax.betainc(1.0, 2.0, 0.5)
    Array(0.75, dtype=float32, weak_type=True)
    """
    return _ops.betainc(*as_operands("betainc", a, b, x))


def bessel_i0e(x: ArrayLike) -> Array:
    """exp(-|x|) times the modified Bessel function of order 0, elementwise.

    Args:
      x: of a float dtype.

    >>> import fxarray.numpy as fnp
    >>> from fxarray import lax
    >>> lax.bessel_i0e(fnp.array([0.0, 1.0]))
    Array([1.       , 0.4657596], dtype=float32)
    """
    return _ops.bessel_i0e(as_operand("bessel_i0e", x))


def bessel_i1e(x: ArrayLike) -> Array:
    """exp(-|x|) times the modified Bessel function of order 1, elementwise.

    Args:
      x: of a float dtype.

    >>> import fxarray.numpy as fnp
    >>> from fxarray import lax
    >>> lax.bessel_i1e(fnp.array([0.0, 1.0]))
    Array([0.        , 0.20791042], dtype=float32)
    """
    return _ops.bessel_i1e(as_operand("bessel_i1e", x))
