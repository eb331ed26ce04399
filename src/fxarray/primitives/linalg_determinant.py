"""Determinants, with derivatives that are right for singular matrices too."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from fxarray.core import dtypes
from fxarray.core.errors import DTypeError, ShapeError
from fxarray.core.primitive import Sample, Zero
from fxarray.core.types import ArrayType
from fxarray.primitives.contract import matmul
from fxarray.primitives.elementwise import (
    complex,
    convert,
    imag,
    is_complex,
    mul,
    number_like,
    real,
    sub,
)
from fxarray.primitives.linalg_base import (
    MatrixOperation,
    adjoint,
    clear_diagonal,
    diagonal,
    diagonal_matrix,
    from_library,
    matrix_transpose,
    rows,
    stacked_or_each,
    to_library,
)
from fxarray.primitives.linalg_eigen import Svd
from fxarray.primitives.linalg_lu import inverse
from fxarray.primitives.movement import broadcast_in_dim
from fxarray.primitives.reduce import reduce_sum
from fxarray.primitives.support import Values, widened


def products_without_one(s: Values) -> Values:
    """For each i, the product of all s_k but s_i: no division, so zeros do no harm."""
    ones = np.ones_like(s[..., :1])
    before = np.cumprod(np.concatenate([ones, s[..., :-1]], -1), -1)
    after = np.cumprod(np.concatenate([ones, s[..., :0:-1]], -1), -1)[..., ::-1]
    return before * after


def products_without_two(s: Values) -> Values:
    """For each i and j, the product of all s_k but s_i and s_j; 0 for i = j."""
    n = s.shape[-1]
    result = np.zeros((*s.shape, n), s.dtype)
    for i in range(n):
        others = np.delete(s, i, -1)
        result[..., i, np.arange(n) != i] = products_without_one(others)
    return result


def _svd(x: Values) -> tuple[Values, Values, Values, Values]:
    """U, s, V^H, and det(U) det(V^H), of modulus 1."""
    u, s, vh = np.linalg.svd(x, full_matrices=False)
    factor = np.linalg.det(u) * np.linalg.det(vh)
    return u, s, vh, factor / np.abs(factor)


class Determinant(MatrixOperation, name="determinant"):
    """The determinant of square matrices.

    Its derivative in direction da is trace(adj(a) da) (Jacobi), which is exact where a is singular.
    """

    pattern: ClassVar[str] = "nn->"  # type: ignore[assignment, misc]

    def reference(self, *arrays: Values) -> tuple[Values, ...]:
        with np.errstate(all="ignore"):
            return from_library([np.linalg.det(widened(arrays[0]))], [arrays[0].dtype])

    def eager(self, *arrays: Values) -> tuple[Values, ...]:
        with np.errstate(all="ignore"):
            return from_library([np.linalg.det(*to_library(*arrays))], [arrays[0].dtype])

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        outputs = self.bind(*primals)
        (da,) = tangents
        if type(da) is Zero:
            return outputs, (Zero(outputs[0].type.tangent()),)
        return outputs, (_inner(matrix_transpose(Adjugate()(*primals)), da),)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Any]:
        yield from _square_samples(cls(), rng)


def _square_samples(
    op: MatrixOperation, rng: np.random.Generator, singular: bool = True
) -> Iterator[Sample]:
    def normal(*shape: int) -> np.ndarray:
        return rng.normal(size=shape)

    yield Sample(op, (np.zeros((0, 0)),))
    yield Sample(op, (normal(1, 1) + 3,))
    yield Sample(op, (normal(2, 3, 3),), 64.0)
    yield Sample(op, (normal(4, 4).astype("float32"),), 256.0)
    yield Sample(op, (normal(3, 3) + 1j * normal(3, 3),), 64.0)
    yield Sample(op, (np.outer(normal(3), normal(3)),), 64.0, differentiable=singular)
    yield Sample(op, (np.zeros((2, 2)),), differentiable=singular)
    yield Sample(op, (np.ones((2, 3)),), error=ShapeError)
    yield Sample(op, (np.eye(2, dtype=int),), error=DTypeError)


def _inner(x: Any, y: Any) -> Any:
    """The sum of products of the elements of two matrices."""
    rank = y.type.ndim
    return reduce_sum(mul(x, y), (rank - 2, rank - 1))


class Adjugate(MatrixOperation, name="adjugate"):
    """The transposed matrices of cofactors: a adj(a) = det(a) 1.

    From a = U diag(s) V^H it is det(U) det(V^H) V diag(t) U^H, where t_i is the product of the
    other s_k, which is accurate whatever the rank (Stewart, On the adjugate matrix, 1998).
    """

    pattern: ClassVar[str] = "nn->nn"  # type: ignore[assignment, misc]

    def reference(self, *arrays: Values) -> tuple[Values, ...]:
        return self._compute(widened(arrays[0]), arrays[0].dtype)

    def eager(self, *arrays: Values) -> tuple[Values, ...]:
        return self._compute(to_library(*arrays)[0], arrays[0].dtype)

    def _compute(self, x: Values, dtype: np.dtype[Any]) -> tuple[Values, ...]:
        if not x.size:
            return (np.zeros(x.shape, dtype),)

        def compute(y: Values) -> Values:
            u, s, vh, factor = _svd(y)
            scaled = products_without_one(s)[..., None, :] * np.swapaxes(vh, -1, -2).conj()
            return factor[..., None, None] * (scaled @ np.swapaxes(u, -1, -2).conj())

        return from_library(stacked_or_each(compute, [x], [(x.shape[-2:], x.dtype)]), [dtype])

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        # adj is multiplicative and reverses order, so with E = U^H da V:
        #   d adj(a) = det(U) det(V^H) V (d adj at diag(s) in direction E) U^H.
        # To first order in E, the cofactor of a diagonal element i is the sum over j of E_jj times
        # the product of all s but s_i and s_j; that of an element (i, j) is -E_ij times the same.
        outputs = self.bind(*primals)
        (a,), (da,) = primals, tangents
        if type(da) is Zero:
            return outputs, (Zero(outputs[0].type.tangent()),)
        u, s, vh = Svd(False, True)(a)
        v = adjoint(vh)
        factor = mul(Determinant()(u), Determinant()(vh))
        pairs = convert(PairProducts()(s), da.type.dtype)
        inner = matmul(matmul(adjoint(u), da), v)
        middle = diagonal(inner)
        line = reduce_sum(mul(pairs, rows(middle, middle.type.shape[-1])), (pairs.type.ndim - 1,))
        change = sub(diagonal_matrix(line), clear_diagonal(mul(pairs, inner)))
        whole = matmul(matmul(v, change), adjoint(u))
        rank = whole.type.ndim
        return outputs, (mul(broadcast_in_dim(factor, whole.type.shape, range(rank - 2)), whole),)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Any]:
        yield from _square_samples(cls(), rng)


class PairProducts(MatrixOperation, name="pair_products"):
    """For each i and j, the product of all s_k but s_i and s_j; 0 for i = j."""

    pattern: ClassVar[str] = "n->nn"  # type: ignore[assignment, misc]
    EXCUSED: ClassVar[dict[str, str]] = {
        **MatrixOperation.EXCUSED,
        "jvp": "third derivatives of determinants are not implemented; use slogdet",
    }

    def reference(self, *arrays: Values) -> tuple[Values, ...]:
        (s,) = arrays
        return (dtypes.cast(products_without_two(widened(s)), s.dtype),)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Any]:
        yield Sample(cls(), (np.zeros(0),), differentiable=False)
        yield Sample(cls(), (np.ones(1),), differentiable=False)
        yield Sample(cls(), (rng.normal(size=(2, 4)),), differentiable=False)
        yield Sample(cls(), (np.array([2.0, 0.0, 3.0], np.float32),), differentiable=False)
        yield Sample(cls(), (np.float32(1),), error=ShapeError)


class LogDeterminant(MatrixOperation, name="log_determinant"):
    """The sign (or phase) of the determinant, and the logarithm of its modulus (-inf for 0)."""

    pattern: ClassVar[str] = "nn->,"  # type: ignore[assignment, misc]

    def infer(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        self.check_dtypes(types)
        dtype = types[0].dtype
        return self.result_types(types, dtype, dtypes.to_real(dtype))

    def reference(self, *arrays: Values) -> tuple[Values, ...]:
        return self._compute(widened(arrays[0]), arrays[0].dtype)

    def eager(self, *arrays: Values) -> tuple[Values, ...]:
        return self._compute(to_library(*arrays)[0], arrays[0].dtype)

    def _compute(self, x: Values, dtype: np.dtype[Any]) -> tuple[Values, ...]:
        with np.errstate(all="ignore"):
            sign, logarithm = np.linalg.slogdet(x)
        return from_library([sign, logarithm], [dtype, dtypes.to_real(dtype)])

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        # d log det(a) = trace(a^-1 da); its real part is that of the logarithm of the modulus, its
        # imaginary part the turn of the phase (Giles, An extended collection of matrix derivative
        # results, 2008, section 2.2.4).
        sign, _ = outputs = self.bind(*primals)
        (a,), (da,) = primals, tangents
        if type(da) is Zero:
            return outputs, tuple(Zero(output.type.tangent()) for output in outputs)
        change = _inner(matrix_transpose(inverse(a)), da)
        if not is_complex(change):
            return outputs, (Zero(sign.type.tangent()), change)
        growth, turn = real(change), imag(change)
        return outputs, (mul(complex(number_like(turn, 0), turn), sign), growth)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Any]:
        yield from _square_samples(cls(), rng, singular=False)
