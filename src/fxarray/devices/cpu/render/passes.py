"""One stage as the text of a function: outer loops around passes, with accumulators and scans.

A pass runs over the row axes and feeds sinks: stores, reductions, values kept for later passes.
The results of a pass are known in the region that follows it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fxarray.devices.cpu.emit import memory
from fxarray.devices.cpu.emit.combine import combine, identity
from fxarray.devices.cpu.emit.function import FunctionText, Operand
from fxarray.devices.cpu.emit.lanes import horizontal, prefix, shuffle
from fxarray.devices.cpu.emit.scalars import apply, convert
from fxarray.devices.cpu.emit.types import Value, is_complex
from fxarray.devices.cpu.render.extrema import counts_upwards, extremum_across, later_extremum
from fxarray.devices.cpu.render.fills import fill
from fxarray.devices.cpu.render.loops import Cell, Loops, cells, reset
from fxarray.devices.cpu.render.schedule import Stage, part_length
from fxarray.devices.cpu.render.scopes import Held
from fxarray.devices.cpu.render.stash import Stash
from fxarray.devices.cpu.render.stores import store
from fxarray.kernel import sizes
from fxarray.kernel.analysis import levels, uses
from fxarray.kernel.ir import Affine, Reduce, Scan, Store, arguments

PART = "%part"
# A sum of floats is added up in steps of so many, so that no chain of additions is long.
_CHAIN = 64


class Passes(Loops):
    """Writes one part of a stage."""

    def __init__(
        self,
        f: FunctionText,
        stage: Stage,
        pointers: Mapping[str, Operand],
        size_words: Mapping[str, Operand],
        part: Operand,
        scratch: Operand,
    ) -> None:
        super().__init__(f, stage.kernel, stage.schedule, pointers, size_words)
        self.stage = stage
        self.part = part
        self.open_axis(PART, part)
        self.stash = Stash(self, scratch)
        kernel, row = self.kernel, frozenset(self.schedule.row)
        self.levels = levels(kernel, row)
        self.uses = [uses(kernel, number) for number in range(len(kernel.body))]
        self.level = 0
        self.sinks: dict[tuple[int, int], list[int]] = {}
        for number, node in enumerate(kernel.body):
            if isinstance(node, Store | Reduce) or number in self.schedule.stash:
                place = (self.depth_of(number), self.levels[number])
                self.sinks.setdefault(place, []).append(number)
        # Accumulators of the pass that is being written: reduction, row, vector -> states.
        self.accumulators: dict[tuple[int, int, int], list[Cell]] = {}
        self.carries: dict[tuple[int, int, int], list[Cell]] = {}

    def depth_of(self, number: int) -> int:
        """How many outer loops a node is in."""
        outer = self.schedule.outer
        return max([place + 1 for place, a in enumerate(outer) if a in self.uses[number]] or [0])

    # --- the whole --------------------------------------------------------------------------------

    def write(self) -> None:
        """All of one part."""
        split = self.schedule.split
        if split is not None and self.schedule.parts > 1:
            self.ranges[split] = self._part_range(split)
        for number in sorted(self.stage.in_memory):
            self._clear(number)
        lanes = self.lanes
        if self.schedule.tile and lanes is not None:
            low, high = self.range_of(lanes)

            def tile(start: Operand) -> None:
                end = self.f.smaller(self.f.add(start, self.schedule.tile), high)
                self.ranges[lanes] = (start, end)
                self._from(0)

            with self.scopes.region():
                self.f.loop(low, high, self.schedule.tile, tile)
        else:
            self._from(0)

    def _part_range(self, axis: str) -> tuple[Operand, Operand]:
        size, parts = self.kernel.sizes[axis], self.schedule.parts
        step = self.schedule.tile if axis == self.lanes and self.schedule.tile else 0
        step = step or self.step_of(axis)
        f = self.f
        if isinstance(size, int):
            chunk: Operand | int = part_length(size, parts, step)
        else:
            blocks = f.new(f"sdiv i64 {f.add(self.size(size), parts * step - 1)}, {parts * step}")
            chunk = f.multiply(blocks, step)
        end = self.size(size)
        low = f.smaller(f.multiply(self.part, chunk), end)
        return low, f.smaller(f.add(low, chunk), end)

    def _from(self, depth: int) -> None:
        """Passes inside so many outer loops, and the loops within."""
        before = self.scopes.depth
        for level in range(max(self.levels, default=0) + 1):
            sinks = self.sinks.get((depth, level), [])
            if sinks:
                self._pass(level, sinks)
        if any(place[0] > depth for place in self.sinks):
            self.loop_axis(self.schedule.outer[depth], lambda: self._from(depth + 1))
        self.scopes.leave(before)

    def _pass(self, level: int, sinks: list[int]) -> None:
        """Sinks that walk the same row axes share loops."""
        self.level = level
        groups: dict[tuple[tuple[str, ...], bool], list[int]] = {}
        for number in sinks:
            axes = tuple([axis for axis in self.schedule.row if axis in self.uses[number]])
            once = isinstance(self.kernel.body[number], Store) and self._once(number)
            groups.setdefault((axes, once), []).append(number)
        # Values come before what stores them, and results before what they are needed for.
        for (axes, once), members in sorted(groups.items(), key=lambda group: -len(group[0][0])):
            if once:
                with self.scopes.region():
                    first = self.f.new(f"icmp eq i64 {self.part}, 0")
                    self.f.branch(first, self._emitter(axes, members))
            else:
                self._group(axes, members)

    def _emitter(self, axes: tuple[str, ...], members: list[int]) -> Any:
        return lambda: self._group(axes, members)

    def _once(self, number: int) -> bool:
        """Whether one part has to do for all, since the axis that is split is not in a store."""
        split = self.schedule.split
        return self.schedule.parts > 1 and split is not None and split not in self.uses[number]

    # --- one group of sinks -----------------------------------------------------------------------

    def _group(self, axes: tuple[str, ...], members: list[int]) -> None:
        kernel = self.kernel
        reductions = [
            n for n in members if isinstance(kernel.body[n], Reduce) and not self._in_memory(n)
        ]
        for number in members:
            if number in self.schedule.stash:
                self.stash.prepare(number)
        for number in reductions:
            self._start(number)
        every, at = self._chain(axes, reductions)
        sums = {n: self._second(n) for n in reductions if at is not None and self._is_sum(n)}

        def flush() -> None:
            for number, second in sums.items():
                self._flush(number, second)

        def nest(place: int) -> None:
            if place == len(axes):
                for number in members:
                    self._feed(number)
                return
            axis = axes[place]
            self._start_scans(axis, members)
            here = place == at and bool(sums)
            self.loop_axis(axis, lambda: nest(place + 1), every if here else 0, flush)

        nest(0)
        if reductions:
            results = [self._finish(number, sums.get(number)) for number in reductions]
            self.scopes.enter()
            for number, known in zip(reductions, results, strict=True):
                for (r, u), states in known.items():
                    self.give_states(number, states, r, u)

    def _feed(self, number: int) -> None:
        """One iteration's share of a sink."""
        node = self.kernel.body[number]
        if self._in_memory(number):
            self._add_to_memory(number)
            return
        for r in range(self.rows if self.block in self.uses[number] else 1):
            for u in range(self.vectors if self.lanes in self.uses[number] else 1):
                if isinstance(node, Store):
                    store(self, number, node, r, u)
                elif isinstance(node, Reduce):
                    self._accumulate(number, node, r, u)
                else:
                    self.stash.write(number, r, u)

    # --- reductions in registers ------------------------------------------------------------------

    def _lanes_of(self, number: int) -> int:
        return self.width if self.lanes in self.uses[number] else 1

    def _dtypes(self, number: int) -> list[str]:
        node: Any = self.kernel.body[number]
        return [self.kernel.dtypes[argument] for argument in node.args]

    def _places(self, number: int) -> list[tuple[int, int]]:
        rows = self.rows if self.block in self.uses[number] else 1
        vectors = 1
        if self.lanes in self.uses[number]:
            inside = self.lanes in self.schedule.row
            vectors = self.schedule.unroll if inside else self.vectors
        return [(r, u) for r in range(rows) for u in range(vectors)]

    def _start(self, number: int) -> None:
        node: Any = self.kernel.body[number]
        for r, u in self._places(number):
            states = cells(self.f, node.combiner, self._dtypes(number), self._lanes_of(number))
            self.accumulators[number, r, u] = states

    def _accumulate(self, number: int, node: Reduce, r: int, u: int) -> None:
        states = self.accumulators[number, r, u]
        wide = self._lanes_of(number) > 1
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

    def _finish(
        self, number: int, second: dict[tuple[int, int], list[Cell]] | None
    ) -> dict[tuple[int, int], list[Value]]:
        """The results of a reduction after its loops, by row and vector."""
        node: Any = self.kernel.body[number]
        states: dict[tuple[int, int], list[Value]] = {}
        for r, u in self._places(number):
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

    def _is_sum(self, number: int) -> bool:
        node: Any = self.kernel.body[number]
        return node.combiner == "sum" and self._dtypes(number)[0][0] in "fc"

    def _chain(self, axes: tuple[str, ...], reductions: list[int]) -> tuple[int, int | None]:
        """After how many iterations of which loop the sums so far are put aside.

        With two accumulators of chains of n / _CHAIN and _CHAIN additions, errors grow with the
        square root of the count as they do in pairwise sums of lanes times blocks.
        """
        if not any(self._is_sum(n) for n in reductions):
            return 0, None
        inside = 1
        for place in range(len(axes) - 1, -1, -1):
            count = sizes.typical(self.kernel.sizes[axes[place]]) // self.step_of(axes[place])
            if inside * count > 2 * _CHAIN:
                return max(_CHAIN // inside, 1), place
            inside *= max(count, 1)
        return 0, None

    def _second(self, number: int) -> dict[tuple[int, int], list[Cell]]:
        node: Any = self.kernel.body[number]
        dtypes, lanes = self._dtypes(number), self._lanes_of(number)
        return {
            place: cells(self.f, node.combiner, dtypes, lanes) for place in self._places(number)
        }

    def _flush(self, number: int, second: dict[tuple[int, int], list[Cell]]) -> None:
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

    def _in_memory(self, number: int) -> bool:
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

    def _clear(self, number: int) -> None:
        """The identities where a part adds up in memory."""
        node: Any = self.kernel.body[number]
        kept = self.stage.kept[number]
        for state, buffer in enumerate(self.stage.partials[number]):
            size = sizes.product(buffer.shape[1:])
            start = self.pointer(buffer, Affine(((PART, size),))).value
            fill(self, start, node.combiner, state, buffer.dtype, size if kept else 1)

    def _add_to_memory(self, number: int) -> None:
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
            for place, dtype in zip(places, self._dtypes(number), strict=True)
        ]
        # Memory starts as the identity, which only the general combination tells apart.
        for place, value in zip(places, combine(self.f, node.combiner, old, states), strict=True):
            memory.store(self.f, value, place, mask)

    # --- scans ------------------------------------------------------------------------------------

    def _start_scans(self, axis: str, members: list[int]) -> None:
        """Fresh carries of the scans along an axis that these sinks read in this pass."""
        row = frozenset(self.schedule.row)
        seen: set[int] = set()
        waiting = list(members)
        while waiting:
            number = waiting.pop()
            if number in seen:
                continue
            seen.add(number)
            node = self.kernel.body[number]
            if isinstance(node, Scan) and node.axis == axis:
                for r, u in self._scan_places(number):
                    lanes = self._lanes_of(number)
                    self.carries[number, r, u] = cells(
                        self.f, node.combiner, self._dtypes(number), lanes
                    )
            for argument in arguments(node):
                source = self.kernel.body[argument]
                if not (isinstance(source, Reduce) and row.intersection(source.axes)):
                    waiting.append(argument)

    def _scan_places(self, number: int) -> list[tuple[int, int]]:
        node: Any = self.kernel.body[number]
        places = self._places(number)
        return [(r, u) for r, u in places if u == 0] if node.axis == self.lanes else places

    def scan(self, number: int, node: Scan, r: int, u: int) -> Held:
        along = node.axis == self.lanes
        wide = self._lanes_of(number) > 1
        args = [self.vector(a, r, u) if wide else self.value(a, r, u) for a in node.args]
        states = self.carries[number, r, 0 if along else u]
        carry = [cell.load() for cell in states]
        if along:
            inside = prefix(self.f, node.combiner, args)
            # The chain from vector to vector is one combination long.
            last = [shuffle(self.f, v, [self.width - 1] * self.width) for v in inside]
            following = combine(self.f, node.combiner, carry, last)
            if node.exclusive:
                inside = self._shifted(node, inside)
            result = combine(self.f, node.combiner, carry, inside)
        else:
            following = combine(self.f, node.combiner, carry, args)
            result = carry if node.exclusive else following
        for cell, value in zip(states, following, strict=True):
            cell.store(value)
        return Held(result[0] if len(result) == 1 else result, self.scopes.depth)

    def _shifted(self, node: Scan, states: list[Value]) -> list[Value]:
        """Each lane's state moved to the next; the first is the identity."""
        indices = [lane - 1 if lane else self.width for lane in range(self.width)]
        return [
            shuffle(self.f, value, indices, identity(node.combiner, n, value.dtype, self.width))
            for n, value in enumerate(states)
        ]
