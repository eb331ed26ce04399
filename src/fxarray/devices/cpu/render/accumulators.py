"""Accumulators: reductions in registers, sums of floats in two levels, and what parts leave."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fxarray.devices.cpu.emit import memory
from fxarray.devices.cpu.emit.combine import combine, identity
from fxarray.devices.cpu.emit.function import FunctionText, Operand
from fxarray.devices.cpu.emit.lanes import horizontal
from fxarray.devices.cpu.emit.scalars import apply, convert
from fxarray.devices.cpu.emit.types import Value, is_complex
from fxarray.devices.cpu.render.extrema import counts_upwards, extremum_across, later_extremum
from fxarray.devices.cpu.render.fills import fill
from fxarray.devices.cpu.render.loops import Cell, Loops, cells, reset
from fxarray.devices.cpu.render.schedule import Stage
from fxarray.devices.cpu.render.scopes import Held
from fxarray.kernel import sizes
from fxarray.kernel.analysis import uses
from fxarray.kernel.ir import Affine, Reduce

PART = "%part"
# A sum of floats is added up in steps of so many, so that no chain of additions is long.
_CHAIN = 64


class Reductions(Loops):
    """Loops that feed reductions of a stage."""

    def __init__(
        self,
        f: FunctionText,
        stage: Stage,
        pointers: Mapping[str, Operand],
        size_words: Mapping[str, Operand],
        part: Operand,
    ) -> None:
        super().__init__(f, stage.kernel, stage.schedule, pointers, size_words)
        self.stage = stage
        self.part = part
        self.open_axis(PART, part)
        self.uses = [uses(self.kernel, number) for number in range(len(self.kernel.body))]
        # Accumulators of the pass that is being written: reduction, row, vector -> states.
        self.accumulators: dict[tuple[int, int, int], list[Cell]] = {}

    # --- reductions in registers ------------------------------------------------------------------

    def lanes_of(self, number: int) -> int:
        return self.width if self.lanes in self.uses[number] else 1

    def dtypes(self, number: int) -> list[str]:
        node: Any = self.kernel.body[number]
        return [self.kernel.dtypes[argument] for argument in node.args]

    def places(self, number: int) -> list[tuple[int, int]]:
        rows = self.rows if self.block in self.uses[number] else 1
        vectors = 1
        if self.lanes in self.uses[number]:
            inside = self.lanes in self.schedule.row
            vectors = self.schedule.unroll if inside else self.vectors
        return [(r, u) for r in range(rows) for u in range(vectors)]

    def start(self, number: int) -> None:
        node: Any = self.kernel.body[number]
        for r, u in self.places(number):
            states = cells(self.f, node.combiner, self.dtypes(number), self.lanes_of(number))
            self.accumulators[number, r, u] = states

    def accumulate(self, number: int, node: Reduce, r: int, u: int) -> None:
        states = self.accumulators[number, r, u]
        wide = self.lanes_of(number) > 1
        new = [self.vector(a, r, u) if wide else self.value(a, r, u) for a in node.args]
        old = [cell.load() for cell in states]
        combined = self._combined(node, old, new)
        if wide and self.mask is not None:
            combined = self._masked(combined, old)
        for cell, value in zip(states, combined, strict=True):
            cell.store(value)

    def _combined(self, node: Reduce, old: list[Value], new: list[Value]) -> list[Value]:
        """What was met before and what is met now."""
        if counts_upwards(self.kernel, node):
            return later_extremum(self.f, node.combiner, old, new)
        return combine(self.f, node.combiner, old, new)

    def _masked(self, new: list[Value], old: list[Value]) -> list[Value]:
        """The old states on lanes that are not in use."""
        assert self.mask is not None
        truth, type_ = self.mask.value, f"<{self.width} x i1>"
        return [
            Value(
                a.dtype,
                a.lanes,
                tuple(
                    [
                        self.f.new(f"select {type_} {truth}, {a.type} {x}, {a.type} {y}")
                        for x, y in zip(a.parts, b.parts, strict=True)
                    ]
                ),
            )
            for a, b in zip(new, old, strict=True)
        ]

    def finish(
        self, number: int, second: dict[tuple[int, int], list[Cell]] | None
    ) -> dict[tuple[int, int], list[Value]]:
        """The results of a reduction after its loops, by row and vector."""
        node: Any = self.kernel.body[number]
        states: dict[tuple[int, int], list[Value]] = {}
        for r, u in self.places(number):
            value = [cell.load() for cell in self.accumulators.pop((number, r, u))]
            if second is not None:
                value = combine(self.f, node.combiner, [c.load() for c in second[r, u]], value)
            states[r, u] = value
        if self.lanes in self.uses[number] and self.lanes in node.axes:
            states = {
                (r, 0): self._across_lanes(node, [v for (q, _), v in states.items() if q == r])
                for r in dict.fromkeys([place[0] for place in states])
            }
        if counts_upwards(self.kernel, node):
            states = {place: self._first_if_none(node, value) for place, value in states.items()}
        if number in self.stage.partials:
            for (r, u), value in states.items():
                self._leave(number, value, r, u)
            return {}
        return states

    def _first_if_none(self, node: Reduce, states: list[Value]) -> list[Value]:
        """The first index where no element was better than the identity: all are equal to it."""
        axis = node.axes[0]
        low, high = self.range_of(axis)
        index: Any = self.kernel.body[node.args[1]]
        f, place = self.f, states[1]
        start = f.multiply(low, self.size(index.index.coefficient(axis)))
        start = f.add(start, self.size(index.index.constant))
        first = convert(f, Value("i64", 1, (start,)), place.dtype)
        last = identity(node.combiner, 1, place.dtype)
        some = Value("bool", 1, (f.new(f"icmp slt i64 {low}, {high}"),))
        first = apply(f, "select", [some, first, last], place.dtype)
        none = apply(f, "eq", [place, last], "bool")
        return [states[0], apply(f, "select", [none, first, place], place.dtype)]

    def _across_lanes(self, node: Reduce, vectors: list[list[Value]]) -> list[Value]:
        if node.combiner in ("argmax", "argmin") and not is_complex(vectors[0][0].dtype):
            return extremum_across(self.f, node.combiner, vectors)
        while len(vectors) > 1:
            halves = [
                combine(self.f, node.combiner, vectors[i], vectors[i + 1])
                for i in range(0, len(vectors) - 1, 2)
            ]
            vectors = halves + (vectors[-1:] if len(vectors) % 2 else [])
        return horizontal(self.f, node.combiner, vectors[0])

    # --- sums of many floats ----------------------------------------------------------------------

    def is_sum(self, number: int) -> bool:
        node: Any = self.kernel.body[number]
        return node.combiner == "sum" and self.dtypes(number)[0][0] in "fc"

    def chain(self, axes: tuple[str, ...], reductions: list[int]) -> tuple[int, int | None]:
        """After how many iterations of which loop the sums so far are put aside.

        With two accumulators of chains of n / _CHAIN and _CHAIN additions, errors grow with the
        square root of the count as they do in pairwise sums of lanes times blocks.
        """
        if not any(self.is_sum(n) for n in reductions):
            return 0, None
        inside = 1
        for place in range(len(axes) - 1, -1, -1):
            count = sizes.typical(self.kernel.sizes[axes[place]]) // self.step_of(axes[place])
            if inside * count > 2 * _CHAIN:
                return max(_CHAIN // inside, 1), place
            inside *= max(count, 1)
        return 0, None

    def second(self, number: int) -> dict[tuple[int, int], list[Cell]]:
        node: Any = self.kernel.body[number]
        dtypes, lanes = self.dtypes(number), self.lanes_of(number)
        return {place: cells(self.f, node.combiner, dtypes, lanes) for place in self.places(number)}

    def flush(self, number: int, second: dict[tuple[int, int], list[Cell]]) -> None:
        node: Any = self.kernel.body[number]
        for (r, u), total in second.items():
            first = self.accumulators[number, r, u]
            states = combine(
                self.f, node.combiner, [c.load() for c in total], [c.load() for c in first]
            )
            for cell, value in zip(total, states, strict=True):
                cell.store(value)
            reset(node.combiner, first)

    # --- results of parts -------------------------------------------------------------------------

    def in_memory(self, number: int) -> bool:
        return number in self.stage.in_memory

    def _partial(self, number: int, state: int, r: int, u: int) -> Held:
        """The address of this part's result of a reduction."""
        kept = self.stage.kept[number]
        index = tuple([Affine.of(axis) for axis in (PART, *kept)])
        buffer = self.stage.partials[number][state]
        return self.pointer(buffer, buffer.flat(index), r, u)

    def _leave(self, number: int, states: list[Value], r: int, u: int) -> None:
        for state, value in enumerate(states):
            pointer = self._partial(number, state, r, u).value
            mask = self.mask.value if self.mask is not None and value.lanes > 1 else None
            memory.store(self.f, value, pointer, mask)

    def clear(self, number: int) -> None:
        """The identities where a part adds up in memory."""
        node: Any = self.kernel.body[number]
        kept = self.stage.kept[number]
        for state, buffer in enumerate(self.stage.partials[number]):
            size = sizes.product(buffer.shape[1:])
            start = self.pointer(buffer, Affine(((PART, size),))).value
            fill(self, start, node.combiner, state, buffer.dtype, size if kept else 1)

    def add_to_memory(self, number: int) -> None:
        """A block of rows combined, and then with what memory holds: one access for all."""
        node: Any = self.kernel.body[number]
        by_lane = self.lanes in self.uses[number]
        count = self.rows if self.block in self.uses[number] else 1
        # Rows along an axis that stays have places of their own.
        together = self.block in node.axes
        for u in range(self.vectors if by_lane else 1):
            rows = [
                [self.vector(a, r, u) if by_lane else self.value(a, r, u) for a in node.args]
                for r in range(count)
            ]
            while together and len(rows) > 1:
                halves = [
                    self._combined(node, rows[i], rows[i + 1]) for i in range(0, len(rows) - 1, 2)
                ]
                rows = halves + (rows[-1:] if len(rows) % 2 else [])
            for r, states in enumerate(rows):
                self._add_row_to_memory(number, states, r, u)

    def _add_row_to_memory(self, number: int, states: list[Value], r: int, u: int) -> None:
        node: Any = self.kernel.body[number]
        by_lane = self.lanes in self.uses[number]
        mask = self.mask.value if self.mask is not None and by_lane else None
        places = [self._partial(number, s, r, u).value for s in range(len(node.args))]
        lanes = self.width if by_lane else 1
        old = [
            memory.load(self.f, place, dtype, lanes, mask)
            for place, dtype in zip(places, self.dtypes(number), strict=True)
        ]
        # Memory starts as the identity, which only the general combination tells apart.
        for place, value in zip(places, combine(self.f, node.combiner, old, states), strict=True):
            memory.store(self.f, value, place, mask)
