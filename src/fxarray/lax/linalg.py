"""Linear algebra on stacks of matrices, which are the last two dimensions of an array.

Operands are float or complex. Decompositions are LAPACK's, signs and phases included. Where one
fails (a matrix that is not positive definite, an iteration that does not converge) its results
are NaN, not an error.
"""

from __future__ import annotations

from typing import Any

from fxarray.core.array import Array
from fxarray.core.errors import ArgumentError, ShapeError
from fxarray.lax.operands import ArrayLike, as_operand, as_operands
from fxarray.primitives import linalg
from fxarray.primitives.contract import matmul
from fxarray.primitives.elementwise import add
from fxarray.primitives.linalg_base import (
    adjoint,
    lower_triangle,
    matrix_transpose,
    upper_triangle,
)
from fxarray.primitives.movement import reshape

__all__ = [
    "cholesky",
    "cholesky_update",
    "eig",
    "eigh",
    "geqrf",
    "householder_product",
    "lu",
    "lu_pivots_to_permutation",
    "qr",
    "svd",
    "symmetric_product",
    "triangular_solve",
]


def symmetrize(x: Any) -> Any:
    """The Hermitian part of `x`."""
    return add(x, adjoint(x)) * 0.5


def _square(function: str, x: Any) -> Array:
    value = as_operand(function, x)
    if value.ndim < 2:
        raise ShapeError(f"lax.linalg.{function} takes at least 2 dimensions, got {value.type}")
    return value


def cholesky(x: ArrayLike, *, symmetrize_input: bool = True) -> Array:
    """The lower triangular L with `L @ L^H == x`, of Hermitian positive definite matrices.

    Args:
      x: shape (..., n, n).
      symmetrize_input: whether to take the Hermitian part of `x` first, so that gradients are
        Hermitian. If not, only the lower triangle is read, and has a gradient.

    Returns:
      Shape (..., n, n); NaN where a matrix is not positive definite.

    >>> from fxarray import lax, numpy as fnp
    >>> lax.linalg.cholesky(fnp.array([[4.0, 2.0], [2.0, 5.0]]))
    Array([[2., 0.],
           [1., 2.]], dtype=float32)
    """
    value = _square("cholesky", x)
    return linalg.Cholesky()(symmetrize(value) if symmetrize_input else value)


def cholesky_update(r_matrix: ArrayLike, w_vector: ArrayLike) -> Array:
    """The upper triangular factor of `R^T R + w w^T`, given that of `R^T R`.

    Args:
      r_matrix: upper triangular R, shape (n, n), of real numbers.
      w_vector: w, shape (n,).

    >>> from fxarray import lax, numpy as fnp
    >>> lax.linalg.cholesky_update(2 * fnp.eye(1), fnp.ones(1))
    Array([[2.236068]], dtype=float32)
    """
    r, w = as_operands("linalg.cholesky_update", r_matrix, w_vector)
    r = upper_triangle(r)
    row = reshape(w, (*w.shape[:-1], 1, w.shape[-1]))
    both = add(matmul(matrix_transpose(r), r), matmul(matrix_transpose(row), row))
    return matrix_transpose(linalg.Cholesky()(both))


def lu(x: ArrayLike) -> tuple[Array, Array, Array]:
    """LU factorisation with partial pivoting: `x[..., permutation, :] == L @ U`.

    Args:
      x: shape (..., m, n).

    Returns:
      A matrix of the shape of `x` with U in its upper triangle and L, whose diagonal is ones, below
      it; the pivots, int32 (..., min(m, n)): row i was exchanged with row pivots[i]; and the
      permutation of rows that they come to, int32 (..., m).

    >>> from fxarray import lax, numpy as fnp
    >>> lax.linalg.lu(fnp.array([[1.0, 2.0], [4.0, 4.0]]))[2]
    Array([1, 0], dtype=int32)
    """
    factors, pivots, permutation = linalg.Lu()(_square("lu", x))
    return factors, pivots, permutation


def lu_pivots_to_permutation(pivots: ArrayLike, permutation_size: int) -> Array:
    """The permutation of rows that successive exchanges come to.

    Args:
      pivots: int32, shape (..., k): row i is exchanged with row pivots[i].
      permutation_size: the number of rows.

    >>> from fxarray import lax, numpy as fnp
    >>> lax.linalg.lu_pivots_to_permutation(fnp.array([2, 1]), 3)
    Array([2, 1, 0], dtype=int32)
    """
    return linalg.LuPivotsToPermutation(permutation_size)(
        as_operand("linalg.lu_pivots_to_permutation", pivots)
    )


def qr(
    x: ArrayLike,
    *,
    pivoting: bool = False,
    full_matrices: bool = True,
    use_magma: Any = None,  # noqa: ARG001
) -> tuple[Array, ...]:
    """`x == Q @ R` with orthonormal columns of Q, and R upper triangular.

    Args:
      x: shape (..., m, n).
      pivoting: whether to exchange columns so that the diagonal of R falls.
      full_matrices: whether Q is (m, m) and R (m, n), not (m, k) and (k, n), k = min(m, n).
      use_magma: not used.

    Returns:
      Q and R, and, with pivoting, the int32 order of the columns: `x[..., order] == Q @ R`.

    >>> from fxarray import lax, numpy as fnp
    >>> q, r = lax.linalg.qr(fnp.ones((3, 2)), full_matrices=False)
    >>> q.shape, r.shape
    ((3, 2), (2, 2))
    """
    return linalg.Qr(full_matrices, pivoting).bind(_square("qr", x))


def geqrf(a: ArrayLike) -> tuple[Array, Array]:
    """QR as reflectors: R with the reflectors' vectors below it, and their scales.

    Args:
      a: shape (..., m, n).

    Returns:
      Shapes (..., m, n) and (..., min(m, n)); see `householder_product`.
    """
    packed, scales = linalg.Geqrf()(_square("geqrf", a))
    return packed, scales


def householder_product(a: ArrayLike, taus: ArrayLike) -> Array:
    """The first n columns of a product of reflectors 1 - taus[i] v v^H.

    Args:
      a: shape (..., m, n); v is its column i below the diagonal, with 1 on it and 0 above.
      taus: shape (..., k).
    """
    return linalg.HouseholderProduct()(*as_operands("linalg.householder_product", a, taus))


def svd(
    x: ArrayLike,
    *,
    full_matrices: bool = True,
    compute_uv: bool = True,
    subset_by_index: tuple[int, int] | None = None,
    algorithm: Any = None,  # noqa: ARG001
) -> Any:
    """Singular values and vectors: `x == U @ diag(s) @ Vh`.

    Derivatives are finite where singular values repeat, and right for what does not depend on the
    choice of vectors among those of one value.

    Args:
      x: shape (..., m, n).
      full_matrices: whether U is (m, m) and Vh (n, n), not (m, k) and (k, n), k = min(m, n).
      compute_uv: whether to compute U and Vh.
      subset_by_index: not supported, unless it names all.
      algorithm: not used.

    Returns:
      U, s (falling) and Vh; or s alone.

    >>> from fxarray import lax, numpy as fnp
    >>> lax.linalg.svd(fnp.diag(fnp.array([3.0, 4.0])), compute_uv=False)
    Array([4., 3.], dtype=float32)
    """
    value = _square("svd", x)
    _check_subset("svd", subset_by_index, min(value.shape[-2:]))
    return linalg.Svd(full_matrices and compute_uv, compute_uv)(value)


def _check_subset(function: str, subset: Any, size: Any) -> None:
    if subset is not None and tuple(subset) != (0, size):
        raise ArgumentError(
            f"lax.linalg.{function}: subset_by_index={subset!r} is not supported; compute all, "
            f"and take what you need"
        )


def eigh(
    x: ArrayLike,
    *,
    lower: bool = True,
    symmetrize_input: bool = True,
    sort_eigenvalues: bool = True,  # noqa: ARG001
    subset_by_index: tuple[int, int] | None = None,
    implementation: Any = None,  # noqa: ARG001
) -> tuple[Array, Array]:
    """Eigenvectors and eigenvalues of Hermitian matrices: `x @ v == v @ diag(w)`.

    Derivatives are finite where eigenvalues repeat, and right for what does not depend on the
    choice of vectors among those of one value.

    Args:
      x: shape (..., n, n).
      lower: which triangle is read, if `symmetrize_input` is false.
      symmetrize_input: whether to take the Hermitian part of `x` first.
      sort_eigenvalues: they are always in rising order.
      subset_by_index: not supported, unless it names all.
      implementation: not used.

    Returns:
      v, shape (..., n, n), and w, real, shape (..., n).

    >>> from fxarray import lax, numpy as fnp
    >>> lax.linalg.eigh(fnp.array([[2.0, 1.0], [1.0, 2.0]]))[1]
    Array([1., 3.], dtype=float32)
    """
    value = _square("eigh", x)
    _check_subset("eigh", subset_by_index, value.shape[-1])
    v, w = linalg.Eigh(lower)(symmetrize(value) if symmetrize_input else value)
    return v, w


def eig(
    x: ArrayLike,
    *,
    compute_left_eigenvectors: bool = True,
    compute_right_eigenvectors: bool = True,
    enable_eigvec_derivs: bool = True,  # noqa: ARG001
    implementation: Any = None,  # noqa: ARG001
    use_magma: Any = None,  # noqa: ARG001
) -> list[Array]:
    """Eigenvalues and eigenvectors of square matrices.

    Args:
      x: shape (..., n, n).
      compute_left_eigenvectors: whether to return u with `u^H @ x == diag(w) @ u^H`.
      compute_right_eigenvectors: whether to return v with `x @ v == v @ diag(w)`.
      enable_eigvec_derivs: vectors have derivatives either way: those of vectors of length 1 whose
        largest component is real, as LAPACK makes them.
      implementation: not used.
      use_magma: not used.

    Returns:
      w, shape (..., n), then u and v as wanted, shape (..., n, n). All are complex.

    >>> from fxarray import lax, numpy as fnp
    >>> w, v = lax.linalg.eig(fnp.array([[0.0, 1.0], [-1.0, 0.0]]), compute_left_eigenvectors=False)
    >>> w
    Array([0.+1.j, 0.-1.j], dtype=complex64)
    """
    op = linalg.Eig(compute_left_eigenvectors, compute_right_eigenvectors)
    return list(op.bind(_square("eig", x)))


def triangular_solve(
    a: ArrayLike,
    b: ArrayLike,
    *,
    left_side: bool = False,
    lower: bool = False,
    transpose_a: bool = False,
    conjugate_a: bool = False,
    unit_diagonal: bool = False,
) -> Array:
    """The x with `op(a) @ x == b`, or `x @ op(a) == b`, where `a` is triangular.

    Args:
      a: shape (..., n, n); the other triangle is not read.
      b: shape (..., n, k) if op(a) stands on the left, else (..., k, n); or (..., n).
      left_side: whether op(a) stands on the left.
      lower: whether `a` is lower triangular, not upper.
      transpose_a: whether op transposes.
      conjugate_a: whether op conjugates.
      unit_diagonal: whether to take the diagonal as ones.

    Raises:
      ShapeError: shapes do not fit.

    >>> from fxarray import lax, numpy as fnp
    >>> a = fnp.array([[2.0, 0.0], [1.0, 1.0]])
    >>> lax.linalg.triangular_solve(a, fnp.array([4.0, 5.0]), left_side=True, lower=True)
    Array([2., 3.], dtype=float32)
    """
    matrix, right = as_operands("linalg.triangular_solve", a, b)
    op = linalg.TriangularSolve(left_side, lower, transpose_a, conjugate_a, unit_diagonal)
    if right.ndim and right.ndim == matrix.ndim - 1:
        shape = right.shape
        inner = (*shape, 1) if left_side else (*shape[:-1], 1, shape[-1])
        return reshape(op(matrix, reshape(right, inner)), shape)
    return op(matrix, right)


def symmetric_product(
    a_matrix: ArrayLike,
    c_matrix: ArrayLike,
    *,
    alpha: float = 1.0,
    beta: float = 0.0,
    symmetrize_output: bool = False,
) -> Array:
    """`alpha * A @ A^T + beta * C`, where C is symmetric.

    Args:
      a_matrix: A, shape (..., m, n).
      c_matrix: C, shape (..., m, m).
      alpha: a factor.
      beta: a factor.
      symmetrize_output: whether the upper triangle is that of the result, not of `C` alone; it is
        always right here.
    """
    a, c = as_operands("linalg.symmetric_product", a_matrix, c_matrix)
    product = matmul(a, matrix_transpose(a)) * alpha + c * beta
    if not symmetrize_output:
        return product
    strict = lower_triangle(product, -1)
    return add(lower_triangle(product), matrix_transpose(strict))
