"""ShapeDtypeStruct: a stand-in for an array where only its type matters."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from operator import index
from typing import Any, NamedTuple

import numpy as np

from fxarray.core import dtypes
from fxarray.core.array import Array
from fxarray.core.dtypes import DType
from fxarray.core.errors import ArgumentError, StaticArgumentError
from fxarray.core.hooks import operators
from fxarray.core.types import ArrayType, Shape, Size
from fxarray.transforms.arguments import Structure, argument_names, function_name
from fxarray.transforms.statics import Static, is_array_like, refusal
from fxarray.tree.operations import flatten


class ShapeDtypeStruct:
    """The shape, dtype and sharding of an array that need not exist.

    Args:
      shape: a sequence of ints, or of symbolic sizes.
      dtype: anything that names a dtype.
      sharding: how the array is placed on a mesh, if it is.
      weak_type: whether the dtype yields to others in promotion.

    >>> import fxarray
    >>> fxarray.ShapeDtypeStruct((2, 3), "float32")
    ShapeDtypeStruct(shape=(2, 3), dtype=float32)
    """

    __slots__ = ("sharding", "type")
    type: ArrayType
    sharding: Any

    def __init__(
        self, shape: Any, dtype: Any, *, sharding: Any = None, weak_type: bool = False
    ) -> None:
        if dtype is None:
            raise ArgumentError("ShapeDtypeStruct: dtype must not be None")
        self.type = ArrayType(tuple(shape), dtypes.canonical(dtype), weak_type)
        self.sharding = sharding

    @classmethod
    def of(cls, type: ArrayType, sharding: Any = None) -> ShapeDtypeStruct:
        """The stand-in for an array of a type."""
        self = object.__new__(cls)
        self.type, self.sharding = type, sharding
        return self

    @property
    def shape(self) -> Shape:
        return self.type.shape

    @property
    def dtype(self) -> DType:
        return self.type.dtype

    @property
    def weak_type(self) -> bool:
        return self.type.weak

    @property
    def ndim(self) -> int:
        return self.type.ndim

    @property
    def size(self) -> Size:
        return self.type.size

    def __len__(self) -> int:
        if not self.type.shape:
            raise ArgumentError("len() of a 0-dimensional ShapeDtypeStruct has no meaning")
        size = self.type.shape[0]
        return index(size)  # type: ignore[arg-type]

    def update(self, **changes: Any) -> ShapeDtypeStruct:
        """This stand-in with some of shape, dtype, sharding and weak_type changed."""
        unknown = changes.keys() - {"shape", "dtype", "sharding", "weak_type"}
        if unknown:
            raise ArgumentError(f"ShapeDtypeStruct has no {', '.join(sorted(unknown))} to update")
        values: dict[str, Any] = {
            "shape": self.shape,
            "dtype": self.dtype,
            "sharding": self.sharding,
            "weak_type": self.weak_type,
        }
        return ShapeDtypeStruct(**{**values, **changes})

    @property
    def key(self) -> Hashable:
        return (self.type, self.sharding)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ShapeDtypeStruct) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        sharding = "" if self.sharding is None else f", sharding={self.sharding}"
        weak = ", weak_type=True" if self.type.weak else ""
        return f"ShapeDtypeStruct(shape={self.shape}, dtype={self.dtype.name}{sharding}{weak})"


def type_of(value: Any) -> ArrayType | None:
    """The type of an array, a number, or a stand-in with shape and dtype; None for others."""
    if isinstance(value, (Array, ShapeDtypeStruct)):
        return value.type
    if isinstance(value, ArrayType):
        return value
    if is_array_like(value):
        return operators.asarray(value).type
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    if shape is None or dtype is None or isinstance(value, (type, np.generic)):
        return None
    return ArrayType(
        tuple(shape), dtypes.canonical(dtype), bool(getattr(value, "weak_type", False))
    )


def typeof(x: Any) -> ArrayType:
    """The type of an array or a number: shape, dtype, weakness and placement.

    >>> import fxarray
    >>> fxarray.typeof(1.5)
    f32[]~
    """
    type = type_of(x)
    if type is None:
        raise ArgumentError(f"typeof takes an array or a number, not {x!r}")
    return type


class AbstractArguments(NamedTuple):
    """The arguments of a call of which only types are known."""

    types: list[ArrayType]
    structure: Structure
    names: list[str]


def abstract_arguments(
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any] | None = None,
    function: Callable[..., Any] | None = None,
) -> AbstractArguments:
    """Like `flatten_arguments`, for arguments that may be stand-ins for arrays.

    Raises:
      StaticArgumentError: naming the argument that is neither an array nor usable as a static.
    """
    leaves, treedef = flatten((args, dict(kwargs) if kwargs else {}))
    names = argument_names(function, treedef)
    types: list[ArrayType] = []
    statics: list[tuple[int, Any]] = []
    for place, leaf in enumerate(leaves):
        type = None if isinstance(leaf, Static) else type_of(leaf)
        if type is not None:
            types.append(type)
            continue
        reason = refusal(leaf)
        if reason is not None:
            raise StaticArgumentError(
                f"argument {names[place]} of {function_name(function)} is {reason}."
            )
        statics.append((place, leaf))
    structure = Structure(treedef, tuple(statics))
    return AbstractArguments(types, structure, structure.select(names))
