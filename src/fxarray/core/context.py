"""One trace context per thread: what is being traced, and under which settings.

`level` counts the open traces. A trace opened inside another has a higher level, and an operation
is handled by the highest trace among its operands, or by the open staging trace if that is higher.
So `grad` inside `vmap` inside `jit` each see exactly the operations meant for them.
"""

from __future__ import annotations

import threading
from collections.abc import Generator, Hashable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from fxarray.core.dims.assumptions import assumptions_in_scope
from fxarray.core.errors import UnboundAxisError
from fxarray.core.source import Location, user_frame

if TYPE_CHECKING:
    from fxarray.core.tracer import Trace


@dataclass(frozen=True)
class Axis:
    """A named axis that collectives can refer to: made by vmap or by a mesh."""

    name: Hashable
    size: Any
    trace: Trace | None  # the vmap that holds the axis; None while only its size is known

    @property
    def key(self) -> tuple[Hashable, Any]:
        return (self.name, self.size)


class Context(threading.local):
    """The mutable state of one thread's tracing."""

    level: int = 0
    staging: Trace | None = None
    axes: tuple[Axis, ...] = ()
    mesh: Any = None
    default_device: Any = None
    scopes: tuple[str, ...] = ()
    # Where the operation that is being worked on was called, if that is known already: looking
    # for it costs a microsecond for every few frames.
    source: Location | None = None
    disable_jit: bool = False
    # Settings that traces depend on and that are not at their defaults: the process's (the class
    # attribute) unless this thread is in a block that changes some.
    settings: tuple[tuple[str, Any], ...] = ()
    # The settings that the blocks this thread is in change, those traces depend on and others.
    own_settings: Mapping[str, Any] = MappingProxyType({})

    def key(self) -> tuple[Any, ...]:
        """What a cached trace depends on besides its arguments."""
        return (
            tuple(axis.key for axis in self.axes),
            self.mesh,
            self.default_device,
            self.settings,
            assumptions_in_scope(),
        )


context = Context()


def current_location(depth: int = 1) -> Location | None:
    """The user's place that equations made now are due to.

    Args:
      depth: how many frames up the stack to begin looking.
    """
    known = context.source
    if known is not None:
        return known
    frame = user_frame(depth + 1)
    return None if frame is None else Location(frame.f_code, frame.f_lasti)


@contextmanager
def open_trace(trace: Trace, staging: bool = False) -> Generator[Trace, None, None]:
    """Give `trace` the next level; mark it dead on the way out, so that leaks are recognised."""
    previous_level, previous_staging = context.level, context.staging
    previous_source = context.source
    context.level = trace.level = previous_level + 1
    if staging:
        context.staging = trace
        context.source = None
    try:
        yield trace
    finally:
        context.level, context.staging = previous_level, previous_staging
        context.source = previous_source
        trace.alive = False


@contextmanager
def named_axis(name: Hashable, size: Any, trace: Trace | None) -> Generator[None, None, None]:
    """Make the axis `name` known to collectives in the dynamic extent."""
    previous = context.axes
    context.axes = (*previous, Axis(name, size, trace))
    try:
        yield
    finally:
        context.axes = previous


@contextmanager
def setting(**values: Any) -> Generator[None, None, None]:
    """Set fields of the context in the dynamic extent."""
    previous = {name: getattr(context, name) for name in values}
    for name, value in values.items():
        setattr(context, name, value)
    try:
        yield
    finally:
        for name, value in previous.items():
            setattr(context, name, value)


def find_axis(name: Hashable) -> Axis:
    """The innermost axis called `name`."""
    for axis in reversed(context.axes):
        if axis.name == name:
            return axis
    known = ", ".join(repr(axis.name) for axis in context.axes) or "none"
    raise UnboundAxisError(
        f"unbound axis name {name!r}: axes known here are: {known}. Collectives need an enclosing "
        f"vmap(..., axis_name={name!r}) or shard_map over that axis."
    )
