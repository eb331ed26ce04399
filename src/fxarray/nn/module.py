"""Module: a frozen dataclass that is a tree, for models whose parameters are its fields.

A Module has no state of its own and no magic: calling a method is calling a function of `self`, and
a transform sees a tree of arrays like any other. Two things are done for its author. A subclass is
made a dataclass and registered as a node of trees by being defined; and its static fields (numbers,
strings, functions, enums, dtypes, by annotation) are kept out of the leaves.

    class Linear(Module):
        weight: Array
        bias: Array | None
        activation: Callable[[Array], Array] = identity

        def __call__(self, x):
            y = x @ self.weight
            return self.activation(y if self.bias is None else y + self.bias)

    loss_gradient = grad(lambda model: loss(model(x)))(Linear(weight, bias, tanh))   # a Linear

Taking instances apart and rebuilding them is done by code that is written for each class when it is
defined; rebuilding calls no `__init__`, so that any objects may stand where the arrays were.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import sys
from collections import ChainMap
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass
from typing import Any, ClassVar, Self, cast, dataclass_transform

import optree

from fxarray.core.errors import ArgumentError, ImmutableModuleError
from fxarray.nn.metadata import Metadata, metadata_of
from fxarray.nn.pretty import pretty
from fxarray.nn.static_fields import is_static_annotation
from fxarray.tree.dataclass import compile_function
from fxarray.tree.registry import declare_fields, register_native

METADATA = "__metadata__"
"""Where an instance keeps its `Metadata`; an instance that has it is complete, and frozen."""


def field(
    *,
    static: bool | None = None,
    default: Any = MISSING,
    default_factory: Any = MISSING,
    init: bool = True,
    repr: bool = True,
    kw_only: Any = MISSING,
    metadata: Mapping[Any, Any] | None = None,
) -> Any:
    """Declare a field of a Module where its annotation does not say enough.

    Args:
        static: whether it is part of the tree's structure; by its annotation if None.
        default: its value when none is given.
        default_factory: a function that makes that value.
        init: whether the generated `__init__` takes it.
        repr: whether it is printed.
        kw_only: whether `__init__` takes it by keyword only.
        metadata: anything else to say about the field.

    >>> class Table(Module):
    ...     names: tuple = field(static=True)
    ...     scale: float = field(static=False, default=1.0)
    >>> from fxarray import tree
    >>> tree.leaves(Table(("a", "b"), 2.0))
    [2.0]
    """
    extra = {**(metadata or {}), "static": static}
    options: dict[str, Any] = {"default": default, "default_factory": default_factory}
    return dataclasses.field(init=init, repr=repr, kw_only=kw_only, metadata=extra, **options)


def static_field(
    *,
    default: Any = MISSING,
    default_factory: Any = MISSING,
    init: bool = True,
    repr: bool = True,
    kw_only: Any = MISSING,
    metadata: Mapping[Any, Any] | None = None,
) -> Any:
    """Declare a field of a Module that is part of the tree's structure: `field(static=True)`.

    Args:
        default: its value when none is given.
        default_factory: a function that makes that value.
        init: whether the generated `__init__` takes it.
        repr: whether it is printed.
        kw_only: whether `__init__` takes it by keyword only.
        metadata: anything else to say about the field.
    """
    return field(
        static=True,
        default=default,
        default_factory=default_factory,
        init=init,
        repr=repr,
        kw_only=kw_only,
        metadata=metadata,
    )


@dataclass(frozen=True, slots=True)
class Layout:
    """What is known of a Module class: its fields, and which of them are children."""

    fields: dict[str, dataclasses.Field[Any]]
    children: tuple[str, ...]
    static: tuple[str, ...]
    shown: tuple[str, ...]
    own_init: bool


# Not declared frozen to type checkers: they would refuse `self.weight = ...` in an own `__init__`.
@dataclass_transform(eq_default=False, field_specifiers=(field, static_field))
class Module:
    """The base of models: subclasses are frozen dataclasses, and nodes of trees.

    Fields annotated `int`, `float`, `complex`, `bool`, `str`, `bytes`, `Callable`, `Literal`, an
    enum or a dtype, a union of these and None, or a tuple of them, are static: part of the tree's
    structure. All others are children. `field(static=...)` decides otherwise.

    An own `__init__` assigns the fields to `self`; after it returns, assigning raises
    `ImmutableModuleError`. `replace` makes a changed copy.

    >>> import numpy as np
    >>> from fxarray import tree
    >>> class Scale(Module):
    ...     factor: np.ndarray
    ...     name: str = "scale"
    ...
    ...     def __call__(self, x):
    ...         return self.factor * x
    >>> scale = Scale(np.ones((2, 3), np.float32))
    >>> scale
    Scale(factor=f32[2,3], name='scale')
    >>> tree.map(lambda leaf: 2 * leaf, scale)(1.0)[0]
    array([2., 2., 2.], dtype=float32)
    """

    __layout__: ClassVar[Layout]

    def __init_subclass__(cls, *, kw_only: bool = False, **options: Any) -> None:
        super().__init_subclass__(**options)
        own_init = "__init__" in vars(cls) or _inherits_own_init(cls)
        dataclass(init=not own_init, repr=False, eq=False, kw_only=kw_only)(cls)
        # Annotations may name what is local to the function that defines the class.
        cls.__layout__ = _layout(cls, own_init, sys._getframe(1).f_locals)
        cast("Any", cls).__init__ = _completing(cls)
        register_native(cls, _flattener(cls), _unflattener(cls), optree.GetAttrEntry)
        declare_fields(cls, cls.__layout__.children, (METADATA,))

    def replace(self, **changes: Any) -> Self:
        """Return a copy with other values for some fields, without calling `__init__`.

        Args:
            **changes: the new values by field name.

        Raises:
            ArgumentError: for a name that is no field.

        >>> class Point(Module):
        ...     x: Any
        ...     y: Any
        >>> Point(1, 2).replace(y=3)
        Point(x=1, y=3)
        """
        layout = self.__layout__
        for name in changes:
            if name not in layout.fields:
                raise ArgumentError(f"{type(self).__name__}.replace: {_no_such_field(self, name)}")
        copy = object.__new__(type(self))
        old, new = self.__dict__, copy.__dict__
        for name in layout.fields:
            new[name] = changes[name] if name in changes else old[name]
        if changes.keys() & set(layout.static):
            new[METADATA] = _metadata(copy)
        else:
            new[METADATA] = old[METADATA]
        return copy

    def __setattr__(self, name: str, value: Any) -> None:
        if METADATA in self.__dict__:
            raise ImmutableModuleError(
                f"{type(self).__name__}.{name} cannot be assigned: Modules are immutable. "
                f"Make a changed copy: model = model.replace({name}=...)"
            )
        if name not in self.__layout__.fields and not hasattr(type(self), name):
            raise AttributeError(
                f"{_no_such_field(self, name)}. Declare it in the class body: `{name}: Array`"
            )
        object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        raise ImmutableModuleError(
            f"{type(self).__name__}.{name} cannot be deleted: Modules are immutable"
        )

    def __repr__(self) -> str:
        return pretty(self)


def _no_such_field(module: Module, name: str) -> str:
    fields = list(module.__layout__.fields)
    close = difflib.get_close_matches(name, fields, 1)
    hint = f"did you mean {close[0]!r}?" if close else f"it has {', '.join(fields) or 'none'}"
    return f"{type(module).__name__} has no field {name!r}; {hint}"


# --- when a class is defined --------------------------------------------------------------------


def _bases(cls: type[Module]) -> list[type[Module]]:
    return [base for base in cls.__mro__[1:] if base is not Module and issubclass(base, Module)]


def _inherits_own_init(cls: type[Module]) -> bool:
    return next((base.__layout__.own_init for base in _bases(cls)), False)


def _layout(cls: type[Module], own_init: bool, local_names: Mapping[str, Any]) -> Layout:
    fields = {f.name: f for f in dataclasses.fields(cast("Any", cls))}
    module = sys.modules.get(cls.__module__)
    scope = ChainMap(dict(vars(cls)), dict(local_names), vars(module) if module else {})
    static = [name for name, f in fields.items() if _is_static(cls, f, scope)]
    return Layout(
        fields=fields,
        children=tuple(name for name in fields if name not in static),
        static=tuple(static),
        shown=tuple(name for name, f in fields.items() if f.repr),
        own_init=own_init,
    )


def _is_static(
    cls: type[Module], declared: dataclasses.Field[Any], scope: Mapping[str, Any]
) -> bool:
    explicit = declared.metadata.get("static")
    if explicit is not None:
        return bool(explicit)
    for base in _bases(cls):
        # An inherited annotation was read where its names have their meaning.
        if base.__layout__.fields.get(declared.name) is declared:
            return declared.name in base.__layout__.static
    return is_static_annotation(declared.type, scope)


def _completing(cls: type[Module]) -> Callable[..., None]:
    """Return the class's `__init__`, followed by the check that it set every field."""
    original = cls.__init__

    @functools.wraps(original)
    def initialise(self: Module, *args: Any, **keywords: Any) -> None:
        original(self, *args, **keywords)
        if type(self) is cls:  # not when called through super(), by a class that adds fields
            _complete(self)

    return initialise


def _complete(module: Module) -> None:
    values = module.__dict__
    missing: list[str] = []
    for name, declared in module.__layout__.fields.items():
        if name in values:
            continue
        if declared.default is not MISSING:
            values[name] = declared.default
        elif declared.default_factory is not MISSING:
            values[name] = declared.default_factory()
        else:
            missing.append(name)
    if missing:
        raise ArgumentError(
            f"{type(module).__name__}.__init__ did not assign {', '.join(missing)}, and there is "
            "no default. Assign every field to self before returning"
        )
    values[METADATA] = _metadata(module)


def _metadata(module: Module) -> Metadata:
    names = module.__layout__.static
    values = module.__dict__
    return metadata_of(type(module), names, tuple(values[name] for name in names))


# --- taking apart and rebuilding ----------------------------------------------------------------


def _flattener(cls: type[Module]) -> Callable[[Any], Any]:
    children = "".join(f"fields[{name!r}], " for name in cls.__layout__.children)
    source = (
        "def flatten(self):\n"
        "    fields = self.__dict__\n"
        "    try:\n"
        f"        return ({children}), fields[{METADATA!r}], names\n"
        "    except KeyError as error:\n"
        "        raise incomplete(self) from error\n"
    )
    scope = {"names": cls.__layout__.children, "incomplete": _incomplete}
    return compile_function(source, "flatten", cls, scope)


def _incomplete(module: Module) -> ArgumentError:
    return ArgumentError(
        f"a {type(module).__name__} was used as a tree before its __init__ had returned; assign "
        "its fields first, and transform it afterwards"
    )


def _unflattener(cls: type[Module]) -> Callable[[Any, Any], Any]:
    layout = cls.__layout__
    lines = [
        "def unflatten(metadata, children):",
        "    self = new(cls)",
        "    fields = self.__dict__",
    ]
    for names, source in ((layout.children, "children"), (layout.static, "metadata.values")):
        if names:
            lines.append(f"    {''.join(f'fields[{name!r}], ' for name in names)} = {source}")
    lines += [f"    fields[{METADATA!r}] = metadata", "    return self", ""]
    return compile_function("\n".join(lines), "unflatten", cls, {"new": object.__new__, "cls": cls})
