"""Modules under transforms: gradients are Modules, settings are seen as Python values."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from fxarray import tree
from fxarray.nn import Module
from fxarray.transforms.grad import grad
from fxarray.transforms.jit import jit
from fxarray.transforms.vmap import vmap


class Poly(Module):
    """x -> activation(scale * x ** power)"""

    scale: Any
    power: int
    activation: Callable[[Any], Any]

    def __call__(self, x: Any) -> Any:
        y = self.scale
        for _ in range(self.power):  # a Python loop over a setting, also under jit
            y = y * x
        return self.activation(y)


def identity(x: Any) -> Any:
    return x


def test_the_gradient_of_a_module_is_a_module() -> None:
    model = Poly(np.float32(2), 3, identity)
    for gradient in (grad(Poly.__call__)(model, 2.0), jit(grad(Poly.__call__))(model, 2.0)):
        assert type(gradient) is Poly
        assert tree.structure(gradient) == tree.structure(model)
        assert float(gradient.scale) == 8.0
        assert gradient.power == 3


def test_jit_retraces_for_another_setting_and_only_then() -> None:
    traces = []

    @jit
    def apply(model: Poly, x: Any) -> Any:
        traces.append(model.power)
        return model(x)

    for scale, power, expected in [(1, 2, 9), (2, 2, 18), (1, 3, 27), (5, 2, 45)]:
        assert float(apply(Poly(np.float32(scale), power, identity), np.float32(3))) == expected
    assert traces == [2, 3]


def test_modules_pass_through_jit_and_back() -> None:
    @jit
    def double(model: Poly) -> Poly:
        return tree.map(lambda leaf: leaf * 2, model)

    model = Poly(np.float32([1, 2]), 2, np.sin)
    result = double(model)
    np.testing.assert_array_equal(np.asarray(result.scale), [2, 4])
    assert (result.power, result.activation) == (2, np.sin)


def test_a_stack_of_modules_can_be_mapped() -> None:
    stacked = Poly(np.float32([1, 2, 3]), 2, identity)
    result = vmap(Poly.__call__, in_axes=(0, None))(stacked, np.float32(2))
    np.testing.assert_array_equal(np.asarray(result), [4, 8, 12])


def test_settings_are_not_traced_and_children_are() -> None:
    @jit
    def look(model: Poly) -> Any:
        assert type(model.power) is int
        with pytest.raises(TypeError):
            bool(model.scale > 0)
        return model.scale

    assert float(look(Poly(np.float32(1), 2, identity))) == 1.0


def test_a_module_in_printed_form_shows_types_while_traced() -> None:
    seen = []
    jit(lambda model: seen.append(repr(model)))(Poly(np.zeros((2, 3), np.float32), 2, identity))
    assert seen == ["Poly(scale=f32[2,3], power=2, activation=identity)"]
