"""The definition of the kernel IR: kernels run in NumPy, slowly and plainly.

A value is an array with one dimension per axis of the kernel, of size 1 along axes that the value
does not have. So every node is a NumPy expression on whole arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from fxarray.core import dtypes
from fxarray.core.errors import ArgumentError, OutOfBoundsError
from fxarray.kernel import sizes as size_functions
from fxarray.kernel.combiners import COMBINERS, Expression
from fxarray.kernel.ir import (
    Affine,
    Bound,
    Buffer,
    Const,
    Contract,
    Iota,
    Kernel,
    Load,
    Op,
    Part,
    Reduce,
    Scan,
    Store,
)
from fxarray.kernel.operations import result_dtype
from fxarray.kernel.scalars import Values, evaluate, numpy_dtype
from fxarray.kernel.sizes import Polynomial

States: TypeAlias = tuple[Values, ...]


def interpret(
    kernel: Kernel, *arrays: Values, sizes: Mapping[str, int] | None = None
) -> list[Values]:
    """Run a kernel: one array per output.

    Args:
      kernel: the kernel.
      arrays: one per input, in order.
      sizes: the sizes that are variables; those that an input's shape tells may be left out.

    Raises:
      ArgumentError: the arrays are not of the shapes and dtypes of the inputs.
      OutOfBoundsError: an access outside a buffer.
    """
    return _Run(kernel, arrays, dict(sizes or {})).outputs()


def identity_value(name: str, dtype: str) -> Any:
    """The number that an identity of a combiner is in a dtype, as a NumPy scalar."""
    target = numpy_dtype(dtype)
    if name in ("zero", "one"):
        return dtypes.cast(np.array(int(name == "one")), target)[()]
    if name == "last_index" or dtypes.is_integer(target) or dtypes.is_bool(target):
        if dtypes.is_bool(target):
            return np.bool_(name != "lowest")
        info = dtypes.iinfo(target)
        if name == "all_ones":
            return dtypes.cast(np.array(-1), target)[()]
        return np.array(int(info.min if name == "lowest" else info.max)).astype(target)[()]
    infinity = -np.inf if name == "lowest" else np.inf
    if dtypes.is_complex(target):
        return np.array(complex(infinity, infinity), target)[()]
    value = dtypes.cast(np.array(infinity), target)
    if np.isinf(value.astype(np.float64)):
        return value[()]
    info = dtypes.finfo(target)
    return np.array(info.min if name == "lowest" else info.max).astype(target)[()]


class _Run:
    def __init__(self, kernel: Kernel, arrays: Sequence[Values], sizes: dict[str, int]) -> None:
        if len(arrays) != len(kernel.inputs):
            raise ArgumentError(
                f"kernel {kernel.name} takes {len(kernel.inputs)} arrays, got {len(arrays)}"
            )
        self.kernel = kernel
        for buffer, array in zip(kernel.inputs, arrays, strict=True):
            for size, known in zip(buffer.shape, array.shape, strict=False):
                if isinstance(size, Polynomial) and (atom := size.sole_atom()) is not None:
                    sizes.setdefault(atom.text, known)
        self.sizes = sizes
        self.axes = {name: self.size(size) for name, size in kernel.axes}
        self.places = {name: place for place, (name, _) in enumerate(kernel.axes)}
        self.rank = len(kernel.axes)
        self.memory: dict[str, Values] = {}
        for buffer, array in zip(kernel.inputs, arrays, strict=True):
            self._check(buffer, array)
            self.memory[buffer.name] = array
        for buffer in kernel.outputs:
            self.memory[f"-> {buffer.name}"] = self._start(buffer)
        self.values: list[Any] = []

    def size(self, size: size_functions.Size) -> int:
        return size_functions.evaluate(size, self.sizes)

    def _check(self, buffer: Buffer, array: Values) -> None:
        shape = tuple(map(self.size, buffer.shape))
        if array.shape != shape or array.dtype != numpy_dtype(buffer.dtype):
            raise ArgumentError(
                f"kernel {self.kernel.name}: {buffer.name} is {buffer.dtype}{list(shape)}, got "
                f"{array.dtype}{list(array.shape)}"
            )

    def _start(self, buffer: Buffer) -> Values:
        """What an output holds before: what its input holds, or bytes that mean nothing."""
        if buffer.alias is not None:
            return np.array(self.memory[buffer.alias])
        shape, dtype = tuple(map(self.size, buffer.shape)), numpy_dtype(buffer.dtype)
        count = int(np.prod(shape, dtype=int))
        pattern = 1 if dtypes.is_bool(dtype) or dtypes.bit_width(dtype) < 8 else 0xA5
        return np.full(count * dtype.itemsize, pattern, np.uint8).view(dtype).reshape(shape)

    def outputs(self) -> list[Values]:
        for node in self.kernel.body:
            self.values.append(self.value(node))
        return [self.memory[f"-> {buffer.name}"] for buffer in self.kernel.outputs]

    # --- nodes ------------------------------------------------------------------------------------

    def value(self, node: Any) -> Any:
        match node:
            case Const():
                value = dtypes.cast(np.asarray(node.value), numpy_dtype(node.dtype))
                return value.reshape((1,) * self.rank)
            case Iota():
                return dtypes.cast(self.affine(node.index), numpy_dtype(node.dtype))
            case Load():
                return self.load(node)
            case Op():
                return evaluate(node.op, [self.values[a] for a in node.args], node.dtype)
            case Reduce():
                return self.reduce(node)
            case Scan():
                return self.scan(node)
            case Part():
                return self.values[node.arg][node.which]
            case Contract():
                return self.contract(node)
            case Store():
                self.store(node)
                return None
            case _:
                raise TypeError(f"{node!r} is no node of the kernel IR")

    def affine(self, index: Affine) -> Values:
        total = np.full((1,) * self.rank, self.size(index.constant), np.int64)
        for term, coefficient in index.terms:
            if isinstance(term, int):
                values = self.values[term].astype(np.int64)
            else:
                shape = [1] * self.rank
                shape[self.places[term]] = self.axes[term]
                values = np.arange(self.axes[term], dtype=np.int64).reshape(shape)
            total = total + values * self.size(coefficient)
        return total

    def within(self, bounds: Sequence[Bound]) -> Values:
        inside = np.ones((1,) * self.rank, bool)
        for affine, low, high in bounds:
            value = self.affine(affine)
            inside = inside & (value >= self.size(low)) & (value < self.size(high))
        return inside

    def positions(self, node: Load | Store, inside: Values) -> tuple[Values, ...]:
        """Index arrays, 0 where there is no access."""
        shape = self.memory_of(node).shape
        result: list[Values] = []
        for dimension, (affine, size) in enumerate(zip(node.index, shape, strict=True)):
            index = np.where(inside, self.affine(affine), 0)
            if np.any(inside & ((index < 0) | (index >= size))):
                raise OutOfBoundsError(
                    f"kernel {self.kernel.name}: {type(node).__name__} of {node.buffer.name} "
                    f"outside dimension {dimension} of size {size}"
                )
            result.append(index)
        return tuple(result)

    def memory_of(self, node: Load | Store) -> Values:
        name = node.buffer.name
        return self.memory[name if isinstance(node, Load) else f"-> {name}"]

    def load(self, node: Load) -> Values:
        memory = self.memory_of(node)
        inside = self.within(node.bounds)
        positions = self.positions(node, inside)
        fill = dtypes.cast(np.asarray(node.fill), memory.dtype)
        if not memory.size:
            shape = np.broadcast_shapes(inside.shape, *[p.shape for p in positions])
            return np.full(shape, fill, memory.dtype)
        values = np.asarray(memory[positions]) if positions else memory.reshape((1,) * self.rank)
        return np.where(inside, values, fill)

    def store(self, node: Store) -> None:
        memory = self.memory_of(node)
        inside = self.within(node.bounds)
        positions = self.positions(node, inside)
        value = self.values[node.value]
        shape = np.broadcast_shapes(value.shape, inside.shape, *[p.shape for p in positions])
        chosen = np.broadcast_to(inside, shape)
        places = tuple([np.broadcast_to(p, shape)[chosen] for p in positions])
        values = np.broadcast_to(value, shape)[chosen]
        if node.mode == "set":
            memory[places] = values if places else values[:1].reshape(())
            return
        # One after the other, in the order of the axes.
        flat = np.ravel_multi_index(places, memory.shape) if places else np.zeros(len(values), int)
        target = memory.reshape(-1)
        for position, update in zip(flat.tolist(), values, strict=True):
            held = target[position : position + 1]
            target[position] = evaluate(node.mode, [held, np.asarray(update)], node.buffer.dtype)[0]

    # --- combinations -----------------------------------------------------------------------------

    def combination(self, node: Reduce | Scan) -> tuple[Callable[[States, States], States], States]:
        """How states combine, and the identities."""
        combiner = COMBINERS[node.combiner]
        names = [self.kernel.dtypes[a] for a in node.args]
        identities = tuple(
            [
                np.asarray(identity_value(name, dtype))
                for name, dtype in zip(combiner.identities, names, strict=True)
            ]
        )

        def combine(left: States, right: States) -> States:
            known = {
                f"{side}{i}": (value, dtype)
                for side, values in (("a", left), ("b", right))
                for i, (value, dtype) in enumerate(zip(values, names, strict=True))
            }
            return tuple([_expression(part, known)[0] for part in combiner.body])

        return combine, identities

    def reduce(self, node: Reduce) -> Any:
        combine, identities = self.combination(node)
        states = self.whole(node.args, node.axes)
        for axis in node.axes:
            place = self.places[axis]
            states = _reduced(
                combine, identities, tuple([np.moveaxis(s, place, 0) for s in states])
            )
            states = tuple([np.moveaxis(s, 0, place) for s in states])
        return states[0] if len(states) == 1 else states

    def scan(self, node: Scan) -> Any:
        combine, identities = self.combination(node)
        place = self.places[node.axis]
        states = tuple([np.moveaxis(s, place, 0) for s in self.whole(node.args, (node.axis,))])
        if node.reverse:
            states = tuple([s[::-1] for s in states])
        step, size = 1, len(states[0])
        while step < size:
            combined = combine(
                tuple([s[:-step] for s in states]), tuple([s[step:] for s in states])
            )
            states = tuple(
                [np.concatenate([s[:step], c]) for s, c in zip(states, combined, strict=True)]
            )
            step *= 2
        if node.exclusive and size:
            states = tuple(
                [
                    np.concatenate([np.broadcast_to(i, s[:1].shape), s[:-1]])
                    for i, s in zip(identities, states, strict=True)
                ]
            )
        if node.reverse:
            states = tuple([s[::-1] for s in states])
        states = tuple([np.moveaxis(s, 0, place) for s in states])
        return states[0] if len(states) == 1 else states

    def whole(self, args: Sequence[int], axes: Sequence[str]) -> States:
        """Values that all have the axes, and equal shapes."""
        shape = [1] * self.rank
        for axis in axes:
            shape[self.places[axis]] = self.axes[axis]
        values = [self.values[a] for a in args]
        common = np.broadcast_shapes(tuple(shape), *[v.shape for v in values])
        return tuple([np.broadcast_to(v, common) for v in values])

    def contract(self, node: Contract) -> Values:
        a, b = self.values[node.a], self.values[node.b]
        target = numpy_dtype(node.dtype)
        wide = {"f32": np.dtype("float64"), "c64": np.dtype("complex128")}.get(node.dtype, target)
        a, b = dtypes.cast(a, wide), dtypes.cast(b, wide)
        summed = {self.places[axis] for axis in node.axes}
        letters = list(range(self.rank))
        terms = [[i for i in letters if x.shape[i] != 1 or i in summed] for x in (a, b)]
        shape = np.broadcast_shapes(a.shape, b.shape)
        kept = [i for i in letters if i not in summed and shape[i] != 1]
        a, b = (x.reshape([x.shape[i] for i in t]) for x, t in zip((a, b), terms, strict=True))
        with np.errstate(all="ignore"):
            value = np.asarray(np.einsum(a, terms[0], b, terms[1], kept))
        result = [1 if i in summed else shape[i] for i in letters]
        return dtypes.cast(value.reshape(result), target)


def _reduced(
    combine: Callable[[States, States], States], identities: States, states: States
) -> States:
    """Neighbours combined until one is left along dimension 0."""
    count = len(states[0])
    if count == 0:
        return tuple(
            [
                np.broadcast_to(identity, (1, *state.shape[1:])).astype(state.dtype)
                for identity, state in zip(identities, states, strict=True)
            ]
        )
    while count > 1:
        even = count // 2 * 2
        halves = combine(tuple([s[:even:2] for s in states]), tuple([s[1:even:2] for s in states]))
        states = tuple([np.concatenate([h, s[even:]]) for h, s in zip(halves, states, strict=True)])
        count = len(states[0])
    return states


def _expression(
    expression: Expression, known: Mapping[str, tuple[Values, str]]
) -> tuple[Values, str]:
    """The value and dtype of an expression of a combiner."""
    if isinstance(expression, str):
        return known[expression]
    op, *operands = expression
    values = [_expression(operand, known) for operand in operands]
    dtype = result_dtype(op, tuple([name for _, name in values]))
    return evaluate(op, [value for value, _ in values], dtype), dtype
