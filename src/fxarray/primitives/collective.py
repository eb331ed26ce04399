"""Collectives: operations between the places along a named axis of vmap or of a mesh.

Each carries the axis's name and size. Inside, it sees one place's operand; the vmap that holds the
axis replaces it by ordinary operations on all places at once. Over a mesh axis, types say along
which axes values vary: there a sum over an axis no longer varies along it, and is transposed by
`PVary`, which transposes back to the sum. Under vmap nothing is said, every place has its own
cotangent, and the sum is its own transpose.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from fxarray.core import dims, dtypes
from fxarray.core.effects import Effect, NamedAxis
from fxarray.core.errors import ArgumentError, AxisError, DTypeError, ShapeError
from fxarray.core.primitive import Primitive, Zero
from fxarray.core.types import ArrayType, Shape
from fxarray.primitives.arithmetic import div, mul
from fxarray.primitives.comparison import eq
from fxarray.primitives.convert import convert
from fxarray.primitives.create import Iota, zeros
from fxarray.primitives.joining import concatenate
from fxarray.primitives.movement import broadcast_axis, move_axis, reshape
from fxarray.primitives.reduce import reduce_sum
from fxarray.primitives.reductions import reduce_max, reduce_min
from fxarray.primitives.slicing import slice_in_axis
from fxarray.primitives.support import NUMBER, describe_groups, group_of

_ELSEWHERE = "it depends on the operands at other places of the axis; vmap replaces it"
_EXCUSED = {
    "reference": _ELSEWHERE,
    "samples": f"{_ELSEWHERE}, and tests/transforms/test_collectives.py tries it there",
    "shard": "it is itself how devices communicate",
    "lower": "the communication engines run it",
}


class Collective(Primitive):
    """An operation over one named axis, with one operand."""

    axis_name: Hashable
    axis_size: Any
    EXCUSED: ClassVar[dict[str, str]] = _EXCUSED
    linear_operands: ClassVar[tuple[int, ...]] = (0,)

    @property
    def effects(self) -> frozenset[Effect]:
        return frozenset((NamedAxis(self.axis_name),))

    @property
    def axis_names(self) -> tuple[Hashable, ...]:
        return (self.axis_name,)

    def infer(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        (x,) = types
        return (x,)

    def over(self, x: Any, axis: int | None) -> tuple[Any, int | None]:
        """The results at all places, of the operands at all places (`axis` None: all the same)."""
        raise self.missing("batch")

    def shifted(self) -> Collective:
        """This operation for operands with one dimension more in front."""
        return self

    def batch(
        self, size: Any, axis_name: Hashable, operands: Sequence[Any], axes: Sequence[int | None]
    ) -> tuple[Sequence[Any], Sequence[int | None]]:
        (x,), (axis,) = operands, axes
        if axis_name is not None and axis_name == self.axis_name:
            shape = x.type.shape
            place = shape if axis is None else _with(shape, axis)
            self.types(x.type.replace(shape=place))  # nobody else has checked the operand yet
            output, out_axis = self.over(x, axis)
            return (output,), (out_axis,)
        if axis is None:
            return self.bind(x), (None,)
        return self.shifted().bind(move_axis(x, axis, 0)), (0,)

    def along_first(self, x: Any, axis: int | None) -> Any:
        """The operands at all places, stacked along a first dimension."""
        if axis is None:
            return broadcast_axis(x, self.axis_size, 0)
        return move_axis(x, axis, 0)

    def check_dimension(self, dimension: int, rank: int, x: ArrayType) -> None:
        if not 0 <= dimension < rank:
            raise AxisError(f"{self.name}: dimension {dimension} is out of range for operand {x}")

    def check_number(self, x: ArrayType) -> None:
        if not group_of(x.dtype) & NUMBER:
            raise DTypeError(
                f"{self.name}: the operand is {x}; it takes dtypes: {describe_groups(NUMBER)}"
            )


class PSum(Collective, name="psum"):
    """The sum of the operands at all places."""

    def infer(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        (x,) = types
        self.check_number(x)
        return (x.replace(varying=x.varying - {self.axis_name}),)

    def over(self, x: Any, axis: int | None) -> tuple[Any, int | None]:
        return (x * self.axis_size if axis is None else reduce_sum(x, (axis,))), None

    def transpose(self, cotangents: Sequence[Any], *operands: Any) -> Sequence[Any]:
        if self.axis_name in operands[0].type.varying:
            return PVary(self.axis_name, self.axis_size).bind(*cotangents)
        return self.bind(*cotangents)


class PVary(Collective, name="pvary"):
    """The same value, from now on taken to vary along a mesh axis."""

    def infer(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        (x,) = types
        return (x.replace(varying=x.varying | {self.axis_name}),)

    def over(self, x: Any, axis: int | None) -> tuple[Any, int | None]:
        return x, axis

    def transpose(self, cotangents: Sequence[Any], *operands: Any) -> Sequence[Any]:
        return PSum(self.axis_name, self.axis_size).bind(*cotangents)


class _Extremum(Collective):
    linear_operands: ClassVar[tuple[int, ...]] = ()
    EXCUSED: ClassVar[dict[str, str]] = {**_EXCUSED, "transpose": "it is not linear"}

    def infer(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        (x,) = types
        if dtypes.is_complex(x.dtype) or dtypes.is_key(x.dtype):
            raise DTypeError(f"{self.name}: the operand is {x}; dtypes must be ordered")
        return (x.replace(varying=x.varying - {self.axis_name}),)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        # Places that attain the extremum share the derivative evenly, as in a reduction.
        outputs = self.bind(*primals)
        (x,), (tangent,), (output,) = primals, tangents, outputs
        if type(tangent) is Zero:
            return outputs, (Zero(output.type.tangent()),)
        total = PSum(self.axis_name, self.axis_size)
        attained = convert(eq(x, output), x.type.dtype)
        share = div(attained, total(attained))
        return outputs, (total(mul(tangent, share)),)


class PMax(_Extremum, name="pmax"):
    """The greatest of the operands at all places, element by element."""

    def over(self, x: Any, axis: int | None) -> tuple[Any, int | None]:
        return (x if axis is None else reduce_max(x, (axis,))), None


class PMin(_Extremum, name="pmin"):
    """The least of the operands at all places, element by element."""

    def over(self, x: Any, axis: int | None) -> tuple[Any, int | None]:
        return (x if axis is None else reduce_min(x, (axis,))), None


def _with(shape: Shape, dimension: int, *sizes: Any) -> Shape:
    """`shape` with a dimension replaced by others (or by none)."""
    return (*shape[:dimension], *sizes, *shape[dimension + 1 :])


class AllGather(Collective, name="all_gather"):
    """The operands at all places, stacked along a new `dimension` (tiled: joined along it)."""

    dimension: int
    tiled: bool

    def infer(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        (x,) = types
        self.check_dimension(self.dimension, x.ndim + (not self.tiled), x)
        if self.tiled:
            size = x.shape[self.dimension] * self.axis_size
            return (x.replace(shape=_with(x.shape, self.dimension, size)),)
        before, after = x.shape[: self.dimension], x.shape[self.dimension :]
        return (x.replace(shape=(*before, self.axis_size, *after)),)

    def over(self, x: Any, axis: int | None) -> tuple[Any, int | None]:
        stacked = move_axis(self.along_first(x, axis), 0, self.dimension)
        if not self.tiled:
            return stacked, None
        shape = stacked.type.shape
        joined = shape[self.dimension] * shape[self.dimension + 1]
        rest = shape[self.dimension + 2 :]
        return reshape(stacked, (*shape[: self.dimension], joined, *rest)), None

    def shifted(self) -> Collective:
        return AllGather(self.axis_name, self.axis_size, self.dimension + 1, self.tiled)

    def transpose(self, cotangents: Sequence[Any], *operands: Any) -> Sequence[Any]:
        op = PSumScatter(self.axis_name, self.axis_size, self.dimension, self.tiled)
        return op.bind(*cotangents)


class PSumScatter(Collective, name="psum_scatter"):
    """The sum of the operands at all places, of which each place keeps its part of `dimension`."""

    dimension: int
    tiled: bool

    def infer(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        (x,) = types
        self.check_number(x)
        self.check_dimension(self.dimension, x.ndim, x)
        size = x.shape[self.dimension]
        if not self.tiled:
            if not dims.same(size, self.axis_size):
                raise ShapeError(
                    f"psum_scatter: dimension {self.dimension} of {x} must have the size of axis "
                    f"{self.axis_name!r}, {self.axis_size} (or use tiled=True)"
                )
            return (x.replace(shape=_with(x.shape, self.dimension)),)
        part = _part(self, x, self.dimension)
        return (x.replace(shape=_with(x.shape, self.dimension, part)),)

    def over(self, x: Any, axis: int | None) -> tuple[Any, int | None]:
        total = x * self.axis_size if axis is None else reduce_sum(x, (axis,))
        if self.tiled:
            part = _part(self, total.type, self.dimension)
            shape = _with(total.type.shape, self.dimension, self.axis_size, part)
            total = reshape(total, shape)
        return total, self.dimension

    def shifted(self) -> Collective:
        return PSumScatter(self.axis_name, self.axis_size, self.dimension + 1, self.tiled)

    def transpose(self, cotangents: Sequence[Any], *operands: Any) -> Sequence[Any]:
        op = AllGather(self.axis_name, self.axis_size, self.dimension, self.tiled)
        return op.bind(*cotangents)


def _part(op: Collective, x: ArrayType, dimension: int) -> Any:
    """What one place keeps of a dimension that is cut evenly."""
    size = x.shape[dimension]
    if not dims.same(size % op.axis_size, 0):
        raise ShapeError(
            f"{op.name}: dimension {dimension} of {x} cannot be cut evenly into {op.axis_size} "
            f"parts, the size of axis {op.axis_name!r}"
        )
    return size // op.axis_size


class AllToAll(Collective, name="all_to_all"):
    """Each place cuts its operand along `split_dimension` and sends part i to place i.

    What arrives is stacked along a new `concat_dimension` (tiled: cut and joined in place).
    """

    split_dimension: int
    concat_dimension: int
    tiled: bool

    def infer(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        (x,) = types
        split, concat = self.split_dimension, self.concat_dimension
        self.check_dimension(split, x.ndim, x)
        self.check_dimension(concat, x.ndim, x)
        if self.tiled:
            shape = list(_with(x.shape, split, _part(self, x, split)))
            shape[concat] = shape[concat] * self.axis_size
            return (x.replace(shape=tuple(shape)),)
        if not dims.same(x.shape[split], self.axis_size):
            raise ShapeError(
                f"all_to_all: dimension {split} of {x} must have the size of axis "
                f"{self.axis_name!r}, {self.axis_size} (or use tiled=True)"
            )
        rest = _with(x.shape, split)
        return (x.replace(shape=(*rest[:concat], self.axis_size, *rest[concat:])),)

    def over(self, x: Any, axis: int | None) -> tuple[Any, int | None]:
        split, concat = self.split_dimension, self.concat_dimension
        part = _part(self, x.type, split + (axis is not None and axis <= split))
        stacked = self.along_first(x, axis)
        if self.tiled:
            shape = _with(stacked.type.shape, split + 1, self.axis_size, part)
            stacked = reshape(stacked, shape)
        # Now (sender, ..., receiver, ...); wanted: (receiver, ..., sender, ...).
        swapped = move_axis(stacked, split + 1, 0)
        swapped = move_axis(swapped, 1, concat + 1)
        if self.tiled:
            shape = swapped.type.shape
            joined = shape[concat + 1] * shape[concat + 2]
            swapped = reshape(swapped, (*shape[: concat + 1], joined, *shape[concat + 3 :]))
        return swapped, 0

    def shifted(self) -> Collective:
        return AllToAll(
            self.axis_name,
            self.axis_size,
            self.split_dimension + 1,
            self.concat_dimension + 1,
            self.tiled,
        )

    def transpose(self, cotangents: Sequence[Any], *operands: Any) -> Sequence[Any]:
        op = AllToAll(
            self.axis_name,
            self.axis_size,
            self.concat_dimension,
            self.split_dimension,
            self.tiled,
        )
        return op.bind(*cotangents)


def _runs(sources: Sequence[int | None]) -> Iterator[tuple[int | None, int]]:
    """Cut a list into runs of consecutive numbers, or of Nones: their first item and length."""
    start = 0
    for place in range(1, len(sources) + 1):
        first = sources[start]
        expected = None if first is None else first + place - start
        if place == len(sources) or sources[place] != expected:
            yield first, place - start
            start = place


class PPermute(Collective, name="ppermute"):
    """Send the operand from place to place; who receives nothing gets zeros.

    `pairs` are (source, destination); each place occurs at most once as either.
    """

    pairs: tuple[tuple[int, int], ...]

    def infer(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        sources, destinations = [s for s, _ in self.pairs], [d for _, d in self.pairs]
        for which, places in (("sources", sources), ("destinations", destinations)):
            if len(set(places)) != len(places):
                raise ArgumentError(f"ppermute: {which} must be distinct, got {self.pairs}")
            if not all(0 <= place < self.axis_size for place in places):
                raise ArgumentError(
                    f"ppermute: {which} must be places of axis {self.axis_name!r}, from 0 to "
                    f"{self.axis_size - 1}, got {self.pairs}"
                )
        (x,) = types
        return (x,)

    def over(self, x: Any, axis: int | None) -> tuple[Any, int | None]:
        stacked = self.along_first(x, axis)
        sources: list[int | None] = [None] * self.axis_size
        for source, destination in self.pairs:
            sources[destination] = source
        parts: list[Any] = []
        for start, count in _runs(sources):
            if start is None:
                shape = (count, *stacked.type.shape[1:])
                parts.append(zeros(stacked.type.replace(shape=shape)))
            else:
                parts.append(slice_in_axis(stacked, start, start + count, 0))
        return concatenate(parts, 0), 0

    def transpose(self, cotangents: Sequence[Any], *operands: Any) -> Sequence[Any]:
        back = tuple([(destination, source) for source, destination in self.pairs])
        return PPermute(self.axis_name, self.axis_size, back).bind(*cotangents)


class AxisIndex(Primitive, name="axis_index"):
    """The number of this place along a named axis."""

    axis_name: Hashable
    axis_size: Any
    EXCUSED: ClassVar[dict[str, str]] = {**_EXCUSED, "transpose": "it has no operands"}
    differentiable: ClassVar[bool] = False

    @property
    def effects(self) -> frozenset[Effect]:
        return frozenset((NamedAxis(self.axis_name),))

    @property
    def axis_names(self) -> tuple[Hashable, ...]:
        return (self.axis_name,)

    def infer(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        return (ArrayType((), np.dtype(np.int32)),)

    def batch(
        self, size: Any, axis_name: Hashable, operands: Sequence[Any], axes: Sequence[int | None]
    ) -> tuple[Sequence[Any], Sequence[int | None]]:
        if axis_name is not None and axis_name == self.axis_name:
            return Iota(np.dtype(np.int32), (size,), 0).bind(), (0,)
        return self.bind(), (None,)
