"""custom_root and custom_linear_solve: derivatives by what is solved, not by how."""

import numpy as np
import pytest

import fxarray
import fxarray.numpy as fnp
from fxarray import lax
from fxarray.core.errors import ArgumentError, CarryTypeError, TreeStructureError


def newton(f, x):
    """An unbounded loop: reverse mode through it would fail."""

    def step(state):
        x, _ = state
        new = x - f(x) / fxarray.grad(f)(x)
        return new, abs(new - x)

    return lax.while_loop(lambda state: state[1] > 1e-12, step, (x, abs(x) + 1.0))[0]


def square_root(a):
    return lax.custom_root(
        lambda x: x * x - a, fnp.ones_like(a), newton, lambda g, y: y / g(fnp.ones_like(y))
    )


A = np.array(4.0)


@pytest.mark.parametrize("wrap", [lambda f: f, fxarray.jit], ids=["eager", "jit"])
def test_derivatives_of_a_root(wrap):
    f = wrap(square_root)
    np.testing.assert_allclose(f(A), 2.0)
    np.testing.assert_allclose(fxarray.grad(f)(A), 0.25)
    np.testing.assert_allclose(fxarray.jvp(f, (A,), (np.array(2.0),))[1], 0.5)
    np.testing.assert_allclose(fxarray.grad(fxarray.grad(f))(A), -1 / 32)
    np.testing.assert_allclose(fxarray.hessian(f)(A), -1 / 32)
    rows = np.array([1.0, 4.0, 9.0])
    np.testing.assert_allclose(fxarray.vmap(f)(rows), np.sqrt(rows))
    np.testing.assert_allclose(fxarray.vmap(fxarray.grad(f))(rows), 0.5 / np.sqrt(rows))
    gradient = fxarray.grad(lambda a: fxarray.vmap(f)(a).sum())
    np.testing.assert_allclose(gradient(rows), 0.5 / np.sqrt(rows))


def test_a_root_of_a_tree_with_aux():
    def f(a, b):
        def residual(x):
            return {"u": x["u"] ** 2 - a, "v": x["v"] - x["u"] * b}

        def solve(residual, guess):
            del residual
            u = fnp.sqrt(a)
            return {"u": u, "v": u * b}, {"steps": 3}

        def tangent_solve(g, y):
            # Two columns of the triangular derivative suffice to solve with it.
            zero = fnp.zeros_like(y["u"])
            du = y["u"] / g({"u": zero + 1, "v": zero})["u"]
            return {"u": du, "v": y["v"] - g({"u": du, "v": zero})["v"]}

        guess = {"u": fnp.ones_like(a), "v": fnp.ones_like(a)}
        return lax.custom_root(residual, guess, solve, tangent_solve, has_aux=True)

    solution, aux = f(A, np.array(3.0))
    np.testing.assert_allclose(solution["v"], 6.0)
    assert int(aux["steps"]) == 3
    of_a, of_b = fxarray.grad(lambda a, b: f(a, b)[0]["v"], (0, 1))(A, np.array(3.0))
    np.testing.assert_allclose(of_a, 0.75)
    np.testing.assert_allclose(of_b, 2.0)


def test_a_root_function_keeps_the_tree():
    with pytest.raises(TreeStructureError, match="custom_root"):
        lax.custom_root(lambda x: (x, x), 1.0, lambda f, x: x, lambda g, y: y)
    with pytest.raises(CarryTypeError, match="custom_root"):
        lax.custom_root(lambda x: fnp.ones(3), fnp.ones(2), lambda f, x: x, lambda g, y: y)


MATRIX = np.array([[3.0, 1.0, 0.0], [1.0, 4.0, 2.0], [0.5, 0.0, 5.0]])
VECTOR = np.array([1.0, 2.0, 3.0])


def gauss_seidel(matvec, b):
    """Solve by Jacobi sweeps with a matrix that is known only as a function."""
    columns = fxarray.vmap(matvec, out_axes=1)(fnp.eye(3, dtype=b.dtype))
    diagonal = fnp.diagonal(columns)

    def step(x):
        return x + (b - matvec(x)) / diagonal

    return lax.while_loop(lambda x: abs(b - matvec(x)).max() > 1e-13, step, b)


def solve(a, b):
    return lax.custom_linear_solve(lambda x: a @ x, b, gauss_seidel, gauss_seidel)


@pytest.mark.parametrize("wrap", [lambda f: f, fxarray.jit], ids=["eager", "jit"])
def test_derivatives_of_a_linear_solve(wrap):
    f = wrap(solve)
    inverse = np.linalg.inv(MATRIX)
    x = inverse @ VECTOR
    np.testing.assert_allclose(f(MATRIX, VECTOR), x)
    weights = np.array([1.0, -2.0, 0.5])
    of_a, of_b = fxarray.grad(lambda a, b: (f(a, b) * weights).sum(), (0, 1))(MATRIX, VECTOR)
    np.testing.assert_allclose(of_b, inverse.T @ weights)
    np.testing.assert_allclose(of_a, -np.outer(inverse.T @ weights, x))
    tangent = fxarray.jvp(f, (MATRIX, VECTOR), (np.eye(3), VECTOR))[1]
    np.testing.assert_allclose(tangent, inverse @ (VECTOR - x))
    jacobian = fxarray.jacrev(lambda b: f(MATRIX, b))(VECTOR)
    np.testing.assert_allclose(jacobian, inverse)
    np.testing.assert_allclose(fxarray.jacfwd(lambda b: f(MATRIX, b))(VECTOR), inverse)


def test_a_linear_solve_is_mapped():
    matrices = np.stack([MATRIX, MATRIX.T, MATRIX * 2])
    expected = np.linalg.solve(matrices, np.tile(VECTOR, (3, 1))[..., None])[..., 0]
    np.testing.assert_allclose(fxarray.vmap(solve, (0, None))(matrices, VECTOR), expected)
    np.testing.assert_allclose(
        fxarray.vmap(solve, (None, 0))(MATRIX, np.eye(3)), np.linalg.inv(MATRIX).T
    )
    gradient = fxarray.grad(lambda b: fxarray.vmap(solve, (0, None))(matrices, b).sum())(VECTOR)
    np.testing.assert_allclose(gradient, np.linalg.inv(matrices).sum((0, 1)))


def test_second_derivatives_of_a_linear_solve():
    def f(t):
        return (solve(MATRIX + t * np.eye(3), VECTOR * t) ** 2).sum()

    t, step = np.array(0.5), 1e-5
    above, below = fxarray.grad(f)(np.array(t + step)), fxarray.grad(f)(np.array(t - step))
    numeric = (float(above) - float(below)) / (2 * step)
    np.testing.assert_allclose(fxarray.grad(fxarray.grad(f))(t), numeric, rtol=1e-6)


def test_a_symmetric_system_needs_no_transposed_solver():
    matrix = MATRIX @ MATRIX.T

    def f(b):
        return lax.custom_linear_solve(
            lambda x: matrix @ x, b, lambda mv, b: np.linalg.inv(matrix) @ b, symmetric=True
        )

    np.testing.assert_allclose(fxarray.jacrev(f)(VECTOR), np.linalg.inv(matrix), atol=1e-12)


def test_reverse_mode_without_a_transposed_solver_names_the_remedy():
    def f(b):
        return lax.custom_linear_solve(lambda x: 2.0 * x, b, lambda mv, b: b / 2.0)

    assert float(f(3.0)) == 1.5
    assert float(fxarray.jvp(f, (3.0,), (1.0,))[1]) == 0.5
    with pytest.raises(ArgumentError, match="transpose_solve"):
        fxarray.grad(f)(3.0)
    with pytest.raises(ArgumentError, match="not both"):
        lax.custom_linear_solve(lambda x: x, 1.0, lambda mv, b: b, lambda mv, b: b, symmetric=True)


def test_aux_of_a_linear_solve_is_not_differentiated():
    def f(a, b):
        x, aux = lax.custom_linear_solve(
            lambda x: a * x,
            b,
            lambda mv, b: (b / mv(1.0), {"residual": b}),
            lambda mv, b: (b / mv(1.0), {"residual": b}),
            has_aux=True,
        )
        return x + aux["residual"]

    assert float(f(4.0, 2.0)) == 2.5
    of_a, of_b = fxarray.grad(f, (0, 1))(4.0, 2.0)
    assert (float(of_a), float(of_b)) == (-0.125, 0.25)
