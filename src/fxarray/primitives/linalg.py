"""Linear algebra by name, for rules and for the layers above."""

from __future__ import annotations

from fxarray.primitives.linalg_determinant import Adjugate, Determinant, LogDeterminant
from fxarray.primitives.linalg_eigen import Eig, Eigh, Svd
from fxarray.primitives.linalg_lu import (
    FactoredSolve,
    Lu,
    LuPivotsToPermutation,
    factored,
    inverse,
    solve,
)
from fxarray.primitives.linalg_pinv import PseudoInverse
from fxarray.primitives.linalg_qr import Geqrf, HouseholderProduct, Qr
from fxarray.primitives.linalg_triangular import Cholesky, TriangularSolve, triangular_solve

__all__ = [
    "Adjugate",
    "Cholesky",
    "Determinant",
    "Eig",
    "Eigh",
    "FactoredSolve",
    "Geqrf",
    "HouseholderProduct",
    "LogDeterminant",
    "Lu",
    "LuPivotsToPermutation",
    "PseudoInverse",
    "Qr",
    "Svd",
    "TriangularSolve",
    "factored",
    "inverse",
    "solve",
    "triangular_solve",
]
