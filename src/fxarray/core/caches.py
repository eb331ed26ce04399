"""All that fxarray remembers between calls, and how to forget it.

Whoever remembers something registers how to forget it. Nothing here is needed for results to be
right: traces, executables and tables are keyed by all that they depend on.
"""

from __future__ import annotations

from collections.abc import Callable

_FORGETTERS: list[Callable[[], None]] = []


def register_cache(forget: Callable[[], None]) -> Callable[[], None]:
    """Have `clear_caches` call `forget`; returns it, so that this can be a decorator."""
    _FORGETTERS.append(forget)
    return forget


def clear_caches() -> None:
    """Forget all traces, transformed Programs, executables and tables.

    >>> import fxarray
    >>> fxarray.clear_caches()
    """
    for forget in _FORGETTERS:
        forget()
