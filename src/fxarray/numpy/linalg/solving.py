"""Linear equations, inverses and determinants."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from fxarray.core import dims, dtypes
from fxarray.core.array import Array
from fxarray.core.errors import ArgumentError, ShapeError
from fxarray.numpy.comparison import greater
from fxarray.numpy.conversion import asarray, cast_to
from fxarray.numpy.creation import zeros
from fxarray.numpy.linalg.operands import as_matrices
from fxarray.numpy.linear_algebra import matmul
from fxarray.numpy.promotion import ArrayLike, broadcast_array, common_shape, promote_dtypes
from fxarray.numpy.reductions import sum
from fxarray.numpy.shapes import moveaxis
from fxarray.primitives import linalg
from fxarray.primitives.elementwise import abs, square
from fxarray.primitives.linalg_triangular import fold_columns
from fxarray.primitives.movement import reshape


class SlogdetResult(NamedTuple):
    """The sign (or phase) of a determinant, and the logarithm of its modulus."""

    sign: Array
    logabsdet: Array


def solve(a: ArrayLike, b: ArrayLike) -> Array:
    """The x with `a @ x == b`, by LU factorisation.

    Derivatives are those of the equation (implicit), not those of the factorisation.

    Args:
      a: shape (..., n, n).
      b: shape (n,) or (..., n, k); leading dimensions broadcast.

    Returns:
      Shape (..., n) or (..., n, k); infinities or NaN where a matrix is singular.

    Raises:
      ShapeError: shapes do not fit.

    >>> import fxarray.numpy as fnp
    >>> fnp.linalg.solve(fnp.array([[2.0, 0.0], [0.0, 4.0]]), fnp.ones(2))
    Array([0.5 , 0.25], dtype=float32)
    """
    x, y = promote_dtypes("linalg.solve", a, b, inexact=True)
    as_matrices("solve", x, square=True)
    if not y.ndim:
        raise ShapeError(f"linalg.solve: b must have at least 1 dimension, got {y.type}")
    n = x.shape[-1]
    vector = y.ndim == 1
    if not dims.same(y.shape[0 if vector else -2], n):
        raise ShapeError(
            f"linalg.solve: b is {y.type}, which does not have the {n} rows of {x.type}"
        )
    if vector:
        y = reshape(y, (n, 1))
    if x.ndim == 2 and y.ndim > 2:  # one matrix: its right-hand sides are columns of one
        stack = y.shape[:-2]
        flat = reshape(y, (dims.shape_product(stack), *y.shape[-2:]))
        folded, unfold = fold_columns(flat, 0, True)
        return reshape(unfold(linalg.solve(x, folded)), y.shape)
    stack = common_shape("linalg.solve", [x.shape[:-2], y.shape[:-2]])
    # Each matrix is factored once, whatever it is broadcast with.
    matrix, factors, permutation = linalg.factored(x)
    result = linalg.FactoredSolve()(
        broadcast_array(matrix, (*stack, n, n)),
        broadcast_array(factors, (*stack, n, n)),
        broadcast_array(permutation, (*stack, n)),
        broadcast_array(y, (*stack, *y.shape[-2:])),
    )
    return reshape(result, result.shape[:-1]) if vector else result


def inv(a: ArrayLike) -> Array:
    """Inverses of square matrices; infinities or NaN where there is none.

    Args:
      a: shape (..., n, n).

    >>> import fxarray.numpy as fnp
    >>> fnp.linalg.inv(2 * fnp.eye(2))
    Array([[0.5, 0. ],
           [0. , 0.5]], dtype=float32)
    """
    return linalg.inverse(as_matrices("inv", a, square=True))


def det(a: ArrayLike) -> Array:
    """Determinants of square matrices.

    Gradients are the matrices of cofactors, exact also where a matrix is singular; derivatives
    exist to second order.

    Args:
      a: shape (..., n, n).

    >>> import fxarray.numpy as fnp
    >>> fnp.linalg.det(2 * fnp.eye(3))
    Array(8., dtype=float32)
    """
    return linalg.Determinant()(as_matrices("det", a, square=True))


def slogdet(a: ArrayLike, *, method: str | None = None) -> SlogdetResult:
    """The sign (or phase) of determinants, and the logarithm of their modulus.

    Args:
      a: shape (..., n, n).
      method: None, "lu" or "qr"; the result does not depend on it.

    Returns:
      sign, 0 for singular matrices, and logabsdet, -inf for these.

    >>> import fxarray.numpy as fnp
    >>> fnp.linalg.slogdet(-fnp.eye(3))
    SlogdetResult(sign=Array(-1., dtype=float32), logabsdet=Array(0., dtype=float32))
    """
    if method not in (None, "lu", "qr"):
        raise ArgumentError(f'linalg.slogdet: method={method!r} must be None, "lu" or "qr"')
    return SlogdetResult(*linalg.LogDeterminant()(as_matrices("slogdet", a, square=True)))


def _relative_cutoff(x: Array, given: Any, default: float) -> Array:
    """The part of the largest singular value up to which others count as zero, per matrix."""
    dtype = dtypes.to_real(x.type.dtype)
    if given is None:
        m, n = x.shape[-2:]
        largest: Any = max(m, n) if type(m) is int and type(n) is int else dims.dim_max(m, n)
        given = largest * (default * float(dtypes.finfo(dtype).eps))
    part = cast_to(asarray(given), dtype)
    return broadcast_array(part, x.shape[:-2])


def pinv(
    a: ArrayLike,
    rtol: ArrayLike | None = None,
    hermitian: bool = False,
    *,
    rcond: ArrayLike | None = None,
) -> Array:
    """The pseudo-inverse of Moore and Penrose.

    Args:
      a: shape (..., m, n).
      rtol: singular values up to this part of the largest count as zero. Default: 10 max(m, n)
        times the dtype's precision.
      hermitian: whether the matrices are Hermitian; the result does not depend on it.
      rcond: another name of rtol.

    Returns:
      Shape (..., n, m).

    >>> import fxarray.numpy as fnp
    >>> fnp.linalg.pinv(fnp.array([[2.0], [0.0]]))
    Array([[0.5, 0. ]], dtype=float32)
    """
    x = as_matrices("pinv", a, square=hermitian)
    if rtol is not None and rcond is not None:
        raise ArgumentError("linalg.pinv: rtol and rcond are two names of one argument; give one")
    part = _relative_cutoff(x, rcond if rtol is None else rtol, 10.0)
    return linalg.PseudoInverse()(x, part)


def lstsq(
    a: ArrayLike, b: ArrayLike, rcond: float | None = None, *, numpy_resid: bool = False
) -> tuple[Array, Array, Array, Array]:
    """The shortest x for which `a @ x` is closest to `b`.

    Args:
      a: shape (m, n).
      b: shape (m,) or (m, k).
      rcond: singular values up to this part of the largest count as zero. Default: max(m, n)
        times the dtype's precision; negative: the precision.
      numpy_resid: whether residuals are empty where NumPy's are: if the rank of `a` is not n, or m
        is not greater than n. This cannot be traced.

    Returns:
      x, shape (n,) or (n, k); the sums of squares of what remains, one per column of b; the rank of
      `a`; its singular values.

    Raises:
      ShapeError: shapes do not fit.

    >>> import fxarray.numpy as fnp
    >>> fnp.linalg.lstsq(fnp.array([[2.0], [0.0]]), fnp.array([4.0, 3.0]))[0]
    Array([2.], dtype=float32)
    """
    x, y = promote_dtypes("linalg.lstsq", a, b, inexact=True)
    if x.ndim != 2 or y.ndim not in (1, 2) or not dims.same(x.shape[0], y.shape[0]):
        raise ShapeError(
            f"linalg.lstsq takes a of shape (m, n) and b of shape (m,) or (m, k), got {x.type} and "
            f"{y.type}"
        )
    vector = y.ndim == 1
    if vector:
        y = reshape(y, (*y.shape, 1))
    negative = isinstance(rcond, int | float) and rcond < 0
    part = _relative_cutoff(x, float(dtypes.finfo(x.type.dtype).eps) if negative else rcond, 1.0)
    found = matmul(linalg.PseudoInverse()(x, part), y)
    values = linalg.Svd(False, False)(x)
    largest = values[:1]  # none, if the matrix is empty
    rank = sum(greater(values, part * largest))
    residuals = sum(square(abs(y - matmul(x, found))), axis=0)
    m, n = x.shape
    if numpy_resid and (rank.item() < n or m <= n):
        residuals = zeros((0,), residuals.dtype)
    return (reshape(found, found.shape[:1]) if vector else found), residuals, rank, values


def tensorinv(a: ArrayLike, ind: int = 2) -> Array:
    """The inverse of `a` as a linear map from its last dimensions to its first.

    Args:
      a: an array whose first `ind` dimensions have as many elements as the others.
      ind: how many dimensions the results of the map have.

    >>> import fxarray.numpy as fnp
    >>> fnp.linalg.tensorinv(fnp.eye(4).reshape(2, 2, 4)).shape
    (4, 2, 2)
    """
    (x,) = promote_dtypes("linalg.tensorinv", a, inexact=True)
    if ind <= 0:
        raise ArgumentError(f"linalg.tensorinv: ind must be positive, got {ind}")
    first, last = x.shape[:ind], x.shape[ind:]
    size = math.prod(first)
    if size != math.prod(last):
        raise ShapeError(
            f"linalg.tensorinv: the first {ind} dimensions of {x.type} must have as many elements "
            f"as the others"
        )
    return reshape(inv(reshape(x, (size, size))), (*last, *first))


def tensorsolve(a: ArrayLike, b: ArrayLike, axes: Sequence[int] | None = None) -> Array:
    """The x with `tensordot(a, x, x.ndim) == b`.

    Args:
      a: an array whose first dimensions are those of `b`.
      b: an array.
      axes: axes of `a` to move to the end first.

    >>> import fxarray.numpy as fnp
    >>> fnp.linalg.tensorsolve(fnp.eye(4).reshape(2, 2, 4), fnp.ones((2, 2)))
    Array([1., 1., 1., 1.], dtype=float32)
    """
    x, y = promote_dtypes("linalg.tensorsolve", a, b, inexact=True)
    if axes is not None:
        x = moveaxis(x, tuple(axes), tuple(range(x.ndim - len(axes), x.ndim)))
    shape = x.shape[y.ndim :]
    size = math.prod(shape)
    if x.shape[: y.ndim] != y.shape or size != y.size:
        raise ShapeError(
            f"linalg.tensorsolve: {x.type} is no square map onto arrays of the shape of {y.type}"
        )
    return reshape(solve(reshape(x, (size, size)), reshape(y, (size,))), shape)
