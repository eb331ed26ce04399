"""A kernel without products as a routine: its stages as functions, and the entry that runs them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache

from fxarray.devices.cpu.emit import features
from fxarray.devices.cpu.emit.function import FunctionText, Operand, module
from fxarray.devices.cpu.emit.types import itemsize
from fxarray.devices.cpu.native.routine import (
    RUN_WORD,
    InputPointer,
    OutputPointer,
    Routine,
    ScratchPointer,
    SizeWord,
    Word,
)
from fxarray.devices.cpu.native.target import Target
from fxarray.devices.cpu.render.passes import Passes
from fxarray.devices.cpu.render.places import Places
from fxarray.devices.cpu.render.schedule import Stage
from fxarray.devices.cpu.render.scopes import flatten
from fxarray.devices.cpu.render.stages import Plan, plan
from fxarray.devices.cpu.render.stash import stash_offsets
from fxarray.kernel import sizes
from fxarray.kernel.analysis import flops, uses
from fxarray.kernel.ir import Buffer, Kernel, Load, Store, sizes_in
from fxarray.kernel.sizes import Polynomial, Size

_SIGNATURE = "(ptr %runtime, ptr %arguments, i64 %thread, i64 %part)"


@lru_cache(maxsize=1024)
def render(kernel: Kernel, target: Target) -> Routine:
    """The routine of a kernel without Contract nodes.

    Its words are the inputs, the outputs, scratch memory if there is any, and the size of each of
    `kernel.size_variables`.
    """
    with features.using(target):
        return _Renderer(kernel, target).routine()


class _Renderer:
    def __init__(self, kernel: Kernel, target: Target) -> None:
        self.kernel = kernel
        self.plan: Plan = plan(kernel, target)
        self.places: dict[str, int] = {}
        self.words: list[Word] = []
        for number, buffer in enumerate(kernel.inputs):
            self._word(buffer.name, InputPointer(number))
        for number, buffer in enumerate(kernel.outputs):
            self._word(buffer.name, OutputPointer(number))
        self.offsets, self.scratch = _layout(self.plan.scratch)
        self.thread_scratch = _largest(
            [stash_offsets(stage.kernel, stage.schedule)[1] for stage in self.plan.stages]
        )
        if self.scratch != 0 or self.thread_scratch != 0:
            self._word("%scratch", ScratchPointer())
        self.variables = {
            variable.name: variable
            for size in sizes_in(kernel)
            if isinstance(size, Polynomial)
            for variable in size.variables
        }
        for name in kernel.size_variables:
            size = Polynomial.of(self.variables[name])
            self._word(f"size {name}", SizeWord(size))

    def _word(self, name: str, word: Word) -> None:
        self.places[name] = len(self.words)
        self.words.append(word)

    def routine(self) -> Routine:
        functions: list[tuple[FunctionText, str]] = []
        stages = self.plan.stages
        copies = self._copies()
        streamed = [stage.schedule.nontemporal for stage in stages]
        if len(stages) == 1 and stages[0].schedule.parts == 1 and not copies and not any(streamed):
            f = FunctionText()
            self._stage(f, stages[0], "0", "0")
            functions.append((f, f.definition("@entry(ptr %runtime, ptr %arguments)")))
        else:
            for number, stage in enumerate(stages):
                functions.append(self._function(f"@stage{number}", stage))
                if streamed[number]:
                    plain = replace(stage, schedule=replace(stage.schedule, nontemporal=False))
                    functions.append(self._function(f"@plain{number}", plain))
            functions.append(self._entry(copies))
        return Routine(
            module(functions),
            tuple(self.words),
            self.scratch,
            self.thread_scratch,
            flops(self.kernel),
            _bytes_moved(self.kernel),
        )

    # --- functions --------------------------------------------------------------------------------

    def _function(self, name: str, stage: Stage) -> tuple[FunctionText, str]:
        f = FunctionText()
        self._stage(f, stage, "%thread", "%part")
        return f, f.definition(f"{name}{_SIGNATURE}", "internal")

    def _stage(self, f: FunctionText, stage: Stage, thread: Operand, part: Operand) -> None:
        pointers, size_words = self._arguments(f, stage)
        scratch = "null"
        if stage.schedule.stash:
            base = f.load_word("%arguments", self.places["%scratch"], "ptr")
            outside = Places(f, stage.kernel, {}, size_words)
            start = f.offset(base, outside.size(self.scratch))
            own = f.multiply(thread, outside.size(self.thread_scratch))
            scratch = f.offset(start, own)
        passes = Passes(f, stage, pointers, size_words, part, scratch)
        passes.write()
        f.lines = flatten(f.lines)

    def _arguments(
        self, f: FunctionText, stage: Stage
    ) -> tuple[dict[str, Operand], dict[str, Operand]]:
        """The pointers and sizes that a stage uses, read from its arguments."""
        used = {n.buffer.name: n.buffer for n in stage.kernel.body if isinstance(n, Load | Store)}
        for buffers in stage.partials.values():
            used.update({buffer.name: buffer for buffer in buffers})
        size_words = {
            name: f.load_word("%arguments", self.places[f"size {name}"])
            for name in self.kernel.size_variables
        }
        outside = Places(f, stage.kernel, {}, size_words)
        pointers: dict[str, Operand] = {}
        base: Operand | None = None
        for name in used:
            if name in self.offsets:
                base = base or f.load_word("%arguments", self.places["%scratch"], "ptr")
                pointers[name] = f.offset(base, outside.size(self.offsets[name]))
            else:
                pointers[name] = f.load_word("%arguments", self.places[name], "ptr")
        return pointers, size_words

    def _entry(self, copies: Sequence[tuple[Buffer, Buffer]]) -> tuple[FunctionText, str]:
        f = FunctionText()
        for source, target in copies:
            self._copy(f, source, target)
        run: Operand | None = None
        for number, stage in enumerate(self.plan.stages):
            parts = stage.schedule.parts
            function = f"@stage{number}"
            if stage.schedule.nontemporal:
                fits = self._may_stream(f, stage)
                function = f.new(f"select i1 {fits}, ptr {function}, ptr @plain{number}")
            if parts == 1:
                f.do(f"call void {function}(ptr %runtime, ptr %arguments, i64 0, i64 0)")
            else:
                run = run or f.load_word("%runtime", RUN_WORD, "ptr")
                operands = f"ptr %runtime, ptr {function}, ptr %arguments, i64 {parts}"
                f.do(f"call void {run}({operands})")
        return f, f.definition("@entry(ptr %runtime, ptr %arguments)")

    def _may_stream(self, f: FunctionText, stage: Stage) -> Operand:
        """Whether the outputs of a stage start at cache lines and none is an input's memory.

        Memory of our own does, that of a donated argument need not. What overwrites an input finds
        it in the caches already.
        """
        written = {n.buffer.name for n in stage.kernel.body if isinstance(n, Store)}
        read = {n.buffer.name for n in stage.kernel.body if isinstance(n, Load)}
        addresses = {
            name: f.load_word("%arguments", self.places[name])
            for name in sorted(written | read)
            # Buffers between stages start at cache lines, and are nobody else's.
            if name not in self.offsets
        }
        low: Operand = "0"
        fits: Operand = "true"
        for name in sorted(written & addresses.keys()):
            low = f.new(f"or i64 {low}, {addresses[name]}")
            for other in sorted(read & addresses.keys()):
                apart = f.new(f"icmp ne i64 {addresses[name]}, {addresses[other]}")
                fits = f.new(f"and i1 {fits}, {apart}")
        aligned = f.new(f"icmp eq i64 {f.new(f'and i64 {low}, 63')}, 0")
        return f.new(f"and i1 {fits}, {aligned}")

    # --- outputs that keep what they held ---------------------------------------------------------

    def _copies(self) -> list[tuple[Buffer, Buffer]]:
        """Outputs of which some elements may stay what their input holds, with these inputs."""
        inputs = {buffer.name: buffer for buffer in self.kernel.inputs}
        return [
            (inputs[buffer.alias], buffer)
            for buffer in self.kernel.outputs
            if buffer.alias in inputs and not self._is_overwritten(buffer)
        ]

    def _is_overwritten(self, buffer: Buffer) -> bool:
        """Whether one store is known to write every element."""
        for number, node in enumerate(self.kernel.body):
            if not isinstance(node, Store) or node.buffer.name != buffer.name:
                continue
            if node.mode != "set" or node.bounds or any(index.values for index in node.index):
                return False
            extent = sizes.product([self.kernel.sizes[a] for a in uses(self.kernel, number)])
            return extent == sizes.product(buffer.shape)
        return False

    def _copy(self, f: FunctionText, source: Buffer, target: Buffer) -> None:
        """The input's bytes to the output, where these are not one memory."""
        size_words = {
            name: f.load_word("%arguments", self.places[f"size {name}"])
            for name in self.kernel.size_variables
        }
        count = sizes.multiply(sizes.product(target.shape), itemsize(target.dtype))
        extent = Places(f, self.kernel, {}, size_words).size(count)
        a = f.load_word("%arguments", self.places[source.name], "ptr")
        b = f.load_word("%arguments", self.places[target.name], "ptr")
        f.declare("declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)")
        apart = f.new(f"icmp ne ptr {a}, {b}")
        operands = f"ptr {b}, ptr {a}, i64 {extent}, i1 false"
        f.branch(apart, lambda: f.do(f"call void @llvm.memcpy.p0.p0.i64({operands})"))


def _layout(buffers: Iterable[Buffer]) -> tuple[dict[str, Size], Size]:
    """Where each buffer starts, in bytes, and how many there are."""
    total: Size = 0
    offsets: dict[str, Size] = {}
    # Wide elements first, so that all are aligned; where sizes are known, whole cache lines, so
    # that no two buffers share one.
    for buffer in sorted(buffers, key=lambda buffer: -itemsize(buffer.dtype)):
        offsets[buffer.name] = total
        bytes_ = sizes.multiply(sizes.product(buffer.shape), itemsize(buffer.dtype))
        if isinstance(bytes_, int):
            bytes_ = -(-bytes_ // 64) * 64
        total = sizes.add(total, sizes.add(bytes_, 64))
    return offsets, total


def _largest(given: Sequence[Size]) -> Size:
    """No less than any: their sum where one is known at run time only."""
    if all(isinstance(size, int) for size in given):
        return max([int(size) for size in given if isinstance(size, int)], default=0)
    total: Size = 0
    for size in given:
        total = sizes.add(total, size)
    return total


def _bytes_moved(kernel: Kernel) -> Size:
    total: Size = 0
    for buffer in (*kernel.inputs, *kernel.outputs):
        total = sizes.add(
            total, sizes.multiply(sizes.product(buffer.shape), itemsize(buffer.dtype))
        )
    return total
