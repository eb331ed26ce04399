"""Tangents and cotangents as users give and get them: checked on the way in, dense on the way out.

The tangent of an integer array has dtype float0, which holds no values; that of a leaf that is no
array is None.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from fxarray.core import dtypes
from fxarray.core.array import Array, DeviceArray
from fxarray.core.errors import DTypeError, ShapeError, TreeStructureError
from fxarray.core.hooks import operators
from fxarray.core.primitive import Zero, instantiate
from fxarray.core.types import ArrayType, shape_key
from fxarray.primitives.convert import convert
from fxarray.primitives.movement import broadcast_in_dim
from fxarray.transforms.arguments import Structure
from fxarray.transforms.statics import is_array_like
from fxarray.tree.difference import explain_difference
from fxarray.tree.operations import structure as structure_of


def float0_zeros(type: ArrayType) -> Array:
    """The one value of a float0 type: zeros without bits."""
    if type.is_static:
        shape = cast("tuple[int, ...]", type.shape)
        return DeviceArray(np.zeros(shape, dtypes.float0), type)
    point = DeviceArray(np.zeros((), dtypes.float0), ArrayType((), dtypes.float0))
    return broadcast_in_dim(point, type.shape, ())


def dense(value: Any) -> Any:
    """A tangent or cotangent as an array, where it may be a symbolic `Zero`."""
    if type(value) is Zero and value.type.dtype == dtypes.float0:
        return float0_zeros(value.type)
    return instantiate(value)


def dense_cotangents(inputs: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
    """Cotangents as arrays, weak where the input was: `p - 0.1 * gradient` of a number `p` stays
    a number, so it is not traced anew and does not widen what it meets.

    Args:
      inputs: the variables (or Zeros) that the cotangents are of, whose types count.
      cotangents: one per input.
    """
    results: list[Any] = []
    for variable, cotangent in zip(inputs, cotangents, strict=True):
        value = dense(cotangent)
        type = variable.type
        if type.weak and not value.type.weak and value.type.dtype == type.dtype:
            value = convert(value, type.dtype, weak=True)
        results.append(value)
    return results


def is_differentiable(array: Array) -> bool:
    """Whether derivatives with respect to an array of this dtype exist."""
    return dtypes.is_inexact(array.type.dtype)


def read_tangents(
    structure: Structure, types: Sequence[ArrayType], tree: Any, what: str, of: str
) -> list[Any]:
    """Check a tree of tangents or cotangents and return one per array, Zeros for float0.

    Args:
      structure: what the tree must look like, but for None in place of static leaves.
      types: the types of the arrays that these are tangents or cotangents of.
      tree: what the user gave.
      what: "tangent" or "cotangent", for messages.
      of: what the arrays are, for messages: "primal" or "result".

    Raises:
      TreeStructureError: naming the first place where the trees differ.
      ShapeError: naming the leaf whose shape is wrong.
      DTypeError: naming the leaf whose dtype is wrong.
    """
    try:
        parts: list[Any] = structure.treedef.flatten_up_to(tree)
    except ValueError:
        difference = explain_difference(structure.treedef, structure_of(tree), name=f"{what}s")
        raise TreeStructureError(
            f"the {what}s must have the same tree structure as the {of}s: {difference}."
        ) from None
    results: list[Any] = []
    paths: list[str] = []
    for place, (part, type) in enumerate(zip(structure.select(parts), types, strict=True)):
        if isinstance(part, Array) and part.type.same_array(type) and _is_inexact(type):
            results.append(part)
            continue
        paths = paths or structure.paths()
        results.append(_read(part, type, f"{what}{paths[place]}", of))
    return results


def _is_inexact(type: ArrayType) -> bool:
    return dtypes.is_inexact(type.dtype)


def _read(part: Any, of_type: ArrayType, name: str, of: str) -> Any:
    expected = of_type.tangent()
    if type(part) is Zero:
        return Zero(expected)
    if not is_array_like(part):
        raise TreeStructureError(
            f"{name} must be an array of type {expected}, but is a {type(part).__name__}."
        )
    if getattr(part, "dtype", None) == dtypes.float0 or expected.dtype == dtypes.float0:
        return _read_float0(part, of_type, name, of)
    value = part if isinstance(part, Array) else operators.asarray(part)
    if shape_key(value.type.shape) != shape_key(expected.shape):
        raise ShapeError(
            f"{name} has type {value.type}, but the {of} has type {of_type}; shapes must be equal."
        )
    if value.type.dtype == expected.dtype:
        return value
    if value.type.weak and (
        dtypes.is_complex(expected.dtype) or not dtypes.is_complex(value.type.dtype)
    ):
        return operators.asarray(value, expected.dtype)
    raise DTypeError(
        f"{name} has type {value.type}, but the {of} has type {of_type}; dtypes must be equal. "
        f"Cast it with .astype()."
    )


def _read_float0(part: Any, of_type: ArrayType, name: str, of: str) -> Zero:
    expected = of_type.tangent()
    dtype = getattr(part, "dtype", None)
    if dtype != expected.dtype:
        raise DTypeError(
            f"{name} has dtype {dtype or type(part).__name__}, but the {of} has type {of_type}, "
            f"whose {name.split('[', maxsplit=1)[0]} has dtype {expected.dtype.name}"
            + (
                ": np.zeros(shape, fxarray.float0)."
                if expected.dtype == dtypes.float0
                else ". Only integers and booleans have derivatives of dtype float0."
            )
        )
    if tuple(part.shape) != tuple(of_type.shape):
        raise ShapeError(
            f"{name} has shape {tuple(part.shape)}, but the {of} has type {of_type}; shapes must "
            f"be equal."
        )
    return Zero(expected)
