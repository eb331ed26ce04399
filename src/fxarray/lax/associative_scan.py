"""Prefix combinations by an associative function, in a logarithmic number of passes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fxarray.core import dims
from fxarray.core.errors import ArgumentError, AxisError, CarryTypeError, ShapeError
from fxarray.core.tracebacks import boundary
from fxarray.lax.bodies import check_structure
from fxarray.primitives.joining import concatenate
from fxarray.primitives.movement import broadcast_axis, reshape, rev
from fxarray.primitives.slicing import slice_box
from fxarray.transforms.arguments import Structure, flatten_tree


@boundary
def associative_scan(
    fn: Callable[[Any, Any], Any], elems: Any, reverse: bool = False, axis: int = 0
) -> Any:
    """The combinations of the first 1, 2, 3, ... elements along an axis by an associative `fn`.

    Computed in about 2 log2(n) passes over whole arrays: neighbours are combined in pairs, the
    pairs scanned in the same way, and the elements in between filled in (Blelloch, Prefix sums and
    their applications, 1990).

    Args:
      fn: combines two trees of arrays, elementwise along `axis`; associative.
      elems: a pytree of arrays of one size along `axis`.
      reverse: whether to combine from the last element on.
      axis: along which axis; negative numbers count from the end of each array.

    Returns:
      A tree like `elems`.

    >>> import fxarray.numpy as fnp
    >>> from fxarray import lax
    >>> print(lax.associative_scan(fnp.multiply, fnp.arange(1.0, 6.0)))
    [  1.   2.   6.  24. 120.]
    """
    if not callable(fn):
        raise ArgumentError("associative_scan takes (fn, elems): fn is not a function")
    arrays, structure = flatten_tree(elems, "associative_scan: elems")
    if not arrays:
        return elems
    axes: list[int] = []
    for array, path in zip(arrays, structure.paths(), strict=True):
        if not -array.ndim <= axis < array.ndim:
            raise AxisError(
                f"associative_scan: axis {axis} is out of range for elems{path}, {array.type}"
            )
        axes.append(axis % array.ndim)
    sizes = [array.shape[a] for array, a in zip(arrays, axes, strict=True)]
    if any(not dims.same(size, sizes[0]) for size in sizes):
        described = ", ".join(
            f"elems{path} is {array.type}"
            for array, path in zip(arrays, structure.paths(), strict=True)
        )
        raise ShapeError(f"associative_scan: sizes along axis {axis} differ: {described}")
    if type(sizes[0]) is not int:
        raise ShapeError(f"associative_scan: the size along the axis must be known, got {sizes[0]}")
    if reverse:
        arrays = [rev(x, (a,)) for x, a in zip(arrays, axes, strict=True)]
    results = _Scanner(fn, structure, axes).scan(arrays, sizes[0])
    if reverse:
        results = [rev(x, (a,)) for x, a in zip(results, axes, strict=True)]
    return structure.unflatten(results)


class _Scanner:
    """One call's function, and along which axis each leaf is scanned."""

    def __init__(
        self, fn: Callable[[Any, Any], Any], structure: Structure, axes: Sequence[int]
    ) -> None:
        self.fn = fn
        self.structure = structure
        self.axes = axes

    def scan(self, arrays: list[Any], size: int) -> list[Any]:
        if size < 2:
            return arrays
        pairs = size // 2
        firsts = self.every_other(arrays, 0, 2 * pairs)
        seconds = self.every_other(arrays, 1, 2 * pairs)
        odd = self.scan(self.combine(firsts, seconds), pairs)
        later = self.every_other(arrays, 2, size)
        evens = (size - 1) // 2
        even = self.part(arrays, 0, 1)
        if evens:
            filled = self.combine(self.part(odd, 0, evens), later)
            even = self.join(even, filled)
        return self.interleave(even, odd, size)

    def combine(self, left: list[Any], right: list[Any]) -> list[Any]:
        result = self.fn(self.structure.unflatten(left), self.structure.unflatten(right))
        arrays, structure = flatten_tree(result, "associative_scan: the result of fn")
        check_structure(
            "associative_scan: fn must return a tree like its arguments",
            "Return the same containers and keys.",
            self.structure,
            structure,
            "elems",
        )
        for before, after, path in zip(left, arrays, self.structure.paths(), strict=True):
            if not before.type.same_array(after.type):
                raise CarryTypeError(
                    f"associative_scan: fn must keep shapes and dtypes, but elems{path} is "
                    f"{before.type} before and {after.type} after. Convert elems first."
                )
        return arrays

    def part(self, arrays: Sequence[Any], start: int, stop: int, step: int = 1) -> list[Any]:
        results: list[Any] = []
        for x, axis in zip(arrays, self.axes, strict=True):
            shape = x.type.shape
            starts, limits, strides = [0] * len(shape), list(shape), [1] * len(shape)
            starts[axis], limits[axis], strides[axis] = start, stop, step
            results.append(slice_box(x, starts, limits, strides))
        return results

    def every_other(self, arrays: Sequence[Any], start: int, stop: int) -> list[Any]:
        return self.part(arrays, min(start, stop), stop, 2)

    def join(self, left: Sequence[Any], right: Sequence[Any]) -> list[Any]:
        return [
            concatenate([x, y], axis) for x, y, axis in zip(left, right, self.axes, strict=True)
        ]

    def interleave(self, even: list[Any], odd: list[Any], size: int) -> list[Any]:
        """Elements 0, 2, 4, ... and 1, 3, 5, ... in turn."""
        pairs = size // 2
        results: list[Any] = []
        for x, y, axis in zip(self.part(even, 0, pairs), odd, self.axes, strict=True):
            shape = x.type.shape
            both = concatenate(
                [broadcast_axis(x, 1, axis + 1), broadcast_axis(y, 1, axis + 1)], axis + 1
            )
            results.append(reshape(both, (*shape[:axis], 2 * pairs, *shape[axis + 1 :])))
        return self.join(results, self.part(even, pairs, pairs + 1)) if size % 2 else results
