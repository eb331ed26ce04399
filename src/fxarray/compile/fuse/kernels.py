"""Kernels of regions: some operations, computed together for the elements of their results.

A `Region` names its operations, operands and results by numbers, so equal parts of a Program (the
layers of a model) are one region, which is lowered once and becomes one kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

from fxarray.compile.fuse.own_axes import with_own_axes
from fxarray.core.caches import register_cache
from fxarray.core.primitive import Primitive
from fxarray.kernel import sizes
from fxarray.kernel.build import Builder, Index, Lowered, Value
from fxarray.kernel.check import check_kernel, checking
from fxarray.kernel.indices import NotAffine, SplitAxis, greatest, is_at_least, least
from fxarray.kernel.ir import Affine, Bound, Buffer, Const, Contract, Iota, Kernel
from fxarray.kernel.sizes import Size

# Contractions of at most so many products are written as a sum of products.
SMALL_CONTRACTION = 1024
# A kernel of more nodes is cut in two: values were needed at more indices than was thought.
MOST_NODES = 1200


@dataclass(frozen=True)
class External:
    """An operand in memory: its number among the region's."""

    number: int


@dataclass(frozen=True)
class Result:
    """A result of one of the region's operations."""

    operation: int
    output: int


Operand: TypeAlias = External | Result | Const


@dataclass(frozen=True)
class Region:
    """Operations that become one kernel.

    Args:
      axes: names and sizes.
      operations: operations and their operands, which are external or results of earlier ones.
      externals: shape and dtype of operands in memory.
      roots: results to be stored, with the index of their elements in terms of the axes.
      types: shape and dtype of the roots.
      spans: expressions over several axes that run through a size, for reductions over such.
    """

    axes: tuple[tuple[str, Size], ...]
    operations: tuple[tuple[Primitive, tuple[Operand, ...]], ...]
    externals: tuple[tuple[tuple[Size, ...], str], ...]
    roots: tuple[tuple[Result, Index], ...]
    types: tuple[tuple[tuple[Size, ...], str], ...]
    spans: tuple[tuple[Affine, Size], ...] = ()


@dataclass(frozen=True)
class RegionKernel:
    """The kernel of a region, and which externals its inputs are."""

    kernel: Kernel
    inputs: tuple[int, ...]

    @cached_property
    def has_contract(self) -> bool:
        return any(isinstance(node, Contract) for node in self.kernel.body)


class Materialise(Exception):
    """A region cannot be one kernel: the results of an operation must be in memory.

    Args:
      operation: its number.
    """

    def __init__(self, operation: int) -> None:
        super().__init__(f"operation {operation} must be in memory")
        self.operation = operation


class FusingBuilder(Builder):
    """A Builder that writes less.

    Small contractions are sums of products, which fuse like all sums. Comparisons of indices that
    have one result everywhere are that result, and so are selections that depend on them: parts of
    joined arrays are read where they are known to be.
    """

    _folds = True
    # Where a kernel of more than MOST_NODES nodes is to be cut.
    cut: int | None = None

    def along(self, value: Value, axes: Sequence[str]) -> Value:
        # It selects between equal values, by a comparison that holds, so as to vary along axes.
        self._folds = False
        try:
            return super().along(value, axes)
        finally:
            self._folds = True

    def op(self, op: str, *args: Value, dtype: str | None = None) -> Value:
        known = self._known_result(op, args) if self._folds else None
        return super().op(op, *args, dtype=dtype) if known is None else known

    def _known_result(self, op: str, args: tuple[Value, ...]) -> Value | None:
        if op in ("lt", "ge"):
            answer = self._compared(*args)
            return None if answer is None else self.constant(answer == (op == "lt"), "bool")
        if op == "select":
            condition = self.body[args[0]]
            if isinstance(condition, Const):
                return args[1] if condition.value else args[2]
        if op == "and" and self.dtypes[args[0]] == "bool":
            for value, other in (args, args[::-1]):
                node = self.body[value]
                if isinstance(node, Const):
                    return other if node.value else value
        return None

    def _compared(self, left: Value, right: Value) -> bool | None:
        """Whether one index is less than another everywhere; None if that is not known."""
        first, second = self._index(left), self._index(right)
        if first is None or second is None:
            return None
        distance = second - first
        low, high = least(distance, self.axes), greatest(distance, self.axes)
        if low is not None and is_at_least(low, 1):
            return True
        if high is not None and is_at_least(sizes.multiply(high, -1), 0):
            return False
        return None

    def _index(self, value: Value) -> Affine | None:
        node = self.body[value]
        if isinstance(node, Iota) and node.dtype in ("i32", "i64"):
            return node.index
        whole = isinstance(node, Const) and node.dtype in ("i32", "i64")
        return Affine((), int(node.value)) if whole else None  # type: ignore[union-attr]

    def contract(self, a: Value, b: Value, axes: Any, dtype: str) -> Value:
        free_a = self.value_axes[a] - self.value_axes[b] - set(axes)
        free_b = self.value_axes[b] - self.value_axes[a] - set(axes)
        every = self.value_axes[a] | self.value_axes[b]
        count = sizes.product([self.axes[name] for name in every])
        few = isinstance(count, int) and count <= SMALL_CONTRACTION
        alone = all(self.axes[name] == 1 for name in (*free_a, *free_b))
        if few or alone:
            product = self.op("mul", self.convert(a, dtype), self.convert(b, dtype))
            return self.reduce("sum", axes, product)[0]
        return super().contract(a, b, axes, dtype)

    def relevant_guards(self, index: Index) -> tuple[Bound, ...]:
        """The guards in force, without those that say nothing of an index.

        An element that does not depend on what a guard speaks of exists whether the guard holds or
        not, so it is the same as outside.
        """
        axes: set[str] = set()
        values: set[int] = set()
        for position in index:
            axes.update(position.axes)
            values.update(position.values)
        for value in values:
            axes |= self.value_axes[value]

        def speaks_of_it(guard: Affine) -> bool:
            if not axes.isdisjoint(guard.axes):
                return True
            # A value in the index may be made of what a value in the guard is made of.
            return any(
                v in values or (values and not axes.isdisjoint(self.value_axes[v]))
                for v in guard.values
            )

        return tuple([guard for guard in self._guards if speaks_of_it(guard[0])])

    def remember(
        self, lowered: Lowered, on_error: Callable[[NotAffine], Exception | None]
    ) -> Lowered:
        """An array whose elements are asked for once per index and relevant guard.

        Args:
          lowered: the array.
          on_error: what to raise instead of an error, or None for the error itself.
        """
        memory: dict[Any, Value] = {}

        # One function for all of this: chains of operations are as deep in calls as they are long.
        def element(index: Index) -> Value:
            before = self._guards
            guards = self.relevant_guards(index) if before else before
            known = memory.get((index, guards))
            if known is not None:
                return known
            if self.cut is not None and len(self.body) > MOST_NODES:
                raise Materialise(self.cut)
            self._guards = guards
            try:
                known = memory[index, guards] = lowered.element(index)
            except NotAffine as error:
                other = on_error(error)
                if other is None:
                    raise
                raise other from error
            finally:
                self._guards = before
            return known

        return Lowered(lowered.shape, lowered.dtype, element)


_KERNELS: dict[Region, RegionKernel] = {}
_LIMIT = 4096


def region_kernel(region: Region) -> RegionKernel:
    """The kernel of a region.

    Raises:
      Materialise: an index would not be affine.
    """
    known = _KERNELS.get(region)
    if known is None:
        known = _lower(region)
        if checking():
            check_kernel(known.kernel)
        if len(_KERNELS) >= _LIMIT:
            _KERNELS.clear()
        _KERNELS[region] = known
    return known


def _lower(region: Region) -> RegionKernel:
    while True:
        try:
            return _Lowering(region).run()
        except SplitAxis as split:
            # Only axes of the results are ours to split: _Lowering made sure of that.
            region = _split(region, split.axis, split.sizes)


def _split(region: Region, axis: str, parts: tuple[Size, ...]) -> Region:
    names = [f"{axis}_{part}" for part in range(len(parts))]
    whole = split_index(names, parts)
    new_axes: list[tuple[str, Size]] = []
    for name, size in region.axes:
        new_axes.extend(zip(names, parts, strict=True) if name == axis else [(name, size)])
    roots = [
        (result, tuple([position.replace({axis: whole}) for position in index]))
        for result, index in region.roots
    ]
    spans = [(span.replace({axis: whole}), size) for span, size in region.spans]
    spans.append((whole, dict(region.axes)[axis]))
    return replace(region, axes=tuple(new_axes), roots=tuple(roots), spans=tuple(spans))


def split_index(names: Any, parts: Any) -> Affine:
    """The index of an axis in terms of the axes that it is split into."""
    whole, step = Affine(), 1
    for name, size in zip(reversed(names), reversed(parts), strict=True):
        whole = whole + Affine(((name, step),))
        step = sizes.multiply(step, size)
    return whole


class _Lowering:
    def __init__(self, region: Region) -> None:
        self.region = region
        self.roots = region.roots
        self.builder = FusingBuilder(_name(region), dict(region.axes))
        for span, size in region.spans:
            self.builder.add_span(span, size)
        if len(region.operations) > 1:
            self.builder.cut = len(region.operations) // 2
        self.results: list[list[Lowered]] = []
        self.externals: dict[int, tuple[Buffer, Lowered]] = {}
        self.own_axes = {name for name, _ in region.axes}

    def run(self) -> RegionKernel:
        builder = self.builder
        for number in range(len(self.region.operations)):
            self.lower(number)
        # Largest first: its axes are those of the loops, and reductions find theirs among them.
        stores: list[list[tuple[Index, Value]]] = []
        for result, index in self.roots:
            pieces = self.pieces(result, index)
            stores.append(pieces or [(index, self.value(result).element(index))])
        for number, (shape, dtype) in enumerate(self.region.types):
            buffer = builder.output(f"y{number}", shape, dtype)
            for index, value in stores[number]:
                builder.store(buffer, index, value)
        kernel = with_own_axes(builder.build())
        numbers = {buffer.name: number for number, (buffer, _) in self.externals.items()}
        return RegionKernel(kernel, tuple([numbers[buffer.name] for buffer in kernel.inputs]))

    def pieces(self, result: Result, index: Index) -> list[tuple[Index, Value]]:
        """What to store where for arrays that are joined and only stored: each by itself."""
        op, operands = self.region.operations[result.operation]
        if op.name != "concatenate" or len(operands) < 2 or len(index) > 8:
            return []
        if any(result in inputs for _, inputs in self.region.operations):
            return []
        axis: int = op.parameters()["axis"]
        place = index[axis]
        others = (*index[:axis], *index[axis + 1 :])
        whole = place.constant == 0 and len(place.terms) == 1 and not place.values
        if not whole or any(place.axes[0] in position.axes for position in others):
            return []
        found: list[tuple[Index, Value]] = []
        start: Size = 0
        for operand in operands:
            piece = self.value(operand)

            def element(spans: Index, piece: Lowered = piece) -> tuple[Affine, Value]:
                return spans[0], piece.element((*index[:axis], spans[0], *index[axis + 1 :]))

            size = piece.shape[axis]
            if size != 0:
                _, (span, value) = self.builder.over([size], others, element)
                found.append(((*index[:axis], span + start, *index[axis + 1 :]), value))
            start = sizes.add(start, size)
        return found

    def value(self, operand: Operand) -> Lowered:
        match operand:
            case Const():
                return self.builder.number(operand.value, operand.dtype)
            case External():
                return self.external(operand.number)
            case Result():
                return self.results[operand.operation][operand.output]

    def external(self, number: int) -> Lowered:
        """A buffer enters the kernel when it is first read."""
        shape, dtype = self.region.externals[number]

        def load(index: Index) -> Value:
            known = self.externals.get(number)
            if known is None:
                buffer = self.builder.input(f"x{len(self.externals)}", shape, dtype)
                known = self.externals[number] = buffer, self.builder.of_buffer(buffer)
            return known[1].element(index)

        return Lowered(shape, dtype, load)

    def lower(self, number: int) -> None:
        """Note the results of an operation, after those of the operations before it."""
        op, operands = self.region.operations[number]

        def on_error(error: NotAffine) -> Exception | None:
            own = isinstance(error, SplitAxis) and error.axis in self.own_axes
            return None if own else Materialise(number)

        try:
            lowered = op.lower(self.builder, *[self.value(operand) for operand in operands])
        except NotAffine as error:
            other = on_error(error)
            if other is None:
                raise
            raise other from error
        self.results.append([self.builder.remember(one, on_error) for one in lowered])


def _name(region: Region) -> str:
    names: list[str] = []
    for op, _ in reversed(region.operations):
        short = op.name.removesuffix("_in_dim").removesuffix("_element_type")
        if short not in names:
            names.append(short)
        if len(names) == 4:
            break
    return "_".join(reversed(names))


register_cache(_KERNELS.clear)
