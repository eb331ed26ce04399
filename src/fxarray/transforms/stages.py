"""The steps of compiling ahead of time: Traced, Lowered, Compiled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fxarray.compile.backend import CompileOptions, Executable
from fxarray.compile.driver import compile_program
from fxarray.compile.simplify import simplify
from fxarray.core.dims import solve
from fxarray.core.errors import ArgumentError
from fxarray.core.ir import Program
from fxarray.interpreters.fixed_sizes import fixed_type
from fxarray.transforms.arguments import Structure, flatten_arguments
from fxarray.transforms.inspect import ShapeDtypeStruct
from fxarray.transforms.trace_cache import Trace
from fxarray.tree.difference import explain_difference


def _structs(types: Any, structure: Structure) -> Any:
    return structure.unflatten(
        [ShapeDtypeStruct(type.shape, type.dtype, weak_type=type.weak) for type in types]
    )


@dataclass(frozen=True)
class Traced:
    """A function traced for arguments of certain types."""

    _trace: Trace
    _arguments: Structure
    _backend: str | None

    @property
    def program(self) -> Program:
        """The Program, with the arrays that the function closed over as constants."""
        program, captured = self._trace.program, self._trace.captured
        count = len(captured)
        constants = tuple(zip(program.inputs[:count], captured, strict=True))
        return program.replace(inputs=program.inputs[count:], constants=constants)

    jaxpr = program

    @property
    def out_info(self) -> Any:
        """The tree of the results' shapes and dtypes."""
        return _structs(self._trace.program.output_types, self._trace.output)

    @property
    def in_tree(self) -> Any:
        return self._arguments.treedef

    @property
    def out_tree(self) -> Any:
        return self._trace.output.treedef

    def lower(self) -> Lowered:
        """Run the passes that come before a backend's own."""
        return Lowered(self, simplify(self._trace.program))


@dataclass(frozen=True)
class Lowered:
    """A traced function after the passes that are common to all backends."""

    _traced: Traced
    _program: Program

    @property
    def out_info(self) -> Any:
        return self._traced.out_info

    @property
    def in_tree(self) -> Any:
        return self._traced.in_tree

    @property
    def out_tree(self) -> Any:
        return self._traced.out_tree

    def as_text(self, stage: str | None = None) -> str:
        """The code at a stage: "program", "simplified" (default), or one of the backend's.

        Raises:
          ArgumentError: if there is no such stage.
        """
        if stage is None or stage == "simplified":
            return str(self._program)
        if stage in ("program", "traced"):
            return str(self._traced.program)
        return self.compile().as_text(stage)

    def compile(self) -> Compiled:
        """Compile; the result takes arguments of exactly the types that were traced."""
        trace = self._traced._trace
        executable = compile_program(trace.program, CompileOptions(), self._traced._backend)
        return Compiled(self._traced, executable)

    def cost_analysis(self) -> Mapping[str, float]:
        return self.compile().cost_analysis()


@dataclass(frozen=True)
class Compiled:
    """A compiled function for arguments of exactly these types."""

    _traced: Traced
    _executable: Executable

    @property
    def in_tree(self) -> Any:
        return self._traced.in_tree

    @property
    def out_tree(self) -> Any:
        return self._traced.out_tree

    @property
    def out_info(self) -> Any:
        return self._traced.out_info

    @property
    def stages(self) -> tuple[str, ...]:
        return self._executable.stages

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call it.

        Raises:
          ArgumentError: if structure or types differ from what was compiled.
        """
        traced = self._traced
        trace = traced._trace
        flat = flatten_arguments(args, kwargs)
        if flat.structure.treedef != traced._arguments.treedef:
            raise ArgumentError(
                f"{trace.name} was compiled for other arguments: "
                f"{explain_difference(traced._arguments.treedef, flat.structure.treedef)}"
            )
        expected = [v.type for v in trace.program.inputs[len(trace.captured) :]]
        executable = self._executable
        if not all(wanted.is_static for wanted in expected):
            sizes = solve(
                [wanted.shape for wanted in expected],
                [array.type.shape for array in flat.arrays],
                [f"argument {name} of {trace.name}" for name in trace.names],
            )
            expected = [fixed_type(wanted, sizes) for wanted in expected]
            executable = executable.at_sizes(sizes)
        for name, array, wanted in zip(trace.names, flat.arrays, expected, strict=True):
            if not array.type.same_array(wanted):
                raise ArgumentError(
                    f"{trace.name} was compiled for argument {name} of type {wanted}, got "
                    f"{array.type}"
                )
        return trace.output.unflatten(executable([*trace.captured, *flat.arrays]))

    def as_text(self, stage: str | None = None) -> str:
        """The code at a stage of the backend (default: its last)."""
        return self._executable.as_text(stage or self._executable.stages[-1])

    def cost_analysis(self) -> Mapping[str, float]:
        """Estimates of work: operations, bytes."""
        return self._executable.cost_analysis()

    def memory_analysis(self) -> Mapping[str, int]:
        """Bytes of arguments, results and temporaries."""
        return self._executable.memory_analysis()
