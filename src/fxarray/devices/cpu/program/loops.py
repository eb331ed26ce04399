"""Loops over tiny kernels as one routine, with the kernels' code in it.

A loop whose body is a few scalar operations takes nanoseconds a turn if its carries stay in
registers. So its kernels are not called one by one: the loop and they become one LLVM module, whose
functions are inlined, and each value lives in memory on the stack, which LLVM turns into registers.
Nested loops and branches come along. A loop with anything larger in it is left to the walker.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np

from fxarray.compile.blocks import slot_bytes
from fxarray.compile.graph import (
    BranchStep,
    CallStep,
    CopyStep,
    Graph,
    KernelStep,
    ScanStep,
    Slot,
    Step,
    WhileStep,
    reads,
    writes,
)
from fxarray.devices.cpu.emit.function import FunctionText, Operand
from fxarray.devices.cpu.native.routine import (
    Address,
    InputPointer,
    OutputPointer,
    Routine,
    SizeWord,
    Word,
)
from fxarray.devices.cpu.program.host import HOST_ADDRESS
from fxarray.devices.cpu.program.inlined import Module, NotPlain, RoutineOf, call_kernel
from fxarray.devices.cpu.program.walker import BOUND_REACHED, SIGNALS
from fxarray.kernel import sizes
from fxarray.kernel.ir import Kernel
from fxarray.kernel.sizes import Size

Loop: TypeAlias = "WhileStep | ScanStep"

_MOST_POSITIONS = 64  # of a kernel's axes together
_MOST_WORK = 1024  # nodes times positions of all kernels of a loop
_MOST_BYTES = 512  # of a carry, or of a value in the body
_MOST_KERNELS = 40
# Turns until Python looks for signals: milliseconds.
_TURNS = 1 << 20


def is_tiny(step: Loop) -> bool:
    """Whether a loop consists of kernels that are worth being inlined."""
    work = kernels = 0
    waiting: list[Graph] = _graphs(step)
    while waiting:
        graph = waiting.pop()
        for inner in graph.steps:
            match inner:
                case KernelStep():
                    positions = _positions(inner.kernel)
                    if positions is None or positions > _MOST_POSITIONS:
                        return False
                    work += positions * len(inner.kernel.body)
                    kernels += 1
                case CallStep():
                    return False
                case CopyStep():
                    pass
                case _:
                    waiting.extend(_graphs(inner))
            if any(
                not _is_small(slot) for slot in writes(inner) if not isinstance(inner, ScanStep)
            ):
                return False
            if isinstance(inner, ScanStep) and not all(map(_is_small, inner.outputs)):
                return False
    carries = step.outputs[: len(step.initial)]
    return work <= _MOST_WORK and kernels <= _MOST_KERNELS and all(map(_is_small, carries))


def _graphs(step: Step) -> list[Graph]:
    match step:
        case WhileStep():
            return [step.condition, step.body]
        case ScanStep():
            return [step.body]
        case BranchStep():
            return list(step.branches)
        case _:
            return []


def _positions(kernel: Kernel) -> int | None:
    total = 1
    for _, size in kernel.axes:
        if not isinstance(size, int):
            return None
        total *= size
    return total


def _is_small(slot: Slot) -> bool:
    size = slot_bytes(slot)
    return isinstance(size, int) and size <= _MOST_BYTES


def loop_routine(step: Loop, routine_of: RoutineOf) -> Routine | None:
    """The routine of a loop; None where it is not made of tiny kernels alone.

    Args:
      step: the loop.
      routine_of: makes the routine of a kernel.
    """
    if not is_tiny(step):
        return None
    writer = _Writer(routine_of)
    try:
        return writer.routine(step)
    except NotPlain:
        return None


class _Writer:
    def __init__(self, routine_of: RoutineOf) -> None:
        self.routine_of = routine_of
        self.f = FunctionText()
        self.module = Module()
        self.words: list[Word] = []
        self.turns = self.host = ""

    def routine(self, step: Loop) -> Routine:
        """The routine of the outermost loop."""
        f = self.f
        f.declare("declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)")
        f.declare("declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)")
        self.turns = f.alloca("i64", str(_TURNS))
        self.host = self.word(Address(HOST_ADDRESS))
        memory: dict[Slot, Operand] = {}
        for number, slot in enumerate(reads(step)):
            root = slot.root
            if root not in memory and not (root.constant is not None and _is_small(root)):
                pointer = self.word(InputPointer(number))
                # What does not change is read once.
                memory[root] = self.copied(pointer, root) if _is_small(root) else pointer
        targets = [self.word(OutputPointer(number)) for number in range(len(step.outputs))]
        count = len(step.initial)
        carries = [self.stack(slot) for slot in step.outputs[:count]]
        self.loop(step, memory, carries, targets[count:])
        for slot, target, carry in zip(step.outputs, targets, carries, strict=False):
            self.copy(target, carry, slot_bytes(slot))
        f.do("br label %stopped")
        f.label("stopped")
        definition = f.definition("@entry(ptr %runtime, ptr %arguments)")
        self.module.declare(f.declarations)
        text = self.module.text([definition])
        moved: Size = 0
        for slot in (*reads(step), *step.outputs):
            moved = sizes.add(moved, slot_bytes(slot))
        return Routine(text, tuple(self.words), bytes_moved=moved)

    # --- memory -----------------------------------------------------------------------------------

    def word(self, word: Word) -> Operand:
        """A pointer among the arguments, or a size."""
        self.words.append(word)
        kind = "i64" if isinstance(word, SizeWord) else "ptr"
        return self.f.load_word("%arguments", len(self.words) - 1, kind)

    def size(self, size: Size) -> Operand:
        """A size as i64; those of variables are read where they are needed."""
        return str(size) if isinstance(size, int) else self.word(SizeWord(size))

    def stack(self, slot: Slot) -> Operand:
        """Memory on the stack for a value."""
        size = slot_bytes(slot)
        assert isinstance(size, int)
        return self.f.alloca(f"[{size} x i8]")

    def copied(self, pointer: Operand, slot: Slot) -> Operand:
        target = self.stack(slot)
        self.copy(target, pointer, slot_bytes(slot))
        return target

    def copy(self, target: Operand, source: Operand, size: Size) -> None:
        if target != source and size != 0:
            self.f.do(
                f"call void @llvm.memcpy.p0.p0.i64(ptr {target}, ptr {source}, "
                f"i64 {self.size(size)}, i1 false)"
            )

    def pointer(self, slot: Slot, memory: Mapping[Slot, Operand]) -> Operand:
        """Where a slot's value is."""
        root = slot.root
        known = memory.get(root)
        if known is not None:
            return known
        assert root.constant is not None, "a slot is read before it is written"
        if not _is_small(root):
            raise NotPlain
        return self.constant(root)

    def constant(self, slot: Slot) -> Operand:
        """A small constant, as numbers in the code."""
        f = self.f
        assert slot.constant is not None
        data = np.ascontiguousarray(slot.constant).tobytes()
        place = self.stack(slot)
        position = 0
        while position < len(data):
            width = next(w for w in (8, 4, 2, 1) if position + w <= len(data))
            number = int.from_bytes(data[position : position + width], sys.byteorder)
            target = f.offset(place, position)
            f.do(f"store i{8 * width} {number}, ptr {target}, align 1")
            position += width
        return place

    # --- graphs -----------------------------------------------------------------------------------

    def graph(self, graph: Graph, memory: dict[Slot, Operand]) -> list[Operand]:
        """The steps of a graph: where its outputs are."""
        for step in graph.steps:
            if isinstance(step, CopyStep):
                memory[step.target.root] = self.copied(
                    self.pointer(step.source_slot, memory), step.target
                )
                continue
            inputs = [self.pointer(slot, memory) for slot in reads(step)]
            outputs = [self.stack(slot) for slot in writes(step)]
            match step:
                case KernelStep():
                    self.kernel(step, inputs, outputs)
                case WhileStep() | ScanStep():
                    count = len(step.initial)
                    self.loop(step, memory, outputs[:count], outputs[count:])
                case BranchStep():
                    self.branch(step, inputs, outputs)
                case _:
                    raise NotPlain
            memory.update(zip([slot.root for slot in writes(step)], outputs, strict=True))
        return [self.pointer(slot, memory) for slot in graph.outputs]

    def kernel(
        self, step: KernelStep, inputs: Sequence[Operand], outputs: Sequence[Operand]
    ) -> None:
        call_kernel(self.f, self.module, self.routine_of(step), inputs, outputs)

    def branch(
        self, step: BranchStep, inputs: Sequence[Operand], outputs: Sequence[Operand]
    ) -> None:
        f = self.f
        name = f.name("switch")
        index = f.new(f"load i32, ptr {inputs[0]}, align 4")
        last = len(step.branches) - 1
        # What is below 0 takes branch 0, what is above the last the last one.
        negative = f.new(f"icmp slt i32 {index}, 0")
        index = f.new(f"select i1 {negative}, i32 0, i32 {index}")
        cases = " ".join(f"i32 {i}, label %{name}.{i}" for i in range(last))
        f.do(f"switch i32 {index}, label %{name}.{last} [ {cases} ]")
        for number, branch in enumerate(step.branches):
            f.label(f"{name}.{number}")
            inside = dict(zip(branch.inputs, inputs[1:], strict=True))
            results = self.graph(branch, inside)
            for slot, target, result in zip(step.outputs, outputs, results, strict=True):
                self.copy(target, result, slot_bytes(slot))
            f.do(f"br label %{name}.end")
        f.label(f"{name}.end")

    # --- loops ------------------------------------------------------------------------------------

    def loop(
        self,
        step: Loop,
        memory: Mapping[Slot, Operand],
        carries: Sequence[Operand],
        stacked: Sequence[Operand],
    ) -> None:
        for slot, carry in zip(step.initial, carries, strict=True):
            self.copy(carry, self.pointer(slot, memory), slot_bytes(slot))
        if isinstance(step, WhileStep):
            self.while_loop(step, memory, carries)
        else:
            self.scan(step, memory, carries, stacked)

    def while_loop(
        self, step: WhileStep, memory: Mapping[Slot, Operand], carries: Sequence[Operand]
    ) -> None:
        f, name = self.f, self.f.name("while")
        before = [self.pointer(slot, memory) for slot in step.condition_constants]
        constants = [self.pointer(slot, memory) for slot in step.body_constants]
        counter = f.alloca("i64", "0") if step.max_steps is not None else ""
        f.do(f"br label %{name}")
        f.label(name)
        inside = dict(zip(step.condition.inputs, [*before, *carries], strict=True))
        (value,) = self.graph(step.condition, inside)
        truth = f.new(f"load i8, ptr {value}, align 1")
        more = f.new(f"icmp ne i8 {truth}, 0")
        f.do(f"br i1 {more}, label %{name}.go, label %{name}.end")
        f.label(f"{name}.go")
        if step.max_steps is not None:
            count = f.new(f"load i64, ptr {counter}")
            f.do(f"store i64 {f.add(count, 1)}, ptr {counter}")
            reached = f.new(f"icmp sge i64 {count}, {step.max_steps}")
            f.do(f"br i1 {reached}, label %{name}.bound, label %{name}.body")
            f.label(f"{name}.bound")
            self.call_host(BOUND_REACHED - step.max_steps, f"{name}.end")
            f.label(f"{name}.body")
        inside = dict(zip(step.body.inputs, [*constants, *carries], strict=True))
        results = self.graph(step.body, inside)
        self.assign(step.initial, carries, results)
        self.turn(name)
        f.do(f"br label %{name}")
        f.label(f"{name}.end")

    def scan(
        self,
        step: ScanStep,
        memory: Mapping[Slot, Operand],
        carries: Sequence[Operand],
        stacked: Sequence[Operand],
    ) -> None:
        f, name, count = self.f, self.f.name("scan"), len(step.initial)
        constants = [self.pointer(slot, memory) for slot in step.constants]
        sequences = [self.pointer(slot, memory) for slot in step.sequences]
        length = turns = self.size(step.length)
        if step.steps is not None:
            given = f.new(f"load i32, ptr {self.pointer(step.steps, memory)}, align 4")
            wide = f.new(f"sext i32 {given} to i64")
            turns = f.smaller(f.larger(wide, 0), length)
        sliced = step.body.inputs[len(constants) + count :]

        def body(turn: Operand) -> None:
            place = f.subtract(f.subtract(turns, 1), turn) if step.reverse else turn

            def part(whole: Operand, slot: Slot) -> Operand:
                size = slot_bytes(slot)
                assert isinstance(size, int)
                return f.offset(whole, f.multiply(place, size))

            slices = [part(whole, slot) for whole, slot in zip(sequences, sliced, strict=True)]
            inside = dict(zip(step.body.inputs, [*constants, *carries, *slices], strict=True))
            results = self.graph(step.body, inside)
            outside = zip(stacked, step.body.outputs[count:], results[count:], strict=True)
            for whole, slot, result in outside:
                self.copy(part(whole, slot), result, slot_bytes(slot))
            self.assign(step.initial, carries, results[:count])
            self.turn(name)

        f.loop(0, turns, 1, body)
        if step.steps is None:
            return
        for whole, slot in zip(stacked, step.body.outputs[count:], strict=True):
            size = slot_bytes(slot)
            assert isinstance(size, int)
            place = f.offset(whole, f.multiply(turns, size))
            rest = f.multiply(f.subtract(length, turns), size)
            f.do(f"call void @llvm.memset.p0.i64(ptr {place}, i8 0, i64 {rest}, i1 false)")

    def assign(
        self, slots: Sequence[Slot], carries: Sequence[Operand], results: Sequence[Operand]
    ) -> None:
        """Give carries their next values, all at once."""
        held = [
            self.copied(result, slot) if result in carries and result != carry else result
            for slot, carry, result in zip(slots, carries, results, strict=True)
        ]
        for slot, carry, result in zip(slots, carries, held, strict=True):
            self.copy(carry, result, slot_bytes(slot))

    def turn(self, name: str) -> None:
        """Let Python look for signals now and then."""
        f = self.f
        left = f.new(f"load i64, ptr {self.turns}")
        left = f.new(f"sub i64 {left}, 1")
        f.do(f"store i64 {left}, ptr {self.turns}")
        due = f.new(f"icmp sle i64 {left}, 0")
        f.do(f"br i1 {due}, label %{name}.look, label %{name}.next")
        f.label(f"{name}.look")
        f.do(f"store i64 {_TURNS}, ptr {self.turns}")
        self.call_host(SIGNALS, f"{name}.next")
        f.label(f"{name}.next")

    def call_host(self, number: int, then: str) -> None:
        """Call the host, and go on with a label unless it says stop."""
        f = self.f
        unused = f.alloca("i64")
        status = f.new(f"call i64 {self.host}(i64 {number}, ptr %arguments, ptr {unused})")
        fine = f.new(f"icmp eq i64 {status}, 0")
        f.do(f"br i1 {fine}, label %{then}, label %stopped")
