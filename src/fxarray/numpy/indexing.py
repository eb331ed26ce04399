"""What `x[index]` means; `index_plan` has the rules."""

from __future__ import annotations

from typing import Any

import numpy as np

from fxarray.core import dims, dtypes
from fxarray.core.array import Array, DeviceArray
from fxarray.core.context import context
from fxarray.core.errors import OutOfBoundsError
from fxarray.core.hooks import operators
from fxarray.core.types import ArrayType, Shape
from fxarray.numpy.eager_indexing import is_plain, read_box, read_positions, row_type
from fxarray.numpy.index_plan import GROUP, NEW, Plan, remembered_plan
from fxarray.numpy.promotion import broadcast_array
from fxarray.primitives.convert import convert
from fxarray.primitives.create import full, scalar, zeros
from fxarray.primitives.dynamic_slicing import DynamicSlice
from fxarray.primitives.gather import Gather, check_fill_value, default_fill
from fxarray.primitives.joining import concatenate
from fxarray.primitives.movement import reshape, rev
from fxarray.primitives.slicing import slice_box
from fxarray.primitives.windows import GatherDimensionNumbers, GatherScatterMode


def getitem(x: Array, index: Any) -> Array:
    """`x[index]`.

    Args:
      x: an array.
      index: an int, slice, None, `...`, an array or list of ints or bools, or a tuple of these.

    Raises:
      OutOfBoundsError: an index that is known (not an `fxarray` array) is out of bounds. Others
        are clamped.
      IndexingError: the index is of the wrong kind, or does not fit the array.
      NonConcreteBooleanIndexError: a bool array is traced.
    """
    if type(x) is DeviceArray and context.staging is None:
        try:
            buffer = x._np
        except AttributeError:
            buffer = x.numpy_view()  # says that the array has been deleted
        kind = type(index)
        if kind is int:
            shape = buffer.shape
            if shape and -shape[0] <= index < shape[0]:
                return DeviceArray(buffer[index, ...], row_type(x.type))
        elif kind is DeviceArray:
            found = read_positions(x, buffer, index)
            if found is not None:
                return found
        else:
            plain = index if kind is tuple else (index,)
            if is_plain(plain):
                found = read_box(x, buffer, plain)
                if found is not None:
                    return found
    return read(x, remembered_plan(x.type, index))


def read(
    x: Array,
    plan: Plan,
    mode: GatherScatterMode = GatherScatterMode.CLIP,
    fill_value: Any = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
) -> Array:
    """The elements of `x` that a plan names.

    Args:
      x: an array.
      plan: the meaning of an index of it.
      mode: what happens to positions that are not known and out of bounds.
      fill_value: what stands for those in mode FILL_OR_DROP; None: the dtype's default.
      indices_are_sorted: a promise.
      unique_indices: a promise.
    """
    result_shape = plan.result_shape
    box = slice_box(x, plan.starts, plan.limits, plan.strides)
    if plan.reverse:
        box = rev(box, plan.reverse)
    if not plan.advanced:
        if not plan.group_shape:
            return reshape(box, result_shape)
        # Bools without dimensions, as in x[True]: a new axis of size 1 or 0.
        kept = tuple([size for t, size in zip(plan.layout, result_shape, strict=True) if t >= 0])
        box = reshape(box, kept)
        return broadcast_array(_with_new_axes(box, plan), result_shape)
    box_shape = plan.box_shape
    remaining = [d for d in range(len(box_shape)) if d not in plan.dropped]
    box = reshape(box, tuple([box_shape[d] for d in remaining]))
    place = {d: position for position, d in enumerate(remaining)}
    advanced = [(place[d], array) for d, array in plan.advanced]
    if any(dims.same(box.type.shape[d], 0) for d, _ in advanced):
        return _read_nothing(box, result_shape, mode, fill_value)
    if not plan.group_shape and mode is not GatherScatterMode.FILL_OR_DROP:
        starts: list[Any] = [scalar(0, dtypes.int32)] * box.ndim
        sizes = list(box.type.shape)
        for d, position in advanced:
            starts[d], sizes[d] = operators.asarray(position), 1
        return reshape(DynamicSlice(tuple(sizes))(box, *starts), result_shape)
    indices = index_vectors([array for _, array in advanced], plan.group_shape)
    collapsed = tuple(sorted(d for d, _ in advanced))
    sizes = [1 if d in collapsed else size for d, size in enumerate(box.type.shape)]
    rank = box.ndim - len(collapsed) + len(plan.group_shape)
    first = _group_position(plan)
    group = range(first, first + len(plan.group_shape))
    gather = Gather(
        GatherDimensionNumbers(
            tuple([d for d in range(rank) if d not in group]),
            collapsed,
            tuple([d for d, _ in advanced]),
        ),
        tuple(sizes),
        indices_are_sorted,
        unique_indices,
        mode,
        check_fill_value(fill_value),
    )
    return reshape(gather(box, indices), result_shape)


def _group_position(plan: Plan) -> int:
    """How many dimensions of the array come before the group in the result."""
    if GROUP not in plan.layout:
        return 0
    before = plan.layout[: plan.layout.index(GROUP)]
    return sum(token != NEW for token in before)


def _with_new_axes(box: Array, plan: Plan) -> Array:
    sizes = iter(box.type.shape)
    return reshape(box, tuple([next(sizes) if token >= 0 else 1 for token in plan.layout]))


def _read_nothing(box: Array, shape: Shape, mode: GatherScatterMode, fill_value: Any) -> Array:
    """Elements of an array that has none."""
    type = ArrayType(shape, box.type.dtype, box.type.weak)
    if any(dims.same(size, 0) for size in shape):
        return zeros(type)
    if mode is not GatherScatterMode.FILL_OR_DROP:
        raise OutOfBoundsError(
            f"an array of type {box.type} has a dimension of size 0, in which there is nothing to "
            "index"
        )
    fill = default_fill(type.dtype) if fill_value is None else check_fill_value(fill_value)
    return full(type, fill)


def index_vectors(arrays: list[Any], shape: Shape) -> Array:
    """Index arrays broadcast to `shape` and stacked along a new last axis."""
    if all(isinstance(array, np.ndarray) for array in arrays):
        sizes: Any = shape
        known = [np.broadcast_to(array, sizes) for array in arrays]
        return operators.asarray(np.stack(known, axis=-1))
    given = [operators.asarray(array) for array in arrays]
    found = {array.type.dtype for array in given}
    if len(found) > 1:
        given = [convert(array, dtypes.int64) for array in given]
    columns = [broadcast_array(array, shape) for array in given]
    return concatenate([reshape(column, (*shape, 1)) for column in columns], len(shape))


operators.fill(getitem=getitem)
