"""Where a tile of rows keeps what, and how its functions share their words."""

from __future__ import annotations

from fxarray.devices.cpu.contraction.evaluate import Piece
from fxarray.devices.cpu.contraction.forms import Form
from fxarray.devices.cpu.contraction.panels import steps_of
from fxarray.devices.cpu.contraction.rows import Second
from fxarray.devices.cpu.contraction.rows_bound import costly
from fxarray.devices.cpu.contraction.rows_plan import Packed, RowsPlan, aligned
from fxarray.devices.cpu.emit.function import FunctionText, Operand
from fxarray.devices.cpu.native.routine import SizeWord, Word
from fxarray.kernel.ir import arguments
from fxarray.kernel.rewrite import needed
from fxarray.kernel.sizes import Size


class TileMemory:
    """The memory of a thread for a tile of rows, and the words of the whole module."""

    def __init__(self, plan: RowsPlan, packed: list[Packed], matrices: list[Packed | None]) -> None:
        self.plan, self.rows, self.kernel = plan, plan.rows, plan.kernel
        self.form: Form = plan.form
        self.packed, self.matrices = packed, matrices
        self.piece = Piece(plan.kernel)
        self.f: FunctionText = self.piece.f
        self.row_bytes = plan.padded * self.form.item
        block = aligned(plan.height * self.row_bytes)
        self.memory = 0

        def take(count: int) -> int:
            start = self.memory
            self.memory += aligned(count)
            return start

        depth = max(plan.known(steps_of(first.depth, self.form)) for first in self.rows.firsts)
        self.left_at = take(depth * self.form.padded(plan.height) * self.form.item)
        self.blocks_at = [take(block) for _ in self.rows.firsts]
        self.kept = self._kept_values()
        # The row that a second product takes, and what is kept: what is kept may be that row.
        self.kept_at: dict[int, int] = {}
        for second in self.rows.seconds:
            value = self.source(second)
            if value in self.kept and value not in self.kept_at:
                self.kept_at[value] = take(block)
        for value in self.kept:
            self.kept_at.setdefault(value, -1)
        for value, at in self.kept_at.items():
            if at < 0:
                self.kept_at[value] = take(self.row_bytes)
        self.left: dict[int, int] = {}
        for second in self.rows.seconds:
            value = self.source(second)
            if value not in self.kept and value not in self.left:
                self.left[value] = take(block)
        columns = plan.columns() if self.rows.seconds else 0
        self.result_row = -(-columns // self.form.width) * self.form.width
        size = plan.height * self.result_row * self.form.item
        self.results_at = [take(size) for _ in self.rows.seconds]
        reduced = [number for stage in self.rows.stages for number in stage]
        self.reduced_at = {number: take(plan.height * 8) for number in reduced}

    def factored(self, second: Second) -> bool:
        """Whether the row is multiplied as it was kept, and its factor afterwards."""
        return second.row not in self.kept and second.kept in self.kept

    def source(self, second: Second) -> int:
        """The value that is multiplied by the matrix."""
        if self.factored(second):
            assert second.kept is not None
            return second.kept
        return second.row

    def _kept_values(self) -> list[int]:
        """Values that are kept where a reduction first needs them, as they are costly."""
        kernel, rows = self.kernel, self.rows
        given = {first.number for first in rows.firsts}
        found: list[int] = []
        stages = rows.stages
        for position, stage in enumerate(stages):
            for number in stage:
                (value,) = arguments(kernel.body[number])
                later = [x for after in stages[position + 1 :] for x in after]
                later += [second.row for second in rows.seconds]
                later += rows.row_stores
                if (
                    value not in found
                    and rows.along in kernel.value_axes[value]
                    and any(value in needed(kernel, [x]) for x in later)
                    and costly(kernel, value, given | set(found))
                    and kernel.dtypes[value] == self.form.dtype
                ):
                    found.append(value)
        return found

    # --- words that all functions of the module read ----------------------------------------------

    def share_word(self, f: FunctionText, word: Word, type_: str) -> Operand:
        """A word, in another function of the module."""
        self.piece.word(word, type_)
        number = self.piece.words.index(word)
        return f.load_word("%words", number, type_)

    def share_size(self, f: FunctionText, size: Size) -> Operand:
        """A size, in another function of the module."""
        if isinstance(size, int):
            return str(size)
        return self.share_word(f, SizeWord(size), "i64")

    def section_start(self, packed: Packed) -> int:
        """Where the words of a packing function start; they are added at first use."""
        words = tuple(packed.piece.words)
        every = self.piece.words
        for start in range(len(every) - len(words) + 1):
            if tuple(every[start : start + len(words)]) == words:
                return start
        every.extend(words)
        return len(every) - len(words)

    def share_section(self, f: FunctionText, packed: Packed) -> Operand:
        """The words of a packing function, in another function of the module."""
        return f.offset("%words", self.section_start(packed), "i64")
