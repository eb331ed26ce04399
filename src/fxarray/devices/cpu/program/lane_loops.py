"""Loops over lanes of which each ends on its own: a few lanes at a time, until these are done.

vmap of a while loop makes one in which all lanes step together as long as any wants to, and lanes
that are done keep their values. Where a step is one elementwise kernel, no lane looks at another.
So the kernel of a step becomes a routine that takes a few lanes, which stay in registers, through
as many steps as they want; the loop around it remains, and mostly finds that nobody wants more.
Lanes of which there are many are shared among threads.

A lane that is done may be stepped or not: carries are `select(active, new, old)`, and what else is
carried is computed of those, so it is the same after every step but the first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from fxarray.compile.graph import KernelStep, WhileStep
from fxarray.devices.cpu.emit.function import FunctionText, Operand
from fxarray.devices.cpu.emit.types import itemsize
from fxarray.devices.cpu.native.routine import (
    RUN_WORD,
    InputPointer,
    OutputPointer,
    Routine,
)
from fxarray.devices.cpu.program.inlined import Module, NotPlain, RoutineOf, call_kernel
from fxarray.kernel import sizes
from fxarray.kernel.analysis import flops
from fxarray.kernel.ir import Affine, Buffer, Const, Kernel, Load, Node, Op, Reduce, Store

_WIDTH = 32  # lanes that are in registers at a time
_CHUNKS = 16  # of these lanes are worth a thread
_PARTS = 64
# Steps until the loop outside looks for signals: milliseconds.
_STEPS = 1 << 16
_MOST_NODES = 160


@dataclass(frozen=True)
class _Lanes:
    """A step of a loop over lanes.

    Args:
      step: its one kernel.
      count: the number of lanes.
      carried: for each output of the kernel, the input that it is in the next step.
      active: the output that says which lanes want a step more.
    """

    step: KernelStep
    count: int
    carried: tuple[int, ...]
    active: int


def lane_routine(step: WhileStep, routine_of: RoutineOf) -> tuple[KernelStep, Routine] | None:
    """The kernel of a loop's step, and a routine that does it as often as its lanes want.

    Args:
      step: the loop.
      routine_of: makes the routine of a kernel.

    Returns:
      None where lanes depend on each other, or on how often those that are done are stepped.
    """
    found = _lanes(step)
    if found is None:
        return None
    try:
        return found.step, _routine(found, routine_of)
    except NotPlain:
        return None


# --- which loops ----------------------------------------------------------------------------------


def _lanes(loop: WhileStep) -> _Lanes | None:
    body, condition = loop.body, loop.condition
    if loop.max_steps is not None or len(body.steps) != 1 or len(condition.steps) != 1:
        return None
    step, test = body.steps[0], condition.steps[0]
    if not isinstance(step, KernelStep) or not isinstance(test, KernelStep):
        return None
    kernel = step.kernel
    count = kernel.axes[0][1] if len(kernel.axes) == 1 else None
    if not isinstance(count, int) or not _is_elementwise(kernel) or not _is_any(test.kernel):
        return None
    carries = body.inputs[len(loop.body_constants) :]
    if len(set(body.outputs)) != len(carries) or len(set(step.inputs)) != len(step.inputs):
        return None
    if any(slot.view_of is not None for slot in (*body.outputs, *body.inputs)):
        return None
    places = dict(zip(body.outputs, carries, strict=True))
    # All carries are of the kernel, and every output of the kernel is a carry that it reads.
    if set(places) != set(step.outputs) or any(c not in step.inputs for c in carries):
        return None
    carried = tuple([step.inputs.index(places[slot]) for slot in step.outputs])
    before = condition.inputs[len(loop.condition_constants) :]
    if condition.outputs != tuple(test.outputs) or test.inputs[0] not in before:
        return None
    tested = body.outputs[before.index(test.inputs[0])]
    active = step.outputs.index(tested)
    if not _keeps_lanes(kernel, carried, active):
        return None
    return _Lanes(step, count, carried, active)


def _is_any(kernel: Kernel) -> bool:
    """Whether a kernel is `any` of its input."""
    match kernel.body:
        case (Load(bounds=()) as load, Reduce("or", (0,), axes), Store(value=1, index=())):
            own = [(Affine(((axis, 1),)),) for axis in axes]
            return own == [load.index] and load.buffer.shape == (kernel.sizes[axes[0]],)
        case _:
            return False


def _is_elementwise(kernel: Kernel) -> bool:
    """Whether each lane reads and writes its own elements, and scalars."""
    (axis, count) = kernel.axes[0]
    own = (Affine(((axis, 1),)),)
    if len(kernel.body) > _MOST_NODES:
        return False
    for node in kernel.body:
        match node:
            case Load() | Store():
                shape = node.buffer.shape
                lane = node.index == own and shape == (count,)
                scalar = isinstance(node, Load) and not shape and not node.index
                if node.bounds or not (lane or scalar):
                    return False
                if isinstance(node, Store) and node.mode != "set":
                    return False
            case Const() | Op():
                pass
            case _:
                return False
    return True


def _keeps_lanes(kernel: Kernel, carried: Sequence[int], active: int) -> bool:
    """Whether lanes that are not active stay as they are, whatever is done to them."""
    body = kernel.body
    inputs = {buffer.name: number for number, buffer in enumerate(kernel.inputs)}
    read = {
        number: inputs[node.buffer.name]
        for number, node in enumerate(body)
        if isinstance(node, Load)
    }
    stored = {node.buffer.name: node.value for node in body if isinstance(node, Store)}
    outputs = [stored[buffer.name] for buffer in kernel.outputs]
    flag = carried[active]
    changing = set(carried)

    def is_flag(value: int) -> bool:
        return read.get(value) == flag

    def is_kept(value: int, place: int) -> bool:
        node = body[value]
        if place == flag:
            return isinstance(node, Op) and node.op == "and" and any(map(is_flag, node.args))
        selects = isinstance(node, Op) and node.op == "select" and is_flag(node.args[0])
        return selects and read.get(body[value].args[2]) == place  # type: ignore[union-attr]

    kept = {v for v, place in zip(outputs, carried, strict=True) if is_kept(v, place)}
    if outputs[active] not in kept:
        return False
    steady: set[int] = set(kept)
    for number, node in enumerate(body):
        constant = isinstance(node, Load) and read[number] not in changing
        computed = isinstance(node, Op) and all(a in steady for a in node.args)
        if isinstance(node, Const) or constant or computed:
            steady.add(number)
    return all(value in steady for value in outputs)


# --- the routine ----------------------------------------------------------------------------------


def _narrowed(kernel: Kernel, width: int) -> Kernel:
    """The kernel for so many lanes."""

    def buffer(old: Buffer) -> Buffer:
        return replace(old, shape=(width,) if old.shape else (), alias=None)

    body: list[Node] = [
        replace(node, buffer=buffer(node.buffer)) if isinstance(node, Load | Store) else node
        for node in kernel.body
    ]
    return Kernel(
        kernel.name,
        ((kernel.axes[0][0], width),),
        tuple(map(buffer, kernel.inputs)),
        tuple(map(buffer, kernel.outputs)),
        tuple(body),
    )


def _routine(lanes: _Lanes, routine_of: RoutineOf) -> Routine:
    kernel, count = lanes.step.kernel, lanes.count
    words = (
        *[InputPointer(number) for number in range(len(kernel.inputs))],
        *[OutputPointer(number) for number in range(len(kernel.outputs))],
    )
    module = Module()
    definitions: list[str] = []
    entry = FunctionText()
    chunks, rest = divmod(count, _WIDTH)
    if chunks:
        parts = max(1, min(_PARTS, chunks // _CHUNKS))
        f = FunctionText()
        low = f.new(f"udiv i64 {f.multiply('%part', chunks)}, {parts}")
        high = f.new(f"udiv i64 {f.multiply(f.add('%part', 1), chunks)}, {parts}")
        wide = _Chunk(f, lanes, _WIDTH, module, routine_of)
        f.loop(low, high, 1, lambda chunk: wide.run(f.multiply(chunk, _WIDTH)))
        signature = "@chunks(ptr %runtime, ptr %arguments, i64 %thread, i64 %part)"
        definitions.append(f.definition(signature, "internal"))
        module.declare(f.declarations)
        operands = "ptr %runtime, ptr @chunks, ptr %arguments"
        if parts == 1:
            entry.do("call void @chunks(ptr %runtime, ptr %arguments, i64 0, i64 0)")
        else:
            run = entry.load_word("%runtime", RUN_WORD, "ptr")
            entry.do(f"call void {run}({operands}, i64 {parts})")
    if rest:
        single = _Chunk(entry, lanes, 1, module, routine_of)
        entry.loop(chunks * _WIDTH, count, 1, single.run)
    definitions.append(entry.definition("@entry(ptr %runtime, ptr %arguments)"))
    module.declare(entry.declarations)
    moved = sum(
        sizes.typical(sizes.product(b.shape)) * itemsize(b.dtype)
        for b in (*kernel.inputs, *kernel.outputs)
    )
    return Routine(module.text(definitions), words, flops=flops(kernel), bytes_moved=moved)


class _Chunk:
    """A few lanes, taken through their steps."""

    def __init__(
        self,
        f: FunctionText,
        lanes: _Lanes,
        width: int,
        module: Module,
        routine_of: RoutineOf,
    ) -> None:
        self.f, self.lanes, self.width, self.module = f, lanes, width, module
        kernel = _narrowed(lanes.step.kernel, width)
        self.step = replace(lanes.step, kernel=kernel)
        self.routine = routine_of(self.step)
        f.declare("declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)")
        words = len(kernel.inputs) + len(kernel.outputs)
        self.words = [f.load_word("%arguments", number, "ptr") for number in range(words)]

    def bytes(self, buffer: Buffer) -> int:
        return itemsize(buffer.dtype) * (self.width if buffer.shape else 1)

    def copy(self, target: Operand, source: Operand, buffer: Buffer) -> None:
        operands = f"ptr {target}, ptr {source}, i64 {self.bytes(buffer)}, i1 false"
        self.f.do(f"call void @llvm.memcpy.p0.p0.i64({operands})")

    def outside(self, number: int, buffer: Buffer, start: Operand) -> Operand:
        """Where a chunk of an argument is."""
        if not buffer.shape:
            return self.words[number]
        return self.f.offset(self.words[number], self.f.multiply(start, itemsize(buffer.dtype)))

    def run(self, start: Operand) -> None:
        """Step the lanes from one on."""
        f, kernel, lanes = self.f, self.step.kernel, self.lanes
        inside: list[Operand] = []
        for number, buffer in enumerate(kernel.inputs):
            place = f.alloca(f"[{self.bytes(buffer)} x i8]")
            self.copy(place, self.outside(number, buffer, start), buffer)
            inside.append(place)
        results = [f.alloca(f"[{self.bytes(buffer)} x i8]") for buffer in kernel.outputs]
        turns = f.alloca("i64", "0")
        name = f.name("step")
        f.do(f"br label %{name}")
        f.label(name)
        call_kernel(f, self.module, self.routine, inside, results)
        for number, buffer in enumerate(kernel.outputs):
            self.copy(inside[lanes.carried[number]], results[number], buffer)
        turn = f.add(f.new(f"load i64, ptr {turns}"), 1)
        f.do(f"store i64 {turn}, ptr {turns}")
        bits = f"i{8 * self.width}"
        flags = f.new(f"load {bits}, ptr {results[lanes.active]}")
        some = f.new(f"icmp ne {bits} {flags}, 0")
        few = f.new(f"icmp slt i64 {turn}, {_STEPS}")
        f.do(f"br i1 {f.new(f'and i1 {some}, {few}')}, label %{name}, label %{name}.end")
        f.label(f"{name}.end")
        for number, buffer in enumerate(kernel.outputs):
            place = self.outside(len(kernel.inputs) + number, buffer, start)
            self.copy(place, results[number], buffer)
