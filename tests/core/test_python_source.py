"""Programs as Python source: run, it gives the same Program."""

import ast

import numpy as np
import pytest

import fxarray
import fxarray.numpy as fnp
from fxarray import lax
from fxarray.core.dims import ShapeVar
from fxarray.core.errors import ArgumentError
from fxarray.core.python_source import ops, program_from_source, scalar, size

X = fnp.asarray(np.array([0.5, -1.5, 2.0]))
CONSTANT = fnp.asarray(np.arange(200.0))


def loop(x):
    return lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, fnp.sin(c[1])), (0, x))


@fxarray.custom_jvp
def custom(x):
    return x * x


custom.defjvp(lambda primals, tangents: (primals[0] ** 2, 2 * primals[0] * tangents[0]))

FUNCTIONS = {
    "arithmetic": lambda x: fnp.tanh(x) / (x + 1.5) ** 2,
    "literals": lambda x: (x * -0.0 + float("inf"), x * float("nan"), x > 1, x + 1e-300),
    "complex": lambda x: x * (1 - 0.5j),
    "short constant": lambda x: x * np.array([1.0, np.nan, -0.0]),
    "long constant": lambda x: x[0] * CONSTANT,
    "indexing": lambda x: x[1:] + x.at[0].set(3.0)[fnp.array([0, 2])],
    "scan": lambda x: lax.scan(lambda c, a: (c * a, c), x[0], x),
    "while": loop,
    "cond": lambda x: lax.cond(x[0] > 0, fnp.sin, lambda v: v, x),
    "jit": lambda x: fxarray.jit(fnp.sin)(x) + fxarray.jit(fnp.sin)(x),
    "checkpoint": lambda x: fxarray.grad(fxarray.checkpoint(lambda v: fnp.sin(v).sum()))(x),
    "custom rule": lambda x: custom(x),
    "callback": lambda x: fxarray.pure_callback(lambda v: v * 2, x, x),
    "gradient": fxarray.grad(lambda x: (fnp.sin(x) * x[0]).sum()),
    "vmap": fxarray.vmap(lambda x: x**2 + x),
    "random": lambda x: fxarray.random.normal(fxarray.random.key(3), (2,)) * x[0],
    "no results": lambda x: (),
    "an unused argument and an output twice": lambda x: (3.0, 3.0),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_source_gives_the_same_program(name):
    program = fxarray.make_program(FUNCTIONS[name])(X)
    source = program.to_python()
    ast.parse(source)
    again = program_from_source(source)
    assert again == program
    assert again.key == program.key
    assert again.name == program.name


def test_symbolic_sizes_keep_their_promises():
    n = ShapeVar("n", min=2, max=64, multiple_of=2)
    shape = fxarray.ShapeDtypeStruct((n // 2 + 1, 3), "float32")
    program = fxarray.make_program(lambda x: x.sum(0))(shape)
    again = program_from_source(program.to_python())
    assert again == program
    assert size("n", n=(2, 64, 2)).key == n.key


def test_functions_are_kept_in_the_table():
    def host(x):
        return x

    source = fxarray.make_program(lambda x: fxarray.pure_callback(host, x, x))(X).to_python()
    assert host in source.table.values()
    assert "table[" in source
    assert program_from_source(str(source), source.table) is not None


def test_source_shows_lines_when_asked_for():
    program = fxarray.make_program(FUNCTIONS["arithmetic"])(X)
    assert "test_python_source.py" in program.to_python(source=True)
    assert program_from_source(program.to_python(source=True)) == program


def test_functions_do_not_hide_variables():
    """A Program called like a variable gets another name."""

    def f(x):
        return fnp.sin(x)

    program = fxarray.make_program(lambda x: fxarray.jit(f)(x) + fxarray.jit(f)(x * 2) * 3)(X)
    assert program_from_source(program.to_python()) == program


def test_narrow_scalars_are_exact():
    for dtype, value in (("bfloat16", 1.5), ("float16", -0.0), ("int4", -3), ("uint64", 2**64 - 1)):
        assert scalar(value, dtype).value.numpy_view() == value


def test_unknown_operation_is_named():
    with pytest.raises(ArgumentError, match="no_such_operation"):
        ops.no_such_operation()
