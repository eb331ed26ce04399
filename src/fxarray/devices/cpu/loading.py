"""The CPU's compiler, loaded when something is first compiled: importing LLVM takes a while."""

from __future__ import annotations

from functools import cached_property
from importlib import import_module

from fxarray.compile.backend import Backend, CompileOptions, Executable, register_backend
from fxarray.core.ir import Program


class LoadedLater:
    """A backend whose module is imported when it is first used.

    Args:
      name: the backend's name.
      module: which has the backend as `BACKEND`.
    """

    def __init__(self, name: str, module: str) -> None:
        self.name = name
        self._module = module

    @cached_property
    def _backend(self) -> Backend:
        return import_module(self._module).BACKEND

    def compile(self, program: Program, options: CompileOptions) -> Executable:
        return self._backend.compile(program, options)


register_backend(LoadedLater("cpu", "fxarray.devices.cpu.program.backend"), default=True)
