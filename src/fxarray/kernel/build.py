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
from typing import Any, TypeAlias

from fxarray.kernel import sizes
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


class NotAffine(Exception):
    """An index of an operand would be no affine expression: the operand must be in memory."""


class SplitAxis(NotAffine):
    """A kernel can be made if one of its axes is written as several.

    Args:
      axis: the axis.
      sizes: of the axes to write it as; the last one varies fastest.
    """

    def __init__(self, axis: str, sizes: tuple[Size, ...]) -> None:
        super().__init__(f"axis {axis} must be split into sizes {sizes}")
        self.axis = axis
        self.sizes = sizes


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
      axes: sizes by name; `axis` adds others.
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

    # --- nodes ------------------------------------------------------------------------------------

    def add(self, node: Node) -> Value:
        """The value of a node."""
        key: Any = node
        if isinstance(node, Load) and node.fill != 0:
            key = (node, repr(node.fill))
        known = self._known.get(key)
        if known is not None:
            return known
        self.value_axes.append(axes_of(node, self.value_axes))
        self.dtypes.append(dtype_of(node, self.body, self.dtypes))
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
        return self.add(Op(op, tuple(args), found))

    def convert(self, value: Value, dtype: str) -> Value:
        """The value in another dtype."""
        same = self.dtypes[value] == dtype
        return value if same else self.add(Op("convert", (value,), dtype))

    def load(self, buffer: Buffer, index: Sequence[IndexLike], fill: Any = 0) -> Value:
        """An element of a buffer, under the guards in force."""
        position = tuple([Affine.of(i) for i in index])
        return self.add(Load(buffer, position, self._guards, fill if self._guards else 0))

    def reduce(self, combiner: str, axes: Sequence[str], *args: Value) -> tuple[Value, ...]:
        """Values combined over axes: one result per state."""
        node = self.add(Reduce(combiner, tuple(args), tuple(axes)))
        if len(args) == 1:
            return (node,)
        return tuple([self.add(Part(node, state)) for state in range(len(args))])

    def scan(
        self,
        combiner: str,
        axis: str,
        *args: Value,
        reverse: bool = False,
        exclusive: bool = False,
    ) -> tuple[Value, ...]:
        """Prefixes along an axis: one result per state."""
        node = self.add(Scan(combiner, tuple(args), axis, reverse, exclusive))
        if len(args) == 1:
            return (node,)
        return tuple([self.add(Part(node, state)) for state in range(len(args))])

    def contract(self, a: Value, b: Value, axes: Sequence[str], dtype: str) -> Value:
        return self.add(Contract(a, b, tuple(axes), dtype))

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

    # --- axes and guards --------------------------------------------------------------------------

    def axis(self, size: Size, used: Iterable[Affine] = ()) -> str:
        """An axis of that size for a reduction: a known one that the result's index does not use.

        Sharing it lets what was reduced be used over the same axis again, in one pass over a row.

        Args:
          size: the size.
          used: the index of the result.
        """
        taken: set[str] = set()
        # Guards speak of the axes outside the reduction.
        for index in (*used, *[affine for affine, _, _ in self._guards]):
            taken.update(index.axes)
            for value in index.values:
                taken |= self.value_axes[value]
        for name, known in self.axes.items():
            if known == size and name not in taken:
                return name
        return self.new_axis(size)

    def new_axis(self, size: Size) -> str:
        name = f"r{len(self.axes)}"
        self.axes[name] = size
        return name

    @contextmanager
    def guarded(self, *bounds: Bound) -> Any:
        """Loads made inside happen only where the bounds hold; elsewhere they give zero."""
        before = self._guards
        self._guards = (*before, *bounds)
        try:
            yield
        finally:
            self._guards = before

    @property
    def guards(self) -> tuple[Bound, ...]:
        return self._guards

    def within(self, bounds: Iterable[Bound]) -> Value:
        """Whether all bounds hold, as a value."""
        result = self.constant(True, "bool")
        for affine, low, high in bounds:
            position = self.iota(affine, "i64")
            above = self.op("ge", position, self.iota(Affine((), low), "i64"))
            below = self.op("lt", position, self.iota(Affine((), high), "i64"))
            result = self.op("and", result, self.op("and", above, below))
        return result

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


__all__ = ["Builder", "Index", "Lowered", "NotAffine", "SplitAxis", "Value", "pruned", "sizes"]
