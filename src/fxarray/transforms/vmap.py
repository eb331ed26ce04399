"""vmap: map a function over an axis of its arguments, without a loop."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import wraps
from operator import index
from typing import Any, cast

from fxarray.core import dims
from fxarray.core.array import Array
from fxarray.core.errors import ArgumentError, AxisError, ShapeError, TreeStructureError
from fxarray.core.tracebacks import boundary
from fxarray.interpreters.batch import batch_flat, to_axis
from fxarray.transforms.arguments import (
    FlatArguments,
    FlatFunction,
    Structure,
    flatten_arguments,
    function_name,
)
from fxarray.tree.operations import leaves as leaves_of
from fxarray.tree.prefix import broadcast_prefix
from fxarray.tree.structure import StructureMismatch

SHOWN = 20
"""How many arguments the message about unequal sizes lists."""


def _is_none(leaf: Any) -> bool:
    return leaf is None


def _check_axes(axes: Any, name: str) -> None:
    for leaf in leaves_of(axes, is_leaf=_is_none):
        if leaf is None:
            continue
        try:
            index(leaf)
        except TypeError:
            raise ArgumentError(
                f"vmap: {name} must be an int, None, or a tree of these that is a prefix of "
                f"{'the tuple of arguments' if name == 'in_axes' else 'the result'}, but it holds "
                f"{leaf!r}."
            ) from None


def vmap(
    fun: Callable[..., Any],
    in_axes: Any = 0,
    out_axes: Any = 0,
    axis_name: Hashable = None,
    axis_size: Any = None,
    spmd_axis_name: Any = None,
) -> Callable[..., Any]:
    """Map a function over an axis of its arguments: write it for one example, call it with many.

    Every operation is applied to all examples at once. Values that do not depend on mapped
    arguments stay concrete, so Python control flow on them works.

    Args:
      fun: the function to map.
      in_axes: the axis along which each argument is mapped: an int for all, or a tuple with, for
        each argument, an int, None (the same for all examples) or a tree of these. Keyword
        arguments are mapped along axis 0.
      out_axes: where the mapped axis goes in each result: an int, or a tree of ints. None for
        results that do not depend on mapped arguments.
      axis_name: a name by which collectives such as `lax.psum` refer to the axis.
      axis_size: the size of the axis; only needed where no argument is mapped.
      spmd_axis_name: the mesh axis or axes over which the mapped axis is split.

    Raises:
      ShapeError: if mapped axes differ in size; the message lists every argument's.
      ArgumentError: if `in_axes` or `out_axes` do not fit.

    >>> import fxarray, fxarray.numpy as fnp
    >>> fxarray.vmap(lambda x, y: x * y, in_axes=(0, None))(fnp.arange(3), 2)
    Array([0, 2, 4], dtype=int32)
    """
    del spmd_axis_name  # which mesh axes split the mapped one is said by its operands' types
    if not callable(fun):
        raise ArgumentError(f"vmap takes a function, not {fun!r}")
    if isinstance(in_axes, list):
        in_axes = tuple(cast("list[Any]", in_axes))
    if in_axes is not None and type(in_axes) not in {int, tuple}:
        try:
            in_axes = index(in_axes)
        except TypeError:
            raise ArgumentError(
                f"vmap: in_axes must be an int, None, or a tuple with one entry per positional "
                f"argument, not {in_axes!r}."
            ) from None
    _check_axes(in_axes, "in_axes")
    _check_axes(out_axes, "out_axes")

    @boundary
    @wraps(fun)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        flat = flatten_arguments(args, kwargs, fun)
        axes = _argument_axes(flat, args, kwargs, in_axes)
        size = _mapped_size(flat, axes, axis_size)
        function = FlatFunction(fun, flat.structure)
        outputs, source_axes = batch_flat(function, size, axis_name, flat.arrays, axes)
        wanted = _result_axes(function, fun, out_axes)
        results: list[Any] = []
        for place, (output, source, destination) in enumerate(
            zip(outputs, source_axes, wanted, strict=True)
        ):
            if destination is None:
                if source is not None:
                    raise ArgumentError(
                        f"vmap of {function_name(fun)}: the result{function.output.paths()[place]} "
                        f"has out_axes=None, but depends on mapped arguments (it is mapped along "
                        f"axis {source}). Give an int in out_axes, or reduce over the axis."
                    )
                results.append(output)
                continue
            rank = output.type.ndim + (source is None)
            if not -rank <= destination < rank:
                raise AxisError(
                    f"vmap of {function_name(fun)}: out_axes={destination} is out of range for the "
                    f"result{function.output.paths()[place]}, which has {rank} dimensions with the "
                    f"mapped one."
                )
            results.append(to_axis(output, size, source, destination % rank))
        return function.output.unflatten(results)

    return mapped


def _argument_axes(
    flat: FlatArguments, args: tuple[Any, ...], kwargs: dict[str, Any], in_axes: Any
) -> list[int | None]:
    """For each array, the non-negative axis along which it is mapped, or None."""
    called = function_name(flat.function)
    if type(in_axes) is int and (in_axes == 0 or not kwargs):
        axes: list[int | None] = [in_axes] * len(flat.arrays)
    else:
        if type(in_axes) is tuple and len(in_axes) != len(args):
            raise ArgumentError(
                f"vmap of {called}: in_axes={in_axes} has {len(in_axes)} entries, but the function "
                f"was called with {len(args)} positional arguments (keyword arguments are mapped "
                f"along axis 0, and have no entry)."
            )
        try:
            per_leaf = broadcast_prefix(in_axes, args, is_leaf=_is_none)
        except StructureMismatch as error:
            raise TreeStructureError(
                f"vmap of {called}: in_axes={in_axes} is no prefix of the arguments: {error}"
            ) from None
        per_leaf += [0] * len(leaves_of(kwargs))
        axes = flat.structure.select(per_leaf)
    result: list[int | None] = []
    for place, (array, axis) in enumerate(zip(flat.arrays, axes, strict=True)):
        rank = array.type.ndim
        if axis is not None:
            axis = index(axis)
            if not -rank <= axis < rank:
                raise AxisError(
                    f"vmap of {called}: argument {flat.names()[place]} is to be mapped along axis "
                    f"{axis}, but has type {array.type}, with {rank} dimensions. Use in_axes=None "
                    f"for arguments that are the same for all examples."
                )
            axis %= rank
        result.append(axis)
    return result


def _mapped_size(flat: FlatArguments, axes: Sequence[int | None], axis_size: Any) -> Any:
    """The one size of all mapped axes."""
    size, equal = axis_size, True
    for array, axis in zip(cast("list[Array]", flat.arrays), axes, strict=True):
        if axis is None:
            continue
        if size is None:
            size = array.type.shape[axis]
        elif not dims.same(size, array.type.shape[axis]):
            equal = False
    if size is None:
        raise ArgumentError(
            f"vmap of {function_name(flat.function)}: no argument is mapped, so the size of the "
            f"axis is unknown. Map at least one argument that is an array, or give axis_size."
        )
    if not equal:
        lines = [
            f"  {name} has type {array.type}: size {array.type.shape[axis]} along axis {axis}"
            for name, array, axis in zip(flat.names(), flat.arrays, axes, strict=True)
            if axis is not None
        ]
        rest = f"\n  and {len(lines) - SHOWN} more" if len(lines) > SHOWN else ""
        given = "" if axis_size is None else f", and equal to axis_size={axis_size}"
        raise ShapeError(
            f"vmap of {function_name(flat.function)}: mapped axes must be of one size{given}:\n"
            + "\n".join(lines[:SHOWN])
            + rest
        )
    return size


def _result_axes(
    function: FlatFunction, fun: Callable[..., Any], out_axes: Any
) -> list[int | None]:
    """For each array of the result, where the mapped axis goes."""
    output: Structure = function.output
    if out_axes is None or type(out_axes) is int:
        return [out_axes] * output.array_count
    placeholders = output.treedef.unflatten([0] * output.treedef.num_leaves)
    try:
        per_leaf = broadcast_prefix(out_axes, placeholders, is_leaf=_is_none)
    except StructureMismatch as error:
        raise TreeStructureError(
            f"vmap of {function_name(fun)}: out_axes={out_axes} is no prefix of the result: {error}"
        ) from None
    return output.select(per_leaf)
