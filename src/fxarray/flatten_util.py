"""Turn a tree of arrays into one vector and back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from fxarray import tree
from fxarray.core import dtypes
from fxarray.core.errors import DTypeError, ShapeError
from fxarray.core.types import ArrayType
from fxarray.numpy import asarray, zeros
from fxarray.primitives.convert import convert
from fxarray.primitives.joining import concatenate, split
from fxarray.primitives.movement import reshape

__all__ = ["ravel_pytree"]


def ravel_pytree(pytree: Any) -> tuple[Any, Callable[[Any], Any]]:
    """Join the leaves of a tree into one vector.

    Args:
        pytree: a tree of arrays and numbers.

    Returns:
        The vector, of the leaves' common dtype (float32 for a tree without leaves), and a function
        that takes a vector of the same size and dtype and returns a tree of the same structure,
        shapes and dtypes.

    >>> flat, unravel = ravel_pytree({"a": np.float32([1, 2]), "b": np.float32([[3], [4]])})
    >>> np.asarray(flat)
    array([1., 2., 3., 4.], dtype=float32)
    >>> np.asarray(unravel(2 * flat)["b"])
    array([[6.],
           [8.]], dtype=float32)
    """
    leaves, treedef = tree.flatten(pytree)
    arrays = [asarray(leaf) for leaf in leaves]
    types: list[ArrayType] = [array.type for array in arrays]
    if not arrays:
        vector = zeros((0,), np.dtype(np.float32))
    else:
        dtype, _ = dtypes.promote([t.dtype for t in types], [False] * len(types))
        parts = [reshape(convert(a, dtype), (t.size,)) for a, t in zip(arrays, types, strict=True)]
        vector = parts[0] if len(parts) == 1 else concatenate(parts, 0)
    return vector, _Unravel(treedef, tuple(types), vector.type)


@dataclass(frozen=True)
class _Unravel:
    """The way back; compares and hashes by value, so that `jit` knows it again."""

    treedef: tree.PyTreeDef
    types: tuple[ArrayType, ...]
    expected: ArrayType

    def __call__(self, vector: Any) -> Any:
        vector = asarray(vector)
        found: ArrayType = vector.type
        if found.shape != self.expected.shape:
            raise ShapeError(f"unravel: given {found}, but the tree was raveled to {self.expected}")
        if found.dtype != self.expected.dtype:
            raise DTypeError(
                f"unravel: given {found}, but the tree was raveled to {self.expected}; cast it "
                f"first, with vector.astype({self.expected.dtype.name!r})"
            )
        if not self.types:
            return self.treedef.unflatten(())
        sizes = [type.size for type in self.types]
        parts = (vector,) if len(sizes) == 1 else split(vector, sizes, 0)
        return self.treedef.unflatten(
            convert(reshape(part, type.shape), type.dtype)
            for part, type in zip(parts, self.types, strict=True)
        )
