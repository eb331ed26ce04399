"""Names for parts of a computation, and settings of tracing: scopes, disable_jit, eager islands."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import wraps
from typing import ParamSpec, TypeVar

from fxarray.core.context import context, setting
from fxarray.core.errors import ArgumentError
from fxarray.transforms.arguments import function_name

P = ParamSpec("P")
R = TypeVar("R")


@contextmanager
def named_scope(name: str) -> Generator[None, None, None]:
    """Name the operations in a block (or, as a decorator, in a function).

    The name shows in printed Programs and profiles; it changes nothing else. Scopes nest.

    Args:
      name: the scope's name.

    Raises:
      ArgumentError: if the name is not a string.

    >>> import fxarray
    >>> def layer(x):
    ...     with fxarray.named_scope("layer"):
    ...         return x * x
    >>> fxarray.make_program(layer)(1.0).equations[0].scopes
    ('layer',)
    """
    if not isinstance(name, str):
        raise ArgumentError(f"named_scope takes a string, not {name!r}")
    with setting(scopes=(*context.scopes, name)):
        yield


def named_call(fun: Callable[P, R], *, name: str | None = None) -> Callable[P, R]:
    """Make a function whose operations are named after it.

    Args:
      fun: the function.
      name: the name (default: the function's own).

    >>> import fxarray
    >>> square = fxarray.named_call(lambda x: x * x, name="square")
    >>> fxarray.make_program(square)(1.0).equations[0].scopes
    ('square',)
    """
    if not callable(fun):
        raise ArgumentError(f"named_call takes a function, not {fun!r}")
    label = function_name(fun) if name is None else name

    @wraps(fun)
    def named(*args: P.args, **kwargs: P.kwargs) -> R:
        with named_scope(label):
            return fun(*args, **kwargs)

    return named


@contextmanager
def disable_jit(disable: bool = True) -> Generator[None, None, None]:
    """Run jitted functions, and the bodies of control flow, as plain Python in a block.

    Values can then be printed and inspected with a debugger.

    Args:
      disable: False undoes an enclosing `disable_jit`.

    >>> import fxarray
    >>> @fxarray.jit
    ... def f(x):
    ...     return "positive" if x > 0 else "negative"
    >>> with fxarray.disable_jit():
    ...     f(1.0)
    'positive'
    """
    with setting(disable_jit=disable):
        yield


@contextmanager
def ensure_compile_time_eval() -> Generator[None, None, None]:
    """Compute operations on concrete arrays at once in a block, also while a function is traced.

    Useful for tables that should be constants of the Program. Operations on traced values are
    traced as ever.

    >>> import fxarray, fxarray.numpy as fnp
    >>> @fxarray.jit
    ... def f(x):
    ...     with fxarray.ensure_compile_time_eval():
    ...         steps = int(fnp.arange(4).sum())
    ...     return x * steps
    >>> f(2.0)
    Array(12., dtype=float32, weak_type=True)
    """
    with setting(staging=None):
        yield
