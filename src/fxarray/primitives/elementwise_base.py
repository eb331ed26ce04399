"""What all elementwise operations share, and the factories that make one from a table row.

An elementwise operation takes operands of one dtype whose shapes are equal, except that
0-dimensional operands go with any shape. Everything but its function, dtypes and derivatives
follows from that.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from fxarray.core import dtypes
from fxarray.core.dtypes import DType
from fxarray.core.errors import DTypeError, ShapeError
from fxarray.core.factors import Factors
from fxarray.core.hooks import operators
from fxarray.core.primitive import Linear, Primitive, Sample, Zero, add_tangents
from fxarray.core.types import ArrayType, shape_key
from fxarray.primitives.movement import broadcast_in_dim
from fxarray.primitives.reduce import reduce_sum
from fxarray.primitives.support import (
    NUMBER,
    describe_groups,
    group_of,
    narrow_in_float32,
    random_operand,
    sample_dtypes,
)

Derivative = Callable[..., Any]


def common_shape(name: str, types: Sequence[ArrayType]) -> tuple[Any, ...]:
    """The one shape of all operands that are not 0-dimensional."""
    shape: tuple[Any, ...] = ()
    owner = 0
    for number, type in enumerate(types):
        if not type.shape:
            continue
        if not shape:
            shape, owner = type.shape, number
        elif type.shape is not shape and shape_key(type.shape) != shape_key(shape):
            raise ShapeError(
                f"{name}: operand {number} is {type}, but operand {owner} is {types[owner]}; "
                f"shapes must be equal (or 0-dimensional). Use the function of fxarray.numpy to "
                f"broadcast."
            )
    return shape


def unbroadcast(cotangent: Any, operand: Linear) -> Any:
    """The cotangent of an operand: summed, if the operand is 0-dimensional and the result is not."""
    if not operand.type.shape and cotangent.type.shape:
        return reduce_sum(cotangent, range(cotangent.type.ndim))
    return cotangent


class Elementwise(Primitive):
    """An operation on corresponding elements; each row of a table makes a subclass."""

    function: ClassVar[Callable[..., Any]]
    fast: ClassVar[Callable[..., Any] | None] = None
    arity: ClassVar[int] = 1
    accepts: ClassVar[int] = NUMBER
    result: ClassVar[Callable[[DType], DType] | None] = None
    derivatives: ClassVar[tuple[Derivative | None, ...] | None] = None
    transposes: ClassVar[tuple[Derivative | None, ...] | None] = None
    domain: ClassVar[tuple[float, float]] = (-2.0, 2.0)
    lowering: ClassVar[Callable[..., Any] | str | None] = None

    def accepted(self, position: int) -> int:
        return self.accepts

    def infer(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        if len(types) != self.arity:
            raise TypeError(f"{self.name} takes {self.arity} operands, got {len(types)}")
        first = types[0]
        for number, given in enumerate(types):
            if not group_of(given.dtype) & self.accepts:
                raise DTypeError(
                    f"{self.name}: operand {number} is {given}, but {self.name} takes dtypes: "
                    f"{describe_groups(self.accepts)}. Cast it with .astype()."
                )
            if given.dtype != first.dtype:
                raise DTypeError(
                    f"{self.name}: operand {number} is {given}, but operand 0 is {first}; dtypes must "
                    f"be equal. Cast one with .astype(), or use fxarray.numpy, which promotes."
                )
        shape = common_shape(self.name, types)
        make = type(self).result
        dtype = first.dtype if make is None else make(first.dtype)
        weak = all(t.weak for t in types) and make is None
        return (ArrayType(shape, dtype, weak),)

    def reference(self, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        dtype = arrays[0].dtype if type(self).result is None else type(self).result(arrays[0].dtype)  # type: ignore[misc]
        with np.errstate(all="ignore"):
            value = type(self).function(*narrow_in_float32(arrays))
        return (np.asarray(value).astype(dtype, copy=False),)

    def eager(self, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        dtype = arrays[0].dtype
        fast = type(self).fast
        if fast is None or dtypes.is_narrow_float(dtype):
            return self.reference(*arrays)
        with np.errstate(all="ignore"):
            return (np.asarray(fast(*arrays)),)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        outputs = self.bind(*primals)
        (output,) = outputs
        if type(self).derivatives is None:
            return outputs, (Zero(output.type.tangent()),)
        total: Any = Zero(output.type.tangent())
        for tangent, derivative in zip(tangents, type(self).derivatives, strict=True):  # type: ignore[arg-type]
            if type(tangent) is not Zero and derivative is not None:
                total = add_tangents(total, derivative(tangent, output, *primals))
        if type(total) is not Zero and total.type.shape != output.type.shape:
            total = broadcast_in_dim(total, output.type.shape, ())
        return outputs, (total,)

    def transpose(self, cotangents: Sequence[Any], *operands: Any) -> Sequence[Any]:
        rules = type(self).transposes
        if rules is None:
            raise self.missing("transpose")
        (cotangent,) = cotangents
        results: list[Any] = []
        for position, (operand, rule) in enumerate(zip(operands, rules, strict=True)):
            if type(operand) is not Linear:
                results.append(None)
            elif rule is None:
                raise self.missing("transpose", f"it is not linear in operand {position}")
            else:
                results.append(unbroadcast(rule(cotangent, *operands), operand))
        return results

    def batch(
        self, size: Any, axis_name: Hashable, operands: Sequence[Any], axes: Sequence[int | None]
    ) -> tuple[Sequence[Any], Sequence[int | None]]:
        moved, axis = align_batch_axes(size, operands, axes)
        return self.bind(*moved), (axis,)

    def shard(self, *types: ArrayType) -> Factors:
        rank = max(t.ndim for t in types)
        linear = tuple(range(self.arity)) if self.transposes is not None else ()
        return Factors.elementwise([t.ndim for t in types], [rank], linear)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Any]:
        op = cls()
        for shape in ((), (0,), (3,), (2, 5)):
            for dtype in sample_dtypes(cls.accepts):
                operands = [random_operand(rng, shape, dtype, cls.domain) for _ in range(cls.arity)]
                yield Sample(op, tuple(operands))
        if cls.arity > 1:
            dtype = sample_dtypes(cls.accepts)[0]
            mixed = [random_operand(rng, (4,), dtype, cls.domain)]
            mixed += [random_operand(rng, (), dtype, cls.domain) for _ in range(cls.arity - 1)]
            yield Sample(op, tuple(mixed))
            yield Sample(op, tuple(reversed(mixed)))
            bad = [np.ones((2 + i,), dtypes.physical(dtype)) for i in range(cls.arity)]
            yield Sample(op, tuple(bad), error=ShapeError)


def align_batch_axes(
    size: Any, operands: Sequence[Any], axes: Sequence[int | None]
) -> tuple[list[Any], int]:
    """Operands of an elementwise operation with their mapped axes in one place, and that place."""
    ranks = [
        x.type.ndim - (axis is not None) for x, axis in zip(operands, axes, strict=True)
    ]
    rank = max(ranks)
    mapped = {axis for axis, r in zip(axes, ranks, strict=True) if axis is not None and r == rank}
    target = mapped.pop() if len(mapped) == 1 else 0
    moved: list[Any] = []
    for x, axis, own_rank in zip(operands, axes, ranks, strict=True):
        if axis is None:
            # 0-dimensional operands go with any shape; others need the axis.
            moved.append(operators.broadcast_axis(x, size, target) if own_rank else x)
            continue
        if own_rank < rank:  # a mapped 0-dimensional operand: spread over the others' shape
            shape = next(
                x2.type.shape if a2 is None else x2.type.shape[:a2] + x2.type.shape[a2 + 1 :]
                for x2, a2, r2 in zip(operands, axes, ranks, strict=True)
                if r2 == rank
            )
            for position, length in enumerate(shape):
                x = operators.broadcast_axis(x, length, position + (position >= target))
            moved.append(x)
            continue
        moved.append(x if axis == target else operators.move_axis(x, axis, target))
    return moved, target


def row(
    name: str,
    function: Callable[..., Any],
    accepts: int,
    *,
    arity: int = 1,
    derivatives: Sequence[Derivative | None] | None = None,
    transposes: Sequence[Derivative | None] | None = None,
    result: Callable[[DType], DType] | None = None,
    domain: tuple[float, float] = (-2.0, 2.0),
    fast: Callable[..., Any] | None = None,
    lowering: Callable[..., Any] | str | None = None,
    doc: str = "",
    excused: dict[str, str] | None = None,
) -> Any:
    """Make an elementwise operation from one line of a table.

    Args:
      name: its name in `lax`.
      function: its definition on NumPy arrays (floats narrower than float32 arrive as float32).
      accepts: the dtype groups of its operands.
      arity: the number of operands.
      derivatives: per operand, `(tangent, output, *operands) -> tangent`, linear in the tangent.
        None: the derivative is zero everywhere.
      transposes: per operand that it is linear in, `(cotangent, *operands) -> cotangent`.
      result: the output dtype as a function of the operands' (default: the same).
      domain: where to draw samples from.
      fast: a faster NumPy function for eager mode.
      lowering: the kernel-IR operation, or a function from kernel values to a kernel value.
      doc: one sentence.
      excused: why rules are missing.
    """
    excuses = {"lower": "elementwise lowering arrives with the kernel compiler", **(excused or {})}
    if transposes is None:
        excuses.setdefault("transpose", "it is not linear in any operand")
    attributes: dict[str, Any] = {
        "__doc__": doc or f"Elementwise {name}.",
        "__module__": __name__,
        "function": staticmethod(function),
        "fast": None if fast is None else staticmethod(fast),
        "arity": arity,
        "accepts": accepts,
        "result": None if result is None else staticmethod(result),
        "derivatives": None if derivatives is None else tuple(derivatives),
        "transposes": None if transposes is None else tuple(transposes),
        "domain": domain,
        "lowering": lowering,
        "differentiable": derivatives is not None,
        "EXCUSED": excuses,
    }
    class_name = "".join(part.capitalize() for part in name.split("_"))
    cls = type(Elementwise)(class_name, (Elementwise,), attributes, name=name)
    instance = cls()
    INSTANCES[name] = instance
    return instance


# Operations without parameters, by name.
INSTANCES: dict[str, Any] = {}
