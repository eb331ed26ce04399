"""The short way of a repeated `jit` call: from leaves to a key, and from leaves to results.

A call whose leaves are all concrete arrays is known by their types. Other leaves (NumPy arrays,
Python numbers, static values) get keys of their own here; what has none takes the long way.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from fxarray.compile.backend import Call
from fxarray.core.array import DeviceArray
from fxarray.core.hooks import operators
from fxarray.core.source import warn
from fxarray.core.types import ArrayType
from fxarray.primitives.support import quietly
from fxarray.transforms.arguments import Structure
from fxarray.transforms.statics import (
    NUMPY,
    Static,
    is_array_like,
    kind_of,
    refusal,
    static_key,
)

_NUMBERS = frozenset((float, bool, complex))
_SCALARS = frozenset((np.float32, np.float64, np.complex64, np.complex128, np.bool_))
_LOW, _HIGH = -(2**31), 2**31 - 1


class NoKey(Exception):
    """A leaf is of a kind that the short way does not know."""


def leaf_key(leaf: Any) -> Hashable:
    """What a trace depends on of one leaf.

    Raises:
      NoKey: for leaves that the short way does not know.
    """
    kind: type[Any] = type(leaf)
    if kind is DeviceArray:
        return leaf.type
    if kind in _NUMBERS:
        return kind
    if kind is int:
        if _LOW <= leaf <= _HIGH:
            return int
        raise NoKey
    if kind is np.ndarray:
        return (leaf.dtype, leaf.shape)  # of a dtype that is no array's, no call is remembered
    if kind in _SCALARS:
        return kind
    if not is_array_like(leaf) and kind_of(leaf) != NUMPY and refusal(leaf) is None:
        return (Static, static_key(leaf))
    raise NoKey


def array_for(leaf: Any, type_: ArrayType) -> Any:
    """A leaf that the call takes as an array of type `type_`."""
    if type(leaf) is DeviceArray:
        return leaf
    if isinstance(leaf, (np.ndarray, np.generic)):
        return operators.asarray(leaf)
    return DeviceArray(quietly(np.array, (leaf, type_.dtype)), type_)


class FastCall:
    """All that a repeated call needs.

    Args:
      run: takes arrays, returns arrays.
      captured: arrays that come before the arguments.
      output: the structure of the result.
      donated: which leaves are donated.
      places: which leaves are arrays, and of what type; None if all are concrete arrays.
    """

    __slots__ = ("captured", "donated", "places", "run", "unflatten")

    def __init__(
        self,
        run: Call,
        captured: list[Any],
        output: Structure,
        donated: tuple[int, ...],
        places: Sequence[tuple[int, ArrayType]] | None = None,
    ) -> None:
        self.run = run
        self.captured = captured
        self.unflatten = output.unflatten if output.static_leaves else output.treedef.unflatten
        self.donated = donated
        self.places = places

    def arrays(self, leaves: Sequence[Any]) -> list[Any]:
        """The arrays of leaves that are not all concrete arrays, or not in the order to be run."""
        assert self.places is not None
        return [array_for(leaves[place], type_) for place, type_ in self.places]


def delete_donated(donated: Sequence[Any], outputs: Sequence[DeviceArray]) -> None:
    """Delete donated arrays that an output can take the place of; warn about the others."""
    free: dict[Any, int] = {}
    buffers = {id(output.numpy_view()) for output in outputs}
    for output in outputs:
        key = (output.type.shape, output.type.dtype)
        free[key] = free.get(key, 0) + 1
    unusable: list[str] = []
    given = [array for array in donated if isinstance(array, DeviceArray)]
    # Those whose memory has been taken come first.
    given.sort(key=lambda array: id(array.numpy_view()) not in buffers)
    for array in given:
        key = (array.type.shape, array.type.dtype)
        if free.get(key, 0):
            free[key] -= 1
            array.delete()
        else:
            unusable.append(str(array.type))
    if unusable:
        warn(f"some donated arrays fit no result and were not used: {', '.join(unusable)}")
