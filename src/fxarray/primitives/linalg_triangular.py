"""Triangular systems, and the Cholesky factorisation that leads to them."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Any, ClassVar

import numpy as np
import scipy

from fxarray.core.errors import DTypeError, ShapeError
from fxarray.core.hooks import operators
from fxarray.core.primitive import Sample, Zero, add_tangents
from fxarray.primitives.contract import matmul
from fxarray.primitives.elementwise import complex, conjugate, is_complex, neg, number_like, real
from fxarray.primitives.linalg_base import (
    LIBRARY_CALL,
    MatrixOperation,
    adjoint,
    choose,
    for_each_matrix,
    from_library,
    lower_triangle,
    matrix_transpose,
    on_diagonal,
    only_diagonal,
    stacked_or_each,
    to_library,
    upper_triangle,
)
from fxarray.primitives.movement import reshape, transpose
from fxarray.primitives.support import Values, widened


def fold_columns(x: Any, axis: int, left_side: bool) -> tuple[Any, Any]:
    """A stack of right-hand sides that share their matrix, as more columns (or rows) of one.

    Returns the folded operand, and the function that unfolds a result, with the stack in front.
    """
    x = operators.move_axis(x, axis, 0)
    rank = x.type.ndim
    kept = tuple(range(1, rank - 2))
    order = (*kept, rank - 2, 0, rank - 1) if left_side else (*kept, 0, rank - 2, rank - 1)
    moved = transpose(x, order)
    shape = moved.type.shape
    place = len(kept) + (1 if left_side else 0)
    folded = reshape(moved, (*shape[:place], shape[place] * shape[place + 1], *shape[place + 2 :]))

    def unfold(result: Any) -> Any:
        return operators.move_axis(reshape(result, shape), place, 0)

    return folded, unfold


def solve_triangle(
    a: Values, b: Values, lower: bool, transpose_a: bool = False, unit_diagonal: bool = False
) -> Values:
    """The x with op(a) x = b for one triangular matrix; a zero on the diagonal gives infinities."""
    if not b.size:
        return b
    (solve,) = scipy.linalg.get_blas_funcs(("trsm",), (a, b))
    return solve(1.0, a, b, lower=lower, trans_a=int(transpose_a), diag=unit_diagonal)


class TriangularSolve(MatrixOperation, name="triangular_solve"):
    """The x with op(a) x = b, or x op(a) = b, where one triangle of `a` is read and the other not.

    Args:
      left_side: whether op(a) stands on the left of x.
      from_lower: whether the lower triangle is read, not the upper.
      transpose_a: whether op transposes.
      conjugate_a: whether op conjugates.
      unit_diagonal: whether the diagonal is taken to be ones, and not read.
    """

    left_side: bool
    from_lower: bool
    transpose_a: bool = False
    conjugate_a: bool = False
    unit_diagonal: bool = False
    EXCUSED: ClassVar[dict[str, str]] = LIBRARY_CALL
    linear_operands: ClassVar[tuple[int, ...]] = (1,)
    independent: ClassVar[str] = "c"

    @property
    def pattern(self) -> str:
        return "nn,nc->nc" if self.left_side else "nn,cn->cn"

    def reference(self, *arrays: Values) -> tuple[Values, ...]:
        (result,) = self._solve(*[widened(x) for x in arrays])
        return from_library([result], [arrays[1].dtype])

    def eager(self, *arrays: Values) -> tuple[Values, ...]:
        (result,) = self._solve(*to_library(*arrays))
        return from_library([result], [arrays[1].dtype])

    def _solve(self, a: Values, b: Values) -> tuple[Values, ...]:
        if self.conjugate_a:
            a = a.conj()

        def solve(a: Values, b: Values) -> tuple[Values]:
            if self.left_side:
                return (
                    solve_triangle(a, b, self.from_lower, self.transpose_a, self.unit_diagonal),
                )
            # x op(a) = b is op(a)^T x^T = b^T.
            flipped = not self.transpose_a
            return (solve_triangle(a, b.T, self.from_lower, flipped, self.unit_diagonal).T,)

        return for_each_matrix(solve, (a, b), (2, 2), [(b.shape[-2:], b.dtype)])

    def _operator(self, a: Any) -> Any:
        """op(a), the other triangle cleared (and the diagonal, if it is not read)."""
        triangle = lower_triangle if self.from_lower else upper_triangle
        offset = (-1 if self.from_lower else 1) if self.unit_diagonal else 0
        a = triangle(a, offset)
        a = matrix_transpose(a) if self.transpose_a else a
        return conjugate(a) if self.conjugate_a else a

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        # From op(a) x = b:  op(a) dx = db - op(da) x  (Giles, An extended collection of matrix
        # derivative results, 2008, section 2.3.1).
        outputs = self.bind(*primals)
        (x,), (a, _), (da, db) = outputs, primals, tangents
        right: Any = db
        if type(da) is not Zero:
            da = self._operator(da)
            right = add_tangents(neg(matmul(da, x) if self.left_side else matmul(x, da)), db)
        if type(right) is Zero:
            return outputs, (Zero(x.type.tangent()),)
        return outputs, self.bind(a, right)

    def transpose(self, cotangents: Sequence[Any], *operands: Any) -> Sequence[Any]:
        a, _ = operands
        op = TriangularSolve(
            self.left_side,
            self.from_lower,
            not self.transpose_a,
            self.conjugate_a,
            self.unit_diagonal,
        )
        return None, op(a, cotangents[0])

    def batch(
        self, size: Any, axis_name: Hashable, operands: Sequence[Any], axes: Sequence[int | None]
    ) -> tuple[Sequence[Any], Sequence[int | None]]:
        if axes[0] is None and axes[1] is not None:
            folded, unfold = fold_columns(operands[1], axes[1], self.left_side)
            return (unfold(self(operands[0], folded)),), (0,)
        return super().batch(size, axis_name, operands, axes)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Any]:
        def system(*shape: int, complex: bool = False) -> np.ndarray:
            values: Any = rng.normal(size=shape)
            if complex:
                values = values + 1j * rng.normal(size=shape)
            return values + 2 * np.eye(shape[-1])

        yield Sample(cls(True, True), (system(0, 0), np.ones((0, 2))))
        yield Sample(cls(True, True), (system(3, 3), np.ones((3, 0))))
        for left in (True, False):
            for lower in (True, False):
                for flip in (True, False):
                    b = rng.normal(size=(3, 2) if left else (2, 3))
                    yield Sample(cls(left, lower, flip), (system(3, 3), b))
        a, b = system(2, 3, 3, complex=True), rng.normal(size=(2, 3, 4)) + 1j
        yield Sample(cls(True, True, False, True), (a, b))
        yield Sample(cls(True, False, True, True, True), (a, b))
        single = system(3, 3).astype("float32"), rng.normal(size=(2, 3)).astype("float32")
        yield Sample(cls(False, False, False, False, True), single, 64.0)
        half = system(3, 3).astype("float16"), rng.normal(size=(3, 2)).astype("float16")
        yield Sample(cls(True, True), half, 64.0)
        yield Sample(cls(True, True), (np.eye(3), np.ones((2, 2))), error=ShapeError)
        yield Sample(cls(True, True), (np.ones((2, 3)), np.ones((3, 2))), error=ShapeError)
        yield Sample(
            cls(True, True), (np.eye(2, dtype=int), np.ones((2, 2), int)), error=DTypeError
        )


def triangular_solve(
    a: Any,
    b: Any,
    *,
    left_side: bool = True,
    lower: bool = True,
    transpose_a: bool = False,
    conjugate_a: bool = False,
    unit_diagonal: bool = False,
) -> Any:
    """Solve triangular systems; see `TriangularSolve`."""
    return TriangularSolve(left_side, lower, transpose_a, conjugate_a, unit_diagonal)(a, b)


def hermitian(x: Any, lower: bool) -> Any:
    """The Hermitian matrices that routines see which read one triangle of `x`."""
    strict = lower_triangle(x, -1) if lower else upper_triangle(x, 1)
    middle = only_diagonal(x)
    if is_complex(x):
        middle = complex(real(middle), number_like(real(middle), 0))
    return strict + adjoint(strict) + middle


def _half_diagonal(x: Any) -> Any:
    """The lower triangle with the diagonal halved: x is it plus its adjoint, if x is Hermitian."""
    low = lower_triangle(x)
    return choose(on_diagonal(x), low * 0.5, low)


class Cholesky(MatrixOperation, name="cholesky"):
    """The lower triangular L with L L^H = a, reading the lower triangle of `a`.

    Matrices that are not positive definite give NaN.
    """

    pattern: ClassVar[str] = "nn->nn"  # type: ignore[assignment, misc]

    def reference(self, *arrays: Values) -> tuple[Values, ...]:
        (x,) = arrays
        return from_library(self._factor(widened(x)), [x.dtype])

    def eager(self, *arrays: Values) -> tuple[Values, ...]:
        return from_library(self._factor(*to_library(*arrays)), [arrays[0].dtype])

    def _factor(self, x: Values) -> tuple[Values, ...]:
        # Infinities make LAPACK loop over NaNs rather than fail, which is right here.
        (factor,) = stacked_or_each(np.linalg.cholesky, [x], [(x.shape[-2:], x.dtype)])
        return (factor,)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        # From dA = dL L^H + L dL^H:  L^-1 dA L^-H = L^-1 dL + (L^-1 dL)^H, whose first term is
        # lower triangular, so it is the lower triangle of the left side with the diagonal halved
        # (Smith, Differentiation of the Cholesky algorithm, 1995; Murray, Differentiation of the
        # Cholesky decomposition, 2016, section 3.1).
        (factor,) = self.bind(*primals)
        (da,) = tangents
        if type(da) is Zero:
            return (factor,), (Zero(factor.type.tangent()),)
        half = triangular_solve(factor, hermitian(da, True))
        whole = triangular_solve(factor, half, left_side=False, transpose_a=True, conjugate_a=True)
        return (factor,), (matmul(factor, _half_diagonal(whole)),)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Any]:
        def definite(*shape: int, complex: bool = False) -> np.ndarray:
            x: Any = rng.normal(size=shape)
            if complex:
                x = x + 1j * rng.normal(size=shape)
            return x @ np.swapaxes(x, -1, -2).conj() + 2 * np.eye(shape[-1])

        yield Sample(cls(), (np.zeros((0, 0)),))
        yield Sample(cls(), (definite(1, 1),))
        yield Sample(cls(), (definite(2, 3, 3),), 64.0)
        yield Sample(cls(), (definite(4, 4).astype("float32"),), 64.0)
        yield Sample(cls(), (definite(3, 3).astype("float16"),), 64.0)
        yield Sample(cls(), (definite(3, 3, complex=True),), 64.0)
        mixed = np.stack([definite(2, 2), -np.eye(2), definite(2, 2)])
        yield Sample(cls(), (mixed,), differentiable=False)
        yield Sample(cls(), (np.ones((2, 3)),), error=ShapeError)
        yield Sample(cls(), (np.eye(2, dtype=int),), error=DTypeError)
