"""The gamma distribution and those made of it: beta, chi-squared, Student's t, Dirichlet.

Gamma values come from the rejection method of Marsaglia and Tsang, "A simple method for generating
gamma variables" (2000): with d = a - 1/3 and c = 1 / (3 sqrt(d)), a normal x and a uniform u, the
value d v for v = (1 + c x)^3 is kept if log(u) < x^2 / 2 + d (1 - v + log(v)), which a squeeze
decides cheaply for nearly all. A shape a < 1 is drawn as a + 1 and multiplied by u^(1 / a).
"""

from __future__ import annotations

from typing import Any

from fxarray import lax
from fxarray import numpy as fnp
from fxarray.core import dtypes
from fxarray.core.array import Array
from fxarray.core.dtypes import DType
from fxarray.core.errors import ShapeError
from fxarray.core.types import Shape
from fxarray.numpy.conversion import place
from fxarray.primitives.bits import RandomSplit
from fxarray.random.continuous import exponential, normal
from fxarray.random.keys import single_key, split
from fxarray.random.uniform import (
    float_dtype,
    parameter,
    result_shape,
    spread,
    uniform,
)
from fxarray.transforms.custom_jvp import custom_jvp
from fxarray.transforms.vmap import vmap

_SQUEEZE = 0.0331


def _one(key: Array, a: Array, in_logs: bool) -> Array:
    """One gamma value, or its logarithm."""
    dtype = a.type.dtype
    zero, one = fnp.zeros((), dtype), fnp.ones((), dtype)
    large = a >= 1
    shape = fnp.where(large, a, a + 1)
    d = shape - 1 / 3
    c = (1 / 3) / fnp.sqrt(d)

    def rejected(state: Any) -> Any:
        _, square, v, u = state
        beyond_squeeze = u >= 1 - _SQUEEZE * square * square
        return beyond_squeeze & (fnp.log(u) >= square * 0.5 + d * (1 - v + fnp.log(v)))

    def positive_cube_root(state: Any) -> Any:
        pair = split(state[0])
        x = normal(pair[1], (), dtype)
        return pair[0], x, 1 + x * c

    def draw(state: Any) -> Any:
        keys = split(state[0], 3)
        start = (keys[1], zero, -one)
        _, x, v = lax.while_loop(lambda state: state[2] <= 0, positive_cube_root, start)
        return keys[0], x * x, v * v * v, uniform(keys[2], (), dtype)

    pair = split(key)
    # Of u = 2 every test says "rejected", so that the loop begins.
    _, _, v, _ = lax.while_loop(rejected, draw, (pair[0], zero, one, fnp.full((), 2, dtype)))
    if in_logs:
        exponent = -exponential(pair[1], (), dtype)
        boost = fnp.where(large | (exponent == 0), zero, exponent * (1 / a))
        return fnp.log(d) + fnp.log(v) + boost
    kept = 1 - uniform(pair[1], (), dtype)
    return d * v * fnp.where(large, one, kept ** (1 / a))


def _values(key: Array, a: Array, in_logs: bool) -> Array:
    keys = RandomSplit((a.size,))(key)
    flat = vmap(lambda key, a: _one(key, a, in_logs))(keys, a.reshape(-1))
    return flat.reshape(a.type.shape)


# A value is a function of the shape parameter by keeping its quantile (implicit differentiation).


@custom_jvp
def _gamma_values(key: Array, a: Array) -> Array:
    return _values(key, a, False)


@_gamma_values.defjvp
def _(primals: Any, tangents: Any) -> Any:
    x = _gamma_values(*primals)
    return x, tangents[1] * lax.random_gamma_grad(primals[1], x)


@custom_jvp
def _log_gamma_values(key: Array, a: Array) -> Array:
    return _values(key, a, True)


@_log_gamma_values.defjvp
def _(primals: Any, tangents: Any) -> Any:
    logarithm = _log_gamma_values(*primals)
    a, x = primals[1], fnp.exp(logarithm)
    # Where x is too small for the dtype, its quantile is u = x^a / Gamma(a + 1) (DLMF 8.7.1).
    tiny = x == 0
    by_series = (lax.digamma(a + 1) - logarithm) / a
    ratio = lax.random_gamma_grad(a, x) / fnp.where(tiny, 1, x)
    slope = fnp.where(tiny, by_series, ratio)
    return logarithm, tangents[1] * slope


def _drawn(
    function: str, key: Any, a: Any, shape: Any, dtype: Any, in_logs: bool = False
) -> tuple[Array, Shape, DType]:
    single, _ = single_key(function, key)
    found = float_dtype(function, dtype)
    # Types narrower than float32 have too few digits to reject with.
    wide = found if dtypes.bit_width(found) >= 32 else dtypes.float32
    own = parameter(function, a, wide, 1)
    sizes = result_shape(function, shape, own)
    full = fnp.broadcast_to(spread(function, own, sizes), sizes)
    draw = _log_gamma_values if in_logs else _gamma_values
    return draw(single, full).astype(found), sizes, found


def gamma(
    key: Any, a: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None
) -> Array:
    """Gamma random values: density x^(a - 1) exp(-x) / Gamma(a) on x > 0.

    Differentiable in `a`: a value moves so that its quantile stays (Figurnov, Mohamed and Mnih,
    "Implicit reparameterization gradients", 2018).

    Args:
      key: a random key.
      a: shape parameters, positive.
      shape: of the result; default: that of `a`.
      dtype: a float dtype; default float32.
      out_sharding: how to split the result over a mesh.

    Raises:
      DTypeError: `dtype` is no float dtype, or `key` no key.
      ShapeError: `a` does not broadcast to `shape`.

    >>> from fxarray import random
    >>> bool((random.gamma(random.key(0), 2.5, (9,)) > 0).all())
    True
    """
    return place("gamma", _drawn("gamma", key, a, shape, dtype)[0], None, out_sharding)


def loggamma(
    key: Any, a: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None
) -> Array:
    """Logarithms of gamma random values, exact also where the values are too small for the dtype.

    Args:
      key: a random key.
      a: shape parameters, positive.
      shape: of the result; default: that of `a`.
      dtype: a float dtype; default float32.
      out_sharding: how to split the result over a mesh.

    Raises:
      DTypeError: `dtype` is no float dtype, or `key` no key.
      ShapeError: `a` does not broadcast to `shape`.

    >>> from fxarray import random
    >>> bool((random.loggamma(random.key(0), 1e-3, (9,)) < 0).any())
    True
    """
    return place("loggamma", _drawn("loggamma", key, a, shape, dtype, True)[0], None, out_sharding)


def beta(
    key: Any, a: Any, b: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None
) -> Array:
    """Beta random values: density proportional to x^(a - 1) (1 - x)^(b - 1) on (0, 1).

    Args:
      key: a random key.
      a: first shape parameters, positive.
      b: second shape parameters, positive.
      shape: of the result; default: what `a` and `b` broadcast to.
      dtype: a float dtype; default float32.
      out_sharding: how to split the result over a mesh.

    Raises:
      DTypeError: `dtype` is no float dtype, or `key` no key.
      ShapeError: a parameter does not broadcast to `shape`.

    >>> from fxarray import random
    >>> x = random.beta(random.key(0), 2.0, 3.0, (9,))
    >>> bool(((x > 0) & (x < 1)).all())
    True
    """
    single, _ = single_key("beta", key)
    found = float_dtype("beta", dtype)
    first, second = parameter("beta", a, found, 1), parameter("beta", b, found, 2)
    sizes = result_shape("beta", shape, first, second)
    keys = split(single)
    x = _drawn("beta", keys[0], first, sizes, found, True)[0]
    y = _drawn("beta", keys[1], second, sizes, found, True)[0]
    largest = fnp.maximum(x, y)
    x, y = fnp.exp(x - largest), fnp.exp(y - largest)
    return place("beta", x / (x + y), None, out_sharding)


def chisquare(
    key: Any, df: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None
) -> Array:
    """Chi-squared random values: sums of `df` squares of standard normal values.

    Args:
      key: a random key.
      df: degrees of freedom, positive.
      shape: of the result; default: that of `df`.
      dtype: a float dtype; default float32.
      out_sharding: how to split the result over a mesh.

    Raises:
      DTypeError: `dtype` is no float dtype, or `key` no key.
      ShapeError: `df` does not broadcast to `shape`.

    >>> from fxarray import random
    >>> bool((random.chisquare(random.key(0), 3.0, (9,)) > 0).all())
    True
    """
    found = float_dtype("chisquare", dtype)
    half = parameter("chisquare", df, found, 1) * 0.5
    logarithm = _drawn("chisquare", key, half, shape, found, True)[0]
    return place("chisquare", 2 * fnp.exp(logarithm), None, out_sharding)


def t(key: Any, df: Any, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None) -> Array:
    """Student's t random values: density proportional to (1 + x^2 / df)^(-(df + 1) / 2).

    Args:
      key: a random key.
      df: degrees of freedom, positive.
      shape: of the result; None: that of `df`.
      dtype: a float dtype; default float32.
      out_sharding: how to split the result over a mesh.

    Raises:
      DTypeError: `dtype` is no float dtype, or `key` no key.
      ShapeError: `df` does not broadcast to `shape`.

    >>> from fxarray import random
    >>> random.t(random.key(0), 4.0, (2, 3)).shape
    (2, 3)
    """
    single, _ = single_key("t", key)
    found = float_dtype("t", dtype)
    freedom = parameter("t", df, found, 1)
    sizes = result_shape("t", shape, freedom)
    keys = split(single)
    half = fnp.broadcast_to(spread("t", freedom / 2, sizes), sizes)
    spreading = fnp.sqrt(half / _drawn("t", keys[1], half, sizes, found)[0])
    return place("t", normal(keys[0], sizes, found) * spreading, None, out_sharding)


def dirichlet(
    key: Any, alpha: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None
) -> Array:
    """Dirichlet random vectors: positive, of sum 1.

    Args:
      key: a random key.
      alpha: concentrations, positive, along the last dimension.
      shape: of the result without its last dimension; default: that of `alpha` without its last.
      dtype: a float dtype; default float32.
      out_sharding: how to split the result over a mesh.

    Raises:
      DTypeError: `dtype` is no float dtype, or `key` no key.
      ShapeError: `alpha` is 0-dimensional, or does not broadcast to `shape`.

    >>> from fxarray import random
    >>> random.dirichlet(random.key(0), [1.0, 2.0, 3.0], (5,)).sum(-1).shape
    (5,)
    """
    found = float_dtype("dirichlet", dtype)
    given = fnp.asarray(alpha, found)
    if not given.type.shape:
        raise ShapeError(f"dirichlet: alpha must have a dimension of concentrations, got {alpha!r}")
    leading = given.type.shape[:-1] if shape is None else result_shape("dirichlet", shape)
    sizes = (*leading, given.type.shape[-1])
    logarithms = _drawn("dirichlet", key, given, sizes, found, True)[0]
    largest = logarithms.max(-1, keepdims=True)
    shares = fnp.exp(logarithms - lax.stop_gradient(largest))
    return place("dirichlet", shares / shares.sum(-1, keepdims=True), None, out_sharding)
