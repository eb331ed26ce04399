"""Tracers refuse what has no answer, and say which line, which value and what to do."""

import numpy as np
import pytest

import fxarray
import fxarray.numpy as fnp
from fxarray import lax
from fxarray.core.errors import (
    ConcretizationError,
    TracerArrayConversionError,
    TracerBoolConversionError,
    TracerIntegerConversionError,
    UnexpectedTracerError,
)

CONVERSIONS = {
    "if": (lambda x: 1 if x > 0 else 2, TracerBoolConversionError),
    "while": (lambda x: [x for _ in iter(lambda: bool(x > 0), False)], TracerBoolConversionError),
    "and": (lambda x: (x > 0) and (x < 1), TracerBoolConversionError),
    "range": (lambda x: range(x.astype(int)), TracerIntegerConversionError),
    "int": (lambda x: int(x), TracerIntegerConversionError),
    "float": (lambda x: float(x), TracerIntegerConversionError),
    "complex": (lambda x: complex(x), TracerIntegerConversionError),
    "list index": (lambda x: [1, 2][x.astype(int)], TracerIntegerConversionError),
    "item": (lambda x: x.item(), TracerIntegerConversionError),
    "tolist": (lambda x: x.tolist(), TracerIntegerConversionError),
    "numpy": (lambda x: np.asarray(x), TracerArrayConversionError),
    "numpy function": (lambda x: np.sum(np.array(x)), TracerArrayConversionError),
}


@pytest.mark.parametrize("name", CONVERSIONS)
def test_conversion_under_jit_names_line_and_argument(name):
    function, error = CONVERSIONS[name]

    def f(price):
        function(price)
        return price

    with pytest.raises(error) as caught:
        fxarray.jit(f)(1.0)
    message = str(caught.value)
    assert isinstance(caught.value, ConcretizationError)
    assert "test_tracer.py" in message
    assert any(text in message for text in ("f32[]", "i32[]", "bool[]"))
    if name in {"int", "float", "item", "tolist", "numpy"}:
        assert "argument price" in message
        assert "of the traced function f" in message


def test_intermediate_value_says_where_it_was_computed():
    def f(x):
        total = fnp.sum(x)
        if total > 0:
            return x
        return -x

    with pytest.raises(TracerBoolConversionError, match=r"computed at .*test_tracer.py") as caught:
        fxarray.jit(f)(fnp.ones(3))
    assert "lax.cond" in str(caught.value)


@pytest.mark.parametrize("transform", [fxarray.grad, lambda f: fxarray.value_and_grad(f)])
def test_values_under_grad_are_concrete(transform):
    def f(x):
        assert x > 0
        assert float(x) == 2
        assert int(x) == 2
        assert complex(x) == 2
        assert x.item() == 2
        assert [0, 1, 2][lax.stop_gradient(x).astype(int)] == 2
        return x * x

    transform(f)(2.0)


def test_numpy_under_grad_is_refused_since_it_would_lose_the_derivative():
    with pytest.raises(TracerArrayConversionError, match=r"fxarray\.numpy"):
        fxarray.grad(lambda x: np.asarray(x).sum())(fnp.ones(3))


def test_values_under_vmap_have_no_single_truth():
    with pytest.raises(TracerBoolConversionError, match="vmap"):
        fxarray.vmap(lambda x: x if x > 0 else -x)(fnp.ones(3))


def leak_from(transform, argument):
    kept = []

    def leaky(x):
        kept.append(x * 2)
        return x * 1.0

    transform(leaky)(argument)
    return kept[0]


@pytest.mark.parametrize(
    ("transform", "argument"),
    [
        (fxarray.jit, 1.0),
        (fxarray.grad, 1.0),
        (fxarray.vmap, np.ones(3)),
        (lambda f: lambda x: fxarray.jvp(f, (x,), (x,)), 1.0),
        (fxarray.make_program, 1.0),
    ],
    ids=["jit", "grad", "vmap", "jvp", "make_program"],
)
@pytest.mark.parametrize(
    "use",
    [lambda x: x + 1, lambda x: fnp.sin(x), lambda x: fxarray.jit(lambda y: y + x)(1.0)],
    ids=["operator", "function", "closure"],
)
def test_leaked_value_is_reported(transform, argument, use):
    leaked = leak_from(transform, argument)
    with pytest.raises(UnexpectedTracerError, match="after that transformation has ended"):
        use(leaked)


def test_leak_from_jit_says_where_the_value_was_made():
    leaked = leak_from(fxarray.jit, 1.0)
    with pytest.raises(
        UnexpectedTracerError, match=r"made here: it was computed at .*test_tracer\.py"
    ):
        fnp.sin(leaked)


def test_tracers_print_their_type_and_trace():
    texts = []

    def f(x):
        texts.append(repr(x))
        return x.sum()

    fxarray.jit(f)(fnp.ones(3))
    fxarray.grad(f)(fnp.ones(3))
    fxarray.vmap(f)(fnp.ones((2, 3)))
    assert texts[0] == "Tracer<f32[3], jit or a control-flow body>"
    assert "grad" in texts[1]
    assert "1." in texts[1]
    assert "vmap" in texts[2]


def test_tracers_are_arrays_without_hash():
    def f(x):
        assert isinstance(x, fxarray.Array)
        with pytest.raises(TypeError):
            hash(x)
        return x

    fxarray.jit(f)(1.0)
