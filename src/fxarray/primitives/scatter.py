"""Scatters that replace, multiply, and take minima or maxima; scatter-add is in `gather`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from fxarray.core import dims, dtypes
from fxarray.core.primitive import Linear, Primitive, Zero, add_tangents
from fxarray.core.types import ArrayType
from fxarray.primitives import arithmetic
from fxarray.primitives.arithmetic import div, mul
from fxarray.primitives.comparison import eq, select
from fxarray.primitives.convert import convert
from fxarray.primitives.create import Iota, full, zeros
from fxarray.primitives.gather import ScatterAdd, windows_written
from fxarray.primitives.movement import broadcast_in_dim, reshape
from fxarray.primitives.scatter_base import ScatterBase
from fxarray.primitives.support import ANY, NUMBER, ORDERED, number_like
from fxarray.primitives.windows import batch_dims


class Scatter(ScatterBase, name="scatter"):
    """Replace windows of the operand by updates; where windows overlap, the last one stays."""

    EXCUSED: ClassVar[dict[str, str]] = ScatterBase.EXCUSED
    accepts: ClassVar[int] = ANY
    # Which update stays depends on the indices alone, so the operation is linear in the others.
    linear_operands: ClassVar[tuple[int, ...]] = (0, 2)

    def transpose(self, cotangents: Sequence[Any], *operands: Any) -> Sequence[Any]:
        (cotangent,), (x, indices, updates) = cotangents, operands
        results: list[Any] = [None, None, None]
        if type(x) is Linear:
            nothing = broadcast_in_dim(number_like(cotangent, 0), updates.type.shape, ())
            results[0] = self(cotangent, indices, nothing)
        if type(updates) is Linear:
            read = windows_written(self, x.type, updates.type)
            results[2] = read(cotangent, indices)
            if not self.has_one_window(indices.type):
                stays = self._last_writers(x.type, indices, updates.type)
                results[2] = select(stays, results[2], number_like(cotangent, 0))
        return results

    def _last_writers(self, x: ArrayType, indices: Any, updates: ArrayType) -> Any:
        """For each element of the updates, whether no later update overwrites it."""
        over = batch_dims(self.dimension_numbers.update_window_dims, updates.ndim)
        sizes = tuple([updates.shape[d] for d in over])
        numbers = reshape(Iota(dtypes.int32, (dims.shape_product(sizes),), 0)(), sizes)
        numbers = broadcast_in_dim(numbers, updates.shape, over)
        written = self(full(ArrayType(x.shape, dtypes.int32), -1), indices, numbers)
        return eq(windows_written(self, x, updates)(written, indices), numbers)


class ScatterMul(ScatterBase, name="scatter_mul"):
    """Multiply windows of the operand by updates; where windows overlap, by all of them."""

    EXCUSED: ClassVar[dict[str, str]] = ScatterBase.EXCUSED
    accepts: ClassVar[int] = NUMBER
    combine: ClassVar[Any] = np.multiply
    # In the updates it is not jointly linear; `jvp` says the rest.
    linear_operands: ClassVar[tuple[int, ...]] = (0,)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        (x, indices, updates), (x_tangent, _, tangent) = primals, tangents
        outputs = self.bind(*primals)
        total: Any = Zero(outputs[0].type.tangent())
        if type(x_tangent) is not Zero:
            total = self(x_tangent, indices, updates)
        if type(tangent) is not Zero:
            factor = self._other_factors(x, indices, updates)
            total = add_tangents(
                total, self._adder()(zeros(x.type.strong()), indices, mul(tangent, factor))
            )
        return outputs, (total,)

    def _adder(self) -> ScatterAdd:
        return ScatterAdd(
            self.dimension_numbers, self.indices_are_sorted, self.unique_indices, self.mode
        )

    def _other_factors(self, x: Any, indices: Any, updates: Any) -> Any:
        """For each update, the product of everything else that its element is multiplied from."""
        read = windows_written(self, x.type, updates.type)
        if self.has_one_window(indices.type):
            return read(x, indices)
        # The product of all factors but the zeros, divided by the update; a zero among the others
        # makes it zero.
        zero, one = number_like(updates, 0), number_like(updates, 1)
        is_zero = eq(updates, zero)
        divisors = select(is_zero, broadcast_in_dim(one, updates.type.shape, ()), updates)
        product = read(self(x, indices, divisors), indices)
        counts = self._adder()(
            zeros(ArrayType(x.type.shape, dtypes.int32)), indices, convert(is_zero, dtypes.int32)
        )
        zero_count = read(counts, indices)
        others = eq(zero_count, convert(is_zero, dtypes.int32))  # no zero but perhaps itself
        return select(others, div(product, divisors), zero)

    def transpose(self, cotangents: Sequence[Any], *operands: Any) -> Sequence[Any]:
        (cotangent,), (_, indices, updates) = cotangents, operands
        if type(updates) is Linear:
            raise self.missing("transpose", "it is not jointly linear in operand and updates")
        return (self(cotangent, indices, updates), None, None)


class _ScatterExtreme(ScatterBase):
    """The derivative goes to the operand's element or the updates that win, in equal parts."""

    EXCUSED: ClassVar[dict[str, str]] = {
        **ScatterBase.EXCUSED,
        "transpose": "it is not linear in any operand",
    }
    accepts: ClassVar[int] = ORDERED

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        (x, indices, updates), (x_tangent, _, tangent) = primals, tangents
        outputs = self.bind(*primals)
        (output,) = outputs
        if type(x_tangent) is Zero and type(tangent) is Zero:
            return outputs, (Zero(output.type.tangent()),)
        add_to = ScatterAdd(
            self.dimension_numbers, self.indices_are_sorted, self.unique_indices, self.mode
        )
        dtype = output.type.dtype
        read = windows_written(self, x.type, updates.type)
        x_wins = convert(eq(x, output), dtype)
        update_wins = convert(eq(updates, read(output, indices)), dtype)
        # NaN equals nothing, so there may be no winner at all.
        share = arithmetic.max(add_to(x_wins, indices, update_wins), number_like(output, 1))
        total: Any = zeros(x_wins.type)
        if type(x_tangent) is not Zero:
            total = mul(x_tangent, x_wins)
        if type(tangent) is not Zero:
            total = add_to(total, indices, mul(tangent, update_wins))
        return outputs, (div(total, share),)


class ScatterMin(_ScatterExtreme, name="scatter_min"):
    """The least of windows of the operand and updates; NaN if any is NaN."""

    EXCUSED: ClassVar[dict[str, str]] = _ScatterExtreme.EXCUSED
    combine: ClassVar[Any] = np.minimum


class ScatterMax(_ScatterExtreme, name="scatter_max"):
    """The greatest of windows of the operand and updates; NaN if any is NaN."""

    EXCUSED: ClassVar[dict[str, str]] = _ScatterExtreme.EXCUSED
    combine: ClassVar[Any] = np.maximum


KINDS: dict[str, type[Primitive]] = {
    "set": Scatter,
    "add": ScatterAdd,
    "multiply": ScatterMul,
    "min": ScatterMin,
    "max": ScatterMax,
}
