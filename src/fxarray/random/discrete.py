"""Choosing: categories, permutations, and elements of arrays."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

from fxarray import numpy as fnp
from fxarray.core import dtypes
from fxarray.core.array import Array
from fxarray.core.errors import ArgumentError, DTypeError, ShapeError
from fxarray.core.types import Shape
from fxarray.numpy.conversion import cast_to, place
from fxarray.numpy.promotion import (
    as_operand,
    canonical_axis,
    canonical_shape,
    common_shape,
    promote_dtypes,
    same_shape,
)
from fxarray.primitives.bits import RandomBits, RandomSplit
from fxarray.primitives.create import Iota
from fxarray.primitives.search import searchsorted
from fxarray.primitives.sort import Sort, top_k
from fxarray.random.continuous import gumbel_values
from fxarray.random.keys import single_key
from fxarray.random.uniform import randint, unit


def categorical(
    key: Any,
    logits: Any,
    axis: int = -1,
    shape: Any = None,
    replace: bool = True,
    mode: str | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Random categories, by their unnormalised log-probabilities.

    The category is the one whose logit plus a Gumbel number is greatest; without replacement, the
    k greatest.

    Args:
      key: a random key.
      logits: floats; their softmax along `axis` gives the probabilities.
      axis: the axis of the categories.
      shape: of the result; must end in the shape of `logits` less `axis`, which is the default.
      replace: whether a category may be drawn twice along the leading axes of `shape`.
      mode: resolution of the Gumbel numbers: "low" (default) or "high"; see `gumbel`.
      out_sharding: how to split the result over a mesh.

    Returns:
      Indices, int32.

    Raises:
      DTypeError: the logits are no floats, or `key` is no key.
      ShapeError: `shape` does not fit, or asks for more draws without replacement than there are
        categories.
      ArgumentError: an unknown mode.

    Source: W. Kool, H. van Hoof, M. Welling, "Stochastic beams and where to find them: the
    Gumbel-top-k trick for sampling sequences without replacement", ICML 2019.

    >>> from fxarray import numpy as fnp, random
    >>> random.categorical(random.key(0), fnp.log(fnp.array([0.0, 1.0, 0.0])))
    Array(1, dtype=int32)
    """
    function = "categorical"
    single, _ = single_key(function, key)
    weights = as_operand(function, logits, 1)
    dtype = weights.type.dtype
    if not dtypes.is_float(dtype):
        raise DTypeError(f"{function}: logits must be floats, got {weights.type}")
    position = canonical_axis(function, axis, weights.type.ndim)
    outer = weights.type.shape[:position] + weights.type.shape[position + 1 :]
    sizes = outer if shape is None else canonical_shape(function, shape)
    if len(sizes) < len(outer) or not same_shape(common_shape(function, [sizes, outer]), sizes):
        raise ShapeError(
            f"{function}: shape {sizes} must end in {outer}, that of the distributions"
        )
    leading = sizes[: len(sizes) - len(outer)]
    if replace:
        own = sizes[len(leading) :]
        drawn = (*leading, *own[:position], weights.type.shape[position], *own[position:])
        scores = gumbel_values(single, drawn, dtype, mode) + weights
        indices = fnp.argmax(scores, axis=len(leading) + position)
    else:
        indices = _top_categories(single, weights, position, leading, sizes, mode)
    return place(function, indices, None, out_sharding)


def _top_categories(
    key: Array, logits: Array, axis: int, leading: Shape, shape: Shape, mode: str | None
) -> Array:
    count = math.prod(leading)
    if count > logits.type.shape[axis]:
        raise ShapeError(
            f"categorical: {count} draws without replacement from {logits.type.shape[axis]} "
            f"categories"
        )
    scores = gumbel_values(key, logits.type.shape, logits.type.dtype, mode) + logits
    _, indices = top_k(scores, count, axis)
    return fnp.reshape(fnp.moveaxis(indices, axis, 0), shape)


# --- permutations ---------------------------------------------------------------------------------


def permutation(
    key: Any, x: Any, axis: int = 0, independent: bool = False, *, out_sharding: Any = None
) -> Array:
    """`x` in random order, or the numbers from 0 to x - 1 in random order.

    Args:
      key: a random key.
      x: an array, or an integer.
      axis: the axis whose elements are moved.
      independent: whether each line along the axis gets an order of its own.
      out_sharding: how to split the result over a mesh.

    Raises:
      DTypeError: `x` is a single number and no integer, or `key` is no key.
      AxisError: `axis` is out of range.

    >>> from fxarray import random
    >>> random.permutation(random.key(0), 5)
    Array([0, 1, 4, 3, 2], dtype=int32)
    """
    function = "permutation"
    single, _ = single_key(function, key)
    array = as_operand(function, x, 1)
    position = canonical_axis(function, axis, array.type.ndim or 1)
    if not array.type.shape:
        if not dtypes.is_integer(array.type.dtype):
            raise DTypeError(f"{function}: x must be an integer or an array, got {array.type}")
        result = _order(single, (operator.index(x),), 0)
    elif array.type.shape[position] in (0, 1):
        result = array
    elif independent and array.type.ndim > 1:
        order = _order(single, array.type.shape, position)
        result = fnp.take_along_axis(array, order, axis=position)
    else:
        order = _order(single, array.type.shape[position : position + 1], 0)
        result = fnp.take(array, order, axis=position, mode="clip")
    return place(function, result, None, out_sharding)


def _order(key: Array, shape: Shape, axis: int) -> Array:
    """Random orders along an axis: int32 indices.

    The elements are sorted by random 32-bit numbers, often enough that two elements hardly ever
    meet equal numbers in every round. Beneath its number each element carries its position, which
    keeps equal numbers in order and tells where the element came from.
    """
    if shape[axis] > 2**31:
        raise ShapeError(f"permutation: {shape[axis]} positions are more than int32 can number")
    rounds = math.ceil(3 * math.log(max(1, math.prod(shape))) / math.log(2**32 - 1))
    positions = Iota(dtypes.uint64, shape, axis)()
    order = cast_to(positions, dtypes.int32)
    for number in range(rounds):
        keys = RandomSplit((2,))(key)
        key = keys[0]
        tags = cast_to(RandomBits(shape, 32)(keys[1]), dtypes.uint64)
        tagged = Sort(axis, is_stable=False)((tags << 32) | positions)
        moved = cast_to(cast_to(tagged, dtypes.uint32), dtypes.int32)
        order = fnp.take_along_axis(order, moved, axis=axis) if number else moved
    return order


# --- elements of an array -------------------------------------------------------------------------


def choice(
    key: Any,
    a: Any,
    shape: Any = (),
    replace: bool = True,
    p: Any = None,
    axis: int = 0,
    mode: str | None = None,
) -> Array:
    """Random elements of an array, or random numbers from 0 to a - 1.

    Args:
      key: a random key.
      a: an array, or an integer.
      shape: of the drawn axes, which stand in the place of `axis`.
      replace: whether an element may be drawn twice.
      p: the probability of each element; default: all equal.
      axis: the axis whose elements are drawn.
      mode: resolution of drawing without replacement by `p`: "low" (default) or "high"; see
        `gumbel`.

    Raises:
      ArgumentError: nothing to draw from, or more draws without replacement than elements.
      ShapeError: `p` is not one probability per element.
      DTypeError: `key` is no key.

    >>> from fxarray import numpy as fnp, random
    >>> random.choice(random.key(0), fnp.array([10.0, 20.0, 30.0]), (2, 2)).shape
    (2, 2)
    """
    function = "choice"
    single, _ = single_key(function, key)
    if not isinstance(shape, Sequence):
        raise ArgumentError(f"{function}: shape must be a tuple of sizes, got {shape!r}")
    sizes = canonical_shape(function, shape)
    array = as_operand(function, a, 1)
    bare = not array.type.shape
    position = 0 if bare else canonical_axis(function, axis, array.type.ndim)
    size = operator.index(a) if bare else array.type.shape[position]
    draws = math.prod(sizes)
    kept = () if bare else array.type.shape
    result_shape = kept[:position] + sizes + kept[position + 1 :]
    if draws == 0:
        return fnp.zeros(result_shape, dtypes.int32 if bare else array.type.dtype)
    if size <= 0:
        raise ArgumentError(f"{function}: there is nothing to draw from")
    if not replace and draws > size:
        raise ArgumentError(
            f"{function}: {draws} draws without replacement from {size} elements; draw fewer, or "
            f"pass replace=True"
        )
    if p is None and replace:
        indices = randint(single, sizes, 0, size)
    elif p is None:
        indices = fnp.reshape(permutation(single, size)[:draws], sizes)
    else:
        indices = _by_probability(single, p, size, sizes, replace, mode)
    return indices if bare else fnp.take(array, indices, axis=position, mode="clip")


def _by_probability(
    key: Array, p: Any, size: Any, shape: Shape, replace: bool, mode: str | None
) -> Array:
    (chances,) = promote_dtypes("choice", p, inexact=True)
    if chances.type.shape != (size,):
        raise ShapeError(
            f"choice: p must hold one probability for each of {size} elements, got {chances.type}"
        )
    dtype = chances.type.dtype
    if replace:
        sums = fnp.cumsum(chances)
        drawn = sums[-1] * (1 - unit("choice", key, shape, dtype))
        return searchsorted(sums, drawn)
    scores = gumbel_values(key, (size,), dtype, mode) + fnp.log(chances)
    _, indices = top_k(scores, math.prod(shape), 0)
    return fnp.reshape(indices, shape)
