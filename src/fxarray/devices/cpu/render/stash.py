"""Values kept in a thread's own memory from the pass that computes them to later passes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fxarray.devices.cpu.emit import memory
from fxarray.devices.cpu.emit.function import Operand
from fxarray.devices.cpu.emit.types import itemsize, storage_type
from fxarray.devices.cpu.render.scopes import Held
from fxarray.kernel import sizes
from fxarray.kernel.ir import Kernel
from fxarray.kernel.sizes import Size

if TYPE_CHECKING:
    from fxarray.devices.cpu.render.passes import Passes
    from fxarray.devices.cpu.render.schedule import Schedule


def stash_offsets(kernel: Kernel, schedule: Schedule) -> tuple[dict[int, Size], Size]:
    """Where each kept value starts in a thread's memory, in bytes, and how much there is."""
    total: Size = 0
    offsets: dict[int, Size] = {}
    # Wide elements first: so all are aligned.
    for number in sorted(schedule.stash, key=lambda n: -itemsize(kernel.dtypes[n])):
        offsets[number] = total
        bytes_ = schedule.rows * itemsize(kernel.dtypes[number])
        total = sizes.add(total, sizes.multiply(_elements(kernel, schedule, number), bytes_))
        total = sizes.add(total, 128)
    return offsets, total


def _row(kernel: Kernel, schedule: Schedule, number: int) -> list[str]:
    """The row axes that a value has."""
    return [axis for axis in schedule.row if axis in kernel.value_axes[number]]


def _elements(kernel: Kernel, schedule: Schedule, number: int) -> Size:
    """Of one row: vectors side by side where the axis on lanes is not a row axis."""
    inside = sizes.product([kernel.sizes[axis] for axis in _row(kernel, schedule, number)])
    if schedule.lanes is not None and schedule.lanes not in schedule.row:
        return sizes.multiply(inside, schedule.unroll * schedule.width)
    return inside


class Stash:
    """Where the kept values of a stage are."""

    def __init__(self, passes: Passes, scratch: Operand) -> None:
        self.passes = passes
        self.scratch = scratch
        self.offsets, _ = stash_offsets(passes.kernel, passes.schedule)

    def prepare(self, number: int) -> None:
        """From the next pass on the value is read instead of computed."""
        passes = self.passes
        level = passes.levels[number]

        def read(r: int, u: int) -> Held | None:
            if passes.level <= level:
                return None
            lanes = passes.width if passes.lanes in passes.kernel.value_axes[number] else 1
            mask = passes.mask.value if passes.mask is not None and lanes > 1 else None
            value = memory.load(
                passes.f, self._address(number, r, u), passes.kernel.dtypes[number], lanes, mask
            )
            return Held(value, passes.scopes.depth)

        passes.overrides[number] = read

    def write(self, number: int, r: int, u: int) -> None:
        passes = self.passes
        lanes = passes.lanes in passes.kernel.value_axes[number]
        value = passes.vector(number, r, u) if lanes else passes.value(number, r, u)
        mask = passes.mask.value if passes.mask is not None and lanes else None
        memory.store(passes.f, value, self._address(number, r, u), mask)

    def _address(self, number: int, r: int, u: int) -> Operand:
        """Rows of the block one after the other; in a row the row axes, then lanes outside."""
        passes, f = self.passes, self.passes.f
        schedule, kernel = passes.schedule, passes.kernel
        dtype = kernel.dtypes[number]
        index: Operand = "0"
        for axis in _row(kernel, schedule, number):
            index = f.multiply(index, passes.size(kernel.sizes[axis]))
            position = passes.positions[axis][0]
            if axis == passes.lanes:
                position = f.add(position, u * passes.width)
            index = f.add(index, position)
        if passes.lanes is not None and passes.lanes not in schedule.row:
            index = f.multiply(index, schedule.unroll * passes.width)
            index = f.add(index, u * passes.width)
        if r:
            row = passes.size(sizes.multiply(_elements(kernel, schedule, number), r))
            index = f.add(index, row)
        start = f.offset(self.scratch, passes.size(self.offsets[number]))
        return f.offset(start, index, storage_type(dtype))
