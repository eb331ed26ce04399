"""From a graph and its memory plan to the instructions of the walker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fxarray.compile.blocks import Block, Move, Plan, Scope
from fxarray.compile.graph import (
    BranchStep,
    CallStep,
    CopyStep,
    Graph,
    KernelStep,
    ScanStep,
    Step,
    WhileStep,
    reads,
    writes,
)
from fxarray.devices.cpu.native.routine import (
    Address,
    FunctionPointer,
    InputPointer,
    OutputPointer,
    Routine,
    ScratchPointer,
    SizeWord,
)
from fxarray.devices.cpu.program.code import Code, Label, Relocations, Slice, Slices
from fxarray.devices.cpu.program.walker import BOUND_REACHED, Operation
from fxarray.kernel import sizes


def assemble(graph: Graph, plan: Plan, routines: Mapping[Step, Routine | None]) -> Code:
    """The code of a graph.

    Args:
      graph: the graph.
      plan: its memory plan.
      routines: of each KernelStep and CallStep, at any depth, None for those of the host; and of
        loops that are one routine.
    """
    code = Code(len(graph.inputs), plan.fresh)
    assembler = _Assembler(code, routines)
    code.emit(Operation.RELOCATE, code.top)
    assembler.graph(graph, plan.top)
    code.emit(Operation.END)
    return code


class _Assembler:
    def __init__(self, code: Code, routines: Mapping[Step, Routine | None]) -> None:
        self.code = code
        self.routines = routines

    def graph(self, graph: Graph, scope: Scope) -> None:
        for position, step in enumerate(graph.steps):
            routine = self.routines.get(step)
            if routine is not None:
                self.call(step, routine, scope, scope.scratch.get(position))
                continue
            match step:
                case KernelStep() | CallStep():
                    self.host(step, scope)
                case CopyStep():
                    source = scope.block(step.source_slot)
                    self.moves([Move(source, scope.block(step.target))], step)
                case WhileStep():
                    self.while_step(step, scope, position)
                case ScanStep():
                    self.scan_step(step, scope, position)
                case BranchStep():
                    self.branch_step(step, scope, position)

    def call(self, step: Step, routine: Routine, scope: Scope, scratch: Block | None) -> None:
        code, inputs, outputs = self.code, reads(step), writes(step)
        first = len(code.words)
        for word in routine.words:
            match word:
                case InputPointer():
                    code.word(scope.block(inputs[word.number]), word.offset)
                case OutputPointer():
                    code.word(scope.block(outputs[word.number]))
                case ScratchPointer():
                    code.word(scratch)
                case SizeWord():
                    code.word(None, word.size)
                case FunctionPointer():
                    code.word(None, code.text(word.text))
                case Address():
                    code.word(None, word.value)
        code.emit(Operation.CALL, code.text(routine.text), first, step=step)

    def host(self, step: KernelStep | CallStep, scope: Scope) -> None:
        code = self.code
        first = len(code.words)
        for slot in (*step.inputs, *step.outputs):
            code.word(scope.block(slot))
        code.emit(Operation.HOST, len(code.host_steps), first, step=step)
        code.host_steps.append(step)

    def moves(self, moves: Sequence[Move], step: Step) -> None:
        code = self.code
        for move in moves:
            if move.is_needed:
                target, source = code.pointer(move.target), code.pointer(move.source)
                code.emit(Operation.COPY, target, source, move.target.bytes, step=step)

    def while_step(self, step: WhileStep, scope: Scope, position: int) -> None:
        code = self.code
        condition, body = scope.inner[position]
        again, bound, end = Label(), Label(), Label()
        self.moves(scope.before[position], step)
        counter = -1
        if step.max_steps is not None:
            counter = code.counter()
            code.emit(Operation.SET, counter, 0)
        code.place(again)
        self.graph(step.condition, condition)
        code.emit(Operation.UNLESS, end, code.pointer(condition.block(step.condition.outputs[0])))
        if step.max_steps is not None:
            code.emit(Operation.BOUND, counter, step.max_steps, bound)
        self.graph(step.body, body)
        self.moves(scope.after[position][1], step)
        code.emit(Operation.TURN)
        code.emit(Operation.JUMP, again)
        code.place(bound)
        if step.max_steps is not None:
            code.emit(Operation.REPORT, BOUND_REACHED - step.max_steps, step=step)
        code.place(end)

    def scan_step(self, step: ScanStep, scope: Scope, position: int) -> None:
        code = self.code
        (body,) = scope.inner[position]
        count = len(step.initial)
        again, end = Label(), Label()
        self.moves(scope.before[position], step)
        counter, limit = code.counter(), -1
        if step.steps is not None:
            limit = code.counter()
            code.emit(
                Operation.LIMIT, limit, code.pointer(scope.block(step.steps)), step.length, end
            )
            code.emit(Operation.SET, counter, 0)
        else:
            # BOUND leaves 0 in the counter, or goes to the end of a scan of no steps.
            code.emit(Operation.SET, counter, -1)
            code.emit(Operation.BOUND, counter, sizes.subtract(step.length, 1), end)
        first = len(step.constants) + count
        inside = [body.blocks[slot] for slot in step.body.inputs[first:]]
        outside = [scope.block(slot) for slot in step.sequences]
        stacked = [scope.block(slot) for slot in step.outputs[count:]]
        parts = scope.parts[position]
        table, owner = Slices(), Relocations()
        for block, whole in zip([*inside, *parts], [*outside, *stacked], strict=True):
            backward = step.reverse and limit < 0
            offset = sizes.multiply(sizes.subtract(step.length, 1), block.bytes) if backward else 0
            stride = sizes.multiply(block.bytes, -1) if backward else block.bytes
            code.owners[block] = owner
            table.rows.append(
                Slice(block, whole, offset, stride, counter, limit if step.reverse else -1)
            )
        code.place(again)
        if table.rows:
            code.emit(Operation.SLICES, table)
            code.emit(Operation.RELOCATE, owner)
        self.graph(step.body, body)
        self.moves(scope.after[position][0], step)
        code.emit(Operation.TURN)
        if step.steps is not None:
            code.emit(Operation.NEXT_LIMITED, counter, limit, again)
        else:
            code.emit(Operation.NEXT, counter, step.length, again)
        code.place(end)
        if step.steps is not None:
            for part, whole in zip(parts, stacked, strict=True):
                pointer = code.pointer(whole)
                code.emit(Operation.ZERO, pointer, limit, part.bytes, whole.bytes)

    def branch_step(self, step: BranchStep, scope: Scope, position: int) -> None:
        code = self.code
        end = Label()
        starts = [Label() for _ in step.branches]
        code.emit(Operation.SWITCH, code.pointer(scope.block(step.index)), len(starts))
        for label in starts:
            code.emit(Operation.JUMP, label)
        inner, after = scope.inner[position], scope.after[position]
        for label, branch, own, moves in zip(starts, step.branches, inner, after, strict=True):
            code.place(label)
            self.graph(branch, own)
            self.moves(moves, step)
            code.emit(Operation.JUMP, end)
        code.place(end)
