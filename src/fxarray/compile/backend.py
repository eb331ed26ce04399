"""What a device must offer the compiler, and the registry of devices.

A `Backend` turns a Program into an `Executable`, which takes concrete arrays and returns concrete
arrays. The reference backend runs NumPy; native ones generate machine code. Other libraries
register theirs through `fxarray.extend`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from fxarray.core.array import DeviceArray
from fxarray.core.errors import ArgumentError
from fxarray.core.ir import Program


@dataclass(frozen=True)
class CompileOptions:
    """What may change the code made for a Program.

    Args:
      donated: positions of inputs whose memory the call may reuse.
      settings: options that one backend understands.
    """

    donated: tuple[int, ...] = ()
    settings: tuple[tuple[str, Any], ...] = ()


Call: TypeAlias = Callable[[list[Any]], list[DeviceArray]]


class NotConcreteError(Exception):
    """A direct call was given something that is no concrete array; nothing has been run."""


class Executable(Protocol):
    """A compiled Program."""

    def __call__(self, arguments: Sequence[DeviceArray]) -> list[DeviceArray]:
        """Run on one array per input; one array per output."""
        ...

    def direct(self) -> Call | None:
        """The shortest way to run again under the settings that hold now; None if there is none.

        It takes a list of arrays, and raises NotConcreteError if not all of them are concrete.
        """
        ...

    def located(self, program: Program) -> Executable:
        """The same code, for an equal Program: errors name the places in the user's code of it."""
        ...

    def at_sizes(self, sizes: Mapping[str, int]) -> Executable:
        """The same code, for these sizes of the variables in the Program's types."""
        ...

    def as_text(self, stage: str) -> str:
        """The code of one stage of compilation; `stages` lists them."""
        ...

    @property
    def stages(self) -> tuple[str, ...]: ...

    def cost_analysis(self) -> Mapping[str, float]:
        """Estimated floating-point operations and bytes moved."""
        ...

    def memory_analysis(self) -> Mapping[str, int]:
        """Bytes of arguments, results and temporaries."""
        ...


class Backend(Protocol):
    """A device that can compile Programs."""

    @property
    def name(self) -> str: ...

    def compile(self, program: Program, options: CompileOptions) -> Executable: ...


@dataclass
class _Registry:
    backends: dict[str, Backend] = field(default_factory=dict[str, Backend])
    default: str = ""


_registry = _Registry()


def register_backend(backend: Backend, default: bool = False) -> None:
    """Make a backend available under its name.

    Args:
      backend: the backend.
      default: whether `jit` uses it when nothing else is asked for, and the environment variable
        `FXARRAY_BACKEND` names no other.
    """
    _registry.backends[backend.name] = backend
    if default or not _registry.default:
        _registry.default = os.environ.get("FXARRAY_BACKEND") or backend.name


def get_backend(name: str | None = None) -> Backend:
    """The backend called `name`, or the default one.

    Raises:
      ArgumentError: if there is none of that name.
    """
    wanted = _registry.default if name is None else name
    backend = _registry.backends.get(wanted)
    if backend is None:
        known = ", ".join(sorted(_registry.backends))
        raise ArgumentError(f"there is no backend called {wanted!r}; registered are: {known}")
    return backend
