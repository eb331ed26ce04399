"""Products: from a kernel with one Contract to a routine.

Everything is put together from small functions: a driver and a micro-kernel that know no shape,
packing functions that know none either for operands that are read as they lie, and an epilogue.
So a product of a new shape compiles nothing, and one with a new epilogue little more than that.
"""

from __future__ import annotations

from dataclasses import replace

from fxarray.devices.cpu.contraction import dots, micro
from fxarray.devices.cpu.contraction.driver import driver, merge
from fxarray.devices.cpu.contraction.driver_words import WORDS, Shape
from fxarray.devices.cpu.contraction.epilogue import epilogue, single
from fxarray.devices.cpu.contraction.evaluate import Piece
from fxarray.devices.cpu.contraction.forms import form_of, one_by_one
from fxarray.devices.cpu.contraction.operands import Operand, along_of, plain_pack
from fxarray.devices.cpu.contraction.panels import Side, pack, steps_of
from fxarray.devices.cpu.contraction.recognise import (
    Group,
    Product,
    collapse,
    is_plain,
    recognise,
    total,
)
from fxarray.devices.cpu.contraction.rows import recognise_rows
from fxarray.devices.cpu.contraction.rows_render import render_rows
from fxarray.devices.cpu.emit.features import using
from fxarray.devices.cpu.emit.types import itemsize
from fxarray.devices.cpu.native.routine import (
    FunctionPointer,
    Routine,
    ScratchPointer,
    SizeWord,
    Word,
)
from fxarray.devices.cpu.native.target import Target
from fxarray.kernel import sizes
from fxarray.kernel.ir import Kernel, Load, Store
from fxarray.kernel.rewrite import needed
from fxarray.kernel.sizes import Size

# Steps of the sum for which a panel's piece and a tile's piece fit the first-level cache together.
_PIECE = 512
# Bytes of packed rows that stay in the second-level cache while the columns pass by.
_BLOCK_BYTES = 768 << 10
# From this size on an operand that is read where it lies is read in bands of so many rows.
_BANDS_BYTES = 256 << 10
_BAND = 64
# Tiles of rows for which packing the second operand is not worth it.
_FEW = 6
# Results of a long sum that are few enough to sum parts of it apart.
_SPLIT = 1 << 17
# Multiplications and additions that are worth another part.
_GRAIN = 1 << 18


def render(kernel: Kernel, target: Target) -> Routine | None:
    """The routine of a product, or None where the kernel is none that can be rendered here."""
    with using(target):
        product = recognise(kernel)
        if product is not None:
            return _Plan(product, target).routine()
        rows = recognise_rows(kernel)
        return None if rows is None else render_rows(rows, target)


class _Plan:
    """The choices for one product."""

    def __init__(self, product: Product, target: Target) -> None:
        self.product, self.target = product, target
        self.kernel = kernel = product.kernel
        node = product.node
        a, b = kernel.dtypes[product.a], kernel.dtypes[product.b]
        form = form_of(a, b, node.dtype, target)
        self.rows, self.columns = total(product.rows), total(product.columns)
        if form.unit and not self._worth_blocks():
            form = form_of(a, b, node.dtype, replace(target, features=""))
        if not product.depth or not isinstance(product.depth[-1].size, int):
            form = one_by_one(node.dtype, target)
        self.batches = total(product.batch)
        columns = sizes.typical(self.columns)
        if isinstance(self.columns, int) and target.vector_bytes == 64 and not form.unit:
            if columns <= form.lanes:
                form = replace(form, vectors=1)
            elif 2 * form.lanes < columns <= 3 * form.lanes:
                form = replace(form, vectors=3, height=8)
            elif 3 * form.lanes < columns <= 4 * form.lanes:
                form = replace(form, vectors=4, height=6)
        self.form = form
        self.steps = steps_of(product.depth, form)
        self.a_plain = self._plain(product.a, product.rows)
        self.b_plain = self._plain(product.b, product.columns)
        if (
            self.a_plain is not None
            and columns <= 2 * form.width
            and not self._spread(self.a_plain)
        ):
            self.form = replace(form, height=min(form.height, 8))
        self.dots = self._along_lanes()
        if self.dots:
            self.form = replace(self.form, vectors=1, height=dots.MOST_ROWS)
        self.height = self._height()

    def _along_lanes(self) -> bool:
        """Whether the products are few rows' with columns that lie along the sum."""
        a, b, form = self.a_plain, self.b_plain, self.form
        if a is None or b is None or form.complex or form.pair > 1:
            return False
        few = isinstance(self.rows, int) and 0 < self.rows <= dots.MOST_ROWS
        along = a.strides[3] == 1 and b.strides[3] == 1
        same = a.dtype == b.dtype == form.dtype
        return few and along and same and sizes.typical(self.steps) >= form.lanes

    def _worth_blocks(self) -> bool:
        """Whether the matrix unit's large blocks are filled."""
        group = self.product.depth
        known = bool(group) and isinstance(group[-1].size, int) and group[-1].size >= 32
        rows, columns = sizes.typical(self.rows), sizes.typical(self.columns)
        return known and min(rows, columns) >= 16 and rows * columns >= 1024

    def _height(self) -> int:
        """Rows of the product in a tile: few rows are dealt out evenly."""
        if self.form.unit:
            return self.form.height
        most = self.form.height // self.form.steps
        if isinstance(self.rows, int) and self.rows < 16 * most:
            tiles = max(1, -(-self.rows // most))
            return max(1, -(-self.rows // tiles))
        return most

    def _result(self) -> Operand | None:
        """Where the sums are stored as they are, if that is all that the epilogue does."""
        kernel, product, form = self.kernel, self.product, self.form
        if len(product.stores) != 1 or form.complex:
            return None
        (number,) = product.stores
        node = kernel.body[number]
        assert isinstance(node, Store)
        if node.value != product.number or node.bounds or any(i.values for i in node.index):
            return None
        if node.buffer.dtype != form.dtype or product.node.dtype != form.dtype:
            return None
        groups = [
            collapse(kernel, group, [number])
            for group in (product.batch, product.rows, product.columns)
        ]
        batch, rows, columns = groups
        if len(batch) > 2 or len(rows) > 1 or len(columns) != 1:
            return None
        index = node.buffer.flat(node.index)
        if index.coefficient(columns[0].axis) != 1:
            return None
        strides = [index.coefficient(run.axis) for run in batch]
        outer, inner = ([0, 0, *strides])[-2:]
        row = index.coefficient(rows[0].axis) if rows else 0
        number = [buffer.name for buffer in kernel.outputs].index(node.buffer.name)
        size = batch[-1].size if batch else 1
        size = max(size, 1) if isinstance(size, int) else size
        strides = (outer, inner, row, 1)
        return Operand(number, index.constant, size, strides, form.dtype, output=True)

    def _plain(self, value: int, rows: Group) -> Operand | None:
        kernel, product = self.kernel, self.product
        if not is_plain(kernel, value):
            return None
        node = kernel.body[value]
        assert isinstance(node, Load)
        batch, rows = collapse(kernel, product.batch, [value]), collapse(kernel, rows, [value])
        if len(batch) > 2 or len(rows) > 1 or len(product.depth) > 1:
            return None
        index = node.buffer.flat(node.index)
        strides = [index.coefficient(run.axis) for run in (*batch, *rows, *product.depth)]
        outer, inner = ([0, *strides] if len(batch) == 1 else strides)[:2] if batch else (0, 0)
        rest = strides[len(batch) :]
        row = rest[0] if rows else 0
        depth = rest[-1] if product.depth else 0
        number = [buffer.name for buffer in kernel.inputs].index(node.buffer.name)
        size = batch[-1].size if batch else 1
        if isinstance(size, int):
            size = max(size, 1)
        return Operand(number, index.constant, size, (outer, inner, row, depth), node.buffer.dtype)

    # --- which way --------------------------------------------------------------------------------

    @property
    def shape(self) -> Shape:
        """Which operands are packed, and whether the sum is split."""
        form = self.form
        rows, columns = sizes.typical(self.rows), sizes.typical(self.columns)
        depth, batches = sizes.typical(self.steps), sizes.typical(self.batches)
        simple = form.pair == 1 and not form.complex and not form.unit
        a, b = self.a_plain, self.b_plain
        a_direct = (
            simple
            and a is not None
            and a.dtype == form.dtype
            and isinstance(self.rows, int)
            and self.rows >= self.height
            # Many rows a multiple of 4096 bytes apart push each other out of the cache.
            and (self._spread(a) or self.height <= 8)
            and (columns <= 4 * form.width or rows * depth * form.item <= 32 << 10)
        )
        b_direct = (
            simple
            and b is not None
            and b.dtype == form.dtype
            and (b.strides[2] == 1 or self.columns == 1)
            and (rows <= _FEW * self.height or columns * depth * form.item <= 32 << 10)
        )
        if self.dots:
            return Shape(False, "no", dots=True)
        if depth >= 2048 and batches <= 8 and rows * columns <= _SPLIT:
            return Shape(True, "no" if b_direct else "local", True)
        if b_direct:
            large = columns * depth * form.item > _BANDS_BYTES
            return Shape(not a_direct, "no", bands=large)
        few = rows <= self.height or (batches > 1 and columns * depth * form.item <= 1 << 20)
        # All rows packed stay in the cache, and each panel of many is packed when it is needed.
        wide = columns >= 8 * rows and rows * depth * form.item <= _BLOCK_BYTES
        if few or wide or rows * columns * depth < 2 * _GRAIN:
            return Shape(not a_direct, "local")
        return Shape(not a_direct, "shared")

    def _spread(self, a: Operand) -> bool:
        """Whether rows are at different places of the first-level cache, or short."""
        stride, depth = sizes.typical(a.strides[2]), sizes.typical(self.steps)
        return stride * self.form.item % 4096 != 0 or depth * self.form.item <= 1024

    def _parts(self, shape: Shape) -> tuple[int, int, int, int]:
        """Parts of batches, rows, columns and the sum, by the size of the work alone."""
        form = self.form
        rows, columns = sizes.typical(self.rows), sizes.typical(self.columns)
        depth, batches = sizes.typical(self.steps), sizes.typical(self.batches)
        tiles, panels = -(-rows // self.height), -(-columns // form.width)
        one = rows * columns * depth
        if shape.split:
            fit = depth * rows * form.item // _BLOCK_BYTES
            return 1, 1, 1, max(1, min(max(8, fit), 32, depth // 256))
        loose = shape.pack_b != "shared"
        wanted = max(1, min(32, one * (batches if loose else 1) // _GRAIN))
        batch_parts = max(1, min(batches, wanted)) if loose else 1
        wanted = -(-wanted // batch_parts)
        # A part packs its own rows, which is worth it for many columns; and it reads all panels,
        # which is worth it for many rows if they come from far away.
        far = columns * depth * form.item * form.places > 2 << 20
        row_parts = max(1, min(wanted, tiles // (6 if far else 2)))
        if shape.pack_b == "local" and panels > 1:
            row_parts = 1
        column_parts = 1
        if row_parts < min(wanted, 8):
            least = 128 if shape.pack_a or shape.bands else form.width
            enough = min(-(-wanted // row_parts), max(columns // 256, -(-8 // row_parts)))
            column_parts = max(1, min(enough, columns // least))
        return batch_parts, row_parts, column_parts, 1

    # --- putting it together ----------------------------------------------------------------------

    def routine(self) -> Routine:
        form, product = self.form, self.product
        result = self._result()
        shape = self.shape
        shape = replace(shape, store=result is not None and not shape.split)
        parts = self._parts(shape)
        piece_steps = _BAND if shape.bands else _PIECE // form.places
        steps = (
            self.steps
            if not shape.split or not isinstance(self.steps, int)
            else -(-self.steps // parts[3])
        )
        # A sum that is a little longer than a piece is not cut.
        cut = not isinstance(steps, int) or steps > 2 * piece_steps
        shape = replace(shape, pieces=cut and not shape.dots and not shape.bands)
        padded = form.padded(self.height * form.steps)
        a_step = padded * form.item * form.steps * form.places
        b_step = form.width * form.item * form.steps * form.places
        tile = self.height * form.steps * form.width * form.item
        depth = sizes.typical(self.steps)
        block = max(1, min(16, _BLOCK_BYTES // max(1, depth * a_step)))
        columns = sizes.typical(self.columns)
        if form.unit and columns // form.width * depth * b_step <= 4 * _BLOCK_BYTES:
            # All panels stay in the cache as well, and results are written row after row.
            block = 1
        if shape.split:
            block = max(1, min(16, parts[3] * _BLOCK_BYTES // max(1, depth * a_step)))

        a_words, a_text = self._packed(True, padded) if shape.pack_a else (None, None)
        b_words, b_text = self._packed(False, form.width) if shape.pack_b != "no" else (None, None)
        if a_words is None:
            assert self.a_plain is not None
            a_words = self.a_plain.words
        if b_words is None:
            assert self.b_plain is not None
            b_words = self.b_plain.words
        piece = Piece(self.kernel, literal=not single(product))
        epilogue_text = epilogue(piece, product, form, self.target, self.height)

        packed_a = _up(sizes.multiply(self.steps, block * a_step)) if shape.pack_a else 0
        panel = _up(sizes.multiply(self.steps, b_step)) if shape.pack_b == "local" else 0
        tiles = _up(block * tile)
        if shape.bands:
            count = sizes.add(self.columns, form.width)
            tiles = _up(sizes.multiply(count, block * (tile // form.width)))
        thread_bytes = sizes.add(sizes.add(packed_a, panel), tiles)
        shared: Size = 0
        if shape.pack_b == "shared":
            whole = sizes.add(self.columns, form.width)
            if isinstance(self.columns, int):
                whole = -(-self.columns // form.width) * form.width
            shared = sizes.multiply(sizes.multiply(self.steps, b_step // form.width), whole)
        partial: Size = 0
        if shape.split:
            count = -(-sizes.typical(self.rows) // self.height) * -(
                -sizes.typical(self.columns) // form.width
            )
            partial = parts[3] * count * tile
        shared = _up(shared)
        scratch = sizes.add(shared, _up(partial))
        text = micro.packed(form, self.height * form.steps, self.target)
        if not shape.pack_a or shape.pack_b == "no":
            ahead = ""
            if not shape.pack_a and self.a_plain is not None:
                neighbours = self.a_plain.strides[2:] + (1,)
                ahead = {0: "rows", 1: "depth", 2: ""}[neighbours.index(1)]
            text = micro.direct(form, self.height, form.vectors, self.target, ahead)
        if shape.dots:
            text = dots.dots(form, self.height, self.target)
        nothing = SizeWord(0)
        # Without a result to store to, any words may stand for it.
        result_words = a_words if result is None else result.words
        values: dict[str, Word | Size] = {
            "rows": self.rows,
            "columns": self.columns,
            "steps": self.steps,
            "batches": self.batches,
            "height": self.height,
            "width": form.width,
            "a_step_bytes": a_step,
            "b_step_bytes": b_step,
            "tile_bytes": tile,
            "block": block,
            "piece": piece_steps,
            "batch_parts": parts[0],
            "row_parts": parts[1],
            "column_parts": parts[2],
            "sum_parts": parts[3],
            "micro": FunctionPointer(text),
            "pack_a": FunctionPointer(a_text) if a_text else nothing,
            "pack_b": FunctionPointer(b_text) if b_text else nothing,
            "epilogue": FunctionPointer(epilogue_text),
            "merge": FunctionPointer(merge(form.element, form.lanes)) if shape.split else nothing,
            "a_words": len(WORDS),
            "b_words": len(WORDS) + len(a_words),
            "epilogue_words": len(WORDS) + len(a_words) + len(b_words),
            "result_words": len(WORDS) + len(a_words) + len(b_words) + len(piece.words),
            "item": form.item,
            "scratch": ScratchPointer(),
            "thread_offset": scratch,
            "thread_bytes": thread_bytes,
            "tiles_offset": sizes.add(packed_a, panel),
            "panel_offset": packed_a,
            "partial_offset": shared,
        }
        words = [_word(values[name]) for name in WORDS]
        work = sizes.product([self.rows, self.columns, self.batches, *self._depth_sizes(), 2])
        return Routine(
            driver(shape),
            (*words, *a_words, *b_words, *piece.words, *result_words),
            scratch,
            thread_bytes,
            sizes.multiply(work, 4 if form.complex else 1),
            self._bytes_moved(),
        )

    def _depth_sizes(self) -> list[Size]:
        return [run.size for run in self.product.depth]

    def _bytes_moved(self) -> Size:
        moved: Size = 0
        for buffer in (*self.kernel.inputs, *self.kernel.outputs):
            count = sizes.product(buffer.shape)
            moved = sizes.add(moved, sizes.multiply(count, itemsize(buffer.dtype)))
        return moved

    def _packed(self, first: bool, width: int) -> tuple[tuple[Word, ...], str]:
        """The words and the text of an operand's packing function."""
        product, form = self.product, self.form
        plain = self.a_plain if first else self.b_plain
        if plain is not None:
            along = "rows" if plain.strides[2] == 1 or plain.strides[3] != 1 else "depth"
            contiguous = plain.strides[2 if along == "rows" else 3] == 1
            if form.complex and along == "depth":
                along, contiguous = "rows", False
            batched = plain.strides[:2] != (0, 0)
            # What is packed as it is, is not looked at.
            same = form.packed == plain.dtype == "bf16"
            dtype = "u16" if same else plain.dtype
            known = plain_pack(form, first, width, dtype, along, contiguous, batched, self.target)
            depth = product.depth[-1].size if product.depth else 1
            return known.words(plain, depth), known.text
        value = product.a if first else product.b
        nodes = needed(self.kernel, [value])
        rows = collapse(self.kernel, product.rows if first else product.columns, nodes)
        batch = collapse(self.kernel, product.batch, nodes)
        side = Side(form, first, width, value, batch, rows, product.depth, "rows")
        side.along = along_of(self.kernel, side, nodes)
        simple = max(len(batch), len(rows), len(product.depth)) <= 1
        piece = Piece(self.kernel, literal=not simple)
        text = pack(piece, side)
        return tuple(piece.words), text


def _word(value: Word | Size) -> Word:
    return SizeWord(value) if isinstance(value, int | sizes.Polynomial) else value


def _up(count: Size) -> Size:
    """A multiple of 64 that is no less."""
    return -(-count // 64) * 64 if isinstance(count, int) else sizes.add(count, 64)
