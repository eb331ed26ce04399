"""What one operation's lower rule does, found by running it once on operands that only record.

The elements of a result at index (i0, i1, ...) need elements of the operands at some indices, some
scalar operations, and maybe a reduction over further axes. Grouping needs nothing else, so it
knows no operation by name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from fxarray.compile.fuse.kernels import FusingBuilder, split_index
from fxarray.core import dtypes
from fxarray.core.caches import register_cache
from fxarray.core.primitive import Primitive
from fxarray.core.types import ArrayType
from fxarray.kernel import sizes
from fxarray.kernel.build import Index, Lowered, Value, kernel_dtype
from fxarray.kernel.indices import NotAffine, SplitAxis
from fxarray.kernel.ir import Affine, Buffer, Contract, Load, Op, Reduce, Scan, Term, arguments
from fxarray.kernel.sizes import Size


@dataclass(frozen=True)
class Opaque:
    """A position that depends on values (a gather), known only by the axes it varies along."""

    axes: frozenset[str]
    key: Any = None


Position: TypeAlias = Affine | Opaque


@dataclass(frozen=True)
class Demand:
    """Elements of an operand that an element of a result needs.

    Args:
      operand: its number.
      index: in terms of the axes "i0", ... of the result, those it is reduced over, and parts
        "i0_0", "i0_1" of axes that must be split.
    """

    operand: int
    index: tuple[Position, ...]


@dataclass(frozen=True)
class Summary:
    """What an element of one result needs.

    Args:
      demands: of operands.
      operations: the number of scalar operations on values that vary.
      cost: their cost, in additions.
      expensive: whether one of them costs as much as an exponential function.
      reduced: axes that it is reduced over, and their sizes.
      scanned: axes of the result along which prefixes are combined.
      contract: whether it is a product of matrices or a convolution.
      splits: dimensions of the result that must be written as several axes, and their sizes.
      same_memory: the operand whose memory the result is, read with another shape; None if it is
        not.
    """

    demands: tuple[Demand, ...]
    operations: int = 0
    cost: int = 0
    expensive: bool = False
    reduced: tuple[tuple[str, Size], ...] = ()
    scanned: frozenset[str] = frozenset()
    contract: bool = False
    splits: tuple[tuple[int, tuple[Size, ...]], ...] = ()
    same_memory: int | None = None

    @property
    def is_view(self) -> bool:
        """Whether it only moves elements."""
        return not (self.operations or self.reduced or self.scanned or self.contract)


_COSTS: dict[str, int] = {
    **dict.fromkeys(["div", "sqrt", "rsqrt", "rem"], 4),
    **dict.fromkeys(["exp", "exp2", "log", "log2", "logistic", "tanh", "expm1", "log1p"], 12),
    **dict.fromkeys(["sin", "cos", "tan", "erf", "erfc", "cbrt", "log10"], 16),
    **dict.fromkeys(["sinh", "cosh", "asin", "acos", "atan", "asinh", "acosh", "atanh"], 20),
    **dict.fromkeys(["pow", "atan2", "erf_inv", "lgamma", "digamma"], 40),
}
EXPENSIVE = 8
# Dtypes of array elements that kernels have: all but those that are no numbers.
_NO_KERNELS = frozenset([dtypes.float0])

_SUMMARIES: dict[Any, tuple[Summary | None, ...]] = {}
_LIMIT = 20_000


def summaries(
    op: Primitive, inputs: Sequence[ArrayType], outputs: Sequence[ArrayType]
) -> tuple[Summary | None, ...]:
    """One summary per result of an operation, None where a kernel cannot compute it."""
    if type(op).lower is Primitive.lower:
        return (None,) * len(outputs)
    key = (op, tuple(inputs))
    known = _SUMMARIES.get(key)
    if known is None:
        if any(t.dtype in _NO_KERNELS for t in (*inputs, *outputs)):
            known = (None,) * len(outputs)
        else:
            known = tuple([_summary(op, inputs, number) for number in range(len(outputs))])
        if len(_SUMMARIES) >= _LIMIT:
            _SUMMARIES.clear()
        _SUMMARIES[key] = known
    return known


def _summary(op: Primitive, inputs: Sequence[ArrayType], number: int) -> Summary | None:
    splits: dict[int, tuple[Size, ...]] = {}
    while True:
        try:
            return _Probe(op, inputs, number, splits).run()
        except SplitAxis as split:
            name = split.axis.removeprefix("i")
            if not name.isdigit() or int(name) in splits:
                return None
            splits[int(name)] = split.sizes
        except NotAffine:
            return None


class _Probe:
    def __init__(
        self,
        op: Primitive,
        inputs: Sequence[ArrayType],
        number: int,
        splits: dict[int, tuple[Size, ...]],
    ) -> None:
        self.builder = FusingBuilder("probe")
        self.splits = splits
        self.indices: dict[tuple[int, Index], None] = {}
        operands = [self.operand(place, type) for place, type in enumerate(inputs)]
        self.result: Lowered = op.lower(self.builder, *operands)[number]

    def operand(self, number: int, type: ArrayType) -> Lowered:
        shape = sizes.kernel_shape(type.shape)
        buffer = self.builder.input(f"x{number}", shape, kernel_dtype(type.dtype))

        def load(index: Index) -> Value:
            self.indices[number, index] = None
            return self.builder.load(buffer, index)

        return Lowered(shape, buffer.dtype, load)

    def run(self) -> Summary:
        builder = self.builder
        index: list[Affine] = []
        own: set[str] = set()
        for dimension, size in enumerate(self.result.shape):
            parts = self.splits.get(dimension)
            names = [f"i{dimension}"]
            if parts is not None:
                names = [f"i{dimension}_{part}" for part in range(len(parts))]
            for name, part in zip(names, parts or (size,), strict=True):
                builder.axes[name] = part
                builder.add_span(Affine.of(name), part)
            own.update(names)
            index.append(split_index(names, parts or (size,)))
        value = self.result.element(tuple(index))
        operations = cost = 0
        expensive = contract = False
        reduced: dict[str, Size] = {}
        scanned: set[str] = set()
        for number in _reached(builder, value):
            node = builder.body[number]
            match node:
                case Op():
                    if builder.value_axes[number] or not own:
                        weight = _COSTS.get(node.op, 1)
                        operations += 1
                        cost += weight
                        expensive = expensive or weight >= EXPENSIVE
                case Reduce() | Contract():
                    reduced.update({name: builder.axes[name] for name in node.axes})
                    contract = contract or isinstance(node, Contract)
                    cost += 1
                    operations += 1
                case Scan():
                    scanned.add(node.axis)
                case _:
                    pass
        return Summary(
            tuple([self.demand(operand, index) for operand, index in self.indices]),
            operations,
            cost,
            expensive,
            tuple(reduced.items()),
            frozenset(scanned),
            contract,
            tuple(self.splits.items()),
            self.same_memory(tuple(index), value),
        )

    def same_memory(self, index: Index, value: Value) -> int | None:
        node = self.builder.body[value]
        if not isinstance(node, Load) or node.bounds or any(i.values for i in node.index):
            return None
        shape = self.result.shape
        if sizes.product(node.buffer.shape) != sizes.product(shape):
            return None
        ones: dict[Term, Affine] = {
            axis: Affine() for axis, size in self.builder.axes.items() if size == 1
        }
        mine = Buffer("y", shape, node.buffer.dtype).flat(index).replace(ones)
        same = mine == node.buffer.flat(node.index).replace(ones)
        return int(node.buffer.name.removeprefix("x")) if same else None

    def demand(self, operand: int, index: Index) -> Demand:
        return Demand(operand, tuple(map(self.position, index)))

    def position(self, affine: Affine) -> Position:
        if not affine.values:
            return affine
        axes = frozenset(affine.axes)
        return Opaque(axes.union(*[self.builder.value_axes[v] for v in affine.values]))


def _reached(builder: FusingBuilder, value: Value) -> list[int]:
    found = {value}
    stack = [value]
    while stack:
        node = builder.body[stack.pop()]
        for argument in arguments(node):
            if argument not in found:
                found.add(argument)
                stack.append(argument)
    return sorted(found)


register_cache(_SUMMARIES.clear)
