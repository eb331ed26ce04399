"""One stage as the text of a function: outer loops around passes, with accumulators and scans.

A pass runs over the row axes and feeds sinks: stores, reductions, values kept for later passes.
The results of a pass are known in the region that follows it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fxarray.devices.cpu.emit.combine import combine, identity
from fxarray.devices.cpu.emit.function import FunctionText, Operand
from fxarray.devices.cpu.emit.lanes import prefix, shuffle
from fxarray.devices.cpu.emit.types import Value
from fxarray.devices.cpu.render.accumulators import Reductions
from fxarray.devices.cpu.render.loops import Cell, cells
from fxarray.devices.cpu.render.schedule import Stage, part_length
from fxarray.devices.cpu.render.scopes import Held
from fxarray.devices.cpu.render.stash import Stash
from fxarray.devices.cpu.render.stores import store
from fxarray.kernel.analysis import levels
from fxarray.kernel.ir import Reduce, Scan, Store, arguments


class Passes(Reductions):
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
        super().__init__(f, stage, pointers, size_words, part)
        self.stash = Stash(self, scratch)
        kernel, row = self.kernel, frozenset(self.schedule.row)
        self.levels = levels(kernel, row)
        self.level = 0
        self.sinks: dict[tuple[int, int], list[int]] = {}
        for number, node in enumerate(kernel.body):
            if isinstance(node, Store | Reduce) or number in self.schedule.stash:
                place = (self.depth_of(number), self.levels[number])
                self.sinks.setdefault(place, []).append(number)
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
            self.clear(number)
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
            n for n in members if isinstance(kernel.body[n], Reduce) and not self.in_memory(n)
        ]
        for number in members:
            if number in self.schedule.stash:
                self.stash.prepare(number)
        for number in reductions:
            self.start(number)
        every, at = self.chain(axes, reductions)
        sums = {n: self.second(n) for n in reductions if at is not None and self.is_sum(n)}

        def flush() -> None:
            for number, second in sums.items():
                self.flush(number, second)

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
            results = [self.finish(number, sums.get(number)) for number in reductions]
            self.scopes.enter()
            for number, known in zip(reductions, results, strict=True):
                for (r, u), states in known.items():
                    self.give_states(number, states, r, u)

    def _feed(self, number: int) -> None:
        """One iteration's share of a sink."""
        node = self.kernel.body[number]
        if self.in_memory(number):
            self.add_to_memory(number)
            return
        for r in range(self.rows if self.block in self.uses[number] else 1):
            for u in range(self.vectors if self.lanes in self.uses[number] else 1):
                if isinstance(node, Store):
                    store(self, number, node, r, u)
                elif isinstance(node, Reduce):
                    self.accumulate(number, node, r, u)
                else:
                    self.stash.write(number, r, u)

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
                    lanes = self.lanes_of(number)
                    self.carries[number, r, u] = cells(
                        self.f, node.combiner, self.dtypes(number), lanes
                    )
            for argument in arguments(node):
                source = self.kernel.body[argument]
                if not (isinstance(source, Reduce) and row.intersection(source.axes)):
                    waiting.append(argument)

    def _scan_places(self, number: int) -> list[tuple[int, int]]:
        node: Any = self.kernel.body[number]
        places = self.places(number)
        return [(r, u) for r, u in places if u == 0] if node.axis == self.lanes else places

    def scan(self, number: int, node: Scan, r: int, u: int) -> Held:
        along = node.axis == self.lanes
        wide = self.lanes_of(number) > 1
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
