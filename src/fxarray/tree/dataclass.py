"""Make dataclasses nodes of trees."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import optree

from fxarray.tree.registry import declare_fields, register_native

Class = TypeVar("Class", bound="type[Any]")


def static(*, metadata: Mapping[Any, Any] | None = None, **options: Any) -> Any:
    """Declare a dataclass field that is part of the tree's structure, not a child.

    Args:
        metadata: what else to say about the field.
        **options: those of `dataclasses.field`.

    >>> @register_dataclass
    ... @dataclasses.dataclass
    ... class Scale:
    ...     factor: float
    ...     name: str = static(default="scale")
    >>> from fxarray import tree
    >>> tree.leaves(Scale(2.0))
    [2.0]
    """
    return dataclasses.field(metadata={**(metadata or {}), "static": True}, **options)


def register_dataclass(
    nodetype: Class,
    data_fields: Sequence[str] | None = None,
    meta_fields: Sequence[str] | None = None,
    drop_fields: Sequence[str] = (),
) -> Class:
    """Make a dataclass a node of trees, its fields the children; also a decorator.

    A rebuilt instance gets its fields directly when `__init__` would do no more than that. Where
    the class has its own `__init__` or `__post_init__`, or fields that they compute, `__init__` is
    called.

    Args:
        nodetype: the dataclass.
        data_fields: names of the fields that are children.
        meta_fields: names of the fields that are static data, and compare and hash by value.
            Without these two, the fields declared with `static` are static data and all others
            children.
        drop_fields: names of the fields that are left to their defaults.

    Raises:
        TypeError: when it is no dataclass, or only one of the two is given.
        ValueError: when the names are not those of the fields that `__init__` takes.

    >>> @dataclasses.dataclass
    ... class Line:
    ...     slope: float
    ...     name: str
    >>> from fxarray import tree
    >>> _ = register_dataclass(Line, data_fields=["slope"], meta_fields=["name"])
    >>> tree.map(lambda x: x * 2, Line(1.5, "a"))
    Line(slope=3.0, name='a')
    """
    if not (isinstance(nodetype, type) and dataclasses.is_dataclass(nodetype)):
        raise TypeError(
            f"register_dataclass: {nodetype!r} is no dataclass; put @dataclass below this "
            "decorator, or use register_pytree_node"
        )
    if (data_fields is None) != (meta_fields is None):
        raise TypeError("register_dataclass: give both data_fields and meta_fields, or neither")
    fields = {field.name: field for field in dataclasses.fields(nodetype)}
    if data_fields is None or meta_fields is None:
        taken = [field for field in fields.values() if field.init and field.name not in drop_fields]
        meta_fields = [field.name for field in taken if field.metadata.get("static", False)]
        data_fields = [field.name for field in taken if not field.metadata.get("static", False)]
    _check_names(nodetype, fields, [*data_fields, *meta_fields], drop_fields)
    if len(fields) > len(data_fields) + len(meta_fields) or _has_own_init(nodetype):
        unflatten = _rebuild_by_init(nodetype, data_fields, meta_fields)
    else:
        unflatten = generate_unflatten(nodetype, data_fields, meta_fields)
    flatten = generate_flatten(nodetype, data_fields, meta_fields)
    register_native(nodetype, flatten, unflatten, optree.GetAttrEntry)
    declare_fields(nodetype, data_fields, meta_fields)
    return nodetype


def _check_names(
    nodetype: type,
    fields: dict[str, dataclasses.Field[Any]],
    given: Sequence[str],
    dropped: Sequence[str],
) -> None:
    name = nodetype.__name__
    needed = {field.name for field in fields.values() if field.init} - set(dropped)
    if len(set(given)) != len(given):
        raise ValueError(f"register_dataclass: a field of {name} is named twice in {list(given)}")
    if missing := sorted(needed - set(given)):
        raise ValueError(
            f"register_dataclass: {name} has fields that are in none of data_fields, meta_fields "
            f"and drop_fields: {', '.join(missing)}"
        )
    if extra := sorted(set(given) - needed):
        raise ValueError(
            f"register_dataclass: __init__ of {name} takes no such fields: {', '.join(extra)}"
        )


def _has_own_init(nodetype: type) -> bool:
    options = getattr(nodetype, "__dataclass_params__", None)
    generated = options is not None and options.init and "__dataclass_params__" in vars(nodetype)
    return not generated or hasattr(nodetype, "__post_init__")


def _rebuild_by_init(
    nodetype: type, data_fields: Sequence[str], meta_fields: Sequence[str]
) -> Callable[[Any, Any], Any]:
    data, meta = tuple(data_fields), tuple(meta_fields)

    def unflatten(metadata: tuple[Any, ...], children: Sequence[Any]) -> Any:
        return nodetype(
            **dict(zip(data, children, strict=True)), **dict(zip(meta, metadata, strict=True))
        )

    return unflatten


# --- generated code: three times as fast as loops over the fields -------------------------------


def generate_flatten(
    nodetype: type, data_fields: Sequence[str], meta_fields: Sequence[str]
) -> Callable[[Any], tuple[tuple[Any, ...], Any, tuple[str, ...]]]:
    """Write and compile a function that takes an instance apart.

    Args:
        nodetype: the class, for the function's name.
        data_fields: attributes that are children.
        meta_fields: attributes that are static data.

    Returns:
        A function from an instance to its children, static data and the children's names.
    """
    children = "".join(f"self.{name}, " for name in data_fields)
    metadata = "".join(f"self.{name}, " for name in meta_fields)
    source = f"def flatten(self):\n    return ({children}), ({metadata}), names\n"
    return compile_function(source, "flatten", nodetype, {"names": tuple(data_fields)})


def generate_unflatten(
    nodetype: type, data_fields: Sequence[str], meta_fields: Sequence[str]
) -> Callable[[Any, Any], Any]:
    """Write and compile a function that rebuilds an instance without calling `__init__`.

    Args:
        nodetype: the class.
        data_fields: attributes that are children.
        meta_fields: attributes that are static data.
    """
    lines = ["def unflatten(metadata, children):", "    self = new(cls)"]
    slotted = not _has_dict(nodetype)
    if not slotted:
        lines.append("    fields = self.__dict__")
    for names, source in ((data_fields, "children"), (meta_fields, "metadata")):
        if not names:
            continue
        if slotted:
            # object.__setattr__ also fills the fields of a frozen class.
            lines.append(f"    {''.join(f'{name}, ' for name in names)} = {source}")
            lines.extend(f"    set(self, {name!r}, {name})" for name in names)
        else:
            targets = "".join(f"fields[{name!r}], " for name in names)
            lines.append(f"    {targets} = {source}")
    lines.append("    return self")
    scope = {"new": object.__new__, "cls": nodetype, "set": object.__setattr__}
    return compile_function("\n".join(lines) + "\n", "unflatten", nodetype, scope)


def _has_dict(nodetype: type) -> bool:
    return bool(nodetype.__dictoffset__)


def compile_function(source: str, name: str, nodetype: type, scope: dict[str, Any]) -> Any:
    """Compile generated source and return the function in it, named for its class in tracebacks.

    Args:
        source: the source of one function.
        name: the function's name.
        nodetype: the class that it is for.
        scope: the names that the source uses.
    """
    code = compile(source, f"<{name} of {nodetype.__module__}.{nodetype.__qualname__}>", "exec")
    exec(code, scope)
    return scope[name]
