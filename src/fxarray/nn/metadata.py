"""The static part of a Module: the values of its static fields, as one object per set of values.

Equal values share one object. So structures compare and hash theirs by identity, in native code,
however strict the equality: 1, 1.0 and True are different values here, and NaN equals itself.
"""

from __future__ import annotations

import functools
import threading
import types
from collections.abc import Hashable
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from fxarray import tree
from fxarray.core.dtypes import short_name
from fxarray.core.errors import StaticArgumentError
from fxarray.transforms.statics import ARRAY, NUMPY, kind_of, refusal, static_key


class Metadata:
    """The values of the static fields of some instances of a class; made by `metadata_of`."""

    __slots__ = ("__weakref__", "cls", "names", "values")

    def __init__(self, cls: type, names: tuple[str, ...], values: tuple[Any, ...]) -> None:
        self.cls = cls
        self.names = names
        self.values = values

    def __reduce__(self) -> tuple[Any, ...]:
        return metadata_of, (self.cls, self.names, self.values)

    def __repr__(self) -> str:
        pairs = zip(self.names, self.values, strict=True)
        return ", ".join(f"{name}={getattr(value, '__name__', value)}" for name, value in pairs)


_known: WeakValueDictionary[Hashable, Metadata] = WeakValueDictionary()
_lock = threading.Lock()


def metadata_of(cls: type, names: tuple[str, ...], values: tuple[Any, ...]) -> Metadata:
    """Return the one object for these values of a class's static fields.

    Args:
        cls: the Module class.
        names: its static fields.
        values: their values.

    Raises:
        StaticArgumentError: when a value cannot be part of a structure.
    """
    key = (cls, *map(functools.partial(_key, cls), names, values))
    with _lock:
        known = _known.get(key)
        if known is None:
            known = _known[key] = Metadata(cls, names, values)
        return known


def _key(cls: type, name: str, value: Any) -> Hashable:
    for part in _parts(value):
        for leaf in tree.leaves(part):
            if is_array(leaf):
                raise StaticArgumentError(
                    f"{cls.__name__}.{name} is static, part of the tree's structure, but holds an "
                    f"array {array_text(leaf)}. Annotate it as an array or Module, or declare it "
                    f"with field(static=False), to make it a child"
                )
    if isinstance(value, (list, dict, set, bytearray)):
        raise StaticArgumentError(
            f"{cls.__name__}.{name} is static, part of the tree's structure, and cannot be a "
            f"{type(value).__name__}, which may change. Use a tuple"
            + (" of pairs" if isinstance(value, dict) else "")
        )
    if not _is_node(value) and kind_of(value) not in {ARRAY, NUMPY}:
        reason = refusal(value)
        if reason is not None:
            raise StaticArgumentError(
                f"{cls.__name__}.{name} is static, part of the tree's structure, and cannot be "
                f"{reason}"
            )
    if _is_node(value) and not isinstance(value, tuple):
        leaves, treedef = tree.flatten(value)
        return (type(value), treedef, *map(static_key, leaves))
    try:
        return static_key(value)
    except StaticArgumentError as error:
        raise StaticArgumentError(f"{cls.__name__}.{name}: {error.message}") from None


def _is_node(value: Any) -> bool:
    return tree.is_tree_node(type(value))


def _parts(value: Any) -> tuple[Any, ...]:
    """What a static value may hide arrays in."""
    if isinstance(value, functools.partial):
        return (*_parts(value.func), value.args, value.keywords)
    if isinstance(value, types.MethodType):
        return (value.__self__,)
    return (value,)


def is_array(value: Any) -> bool:
    """Return whether a value is an array or a tracer; NumPy's scalars and classes are not."""
    return (
        hasattr(value, "shape")
        and hasattr(value, "dtype")
        and not isinstance(value, (type, np.generic))
    )


def array_text(array: Any) -> str:
    """Return an array's dtype and shape as types are printed, such as `f32[3,4]`.

    >>> array_text(np.zeros((3, 4), np.float32))
    'f32[3,4]'
    """
    try:
        name = short_name(array.dtype)
    except (KeyError, TypeError):  # a dtype of NumPy's that fxarray does not have
        name = str(array.dtype)
    return f"{name}[{','.join(map(str, array.shape))}]"
