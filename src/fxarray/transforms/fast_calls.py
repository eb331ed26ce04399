"""The short way of a repeated `jit` call: from leaves to a key, and from leaves to results.

A call whose leaves are all concrete arrays is known by their types. Other leaves (NumPy arrays,
Python numbers, static values) get keys of their own here; what has none takes the long way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from fxarray.compile.backend import Call
from fxarray.compile.matching import Matcher, matcher
from fxarray.core.array import DeviceArray
from fxarray.core.context import context
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


_LIMIT = 1024
# How many kinds of calls are recognised without flattening, and how often that is tried for each.
_RECOGNISED, _RECOGNITIONS = 4, 3


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
    if type(leaf) is np.ndarray and leaf.dtype is type_.dtype:
        return DeviceArray(leaf.copy(), type_)
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

    __slots__ = ("all_fit", "captured", "donated", "places", "recognitions", "run", "unflatten")

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
        self.recognitions = 0
        self.all_fit: bool | None = None

    def __call__(self, leaves: list[Any]) -> Any:
        """The result of a call with these leaves.

        Raises:
          NotConcreteError: if an array is not concrete; nothing has been run.
        """
        arrays = leaves
        if self.places is not None:
            arrays = [array_for(leaves[place], type_) for place, type_ in self.places]
        if self.captured:
            arrays = self.captured + arrays
        outputs = self.run(arrays)
        if self.donated:
            self._delete_donated([leaves[i] for i in self.donated], outputs)
        return self.unflatten(outputs)

    def _delete_donated(self, given: list[Any], outputs: list[DeviceArray]) -> None:
        if self.all_fit is None:  # the types are the same in all calls
            free = Counter([_fitting(output) for output in outputs])
            self.all_fit = self.places is None and not Counter(map(_fitting, given)) - free
        if not self.all_fit:
            delete_donated(given, outputs)
            return
        try:
            for array in given:
                del array._np
        except AttributeError:  # one was given twice
            for array in given:
                array.delete()


class FastCalls:
    """The short ways of one function.

    Args:
      by_key: by structure, settings and types of a call.
      recognised: the kinds of calls that came last, with what recognises them without flattening,
        under which settings.
    """

    __slots__ = ("by_key", "recognised")

    def __init__(self) -> None:
        self.by_key: dict[Hashable, FastCall] = {}
        self.recognised: tuple[tuple[Matcher, Any, FastCall], ...] = ()

    def remember(self, key: Hashable, fast: FastCall) -> None:
        """Have calls with a key take a short way."""
        if len(self.by_key) >= _LIMIT:
            self.clear()
        self.by_key[key] = fast

    def recognise(
        self,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        static: frozenset[int | str],
        fast: FastCall,
    ) -> None:
        """Have calls like this one, which took a short way, be recognised."""
        if fast.recognitions >= _RECOGNITIONS:
            return  # what its matchers look for does not come again
        fast.recognitions += 1
        match = matcher(args, kwargs, static)
        if match is not None:
            newest = (match, context.settings, fast)
            self.recognised = (newest, *self.recognised[: _RECOGNISED - 1])

    def clear(self) -> None:
        """Forget them."""
        self.by_key.clear()
        self.recognised = ()


def _fitting(array: DeviceArray) -> Hashable:
    """Equal for arrays of which one can take the memory of the other."""
    return (array.type.shape, array.type.dtype)


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
