"""The function that does a share of the tiles of rows: products, rows, products, results."""

from __future__ import annotations

from math import lcm

from fxarray.devices.cpu.contraction import micro
from fxarray.devices.cpu.contraction.evaluate import Evaluator, Piece, Position
from fxarray.devices.cpu.contraction.operands import along_of
from fxarray.devices.cpu.contraction.panels import Side, pack, place, steps_of
from fxarray.devices.cpu.contraction.recognise import total
from fxarray.devices.cpu.contraction.rows import Second
from fxarray.devices.cpu.contraction.rows_along import UNROLL, RowLoops
from fxarray.devices.cpu.contraction.rows_plan import Packed
from fxarray.devices.cpu.emit import lanes as emit_lanes
from fxarray.devices.cpu.emit import memory, scalars
from fxarray.devices.cpu.emit.function import Operand
from fxarray.devices.cpu.emit.types import Value, itemsize
from fxarray.devices.cpu.native.routine import FunctionPointer, ScratchPointer
from fxarray.kernel import sizes
from fxarray.kernel.ir import Load, Op, Store
from fxarray.kernel.rewrite import needed
from fxarray.kernel.sizes import Size


class Tile(RowLoops):
    """Writes the function."""

    def write(self) -> None:
        f, plan, rows = self.f, self.plan, self.rows
        scratch = self.piece.word(ScratchPointer(), "ptr")
        self.scratch = scratch
        self.own = f.offset(scratch, f.multiply("%thread", self.memory))
        self.packing = self._shared_size()
        self.own = f.offset(self.own, self.packing)
        batches = self.piece.size(total(rows.batch))
        count = f.multiply(batches, plan.tiles)
        parts = plan.row_parts
        self.functions()
        low = f.new(f"udiv i64 {f.multiply('%part', count)}, {parts}")
        high = f.new(f"udiv i64 {f.multiply(f.add('%part', 1), count)}, {parts}")

        def one(number: Operand) -> None:
            batch = f.new(f"udiv i64 {number}, {plan.tiles}")
            tile = f.subtract(number, f.multiply(batch, plan.tiles))
            self.tile(batch, f.multiply(tile, plan.height))

        f.loop(low, high, 1, one)

    def _shared_size(self) -> Operand:
        """Bytes of scratch memory before that of the threads."""
        whole: Size = 0
        batches = total(self.rows.batch)
        for one in (*self.packed, *self.matrices):
            if one is not None:
                whole = sizes.add(whole, sizes.multiply(batches, one.panel_bytes * one.panels))
        return self.piece.size(whole)

    def functions(self) -> None:
        """The functions that are called, and packing functions of the first operands."""
        plan, form = self.plan, self.form
        self.micro = self.piece.word(
            FunctionPointer(micro.packed(form, plan.height, plan.target)), "ptr"
        )
        if self.rows.seconds:
            text = micro.direct(form, plan.height, form.vectors, plan.target)
            self.direct = self.piece.word(FunctionPointer(text), "ptr")
        self.left_packs: list[tuple[Operand, Operand]] = []
        for first in self.rows.firsts:
            piece = Piece(self.kernel)
            side = Side(
                form,
                True,
                form.padded(plan.height),
                first.a,
                self.rows.batch,
                self.rows.rows,
                first.depth,
                "rows",
            )
            side.along = along_of(self.kernel, side, needed(self.kernel, [first.a]))
            text = pack(piece, side)
            function = self.piece.word(FunctionPointer(text), "ptr")
            packed = Packed(FunctionPointer(text), piece, 0, 0, 0)
            words = self.f.offset("%words", self.section_start(packed), "i64")
            self.left_packs.append((function, words))

    def tile(self, batch: Operand, row: Operand) -> None:
        f, plan, rows = self.f, self.plan, self.rows
        count = f.smaller(plan.height, f.subtract(plan.count, row))
        end: Operand = str(plan.length)
        if rows.bounds.after is not None:
            last = f.add(f.add(row, count), rows.bounds.after)
            end = f.smaller(last, plan.length)
        self.end = end
        self.start = "0"
        if rows.bounds.before is not None:
            # Whole panels and vectors are left out, and never everything.
            step = lcm(self.form.width, self.form.lanes * UNROLL)
            first = f.smaller(f.larger(f.subtract(row, rows.bounds.before), 0), plan.length - 1)
            self.start = f.multiply(f.new(f"udiv i64 {first}, {step}"), step)
        batch_base = place(self.piece, rows.batch, batch) if rows.batch else {}
        for number, first in enumerate(rows.firsts):
            self._first(number, plan.known(steps_of(first.depth, self.form)), batch, row, count)

        def one(r: Operand) -> None:
            base = {**batch_base, **place(self.piece, rows.rows, f.add(row, r))}
            self.row(base, r)

        f.loop(0, count, 1, one)
        for number, second in enumerate(rows.seconds):
            self._second(number, second, batch, batch_base)
        if not rows.seconds:
            return

        def result(r: Operand) -> None:
            base = {**batch_base, **place(self.piece, rows.rows, f.add(row, r))}
            self._results(base, r)

        f.loop(0, count, 1, result)

    def _first(self, number: int, steps: int, batch: Operand, row: Operand, count: Operand) -> None:
        f, form, packed = self.f, self.form, self.packed[number]
        function, words = self.left_packs[number]
        left = self.at(self.left_at)
        f.do(
            f"call void {function}(ptr {words}, ptr {left}, i64 {batch}, i64 {row}, i64 {count}, "
            f"i64 0, i64 {steps})"
        )
        start = f.offset(self.scratch, self.piece.size(packed.offset))
        start = f.offset(start, f.multiply(batch, packed.panel_bytes * packed.panels))
        block = self.at(self.blocks_at[number])
        row_numbers = self.row_bytes // form.item

        def panel(column: Operand) -> None:
            index = f.new(f"udiv i64 {column}, {form.width}")
            b = f.offset(start, f.multiply(index, packed.panel_bytes))
            f.do(
                f"call void {self.micro}(i64 {steps}, ptr {left}, i64 0, i64 0, ptr {b}, i64 0, "
                f"ptr {f.offset(block, column, form.element)}, i64 {row_numbers}, "
                f"i64 {form.width}, i1 true)"
            )

        f.loop(self.start, self.end, form.width, panel)

    # --- second products --------------------------------------------------------------------------

    def _second(
        self, number: int, second: Second, batch: Operand, batch_base: dict[str, Operand]
    ) -> None:
        f, form, plan = self.f, self.form, self.plan
        self.row_number = "0"
        left = self.element_place(self.source(second), self.start)
        count = self.end if self.start == "0" else f.subtract(self.end, self.start)
        row_numbers = self.row_bytes // form.item
        columns = plan.columns()
        result = self.at(self.results_at[number])
        packed = self.matrices[number]
        if packed is None:
            node = self.kernel.body[second.matrix]
            assert isinstance(node, Load)
            base = {**batch_base, self.rows.along: "0", self.rows.columns or "": "0"}
            evaluator = Evaluator(self.piece, Position(base))
            matrix = evaluator.address(node)
            distance = plan.distance(second)
            assert distance is not None
            b_step = self.piece.size(distance)
            item = itemsize(node.buffer.dtype)
            skipped = f.multiply(f.multiply(self.start, b_step), item)
            matrix = f.offset(matrix, skipped)
        else:
            matrix = f.offset(self.scratch, self.piece.size(packed.offset))
            matrix = f.offset(matrix, f.multiply(batch, packed.panel_bytes * packed.panels))
            b_step = str(form.width)

        def panel(column: Operand) -> None:
            if packed is None:
                b = f.offset(matrix, column, form.element)
            else:
                index = f.new(f"udiv i64 {column}, {form.width}")
                b = f.offset(matrix, f.multiply(index, packed.panel_bytes))
                b = f.offset(b, f.multiply(self.start, form.width * form.item))
            some = f.smaller(form.width, f.subtract(columns, column))
            f.do(
                f"call void {self.direct}(i64 {count}, ptr {left}, i64 {row_numbers}, i64 1, "
                f"ptr {b}, i64 {b_step}, ptr {f.offset(result, column, form.element)}, "
                f"i64 {self.result_row}, i64 {some}, i1 true)"
            )

        f.loop(0, columns, form.width, panel)

    def _results(self, base: dict[str, Operand], r: Operand) -> None:
        f, kernel, form, rows = self.f, self.kernel, self.form, self.rows
        self.row_number = r
        assert rows.columns is not None
        columns = self.plan.columns()
        evaluator = Evaluator(self.piece, Position(dict(base)))
        for number in self.reduced_at:
            place_ = self.reduced_place(number)
            evaluator.given[number] = memory.load(f, place_, kernel.dtypes[number], 1)

        def chunk(c: Operand) -> None:
            mask: Operand | None = None
            if columns % form.lanes:
                mask = emit_lanes.tail_mask(f, f.subtract(columns, c), form.lanes)
            position = Position({**base, rows.columns or "": c}, rows.columns, form.lanes, mask)
            elements = Evaluator(self.piece, position, dict(evaluator.given))
            for number, second in enumerate(rows.seconds):
                start = self.at(self.results_at[number])
                start = f.offset(start, f.multiply(r, self.result_row * form.item))
                value = memory.load(f, f.offset(start, c, form.element), form.dtype, form.lanes)
                if self.factored(second):
                    value = self._scaled(elements, second, value)
                elements.given[second.number] = value
            for number in rows.result_stores:
                node = kernel.body[number]
                assert isinstance(node, Store)
                elements.store(node)

        f.loop(0, columns, form.lanes, chunk)

    def _scaled(self, elements: Evaluator, second: Second, value: Value) -> Value:
        """The result times or over the factor that the row was kept without."""
        node = self.kernel.body[second.row]
        assert isinstance(node, Op)
        arguments_ = [value if x == second.kept else elements.value(x) for x in node.args]
        return scalars.apply(self.f, node.op, arguments_, node.dtype)
