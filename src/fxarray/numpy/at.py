"""`x.at[index]`: the object whose methods return updated copies of an array."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fxarray.core import dtypes
from fxarray.core.array import Array
from fxarray.core.hooks import operators
from fxarray.core.types import ArrayType
from fxarray.lax.gather_scatter import apply_counted
from fxarray.numpy.eager_indexing import update_at_once
from fxarray.numpy.index_items import as_items, is_mask
from fxarray.numpy.index_plan import make_plan
from fxarray.numpy.index_update import as_update, gather_mode, mode_name, reject_sharding, update
from fxarray.numpy.indexing import read
from fxarray.primitives import elementwise as e
from fxarray.primitives.convert import convert
from fxarray.primitives.create import full
from fxarray.primitives.windows import GatherScatterMode


class IndexedArray:
    """`x.at[index]`; its methods return changed copies of `x`.

    All methods take the same keyword arguments:

    - `indices_are_sorted`, `unique_indices`: promises about index arrays, which may save time.
    - `mode`: what happens at positions out of bounds: "drop" (the default: nothing is written
      there; known positions raise instead), "clip" to the nearest, "wrap" around, or
    "promise_in_bounds". - `wrap_negative_indices`: whether negative positions count from the end.

    If a position is given several times, `set` keeps the last value, the others combine all of
    them.
    """

    __slots__ = ("array", "index")

    def __init__(self, array: Array, index: Any) -> None:
        self.array = array
        self.index = index

    def __repr__(self) -> str:
        return f"IndexedArray({self.array!r}, {self.index!r})"

    def get(
        self,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Any = None,
        fill_value: Any = None,
        out_sharding: Any = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """`x[index]`, with a choice of what happens out of bounds.

        Args:
          indices_are_sorted: a promise.
          unique_indices: a promise.
          mode: "fill" gives `fill_value` there; None (the default) clamps, and raises for known
            positions; "clip", "wrap" and "promise_in_bounds" are possible too.
          fill_value: a scalar; default NaN, or the extreme value of an integer dtype.
          out_sharding: not supported yet.
          wrap_negative_indices: whether negative positions count from the end.

        >>> import fxarray.numpy as fnp
        >>> fnp.array([1.0, 2.0]).at[5].get(mode="fill", fill_value=0)
        Array(0., dtype=float32)
        """
        reject_sharding(out_sharding)
        name = mode_name(mode)
        if name is None and fill_value is not None:
            name = "fill"
        plan = make_plan(self.array.type, as_items(self.index), name, wrap_negative_indices)
        return read(
            self.array,
            plan,
            gather_mode(name, GatherScatterMode.CLIP),
            fill_value,
            indices_are_sorted,
            unique_indices,
        )

    def set(self, values: Any, **options: Any) -> Array:
        """`x` with the elements at the index replaced.

        >>> import fxarray.numpy as fnp
        >>> x = fnp.array([1, 2, 3])
        >>> x.at[1:].set(0)
        Array([1, 0, 0], dtype=int32)
        >>> x.at[x > 1].set(9)
        Array([1, 9, 9], dtype=int32)
        """
        return _update("set", self.array, self.index, values, options)

    def add(self, values: Any, **options: Any) -> Array:
        """`x` with values added at the index.

        >>> import fxarray.numpy as fnp
        >>> fnp.zeros(3).at[fnp.array([0, 2, 0])].add(1)
        Array([2., 0., 1.], dtype=float32)
        """
        return _update("add", self.array, self.index, values, options)

    def subtract(self, values: Any, **options: Any) -> Array:
        """`x` with values subtracted at the index."""
        values = as_update(self.array, values)
        return update("add", self.array, self.index, e.neg(values), **options)

    def multiply(self, values: Any, **options: Any) -> Array:
        """`x` multiplied by values at the index."""
        return _update("multiply", self.array, self.index, values, options)

    mul = multiply

    def divide(self, values: Any, **options: Any) -> Array:
        """`x` divided by values at the index; integers become floats."""
        divisors = self._factors(values, options)
        return operators.binary["truediv"](self.array, divisors)  # type: ignore[index]

    def power(self, values: Any, **options: Any) -> Array:
        """`x` raised to values at the index; given several times, to their product."""
        exponents = self._factors(values, options)
        return operators.binary["pow"](self.array, exponents)  # type: ignore[index]

    def _factors(self, values: Any, options: dict[str, Any]) -> Array:
        """An array in the shape of `x` of the values at the index, and ones elsewhere."""
        own = self.array.type
        new = operators.asarray(values)
        dtype, _ = dtypes.promote([own.dtype, new.type.dtype], [own.weak, new.type.weak])
        return update("multiply", full(ArrayType(own.shape, dtype), 1), self.index, new, **options)

    def min(self, values: Any, **options: Any) -> Array:
        """`x` with the lesser of element and value at the index."""
        return _update("min", self.array, self.index, values, options)

    def max(self, values: Any, **options: Any) -> Array:
        """`x` with the greater of element and value at the index."""
        return _update("max", self.array, self.index, values, options)

    def apply(self, func: Callable[[Array], Array], **options: Any) -> Array:
        """`x` with an elementwise function applied at the index, once for each time it is given.

        >>> import fxarray.numpy as fnp
        >>> fnp.array([2, 2, 2]).at[fnp.array([0, 0, 1])].apply(lambda v: v * 10)
        Array([200,  20,   2], dtype=int32)
        """
        return _apply(self.array, self.index, func, **options)


class Indexer:
    """`x.at`: indexing it gives the `IndexedArray` whose methods update."""

    __slots__ = ("array",)

    def __init__(self, array: Array) -> None:
        self.array = array

    def __getitem__(self, index: Any) -> IndexedArray:
        return IndexedArray(self.array, index)

    def __repr__(self) -> str:
        return f"Indexer({self.array!r})"


def _update(kind: str, x: Array, index: Any, values: Any, options: dict[str, Any]) -> Array:
    if not options:
        found = update_at_once(kind, x, index, values)
        if found is not None:
            return found
    return update(kind, x, index, values, **options)


# --- apply ----------------------------------------------------------------------------------------


def _apply(x: Array, index: Any, function: Callable[[Array], Array], **options: Any) -> Array:
    items = as_items(index)
    masks = [item for item in items if is_mask(item)]
    arrays = [item for item in items if isinstance(item, Array | np.ndarray) and item.ndim]
    if not arrays or options.get("unique_indices"):
        found = IndexedArray(x, index).get(**_reading(options))
        return update("set", x, index, _same_dtype(x, function(found)), **options)
    counts = update("add", full(ArrayType(x.type.shape, dtypes.int32), 0), index, 1, **options)
    once = len(masks) == len(arrays) == 1
    return apply_counted(x, counts, lambda values: _same_dtype(x, function(values)), once)


def _same_dtype(x: Array, new: Any) -> Array:
    return convert(as_update(x, new), x.type.dtype, x.type.weak)


def _reading(options: dict[str, Any]) -> dict[str, Any]:
    """Options of an update as options of `get`."""
    mode = options.get("mode")
    return {**options, "mode": "fill" if mode == "drop" else mode}


operators.fill(at=Indexer)
