"""Functions and methods have JAX's names, and arguments of JAX's names in JAX's order."""

import inspect

import jax.nn
import jax.numpy as jnp
import pytest

import fxarray.numpy as fnp
from fxarray import nn

# Names of jax.numpy that fxarray.numpy leaves out, and why.
_ABSENT = {
    "ComplexWarning": "converting complex to real numbers does not warn",
    "frompyfunc": "functions are plain functions; use vectorize",
    "ufunc": "functions are plain functions",
    "int1": "ml_dtypes has no one-bit integers",
    "uint1": "ml_dtypes has no one-bit integers",
}
# Functions whose parameters differ on purpose.
_OTHER_PARAMETERS = {
    "array": "JAX still accepts positional arguments that it has deprecated",
    "einsum": "JAX has a private parameter",
    "issubdtype": "it is the function of core.dtypes",
    "result_type": "it can return whether the dtype is weak",
}
_METHODS_WITH_MORE = ("compress", "dot", "nonzero", "reshape", "std", "var", "view", "tobytes")


def _public_functions(module):
    return sorted(
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and callable(value) and not inspect.ismodule(value)
    )


def _parameters(function):
    found = inspect.signature(function).parameters.values()
    return [(parameter.name, parameter.kind) for parameter in found]


def test_every_public_name_of_jax_numpy_is_there_or_excused():
    names = {name for name in dir(jnp) if not name.startswith("_")}
    assert {name for name in names if not hasattr(fnp, name)} == set(_ABSENT)


def test_all_lists_names_that_exist():
    assert all(hasattr(fnp, name) for name in fnp.__all__)
    assert len(set(fnp.__all__)) == len(fnp.__all__)


@pytest.mark.parametrize(
    "name",
    [
        n
        for n in _public_functions(jnp)
        if n not in _ABSENT and not isinstance(getattr(jnp, n), type)
    ],
)
def test_parameters_are_those_of_jax(name):
    if name in _OTHER_PARAMETERS:
        pytest.skip(_OTHER_PARAMETERS[name])
    if isinstance(getattr(jnp, name), jnp.ufunc):
        expected = 1 if name == "negative" else 2
        actual = _parameters(getattr(fnp, name))
        assert len(actual) == expected
        assert all(kind is inspect.Parameter.POSITIONAL_ONLY for _, kind in actual)
    else:
        assert _parameters(getattr(fnp, name)) == _parameters(getattr(jnp, name))


@pytest.mark.parametrize("name", [n for n in nn.functions.__all__ if hasattr(jax.nn, n)])
def test_parameters_of_nn_functions_are_those_of_jax(name):
    ours, theirs = ([n for n, _ in _parameters(getattr(m, name))] for m in (nn, jax.nn))
    assert ours == theirs


def test_parameters_of_attention_are_those_of_jax():
    assert _parameters(nn.dot_product_attention) == _parameters(jax.nn.dot_product_attention)


@pytest.mark.parametrize(
    "name", sorted(set(dir(fnp.ones((2, 2)))) & set(dir(jnp.ones((2, 2)))) - {"__weakref__"})
)
def test_parameters_of_array_methods_are_those_of_jax(name):
    ours, theirs = getattr(fnp.ones((2, 2)), name), getattr(jnp.ones((2, 2)), name)
    if name.startswith("_") or not inspect.ismethod(ours) or not inspect.ismethod(theirs):
        assert callable(ours) == callable(theirs)
        return
    actual = [parameter for parameter, _ in _parameters(ours)]
    expected = [parameter for parameter, _ in _parameters(theirs)]
    if name in _METHODS_WITH_MORE:
        assert set(actual) >= set(expected) - {"type", "order"}
    else:
        assert actual == expected


def test_arrays_name_their_namespace():
    assert fnp.ones(2).__array_namespace__() is fnp
    assert fnp.ones(2).__array_namespace__(api_version="2023.12") is fnp
    with pytest.raises(ValueError, match="1999"):
        fnp.ones(2).__array_namespace__(api_version="1999.12")
