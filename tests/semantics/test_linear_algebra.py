"""Points 52 to 57: decompositions, their derivatives, solves, determinants, conventions."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax as jax_lax

import fxarray as fx
import fxarray.numpy as fnp
from fxarray import lax

GENERATOR = np.random.default_rng(0)


def normal(*shape, dtype="float32"):
    return GENERATOR.standard_normal(shape).astype(dtype)


def close(ours, theirs, tolerance=1e-4):
    np.testing.assert_allclose(np.asarray(ours), np.asarray(theirs), rtol=tolerance, atol=tolerance)


def slope(f, x, direction, step=1e-6):
    return (float(f(x + step * direction)) - float(f(x - step * direction))) / (2 * step)


ROOT = normal(3, 3)
POSITIVE = ROOT @ ROOT.T + 3 * np.eye(3, dtype=np.float32)
SQUARE = normal(4, 4) + 3 * np.eye(4, dtype=np.float32)

# --- point 52: cholesky -------------------------------------------------------------------------


def test_cholesky_of_an_indefinite_matrix_is_nan():
    """Point 52: no error, but NaN, and only for the matrix of the batch that is not definite."""
    factors = fx.jit(fnp.linalg.cholesky)(np.stack([np.eye(2), -np.eye(2)]).astype(np.float32))
    np.testing.assert_array_equal(factors[0], np.eye(2))
    assert np.isnan(np.asarray(factors[1])[np.tril_indices(2)]).all()


@pytest.mark.parametrize("upper", [False, True])
def test_cholesky_has_a_symmetric_gradient(upper):
    """Point 52: symmetrize_input makes the gradient symmetric, for upper factors as for lower."""
    weight = normal(3, 3)
    f = lambda la, x: (weight * la.cholesky(x, upper=upper)).sum()  # noqa: E731
    ours = np.asarray(fx.grad(lambda x: f(fnp.linalg, x))(POSITIVE))
    close(ours, ours.T, 1e-6)
    close(ours, jax.grad(lambda x: f(jnp.linalg, x))(POSITIVE))


def test_cholesky_without_symmetrizing_reads_one_triangle():
    """Point 52: what cholesky does not read has no gradient: no ghost on the other side."""
    f = lambda x: lax.linalg.cholesky(x, symmetrize_input=False).sum()  # noqa: E731
    gradient = np.asarray(fx.grad(f)(POSITIVE))
    np.testing.assert_array_equal(np.triu(gradient, 1), 0)
    broken = POSITIVE + np.triu(np.ones_like(POSITIVE), 1)
    close(f(broken), f(POSITIVE), 1e-6)


# --- point 53: derivatives at repeated values ---------------------------------------------------


def test_eigenvalues_and_singular_values_have_gradients_where_they_repeat():
    """Point 53: eigvalsh and svdvals at the identity."""
    f = lambda x: (fnp.linalg.eigvalsh(x) ** 2).sum()  # noqa: E731
    close(fx.grad(f)(np.eye(3, dtype=np.float32)), 2 * np.eye(3))
    g = lambda x: (fnp.linalg.svdvals(x) ** 2).sum()  # noqa: E731
    close(fx.grad(g)(np.eye(3, dtype=np.float32)), 2 * np.eye(3))


def test_eigenvectors_have_finite_gradients_where_eigenvalues_repeat():
    """Point 53, improved, pain point 18: a function of the spaces alone has its true gradient."""
    v = np.linalg.qr(normal(4, 4, dtype="float64"))[0]
    a = v @ np.diag([1.0, 1.0, 2.0, 2.0]) @ v.T
    weight, direction = normal(4, 4, dtype="float64"), normal(4, 4, dtype="float64")

    def projected(a):
        vectors = fnp.linalg.eigh(a).eigenvectors[:, :2]
        return (weight * (vectors @ vectors.T)).sum()

    gradient = np.asarray(fx.jit(fx.grad(projected))(a))
    close((gradient * direction).sum(), slope(projected, a, direction), 1e-5)


def test_singular_vectors_have_finite_gradients_where_singular_values_repeat():
    """Point 53, improved: the polar factor of a multiple of a rotation."""
    weight, direction = normal(3, 3, dtype="float64"), normal(3, 3, dtype="float64")
    a = np.linalg.qr(normal(3, 3, dtype="float64"))[0] * 2

    def polar(a):
        u, _, vh = fnp.linalg.svd(a, full_matrices=False)
        return (weight * (u @ vh)).sum()

    gradient = np.asarray(fx.grad(polar)(a))
    close((gradient * direction).sum(), slope(polar, a, direction), 1e-5)


# --- point 54: derivatives of what is not unique ------------------------------------------------


def test_svd_with_full_matrices_has_the_derivative_of_the_completed_spaces():
    """Point 54, improved: the completing vectors differentiate where only their space counts."""
    a, direction = normal(4, 2, dtype="float64"), normal(4, 2, dtype="float64")
    weight = normal(4, 4, dtype="float64")

    def complement(a):
        vectors = fnp.linalg.svd(a, full_matrices=True)[0][:, 2:]
        return (weight * (vectors @ vectors.T)).sum()

    gradient = np.asarray(fx.grad(complement)(a))
    assert np.abs(gradient).max() > 0.01
    close((gradient * direction).sum(), slope(complement, a, direction), 1e-5)
    tangent = fx.jvp(complement, (a,), (direction,))[1]
    close(tangent, slope(complement, a, direction), 1e-5)


def test_eig_derivatives_agree_with_differences():
    """Point 54: eigenvalues of a general matrix have derivatives as in JAX."""
    a = np.diag([1.0, 2.0, 4.0]) + 0.1 * normal(3, 3, dtype="float64")
    direction = normal(3, 3, dtype="float64")
    f = lambda x: fnp.real(fnp.linalg.eigvals(x) ** 3).sum()  # noqa: E731
    gradient = np.asarray(fx.grad(f)(a))
    close((gradient * direction).sum(), slope(f, a, direction), 1e-5)


def test_wide_qr_and_eigenvectors_of_eig_have_derivatives():
    """Point 54, improved: qr of a wide matrix, and spectral projectors of a general one."""
    weight, wide = normal(3, 5, dtype="float64"), normal(3, 5, dtype="float64")
    a = np.diag([1.0, 2.0, 4.0]) + 0.1 * normal(3, 3, dtype="float64")

    def triangle(x):
        return (weight * fnp.linalg.qr(x)[1]).sum()

    def projector(a):
        vectors = fnp.linalg.eig(a).eigenvectors
        return fnp.real((weight[:, :3] * (vectors[:, :1] @ fnp.linalg.inv(vectors)[:1])).sum())

    for f, x in ((triangle, wide), (projector, a)):
        direction = normal(*x.shape, dtype="float64")
        close((np.asarray(fx.grad(f)(x)) * direction).sum(), slope(f, x, direction), 1e-5)


# --- point 55: solve ----------------------------------------------------------------------------


def test_the_derivative_of_solve_solves_and_takes_no_derivative_of_a_factorisation():
    """Point 55: solve is differentiated implicitly: one lu in the gradient, as in the value."""
    b = normal(4)
    gradient = lambda a: fx.grad(lambda a: fnp.linalg.solve(a, b).sum())(a)  # noqa: E731
    program = str(fx.make_program(gradient)(SQUARE))
    assert program.count("= lu(") == 1
    inverse = np.linalg.inv(SQUARE)
    close(gradient(SQUARE), -np.outer(inverse.T @ np.ones(4), inverse @ b))


# --- point 56: determinants and singular systems ------------------------------------------------


@pytest.mark.parametrize("rank", [1, 2])
def test_the_gradient_of_det_is_exact_for_singular_matrices(rank):
    """Point 56: the gradient of det is the matrix of cofactors, at any rank."""
    a = normal(3, rank) @ normal(rank, 3)
    minors = [
        [np.linalg.det(np.delete(np.delete(a, i, 0), j, 1)) for j in range(3)] for i in range(3)
    ]
    signs = (-1.0) ** np.add.outer(np.arange(3), np.arange(3))
    close(fx.grad(fnp.linalg.det)(a), signs * minors)


def test_singular_systems_give_infinities_and_no_error():
    """Point 56: slogdet(0) is (0, -inf); solve and inv of a singular matrix are not finite."""
    zero = np.zeros((2, 2), np.float32)
    assert [float(v) for v in fnp.linalg.slogdet(zero)] == [0.0, -np.inf]
    assert not np.isfinite(np.asarray(fnp.linalg.solve(zero, np.ones(2, np.float32)))).any()
    assert not np.isfinite(np.asarray(fx.jit(fnp.linalg.inv)(zero))).any()


# --- point 57: conventions ----------------------------------------------------------------------


def test_qr_has_lapacks_signs():
    """Point 57: q and r are LAPACK's, so the diagonal of r may be negative."""
    q, r = fnp.linalg.qr(SQUARE)
    expected = np.linalg.qr(SQUARE)
    close(q, expected[0])
    close(r, expected[1])
    assert (np.diag(np.asarray(r)) < 0).any()


@pytest.mark.parametrize("unit_diagonal", [False, True])
@pytest.mark.parametrize("lower", [False, True])
def test_triangular_solve_reads_one_half(lower, unit_diagonal):
    """Point 57: the other half is ignored, and the diagonal too with unit_diagonal."""
    b = normal(4, 2)
    triangle = np.tril(SQUARE) if lower else np.triu(SQUARE)
    if unit_diagonal:
        triangle = triangle - np.diag(np.diag(triangle)) + np.eye(4)
    f = lambda a: lax.linalg.triangular_solve(  # noqa: E731
        a, b, left_side=True, lower=lower, unit_diagonal=unit_diagonal
    )
    close(f(SQUARE), np.linalg.solve(triangle, b), 1e-3)
    gradient = np.asarray(fx.grad(lambda a: f(a).sum())(SQUARE))
    ignored = np.triu(gradient, 1) if lower else np.tril(gradient, -1)
    np.testing.assert_array_equal(ignored, 0)
    if unit_diagonal:
        np.testing.assert_array_equal(np.diag(gradient), 0)


def test_lu_gives_factors_pivots_and_permutation():
    """Point 57: lu returns packed factors, pivots and the permutation, for each of a batch."""
    a = normal(2, 3, 3)
    packed, pivots, permutation = lax.linalg.lu(a)
    expected = jax_lax.linalg.lu(a)
    for ours, theirs in zip((packed, pivots, permutation), expected, strict=True):
        assert ours.dtype == theirs.dtype
        close(ours, theirs)
    lower = np.tril(np.asarray(packed), -1) + np.eye(3)
    rows = np.take_along_axis(a, np.asarray(permutation)[..., None], -2)
    close(lower @ np.triu(np.asarray(packed)), rows)


@pytest.mark.parametrize("name", ["cholesky", "inv", "det", "eigvalsh", "svdvals", "pinv"])
def test_batches_of_matrices_and_vmap_are_loops(name):
    """Point 57: leading axes are batch axes, by themselves and under vmap."""
    stack = POSITIVE + np.arange(1, 7, dtype=np.float32).reshape(2, 3, 1, 1) * np.eye(
        3, dtype=np.float32
    )
    f = getattr(fnp.linalg, name)
    loop = np.stack([np.stack([np.asarray(f(x)) for x in row]) for row in stack])
    close(f(stack), loop)
    close(fx.vmap(fx.vmap(f))(stack), loop)


def test_matrices_of_size_zero_are_taken():
    """Point 57: matrices without rows or columns."""
    empty = np.zeros((2, 0, 0), np.float32)
    assert fnp.linalg.det(empty).tolist() == [1, 1]
    assert fnp.linalg.cholesky(empty).shape == (2, 0, 0)
    assert fnp.linalg.solve(empty, np.zeros((2, 0, 3), np.float32)).shape == (2, 0, 3)
    assert [x.shape for x in fnp.linalg.qr(np.zeros((0, 3), np.float32))] == [(0, 0), (0, 3)]
    assert (np.ones((2, 0)) @ fnp.ones((0, 3))).tolist() == [[0, 0, 0]] * 2
