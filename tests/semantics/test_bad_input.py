"""Bad input: mistakes are found while tracing, with operation, operands, shapes and line."""

from __future__ import annotations

import re
import traceback

import numpy as np
import pytest

import fxarray as fx
import fxarray.numpy as fnp
from fxarray import errors, lax, nn, random

MISTAKES = {
    "shapes": (lambda x: x + fnp.ones(4), errors.ShapeError, ["add", "(3)", "(4)"]),
    "product": (lambda x: x @ fnp.ones((4, 2)), errors.ShapeError, ["matmul", "3", "4"]),
    "reshape": (lambda x: x.reshape(2, 2), errors.ShapeError, ["reshape", "3"]),
    "concatenate": (
        lambda x: fnp.concatenate([x, fnp.ones((2, 2))]),
        errors.ShapeError,
        ["concatenate", "1"],
    ),
    "stack": (lambda x: fnp.stack([x, fnp.ones(2)]), errors.ShapeError, ["stack", "3", "2"]),
    "broadcast": (lambda x: fnp.broadcast_to(x, (2, 4)), errors.ShapeError, ["broadcast_to", "3"]),
    "axis": (lambda x: fnp.sum(x, axis=2), errors.AxisError, ["sum", "2", "1"]),
    "axis twice": (lambda x: fnp.transpose(x[None], (0, 0)), ValueError, ["transpose"]),
    "squeeze": (lambda x: fnp.squeeze(x, 0), ValueError, ["squeeze", "3"]),
    "dtype": (lambda x: lax.sin(fnp.arange(3)), errors.DTypeError, ["sin", "i32[3]"]),
    "two dtypes": (lambda x: lax.add(x, fnp.arange(3)), TypeError, ["add", "f32[3]", "i32[3]"]),
    "bit operation": (lambda x: x & 1, errors.DTypeError, ["and", "f32[3]"]),
    "too many indices": (lambda x: x[0, 0], errors.IndexingError, ["2", "1"]),
    "float index": (lambda x: x[1.5], errors.IndexingError, ["1.5"]),
    "text": (lambda x: fnp.sin("a"), TypeError, ["sin", "str"]),
    "None": (lambda x: fnp.sin(None), TypeError, ["sin", "NoneType"]),
    "list": (lambda x: x + [1.0, 2.0, 3.0], TypeError, ["+", "list"]),
    "unknown dtype": (lambda x: x.astype("floaty"), TypeError, ["floaty"]),
    "one_hot": (lambda x: nn.softmax(x, axis=3), ValueError, ["3"]),
    "key": (lambda x: random.normal(x), TypeError, ["key"]),
    "scan": (lambda x: lax.scan(lambda c, _: (c[:2], None), x, None, 2), TypeError, ["scan"]),
    "cond": (lambda x: lax.cond(True, lambda: x, lambda: x[:1]), TypeError, ["cond", "3", "1"]),
    "grad": (lambda x: fx.grad(lambda v: v)(x), TypeError, ["grad", "f32[3]"]),
    "vmap": (lambda x: fx.vmap(lambda v: v, in_axes=1)(x), ValueError, ["vmap", "f32[3]"]),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_found_while_tracing_with_all_that_helps(name):
    """Bad input: before anything runs, with operation, operand, shapes and the user's own line."""
    misuse, error, words = MISTAKES[name]
    ran = []

    def f(x):
        fx.debug.callback(lambda: ran.append(1))
        return misuse(x)

    for wrap in (fx.jit, lambda f: lambda x: fx.eval_shape(f, x), lambda f: lambda x: misuse(x)):
        with pytest.raises(error) as caught:
            wrap(f)(fnp.ones(3))
        text = str(caught.value)
        assert isinstance(caught.value, errors.FxArrayError)
        for word in words:
            assert word in text, text
        assert re.search(r"test_bad_input\.py:\d+", text), text
    fx.effects_barrier()
    assert ran == []


def test_tree_mistakes_name_the_leaf():
    """Bad input: a tree of another structure says where it differs."""
    tree = {"w": fnp.ones(2), "b": (fnp.ones(1), fnp.ones(1))}
    with pytest.raises(errors.TreeStructureError, match=r"\['b'\]"):
        lax.scan(lambda c, _: ({**c, "b": list(c["b"])}, None), tree, None, length=1)
    with pytest.raises(ValueError, match=r"\['b'\]|'b'"):
        fx.tree.map(lambda x, y: x, tree, {**tree, "b": [1, 2]})
    _, pullback = fx.vjp(lambda t: t, tree)
    with pytest.raises((ValueError, TypeError), match=r"b"):
        pullback({**tree, "b": [1.0, 1.0]})


@pytest.mark.parametrize(
    "make",
    [
        lambda: fx.jit(lambda x: x, static_argnums=3),
        lambda: fx.jit(lambda x: x, static_argnames="y"),
        lambda: fx.jit(3),
        lambda: fx.grad(3),
        lambda: fx.vmap(3),
        lambda: fx.grad(lambda x: x, argnums=2)(1.0),
        lambda: fx.grad(lambda x: x, argnums="x")(1.0),
        lambda: fx.vmap(lambda x: x, in_axes="a")(fnp.ones(2)),
        lambda: fx.jvp(lambda x: x, (1.0,), (1.0, 2.0)),
        lambda: fx.jvp(lambda x: x, 1.0, 1.0),
        lambda: fx.checkpoint(3),
        lambda: lax.switch(0, [], 1.0),
        lambda: lax.cond(fnp.ones(2), lambda: 1, lambda: 2),
        lambda: lax.while_loop(lambda c: c, lambda c: c, 1.0),
        lambda: lax.fori_loop(0, 2.5, lambda i, c: c, 1.0),
        lambda: fnp.zeros(-1),
        lambda: fnp.arange(fnp.ones(2)),
        lambda: random.key("seed"),
    ],
)
def test_wrong_arguments_are_errors_of_fxarray(make):
    """Bad input: each is refused with an error of ours, that is also a ValueError or TypeError."""
    with pytest.raises((ValueError, TypeError)) as caught:
        make()
    assert isinstance(caught.value, errors.FxArrayError)
    assert caught.value.message


def test_a_wrong_call_raises_python_s_own_error():
    """Bad input: a missing or unknown argument is Python's TypeError about the function."""
    for transform in (fx.jit, fx.grad, fx.vmap, fx.checkpoint):

        def takes_two(first, second):
            return first

        with pytest.raises(TypeError, match=r"takes_two\(\) missing|second"):
            transform(takes_two)(fnp.ones(2) if transform is fx.vmap else 1.0)
        value = fnp.ones(2) if transform is fx.vmap else 1.0
        with pytest.raises(TypeError, match="third"):
            transform(takes_two)(value, value, third=value)


def test_an_error_deep_inside_has_one_short_message():
    """Pain point 10: through jit, vmap, grad, scan, checkpoint: one message, few lines."""

    @fx.checkpoint
    def body(carry, _):
        return carry * fnp.ones(3), None

    def loss(x):
        return fnp.sum(lax.scan(body, x, None, length=2)[0])

    with pytest.raises(errors.ShapeError) as caught:
        fx.jit(fx.vmap(fx.grad(loss)))(fnp.ones((4, 2)))
    text = "".join(traceback.format_exception(caught.value))
    assert "multiply" in str(caught.value)
    assert text.count("\n") < 40


def test_nothing_of_an_error_stays_behind():
    """Bad input: after a mistake inside nested transforms, everything works as before."""
    for wrap in (fx.jit, fx.grad, fx.vmap, lambda f: fx.jit(fx.grad(fx.checkpoint(f)))):
        with pytest.raises(errors.ShapeError):
            wrap(lambda x: fnp.sum(x + fnp.ones(4) @ fnp.ones((3, 3))))(fnp.ones(3))
    assert float(fnp.sum(fnp.ones(3))) == 3.0
    np.testing.assert_array_equal(fx.jit(lambda x: x * 2)(fnp.ones(2)), [2, 2])
    np.testing.assert_array_equal(fx.vmap(fx.grad(fnp.sin))(fnp.zeros(2)), [1, 1])


def test_nan_is_found_where_it_is_made():
    """Pain point 11: with debug_nans the operation and the line are named, backwards too."""
    with fx.config.using(debug_nans=True):
        with pytest.raises(FloatingPointError, match=r"(?s)log.*test_bad_input\.py:\d+"):
            fnp.log(fnp.asarray(-1.0))
        with pytest.raises(FloatingPointError, match="log"):
            fx.jit(fnp.log)(-1.0)
        with pytest.raises(FloatingPointError):
            fx.grad(lambda x: fnp.where(x > 0, fnp.sqrt(x), 0.0))(0.0)
