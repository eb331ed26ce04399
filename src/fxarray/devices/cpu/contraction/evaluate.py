"""Pieces of kernels as functions of a tile: values on demand, at one position or on lanes.

A `Piece` is a function under construction, whose first argument points to words: addresses of
buffers and run-time sizes, which it collects as it needs them. An `Evaluator` gives the values of a
kernel's nodes at a position: a number for each axis, and lanes along one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from fxarray.devices.cpu.emit import memory, scalars
from fxarray.devices.cpu.emit.function import FunctionText, Operand
from fxarray.devices.cpu.emit.types import Value, llvm_type, storage_type
from fxarray.devices.cpu.native.routine import InputPointer, OutputPointer, SizeWord, Word
from fxarray.kernel.analysis import shared_products
from fxarray.kernel.ir import (
    Affine,
    Bound,
    Buffer,
    Const,
    Iota,
    Kernel,
    Load,
    Op,
    Store,
    arguments,
)
from fxarray.kernel.sizes import Size


class Piece:
    """A function `(ptr %words, ...)` and its words.

    Args:
      kernel: whose buffers and sizes it may need.
      literal: whether sizes known now are written into the text. Else they are words as well, so
        that kernels that differ in sizes alone share their code.
    """

    def __init__(self, kernel: Kernel, literal: bool = True) -> None:
        self.kernel, self.literal = kernel, literal
        self.f = FunctionText()
        self.words: list[Word] = []
        self._known: dict[Word, Operand] = {}
        self._inputs = {buffer.name: i for i, buffer in enumerate(kernel.inputs)}
        self._outputs = {buffer.name: i for i, buffer in enumerate(kernel.outputs)}

    def word(self, word: Word, type_: str) -> Operand:
        """The value of an argument word, read at the start of the function."""
        known = self._known.get(word)
        if known is None:
            place, known = f"%{self.f.name('w')}", f"%{self.f.name('w')}"
            number = len(self.words)
            self.words.append(word)
            self.f.allocas.append(
                f"  {place} = getelementptr i64, ptr %words, i64 {number}\n"
                f"  {known} = load {type_}, ptr {place}, align 8"
            )
            self._known[word] = known
        return known

    def size(self, size: Size) -> Operand:
        """A size: a number, or read from the words."""
        if isinstance(size, int) and (self.literal or size in (-1, 0, 1)):
            return str(size)
        return self.word(SizeWord(size), "i64")

    def pointer(self, buffer: Buffer) -> Operand:
        """The address of a buffer."""
        if buffer.name in self._outputs:
            return self.word(OutputPointer(self._outputs[buffer.name]), "ptr")
        return self.word(InputPointer(self._inputs[buffer.name]), "ptr")


@dataclass
class Position:
    """Where values are wanted.

    Args:
      base: the number of each axis.
      axis: the axis that the lanes run along, or None.
      lanes: how many; 1 without lanes.
      mask: which lanes are wanted, or None for all.
      ahead: an axis and how far along it what is read and written next lies, to be fetched into the
        cache meanwhile.
    """

    base: dict[str, Operand]
    axis: str | None = None
    lanes: int = 1
    mask: Operand | None = None
    ahead: tuple[str, int] | None = None


@dataclass
class Evaluator:
    """Values of nodes of a kernel at a position.

    Args:
      piece: the function that is being written.
      position: where.
      given: values of nodes that are known otherwise.
      later: values that are known otherwise, by what finds them when they are needed.
    """

    piece: Piece
    position: Position
    given: dict[int, Value] = field(default_factory=dict[int, Value])
    later: dict[int, Callable[[], Value]] = field(default_factory=dict[int, Callable[[], Value]])
    _memory: list[dict[int, Value]] = field(default_factory=lambda: [{}])

    @property
    def f(self) -> FunctionText:
        return self.piece.f

    @contextmanager
    def scope(self) -> Generator[None]:
        """Values found inside are forgotten afterwards, as they must be at the end of a loop."""
        self._memory.append({})
        yield
        self._memory.pop()

    def inherit(self, other: Evaluator) -> None:
        """Knows what another one has found, at a position that agrees where it matters."""
        self._memory = [*other._memory, {}]

    def address(self, node: Load) -> Operand:
        """The address of what a load without bounds reads on the first lane."""
        start, _, _ = self._affine(node.buffer.flat(node.index))
        return self.f.offset(
            self.piece.pointer(node.buffer), start, storage_type(node.buffer.dtype)
        )

    def hoist(self, wanted: Iterable[int], varying: Iterable[str]) -> None:
        """Finds those of the wanted nodes (with all they need, but what is
        given later) that `varying` axes do not change."""
        kernel = self.piece.kernel
        known = sorted(wanted)
        changing = {x for number in known for x in arguments(kernel.body[number])}
        changing -= {*known, *self.given}
        stopped = frozenset(varying)
        for number in known:
            node = kernel.body[number]
            if number in self.given and not kernel.value_axes[number] & stopped:
                continue
            if kernel.value_axes[number] & stopped or not changing.isdisjoint(arguments(node)):
                changing.add(number)
            elif isinstance(node, Load | Op):
                self.value(number)

    # --- values -----------------------------------------------------------------------------------

    def value(self, number: int) -> Value:
        """The value of a node: a scalar where it does not change along the lanes."""
        if number in self.given:
            return self.given[number]
        for known in reversed(self._memory):
            if number in known:
                return known[number]
        found = self.later[number]() if number in self.later else self._value(number)
        self._memory[-1][number] = found
        return found

    def _value(self, number: int) -> Value:
        node = self.piece.kernel.body[number]
        match node:
            case Const():
                return scalars.constant(node.value, node.dtype)
            case Iota():
                return scalars.convert(self.f, self._number(node.index), node.dtype)
            case Op():
                values = [self.value(argument) for argument in node.args]
                alone = number not in shared_products(self.piece.kernel)
                return scalars.apply(self.f, node.op, values, node.dtype, contract=alone)
            case Load():
                return self._load(node)
            case _:
                raise AssertionError(f"{type(node).__name__} is no value of a tile")

    def _number(self, affine: Affine) -> Value:
        """An index expression as a value."""
        start, step, vector = self._affine(affine)
        if step == "0" and vector is None:
            return Value("i64", 1, (start,))
        return Value("i64", self.position.lanes, (self._along(start, step, vector),))

    def _along(self, start: Operand, step: Operand, vector: Operand | None) -> Operand:
        """`start + step * lane + vector`, on lanes."""
        f, lanes = self.f, self.position.lanes
        type_ = f"<{lanes} x i64>"
        total = scalars.splat(f, Value("i64", 1, (start,)), lanes).operand
        if step != "0":
            numbers = "<" + ", ".join(f"i64 {i}" for i in range(lanes)) + ">"
            if step != "1":
                wide = scalars.splat(f, Value("i64", 1, (step,)), lanes).operand
                numbers = f.new(f"mul {type_} {wide}, {numbers}")
            total = f.new(f"add {type_} {total}, {numbers}")
        return total if vector is None else f.new(f"add {type_} {total}, {vector}")

    def _affine(self, affine: Affine) -> tuple[Operand, Operand, Operand | None]:
        """The value on the first lane, the step from lane to lane, and what else is added."""
        f, piece = self.f, self.piece
        start = piece.size(affine.constant)
        step: Operand = "0"
        vector: Operand | None = None
        for term, coefficient in affine.terms:
            factor = piece.size(coefficient)
            if isinstance(term, str):
                start = f.add(start, f.multiply(self.position.base[term], factor))
                if term == self.position.axis:
                    step = factor
                continue
            found = scalars.convert(f, self.value(term), "i64")
            if found.lanes == 1:
                start = f.add(start, f.multiply(found.operand, factor))
                continue
            type_ = f"<{found.lanes} x i64>"
            part = found.operand
            if factor != "1":
                wide = scalars.splat(f, Value("i64", 1, (factor,)), found.lanes).operand
                part = f.new(f"mul {type_} {part}, {wide}")
            vector = part if vector is None else f.new(f"add {type_} {vector}, {part}")
        return start, step, vector

    def _inside(self, bounds: Sequence[Bound]) -> tuple[Operand | None, Operand | None]:
        """Whether bounds hold: those alike on all lanes, and those that differ."""
        f, piece, lanes = self.f, self.piece, self.position.lanes
        same: Operand | None = None
        each: Operand | None = None
        for affine, low, high in bounds:
            start, step, vector = self._affine(affine)
            # One unsigned comparison: low <= x < high is x - low < high - low.
            limit = f.subtract(piece.size(high), piece.size(low))
            start = f.subtract(start, piece.size(low))
            if step == "0" and vector is None:
                holds = f.new(f"icmp ult i64 {start}, {limit}")
                same = holds if same is None else f.new(f"and i1 {same}, {holds}")
                continue
            place = self._along(start, step, vector)
            wide = scalars.splat(f, Value("i64", 1, (limit,)), lanes).operand
            holds = f.new(f"icmp ult <{lanes} x i64> {place}, {wide}")
            each = holds if each is None else f.new(f"and <{lanes} x i1> {each}, {holds}")
        return same, each

    def _mask(self, same: Operand | None, each: Operand | None) -> Operand | None:
        """All that decides about lanes, as one mask."""
        f, lanes = self.f, self.position.lanes
        mask = self.position.mask
        if each is not None:
            mask = each if mask is None else f.new(f"and <{lanes} x i1> {mask}, {each}")
        if same is not None:
            wide = scalars.splat(f, Value("bool", 1, (same,)), lanes).operand
            mask = wide if mask is None else f.new(f"and <{lanes} x i1> {mask}, {wide}")
        return mask

    def _load(self, node: Load) -> Value:
        f, lanes, buffer = self.f, self.position.lanes, node.buffer
        start, step, vector = self._affine(buffer.flat(node.index))
        same, each = self._inside(node.bounds)
        pointer = self.piece.pointer(buffer)
        if step == "0" and vector is None and each is None:
            place = f.offset(pointer, start, storage_type(buffer.dtype))
            return self._scalar_load(node, place, same)
        mask = self._mask(same, each)
        filling = node.fill if node.bounds else None
        if vector is not None:
            places = self._along(start, step, vector)
            return memory.gather(f, pointer, places, buffer.dtype, lanes, mask, filling)
        place = f.offset(pointer, start, storage_type(buffer.dtype))
        if step == "1":
            self._fetch(node, place, 0)
            return memory.load(f, place, buffer.dtype, lanes, mask, filling)
        return memory.load_strided(f, place, step, buffer.dtype, lanes, mask, filling)

    def _fetch(self, node: Load | Store, place: Operand, write: int) -> None:
        """Fetches what the same access will touch soon."""
        if self.position.ahead is None:
            return
        f, (axis, distance) = self.f, self.position.ahead
        coefficient = node.buffer.flat(node.index).coefficient(axis)
        if coefficient == 0:
            return
        step = f.multiply(self.piece.size(coefficient), distance)
        line = f.offset(place, step, storage_type(node.buffer.dtype))
        f.declare("declare void @llvm.prefetch.p0(ptr, i32, i32, i32)")
        f.do(f"call void @llvm.prefetch.p0(ptr {line}, i32 {write}, i32 3, i32 1)")

    def _scalar_load(self, node: Load, place: Operand, holds: Operand | None) -> Value:
        f, dtype = self.f, node.buffer.dtype
        if holds is None:
            return memory.load(f, place, dtype, 1)
        fill = scalars.constant(node.fill, dtype)
        cells = [f.alloca(llvm_type(dtype), part) for part in fill.parts]

        def read() -> None:
            for cell, part in zip(cells, memory.load(f, place, dtype, 1).parts, strict=True):
                f.do(f"store {llvm_type(dtype)} {part}, ptr {cell}")

        f.branch(holds, read)
        parts = [f.new(f"load {llvm_type(dtype)}, ptr {cell}") for cell in cells]
        return Value(dtype, 1, tuple(parts))

    # --- stores -----------------------------------------------------------------------------------

    def store(self, node: Store) -> None:
        """Writes what a store writes at the position."""
        f, lanes, buffer = self.f, self.position.lanes, node.buffer
        value = scalars.convert(f, self.value(node.value), buffer.dtype)
        start, step, vector = self._affine(buffer.flat(node.index))
        same, each = self._inside(node.bounds)
        pointer = self.piece.pointer(buffer)
        if lanes > 1:
            value = scalars.splat(f, value, lanes)
        mask = self._mask(same, each) if lanes > 1 else None
        if vector is not None:
            places = self._along(start, step, vector)
            memory.scatter(f, value, pointer, places, mask)
            return
        place = f.offset(pointer, start, storage_type(buffer.dtype))
        if lanes == 1:
            self._when(same, lambda: memory.store(f, value, place))
        elif step == "1":
            self._fetch(node, place, 1)
            memory.store(f, value, place, mask)
        else:
            memory.store_strided(f, value, place, step, mask)

    def _when(self, condition: Operand | None, then: Callable[[], None]) -> None:
        if condition is None:
            then()
        else:
            self.f.branch(condition, then)
