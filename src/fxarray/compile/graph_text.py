"""Graphs as text, for reading."""

from __future__ import annotations

from collections.abc import Sequence

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
)


def graph_text(graph: Graph) -> str:
    """The steps of a graph, one a line; those of loops and branches below theirs, indented."""
    writer = _Writer()
    writer.graph(graph, graph.name, 0)
    return "\n".join(writer.lines)


class _Writer:
    def __init__(self) -> None:
        self.lines: list[str] = []
        self._names: dict[Slot, str] = {}

    def name(self, slot: Slot) -> str:
        if slot.constant is not None and slot.constant.size == 1:
            return str(slot.constant.reshape(())[()])
        known = self._names.get(slot)
        if known is None:
            known = self._names[slot] = f"s{len(self._names)}"
            if slot.view_of is not None:
                known = self._names[slot] = f"{known}({self.name(slot.view_of)})"
        return known

    def names(self, slots: Sequence[Slot], typed: bool = False) -> str:
        return ", ".join(
            [f"{self.name(slot)}: {slot.type}" if typed else self.name(slot) for slot in slots]
        )

    def graph(self, graph: Graph, name: str, depth: int) -> None:
        indent = "  " * depth
        self.lines.append(f"{indent}{name}({self.names(graph.inputs, True)}):")
        for step in graph.steps:
            self.step(step, depth + 1)
        self.lines.append(f"{indent}  return {self.names(graph.outputs)}")

    def step(self, step: Step, depth: int) -> None:
        indent = "  " * depth

        def line(outputs: Sequence[Slot], text: str) -> None:
            results = self.names(outputs, True)
            self.lines.append(f"{indent}{results} = {text}" if results else indent + text)

        match step:
            case KernelStep():
                line(step.outputs, f"kernel {step.kernel.name}({self.names(step.inputs)})")
            case CallStep():
                line(step.outputs, f"{step.op.name}({self.names(step.inputs)})")
            case CopyStep():
                line([step.target], f"copy({self.name(step.source_slot)})")
            case WhileStep():
                constants = self.names((*step.condition_constants, *step.body_constants))
                line(step.outputs, f"while({constants}; {self.names(step.initial)})")
                self.graph(step.condition, "condition", depth + 1)
                self.graph(step.body, "body", depth + 1)
            case ScanStep():
                parts = (step.constants, step.initial, step.sequences)
                text = "; ".join(map(self.names, parts))
                turns = f"{step.length} backwards" if step.reverse else str(step.length)
                line(step.outputs, f"scan[{turns}]({text})")
                self.graph(step.body, "body", depth + 1)
            case BranchStep():
                line(step.outputs, f"switch({self.name(step.index)}; {self.names(step.inputs)})")
                for number, branch in enumerate(step.branches):
                    self.graph(branch, f"branch {number}", depth + 1)
