"""What is an array, what is static, and what can be neither.

Arrays, NumPy arrays and scalars, and Python numbers are arrays. Functions, classes, modules,
strings, enums, dtypes, and objects that compare and hash by value are *static*: they pass through a
transform untouched, and are part of the key under which `jit` remembers a trace. An object that
hashes by identity but can change is refused, since a trace that depends on it would go stale.
"""

from __future__ import annotations

import struct
import types
from collections.abc import Hashable
from enum import Enum
from functools import partial
from typing import Any, cast

import numpy as np

from fxarray.core import dims, dtypes
from fxarray.core.array import Array
from fxarray.core.errors import StaticArgumentError

# How the leaves of a class are treated.
ARRAY, NUMPY, STATIC, CALLABLE, IDENTITY, UNHASHABLE = range(6)

_STATIC_CLASSES: tuple[type, ...] = (
    str,
    bytes,
    type,
    types.FunctionType,
    types.BuiltinFunctionType,
    types.MethodType,
    types.ModuleType,
    types.EllipsisType,
    types.NotImplementedType,
    partial,
    slice,
    np.dtype,
    np.ufunc,
    dtypes.KeyDType,
    dims.Dim,
)
KINDS: dict[type, int] = {}
_KINDS_LIMIT = 10_000


class Static:
    """Marks a value as static whatever its class: what `static_argnums` wraps arguments in."""

    __slots__ = ("key", "value")

    def __init__(self, value: Any) -> None:
        self.value = value
        self.key = static_key(value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Static) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


class _ByIdentity:
    """Compares by identity, and keeps its object alive so that the identity stays its own."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ByIdentity) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


def static_key(value: Any) -> Hashable:
    """A hashable stand-in for a static value that tells apart what == confuses, such as 1 and True.

    Raises:
      StaticArgumentError: if the value is not hashable.
    """
    kind = _class_of(value)
    if kind is Static:
        return value.key
    if kind is str or kind is int or kind is bool or value is None:
        return (kind, value)
    if kind is float:
        return (kind, b"nan" if value != value else struct.pack("<d", value))
    if kind is complex:
        return (kind, static_key(value.real), static_key(value.imag))
    if kind is tuple or kind is list:
        return (kind, *map(static_key, cast("tuple[Any, ...]", value)))
    if kind is dict:
        items = cast("dict[Any, Any]", value).items()
        return (kind, frozenset((static_key(k), static_key(v)) for k, v in items))
    if kind is slice:
        return (kind, static_key(value.start), static_key(value.stop), static_key(value.step))
    if issubclass(kind, dims.Dim):
        return (kind, value.key)
    if issubclass(kind, (np.ndarray, np.generic)) and value.dtype.kind != "O":
        array: np.ndarray[Any, np.dtype[Any]] = np.asarray(value)
        return (kind, array.dtype, array.shape, array.tobytes())
    if kind is partial:
        try:
            return (kind, *map(static_key, (value.func, value.args, value.keywords)))
        except StaticArgumentError:
            return (kind, _ByIdentity(value))
    try:
        hash(value)
    except TypeError as error:
        raise StaticArgumentError(
            f"a static value of class {_class_name(kind)} cannot be hashed ({error}). If it holds "
            f"arrays, register its class as a pytree (fxarray.tree_util.register_dataclass); if "
            f"not, give the class __hash__ (such as by @dataclass(frozen=True))."
        ) from None
    return (kind, value)


def _class_of(value: Any) -> type[Any]:
    return cast("type[Any]", type(value))


def _class_name(cls: type) -> str:
    name = cls.__qualname__
    return name if cls.__module__ == "builtins" else f"{cls.__module__}.{name}"


def _classify(cls: type) -> int:
    kind = IDENTITY
    if issubclass(cls, Array) or hasattr(cls, "__jax_array__"):
        kind = ARRAY
    elif issubclass(cls, (Enum, Static)):
        kind = STATIC
    elif issubclass(cls, np.ndarray):
        kind = NUMPY
    elif issubclass(cls, np.generic):
        kind = ARRAY if issubclass(cls, (np.number, np.bool_)) or _is_ml_dtype(cls) else STATIC
    elif issubclass(cls, (bool, int, float, complex)):
        kind = ARRAY
    elif issubclass(cls, _STATIC_CLASSES) or cls is object:
        kind = STATIC
    elif cls.__hash__ is None:
        kind = UNHASHABLE
    elif cls.__eq__ is not object.__eq__ and cls.__hash__ is not object.__hash__:
        kind = STATIC
    elif callable(getattr(cls, "__call__", None)):  # noqa: B004, the class is asked, not an object
        kind = CALLABLE if _has_state(cls) else STATIC
    if len(KINDS) >= _KINDS_LIMIT:
        KINDS.clear()
    KINDS[cls] = kind
    return kind


def _is_ml_dtype(cls: type[np.generic]) -> bool:
    return cls.__module__.startswith("ml_dtypes")


def _has_state(cls: type) -> bool:
    return cls.__dictoffset__ != 0 or any(base.__dict__.get("__slots__") for base in cls.__mro__)


def kind_of(leaf: Any) -> int:
    """How leaves of this class are treated: ARRAY, NUMPY, ..."""
    cls = _class_of(leaf)
    kind = KINDS.get(cls)
    return _classify(cls) if kind is None else kind


def is_array_like(leaf: Any) -> bool:
    """Whether a leaf is an array, or a number that becomes one.

    >>> from fxarray.transforms.arguments import is_array_like
    >>> is_array_like(1.5), is_array_like("relu"), is_array_like(len)
    (True, False, False)
    """
    kind = kind_of(leaf)
    return kind == ARRAY or (kind == NUMPY and leaf.dtype.kind not in "OSUMm")


def refusal(leaf: Any) -> str | None:
    """Why a leaf that is no array cannot be static either; None if it can."""
    kind = kind_of(leaf)
    if kind == STATIC or (kind == CALLABLE and hasattr(leaf, "__wrapped__")):
        return None
    name = _class_name(_class_of(leaf))
    if kind == NUMPY:
        return (
            f"a NumPy array of dtype {leaf.dtype}, which is neither an array of numbers nor "
            f"hashable. Pass numbers, or a tuple of the values"
        )
    if kind == UNHASHABLE:
        return (
            f"an object of class {name}, which cannot be hashed. If it holds arrays, register the "
            f"class as a pytree (fxarray.tree_util.register_dataclass); if not, give it __hash__ "
            f"as well as __eq__ (such as by @dataclass(frozen=True))"
        )
    if hasattr(leaf, "__dlpack__") or hasattr(leaf, "__array__"):
        return f"a {name}, an array of another library. Convert it with fxarray.numpy.asarray first"
    return (
        f"an object of class {name}, which is compared and hashed by identity but can change, so "
        f"that a trace that depends on it would go stale. Give the class __eq__ and __hash__ by "
        f"value (such as by @dataclass(frozen=True)), register it as a pytree if it holds arrays "
        f"(fxarray.tree_util.register_dataclass), or close over it instead of passing it"
    )
