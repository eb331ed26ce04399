"""The pseudo-inverse of Moore and Penrose."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from fxarray.core import dtypes
from fxarray.core.errors import DTypeError, ShapeError
from fxarray.core.primitive import Sample, Zero
from fxarray.core.types import ArrayType
from fxarray.primitives.contract import matmul
from fxarray.primitives.elementwise import add, neg, sub
from fxarray.primitives.linalg_base import (
    MatrixOperation,
    adjoint,
    from_library,
    stacked_or_each,
    to_library,
)
from fxarray.primitives.support import Values


class PseudoInverse(MatrixOperation, name="pseudo_inverse"):
    """V diag(1/s) U^H, where singular values up to a part of the largest count as zero.

    Operands are the matrices and, for each, that part. Derivatives are those at constant rank.
    """

    pattern: ClassVar[str] = "mn,->nm"  # type: ignore[assignment, misc]

    def infer(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        result = self.result_types(types)
        self.check_dtypes(types[:1])
        part, wanted = types[1], dtypes.to_real(types[0].dtype)
        if part.dtype != wanted:
            raise DTypeError(f"{self.name}: operand 1 must be {wanted}, got {part}")
        return result

    def reference(self, *arrays: Values) -> tuple[Values, ...]:
        x, part = to_library(*arrays)
        own = arrays[0].dtype
        m, n = x.shape[-2:]
        if not x.size:
            return (np.zeros((*x.shape[:-2], n, m), own),)
        k = min(m, n)
        real: Any = dtypes.to_real(x.dtype)
        results = [((m, k), x.dtype), ((k,), real), ((k, n), x.dtype)]
        u, s, vh = stacked_or_each(lambda y: tuple(np.linalg.svd(y, False)), [x], results)
        small = s <= part[..., None] * s[..., :1]
        with np.errstate(all="ignore"):
            inverse = np.where(small, 0, 1 / np.where(small, 1, s))
            scaled = np.swapaxes(vh, -1, -2).conj() * inverse[..., None, :]
            value = scaled @ np.swapaxes(u, -1, -2).conj()
        return from_library([value], [own])

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        # With P the pseudo-inverse (Golub and Pereyra, The differentiation of pseudo-inverses and
        # nonlinear least squares problems whose variables separate, 1973, eq. 4.12):
        #   dP = -P dA P + P P^H dA^H (1 - A P) + (1 - P A) dA^H P^H P.
        (inverse,) = outputs = self.bind(*primals)
        (a, _), (da, _) = primals, tangents
        if type(da) is Zero:
            return outputs, (Zero(inverse.type.tangent()),)
        adjoint_inverse, change = adjoint(inverse), adjoint(da)
        first = matmul(matmul(inverse, da), inverse)
        left = matmul(matmul(inverse, adjoint_inverse), change)
        left = sub(left, matmul(matmul(left, a), inverse))
        right = matmul(change, matmul(adjoint_inverse, inverse))
        right = sub(right, matmul(inverse, matmul(a, right)))
        return outputs, (add(neg(first), add(left, right)),)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Any]:
        def normal(*shape: int) -> np.ndarray:
            return rng.normal(size=shape)

        part = np.float64(1e-12)
        yield Sample(cls(), (np.zeros((0, 3)), part))
        yield Sample(cls(), (normal(3, 3), part), 64.0)
        yield Sample(cls(), (normal(4, 2), part), 64.0)
        yield Sample(cls(), (normal(4, 2, 3), np.full(4, 1e-12)), 64.0)
        single = normal(4, 2).astype("float32"), np.float32(1e-5)
        yield Sample(cls(), single, 64.0)
        yield Sample(cls(), (normal(2, 3) + 1j * normal(2, 3), part), 64.0)
        # A direction off the matrices of its rank has no derivative.
        yield Sample(cls(), (np.outer(normal(3), normal(2)), part), 64.0, differentiable=False)
        yield Sample(cls(), (normal(3), part), error=ShapeError)
        yield Sample(cls(), (normal(3, 3), np.float32(1e-5)), error=DTypeError)
