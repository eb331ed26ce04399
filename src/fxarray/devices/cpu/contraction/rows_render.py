"""Rendering kernels of rows (see `rows`): a tile of rows at a time, which stays in the cache.

pack the second operands of the first products        (shared, once)
for a tile of rows of a batch                         (parts)
  first products: micro-kernel, panel by panel, into rows in scratch memory
  for each row: a loop along it for each stage of reductions; what is costly is kept
  second products: micro-kernel, from rows in scratch memory
  for each row: the stores of results
"""

from __future__ import annotations

from fxarray.devices.cpu.contraction.evaluate import Piece
from fxarray.devices.cpu.contraction.panels import steps_of
from fxarray.devices.cpu.contraction.recognise import Run, total
from fxarray.devices.cpu.contraction.rows import Rows
from fxarray.devices.cpu.contraction.rows_plan import Packed, RowsPlan
from fxarray.devices.cpu.contraction.rows_tile import Tile
from fxarray.devices.cpu.emit.function import FunctionText, Operand, module
from fxarray.devices.cpu.native.routine import RUN_WORD, Routine, ScratchPointer
from fxarray.devices.cpu.native.target import Target
from fxarray.kernel import sizes
from fxarray.kernel.sizes import Size

_PART = "(ptr %runtime, ptr %words, i64 %thread, i64 %part)"


def render_rows(rows: Rows, target: Target) -> Routine | None:
    """The routine of a kernel of rows, or None where its arithmetic has no code."""
    plan = RowsPlan(rows, target)
    if not plan.supported:
        return None
    kernel, form = plan.kernel, plan.form
    batches = total(rows.batch)
    scratch: Size = 0
    packed: list[Packed] = []
    along = (Run(rows.along, plan.length),)
    for first in rows.firsts:
        packed.append(plan.pack_columns(first.b, along, first.depth, scratch))
        size = packed[-1].panel_bytes * packed[-1].panels
        scratch = sizes.add(scratch, sizes.multiply(batches, size))
    matrices: list[Packed | None] = []
    for second in rows.seconds:
        if plan.distance(second) is not None:
            matrices.append(None)
            continue
        assert rows.columns is not None
        columns = (Run(rows.columns, plan.known(kernel.sizes[rows.columns])),)
        matrices.append(plan.pack_columns(second.matrix, columns, along, scratch))
        made = matrices[-1]
        assert made is not None
        scratch = sizes.add(scratch, sizes.multiply(batches, made.panel_bytes * made.panels))

    tile = Tile(plan, packed, matrices)
    tile.write()
    functions: list[tuple[FunctionText, str]] = []
    every = [p for p in (*packed, *matrices) if p is not None]
    functions.append((tile.f, tile.f.definition(f"@rows{_PART}", "internal")))
    for number, one in enumerate(every):
        f = _pack_phase(plan, one, tile)
        functions.append((f, f.definition(f"@pack{number}{_PART}", "internal")))
    entry = _entry(plan, len(every))
    functions.append((entry, entry.definition("@entry(ptr %runtime, ptr %words)")))
    work = sizes.multiply(batches, plan.count * plan.length * 2 * plan.depth)
    moved: Size = 0
    for buffer in (*kernel.inputs, *kernel.outputs):
        moved = sizes.add(moved, sizes.multiply(sizes.product(buffer.shape), form.item))
    return Routine(module(functions), tuple(tile.piece.words), scratch, tile.memory, work, moved)


def _pack_phase(plan: RowsPlan, packed: Packed, tile: Tile) -> FunctionText:
    """Packs a share of all panels of one operand."""
    piece = Piece(plan.kernel)
    f = piece.f
    # Words are shared by all functions, in the order in which the tile's function took them.
    scratch = tile.share_word(f, ScratchPointer(), "ptr")
    function = tile.share_word(f, packed.function, "ptr")
    words = tile.share_section(f, packed)
    batches = tile.share_size(f, total(plan.rows.batch))
    count = f.multiply(batches, packed.panels)
    parts = plan.parts(8)
    low = f.new(f"udiv i64 {f.multiply('%part', count)}, {parts}")
    high = f.new(f"udiv i64 {f.multiply(f.add('%part', 1), count)}, {parts}")
    start = f.offset(scratch, tile.share_size(f, packed.offset))
    rows = plan.length if packed in tile.packed else plan.columns()
    depth = _steps(plan, packed, tile)

    def one(number: Operand) -> None:
        batch = f.new(f"udiv i64 {number}, {packed.panels}")
        panel = f.subtract(number, f.multiply(batch, packed.panels))
        row = f.multiply(panel, plan.form.width)
        some = f.smaller(plan.form.width, f.subtract(rows, row))
        out = f.offset(start, f.multiply(number, packed.panel_bytes))
        f.do(
            f"call void {function}(ptr {words}, ptr {out}, i64 {batch}, i64 {row}, "
            f"i64 {some}, i64 0, i64 {depth})"
        )

    f.loop(low, high, 1, one)
    return f


def _entry(plan: RowsPlan, packs: int) -> FunctionText:
    f = FunctionText()
    run = f.load_word("%runtime", RUN_WORD, "ptr")

    def phase(name: str, parts: int) -> None:
        if parts == 1:
            f.do(f"call void @{name}(ptr %runtime, ptr %words, i64 0, i64 0)")
        else:
            f.do(f"call void {run}(ptr %runtime, ptr @{name}, ptr %words, i64 {parts})")

    for number in range(packs):
        phase(f"pack{number}", plan.parts(8))
    phase("rows", plan.row_parts)
    return f


def _steps(plan: RowsPlan, packed: Packed, tile: Tile) -> int:
    if packed in tile.packed:
        first = plan.rows.firsts[tile.packed.index(packed)]
        return plan.known(steps_of(first.depth, plan.form))
    return plan.length
