"""Contractions: sums of products over corresponding dimensions of two operands."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

import numpy as np

from fxarray.core import dims, dtypes
from fxarray.core.dtypes import DType
from fxarray.core.errors import AxisError, DTypeError, ShapeError
from fxarray.core.factors import Factors, letters
from fxarray.core.primitive import Linear, Primitive, Sample, Zero, add_tangents
from fxarray.core.types import ArrayType
from fxarray.kernel.build import Builder, Index, Lowered, kernel_dtype
from fxarray.primitives.lowering import accumulated_in
from fxarray.primitives.movement import transpose
from fxarray.primitives.support import BOOL, NUMBER, describe_groups, group_of, quietly

Axes = tuple[int, ...]


class Roles(NamedTuple):
    """The dimensions of one operand of a contraction, by role."""

    batch: Axes
    contract: Axes
    free: Axes


def _roles(rank: int, contract: Axes, batch: Axes) -> Roles:
    free = tuple([i for i in range(rank) if i not in contract and i not in batch])
    return Roles(batch, contract, free)


@lru_cache(maxsize=4096)
def _both_roles(
    contract: tuple[Axes, Axes], batch: tuple[Axes, Axes], x_rank: int, y_rank: int
) -> tuple[Roles, Roles]:
    return _roles(x_rank, contract[0], batch[0]), _roles(y_rank, contract[1], batch[1])


# The dtypes of which BLAS has products.
_BLAS = frozenset(map(np.dtype, ("float32", "float64", "complex64", "complex128")))


class DotGeneral(Primitive, name="dot_general"):
    """Multiply two arrays and sum over the contracted dimensions.

    The result has the batch dimensions first, then the free dimensions of the first operand, then
    those of the second. Floats narrower than float32 are summed in float32; the sum is rounded to
    the result's dtype once.

    Args:
      contract: contracted dimensions of either operand, in corresponding order.
      batch: dimensions of either operand that go together without a sum.
      result_dtype: the dtype of the result, or None for that of the operands.
      precision: kept for devices that have several.
    """

    contract: tuple[Axes, Axes]
    batch_axes: tuple[Axes, Axes]
    result_dtype: DType | None = None
    precision: str | None = None

    def roles(self, x: Any, y: Any) -> tuple[Roles, Roles]:
        return _both_roles(self.contract, self.batch_axes, len(x.shape), len(y.shape))

    def infer(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        x, y = types
        for number, given in enumerate(types):
            if not group_of(given.dtype) & (NUMBER | BOOL):
                raise DTypeError(
                    f"dot_general: operand {number} is {given}; products take dtypes: "
                    f"{describe_groups(NUMBER | BOOL)}"
                )
            axes = self.contract[number] + self.batch_axes[number]
            if len(set(axes)) != len(axes) or not all(0 <= a < given.ndim for a in axes):
                raise AxisError(
                    f"dot_general: contracted and batch dimensions {axes} of operand {number} "
                    f"must be distinct dimensions of {given}"
                )
        for kind, pairs in (("contracted", self.contract), ("batch", self.batch_axes)):
            if len(pairs[0]) != len(pairs[1]):
                raise ShapeError(
                    f"dot_general: {len(pairs[0])} {kind} dimensions of operand 0 but "
                    f"{len(pairs[1])} of operand 1"
                )
            for i, j in zip(*pairs, strict=True):
                if not dims.same(x.shape[i], y.shape[j]):
                    raise ShapeError(
                        f"dot_general: {kind} dimension {i} of operand 0 ({x}) has size "
                        f"{x.shape[i]}, but dimension {j} of operand 1 ({y}) has size {y.shape[j]}"
                    )
        if x.dtype != y.dtype and self.result_dtype is None:
            raise DTypeError(
                f"dot_general: operand 1 is {y}, but operand 0 is {x}; dtypes must be equal unless "
                f"preferred_element_type says what the result is. Cast one with .astype()."
            )
        left, right = self.roles(x, y)
        shape = (
            *[x.shape[i] for i in left.batch],
            *[x.shape[i] for i in left.free],
            *[y.shape[j] for j in right.free],
        )
        dtype = x.dtype if self.result_dtype is None else self.result_dtype
        weak = x.weak and y.weak and self.result_dtype is None
        return (ArrayType(shape, dtype, weak),)

    def _wide(self, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.dtype]:
        """Operands in the dtype of the sum, and the dtype of the result."""
        result = x.dtype if self.result_dtype is None else self.result_dtype
        accumulators = [dtypes.accumulator(dtype) for dtype in (x.dtype, y.dtype, result)]
        wide = np.result_type(*map(dtypes.physical, accumulators))
        return x.astype(wide, copy=False), y.astype(wide, copy=False), result  # type: ignore[return-value]

    def reference(self, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        left, right = self.roles(*arrays)
        x, y, result = self._wide(*arrays)
        names = iter(range(x.ndim + y.ndim))
        x_names = [next(names) for _ in range(x.ndim)]
        y_names = [next(names) for _ in range(y.ndim)]
        for i, j in zip(left.batch + left.contract, right.batch + right.contract, strict=True):
            y_names[j] = x_names[i]
        out = [x_names[i] for i in left.batch + left.free] + [y_names[j] for j in right.free]
        if result == np.dtype(bool):
            x, y = x.astype(np.int64), y.astype(np.int64)
        with np.errstate(all="ignore"):
            value = np.asarray(np.einsum(x, x_names, y, y_names, out))
        return (dtypes.cast(value, result),)

    def eager(self, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        x, y = arrays
        result = self.result_dtype
        if not (x.dtype == y.dtype and x.dtype in _BLAS and result in (None, x.dtype)):
            x, y, result = self._wide(*arrays)
            if x.dtype.kind not in "fc":
                return self.reference(*arrays)
        if x.ndim <= 2 and y.ndim <= 2 and self.contract == ((x.ndim - 1,), (0,)):
            value = quietly(np.matmul, (x, y))
        else:
            value = self._stacked_product(x, y)
        value = np.asarray(value)
        return (value if result is None or value.dtype == result else dtypes.cast(value, result),)

    def _stacked_product(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """One product of stacks of matrices, which NumPy gives to BLAS."""
        left, right = _both_roles(self.contract, self.batch_axes, x.ndim, y.ndim)
        batch = tuple([x.shape[i] for i in left.batch])
        rows = tuple([x.shape[i] for i in left.free])
        columns = tuple([y.shape[j] for j in right.free])
        depth = prod([x.shape[i] for i in left.contract])
        a = x.transpose(left.batch + left.free + left.contract)
        b = y.transpose(right.batch + right.contract + right.free)
        a = a.reshape(*batch, prod(rows), depth)
        b = b.reshape(*batch, depth, prod(columns))
        return quietly(np.matmul, (a, b)).reshape(batch + rows + columns)

    def lower(self, builder: Builder, *operands: Lowered) -> tuple[Lowered, ...]:
        x, y = operands
        left, right = self.roles(x, y)
        count, first = len(left.batch), len(left.free)
        shape = (
            *[x.shape[i] for i in left.batch + left.free],
            *[y.shape[j] for j in right.free],
        )
        result = x.dtype if self.result_dtype is None else kernel_dtype(self.result_dtype)
        total = accumulated_in(x.dtype, y.dtype, result)

        def element(index: Index) -> int:
            batch, rest = index[:count], index[count:]
            rows, columns = rest[:first], rest[first:]

            def factors(summed: Index) -> tuple[int, int]:
                return (
                    x.element(_placed(left, batch, summed, rows)),
                    y.element(_placed(right, batch, summed, columns)),
                )

            names, (a, b) = builder.over([x.shape[i] for i in left.contract], index, factors)
            return builder.convert(builder.contract(a, b, names, total), result)

        return (builder.lowered(shape, result, element),)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        outputs = self.bind(*primals)
        (x, y), (dx, dy) = primals, tangents
        total: Any = Zero(outputs[0].type.tangent())
        if type(dx) is not Zero:
            total = self(dx, y)
        if type(dy) is not Zero:
            total = add_tangents(total, self(x, dy))
        return outputs, (total,)

    def transpose(self, cotangents: Sequence[Any], *operands: Any) -> Sequence[Any]:
        (cotangent,), (x, y) = cotangents, operands
        left, right = self.roles(x, y)
        count, first = len(left.batch), len(left.free)
        batch = tuple(range(count))
        if type(x) is Linear:
            # The second operand's free dimensions, last in the result, are summed away; what is
            # left is (batch, free, contracted in the order that they have in the second operand).
            summed = tuple(range(count + first, cotangent.type.ndim))
            op = DotGeneral((summed, right.free), (batch, right.batch), x.dtype, self.precision)
            order = sorted(range(len(right.contract)), key=right.contract.__getitem__)
            placed = left.batch + left.free + tuple([left.contract[i] for i in order])
            return transpose(op(cotangent, y), _inverse(placed)), None
        summed = tuple(range(count, count + first))
        op = DotGeneral((summed, left.free), (batch, left.batch), y.dtype, self.precision)
        order = sorted(range(len(left.contract)), key=left.contract.__getitem__)
        placed = right.batch + right.free + tuple([right.contract[i] for i in order])
        return None, transpose(op(cotangent, x), _inverse(placed))

    def batch(
        self, size: Any, axis_name: Hashable, operands: Sequence[Any], axes: Sequence[int | None]
    ) -> tuple[Sequence[Any], Sequence[int | None]]:
        x, y = operands
        contract = tuple([_shifted(c, a) for c, a in zip(self.contract, axes, strict=True)])
        batch = tuple([_shifted(b, a) for b, a in zip(self.batch_axes, axes, strict=True)])
        if axes[0] is not None and axes[1] is not None:
            batch = ((axes[0], *batch[0]), (axes[1], *batch[1]))
            out_axis = 0
        else:
            op = DotGeneral(contract, batch, self.result_dtype, self.precision)  # type: ignore[arg-type]
            left, right = op.roles(x.type, y.type)
            if axes[0] is not None:
                out_axis = len(left.batch) + left.free.index(axes[0])
            else:
                out_axis = len(left.batch) + len(left.free) + right.free.index(axes[1])  # type: ignore[arg-type]
        op = DotGeneral(contract, batch, self.result_dtype, self.precision)  # type: ignore[arg-type]
        return op.bind(x, y), (out_axis,)

    def shard(self, *types: ArrayType) -> Factors:
        x, y = types
        left, right = self.roles(x, y)
        x_names = letters(x.ndim)
        y_names = list(letters(y.ndim, start=x.ndim))
        for i, j in zip(left.batch + left.contract, right.batch + right.contract, strict=True):
            y_names[j] = x_names[i]
        result = (
            *[x_names[i] for i in left.batch + left.free],
            *[y_names[j] for j in right.free],
        )
        vanished = {x_names[i]: "sum" for i in left.contract}
        return Factors((x_names, tuple(y_names)), (result,), vanished, linear=(0, 1))

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Any]:
        def normal(*shape: int) -> np.ndarray:
            return rng.normal(size=shape)

        matrix = (((1,), (0,)), ((), ()))
        yield Sample(cls(*matrix), (normal(0, 3), normal(3, 2)))
        yield Sample(cls(*matrix), (normal(2, 0), np.zeros((0, 3))))
        yield Sample(cls(*matrix), (normal(2, 3).astype("float32"), normal(3, 5).astype("float32")))
        yield Sample(cls(((0,), (0,)), ((), ())), (normal(4), normal(4)))
        yield Sample(cls(((), ()), ((), ())), (normal(2), normal(3)))
        yield Sample(cls(((1, 3), (2, 0)), ((2,), (1,))), (normal(5, 2, 3, 4), normal(4, 3, 2, 6)))
        yield Sample(
            cls(*matrix), (normal(2, 3) + 1j * normal(2, 3), normal(3, 4) - 1j * normal(3, 4))
        )
        yield Sample(
            cls(*matrix),
            (
                rng.integers(-9, 9, (2, 3)).astype("int8"),
                rng.integers(-9, 9, (3, 4)).astype("int8"),
            ),
        )
        half = (normal(2, 3).astype("float16"), normal(3, 4).astype("float16"))
        yield Sample(cls(*matrix), half)
        yield Sample(cls(*matrix, np.dtype("float32")), half)
        yield Sample(cls(*matrix), (normal(2, 3), normal(4, 5)), error=ShapeError)
        yield Sample(cls(((2,), (0,)), ((), ())), (normal(2, 3), normal(4, 5)), error=AxisError)


def _placed(roles: Roles, batch: Index, summed: Index, free: Index) -> Index:
    """The index of an operand, from those of its dimensions by role."""
    places = (*roles.batch, *roles.contract, *roles.free)
    index = dict(zip(places, (*batch, *summed, *free), strict=True))
    return tuple([index[place] for place in range(len(places))])


def _inverse(permutation: Sequence[int]) -> tuple[int, ...]:
    return tuple(sorted(range(len(permutation)), key=permutation.__getitem__))


def _shifted(axes: Axes, inserted: int | None) -> Axes:
    """`axes` after another one is inserted."""
    return axes if inserted is None else tuple([a + (a >= inserted) for a in axes])


def dot_general(
    x: Any,
    y: Any,
    contract: tuple[Sequence[int], Sequence[int]],
    batch: tuple[Sequence[int], Sequence[int]] = ((), ()),
    result_dtype: DType | None = None,
) -> Any:
    """Multiply and sum; see `DotGeneral`."""
    op = DotGeneral(
        (tuple(contract[0]), tuple(contract[1])), (tuple(batch[0]), tuple(batch[1])), result_dtype
    )
    return op(x, y)


def matmul(x: Any, y: Any) -> Any:
    """The product of two matrices, or of two stacks of matrices with equal leading dimensions."""
    rank = x.type.ndim
    lead = tuple(range(rank - 2))
    return dot_general(x, y, ((rank - 1,), (rank - 2,)), (lead, lead))
