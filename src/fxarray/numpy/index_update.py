"""Updates of parts of an array: what the methods of `x.at[index]` do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fxarray.core import dims, dtypes
from fxarray.core.array import Array, DeviceArray
from fxarray.core.errors import ArgumentError, DTypeError, NonConcreteBooleanIndexError
from fxarray.core.hooks import operators
from fxarray.core.types import ArrayType, Shape, shape_key
from fxarray.numpy.index_items import as_items, check_mask, concrete_mask, expand_ellipsis, is_mask
from fxarray.numpy.index_plan import GROUP, NEW, Plan, make_plan, remembered_plan
from fxarray.numpy.indexing import index_vectors, read
from fxarray.numpy.promotion import broadcast_array, common_shape
from fxarray.primitives import elementwise as e
from fxarray.primitives.convert import convert
from fxarray.primitives.create import scalar
from fxarray.primitives.dynamic_slicing import dynamic_update_slice
from fxarray.primitives.movement import broadcast_in_dim, reshape, rev, transpose
from fxarray.primitives.scatter import KINDS
from fxarray.primitives.slicing import slice_box
from fxarray.primitives.windows import GatherScatterMode, ScatterDimensionNumbers

# How an update combines with what was there.
_COMBINE: dict[str, Callable[[Any, Any], Any]] = {
    "set": lambda _old, new: new,
    "add": e.add,
    "multiply": e.mul,
    "min": e.min,
    "max": e.max,
}
_MODES = (None, "clip", "drop", "fill", "wrap", "promise_in_bounds")


def update(
    kind: str,
    x: Array,
    index: Any,
    values: Any,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: Any = None,
    out_sharding: Any = None,
    wrap_negative_indices: bool = True,
) -> Array:
    """`x` with `values` combined into the elements at `index`.

    Args:
      kind: "set", "add", "multiply", "min" or "max".
      x: an array.
      index: as for `getitem`.
      values: what broadcasts to the shape of `x[index]`.
      indices_are_sorted, unique_indices, mode, wrap_negative_indices: see `IndexedArray`.
      out_sharding: not supported yet.

    Raises:
      OutOfBoundsError: a known index is out of bounds, and no mode is given.
      DTypeError: values would lose their fraction or imaginary part in the dtype of `x`.
      ShapeError: values do not broadcast.
      NonConcreteBooleanIndexError: the index is a traced bool array, and there is a value per
        element.
    """
    reject_sharding(out_sharding)
    name = mode_name(mode)
    new = as_update(x, values)
    items = as_items(index)
    masked = _masked(kind, x, items, new)
    if masked is not None:
        return masked
    if name is None and wrap_negative_indices:
        plan = remembered_plan(x.type, index)
    else:
        plan = make_plan(x.type, items, name, wrap_negative_indices)
    shape = plan.result_shape
    common = common_shape(f"at[...].{kind}", [new.type.shape, shape])
    if shape_key(common) != shape_key(shape):
        raise ArgumentError(
            f"at[...].{kind}: values of type {new.type} do not broadcast to the shape of x[index], "
            f"which is {shape}"
        )
    empty = any(dims.same(x.type.shape[d], 0) for d, _ in plan.advanced)
    if empty or any(dims.same(size, 0) for size in shape):
        return x
    if not plan.advanced and all(stride == 1 for stride in plan.strides):
        return _update_box(kind, x, plan, new)
    scatter_mode = gather_mode(name, GatherScatterMode.FILL_OR_DROP)
    return _scatter(kind, x, plan, new, indices_are_sorted, unique_indices, scatter_mode)


def reject_sharding(out_sharding: Any) -> None:
    if out_sharding is not None:
        raise ArgumentError(f"out_sharding={out_sharding!r} is not supported by indexing yet")


def mode_name(mode: Any) -> str | None:
    name = mode.value if isinstance(mode, GatherScatterMode) else mode
    if name not in _MODES:
        raise ArgumentError(f"mode={mode!r} is none of {', '.join(map(repr, _MODES[1:]))}")
    return name


def gather_mode(name: str | None, default: GatherScatterMode) -> GatherScatterMode:
    if name is None:
        return default
    # "wrap" has brought all positions in bounds already.
    return GatherScatterMode.from_any("promise_in_bounds" if name == "wrap" else name)


def as_update(x: Array, values: Any) -> Array:
    """Values in the dtype of `x`."""
    own = x.type.dtype
    if not isinstance(values, Array):
        if isinstance(values, (int, float, complex, np.generic)):
            given, _ = dtypes.scalar_dtype(values)
            _check_loss(own, given, values)
            return DeviceArray(dtypes.scalar_array(values, own), ArrayType((), own, x.type.weak))
        values = operators.asarray(values)
    given = values.type.dtype
    if given != own:
        _check_loss(own, given, values.type)
        values = convert(values, own)
    return values


def _check_loss(own: Any, given: Any, values: Any) -> None:
    if dtypes.is_key(own) or dtypes.is_key(given):
        if own != given:
            raise DTypeError(f"an array of {own} cannot hold the update {values}")
        return
    loses_fraction = dtypes.is_inexact(given) and not dtypes.is_inexact(own)
    loses_imaginary = dtypes.is_complex(given) and not dtypes.is_complex(own)
    if loses_fraction or loses_imaginary:
        lost = "imaginary part" if loses_imaginary and not loses_fraction else "fraction"
        raise DTypeError(
            f"an update of dtype {dtypes.name(given)} ({values}) would lose its {lost} in an array "
            f"of dtype {dtypes.name(own)}; cast the update with .astype({dtypes.name(own)}), or "
            f"the array with .astype({dtypes.name(given)})"
        )


def _in_box(plan: Plan, new: Array) -> Array:
    """Values of the shape of the result, in the shape of the box."""
    if not new.ndim:
        return broadcast_array(new, plan.box_shape)
    new = broadcast_array(new, plan.result_shape)
    box = reshape(new, plan.box_shape)
    return rev(box, plan.reverse) if plan.reverse else box


def _update_box(kind: str, x: Array, plan: Plan, new: Array) -> Array:
    if kind == "set":
        box = _in_box(plan, new)
    else:
        old = slice_box(x, plan.starts, plan.limits)
        box = _COMBINE[kind](old, _in_box(plan, new) if new.ndim else new)
    if shape_key(plan.box_shape) == shape_key(x.type.shape):
        return convert(box, x.type.dtype, x.type.weak)
    starts = [
        scalar(start, dtypes.int32) if type(start) is int else operators.asarray(start)
        for start in plan.starts
    ]
    return dynamic_update_slice(x, box, starts)


def _scatter(
    kind: str,
    x: Array,
    plan: Plan,
    new: Array,
    indices_are_sorted: bool,
    unique_indices: bool,
    mode: GatherScatterMode,
) -> Array:
    """An update by index vectors: one for each element of the group and of slices with a step."""
    box_shape = plan.box_shape
    stepped = [d for d, stride in enumerate(plan.strides) if stride != 1]
    batch_shape = (*plan.group_shape, *[box_shape[d] for d in stepped])
    group_rank = len(plan.group_shape)
    columns: dict[int, Any] = {}
    for d, array in plan.advanced:
        lifted = broadcast_any(array, plan.group_shape)
        columns[d] = _reshape_any(lifted, (*plan.group_shape, *[1] * len(stepped)))
    for position, d in enumerate(stepped):
        sizes = [1] * len(batch_shape)
        count, start = box_shape[d], plan.starts[d]
        if type(count) is not int or type(start) is not int:
            raise ArgumentError(
                f"x.at[index] with a slice that has a step needs a dimension of known size, got "
                f"{x.type}"
            )
        sizes[group_rank + position] = count
        known = start + plan.strides[d] * np.arange(count, dtype=np.int32)
        known = known[::-1] if d in plan.reverse else known
        columns[d] = known.reshape(sizes)
    windows: list[int] = []
    for d in range(len(box_shape)):
        if d in columns:
            continue
        if d not in plan.dropped:
            windows.append(d)
        if not dims.same(plan.starts[d], 0) or d in plan.dropped:
            start = plan.starts[d]
            columns[d] = (
                np.array(start, np.int32) if type(start) is int else operators.asarray(start)
            )
    order = sorted(columns)
    indices = index_vectors([columns[d] for d in order], batch_shape)
    updates = _in_batch_order(plan, new, stepped, windows)
    backwards = [len(batch_shape) + windows.index(d) for d in plan.reverse if d in windows]
    if backwards:
        updates = rev(updates, backwards)
    rank = len(batch_shape) + len(windows)
    numbers = ScatterDimensionNumbers(
        tuple(range(len(batch_shape), rank)),
        tuple([d for d in range(len(box_shape)) if d not in windows]),
        tuple(order),
    )
    alone = all(dims.same(size, 1) for size in plan.group_shape)
    op: Any = KINDS[kind]
    return op(numbers, indices_are_sorted, unique_indices or alone, mode)(x, indices, updates)


def broadcast_any(array: Any, shape: Shape) -> Any:
    """An index array, known or not, broadcast to `shape`."""
    if isinstance(array, np.ndarray):
        sizes: Any = shape
        return np.broadcast_to(array, sizes)
    return broadcast_array(array, shape)


def _reshape_any(array: Any, shape: Shape) -> Any:
    return array.reshape(shape) if isinstance(array, np.ndarray) else reshape(array, shape)


def _in_batch_order(
    plan: Plan, new: Array, stepped: Sequence[int], windows: Sequence[int]
) -> Array:
    """Values of the shape of the result, in the order group, stepped dimensions, windows."""
    box_shape = plan.box_shape
    if not new.ndim:
        kept = [box_shape[d] for d in (*stepped, *windows)]
        return broadcast_array(new, (*plan.group_shape, *kept))
    new = broadcast_array(new, plan.result_shape)
    tokens: list[Any] = []
    sizes: list[Any] = []
    for token in plan.layout:
        if token == GROUP:
            tokens.extend((GROUP, i) for i in range(len(plan.group_shape)))
            sizes.extend(plan.group_shape)
        elif token != NEW:
            tokens.append(token)
            sizes.append(box_shape[token])
    new = reshape(new, sizes)
    wanted = [*[(GROUP, i) for i in range(len(plan.group_shape))], *stepped, *windows]
    return transpose(new, [tokens.index(token) for token in wanted])


# --- masks ----------------------------------------------------------------------------------------


def _masked(kind: str, x: Array, items: Sequence[Any], new: Array) -> Array | None:
    """An update under one bool array by choosing between old and new elements; None if not such.

    This needs one value for all elements under the mask, and then works for traced masks too.
    """
    if sum(map(is_mask, items)) != 1:
        return None
    items = expand_ellipsis(items, x.type.shape)
    position = next(i for i, item in enumerate(items) if is_mask(item))
    mask = items[position]
    others = items[:position] + items[position + 1 :]
    traced = concrete_mask(mask) is None
    if any(isinstance(item, Array | np.ndarray | bool) for item in others):
        return None
    before = sum(1 for item in items[:position] if item is not None and item is not Ellipsis)
    check_mask(mask, x.type.shape[before : before + mask.ndim])
    # The same index with the masked dimensions whole: the region in which to choose.
    region_items = (*items[:position], *[slice(None)] * mask.ndim, *items[position + 1 :])
    plan = make_plan(x.type, region_items)
    region_shape = plan.result_shape
    first = sum(1 for item in items[:position] if item is not Ellipsis and not _is_number(item))
    rest = region_shape[:first] + region_shape[first + mask.ndim :]
    group_at = 0 if _is_separated(items, position) else first
    target = (*rest[:group_at], 1, *rest[group_at:])
    if shape_key(common_shape(f"at[mask].{kind}", [new.type.shape, target])) != shape_key(target):
        if traced:
            raise NonConcreteBooleanIndexError(
                f"x.at[mask].{kind}(values) with a traced mask ({mask.type}) takes one value for "
                f"all elements under the mask, but values are {new.type}. Use "
                f"fxarray.numpy.where(mask, values, x) with values in the shape of x."
            )
        return None
    old = read(x, plan)
    if new.ndim:
        new = broadcast_array(new, target)
        new = reshape(new, (*rest[:first], *[1] * mask.ndim, *rest[first:]))
        new = broadcast_array(new, region_shape)
    under = broadcast_in_dim(operators.asarray(mask), region_shape, range(first, first + mask.ndim))
    chosen = e.select(under, _COMBINE[kind](old, new), old)
    return _update_region(x, plan, chosen)


def _is_number(item: Any) -> bool:
    return isinstance(item, int | dims.Dim) and not isinstance(item, bool)


def _is_separated(items: Sequence[Any], mask: int) -> bool:
    """Whether the mask and the integers of an index do not stand side by side."""
    picking = [i for i, item in enumerate(items) if i == mask or _is_number(item)]
    return picking[-1] - picking[0] + 1 != len(picking)


def _update_region(x: Array, plan: Plan, new: Array) -> Array:
    if all(stride == 1 for stride in plan.strides):
        return _update_box("set", x, plan, new)
    return _scatter("set", x, plan, new, False, True, GatherScatterMode.PROMISE_IN_BOUNDS)
