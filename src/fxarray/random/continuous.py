"""Continuous distributions: normal and its kin, and those with a closed inverse.

Each is a function of uniform numbers that equal JAX's to the last bit, so values agree with JAX's
within the rounding of a logarithm or an inverse error function.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from fxarray import lax
from fxarray import numpy as fnp
from fxarray.core import dtypes
from fxarray.core.array import Array
from fxarray.core.dtypes import DType
from fxarray.core.errors import ArgumentError, DTypeError
from fxarray.core.types import Shape
from fxarray.numpy.conversion import cast_to, place
from fxarray.numpy.promotion import canonical_shape
from fxarray.primitives.bits import RandomBits, RandomSplit
from fxarray.random.keys import single_key
from fxarray.random.uniform import float_dtype, parameter, ranged, result_shape, spread, unit

GUMBEL_MODES = ("low", "high", "highest")


def _request(function: str, key: Any, shape: Any, dtype: Any) -> tuple[Array, Shape, DType]:
    """The checked arguments of a distribution without parameters."""
    single, _ = single_key(function, key)
    return single, canonical_shape(function, shape), float_dtype(function, dtype)


def _least(dtype: DType) -> float:
    """The smallest normal number."""
    return float(ml_dtypes.finfo(dtype).tiny)


# --- normal ---------------------------------------------------------------------------------------


def normal(key: Any, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None) -> Array:
    """Standard normal random values: mean 0, variance 1.

    Args:
      key: a random key.
      shape: of the result.
      dtype: a float or complex dtype; default float32. The parts of complex values are independent
        and have variance 1/2.
      out_sharding: how to split the result over a mesh.

    Raises:
      DTypeError: `dtype` is neither, or `key` is no key.

    >>> from fxarray import random
    >>> random.normal(random.key(0), (2,)).shape
    (2,)
    """
    single, _ = single_key("normal", key)
    sizes = canonical_shape("normal", shape)
    found = dtypes.float32 if dtype is None else dtypes.canonical(dtype)
    if not dtypes.is_inexact(found):
        raise DTypeError(f"normal: dtype must be a float or complex dtype, got {found}")
    if dtypes.is_complex(found):
        parts = RandomSplit((2,))(single)
        real_dtype = dtypes.to_real(found)
        real, imaginary = (standard_normal(part, sizes, real_dtype) for part in parts)
        values = lax.complex(real, imaginary) / 2**0.5
    else:
        values = standard_normal(single, sizes, found)
    return place("normal", values, None, out_sharding)


def standard_normal(key: Array, shape: Shape, dtype: DType) -> Array:
    """Normal values by the inverse of the distribution function."""
    # Uniform in (-1, 1): the difference of the bounds rounds to 2, so nothing but the sum rounds.
    minus_one, zero = (np.array(end, dtypes.physical(dtype)) for end in (-1, 0))
    lowest = float(np.nextafter(minus_one, zero))
    signed = unit("normal", key, shape, dtype, 2) + lowest
    return lax.erf_inv(signed) * 2**0.5


def truncated_normal(
    key: Any,
    lower: Any,
    upper: Any,
    shape: Any = None,
    dtype: Any = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Standard normal random values that fall between `lower` and `upper`.

    Args:
      key: a random key.
      lower: the lower ends.
      upper: the upper ends.
      shape: of the result; default: what `lower` and `upper` broadcast to.
      dtype: a float dtype; default float32.
      out_sharding: how to split the result over a mesh.

    Raises:
      DTypeError: `dtype` is no float dtype, or `key` no key.
      ShapeError: an end does not broadcast to `shape`.

    >>> from fxarray import random
    >>> x = random.truncated_normal(random.key(0), 1.0, 2.0, (100,))
    >>> bool((x > 1).all() and (x < 2).all())
    True
    """
    function = "truncated_normal"
    single, _ = single_key(function, key)
    found = float_dtype(function, dtype)
    ends = [parameter(function, end, found, i) for i, end in ((1, lower), (2, upper))]
    sizes = result_shape(function, shape, *ends)
    low, high = (spread(function, end, sizes) for end in ends)
    root = fnp.asarray(2**0.5, found)
    drawn = ranged(function, single, sizes, found, lax.erf(low / root), lax.erf(high / root))
    values = lax.erf_inv(drawn) * root
    # Rounding must not lead to the ends or beyond; the ends' own derivatives come through `drawn`.
    infinity = fnp.asarray(np.inf, found)
    least = lax.nextafter(lax.stop_gradient(low), fnp.broadcast_to(infinity, low.shape))
    most = lax.nextafter(lax.stop_gradient(high), fnp.broadcast_to(-infinity, high.shape))
    return place(function, fnp.clip(values, least, most), None, out_sharding)


# --- distributions with a closed inverse ----------------------------------------------------------


def exponential(key: Any, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None) -> Array:
    """Exponential random values: density exp(-x) on x >= 0.

    Args:
      key: a random key.
      shape: of the result.
      dtype: a float dtype; default float32.
      out_sharding: how to split the result over a mesh.

    Raises:
      DTypeError: `dtype` is no float dtype, or `key` no key.

    >>> from fxarray import random
    >>> bool((random.exponential(random.key(0), (9,)) >= 0).all())
    True
    """
    request = _request("exponential", key, shape, dtype)
    values = -fnp.log1p(-unit("exponential", *request))
    return place("exponential", values, None, out_sharding)


def gumbel(
    key: Any,
    shape: Any = (),
    dtype: Any = None,
    mode: str | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Gumbel random values: density exp(-x - exp(-x)).

    Args:
      key: a random key.
      shape: of the result.
      dtype: a float dtype; default float32.
      mode: "low" (default) draws one uniform number for each value, which in float32 bounds
        values by about 16; "high" two, bound 32; "highest" all 64 bits, bound 45.
      out_sharding: how to split the result over a mesh.

    Raises:
      DTypeError: `dtype` is no float dtype, or `key` no key.
      ArgumentError: an unknown mode.

    >>> from fxarray import random
    >>> random.gumbel(random.key(0), (2, 3)).shape
    (2, 3)
    """
    single, sizes, found = _request("gumbel", key, shape, dtype)
    return place("gumbel", gumbel_values(single, sizes, found, mode), None, out_sharding)


def gumbel_values(key: Array, shape: Shape, dtype: DType, mode: str | None) -> Array:
    """Gumbel values by the inverse of the distribution function.

    Raises:
      ArgumentError: an unknown mode.
    """
    mode = "low" if mode is None else mode
    if mode not in GUMBEL_MODES:
        raise ArgumentError(f"gumbel: mode must be one of {GUMBEL_MODES}, got {mode!r}")
    if mode == "low":
        return -fnp.log(-fnp.log(ranged("gumbel", key, shape, dtype, _least(dtype), 1.0)))
    if mode == "highest" and dtype == dtypes.float32:
        return _gumbel_of_64_bits(key, shape)
    pair = unit("gumbel", key, (2, *shape), dtype)
    high, low = pair[0], pair[1]
    digits = int(ml_dtypes.finfo(dtype).nmant)
    # The low number refines the high one where there is room for more digits.
    finer = high + (2.0**-digits * low + _least(dtype))
    return -fnp.log(-fnp.log1p(-fnp.where(high >= 0.5, high, finer)))


def _gumbel_of_64_bits(key: Array, shape: Shape) -> Array:
    words = cast_to(RandomBits((2, *shape), 32)(key), dtypes.uint64)
    fixed = (words[0] << 32) | words[1]
    # Numbers of the upper half are held as their distance from 1, which is small and so precise.
    lower_half = fixed < 2**63
    distance = fnp.where(lower_half, fixed, -fixed)
    # Keep 24 significant bits, so that the conversion is exact; zero becomes half a unit.
    beyond = fnp.asarray(2**40 - 1, dtypes.uint64) >> lax.clz(distance)
    value = cast_to(distance & ~beyond, dtypes.float32) * 2.0**-64
    x = fnp.where(distance == 0, 2.0**-65, value)
    return -fnp.log(-fnp.where(lower_half, fnp.log1p(-x), fnp.log(x)))


def laplace(key: Any, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None) -> Array:
    """Laplace random values: density exp(-|x|) / 2.

    Args:
      key: a random key.
      shape: of the result.
      dtype: a float dtype; default float32.
      out_sharding: how to split the result over a mesh.

    Raises:
      DTypeError: `dtype` is no float dtype, or `key` no key.

    >>> from fxarray import random
    >>> random.laplace(random.key(0), (2, 3)).shape
    (2, 3)
    """
    single, sizes, found = _request("laplace", key, shape, dtype)
    lowest = -1.0 + float(ml_dtypes.finfo(found).epsneg)
    signed = ranged("laplace", single, sizes, found, lowest, 1.0)
    values = fnp.sign(signed) * fnp.log1p(-fnp.abs(signed))
    return place("laplace", values, None, out_sharding)


def logistic(key: Any, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None) -> Array:
    """Logistic random values: density exp(-x) / (1 + exp(-x))**2.

    Args:
      key: a random key.
      shape: of the result.
      dtype: a float dtype; default float32.
      out_sharding: how to split the result over a mesh.

    Raises:
      DTypeError: `dtype` is no float dtype, or `key` no key.

    >>> from fxarray import random
    >>> random.logistic(random.key(0), (2, 3)).shape
    (2, 3)
    """
    single, sizes, found = _request("logistic", key, shape, dtype)
    drawn = ranged("logistic", single, sizes, found, _least(found), 1.0)
    return place("logistic", fnp.log(drawn) - fnp.log1p(-drawn), None, out_sharding)


def cauchy(key: Any, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None) -> Array:
    """Cauchy random values: density 1 / (pi * (1 + x**2)).

    Args:
      key: a random key.
      shape: of the result.
      dtype: a float dtype; default float32.
      out_sharding: how to split the result over a mesh.

    Raises:
      DTypeError: `dtype` is no float dtype, or `key` no key.

    >>> from fxarray import random
    >>> random.cauchy(random.key(0), (2, 3)).shape
    (2, 3)
    """
    single, sizes, found = _request("cauchy", key, shape, dtype)
    drawn = ranged("cauchy", single, sizes, found, float(ml_dtypes.finfo(found).eps), 1.0)
    return place("cauchy", fnp.tan((drawn - 0.5) * np.pi), None, out_sharding)
