"""Arguments of transformed functions: trees in, flat arrays and a static rest out, and back.

Every transform calls the user's function through this module, so that all agree on what an array
is (see `statics`), on names in messages, and on how static leaves pass through.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple, cast

from fxarray.core.array import Array, DeviceArray
from fxarray.core.errors import ArgumentError, StaticArgumentError
from fxarray.core.hooks import operators
from fxarray.transforms.statics import (
    ARRAY,
    NUMPY,
    STATIC,
    Static,
    is_array_like,
    kind_of,
    refusal,
    static_key,
)
from fxarray.tree.keys import keystr, treedef_paths
from fxarray.tree.operations import flatten
from fxarray.tree.structure import PyTreeDef


class Structure:
    """A tree without its arrays: hashable, with the static leaves in their places.

    Two structures are equal if their trees are and their static leaves are equal in class and
    value.
    """

    __slots__ = ("_key", "static_leaves", "treedef")

    def __init__(self, treedef: PyTreeDef, static_leaves: tuple[tuple[int, Any], ...] = ()) -> None:
        self.treedef = treedef
        self.static_leaves = static_leaves
        self._key: Any = None

    @property
    def array_count(self) -> int:
        return self.treedef.num_leaves - len(self.static_leaves)

    @property
    def key(self) -> Hashable:
        if self._key is None:
            statics = tuple([(place, static_key(leaf)) for place, leaf in self.static_leaves])
            self._key = (self.treedef, statics)
        return self._key

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Structure) and self.key == other.key)

    def __hash__(self) -> int:
        return hash(self.key)

    def all_leaves(self, arrays: Sequence[Any]) -> list[Any]:
        """The leaves of the tree, the static ones included."""
        leaves = list(arrays)
        for place, leaf in self.static_leaves:
            leaves.insert(place, leaf.value if type(leaf) is Static else leaf)
        return leaves

    def unflatten(self, arrays: Sequence[Any]) -> Any:
        """The tree with `arrays` in the places of its arrays."""
        if self is LEAF:
            return arrays[0]
        return self.treedef.unflatten(self.all_leaves(arrays) if self.static_leaves else arrays)

    def unflatten_tangents(self, tangents: Sequence[Any]) -> Any:
        """The tree with `tangents` in the places of its arrays, and None for static leaves."""
        leaves = list(tangents)
        for place, _ in self.static_leaves:
            leaves.insert(place, None)
        return self.treedef.unflatten(leaves)

    def select(self, values: Sequence[Any]) -> list[Any]:
        """Of values given one per leaf, those of the arrays."""
        if not self.static_leaves:
            return list(values)
        dropped = {place for place, _ in self.static_leaves}
        return [value for place, value in enumerate(values) if place not in dropped]

    def paths(self) -> list[str]:
        """Where each array stands in the tree, as in `['w'][0]`."""
        return self.select([keystr(path) for path in treedef_paths(self.treedef)])


LEAF = Structure(flatten(0)[1])


@lru_cache(maxsize=64)
def plain_structure(count: int) -> Structure:
    """The structure of a call with `count` arrays as positional arguments."""
    return Structure(flatten(((0,) * count, {}))[1])


class FlatTree(NamedTuple):
    """The arrays of a tree, and everything else about it."""

    arrays: list[Any]
    structure: Structure


def flatten_tree(tree: Any, name: str = "the result") -> FlatTree:
    """Take a tree apart into arrays (converting NumPy arrays and numbers) and its structure.

    Args:
      tree: the tree.
      name: what the tree is called in messages.

    Raises:
      StaticArgumentError: for a leaf that is neither an array nor usable as a static value.
    """
    if isinstance(tree, Array):
        return FlatTree([tree], LEAF)
    leaves, treedef = flatten(tree)
    statics: list[tuple[int, Any]] = []
    arrays: list[Any] = []
    for place, leaf in enumerate(leaves):
        if type(leaf) is DeviceArray:
            arrays.append(leaf)
            continue
        kind = kind_of(leaf)
        if kind == ARRAY:
            arrays.append(leaf if isinstance(leaf, Array) else operators.asarray(leaf))
        elif kind == NUMPY and leaf.dtype.kind not in "OSUMm":
            arrays.append(operators.asarray(leaf))
        else:
            reason = None if kind == STATIC else refusal(leaf)
            if reason is not None:
                path = keystr(treedef_paths(treedef)[place])
                raise StaticArgumentError(f"{name}{path} is {reason}.")
            statics.append((place, leaf))
    return FlatTree(arrays, Structure(treedef, tuple(statics)))


class FlatArguments(NamedTuple):
    """The arguments of a call: its arrays, and a hashable structure holding everything else."""

    arrays: list[Any]
    structure: Structure
    function: Callable[..., Any] | None

    def restore(self, arrays: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The positional and keyword arguments with `arrays` in the places of the arrays."""
        return self.structure.unflatten(arrays)

    def names(self) -> list[str]:
        """What to call each array in messages, as in `params['w'][0]`."""
        return self.structure.select(argument_names(self.function, self.structure.treedef))


def flatten_arguments(
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any] | None = None,
    function: Callable[..., Any] | None = None,
) -> FlatArguments:
    """Take the arguments of a call apart into arrays and a hashable rest.

    Args:
      args: the positional arguments.
      kwargs: the keyword arguments.
      function: what is called, for the names of arguments in messages.

    Raises:
      StaticArgumentError: naming the argument that is neither an array nor usable as a static.
    """
    try:
        arrays, structure = flatten_tree((args, dict(kwargs) if kwargs else {}), "")
    except StaticArgumentError:
        raise _named_refusal(args, kwargs or {}, function) from None
    return FlatArguments(arrays, structure, function)


def _named_refusal(
    args: tuple[Any, ...], kwargs: Mapping[str, Any], function: Callable[..., Any] | None
) -> StaticArgumentError:
    leaves, treedef = flatten((args, dict(kwargs)))
    names = argument_names(function, treedef)
    called = function_name(function)
    for leaf, name in zip(leaves, names, strict=True):
        if not is_array_like(leaf):
            reason = refusal(leaf)
            if reason is not None:
                return StaticArgumentError(f"argument {name} of {called} is {reason}.")
    raise AssertionError("an argument was refused, but none is at fault")


def mark_static(
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    static_argnums: Sequence[int] = (),
    static_argnames: Sequence[str] = (),
    function: Callable[..., Any] | None = None,
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Wrap the arguments that the user declared static, so that they are, whatever their class.

    Raises:
      StaticArgumentError: if one of them is not hashable.
    """
    marked = list(args)
    for number in static_argnums:
        if -len(args) <= number < len(args):
            name = argument_name(function, number % len(args))
            marked[number] = _static(args[number], name, function)
    named = {
        name: _static(value, name, function) if name in static_argnames else value
        for name, value in kwargs.items()
    }
    return tuple(marked), named


def _static(value: Any, name: str, function: Callable[..., Any] | None) -> Static:
    try:
        return Static(value)
    except StaticArgumentError as error:
        raise StaticArgumentError(
            f"static argument {name} of {function_name(function)}: {error.message}"
        ) from None


class FlatFunction:
    """A function of flat arrays, made from one of trees.

    Calling it stores the structure of the result in `output`; with `has_aux`, the function returns
    a pair, whose second part's arrays come after the first's (`count` of them), and whose structure
    goes to `aux`.
    """

    __slots__ = ("aux", "count", "function", "has_aux", "output", "structure", "what")
    output: Structure
    aux: Structure
    count: int

    def __init__(
        self,
        function: Callable[..., Any],
        structure: Structure,
        has_aux: bool = False,
        what: str = "the transform",
    ) -> None:
        self.function = function
        self.structure = structure
        self.has_aux = has_aux
        self.what = what

    def __call__(self, *arrays: Any) -> list[Any]:
        args, kwargs = self.structure.unflatten(arrays)
        result = self.function(*args, **kwargs)
        if not self.has_aux:
            leaves, self.output = flatten_tree(result)
            self.count = len(leaves)
            return leaves
        if not isinstance(result, (tuple, list)) or len(cast("tuple[Any, ...]", result)) != 2:
            raise ArgumentError(
                f"{self.what}(has_aux=True): {function_name(self.function)} must return a pair "
                f"(result, aux), but returned {_describe(result)}."
            )
        leaves, self.output = flatten_tree(result[0])
        extra, self.aux = flatten_tree(result[1], "aux")
        self.count = len(leaves)
        return leaves + extra


def _describe(result: Any) -> str:
    if isinstance(result, Array):
        return f"an array of type {result.type}"
    if isinstance(result, (tuple, list)):
        sequence = cast("tuple[Any, ...]", result)
        return f"a {type(sequence).__name__} of length {len(sequence)}"
    return f"a {type(result).__name__}"


# --- names ----------------------------------------------------------------------------------------


def function_name(function: Any) -> str:
    """What to call a function in messages.

    >>> function_name(len)
    'len'
    """
    while isinstance(function, partial):
        function = cast("partial[Any]", function).func
    name = getattr(function, "__name__", None)
    if name is None:
        return "the function" if function is None else type(function).__name__
    return name


def _parameters(function: Callable[..., Any] | None) -> list[inspect.Parameter]:
    if function is None:
        return []
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # builtins and ufuncs have no signature
        return []


def argument_name(function: Callable[..., Any] | None, position: int) -> str:
    """The name of a positional argument, as in `x`, or `args[2]` of `*args`."""
    return _positional_name(_parameters(function), position)


def _positional_name(parameters: Sequence[inspect.Parameter], position: int) -> str:
    for number, parameter in enumerate(parameters):
        if parameter.kind is parameter.VAR_POSITIONAL:
            return f"{parameter.name}[{position - number}]"
        if parameter.kind in {parameter.KEYWORD_ONLY, parameter.VAR_KEYWORD}:
            break
        if number == position:
            return parameter.name
    return f"[{position}]"


def argument_names(function: Callable[..., Any] | None, treedef: PyTreeDef) -> list[str]:
    """A name for each leaf of a flattened `(args, kwargs)`, such as `params['w'][0]`."""
    parameters = _parameters(function)
    names: list[str] = []
    for path in treedef_paths(treedef):
        part, first, *rest = path
        if part.idx == 0:
            names.append(_positional_name(parameters, first.idx) + keystr(rest))
        else:
            names.append(f"{first.key}{keystr(rest)}")
    return names
