"""Programs and equations: what they check, how they compare, and that they do not recurse."""

import pickle

import numpy as np
import pytest

import fxarray
import fxarray.numpy as fnp
from fxarray import lax
from fxarray.core.errors import FxArrayError, ProgramError, ShapeError
from fxarray.core.ir import Equation, Literal, Program, Var
from fxarray.core.primitive import REGISTRY
from fxarray.core.python_source import program_from_source
from fxarray.core.types import ArrayType
from fxarray.interpreters.dce import eliminate_dead_code
from fxarray.interpreters.evaluate import evaluate
from fxarray.testing import check_program

F32 = ArrayType((), np.dtype("float32"))
VECTOR = ArrayType((3,), np.dtype("float32"))
SIN, ADD = REGISTRY["sin"](), REGISTRY["add"]()


def test_equation_infers_the_types_of_its_results():
    x = Var(VECTOR)
    equation = Equation(ADD, [x, x])
    assert [v.type for v in equation.outputs] == [VECTOR]


def test_ill_typed_equation_cannot_be_made():
    with pytest.raises(ShapeError, match="add"):
        Equation(ADD, [Var(VECTOR), Var(VECTOR.replace(shape=(4,)))])
    with pytest.raises(ProgramError, match="declared"):
        Equation(SIN, [Var(VECTOR)], [Var(F32)])
    with pytest.raises(ProgramError, match="declared"):
        Equation(SIN, [Var(VECTOR)], [])


def test_program_checks_scope():
    x, y = Var(F32), Var(F32)
    with pytest.raises(ProgramError, match="not defined before"):
        Program([x], [Equation(SIN, [y])], [])
    with pytest.raises(ProgramError, match="output"):
        Program([x], [], [y])
    with pytest.raises(ProgramError, match="twice"):
        Program([x, x], [], [x])


def test_use_before_definition_is_found():
    x = Var(F32)
    first = Equation(SIN, [x])
    second = Equation(SIN, first.outputs)
    with pytest.raises(ProgramError, match="equation 0"):
        Program([x], [second, first], second.outputs)


def test_programs_compare_up_to_names_of_variables():
    def make(f):
        return fxarray.make_program(f)(fnp.ones(3))

    def f(x):
        return fnp.sin(x) + 1

    assert make(f) == make(f)
    assert hash(make(f)) == hash(make(lambda y: fnp.sin(y) + 1))
    assert make(f) != make(lambda x: fnp.cos(x) + 1)
    assert make(f) != make(lambda x: fnp.sin(x) + 2)
    assert make(f) != make(lambda x: 1 + fnp.sin(x))
    assert make(lambda x: x * 0.0) != make(lambda x: x * -0.0)
    assert make(f) != "program"


def test_literals_compare_by_exact_value():
    def key(value):
        return Literal(fnp.asarray(value)).key

    assert key(1) != key(1.0)
    assert key(1) != key(True)
    assert key(0.0) != key(-0.0)
    assert key(float("nan")) == key(float("nan"))


def test_pickled_program_is_equal():
    def f(x):
        return lax.scan(lambda c, a: (c * a, fnp.sin(c)), x[0], x)

    program = fxarray.make_program(f)(fnp.ones(3))
    again = pickle.loads(pickle.dumps(program))
    assert again == program
    assert hash(again) == hash(program)
    check_program(again)


def test_constants_become_leading_inputs():
    constant = fnp.asarray(np.arange(3.0))
    program = fxarray.make_program(lambda x: x * constant)(fnp.ones(3))
    opened, values = program.open()
    assert not opened.constants
    assert values == program.consts
    assert values[0] is constant
    assert opened.in_avals == (constant.type, *program.in_avals)


def test_names_of_jax_work():
    program = fxarray.make_program(lambda x: fnp.sin(x))(1.0)
    assert program.eqns == program.equations
    assert program.in_avals == program.input_types
    assert program.out_avals == program.output_types


def test_replaced_program_is_checked_again():
    program = fxarray.make_program(lambda x: fnp.sin(x))(1.0)
    with pytest.raises(ProgramError):
        program.replace(inputs=())
    with pytest.raises(FxArrayError):
        program.equations[0].replace(inputs=[Var(ArrayType((2,), np.dtype("int32")))])


@pytest.fixture(scope="module")
def long_program():
    """A chain of 10^5 equations."""

    def chain(x):
        for _ in range(50_000):
            x = fnp.sin(x) * 1.0001
        return x

    return fxarray.make_program(chain)(1.0)


@pytest.mark.slow
def test_long_program_prints(long_program):
    assert len(long_program.equations) == 100_000
    assert str(long_program).count("\n") == 100_001


@pytest.mark.slow
def test_long_program_survives_its_python_source(long_program):
    assert program_from_source(long_program.to_python()) == long_program


@pytest.mark.slow
def test_long_program_is_evaluated(long_program):
    (value,) = evaluate(long_program, [fnp.asarray(1.0)])
    assert 0 < float(value) < 0.05


@pytest.mark.slow
def test_dead_code_of_long_program_is_dropped(long_program):
    kept, _ = eliminate_dead_code(long_program.replace(outputs=long_program.inputs))
    assert not kept.equations


@pytest.mark.slow
def test_long_function_is_differentiated():
    def chain(x):
        for _ in range(50_000):
            x = x * 1.00001
        return x + x

    assert abs(float(fxarray.grad(chain)(1.0)) - 2 * 1.00001**50_000) < 1e-2
