"""The loops around the micro-kernels: shape-free, so a few texts serve all products.

A driver reads sizes, strides and the functions to call from its arguments (`WORDS`):

    pack:     void (ptr %words, ptr %out, i64 %batch, i64 %row, i64 %rows, i64 %step, i64 %steps)
    micro:    see `micro`
    epilogue: void (ptr %words, ptr %tile, i64 %batch, i64 %row, i64 %column, i64 %rows,
                    i64 %columns)
    merge:    void (ptr %tile, ptr %other, i64 %bytes)

Work is cut into parts over batches, rows, columns and, where few results sum many numbers, over the
sum itself: then each part leaves its tiles in scratch memory and a second phase adds them up.

    for a block of rows (packed, it stays in the second-level cache)
      for a panel of columns
        for a piece of the sum (the panel's piece stays in the cache)
          for a tile of the block: micro-kernel, and after the last piece the epilogue
"""

from __future__ import annotations

from functools import lru_cache

from fxarray.devices.cpu.contraction.driver_tiles import Multiplication
from fxarray.devices.cpu.contraction.driver_words import INDEX, Part, Shape
from fxarray.devices.cpu.emit.function import FunctionText, Operand, module
from fxarray.devices.cpu.native.routine import RUN_WORD


def _pack_phase() -> Part:
    """Packs panels of b for one batch."""
    part = Part()
    f = part.f
    words = part.section("b_words")
    batch = f.load_word("%arguments", 1)
    parts = f.load_word("%arguments", 3)
    low, high = part.share("%part", part.count("columns", "width"), parts)
    panel_bytes = f.multiply(part.word("steps"), part.word("b_step_bytes"))

    def panel(number: Operand) -> None:
        column = f.multiply(number, part.word("width"))
        some = f.smaller(part.word("width"), f.subtract(part.word("columns"), column))
        out = f.offset(part.pointer("scratch"), f.multiply(number, panel_bytes))
        f.do(
            f"call void {part.pointer('pack_b')}(ptr {words}, ptr {out}, "
            f"i64 {batch}, i64 {column}, i64 {some}, i64 0, i64 {part.word('steps')})"
        )

    for name in ("pack_b", "scratch"):
        part.pointer(name)
    for name in ("width", "columns", "steps"):
        part.word(name)
    f.loop(low, high, 1, panel)
    return part


def _merge_phase() -> Multiplication:
    """Adds up the tiles that the parts of the sum left, and finishes them."""
    part = Multiplication(Shape(True, "shared", True))
    f = part.f
    batch = f.load_word("%arguments", 1)
    parts = f.load_word("%arguments", 3)
    count = f.multiply(part.tiles, part.panels)
    low, high = part.share("%part", count, parts)
    start = f.offset(part.pointer("scratch"), part.word("partial_offset"))

    def one(number: Operand) -> None:
        tile = f.new(f"udiv i64 {number}, {part.panels}")
        panel = f.subtract(number, f.multiply(tile, part.panels))
        place = f.offset(start, f.multiply(number, part.word("tile_bytes")))

        def add(which: Operand) -> None:
            distance = f.multiply(f.multiply(which, count), part.word("tile_bytes"))
            other = f.offset(place, distance)
            f.do(
                f"call void {part.pointer('merge')}(ptr {place}, ptr {other}, "
                f"i64 {part.word('tile_bytes')})"
            )

        f.loop(1, part.word("sum_parts"), 1, add)
        row, rows = part.rows(tile)
        column = f.multiply(panel, part.word("width"))
        some = f.smaller(part.word("width"), f.subtract(part.word("columns"), column))
        part.finish(place, batch, row, column, rows, some)

    f.loop(low, high, 1, one)
    return part


_PART = "(ptr %runtime, ptr %arguments, i64 %thread, i64 %part)"


@lru_cache(maxsize=16)
def driver(shape: Shape) -> str:
    """The module of a driver; its `@entry` is that of a routine."""
    functions: list[tuple[FunctionText, str]] = []
    # Loops around packed tiles take no time, and are compiled in a fifth of it.
    attributes = "noinline optnone" if shape.pack_a or shape.pack_b != "no" else ""

    def add(name: str, part: Part) -> None:
        functions.append((part.f, part.f.definition(f"@{name}{_PART}", "internal", attributes)))

    product = Multiplication(shape)
    product.write()
    add("multiply", product)
    if shape.pack_b == "shared":
        add("pack", _pack_phase())
    if shape.split:
        add("merge", _merge_phase())

    entry = FunctionText()
    f = entry
    frame = f.alloca("[4 x i64]")
    words: dict[str, Operand] = {}

    def word(name: str) -> Operand:
        if name not in words:
            words[name] = f.load_word("%arguments", INDEX[name])
        return words[name]

    def set_frame(place: int, value: Operand, type_: str = "i64") -> None:
        f.do(f"store {type_} {value}, ptr {f.offset(frame, place, 'i64')}, align 8")

    run = f.load_word("%runtime", RUN_WORD, "ptr")

    def phase(name: str, parts: Operand) -> None:
        set_frame(3, parts)
        f.branch(
            f.new(f"icmp eq i64 {parts}, 1"),
            lambda: f.do(f"call void @{name}(ptr %runtime, ptr {frame}, i64 0, i64 0)"),
            lambda: f.do(f"call void {run}(ptr %runtime, ptr @{name}, ptr {frame}, i64 {parts})"),
        )

    def together(first: Operand, last: Operand) -> None:
        set_frame(1, first)
        set_frame(2, last)
        rows_columns = f.multiply(word("row_parts"), word("column_parts"))
        if shape.pack_b == "shared":
            phase("pack", rows_columns)
        parts = f.multiply(f.multiply(word("batch_parts"), rows_columns), word("sum_parts"))
        phase("multiply", parts)
        if shape.split:
            phase("merge", rows_columns)

    set_frame(0, "%arguments", "ptr")
    for name in ("row_parts", "column_parts", "batch_parts", "sum_parts", "batches"):
        word(name)
    if shape.pack_b == "shared" or shape.split:
        f.loop(0, word("batches"), 1, lambda b: together(b, f.add(b, 1)))
    else:
        together("0", word("batches"))
    functions.append((f, f.definition("@entry(ptr %runtime, ptr %arguments)")))
    return module(functions)


@lru_cache(maxsize=8)
def merge(element: str, lanes: int) -> str:
    """`tile += other`, on so many bytes, a multiple of a vector's."""
    f = FunctionText()
    vector = f"<{lanes} x {element}>"
    item = {"float": 4, "i32": 4, "double": 8, "i64": 8}[element]
    plus = "fadd" if element in ("float", "double") else "add"

    def add(place: Operand) -> None:
        left, right = f.offset("%tile", place), f.offset("%other", place)
        x = f.new(f"load {vector}, ptr {left}, align {item}")
        y = f.new(f"load {vector}, ptr {right}, align {item}")
        f.do(f"store {vector} {f.new(f'{plus} {vector} {x}, {y}')}, ptr {left}, align {item}")

    f.loop(0, "%bytes", lanes * item, add)
    return module([(f, f.definition("@entry(ptr %tile, ptr %other, i64 %bytes)"))])
