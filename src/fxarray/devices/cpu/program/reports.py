"""What users see of a compiled Program: its code at each stage, its cost, its memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from fxarray.compile.graph import (
    CallStep,
    KernelStep,
    Slot,
    reads,
    writes,
)
from fxarray.compile.graph_text import graph_text
from fxarray.core import dtypes
from fxarray.core.types import ArrayType
from fxarray.devices.cpu.native.compiler import compile_assembly
from fxarray.devices.cpu.native.routine import FunctionPointer
from fxarray.devices.cpu.program.compiled import Compiled, steps_of
from fxarray.interpreters.fixed_sizes import fixed_type
from fxarray.kernel import sizes
from fxarray.kernel.ir import Kernel
from fxarray.kernel.sizes import Size

STAGES = ("simplified", "graph", "kernels", "llvm", "assembly")


def as_text(compiled: Compiled, stage: str) -> str:
    """The code at a stage of `STAGES`."""
    match stage:
        case "simplified":
            return str(compiled.program)
        case "graph":
            return graph_text(compiled.graph)
        case "kernels":
            kernels: dict[Kernel, None] = {}
            for step, _ in steps_of(compiled.graph):
                if isinstance(step, KernelStep):
                    kernels.setdefault(step.kernel)
            return "\n\n".join(map(str, kernels))
        case "llvm":
            return "\n".join(_modules(compiled))
        case _:
            return "\n".join(map(compile_assembly, _modules(compiled)))


def _modules(compiled: Compiled) -> Sequence[str]:
    """The text of all modules that the Program is made of."""
    found: dict[str, None] = {}
    for routine in compiled.routines.values():
        if routine is not None:
            found.setdefault(routine.text)
            for word in routine.words:
                if isinstance(word, FunctionPointer):
                    found.setdefault(word.text)
    return list(found)


def cost(compiled: Compiled, values: Mapping[str, int]) -> Mapping[str, float]:
    """Floating-point operations, bytes read and written, and the number of kernels and calls."""
    flops = moved = 0
    counts: Counter[str] = Counter()
    for step, times in steps_of(compiled.graph, compiled.is_whole):
        if not isinstance(step, KernelStep | CallStep) and not compiled.is_whole(step):
            continue
        counts["calls" if isinstance(step, CallStep) else "kernels"] += 1
        routine = compiled.routines[step]
        often = _number(times, values)
        if routine is None:
            counts["host calls"] += 1
            moved += often * sum(_bytes(s, values) for s in (*reads(step), *writes(step)))
        else:
            flops += often * _number(routine.flops, values)
            moved += often * _number(routine.bytes_moved, values)
    return {
        "flops": float(flops),
        "bytes accessed": float(moved),
        "kernels": float(counts["kernels"]),
        "calls": float(counts["calls"]),
        "host calls": float(counts["host calls"]),
    }


def memory(compiled: Compiled, values: Mapping[str, int]) -> Mapping[str, int]:
    """Bytes of arguments, results and temporaries; results in donated memory are aliases."""
    program, plan = compiled.program, compiled.plan
    known = {**_typical(compiled, values), **values}
    outputs = [fixed_type(t, known) for t in program.output_types]
    return {
        "argument_size_in_bytes": _type_bytes([fixed_type(t, known) for t in program.input_types]),
        "output_size_in_bytes": _type_bytes(outputs),
        "alias_size_in_bytes": _type_bytes([outputs[position] for position in plan.reuse]),
        "temp_size_in_bytes": plan.layout(known).arena,
    }


def _typical(compiled: Compiled, values: Mapping[str, int]) -> dict[str, int]:
    """A number for each size variable that has none."""
    found: dict[str, int] = {}
    for type_ in compiled.program.input_types:
        for size in sizes.kernel_shape(type_.shape):
            if not isinstance(size, int):
                for variable in size.variables:
                    if variable.name not in values:
                        alone = sizes.Polynomial.of(variable)
                        found[variable.name] = sizes.typical(alone)
    return found


def _number(size: Size, values: Mapping[str, int]) -> int:
    if isinstance(size, int):
        return size
    if sizes.variables(size) <= values.keys():
        return sizes.evaluate(size, values)
    return sizes.typical(size)


def _bytes(slot: Slot, values: Mapping[str, int]) -> int:
    return _number(slot.size, values) * dtypes.physical(slot.type.dtype).itemsize


def _type_bytes(types: Sequence[ArrayType]) -> int:
    return sum(int(type_.size) * dtypes.physical(type_.dtype).itemsize for type_ in types)
