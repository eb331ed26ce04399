"""Reductions over axes, positions of extrema, running reductions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fxarray.core import dtypes
from fxarray.core.array import Array
from fxarray.lax.operands import ArrayLike, as_operand
from fxarray.lax.reducers import as_reducer
from fxarray.lax.shapes import as_axes, as_axis
from fxarray.primitives import cumulative
from fxarray.primitives import reductions as _ops
from fxarray.primitives.combine import Reduce
from fxarray.primitives.reduce import reduce_sum as _reduce_sum


def _over_axes(
    function: str, op: Callable[[Any, Sequence[int]], Any], operand: ArrayLike, axes: Sequence[int]
) -> Array:
    x = as_operand(function, operand)
    return op(x, as_axes(function, axes, x.ndim))


def reduce_sum(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """The sum over axes; floats narrower than float32 are summed in float32 and rounded once.

    Args:
      operand: of a number dtype.
      axes: the axes to sum over.

    >>> import fxarray.numpy as fnp
    >>> from fxarray import lax
    >>> lax.reduce_sum(fnp.array([[1, 2], [3, 4]]), (0,))
    Array([4, 6], dtype=int32)
    """
    return _over_axes("reduce_sum", _reduce_sum, operand, axes)


def reduce_prod(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """The product over axes; derivatives are exact where elements are zero.

    Args:
      operand: of a number dtype.
      axes: the axes to multiply over.

    >>> import fxarray.numpy as fnp
    >>> from fxarray import lax
    >>> lax.reduce_prod(fnp.array([[1, 2], [3, 4]]), (1,))
    Array([ 2, 12], dtype=int32)
    """
    return _over_axes("reduce_prod", _ops.reduce_prod, operand, axes)


def reduce_max(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """The greatest element over axes; NaN if there is one. Of no elements, the least number.

    Elements that are equal to the result share its derivative equally.

    Args:
      operand: of any dtype but that of keys; complex numbers are compared by their real parts, then
        by their imaginary parts.
      axes: the axes to reduce.

    >>> import fxarray.numpy as fnp
    >>> from fxarray import lax
    >>> lax.reduce_max(fnp.array([[1, 5], [3, 4]]), (1,))
    Array([5, 4], dtype=int32)
    """
    return _over_axes("reduce_max", _ops.reduce_max, operand, axes)


def reduce_min(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """The smallest element over axes; NaN if there is one. Of no elements, the greatest number.

    Elements that are equal to the result share its derivative equally.

    Args:
      operand: of any dtype but that of keys; complex numbers are compared by their real parts, then
        by their imaginary parts.
      axes: the axes to reduce.

    >>> import fxarray.numpy as fnp
    >>> from fxarray import lax
    >>> lax.reduce_min(fnp.array([[1, 5], [3, 4]]), (1,))
    Array([1, 3], dtype=int32)
    """
    return _over_axes("reduce_min", _ops.reduce_min, operand, axes)


def reduce_and(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """Whether all elements over axes are true; of integers, the bits that all have.

    Args:
      operand: of dtype bool or an integer dtype.
      axes: the axes to reduce.

    >>> import fxarray.numpy as fnp
    >>> from fxarray import lax
    >>> lax.reduce_and(fnp.array([[True, False], [True, True]]), (1,))
    Array([False,  True], dtype=bool)
    """
    return _over_axes("reduce_and", _ops.reduce_and, operand, axes)


def reduce_or(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """Whether any element over axes is true; of integers, the bits that any has.

    Args:
      operand: of dtype bool or an integer dtype.
      axes: the axes to reduce.

    >>> import fxarray.numpy as fnp
    >>> from fxarray import lax
    >>> lax.reduce_or(fnp.array([[True, False], [False, False]]), (1,))
    Array([ True, False], dtype=bool)
    """
    return _over_axes("reduce_or", _ops.reduce_or, operand, axes)


def reduce_xor(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """Whether an odd number of elements over axes are true; of integers, bit by bit.

    Args:
      operand: of dtype bool or an integer dtype.
      axes: the axes to reduce.

    >>> import fxarray.numpy as fnp
    >>> from fxarray import lax
    >>> print(lax.reduce_xor(fnp.array([3, 6]), (0,)))
    5
    """
    return _over_axes("reduce_xor", _ops.reduce_xor, operand, axes)


def reduce(
    operands: Any,
    init_values: Any,
    computation: Callable[[Any, Any], Any],
    dimensions: Sequence[int],
) -> Any:
    """Combine all elements along dimensions by a function.

    The usual functions (`lax.add`, `mul`, `max`, `min`, `bitwise_and`, ...) are recognised, however
    they are written. Elements are combined in an unspecified order.

    Args:
      operands: an array, or a tree of arrays of one shape.
      init_values: a scalar, or a tree of scalars; the function's identity.
      computation: an associative function of two scalars, or of two trees of scalars.
      dimensions: the dimensions to reduce.

    >>> import fxarray.numpy as fnp
    >>> from fxarray import lax
    >>> lax.reduce(fnp.array([[1, 5], [3, 4]]), 0, lax.add, (1,))
    Array([6, 7], dtype=int32)
    """
    reducer = as_reducer("reduce", operands, init_values, computation)
    arrays, inits = reducer.arrays, reducer.inits
    axes = tuple(sorted(as_axes("reduce", dimensions, arrays[0].ndim)))
    monoid = reducer.monoid()
    op = Reduce(reducer.program, axes)
    if monoid is None or inits[0].type.dtype != arrays[0].type.dtype or inits[0].ndim:
        results = op.bind(*reducer.captured, *arrays, *inits)
        return reducer.structure.unflatten(results)
    result = monoid.reduce(arrays[0], axes)
    if not monoid.is_identity(inits[0]):
        result = monoid.combine(inits[0], result)
    return reducer.structure.unflatten([result])


# --- positions ------------------------------------------------------------------------------------


def argmax(operand: ArrayLike, axis: int, index_dtype: Any) -> Array:
    """The position of the greatest element along an axis: the first one; NaN counts as greatest.

    Args:
      operand: of a real dtype, with at least one element along the axis.
      axis: the axis to search.
      index_dtype: the result's dtype, an integer's.

    >>> import fxarray.numpy as fnp
    >>> from fxarray import lax
    >>> print(lax.argmax(fnp.array([1.0, 3.0, 3.0]), 0, "int32"))
    1
    """
    x = as_operand("argmax", operand)
    return _ops.argmax(x, as_axis("argmax", axis, x.ndim), dtypes.canonical(index_dtype))


def argmin(operand: ArrayLike, axis: int, index_dtype: Any) -> Array:
    """The position of the smallest element along an axis: the first one, or the first NaN.

    Args:
      operand: of a real dtype, with at least one element along the axis.
      axis: the axis to search.
      index_dtype: the result's dtype, an integer's.

    >>> import fxarray.numpy as fnp
    >>> from fxarray import lax
    >>> print(lax.argmin(fnp.array([1.0, 0.0, 3.0]), 0, "int32"))
    1
    """
    x = as_operand("argmin", operand)
    return _ops.argmin(x, as_axis("argmin", axis, x.ndim), dtypes.canonical(index_dtype))


# --- running reductions ---------------------------------------------------------------------------


def _running(function: str, op: Any, operand: ArrayLike, axis: int, reverse: bool) -> Array:
    x = as_operand(function, operand)
    return op(x, as_axis(function, axis, x.ndim), bool(reverse))


def cumsum(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """The sum of all elements up to each along an axis, in the operand's dtype.

    Args:
      operand: of a number dtype.
      axis: the axis to run along.
      reverse: whether to run from the end.

    >>> import fxarray.numpy as fnp
    >>> from fxarray import lax
    >>> lax.cumsum(fnp.array([1, 2, 3]))
    Array([1, 3, 6], dtype=int32)
    """
    return _running("cumsum", cumulative.cumsum, operand, axis, reverse)


def cumprod(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """The product of all elements up to each along an axis.

    Derivatives are exact where elements are zero.

    Args:
      operand: of a number dtype.
      axis: the axis to run along.
      reverse: whether to run from the end.

    >>> import fxarray.numpy as fnp
    >>> from fxarray import lax
    >>> lax.cumprod(fnp.array([1, 2, 3]))
    Array([1, 2, 6], dtype=int32)
    """
    return _running("cumprod", cumulative.cumprod, operand, axis, reverse)


def cummax(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """The greatest of all elements up to each along an axis; NaN from the first NaN on.

    Args:
      operand: of a number dtype.
      axis: the axis to run along.
      reverse: whether to run from the end.

    >>> import fxarray.numpy as fnp
    >>> from fxarray import lax
    >>> lax.cummax(fnp.array([1, 3, 2]))
    Array([1, 3, 3], dtype=int32)
    """
    return _running("cummax", cumulative.cummax, operand, axis, reverse)


def cummin(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """The smallest of all elements up to each along an axis; NaN from the first NaN on.

    Args:
      operand: of a number dtype.
      axis: the axis to run along.
      reverse: whether to run from the end.

    >>> import fxarray.numpy as fnp
    >>> from fxarray import lax
    >>> lax.cummin(fnp.array([3, 1, 2]))
    Array([3, 1, 1], dtype=int32)
    """
    return _running("cummin", cumulative.cummin, operand, axis, reverse)


def cumlogsumexp(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """The logarithm of the sum of the exponentials of all elements up to each along an axis.

    Args:
      operand: of a float dtype.
      axis: the axis to run along.
      reverse: whether to run from the end.

    >>> import fxarray.numpy as fnp
    >>> from fxarray import lax
    >>> lax.cumlogsumexp(fnp.array([0.0, 0.0]))
    Array([0.       , 0.6931472], dtype=float32)
    """
    return _running("cumlogsumexp", cumulative.cumlogsumexp, operand, axis, reverse)
