"""QR factorisation and products of Householder reflectors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np
import scipy

from fxarray.core import dims, dtypes
from fxarray.core.errors import DTypeError, ShapeError
from fxarray.core.primitive import Sample, Zero
from fxarray.core.types import ArrayType
from fxarray.primitives.contract import matmul
from fxarray.primitives.elementwise import add, complex, imag, is_complex, neg, number_like, sub
from fxarray.primitives.joining import concatenate
from fxarray.primitives.linalg_base import (
    LIBRARY_CALL,
    MatrixOperation,
    adjoint,
    for_each_matrix,
    from_library,
    lower_triangle,
    only_diagonal,
    smaller,
    stacked_or_each,
    to_library,
)
from fxarray.primitives.linalg_triangular import triangular_solve
from fxarray.primitives.movement import broadcast_in_dim
from fxarray.primitives.slicing import pad, slice_in_axis
from fxarray.primitives.sort import take_along
from fxarray.primitives.support import Values


class Qr(MatrixOperation, name="qr"):
    """a = Q R with orthonormal columns of Q and an upper triangular R, signs as LAPACK has them.

    Args:
      full_matrices: whether Q is square, not as wide as the lesser size of `a`.
      pivoting: whether columns are exchanged so that the diagonal of R falls; then a third result
        holds the order of the columns, and a[:, order] = Q R.
    """

    full_matrices: bool
    pivoting: bool = False

    @property
    def pattern(self) -> str:
        factors = "mm,mn" if self.full_matrices else "mk,kn"
        return f"mn->{factors},n" if self.pivoting else f"mn->{factors}"

    def infer(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        self.check_dtypes(types)
        (x,) = types
        return self.result_types(types, x.dtype, x.dtype, *([dtypes.int32] * self.pivoting))

    def reference(self, *arrays: Values) -> tuple[Values, ...]:
        (x,) = to_library(*arrays)
        own = arrays[0].dtype
        m, n = x.shape[-2:]
        k = m if self.full_matrices else min(m, n)
        shapes: list[Any] = [((m, k), x.dtype), ((k, n), x.dtype)]
        if not self.pivoting:
            mode = "complete" if self.full_matrices else "reduced"
            values = stacked_or_each(lambda y: tuple(np.linalg.qr(y, mode)), [x], shapes)
            return from_library(values, [own, own])
        q, r, order = for_each_matrix(
            self._pivoted, (x,), (2,), [*shapes, ((n,), np.dtype(np.int32))]
        )
        return (*from_library([q, r], [own, own]), order)

    def _pivoted(self, matrix: Values) -> tuple[Values, Values, Values]:
        m, n = matrix.shape
        least = min(m, n)
        k = m if self.full_matrices else least
        if not least:
            return np.eye(m, k, dtype=matrix.dtype), np.zeros((k, n)), np.arange(n, dtype=np.int32)
        (factor,) = scipy.linalg.get_lapack_funcs(("geqp3",), (matrix,))
        packed, order, scales, *_ = factor(matrix)
        r = np.zeros((k, n), matrix.dtype)
        r[:least] = np.triu(packed)[:least]
        reflectors = np.zeros((m, k), matrix.dtype)
        reflectors[:, :least] = packed[:, :least]
        return reflect(reflectors, scales), r, order - 1

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        outputs = self.bind(*primals)
        (da,) = tangents
        if type(da) is Zero:
            return outputs, tuple(Zero(output.type.tangent()) for output in outputs)
        q, r = outputs[:2]
        rest: list[Any] = []
        if self.pivoting:
            order = outputs[2]
            rest = [Zero(order.type.tangent())]
            shape = da.type.shape
            rank = len(shape)
            order = broadcast_in_dim(order, shape, (*range(rank - 2), rank - 1))
            da = take_along(da, order, rank - 1)
        return outputs, (*self._tangents(q, r, da), *rest)

    def _tangents(self, q: Any, r: Any, da: Any) -> tuple[Any, Any]:
        # For a square R, from dA = dQ R + Q dR:  C = Q^H dA R^-1 = Q^H dQ + dR R^-1, a sum of a
        # skew-Hermitian and an upper triangular matrix with a real diagonal. So Q^H dQ is the lower
        # triangle of C minus its adjoint, with the imaginary part of C on the diagonal; and what is
        # outside of the columns of Q is dA R^-1 - Q C (Walter, Lehmann and Lamour, On evaluating
        # higher-order derivatives of the QR decomposition, 2012). A wide matrix is square in its
        # first columns, and dR = Q^H dA - (Q^H dQ) R holds for the others too (Roberts and Roberts,
        # QR and LQ decomposition matrix backpropagation algorithms, 2020). Of a square Q, the
        # columns that the matrix does not determine move as little as orthogonality lets them.
        rank = da.type.ndim
        m, n = da.type.shape[-2:]
        k = smaller(m, n)
        thin = slice_in_axis(q, 0, k, rank - 1)
        triangle = slice_in_axis(slice_in_axis(r, 0, k, rank - 2), 0, k, rank - 1)
        scaled = triangular_solve(
            triangle, slice_in_axis(da, 0, k, rank - 1), left_side=False, lower=False
        )
        inner = matmul(adjoint(thin), scaled)
        below = lower_triangle(inner, -1)
        turn = sub(below, adjoint(below))
        if is_complex(inner):
            middle = imag(only_diagonal(inner))
            turn = add(turn, complex(number_like(middle, 0), middle))
        # Q^H dA less Q^H dQ R, where R's own columns take it in the form that cancels exactly.
        dr = sub(matmul(adjoint(thin), da), matmul(turn, slice_in_axis(r, 0, k, rank - 2)))
        dr = _upper(dr)
        dq = matmul(thin, turn)
        if not dims.same(m, k):
            dq = add(dq, sub(scaled, matmul(thin, inner)))
            if self.full_matrices:
                rest = slice_in_axis(q, k, m, rank - 1)
                moved = neg(matmul(thin, matmul(adjoint(dq), rest)))
                dq = concatenate([dq, moved], rank - 1)
                config: list[Any] = [(0, 0, 0)] * (rank - 2)
                dr = pad(dr, number_like(dr, 0), [*config, (0, m - k, 0), (0, 0, 0)])
        return dq, dr

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Any]:
        def normal(*shape: int) -> np.ndarray:
            return rng.normal(size=shape)

        yield Sample(cls(False), (np.zeros((0, 0)),))
        yield Sample(cls(False), (np.zeros((2, 0)),))
        yield Sample(cls(True), (np.zeros((2, 0)),), differentiable=False)
        yield Sample(cls(False), (normal(1, 1),))
        yield Sample(cls(False), (normal(2, 4, 3),), 64.0)
        yield Sample(cls(False), (normal(3, 4),), 64.0)
        yield Sample(cls(True), (normal(2, 3),), 64.0)
        # The columns of Q beyond the matrix's are only determined up to a rotation.
        yield Sample(cls(True), (normal(4, 2),), 64.0, differentiable=False)
        yield Sample(cls(False), (normal(4, 2).astype("float32"),), 64.0)
        yield Sample(cls(False), (normal(4, 2) + 1j * normal(4, 2),), 64.0)
        yield Sample(cls(False, True), (normal(4, 3),), 64.0)
        yield Sample(cls(True, True), (normal(3, 2, 4),), 64.0)
        yield Sample(cls(False), (np.ones(3),), error=ShapeError)
        yield Sample(cls(False), (np.eye(2, dtype=int),), error=DTypeError)


def _upper(dr: Any) -> Any:
    """Rounding left below the diagonal of dR is cleared."""
    return sub(dr, lower_triangle(dr, -1))


def reflect(reflectors: Values, scales: Values) -> Values:
    """The first columns of a product of reflectors, by LAPACK."""
    if not reflectors.size:
        return reflectors
    if not scales.size:
        return np.eye(*reflectors.shape, dtype=reflectors.dtype)
    routine = "ungqr" if reflectors.dtype.kind == "c" else "orgqr"
    (form,) = scipy.linalg.get_lapack_funcs((routine,), (reflectors,))
    return form(reflectors, scales)[0]


class HouseholderProduct(MatrixOperation, name="householder_product"):
    """The first columns of H_1 H_2 ..., where H_i = 1 - taus[i] v v^H.

    v is column i of the first operand below its diagonal, with 1 on it and 0 above.
    """

    pattern: ClassVar[str] = "mn,t->mn"  # type: ignore[assignment, misc]
    EXCUSED: ClassVar[dict[str, str]] = {
        **MatrixOperation.EXCUSED,
        "jvp": "differentiate lax.linalg.qr, which makes the reflectors, as a whole",
    }

    def infer(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        self.check_dtypes(types)
        result = self.result_types(types)
        m, n = types[0].shape[-2:]
        count = types[1].shape[-1]
        if all(type(size) is int for size in (m, n, count)) and not count <= n <= m:  # type: ignore[operator]
            raise ShapeError(
                f"{self.name}: {types[1]} scales need as many columns of operand 0, which must not "
                f"be wider than high, got {types[0]}"
            )
        return result

    def reference(self, *arrays: Values) -> tuple[Values, ...]:
        x, scales = to_library(*arrays)
        one = lambda a, t: (reflect(a, t),)  # noqa: E731
        values = for_each_matrix(one, (x, scales), (2, 1), [(x.shape[-2:], x.dtype)])
        return from_library(values, [arrays[0].dtype])

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Any]:
        def packed(m: int, n: int, dtype: str = "float64") -> tuple[np.ndarray, np.ndarray]:
            x = rng.normal(size=(m, n)).astype(dtype)
            h, tau = np.linalg.qr(x, mode="raw")
            return np.ascontiguousarray(h.T), tau

        yield Sample(cls(), (np.zeros((2, 0)), np.zeros(0)), differentiable=False)
        yield Sample(cls(), packed(4, 3), 64.0, differentiable=False)
        x, tau = packed(3, 3, "float32")
        yield Sample(cls(), (x[None], tau[None]), 64.0, differentiable=False)
        yield Sample(cls(), packed(5, 2, "complex128"), 64.0, differentiable=False)
        yield Sample(cls(), (np.ones((3, 2)), np.ones(3)), error=ShapeError)


class Geqrf(MatrixOperation, name="geqrf"):
    """QR as LAPACK leaves it: R and, below it, the reflectors; and their scales.

    See `HouseholderProduct`.
    """

    pattern: ClassVar[str] = "mn->mn,k"  # type: ignore[assignment, misc]
    EXCUSED: ClassVar[dict[str, str]] = {
        **LIBRARY_CALL,
        "transpose": "it is not linear in any operand",
        "jvp": "differentiate lax.linalg.qr as a whole",
    }

    def reference(self, *arrays: Values) -> tuple[Values, ...]:
        (x,) = to_library(*arrays)
        m, n = x.shape[-2:]
        own = arrays[0].dtype

        def packed(y: Values) -> tuple[Values, Values]:
            h, scales = np.linalg.qr(y, "raw")
            return np.swapaxes(h, -1, -2), scales

        values = stacked_or_each(packed, [x], [((m, n), x.dtype), ((min(m, n),), x.dtype)])
        return from_library(values, [own, own])

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Any]:
        yield Sample(cls(), (np.zeros((0, 2)),), differentiable=False)
        yield Sample(cls(), (rng.normal(size=(2, 4, 3)),), 64.0, differentiable=False)
        yield Sample(cls(), (rng.normal(size=(2, 3)).astype("float32"),), differentiable=False)
        yield Sample(cls(), (np.ones(3),), error=ShapeError)
