"""The nodes of the kernel IR.

A kernel is straight-line code in static single assignment form over named axes. A value is known by
its position in `Kernel.body`; its axes are derived and never written: the union of the axes of what
it reads, less those that a reduction removes. Nothing here says in which order, in what tiles or
on which lanes a value is computed. That is a schedule, and each device makes its own.

    >>> from fxarray.kernel.build import Builder
    >>> k = Builder("scale", {"i": 4})
    >>> x, y = k.input("x", (4,), "f32"), k.output("y", (4,), "f32")
    >>> k.store(y, ("i",), k.op("mul", k.load(x, ("i",)), k.constant(2.0, "f32")))
    >>> print(k.build())
    kernel scale(x: f32[4]) -> y: f32[4] over i=4:
      v0: f32{i} = load x[i]
      v1: f32{} = 2.0
      v2: f32{i} = mul v0, v1
      y[i] = v2
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

from fxarray.kernel import sizes
from fxarray.kernel.combiners import COMBINERS
from fxarray.kernel.sizes import Size

Term: TypeAlias = str | int


@dataclass(frozen=True)
class Affine:
    """`constant + sum(coefficient * term)`: the only arithmetic of indices.

    Args:
      terms: pairs of a term and its coefficient. A term is the name of an axis, or the number of an
        integer value of the kernel, which makes a gather.
      constant: what is added.
    """

    terms: tuple[tuple[Term, Size], ...] = ()
    constant: Size = 0

    # Indices are keys of much that is remembered while a kernel is built.
    @cached_property
    def _hash(self) -> int:
        return hash((self.terms, self.constant))

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> Any:
        # A hash is good in one process only.
        return (Affine, (self.terms, self.constant))

    @staticmethod
    def of(index: IndexLike) -> Affine:
        """An axis by its name, a number, or an Affine as it is."""
        if isinstance(index, Affine):
            return index
        if isinstance(index, str):
            return Affine(((index, 1),))
        return Affine((), index)

    def __add__(self, other: IndexLike) -> Affine:
        right = Affine.of(other)
        total: dict[Term, Size] = dict(self.terms)
        for term, coefficient in right.terms:
            total[term] = sizes.add(total.get(term, 0), coefficient)
        kept = [(term, c) for term, c in total.items() if c != 0]
        kept.sort(key=lambda pair: (isinstance(pair[0], int), str(pair[0])))
        return Affine(tuple(kept), sizes.add(self.constant, right.constant))

    def __mul__(self, factor: Size) -> Affine:
        if factor == 0:
            return Affine()
        scaled = tuple([(term, sizes.multiply(c, factor)) for term, c in self.terms])
        return Affine(scaled, sizes.multiply(self.constant, factor))

    def __sub__(self, other: IndexLike) -> Affine:
        return self + Affine.of(other) * -1

    @cached_property
    def axes(self) -> tuple[str, ...]:
        """The axes among the terms."""
        return tuple([term for term, _ in self.terms if isinstance(term, str)])

    @cached_property
    def values(self) -> tuple[int, ...]:
        """The values among the terms."""
        return tuple([term for term, _ in self.terms if isinstance(term, int)])

    def coefficient(self, term: Term) -> Size:
        """The coefficient of a term, 0 if it is none of this."""
        return next((c for known, c in self.terms if known == term), 0)

    def replace(self, changes: Mapping[Term, Affine]) -> Affine:
        """With terms replaced by index expressions."""
        result = Affine((), self.constant)
        for term, coefficient in self.terms:
            result = result + changes.get(term, Affine(((term, 1),))) * coefficient
        return result


IndexLike: TypeAlias = "Affine | str | int | sizes.Polynomial"
Bound: TypeAlias = tuple[Affine, Size, Size]


@dataclass(frozen=True)
class Buffer:
    """Memory that a kernel reads or writes: row-major, contiguous, aligned to its elements.

    Args:
      name: unique in its kernel.
      shape: sizes.
      dtype: the short name of a dtype, such as "f32".
      alias: for an output, the input whose memory it may be: each element of that input is read
        only by what computes the element of the output that overwrites it.
    """

    name: str
    shape: tuple[Size, ...]
    dtype: str
    alias: str | None = None

    @cached_property
    def strides(self) -> tuple[Size, ...]:
        """In elements; never 0, so that accesses walk all axes of an index even if one is empty."""
        result: list[Size] = []
        step: Size = 1
        for size in reversed(self.shape):
            result.append(step)
            step = sizes.multiply(step, 1 if size == 0 else size)
        return tuple(reversed(result))

    def flat(self, index: tuple[Affine, ...]) -> Affine:
        """The offset in elements of an index."""
        total = Affine()
        for position, stride in zip(index, self.strides, strict=True):
            total = total + position * stride
        return total

    @cached_property
    def _hash(self) -> int:
        return hash((self.name, self.shape, self.dtype, self.alias))

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> Any:
        return (Buffer, (self.name, self.shape, self.dtype, self.alias))


@dataclass(frozen=True, eq=False)
class Const:
    """A number; complex ones as Python complex, NaN and infinities as floats."""

    value: complex | float | int | bool
    dtype: str

    # 0.0 and -0.0 are equal to Python, 1 and True too, and NaN is not equal to itself.
    def __eq__(self, other: object) -> bool:
        return isinstance(other, Const) and self._exact == other._exact

    def __hash__(self) -> int:
        return hash(self._exact)

    @property
    def _exact(self) -> tuple[str, str]:
        return (repr(self.value), self.dtype)


@dataclass(frozen=True)
class Iota:
    """The value of an index expression, as a number."""

    index: Affine
    dtype: str


@dataclass(frozen=True)
class Load:
    """`buffer[index]`; where a bound `(affine, low, high)` does not hold, `fill`, and no access.

    A bound holds where low <= affine < high.
    """

    buffer: Buffer
    index: tuple[Affine, ...]
    bounds: tuple[Bound, ...] = ()
    fill: complex | float | int | bool = 0


@dataclass(frozen=True)
class Op:
    """A scalar operation (`kernel.operations` lists them) of values of equal shape."""

    op: str
    args: tuple[int, ...]
    dtype: str


@dataclass(frozen=True)
class Reduce:
    """Combine values over axes with a combiner of `kernel.combiners`.

    A combiner of n states takes n args and has n results, read by `Part`.
    """

    combiner: str
    args: tuple[int, ...]
    axes: tuple[str, ...]


@dataclass(frozen=True)
class Part:
    """One result of a Reduce or Scan whose combiner has several states."""

    arg: int
    which: int


@dataclass(frozen=True)
class Scan:
    """Prefixes of a combination along one axis, which stays.

    Args:
      combiner: as of Reduce.
      args: one value per state.
      axis: the axis.
      reverse: from the end.
      exclusive: without the own element.
    """

    combiner: str
    args: tuple[int, ...]
    axis: str
    reverse: bool = False
    exclusive: bool = False


@dataclass(frozen=True)
class Contract:
    """`sum(a * b)` over axes, accumulated in `dtype`.

    An axis of both operands that is not summed is a batch axis. Where an operand is a Load with
    bounds, its fill must be zero.
    """

    a: int
    b: int
    axes: tuple[str, ...]
    dtype: str


@dataclass(frozen=True)
class Store:
    """`buffer[index] = value` where all bounds hold; `mode` "set", "add", "mul", "min" or "max".

    With mode "set" no two positions have one index. In other modes the results are combined with
    what the buffer holds, in the order of the axes of the kernel.
    """

    buffer: Buffer
    index: tuple[Affine, ...]
    value: int
    bounds: tuple[Bound, ...] = ()
    mode: str = "set"


Node: TypeAlias = Const | Iota | Load | Op | Reduce | Part | Scan | Contract | Store


def arguments(node: Node) -> tuple[int, ...]:
    """The values that a node reads."""
    match node:
        case Load():
            inside = [v for index in node.index for v in index.values]
            return (*inside, *[v for affine, _, _ in node.bounds for v in affine.values])
        case Op() | Reduce() | Scan():
            return node.args
        case Part():
            return (node.arg,)
        case Contract():
            return (node.a, node.b)
        case Store():
            inside = [v for index in node.index for v in index.values]
            guards = [v for affine, _, _ in node.bounds for v in affine.values]
            return (node.value, *inside, *guards)
        case Iota():
            return node.index.values
        case Const():
            return ()


def direct_axes(node: Node) -> tuple[str, ...]:
    """The axes that a node's own indices name."""
    match node:
        case Load() | Store():
            inside = [a for index in node.index for a in index.axes]
            return (*inside, *[a for affine, _, _ in node.bounds for a in affine.axes])
        case Iota():
            return node.index.axes
        case _:
            return ()


@dataclass(frozen=True)
class Kernel:
    """One kernel.

    Args:
      name: for reading.
      axes: pairs of a name and a size.
      inputs: buffers that are read.
      outputs: buffers that are written.
      body: the nodes; a value is known by its position.
    """

    name: str
    axes: tuple[tuple[str, Size], ...]
    inputs: tuple[Buffer, ...]
    outputs: tuple[Buffer, ...]
    body: tuple[Node, ...]

    @cached_property
    def sizes(self) -> dict[str, Size]:
        """The size of each axis."""
        return dict(self.axes)

    @cached_property
    def value_axes(self) -> tuple[frozenset[str], ...]:
        """The axes of each value."""
        known: list[frozenset[str]] = []
        for node in self.body:
            known.append(axes_of(node, known))
        return tuple(known)

    @cached_property
    def dtypes(self) -> tuple[str, ...]:
        """The dtype of each value."""
        known: list[str] = []
        for node in self.body:
            known.append(dtype_of(node, self.body, known))
        return tuple(known)

    @cached_property
    def size_variables(self) -> tuple[str, ...]:
        """The names of sizes that are given at run time, in order."""
        found: set[str] = set()
        for part in sizes_in(self):
            found |= sizes.variables(part)
        return tuple(sorted(found))

    @cached_property
    def _hash(self) -> int:
        return hash((self.axes, self.inputs, self.outputs, self.body))

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> Any:
        return (Kernel, (self.name, self.axes, self.inputs, self.outputs, self.body))

    def __str__(self) -> str:
        from fxarray.kernel.pretty import text  # noqa: PLC0415, it prints what is defined here

        return text(self)


def axes_of(node: Node, known: Any) -> frozenset[str]:
    """The axes of a node's value, given those of the values before it."""
    found = frozenset(direct_axes(node)).union(*[known[v] for v in arguments(node)])
    if isinstance(node, Reduce | Contract):
        return found - frozenset(node.axes)
    return found


def dtype_of(node: Node, body: Any, known: Any) -> str:
    """The dtype of a node's value, given the nodes and dtypes before it."""
    match node:
        case Load() | Store():
            return node.buffer.dtype
        case Const() | Iota() | Op() | Contract():
            return node.dtype
        case Reduce() | Scan():
            return known[node.args[0]]
        case Part():
            return known[body[node.arg].args[node.which]]


def sizes_in(kernel: Kernel) -> Iterable[Size]:
    """All sizes that a kernel names: of axes and buffers, in indices and in bounds."""
    for _, size in kernel.axes:
        yield size
    for buffer in (*kernel.inputs, *kernel.outputs):
        yield from buffer.shape
    for node in kernel.body:
        indices: list[Affine] = []
        if isinstance(node, Load | Store):
            indices.extend(node.index)
            for affine, low, high in node.bounds:
                indices.append(affine)
                yield low
                yield high
        elif isinstance(node, Iota):
            indices.append(node.index)
        for index in indices:
            yield index.constant
            for _, coefficient in index.terms:
                yield coefficient


def states(combiner: str) -> int:
    """The number of states of a combiner."""
    return COMBINERS[combiner].states
