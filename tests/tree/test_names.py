"""The names of `jax.tree` and `jax.tree_util` exist here, with the same arguments."""

import inspect
from typing import Any

import jax
import pytest

from fxarray import tree, tree_util


def arguments(function: Any) -> list[tuple[str, Any]]:
    kinds = inspect.signature(function).parameters.values()
    return [(p.name, p.kind) for p in kinds]


@pytest.mark.parametrize("name", [n for n in dir(jax.tree) if not n.startswith("_")])
def test_tree_has_every_name_of_jax(name: str) -> None:
    function = getattr(tree, name)
    if name != "static":  # takes the options of dataclasses.field in both
        assert arguments(function) == arguments(getattr(jax.tree, name))


@pytest.mark.parametrize("name", [n for n in dir(jax.tree_util) if not n.startswith("_")])
def test_tree_util_has_every_name_of_jax(name: str) -> None:
    if name in {"default_registry", "flatten_one_level_with_keys"}:
        pytest.skip("belongs to JAX's C++ registry")
    ours, theirs = getattr(tree_util, name), getattr(jax.tree_util, name)
    if inspect.isfunction(theirs) and name != "flatten_one_level":
        assert arguments(ours) == arguments(theirs)
