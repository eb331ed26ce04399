"""What drivers are told: their arguments, and which loops they have."""

from __future__ import annotations

from dataclasses import dataclass

from fxarray.devices.cpu.emit.function import FunctionText, Operand

# What the arguments of a driver are, in order. Lengths are in bytes where the name says so.
WORDS = (
    "rows",  # of the result
    "columns",
    "steps",  # along the sum
    "batches",
    "height",  # rows of a tile
    "width",  # columns of a tile
    "a_step_bytes",  # of a packed panel, per step
    "b_step_bytes",
    "tile_bytes",
    "block",  # tiles in a block of rows
    "piece",  # steps in a piece of the sum
    "batch_parts",
    "row_parts",
    "column_parts",
    "sum_parts",
    "micro",
    "pack_a",
    "pack_b",
    "epilogue",
    "merge",
    "a_words",  # where the words of each function start
    "b_words",
    "epilogue_words",
    "result_words",  # an operand's, of the result that whole tiles are stored to
    "item",  # bytes of a number of an operand that is not packed
    "scratch",
    "thread_offset",  # in scratch: memory of the threads
    "thread_bytes",
    "tiles_offset",  # in a thread's memory: tiles, and a panel of b
    "panel_offset",
    "partial_offset",  # in scratch: tiles that parts of the sum leave
)
INDEX = {name: number for number, name in enumerate(WORDS)}

# The words of an operand that is read where it lies, and of one packed by a plain routine: the
# first element, the number of inner batches, and strides in elements.
OPERAND_WORDS = (
    *("pointer", "start", "inner", "outer_stride", "inner_stride", "row_stride", "step_stride"),
)


@dataclass(frozen=True)
class Shape:
    """Which loops a driver has.

    Args:
      pack_a: whether the first operand is packed; else it is read where it lies.
      pack_b: "shared" (once, for all parts), "local" (by each part), or "no".
      split: whether parts of the sum are summed apart.
      bands: whether pieces of the sum are outside of panels, for a second operand that is large and
        read where it lies: so it is read row after row.
      pieces: whether the sum is cut into pieces.
      dots: whether micro-kernels sum along the lanes, for which columns lie apart.
      store: whether the epilogue does nothing but store: then micro-kernels store whole tiles.
    """

    pack_a: bool
    pack_b: str
    split: bool = False
    bands: bool = False
    pieces: bool = False
    dots: bool = False
    store: bool = False


class Part:
    """A function `(runtime, arguments, thread, part)`; its arguments are (words, batch range)."""

    def __init__(self) -> None:
        self.f = FunctionText()
        self.words = self.f.load_word("%arguments", 0, "ptr")

    def word(self, name: str, type_: str = "i64") -> Operand:
        """An argument, read where it is needed: kept in registers, so many would have to be saved
        and restored at every call, and LLVM takes long to see how."""
        return self.f.load_word(self.words, INDEX[name], type_)

    def pointer(self, name: str) -> Operand:
        return self.word(name, "ptr")

    def section(self, name: str) -> Operand:
        """The words of a function."""
        return self.f.offset(self.words, self.word(name), "i64")

    def share(self, part: Operand, count: Operand, parts: Operand) -> tuple[Operand, Operand]:
        """The range of `count` that a part of `parts` does."""
        f = self.f
        low = f.new(f"udiv i64 {f.multiply(part, count)}, {parts}")
        high = f.new(f"udiv i64 {f.multiply(f.add(part, 1), count)}, {parts}")
        return low, high

    def count(self, size: str, unit: str) -> Operand:
        """How many pieces of `unit` cover a size."""
        f = self.f
        up = f.add(self.word(size), f.subtract(self.word(unit), 1))
        return f.new(f"udiv i64 {up}, {self.word(unit)}")

    def operand(self, words: Operand, batch: Operand) -> Operand:
        """The address of a batch of an operand that is read where it lies."""
        f = self.f
        get = {name: f.load_word(words, i) for i, name in enumerate(OPERAND_WORDS) if i}
        outer = f.new(f"udiv i64 {batch}, {get['inner']}")
        inner = f.subtract(batch, f.multiply(outer, get["inner"]))
        place = f.add(
            f.multiply(outer, get["outer_stride"]), f.multiply(inner, get["inner_stride"])
        )
        place = f.add(place, get["start"])
        start = f.load_word(words, 0, "ptr")
        return f.offset(start, f.multiply(place, self.word("item")))
