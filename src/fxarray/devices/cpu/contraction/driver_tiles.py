"""The part of a driver that multiplies: loops over blocks, panels, pieces and tiles."""

from __future__ import annotations

from collections.abc import Callable

from fxarray.devices.cpu.contraction.driver_words import OPERAND_WORDS, Part, Shape
from fxarray.devices.cpu.emit.function import Operand


class Multiplication(Part):
    """The part that multiplies."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        f = self.f
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

            # Without numbers to sum there is one piece of none.
            f.loop(0, f.larger(self.steps, 1), self.word("piece"), piece)
            f.loop(block, stop, 1, finish)

        if not self.shape.bands:
            (in_pieces if self.shape.pieces else at_once)()
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
