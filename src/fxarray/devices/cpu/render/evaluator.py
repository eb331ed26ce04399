"""Values on demand: any node of a kernel at the current positions, computed once per region.

`Evaluator.value(number, r, u)` gives a value at position `r` of the block axis and vector `u` of
the axis on lanes. A value that does not depend on the axis on lanes is a scalar; one that does not
depend on a loop is computed before it. Values may be given from outside (`give`), as the results of
reductions are, or those of a product in its epilogue; what follows from them is then evaluated
like anything else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from fxarray.devices.cpu.emit import memory, scalars
from fxarray.devices.cpu.emit.function import FunctionText, Operand
from fxarray.devices.cpu.emit.lanes import reverse, transpose
from fxarray.devices.cpu.emit.types import Value, storage_type
from fxarray.devices.cpu.render.masks import reversed_mask
from fxarray.devices.cpu.render.places import Places, is_number
from fxarray.devices.cpu.render.scopes import Held
from fxarray.kernel.analysis import shared_products
from fxarray.kernel.ir import (
    Affine,
    Const,
    Iota,
    Kernel,
    Load,
    Op,
    Part,
    Reduce,
    Scan,
    arguments,
)
from fxarray.kernel.sizes import Size

Override = Callable[[int, int], "Held | None"]


class Evaluator(Places):
    """Evaluates nodes of a kernel while a function is written; the arguments are those of Places.

    Positions are opened with `open_axis`, regions with `scopes`; every axis of a value must be open
    when it is asked for, but the block axis and the axis on lanes count from their positions.
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
        super().__init__(f, kernel, pointers, size_words, lanes, width, block)
        # How many positions of the block axis are computed together here.
        self.rows = 1
        # Other ways to get a value, asked before it is computed: they may answer None.
        self.overrides: dict[int, Override] = {}
        self.shared_products = shared_products(kernel)

    # --- asking -----------------------------------------------------------------------------------

    def key(self, number: int, r: int, u: int) -> tuple[int, int, int]:
        """What a value is known under."""
        axes = self.kernel.value_axes[number]
        return (number, r if self.block in axes else 0, u if self.lanes in axes else 0)

    def give(self, number: int, value: Value, r: int = 0, u: int = 0) -> None:
        """Say what a value is, in the innermost region; of several results, see `give_states`."""
        self.scopes.keep(self.key(number, r, u), value)

    def give_states(self, number: int, states: list[Value], r: int = 0, u: int = 0) -> None:
        """Say what the results of a reduction or scan are, in the innermost region."""
        self.scopes.keep(self.key(number, r, u), states[0] if len(states) == 1 else states)

    def value(self, number: int, r: int = 0, u: int = 0) -> Value:
        """A value, as a scalar if it is one for all lanes."""
        return self.held(number, r, u).value

    def vector(self, number: int, r: int = 0, u: int = 0) -> Value:
        """A value on every lane."""
        return self.splatted(self.held(number, r, u)).value

    def splatted(self, held: Held) -> Held:
        """A scalar on every lane; a vector as it is."""
        value: Value = held.value
        if value.lanes == self.width:
            return held
        key = ("splat", value)
        known = self.scopes.find(key)
        if known is None:
            with self.scopes.at(held.depth):
                wide = scalars.splat(self.f, value, self.width)
            known = self.scopes.keep(key, wide, held.depth)
        return known

    def held(self, number: int, r: int = 0, u: int = 0) -> Held:
        """A value with the depth that it belongs to."""
        known = self.scopes.find(self.key(number, r, u))
        if known is not None:
            return known
        for missing in self._missing(number, r, u):
            self._compute(missing, r, u)
        known = self.scopes.find(self.key(number, r, u))
        assert known is not None
        return known

    def _missing(self, number: int, r: int, u: int) -> list[int]:
        """The nodes to compute for a value, in order."""
        found: set[int] = set()
        waiting = [number]
        while waiting:
            current = waiting.pop()
            if current in found or self.scopes.find(self.key(current, r, u)) is not None:
                continue
            override = self.overrides.get(current)
            if override is not None:
                held = override(r, u)
                if held is not None:
                    self.scopes.keep(self.key(current, r, u), held.value, held.depth)
                    continue
            found.add(current)
            waiting.extend(arguments(self.kernel.body[current]))
        return sorted(found)

    def _compute(self, number: int, r: int, u: int) -> None:
        key = self.key(number, r, u)
        r, u = key[1], key[2]
        if self.scopes.find(key) is not None:
            return
        held = self._computed(number, r, u)
        if self.scopes.find(key) is None:
            self.scopes.keep(key, held.value, held.depth)

    def _computed(self, number: int, r: int, u: int) -> Held:
        node: Any = self.kernel.body[number]
        match node:
            case Const():
                return Held(scalars.constant(node.value, node.dtype), 0)
            case Iota():
                return self._iota(node, r, u)
            case Load():
                return self._load(number, node, r, u)
            case Op():
                return self._op(number, node, r, u)
            case Part():
                held = self.held(node.arg, r, u)
                return Held(held.value[node.which], held.depth)
            case Scan():
                return self.scan(number, node, r, u)
            case Reduce():
                raise AssertionError(f"v{number} was to be reduced before it is read")
            case _:
                raise AssertionError(f"v{number} is not a value that can be evaluated: {node}")

    def scan(self, number: int, node: Scan, r: int, u: int) -> Held:
        """The results of a scan at the next position of its axis."""
        raise AssertionError(f"v{number} is a scan outside a pass along {node.axis}")

    # --- operations -------------------------------------------------------------------------------

    def _op(self, number: int, node: Op, r: int, u: int) -> Held:
        held = [self.held(argument, r, u) for argument in node.args]
        depth = max([h.depth for h in held])
        if any(h.value.lanes > 1 for h in held):
            held = [self.splatted(h) for h in held]
        with self.scopes.at(depth):
            values = [h.value for h in held]
            alone = number not in self.shared_products
            value = scalars.apply(self.f, node.op, values, node.dtype, contract=alone)
        return Held(value, depth)

    def _iota(self, node: Iota, r: int, u: int) -> Held:
        start = self.offset(node.index, r, u)
        if self.step(node.index) == 0 and not self.lane_terms(node.index, r, u):
            with self.scopes.at(start.depth):
                value = Value("i64", 1, (start.value,))
                return Held(scalars.convert(self.f, value, node.dtype), start.depth)
        offsets = self.lane_offsets(node.index, r, u)
        depth = max(start.depth, offsets.depth)
        with self.scopes.at(depth):
            if node.dtype in ("i32", "u32") and offsets.value.startswith("<"):
                return Held(self._narrow_iota(node, r, u), depth)
            type_ = f"<{self.width} x i64>"
            first = self.splat_i64(start.value)
            value = Value("i64", self.width, (self.f.new(f"add {type_} {first}, {offsets.value}"),))
            return Held(scalars.convert(self.f, value, node.dtype), depth)

    def _narrow_iota(self, node: Iota, r: int, u: int) -> Value:
        """Positions as 32-bit numbers from the start: they wrap like their 64-bit kind."""
        step: Any = self.step(node.index)
        f, type_ = self.f, f"<{self.width} x i32>"
        # All vectors count from the first one's start, which is put on the lanes once.
        start = self.offset(node.index, r, 0)
        key = ("narrow", node.index, r)
        known = self.scopes.find(key)
        if known is None or known.depth < start.depth:
            with self.scopes.at(start.depth):
                operand = start.value
                low = (
                    str(int(operand))
                    if is_number(operand)
                    else f.new(f"trunc i64 {operand} to i32")
                )
                wide = scalars.splat(f, Value("i32", 1, (low,)), self.width).operand
            known = self.scopes.keep(key, wide, start.depth)
        first = u * self.width * step
        steps = ", ".join([f"i32 {first + step * lane}" for lane in range(self.width)])
        return Value(node.dtype, self.width, (f.new(f"add {type_} {known.value}, <{steps}>"),))

    def index_value(self, number: int, r: int, u: int) -> Held | None:
        held = self.held(number, r, u)
        if held.value.lanes > 1:
            return None
        return self._as_i64(number, held, r, u)

    def lane_terms(self, affine: Affine, r: int, u: int) -> list[tuple[Held, Size]]:
        result: list[tuple[Held, Size]] = []
        for term, coefficient in affine.terms:
            if isinstance(term, int):
                held = self.held(term, r, u)
                if held.value.lanes > 1:
                    wide = self._as_i64(term, held, r, u)
                    result.append((wide, coefficient))
        return result

    def _as_i64(self, number: int, held: Held, r: int, u: int) -> Held:
        key = ("index", *self.key(number, r, u))
        known = self.scopes.find(key)
        if known is None:
            with self.scopes.at(held.depth):
                operand = scalars.convert(self.f, held.value, "i64").operand
            known = self.scopes.keep(key, operand, held.depth)
        return known

    # --- loads ------------------------------------------------------------------------------------

    def _load(self, number: int, node: Load, r: int, u: int) -> Held:
        affine = node.buffer.flat(node.index)
        step = self.step(affine)
        scalar, vector = self.within(node.bounds, r, u) if node.bounds else (None, None)
        by_lane = self.lane_terms(affine, r, u)
        pointer = self.pointer(node.buffer, affine, r, u)
        if step == 0 and not by_lane and vector is None:
            return self._scalar_load(node, pointer, scalar)
        if self._is_transposed(node, affine, step) and not by_lane:
            return self._tile(number, node, affine, r, u)
        mask = self.lane_mask(scalar, vector)
        offsets = self.lane_offsets(affine, r, u) if by_lane else Held("", 0)
        dtype, width = node.buffer.dtype, self.width
        depth = max(
            pointer.depth,
            offsets.depth,
            mask.depth if mask else 0,
            self.positions[self.lanes][1] if self.lanes and step != 0 else 0,
            *[held.depth for held, _ in by_lane],
        )
        operand = mask.value if mask else None
        with self.scopes.at(depth):
            fill = scalars.constant(node.fill, dtype, width) if node.bounds else None
            if by_lane:
                loaded = memory.gather(
                    self.f, pointer.value, offsets.value, dtype, width, operand, fill
                )
            elif step == 1:
                loaded = memory.load(self.f, pointer.value, dtype, width, operand, fill)
            elif step == -1:
                loaded = self._backwards(pointer.value, dtype, operand, fill)
            else:
                stride = self.size(step)
                loaded = memory.load_strided(
                    self.f, pointer.value, stride, dtype, width, operand, fill
                )
        return Held(loaded, depth)

    def _scalar_load(self, node: Load, pointer: Held, inside: Held | None) -> Held:
        dtype = node.buffer.dtype
        if inside is None:
            with self.scopes.at(pointer.depth):
                return Held(memory.load(self.f, pointer.value, dtype, 1), pointer.depth)
        # Where there is no access, one to a number of our own instead: no branch.
        depth = max(pointer.depth, inside.depth)
        type_ = storage_type(dtype)
        spare = self.f.alloca(type_)
        with self.scopes.at(0):
            self.f.do(f"store {type_} zeroinitializer, ptr {spare}")
        with self.scopes.at(depth):
            address = self.f.new(f"select i1 {inside.value}, ptr {pointer.value}, ptr {spare}")
            loaded = memory.load(self.f, address, dtype, 1)
            fill = scalars.constant(node.fill, dtype)
            truth = Value("bool", 1, (inside.value,))
            return Held(scalars.apply(self.f, "select", [truth, loaded, fill], dtype), depth)

    def lane_mask(self, scalar: Held | None, vector: Held | None) -> Held | None:
        """The lanes that may be read: those in use, of which all bounds hold."""
        mask = self.mask
        if vector is not None:
            mask = self.both_masks(mask, vector)
        if scalar is not None:
            truth = Held(Value("bool", 1, (scalar.value,)), scalar.depth)
            wide = self.splatted(truth)
            wide = Held(wide.value.operand, wide.depth)
            mask = self.both_masks(mask, wide)
        return mask

    def _backwards(
        self, pointer: Operand, dtype: str, mask: Operand | None, fill: Value | None
    ) -> Value:
        """Lanes that go backwards in memory: one load, turned round."""
        first = self.f.offset(pointer, 1 - self.width, storage_type(dtype))
        if mask is not None:
            mask = reversed_mask(self.f, mask, self.width)
        return reverse(self.f, memory.load(self.f, first, dtype, self.width, mask, fill))

    def _is_transposed(self, node: Load, affine: Affine, step: Size) -> bool:
        """Whether a square of values is read row by row and turned in registers."""
        return (
            self.block is not None
            and self.rows == self.width
            and self.mask is None
            and not node.bounds
            and step not in (0, 1, -1)
            and affine.coefficient(self.block) == 1
        )

    def _tile(self, number: int, node: Load, affine: Affine, r: int, u: int) -> Held:
        """As many rows along the block axis as lanes; all rows of the result become known."""
        step, dtype = self.step(affine), node.buffer.dtype
        rows: list[Value] = []
        start = self.pointer(node.buffer, affine, 0, u)
        depth = max(start.depth, self.scopes.depth)
        address = start.value
        for lane in range(self.width):
            rows.append(memory.load(self.f, address, dtype, self.width))
            if lane + 1 < self.width:
                if isinstance(step, int):
                    address = self.f.offset(start.value, step * (lane + 1), storage_type(dtype))
                else:
                    address = self.f.offset(address, self.size(step), storage_type(dtype))
        for row, value in enumerate(transpose(self.f, rows)):
            self.scopes.keep(self.key(number, row, u), value, depth)
        known = self.scopes.find(self.key(number, r, u))
        assert known is not None
        return known
