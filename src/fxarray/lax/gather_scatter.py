"""Gather and scatter: windows of an array at places given by index vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fxarray.core import dims, dtypes
from fxarray.core.array import Array
from fxarray.core.context import context
from fxarray.core.errors import ArgumentError
from fxarray.core.tracer import Tracer
from fxarray.core.types import ArrayType
from fxarray.lax.loops import while_loop
from fxarray.lax.operands import ArrayLike, as_operand, as_operands
from fxarray.lax.shapes import as_axes, as_shape
from fxarray.primitives import elementwise as e
from fxarray.primitives.convert import convert
from fxarray.primitives.create import full, scalar
from fxarray.primitives.gather import Gather, ScatterAdd, check_fill_value
from fxarray.primitives.joining import concatenate
from fxarray.primitives.movement import reshape
from fxarray.primitives.reductions import reduce_max
from fxarray.primitives.scatter import Scatter, ScatterMax, ScatterMin, ScatterMul
from fxarray.primitives.windows import (
    GatherDimensionNumbers,
    GatherScatterMode,
    ScatterDimensionNumbers,
)

Mode = str | GatherScatterMode | None


def gather(
    operand: ArrayLike,
    start_indices: ArrayLike,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: Any,
    *,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    mode: Mode = None,
    fill_value: Any = None,
) -> Array:
    """Windows of `operand`, one for each index vector. `x[index]` is easier to use.

    Args:
      operand: an array.
      start_indices: integers; the last dimension holds index vectors.
      dimension_numbers: how dimensions correspond.
      slice_sizes: the size of a window in each dimension of the operand.
      unique_indices: a promise that no two windows overlap.
      indices_are_sorted: a promise.
      mode: for windows outside the operand: "clip" moves them inside (the default), "fill" gives
        `fill_value` for them, "promise_in_bounds" says that there are none.
      fill_value: a scalar; None: NaN, or the extreme value of an integer dtype.

    >>> import fxarray.numpy as fnp
    >>> from fxarray import lax
    >>> numbers = lax.GatherDimensionNumbers((1,), (0,), (0,))  # rows
    >>> lax.gather(fnp.array([[1, 2], [3, 4]]), fnp.array([[1], [1]]), numbers, (1, 2))
    Array([[3, 4],
           [3, 4]], dtype=int32)
    """
    x = as_operand("gather", operand)
    indices = as_operand("gather", start_indices, 1)
    if mode is None:
        mode = "clip" if fill_value is None else "fill"
    return Gather(
        _canonical_gather(dimension_numbers),
        as_shape("gather", slice_sizes),
        indices_are_sorted,
        unique_indices,
        GatherScatterMode.from_any(mode),
        check_fill_value(fill_value),
    )(x, indices)


def _canonical_gather(numbers: Any) -> GatherDimensionNumbers:
    return GatherDimensionNumbers(
        tuple(numbers.offset_dims),
        tuple(numbers.collapsed_slice_dims),
        tuple(numbers.start_index_map),
        tuple(numbers.operand_batching_dims),
        tuple(numbers.start_indices_batching_dims),
    )


def _canonical_scatter(numbers: Any) -> ScatterDimensionNumbers:
    return ScatterDimensionNumbers(
        tuple(numbers.update_window_dims),
        tuple(numbers.inserted_window_dims),
        tuple(numbers.scatter_dims_to_operand_dims),
        tuple(numbers.operand_batching_dims),
        tuple(numbers.scatter_indices_batching_dims),
    )


def _scatter(
    function: str,
    make: Any,
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    updates: ArrayLike,
    dimension_numbers: ScatterDimensionNumbers,
    indices_are_sorted: bool,
    unique_indices: bool,
    mode: Mode,
) -> Array:
    x, new = as_operands(function, operand, updates)
    indices = as_operand(function, scatter_indices, 1)
    op = make(
        _canonical_scatter(dimension_numbers),
        indices_are_sorted,
        unique_indices,
        GatherScatterMode.from_any(mode),
    )
    return op(x, indices, new)


def scatter(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    updates: ArrayLike,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: Mode = None,
) -> Array:
    """`operand` with windows replaced by updates; the last one stays where windows overlap.

    `x.at[index].set(values)` is easier to use.

    Args:
      operand: an array.
      scatter_indices: integers; the last dimension holds index vectors.
      updates: a window for each index vector, of the operand's dtype.
      dimension_numbers: how dimensions correspond.
      indices_are_sorted: a promise.
      unique_indices: a promise that no two windows overlap.
      mode: for windows outside the operand: "drop" (the default), "clip" or "promise_in_bounds".

    >>> import fxarray.numpy as fnp
    >>> from fxarray import lax
    >>> numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> lax.scatter(fnp.zeros(3), fnp.array([[2], [7]]), fnp.ones(2), numbers)
    Array([0., 0., 1.], dtype=float32)
    """
    return _scatter(
        "scatter", Scatter, operand, scatter_indices, updates, dimension_numbers,
        indices_are_sorted, unique_indices, mode,
    )  # fmt: skip


def scatter_add(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    updates: ArrayLike,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: Mode = None,
) -> Array:
    """`operand` with updates added to windows, all of them where windows overlap; see `scatter`.

    >>> import fxarray.numpy as fnp
    >>> from fxarray import lax
    >>> numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> lax.scatter_add(fnp.zeros(3), fnp.array([[2], [2]]), fnp.ones(2), numbers)
    Array([0., 0., 2.], dtype=float32)
    """
    return _scatter(
        "scatter_add", ScatterAdd, operand, scatter_indices, updates, dimension_numbers,
        indices_are_sorted, unique_indices, mode,
    )  # fmt: skip


def scatter_sub(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    updates: ArrayLike,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: Mode = None,
) -> Array:
    """`operand` with updates subtracted from windows; see `scatter`."""
    x, new = as_operands("scatter_sub", operand, updates)
    return _scatter(
        "scatter_sub", ScatterAdd, x, scatter_indices, e.neg(new), dimension_numbers,
        indices_are_sorted, unique_indices, mode,
    )  # fmt: skip


def scatter_mul(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    updates: ArrayLike,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: Mode = None,
) -> Array:
    """`operand` with windows multiplied by updates; see `scatter`."""
    return _scatter(
        "scatter_mul", ScatterMul, operand, scatter_indices, updates, dimension_numbers,
        indices_are_sorted, unique_indices, mode,
    )  # fmt: skip


def scatter_min(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    updates: ArrayLike,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: Mode = None,
) -> Array:
    """`operand` with the lesser of element and update in windows; see `scatter`."""
    return _scatter(
        "scatter_min", ScatterMin, operand, scatter_indices, updates, dimension_numbers,
        indices_are_sorted, unique_indices, mode,
    )  # fmt: skip


def scatter_max(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    updates: ArrayLike,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: Mode = None,
) -> Array:
    """`operand` with the greater of element and update in windows; see `scatter`."""
    return _scatter(
        "scatter_max", ScatterMax, operand, scatter_indices, updates, dimension_numbers,
        indices_are_sorted, unique_indices, mode,
    )  # fmt: skip


def scatter_apply(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    func: Callable[[Array], Array],
    dimension_numbers: ScatterDimensionNumbers,
    *,
    update_shape: Any = (),
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: Mode = None,
) -> Array:
    """`operand` with an elementwise function applied in windows; see `scatter`.

    An element in several windows is changed as many times, which cannot be differentiated in
    reverse where the indices are traced.

    Args:
      operand: an array.
      scatter_indices: integers; the last dimension holds index vectors.
      func: elementwise; keeps the dtype.
      dimension_numbers: how dimensions correspond.
      update_shape: the shape that updates would have.
      indices_are_sorted: a promise.
      unique_indices: a promise that no two windows overlap.
      mode: for windows outside the operand: "drop" (the default), "clip" or "promise_in_bounds".

    >>> import fxarray.numpy as fnp
    >>> from fxarray import lax
    >>> numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> x = fnp.array([1.0, 2.0])
    >>> lax.scatter_apply(x, fnp.array([[1], [1]]), lambda v: v * v, numbers, update_shape=(2,))
    Array([ 1., 16.], dtype=float32)
    """
    x = as_operand("scatter_apply", operand)
    ones = full(ArrayType(as_shape("scatter_apply", update_shape), dtypes.int32), 1)
    counts = scatter_add(
        full(ArrayType(x.shape, dtypes.int32), 0), scatter_indices, ones, dimension_numbers,
        indices_are_sorted=indices_are_sorted, unique_indices=unique_indices, mode=mode,
    )  # fmt: skip
    return apply_counted(x, counts, func, once=unique_indices)


def apply_counted(
    x: Array, counts: Array, function: Callable[[Array], Array], once: bool = False
) -> Array:
    """`x` with each element changed by an elementwise function `counts` times.

    Args:
      x: an array.
      counts: int32, in the shape of `x`.
      function: elementwise; its results are converted to the dtype of `x`.
      once: whether no count is greater than 1.
    """

    def changed(number: Any, values: Array) -> Array:
        new = convert(as_operand("scatter_apply", function(values)), x.type.dtype, x.type.weak)
        return e.select(e.gt(counts, number), new, values)

    zero, one = scalar(0, dtypes.int32), scalar(1, dtypes.int32)
    if once:
        return changed(zero, x)
    if any(dims.same(size, 0) for size in x.shape):
        return x
    most = reduce_max(counts, range(counts.ndim))
    known = most.concrete() if isinstance(most, Tracer) else most
    if known is not None and context.staging is None:
        for number in range(int(known)):
            x = changed(scalar(number, dtypes.int32), x)
        return x

    def body(state: Any) -> Any:
        number, values = state
        return e.add(number, one), changed(number, values)

    return while_loop(lambda state: e.lt(state[0], most), body, (zero, x))[1]


def index_take(src: ArrayLike, idxs: Sequence[ArrayLike], axes: Sequence[int]) -> Array:
    """Windows of `src` at vectors of positions along `axes`; the first dimension runs over them.

    Args:
      src: an array.
      idxs: one vector of positions per axis; out of bounds gives NaN, or an extreme integer.
      axes: as many axes, which the result does not have.

    >>> import fxarray.numpy as fnp
    >>> from fxarray import lax
    >>> lax.index_take(fnp.array([[1, 2], [3, 4]]), (fnp.array([1, 0]),), (1,))
    Array([[2, 4],
           [1, 3]], dtype=int32)
    """
    x = as_operand("index_take", src)
    places = as_axes("index_take", axes, x.ndim)
    vectors = [as_operand("index_take", vector, 1) for vector in idxs]
    if not vectors or len(vectors) != len(places) or any(v.ndim != 1 for v in vectors):
        raise ArgumentError(
            "lax.index_take takes one vector of positions for each of at least one axis"
        )
    count = vectors[0].shape[0]
    columns = [reshape(vector, (count, 1)) for vector in vectors]
    numbers = GatherDimensionNumbers(
        tuple(range(1, 1 + x.ndim - len(places))), tuple(sorted(places)), places
    )
    sizes = [1 if axis in places else size for axis, size in enumerate(x.shape)]
    return gather(x, concatenate(columns, 1), numbers, sizes, mode="fill")
