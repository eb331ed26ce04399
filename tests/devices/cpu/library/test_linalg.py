"""Linear algebra by LAPACK, and of small matrices by vectors, equals the reference."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from fxarray.core import dtypes
from fxarray.core.dims import ShapeVar
from fxarray.primitives.linalg_eigen import Eig, Eigh, Svd
from fxarray.primitives.linalg_lu import FactoredSolve, Lu, LuPivotsToPermutation
from fxarray.primitives.linalg_qr import Geqrf, HouseholderProduct, Qr
from fxarray.primitives.linalg_triangular import Cholesky, TriangularSolve

Check = Callable[..., None]
Run = Callable[..., Any]
DTYPES = ("float32", "float64", "complex64", "complex128")
KINDS = (
    *(Cholesky, Lu, LuPivotsToPermutation, FactoredSolve, TriangularSolve),
    *(Qr, Geqrf, HouseholderProduct, Svd, Eigh, Eig),
)


def normal(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    x: Any = rng.normal(size=shape)
    if dtype.startswith("complex"):
        x = x + 1j * rng.normal(size=shape)
    return x.astype(dtype)


def definite(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    x = normal(rng, shape, dtype)
    return (x @ np.swapaxes(x, -1, -2).conj() + shape[-1] * np.eye(shape[-1])).astype(dtype)


def adjoint(x: np.ndarray) -> np.ndarray:
    return np.swapaxes(x, -1, -2).conj()


def eye_like(x: np.ndarray) -> np.ndarray:
    return np.broadcast_to(np.eye(x.shape[-1]), x.shape)


@pytest.mark.parametrize("kind", KINDS)
def test_samples(check: Check, kind: Any) -> None:
    for sample in kind.samples(np.random.default_rng(0)):
        first = np.asarray(sample.operands[0])
        if sample.error is None and not dtypes.is_narrow_float(first.dtype):
            check(sample.op, *sample.operands, roundings=64)


@pytest.mark.parametrize("dtype", DTYPES)
def test_factorisations(check: Check, dtype: str) -> None:
    rng = np.random.default_rng(1)
    for shape in ((3, 7, 7), (100, 100), (40, 3, 3), (50, 16, 16), (2, 17, 17)):
        check(Cholesky(), definite(rng, shape, dtype), roundings=200)
        check(Lu(), normal(rng, shape, dtype), roundings=2000)
    for shape in ((5, 9, 4), (5, 4, 9), (130, 70), (70, 130)):
        for full in (False, True):
            check(Qr(full), normal(rng, shape, dtype), roundings=400)
        check(Qr(False, True), normal(rng, shape, dtype), roundings=400)
        check(Svd(False, False), normal(rng, shape, dtype), roundings=200)
        check(Lu(), normal(rng, shape, dtype), roundings=2000)


@pytest.mark.parametrize("dtype", DTYPES)
def test_vectors_make_the_matrix(run: Run, dtype: str) -> None:
    rng = np.random.default_rng(5)
    tolerance = 1e-4 if dtype in ("float32", "complex64") else 1e-11
    for shape in ((3, 5, 5), (60, 60)):
        a = definite(rng, shape, dtype)
        for lower in (False, True):
            v, w = run(Eigh(lower), a)
            np.testing.assert_allclose(v * w[..., None, :] @ adjoint(v), a, atol=tolerance * 100)
            np.testing.assert_allclose(adjoint(v) @ v, eye_like(v), atol=tolerance)
        a = normal(rng, shape, dtype)
        w, left, right = run(Eig(True, True), a)
        np.testing.assert_allclose(a @ right, right * w[..., None, :], atol=tolerance * 10)
        np.testing.assert_allclose(
            adjoint(left) @ a, w[..., None] * adjoint(left), atol=tolerance * 10
        )
    for shape in ((5, 9, 4), (5, 4, 9), (70, 30)):
        a = normal(rng, shape, dtype)
        for full in (False, True):
            u, s, vh = run(Svd(full, True), a)
            k = s.shape[-1]
            made = u[..., :k] * s[..., None, :] @ vh[..., :k, :]
            np.testing.assert_allclose(made, a, atol=tolerance)
            np.testing.assert_allclose(adjoint(u) @ u, eye_like(adjoint(u) @ u), atol=tolerance)
            np.testing.assert_allclose(vh @ adjoint(vh), eye_like(vh @ adjoint(vh)), atol=tolerance)


@pytest.mark.parametrize("dtype", DTYPES)
def test_solves(check: Check, dtype: str) -> None:
    rng = np.random.default_rng(2)
    for stack, n, c in (((), 60, 5), ((37,), 3, 1), ((20,), 16, 16), ((4, 5), 5, 2), ((2,), 20, 3)):
        a = definite(rng, (*stack, n, n), dtype)
        b = normal(rng, (*stack, n, c), dtype)
        factors, _, order = Lu().reference(a)
        for flip in (False, True):
            check(FactoredSolve(flip), a, factors, order, b, roundings=100)
            for lower in (False, True):
                for conjugate in (False, True):
                    for unit in (False, True):
                        op = TriangularSolve(True, lower, flip, conjugate, unit)
                        triangle = a / n if unit else a
                        check(op, triangle, b, roundings=1000)
                        op = TriangularSolve(False, lower, flip, conjugate, unit)
                        check(op, triangle, np.swapaxes(b, -1, -2).copy(), roundings=1000)


@pytest.mark.parametrize("dtype", DTYPES)
def test_what_has_no_result_is_nan(check: Check, run: Run, dtype: str) -> None:
    rng = np.random.default_rng(3)
    for count in (3, 40):
        mixed = definite(rng, (count, 4, 4), dtype)
        mixed[1] = -np.eye(4)
        check(Cholesky(), mixed, roundings=100)
        mixed[1, 0, 0] = np.nan
        (values,) = run(Eig(False, False), mixed)
        np.testing.assert_array_equal(np.isnan(values).all(-1), np.arange(count) == 1)
        check(Svd(False, False), mixed, roundings=100)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_singular_matrices(check: Check, dtype: str) -> None:
    for count in (1, 40):
        zero = np.zeros((count, 3, 3), dtype)
        check(Lu(), zero)
        ones = np.ones((count, 4, 4), dtype)
        check(Lu(), ones)
        triangle = np.triu(ones, 1)
        check(TriangularSolve(True, False), triangle, ones[..., :2].copy())


def test_permutations(check: Check) -> None:
    rng = np.random.default_rng(4)
    pivots = np.stack([rng.integers(i, 9, 50) for i in range(7)], axis=-1).astype(np.int32)
    check(LuPivotsToPermutation(9), pivots)


def test_sizes_known_at_run_time(check: Check) -> None:
    rng = np.random.default_rng(6)
    stack, n = ShapeVar("stack"), ShapeVar("n")
    for sizes in ({"stack": 1, "n": 3}, {"stack": 40, "n": 20}):
        shape = tuple(sizes.values())
        a, b = definite(rng, (*shape, shape[1]), "float64"), normal(rng, (*shape, 2), "float64")
        check(Cholesky(), a, roundings=100, dims=[(stack, n, n)], values=sizes)
        check(Lu(), a, roundings=100, dims=[(stack, n, n)], values=sizes)
        check(Eigh(True, False), a, roundings=100, dims=[(stack, n, n)], values=sizes)
        check(Svd(False, False), a, roundings=100, dims=[(stack, n, n)], values=sizes)
        check(Qr(False), a, roundings=100, dims=[(stack, n, n)], values=sizes)
        op = TriangularSolve(True, True)
        check(op, a, b, roundings=100, dims=[(stack, n, n), (stack, n, 2)], values=sizes)
        few = a[:, :3, :3].copy()
        check(Cholesky(), few, roundings=100, dims=[(stack, 3, 3)], values=sizes)
