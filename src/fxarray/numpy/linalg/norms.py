"""Norms, condition numbers and ranks.

Norms have gradients everywhere: where a norm is zero, the gradient of least norm among those that
would do, which is zero (JAX gives NaN there).
"""

from __future__ import annotations

import math
from typing import Any

from fxarray.core import dims, dtypes
from fxarray.core.array import Array
from fxarray.core.errors import ArgumentError, AxisError, ShapeError
from fxarray.numpy import reductions
from fxarray.numpy.comparison import greater, isnan, not_equal
from fxarray.numpy.linalg.decompositions import svdvals
from fxarray.numpy.linalg.operands import as_matrices
from fxarray.numpy.linalg.solving import inv
from fxarray.numpy.promotion import (
    ArrayLike,
    canonical_axes,
    expand_reduced,
    promote_dtypes,
)
from fxarray.numpy.selection import where
from fxarray.primitives import elementwise
from fxarray.primitives.movement import move_axis, reshape

MATRIX_ORDERS = "'fro', 'nuc', inf, -inf, 1, -1, 2, -2"


def norm(
    x: ArrayLike,
    ord: Any = None,
    axis: int | tuple[int, ...] | None = None,
    keepdims: bool = False,
) -> Array:
    """A norm of vectors or matrices.

    Args:
      x: an array.
      ord: for vectors a number: 2 (the default), 1, inf, -inf, 0 (how many elements are not zero)
        or any p. For matrices 'fro' (the default), 'nuc' (the sum of singular values), 1 and inf
        (the greatest sum of a column's or row's moduli), 2 (the greatest singular value), or -1,
        -inf, -2 (the least of these).
      axis: the axis of the vectors, or the two of the matrices. Default: all; without `ord`, the
        array is then one vector.
      keepdims: whether these axes stay, with size 1.

    Raises:
      ArgumentError: there is no such norm.

    >>> import fxarray.numpy as fnp
    >>> fnp.linalg.norm(fnp.array([3.0, 4.0]))
    Array(5., dtype=float32)
    """
    (value,) = promote_dtypes("linalg.norm", x, inexact=True)
    rank = value.ndim
    if axis is None:
        if ord is None:
            return _of_vectors(value, 2, tuple(range(rank)), keepdims)
        axes = tuple(range(rank))
    else:
        axes = canonical_axes("linalg.norm", axis, rank)
    if len(axes) == 1:
        return _of_vectors(value, 2 if ord is None else ord, axes, keepdims)
    if len(axes) == 2:
        return _of_matrices(value, "fro" if ord is None else ord, axes, keepdims)
    raise ArgumentError(f"linalg.norm: axis={axis} of {value.type} must be one axis or two")


def vector_norm(
    x: ArrayLike,
    /,
    *,
    axis: int | tuple[int, ...] | None = None,
    keepdims: bool = False,
    ord: Any = 2,
) -> Array:
    """A norm of all elements along some axes, seen as one vector; see `norm`.

    >>> import fxarray.numpy as fnp
    >>> fnp.linalg.vector_norm(fnp.ones((2, 2)))
    Array(2., dtype=float32)
    """
    (value,) = promote_dtypes("linalg.vector_norm", x, inexact=True)
    return _of_vectors(value, ord, canonical_axes("linalg.vector_norm", axis, value.ndim), keepdims)


def matrix_norm(x: ArrayLike, /, *, keepdims: bool = False, ord: Any = "fro") -> Array:
    """A norm of matrices, which are the last two dimensions; see `norm`.

    >>> import fxarray.numpy as fnp
    >>> fnp.linalg.matrix_norm(fnp.ones((2, 2)))
    Array(2., dtype=float32)
    """
    value = as_matrices("matrix_norm", x)
    return _of_matrices(value, ord, (value.ndim - 2, value.ndim - 1), keepdims)


def _root(total: Array, root: Any) -> Array:
    """`root(total)`, whose derivative at zero is taken to be zero."""
    zero = elementwise.eq(total, elementwise.number_like(total, 0))
    safe = elementwise.select(zero, elementwise.number_like(total, 1), total)
    return elementwise.select(zero, elementwise.number_like(total, 0), root(safe))


def _of_vectors(x: Array, order: Any, axes: tuple[int, ...], keepdims: bool) -> Array:
    if isinstance(order, str) or order is None:
        raise ArgumentError(f"linalg.norm: ord={order!r} is no norm of vectors; give a number")
    if order == 2:
        parts = elementwise.square(x)
        if elementwise.is_complex(x):
            parts = elementwise.square(elementwise.real(x)) + elementwise.square(
                elementwise.imag(x)
            )
        return _root(reductions.sum(parts, axes, keepdims=keepdims), elementwise.sqrt)
    moduli = elementwise.abs(x)
    if order == math.inf:
        return reductions.max(moduli, axes, keepdims=keepdims)
    if order == -math.inf:
        return reductions.min(moduli, axes, keepdims=keepdims)
    if order == 0:
        count = reductions.sum(not_equal(x, 0), axes, keepdims=keepdims)
        return elementwise.convert(count, moduli.type.dtype)
    if order == 1:
        return reductions.sum(moduli, axes, keepdims=keepdims)
    total = reductions.sum(_root(moduli, lambda v: v**order), axes, keepdims=keepdims)
    if order < 0:
        # A zero makes a negative power infinite, and the norm zero.
        total = reductions.sum(moduli**order, axes, keepdims=keepdims)
    return _root(total, lambda v: v ** (1.0 / order))


def _of_matrices(x: Array, order: Any, axes: tuple[int, ...], keepdims: bool) -> Array:
    row, column = axes
    if row == column:
        raise AxisError(f"linalg.norm: the axes of matrices are both {row}")
    if order == "fro":
        return _of_vectors(x, 2, axes, keepdims)
    if order in (1, -1, math.inf, -math.inf):
        summed, rest = (row, column) if abs(order) == 1 else (column, row)
        totals = reductions.sum(elementwise.abs(x), summed, keepdims=True)
        extreme = reductions.max if order > 0 else reductions.min
        return extreme(totals, (summed, rest), keepdims=keepdims)
    if order not in (2, -2, "nuc"):
        raise ArgumentError(
            f"linalg.norm: ord={order!r} of matrices must be one of {MATRIX_ORDERS}"
        )
    matrices = move_axis(x, row, x.ndim - 1)
    matrices = move_axis(matrices, column - (column > row), x.ndim - 1)
    values = svdvals(matrices)
    if order == "nuc":
        result = reductions.sum(values, -1)
    else:
        result = reductions.max(values, -1) if order == 2 else reductions.min(values, -1)
    return expand_reduced(result, axes, x.ndim) if keepdims else result


def cond(x: ArrayLike, p: Any = None) -> Array:
    """Condition numbers: a norm of matrices times that of their inverses.

    Args:
      x: shape (..., m, n); square unless p is None, 2 or -2.
      p: the norm; see `norm`. Default: 2.

    Returns:
      Shape (...); inf for singular matrices.

    >>> import fxarray.numpy as fnp
    >>> fnp.linalg.cond(fnp.diag(fnp.array([4.0, 2.0])))
    Array(2., dtype=float32)
    """
    value = as_matrices("cond", x, square=p not in (None, 2, -2))
    if any(dims.same(size, 0) for size in value.shape[-2:]):
        raise ShapeError(f"linalg.cond is not defined for empty matrices, got {value.type}")
    if p in (None, 2, -2):
        values = svdvals(value)
        first, last = values[..., 0], values[..., -1]
        ratio = last / first if p == -2 else first / last
    else:
        ratio = norm(value, p, axis=(-2, -1)) * norm(inv(value), p, axis=(-2, -1))
    unknown = reductions.any(isnan(value), axis=(-2, -1))
    return where(isnan(ratio) & ~unknown, math.inf, ratio)


def matrix_rank(
    M: ArrayLike,
    rtol: ArrayLike | None = None,
    *,
    hermitian: bool = False,  # noqa: ARG001
    tol: ArrayLike | None = None,
) -> Array:
    """How many singular values of matrices are not zero.

    Args:
      M: shape (..., m, n); anything of fewer dimensions has rank 1 unless all its elements are 0.
      rtol: singular values up to this part of the largest count as zero. Default: max(m, n) times
        the dtype's precision.
      hermitian: whether the matrices are Hermitian; the result does not depend on it.
      tol: singular values up to this count as zero.

    >>> import fxarray.numpy as fnp
    >>> fnp.linalg.matrix_rank(fnp.ones((3, 3)))
    Array(1, dtype=int32)
    """
    (value,) = promote_dtypes("linalg.matrix_rank", M, inexact=True)
    if value.ndim < 2:
        return elementwise.convert(reductions.any(not_equal(value, 0)), dtypes.int32)
    if rtol is not None and tol is not None:
        raise ArgumentError("linalg.matrix_rank: give rtol or tol, not both")
    values = svdvals(value)
    if dims.same(values.shape[-1], 0):
        return reductions.sum(values, -1, dtype="int32")
    if tol is not None:
        (cutoff,) = promote_dtypes("linalg.matrix_rank", tol)
    else:
        m, n = value.shape[-2:]
        size: Any = max(m, n) if type(m) is int and type(n) is int else dims.dim_max(m, n)
        part = size * float(dtypes.finfo(values.type.dtype).eps) if rtol is None else rtol
        cutoff = values[..., 0] * part
    if cutoff.ndim:
        cutoff = reshape(cutoff, (*cutoff.shape, 1))
    return reductions.sum(greater(values, cutoff), -1)
