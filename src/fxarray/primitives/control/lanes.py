"""Branches and loops that vmap runs for many lanes, each with a predicate of its own.

Such an operation keeps its Programs as they are, each run for one lane. `lanes` are the sizes that
were mapped: the predicate has that shape, and so do the leading dimensions of results and of mapped
operands.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fxarray.core import dims
from fxarray.core.errors import ProgramError
from fxarray.core.hooks import operators
from fxarray.core.ir import Program
from fxarray.core.primitive import Primitive
from fxarray.core.types import ArrayType, Shape
from fxarray.interpreters.batch import batch_flat, batch_program, to_axis
from fxarray.interpreters.memo import memoised


def lane_type(type: ArrayType, lanes: Shape, mapped: bool) -> ArrayType:
    """The type of an operand whose lanes have `type`."""
    return type.replace(shape=(*lanes, *type.shape)) if mapped and lanes else type


def type_in_lane(type: ArrayType, lanes: Shape, mapped: bool, name: str) -> ArrayType:
    """The inverse of `lane_type`."""
    if not mapped or not lanes:
        return type
    count = len(lanes)
    if len(type.shape) < count or not all(map(dims.same, type.shape, lanes)):
        raise ProgramError(f"{name}: {type} does not start with the mapped sizes {lanes}")
    return type.replace(shape=type.shape[count:])


@memoised
def over_lanes(program: Program, lanes: Shape, mapped: tuple[bool, ...]) -> Program:
    """The Program that applies `program` to all lanes at once; all results are mapped."""
    for size in reversed(lanes):
        axes = tuple([0 if flag else None for flag in mapped])
        program, _ = batch_program(program, size, None, axes, (True,) * len(program.outputs))
    return program


def bind_over_lanes(
    op: Primitive, lanes: Shape, operands: Sequence[Any], mapped: Sequence[bool]
) -> list[Any]:
    """Apply an operation to each lane, by vmap; all results are mapped."""

    def bind(*values: Any) -> Sequence[Any]:
        return op.bind(*values)

    def nest(function: Callable[..., Sequence[Any]], size: Any) -> Callable[..., Sequence[Any]]:
        def mapped_function(*values: Any) -> Sequence[Any]:
            axes = [0 if flag else None for flag in mapped]
            results, out_axes = batch_flat(function, size, None, values, axes)
            return [to_axis(r, size, axis, 0) for r, axis in zip(results, out_axes, strict=True)]

        return mapped_function

    function: Callable[..., Sequence[Any]] = bind
    for size in reversed(lanes):
        function = nest(function, size)
    return list(function(*operands))


def add_lane_axis(
    operand: Any, axis: int | None, size: Any, lanes: Shape, mapped: bool, required: bool = False
) -> tuple[Any, bool]:
    """An operand of an operation over `lanes`, for the same operation over `(size, *lanes)`.

    Args:
      operand: the operand, mapped over `lanes` if `mapped`.
      axis: its new mapped axis, or None.
      size: the size of the new axis.
      lanes: the sizes mapped so far.
      mapped: whether the operand has them.
      required: whether it must be mapped.

    Returns:
      The operand, mapped over all lanes or over none, and whether it is.
    """
    if axis is None and not mapped and not required:
        return operand, False
    result = to_axis(operand, size, axis, 0)
    if not mapped:
        for position, lane_size in enumerate(lanes, start=1):
            result = operators.broadcast_axis(result, lane_size, position)
    return result, True


def take_lanes(
    operands: Sequence[np.ndarray], mapped: Sequence[bool], source: np.ndarray
) -> list[np.ndarray]:
    """Operands in which lane i holds what lane `source[i]` (a flat number) held."""
    count = source.ndim
    return [
        x.reshape((source.size, *x.shape[count:]))[source] if flag else x
        for x, flag in zip(operands, mapped, strict=True)
    ]


def merge_lanes(active: np.ndarray, new: np.ndarray, old: np.ndarray) -> np.ndarray:
    """The new value in active lanes, the old one in others."""
    return np.where(active.reshape(active.shape + (1,) * (new.ndim - active.ndim)), new, old)
