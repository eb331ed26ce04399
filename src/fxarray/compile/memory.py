"""The memory plan of a graph: which slots share memory, and where each lies.

Planning has two halves. `plan` decides, once for a graph, what does not depend on numbers: which
slots are one `Block` of memory (an output that overwrites a dying operand, a loop's carry and its
next value), and when each block is alive. `Plan.layout` then gives the temporary blocks their
places in one arena, for given sizes of variables.

Time is counted through the whole program, loops and branches included, as the steps are written:
what lives across a loop lives through all of its steps, and steps of different branches, or of one
branch at different times, share memory as any others do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from fxarray.compile.blocks import Block, Layout, Move, Plan, Scope, join, slot_bytes, touch
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
from fxarray.compile.in_place import kernel_pairs
from fxarray.kernel.sizes import Size

Pairs: TypeAlias = Sequence[tuple[int, int]]


def plan(
    graph: Graph,
    donated: Iterable[int] = (),
    in_place: Callable[[CallStep], Pairs] | None = None,
    scratch: Callable[[Step], Size] | None = None,
    whole: Callable[[Step], bool] | None = None,
) -> Plan:
    """Plan a graph's memory.

    Args:
      graph: the graph.
      donated: positions of inputs whose memory the call may reuse.
      in_place: for a call, pairs of an output and the input that it may overwrite.
      scratch: bytes of scratch memory that a step needs.
      whole: whether the device runs a step as one routine; loops and branches of which it says so
        read their inputs before they write their outputs.
    """
    return _Planner(frozenset(donated), in_place, scratch, whole).plan(graph)


class _Planner:
    def __init__(
        self,
        donated: frozenset[int],
        in_place: Callable[[CallStep], Pairs] | None,
        scratch: Callable[[Step], Size] | None,
        whole: Callable[[Step], bool] | None,
    ) -> None:
        self.donated = donated
        self.in_place = in_place
        self.scratch = scratch
        self.whole = whole
        self.time = 0
        self.temporaries: list[Block] = []
        self.reuse: dict[int, int] = {}
        # Donated inputs that no output has taken.
        self.free_donated: dict[Block, Slot] = {}
        # Blocks that hold nothing before the step that is to write them.
        self.empty: set[Block] = set()

    def plan(self, graph: Graph) -> Plan:
        top = Scope()
        for number, slot in enumerate(graph.inputs):
            block = Block("input", slot_bytes(slot), number)
            top.blocks[slot] = block
            if number in self.donated:
                self.free_donated[block] = slot
        returned: list[Slot] = [slot.root for slot in graph.outputs]
        written = {slot.root for step in graph.steps for slot in writes(step)}
        fresh: list[int] = []
        wanted: dict[Slot, Block] = {}
        for number, slot in enumerate(returned):
            if slot in written and slot not in wanted:
                wanted[slot] = Block("output", slot_bytes(slot), number)
                self.empty.add(wanted[slot])
                fresh.append(number)
        for slot in returned:
            if slot in top.blocks:
                self.free_donated.pop(top.blocks[slot], None)
        self.scope(graph, top, wanted, outermost=True)
        outputs = tuple([self.resolve(top, slot) for slot in returned])
        return Plan(top, outputs, tuple(fresh), self.reuse, tuple(self.temporaries))

    # --- blocks -----------------------------------------------------------------------------------

    def temporary(self, size: Size) -> Block:
        block = Block("temporary", size, first=self.time, last=self.time)
        self.temporaries.append(block)
        return block

    def resolve(self, scope: Scope, slot: Slot) -> Block:
        """The block of a slot that is read."""
        root = slot.root
        block = scope.blocks.get(root)
        if block is None:
            if root.constant is None:
                raise AssertionError(f"a slot of type {root.type} is read before it is written")
            block = scope.blocks[root] = Block("constant", slot_bytes(root), array=root.constant)
        return block.find()

    def read(self, scope: Scope, slots: Iterable[Slot]) -> None:
        for slot in slots:
            touch(self.resolve(scope, slot), self.time)

    # --- graphs -----------------------------------------------------------------------------------

    def scope(
        self, graph: Graph, scope: Scope, wanted: Mapping[Slot, Block], outermost: bool = False
    ) -> None:
        """Plan the steps of a graph.

        Args:
          graph: the graph.
          scope: its plan, with its inputs' blocks.
          wanted: blocks that certain slots are to be written to.
          outermost: whether it is the whole program.
        """
        last_read: dict[Slot, int] = {}
        for position, step in enumerate(graph.steps):
            for slot in reads(step):
                last_read[slot.root] = position
        for slot in graph.outputs:
            last_read[slot.root] = len(graph.steps)
        own = {slot.root for step in graph.steps for slot in writes(step)}
        for position, step in enumerate(graph.steps):
            self.time += 1
            targets = self.targets(graph, scope, wanted, last_read, own, position, outermost)
            for slot, block in zip(writes(step), targets, strict=True):
                block.find().first = min(block.find().first, self.time)
                touch(block.find(), self.time)
                scope.blocks[slot.root] = block
            is_whole = self.whole is not None and self.whole(step)
            match step:
                case _ if is_whole or isinstance(step, KernelStep | CallStep):
                    size = self.scratch(step) if self.scratch else 0
                    if size != 0:
                        scope.scratch[position] = self.temporary(size)
                case WhileStep():
                    self.while_step(scope, position, step)
                case ScanStep():
                    self.scan_step(scope, position, step)
                case BranchStep():
                    self.branch_step(scope, position, step)
                case _:
                    pass
            self.read(scope, reads(step))
            for slot in writes(step):
                touch(scope.block(slot), self.time)

    def targets(
        self,
        graph: Graph,
        scope: Scope,
        wanted: Mapping[Slot, Block],
        last_read: Mapping[Slot, int],
        own: set[Slot],
        position: int,
        outermost: bool,
    ) -> list[Block]:
        """Where a step writes: to wanted blocks, over operands that die, else to new ones."""
        step = graph.steps[position]
        operands = [slot.root for slot in reads(step)]
        results = list(writes(step))
        over: dict[int, list[Slot]] = {}
        for output, slot in self.overwritable(step):
            root = slot.root
            dies = operands.count(root) == 1 and last_read[root] == position
            if dies and slot_bytes(root) == slot_bytes(results[output]):
                over.setdefault(output, []).append(root)
        found: list[Block] = []
        taken: set[Block] = set()
        for output, slot in enumerate(results):
            block = wanted.get(slot.root)
            candidates = [root for root in over.get(output, ()) if root in own]
            if block is not None and outermost:
                self.donate(block.find(), slot, over.get(output, ()), scope, last_read, position)
            for root in candidates:
                dying = scope.block(root)
                if dying in taken or dying.kind != "temporary":
                    continue
                if block is None:
                    block = dying
                elif block.find() in self.empty:
                    join(dying, block)
                else:
                    continue
                taken.add(block)
                break
            if block is None:
                block = self.temporary(slot_bytes(slot))
            found.append(block)
        # From now on they hold something: the carries of a loop do so all through its body.
        self.empty.difference_update([block.find() for block in found])
        return found

    def donate(
        self,
        block: Block,
        slot: Slot,
        over: Sequence[Slot],
        scope: Scope,
        last_read: Mapping[Slot, int],
        position: int,
    ) -> None:
        """Let an output have the memory of a donated input of its type that is dead by now."""
        best: Block | None = None
        for donated, given in self.free_donated.items():
            if not given.type.same_array(slot.type):
                continue
            if given in over:
                best = donated
                break
            if best is None and last_read.get(given, -1) < position:
                best = donated
        if best is not None:
            self.empty.discard(block)
            del self.free_donated[best]
            self.reuse[block.number] = best.number

    def overwritable(self, step: Step) -> Iterable[tuple[int, Slot]]:
        """Pairs of an output and an operand that it may overwrite, if that dies."""
        match step:
            case KernelStep():
                pairs = kernel_pairs(step.kernel)
                return [(output, step.inputs[number]) for output, number in pairs]
            case CallStep():
                found = self.in_place(step) if self.in_place else ()
                return [(output, step.inputs[number]) for output, number in found]
            case CopyStep():
                return [(0, step.source_slot)]
            case WhileStep():
                return list(enumerate(step.initial))
            case ScanStep():
                return list(enumerate(step.initial))
            case BranchStep():
                return ()

    # --- control flow -----------------------------------------------------------------------------

    def while_step(self, scope: Scope, position: int, step: WhileStep) -> None:
        carries = [scope.block(slot) for slot in step.outputs]
        scope.before[position] = self.initial_moves(scope, step.initial, carries)
        condition = Scope()
        consts = [self.resolve(scope, slot) for slot in step.condition_constants]
        condition.blocks.update(zip(step.condition.inputs, [*consts, *carries], strict=True))
        self.scope(step.condition, condition, {})
        self.time += 1
        self.read(condition, step.condition.outputs)
        body = Scope()
        consts = [self.resolve(scope, slot) for slot in step.body_constants]
        body.blocks.update(zip(step.body.inputs, [*consts, *carries], strict=True))
        moves = self.loop_body(step.body, body, carries, len(consts), {})
        scope.inner[position] = (condition, body)
        scope.after[position] = ([], moves)

    def scan_step(self, scope: Scope, position: int, step: ScanStep) -> None:
        count = len(step.initial)
        results = [scope.block(slot) for slot in step.outputs]
        carries, stacked = results[:count], results[count:]
        scope.before[position] = self.initial_moves(scope, step.initial, carries)
        body = Scope()
        consts = [self.resolve(scope, slot) for slot in step.constants]
        slices = [
            Block("slice", slot_bytes(slot), whole=self.resolve(scope, sequence))
            for slot, sequence in zip(
                step.body.inputs[len(consts) + count :], step.sequences, strict=True
            )
        ]
        body.blocks.update(zip(step.body.inputs, [*consts, *carries, *slices], strict=True))
        parts = [
            Block("slice", slot_bytes(slot), whole=whole)
            for slot, whole in zip(step.body.outputs[count:], stacked, strict=True)
        ]
        moves = self.loop_body(
            step.body, body, carries, len(consts), dict(enumerate(parts, start=count))
        )
        scope.inner[position] = (body,)
        scope.after[position] = (moves,)
        scope.parts[position] = parts

    def branch_step(self, scope: Scope, position: int, step: BranchStep) -> None:
        inputs = [self.resolve(scope, slot) for slot in step.inputs]
        targets = dict(enumerate([scope.block(slot) for slot in step.outputs]))
        inner: list[Scope] = []
        moves: list[list[Move]] = []
        for branch in step.branches:
            own = Scope()
            own.blocks.update(zip(branch.inputs, inputs, strict=True))
            moves.append(self.loop_body(branch, own, [], 0, targets))
            inner.append(own)
        scope.inner[position] = tuple(inner)
        scope.after[position] = tuple(moves)

    def initial_moves(
        self, scope: Scope, initial: Sequence[Slot], carries: Sequence[Block]
    ) -> list[Move]:
        self.read(scope, initial)
        pairs = zip(initial, carries, strict=True)
        moves = [Move(self.resolve(scope, slot), carry) for slot, carry in pairs]
        return [move for move in moves if move.is_needed]

    def loop_body(
        self,
        graph: Graph,
        scope: Scope,
        carries: Sequence[Block],
        constants: int,
        results: Mapping[int, Block],
    ) -> list[Move]:
        """Plan a body so that its results are where they belong at its end, by copies if need be.

        Args:
          graph: the body: from (constants, carries, ...) to (carries, ...).
          scope: its plan, with its inputs' blocks.
          carries: where the carries are, at the beginning and at the end.
          constants: how many inputs come before the carries.
          results: where further outputs belong, by their number.
        """
        written: dict[Slot, int] = {}
        last_read: dict[Slot, int] = {}
        for position, step in enumerate(graph.steps):
            for slot in reads(step):
                last_read[slot.root] = position
            for slot in writes(step):
                written[slot.root] = position
        returned = [slot.root for slot in graph.outputs]
        wanted: dict[Slot, Block] = {}
        for number, slot in enumerate(returned):
            if slot not in written or slot in wanted:
                continue
            if number in results:
                wanted[slot] = results[number]
                self.empty.add(results[number].find())
                continue
            # A carry's next value may overwrite it if nothing reads the carry afterwards.
            carry = graph.inputs[constants + number]
            step = graph.steps[written[slot]]
            fits = slot_bytes(slot) == slot_bytes(carry) and carry not in returned
            last = last_read.get(carry, -1)
            if fits and last == written[slot]:
                read = [operand.root for operand in reads(step)]
                fits = read.count(carry) == 1 and any(
                    target.root is slot and operand.root is carry
                    for output, operand in self.overwritable(step)
                    for target in [writes(step)[output]]
                )
            if fits and last <= written[slot]:
                wanted[slot] = carries[number]
        self.scope(graph, scope, wanted)
        self.time += 1
        self.read(scope, graph.outputs)
        moves: list[Move] = []
        for number, slot in enumerate(returned):
            target = results[number] if number in results else carries[number]
            touch(target.find(), self.time)
            move = Move(self.resolve(scope, slot), target)
            if move.is_needed:
                moves.append(move)
        return self.ordered(moves)

    def ordered(self, moves: Sequence[Move]) -> list[Move]:
        """Moves in an order in which none overwrites what another is still to read."""
        waiting = list(moves)
        done: list[Move] = []
        while waiting:
            sources = [move.source.find() for move in waiting]
            ready = [
                move
                for number, move in enumerate(waiting)
                if move.target.find() not in sources[:number] + sources[number + 1 :]
            ]
            if ready:
                done.extend(ready)
                waiting = [move for move in waiting if move not in ready]
                continue
            # All targets are sources: values go round. One waits elsewhere.
            first = waiting[0]
            aside = self.temporary(first.source.bytes)
            done.append(Move(first.source, aside))
            waiting[0] = Move(aside, first.target)
        return done


__all__ = ["Block", "Layout", "Move", "Plan", "Scope", "plan", "slot_bytes"]
