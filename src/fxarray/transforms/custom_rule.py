"""What custom_jvp and custom_vjp share: reading a call, and arguments without derivative."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from fxarray.core.array import Array
from fxarray.core.errors import ArgumentError
from fxarray.transforms.arguments import Structure, flatten_arguments, function_name
from fxarray.transforms.statics import Static
from fxarray.tree.operations import leaves as tree_leaves


def read_signature(function: Callable[..., Any]) -> inspect.Signature | None:
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None


def resolve_nondiff(
    signature: inspect.Signature | None,
    numbers: int | Sequence[int],
    names: str | Sequence[str],
    label: str,
) -> tuple[int, ...]:
    """Positions of the arguments that a rule does not differentiate."""
    found = [numbers] if isinstance(numbers, int) else list(numbers)
    wanted = [names] if isinstance(names, str) else list(names)
    parameters = [] if signature is None else list(signature.parameters)
    for name in wanted:
        if name not in parameters:
            raise ArgumentError(f"{label}: there is no argument called {name!r}")
        found.append(parameters.index(name))
    count = len(parameters)
    return tuple(sorted({n % count if n < 0 and count else n for n in found}))


class Call(NamedTuple):
    """One call of a function with a rule.

    Args:
      arrays: the arrays among all arguments.
      structure: their places.
    """

    arrays: list[Any]
    structure: Structure


def read_call(
    function: Callable[..., Any],
    signature: inspect.Signature | None,
    nondiff: Sequence[int],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Call:
    """Bring a call into positional form, and take its arguments apart."""
    if kwargs or signature is not None:
        if signature is None:
            raise ArgumentError(
                f"{function_name(function)} has no signature; pass its arguments by position"
            )
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        if bound.kwargs:
            raise ArgumentError(
                f"{function_name(function)} has keyword-only arguments "
                f"({', '.join(bound.kwargs)}), which "
                f"a custom derivative rule cannot take; make them positional"
            )
        args = bound.args
    marked = list(args)
    for number in nondiff:
        if number < len(marked) and not _holds_arrays(marked[number]):
            marked[number] = Static(marked[number])
    flat = flatten_arguments(tuple(marked), {}, function)
    return Call(flat.arrays, flat.structure)


def _holds_arrays(value: Any) -> bool:
    """Whether an argument holds arrays: then they are operands, if without derivatives."""
    return any(isinstance(leaf, Array) for leaf in tree_leaves(value))


@dataclass
class Record:
    """What becomes known while a function or its rule runs."""

    output: Structure | None = None
    residuals: Structure | None = None
    count: int = 0


def split_arguments(args: Sequence[Any], nondiff: Sequence[int]) -> tuple[list[Any], list[Any]]:
    """The arguments without derivative, and the others."""
    given = [args[number] for number in nondiff if number < len(args)]
    return given, [x for number, x in enumerate(args) if number not in nondiff]
