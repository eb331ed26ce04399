"""Steps that run on the host: native code calls back into Python for them.

An exception in such a step stops the native program; it is raised again where the program was
called. The same way the program lets Python look for signals, such as Ctrl-C, in long loops.
"""

from __future__ import annotations

import ctypes
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import prod
from typing import Any, NamedTuple

import numpy as np

from fxarray.compile.graph import CallStep, KernelStep, Slot
from fxarray.core import config, dtypes
from fxarray.core.errors import LoopBoundError
from fxarray.devices.cpu.program.walker import BOUND_REACHED, FIRST_TURNS, SIGNALS, TURNS
from fxarray.interpreters.fixed_sizes import with_sizes
from fxarray.kernel import sizes
from fxarray.kernel.interpret import interpret
from fxarray.primitives.callback import Callback
from fxarray.primitives.control.surgery import ControlFlow
from fxarray.primitives.support import quietly

_SIGNALS_EVERY = 0.05  # seconds
_NEVER = 1 << 62


class Operand(NamedTuple):
    """An array at an address that is given when the step runs."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    bytes: int


class HostStep(NamedTuple):
    """What the host does.

    Args:
      function: from arrays to results.
      inputs: what it is given.
      outputs: what it gives.
      keeps: whether the function may keep what it is given.
    """

    function: Callable[..., Sequence[np.ndarray[Any, Any]]]
    inputs: tuple[Operand, ...]
    outputs: tuple[Operand, ...]
    keeps: bool


def host_step(step: CallStep | KernelStep, values: Mapping[str, int]) -> HostStep:
    """How the host runs a step: an operation by its `eager` rule, a kernel by its definition.

    Args:
      step: the step.
      values: sizes by name.
    """

    def operand(slot: Slot) -> Operand:
        dtype = np.dtype(dtypes.physical(slot.type.dtype))
        shape = tuple([sizes.evaluate(size, values) for size in slot.shape])
        return Operand(shape, dtype, prod(shape) * dtype.itemsize)

    inputs, outputs = tuple(map(operand, step.inputs)), tuple(map(operand, step.outputs))
    if isinstance(step, KernelStep):
        return HostStep(partial(interpret, step.kernel, sizes=values), inputs, outputs, False)
    op = step.op if not values else with_sizes(step.op, values)
    return HostStep(op.eager, inputs, outputs, isinstance(op, Callback | ControlFlow))


class _Calls(threading.local):
    """The programs that this thread is in, innermost last, and what went wrong in them."""

    def __init__(self) -> None:
        self.steps: list[Sequence[HostStep]] = []
        self.error: BaseException | None = None
        self.looked = 0.0
        self.turns = FIRST_TURNS


_calls = _Calls()


def _view(operand: Operand, address: int) -> np.ndarray[Any, Any]:
    if operand.bytes == 0:
        return np.empty(operand.shape, operand.dtype)
    memory: Any = (ctypes.c_char * operand.bytes).from_address(address)
    return np.frombuffer(memory, np.uint8).view(operand.dtype).reshape(operand.shape)


def run_step(step: HostStep, addresses: Sequence[int]) -> None:
    """Run a step on the arrays at these addresses, of its operands and its results."""
    count = len(step.inputs)
    arrays = [_view(o, a) for o, a in zip(step.inputs, addresses[:count], strict=True)]
    if step.keeps:
        arrays = [array.copy() for array in arrays]
    for array in arrays:
        array.flags.writeable = False
    results = quietly(step.function, arrays)
    for operand, address, result in zip(step.outputs, addresses[count:], results, strict=True):
        if operand.bytes:
            _view(operand, address)[...] = result


def _call(number: int, words: int, counters: int) -> int:
    if _calls.error is not None:  # the program is on its way out
        return 1
    try:
        if number == SIGNALS:
            _look_for_signals(counters)
        elif number <= BOUND_REACHED:
            if config.get("debug"):
                raise LoopBoundError(
                    f"while_loop: the condition still holds after max_steps="
                    f"{BOUND_REACHED - number} steps. Raise max_steps; without the debug setting "
                    f"the loop stops there silently."
                )
        else:
            step = _calls.steps[-1][number]
            count = len(step.inputs) + len(step.outputs)
            run_step(step, list((ctypes.c_size_t * count).from_address(words)))
    except BaseException as error:  # noqa: BLE001, whatever it is, it is raised after the call
        _calls.error = error
        return 1
    return 0


def _look_for_signals(counters: int) -> None:
    """Being in Python is enough for that; what remains is to say when to look next."""
    countdown = ctypes.c_int64.from_address(counters + 8 * TURNS)
    if threading.current_thread() is not threading.main_thread():
        countdown.value = _NEVER
        return
    now = time.perf_counter()
    growth = min(_SIGNALS_EVERY / max(now - _calls.looked, 1e-6), 16.0)
    _calls.looked = now
    _calls.turns = max(1, min(int(_calls.turns * growth), _NEVER))
    countdown.value = _calls.turns


_host_function = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)(
    _call
)
HOST_ADDRESS: int = ctypes.cast(_host_function, ctypes.c_void_p).value or 0


class _signals_kept:  # noqa: N801, reads as a function
    """While it is open, what a signal raises when native code calls Python is kept.

    Python handles signals as it enters a function, which is outside of any `try` in it, and what is
    raised there has no caller but ctypes, which gives it to `sys.unraisablehook`. Only the main
    thread handles signals.
    """

    def __enter__(self) -> None:
        self.installed = threading.get_ident() == threading.main_thread().ident
        if self.installed:
            self.previous = sys.unraisablehook
            sys.unraisablehook = self.hook

    def hook(self, unraisable: Any) -> None:
        if unraisable.object is _call:
            _calls.error = unraisable.exc_value or unraisable.exc_type()
        else:
            self.previous(unraisable)

    def __exit__(self, *_: object) -> None:
        if self.installed:
            sys.unraisablehook = self.previous


def run_with_host(function: Callable[[Any], Any], argument: Any, steps: Sequence[HostStep]) -> Any:
    """`function(argument)`, where the function runs a program that may call the host.

    Args:
      function: runs the program.
      argument: of the function.
      steps: the program's steps of the host.

    Raises:
      BaseException: what a step of the host raised.
    """
    turns, looked = _calls.turns, _calls.looked
    _calls.turns, _calls.looked = FIRST_TURNS, time.perf_counter()
    _calls.steps.append(steps)
    try:
        with _signals_kept():
            result = function(argument)
    finally:
        _calls.steps.pop()
        _calls.turns, _calls.looked = turns, looked
        error, _calls.error = _calls.error, None
    if error is not None:
        raise error
    return result
