"""What the routines of this package share: the layout of their arguments, parts, and loops.

The code of a routine depends on dtypes and ranks alone: sizes are words, read when it runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from fxarray.devices.cpu.emit.function import FunctionText, Operand, module
from fxarray.devices.cpu.native.routine import (
    RUN_WORD,
    Address,
    InputPointer,
    OutputPointer,
    ScratchPointer,
    SizeWord,
    Word,
)
from fxarray.kernel.sizes import Size

ENTRY = "@entry(ptr %runtime, ptr %arguments)"


@dataclass
class Layout:
    """The words of a routine, by name: `in0`, `out0`, `scratch`, and those that are added."""

    words: list[Word] = field(default_factory=list[Word])
    places: dict[str, int] = field(default_factory=dict[str, int])

    @classmethod
    def of(
        cls,
        inputs: int,
        outputs: int,
        sizes: Mapping[str, Size] | None = None,
        scratch: bool = False,
        addresses: Mapping[str, int] | None = None,
    ) -> Layout:
        """The usual words, in order: inputs, outputs, scratch, sizes, addresses."""
        layout = cls()
        for number in range(inputs):
            layout.append(f"in{number}", InputPointer(number))
        for number in range(outputs):
            layout.append(f"out{number}", OutputPointer(number))
        if scratch:
            layout.append("scratch", ScratchPointer())
        for name, size in (sizes or {}).items():
            layout.append(name, SizeWord(size))
        for name, address in (addresses or {}).items():
            layout.append(name, Address(address))
        return layout

    def append(self, name: str, word: Word) -> None:
        self.places[name] = len(self.words)
        self.words.append(word)

    def pointer(self, f: FunctionText, name: str) -> Operand:
        """Load a word that is an address."""
        return f.load_word("%arguments", self.places[name], "ptr")

    def size(self, f: FunctionText, name: str) -> Operand:
        """Load a word that is a size."""
        return f.load_word("%arguments", self.places[name])

    def thread_scratch(self, f: FunctionText, shared: str = "", own: str = "own") -> Operand:
        """The scratch memory of this thread.

        Args:
          f: the function of a part.
          shared: the word that holds the bytes which all threads share, if any.
          own: the word that holds the bytes of each thread.
        """
        offset = f.multiply("%thread", self.size(f, own))
        if shared:
            offset = f.add(offset, self.size(f, shared))
        return f.offset(self.pointer(f, "scratch"), offset)


@dataclass
class ModuleText:
    """A module under construction: functions, which start to be written when they are asked for."""

    functions: list[tuple[FunctionText, str, str, str]] = field(
        default_factory=list[tuple[FunctionText, str, str, str]]
    )
    others: list[str] = field(default_factory=list[str])

    def entry(self) -> FunctionText:
        """The function that the routine starts with."""
        return self.function(ENTRY)

    def part(self, name: str) -> FunctionText:
        """A function of one part, with `%runtime`, `%arguments`, `%thread` and `%part`."""
        signature = f"@{name}(ptr %runtime, ptr %arguments, i64 %thread, i64 %part)"
        return self.function(signature, "internal", "noinline")

    def inner(self, name: str, *parameters: str) -> FunctionText:
        """An internal function; parameters are such as "ptr %x"."""
        return self.function(f"@{name}({', '.join(parameters)})", "internal", "noinline")

    def function(self, signature: str, linkage: str = "", attributes: str = "") -> FunctionText:
        """Any function; see `FunctionText.definition`."""
        f = FunctionText()
        self.functions.append((f, signature, linkage, attributes))
        return f

    def text(self) -> str:
        """The whole module."""
        written = [
            (f, f.definition(signature, linkage, attributes))
            for f, signature, linkage, attributes in self.functions
        ]
        return module(written, "\n".join(self.others))


def run_parts(f: FunctionText, function: str, parts: Operand) -> None:
    """Call a part function for every part below `parts`, on all threads if there are several."""

    def several() -> None:
        run = f.load_word("%runtime", RUN_WORD, "ptr")
        f.do(f"call void {run}(ptr %runtime, ptr @{function}, ptr %arguments, i64 {parts})")

    def one() -> None:
        f.do(f"call void @{function}(ptr %runtime, ptr %arguments, i64 0, i64 0)")

    def few() -> None:
        f.branch(f.new(f"icmp eq i64 {parts}, 1"), one)

    f.branch(f.new(f"icmp sgt i64 {parts}, 1"), several, few)


def ceiling_divide(f: FunctionText, a: Operand, b: Operand | int) -> Operand:
    """The least integer that is not below a / b, for a >= 0 and b > 0."""
    return f.new(f"udiv i64 {f.add(a, f.subtract(b, 1))}, {b}")


def part_bounds(
    f: FunctionText, total: Operand, each: Operand | int, part: Operand = "%part"
) -> tuple[Operand, Operand]:
    """The first item of a part of `each` items, and the item after its last."""
    low = f.multiply(part, each)
    return low, f.smaller(f.add(low, each), total)


def vector_loop(
    f: FunctionText,
    low: Operand | int,
    high: Operand,
    lanes: int,
    body: Callable[[Operand, int], None],
) -> None:
    """`body(i, lanes)` for whole vectors from `low` to `high`, then `body(i, 1)` for the rest."""
    if lanes == 1:
        f.loop(low, high, 1, lambda i: body(i, 1))
        return
    count = f.subtract(high, low)
    whole = f.new(f"and i64 {count}, {-lanes}")
    middle = f.add(low, whole)
    f.loop(low, middle, lanes, lambda i: body(i, lanes))
    f.loop(middle, high, 1, lambda i: body(i, 1))


def loop_nest(
    f: FunctionText, sizes: Sequence[Operand | int], body: Callable[[list[Operand]], None]
) -> None:
    """Nested loops, the last one innermost: `body` gets all indices."""

    def level(indices: list[Operand]) -> None:
        if len(indices) == len(sizes):
            body(indices)
            return
        f.loop(0, sizes[len(indices)], 1, lambda i: level([*indices, i]))

    level([])


def vector(type_: str, lanes: int) -> str:
    """The LLVM type of some lanes; one lane is a scalar."""
    return type_ if lanes == 1 else f"<{lanes} x {type_}>"


def number(type_: str, value: int | str, lanes: int) -> Operand:
    """A constant in all lanes, as an operand."""
    return str(value) if lanes == 1 else f"splat ({type_} {value})"


def declare(f: FunctionText, result: str, name: str, *parameters: str) -> str:
    """Declare an intrinsic; its name with the `@`."""
    f.declare(f"declare {result} @{name}({', '.join(parameters)})")
    return f"@{name}"
