"""Joining arrays along an axis, and splitting one: each is the other's transpose."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from functools import partial
from itertools import accumulate
from typing import Any, ClassVar

import numpy as np

from fxarray.core import dims
from fxarray.core.errors import ArgumentError, AxisError, DTypeError, ShapeError
from fxarray.core.factors import Factors, letters
from fxarray.core.hooks import operators
from fxarray.core.primitive import Linear, Primitive, Sample, Zero, instantiate
from fxarray.core.types import ArrayType, Shape, Size
from fxarray.kernel.build import Builder, Index, Lowered
from fxarray.kernel.sizes import Size as KernelSize
from fxarray.kernel.sizes import add, kernel_shape, subtract
from fxarray.primitives.lowering import shifted, view
from fxarray.primitives.support import Values


def _total(sizes: Sequence[Size]) -> Size:
    total: Size = 0
    for size in sizes:
        total = total + size
    return total


class Concatenate(Primitive, name="concatenate"):
    """The operands one after the other along `axis`; all other sizes agree."""

    axis: int

    def infer(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        if not types:
            raise ArgumentError("concatenate: there must be at least one operand")
        first = types[0]
        if not 0 <= self.axis < first.ndim:
            raise AxisError(
                f"concatenate: axis {self.axis} is not a dimension of operand 0, {first}"
            )
        for number, type in enumerate(types):
            if type.dtype != first.dtype:
                raise DTypeError(
                    f"concatenate: operand {number} is {type}, but operand 0 is {first}; dtypes "
                    f"must be equal. Cast one with .astype(), or use fxarray.numpy, which promotes."
                )
            if type.ndim != first.ndim or not all(
                dims.same(size, expected)
                for axis, (size, expected) in enumerate(zip(type.shape, first.shape, strict=True))
                if axis != self.axis
            ):
                raise ShapeError(
                    f"concatenate: operand {number} is {type}, but operand 0 is {first}; only "
                    f"sizes along axis {self.axis} may differ"
                )
        size = _total([type.shape[self.axis] for type in types])
        shape = (*first.shape[: self.axis], size, *first.shape[self.axis + 1 :])
        return (ArrayType(shape, first.dtype, all(type.weak for type in types)),)

    def reference(self, *arrays: Values) -> tuple[Values, ...]:
        return (np.concatenate(arrays, self.axis),)

    def lower(self, builder: Builder, *operands: Lowered) -> tuple[Lowered, ...]:
        first, axis = operands[0], self.axis
        pieces = [x for x in operands if x.shape[axis] != 0] or [first]
        ends = list(accumulate([x.shape[axis] for x in pieces], add))
        shape = (*first.shape[:axis], ends[-1], *first.shape[axis + 1 :])

        def piece(number: int, index: Index) -> int:
            x = pieces[number]
            position = index[axis] - subtract(ends[number], x.shape[axis])
            with builder.guarded((position, 0, x.shape[axis])):
                return x.element((*index[:axis], position, *index[axis + 1 :]))

        def element(index: Index) -> int:
            value = piece(len(pieces) - 1, index)
            for number in range(len(pieces) - 2, -1, -1):
                # What is not before the end of a piece is in a later one.
                before = index[axis] - ends[number]
                dtype = builder.index_dtype(before)
                end = builder.constant(0, dtype)
                here = builder.op("lt", builder.iota(before, dtype), end)
                value = builder.op("select", here, piece(number, index), value)
            return value

        return (builder.lowered(shape, first.dtype, element),)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        outputs = self.bind(*primals)
        if all(type(tangent) is Zero for tangent in tangents):
            return outputs, (Zero(outputs[0].type.tangent()),)
        return outputs, self.bind(*map(instantiate, tangents))

    def transpose(self, cotangents: Sequence[Any], *operands: Any) -> Sequence[Any]:
        (cotangent,) = cotangents
        sizes = tuple([x.type.shape[self.axis] for x in operands])
        parts = split(cotangent, sizes, self.axis)
        return [
            part if type(x) is Linear else None for part, x in zip(parts, operands, strict=True)
        ]

    def batch(
        self, size: Any, axis_name: Hashable, operands: Sequence[Any], axes: Sequence[int | None]
    ) -> tuple[Sequence[Any], Sequence[int | None]]:
        moved = [
            operators.broadcast_axis(x, size, 0)
            if axis is None
            else operators.move_axis(x, axis, 0)
            for x, axis in zip(operands, axes, strict=True)
        ]
        return Concatenate(self.axis + 1).bind(*moved), (0,)

    def shard(self, *types: ArrayType) -> Factors:
        names = letters(types[0].ndim)
        parts = [f"part{i}" for i in range(len(types))]

        def factors(name: str) -> tuple[str, ...]:
            return (*names[: self.axis], name, *names[self.axis + 1 :])

        return Factors(
            tuple([factors(part) for part in parts]),
            (factors("joined"),),
            dict.fromkeys(parts, "any"),
            frozenset((*parts, "joined")),
            tuple(range(len(types))),
        )

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Any]:
        yield Sample(cls(0), (rng.normal(size=0), rng.normal(size=3)))
        yield Sample(cls(0), (rng.normal(size=4).astype("float32"),))
        yield Sample(cls(1), (rng.normal(size=(2, 1)), rng.normal(size=(2, 0)), np.ones((2, 3))))
        yield Sample(cls(2), tuple(rng.normal(size=(2, 3, n)) for n in (4, 1)))
        yield Sample(cls(0), (np.array([True]), np.array([False, True])))
        yield Sample(cls(0), (np.ones((2, 4)), np.ones((2, 3))), error=ShapeError)
        yield Sample(cls(0), (np.ones(2), np.ones((2, 3))), error=ShapeError)
        yield Sample(cls(1), (np.ones(2), np.ones(3)), error=AxisError)
        yield Sample(cls(0), (np.ones(2), np.ones(3, "float32")), error=DTypeError)


class Split(Primitive, name="split"):
    """Consecutive pieces of the given sizes along `axis`, one result each."""

    sizes: Shape
    axis: int
    linear_operands: ClassVar[tuple[int, ...]] = (0,)

    def infer(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        (x,) = types
        if not 0 <= self.axis < x.ndim:
            raise AxisError(f"split: axis {self.axis} is not a dimension of the operand, {x}")
        negative = any(type(size) is int and size < 0 for size in self.sizes)
        if negative or not dims.same(_total(self.sizes), x.shape[self.axis]):
            raise ShapeError(
                f"split: sizes={self.sizes} must be at least 0 and add up to {x.shape[self.axis]}, "
                f"the size of dimension {self.axis} of {x}"
            )
        before, after = x.shape[: self.axis], x.shape[self.axis + 1 :]
        return tuple([ArrayType((*before, s, *after), x.dtype, x.weak) for s in self.sizes])

    def reference(self, *arrays: Values) -> tuple[Values, ...]:
        stops: list[Any] = list(accumulate(self.sizes))  # type: ignore[type-var]
        before = (slice(None),) * self.axis
        return tuple(
            [
                arrays[0][(*before, slice(stop - size, stop))]
                for size, stop in zip(self.sizes, stops, strict=True)
            ]
        )

    def lower(self, builder: Builder, *operands: Lowered) -> tuple[Lowered, ...]:
        (x,), axis = operands, self.axis
        results: list[Lowered] = []
        start: KernelSize = 0
        for size in kernel_shape(self.sizes):
            shape = (*x.shape[:axis], size, *x.shape[axis + 1 :])
            results.append(view(builder, x, shape, partial(shifted, axis=axis, start=start)))
            start = add(start, size)
        return tuple(results)

    def transpose(self, cotangents: Sequence[Any], *operands: Any) -> Sequence[Any]:
        return (concatenate([instantiate(ct) for ct in cotangents], self.axis),)

    def batch(
        self, size: Any, axis_name: Hashable, operands: Sequence[Any], axes: Sequence[int | None]
    ) -> tuple[Sequence[Any], Sequence[int | None]]:
        (axis,) = axes
        assert axis is not None
        moved = Split(self.sizes, self.axis + (axis <= self.axis))
        return moved.bind(*operands), (axis,) * len(self.sizes)

    def shard(self, *types: ArrayType) -> Factors:
        names = letters(types[0].ndim)
        parts = [f"part{i}" for i in range(len(self.sizes))]
        results = tuple([(*names[: self.axis], p, *names[self.axis + 1 :]) for p in parts])
        whole = names[self.axis]
        return Factors((names,), results, {whole: "any"}, frozenset((*parts, whole)), (0,))

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Any]:
        yield Sample(cls((0, 3), 0), (rng.normal(size=3),))
        yield Sample(cls((2,), 1), (rng.normal(size=(0, 2)).astype("float32"),))
        yield Sample(cls((1, 4, 2), 1), (rng.normal(size=(3, 7, 2)),))
        yield Sample(cls((1, 2), 0), (rng.integers(0, 9, size=(3, 2)).astype("int32"),))
        yield Sample(cls((1, 2), 0), (np.ones((4, 2)),), error=ShapeError)
        yield Sample(cls((1, 2), 2), (np.ones((3, 2)),), error=AxisError)


# --- functions used by rules ----------------------------------------------------------------------


def concatenate(arrays: Sequence[Any], axis: int) -> Any:
    """The arrays one after the other along `axis` (non-negative)."""
    return arrays[0] if len(arrays) == 1 else Concatenate(axis)(*arrays)


def split(x: Any, sizes: Sequence[Size], axis: int) -> tuple[Any, ...]:
    """Consecutive pieces of `x` along `axis` (non-negative)."""
    return (x,) if len(sizes) == 1 else Split(tuple(sizes), axis).bind(x)
