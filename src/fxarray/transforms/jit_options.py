"""The options of `jit` that name arguments, by position or by name."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from fxarray.core.errors import ArgumentError
from fxarray.transforms.arguments import function_name


def as_tuple(value: Any) -> tuple[Any, ...]:
    """An int, a name, several of them or None, as a tuple."""
    if value is None:
        return ()
    return (value,) if isinstance(value, (int, str)) else tuple(value)


def signature_of(function: Callable[..., Any]) -> inspect.Signature | None:
    """The signature of a function, None if it has none, as some builtins."""
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None


def positional_names(signature: inspect.Signature | None) -> list[str]:
    """The names of the parameters that may be given by position."""
    if signature is None:
        return []
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [name for name, p in signature.parameters.items() if p.kind in kinds]


def resolve(
    function: Callable[..., Any],
    signature: inspect.Signature | None,
    numbers: tuple[int, ...],
    names: tuple[str, ...],
    what: str,
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Complete positions by names and names by positions; check both.

    Args:
      function: the function under jit.
      signature: its signature, None if it has none.
      numbers: positions that the user gave.
      names: names that the user gave.
      what: "static" or "donate".

    Raises:
      ArgumentError: if the function has no such argument.
    """
    label = function_name(function)
    if signature is None:
        return numbers, names
    parameters = list(signature.parameters.values())
    positional = [
        p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    variadic = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    catches_all = any(p.kind is p.VAR_KEYWORD for p in parameters)
    all_numbers: list[int] = []
    for number in numbers:
        if not isinstance(number, int) or isinstance(number, bool):
            raise ArgumentError(f"jit of {label}: {what}_argnums must be ints, got {number!r}")
        if not variadic and not -len(positional) <= number < len(positional):
            raise ArgumentError(
                f"jit of {label}: {what}_argnums has {number}, but {label} takes "
                f"{len(positional)} positional arguments"
            )
        all_numbers.append(number % len(positional) if number < 0 else number)
    all_names = list(names)
    for name in names:
        if name not in signature.parameters and not catches_all:
            raise ArgumentError(
                f"jit of {label}: {what}_argnames has {name!r}, but the arguments of {label} are: "
                f"{', '.join(signature.parameters)}"
            )
        if name in positional and positional.index(name) not in all_numbers:
            all_numbers.append(positional.index(name))
    for number in all_numbers:
        if number < len(positional) and positional[number] not in all_names:
            all_names.append(positional[number])
    return tuple(all_numbers), tuple(all_names)
