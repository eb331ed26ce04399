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

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from fxarray.devices.cpu.emit.function import FunctionText, Operand, module
from fxarray.devices.cpu.native.routine import RUN_WORD

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
_INDEX = {name: number for number, name in enumerate(WORDS)}

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
      dots: whether micro-kernels sum along the lanes, for which columns lie apart.
      store: whether the epilogue does nothing but store: then micro-kernels store whole tiles.
    """

    pack_a: bool
    pack_b: str
    split: bool = False
    bands: bool = False
    dots: bool = False
    store: bool = False


class _Part:
    """A function `(runtime, arguments, thread, part)`; its arguments are (words, batch range)."""

    def __init__(self) -> None:
        self.f = FunctionText()
        self.words = self.f.load_word("%arguments", 0, "ptr")
        self._known: dict[str, Operand] = {}

    def word(self, name: str, type_: str = "i64") -> Operand:
        key = f"{name}:{type_}"
        if key not in self._known:
            self._known[key] = self.f.load_word(self.words, _INDEX[name], type_)
        return self._known[key]

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


def _pack_phase() -> _Part:
    """Packs panels of b for one batch."""
    part = _Part()
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


class _Product(_Part):
    """The part that multiplies."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        f = self.f
        for name in WORDS:
            pointers = ("micro", "pack_a", "pack_b", "epilogue", "merge", "scratch")
            self.word(name, "ptr" if name in pointers else "i64")
        self.a_words = self.section("a_words")
        self.b_words = self.section("b_words")
        self.epilogue_words = self.section("epilogue_words")
        self.result_words = self.section("result_words")
        self.result_row = f.load_word(self.result_words, OPERAND_WORDS.index("row_stride"))
        self.result = "null"
        self.tiles = self.count("rows", "height")
        self.panels = self.count("columns", "width")
        thread = f.add(self.word("thread_offset"), f.multiply("%thread", self.word("thread_bytes")))
        self.own = f.offset(self.pointer("scratch"), thread)
        self.own_tiles = f.offset(self.own, self.word("tiles_offset"))
        self.own_panel = f.offset(self.own, self.word("panel_offset"))
        self.a_start = self.b_start = self.own
        self.columns: tuple[Operand, Operand] = ("0", "0")
        self.a_step = f.new(f"udiv i64 {self.word('a_step_bytes')}, {self.word('item')}")

    def write(self) -> None:
        f = self.f
        first = f.load_word("%arguments", 1)
        last = f.load_word("%arguments", 2)
        number: Operand = "%part"
        ranges: list[tuple[Operand, Operand]] = []
        index: list[Operand] = []
        counts = {
            "batch_parts": f.subtract(last, first),
            "row_parts": self.tiles,
            "column_parts": self.panels,
            "sum_parts": self.word("steps"),
        }
        for name in reversed(counts):
            parts = self.word(name)
            rest = f.new(f"udiv i64 {number}, {parts}")
            mine = f.subtract(number, f.multiply(rest, parts))
            ranges.append(self.share(mine, counts[name], parts))
            index.append(mine)
            number = rest
        (self.step0, self.step1), columns, rows, batches = ranges
        self.sum_part = index[0]
        self.steps = f.subtract(self.step1, self.step0)

        def batch(b: Operand) -> None:
            batch_number = f.add(first, b)
            if not self.shape.pack_a:
                self.a_start = self.operand(self.a_words, batch_number)
            if self.shape.pack_b == "no":
                self.b_start = self.operand(self.b_words, batch_number)
            if self.shape.store:
                self.result = self.operand(self.result_words, batch_number)
            f.loop(
                rows[0],
                rows[1],
                self.word("block"),
                lambda block: self.block(batch_number, block, rows[1], columns),
            )

        f.loop(*batches, 1, batch)

    def block(
        self, batch: Operand, block: Operand, end: Operand, columns: tuple[Operand, Operand]
    ) -> None:
        f = self.f
        stop = f.smaller(f.add(block, self.word("block")), end)
        self.a_bytes = f.multiply(self.steps, self.word("a_step_bytes"))

        def pack(tile: Operand) -> None:
            row, rows = self.rows(tile)
            out = f.offset(self.own, f.multiply(f.subtract(tile, block), self.a_bytes))
            self.pack("pack_a", self.a_words, out, batch, row, rows)

        if self.shape.pack_a:
            f.loop(block, stop, 1, pack)
        self.columns = columns
        if not self.shape.bands:

            def whole(number: Operand) -> None:
                self.panel(batch, block, stop, number)

            f.loop(*columns, 1, whole)
            return

        def piece(step: Operand) -> None:
            count = f.smaller(self.word("piece"), f.subtract(self.steps, step))
            first = f.new(f"icmp eq i64 {step}, 0")

            def panel(number: Operand) -> None:
                multiply = self.panel(batch, block, stop, number)[0]
                f.loop(block, stop, 1, lambda tile: multiply(tile, step, count, first))

            f.loop(*columns, 1, panel)

        def finish(number: Operand) -> None:
            f.loop(block, stop, 1, self.panel(batch, block, stop, number)[1])

        # Without numbers to sum there is one piece of none.
        f.loop(0, f.larger(self.steps, 1), self.word("piece"), piece)
        f.loop(*columns, 1, finish)

    def pack(
        self, name: str, words: Operand, out: Operand, batch: Operand, row: Operand, rows: Operand
    ) -> None:
        self.f.do(
            f"call void {self.pointer(name)}(ptr {words}, ptr {out}, i64 {batch}, i64 {row}, "
            f"i64 {rows}, i64 {self.step0}, i64 {self.steps})"
        )

    def rows(self, tile: Operand) -> tuple[Operand, Operand]:
        """The first row of a tile, and how many it has."""
        f = self.f
        row = f.multiply(tile, self.word("height"))
        return row, f.smaller(self.word("height"), f.subtract(self.word("rows"), row))

    def panel(
        self, batch: Operand, block: Operand, stop: Operand, panel: Operand
    ) -> tuple[Callable[[Operand, Operand, Operand, Operand], None], Callable[[Operand], None]]:
        """What multiplies a piece of a tile, and what finishes it, which it does by itself unless
        bands are walked."""
        f = self.f
        column = f.multiply(panel, self.word("width"))
        some = f.smaller(self.word("width"), f.subtract(self.word("columns"), column))
        if self.shape.pack_b == "local":
            self.pack("pack_b", self.b_words, self.own_panel, batch, column, some)
            b_start, b_step = self.own_panel, self.word("width")
            b_step_bytes = self.word("b_step_bytes")
        elif self.shape.pack_b == "shared":
            panel_bytes = f.multiply(self.word("steps"), self.word("b_step_bytes"))
            start = f.offset(self.pointer("scratch"), f.multiply(panel, panel_bytes))
            b_start = f.offset(start, f.multiply(self.step0, self.word("b_step_bytes")))
            b_step, b_step_bytes = self.word("width"), self.word("b_step_bytes")
        else:
            b_step = f.load_word(self.b_words, OPERAND_WORDS.index("step_stride"))
            b_step_bytes = f.multiply(b_step, self.word("item"))
            skipped = f.multiply(self.step0, b_step_bytes)
            distance = f.load_word(self.b_words, OPERAND_WORDS.index("row_stride"))
            before = f.multiply(column, self.word("item"))
            if self.shape.dots:
                b_step, before = distance, f.multiply(before, distance)
            place = f.add(before, skipped)
            b_start = f.offset(self.b_start, place)

        def address(tile: Operand) -> Operand:
            if self.shape.split:
                number = f.add(f.multiply(self.sum_part, self.tiles), tile)
                number = f.add(f.multiply(number, self.panels), panel)
                start = f.offset(self.pointer("scratch"), self.word("partial_offset"))
                return f.offset(start, f.multiply(number, self.word("tile_bytes")))
            number = f.subtract(tile, block)
            if self.shape.bands:
                count = f.subtract(self.columns[1], self.columns[0])
                number = f.multiply(number, count)
                number = f.add(number, f.subtract(panel, self.columns[0]))
            return f.offset(self.own_tiles, f.multiply(number, self.word("tile_bytes")))

        def whole(tile: Operand) -> Operand:
            """Whether a tile is stored by the micro-kernel."""
            _, rows = self.rows(tile)
            high = f.new(f"icmp eq i64 {rows}, {self.word('height')}")
            wide = f.new(f"icmp eq i64 {some}, {self.word('width')}")
            return f.new(f"and i1 {high}, {wide}")

        def target(tile: Operand) -> tuple[Operand, Operand]:
            """Where the micro-kernel stores a tile, and the distance of its rows."""
            own, distance = address(tile), self.word("width")
            if not self.shape.store:
                return own, distance
            place = f.multiply(f.multiply(tile, self.word("height")), self.result_row)
            place = f.multiply(f.add(place, column), self.word("item"))
            result, direct = f.offset(self.result, place), whole(tile)
            return (
                f.new(f"select i1 {direct}, ptr {result}, ptr {own}"),
                f.new(f"select i1 {direct}, i64 {self.result_row}, i64 {distance}"),
            )

        def multiply(tile: Operand, step: Operand, count: Operand, first: Operand) -> None:
            if self.shape.pack_a:
                a = f.offset(self.own, f.multiply(f.subtract(tile, block), self.a_bytes))
                a = f.offset(a, f.multiply(step, self.word("a_step_bytes")))
                strides = f"i64 1, i64 {self.a_step}"
            else:
                names = OPERAND_WORDS.index("row_stride"), OPERAND_WORDS.index("step_stride")
                row_stride, step_stride = [f.load_word(self.a_words, n) for n in names]
                # The last tile is moved back inside the array; its epilogue skips what was done.
                row = f.smaller(
                    f.multiply(tile, self.word("height")),
                    f.subtract(self.word("rows"), self.word("height")),
                )
                place = f.add(
                    f.multiply(row, row_stride),
                    f.multiply(f.add(self.step0, step), step_stride),
                )
                a = f.offset(self.a_start, f.multiply(place, self.word("item")))
                strides = f"i64 {row_stride}, i64 {step_stride}"
            b = f.offset(b_start, f.multiply(step, b_step_bytes))
            place, distance = target(tile)
            f.do(
                f"call void {self.pointer('micro')}(i64 {count}, ptr {a}, {strides}, ptr {b}, "
                f"i64 {b_step}, ptr {place}, i64 {distance}, i64 {some}, i1 {first})"
            )

        def finish(tile: Operand) -> None:
            if self.shape.split:
                return
            if self.shape.store:
                f.branch(f.new(f"xor i1 {whole(tile)}, true"), lambda: complete(tile))
                return
            complete(tile)

        def complete(tile: Operand) -> None:
            place = address(tile)
            row, rows = self.rows(tile)
            if not self.shape.pack_a:
                back = f.multiply(
                    f.subtract(self.word("height"), rows),
                    f.new(f"udiv i64 {self.word('tile_bytes')}, {self.word('height')}"),
                )
                place = f.offset(place, back)
            self.finish(place, batch, row, column, rows, some)

        def at_once() -> None:
            def one(tile: Operand) -> None:
                multiply(tile, "0", self.steps, "true")
                finish(tile)

            f.loop(block, stop, 1, one)

        def in_pieces() -> None:
            def piece(step: Operand) -> None:
                count = f.smaller(self.word("piece"), f.subtract(self.steps, step))
                first = f.new(f"icmp eq i64 {step}, 0")
                f.loop(block, stop, 1, lambda tile: multiply(tile, step, count, first))

            f.loop(0, self.steps, self.word("piece"), piece)
            f.loop(block, stop, 1, finish)

        if not self.shape.bands:
            few = f.new(f"icmp sle i64 {self.steps}, {self.word('piece')}")
            f.branch(few, at_once, in_pieces)
        return multiply, finish

    def finish(
        self,
        tile: Operand,
        batch: Operand,
        row: Operand,
        column: Operand,
        rows: Operand,
        columns: Operand,
    ) -> None:
        self.f.do(
            f"call void {self.pointer('epilogue')}(ptr {self.epilogue_words}, ptr {tile}, "
            f"i64 {batch}, i64 {row}, i64 {column}, i64 {rows}, i64 {columns})"
        )


def _merge_phase() -> _Product:
    """Adds up the tiles that the parts of the sum left, and finishes them."""
    part = _Product(Shape(True, "shared", True))
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

    def add(name: str, part: _Part) -> None:
        functions.append((part.f, part.f.definition(f"@{name}{_PART}", "internal")))

    product = _Product(shape)
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
            words[name] = f.load_word("%arguments", _INDEX[name])
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


__all__ = ["OPERAND_WORDS", "WORDS", "Shape", "driver", "merge"]
