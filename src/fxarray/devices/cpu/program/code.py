"""A Program's instructions and arguments, before sizes and addresses are numbers.

`Code` is made once for a Program. For given sizes of variables (none, as a rule) and the addresses
of its routines, `Code.table` gives the numbers that the walker reads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from fxarray.compile.blocks import ALIGNMENT, Block, Layout
from fxarray.compile.graph import CallStep, KernelStep, Step
from fxarray.devices.cpu.program.walker import INSTRUCTION_WORDS, Operation
from fxarray.kernel import sizes
from fxarray.kernel.sizes import Size


class Label:
    """A place among the instructions."""

    position: int = -1


class Text(NamedTuple):
    """The address of a module's `@entry`."""

    number: int


class Word(NamedTuple):
    """An argument: an address in a block, so many bytes after its start, or a number."""

    block: Block | None
    value: Size | Text = 0


class Slice(NamedTuple):
    """How a slice moves: see `Operation.SLICES`.

    Args:
      block: the slice.
      whole: what it is a slice of.
      offset: of the first, in bytes.
      stride: from one to the next, in bytes.
      counter: the loop's.
      limit: the counter that holds the loop's length if slices are taken from the end, or -1.
    """

    block: Block
    whole: Block
    offset: Size
    stride: Size
    counter: int
    limit: int


@dataclass(eq=False)
class Relocations:
    """Words that are an address in one of certain blocks."""

    words: list[int] = field(default_factory=list[int])


@dataclass(eq=False)
class Slices:
    """The slices of one scan."""

    rows: list[Slice] = field(default_factory=list[Slice])


Operand: TypeAlias = "Size | Label | Text | Relocations | Slices"


class Instruction(NamedTuple):
    """An instruction, and the step that it is of, for reading."""

    operation: Operation
    operands: tuple[Operand, ...]
    step: Step | None = None


class Table(NamedTuple):
    """A Program's code as the walker reads it, for certain sizes.

    Args:
      code: eight words an instruction.
      rows: of RELOCATE and SLICES; held by `code`.
      words: what the words are at first.
      bases: the bases that follow the scratch memory's.
      arena_offset: where the arena begins in the scratch memory.
      scratch: bytes of scratch memory.
    """

    code: np.ndarray[Any, Any]
    rows: np.ndarray[Any, Any]
    words: np.ndarray[Any, Any]
    bases: np.ndarray[Any, Any]
    arena_offset: int
    scratch: int


class Code:
    """The instructions of a Program.

    Args:
      inputs: the number of inputs.
      outputs: the positions of the outputs that the caller makes or knows, which have a base each.
    """

    def __init__(self, inputs: int, outputs: Sequence[int]) -> None:
        self.inputs = inputs
        self.scratch_base = inputs + len(outputs)
        self._output_bases = {position: inputs + i for i, position in enumerate(outputs)}
        self.instructions: list[Instruction] = []
        self.words: list[Word] = []
        self.texts: dict[str, int] = {}
        self.host_steps: list[CallStep | KernelStep] = []
        self.counters = 1  # the first is `TURNS`
        self.bases: dict[Block, int] = {}
        self.fixed_bases: dict[int, int] = {}
        self.owners: dict[Block, Relocations] = {}
        self.top = Relocations()
        self.kept: list[np.ndarray[Any, Any]] = []  # constants, whose addresses are in the words
        self._pointers: dict[Block, int] = {}

    # --- making it --------------------------------------------------------------------------------

    def emit(self, operation: Operation, *operands: Operand, step: Step | None = None) -> None:
        self.instructions.append(Instruction(operation, operands, step))

    def place(self, label: Label) -> None:
        """Let a label be here."""
        label.position = len(self.instructions)

    def text(self, text: str) -> Text:
        """The address of a module's entry."""
        return Text(self.texts.setdefault(text, len(self.texts)))

    def counter(self) -> int:
        """A new counter."""
        self.counters += 1
        return self.counters - 1

    def word(self, block: Block | None, value: Size | Text = 0) -> int:
        """A new argument word: its position.

        Args:
          block: what it is the address of, or None.
          value: bytes to be added to the address; without a block, the number.
        """
        position = len(self.words)
        if block is not None:
            block = block.find()
            if block.kind == "constant":
                assert isinstance(value, int)
                value, block = self._constant(block) + value, None
            elif block.kind == "slice":
                self.owners[block].words.append(position)
            else:
                self.top.words.append(position)
        self.words.append(Word(block, value))
        return position

    def pointer(self, block: Block) -> int:
        """A word that has a block's address; one for each block."""
        block = block.find()
        known = self._pointers.get(block)
        if known is None:
            known = self._pointers[block] = self.word(block)
        return known

    def base(self, block: Block) -> int:
        """The number of the base that a block's address is relative to."""
        block = block.find()
        match block.kind:
            case "input":
                return block.number
            case "output":
                return self._output_bases[block.number]
            case "temporary":
                return self.scratch_base
            case _:
                known = self.bases.get(block)
                if known is None:
                    known = self.bases[block] = self.scratch_base + 1 + len(self.bases)
                    if block.kind == "constant":
                        self.fixed_bases[known] = self._constant(block)
                return known

    def _constant(self, block: Block) -> int:
        assert block.array is not None
        array = block.array
        if not (array.flags.c_contiguous and array.flags.aligned):
            array = block.array = np.array(array, order="C")
        self.kept.append(array)
        return array.ctypes.data

    # --- its numbers ------------------------------------------------------------------------------

    def table(self, addresses: Sequence[int], layout: Layout, values: Mapping[str, int]) -> Table:
        """The code in numbers.

        Args:
          addresses: of the modules' entries.
          layout: places in the arena.
          values: sizes by name.
        """
        rows: list[int] = []
        places: dict[int, tuple[int, int]] = {}

        def number(operand: Operand) -> int:
            if isinstance(operand, int):
                return operand
            if isinstance(operand, Label):
                return operand.position
            if isinstance(operand, Text):
                return addresses[operand.number]
            assert not isinstance(operand, Relocations | Slices)
            return sizes.evaluate(operand, values)

        def offset(block: Block) -> int:
            return layout.offsets[block] if block.kind == "temporary" else 0

        def relocation_rows(table: Relocations) -> None:
            for position in table.words:
                block, after = self.words[position]
                assert block is not None
                assert isinstance(after, int)
                block = block.find()
                rows.extend((position, self.base(block), offset(block) + after))

        def slice_rows(table: Slices) -> None:
            for row in table.rows:
                whole = row.whole.find()
                rows.extend(
                    (
                        *(self.base(row.block), self.base(whole)),
                        number(row.offset) + offset(whole),
                        *(number(row.stride), row.counter, row.limit),
                    )
                )

        lines: list[int] = []
        patches: list[tuple[int, int]] = []
        for operation, operands, _ in self.instructions:
            line = [int(operation)]
            for operand in operands:
                if isinstance(operand, Relocations | Slices):
                    key = id(operand)
                    if key not in places:
                        start = len(rows)
                        if isinstance(operand, Relocations):
                            relocation_rows(operand)
                            places[key] = start, len(operand.words)
                        else:
                            slice_rows(operand)
                            places[key] = start, len(operand.rows)
                    start, count = places[key]
                    patches.append((len(lines) + 1, start))
                    line.extend((start, count))
                else:
                    line.append(number(operand))
            line.extend([0] * (INSTRUCTION_WORDS - len(line)))
            lines.extend(line)
        table = np.array(rows, np.int64)
        code = np.array(lines, np.int64)
        for position, start in patches:
            code[position] = table.ctypes.data + 8 * start
        words = np.array(
            [0 if word.block is not None else number(word.value) for word in self.words], np.int64
        )
        bases = np.zeros(len(self.bases), np.int64)
        for base, address in self.fixed_bases.items():
            bases[base - self.scratch_base - 1] = address
        start = -(-8 * (len(words) + self.counters) // ALIGNMENT) * ALIGNMENT
        return Table(code, table, words, bases, start, start + layout.arena)
