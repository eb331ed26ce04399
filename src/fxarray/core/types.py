"""ArrayType: what is known of an array before it has a value.

A type is its shape, dtype, whether the dtype is *weak* (it came from a Python scalar and yields to
any other), and how it is placed on a mesh: `spec` (which mesh axes split which dimension),
`unreduced` (mesh axes over which partial sums are still to be added) and `varying` (mesh axes along
which devices hold different values). Types are interned, so comparing them is comparing identities:

    >>> import numpy as np
    >>> from fxarray.core.types import ArrayType
    >>> ArrayType((2, 3), np.dtype("float32")) is ArrayType((2, 3), np.dtype("float32"))
    True
    >>> ArrayType((2, 3), np.dtype("float32"))
    f32[2,3]
"""

from __future__ import annotations

import threading
import weakref
from typing import Any, TypeAlias

from fxarray.core import dims, dtypes
from fxarray.core.dtypes import DType

Size: TypeAlias = "int | dims.Dim"
Shape: TypeAlias = "tuple[Size, ...]"

_NO_AXES: frozenset[str] = frozenset()
# Types are interned, so equality and hashing are those of identity, at the interpreter's own speed.
# The pool holds them weakly: a type lives as long as something has it.
_POOL: dict[Any, weakref.ref[ArrayType]] = {}
_lock = threading.RLock()


def _forget(reference: _PoolReference) -> None:
    with _lock:
        if _POOL.get(reference.key) is reference:
            del _POOL[reference.key]


class _PoolReference(weakref.ref["ArrayType"]):
    __slots__ = ("key",)
    key: Any


def shape_key(shape: Shape) -> tuple[Any, ...]:
    """`shape` with symbolic sizes replaced by structural keys, which compare without deciding."""
    for size in shape:
        if type(size) is not int:
            return tuple(s if type(s) is int else ("dim", s.key) for s in shape)  # type: ignore[union-attr]
    return shape


class ArrayType:
    """The type of an array: shape, dtype, weakness and placement.

    Args:
      shape: a tuple of ints or `Dim`s.
      dtype: a NumPy dtype, or the dtype of random keys.
      weak: whether the dtype yields to others in promotion.
      spec: the mesh axes that split each dimension (None: not sharded).
      unreduced: mesh axes over which the value is a partial sum.
      varying: mesh axes along which the value differs between devices.
    """

    __slots__ = ("__weakref__", "dtype", "shape", "spec", "unreduced", "varying", "weak")
    shape: Shape
    dtype: DType
    weak: bool
    spec: tuple[Any, ...] | None
    unreduced: frozenset[str]
    varying: frozenset[str]

    def __new__(  # noqa: PYI034, an interned one
        cls,
        shape: Shape,
        dtype: DType,
        weak: bool = False,
        spec: tuple[Any, ...] | None = None,
        unreduced: frozenset[str] = _NO_AXES,
        varying: frozenset[str] = _NO_AXES,
    ) -> ArrayType:
        key = (shape_key(shape), dtype, weak, spec, unreduced, varying)
        reference = _POOL.get(key)
        if reference is not None:
            known = reference()
            if known is not None:
                return known
        with _lock:
            reference = _POOL.get(key)
            known = None if reference is None else reference()
            if known is not None:
                return known
            self = object.__new__(cls)
            self.shape, self.dtype, self.weak = shape, dtype, weak
            self.spec, self.unreduced, self.varying = spec, unreduced, varying
            entry = _PoolReference(self, _forget)
            entry.key = key
            _POOL[key] = entry
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return (
            ArrayType,
            (self.shape, self.dtype, self.weak, self.spec, self.unreduced, self.varying),
        )

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> Size:
        return dims.shape_product(self.shape)

    @property
    def is_static(self) -> bool:
        """Whether every size is a plain integer."""
        return all(type(size) is int for size in self.shape)

    @property
    def weak_type(self) -> bool:
        return self.weak

    def replace(self, **changes: Any) -> ArrayType:
        """This type with some fields changed; a new shape drops the placement unless given."""
        reshaped = "shape" in changes and "spec" not in changes and self.spec is not None
        if reshaped and shape_key(changes["shape"]) != shape_key(self.shape):
            changes["spec"] = None
        names = ("shape", "dtype", "weak", "spec", "unreduced", "varying")
        return ArrayType(**{name: changes.get(name, getattr(self, name)) for name in names})

    def strong(self) -> ArrayType:
        """This type, no longer weak."""
        return self.replace(weak=False) if self.weak else self

    def tangent(self) -> ArrayType:
        """The type of this type's tangents: itself if inexact, else float0."""
        if dtypes.is_inexact(self.dtype):
            return self
        return ArrayType(self.shape, dtypes.float0)

    def same_array(self, other: ArrayType) -> bool:
        """Whether shapes and dtypes agree, whatever the weakness and placement."""
        return self.dtype == other.dtype and shape_key(self.shape) == shape_key(other.shape)

    def __repr__(self) -> str:
        sizes = []
        for i, size in enumerate(self.shape):
            axes = self.spec[i] if self.spec is not None and i < len(self.spec) else None
            sizes.append(f"{size}" if axes is None else f"{size}@{axes}")
        text = f"{dtypes.short_name(self.dtype)}[{','.join(sizes)}]"
        if self.weak:
            text += "~"
        if self.unreduced:
            text += "{U:" + ",".join(sorted(self.unreduced)) + "}"
        if self.varying:
            text += "{V:" + ",".join(sorted(self.varying)) + "}"
        return text


def scalar(dtype: DType, weak: bool = False) -> ArrayType:
    """The type of a 0-dimensional array."""
    return ArrayType((), dtype, weak)
