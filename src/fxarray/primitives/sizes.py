"""A symbolic size as a value, for arithmetic with sizes: `x / n` where n is a dimension of x."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from fxarray.core import dtypes
from fxarray.core.errors import SymbolicSizeError
from fxarray.core.factors import Factors
from fxarray.core.primitive import Primitive, Sample
from fxarray.core.types import ArrayType, Size
from fxarray.kernel.build import Builder, Lowered
from fxarray.kernel.ir import Affine
from fxarray.kernel.sizes import kernel_size
from fxarray.primitives.support import Values


class SizeValue(Primitive, name="size_value"):
    """A size as a 0-dimensional int32, weak like a Python number."""

    size: Size
    EXCUSED: ClassVar[dict[str, str]] = {"transpose": "it has no operands"}
    differentiable: ClassVar[bool] = False

    def infer(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        return (ArrayType((), dtypes.int32, True),)

    def reference(self, *arrays: Values) -> tuple[Values, ...]:
        if type(self.size) is not int:
            raise SymbolicSizeError(
                f"the size {self.size} has no value here; it gets one when a compiled function is "
                f"called with arrays of known sizes"
            )
        return (np.array(self.size, np.int32),)

    def lower(self, builder: Builder, *operands: Lowered) -> tuple[Lowered, ...]:
        size = Affine((), kernel_size(self.size))
        return (builder.lowered((), "i32", lambda _: builder.iota(size, "i32")),)

    def batch(
        self, size: Any, axis_name: Hashable, operands: Sequence[Any], axes: Sequence[int | None]
    ) -> tuple[Sequence[Any], Sequence[int | None]]:
        return self.bind(), (None,)

    def shard(self, *types: ArrayType) -> Factors:
        return Factors((), ((),))

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Any]:
        yield Sample(cls(0), ())
        yield Sample(cls(7), ())


def size_value(size: Size) -> Any:
    """A size as an array."""
    return SizeValue(size)()
