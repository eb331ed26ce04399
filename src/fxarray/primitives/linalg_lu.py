"""LU factorisation, and linear systems solved by it."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Any, ClassVar

import numpy as np
import scipy

from fxarray.core import dims, dtypes
from fxarray.core.errors import DTypeError, ShapeError
from fxarray.core.factors import Factors, letters
from fxarray.core.primitive import Primitive, Sample, Zero, add_tangents
from fxarray.core.types import ArrayType
from fxarray.primitives.contract import matmul
from fxarray.primitives.elementwise import add, neg, number_like, stop_gradient
from fxarray.primitives.linalg_base import (
    LIBRARY_CALL,
    MatrixOperation,
    for_each_matrix,
    from_library,
    identity,
    lower_triangle,
    matrix_transpose,
    smaller,
    to_library,
    to_stack,
    upper_triangle,
)
from fxarray.primitives.linalg_triangular import fold_columns, solve_triangle, triangular_solve
from fxarray.primitives.movement import broadcast_in_dim
from fxarray.primitives.slicing import pad, slice_in_axis
from fxarray.primitives.sort import take_along
from fxarray.primitives.support import Values, widened


def permutation_of(pivots: Values, size: int) -> Values:
    """The order of rows after exchanging row i with row `pivots[i]`, for i = 0, 1, ..."""
    order = np.array(np.broadcast_to(np.arange(size, dtype=np.int32), (*pivots.shape[:-1], size)))
    for position in np.ndindex(*pivots.shape[:-1]):
        line = order[position]
        for i, j in enumerate(pivots[position]):
            line[i], line[j] = line[j], line[i]
    return order


class Lu(MatrixOperation, name="lu"):
    """P a = L U by Gaussian elimination with exchange of rows.

    Results are one matrix that holds U on and above the diagonal and L below it (its diagonal is
    ones), the pivots (row i was exchanged with row pivots[i]), and the permutation: row i of P a is
    row permutation[i] of a.
    """

    pattern: ClassVar[str] = "mn->mn,k,m"  # type: ignore[assignment, misc]

    def infer(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        self.check_dtypes(types)
        return self.result_types(types, types[0].dtype, dtypes.int32, dtypes.int32)

    def reference(self, *arrays: Values) -> tuple[Values, ...]:
        (x,) = to_library(*arrays)
        m, n = x.shape[-2:]
        (factor,) = scipy.linalg.get_lapack_funcs(("getrf",), (x,))

        def one(matrix: Values) -> tuple[Values, Values]:
            if not matrix.size:
                return matrix, np.zeros(0, np.int32)
            lu, pivots, _ = factor(matrix)
            return lu, pivots

        integer = np.dtype(np.int32)
        with np.errstate(all="ignore"):
            results = [((m, n), x.dtype), ((min(m, n),), integer)]
            lu, pivots = for_each_matrix(one, (x,), (2,), results)
        return (*from_library([lu], [arrays[0].dtype]), pivots, permutation_of(pivots, m))

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        # From P dA = dL U + L dU, for square factors:  L^-1 P dA U^-1 = L^-1 dL + dU U^-1, which
        # are strictly lower and upper triangular. A tall matrix has its L continued by columns of
        # the identity, a wide one its U by rows of it; this changes neither product (de Hoog,
        # Anderssen and Lukas, Differentiation of matrix functionals using triangular factorization,
        # 2011).
        outputs = self.bind(*primals)
        lu, pivots, permutation = outputs
        (da,) = tangents
        rest = (Zero(pivots.type.tangent()), Zero(permutation.type.tangent()))
        if type(da) is Zero:
            return outputs, (Zero(lu.type.tangent()), *rest)
        m, n = lu.type.shape[-2:]
        k = smaller(m, n)
        rank = lu.type.ndim
        lower = _continued(lower_triangle(slice_in_axis(lu, 0, k, rank - 1), -1), 0, m - k)
        lower = add(lower, identity(lu, m))
        upper = _continued(upper_triangle(slice_in_axis(lu, 0, k, rank - 2)), n - k, 0)
        if not dims.same(n, k):
            upper = add(upper, _continued(identity(lu, n - k), k, k, before=True))
        inner = triangular_solve(lower, permute_rows(da, permutation), unit_diagonal=True)
        inner = triangular_solve(upper, inner, left_side=False, lower=False)
        dl = matmul(lower, lower_triangle(inner, -1))
        du = matmul(upper_triangle(inner), upper)
        return outputs, (add(lower_triangle(dl, -1), upper_triangle(du)), *rest)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Any]:
        def normal(*shape: int) -> np.ndarray:
            return rng.normal(size=shape)

        yield Sample(cls(), (np.zeros((0, 0)),))
        yield Sample(cls(), (np.zeros((2, 0)),))
        yield Sample(cls(), (normal(1, 1),))
        yield Sample(cls(), (normal(3, 3),), 64.0)
        yield Sample(cls(), (normal(2, 4, 3),), 64.0)
        yield Sample(cls(), (normal(3, 5).astype("float32"),), 64.0)
        yield Sample(cls(), (normal(3, 3) + 1j * normal(3, 3),), 64.0)
        yield Sample(cls(), (np.zeros((2, 2)),), differentiable=False)
        yield Sample(cls(), (np.ones(3),), error=ShapeError)
        yield Sample(cls(), (np.eye(2, dtype=int),), error=DTypeError)


def _continued(x: Any, rows: Any, columns: Any, before: bool = False) -> Any:
    """x with rows of zeros below and columns of them to the right (or above and to the left)."""
    config: list[Any] = [(0, 0, 0)] * (x.type.ndim - 2)
    config += [(rows, 0, 0), (columns, 0, 0)] if before else [(0, rows, 0), (0, columns, 0)]
    return pad(x, number_like(x, 0), config)


def permute_rows(x: Any, permutation: Any) -> Any:
    """P x: row i is row `permutation[i]` of x."""
    shape = x.type.shape
    if any(dims.same(size, 0) for size in shape[-2:]):
        return x  # a gather takes windows of one element, and there is none
    indices = broadcast_in_dim(permutation, shape, range(len(shape) - 1))
    return take_along(x, indices, len(shape) - 2)


class LuPivotsToPermutation(Primitive, name="lu_pivots_to_permutation"):
    """The order of `size` rows after the exchanges that the last dimension's pivots say."""

    size: int
    EXCUSED: ClassVar[dict[str, str]] = {
        **LIBRARY_CALL,
        "transpose": "it is not linear in any operand",
    }
    differentiable: ClassVar[bool] = False

    def infer(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        (pivots,) = types
        if pivots.dtype != dtypes.int32:
            raise DTypeError(f"{self.name}: pivots must be int32, got {pivots}")
        if not pivots.ndim:
            raise ShapeError(f"{self.name}: pivots must have at least 1 dimension, got {pivots}")
        count, size = pivots.shape[-1], self.size
        if type(count) is int and type(size) is int and count > size:
            raise ShapeError(f"{self.name}: {pivots} has more pivots than there are rows: {size}")
        return (ArrayType((*pivots.shape[:-1], size), dtypes.int32),)

    def reference(self, *arrays: Values) -> tuple[Values, ...]:
        return (permutation_of(arrays[0], self.size),)

    def batch(
        self, size: Any, axis_name: Hashable, operands: Sequence[Any], axes: Sequence[int | None]
    ) -> tuple[Sequence[Any], Sequence[int | None]]:
        return self.bind(*to_stack(size, operands, axes)), (0,)

    def shard(self, *types: ArrayType) -> Factors:
        stack = letters(types[0].ndim - 1, start=26)
        whole = frozenset(("k", "m"))
        return Factors(((*stack, "k"),), ((*stack, "m"),), {"k": "any"}, whole)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Any]:
        yield Sample(cls(0), (np.zeros(0, np.int32),))
        yield Sample(cls(4), (np.array([1, 3, 3], np.int32),))
        yield Sample(cls(2), (np.array([[1, 1], [0, 1], [1, 1]], np.int32),))
        yield Sample(cls(1), (np.array([1, 1], np.int32),), error=ShapeError)
        yield Sample(cls(2), (np.array([1.0]),), error=DTypeError)


class FactoredSolve(MatrixOperation, name="factored_solve"):
    """The x with op(a) x = b, given a and its `Lu` (the factors and the permutation).

    Derivatives are those of the equation, taken through `a` alone, to any order; the factors are
    not differentiated, and shared by all of them.

    Args:
      transpose_a: whether op transposes.
    """

    transpose_a: bool = False
    EXCUSED: ClassVar[dict[str, str]] = LIBRARY_CALL
    linear_operands: ClassVar[tuple[int, ...]] = (3,)
    independent: ClassVar[str] = "c"
    pattern: ClassVar[str] = "nn,nn,n,nc->nc"  # type: ignore[assignment, misc]

    def infer(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        result = self.result_types(types)
        a, factors, permutation, b = types
        self.check_dtypes((a, factors, b))
        if permutation.dtype != dtypes.int32:
            raise DTypeError(f"{self.name}: operand 2 must be int32, got {permutation}")
        return result

    def reference(self, *arrays: Values) -> tuple[Values, ...]:
        _, factors, permutation, b = arrays
        return self._solve(widened(factors), permutation, widened(b), b.dtype)

    def eager(self, *arrays: Values) -> tuple[Values, ...]:
        _, factors, permutation, b = arrays
        wide = to_library(factors, b)
        return self._solve(wide[0], permutation, wide[1], b.dtype)

    def _solve(
        self, factors: Values, permutation: Values, b: Values, dtype: np.dtype[Any]
    ) -> tuple[Values, ...]:
        def one(lu: Values, order: Values, b: Values) -> tuple[Values]:
            if not self.transpose_a:
                return (solve_triangle(lu, solve_triangle(lu, b[order], True, False, True), False),)
            # a^T = U^T L^T P, where (P x)[i] = x[order[i]].
            inner = solve_triangle(lu, solve_triangle(lu, b, False, True), True, True, True)
            result = np.empty_like(inner)
            result[order] = inner
            return (result,)

        with np.errstate(all="ignore"):
            solved = for_each_matrix(
                one, (factors, permutation, b), (2, 1, 2), [(b.shape[-2:], b.dtype)]
            )
        return from_library(solved, [dtype])

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        # From op(a) x = b:  op(a) dx = db - op(da) x  (Giles, An extended collection of matrix
        # derivative results, 2008, section 2.3.1).
        outputs = self.bind(*primals)
        (x,), (a, factors, permutation, _) = outputs, primals
        da, _, _, db = tangents
        right: Any = db
        if type(da) is not Zero:
            da = matrix_transpose(da) if self.transpose_a else da
            right = add_tangents(neg(matmul(da, x)), db)
        if type(right) is Zero:
            return outputs, (Zero(x.type.tangent()),)
        return outputs, self.bind(a, factors, permutation, right)

    def transpose(self, cotangents: Sequence[Any], *operands: Any) -> Sequence[Any]:
        a, factors, permutation, _ = operands
        op = FactoredSolve(not self.transpose_a)
        return None, None, None, op(a, factors, permutation, cotangents[0])

    def batch(
        self, size: Any, axis_name: Hashable, operands: Sequence[Any], axes: Sequence[int | None]
    ) -> tuple[Sequence[Any], Sequence[int | None]]:
        if axes[3] is not None and all(axis is None for axis in axes[:3]):
            folded, unfold = fold_columns(operands[3], axes[3], True)
            return (unfold(self(*operands[:3], folded)),), (0,)
        return super().batch(size, axis_name, operands, axes)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Any]:
        def system(*shape: int, dtype: str = "float64") -> tuple[np.ndarray, ...]:
            a = np.asarray(rng.normal(size=shape) + 2 * np.eye(shape[-1]))
            if dtype == "complex128":
                a = a + 1j * rng.normal(size=shape)
            a = a.astype(dtype)
            factors, _, permutation = Lu().reference(a)
            b = np.asarray(rng.normal(size=(*shape[:-1], 5))).astype(dtype)
            return a, factors, permutation, b

        yield Sample(cls(), system(0, 0), differentiable=False)
        # The factors of a matrix that is moved do not move with it: differences do not see that.
        yield Sample(cls(), system(3, 3), 64.0, differentiable=False)
        yield Sample(cls(True), system(2, 3, 3), 64.0, differentiable=False)
        yield Sample(cls(), system(3, 3, dtype="float32"), 64.0, differentiable=False)
        yield Sample(cls(True), system(3, 3, dtype="complex128"), 64.0, differentiable=False)
        yield Sample(cls(), system(3, 3)[:3] + (np.ones((2, 2)),), error=ShapeError)
        good = system(3, 3)
        yield Sample(cls(), (*good[:2], good[0][0], good[3]), error=DTypeError)


def factored(a: Any) -> tuple[Any, Any, Any]:
    """What `FactoredSolve` takes before the right-hand side: a, its factors and permutation."""
    factors, _, permutation = Lu()(stop_gradient(a))
    return a, factors, permutation


def solve(a: Any, b: Any) -> Any:
    """The x with a x = b, for stacks of equal shape; derivatives are those of the equation."""
    return FactoredSolve()(*factored(a), b)


def inverse(a: Any) -> Any:
    """Inverses of square matrices."""
    return solve(a, identity(a, a.type.shape[-1]))
