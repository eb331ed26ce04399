"""Making arrays from nothing: iota, and zeros of a type."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Any, ClassVar, cast

import numpy as np

from fxarray.core import dtypes
from fxarray.core.array import Array, DeviceArray
from fxarray.core.dtypes import DType
from fxarray.core.errors import AxisError, DTypeError
from fxarray.core.factors import Factors, letters
from fxarray.core.hooks import operators
from fxarray.core.primitive import Primitive, Sample
from fxarray.core.types import ArrayType, Shape
from fxarray.kernel.build import Builder, Index, Lowered, kernel_dtype
from fxarray.kernel.sizes import kernel_shape
from fxarray.primitives.elementwise import add
from fxarray.primitives.movement import BroadcastInDim
from fxarray.primitives.support import NUMBER, group_of


class Iota(Primitive, name="iota"):
    """0, 1, 2, ... along `dimension` of an array of `shape`, repeated along the others."""

    dtype: DType
    shape: Shape
    dimension: int
    EXCUSED: ClassVar[dict[str, str]] = {"transpose": "it has no operands"}
    differentiable: ClassVar[bool] = False

    def infer(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        if not group_of(self.dtype) & NUMBER:
            raise DTypeError(f"iota: dtype must be a number's, got {self.dtype}")
        if not 0 <= self.dimension < len(self.shape):
            raise AxisError(f"iota: dimension {self.dimension} is not one of shape {self.shape}")
        return (ArrayType(self.shape, self.dtype),)

    def reference(self, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        sizes = [1] * len(self.shape)
        shape = cast("tuple[int, ...]", self.shape)
        sizes[self.dimension] = shape[self.dimension]
        values = dtypes.cast(np.arange(shape[self.dimension]), self.dtype)
        return (np.broadcast_to(values.reshape(sizes), shape),)

    def lower(self, builder: Builder, *operands: Lowered) -> tuple[Lowered, ...]:
        dtype = kernel_dtype(self.dtype)

        def element(index: Index) -> int:
            place = index[self.dimension]
            exact = dtype if dtype in ("i32", "i64", "f32", "f64") else builder.index_dtype(place)
            return builder.convert(builder.iota(place, exact), dtype)

        return (builder.lowered(kernel_shape(self.shape), dtype, element),)

    def batch(
        self, size: Any, axis_name: Hashable, operands: Sequence[Any], axes: Sequence[int | None]
    ) -> tuple[Sequence[Any], Sequence[int | None]]:
        return self.bind(), (None,)

    def shard(self, *types: ArrayType) -> Factors:
        names = letters(len(self.shape))
        # A device counts from zero, so the dimension that is counted along must be whole.
        return Factors((), (names,), whole=frozenset([names[self.dimension]]))

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Any]:
        yield Sample(cls(np.dtype("int32"), (0,), 0), ())
        yield Sample(cls(np.dtype("float32"), (3,), 0), ())
        yield Sample(cls(np.dtype("int8"), (2, 3), 1), ())
        yield Sample(cls(np.dtype("int32"), (3,), 1), (), error=AxisError)


def scalar(value: Any, dtype: DType, weak: bool = False) -> DeviceArray:
    """A 0-dimensional concrete array, also while tracing (a Program writes it as a literal)."""
    buffer = np.asarray(value, dtypes.physical(dtype))
    return DeviceArray(buffer, ArrayType((), dtype, weak))


def full(type: ArrayType, value: Any) -> Array:
    """An array of `type` filled with one Python number."""
    filled = scalar(value, type.dtype, type.weak)
    return filled if not type.shape else BroadcastInDim(type.shape, ())(filled)


def zeros(type: ArrayType) -> Array:
    """Zeros of a type."""
    return full(type, 0)


operators.fill(zeros=zeros, add_cotangents=add)
