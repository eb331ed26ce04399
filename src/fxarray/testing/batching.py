"""Checking that vmap of a function is a loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fxarray import tree
from fxarray.core.errors import ArgumentError
from fxarray.numpy import asarray, moveaxis, stack
from fxarray.testing.comparison import assert_close
from fxarray.transforms.vmap import vmap
from fxarray.tree.prefix import broadcast_prefix


def check_batch(
    f: Callable[..., Any],
    args: Any,
    in_axes: Any = 0,
    *,
    rtol: float | None = None,
    atol: float | None = None,
) -> None:
    """Assert that `vmap(f, in_axes)(*args)` is what a Python loop over the axis gives.

    Args:
      f: the function of one example.
      args: the tuple of its arguments, with the mapped axes.
      in_axes: as of `vmap`.
      rtol: relative error; default: by dtype.
      atol: absolute error; default: by dtype.

    Raises:
      AssertionError: naming the leaf that differs.

    >>> import fxarray.numpy as fnp
    >>> from fxarray.testing import check_batch
    >>> check_batch(lambda x, y: x @ y, (fnp.ones((3, 2)), fnp.ones(2)), in_axes=(0, None))
    """
    args = tuple(args)
    leaves, structure = tree.flatten(args)
    axes = broadcast_prefix(in_axes, args, is_leaf=lambda leaf: leaf is None)
    arrays = [asarray(leaf) for leaf in leaves]
    sizes = [x.shape[axis] for x, axis in zip(arrays, axes, strict=True) if axis is not None]
    if not sizes:
        raise ArgumentError("check_batch: no argument is mapped; give an axis in in_axes")
    results: list[Any] = []
    for i in range(int(sizes[0])):
        example = [
            x if axis is None else moveaxis(x, axis, 0)[i]
            for x, axis in zip(arrays, axes, strict=True)
        ]
        results.append(f(*tree.unflatten(structure, example)))
    expected = tree.map(lambda *parts: stack([asarray(part) for part in parts]), *results)
    actual = vmap(f, in_axes)(*args)
    assert_close(actual, expected, rtol=rtol, atol=atol, err_msg="vmap against a loop")
    for leaf in tree.leaves(actual):
        assert np.shape(leaf)[0] == sizes[0]
