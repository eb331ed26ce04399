"""How a kernel of rows is cut: tiles of rows, parts, and panels of the second operands."""

from __future__ import annotations

from dataclasses import dataclass

from fxarray.devices.cpu.contraction.evaluate import Piece
from fxarray.devices.cpu.contraction.forms import one_by_one
from fxarray.devices.cpu.contraction.operands import along_of
from fxarray.devices.cpu.contraction.panels import Side, pack, steps_of
from fxarray.devices.cpu.contraction.recognise import Group, is_plain, total
from fxarray.devices.cpu.contraction.rows import Rows, Second
from fxarray.devices.cpu.native.routine import FunctionPointer
from fxarray.devices.cpu.native.target import Target
from fxarray.kernel import sizes
from fxarray.kernel.ir import Contract, Load
from fxarray.kernel.rewrite import needed
from fxarray.kernel.sizes import Size

# Multiplications and additions below which one part does all.
_GRAIN = 1 << 18
_PARTS = 64
_TILE_BYTES = 1 << 20


def aligned(count: int) -> int:
    """A multiple of 64 that is no less."""
    return -(-count // 64) * 64


@dataclass(frozen=True)
class Packed:
    """A packing function with its words, and where its panels are in scratch memory."""

    function: FunctionPointer
    piece: Piece
    offset: Size
    panel_bytes: int
    panels: int


class RowsPlan:
    """The sizes and choices of one kernel of rows."""

    def __init__(self, rows: Rows, target: Target) -> None:
        self.rows, self.target, self.kernel = rows, target, rows.kernel
        kernel = self.kernel
        node = kernel.body[rows.firsts[0].number]
        assert isinstance(node, Contract)
        self.form = form = one_by_one(node.dtype, target)
        self.length = self.known(kernel.sizes[rows.along])
        count = self.known(total(rows.rows))
        self.height = min(form.height, -(-count // max(1, -(-count // form.height))))
        self.padded = -(-self.length // form.width) * form.width + form.lanes
        # Rows of a tile stay in the second-level cache.
        row_bytes = self.padded * form.item * len(rows.firsts)
        while self.height > 1 and self.height * row_bytes > _TILE_BYTES:
            self.height = -(-self.height // 2)
        self.tiles = -(-count // self.height)
        self.count = count

    @staticmethod
    def known(size: Size) -> int:
        """A size that is a number."""
        assert isinstance(size, int)
        return size

    @property
    def supported(self) -> bool:
        """Whether all products have one real arithmetic of floats."""
        kernel = self.kernel
        dtypes = {kernel.dtypes[c.number] for c in (*self.rows.firsts, *self.rows.seconds)}
        depth = all(isinstance(run.size, int) for first in self.rows.firsts for run in first.depth)
        return (
            depth
            and not self.form.complex
            and self.form.dtype in ("f32", "f64")
            and dtypes == {self.form.dtype}
        )

    # --- packing the second operands --------------------------------------------------------------

    def pack_columns(self, value: int, rows: Group, depth: Group, offset: Size) -> Packed:
        """Panels of an operand, for all batches."""
        piece = Piece(self.kernel)
        nodes = needed(self.kernel, [value])
        batch = self.rows.batch
        side = Side(self.form, False, self.form.width, value, batch, rows, depth, "rows")
        side.along = along_of(self.kernel, side, nodes)
        text = pack(piece, side)
        steps = self.known(steps_of(depth, self.form))
        panel_bytes = aligned(steps * self.form.width * self.form.item)
        panels = -(-self.known(total(rows)) // self.form.width)
        return Packed(FunctionPointer(text), piece, offset, panel_bytes, panels)

    @property
    def depth(self) -> int:
        """Multiplications and additions for each element of a row."""
        depth = sum(sizes.typical(total(first.depth)) for first in self.rows.firsts)
        if self.rows.columns is not None:
            columns = self.known(self.kernel.sizes[self.rows.columns])
            depth += columns * len(self.rows.seconds)
        return depth

    def parts(self, count: int) -> int:
        """Parts of so many equal pieces of the work."""
        batches = sizes.typical(total(self.rows.batch))
        work = batches * self.count * self.length * self.depth
        return max(1, min(_PARTS, count, work // _GRAIN))

    def distance(self, second: Second) -> Size | None:
        """The distance of rows of a matrix that can be read where it lies, or None."""
        kernel = self.kernel
        node = kernel.body[second.matrix]
        if not is_plain(kernel, second.matrix) or not isinstance(node, Load):
            return None
        index = node.buffer.flat(node.index)
        if node.buffer.dtype != self.form.dtype or index.coefficient(self.rows.columns or "") != 1:
            return None
        return index.coefficient(self.rows.along)

    def columns(self) -> int:
        """Columns of the second products."""
        assert self.rows.columns is not None
        return self.known(self.kernel.sizes[self.rows.columns])

    @property
    def row_parts(self) -> int:
        """Parts of the tiles of all batches."""
        return self.parts(self.tiles * max(1, sizes.typical(total(self.rows.batch))))
