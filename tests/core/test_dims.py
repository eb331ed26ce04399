"""Symbolic sizes: normal form, bounds and decisions against brute force, assumptions, binding."""

from __future__ import annotations

import itertools
import operator
import pickle

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from fxarray.core.dims import (
    Dim,
    ShapeVar,
    assuming,
    assumptions_in_scope,
    dim_max,
    dim_min,
    divide_exact,
    is_constant,
    parse_dim,
    same,
    shape_product,
    solve,
)
from fxarray.core.errors import (
    ArgumentError,
    InconclusiveDimension,
    ShapeError,
    SymbolicSizeError,
)

batch = ShapeVar("batch")
seq = ShapeVar("seq")
heads = ShapeVar("heads", min=2, max=9)
blocks = ShapeVar("blocks", min=0, max=40, multiple_of=4)


# --- random expressions, built both as sizes and as functions of numbers -------------------------

VARIABLES = {"heads": heads, "blocks": blocks, "batch": batch}
SIZES = {"heads": range(2, 10), "blocks": range(0, 41, 4), "batch": range(1, 13)}
RELATIONS = [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge]


def _binary(children):
    names = st.sampled_from(["add", "sub", "mul", "floordiv", "mod", "min", "max"])
    return st.tuples(names, children, children)


EXPRESSIONS = st.recursive(
    st.one_of(st.integers(-5, 9), st.sampled_from(sorted(VARIABLES))), _binary, max_leaves=6
)


def build(expression, leaves, least, greatest):
    """The value of an expression, with `leaves` for names and functions for min and max."""
    if isinstance(expression, int):
        return expression
    if isinstance(expression, str):
        return leaves[expression]
    kind, left, right = expression
    a, b = build(left, leaves, least, greatest), build(right, leaves, least, greatest)
    if kind in ("min", "max"):
        return least(a, b) if kind == "min" else greatest(a, b)
    return getattr(operator, kind)(a, b)


def symbolic(expression):
    return build(expression, VARIABLES, dim_min, dim_max)


def numeric(expression, sizes):
    return build(expression, sizes, min, max)


def all_sizes():
    for values in itertools.product(*SIZES.values()):
        yield dict(zip(SIZES, values, strict=True))


SOME_SIZES = list(all_sizes())[::7]


def evaluate(size, sizes):
    return size.evaluate(sizes) if isinstance(size, Dim) else size


@settings(max_examples=400)
@given(EXPRESSIONS)
def test_arithmetic_evaluates_as_python_does(expression):
    try:
        size = symbolic(expression)
    except ZeroDivisionError:
        assume(False)
    for sizes in SOME_SIZES[::5]:
        try:
            expected = numeric(expression, sizes)
        except ZeroDivisionError:
            continue
        assert evaluate(size, sizes) == expected, (expression, size, sizes)


@settings(max_examples=300)
@given(EXPRESSIONS)
def test_bounds_enclose_every_value(expression):
    try:
        size = symbolic(expression)
    except ZeroDivisionError:
        assume(False)
    if not isinstance(size, Dim):
        return
    low, high = size.bounds
    for sizes in SOME_SIZES:
        try:
            value = size.evaluate(sizes)
        except ZeroDivisionError:
            continue
        assert low is None or low <= value, (size, sizes)
        assert high is None or value <= high, (size, sizes)


@settings(max_examples=400)
@given(EXPRESSIONS, EXPRESSIONS, st.sampled_from(RELATIONS))
def test_a_decided_comparison_holds_for_every_size(left, right, relation):
    try:
        a, b = symbolic(left), symbolic(right)
        answer = relation(a, b)
    except (ZeroDivisionError, InconclusiveDimension):
        return
    for sizes in SOME_SIZES:
        try:
            values = evaluate(a, sizes), evaluate(b, sizes)
        except ZeroDivisionError:
            continue
        assert relation(*values) == answer, (a, b, relation, sizes)


@settings(max_examples=300)
@given(EXPRESSIONS)
def test_printed_sizes_read_back_as_the_same_structure(expression):
    try:
        size = symbolic(expression)
    except ZeroDivisionError:
        assume(False)
    read = parse_dim(str(size), *VARIABLES.values())
    assert str(read) == str(size)
    assert is_constant(size) or read.key == size.key


@settings(max_examples=300)
@given(EXPRESSIONS, st.sampled_from(["heads >= 4", "batch % 3 == 0", "heads == batch + 1"]))
def test_decisions_under_an_assumption_hold_where_it_holds(expression, text):
    try:
        size = symbolic(expression)
    except ZeroDivisionError:
        assume(False)
    if not isinstance(size, Dim):
        return
    with assuming(text) as scope:
        try:
            answer = size > 0
        except InconclusiveDimension:
            return
    for sizes in SOME_SIZES + [{"heads": b + 1, "batch": b, "blocks": 4} for b in range(1, 9)]:
        if scope[-1].holds(sizes):
            try:
                assert (size.evaluate(sizes) > 0) == answer, (size, text, sizes)
            except ZeroDivisionError:
                continue


# --- normal form ---------------------------------------------------------------------------------


def test_results_without_variables_are_ints():
    assert type(batch - batch) is int
    assert (batch * 4) // batch == 4
    assert type((batch * 4) // batch) is int


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (batch, "batch"),
        (2 * batch + 1, "2*batch + 1"),
        (batch // 2, "floor(batch / 2)"),
        (batch % 5, "mod(batch, 5)"),
        (8 - batch, "8 - batch"),
        (batch * seq + batch**2, "batch**2 + batch*seq"),
        (-(-batch // 128), "floor((batch + 127) / 128)"),
        ((batch - 3) // 2 + 1, "floor((batch + 1) / 2) - 1"),
        ((batch + 1) // (seq * 2), "floor((batch + 1) / (2*seq))"),
        (dim_min(batch, 4), "min(4, batch)"),
    ],
)
def test_sizes_print_as_they_would_be_written(size, text):
    assert str(size) == text


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((batch + seq) ** 2, batch**2 + 2 * batch * seq + seq**2),
        ((batch * seq + seq) // seq, batch + 1),
        ((4 * batch + 3) // 4, batch),
        ((batch // 2) // 3, batch // 6),
        (((batch + 1) // 2 + 1) // 3, (batch + 3) // 6),
        ((6 * batch + 4) // 4, (3 * batch + 2) // 2),
        (-(-batch // 8), (batch + 7) // 8),
        ((batch * 6) % 4, 2 * (batch % 2)),
        ((batch + 4 * seq) % 4, batch % 4),
        (blocks // 4 * 4, blocks),
        ((blocks + 3) // 4, blocks // 4),
        (blocks // 2 // 2 * 4, blocks),
        (dim_max(batch, dim_max(3, seq)), dim_max(seq, batch, 3)),
        (dim_max(batch + 1, batch), batch + 1),
    ],
)
def test_equal_sizes_have_equal_structure(left, right):
    assert left.key == right.key
    assert hash(left) == hash(right)
    assert same(left, right)


def test_quotient_and_remainder_recompose():
    for divisor in (2, 3, 7, 128):
        assert divisor * (batch // divisor) + batch % divisor == batch
        assert same(divisor * (batch // divisor) + batch % divisor, batch)
    assert divmod(batch, 3) == (batch // 3, batch % 3)


def test_numpy_integers_are_sizes_on_either_side():
    assert same(np.int64(2) * batch, 2 * batch)
    assert same(batch + np.uint8(3), batch + 3)
    assert (batch == np.int64(0)) is False


def test_other_operands_are_left_to_their_own_operators():
    with pytest.raises(TypeError):
        batch * 1.5
    with pytest.raises(TypeError):
        batch / 2
    assert (batch == "batch") is False

    class Left:
        def __rmul__(self, other):
            return "taken"

    assert batch * Left() == "taken"


def test_sizes_survive_pickling():
    size = dim_min(batch // 3, blocks)
    assert pickle.loads(pickle.dumps(size)).key == size.key


def test_sizes_can_be_keys_of_dicts():
    assert {2 * batch: "twice"}[batch + batch] == "twice"


def test_one_name_for_two_different_variables_is_an_error():
    with pytest.raises(ArgumentError, match="both called 'batch'"):
        batch + ShapeVar("batch", min=3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "2x"}, "cannot name a size"),
        ({"name": "max"}, "cannot name a size"),
        ({"name": "x", "min": -1}, "negative"),
        ({"name": "x", "min": 5, "max": 4}, "no size is"),
        ({"name": "x", "min": 5, "max": 7, "multiple_of": 4}, "no size is"),
        ({"name": "x", "multiple_of": 0}, "not positive"),
    ],
)
def test_impossible_variables_are_refused(arguments, message):
    with pytest.raises(ArgumentError, match=message):
        ShapeVar(**arguments)


def test_division_by_constant_zero_is_an_error():
    with pytest.raises(ZeroDivisionError, match="batch"):
        batch // 0
    with pytest.raises(ZeroDivisionError, match="batch"):
        batch % 0


# --- decisions -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "comparison",
    [
        lambda: batch >= 1,
        lambda: batch != 0,
        lambda: batch + 1 > batch,
        lambda: batch * seq >= batch,
        lambda: batch * seq + 1 > seq,
        lambda: 2 * batch + 1 != 2 * seq,
        lambda: heads <= 9,
        lambda: blocks != 6,
        lambda: batch // 2 <= batch,
        lambda: 2 * (batch // 2) >= batch - 1,
        lambda: (batch + 7) // 8 * 8 >= batch,
        lambda: (batch + 7) // 8 * 8 < batch + 8,
        lambda: (batch + seq - 1) // seq * seq >= batch,
        lambda: batch % seq < seq + 1,
        lambda: (heads - 20) // batch < 0,
        lambda: (heads - 20) // batch >= -18,
        lambda: dim_min(batch, seq) <= seq,
        lambda: dim_max(batch, seq) >= batch,
        lambda: dim_max(batch, seq) + dim_min(batch, seq) >= 2,
        lambda: bool(batch),
    ],
)
def test_provable_comparisons_are_decided(comparison):
    assert comparison() is True


@pytest.mark.parametrize(
    "comparison",
    [
        lambda: batch == 4,
        lambda: batch < seq,
        lambda: batch - 1 > 0,
        lambda: blocks == 8,
        lambda: batch % 2 == 0,
        lambda: bool(batch - 1),
    ],
)
def test_comparisons_that_depend_on_sizes_raise(comparison):
    with pytest.raises(InconclusiveDimension):
        comparison()


def test_an_inconclusive_comparison_names_variable_witnesses_and_remedy():
    with pytest.raises(InconclusiveDimension) as caught:
        _ = batch == 4
    message = str(caught.value)
    assert "batch == 4" in message
    assert "true for batch=4, false for batch=1" in message
    assert 'assuming("batch == 4")' in message
    assert "ShapeVar('batch', min=..., max=...)" in message


@pytest.mark.parametrize("convert", [int, float, range, operator.index, lambda d: [0] * d])
def test_conversion_to_a_number_names_the_variable_and_the_remedy(convert):
    with pytest.raises(SymbolicSizeError, match=r"'batch'.*fori_loop"):
        convert(batch)


def test_same_never_raises():
    assert not same(batch, 4)
    assert not same(batch, seq)
    assert same(4, 4)
    assert same(batch + 0, batch)


# --- assumptions ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("texts", "comparison"),
    [
        (["batch % 2 == 0"], lambda: batch // 2 * 2 == batch),
        (["batch % 4 == 0"], lambda: batch % 2 == 0),
        (["batch % 2 == 0"], lambda: batch != 7),
        (["batch >= 8"], lambda: batch > 7),
        (["batch == 4"], lambda: batch * 2 == 8),
        (["batch <= seq"], lambda: seq - batch >= 0),
        (["2*batch >= 5"], lambda: batch >= 3),
        (["2*batch <= 5"], lambda: batch <= 2),
        (["batch < seq", "batch >= 1"], lambda: seq >= 2),
        (["batch <= seq", "seq <= 100"], lambda: batch <= 100),
        (["batch == seq"], lambda: batch + 1 == seq + 1),
        (["batch == 2*seq"], lambda: batch >= seq),
        (["batch == 2*seq"], lambda: batch % 2 == 0),
        (["batch != seq"], lambda: batch - seq != 0),
        (["batch != 1"], lambda: batch >= 2),
        (["floor(batch / 2) == seq"], lambda: batch >= 2 * seq),
        (["batch // 2 == 3"], lambda: batch <= 7),
        (["batch*seq == heads"], lambda: batch * seq - heads == 0),
    ],
)
def test_assumptions_decide_comparisons(texts, comparison):
    with pytest.raises(InconclusiveDimension):
        comparison()
    with assuming(*texts):
        assert comparison() is True
    with pytest.raises(InconclusiveDimension):
        comparison()


def test_assumptions_do_not_decide_what_they_do_not_imply():
    with assuming("batch <= seq"):
        for comparison in (lambda: batch - seq + 5 > 0, lambda: batch < seq, lambda: batch >= 2):
            with pytest.raises(InconclusiveDimension):
                comparison()
    with assuming("batch % 2 == 0"), pytest.raises(InconclusiveDimension):
        _ = batch % 4 == 0


def test_assumptions_nest_and_identify_the_scope():
    outside = assumptions_in_scope()
    with assuming("batch >= 2") as outer:
        with assuming("seq >= 2") as inner:
            assert assumptions_in_scope() == inner
            assert len(inner) == len(outer) + 1
        assert assumptions_in_scope() == outer
    assert assumptions_in_scope() == outside
    with assuming("batch >= 2") as again:
        assert again == outer
        assert hash(again) == hash(outer)


def test_same_uses_assumptions():
    with assuming("batch == seq"):
        assert same(batch * 2, seq + batch)
    assert not same(batch * 2, seq + batch)


@pytest.mark.parametrize(
    "text", ["batch", "batch = 2", "1 < batch < 3", "batch in seq", "f(x) > 1"]
)
def test_a_text_that_is_no_comparison_is_refused(text):
    with pytest.raises(ArgumentError, match=r"\w"), assuming(text):
        pass


# --- exact division, products --------------------------------------------------------------------


def test_products_of_shapes():
    assert same(shape_product((batch, 3, seq)), 3 * batch * seq)
    assert shape_product((batch, 0)) == 0
    assert shape_product(()) == 1


def test_exact_division():
    assert same(divide_exact(batch * 6, 3), 2 * batch)
    assert same(divide_exact(batch * seq + batch, batch), seq + 1)
    assert same(divide_exact(blocks * 3, 12), blocks // 4)
    assert divide_exact(12, 4) == 3


def test_exact_division_that_fails_says_why():
    with pytest.raises(ShapeError, match="5 does not divide 12"):
        divide_exact(12, 5)
    with pytest.raises(ShapeError, match="2 does not divide"):
        divide_exact(2 * batch + 1, 2)
    with pytest.raises(ShapeError, match="size 0"):
        divide_exact(batch, 0)
    with pytest.raises(InconclusiveDimension, match=r'assuming\("batch % 2 == 0"\)'):
        divide_exact(batch, 2)
    with pytest.raises(InconclusiveDimension, match=r"\(batch \+ 1\) % \(seq \+ 1\) == 0"):
        divide_exact(batch + 1, seq + 1)


def test_exact_division_under_an_assumption():
    with assuming("batch % 2 == 0"):
        assert same(divide_exact(batch, 2) * 2, batch)


# --- binding -------------------------------------------------------------------------------------


def test_solve_binds_variables_in_any_order():
    found = solve([(batch * seq, 2 * seq - 1), (seq,)], [(12, 5), (3,)])
    assert found == {"batch": 4, "seq": 3}


def test_solve_takes_integer_roots():
    assert solve([(batch**2,)], [(49,)]) == {"batch": 7}
    with pytest.raises(ShapeError, match="not batch"):
        solve([(batch**2,)], [(48,)])


@pytest.mark.parametrize(
    ("shapes", "actual", "message"),
    [
        ([(batch,), (batch,)], [(3,), (4,)], r"dimension 0 of argument 1 is 4.*batch = 3 from"),
        ([(batch, batch // 2)], [(5, 3)], r"floor\(batch / 2\) = 2 is needed"),
        ([(2 * batch,)], [(5,)], "not 2\\*batch for any integer"),
        ([(batch, 3)], [(5, 4)], "dimension 1 of argument 0 is 4, where 3"),
        ([(batch,)], [(5, 4)], "2 dimensions"),
        ([(batch,)], [(0,)], "must be any integer from 1"),
        ([(heads,)], [(10,)], "must be any integer from 2 up to 9"),
        ([(blocks,)], [(6,)], "must be any multiple of 4"),
        ([(batch - 5,)], [(-7,)], "from 1"),
    ],
)
def test_shapes_that_violate_a_promise_are_refused(shapes, actual, message):
    with pytest.raises(ShapeError, match=message):
        solve(shapes, actual)


def test_solve_names_the_arguments_it_is_given():
    with pytest.raises(ShapeError, match="dimension 0 of keys is 4"):
        solve([(batch,), (batch,)], [(3,), (4,)], names=["queries", "keys"])


def test_solve_checks_assumptions():
    with assuming("batch % 2 == 0"), pytest.raises(ShapeError, match=r"mod\(batch, 2\) == 0"):
        solve([(batch,)], [(3,)])
    with assuming("batch % 2 == 0"):
        assert solve([(batch,)], [(4,)]) == {"batch": 4}


def test_solve_says_what_it_cannot_find():
    with pytest.raises(ArgumentError, match="the size of batch does not follow"):
        solve([(batch // 2,)], [(3,)])


def test_evaluate_names_a_missing_variable():
    with pytest.raises(ArgumentError, match="'seq'"):
        (batch + seq).evaluate({"batch": 1})


@pytest.mark.parametrize(
    "text", ["batch +", "batch @ 2", "2.5", "sin(batch)", "True", "batch ** seq"]
)
def test_texts_that_are_no_sizes_are_refused(text):
    with pytest.raises(ArgumentError):
        parse_dim(text)
