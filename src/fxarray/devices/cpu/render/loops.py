"""Loops over the axes of a kernel: vectors with a masked end, blocks of rows, and plain ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from fxarray.devices.cpu.emit.combine import identity
from fxarray.devices.cpu.emit.function import FunctionText, Operand
from fxarray.devices.cpu.emit.lanes import tail_mask
from fxarray.devices.cpu.emit.types import Value, is_complex, llvm_type
from fxarray.devices.cpu.render.evaluator import Evaluator
from fxarray.devices.cpu.render.masks import constant_mask
from fxarray.devices.cpu.render.places import is_number
from fxarray.devices.cpu.render.schedule import Schedule
from fxarray.devices.cpu.render.scopes import Held
from fxarray.kernel.ir import Kernel

Body = Callable[[], None]


class Cell:
    """A value in memory on the stack, which LLVM's `sroa` makes a register."""

    def __init__(self, f: FunctionText, dtype: str, lanes: int) -> None:
        self.f = f
        self.dtype = dtype
        self.lanes = lanes
        self.type = llvm_type(dtype, lanes)
        self.places = [f.alloca(self.type) for _ in range(2 if is_complex(dtype) else 1)]

    def load(self) -> Value:
        parts = [self.f.new(f"load {self.type}, ptr {place}") for place in self.places]
        return Value(self.dtype, self.lanes, tuple(parts))

    def store(self, value: Value) -> None:
        for place, part in zip(self.places, value.parts, strict=True):
            self.f.do(f"store {self.type} {part}, ptr {place}")


def cells(f: FunctionText, combiner: str, dtypes: list[str], lanes: int) -> list[Cell]:
    """One cell per state, holding the identities from here on."""
    result = [Cell(f, dtype, lanes) for dtype in dtypes]
    reset(combiner, result)
    return result


def reset(combiner: str, states: list[Cell]) -> None:
    """Make cells hold the identities."""
    for number, cell in enumerate(states):
        cell.store(identity(combiner, number, cell.dtype, cell.lanes))


class Loops(Evaluator):
    """An evaluator that opens axes by loops, as a schedule says."""

    def __init__(
        self,
        f: FunctionText,
        kernel: Kernel,
        schedule: Schedule,
        pointers: Mapping[str, Operand],
        size_words: Mapping[str, Operand],
    ) -> None:
        super().__init__(
            f, kernel, pointers, size_words, schedule.lanes, schedule.width, schedule.block
        )
        self.schedule = schedule
        # How many vectors of the axis on lanes are computed together here.
        self.vectors = schedule.unroll if schedule.lanes else 1
        # The part of an axis that is walked, where it is not the whole, and whether its length is a
        # multiple of the step.
        self.ranges: dict[str, tuple[Operand, Operand]] = {}

    def step_of(self, axis: str) -> int:
        """How many positions one iteration of the main loop over an axis covers."""
        if axis == self.lanes:
            return self.schedule.unroll * self.width
        return self.schedule.rows if axis == self.block else 1

    def range_of(self, axis: str) -> tuple[Operand, Operand]:
        """The positions that are walked."""
        return self.ranges.get(axis) or ("0", self.size(self.kernel.sizes[axis]))

    def loop_axis(self, axis: str, body: Body, every: int = 0, flush: Body | None = None) -> None:
        """Run a body over an axis.

        Args:
          axis: the axis.
          body: emits the body, with the axis open.
          every: after so many iterations of the main loop `flush` runs; 0 is never.
          flush: emits what is done then.
        """
        low, high = self.range_of(axis)
        step = self.step_of(axis)
        if step == 1 and axis != self.lanes:
            self._span(axis, low, high, 1, body, every, flush)
            return
        middle, rest = self._main_part(axis, low, high, step)
        if middle != low:
            rows, vectors = self.rows, self.vectors
            if axis == self.lanes:
                self.vectors = self.schedule.unroll
            else:
                self.rows = step
            self._span(axis, low, middle, step, body, every, flush)
            self.rows, self.vectors = rows, vectors
        if rest == 0:
            return
        rows, vectors = self.rows, self.vectors
        if axis != self.lanes:
            self.rows = 1
            self._span(axis, middle, high, 1, body)
        elif rest is None:
            self.vectors = 1
            self._span(axis, middle, high, self.width, body, masked=True)
        else:
            # The vectors that are full, and then one that is not.
            full = rest // self.width
            end = str(int(high) - rest % self.width)
            if full:
                self.vectors = full
                self._span(axis, middle, end, full * self.width, body)
            if rest % self.width:
                self.vectors = 1
                self._span(axis, end, high, self.width, body, masked=True)
        self.rows, self.vectors = rows, vectors

    def _main_part(
        self, axis: str, low: Operand, high: Operand, step: int
    ) -> tuple[Operand, int | None]:
        """Where whole steps end, and how many positions are left if that is known."""
        size = self.kernel.sizes[axis]
        if is_number(low) and is_number(high):
            rest = max(int(high) - int(low), 0) % step
            return str(max(int(high), int(low)) - rest), rest
        if isinstance(size, int) and size % step == 0:
            # Ranges are multiples of the step, but for the last.
            return high, 0
        length = self.f.subtract(high, low)
        left = self.f.new(f"srem i64 {length}, {step}")
        return self.f.subtract(high, left), None

    def _span(
        self,
        axis: str,
        low: Operand,
        high: Operand,
        step: int,
        body: Body,
        every: int = 0,
        flush: Body | None = None,
        masked: bool = False,
    ) -> None:
        """Iterations of equal kind."""
        mask = self.mask

        def open_at(index: Operand) -> None:
            self.open_axis(axis, index)
            if masked:
                left = self.f.subtract(high, index)
                self.mask = Held(self._mask(left), self.scopes.depth)
            body()

        count = -1
        if is_number(low) and is_number(high):
            count = max(-(-(int(high) - int(low)) // step), 0)
        if 0 <= count <= self.schedule.straight:
            for iteration in range(count):
                with self.scopes.region():
                    open_at(str(int(low) + iteration * step))
        elif every and flush and not 0 <= count <= every:
            self._chunked(low, high, step, open_at, every, flush)
        else:
            with self.scopes.region():
                self.f.loop(low, high, step, open_at)
        self.mask = mask

    def _mask(self, left: Operand) -> Operand:
        if is_number(left):
            return constant_mask([lane < int(left) for lane in range(self.width)])
        return tail_mask(self.f, left, self.width)

    def _chunked(
        self,
        low: Operand,
        high: Operand,
        step: int,
        open_at: Callable[[Operand], None],
        every: int,
        flush: Body,
    ) -> None:
        def chunk(start: Operand) -> None:
            end = self.f.smaller(self.f.add(start, step * every), high)
            with self.scopes.region():
                self.f.loop(start, end, step, open_at)
            flush()

        with self.scopes.region():
            self.f.loop(low, high, step * every, chunk)
