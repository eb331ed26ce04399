"""Sums over axes. Other reductions stand in `reductions.py`, which needs elementwise operations."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from fxarray.core import dtypes
from fxarray.core.dtypes import DType
from fxarray.core.errors import AxisError, DTypeError
from fxarray.core.factors import Factors, letters
from fxarray.core.hooks import operators
from fxarray.core.primitive import Primitive, Sample, remembered
from fxarray.core.types import ArrayType
from fxarray.kernel.build import Builder, Lowered
from fxarray.primitives.lowering import reduced
from fxarray.primitives.support import NUMBER, describe_groups, group_of, quietly


def check_axes(name: str, axes: tuple[int, ...], type: ArrayType) -> None:
    """Raise unless `axes` are distinct, in range and non-negative."""
    if len(set(axes)) != len(axes) or not all(0 <= axis < type.ndim for axis in axes):
        raise AxisError(f"{name}: axes {axes} must be distinct dimensions of the operand, {type}")


def reduced_type(axes: tuple[int, ...], type: ArrayType) -> ArrayType:
    """`type` without `axes`."""
    shape = tuple([size for i, size in enumerate(type.shape) if i not in axes])
    return ArrayType(shape, type.dtype, type.weak)


def batched_axes(axes: tuple[int, ...], axis: int) -> tuple[tuple[int, ...], int]:
    """Reduced axes when an axis is inserted at `axis`, and where that axis is in the result."""
    moved = tuple([a + (a >= axis) for a in axes])
    return moved, axis - sum(a < axis for a in moved)


class ReduceSum(Primitive, name="reduce_sum"):
    """The sum over `axes`; floats narrower than float32 are summed in float32."""

    axes: tuple[int, ...]
    linear_operands: ClassVar[tuple[int, ...]] = (0,)
    plain_rules: ClassVar[bool] = True

    def infer(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        (x,) = types
        check_axes(self.name, self.axes, x)
        if not group_of(x.dtype) & NUMBER:
            raise DTypeError(
                f"reduce_sum: the operand is {x}; sums take dtypes: {describe_groups(NUMBER)}"
            )
        return (reduced_type(self.axes, x),)

    def reference(self, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        (x,) = arrays
        wide = x.astype(dtypes.physical(dtypes.accumulator(x.dtype)), copy=False)
        with np.errstate(all="ignore"):
            total = np.sum(wide, axis=self.axes, dtype=wide.dtype)
        return (np.asarray(total).astype(x.dtype),)

    def bare_function(self, dtype: DType) -> Callable[..., Any] | None:
        own = dtypes.physical(dtype)
        if own.kind == "V" or own.itemsize < 4:
            return None
        add_up, axes = np.add.reduce, self.axes
        return lambda x: add_up(x, axes, own)

    def eager(self, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        (x,) = arrays
        add_up = self.bare_function(x.dtype)
        if add_up is None:
            return self.reference(x)
        return (np.asarray(quietly(add_up, arrays)),)

    def lower(self, builder: Builder, *operands: Lowered) -> tuple[Lowered, ...]:
        return (reduced(builder, operands[0], self.axes, "sum"),)

    def transpose(self, cotangents: Sequence[Any], *operands: Any) -> Sequence[Any]:
        (cotangent,), (x,) = cotangents, operands
        for axis in sorted(self.axes):
            cotangent = operators.broadcast_axis(cotangent, x.shape[axis], axis)
        return (cotangent,)

    def batch(
        self, size: Any, axis_name: Hashable, operands: Sequence[Any], axes: Sequence[int | None]
    ) -> tuple[Sequence[Any], Sequence[int | None]]:
        (axis,) = axes
        assert axis is not None
        moved, out_axis = batched_axes(self.axes, axis)
        return ReduceSum(moved).bind(*operands), (out_axis,)

    def shard(self, *types: ArrayType) -> Factors:
        names = letters(types[0].ndim)
        kept = tuple(f for i, f in enumerate(names) if i not in self.axes)
        return Factors((names,), (kept,), {names[i]: "sum" for i in self.axes}, linear=(0,))

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Any]:
        yield Sample(cls(()), (np.float32(3),))
        yield Sample(cls((0,)), (rng.normal(size=(0, 2)),))
        yield Sample(cls((0, 2)), (rng.normal(size=(2, 3, 4)).astype("float32"),))
        yield Sample(cls((1,)), (rng.normal(size=(2, 5)).astype("float16"),))
        yield Sample(cls((1,)), (rng.integers(-100, 100, size=(2, 5)).astype("int8"),))
        yield Sample(cls((0,)), (rng.normal(size=3) + 1j * rng.normal(size=3),))
        yield Sample(cls((2,)), (np.ones((2, 3)),), error=AxisError)


def reduce_sum(x: Any, axes: Iterable[int]) -> Any:
    """The sum of `x` over `axes` (non-negative); `x` itself if there are none."""
    axes = tuple(sorted(axes))
    return remembered(ReduceSum, axes)(x) if axes else x
