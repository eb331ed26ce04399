"""Sorting, and the largest elements."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from fxarray.core.array import Array
from fxarray.core.errors import ArgumentError
from fxarray.lax.operands import ArrayLike, as_operand
from fxarray.lax.shapes import as_axis
from fxarray.primitives import sort as _ops
from fxarray.primitives.elementwise import neg


def sort(operand: Any, dimension: int = -1, is_stable: bool = True, num_keys: int = 1) -> Any:
    """Sort an array in ascending order, or several together by the first of them.

    NaN comes last, and -0 equals 0. Complex numbers are compared by their real parts, then by their
    imaginary parts.

    Args:
      operand: an array, or a sequence of arrays of one shape.
      dimension: the dimension to sort along.
      is_stable: whether elements with equal keys must keep their order; they always do on a CPU.
      num_keys: how many of the arrays are keys; later ones decide where earlier ones are equal.

    Returns:
      The sorted array, or a tuple of arrays if a sequence was given.

    >>> import fxarray.numpy as fnp
    >>> from fxarray import lax
    >>> lax.sort(fnp.array([3, 1, 2]))
    Array([1, 2, 3], dtype=int32)
    >>> lax.sort([fnp.array([3, 1, 2]), fnp.array([0, 1, 2])])[1]
    Array([1, 2, 0], dtype=int32)
    """
    several = isinstance(operand, Sequence)
    arrays = [as_operand("sort", x, i) for i, x in enumerate(operand if several else [operand])]
    if not arrays:
        raise ArgumentError("sort: the sequence of operands is empty")
    axis = as_axis("sort", dimension, arrays[0].ndim)
    results = _ops.Sort(axis, bool(is_stable), operator.index(num_keys)).bind(*arrays)
    return results if several else results[0]


def sort_key_val(
    keys: ArrayLike, values: ArrayLike, dimension: int = -1, is_stable: bool = True
) -> tuple[Array, Array]:
    """Sort keys along a dimension, and values in the same way.

    Args:
      keys: what decides the order.
      values: an array of the shape of `keys`.
      dimension: the dimension to sort along.
      is_stable: whether values with equal keys must keep their order.

    >>> import fxarray.numpy as fnp
    >>> from fxarray import lax
    >>> lax.sort_key_val(fnp.array([3, 1, 2]), fnp.array([0, 1, 2]))[1]
    Array([1, 2, 0], dtype=int32)
    """
    sorted_keys, sorted_values = sort([keys, values], dimension, is_stable)
    return sorted_keys, sorted_values


def top_k(operand: ArrayLike, k: int, *, axis: int = -1) -> tuple[Array, Array]:
    """The `k` greatest elements along an axis, greatest first, and their positions.

    NaN counts as greatest. Of equal elements the first comes first.

    Args:
      operand: of a real dtype.
      k: how many; at most the size of the axis.
      axis: the axis.

    Returns:
      The elements, and their positions as int32.

    >>> import fxarray.numpy as fnp
    >>> from fxarray import lax
    >>> lax.top_k(fnp.array([1, 5, 2, 5]), 3)
    (Array([5, 5, 2], dtype=int32), Array([1, 3, 2], dtype=int32))
    """
    x = as_operand("top_k", operand)
    return _ops.top_k(x, operator.index(k), as_axis("top_k", axis, x.ndim))


def approx_max_k(
    operand: ArrayLike,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
) -> tuple[Array, Array]:
    """The `k` greatest elements along a dimension, and their positions.

    JAX lets an accelerator miss some of them; here the result is exact, as JAX's is on a CPU.

    Args:
      operand: of a float dtype.
      k: how many.
      reduction_dimension: the dimension to search.
      recall_target: which share of them must be found; always all are.
      reduction_input_size_override: of no consequence for an exact result.
      aggregate_to_topk: of no consequence for an exact result.

    >>> import fxarray.numpy as fnp
    >>> from fxarray import lax
    >>> lax.approx_max_k(fnp.array([1.0, 5.0, 2.0]), 2)[1]
    Array([1, 2], dtype=int32)
    """
    del recall_target, reduction_input_size_override, aggregate_to_topk
    return top_k(operand, k, axis=reduction_dimension)


def approx_min_k(
    operand: ArrayLike,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
) -> tuple[Array, Array]:
    """The `k` smallest elements along a dimension, and their positions; exact.

    Args:
      operand: of a float dtype.
      k: how many.
      reduction_dimension: the dimension to search.
      recall_target: which share of them must be found; always all are.
      reduction_input_size_override: of no consequence for an exact result.
      aggregate_to_topk: of no consequence for an exact result.

    >>> import fxarray.numpy as fnp
    >>> from fxarray import lax
    >>> lax.approx_min_k(fnp.array([1.0, 5.0, 2.0]), 2)[1]
    Array([0, 2], dtype=int32)
    """
    del recall_target, reduction_input_size_override, aggregate_to_topk
    values, indices = top_k(neg(as_operand("approx_min_k", operand)), k, axis=reduction_dimension)
    return neg(values), indices
