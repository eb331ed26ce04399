"""pure_callback, io_callback and debug under every transform."""

from __future__ import annotations

import io

import numpy as np
import pytest

import fxarray as fx
import fxarray.numpy as fnp
from fxarray import lax
from fxarray.core.errors import ArgumentError, CallbackError, NonDifferentiableError


def sort(x, method="sequential"):
    return fx.pure_callback(np.sort, x, x, vmap_method=method)


def test_pure_callback_eager_jit_and_scan():
    x = fnp.asarray([3.0, 1.0, 2.0])
    np.testing.assert_array_equal(sort(x), [1, 2, 3])
    np.testing.assert_array_equal(fx.jit(sort)(x), [1, 2, 3])
    _, out = lax.scan(lambda c, row: (c, sort(row)), 0, fnp.stack([x, -x]))
    np.testing.assert_array_equal(out, [[1, 2, 3], [-3, -2, -1]])


def test_pure_callback_with_trees():
    shapes = {
        "low": fx.ShapeDtypeStruct((), np.float32),
        "high": fx.ShapeDtypeStruct((), "float32"),
    }
    f = lambda t: fx.pure_callback(  # noqa: E731
        lambda t, key: {"low": t[key].min(), "high": t[key].max()}, shapes, t, key="x"
    )
    out = fx.jit(f)({"x": fnp.arange(4.0)})
    assert float(out["low"]) == 0
    assert float(out["high"]) == 3


def test_an_unused_pure_callback_is_dropped_but_an_io_callback_is_not():
    calls = []
    note = lambda x: (calls.append(1), x)[1]  # noqa: E731

    def f(x):
        fx.pure_callback(note, x, x)
        return x

    fx.jit(f)(1.0)
    assert calls == []

    def g(x):
        fx.io_callback(note, x, x)
        return x

    fx.jit(g)(1.0), fx.jit(g)(1.0)
    assert calls == [1, 1]


@pytest.mark.parametrize("method", ["sequential", "expand_dims", "broadcast_all"])
def test_vmap_methods_agree_with_a_loop(method):
    def add(x, y):
        return fx.pure_callback(np.add, x, x, y, vmap_method=method)

    x, y = fnp.arange(6.0).reshape(3, 2), fnp.asarray([10.0, 20.0])
    for wrap in (lambda f: f, fx.jit):
        np.testing.assert_array_equal(wrap(fx.vmap(add, in_axes=(0, None)))(x, y), x + y)
        np.testing.assert_array_equal(
            wrap(fx.vmap(add, in_axes=(1, 0)))(x, fnp.ones((2, 3))), x.T + 1
        )


def test_vmap_without_a_method_says_what_to_do():
    with pytest.raises(ArgumentError, match="vmap_method"):
        fx.vmap(lambda x: sort(x, None))(fnp.ones((2, 3)))
    with pytest.raises(ArgumentError, match="nonsense"):
        sort(fnp.ones(3), "nonsense")


def test_callbacks_have_no_derivative_unless_given_one():
    with pytest.raises(NonDifferentiableError, match="custom_jvp"):
        fx.grad(lambda x: fnp.sum(sort(x)))(fnp.ones(3))


def test_failures_in_callbacks_are_chained():
    def broken(x):
        raise KeyError("nope")

    with pytest.raises(CallbackError, match="nope") as info:
        fx.jit(lambda x: fx.pure_callback(broken, x, x))(1.0)
    assert isinstance(info.value.__cause__, KeyError)


@pytest.mark.parametrize(
    ("result", "match"),
    [
        (lambda x: np.ones(4, "float32"), "shape"),
        (lambda x: np.ones(3, "complex64"), "dtype"),
        (lambda x: (x, x), "structure"),
    ],
)
def test_results_other_than_announced_are_reported(result, match):
    with pytest.raises(CallbackError, match=match):
        fx.pure_callback(result, fnp.ones(3), fnp.ones(3))


def test_arrays_given_to_callbacks_cannot_be_written_to():
    def write(x):
        x[0] = 5
        return x

    with pytest.raises(CallbackError, match="read-only"):
        fx.pure_callback(write, fnp.ones(3), fnp.ones(3))


def test_ordered_io_callbacks_keep_their_order_and_cannot_be_mapped():
    seen = []

    def f(x):
        for i in range(4):
            fx.io_callback(lambda v, i=i: seen.append(i), None, x, ordered=True)
        return x

    fx.jit(f)(1.0)
    assert seen == [0, 1, 2, 3]
    with pytest.raises(ArgumentError, match="ordered"):
        fx.vmap(f)(fnp.ones(2))


PRINTS = {
    "eager": (lambda f: f(fnp.asarray(2.0)), ["x=2.0"]),
    "jit": (lambda f: fx.jit(f)(2.0), ["x=2.0"]),
    "grad": (lambda f: fx.grad(f)(2.0), ["x=2.0"]),
    "jit of grad": (lambda f: fx.jit(fx.grad(f))(2.0), ["x=2.0"]),
    "grad of jit": (lambda f: fx.grad(fx.jit(f))(2.0), ["x=2.0"]),
    "jvp": (lambda f: fx.jvp(f, (2.0,), (1.0,)), ["x=2.0"]),
    "vmap": (lambda f: fx.vmap(f)(fnp.arange(2.0)), ["x=0.0", "x=1.0"]),
    "jit of vmap": (lambda f: fx.jit(fx.vmap(f))(fnp.arange(2.0)), ["x=0.0", "x=1.0"]),
    "scan": (
        lambda f: lax.scan(lambda c, x: (c, f(x)), 0, fnp.arange(3.0)),
        ["x=0.0", "x=1.0", "x=2.0"],
    ),
    "grad of scan": (
        lambda f: fx.grad(lambda xs: lax.scan(lambda c, x: (c, f(x)), 0, xs)[1].sum())(
            fnp.arange(2.0)
        ),
        ["x=0.0", "x=1.0"],
    ),
    "cond": (lambda f: fx.jit(lambda p: lax.cond(p, f, lambda x: x, 2.0))(True), ["x=2.0"]),
    "cond not taken": (lambda f: fx.jit(lambda p: lax.cond(p, f, lambda x: x, 2.0))(False), []),
}


@pytest.mark.parametrize("name", PRINTS)
def test_debug_print_under(name, capsys):
    def f(x):
        fx.debug.print("x={x}", x=x)
        return x * 2

    run, lines = PRINTS[name]
    run(f)
    assert capsys.readouterr().out.split("\n")[:-1] == lines


def test_debug_print_checks_its_format_while_tracing():
    x = fnp.ones(())
    for bad, match in [
        (lambda: fx.debug.print("{} {}", x), "needs more"),
        (lambda: fx.debug.print("{y}", x=x), "'y'"),
        (lambda: fx.debug.print("nothing", x), "f-string"),
        (lambda: fx.debug.print("{", x), "format string"),
        (lambda: fx.debug.print(x), "format string first"),
    ]:
        with pytest.raises(ArgumentError, match=match):
            bad()


def test_debug_print_takes_format_specifications_and_statics(capsys):
    fx.jit(lambda x: fx.debug.print("{name}: {x:.2f} {}", len, x=x, name="loss"))(1 / 3)
    assert capsys.readouterr().out == "loss: 0.33 <built-in function len>\n"


def test_debug_callback_takes_trees():
    seen = []
    fx.jit(lambda t: fx.debug.callback(seen.append, t))({"a": fnp.ones(2)})
    np.testing.assert_array_equal(seen[0]["a"], [1, 1])


def test_breakpoint_shows_run_time_values():
    out = io.StringIO()
    commands = io.StringIO("p doubled\nx + 1\nw\nl\nu\nd\nnonsense\nc\n")

    def f(x):
        doubled = x * 2
        label = "static"
        fx.debug.breakpoint(stdin=commands, stdout=out)
        return doubled, len(label)

    fx.jit(f)(21.0)
    text = out.getvalue()
    assert "42." in text
    assert "22." in text
    assert "NameError" in text
    assert "-> " in text
    assert "test_callbacks.py" in text


def test_quitting_the_debugger_stops_the_computation():
    with pytest.raises(CallbackError, match="quit"):
        fx.jit(
            lambda x: (fx.debug.breakpoint(stdin=io.StringIO("q\n"), stdout=io.StringIO()), x)[1]
        )(1.0)


def test_effects_barrier_returns():
    assert fx.effects_barrier() is None
