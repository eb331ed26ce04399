"""Collectives over named axes: of `vmap(..., axis_name=...)`, and of a mesh inside `shard_map`."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, cast

import numpy as np

from fxarray.core import dtypes
from fxarray.core.array import Array
from fxarray.core.context import find_axis
from fxarray.core.errors import ArgumentError, MissingRuleError
from fxarray.core.hooks import operators
from fxarray.interpreters.batch import BatchTrace
from fxarray.primitives import collective as primitives
from fxarray.primitives.comparison import eq, select
from fxarray.primitives.convert import convert
from fxarray.primitives.create import scalar, zeros
from fxarray.tree import map as tree_map

AxisName = Hashable | Sequence[Hashable]


def _names(axis_name: AxisName) -> tuple[Hashable, ...]:
    """The axes, the slowest-varying one first."""
    if isinstance(axis_name, (tuple, list)):
        return tuple(cast("Sequence[Hashable]", axis_name))
    return (cast("Hashable", axis_name),)


def _one_name(axis_name: AxisName, what: str) -> Hashable:
    names = _names(axis_name)
    if len(names) != 1:
        raise ArgumentError(f"{what} takes one axis name, got {axis_name!r}")
    return names[0]


def _refuse_groups(axis_index_groups: Any, what: str) -> None:
    if axis_index_groups is not None:
        raise MissingRuleError(
            f"{what}: axis_index_groups is not supported; reshape the mapped axis and use two "
            f"nested vmaps with a name each, or a mesh with two axes"
        )


def axis_size(axis_name: AxisName) -> Any:
    """The size of a named axis (the product of the sizes of several), as a Python int.

    >>> import fxarray, fxarray.numpy as fnp
    >>> fxarray.vmap(lambda x: x + fxarray.lax.axis_size("i"), axis_name="i")(fnp.zeros(3))
    Array([3., 3., 3.], dtype=float32)
    """
    total: Any = 1
    for name in _names(axis_name):
        total = total * find_axis(name).size
    return total


def axis_index(axis_name: AxisName) -> Any:
    """The number of this place along a named axis, as an int32 array.

    >>> import fxarray, fxarray.numpy as fnp
    >>> fxarray.vmap(lambda x: x + fxarray.lax.axis_index("i"), axis_name="i")(fnp.zeros(3))
    Array([0., 1., 2.], dtype=float32)
    """
    position: Any = None
    for name in _names(axis_name):
        size = find_axis(name).size
        index = primitives.AxisIndex(name, size)()
        position = index if position is None else position * size + index
    return position


def _over_axes(x: Any, axis_name: AxisName, operation: Callable[[Hashable, Any], Any]) -> Any:
    """Apply an operation over one axis after another to every leaf of a tree."""
    operations = [operation(name, find_axis(name).size) for name in _names(axis_name)]

    def apply(leaf: Any) -> Any:
        for op in operations:
            leaf = op(leaf)
        return leaf

    return tree_map(apply, tree_map(_as_array, x))


def _as_array(leaf: Any) -> Array:
    return leaf if isinstance(leaf, Array) else operators.asarray(leaf)


def psum(x: Any, axis_name: AxisName, *, axis_index_groups: Any = None) -> Any:
    """The sum of `x` over all places of a named axis.

    Args:
      x: an array or a tree of arrays. A Python number gives a Python number, so that `psum(1, "i")`
        is the size of the axis.
      axis_name: the axis, or several.
      axis_index_groups: must be None.

    >>> import fxarray, fxarray.numpy as fnp
    >>> fxarray.vmap(lambda x: x / fxarray.lax.psum(x, "i"), axis_name="i")(fnp.array([1.0, 3.0]))
    Array([0.25, 0.75], dtype=float32)
    """
    _refuse_groups(axis_index_groups, "psum")
    operations = [primitives.PSum(name, find_axis(name).size) for name in _names(axis_name)]

    def total(leaf: Any) -> Any:
        if isinstance(leaf, (int, float, complex)) and not isinstance(leaf, np.generic):
            return leaf * axis_size(axis_name)
        leaf = _as_array(leaf)
        if dtypes.is_bool(leaf.type.dtype):
            leaf = convert(leaf, np.dtype(np.int32))
        for op in operations:
            leaf = op(leaf)
        return leaf

    return tree_map(total, x)


def pmean(x: Any, axis_name: AxisName, *, axis_index_groups: Any = None) -> Any:
    """The mean of `x` over all places of a named axis.

    >>> import fxarray, fxarray.numpy as fnp
    >>> fxarray.vmap(lambda x: x - fxarray.lax.pmean(x, "i"), axis_name="i")(fnp.array([1.0, 3.0]))
    Array([-1.,  1.], dtype=float32)
    """
    total = psum(x, axis_name, axis_index_groups=axis_index_groups)
    size = axis_size(axis_name)
    return tree_map(lambda leaf: leaf / size, total)


def pmax(x: Any, axis_name: AxisName, *, axis_index_groups: Any = None) -> Any:
    """The greatest of `x` over all places of a named axis, element by element.

    >>> import fxarray, fxarray.numpy as fnp
    >>> fxarray.vmap(lambda x: x - fxarray.lax.pmax(x, "i"), axis_name="i")(fnp.array([1.0, 3.0]))
    Array([-2.,  0.], dtype=float32)
    """
    _refuse_groups(axis_index_groups, "pmax")
    return _over_axes(x, axis_name, primitives.PMax)


def pmin(x: Any, axis_name: AxisName, *, axis_index_groups: Any = None) -> Any:
    """The least of `x` over all places of a named axis, element by element.

    >>> import fxarray, fxarray.numpy as fnp
    >>> fxarray.vmap(lambda x: x - fxarray.lax.pmin(x, "i"), axis_name="i")(fnp.array([1.0, 3.0]))
    Array([0., 2.], dtype=float32)
    """
    _refuse_groups(axis_index_groups, "pmin")
    return _over_axes(x, axis_name, primitives.PMin)


def all_gather(
    x: Any,
    axis_name: AxisName,
    *,
    axis_index_groups: Any = None,
    axis: int = 0,
    tiled: bool = False,
) -> Any:
    """The values of `x` at all places of a named axis.

    Args:
      x: an array or a tree of arrays.
      axis_name: the axis, or several.
      axis_index_groups: must be None.
      axis: the new dimension along which the values are stacked.
      tiled: whether to join along the existing dimension `axis` instead.

    >>> import fxarray, fxarray.numpy as fnp
    >>> fxarray.vmap(lambda x: fxarray.lax.all_gather(x, "i"), axis_name="i")(fnp.array([1, 2]))
    Array([[1, 2],
           [1, 2]], dtype=int32)
    """
    _refuse_groups(axis_index_groups, "all_gather")

    def gather(leaf: Any) -> Any:
        leaf = _as_array(leaf)
        rank = leaf.type.ndim + (not tiled)
        dimension = axis + rank if axis < 0 else axis
        join = tiled
        for name in reversed(_names(axis_name)):
            leaf = primitives.AllGather(name, find_axis(name).size, dimension, join)(leaf)
            join = True
        return leaf

    return tree_map(gather, x)


def psum_scatter(
    x: Any,
    axis_name: AxisName,
    *,
    scatter_dimension: int = 0,
    axis_index_groups: Any = None,
    tiled: bool = False,
) -> Any:
    """The sum of `x` over all places of a named axis, of which each place keeps one part.

    Args:
      x: an array or a tree of arrays.
      axis_name: the axis, or several.
      scatter_dimension: the dimension that is cut into parts; its size is the axis's, and it
        disappears.
      axis_index_groups: must be None.
      tiled: whether the dimension stays, and its size need only be a multiple of the axis's.

    >>> import fxarray, fxarray.numpy as fnp
    >>> x = fnp.array([[1, 2], [3, 4]])
    >>> fxarray.vmap(lambda x: fxarray.lax.psum_scatter(x, "i"), axis_name="i")(x)
    Array([4, 6], dtype=int32)
    """
    _refuse_groups(axis_index_groups, "psum_scatter")
    names = _names(axis_name)

    def scatter(leaf: Any) -> Any:
        leaf = _as_array(leaf)
        dimension = scatter_dimension % leaf.type.ndim if leaf.type.ndim else scatter_dimension
        for number, name in enumerate(names):
            keep = tiled or number < len(names) - 1
            leaf = primitives.PSumScatter(name, find_axis(name).size, dimension, keep)(leaf)
        return leaf

    return tree_map(scatter, x)


def all_to_all(
    x: Any,
    axis_name: AxisName,
    split_axis: int,
    concat_axis: int,
    *,
    axis_index_groups: Any = None,
    tiled: bool = False,
) -> Any:
    """Exchange parts: place i gets the i-th part of `x` from every place.

    Args:
      x: an array or a tree of arrays.
      axis_name: the axis.
      split_axis: the dimension that is cut; its size is the axis's, and it disappears.
      concat_axis: the new dimension along which what arrives is stacked.
      axis_index_groups: must be None.
      tiled: whether to cut and join existing dimensions instead.

    >>> import fxarray, fxarray.numpy as fnp
    >>> x = fnp.array([[1, 2], [3, 4]])
    >>> fxarray.vmap(lambda x: fxarray.lax.all_to_all(x, "i", 0, 0), axis_name="i")(x)
    Array([[1, 3],
           [2, 4]], dtype=int32)
    """
    _refuse_groups(axis_index_groups, "all_to_all")
    name = _one_name(axis_name, "all_to_all")
    size = find_axis(name).size

    def exchange(leaf: Any) -> Any:
        leaf = _as_array(leaf)
        rank = leaf.type.ndim
        split = split_axis + rank if split_axis < 0 else split_axis
        concat = concat_axis + rank if concat_axis < 0 else concat_axis
        return primitives.AllToAll(name, size, split, concat, tiled)(leaf)

    return tree_map(exchange, x)


def ppermute(x: Any, axis_name: AxisName, perm: Sequence[tuple[int, int]]) -> Any:
    """Send `x` from place to place of a named axis.

    Args:
      x: an array or a tree of arrays.
      axis_name: the axis.
      perm: pairs (source, destination). Places that are no destination get zeros.

    >>> import fxarray, fxarray.numpy as fnp
    >>> shift = lambda x: fxarray.lax.ppermute(x, "i", [(0, 1), (1, 2)])
    >>> fxarray.vmap(shift, axis_name="i")(fnp.array([1, 2, 3]))
    Array([0, 1, 2], dtype=int32)
    """
    name = _one_name(axis_name, "ppermute")
    pairs = tuple([(int(source), int(destination)) for source, destination in perm])
    return _over_axes(x, name, lambda axis, size: primitives.PPermute(axis, size, pairs))


def pshuffle(x: Any, axis_name: AxisName, perm: Sequence[int]) -> Any:
    """Reorder the places of a named axis: place i gets the value of place `perm[i]`.

    >>> import fxarray, fxarray.numpy as fnp
    >>> turn = lambda x: fxarray.lax.pshuffle(x, "i", [2, 0, 1])
    >>> fxarray.vmap(turn, axis_name="i")(fnp.array([1, 2, 3]))
    Array([3, 1, 2], dtype=int32)
    """
    if sorted(perm) != list(range(len(perm))):
        raise ArgumentError(f"pshuffle: {perm!r} is not a permutation of the numbers from 0")
    if len(perm) != axis_size(axis_name):
        raise ArgumentError(
            f"pshuffle: the permutation has {len(perm)} places, but axis {axis_name!r} has "
            f"{axis_size(axis_name)}"
        )
    return ppermute(x, axis_name, [(source, place) for place, source in enumerate(perm)])


def pswapaxes(x: Any, axis_name: AxisName, axis: int, *, axis_index_groups: Any = None) -> Any:
    """Swap a named axis with the dimension `axis` of `x`, which has its size.

    >>> import fxarray, fxarray.numpy as fnp
    >>> x = fnp.array([[1, 2], [3, 4]])
    >>> fxarray.vmap(lambda x: fxarray.lax.pswapaxes(x, "i", 0), axis_name="i")(x)
    Array([[1, 3],
           [2, 4]], dtype=int32)
    """
    return all_to_all(x, axis_name, axis, axis, axis_index_groups=axis_index_groups)


def pbroadcast(x: Any, axis_name: AxisName, source: int) -> Any:
    """The value of `x` at one place of a named axis, at all places.

    >>> import fxarray, fxarray.numpy as fnp
    >>> fxarray.vmap(lambda x: fxarray.lax.pbroadcast(x, "i", 1), axis_name="i")(fnp.array([5, 7]))
    Array([7, 7], dtype=int32)
    """
    here = eq(axis_index(axis_name), scalar(source, np.dtype(np.int32)))

    def spread(leaf: Any) -> Any:
        leaf = _as_array(leaf)
        return psum(select(here, leaf, zeros(leaf.type)), axis_name)

    return tree_map(spread, x)


def pcast(x: Any, axis_name: AxisName, *, to: str) -> Any:
    """Change what is said of how a value varies along a mesh axis; the value stays the same.

    Under `vmap` nothing is said of it, and this does nothing.

    Args:
      x: an array or a tree of arrays.
      axis_name: the axis, or several.
      to: "varying".
    """
    if to != "varying":
        raise ArgumentError(f'pcast: to must be "varying", not {to!r}')
    names = [
        name for name in _names(axis_name) if not isinstance(find_axis(name).trace, BatchTrace)
    ]
    return _over_axes(x, names, primitives.PVary)


def pvary(x: Any, axis_name: AxisName) -> Any:
    """Take a value to vary along a mesh axis; see `pcast`."""
    return pcast(x, axis_name, to="varying")
