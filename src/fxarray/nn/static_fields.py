"""Which fields of a Module are part of its structure: read from their annotations.

A field annotated as a number, string, function, enum or dtype configures the computation; a field
annotated as an array, a Module or a container of them is what the computation works on. The first
kind is static: it is compared when structures are, and no transform touches it.
"""

from __future__ import annotations

import ast
import collections.abc
import types
import typing
from collections.abc import Mapping
from enum import Enum
from typing import Any

import numpy as np

from fxarray.core.dtypes import KeyDType

_CLASSES: tuple[type, ...] = (
    bool,
    int,
    float,
    complex,
    str,
    bytes,
    Enum,
    np.dtype,
    np.ufunc,
    KeyDType,
    types.FunctionType,
)

# What the names mean where an annotation cannot be evaluated, such as for imports that exist for
# type checkers alone.
_NAMES = frozenset(
    {"bool", "int", "float", "complex", "str", "bytes", "Callable", "Literal", "DType", "DTypeLike"}
)
_UNIONS = frozenset({"Union", "Optional"})


def is_static_annotation(annotation: Any, scope: Mapping[str, Any]) -> bool:
    """Return whether a field with this annotation is part of the tree's structure.

    Args:
        annotation: a type, or a string that names one.
        scope: the names that a string may use.

    >>> is_static_annotation("int | None", {}), is_static_annotation("tuple[int, ...]", {})
    (True, True)
    >>> is_static_annotation(np.ndarray, {}), is_static_annotation("list[int]", {})
    (False, False)
    """
    if isinstance(annotation, str):
        return _is_static_text(annotation, scope)
    if isinstance(annotation, typing.ForwardRef):
        return _is_static_text(annotation.__forward_arg__, scope)
    if isinstance(annotation, typing.NewType):
        return is_static_annotation(annotation.__supertype__, scope)
    if hasattr(annotation, "__value__"):  # `type Name = ...`, of Python 3.12
        return is_static_annotation(annotation.__value__, scope)
    origin = typing.get_origin(annotation)
    if origin is None:
        return annotation in (typing.Callable, collections.abc.Callable) or (
            isinstance(annotation, type)
            and (annotation is type or issubclass(annotation, _CLASSES))
            and not issubclass(annotation, np.generic)
        )
    parameters = typing.get_args(annotation)
    if origin is typing.Union or origin is types.UnionType:
        members = [member for member in parameters if member is not type(None)]
        # numpy.typing.DTypeLike is a union of much that describes a dtype, and of dtype itself.
        if any((typing.get_origin(member) or member) is np.dtype for member in members):
            return True
        return all(is_static_annotation(member, scope) for member in members)
    if origin is tuple:
        items = [item for item in parameters if item is not ...]
        return bool(items) and all(is_static_annotation(item, scope) for item in items)
    if origin in {typing.Annotated, typing.Final}:
        return is_static_annotation(parameters[0], scope)
    return origin in {typing.Literal, collections.abc.Callable, type, np.dtype}


def _is_static_text(text: str, scope: Mapping[str, Any]) -> bool:
    try:
        value = eval(text, {}, scope)
    except Exception:  # noqa: BLE001, an annotation may be any expression, and fail in any way
        return _is_static_expression(ast.parse(text.strip(), mode="eval").body, scope)
    return value is not None and is_static_annotation(value, scope)


def _is_static_expression(node: ast.expr, scope: Mapping[str, Any]) -> bool:
    """Decide by the names in an annotation of which some part cannot be evaluated."""
    match node:
        case ast.Constant(value=str(text)):
            return _is_static_text(text, scope)
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            members = [member for member in (left, right) if not _is_none(member)]
            return all(_is_static_expression(member, scope) for member in members)
        case ast.Subscript(value=head, slice=parameters):
            items = parameters.elts if isinstance(parameters, ast.Tuple) else [parameters]
            name = _last_name(head)
            if name in _UNIONS:
                return all(_is_static_expression(i, scope) for i in items if not _is_none(i))
            if name in {"Annotated", "Final"}:
                return _is_static_expression(items[0], scope)
            return name in _NAMES or name == "type"
        case ast.Name() | ast.Attribute():
            try:
                value = eval(ast.unparse(node), {}, scope)
            except Exception:  # noqa: BLE001, as above
                return _last_name(node) in _NAMES
            return is_static_annotation(value, scope)
        case _:
            return False


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _last_name(node: ast.expr) -> str:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""
