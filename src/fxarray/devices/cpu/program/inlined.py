"""Kernels' modules as functions of another module, to be inlined there."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from fxarray.compile.graph import KernelStep
from fxarray.devices.cpu.emit.function import FunctionText, Operand
from fxarray.devices.cpu.native.routine import InputPointer, OutputPointer, Routine

RoutineOf: TypeAlias = Callable[[KernelStep], "Routine | None"]


class NotPlain(Exception):
    """A kernel's routine is more than a function of pointers."""


@dataclass
class Module:
    """What the modules of kernels have besides their entry, each once."""

    declarations: dict[str, None] = field(default_factory=dict[str, None])
    definitions: list[str] = field(default_factory=list[str])
    entries: dict[str, str] = field(default_factory=dict[str, str])

    def add(self, text: str) -> str:
        """Take a module in: the name of its entry here."""
        known = self.entries.get(text)
        if known is not None:
            return known
        number = len(self.entries)
        own = set(re.findall(r"^define [^@]*@([\w.]+)\(", text, re.MULTILINE))
        own |= set(re.findall(r"^@([\w.]+) =", text, re.MULTILINE))
        if re.search(r"^(attributes|!|%\w+ = type)", text, re.MULTILINE):
            raise NotPlain

        def renamed(match: re.Match[str]) -> str:
            return f"@k{number}.{match[1]}" if match[1] in own else match[0]

        lines: list[str] = []
        for line in re.sub(r"@([\w.]+)", renamed, text).splitlines():
            if line.startswith("declare"):
                self.declarations.setdefault(line)
                continue
            if line.startswith("define void @") and f"@k{number}.entry(" in line:
                line = line.replace("define void", "define internal void")
                line = line.replace(") {", ") alwaysinline {")
            lines.append(line)
        self.definitions.append("\n".join(lines))
        self.entries[text] = f"@k{number}.entry"
        return self.entries[text]

    def declare(self, lines: Iterable[str]) -> None:
        """Declare functions that others of the module call."""
        self.declarations.update(dict.fromkeys(lines))

    def text(self, functions: Sequence[str]) -> str:
        """The whole module, with further functions."""
        return "\n".join([*sorted(self.declarations), *self.definitions, *functions])


def call_kernel(
    f: FunctionText,
    module: Module,
    routine: Routine | None,
    inputs: Sequence[Operand],
    outputs: Sequence[Operand],
) -> None:
    """Call a kernel's function, where it takes nothing but its inputs and outputs.

    Raises:
      NotPlain: if it takes more.
    """
    if routine is None or routine.scratch != 0 or routine.thread_scratch != 0:
        raise NotPlain
    if routine.text.count("%runtime") > 1:
        raise NotPlain
    entry = module.add(routine.text)
    arguments = f.alloca(f"[{max(len(routine.words), 1)} x ptr]")
    for number, word in enumerate(routine.words):
        match word:
            case InputPointer():
                pointer = f.offset(inputs[word.number], word.offset)
            case OutputPointer():
                pointer = outputs[word.number]
            case _:
                raise NotPlain
        f.do(f"store ptr {pointer}, ptr {f.offset(arguments, number, 'ptr')}, align 8")
    f.do(f"call void {entry}(ptr %runtime, ptr {arguments})")
