"""Activation functions, softmax and its kin, standardisation, one-hot encoding."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fxarray import numpy as fnp
from fxarray.core import dtypes
from fxarray.core.array import Array
from fxarray.core.errors import ArgumentError, ShapeError
from fxarray.numpy.log_sum_exp import finite_peak, logmeanexp, logsumexp
from fxarray.numpy.promotion import (
    ArrayLike,
    DTypeLike,
    as_operand,
    broadcast_array,
    canonical_axes,
    canonical_axis,
    promote,
)
from fxarray.primitives import elementwise as e
from fxarray.primitives import special

__all__ = [
    "celu", "elu", "gelu", "glu", "hard_sigmoid", "hard_silu", "hard_swish", "hard_tanh",
    "identity",
    "leaky_relu", "log1mexp", "log_sigmoid", "log_softmax", "logmeanexp", "logsumexp", "mish",
    "one_hot", "relu", "relu6", "selu", "sigmoid", "silu", "soft_sign", "softmax", "softplus",
    "sparse_plus", "sparse_sigmoid", "squareplus", "standardize", "swish", "tanh",
]  # fmt: skip

tanh = fnp.tanh


def _float(function: str, x: ArrayLike) -> Array:
    (value,) = promote(function, x, inexact=True)
    return value


def _number(x: Array, value: float) -> Array:
    return e.number_like(x, value)


# --- rectifiers -----------------------------------------------------------------------------------


def identity(x: ArrayLike) -> Array:
    """x itself, as an array."""
    return fnp.asarray(x)


def relu(x: ArrayLike) -> Array:
    """max(x, 0), with the derivative 0 at 0.

    >>> from fxarray import nn
    >>> import fxarray.numpy as fnp
    >>> nn.relu(fnp.array([-1.0, 0.0, 2.0]))
    Array([0., 0., 2.], dtype=float32)
    """
    value = as_operand("relu", x)
    if dtypes.is_bool(value.type.dtype):
        return value
    # Not `x > 0`, which would turn NaN into 0.
    return e.select(e.le(value, _number(value, 0)), _number(value, 0), value)


def relu6(x: ArrayLike) -> Array:
    """min(max(x, 0), 6), with the derivative 0 at both bounds."""
    value = _float("relu6", x)
    six = _number(value, 6)
    return e.select(e.ge(value, six), six, relu(value))


def leaky_relu(x: ArrayLike, negative_slope: ArrayLike = 0.01) -> Array:
    """x where that is not negative, else negative_slope * x."""
    value = _float("leaky_relu", x)
    slanted = fnp.multiply(negative_slope, value)
    return fnp.where(e.ge(value, _number(value, 0)), value, slanted)


def elu(x: ArrayLike, alpha: ArrayLike = 1.0) -> Array:
    """x where that is positive, else alpha * (exp(x) - 1)."""
    value = _float("elu", x)
    positive = e.gt(value, _number(value, 0))
    # The unused branch gets 0, so that it neither overflows nor spoils the derivative.
    curved = e.expm1(e.select(positive, _number(value, 0), value))
    return fnp.where(positive, value, fnp.multiply(alpha, curved))


def celu(x: ArrayLike, alpha: ArrayLike = 1.0) -> Array:
    """x where that is positive, else alpha * (exp(x / alpha) - 1)."""
    value = _float("celu", x)
    positive = e.gt(value, _number(value, 0))
    scaled = fnp.divide(e.select(positive, _number(value, 0), value), alpha)
    return fnp.where(positive, value, fnp.multiply(alpha, e.expm1(scaled)))


def selu(x: ArrayLike) -> Array:
    """The self-normalising `elu` (Klambauer et al. 2017, arXiv:1706.02515)."""
    return 1.0507009873554805 * elu(x, 1.6732632423543772)


# --- smooth activations ---------------------------------------------------------------------------


def sigmoid(x: ArrayLike) -> Array:
    """1 / (1 + exp(-x)).

    >>> from fxarray import nn
    >>> nn.sigmoid(0.0)
    Array(0.5, dtype=float32, weak_type=True)
    """
    return e.logistic(_float("sigmoid", x))


def log_sigmoid(x: ArrayLike) -> Array:
    """log(sigmoid(x)), without underflow."""
    return e.neg(softplus(e.neg(_float("log_sigmoid", x))))


def softplus(x: ArrayLike) -> Array:
    """log(1 + exp(x)), without overflow."""
    return fnp.logaddexp(_float("softplus", x), 0.0)


def silu(x: ArrayLike) -> Array:
    """x * sigmoid(x), also called swish."""
    value = _float("silu", x)
    return e.mul(value, e.logistic(value))


swish = silu


def gelu(x: ArrayLike, approximate: bool = True) -> Array:
    """x times the standard normal distribution function (Hendrycks and Gimpel, arXiv:1606.08415).

    Args:
      x: an array.
      approximate: whether to use the approximation by tanh.
    """
    value = _float("gelu", x)
    half = e.mul(value, _number(value, 0.5))
    if approximate:
        cubic = e.add(value, e.mul(e.integer_pow(value, 3), _number(value, 0.044715)))
        bent = e.tanh(e.mul(cubic, _number(value, np.sqrt(2 / np.pi))))
        return e.mul(half, e.add(bent, _number(value, 1)))
    return e.mul(half, special.erfc(e.mul(value, _number(value, -np.sqrt(0.5)))))


def mish(x: ArrayLike) -> Array:
    """x * tanh(softplus(x))."""
    value = _float("mish", x)
    return e.mul(value, e.tanh(softplus(value)))


def soft_sign(x: ArrayLike) -> Array:
    """x / (1 + abs(x))."""
    value = _float("soft_sign", x)
    return e.div(value, e.add(e.abs(value), _number(value, 1)))


def squareplus(x: ArrayLike, b: ArrayLike = 4) -> Array:
    """(x + sqrt(x**2 + b)) / 2."""
    value, width = promote("squareplus", x, b, inexact=True)
    return e.mul(e.add(value, e.sqrt(e.add(e.square(value), width))), _number(value, 0.5))


def sparse_plus(x: ArrayLike) -> Array:
    """0 below -1, (x + 1)**2 / 4 between -1 and 1, and x above."""
    value = _float("sparse_plus", x)
    curve = e.mul(e.square(e.add(value, _number(value, 1))), _number(value, 0.25))
    below = e.le(value, _number(value, -1))
    above = e.ge(value, _number(value, 1))
    return e.select(below, _number(value, 0), e.select(above, value, curve))


def sparse_sigmoid(x: ArrayLike) -> Array:
    """0 below -1, (x + 1) / 2 between -1 and 1, and 1 above."""
    value = _float("sparse_sigmoid", x)
    return fnp.clip(e.mul(e.add(value, _number(value, 1)), _number(value, 0.5)), 0, 1)


def hard_tanh(x: ArrayLike) -> Array:
    """x limited to the interval from -1 to 1."""
    value = as_operand("hard_tanh", x)
    one = _number(value, 1)
    minus = _number(value, -1)
    return e.select(e.gt(value, one), one, e.select(e.lt(value, minus), minus, value))


def hard_sigmoid(x: ArrayLike) -> Array:
    """relu6(x + 3) / 6."""
    value = _float("hard_sigmoid", x)
    return e.div(relu6(e.add(value, _number(value, 3))), _number(value, 6))


def hard_silu(x: ArrayLike) -> Array:
    """x * hard_sigmoid(x), also called hard swish."""
    value = _float("hard_silu", x)
    return e.mul(value, hard_sigmoid(value))


hard_swish = hard_silu


def glu(x: ArrayLike, axis: int = -1) -> Array:
    """The first half along an axis times the sigmoid of the second half."""
    value = _float("glu", x)
    place = canonical_axis("glu", axis, value.ndim)
    size = value.shape[place]
    if type(size) is int and size % 2:
        raise ShapeError(f"glu: axis {place} of {value.type} must be of even size to be halved")
    first, second = fnp.split(value, 2, place)
    return e.mul(first, e.logistic(second))


def log1mexp(x: ArrayLike) -> Array:
    """log(1 - exp(-x)) for x >= 0, exact for small and large x (Maechler 2012)."""
    value = _float("log1mexp", x)
    small = e.lt(value, _number(value, np.log(2.0)))
    log_two = _number(value, np.log(2.0))
    near = e.log(e.neg(e.expm1(e.neg(e.select(small, value, log_two)))))
    far = e.log1p(e.neg(e.exp(e.neg(e.select(small, log_two, value)))))
    return e.select(small, near, far)


# --- along an axis --------------------------------------------------------------------------------


def softmax(
    x: ArrayLike, axis: int | Sequence[int] | None = -1, where: ArrayLike | None = None
) -> Array:
    """exp(x) / sum(exp(x)) along axes, without overflow; all zeros where every x is -inf.

    Args:
      x: an array.
      axis: one axis, several, or None for all.
      where: a mask; elements where it is False are left out, and are 0 in the result.

    >>> from fxarray import nn
    >>> import fxarray.numpy as fnp
    >>> nn.softmax(fnp.array([0.0, 0.0]))
    Array([0.5, 0.5], dtype=float32)
    """
    value = _float("softmax", x)
    axes = canonical_axes("softmax", axis, value.ndim)
    peak = finite_peak(value, axes, where)
    terms = e.exp(e.sub(value, broadcast_array(peak, value.shape)))
    if where is not None:
        terms = fnp.where(where, terms, 0)
    total = fnp.sum(terms, axes, keepdims=True)
    total = e.select(e.eq(total, _number(total, 0)), _number(total, 1), total)
    return e.div(terms, broadcast_array(total, terms.shape))


def log_softmax(
    x: ArrayLike, axis: int | Sequence[int] | None = -1, where: ArrayLike | None = None
) -> Array:
    """log(softmax(x)), without underflow; -inf where the mask `where` is False."""
    value = _float("log_softmax", x)
    axes = canonical_axes("log_softmax", axis, value.ndim)
    peak = finite_peak(value, axes, where)
    shifted = e.sub(value, broadcast_array(peak, value.shape))
    total = fnp.sum(e.exp(shifted), axes, keepdims=True, where=where)
    total = e.select(e.eq(total, _number(total, 0)), _number(total, 1), total)
    result = e.sub(shifted, broadcast_array(e.log(total), shifted.shape))
    return result if where is None else fnp.where(where, result, -np.inf)


def standardize(
    x: ArrayLike,
    axis: int | Sequence[int] | None = -1,
    mean: ArrayLike | None = None,
    variance: ArrayLike | None = None,
    epsilon: ArrayLike = 1e-5,
    where: ArrayLike | None = None,
    *,
    algorithm: str = "stable",
) -> Array:
    """x moved and scaled to mean 0 and variance 1 along axes.

    Args:
      x: an array.
      axis: one axis, several, or None for all.
      mean: the mean, if known.
      variance: the variance, if known.
      epsilon: added to the variance.
      where: a mask of the elements that mean and variance are taken over.
      algorithm: accepted for compatibility: both "fast" and "stable" take the mean of squared
        distances from the mean.
    """
    if algorithm not in ("fast", "stable"):
        raise ArgumentError(f"standardize: algorithm must be 'fast' or 'stable', got {algorithm!r}")
    value = _float("standardize", x)
    axes = canonical_axes("standardize", axis, value.ndim)
    centre = fnp.mean(value, axes, keepdims=True, where=where) if mean is None else mean
    centred = fnp.subtract(value, centre)
    if variance is None:
        variance = fnp.mean(fnp.square(centred), axes, keepdims=True, where=where)
    spread = _float("standardize", fnp.add(variance, epsilon))
    return fnp.multiply(centred, e.rsqrt(spread))


def one_hot(x: ArrayLike, num_classes: int, *, dtype: DTypeLike = None, axis: int = -1) -> Array:
    """Integers as vectors of zeros with a single one; out of range ones give zeros only.

    Args:
      x: integers.
      num_classes: the length of the vectors.
      dtype: default float32.
      axis: where the vectors lie in the result.

    >>> from fxarray import nn
    >>> import fxarray.numpy as fnp
    >>> nn.one_hot(fnp.array([1, 0]), 3)
    Array([[0., 1., 0.],
           [1., 0., 0.]], dtype=float32)
    """
    labels = fnp.asarray(x)
    if not isinstance(axis, int):
        raise ArgumentError(f"one_hot: axis must be an integer, got {axis!r}")
    place = canonical_axis("one_hot", axis, labels.ndim + 1)
    sizes = [1] * (labels.ndim + 1)
    sizes[place] = num_classes
    # Narrow integers might not hold the largest class.
    own = labels.type.dtype
    counted = own if dtypes.bit_width(own) >= 32 else dtypes.int32
    classes = fnp.reshape(fnp.arange(num_classes, dtype=counted), sizes)
    same = fnp.equal(fnp.expand_dims(labels, place), classes)
    return e.convert(same, dtypes.float32 if dtype is None else dtypes.canonical(dtype))
