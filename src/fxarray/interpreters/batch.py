"""Vectorization: values with one axis more, pushed through each operation's batch rule."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Sequence
from typing import Any

from fxarray.core.context import named_axis, open_trace
from fxarray.core.hooks import operators
from fxarray.core.ir import Program
from fxarray.core.primitive import Primitive
from fxarray.core.tracer import Trace, Tracer
from fxarray.core.types import ArrayType
from fxarray.interpreters.evaluate import evaluate
from fxarray.interpreters.memo import memoised
from fxarray.interpreters.staging import stage_closed


class BatchTracer(Tracer):
    """A value with a mapped axis."""

    __slots__ = ("axis", "type", "value")

    def __init__(self, trace: BatchTrace, value: Any, axis: int) -> None:
        self._trace = trace
        self.value = value
        self.axis = axis
        type = value.type
        shape = type.shape
        self.type = type.replace(shape=shape[:axis] + shape[axis + 1 :])

    @property
    def origin(self) -> str:
        trace = self._trace
        assert isinstance(trace, BatchTrace)
        # A flat function has the user's own as its `function`.
        own: Any = getattr(trace.function, "function", None)
        function: Any = inspect.unwrap(own)
        code = getattr(function, "__code__", None)
        if code is None:
            return ""
        place = f"{code.co_filename}:{code.co_firstlineno}"
        return f"it is a value of the mapped function {function.__name__} ({place})"


class BatchTrace(Trace):
    """Applies each operation's batch rule.

    Args:
      size: of the mapped axis.
      axis_name: its name, or None.
      outer: the trace that this one continues, in which a function with a rule of its own was
        called: tracers of that one, over which the function closes, are mapped along the same axis.
    """

    __slots__ = ("axis_name", "continued", "function", "size")
    kind = "vmap"
    function: Any

    def __init__(
        self, size: Any, axis_name: Hashable = None, outer: BatchTrace | None = None
    ) -> None:
        super().__init__()
        self.size = size
        self.axis_name = axis_name
        self.function = None
        self.continued: tuple[BatchTrace, ...] = () if outer is None else (outer, *outer.continued)

    def owns(self, value: Any) -> bool:
        """Whether a value is mapped along this trace's axis."""
        if type(value) is not BatchTracer:
            return False
        trace = value._trace
        return trace is self or trace in self.continued

    def process(self, op: Primitive, operands: Sequence[Any]) -> tuple[Any, ...]:
        values: list[Any] = []
        axes: list[int | None] = []
        for operand in operands:
            if type(operand) is BatchTracer and (
                operand._trace is self or operand._trace in self.continued
            ):
                if not operand._trace.alive:
                    operand.check_alive()
                values.append(operand.value)
                axes.append(operand.axis)
            else:
                values.append(operand)
                axes.append(None)
        if op.runs_function:
            outputs, out_axes = op.batch_function(self, self.size, self.axis_name, values, axes)
        else:
            outputs, out_axes = op.batch(self.size, self.axis_name, values, axes)
        return tuple(
            [
                output if axis is None else BatchTracer(self, output, axis)
                for output, axis in zip(outputs, out_axes, strict=True)
            ]
        )


def batch_flat(
    function: Callable[..., Sequence[Any]],
    size: Any,
    axis_name: Hashable,
    operands: Sequence[Any],
    axes: Sequence[int | None],
    outer: BatchTrace | None = None,
) -> tuple[list[Any], list[int | None]]:
    """Run a flat function on operands mapped along `axes` (None: not mapped).

    Args:
      function: takes and returns arrays.
      size: of the mapped axis.
      axis_name: its name, or None.
      operands: the function's arguments.
      axes: for each, the axis along which it is mapped.
      outer: a trace of the same axis, over whose values the function may close.

    Returns:
      Its results, and the axis along which each is mapped (None: the same for all).
    """
    trace = BatchTrace(size, axis_name, outer)
    trace.function = function
    with (
        open_trace(trace),
        named_axis(axis_name, size, trace) if axis_name is not None else _NOTHING,
    ):
        arguments = [
            operand if axis is None else BatchTracer(trace, operand, axis)
            for operand, axis in zip(operands, axes, strict=True)
        ]
        outputs: list[Any] = []
        out_axes: list[int | None] = []
        for result in function(*arguments):
            if trace.owns(result):
                outputs.append(result.value)
                out_axes.append(result.axis)
            else:
                outputs.append(result if hasattr(result, "type") else operators.asarray(result))
                out_axes.append(None)
    return outputs, out_axes


class _Nothing:
    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...


_NOTHING = _Nothing()


def to_axis(value: Any, size: Any, source: int | None, destination: int) -> Any:
    """`value` with its mapped axis at `destination`, made by broadcasting if it is not mapped."""
    if source is None:
        return operators.broadcast_axis(value, size, destination)
    if destination < 0:
        destination += value.ndim
    return value if source == destination else operators.move_axis(value, source, destination)


@memoised
def batch_program(
    program: Program,
    size: Any,
    axis_name: Hashable,
    axes: tuple[int | None, ...],
    batched_outputs: tuple[bool, ...] = (),
) -> tuple[Program, tuple[bool, ...]]:
    """The Program that applies a Program along a mapped axis.

    Args:
      program: what to map.
      size: the axis's size.
      axis_name: its name, or None.
      axes: for each input, the axis along which it is mapped, or None.
      batched_outputs: outputs that must be mapped even if they are the same for all (default:
        none).

    Returns:
      A Program whose mapped outputs have the axis first, and which outputs are mapped.
    """
    found: list[bool] = []
    wanted = batched_outputs or (False,) * len(program.outputs)

    def batched(*arguments: Any) -> list[Any]:
        outputs, out_axes = batch_flat(
            lambda *values: evaluate(program, values), size, axis_name, arguments, axes
        )
        results: list[Any] = []
        for output, axis, want in zip(outputs, out_axes, wanted, strict=True):
            mapped = want or axis is not None
            found.append(mapped)
            results.append(to_axis(output, size, axis, 0) if mapped else output)
        return results

    types = [
        var.type if axis is None else _with_axis(var.type, size, axis)
        for var, axis in zip(program.inputs, axes, strict=True)
    ]
    return stage_closed(batched, types, f"vmap_of_{program.name}"), tuple(found)


def _with_axis(type: ArrayType, size: Any, axis: int) -> ArrayType:
    if axis < 0:
        axis += type.ndim + 1
    return type.replace(shape=(*type.shape[:axis], size, *type.shape[axis:]))
