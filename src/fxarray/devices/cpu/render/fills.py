"""Memory that starts as the identity of a combiner."""

from __future__ import annotations

from fxarray.devices.cpu.emit import memory
from fxarray.devices.cpu.emit.combine import identity
from fxarray.devices.cpu.emit.function import Operand
from fxarray.devices.cpu.emit.types import storage_type
from fxarray.devices.cpu.render.places import Places
from fxarray.kernel.sizes import Size


def fill(
    places: Places, start: Operand, combiner: str, state: int, dtype: str, count: Size
) -> None:
    """The identity in so many elements from an address."""
    f, width = places.f, places.width

    def put(index: Operand, lanes: int) -> None:
        value = identity(combiner, state, dtype, lanes)
        memory.store(f, value, f.offset(start, index, storage_type(dtype)))

    if count == 1:
        put("0", 1)
        return
    end = places.size(count)
    left = str(count % width) if isinstance(count, int) else f.new(f"srem i64 {end}, {width}")
    middle = f.subtract(end, left)
    f.loop("0", middle, width, lambda index: put(index, width))
    if left != "0":
        f.loop(middle, end, 1, lambda index: put(index, 1))
