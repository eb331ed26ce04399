"""Binary search in sorted arrays."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from fxarray.core import dims, dtypes
from fxarray.core.dtypes import DType
from fxarray.core.errors import ArgumentError, DTypeError, ShapeError
from fxarray.core.factors import Factors, letters
from fxarray.core.hooks import operators
from fxarray.core.primitive import Primitive, Sample
from fxarray.core.types import ArrayType
from fxarray.primitives.elementwise_base import check_count, check_equal_dtypes, check_group
from fxarray.primitives.support import (
    NUMERIC,
    Values,
    random_operand,
    sample_dtypes,
    widened,
)


class SearchSorted(Primitive, name="searchsorted"):
    """Where to insert each query so that a sorted array stays sorted; NaN comes last.

    The operands are arrays sorted along their last dimension, and queries. The first `batch_rank`
    dimensions of both correspond; all others of the queries are searched for independently.

    Args:
      side: "left" to insert before equal elements, "right" to insert after them.
      index_dtype: the dtype of the result.
      batch_rank: how many leading dimensions correspond.
    """

    side: str
    index_dtype: DType
    batch_rank: int = 0
    EXCUSED: ClassVar[dict[str, str]] = {
        "lower": "it is a loop over the bits of a position, which is a routine of a device",
        "transpose": "it is not linear in any operand",
    }
    differentiable: ClassVar[bool] = False

    def infer(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        check_count(self.name, types, 2)
        for number, given in enumerate(types):
            check_group(self.name, number, given, NUMERIC)
        check_equal_dtypes(self.name, types)
        if self.side not in ("left", "right"):
            raise ArgumentError(f'searchsorted: side={self.side!r} must be "left" or "right"')
        if not dtypes.is_integer(self.index_dtype):
            raise DTypeError(f"searchsorted: {self.index_dtype} is not an integer dtype")
        table, queries = types
        batch = self.batch_rank
        if table.ndim != batch + 1 or queries.ndim < batch:
            raise ShapeError(
                f"searchsorted: operand 0 must have {batch + 1} and operand 1 at least {batch} "
                f"dimensions, got {table} and {queries}"
            )
        if not all(map(dims.same, table.shape[:batch], queries.shape[:batch])):
            raise ShapeError(
                f"searchsorted: the first {batch} dimensions of {table} and {queries} must agree"
            )
        return (ArrayType(queries.shape, self.index_dtype),)

    def reference(self, *arrays: Values) -> tuple[Values, ...]:
        table, queries = map(widened, arrays)
        side: Any = self.side
        found = np.empty(queries.shape, np.int64)
        for lane in np.ndindex(*queries.shape[: self.batch_rank]):
            found[lane] = np.searchsorted(table[lane], queries[lane], side)
        return (dtypes.cast(found, self.index_dtype),)

    def eager(self, *arrays: Values) -> tuple[Values, ...]:
        table, queries = arrays
        if self.batch_rank or table.dtype.kind == "V":
            return self.reference(table, queries)
        side: Any = self.side
        found = np.asarray(np.searchsorted(table, queries, side))
        return (dtypes.cast(found, self.index_dtype),)

    def batch(
        self, size: Any, axis_name: Hashable, operands: Sequence[Any], axes: Sequence[int | None]
    ) -> tuple[Sequence[Any], Sequence[int | None]]:
        if axes[0] is None and self.batch_rank == 0:
            return self.bind(*operands), (axes[1],)
        moved = [
            operators.broadcast_axis(x, size, 0)
            if axis is None
            else operators.move_axis(x, axis, 0)
            for x, axis in zip(operands, axes, strict=True)
        ]
        return SearchSorted(self.side, self.index_dtype, self.batch_rank + 1).bind(*moved), (0,)

    def shard(self, *types: ArrayType) -> Factors:
        names = letters(types[1].ndim)
        table = (*names[: self.batch_rank], "sorted")
        return Factors((table, names), (names,), {"sorted": "any"}, frozenset(("sorted",)))

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Any]:
        int32 = dtypes.int32

        def pair(table: Sequence[int], queries: Sequence[int], dtype: Any) -> tuple[Values, Values]:
            x = np.round(widened(random_operand(rng, tuple(table), dtype, (-3.0, 3.0))))
            y = np.round(widened(random_operand(rng, tuple(queries), dtype, (-4.0, 4.0))))
            return np.sort(x, axis=-1).astype(dtype), y.astype(dtype)

        yield Sample(cls("left", int32), pair((0,), (3,), "float32"))
        yield Sample(cls("right", int32), pair((4,), (0, 2), "float32"))
        yield Sample(cls("right", dtypes.int64), pair((4,), (), "float32"))
        for dtype in sample_dtypes(NUMERIC):
            for side in ("left", "right"):
                yield Sample(cls(side, int32), pair((9,), (3, 5), dtype))
        yield Sample(cls("left", int32, 1), pair((2, 9), (2, 5), "float32"))
        yield Sample(cls("right", int32, 1), pair((3, 7), (3,), "bfloat16"))
        yield Sample(cls("right", int32, 2), pair((3, 2, 7), (3, 2, 4, 5), "int8"))
        special = np.array([-np.inf, -1.0, -0.0, 0.0, np.inf, np.nan, np.nan])
        yield Sample(cls("left", int32), (special, special[::-1][:6].copy()))
        yield Sample(cls("right", int32), (special, special[::-1][:6].copy()))
        yield Sample(cls("middle", int32), pair((4,), (3,), "float32"), error=ArgumentError)
        yield Sample(cls("left", dtypes.float32), pair((4,), (3,), "float32"), error=DTypeError)
        yield Sample(cls("left", int32), pair((4, 3), (2,), "float32"), error=ShapeError)
        yield Sample(cls("left", int32, 1), pair((4, 3), (5, 2), "float32"), error=ShapeError)
        yield Sample(cls("left", int32), (np.ones(3), np.ones(4, "int8")), error=DTypeError)


def searchsorted(
    table: Any, queries: Any, side: str = "left", index_dtype: DType = dtypes.int32
) -> Any:
    """Where to insert each query into a one-dimensional sorted array of the same dtype."""
    return SearchSorted(side, index_dtype)(table, queries)
