"""Looking on while a compiled function runs: print, callback, breakpoint."""

from __future__ import annotations

import string
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from fxarray.core.array import Array
from fxarray.core.errors import ArgumentError
from fxarray.core.source import user_frames
from fxarray.core.tracer import Tracer
from fxarray.primitives.callback import DEBUG, Callback
from fxarray.transforms.arguments import Structure, flatten_arguments, function_name
from fxarray.transforms.debugger import Debugger, Frame


@dataclass(frozen=True)
class _LookOn:
    function: Callable[..., Any]
    structure: Structure

    def __call__(self, *arrays: np.ndarray) -> list[Any]:
        args, kwargs = self.structure.unflatten(arrays)
        self.function(*args, **kwargs)
        return []

    def __repr__(self) -> str:
        return function_name(self.function)


def callback(
    callback: Callable[..., Any], *args: Any, ordered: bool = False, **kwargs: Any
) -> None:
    """Call a Python function with the values of arrays, for its side effect only.

    Args:
      callback: a function of NumPy arrays; what it returns is ignored.
      *args: its arguments. Under `vmap` it is called for each lane, under `grad` with the values
        of the forward pass.
      ordered: whether calls keep their order with other ordered ones.
      **kwargs: its keyword arguments.

    >>> import fxarray, fxarray.numpy as fnp
    >>> seen = []
    >>> def f(x):
    ...     fxarray.debug.callback(lambda v: seen.append(float(v)), x)
    ...     return x * 2
    >>> _ = fxarray.jit(f)(3.0)
    >>> seen
    [3.0]
    """
    if not callable(callback):
        raise ArgumentError(f"debug.callback takes a function, got {callback!r}")
    flat = flatten_arguments(args, kwargs, callback)
    Callback(_LookOn(callback, flat.structure), (), DEBUG, ordered).bind(*flat.arrays)


@dataclass(frozen=True)
class _Print:
    format: str

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        sys.stdout.write(string.Formatter().vformat(self.format, args, kwargs) + "\n")


def print(fmt: str, *args: Any, ordered: bool = False, **kwargs: Any) -> None:
    """Print values, also from inside `jit`, `vmap`, `grad` and loops.

    Args:
      fmt: a format string, as for `str.format`.
      *args: values for `{}`.
      ordered: whether prints keep their order.
      **kwargs: values for `{name}`.

    Raises:
      ArgumentError: if the format string asks for values that are not given, or is not literal.

    >>> import fxarray, fxarray.numpy as fnp
    >>> @fxarray.jit
    ... def f(x):
    ...     fxarray.debug.print("x = {x}, twice {}", 2 * x, x=x)
    ...     return x
    >>> _ = f(fnp.arange(2))
    x = [0 1], twice [0 2]
    """
    _check_format(fmt, args, kwargs)
    callback(_Print(fmt), *args, ordered=ordered, **kwargs)


def _check_format(fmt: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    if not isinstance(fmt, str):
        raise ArgumentError(
            f"debug.print takes a format string first, got {type(fmt).__name__}: write "
            f'debug.print("{{}}", x)'
        )
    try:
        fields = [name for _, name, _, _ in string.Formatter().parse(fmt) if name is not None]
    except ValueError as error:
        raise ArgumentError(f"debug.print: {fmt!r} is not a format string: {error}") from None
    roots = [name.split(".")[0].split("[")[0] for name in fields]
    position = 0
    used: set[int] = set()
    for root in roots:
        if root == "" or root.isdigit():
            index = position if root == "" else int(root)
            position += root == ""
            used.add(index)
            if index >= len(args):
                raise ArgumentError(
                    f"debug.print: {fmt!r} needs more values than the {len(args)} given"
                )
        elif root not in kwargs:
            raise ArgumentError(f"debug.print: {fmt!r} asks for {root!r}, which is not given")
    unused = [str(i) for i in range(len(args)) if i not in used]
    unused += [name for name in kwargs if name not in roots]
    if unused:
        raise ArgumentError(
            f"debug.print: {fmt!r} does not use the values {', '.join(unused)}; is it an f-string? "
            f"Values must be given as arguments, since they are not known while tracing."
        )


def breakpoint(
    *,
    filter_frames: bool = True,
    num_frames: int | None = None,
    ordered: bool = False,
    stdin: Any = None,
    stdout: Any = None,
) -> None:
    """Stop here each time this point runs, and look around.

    Args:
      filter_frames: whether to leave out fxarray's own frames.
      num_frames: how many frames to keep, from the innermost; None keeps all.
      ordered: whether stops keep their order with other ordered callbacks.
      stdin: where commands are read from (default: the terminal).
      stdout: where answers are written.

    Local variables that hold arrays show their run-time values. Commands: `p expression`, `pp
    expression`, `l` (list source), `w` (where), `u` and `d` (up and down), `c` (continue), `q`
    (quit).
    """
    frames = [
        Frame(frame.f_code, frame.f_lineno, dict(frame.f_locals))
        for frame in user_frames(1, filter_frames)[: num_frames or None]
    ]
    arrays: list[Any] = []
    places: list[tuple[int, str]] = []
    for number, frame in enumerate(frames):
        for name, value in frame.variables.items():
            if isinstance(value, Array) and not (
                isinstance(value, Tracer) and not value._trace.alive
            ):
                places.append((number, name))
                arrays.append(value)

    def stop(*values: np.ndarray) -> None:
        known = [Frame(f.code, f.line, dict(f.variables)) for f in frames]
        for (number, name), value in zip(places, values, strict=True):
            known[number].variables[name] = value
        Debugger(known, stdin, stdout).cmdloop()

    callback(stop, *arrays, ordered=ordered)
