"""debug_nans and debug_infs name the operation and the user's line, eagerly and in jit."""

from __future__ import annotations

from typing import Any

import pytest

import fxarray
import fxarray.numpy as fnp
from fxarray import lax
from fxarray.core.errors import NonFiniteError


def root_then_double(x: Any) -> Any:
    y = fnp.sqrt(x)  # the culprit
    return y * 2


def test_an_eager_operation_that_gives_nan_raises() -> None:
    with fxarray.config.using(debug_nans=True):
        with pytest.raises(NonFiniteError, match="sqrt: 1 of 1 elements") as caught:
            root_then_double(fnp.asarray(-1.0))
        assert "the culprit" in str(caught.value)
    assert bool(fnp.isnan(root_then_double(fnp.asarray(-1.0))))


def test_jit_names_the_operation_and_the_line() -> None:
    function = fxarray.jit(root_then_double)
    function(fnp.asarray(-1.0))
    with fxarray.config.using(debug_nans=True):
        assert float(function(fnp.asarray(4.0))) == 4
        for _ in range(2):
            with pytest.raises(FloatingPointError, match="sqrt, called at .*the culprit"):
                function(fnp.asarray(-1.0))


def first_root(x: Any) -> Any:
    return fnp.sqrt(x)


def second_root(x: Any) -> Any:
    return fnp.sqrt(x)


@pytest.mark.parametrize("function", [first_root, second_root])
def test_of_functions_that_compute_the_same_the_called_one_is_named(function: Any) -> None:
    with fxarray.config.using(debug_nans=True):
        with pytest.raises(NonFiniteError, match=rf"sqrt, called at .*\({function.__name__}\)"):
            fxarray.jit(function)(-1.0)
        with pytest.raises(NonFiniteError, match=rf"called at .*\({function.__name__}\)"):
            fxarray.jit(fxarray.grad(fxarray.jit(lambda x: 0.0 * function(x))))(0.0)


def test_the_operation_inside_a_loop_is_named() -> None:
    @fxarray.jit
    def descend(x: Any) -> Any:
        return lax.fori_loop(0, 5, lambda _, c: fnp.sqrt(c) - 1, x)

    with (
        fxarray.config.using(debug_nans=True),
        pytest.raises(NonFiniteError, match=r"sqrt, called at .*fnp.sqrt\(c\) - 1"),
    ):
        descend(2.0)


def test_nans_that_do_not_reach_a_result_of_jit_are_let_pass() -> None:
    safe = fxarray.jit(lambda x: fnp.where(x > 0, fnp.log(x), 0.0))
    with fxarray.config.using(debug_nans=True):
        assert float(safe(-1.0)) == 0


def test_infinities_have_a_setting_of_their_own() -> None:
    with fxarray.config.using(debug_nans=True):
        fnp.asarray(1.0) / fnp.asarray(0.0)
    with fxarray.config.using(debug_infs=True), pytest.raises(NonFiniteError, match="are inf"):
        fnp.asarray(1.0) / fnp.asarray(0.0)
    with fxarray.config.using(debug_infs=True), pytest.raises(NonFiniteError, match="div, called"):
        fxarray.jit(lambda x: 1 / x)(0.0)


def test_narrow_floats_are_checked_too() -> None:
    with fxarray.config.using(debug_infs=True), pytest.raises(NonFiniteError, match="bf16"):
        fnp.asarray(3e38, fnp.bfloat16) * 8
