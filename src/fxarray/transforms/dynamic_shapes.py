"""Functions compiled once for all sizes: which dimensions of which arguments are variable."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, cast

from fxarray.core.dims import Dim, Size, assuming, parse_dim, solve
from fxarray.core.errors import ArgumentError, ShapeError
from fxarray.core.types import ArrayType
from fxarray.transforms.arguments import (
    Structure,
    argument_name,
    argument_names,
    function_name,
)
from fxarray.tree.keys import treedef_paths


class Bound(NamedTuple):
    """A call's arguments with variable sizes.

    Args:
      types: of the arrays, with the variables in them.
      sizes: the size that each variable has in this call.
    """

    types: list[ArrayType]
    sizes: dict[str, int]


class DynamicShapes:
    """Which dimensions are variable, and what is assumed of them.

    Args:
      function: what the arguments belong to.
      specification: see `dynamic_spec`.
      assumptions: comparisons of sizes that hold in every call.

    Raises:
      ArgumentError: if the specification says nothing about sizes.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        specification: Mapping[Any, Any],
        assumptions: Sequence[str] = (),
    ) -> None:
        if not isinstance(specification, Mapping) or not specification:
            raise ArgumentError(
                f"dynamic shapes of {function_name(function)}: give a mapping from names of "
                f"arguments to sizes, as in {{'x': (batch, None)}}; got {specification!r}"
            )
        self.function = function
        self.specification = specification
        self.assumptions = tuple([assumptions] if isinstance(assumptions, str) else assumptions)
        self._variables = tuple(_variables(specification))

    def bind(self, structure: Structure, types: Sequence[ArrayType]) -> Bound:
        """The types to trace for, and the sizes of this call.

        Args:
          structure: of the arguments.
          types: of the arrays that were given.

        Raises:
          ShapeError: if a size is out of its variable's bounds, or sizes do not fit each other.
        """
        paths = structure.select(list(treedef_paths(structure.treedef)))
        names = structure.select(argument_names(self.function, structure.treedef))
        promised = [
            self._shape(path, name, type_)
            for path, name, type_ in zip(paths, names, types, strict=True)
        ]
        self._check_used(paths)
        with assuming(*self.assumptions):
            sizes = solve(
                promised,
                [cast("tuple[int, ...]", type_.shape) for type_ in types],
                [f"argument {name} of {function_name(self.function)}" for name in names],
            )
        return Bound(
            [t.replace(shape=shape) for t, shape in zip(types, promised, strict=True)], sizes
        )

    def assuming(self) -> Any:
        """The context in which the function is traced."""
        return assuming(*self.assumptions)

    def _label(self, path: Any) -> str | int:
        part, first = path[0], path[1]
        if part.idx != 0:
            return str(first.key)
        name = argument_name(self.function, first.idx)
        return name if name in self.specification else first.idx

    def _check_used(self, paths: Sequence[Any]) -> None:
        labels = {self._label(path) for path in paths}
        unknown = [key for key in self.specification if key is not ... and key not in labels]
        if unknown:
            known = ", ".join(repr(label) for label in sorted(labels, key=str)) or "none"
            raise ArgumentError(
                f"dynamic shapes of {function_name(self.function)}: there is no array argument "
                f"{unknown[0]!r}; this call has: {known}"
            )

    def _shape(self, path: Any, name: str, type_: ArrayType) -> tuple[Size, ...]:
        label = self._label(path)
        pattern = self.specification.get(label, self.specification.get(..., None))
        for key in path[2:]:
            pattern = _below(pattern, key, name)
        return self._apply(pattern, name, type_)

    def _apply(self, pattern: Any, name: str, type_: ArrayType) -> tuple[Size, ...]:
        shape = list(type_.shape)
        if pattern is None or pattern is ...:
            return tuple(shape)
        if isinstance(pattern, str):
            pattern = [part.strip() for part in pattern.strip("()[] ").rstrip(",").split(",")]
        if isinstance(pattern, Dim):
            if shape:
                shape[0] = pattern
            return tuple(shape)
        if isinstance(pattern, Mapping):
            entries = cast("Mapping[Any, Any]", pattern)
            for axis, size in entries.items():
                if not isinstance(axis, int) or not -len(shape) <= axis < len(shape):
                    raise ShapeError(
                        f"dynamic shapes: argument {name} of type {type_} has no axis {axis!r}"
                    )
                shape[axis] = self._size(size, shape[axis], name)
            return tuple(shape)
        if not isinstance(pattern, (tuple, list)):
            raise ArgumentError(
                f"dynamic shapes: argument {name} has {pattern!r}, which is no size, no tuple of "
                f"sizes and no mapping from axes to sizes"
            )
        entries = list(cast("Sequence[Any]", pattern))
        if entries and (entries[-1] is ... or entries[-1] == "..."):
            entries = entries[:-1] + [None] * (len(shape) - len(entries) + 1)
        if len(entries) != len(shape):
            raise ShapeError(
                f"dynamic shapes: argument {name} of type {type_} has {len(shape)} dimensions, but "
                f"{len(entries)} are specified: {pattern!r}"
            )
        return tuple(
            [self._size(size, actual, name) for size, actual in zip(entries, shape, strict=True)]
        )

    def _size(self, size: Any, actual: Size, name: str) -> Size:
        if size is None or size is ...:
            return actual
        if isinstance(size, str):
            if size in ("_", "..."):
                return actual
            size = parse_dim(size, *self._variables)
        if isinstance(size, (Dim, int)):
            return size
        raise ArgumentError(
            f"dynamic shapes: argument {name} has {size!r} for a size; use a ShapeVar, an "
            f"expression of one, a number or None"
        )


def _variables(pattern: Any) -> list[Dim]:
    """All ShapeVars in a specification, which names in texts refer to."""
    if isinstance(pattern, Dim):
        return [pattern] if len(pattern.variables) == 1 else []
    if isinstance(pattern, Mapping):
        values = cast("Mapping[Any, Any]", pattern).values()
        return [found for value in values for found in _variables(value)]
    if isinstance(pattern, (tuple, list)):
        parts = cast("Sequence[Any]", pattern)
        return [found for part in parts for found in _variables(part)]
    return []


def _below(pattern: Any, key: Any, name: str) -> Any:
    """The part of a pattern for one child; a size, a text or None holds for all children."""
    index = getattr(key, "key", getattr(key, "idx", getattr(key, "name", None)))
    if pattern is None or pattern is ... or isinstance(pattern, (Dim, str)):
        return pattern
    if isinstance(pattern, Mapping):
        entries = cast("Mapping[Any, Any]", pattern)
        if index in entries:
            return entries[index]
        axes = all(isinstance(axis, int) for axis in entries)
        return pattern if axes else entries.get(..., None)
    if isinstance(pattern, (tuple, list)):
        parts = cast("Sequence[Any]", pattern)
        if isinstance(index, int) and any(isinstance(p, (tuple, list, Mapping)) for p in parts):
            if index < len(parts):
                return parts[index]
            raise ArgumentError(f"dynamic shapes: nothing is specified for argument {name}")
        return pattern
    return getattr(pattern, str(index), None)
