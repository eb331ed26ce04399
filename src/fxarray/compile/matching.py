"""Recognising a call: a device may offer to compare arguments with remembered ones, and take them
apart, faster than trees are flattened and looked up.

A matcher is made from the arguments of one call. Called with those of another, it gives the leaves,
in the order of the tree, if structure, static values and the arrays' types are the same, and None
if it cannot say so.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

Matcher: TypeAlias = Callable[[tuple[Any, ...], dict[str, Any]], list[Any] | None]
MakeMatcher: TypeAlias = Callable[
    [tuple[Any, ...], dict[str, Any], frozenset[int | str]], Matcher | None
]

_makers: list[MakeMatcher] = []


def install_matcher(make: MakeMatcher) -> None:
    """Have `matcher` ask `make`, which returns None for arguments that it has no way for."""
    _makers[:] = [make]


def matcher(
    args: tuple[Any, ...], kwargs: dict[str, Any], static: frozenset[int | str]
) -> Matcher | None:
    """What recognises calls like this one, None if there is no such thing.

    Args:
      args: the positional arguments.
      kwargs: the others.
      static: positions and names of arguments that are static values, a leaf each.
    """
    return _makers[0](args, kwargs, static) if _makers else None
