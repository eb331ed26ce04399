"""What an index means: a `Plan`, made from the index and the type of what is indexed.

The rules are NumPy's. Slices and integers that are known cut a box out of the array. Integer arrays
(and, among them, all integers) are broadcast against each other, and pick an element of the box's
other dimensions for each of their own: these dimensions, the *group*, come first in the result, or
where the arrays stood if they stood side by side. A bool array stands for the integer arrays that
`nonzero` would give.

An index is *known* if it is no `fxarray` array: an int, a slice, a NumPy array, a list. Known
indices must be in bounds; others are moved or dropped as `mode` says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fxarray.core import dims, dtypes
from fxarray.core.array import Array
from fxarray.core.errors import (
    ArgumentError,
    ConcretizationError,
    IndexingError,
    OutOfBoundsError,
)
from fxarray.core.hooks import operators
from fxarray.core.types import ArrayType, Shape, Size
from fxarray.numpy.index_items import as_items, expand_ellipsis, is_mask, mask_positions
from fxarray.numpy.promotion import common_shape
from fxarray.numpy.taking import count_from_end, size_like
from fxarray.primitives import elementwise as e
from fxarray.primitives.convert import convert

NEW, GROUP = -1, -2  # in `Plan.layout`


@dataclass(frozen=True, slots=True)
class Plan:
    """The meaning of an index.

    Args:
      shape: the shape of what is indexed.
      starts, limits, strides: the box, as for `lax.slice`; whole where an array indexes.
      reverse: dimensions that are reversed afterwards.
      dropped: dimensions that a known integer indexes; they have size 1 in the box.
      advanced: dimensions that an array indexes, with the array (0-dimensional for an integer that
        is not known).
      group_shape: the shape of these arrays broadcast together.
      layout: for each dimension of the result the dimension of the array, or NEW, or GROUP for all
        dimensions of the group.
    """

    shape: Shape
    starts: tuple[Size, ...]
    limits: tuple[Size, ...]
    strides: tuple[int, ...]
    reverse: tuple[int, ...]
    dropped: tuple[int, ...]
    advanced: tuple[tuple[int, Any], ...]
    group_shape: Shape
    layout: tuple[int, ...]

    @property
    def box_shape(self) -> Shape:
        """The shape of the box."""
        return tuple(
            [
                limit - start if stride == 1 else (limit - start + (stride - 1)) // stride
                for start, limit, stride in zip(self.starts, self.limits, self.strides, strict=True)
            ]
        )

    @property
    def result_shape(self) -> Shape:
        """The shape of the indexed array."""
        box = self.box_shape
        sizes: list[Size] = []
        for token in self.layout:
            if token == GROUP:
                sizes.extend(self.group_shape)
            else:
                sizes.append(1 if token == NEW else box[token])
        return tuple(sizes)


# --- slices ---------------------------------------------------------------------------------------


def _slice_bounds(item: slice, size: Size) -> tuple[Size, Size, int]:
    """Start, limit and step of a slice: of the elements in increasing order, if step is "
    "negative."""
    if item.start is None and item.stop is None and item.step is None:
        return 0, size, 1
    known = [_slice_part(part) for part in (item.start, item.stop, item.step)]
    if type(size) is not int or any(isinstance(part, dims.Dim) for part in known):
        return _symbolic_bounds(known[0], known[1], known[2], size)
    if known[2] == 0:
        raise ArgumentError("the step of a slice must not be 0")
    start, stop, step = slice(*known).indices(size)
    steps = len(range(start, stop, step))
    if steps == 0:
        return 0, 0, 1
    last = start + (steps - 1) * step
    if step < 0:
        return last, start + 1, step
    return start, last + 1 if step > 1 else stop, step


def _slice_part(part: Any) -> Any:
    if part is None or type(part) is int or isinstance(part, dims.Dim):
        return part
    try:
        return part.__index__()
    except ConcretizationError:
        raise IndexingError(
            "the bounds of a slice must be known while tracing, since they decide the size of the "
            f"result; got a traced value of type {part.type}. Use fxarray.lax.dynamic_slice_in_dim("
            "x, start, size) for a piece of known size."
        ) from None
    except (AttributeError, TypeError):
        raise IndexingError(f"the bounds of a slice must be integers, got {part!r}") from None


def _symbolic_bounds(start: Any, stop: Any, step: Any, size: Size) -> tuple[Size, Size, int]:
    step = 1 if step is None else step
    if step == -1 and start is None and stop is None:
        return 0, size, -1
    if isinstance(step, dims.Dim) or step < 1:
        raise IndexingError(
            f"a dimension of symbolic size {size} can be sliced with a positive step, or be "
            f"reversed whole by x[::-1], but not with bounds {start}, {stop} and step {step}"
        )

    def clipped(bound: Any, default: Size) -> Size:
        if bound is None:
            return default
        if bound < 0:
            return dims.dim_max(size + bound, 0)
        return dims.dim_min(bound, size)

    first = clipped(start, 0)
    return first, dims.dim_max(clipped(stop, size), first), step


# --- integers and integer arrays ------------------------------------------------------------------


def _known_integer(position: Any, size: Size, mode: str | None, wrap: bool) -> Any:
    """A known integer as a non-negative position, or an array if it stays out of bounds."""
    if mode == "wrap":
        return position % size
    inside = (-size if wrap else 0) <= position and position < size
    if inside:
        return position + size if position < 0 else position
    if mode is None:
        raise OutOfBoundsError(
            f"index {position} is out of bounds for a dimension of size {size}. Known indices must "
            f"be in bounds; x.at[index].get(mode='fill') and .set(value, mode='drop') say "
            "otherwise."
        )
    if mode in ("fill", "drop"):
        return operators.asarray(position) if isinstance(position, dims.Dim) else np.array(position)
    return 0 if position < 0 and not (wrap and position + size >= 0) else size - 1


def _known_array(array: Any, size: Size, mode: str | None, wrap: bool) -> Any:
    if array.size == 0:
        return array.astype(np.int32)
    if type(size) is not int:
        low, high = int(array.min()), int(array.max())
        if low < 0 or mode is not None:
            return _unknown_array(operators.asarray(array), size, mode, wrap)
        _known_integer(high, size, mode, wrap)
        return array
    if array.dtype == np.uint64:
        array = np.minimum(array, np.uint64(np.iinfo(np.int64).max))
    array = array.astype(np.int64)
    if mode == "wrap":
        array = array % size
    elif wrap:
        array = np.where(array < 0, array + size, array)
    if mode is None:
        outside = (array < 0) | (array >= size)
        if outside.any():
            first = int(array[outside][0])
            _known_integer(first - size if wrap and first < 0 else first, size, None, wrap)
    small = array.min() >= -(2**31) and array.max() < 2**31
    return array.astype(np.int32) if small else array


def _unknown_array(array: Array, size: Size, mode: str | None, wrap: bool) -> Array:
    if dtypes.bit_width(array.type.dtype) < 32:
        array = convert(array, dtypes.int32)
    elif array.type.weak:
        array = convert(array, array.type.dtype)
    if mode == "wrap":
        return count_from_end(e.rem(array, size_like(array, size)), size)
    return count_from_end(array, size) if wrap else array


# --- the plan -------------------------------------------------------------------------------------


def make_plan(
    type: ArrayType, items: Sequence[Any], mode: str | None = None, wrap: bool = True
) -> Plan:
    """The meaning of `items` (from `as_items`) as an index of an array.

    Args:
      type: the array's type.
      items: the index.
      mode: what happens to positions out of bounds: None (known ones raise), "clip", "fill",
        "drop", "wrap" or "promise_in_bounds".
      wrap: whether negative positions count from the end.

    Raises:
      IndexingError: the index does not fit the array.
      OutOfBoundsError: a known index is out of bounds, and mode is None.
      NonConcreteBooleanIndexError: a bool array is traced.
    """
    shape = type.shape
    items = expand_ellipsis(items, shape)
    starts: list[Size] = [0] * len(shape)
    limits: list[Size] = list(shape)
    strides = [1] * len(shape)
    reverse: list[int] = []
    dropped: list[int] = []
    advanced: list[tuple[int, Any]] = []
    group_shapes: list[Shape] = []
    layout: list[int] = []
    group_at: int | None = None
    closed = separated = False
    dimension = 0
    for item in items:
        if item is None or item is Ellipsis:
            if item is None:
                layout.append(NEW)
            closed = group_at is not None
            continue
        if isinstance(item, slice):
            start, limit, step = _slice_bounds(item, shape[dimension])
            starts[dimension], limits[dimension] = start, limit
            strides[dimension] = abs(step)
            if step < 0:
                reverse.append(dimension)
            layout.append(dimension)
            dimension += 1
            closed = group_at is not None
            continue
        separated = separated or closed
        group_at = len(layout) if group_at is None else group_at
        if isinstance(item, bool):
            group_shapes.append((int(item),))
        elif is_mask(item):
            for column in mask_positions(item, shape[dimension : dimension + item.ndim]):
                advanced.append((dimension, column))
                group_shapes.append(column.shape)
                dimension += 1
        else:
            size = shape[dimension]
            if isinstance(item, int | dims.Dim):
                item = _known_integer(item, size, mode, wrap)
            elif isinstance(item, Array):
                item = _unknown_array(item, size, mode, wrap)
            else:
                item = _known_array(item, size, mode, wrap)
            if isinstance(item, int | dims.Dim):
                starts[dimension], limits[dimension] = item, item + 1
                dropped.append(dimension)
            else:
                advanced.append((dimension, item))
                group_shapes.append(item.shape)
            dimension += 1
    group_shape = common_shape("index arrays", group_shapes) if group_shapes else ()
    if group_shape:
        assert group_at is not None
        layout.insert(0 if separated else group_at, GROUP)
    return Plan(
        shape,
        tuple(starts),
        tuple(limits),
        tuple(strides),
        tuple(reverse),
        tuple(dropped),
        tuple(advanced),
        group_shape,
        tuple(layout),
    )


# --- plans of known indices are remembered --------------------------------------------------------

_PLANS: dict[Any, Plan] = {}
_PLANS_LIMIT = 10_000


def remembered_plan(type: ArrayType, index: Any) -> Plan:
    """`make_plan` for mode None, remembered for indices of ints, slices with ints, None and "
    "`...`."""
    given: tuple[Any, ...] = index if isinstance(index, tuple) else (index,)
    parts: list[Any] = []
    for item in given:
        kind = item.__class__
        if kind is int:
            parts.append(item)
        elif kind is slice:
            parts.append((item.start, item.stop, item.step))
            if not all(part is None or part.__class__ is int for part in parts[-1]):
                return make_plan(type, as_items(index))
        elif item is None or item is Ellipsis:
            parts.append(str(item))
        else:
            return make_plan(type, as_items(index))
    key = (type, tuple(parts))
    plan = _PLANS.get(key)
    if plan is None:
        plan = make_plan(type, as_items(index))
        if len(_PLANS) >= _PLANS_LIMIT:
            _PLANS.clear()
        _PLANS[key] = plan
    return plan
