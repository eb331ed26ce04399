"""From a kernel to stages: each has one schedule, and reads what stages before it left."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from fxarray.devices.cpu.native.target import Target
from fxarray.devices.cpu.render.canonical import canonical
from fxarray.devices.cpu.render.choose import Chosen, Cut, Nest, Separate, choose
from fxarray.devices.cpu.render.cuts import (
    combined_parts,
    materialised,
    nested,
    ordered_axes,
    state_dtypes,
    stores_of,
    with_stores,
)
from fxarray.devices.cpu.render.schedule import Schedule, Stage
from fxarray.kernel.analysis import late
from fxarray.kernel.ir import Buffer, Kernel, Store
from fxarray.kernel.rewrite import needed, renumbered
from fxarray.kernel.sizes import Size


@dataclass
class Plan:
    """The stages of a kernel in order, and the buffers between them."""

    stages: list[Stage] = field(default_factory=list[Stage])
    scratch: list[Buffer] = field(default_factory=list[Buffer])

    def buffer(self, shape: tuple[Size, ...], dtype: str) -> Buffer:
        """A new buffer between stages."""
        made = Buffer(f"%scratch{len(self.scratch)}", shape, dtype)
        self.scratch.append(made)
        return made


def plan(kernel: Kernel, target: Target) -> Plan:
    """Stages that compute a kernel without products."""
    result = Plan()
    waiting = list(reversed(_batches(kernel)))
    while waiting:
        current = canonical(waiting.pop())
        choice = choose(current, target)
        match choice:
            case Cut():
                first, rest = materialised(current, choice.number, result.buffer)
                waiting += [rest, first]
            case Nest():
                waiting.append(nested(current, choice.number, choice.inner))
            case Separate():
                others = [n for n in stores_of(current) if n not in choice.stores]
                waiting += [with_stores(current, others), with_stores(current, choice.stores)]
            case Chosen():
                rest = _stage(result, current, choice)
                if rest is not None:
                    waiting.append(rest)
    return result


def _batches(kernel: Kernel) -> list[Kernel]:
    """Kernels none of which stores twice to one buffer, in the order of the stores."""
    batches: list[list[int]] = [[]]
    written: set[str] = set()
    for number, node in enumerate(kernel.body):
        if isinstance(node, Store):
            if node.buffer.name in written:
                batches.append([])
                written = set()
            written.add(node.buffer.name)
            batches[-1].append(number)
    return [kernel] if len(batches) == 1 else [with_stores(kernel, batch) for batch in batches]


def _stage(result: Plan, kernel: Kernel, choice: Chosen) -> Kernel | None:
    """Add a stage; the kernel of what waits for its partial results, if anything does."""
    schedule = choice.schedule
    if not choice.partial:
        result.stages.append(Stage(kernel, schedule))
        return None
    waiting = late(kernel, choice.partial)
    now = [number for number in choice.partial if number not in waiting]
    partials: dict[int, tuple[Buffer, ...]] = {}
    kept: dict[int, tuple[str, ...]] = {}
    for number in now:
        axes = ordered_axes(kernel, number)
        # Lanes side by side, whatever the order of the axes.
        kept[number] = tuple(sorted(axes, key=lambda axis: axis == schedule.lanes))
        shape = (schedule.parts, *[kernel.sizes[axis] for axis in kept[number]])
        partials[number] = tuple(
            [result.buffer(shape, dtype) for dtype in state_dtypes(kernel, number)]
        )
    ready = [number for number in stores_of(kernel) if number not in waiting]
    result.stages.append(_pruned(kernel, schedule, [*ready, *now], partials, kept, choice))
    rest = combined_parts(kernel, partials, kept, schedule.parts)
    done = {b.name for b in kernel.outputs if any(_writes(kernel, n, b) for n in ready)}
    left = [n for n in stores_of(rest) if _buffer_name(rest, n) not in done]
    return with_stores(rest, left) if left else None


def _writes(kernel: Kernel, number: int, buffer: Buffer) -> bool:
    return _buffer_name(kernel, number) == buffer.name


def _buffer_name(kernel: Kernel, number: int) -> str:
    node = kernel.body[number]
    assert isinstance(node, Store)
    return node.buffer.name


def _pruned(
    kernel: Kernel,
    schedule: Schedule,
    wanted: list[int],
    partials: dict[int, tuple[Buffer, ...]],
    kept: dict[int, tuple[str, ...]],
    choice: Chosen,
) -> Stage:
    """The stage with the nodes that it needs only."""
    chosen = sorted(needed(kernel, wanted))
    numbers = {old: new for new, old in enumerate(chosen)}
    body = tuple([renumbered(kernel.body[old], numbers) for old in chosen])
    part = Kernel(kernel.name, kernel.axes, kernel.inputs, kernel.outputs, body)
    stash = frozenset([numbers[n] for n in schedule.stash if n in numbers])
    return Stage(
        part,
        replace(schedule, stash=stash, nontemporal=schedule.nontemporal and bool(stores_of(part))),
        {numbers[n]: buffers for n, buffers in partials.items()},
        {numbers[n]: axes for n, axes in kept.items()},
        frozenset([numbers[n] for n in choice.in_memory if n in numbers and n in partials]),
    )
