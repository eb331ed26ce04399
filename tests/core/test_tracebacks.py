"""Errors show the user's frames and the message, not fxarray's own frames."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

import pytest

import fxarray
import fxarray.numpy as fnp
from fxarray import lax
from fxarray.core.errors import ShapeError
from fxarray.core.source import PACKAGE_DIRECTORY


def step(carry: Any, _: Any) -> Any:
    return carry + fnp.ones(3) @ fnp.ones(4), None  # the mistake


def loss(x: Any) -> Any:
    return lax.scan(fxarray.checkpoint(step), x, None, length=3)[0]


def printed(call: Callable[[], Any], error: type[Exception]) -> str:
    with pytest.raises(error) as caught:
        call()
    return "".join(traceback.format_exception(caught.value))


def nested() -> Any:
    return fxarray.jit(fxarray.vmap(fxarray.grad(loss)))(fnp.ones(5))


def test_a_shape_error_deep_inside_transforms_is_short_and_names_the_line() -> None:
    text = printed(nested, ShapeError)
    assert text.count("\n") < 30
    assert "# the mistake" in text
    assert PACKAGE_DIRECTORY not in text


def test_the_setting_shows_all_frames() -> None:
    with fxarray.config.using(traceback_filtering=False):
        text = printed(nested, ShapeError)
    assert PACKAGE_DIRECTORY in text
    assert text.count("\n") > 60


@pytest.mark.parametrize(
    "call",
    [
        lambda: fnp.ones(3) + fnp.ones(4),
        lambda: fnp.ones(3) @ fnp.ones(4),
        lambda: fxarray.jvp(lambda x: x + fnp.ones(4), (fnp.ones(3),), (fnp.ones(3),)),
        lambda: fxarray.vjp(lambda x: x + fnp.ones(4), fnp.ones(3)),
        lambda: lax.cond(True, lambda x: x + fnp.ones(4), lambda x: x, fnp.ones(3)),
        lambda: fxarray.make_program(lambda x: x + fnp.ones(4))(fnp.ones(3)),
    ],
)
def test_operators_and_transforms_are_boundaries(call: Callable[[], Any]) -> None:
    assert PACKAGE_DIRECTORY not in printed(call, ShapeError)


def test_exceptions_of_the_user_keep_their_frames_only() -> None:
    def fails(x: Any) -> Any:
        raise KeyError("mine")

    text = printed(lambda: fxarray.jit(fxarray.grad(fails))(1.0), KeyError)
    assert "in fails" in text
    assert PACKAGE_DIRECTORY not in text


def test_unexpected_errors_keep_the_place_where_they_arose(monkeypatch: pytest.MonkeyPatch) -> None:

    monkeypatch.setattr(fxarray.core.hooks.operators, "asarray", len)
    text = printed(lambda: fxarray.jit(lambda x: [1.5, x])(fnp.ones(2)), TypeError)
    assert PACKAGE_DIRECTORY in text
