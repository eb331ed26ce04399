"""The reference backend: a Program becomes one Python function of NumPy arrays.

Each equation is a line that calls the operation's `eager` rule (or its exact `reference` rule);
variables are Python locals, dropped after their last use. There is no cleverness here: this backend
is what native ones are tested against.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any

import numpy as np

from fxarray.compile.backend import Call, CompileOptions, NotConcreteError, register_backend
from fxarray.core.array import DeviceArray
from fxarray.core.context import context
from fxarray.core.errors import ArgumentError, NonFiniteError
from fxarray.core.ir import Program, Var
from fxarray.core.types import ArrayType
from fxarray.interpreters.evaluate import last_uses
from fxarray.interpreters.fixed_sizes import fixed_sizes
from fxarray.primitives.control.numpy_runner import generate
from fxarray.primitives.numeric_checks import checks_wanted, is_offending, offence, search
from fxarray.primitives.support import quietly

_SIZES_LIMIT = 1024


def _bytes(types: Sequence[ArrayType]) -> int:
    return sum(int(type.size) * type.dtype.itemsize for type in types)


class ReferenceExecutable:
    """A Program as a Python function of NumPy arrays."""

    def __init__(self, program: Program, rule: str) -> None:
        self.program = program
        self.origin = program
        self.run, self.source = generate(program, rule)
        self.rule = rule
        self.types = program.output_types
        self._of_sizes: dict[tuple[tuple[str, int], ...], ReferenceExecutable] = {}
        self.stages = ("program", "python")

    def __call__(self, arguments: Sequence[DeviceArray]) -> list[DeviceArray]:
        return self.run_buffers([argument.numpy_view() for argument in arguments])

    def direct(self) -> Call | None:
        """A call that looks at what it is given."""
        return self._direct

    def _direct(self, arrays: list[Any]) -> list[DeviceArray]:
        try:
            buffers = [array._np for array in arrays]
        except AttributeError:
            if not all(type(array) is DeviceArray for array in arrays):
                raise NotConcreteError from None
            buffers = [array.numpy_view() for array in arrays]  # says which one is deleted
        return self.run_buffers(buffers)

    def located(self, program: Program) -> ReferenceExecutable:
        """The same code, for an equal Program: errors name the places in the user's code of it."""
        other = copy(self)
        other.origin = program
        return other

    def at_sizes(self, sizes: Mapping[str, int]) -> ReferenceExecutable:
        """The Program for these sizes: NumPy computes with numbers only."""
        key = tuple(sorted(sizes.items()))
        known = self._of_sizes.get(key)
        if known is None:
            if len(self._of_sizes) >= _SIZES_LIMIT:
                self._of_sizes.clear()
            program = fixed_sizes(self.origin, sizes)
            known = self._of_sizes[key] = ReferenceExecutable(program, self.rule)
        return known

    def run_buffers(self, buffers: Sequence[np.ndarray]) -> list[DeviceArray]:
        """Like a call, on the buffers themselves."""
        values = quietly(self.run, buffers)
        if context.settings and checks_wanted() and any(map(is_offending, values)):
            self._find_offender(buffers)
        return list(map(DeviceArray, values, self.types))

    def _find_offender(self, buffers: Sequence[np.ndarray]) -> None:
        """Run again, one equation after the other, to say which one gives the NaN or inf."""
        program = self.origin
        if not program.effects:  # what it does to the world must not be done twice
            quietly(search, (program, buffers))
        raise NonFiniteError(
            f"{program.name}: a result is {offence()}, but no single operation can be named"
        )

    def as_text(self, stage: str) -> str:
        if stage == "program":
            return str(self.program)
        if stage == "python":
            return self.source
        raise ArgumentError(f"there is no stage {stage!r}; the stages are: {self.stages}")

    def cost_analysis(self) -> Mapping[str, float]:
        equations = self.program.equations
        moved = sum(
            _bytes([a.type for a in e.inputs]) + _bytes([v.type for v in e.outputs])
            for e in equations
        )
        return {"equations": float(len(equations)), "bytes accessed": float(moved)}

    def memory_analysis(self) -> Mapping[str, int]:
        alive = peak = 0
        sizes: dict[Var, int] = {}
        for equation, dying in zip(self.program.equations, last_uses(self.program), strict=True):
            for variable in equation.outputs:
                sizes[variable] = _bytes([variable.type])
                alive += sizes[variable]
            peak = max(peak, alive)
            alive -= sum(sizes.get(variable, 0) for variable in dying)
        return {
            "argument_size_in_bytes": _bytes(self.program.input_types),
            "output_size_in_bytes": _bytes(self.program.output_types),
            "temp_size_in_bytes": peak,
        }


class ReferenceBackend:
    """Runs Programs with NumPy.

    Args:
      name: the backend's name.
      rule: "eager" for the fast NumPy rules, "reference" for the exact ones.
    """

    def __init__(self, name: str, rule: str) -> None:
        self.name = name
        self.rule = rule

    def compile(self, program: Program, options: CompileOptions) -> ReferenceExecutable:
        return ReferenceExecutable(program, self.rule)


register_backend(ReferenceBackend("numpy", "eager"))
register_backend(ReferenceBackend("reference", "reference"))
