"""What all elementwise operations share, and the factories that make one from a table row.

An elementwise operation takes operands of one dtype whose shapes are equal, except that
0-dimensional operands go with any shape. Everything but its function, dtypes and derivatives
follows from that.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from types import new_class
from typing import Any, ClassVar, TypeAlias

import numpy as np

from fxarray.core import dtypes
from fxarray.core.dtypes import DType
from fxarray.core.errors import ArgumentError, DTypeError, ShapeError
from fxarray.core.factors import Factors
from fxarray.core.hooks import operators
from fxarray.core.primitive import Linear, Primitive, Sample, Zero, add_tangents
from fxarray.core.types import ArrayType, Shape, shape_key
from fxarray.kernel.build import Builder, Lowered, NoKernel, kernel_dtype
from fxarray.primitives.lowering import elementwise
from fxarray.primitives.movement import broadcast_in_dim
from fxarray.primitives.reduce import reduce_sum
from fxarray.primitives.support import (
    NUMBER,
    Values,
    describe_groups,
    group_of,
    quietly,
    random_operand,
    sample_dtypes,
    widened,
)

Derivative: TypeAlias = Callable[..., Any]
Interval: TypeAlias = tuple[float, float]

_LAST_COMPLEX = np.dtype(np.clongdouble).num

ITERATES = "it iterates until its terms are small, which is a routine of a device"


def common_shape(name: str, types: Sequence[ArrayType]) -> Shape:
    """The one shape of all operands that are not 0-dimensional."""
    shape: Shape = ()
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
    """The cotangent of an operand: summed if the operand is 0-dimensional, the result not."""
    if not operand.type.shape and cotangent.type.shape:
        return reduce_sum(cotangent, range(cotangent.type.ndim))
    return cotangent


def check_count(name: str, types: Sequence[ArrayType], count: int) -> None:
    """Raise unless the operation is given `count` operands."""
    if len(types) != count:
        raise ArgumentError(f"{name} takes {count} operands, got {len(types)}")


def check_group(name: str, number: int, given: ArrayType, accepts: int) -> None:
    """Raise unless operand `number` is of an accepted dtype."""
    if not group_of(given.dtype) & accepts:
        raise DTypeError(
            f"{name}: operand {number} is {given}, but {name} takes dtypes: "
            f"{describe_groups(accepts)}. Cast it with .astype()."
        )


def check_equal_dtypes(name: str, types: Sequence[ArrayType]) -> None:
    """Raise unless all operands have one dtype."""
    first = types[0]
    for number, given in enumerate(types):
        if given.dtype != first.dtype:
            raise DTypeError(
                f"{name}: operand {number} is {given}, but operand 0 is {first}; dtypes must be "
                f"equal. Cast one with .astype(), or use fxarray.numpy, which promotes."
            )


class Elementwise(Primitive):
    """An operation on corresponding elements; each row of a table makes a subclass.

    A subclass with parameters overrides `compute`, `derivative` and `transposed`.
    """

    plain_rules: ClassVar[bool] = True
    function: ClassVar[Callable[..., Any]]
    fast: ClassVar[Callable[..., Any] | None] = None
    arity: ClassVar[int] = 1
    accepts: ClassVar[int] = NUMBER
    result: ClassVar[Callable[[DType], DType] | None] = None
    derivatives: ClassVar[tuple[Derivative | None, ...] | None] = None
    transposes: ClassVar[tuple[Derivative | None, ...] | None] = None
    domains: ClassVar[tuple[Interval, ...]] = ((-2.0, 2.0),)
    native: ClassVar[bool] = False
    sampled_derivatives: ClassVar[bool] = True
    lowering: ClassVar[Callable[..., Any] | str | None] = None

    # --- what a row or a subclass says ------------------------------------------------------

    def result_dtype(self, dtype: DType) -> DType:
        """The dtype of the result, given that of the operands."""
        make = type(self).result
        return dtype if make is None else make(dtype)

    def compute(self, *arrays: Values) -> Any:
        """The values, from operands that are widened (unless the row is `native`)."""
        return type(self).function(*arrays)

    def derivative(self, position: int, tangent: Any, output: Any, primals: Sequence[Any]) -> Any:
        """The output's tangent due to that of one operand, or None if it is zero."""
        rules = type(self).derivatives
        rule = None if rules is None else rules[position]
        return None if rule is None else rule(tangent, output, *primals)

    def transposed(self, position: int, cotangent: Any, operands: Sequence[Any]) -> Any:
        """The cotangent of one operand in which the operation is linear, in the result's shape."""
        rules = type(self).transposes
        rule = None if rules is None else rules[position]
        if rule is None:
            raise self.missing("transpose", f"it is not linear in operand {position}")
        return rule(cotangent, *operands)

    def scalar(self, builder: Builder, *values: int) -> int:
        """One element of the result in kernel IR, from elements of the operands."""
        lowering = type(self).lowering
        if lowering is None:
            raise NoKernel(f"{self.name} is no expression of scalar operations")
        if isinstance(lowering, str):
            return builder.op(lowering, *values)
        return lowering(builder, *values)

    # --- rules --------------------------------------------------------------------------------

    def infer(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        check_count(self.name, types, self.arity)
        for number, given in enumerate(types):
            check_group(self.name, number, given, self.accepts)
        check_equal_dtypes(self.name, types)
        return (self.result_type(types),)

    def result_type(self, types: Sequence[ArrayType]) -> ArrayType:
        """The result's type, once the dtypes of the operands are known to be right."""
        dtype = self.result_dtype(types[0].dtype)
        weak = all(given.weak for given in types) and not dtypes.is_bool(dtype)
        return ArrayType(common_shape(self.name, types), dtype, weak)

    def reference(self, *arrays: Values) -> tuple[Values, ...]:
        dtype = dtypes.physical(self.result_dtype(arrays[0].dtype))
        operands = arrays if self.native else [widened(array) for array in arrays]
        with np.errstate(all="ignore"):
            value = np.asarray(self.compute(*operands))
        return (dtypes.cast(value, dtype),)

    def bare_function(self, dtype: DType) -> Callable[..., Any] | None:
        """NumPy's own function for operands of a dtype, if the operation is just that."""
        if type(self).eager is not Elementwise.eager:
            return None
        # float16, and what ml_dtypes adds, have numbers above those of NumPy's other dtypes.
        return None if dtypes.physical(dtype).num > _LAST_COMPLEX else self.fast

    def eager(self, *arrays: Values) -> tuple[Values, ...]:
        fast = self.bare_function(arrays[0].dtype)
        if fast is None:
            return self.reference(*arrays)
        value = quietly(fast, arrays)
        return (value if type(value) is np.ndarray else np.asarray(value),)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        outputs = self.bind(*primals)
        (output,) = outputs
        total: Any = None
        for position, tangent in enumerate(tangents):
            if type(tangent) is not Zero:
                term = self.derivative(position, tangent, output, primals)
                if term is not None:
                    total = term if total is None else add_tangents(total, term)
        if total is None:
            return outputs, (Zero(output.type.tangent()),)
        if total.type.shape != output.type.shape:
            total = broadcast_in_dim(total, output.type.shape, ())
        return outputs, (total,)

    def transpose(self, cotangents: Sequence[Any], *operands: Any) -> Sequence[Any]:
        (cotangent,) = cotangents
        return [
            unbroadcast(self.transposed(position, cotangent, operands), operand)
            if type(operand) is Linear
            else None
            for position, operand in enumerate(operands)
        ]

    def batch(
        self, size: Any, axis_name: Hashable, operands: Sequence[Any], axes: Sequence[int | None]
    ) -> tuple[Sequence[Any], Sequence[int | None]]:
        moved, axis = align_batch_axes(size, operands, axes)
        return self.bind(*moved), (axis,)

    def shard(self, *types: ArrayType) -> Factors:
        rank = max(given.ndim for given in types)
        linear = [i for i, rule in enumerate(self.transposes or ()) if rule is not None]
        return Factors.elementwise([given.ndim for given in types], [rank], linear)

    def lower(self, builder: Builder, *operands: Lowered) -> tuple[Lowered, ...]:
        dtype = kernel_dtype(self.result_dtype(dtypes.from_short_name(operands[0].dtype)))
        return (elementwise(builder, operands, dtype, self.scalar),)

    @classmethod
    def domain(cls, position: int) -> Interval:
        """Where samples of an operand are drawn from; the last domain is that of all others."""
        return cls.domains[min(position, len(cls.domains) - 1)]

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Any]:
        yield from elementwise_samples(cls(), rng)


def elementwise_samples(op: Elementwise, rng: np.random.Generator) -> Iterator[Sample]:
    """Samples of an instance: every group of dtypes, ranks 0 to 2, mixed ranks, unequal shapes."""
    cls = type(op)

    def draw(shapes: Sequence[tuple[int, ...]], dtype: np.dtype[Any]) -> tuple[Values, ...]:
        return tuple(
            random_operand(rng, shape, dtype, cls.domain(position))
            for position, shape in enumerate(shapes)
        )

    accepted = sample_dtypes(cls.accepts)
    scalars = [()] * (cls.arity - 1)
    trials = [([(2, 3)] * cls.arity, dtype) for dtype in accepted]
    trials += [([shape] * cls.arity, accepted[0]) for shape in ((), (0,), (3, 1, 2))]
    if cls.arity > 1:
        trials += [([(4,), *scalars], accepted[0]), ([*scalars, (4,)], accepted[0])]
    for shapes, dtype in trials:
        yield Sample(op, draw(shapes, dtype), differentiable=cls.sampled_derivatives)
    if cls.arity > 1:
        unequal = draw([(2 + i,) for i in range(cls.arity)], accepted[0])
        yield Sample(op, unequal, error=ShapeError)


def align_batch_axes(
    size: Any, operands: Sequence[Any], axes: Sequence[int | None]
) -> tuple[list[Any], int]:
    """Operands of an elementwise operation with their mapped axes in one place, and that place."""
    ranks = [x.type.ndim - (axis is not None) for x, axis in zip(operands, axes, strict=True)]
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
    domain: Interval | tuple[Interval, ...] = (-2.0, 2.0),
    fast: Callable[..., Any] | None = None,
    native: bool = False,
    sampled_derivatives: bool = True,
    lowering: Callable[..., Any] | str | None = None,
    doc: str = "",
    excused: dict[str, str] | None = None,
) -> Any:
    """Make an elementwise operation from one line of a table.

    Args:
      name: its name in `lax`.
      function: its definition on NumPy arrays; floats arrive as float64, complex as complex128.
      accepts: the dtype groups of its operands.
      arity: the number of operands.
      derivatives: per operand, `(tangent, output, *operands) -> tangent`, linear in the tangent.
        None: the derivative is zero everywhere.
      transposes: per operand that it is linear in, `(cotangent, *operands) -> cotangent`.
      result: the output dtype as a function of the operands' (default: the same).
      domain: where to draw samples from: one interval for all operands, or one for each.
      fast: a faster NumPy function for eager mode, given float32, float64, complex and integers.
      native: whether `function` must see the operands in their own dtype.
      sampled_derivatives: whether all derivatives exist at all samples.
      lowering: the kernel-IR operation, or a function from a builder and values of the operands'
        elements to the value of the result's.
      doc: one sentence.
      excused: why rules are missing.
    """
    excuses = dict(excused or {})
    if lowering is None:
        excuses.setdefault("lower", ITERATES)
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
        "domains": domain if isinstance(domain[0], tuple) else (domain,),
        "native": native,
        "sampled_derivatives": sampled_derivatives,
        "lowering": staticmethod(lowering) if callable(lowering) else lowering,
        "differentiable": derivatives is not None,
        "EXCUSED": excuses,
    }
    class_name = "".join(part.capitalize() for part in name.split("_"))
    cls = new_class(
        class_name, (Elementwise,), {"name": name}, lambda space: space.update(attributes)
    )
    instance = cls()
    INSTANCES[name] = instance
    return instance


# Operations without parameters, by name.
INSTANCES: dict[str, Any] = {}
