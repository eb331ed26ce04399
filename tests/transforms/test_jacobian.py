"""jacfwd, jacrev and hessian against JAX."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fxarray
import fxarray.numpy as fnp
from fxarray.core.errors import NonDifferentiableError

X = np.array([[0.3, 0.8], [1.7, -0.5], [0.1, 2.0]], np.float32)


def tree_function(np_, p, q):
    return {"y": np_.sin(p["w"]) * q, "z": (p["w"].sum() * p["b"], q * 2.0)}


@pytest.mark.parametrize("name", ["jacfwd", "jacrev"])
@pytest.mark.parametrize("argnums", [0, 1, (0, 1)])
def test_jacobians_of_trees_agree_with_jax(name, argnums, assert_same):
    p = {"w": X, "b": np.float32(2.0)}
    ours = getattr(fxarray, name)(lambda p, q: tree_function(fnp, p, q), argnums)
    theirs = getattr(jax, name)(lambda p, q: tree_function(jnp, p, q), argnums)
    assert_same(ours(p, np.float32(0.5)), theirs(p, np.float32(0.5)))


def test_hessians_of_trees_agree_with_jax(assert_same):
    def f(np_, p):
        return (np_.sin(p["w"]) * p["w"].sum() * p["b"] * p["b"]).sum()

    p = {"w": X, "b": np.float32(2.0)}
    assert_same(fxarray.hessian(lambda p: f(fnp, p))(p), jax.hessian(lambda p: f(jnp, p))(p), 1e-4)


@pytest.mark.parametrize("name", ["jacfwd", "jacrev", "hessian"])
def test_auxiliary_data_is_passed_on(name):
    jacobian, aux = getattr(fxarray, name)(lambda x: (x * x * x, (x, "a")), has_aux=True)(3.0)
    assert float(jacobian) == (18.0 if name == "hessian" else 27.0)
    aux = aux[0] if name == "hessian" and not isinstance(aux[1], str) else aux
    assert float(aux[0]) == 3.0


@pytest.mark.parametrize("outer", ["jacfwd", "jacrev"])
@pytest.mark.parametrize("inner", ["jacfwd", "jacrev"])
def test_jacobians_of_jacobians_are_second_derivatives(outer, inner, assert_same):
    def second(m, n):
        return getattr(m, outer)(getattr(m, inner)(lambda x: (n.sin(x) * x.sum()).sum(0)))(X)

    assert_same(second(fxarray, fnp), second(jax, jnp), 1e-4)


@pytest.mark.parametrize("name", ["jacfwd", "jacrev"])
def test_jacobians_of_holomorphic_functions_are_complex(name, assert_same):
    z = np.array([1 + 2j, 0.5 - 1j], np.complex64)
    ours = getattr(fxarray, name)(lambda z: z * z * z[0], holomorphic=True)(z)
    theirs = getattr(jax, name)(lambda z: z * z * z[0], holomorphic=True)(z)
    assert_same(ours, theirs)


def test_jacobians_refuse_what_has_none():
    with pytest.raises(NonDifferentiableError, match="argument x of <lambda>"):
        fxarray.jacfwd(lambda x: x)(3)
    with pytest.raises(NonDifferentiableError, match="holomorphic"):
        fxarray.jacfwd(lambda x: x)(3j)
    with pytest.raises(NonDifferentiableError, match="real results"):
        fxarray.jacrev(lambda x: x > 0)(3.0)
    with pytest.raises(NonDifferentiableError, match="complex results"):
        fxarray.jacfwd(lambda z: abs(z), holomorphic=True)(3j)


def test_jacobian_of_an_integer_is_float0_when_allowed():
    jacobian = fxarray.jacrev(lambda t: t[0] * 2.0, allow_int=True)((X, np.arange(4)))
    assert jacobian[0].shape == (3, 2, 3, 2)
    assert jacobian[1].shape == (3, 2, 4)
    assert jacobian[1].dtype == fxarray.core.dtypes.float0


def test_results_that_do_not_depend_on_the_argument_have_zero_jacobians(assert_same):
    for transform in (fxarray.jacfwd, fxarray.jacrev):
        result = transform(lambda x: fnp.ones((2,)))(X)
        assert_same(result, np.zeros((2, 3, 2), np.float32))


def test_empty_arrays_have_empty_jacobians():
    for transform in (fxarray.jacfwd, fxarray.jacrev):
        assert transform(lambda x: x * 2.0)(np.zeros((0, 2), np.float32)).shape == (0, 2, 0, 2)


def test_jacobians_are_jittable(assert_same):
    f = lambda x: fnp.sin(x) * x.sum()  # noqa: E731
    for transform in (fxarray.jacfwd, fxarray.jacrev):
        assert_same(fxarray.jit(transform(f))(X), transform(f)(X))
