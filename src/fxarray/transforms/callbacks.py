"""Calling Python from compiled functions: pure_callback and io_callback."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from fxarray.core.errors import ArgumentError, CallbackError
from fxarray.primitives.callback import IO, PURE, VMAP_METHODS, Callback
from fxarray.transforms.arguments import Structure, flatten_arguments, function_name
from fxarray.transforms.shapes import type_of
from fxarray.tree.difference import explain_difference
from fxarray.tree.operations import flatten
from fxarray.tree.structure import PyTreeDef


@dataclass(frozen=True)
class _OnHost:
    """A user's function of trees as one of flat NumPy arrays."""

    function: Callable[..., Any]
    structure: Structure
    output: PyTreeDef

    def __call__(self, *arrays: np.ndarray) -> list[Any]:
        args, kwargs = self.structure.unflatten(arrays)
        leaves, treedef = flatten(self.function(*args, **kwargs))
        if treedef != self.output:
            raise CallbackError(
                f"{function_name(self.function)} returned another structure than "
                f"result_shape_dtypes: {explain_difference(self.output, treedef, name='result')}"
            )
        return leaves

    def __repr__(self) -> str:
        return function_name(self.function)


def _call(
    callback: Callable[..., Any],
    result_shape_dtypes: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    kind: str,
    ordered: bool,
    vmap_method: str | None,
) -> Any:
    if not callable(callback):
        raise ArgumentError(f"{kind}_callback takes a function, got {callback!r}")
    leaves, treedef = flatten(result_shape_dtypes)
    types = [type_of(leaf) for leaf in leaves]
    for leaf, type in zip(leaves, types, strict=True):
        if type is None:
            raise ArgumentError(
                f"{kind}_callback: result_shape_dtypes holds {leaf!r}; give ShapeDtypeStructs or "
                f"arrays"
            )
    result_types = tuple([type.strong() for type in types if type is not None])
    flat = flatten_arguments(args, kwargs, callback)
    function = _OnHost(callback, flat.structure, treedef)
    op = Callback(function, result_types, kind, ordered, vmap_method)
    return treedef.unflatten(op.bind(*flat.arrays))


def pure_callback(
    callback: Callable[..., Any],
    result_shape_dtypes: Any,
    *args: Any,
    sharding: Any = None,  # noqa: ARG001, JAX's argument
    vmap_method: str | None = None,
    **kwargs: Any,
) -> Any:
    """Call a Python function without side effects, also from inside `jit`.

    Args:
      callback: a function of NumPy arrays. It may be called any number of times, or not at all
        if its result is not used.
      result_shape_dtypes: a tree like its result, of `ShapeDtypeStruct`s or arrays.
      *args: its arguments.
      sharding: accepted for compatibility.
      vmap_method: what `vmap` does. "sequential": call it for each lane. "expand_dims": call it
      once,
        with a leading axis, of size 1 where an argument is the same for all lanes.
        "broadcast_all": the
        same, with the full size. "legacy_vectorized": arguments that are the same for all stay as
        they are.
      **kwargs: its keyword arguments.

    Raises:
      CallbackError: while running, if it raises or returns other shapes or dtypes than announced.

    >>> import fxarray, numpy as np, fxarray.numpy as fnp
    >>> x = fnp.arange(3.0)
    >>> fxarray.jit(lambda x: fxarray.pure_callback(lambda v: np.sort(-v), x, x))(x)
    Array([-2., -1., -0.], dtype=float32)
    """
    if vmap_method is not None and vmap_method not in VMAP_METHODS:
        raise ArgumentError(
            f"pure_callback: vmap_method is {vmap_method!r}; it must be one of "
            f"{', '.join(VMAP_METHODS)}"
        )
    return _call(callback, result_shape_dtypes, args, kwargs, PURE, False, vmap_method)


def io_callback(
    callback: Callable[..., Any],
    result_shape_dtypes: Any,
    *args: Any,
    sharding: Any = None,  # noqa: ARG001, JAX's argument
    ordered: bool = False,
    **kwargs: Any,
) -> Any:
    """Call a Python function with side effects exactly once each time this point is reached.

    Args:
      callback: a function of NumPy arrays.
      result_shape_dtypes: a tree like its result, of `ShapeDtypeStruct`s or arrays; None for none.
      *args: its arguments.
      sharding: accepted for compatibility.
      ordered: whether calls keep their order with those of other ordered callbacks. Under `vmap`,
        only unordered ones are possible: one call per lane.
      **kwargs: its keyword arguments.

    Raises:
      CallbackError: while running, if it raises or returns other shapes or dtypes than announced.
    """
    return _call(callback, result_shape_dtypes, args, kwargs, IO, ordered, None)


def effects_barrier() -> None:
    """Wait until all side effects have happened: at once, since calls run to their end."""
