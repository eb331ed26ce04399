"""Comparison, logic, and choosing between operands: one row per operation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from fxarray.core import dtypes
from fxarray.core.dtypes import DType
from fxarray.core.errors import ArgumentError, DTypeError, ShapeError
from fxarray.core.factors import Factors
from fxarray.core.primitive import Sample, Zero
from fxarray.core.types import ArrayType, Shape
from fxarray.kernel.build import Builder, Lowered
from fxarray.primitives.elementwise_base import (
    Elementwise,
    check_equal_dtypes,
    common_shape,
    row,
)
from fxarray.primitives.lowering import elementwise
from fxarray.primitives.movement import broadcast_in_dim
from fxarray.primitives.support import (
    ANY,
    BITS,
    FLOAT,
    ORDERED,
    Values,
    number_like,
    random_operand,
    sample_dtypes,
)


def _boolean(_: DType) -> DType:
    return dtypes.bool_


def _compare(name: str, function: Any, accepts: int, doc: str) -> Any:
    return row(
        name, function, accepts, arity=2, result=_boolean, fast=function, lowering=name, doc=doc
    )


eq = _compare("eq", np.equal, ANY, "Whether x equals y; NaN equals nothing.")
ne = _compare("ne", np.not_equal, ANY, "Whether x differs from y; NaN differs from everything.")
lt = _compare("lt", np.less, ORDERED, "Whether x is less than y.")
le = _compare("le", np.less_equal, ORDERED, "Whether x is less than or equal to y.")
gt = _compare("gt", np.greater, ORDERED, "Whether x is greater than y.")
ge = _compare("ge", np.greater_equal, ORDERED, "Whether x is greater than or equal to y.")

is_finite = row(
    "is_finite", np.isfinite, FLOAT, result=_boolean, fast=np.isfinite,
    lowering="is_finite",
    doc="Whether x is neither infinite nor NaN.",
)  # fmt: skip

# --- logic and bits -------------------------------------------------------------------------------


def _bitwise(name: str, function: Any, doc: str, arity: int = 2) -> Any:
    return row(name, function, BITS, arity=arity, fast=function, lowering=name, doc=doc)


bitwise_and = _bitwise("and", np.bitwise_and, "The bits set in both x and y; for bools, x and y.")
bitwise_or = _bitwise("or", np.bitwise_or, "The bits set in x or y; for bools, x or y.")
bitwise_xor = _bitwise("xor", np.bitwise_xor, "The bits set in one of x and y; for bools, x != y.")
bitwise_not = _bitwise("not", np.invert, "All bits of x flipped; for bools, not x.", arity=1)

# --- choice ---------------------------------------------------------------------------------------


class SelectN(Elementwise, name="select_n"):
    """Each element from one of several operands: the one that the first operand names.

    The first operand is bool (False names the first case, True the second), or int32, where numbers
    out of range name the nearest case.
    """

    def infer(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        if len(types) < 2:
            raise ArgumentError(f"select_n takes a selector and cases, got {len(types)} operands")
        which, *cases = types
        check_equal_dtypes("select_n (its cases)", cases)
        if dtypes.is_bool(which.dtype):
            if len(cases) > 2:
                raise ArgumentError(
                    f"select_n: the selector is {which}, which chooses between two cases, but "
                    f"there are {len(cases)}. Use an int32 selector."
                )
        elif which.dtype != dtypes.int32:
            raise DTypeError(f"select_n: the selector must be bool or int32, got {which}")
        shape = common_shape("select_n", types)
        return (ArrayType(shape, cases[0].dtype, all(case.weak for case in cases)),)

    def lower(self, builder: Builder, *operands: Lowered) -> tuple[Lowered, ...]:
        return (elementwise(builder, operands, operands[1].dtype, self.scalar),)

    def scalar(self, builder: Builder, *values: int) -> int:
        which, *cases = values
        if len(cases) == 2 and builder.dtypes[which] == "bool":
            return builder.op("select", which, cases[1], cases[0])
        which = builder.convert(which, "i32")
        result = cases[-1]
        for position in range(len(cases) - 2, -1, -1):
            here = builder.op("le", which, builder.constant(position, "i32"))
            result = builder.op("select", here, cases[position], result)
        return result

    def reference(self, *arrays: Values) -> tuple[Values, ...]:
        which, *cases = arrays
        cases = np.broadcast_arrays(*cases) if which.ndim == 0 else cases
        if which.dtype == np.bool_ and len(cases) == 2:
            return (np.asarray(np.where(which, cases[1], cases[0])),)
        number = np.clip(which.astype(np.int64), 0, len(cases) - 1)
        shape = np.broadcast_shapes(which.shape, *[case.shape for case in cases])
        result = np.array(np.broadcast_to(cases[0], shape))
        for position, case in enumerate(cases):
            here = np.broadcast_to(number == position, shape)
            np.copyto(result, case, where=here)
        return (result,)

    def eager(self, *arrays: Values) -> tuple[Values, ...]:
        if len(arrays) != 3 or arrays[0].dtype != np.bool_:
            return self.reference(*arrays)
        return (np.asarray(np.where(arrays[0], arrays[2], arrays[1])),)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        outputs = self.bind(*primals)
        which, *_ = primals
        given = tangents[1:]
        if all(type(tangent) is Zero for tangent in given):
            return outputs, (Zero(outputs[0].type.tangent()),)
        # A scalar zero goes with any shape, and so costs nothing.
        cases = [
            number_like(outputs[0], 0) if type(tangent) is Zero else tangent for tangent in given
        ]
        chosen = self(which, *cases)
        return outputs, (broadcast_scalar(chosen, outputs[0].type.shape),)

    def transposed(self, position: int, cotangent: Any, operands: Sequence[Any]) -> Any:
        which, *cases = operands
        zero = number_like(cotangent, 0)
        return self(
            which,
            *[cotangent if number == position else zero for number, _ in enumerate(cases, 1)],
        )

    def shard(self, *types: ArrayType) -> Factors:
        rank = max(given.ndim for given in types)
        return Factors.elementwise([g.ndim for g in types], [rank], range(1, len(types)))

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Any]:
        op = cls()
        for dtype in sample_dtypes(ANY):
            cases = [random_operand(rng, (2, 3), dtype, (-2.0, 2.0)) for _ in range(3)]
            yield Sample(op, (rng.uniform(size=(2, 3)) > 0.5, *cases[:2]))
            yield Sample(op, (rng.integers(-1, 4, size=(2, 3)).astype("int32"), *cases))
        yield Sample(op, (np.bool_(True), np.float32(1), np.float32(2)))
        yield Sample(op, (np.bool_(True), np.ones(3), np.zeros(3)))
        yield Sample(op, (np.array([True, False]), np.ones(2), np.array(5.0)))
        yield Sample(op, (np.zeros((0,), bool), np.ones(0), np.ones(0)))
        yield Sample(op, (np.array([True, False]), np.ones(2), np.ones(3)), error=ShapeError)
        yield Sample(op, (np.float32(1), np.ones(2), np.ones(2)), error=DTypeError)


def broadcast_scalar(x: Any, shape: Shape) -> Any:
    """`x`, repeated over `shape` if it is 0-dimensional."""
    return x if x.type.shape == shape else broadcast_in_dim(x, shape, ())


_SELECT_N = SelectN()


def select_n(which: Any, *cases: Any) -> Any:
    """Each element from the case that `which` (bool or int32) names."""
    return _SELECT_N(which, *cases)


def select(predicate: Any, on_true: Any, on_false: Any) -> Any:
    """`on_true` where the predicate holds, else `on_false`; each may be 0-dimensional."""
    return _SELECT_N(predicate, on_false, on_true)
