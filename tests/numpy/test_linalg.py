"""fxarray.numpy.linalg against JAX and NumPy, values and gradients, and where it does better."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fxarray
import fxarray.numpy as fnp
from fxarray.core.errors import ArgumentError, ShapeError

RNG = np.random.default_rng(7)


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


def normal(*shape, dtype="float64"):
    x = RNG.normal(size=shape)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * RNG.normal(size=shape)
    return x.astype(dtype)


def definite(*shape, dtype="float64"):
    x = normal(*shape, dtype=dtype)
    return x @ np.swapaxes(x, -1, -2).conj() + 2 * np.eye(shape[-1])


def assert_same(ours, theirs, rtol=1e-9, atol=1e-9):
    ours, theirs = jax.tree.leaves(list(ours)), jax.tree.leaves(list(theirs))
    assert len(ours) == len(theirs)
    for x, y in zip(ours, theirs, strict=True):
        x, y = np.asarray(x), np.asarray(y)
        assert x.shape == y.shape
        assert x.dtype.kind == y.dtype.kind
        np.testing.assert_allclose(x, y, rtol=rtol, atol=atol)


SQUARE = definite(3, 3)
STACK = definite(2, 3, 3)
COMPLEX = definite(3, 3, dtype="complex128")
TALL, WIDE = normal(4, 2), normal(2, 4)

# name -> function of (linalg, x), and operands
CASES = {
    "cholesky": (lambda la, x: la.cholesky(x), (SQUARE, STACK, COMPLEX)),
    "cholesky_upper": (lambda la, x: la.cholesky(x, upper=True), (SQUARE, COMPLEX)),
    "inv": (lambda la, x: la.inv(x), (SQUARE, STACK, COMPLEX)),
    "det": (lambda la, x: la.det(x), (SQUARE, STACK, COMPLEX, normal(4, 4), normal(5, 5))),
    "slogdet": (lambda la, x: tuple(la.slogdet(x)), (SQUARE, STACK, COMPLEX)),
    "eigvalsh": (lambda la, x: la.eigvalsh(x), (SQUARE, STACK, COMPLEX)),
    "eigvals": (lambda la, x: la.eigvals(x), (normal(3, 3), STACK, COMPLEX)),
    "eigh": (lambda la, x: tuple(la.eigh(x)), (SQUARE, STACK)),
    "svdvals": (lambda la, x: la.svdvals(x), (TALL, WIDE, STACK, normal(3, 2, dtype="complex128"))),
    "svd": (lambda la, x: tuple(la.svd(x, full_matrices=False)), (TALL, WIDE, STACK)),
    "qr": (lambda la, x: tuple(la.qr(x)), (TALL, WIDE, STACK, normal(4, 2, dtype="complex128"))),
    "qr_r": (lambda la, x: la.qr(x, mode="r"), (TALL,)),
    "pinv": (lambda la, x: la.pinv(x), (TALL, WIDE, STACK, normal(3, 2, dtype="complex128"))),
    "matrix_power": (lambda la, x: la.matrix_power(x, 5), (SQUARE, STACK)),
    "matrix_power_negative": (lambda la, x: la.matrix_power(x, -2), (SQUARE,)),
    "cond": (lambda la, x: la.cond(x), (SQUARE, TALL)),
    "cond_1": (lambda la, x: la.cond(x, 1), (SQUARE,)),
    "tensorinv": (lambda la, x: la.tensorinv(x), (normal(2, 3, 3, 2),)),
    "trace": (lambda la, x: la.trace(x, offset=1), (SQUARE, STACK)),
    "diagonal": (lambda la, x: la.diagonal(x, offset=-1), (SQUARE, STACK)),
    "norm": (lambda la, x: la.norm(x), (normal(5), TALL, normal(2, 3, 4), COMPLEX)),
    "norm_axis": (lambda la, x: la.norm(x, axis=-2, keepdims=True), (STACK,)),
    **{
        f"vector_norm_{p}": (lambda la, x, p=p: la.vector_norm(x, ord=p), (normal(5),))
        for p in (1, 2, 3, 0.5, -1, np.inf, -np.inf)
    },
    **{
        f"matrix_norm_{p}": (
            lambda la, x, p=p: la.norm(x, p, axis=(0, -1), keepdims=True),
            (normal(3, 2, 4),),
        )
        for p in ("fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf)
    },
}
TRIALS = [(name, i) for name, (_, operands) in CASES.items() for i in range(len(operands))]


@pytest.mark.parametrize(("name", "number"), TRIALS)
def test_values_and_gradients_agree_with_jax(name, number):
    f, operands = CASES[name]
    x = operands[number]

    def flat(la, np_, x):
        y = f(la, x)
        return [np_.asarray(p) for p in (y if isinstance(y, tuple) else (y,))]

    ours, pullback = fxarray.vjp(lambda x: flat(fnp.linalg, fnp, x), x)
    theirs, pullback_of_jax = jax.vjp(lambda x: flat(jnp.linalg, jnp, x), x)
    assert_same(ours, theirs)
    cotangents = [normal(*p.shape, dtype=str(p.dtype)) for p in theirs]
    assert_same(
        pullback([fnp.asarray(c) for c in cotangents]),
        pullback_of_jax([jnp.asarray(c) for c in cotangents]),
        rtol=1e-7,
        atol=1e-7,
    )


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (normal(3, 3), normal(3)),
        (normal(3, 3), normal(3, 2)),
        (normal(3, 3), normal(4, 3, 2)),
        (normal(4, 3, 3), normal(3)),
        (normal(4, 1, 3, 3), normal(2, 3, 2)),
        (normal(3, 3, dtype="complex128"), normal(3, 2)),
    ],
)
def test_solve_agrees_with_jax_in_values_and_gradients(a, b):
    ours, pullback = fxarray.vjp(fnp.linalg.solve, a, b)
    theirs, pullback_of_jax = jax.vjp(jnp.linalg.solve, a, b)
    assert_same([ours], [theirs])
    cotangent = normal(*theirs.shape, dtype=str(theirs.dtype))
    assert_same(pullback(fnp.asarray(cotangent)), pullback_of_jax(jnp.asarray(cotangent)), 1e-7)


def test_solve_maps_over_right_hand_sides_with_one_factorisation():
    a, b = normal(3, 3), normal(5, 3)
    program = str(fxarray.make_program(fxarray.vmap(lambda v: fnp.linalg.solve(a, v)))(b))
    assert "f64[3,3]" in program
    assert "f64[5,3,3]" not in program
    ours = fxarray.vmap(lambda v: fnp.linalg.solve(a, v))(b)
    assert_same([ours], [np.linalg.solve(a, b.T).T])


@pytest.mark.parametrize("b", [normal(4), normal(4, 3)])
def test_lstsq_agrees_with_jax(b):
    assert_same(fnp.linalg.lstsq(TALL, b), jnp.linalg.lstsq(TALL, b))
    ours = fxarray.grad(lambda a, b: (fnp.linalg.lstsq(a, b)[0] ** 2).sum(), (0, 1))(TALL, b)
    theirs = jax.grad(lambda a, b: (jnp.linalg.lstsq(a, b)[0] ** 2).sum(), (0, 1))(TALL, b)
    assert_same(ours, theirs, 1e-7)


def test_lstsq_has_a_gradient_where_singular_values_repeat():
    a, b = np.eye(3, 2), normal(3)
    f = lambda a: (fnp.linalg.lstsq(a, b)[0] ** 2).sum()  # noqa: E731
    direction, step = normal(3, 2), 1e-6
    slope = (float(f(a + step * direction)) - float(f(a - step * direction))) / (2 * step)
    gradient = np.asarray(fxarray.grad(f)(a))
    np.testing.assert_allclose((gradient * direction).sum(), slope, rtol=1e-6)


def test_lstsq_leaves_out_residuals_as_numpy_does():
    for a in (TALL, WIDE, np.ones((4, 2))):
        b = normal(len(a), 2)
        assert_same(fnp.linalg.lstsq(a, b, numpy_resid=True), np.linalg.lstsq(a, b))


# --- where JAX gives NaN --------------------------------------------------------------------------


def test_the_gradient_of_a_sum_of_moduli_is_that_of_abs_at_zero():
    gradient = fxarray.grad(lambda x: fnp.linalg.norm(x, 1))(np.zeros(3))
    assert np.array_equal(np.asarray(gradient), np.ones(3))


@pytest.mark.parametrize("order", [None, 2, 3])
def test_the_gradient_of_a_norm_is_zero_at_zero(order):
    gradient = fxarray.grad(lambda x: fnp.linalg.norm(x, order))(np.zeros(3))
    assert np.array_equal(np.asarray(gradient), np.zeros(3))


def test_the_gradient_of_a_norm_of_complex_numbers_is_zero_at_zero():
    gradient = fxarray.grad(lambda x: fnp.linalg.norm(x))(np.zeros(2, complex))
    assert np.array_equal(np.asarray(gradient), np.zeros(2))


def test_gradients_through_eigh_are_right_at_repeated_eigenvalues_for_projectors():
    v, _ = np.linalg.qr(normal(4, 4))
    a = v @ np.diag([1.0, 1.0, 2.0, 2.0]) @ v.T
    weight = normal(4, 4)

    def f(a):  # the projector on the space of the two smaller eigenvalues
        vectors = fnp.linalg.eigh(a).eigenvectors[:, :2]
        return (weight * (vectors @ vectors.T)).sum()

    direction, step = normal(4, 4), 1e-6
    slope = (float(f(a + step * direction)) - float(f(a - step * direction))) / (2 * step)
    gradient = np.asarray(fxarray.grad(f)(a))
    np.testing.assert_allclose((gradient * direction).sum(), slope, rtol=1e-5)


def test_the_polar_factor_has_its_gradient_at_repeated_singular_values():
    weight, a = normal(3, 3), np.linalg.qr(normal(3, 3))[0] * 2

    def f(a):
        u, _, vh = fnp.linalg.svd(a)
        return (weight * (u @ vh)).sum()

    direction, step = normal(3, 3), 1e-6
    slope = (float(f(a + step * direction)) - float(f(a - step * direction))) / (2 * step)
    gradient = np.asarray(fxarray.grad(f)(a))
    np.testing.assert_allclose((gradient * direction).sum(), slope, rtol=1e-5)


@pytest.mark.parametrize("rank", [0, 1, 2, 3])
def test_det_has_exact_gradient_and_hessian_at_any_rank(rank):
    a = normal(4, rank) @ normal(rank, 4)
    ours = fxarray.value_and_grad(fnp.linalg.det)(a)
    cofactors = np.array(
        [
            [(-1) ** (i + j) * np.linalg.det(np.delete(np.delete(a, i, 0), j, 1)) for j in range(4)]
            for i in range(4)
        ]
    )
    np.testing.assert_allclose(np.asarray(ours[1]), cofactors, atol=1e-12)
    direction, step = normal(4, 4), 1e-5
    gradient = fxarray.grad(fnp.linalg.det)
    second = np.asarray(fxarray.jvp(gradient, (a,), (direction,))[1])
    difference = np.asarray(gradient(a + step * direction)) - gradient(a - step * direction)
    np.testing.assert_allclose(second, np.asarray(difference) / (2 * step), atol=1e-7)


# --- edges ----------------------------------------------------------------------------------------


def test_a_matrix_that_is_not_definite_has_a_cholesky_factor_of_nan_alone():
    factors = np.asarray(fnp.linalg.cholesky(np.stack([np.eye(2), -np.eye(2)])))
    assert np.array_equal(factors[0], np.eye(2))
    assert np.isnan(np.tril(factors[1])[np.tril_indices(2)]).all()


def test_cholesky_of_one_triangle_has_the_gradient_of_that_triangle():
    x = np.array([[4.0, 100.0], [2.0, 5.0]])
    f = lambda x: fnp.linalg.cholesky(x, symmetrize_input=False).sum()  # noqa: E731
    gradient = np.asarray(fxarray.grad(f)(x))
    assert gradient[0, 1] == 0
    step = np.array([[0, 0], [1e-6, 0]])
    slope = (float(f(x + step)) - float(f(x - step))) / 2e-6
    np.testing.assert_allclose(gradient[1, 0], slope, rtol=1e-6)


def test_singular_matrices_give_infinities_and_no_error():
    assert float(fnp.linalg.det(np.zeros((2, 2)))) == 0
    sign, logarithm = fnp.linalg.slogdet(np.zeros((2, 2)))
    assert (float(sign), float(logarithm)) == (0.0, -np.inf)
    assert not np.isfinite(np.asarray(fnp.linalg.inv(np.zeros((2, 2))))).any()
    assert float(fnp.linalg.cond(np.ones((2, 2)), 1)) == np.inf


def test_nan_passes_through_decompositions():
    x = np.full((2, 2), np.nan)
    for result in (
        fnp.linalg.eigvalsh(x),
        fnp.linalg.eigvals(x),
        fnp.linalg.svdvals(x),
        fnp.linalg.qr(x).R,
        fnp.linalg.cholesky(x),
    ):
        assert np.isnan(np.asarray(result)).any()


def test_empty_matrices_are_taken():
    x = np.zeros((2, 0, 0))
    assert np.array_equal(np.asarray(fnp.linalg.det(x)), [1, 1])
    assert fnp.linalg.inv(x).shape == (2, 0, 0)
    assert fnp.linalg.solve(x, np.zeros((2, 0, 3))).shape == (2, 0, 3)
    assert [p.shape for p in fnp.linalg.svd(np.zeros((0, 3)))] == [(0, 0), (0,), (3, 3)]
    assert [p.shape for p in fnp.linalg.eigh(x)] == [(2, 0), (2, 0, 0)]
    assert fnp.linalg.pinv(np.zeros((0, 3))).shape == (3, 0)
    assert int(fnp.linalg.matrix_rank(np.zeros((0, 3)))) == 0


def test_integers_become_floats():
    x = np.array([[2, 1], [1, 2]], np.int32)
    assert fnp.linalg.eigvalsh(x).dtype == np.float32
    assert fnp.linalg.inv(x).dtype == np.float32


def test_narrow_floats_are_computed_in_float32():
    x = fnp.asarray(SQUARE, "bfloat16")
    assert fnp.linalg.inv(x).dtype == x.dtype
    wide = np.linalg.inv(np.asarray(x, np.float32))
    np.testing.assert_allclose(
        np.asarray(fnp.linalg.inv(x), np.float32), wide, rtol=1e-2, atol=1e-2
    )


def test_matrix_rank_agrees_with_numpy():
    for x in (np.ones((3, 3)), np.eye(3), np.zeros((2, 2)), STACK, np.ones(3), np.zeros(3)):
        assert np.array_equal(np.asarray(fnp.linalg.matrix_rank(x)), np.linalg.matrix_rank(x))
    assert int(fnp.linalg.matrix_rank(np.diag([1.0, 1e-3]), tol=1e-2)) == 1
    assert int(fnp.linalg.matrix_rank(np.diag([1.0, 1e-3]), 1e-2)) == 1


def test_products_agree_with_numpy():
    chain = [normal(2, 9), normal(9, 3), normal(3, 7), normal(7)]
    assert_same([fnp.linalg.multi_dot(chain)], [np.linalg.multi_dot(chain)])
    a = normal(2, 3, 6)
    b = normal(2, 3)
    assert_same([fnp.linalg.tensorsolve(a, b)], [np.linalg.tensorsolve(a, b)])
    x, y = normal(4, 3), normal(4, 3)
    assert_same([fnp.linalg.cross(x, y)], [np.linalg.cross(x, y)])
    assert_same([fnp.linalg.outer(x[0], y[0])], [np.linalg.outer(x[0], y[0])])
    assert_same([fnp.linalg.vecdot(x, y)], [np.linalg.vecdot(x, y)])
    assert_same([fnp.linalg.matrix_power(SQUARE, 0)], [np.eye(3)])


def test_svd_of_hermitian_matrices_is_a_decomposition():
    x = SQUARE - 5 * np.eye(3)
    u, s, vh = map(np.asarray, fnp.linalg.svd(x, hermitian=True))
    np.testing.assert_allclose(u @ np.diag(s) @ vh, x, atol=1e-12)
    np.testing.assert_allclose(s, np.linalg.svd(x)[1])


def test_raw_qr_is_numpys():
    assert_same(fnp.linalg.qr(TALL, mode="raw"), np.linalg.qr(TALL, mode="raw"))
    assert_same(fnp.linalg.qr(TALL, mode="complete"), np.linalg.qr(TALL, mode="complete"))


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda la: la.inv(np.ones((2, 3))), ShapeError),
        (lambda la: la.det(np.ones(3)), ShapeError),
        (lambda la: la.solve(np.eye(2), np.ones(3)), ShapeError),
        (lambda la: la.qr(np.eye(2), mode="economic"), ArgumentError),
        (lambda la: la.norm(np.eye(2), "spectral"), ArgumentError),
        (lambda la: la.norm(np.ones((2, 2, 2)), 2), ArgumentError),
        (lambda la: la.eigh(np.eye(2), UPLO="X"), ArgumentError),
        (lambda la: la.multi_dot([np.ones((2, 2)), np.ones(2), np.ones((2, 2))]), ShapeError),
        (lambda la: la.matrix_power(np.eye(2), 0.5), ArgumentError),
    ],
)
def test_what_makes_no_sense_is_an_error(call, error):
    with pytest.raises(error, match="linalg"):
        call(fnp.linalg)


def test_a_jitted_and_mapped_gradient_is_that_of_a_loop():
    f = lambda x: fnp.linalg.slogdet(x)[1] + fnp.linalg.norm(fnp.linalg.cholesky(x))  # noqa: E731
    together = fxarray.jit(fxarray.vmap(fxarray.grad(f)))(STACK)
    assert_same([together], [np.stack([np.asarray(fxarray.grad(f)(x)) for x in STACK])])
