"""Decompositions of matrices."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from fxarray.core.array import Array
from fxarray.core.errors import ArgumentError
from fxarray.lax import linalg as lax_linalg
from fxarray.numpy.linalg.operands import as_matrices
from fxarray.numpy.promotion import ArrayLike
from fxarray.numpy.sorting import argsort
from fxarray.numpy.taking import take_along_axis
from fxarray.primitives import linalg
from fxarray.primitives.elementwise import abs, convert, mul, sign
from fxarray.primitives.linalg_base import adjoint, matrix_transpose, rows


class EigResult(NamedTuple):
    """Eigenvalues and right eigenvectors."""

    eigenvalues: Array
    eigenvectors: Array


class EighResult(NamedTuple):
    """Eigenvalues, rising, and eigenvectors of Hermitian matrices."""

    eigenvalues: Array
    eigenvectors: Array


class QRResult(NamedTuple):
    """An orthonormal and an upper triangular factor."""

    Q: Array
    R: Array


class SVDResult(NamedTuple):
    """Left singular vectors, singular values, and right singular vectors, conjugated, as rows."""

    U: Array
    S: Array
    Vh: Array


def cholesky(a: ArrayLike, *, upper: bool = False, symmetrize_input: bool = True) -> Array:
    """The triangular factor L of Hermitian positive definite matrices: `a == L @ L^H`.

    Args:
      a: shape (..., n, n).
      upper: whether to return L^H.
      symmetrize_input: whether to take the Hermitian part of `a` first, so that gradients are
        Hermitian; if not, only the triangle is read that is returned.

    Returns:
      Shape (..., n, n); NaN where a matrix is not positive definite.

    >>> import fxarray.numpy as fnp
    >>> fnp.linalg.cholesky(fnp.array([[4.0, 2.0], [2.0, 5.0]]))
    Array([[2., 0.],
           [1., 2.]], dtype=float32)
    """
    x = as_matrices("cholesky", a, square=True)
    if upper and not symmetrize_input:
        x = adjoint(x)
    factor = lax_linalg.cholesky(x, symmetrize_input=symmetrize_input)
    return adjoint(factor) if upper else factor


def qr(
    a: ArrayLike, mode: Literal["reduced", "complete", "r", "raw"] = "reduced"
) -> Array | QRResult:
    """`a == Q @ R` with orthonormal columns of Q, and R upper triangular.

    Args:
      a: shape (..., m, n).
      mode: "reduced": Q is (m, k) and R (k, n), where k = min(m, n). "complete": Q is (m, m) and R
        (m, n). "r": only the reduced R. "raw": the reflectors, transposed, and their scales.

    Raises:
      ArgumentError: another mode.

    >>> import fxarray.numpy as fnp
    >>> fnp.linalg.qr(fnp.ones((3, 2))).R.shape
    (2, 2)
    """
    x = as_matrices("qr", a)
    if mode == "raw":
        packed, scales = lax_linalg.geqrf(x)
        return QRResult(matrix_transpose(packed), scales)
    if mode not in ("reduced", "complete", "r"):
        raise ArgumentError(f'linalg.qr: mode={mode!r} must be "reduced", "complete", "r" or "raw"')
    q, r = lax_linalg.qr(x, full_matrices=mode == "complete")
    return r if mode == "r" else QRResult(q, r)


def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    compute_uv: bool = True,
    hermitian: bool = False,
    subset_by_index: tuple[int, int] | None = None,
) -> Array | SVDResult:
    """Singular values and vectors: `a == U @ diag(S) @ Vh`.

    Derivatives are finite where singular values repeat, and right for what does not depend on the
    choice of vectors among those of one value.

    Args:
      a: shape (..., m, n).
      full_matrices: whether U is (m, m) and Vh (n, n), not (m, k) and (k, n), k = min(m, n).
      compute_uv: whether to return U and Vh, or S alone.
      hermitian: whether the matrices are Hermitian, which is faster.
      subset_by_index: not supported, unless it names all.

    >>> import fxarray.numpy as fnp
    >>> fnp.linalg.svd(fnp.diag(fnp.array([3.0, 4.0]))).S
    Array([4., 3.], dtype=float32)
    """
    x = as_matrices("svd", a, square=hermitian)
    if hermitian:
        return _svd_of_hermitian(x, compute_uv)
    found = lax_linalg.svd(
        x, full_matrices=full_matrices, compute_uv=compute_uv, subset_by_index=subset_by_index
    )
    return SVDResult(*found) if compute_uv else found


def _svd_of_hermitian(x: Array, compute_uv: bool) -> Array | SVDResult:
    # With eigenvalues w: |w| are the singular values, and the signs of w go to U.
    v, w = lax_linalg.eigh(x)
    order: Any = argsort(-abs(w), axis=-1)
    w = take_along_axis(w, order, axis=-1)
    if not compute_uv:
        return abs(w)
    n = x.shape[-1]
    v = take_along_axis(v, rows(order, n), axis=-1)
    signs = convert(rows(sign(w), n), v.type.dtype)
    return SVDResult(mul(v, signs), abs(w), adjoint(v))


def svdvals(x: ArrayLike, /) -> Array:
    """Singular values, falling.

    Args:
      x: shape (..., m, n).

    >>> import fxarray.numpy as fnp
    >>> fnp.linalg.svdvals(fnp.eye(2))
    Array([1., 1.], dtype=float32)
    """
    return lax_linalg.svd(as_matrices("svdvals", x), compute_uv=False)


def eigh(a: ArrayLike, UPLO: str | None = None, symmetrize_input: bool = True) -> EighResult:
    """Eigenvalues, rising, and eigenvectors of Hermitian matrices.

    Derivatives are finite where eigenvalues repeat, and right for what does not depend on the
    choice of vectors among those of one value.

    Args:
      a: shape (..., n, n).
      UPLO: "L" or "U": the triangle that is read, if `symmetrize_input` is false. Default: "L".
      symmetrize_input: whether to take the Hermitian part of `a` first.

    Raises:
      ArgumentError: another UPLO.

    >>> import fxarray.numpy as fnp
    >>> fnp.linalg.eigh(fnp.array([[2.0, 1.0], [1.0, 2.0]])).eigenvalues
    Array([1., 3.], dtype=float32)
    """
    x = as_matrices("eigh", a, square=True)
    lower = _is_lower("eigh", UPLO)
    v, w = lax_linalg.eigh(x, lower=lower, symmetrize_input=symmetrize_input)
    return EighResult(w, v)


def _is_lower(function: str, half: str | None) -> bool:
    if half not in (None, "L", "U"):
        raise ArgumentError(f'linalg.{function}: UPLO={half!r} must be "L" or "U"')
    return half != "U"


def eigvalsh(a: ArrayLike, UPLO: str | None = "L", *, symmetrize_input: bool = True) -> Array:
    """Eigenvalues, rising, of Hermitian matrices; see `eigh`.

    >>> import fxarray.numpy as fnp
    >>> fnp.linalg.eigvalsh(fnp.array([[2.0, 1.0], [1.0, 2.0]]))
    Array([1., 3.], dtype=float32)
    """
    x = as_matrices("eigvalsh", a, square=True)
    lower = _is_lower("eigvalsh", UPLO)
    return linalg.Eigh(lower, False)(lax_linalg.symmetrize(x) if symmetrize_input else x)


def eig(a: ArrayLike) -> EigResult:
    """Eigenvalues and eigenvectors of square matrices; both are complex.

    Args:
      a: shape (..., n, n).

    >>> import fxarray.numpy as fnp
    >>> fnp.linalg.eig(fnp.diag(fnp.array([1.0, 2.0]))).eigenvalues
    Array([1.+0.j, 2.+0.j], dtype=complex64)
    """
    x = as_matrices("eig", a, square=True)
    return EigResult(*lax_linalg.eig(x, compute_left_eigenvectors=False))


def eigvals(a: ArrayLike) -> Array:
    """Eigenvalues of square matrices, complex.

    Args:
      a: shape (..., n, n).

    >>> import fxarray.numpy as fnp
    >>> fnp.linalg.eigvals(fnp.diag(fnp.array([1.0, 2.0])))
    Array([1.+0.j, 2.+0.j], dtype=complex64)
    """
    x = as_matrices("eigvals", a, square=True)
    (w,) = lax_linalg.eig(x, compute_left_eigenvectors=False, compute_right_eigenvectors=False)
    return w
