"""Repeated jit calls give what the first call gave, for every kind of argument."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import fxarray
import fxarray.numpy as fnp
from fxarray.core.errors import DeletedArrayError


def twice(function: Any, *args: Any, **kwargs: Any) -> list[Any]:
    return [np.asarray(function(*args, **kwargs)).tolist() for _ in range(2)]


def test_keyword_arguments_in_any_order_keep_their_meaning() -> None:
    @fxarray.jit
    def weigh(b: Any, a: Any) -> Any:
        return 10 * b + a

    one, two = fnp.float32(1.0), fnp.float32(2.0)
    assert twice(weigh, a=one, b=two) == [21.0, 21.0]
    assert twice(weigh, b=one, a=two) == [12.0, 12.0]
    assert twice(weigh, one, a=two) == [12.0, 12.0]
    assert twice(weigh, a=1.0, b=2.0) == [21.0, 21.0]
    assert weigh.cache_info().size == 2  # arrays and weak numbers


def test_keywords_that_are_trees_are_put_in_their_places() -> None:
    @fxarray.jit
    def weigh(z: Any, y: Any, *, x: Any) -> Any:
        return 100 * z["p"] + 10 * (y[0] - y[1]) + x

    z, y, x = {"p": fnp.asarray(3.0)}, (fnp.asarray(7.0), fnp.asarray(2.0)), fnp.asarray(1.0)
    assert twice(weigh, x=x, y=y, z=z) == [351.0, 351.0]
    assert twice(weigh, z, x=x, y=y) == [351.0, 351.0]


def test_numpy_arrays_and_numbers_are_read_anew_in_each_call() -> None:
    add = fxarray.jit(lambda x, y: x + y)
    array = np.zeros(2, np.float32)
    assert np.asarray(add(array, 1.0)).tolist() == [1, 1]
    array[0] = 5
    assert np.asarray(add(array, 2.0)).tolist() == [7, 2]
    assert add.cache_info().misses == 1


def test_the_result_does_not_share_memory_with_a_numpy_argument() -> None:
    same = fxarray.jit(lambda x: x)
    array = np.zeros(2, np.float32)
    for _ in range(2):
        result = same(array)
        array[0] += 1
        assert float(result[0]) == array[0] - 1


@pytest.mark.parametrize(("first", "second"), [(1, True), (1, 1.0), (0.0, False), (1.0, 1j)])
def test_numbers_of_different_classes_are_told_apart(first: Any, second: Any) -> None:
    double = fxarray.jit(lambda x: x + x)
    for value in (first, second, first, second):
        assert double(value).dtype == (fnp.asarray(value) + fnp.asarray(value)).dtype


def test_an_integer_too_great_is_refused_after_one_that_fits() -> None:
    double = fxarray.jit(lambda x: x + x)
    assert int(double(1)) == 2
    with pytest.raises(OverflowError, match="1099511627776"):
        double(2**40)


def test_static_values_are_told_apart_by_class_and_value() -> None:
    describe = fxarray.jit(lambda x, n: x * (10 if n is True else n), static_argnums=1)
    x = fnp.asarray(2.0)
    for _ in range(2):
        assert float(describe(x, 1)) == 2
        assert float(describe(x, True)) == 20
        assert float(describe(x, n=3)) == 6
    assert describe.cache_info().misses == 3


def test_static_tuples_and_strings_inside_trees_take_the_short_way() -> None:
    pick = fxarray.jit(lambda tree: tree["x"] if tree["name"] == "x" else -tree["x"])
    x = fnp.asarray(2.0)
    assert [float(pick({"x": x, "name": name})) for name in ("x", "y", "x", "y")] == [2, -2, 2, -2]
    assert pick.cache_info() == (2, 2, 2)


def test_a_mutated_static_object_without_value_equality_is_refused_each_time() -> None:
    class Scale:
        def __init__(self) -> None:
            self.factor = 2.0

    function = fxarray.jit(lambda scale, x: scale.factor * x)
    for _ in range(2):
        with pytest.raises(fxarray.core.errors.StaticArgumentError, match="identity"):
            function(Scale(), 1.0)


def test_donated_arguments_are_deleted_also_in_repeated_calls() -> None:
    step = fxarray.jit(lambda rate, state: state * rate, donate_argnames="state")
    for call in range(3):
        state = fnp.ones(3)
        result = step(fnp.asarray(2.0), state=state) if call % 2 else step(2.0, state)
        assert state.is_deleted()
        assert np.asarray(result).tolist() == [2, 2, 2]
    with pytest.raises(DeletedArrayError):
        step(2.0, state)


def test_donation_that_fits_no_result_warns_in_repeated_calls() -> None:
    total = fxarray.jit(lambda x: x.sum(), donate_argnums=0)
    for _ in range(2):
        with pytest.warns(UserWarning, match="donated"):
            total(fnp.ones(3))


def test_floating_point_errors_inside_give_no_warnings() -> None:
    divide = fxarray.jit(lambda x, y: x / y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(2):
            assert np.isinf(np.asarray(divide(fnp.ones(2), fnp.zeros(2)))).all()
            assert np.isinf(np.asarray(divide(1.0, 0.0)))
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        np.divide(1.0, np.zeros(1))


def test_jitted_functions_as_arguments_are_static() -> None:
    inner = fxarray.jit(lambda x: x + 1)
    apply = fxarray.jit(lambda f, x: f(x))
    assert twice(apply, inner, 1.0) == [2.0, 2.0]
    assert apply.cache_info().misses == 1
