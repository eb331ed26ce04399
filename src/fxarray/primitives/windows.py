"""What gathers and scatters share: dimension numbers, modes, and where windows lie.

An index array has, in its last dimension, index vectors; its other dimensions are the *batch*. Each
index vector says where a *window*, a box of `slice_sizes`, starts in the operand: component j is
the start along operand dimension `start_index_map[j]`, all other starts are 0. A gather has a
result dimension for each batch dimension, and one (`offset_dims`) for each dimension of the window
that is not collapsed. Operand *batching dimensions* correspond to batch dimensions of the indices:
lane by lane, the operation is the same without them.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any, NamedTuple

import numpy as np

from fxarray.core import dims
from fxarray.core.errors import ArgumentError, DTypeError, ShapeError
from fxarray.core.types import ArrayType, Shape, Size
from fxarray.primitives.support import INTEGER, Values, group_of


class GatherScatterMode(Enum):
    """What happens to windows that do not lie inside the operand.

    CLIP moves them inside. FILL_OR_DROP gathers a fill value, and drops updates. PROMISE_IN_BOUNDS
    says that there are none, so that nothing need be checked; the result is unspecified if there
    are.
    """

    CLIP = "clip"
    FILL_OR_DROP = "fill"
    PROMISE_IN_BOUNDS = "promise_in_bounds"

    def __repr__(self) -> str:
        return f"GatherScatterMode.{self.name}"

    @classmethod
    def from_any(cls, mode: str | GatherScatterMode | None) -> GatherScatterMode:
        """The mode for one of "clip", "fill", "drop", "promise_in_bounds"; None is FILL_OR_DROP.

        Raises:
          ArgumentError: there is no such mode.
        """
        if isinstance(mode, GatherScatterMode):
            return mode
        known = {"clip": cls.CLIP, "promise_in_bounds": cls.PROMISE_IN_BOUNDS}
        known.update(fill=cls.FILL_OR_DROP, drop=cls.FILL_OR_DROP)
        if mode is None:
            return cls.FILL_OR_DROP
        if mode not in known:
            raise ArgumentError(f"mode={mode!r} is none of {', '.join(map(repr, known))}")
        return known[mode]


class GatherDimensionNumbers(NamedTuple):
    """How dimensions of operand, indices and result of a gather correspond.

    Args:
      offset_dims: the result dimensions that run over a window, in increasing order.
      collapsed_slice_dims: operand dimensions in which windows have size 1, absent in the result.
      start_index_map: for each component of an index vector, the operand dimension that it indexes.
      operand_batching_dims: operand dimensions that correspond to batch dimensions of the indices.
      start_indices_batching_dims: those batch dimensions.
    """

    offset_dims: tuple[int, ...]
    collapsed_slice_dims: tuple[int, ...]
    start_index_map: tuple[int, ...]
    operand_batching_dims: tuple[int, ...] = ()
    start_indices_batching_dims: tuple[int, ...] = ()


class ScatterDimensionNumbers(NamedTuple):
    """How dimensions of operand, indices and updates of a scatter correspond.

    Args:
      update_window_dims: the update dimensions that run over a window, in increasing order.
      inserted_window_dims: operand dimensions in which windows have size 1, absent in the updates.
      scatter_dims_to_operand_dims: for each component of an index vector, the operand dimension
        that it indexes.
      operand_batching_dims: operand dimensions that correspond to batch dimensions of the indices.
      scatter_indices_batching_dims: those batch dimensions.
    """

    update_window_dims: tuple[int, ...]
    inserted_window_dims: tuple[int, ...]
    scatter_dims_to_operand_dims: tuple[int, ...]
    operand_batching_dims: tuple[int, ...] = ()
    scatter_indices_batching_dims: tuple[int, ...] = ()

    def as_gather(self) -> GatherDimensionNumbers:
        """The gather that reads the windows that this scatter writes."""
        return GatherDimensionNumbers(*self)


def as_scatter(numbers: GatherDimensionNumbers) -> ScatterDimensionNumbers:
    """The scatter that writes the windows that this gather reads."""
    return ScatterDimensionNumbers(*numbers)


# --- checks ---------------------------------------------------------------------------------------


def check_numbers(
    name: str, numbers: GatherDimensionNumbers, operand: ArrayType, indices: ArrayType
) -> None:
    """Raise unless the dimension numbers fit the operand and the indices.

    Args:
      name: the operation.
      numbers: its dimension numbers (those of a scatter in the form of a gather).
      operand: the operand's type.
      indices: the indices' type.
    """
    if not group_of(indices.dtype) & INTEGER:
        raise DTypeError(f"{name}: indices must be integers, got {indices}")
    components = len(numbers.start_index_map)
    if not indices.shape or not dims.same(indices.shape[-1], components):
        raise ShapeError(
            f"{name}: the last dimension of the indices, {indices}, must have size {components}, "
            f"one component for each of the indexed dimensions {numbers.start_index_map}"
        )
    gone = numbers.collapsed_slice_dims + numbers.operand_batching_dims
    indexed = numbers.start_index_map + numbers.operand_batching_dims
    batch = numbers.start_indices_batching_dims
    for what, dimensions, rank in (
        ("collapsed (inserted) and batching", gone, operand.ndim),
        ("indexed and batching", indexed, operand.ndim),
        ("indices' batching", batch, indices.ndim - 1),
    ):
        if len(set(dimensions)) != len(dimensions) or not all(0 <= d < rank for d in dimensions):
            raise ShapeError(
                f"{name}: the {what} dimensions {dimensions} must be distinct and less than "
                f"{rank}; the operand is {operand}, the indices are {indices}"
            )
    if len(numbers.operand_batching_dims) != len(batch) or not all(
        dims.same(operand.shape[a], indices.shape[b])
        for a, b in zip(numbers.operand_batching_dims, batch, strict=True)
    ):
        raise ShapeError(
            f"{name}: batching dimensions {numbers.operand_batching_dims} of the operand, "
            f"{operand}, and {batch} of the indices, {indices}, must have equal sizes"
        )
    windowed = operand.ndim - len(gone)
    rank = indices.ndim - 1 + windowed
    offset = list(numbers.offset_dims)
    if len(offset) != windowed or offset != sorted(set(offset)) or not _within(offset, rank):
        raise ShapeError(
            f"{name}: window dimensions {numbers.offset_dims} must name, in increasing order, a "
            f"dimension less than {rank} for each of the {windowed} dimensions of {operand} that "
            f"are not collapsed, inserted or batching"
        )


def _within(dimensions: Sequence[int], rank: int) -> bool:
    return all(0 <= d < rank for d in dimensions)


def window_dims(numbers: GatherDimensionNumbers, rank: int) -> tuple[int, ...]:
    """The operand dimensions that windows run over: one for each of `offset_dims`."""
    gone = numbers.collapsed_slice_dims + numbers.operand_batching_dims
    return tuple([d for d in range(rank) if d not in gone])


def check_windows(
    name: str, numbers: GatherDimensionNumbers, slice_sizes: Sequence[Size], operand: ArrayType
) -> None:
    """Raise unless windows of `slice_sizes` fit into the operand."""
    if len(slice_sizes) != operand.ndim:
        raise ShapeError(
            f"{name}: slice_sizes={tuple(slice_sizes)} must have one size for each of the "
            f"{operand.ndim} dimensions of {operand}"
        )
    for dimension, (part, size) in enumerate(zip(slice_sizes, operand.shape, strict=True)):
        single = numbers.collapsed_slice_dims + numbers.operand_batching_dims
        if dimension in single and not dims.same(part, 1):
            raise ShapeError(
                f"{name}: windows have size {part} in dimension {dimension}, which is collapsed or "
                f"batching and so needs size 1"
            )
        if dimension in numbers.operand_batching_dims:
            continue  # no lane at all is fine
        if type(part) is int and (part < 0 or (type(size) is int and part > size)):
            raise ShapeError(
                f"{name}: windows have size {part} in dimension {dimension}, which does not fit "
                f"into the operand, {operand}"
            )


def batch_dims(offset_dims: Sequence[int], rank: int) -> tuple[int, ...]:
    """The dimensions of a gather's result (or a scatter's updates) that run over the batch."""
    return tuple([d for d in range(rank) if d not in offset_dims])


def gathered_shape(
    numbers: GatherDimensionNumbers, slice_sizes: Sequence[Size], indices: Shape
) -> Shape:
    """The shape of what a gather reads."""
    batch = iter(indices[:-1])
    windows = iter([slice_sizes[d] for d in window_dims(numbers, len(slice_sizes))])
    rank = len(indices) - 1 + len(numbers.offset_dims)
    offset = numbers.offset_dims
    return tuple([next(windows) if d in offset else next(batch) for d in range(rank)])


# --- vectorization --------------------------------------------------------------------------------


def _shifted(dimensions: Sequence[int]) -> tuple[int, ...]:
    return tuple([d + 1 for d in dimensions])


def with_lanes(
    numbers: GatherDimensionNumbers, operand: bool, indices: bool
) -> GatherDimensionNumbers:
    """Dimension numbers with a mapped dimension in front of operand, indices or both."""
    offset = _shifted(numbers.offset_dims)
    collapsed, indexed = numbers.collapsed_slice_dims, numbers.start_index_map
    operand_batch = numbers.operand_batching_dims
    indices_batch = numbers.start_indices_batching_dims
    if operand:
        collapsed, indexed = _shifted(collapsed), _shifted(indexed)
        operand_batch = _shifted(operand_batch)
    if indices:
        indices_batch = _shifted(indices_batch)
    if operand and indices:
        operand_batch, indices_batch = (0, *operand_batch), (0, *indices_batch)
    elif operand:
        offset = (0, *offset)
    return GatherDimensionNumbers(offset, collapsed, indexed, operand_batch, indices_batch)


# --- the definition, in NumPy ---------------------------------------------------------------------


def integer_starts(indices: Values) -> Values:
    """Index vectors in int64 (numbers beyond its range stay beyond any array's size)."""
    if indices.dtype == np.uint64:
        indices = np.minimum(indices, np.uint64(np.iinfo(np.int64).max))
    return indices.astype(np.int64, copy=False)


def locate(
    shape: Sequence[int],
    indices: Values,
    numbers: GatherDimensionNumbers,
    slice_sizes: Sequence[int],
    mode: GatherScatterMode,
) -> tuple[tuple[Values, ...], Values | None]:
    """Where each element of each window is in the operand.

    Returns:
      For each operand dimension an index array that broadcasts to batch shape + slice sizes, always
      inside the operand; and in mode FILL_OR_DROP, over the batch, which windows really are inside
      (None: all, or it does not matter).
    """
    rank = len(shape)
    batch = indices.shape[:-1]
    starts = integer_starts(indices)
    upper = np.array([shape[d] - slice_sizes[d] for d in numbers.start_index_map], np.int64)
    inside: Values | None = None
    if mode is GatherScatterMode.FILL_OR_DROP:
        inside = np.asarray(np.all((starts >= 0) & (starts <= upper), axis=-1))
    starts = np.clip(starts, 0, upper)
    positions: list[Values] = []
    for dimension in range(rank):
        sizes = [1] * rank
        sizes[dimension] = slice_sizes[dimension]
        position = np.arange(slice_sizes[dimension]).reshape([1] * len(batch) + sizes)
        if dimension in numbers.start_index_map:
            start = starts[..., numbers.start_index_map.index(dimension)]
            position = position + start.reshape(batch + (1,) * rank)
        elif dimension in numbers.operand_batching_dims:
            number = numbers.operand_batching_dims.index(dimension)
            lane = numbers.start_indices_batching_dims[number]
            sizes = [1] * (len(batch) + rank)
            sizes[lane] = batch[lane]
            position = np.arange(batch[lane]).reshape(sizes)
        positions.append(position)
    return tuple(positions), inside


def index_columns(
    shape: Sequence[int], indices: Values, numbers: GatherDimensionNumbers, slice_sizes: Any
) -> tuple[tuple[int, ...], list[Values]] | None:
    """For windows that are whole in the dimensions that are kept: what indexes the others.

    Returns:
      The collapsed and batching operand dimensions, and for each an (unclipped) index array over
      the batch; None where windows are of another kind.
    """
    for d in window_dims(numbers, len(shape)):
        if d in numbers.start_index_map or slice_sizes[d] != shape[d]:
            return None
    taken = tuple(sorted(numbers.collapsed_slice_dims + numbers.operand_batching_dims))
    batch = indices.shape[:-1]
    columns: list[Values] = []
    for d in taken:
        if d in numbers.start_index_map:
            columns.append(indices[..., numbers.start_index_map.index(d)])
        elif d in numbers.operand_batching_dims:
            lane = numbers.start_indices_batching_dims[numbers.operand_batching_dims.index(d)]
            sizes = [1] * len(batch)
            sizes[lane] = batch[lane]
            columns.append(np.broadcast_to(np.arange(batch[lane]).reshape(sizes), batch))
        else:
            columns.append(np.zeros(batch, np.int64))
    return taken, columns
