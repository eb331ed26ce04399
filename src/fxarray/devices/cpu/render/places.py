"""Where things are: sizes, positions on the axes, offsets, addresses and bounds, as LLVM text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from fxarray.core.dims.polynomial import Atom, Polynomial, Variable
from fxarray.devices.cpu.emit.function import FunctionText, Operand
from fxarray.devices.cpu.emit.types import storage_type
from fxarray.devices.cpu.render.masks import both, constant_mask
from fxarray.devices.cpu.render.scopes import Held, Scopes
from fxarray.kernel import sizes
from fxarray.kernel.ir import Affine, Buffer, Kernel
from fxarray.kernel.sizes import Size

# A term of a sum of indices: the depth that knows it, what it is, and its text when asked.
_Term: TypeAlias = tuple[int, Any, Callable[[], Operand]]


class Places:
    """Sizes, positions and addresses while a function is written.

    Args:
      f: the function.
      kernel: whose axes and buffers they are of.
      pointers: the address of each buffer, by name.
      size_words: the operand of each size that is given at run time, by name.
      lanes: the axis on vector lanes, if any.
      width: the number of lanes.
      block: the axis along which several positions are computed together, if any.
    """

    def __init__(
        self,
        f: FunctionText,
        kernel: Kernel,
        pointers: Mapping[str, Operand],
        size_words: Mapping[str, Operand],
        lanes: str | None = None,
        width: int = 1,
        block: str | None = None,
    ) -> None:
        self.f = f
        self.kernel = kernel
        self.pointers = dict(pointers)
        self.size_words = size_words
        self.lanes = lanes
        self.width = width
        self.block = block
        self.scopes = Scopes(f)
        self.positions: dict[str, tuple[Operand, int]] = {}
        # The lanes in use, as an operand and the depth that knows it; None: all are.
        self.mask: Held | None = None

    # --- sizes ------------------------------------------------------------------------------------

    def size(self, size: Size) -> Operand:
        """A size as i64."""
        if isinstance(size, int):
            return str(size)
        known = self.scopes.find(("size", size))
        if known is None:
            with self.scopes.at(0):
                operand = self._polynomial(size)
            known = self.scopes.keep(("size", size), operand, 0)
        return known.value

    def _polynomial(self, polynomial: Polynomial) -> Operand:
        total: Operand = "0"
        for monomial, coefficient in polynomial.terms:
            product: Operand = str(int(coefficient))
            for atom, power in monomial:
                operand = self._atom(atom)
                for _ in range(power):
                    product = self.f.multiply(product, operand)
            total = self.f.add(total, product)
        return total

    def _atom(self, atom: Atom) -> Operand:
        if isinstance(atom, Variable):
            return self.size_words[atom.name]
        operands = [self._polynomial(operand) for operand in atom.operands]
        if atom.kind in ("min", "max"):
            choose = self.f.smaller if atom.kind == "min" else self.f.larger
            result = operands[0]
            for operand in operands[1:]:
                result = choose(result, operand)
            return result
        return floor_divide(self.f, operands[0], operands[1], remainder=atom.kind == "mod")

    # --- positions --------------------------------------------------------------------------------

    def open_axis(self, axis: str, position: Operand) -> None:
        """Say where on an axis the code of the innermost region is."""
        self.positions[axis] = (position, self.scopes.depth)

    def offset(self, affine: Affine, r: int = 0, u: int = 0) -> Held:
        """An index expression as i64: at the first lane, without terms that differ by lane."""
        terms, constant, floor = self._terms(affine, r, u)
        key: tuple[Any, ...] = ("offset",)
        held = Held("0", 0)
        for depth, part, emit in terms:
            key = (*key, part)
            known = self.scopes.find(key)
            if known is None:
                with self.scopes.at(depth):
                    known = self.scopes.keep(key, self.f.add(held.value, emit()), depth)
            held = known
        depth = max(held.depth, floor)
        with self.scopes.at(depth):
            return Held(self.f.add(held.value, constant), depth)

    def pointer(self, buffer: Buffer, affine: Affine, r: int = 0, u: int = 0) -> Held:
        """The address of an element: at the first lane, without terms that differ by lane."""
        terms, constant, floor = self._terms(affine, r, u)
        type_ = storage_type(buffer.dtype)
        key: tuple[Any, ...] = ("pointer", buffer.name)
        held = Held(self.pointers[buffer.name], 0)
        for depth, part, emit in terms:
            key = (*key, part)
            known = self.scopes.find(key)
            if known is None:
                with self.scopes.at(depth):
                    known = self.scopes.keep(key, self.f.offset(held.value, emit(), type_), depth)
            held = known
        if constant:
            key = (*key, constant)
            known = self.scopes.find(key)
            if known is None:
                with self.scopes.at(held.depth):
                    address = self.f.offset(held.value, constant, type_)
                known = self.scopes.keep(key, address, held.depth)
            held = known
        return Held(held.value, max(held.depth, floor))

    def _terms(self, affine: Affine, r: int, u: int) -> tuple[list[_Term], int, int]:
        """The terms of a sum by depth, the constant that is left, and the depth of its parts.

        A position that is a number when compiling goes into the constant; what is computed with it
        belongs to the region of that position all the same.
        """
        floor = 0
        constant, symbolic = (
            (affine.constant, 0) if isinstance(affine.constant, int) else (0, affine.constant)
        )
        result: list[_Term] = []
        for term, coefficient in affine.terms:
            if isinstance(term, int):
                held = self.index_value(term, r, u)
                if held is None:
                    continue
                operand, depth = held.value, held.depth
                steps = 0
            else:
                operand, depth = self.positions[term]
                steps = u * self.width if term == self.lanes else r if term == self.block else 0
            if steps:
                if isinstance(coefficient, int):
                    constant += coefficient * steps
                else:
                    symbolic = sizes.add(symbolic, sizes.multiply(coefficient, steps))
            if is_number(operand) and isinstance(coefficient, int):
                constant += int(operand) * coefficient
                floor = max(floor, depth)
                continue
            result.append((depth, (operand, coefficient), self._product(operand, coefficient)))
        if not isinstance(symbolic, int):
            result.append((0, symbolic, self._product("1", symbolic)))
        result.sort(key=lambda term: term[0])
        return result, constant, floor

    def _product(self, operand: Operand, coefficient: Size) -> Callable[[], Operand]:
        return lambda: self.f.multiply(operand, self.size(coefficient))

    def index_value(self, number: int, r: int, u: int) -> Held | None:
        """A value that is an index, as i64; None if it differs by lane."""
        raise NotImplementedError

    def lane_terms(self, affine: Affine, r: int, u: int) -> list[tuple[Held, Size]]:
        """The values that differ by lane, as vectors of i64, with their coefficients."""
        raise NotImplementedError

    # --- bounds -----------------------------------------------------------------------------------

    def step(self, affine: Affine) -> Size:
        """How far an index expression moves from one lane to the next."""
        return affine.coefficient(self.lanes) if self.lanes else 0

    def lane_offsets(self, affine: Affine, r: int, u: int) -> Held:
        """What each lane adds to an index expression, as a vector of i64."""
        lanes = self.width
        type_ = f"<{lanes} x i64>"
        step = self.step(affine)
        depth = 0
        if isinstance(step, int):
            total = "<" + ", ".join([f"i64 {step * lane}" for lane in range(lanes)]) + ">"
        else:
            places = "<" + ", ".join([f"i64 {lane}" for lane in range(lanes)]) + ">"
            total = self.f.new(f"mul {type_} {places}, {self.splat_i64(self.size(step))}")
            depth = self.scopes.depth
        for held, coefficient in self.lane_terms(affine, r, u):
            operand = held.value
            with self.scopes.at(max(depth, held.depth)):
                if coefficient != 1:
                    factor = self.splat_i64(self.size(coefficient))
                    operand = self.f.new(f"mul {type_} {operand}, {factor}")
                depth = max(depth, held.depth)
                total = self.f.new(f"add {type_} {operand}, {total}")
        return Held(total, depth)

    def splat_i64(self, operand: Operand) -> Operand:
        """An i64 on every lane."""
        if is_number(operand):
            return f"splat (i64 {operand})"
        type_ = f"<{self.width} x i64>"
        first = self.f.new(f"insertelement {type_} poison, i64 {operand}, i64 0")
        mask = f"<{self.width} x i32> zeroinitializer"
        return self.f.new(f"shufflevector {type_} {first}, {type_} poison, {mask}")

    def within(
        self, bounds: Sequence[tuple[Affine, Size, Size]], r: int, u: int
    ) -> tuple[Held | None, Held | None]:
        """Whether bounds hold: what is one for all lanes as i1, what differs by lane as a mask."""
        key = ("within", tuple(bounds), r, u)
        known = self.scopes.find(key)
        if known is not None:
            return known.value
        scalar: Held | None = None
        vector: Held | None = None
        for affine, low, high in bounds:
            start = self.offset(affine, r, u)
            by_lane = self.step(affine) != 0 or bool(self.lane_terms(affine, r, u))
            if by_lane:
                offsets = self.lane_offsets(affine, r, u)
                depth = max(start.depth, offsets.depth, self.scopes.depth)
                operand = self._lanes_within(start.value, offsets.value, low, high)
                vector = self.both_masks(vector, Held(operand, depth))
            else:
                with self.scopes.at(start.depth):
                    operand = self._in_range(start.value, low, high)
                scalar = self._both(scalar, Held(operand, start.depth))
        self.scopes.keep(key, (scalar, vector))
        return scalar, vector

    def _in_range(self, operand: Operand, low: Size, high: Size) -> Operand:
        """low <= operand < high, by one comparison of unsigned distances from low."""
        f = self.f
        distance = f.subtract(operand, self.size(low))
        extent = f.larger(f.subtract(self.size(high), self.size(low)), 0)
        return f.new(f"icmp ult i64 {distance}, {extent}")

    def _lanes_within(self, start: Operand, offsets: Operand, low: Size, high: Size) -> Operand:
        f = self.f
        known = is_number(start) and offsets.startswith("<")
        if known and isinstance(low, int) and isinstance(high, int):
            steps = [int(part.split()[1].rstrip(">")) for part in offsets.split(",")]
            return constant_mask([low <= int(start) + step < high for step in steps])
        type_ = f"<{self.width} x i64>"
        distance = self.splat_i64(f.subtract(start, self.size(low)))
        moved = f.new(f"add {type_} {distance}, {offsets}")
        extent = f.larger(f.subtract(self.size(high), self.size(low)), 0)
        return f.new(f"icmp ult {type_} {moved}, {self.splat_i64(extent)}")

    def _both(self, left: Held | None, right: Held) -> Held:
        if left is None:
            return right
        depth = max(left.depth, right.depth)
        with self.scopes.at(depth):
            return Held(self.f.new(f"and i1 {left.value}, {right.value}"), depth)

    def both_masks(self, left: Held | None, right: Held) -> Held:
        """The lanes that are in both masks."""
        if left is None:
            return right
        depth = max(left.depth, right.depth)
        with self.scopes.at(depth):
            return Held(both(self.f, left.value, right.value, self.width), depth)


def is_number(operand: Operand) -> bool:
    """Whether an operand is an integer known when compiling."""
    return operand.lstrip("-").isdigit()


def floor_divide(f: FunctionText, a: Operand, b: Operand, remainder: bool) -> Operand:
    """a // b or a % b of i64, rounded down as in Python.

    Division truncates; where signs differ and something is left, one is taken from the quotient
    and b is added to what is left.
    """
    quotient = f.new(f"sdiv i64 {a}, {b}")
    left = f.new(f"srem i64 {a}, {b}")
    signs = f.new(f"icmp slt i64 {f.new(f'xor i64 {left}, {b}')}, 0")
    some = f.new(f"icmp ne i64 {left}, 0")
    wrong = f.new(f"and i1 {signs}, {some}")
    if remainder:
        return f.new(f"select i1 {wrong}, i64 {f.add(left, b)}, i64 {left}")
    return f.new(f"select i1 {wrong}, i64 {f.subtract(quotient, 1)}, i64 {quotient}")
