"""Building kernels: a Builder adds nodes and shares equal ones; `Lowered` values are what the
`lower` rules of primitives take and give.

A `Lowered` is an array not yet computed: a shape, a dtype and a function from an index to a value
of the kernel. A rule says how an element of the result is made of elements of the operands; views
are nothing but index arithmetic, and nothing is copied.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from fxarray.core import dtypes
from fxarray.core.dtypes import DType
from fxarray.kernel import sizes
from fxarray.kernel.indices import (
    NoKernel,
    NotAffine,
    SplitAxis,
    always,
    greatest,
    is_at_least,
    least,
)
from fxarray.kernel.ir import (
    Affine,
    Bound,
    Buffer,
    Const,
    Contract,
    IndexLike,
    Iota,
    Kernel,
    Load,
    Node,
    Op,
    Part,
    Reduce,
    Scan,
    Store,
    axes_of,
    dtype_of,
)
from fxarray.kernel.operations import result_dtype
from fxarray.kernel.sizes import Size

Value: TypeAlias = int
Index: TypeAlias = tuple[Affine, ...]
T = TypeVar("T")

# Combiners of values among which any number of equal ones combine to themselves.
_IDEMPOTENT = frozenset(["max", "min", "and", "or"])


def kernel_dtype(dtype: DType) -> str:
    """The name of a dtype in kernels: that of its elements in memory, so keys are u64."""
    return dtypes.short_name(dtypes.physical(dtype))


@dataclass(frozen=True, eq=False)
class Lowered:
    """An array that a kernel computes: `at(index)` is the value of one element.

    Args:
      shape: sizes.
      dtype: short name of its dtype.
      element: from an index, one Affine per dimension, to a value of the kernel. It may be
        called with indices out of range only below a guard (`Builder.guarded`).
    """

    shape: tuple[Size, ...]
    dtype: str
    element: Callable[[Index], Value]

    def at(self, *index: IndexLike) -> Value:
        return self.element(tuple([Affine.of(i) for i in index]))


class Builder:
    """Adds nodes to a kernel; adding an equal node again gives the same value.

    Args:
      name: the kernel's name.
      axes: sizes by name; `over` adds others.
    """

    def __init__(self, name: str, axes: dict[str, Size] | None = None) -> None:
        self.name = name
        self.axes: dict[str, Size] = dict(axes or {})
        self.inputs: list[Buffer] = []
        self.outputs: list[Buffer] = []
        self.body: list[Node] = []
        self.value_axes: list[frozenset[str]] = []
        self.dtypes: list[str] = []
        self._known: dict[Any, Value] = {}
        self._guards: tuple[Bound, ...] = ()
        # Expressions over distinct axes that run through a size, and which of their axes are ours.
        self._spans: list[tuple[Affine, Size]] = []
        for axis, size in self.axes.items():
            self.add_span(Affine.of(axis), size)
        self._own_axes: set[str] = set()
        # The least and the greatest number that integer values can be, where it is known.
        self.ranges: dict[Value, tuple[Size, Size]] = {}

    # --- nodes ------------------------------------------------------------------------------------

    def add(self, node: Node) -> Value:
        """The value of a node."""
        key: Any = node
        if isinstance(node, Load) and node.fill != 0:
            key = (node, repr(node.fill))
        known = self._known.get(key)
        if known is not None:
            return known
        axes = axes_of(node, self.value_axes)
        return self._append(key, node, axes, dtype_of(node, self.body, self.dtypes))

    def _append(self, key: Any, node: Node, axes: frozenset[str], dtype: str) -> Value:
        self.value_axes.append(axes)
        self.dtypes.append(dtype)
        self.body.append(node)
        self._known[key] = len(self.body) - 1
        return len(self.body) - 1

    def input(self, name: str, shape: Iterable[Size], dtype: str) -> Buffer:
        self.inputs.append(Buffer(name, tuple(shape), dtype))
        return self.inputs[-1]

    def output(
        self, name: str, shape: Iterable[Size], dtype: str, alias: str | None = None
    ) -> Buffer:
        self.outputs.append(Buffer(name, tuple(shape), dtype, alias))
        return self.outputs[-1]

    def constant(self, value: Any, dtype: str) -> Value:
        return self.add(Const(value, dtype))

    def iota(self, index: IndexLike, dtype: str = "i32") -> Value:
        return self.add(Iota(Affine.of(index), dtype))

    def op(self, op: str, *args: Value, dtype: str | None = None) -> Value:
        """A scalar operation; `dtype` is needed for conversions."""
        found = dtype or result_dtype(op, tuple([self.dtypes[a] for a in args]))
        node = Op(op, args, found)
        known = self._known.get(node)
        if known is not None:
            return known
        # What `axes_of` finds, at less cost: most nodes are operations.
        axes = self.value_axes[args[0]]
        for argument in args[1:]:
            if not self.value_axes[argument] <= axes:
                axes |= self.value_axes[argument]
        return self._append(node, node, axes, found)

    def convert(self, value: Value, dtype: str) -> Value:
        """The value in another dtype."""
        same = self.dtypes[value] == dtype
        return value if same else self.add(Op("convert", (value,), dtype))

    def load(self, buffer: Buffer, index: Sequence[IndexLike], fill: Any = 0) -> Value:
        """An element of a buffer, under the guards in force where it might not exist."""
        position = tuple([Affine.of(i) for i in index])
        guards = self._guards
        if guards and all(
            always((here, 0, size), self.axes, self.ranges)
            for here, size in zip(position, buffer.shape, strict=True)
        ):
            guards = ()
        return self.add(Load(buffer, position, guards, fill if guards else 0))

    def reduce(self, combiner: str, axes: Sequence[str], *args: Value) -> tuple[Value, ...]:
        """Values combined over axes: one result per state. They need not vary along the axes."""
        have = frozenset[str]().union(*[self.value_axes[a] for a in args])
        constant = [axis for axis in axes if axis not in have]
        if constant:
            args, axes = self._repeated(combiner, axes, constant, args)
        if not axes:
            return tuple(args)
        node = self.add(Reduce(combiner, tuple(args), tuple(axes)))
        return self._parts(node, len(args))

    def _repeated(
        self, combiner: str, axes: Sequence[str], constant: Sequence[str], args: Sequence[Value]
    ) -> tuple[tuple[Value, ...], Sequence[str]]:
        """Arguments and axes of a reduction of values that are the same along some axes."""
        varying = [axis for axis in axes if axis not in constant]
        count = sizes.product([self.axes[axis] for axis in constant])
        some = (sizes.bounds(count)[0] or 0) > 0
        dtype = self.dtypes[args[0]]
        if combiner in _IDEMPOTENT and some:
            return tuple(args), varying
        if combiner == "sum" and some and not dtype.startswith("c"):
            times = self.convert(self.iota(Affine((), count), "i64"), dtype)
            return (self.op("mul", args[0], times),), varying
        return tuple([self.along(value, constant) for value in args]), axes

    def along(self, value: Value, axes: Sequence[str]) -> Value:
        """A value as one that varies along some axes."""
        for axis in axes:
            if axis not in self.value_axes[value]:
                place = self.iota(axis, "i64")
                real = self.op("ge", place, self.constant(0, "i64"))
                value = self.op("select", real, value, value)
        return value

    def _parts(self, node: Value, count: int) -> tuple[Value, ...]:
        if count == 1:
            return (node,)
        return tuple([self.add(Part(node, state)) for state in range(count)])

    def scan(
        self,
        combiner: str,
        axis: str,
        *args: Value,
        reverse: bool = False,
        exclusive: bool = False,
    ) -> tuple[Value, ...]:
        """Prefixes along an axis: one result per state."""
        if not any(axis in self.value_axes[a] for a in args):
            args = (self.along(args[0], (axis,)), *args[1:])
        node = self.add(Scan(combiner, tuple(args), axis, reverse, exclusive))
        return self._parts(node, len(args))

    def contract(self, a: Value, b: Value, axes: Sequence[str], dtype: str) -> Value:
        """The sum of products over axes; what does not vary along one is summed or repeated."""
        both = [axis for axis in axes if axis in self.value_axes[a] & self.value_axes[b]]
        if len(both) < len(axes):
            a, b = self.convert(a, dtype), self.convert(b, dtype)
            only_a = [axis for axis in axes if axis not in self.value_axes[b]]
            only_b = [axis for axis in axes if axis not in both and axis not in only_a]
            (a,), (b,) = self.reduce("sum", only_a, a), self.reduce("sum", only_b, b)
        a, b = self._filled_by_zero(a), self._filled_by_zero(b)
        if not both:
            return self.op("mul", self.convert(a, dtype), self.convert(b, dtype))
        return self.add(Contract(a, b, tuple(both), dtype))

    def store(
        self,
        buffer: Buffer,
        index: Sequence[IndexLike],
        value: Value,
        bounds: Iterable[Bound] = (),
        mode: str = "set",
    ) -> None:
        position = tuple([Affine.of(i) for i in index])
        self.add(Store(buffer, position, value, tuple(bounds), mode))

    def _filled_by_zero(self, value: Value) -> Value:
        """A load whose fill is another number as a choice between that number and the load."""
        node = self.body[value]
        if not isinstance(node, Load) or not node.bounds or node.fill == 0:
            return value
        bare = self.add(Load(node.buffer, node.index, node.bounds))
        other = self.constant(node.fill, node.buffer.dtype)
        return self.op("select", self.within(node.bounds), bare, other)

    # --- axes and guards --------------------------------------------------------------------------

    def new_axis(self, size: Size) -> str:
        """Another axis."""
        number = len(self._own_axes)
        name = f"r{number}"
        self.axes[name] = size
        self._own_axes.add(name)
        self.add_span(Affine.of(name), size)
        return name

    def add_span(self, span: Affine, size: Size) -> None:
        """Make known an expression over axes that runs through 0 ... size - 1.

        Args:
          span: such as an axis, or `4*i + j` with j of size 4.
          size: the number of its values.
        """
        self._spans.append((span, size))

    def over(
        self, lengths: Sequence[Size], used: Iterable[Affine], make: Callable[[Index], T]
    ) -> tuple[tuple[str, ...], T]:
        """What `make` makes of an index that runs through sizes, and the axes it runs over.

        The axes are known ones that nothing uses yet. Sharing them lets what was reduced be used
        over the same axes again, in one pass over a row.

        Args:
          lengths: the sizes.
          used: the index of the result, whose axes are not taken.
          make: called with one index expression per size.
        """
        taken: set[str] = set()
        # Guards speak of the axes outside the reduction.
        for index in (*used, *[affine for affine, _, _ in self._guards]):
            taken.update(index.axes)
            for value in index.values:
                taken |= self.value_axes[value]
        while True:
            spans: list[Affine] = []
            axes: list[str] = []
            for size in lengths:
                spans.append(self._span(size, taken.union(axes)))
                axes.extend(spans[-1].axes)
            try:
                return tuple(axes), make(tuple(spans))
            except SplitAxis as split:
                if split.axis not in axes or split.axis not in self._own_axes:
                    raise
                self._split(split.axis, split.sizes)

    def _span(self, size: Size, taken: set[str]) -> Affine:
        if size == 1:
            return Affine()
        for span, known in self._spans:
            if known == size and taken.isdisjoint(span.axes):
                return span
        return Affine.of(self.new_axis(size))

    def _split(self, axis: str, parts: Sequence[Size]) -> None:
        """Write one of our axes as several from now on."""
        whole, step = Affine(), 1
        for size in reversed(parts):
            whole = whole + Affine.of(self.new_axis(size)) * step
            step = sizes.multiply(step, size)
        self._spans = [(span.replace({axis: whole}), size) for span, size in self._spans]

    @contextmanager
    def guarded(self, *bounds: Bound) -> Any:
        """Loads made inside happen only where the bounds hold; elsewhere they give zero."""
        before = self._guards
        self._guards = (*before, *[bound for bound in bounds if not self.holds(bound)])
        try:
            yield
        finally:
            self._guards = before

    def holds(self, bound: Bound) -> bool:
        """Whether a bound holds everywhere, or as a guard in force."""
        return bound in self._guards or always(bound, self.axes, self.ranges)

    @property
    def guards(self) -> tuple[Bound, ...]:
        return self._guards

    def size_value(self, size: Size, dtype: str) -> Value:
        """A size as a number."""
        if isinstance(size, int):
            return self.constant(size, dtype)
        return self.iota(Affine((), size), dtype)

    def within(self, bounds: Iterable[Bound]) -> Value:
        """Whether all bounds hold, as a value."""
        tests: list[Value] = []
        for affine, low, high in bounds:
            first = least(affine, self.axes, self.ranges)
            last = self.greatest(affine)
            position, dtype = self._position(affine, low, high)
            if first is None or not is_at_least(sizes.subtract(first, low), 0):
                tests.append(self.op("ge", position, self.size_value(low, dtype)))
            if last is None or not is_at_least(sizes.subtract(high, last), 1):
                tests.append(self.op("lt", position, self.size_value(high, dtype)))
        if not tests:
            return self.constant(True, "bool")
        result = tests[0]
        for test in tests[1:]:
            result = self.op("and", result, test)
        return result

    def _position(self, affine: Affine, low: Size, high: Size) -> tuple[Value, str]:
        """An index expression as a number to compare with sizes, and its dtype."""
        if affine.constant == 0 and len(affine.terms) == 1:
            term, coefficient = affine.terms[0]
            if isinstance(term, int) and coefficient == 1 and self.dtypes[term] in ("i32", "i64"):
                ends = [sizes.bounds(size)[1] for size in (low, high)]
                if all(end is not None and end < 2**31 for end in ends):
                    return term, self.dtypes[term]
        dtype = self.index_dtype(affine, low, high)
        return self.iota(affine, dtype), dtype

    def greatest(self, affine: Affine) -> Size | None:
        """The greatest number that an index expression can be; None if that is not known."""
        return greatest(affine, self.axes, self.ranges)

    def index_dtype(self, affine: Affine, *others: Size) -> str:
        """ "i32" where that is known to hold an index expression and some sizes, else "i64"."""
        ends = [
            least(affine, self.axes, self.ranges),
            greatest(affine, self.axes, self.ranges),
            *others,
        ]
        for end in ends:
            low, high = (None, None) if end is None else sizes.bounds(end)
            if low is None or high is None or low < -(2**31) or high >= 2**31:
                return "i64"
        return "i32"

    # --- arrays -----------------------------------------------------------------------------------

    def lowered(
        self, shape: Iterable[Size], dtype: str, element: Callable[[Index], Value]
    ) -> Lowered:
        """An array from its element function, which is asked once per index and guard."""
        memory: dict[Any, Value] = {}

        def remembered(index: Index) -> Value:
            key = (index, self._guards)
            known = memory.get(key)
            if known is None:
                known = memory[key] = element(index)
            return known

        return Lowered(tuple(shape), dtype, remembered)

    def of_buffer(self, buffer: Buffer) -> Lowered:
        """The array in a buffer."""
        return Lowered(buffer.shape, buffer.dtype, lambda index: self.load(buffer, index))

    def number(self, value: Any, dtype: str) -> Lowered:
        """A 0-dimensional array."""
        return Lowered((), dtype, lambda _: self.constant(value, dtype))

    def build(self) -> Kernel:
        """The kernel, without the nodes and inputs that no store needs."""
        return pruned(
            Kernel(
                self.name,
                tuple(self.axes.items()),
                tuple(self.inputs),
                tuple(self.outputs),
                tuple(self.body),
            )
        )


def pruned(kernel: Kernel) -> Kernel:
    """The kernel with only the nodes, axes and inputs that its stores need."""
    from fxarray.kernel.rewrite import keep  # noqa: PLC0415, rewriting builds kernels

    wanted = [number for number, node in enumerate(kernel.body) if isinstance(node, Store)]
    return keep(kernel, wanted)


__all__ = [
    "Builder",
    "Index",
    "Lowered",
    "NoKernel",
    "NotAffine",
    "SplitAxis",
    "Value",
    "kernel_dtype",
    "pruned",
    "sizes",
]
