"""Singular values and vectors, and eigenvalues and eigenvectors.

Vectors are determined up to a factor of modulus 1 each, and where values repeat, up to a rotation
of those that share one. Derivative rules are those of the turn that leaves each of these groups in
place, so they are finite, and right for functions that depend on the subspaces alone. (A function
that tells apart the vectors of one group has no derivative there, and one that recombines them with
their values, as U diag(f(s)) V^H, is not differentiable through them.)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import scipy

from fxarray.core import dims, dtypes
from fxarray.core.errors import DTypeError, ShapeError
from fxarray.core.primitive import Sample, Zero
from fxarray.core.types import ArrayType
from fxarray.primitives.contract import matmul
from fxarray.primitives.elementwise import (
    abs,
    add,
    complex,
    conj,
    convert,
    div,
    eq,
    imag,
    is_complex,
    mul,
    neg,
    number_like,
    real,
    select,
    sub,
)
from fxarray.primitives.joining import concatenate
from fxarray.primitives.linalg_base import (
    MatrixOperation,
    adjoint,
    clear_diagonal,
    columns,
    diagonal,
    for_each_matrix,
    from_library,
    reciprocal_or_zero,
    rows,
    smaller,
    spread_tolerance,
    stacked_or_each,
    to_library,
)
from fxarray.primitives.linalg_lu import solve
from fxarray.primitives.linalg_triangular import hermitian
from fxarray.primitives.reduce import reduce_sum
from fxarray.primitives.reductions import ReduceMax
from fxarray.primitives.slicing import slice_in_axis
from fxarray.primitives.support import Values


def real_diagonal(x: Any) -> Any:
    """The real part of the diagonal."""
    line = diagonal(x)
    return real(line) if is_complex(line) else line


def cast_like(x: Any, other: Any) -> Any:
    """Real factors in the dtype of what they multiply."""
    return convert(x, other.type.dtype)


class Svd(MatrixOperation, name="svd"):
    """a = U diag(s) V^H; results are U, s and V^H, or s alone. s falls.

    Args:
      full_matrices: whether U and V are square.
      compute_uv: whether U and V are wanted.
    """

    full_matrices: bool
    compute_uv: bool

    @property
    def pattern(self) -> str:
        if not self.compute_uv:
            return "mn->k"
        return "mn->mm,k,nn" if self.full_matrices else "mn->mk,k,kn"

    def infer(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        self.check_dtypes(types)
        dtype = types[0].dtype
        values = dtypes.to_real(dtype)
        return self.result_types(types, *([dtype, values] if self.compute_uv else [values]))

    def reference(self, *arrays: Values) -> tuple[Values, ...]:
        (x,) = to_library(*arrays)
        own, library = arrays[0].dtype, x.dtype
        m, n = x.shape[-2:]
        k = min(m, n)
        real_own = dtypes.to_real(own)
        real_library: Any = dtypes.to_real(library)
        if not self.compute_uv:
            function: Any = lambda y: np.linalg.svd(y, compute_uv=False)  # noqa: E731
            values = stacked_or_each(function, [x], [((k,), real_library)])
            return from_library(values, [real_own])
        full = self.full_matrices
        left, right = (m, n) if full else (k, k)
        decompose: Any = lambda y: tuple(np.linalg.svd(y, full))  # noqa: E731
        results = [((m, left), library), ((k,), real_library), ((right, n), library)]
        values = stacked_or_each(decompose, [x], results)
        return from_library(values, [own, real_own, own])

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        (da,) = tangents
        if type(da) is Zero:
            outputs = self.bind(*primals)
            return outputs, tuple(Zero(output.type.tangent()) for output in outputs)
        if self.compute_uv:
            outputs = self.bind(*primals)
            u, s, vh = outputs
            return outputs, self._tangents(u, s, vh, da)
        # Values alone: ds = Re diag(U^H dA V).
        u, s, vh = Svd(False, True)(*primals)
        return (s,), (real_diagonal(matmul(matmul(adjoint(u), da), adjoint(vh))),)

    def _tangents(self, u: Any, s: Any, vh: Any, da: Any) -> tuple[Any, Any, Any]:
        # With dP = U^H dA V, and the turns A = U^H dU and B = V^H dV, both skew-Hermitian:
        #   dP = A S + dS - S B.
        # Its Hermitian and skew-Hermitian parts X, Y (times two) give, off the diagonal,
        #   (A + B)_ij = X_ij / (s_j - s_i),   (A - B)_ij = Y_ij / (s_j + s_i),
        # the latter also on it (Giles, An extended collection of matrix derivative results, 2008,
        # section 3.2, split so that equal singular values harm the first alone). What of dU lies
        # outside of the columns of U is dA V S^-1. The columns beyond those of the thin matrices
        # move as little as orthogonality lets them.
        rank = da.type.ndim
        m, n = da.type.shape[-2:]
        k = smaller(m, n)
        u1, vh1 = slice_in_axis(u, 0, k, rank - 1), slice_in_axis(vh, 0, k, rank - 2)
        v1 = adjoint(vh1)
        image, coimage = matmul(da, v1), matmul(adjoint(da), u1)
        dp = matmul(adjoint(u1), image)
        ds = real_diagonal(dp)
        across, along = rows(s, k), columns(s, k)
        tolerance = spread_tolerance(s)
        differences = reciprocal_or_zero(sub(across, along), tolerance)
        sums = reciprocal_or_zero(add(across, along), tolerance)
        dp_adjoint = adjoint(dp)
        even = mul(clear_diagonal(add(dp, dp_adjoint)), cast_like(differences, dp))
        odd = mul(sub(dp, dp_adjoint), cast_like(sums, dp))
        du = matmul(u1, add(even, odd) * 0.5)
        dv = matmul(v1, sub(even, odd) * 0.5)
        if not dims.same(m, k):
            du = add(du, _outside(u1, image, dp, s, tolerance))
            if self.full_matrices:
                rest = slice_in_axis(u, k, m, rank - 1)
                moved = neg(matmul(u1, matmul(adjoint(du), rest)))
                du = concatenate([du, moved], rank - 1)
        dvh = adjoint(dv)
        if not dims.same(n, k):
            dv = add(dv, _outside(v1, coimage, dp_adjoint, s, tolerance))
            dvh = adjoint(dv)
            if self.full_matrices:
                rest = slice_in_axis(vh, k, n, rank - 2)
                moved = neg(matmul(matmul(rest, dv), vh1))
                dvh = concatenate([dvh, moved], rank - 2)
        return du, ds, dvh

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Any]:
        def normal(*shape: int) -> np.ndarray:
            return rng.normal(size=shape)

        yield Sample(cls(False, True), (np.zeros((0, 0)),))
        yield Sample(cls(False, True), (np.zeros((2, 0)),))
        yield Sample(cls(True, True), (np.zeros((0, 2)),), differentiable=False)
        yield Sample(cls(False, False), (normal(1, 1),))
        yield Sample(cls(False, False), (normal(2, 4, 3),), 64.0)
        yield Sample(cls(False, True), (normal(2, 4, 3),), 64.0)
        yield Sample(cls(False, True), (normal(3, 5),), 64.0)
        yield Sample(cls(True, True), (normal(3, 3),), 64.0)
        yield Sample(cls(False, True), (normal(4, 2).astype("float32"),), 64.0)
        yield Sample(cls(False, False), (normal(4, 2) + 1j * normal(4, 2),), 64.0)
        # Phases of complex vectors, and vectors beyond the thin ones, are LAPACK's choice.
        yield Sample(
            cls(False, True), (normal(4, 2) + 1j * normal(4, 2),), 64.0, differentiable=False
        )
        yield Sample(cls(True, True), (normal(3, 4, 2),), 64.0, differentiable=False)
        yield Sample(cls(True, True), (np.ones(3),), error=ShapeError)
        yield Sample(cls(True, True), (np.eye(2, dtype=int),), error=DTypeError)


def _outside(u: Any, image: Any, inner: Any, s: Any, tolerance: Any) -> Any:
    """(1 - U U^H) dA V S^-1, without the terms of singular values that are zero."""
    rank = u.type.ndim
    m, k = u.type.shape[-2:]
    if dims.same(k, 0):
        return image
    line = slice_in_axis(tolerance, 0, 1, rank - 2)
    inverse = reciprocal_or_zero(rows(s, 1), line)
    inverse = rows(reduce_sum(inverse, (rank - 2,)), m)
    return mul(sub(image, matmul(u, inner)), cast_like(inverse, image))


class Eigh(MatrixOperation, name="eigh"):
    """a = V diag(w) V^H of Hermitian matrices; results are V and w, or w alone. w rises.

    Args:
      from_lower: whether the lower triangle is read, not the upper.
      compute_vectors: whether V is wanted.
    """

    from_lower: bool
    compute_vectors: bool = True

    @property
    def pattern(self) -> str:
        return "nn->nn,n" if self.compute_vectors else "nn->n"

    def infer(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        self.check_dtypes(types)
        dtype = types[0].dtype
        values = dtypes.to_real(dtype)
        return self.result_types(types, *([dtype, values] if self.compute_vectors else [values]))

    def reference(self, *arrays: Values) -> tuple[Values, ...]:
        (x,) = to_library(*arrays)
        own, library = arrays[0].dtype, x.dtype
        n = x.shape[-1]
        half: Any = "L" if self.from_lower else "U"
        real_own = dtypes.to_real(own)
        real_library: Any = dtypes.to_real(library)
        if not self.compute_vectors:
            function: Any = lambda y: np.linalg.eigvalsh(y, half)  # noqa: E731
            values = stacked_or_each(function, [x], [((n,), real_library)])
            return from_library(values, [real_own])
        swapped: Any = lambda y: tuple(np.linalg.eigh(y, half))[::-1]  # noqa: E731
        values = stacked_or_each(swapped, [x], [((n, n), library), ((n,), real_library)])
        return from_library(values, [own, real_own])

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        # With dP = V^H dA V:  dw = Re diag(dP), and V^H dV has dP_ij / (w_j - w_i) off the diagonal
        # (Giles, An extended collection of matrix derivative results, 2008, section 3.1).
        (da,) = tangents
        if type(da) is Zero:
            outputs = self.bind(*primals)
            return outputs, tuple(Zero(output.type.tangent()) for output in outputs)
        v, w = Eigh(self.from_lower)(*primals)
        inner = matmul(adjoint(v), matmul(hermitian(da, self.from_lower), v))
        dw = real_diagonal(inner)
        if not self.compute_vectors:
            return (w,), (dw,)
        n = w.type.shape[-1]
        gaps = reciprocal_or_zero(sub(rows(w, n), columns(w, n)), spread_tolerance(w))
        turn = mul(clear_diagonal(inner), cast_like(gaps, inner))
        return (v, w), (matmul(v, turn), dw)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Any]:
        def normal(*shape: int) -> np.ndarray:
            return rng.normal(size=shape)

        yield Sample(cls(True), (np.zeros((0, 0)),))
        yield Sample(cls(True), (normal(1, 1),))
        yield Sample(cls(True), (normal(2, 3, 3),), 64.0)
        yield Sample(cls(False), (normal(4, 4),), 64.0)
        yield Sample(cls(True, False), (normal(3, 3),), 64.0)
        yield Sample(cls(True), (normal(3, 3).astype("float32"),), 64.0)
        yield Sample(cls(True, False), (normal(3, 3) + 1j * normal(3, 3),), 64.0)
        # Phases of complex vectors are LAPACK's choice.
        yield Sample(cls(False), (normal(3, 3) + 1j * normal(3, 3),), 64.0, differentiable=False)
        yield Sample(cls(True), (np.ones((2, 3)),), error=ShapeError)
        yield Sample(cls(True), (np.eye(2, dtype=int),), error=DTypeError)


class Eig(MatrixOperation, name="eig"):
    """Eigenvalues w of square matrices, and eigenvectors of length 1: a V = V diag(w).

    Results are w, then, as wanted, the left eigenvectors U (U^H a = diag(w) U^H), then V. All are
    complex.
    """

    compute_left: bool
    compute_right: bool

    @property
    def pattern(self) -> str:
        return "nn->n" + ",nn" * self.compute_left + ",nn" * self.compute_right

    def infer(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        self.check_dtypes(types)
        dtype = dtypes.to_complex(types[0].dtype)
        return self.result_types(types, *[dtype] * (1 + self.compute_left + self.compute_right))

    def reference(self, *arrays: Values) -> tuple[Values, ...]:
        (x,) = to_library(*arrays)
        n = x.shape[-1]
        dtype = np.dtype(np.result_type(x.dtype, np.complex64))
        results = [((n,), dtype), *[((n, n), dtype)] * (self.compute_left + self.compute_right)]
        if self.compute_left:
            values = for_each_matrix(self._with_left, (x,), (2,), results)
        else:
            values = stacked_or_each(self._without_left, [x], results)
        return from_library(values, [dtypes.to_complex(arrays[0].dtype)] * len(results))

    def _without_left(self, x: Values) -> tuple[Values, ...]:
        return tuple(np.linalg.eig(x)) if self.compute_right else (np.linalg.eigvals(x),)

    def _with_left(self, x: Values) -> tuple[Values, ...]:
        if not np.isfinite(x).all():
            raise np.linalg.LinAlgError("the matrix has an infinity or a NaN")
        return tuple(scipy.linalg.eig(x, left=True, right=self.compute_right, check_finite=False))

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        (a,), (da,) = primals, tangents
        outputs = self.bind(*primals)
        if type(da) is Zero:
            return outputs, tuple(Zero(output.type.tangent()) for output in outputs)
        w, *vectors = outputs
        right = vectors[-1] if self.compute_right else Eig(False, True)(a)[1]
        da = convert(da, w.type.dtype)
        inner = solve(right, matmul(da, right))
        changes = [diagonal(inner)]
        if self.compute_left:
            # Left eigenvectors are those of the adjoint, whose eigenvalues are conjugate.
            left = vectors[0]
            inner_left = solve(left, matmul(adjoint(da), left))
            changes.append(_vector_tangents(left, conj(w), inner_left))
        if self.compute_right:
            changes.append(_vector_tangents(right, w, inner))
        return outputs, tuple(changes)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Any]:
        def normal(*shape: int) -> np.ndarray:
            return rng.normal(size=shape)

        yield Sample(cls(False, True), (np.zeros((0, 0)),))
        yield Sample(cls(False, True), (normal(1, 1),))
        yield Sample(cls(False, False), (normal(2, 3, 3),), 64.0)
        yield Sample(cls(True, True), (normal(3, 3),), 64.0)
        yield Sample(cls(False, True), (normal(2, 4, 4),), 64.0)
        yield Sample(cls(True, False), (normal(3, 3).astype("float32"),), 64.0)
        yield Sample(cls(True, True), (normal(3, 3) + 1j * normal(3, 3),), 64.0)
        yield Sample(cls(True, True), (np.ones((2, 3)),), error=ShapeError)
        yield Sample(cls(True, True), (np.eye(2, dtype=int),), error=DTypeError)


def _vector_tangents(v: Any, w: Any, inner: Any) -> Any:
    # From a V = V W, with C = V^-1 da V:  V^-1 dV has C_ij / (w_j - w_i) off the diagonal
    # (Boeddeker et al., On the computation of complex-valued gradients with application to
    # statistically optimum beamforming, 2017). Its diagonal is LAPACK's choice of scale: vectors of
    # length 1, whose largest component is real.
    n = w.type.shape[-1]
    rank = v.type.ndim
    gaps = reciprocal_or_zero(sub(rows(w, n), columns(w, n)), spread_tolerance(w))
    dv = matmul(v, mul(clear_diagonal(inner), gaps))
    if dims.same(n, 0):
        return dv
    stretch = reduce_sum(real(mul(conj(v), dv)), (rank - 2,))
    sizes = abs(v)
    largest = eq(sizes, rows(ReduceMax((rank - 2,))(sizes), n))
    zero = number_like(sizes, 0)
    # A component and its conjugate may be equally large; both are real only if one is.
    turned = reduce_sum(select(largest, imag(mul(conj(v), dv)), zero), (rank - 2,))
    weight = reduce_sum(select(largest, mul(sizes, sizes), zero), (rank - 2,))
    turn = div(turned, weight)
    return sub(dv, mul(v, rows(complex(stretch, turn), n)))
