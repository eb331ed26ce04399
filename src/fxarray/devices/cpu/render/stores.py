"""Stores: in a row, backwards, strided or scattered; with bounds; set or combined."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fxarray.devices.cpu.emit import memory, scalars
from fxarray.devices.cpu.emit.function import Operand
from fxarray.devices.cpu.emit.lanes import reverse
from fxarray.devices.cpu.emit.types import Value, storage_type
from fxarray.devices.cpu.render.masks import reversed_mask
from fxarray.devices.cpu.render.scopes import Held
from fxarray.devices.cpu.render.tuning import writes_whole_vectors
from fxarray.kernel.ir import Store

if TYPE_CHECKING:
    from fxarray.devices.cpu.render.passes import Passes


def store(passes: Passes, number: int, node: Store, r: int, u: int) -> None:
    """One store at a row and vector."""
    scalar, vector = passes.within(node.bounds, r, u) if node.bounds else (None, None)
    if scalar is None:
        _inside(passes, number, node, r, u, vector)
        return
    with passes.scopes.region():
        passes.f.branch(scalar.value, lambda: _inside(passes, number, node, r, u, vector))


def _inside(passes: Passes, number: int, node: Store, r: int, u: int, vector: Held | None) -> None:
    f, dtype = passes.f, node.buffer.dtype
    affine = node.buffer.flat(node.index)
    pointer = passes.pointer(node.buffer, affine, r, u).value
    if passes.lanes not in passes.uses[number]:
        value = passes.value(node.value, r, u)
        if node.mode != "set":
            held = memory.load(f, pointer, dtype, 1)
            value = scalars.apply(f, node.mode, [held, value], dtype)
        memory.store(f, value, pointer)
        return
    value = passes.vector(node.value, r, u)
    mask = passes.lane_mask(None, vector)
    operand = mask.value if mask is not None else None
    step = passes.step(affine)
    if passes.lane_terms(affine, r, u):
        offsets = passes.lane_offsets(affine, r, u).value
        if node.mode != "set":
            held = memory.gather(f, pointer, offsets, dtype, passes.width, operand)
            value = scalars.apply(f, node.mode, [held, value], dtype)
        memory.scatter(f, value, pointer, offsets, operand)
    elif step == 1:
        if node.mode != "set":
            held = memory.load(f, pointer, dtype, passes.width, operand)
            value = scalars.apply(f, node.mode, [held, value], dtype)
        streamed = passes.schedule.nontemporal and writes_whole_vectors(node, passes.schedule)
        memory.store(f, value, pointer, operand, streamed)
    elif step == -1 and node.mode == "set":
        _store_backwards(passes, value, pointer, dtype, operand)
    else:
        stride = passes.size(step)
        if node.mode != "set":
            held = memory.load_strided(f, pointer, stride, dtype, passes.width, operand)
            value = scalars.apply(f, node.mode, [held, value], dtype)
        memory.store_strided(f, value, pointer, stride, operand)


def _store_backwards(
    passes: Passes, value: Value, pointer: Operand, dtype: str, mask: Operand | None
) -> None:
    """Lanes that go backwards in memory: turned round, and one store."""
    f = passes.f
    first = f.offset(pointer, 1 - passes.width, storage_type(dtype))
    if mask is not None:
        mask = reversed_mask(f, mask, passes.width)
    memory.store(f, reverse(f, value), first, mask)
