"""A bounded, locked memory for program-to-program transforms, keyed by what the Program says."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from fxarray.core.caches import register_cache
from fxarray.core.context import context
from fxarray.core.ir import Program

P = ParamSpec("P")
R = TypeVar("R")
_MEMORIES: list[tuple[OrderedDict[Any, Any], threading.Lock]] = []
_LIMIT = 4096


def _places(argument: Any) -> Any:
    if isinstance(argument, Program):
        return argument.places
    if isinstance(argument, tuple):
        return tuple([part.places for part in argument if isinstance(part, Program)])
    return None


def memoised(function: Callable[P, R]) -> Callable[P, R]:
    """Remember results by arguments and by the trace context.

    Programs compare by content, and by where the user wrote their equations, which the equations of
    the result are due to.
    """
    memory: OrderedDict[Any, Any] = OrderedDict()
    lock = threading.Lock()
    _MEMORIES.append((memory, lock))

    @wraps(function)
    def remembered(*args: P.args, **kwargs: P.kwargs) -> R:
        key = (args, tuple(sorted(kwargs.items())), tuple(map(_places, args)), context.key())
        with lock:
            if key in memory:
                memory.move_to_end(key)
                return memory[key]
        result = function(*args, **kwargs)
        with lock:
            memory[key] = result
            if len(memory) > _LIMIT:
                memory.popitem(last=False)
        return result

    return remembered


@register_cache
def clear() -> None:
    """Forget all remembered program transforms."""
    for memory, lock in _MEMORIES:
        with lock:
            memory.clear()
