"""How Programs print."""

import keyword

import numpy as np

import fxarray
import fxarray.numpy as fnp
from fxarray import lax
from fxarray.core.pretty import format_value, function_name, variable_name


def printed(f, *args, **options):
    return fxarray.make_program(f)(*args).to_string(**options)


def test_variables_are_letters_and_no_keywords():
    names = [variable_name(i) for i in range(2000)]
    assert names[:2] == ["a", "b"]
    assert names[25:28] == ["z", "aa", "ab"]
    assert len(set(names)) == 2000
    assert not any(map(keyword.iskeyword, names))


def test_names_are_identifiers():
    assert function_name("<lambda>") == "program"
    assert function_name("loss") == "loss"
    assert function_name("vmap_of_<lambda>") == "vmap_of_lambda"
    assert function_name("class") == "class_"
    assert all(
        function_name(n).isidentifier() for n in ("f.<locals>.g", "", "is", "a b", "<lambda>")
    )


def test_program_prints_an_equation_a_line():
    def f(x, y):
        return fnp.sin(x) * y, x

    assert printed(f, 1.0, 2.0) == (
        "def f(a: f32[]~, b: f32[]~) -> (f32[]~, f32[]~):\n"
        "    c: f32[]~ = sin(a)\n"
        "    d: f32[]~ = mul(c, b)\n"
        "    return d, a"
    )


def test_program_without_results_prints():
    assert printed(lambda: ()) == "def program() -> ():\n    return"


def test_nested_programs_print_as_local_functions():
    text = printed(lambda x: lax.cond(x[0] > 0, fnp.sin, fnp.cos, x), fnp.ones(2))
    assert "        b: f32[2] = sin(a)" in text
    assert "branches=(branches_" in text
    assert text.count("def ") == 3


def test_source_lines_are_shown_when_asked_for():
    def f(x):
        return fnp.sin(x)

    assert "test_pretty.py" not in printed(f, 1.0)
    assert "test_pretty.py:" in printed(f, 1.0, source=True)
    assert "(f)" in printed(f, 1.0, source=True)


def test_scopes_are_shown_when_asked_for():
    def f(x):
        with fxarray.named_scope("layer"):
            return fnp.sin(x)

    assert "layer" not in printed(f, 1.0)
    assert "# layer" in printed(f, 1.0, scopes=True)


def test_parameters_print_without_addresses():
    class Thing:
        pass

    assert format_value(np.dtype("float32")) == "float32"
    assert format_value((1, np.dtype("int8"))) == "(1, int8)"
    assert format_value((1,)) == "(1,)"
    assert "0x" not in format_value(Thing())
    assert format_value(test_scopes_are_shown_when_asked_for) == (
        "<test_scopes_are_shown_when_asked_for>"
    )
    assert format_value(np.zeros((20, 3))) == "array of float64[20, 3]"
    assert format_value(np.arange(2)) == "array([0, 1], int64)"


def test_constants_print_their_values():
    constant = fnp.asarray([1.5, 2.5])
    assert "= array([1.5, 2.5], float32)" in printed(lambda x: x * constant, fnp.ones(2))
