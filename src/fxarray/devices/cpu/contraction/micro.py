"""Micro-kernels: one tile of results from a panel of each operand.

They know no shape, so each is compiled once for all products:

    void @entry(i64 %steps, ptr %a, i64 %a_row, i64 %a_step, ptr %b, i64 %b_step, ptr %tile,
                i64 %tile_row, i64 %columns, i1 %first)

`tile[row][column] = (first ? 0 : tile[row][column]) + sum over steps of a[row] * b[column]`. The
strides, in numbers, are those of operands that are read where they lie; packed panels have their
own. The rows of the tile are `tile_row` numbers apart and written whole, whatever `columns` are
wanted.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from fxarray.devices.cpu.contraction.forms import Form
from fxarray.devices.cpu.contraction.matrix_unit import micro_kernel
from fxarray.devices.cpu.emit.function import FunctionText, Operand, module
from fxarray.devices.cpu.native.target import Target

_UNROLL = 2
SIGNATURE = (
    "@entry(i64 %steps, ptr noalias %a, i64 %a_row, i64 %a_step, ptr noalias %b, i64 %b_step, "
    "ptr noalias %tile, i64 %tile_row, i64 %columns, i1 %first)"
)


class _Micro:
    def __init__(self, form: Form, target: Target) -> None:
        self.form = form
        self.f = FunctionText()
        self.vector = f"<{form.lanes} x {form.element}>"
        self.vnni = target.vector_bytes == 64 and target.has("avx512vnni")

    def fused(self, a: Operand, b: Operand, total: Operand) -> Operand:
        """total + a * b, on lanes."""
        f, form, vector = self.f, self.form, self.vector
        if form.pair == 2:
            return self._pairs(a, b, total)
        if form.element in ("float", "double"):
            suffix = f"v{form.lanes}f{form.item * 8}"
            f.declare(f"declare {vector} @llvm.fma.{suffix}({vector}, {vector}, {vector})")
            return f.new(
                f"call {vector} @llvm.fma.{suffix}({vector} {a}, {vector} {b}, {vector} {total})"
            )
        return f.new(f"add {vector} {total}, {f.new(f'mul {vector} {a}, {b}')}")

    def _pairs(self, a: Operand, b: Operand, total: Operand) -> Operand:
        f, vector = self.f, self.vector
        kind = "bfloat" if self.form.packed == "bf16" else "i16"
        numbers = f"<{2 * self.form.lanes} x {kind}>"
        a = f.new(f"bitcast <{self.form.lanes} x i32> {a} to {numbers}")
        b = f.new(f"bitcast <{self.form.lanes} x i32> {b} to {numbers}")
        if kind == "bfloat":
            name = "@llvm.x86.avx512bf16.dpbf16ps.512"
        elif self.vnni:
            name = "@llvm.x86.avx512.vpdpwssd.512"
        else:
            name = "@llvm.x86.avx512.pmaddw.d.512"
            if self.form.lanes == 8:
                name = "@llvm.x86.avx2.pmadd.wd"
            f.declare(f"declare {vector} {name}({numbers}, {numbers})")
            return f.new(
                f"add {vector} {total}, "
                + f.new(f"call {vector} {name}({numbers} {a}, {numbers} {b})")
            )
        f.declare(f"declare {vector} {name}({vector}, {numbers}, {numbers})")
        return f.new(f"call {vector} {name}({vector} {total}, {numbers} {a}, {numbers} {b})")

    def splat(self, pointer: Operand) -> Operand:
        f, form = self.f, self.form
        element = form.element if form.pair == 1 else "i32"
        vector = f"<{form.lanes} x {element}>"
        one = f.new(f"load {element}, ptr {pointer}, align {1 if form.pair == 2 else form.item}")
        head = f.new(f"insertelement {vector} poison, {element} {one}, i64 0")
        return f.new(
            f"shufflevector {vector} {head}, {vector} poison, <{form.lanes} x i32> zeroinitializer"
        )

    def at(self, pointer: Operand, elements: Operand | int) -> Operand:
        return self.f.offset(pointer, elements, self.form.element)

    def write(
        self,
        rows: int,
        vectors: int,
        step: Callable[[Operand, int], tuple[list[Operand], list[Operand]]],
        unroll: int = _UNROLL,
    ) -> str:
        """The function, from what gives the pointers to a row's factors and the vectors of b."""
        f, form, vector = self.f, self.form, self.vector
        totals = [
            [f.alloca(vector, "zeroinitializer") for _ in range(vectors)] for _ in range(rows)
        ]

        def steps(start: Operand, count: int) -> None:
            for offset in range(count):
                factors, columns = step(start, offset)
                for row in range(rows):
                    factor = self.splat(factors[row])
                    for j in range(vectors):
                        total = f.new(f"load {vector}, ptr {totals[row][j]}")
                        total = self.fused(factor, columns[j], total)
                        f.do(f"store {vector} {total}, ptr {totals[row][j]}")

        # The lines that the tile will be stored to are fetched meanwhile.
        f.declare("declare void @llvm.prefetch.p0(ptr, i32, i32, i32)")
        start: Operand = "%tile"
        for _ in range(rows):
            for j in range(0, vectors * form.lanes * form.item, 64):
                line = f.offset(start, j)
                f.do(f"call void @llvm.prefetch.p0(ptr {line}, i32 1, i32 3, i32 1)")
            start = self.at(start, "%tile_row")
        count = f.multiply("%steps", form.steps)
        whole: Operand = "0"
        if unroll > 1:
            whole = f.new(f"and i64 {count}, {-unroll}")
            f.loop(0, whole, unroll, lambda k: steps(k, unroll))
        f.loop(whole, count, 1, lambda k: steps(k, 1))

        def places() -> list[tuple[Operand, Operand]]:
            found: list[tuple[Operand, Operand]] = []
            start: Operand = "%tile"
            for row in range(rows):
                places = [self.at(start, j * form.lanes) for j in range(vectors)]
                found.extend(zip(places, totals[row], strict=True))
                start = self.at(start, "%tile_row")
            return found

        def store() -> None:
            for pointer, total in places():
                value = f.new(f"load {vector}, ptr {total}")
                f.do(f"store {vector} {value}, ptr {pointer}, align {form.item}")

        def add() -> None:
            plus = "fadd" if form.element in ("float", "double") else "add"
            for pointer, total in places():
                value = f.new(f"load {vector}, ptr {total}")
                before = f.new(f"load {vector}, ptr {pointer}, align {form.item}")
                after = f.new(f"{plus} {vector} {before}, {value}")
                f.do(f"store {vector} {after}, ptr {pointer}, align {form.item}")

        f.branch("%first", store, add)
        return module([(f, f.definition(SIGNATURE))])


@lru_cache(maxsize=256)
def packed(form: Form, rows: int, target: Target) -> str:
    """Both operands are packed: step after step the rows of `a`, in whole vectors, and a row of
    `b`, a tile's width."""
    if form.unit:
        return micro_kernel(form.unit, SIGNATURE)
    micro = _Micro(form, target)
    f = micro.f
    element = form.element if form.pair == 1 else "i32"
    vector = f"<{form.lanes} x {element}>"

    def step(start: Operand, offset: int) -> tuple[list[Operand], list[Operand]]:
        a = micro.at("%a", f.multiply(start, form.padded(rows)))
        b = micro.at("%b", f.multiply(start, form.width))
        factors = [micro.at(a, offset * form.padded(rows) + row) for row in range(rows)]
        columns: list[Operand] = []
        for j in range(form.vectors):
            pointer = micro.at(b, offset * form.width + j * form.lanes)
            columns.append(f.new(f"load {vector}, ptr {pointer}, align {form.item}"))
        return factors, columns

    return micro.write(rows, form.vectors, step)


@lru_cache(maxsize=256)
def direct(form: Form, rows: int, vectors: int, target: Target, ahead: str = "") -> str:
    """Both operands are read where they lie (or packed, with the strides of that); the columns of
    `b` are neighbours, and those beyond `columns` are not read.

    `ahead` says that the rows of the next tile follow and what of `a` are neighbours, "depth" or
    "rows": the next tile is fetched into the cache meanwhile.
    """
    micro = _Micro(form, target)
    f = micro.f
    lanes, element = form.lanes, form.element
    vector = f"<{lanes} x {element}>"
    counting = ", ".join(f"i64 {i}" for i in range(lanes))
    head = f.new(f"insertelement <{lanes} x i64> poison, i64 %columns, i64 0")
    wanted = f.new(
        f"shufflevector <{lanes} x i64> {head}, <{lanes} x i64> poison, "
        f"<{lanes} x i32> zeroinitializer"
    )
    masks: list[Operand] = []
    for j in range(vectors):
        place = f.new(f"add <{lanes} x i64> <{counting}>, splat (i64 {j * lanes})")
        masks.append(f.new(f"icmp slt <{lanes} x i64> {place}, {wanted}"))
    suffix = f"v{lanes}{'f' if element in ('float', 'double') else 'i'}{form.item * 8}.p0"
    f.declare(f"declare {vector} @llvm.masked.load.{suffix}(ptr, i32, <{lanes} x i1>, {vector})")
    # Rows are addressed from few registers: two bases, and multiples of the stride that the
    # processor's scaled indices make of three numbers.
    stride = f.multiply("%a_row", form.item)
    a_step = f.multiply("%a_step", form.item)
    b_step = f.multiply("%b_step", form.item)
    multiples = {1: stride, 3: f.multiply(stride, 3), 5: f.multiply(stride, 5)}
    halfway = f.multiply(stride, 7)
    a_cell, b_cell = f.alloca("ptr", "%a"), f.alloca("ptr", "%b")

    def distance(rows: int) -> Operand:
        scale = 1
        while rows and rows % 2 == 0:
            rows, scale = rows // 2, scale * 2
        if rows == 0:
            return "0"
        known = multiples.get(rows)
        if known is None:
            known = multiples[rows] = f.multiply(stride, rows)
        return known if scale == 1 else f.new(f"shl i64 {known}, {scale.bit_length() - 1}")

    line = 64 // form.item
    following = f.offset("%a", f.multiply(stride, rows)) if ahead == "depth" else ""

    def fetch(k: Operand) -> None:
        f.declare("declare void @llvm.prefetch.p0(ptr, i32, i32, i32)")
        column = f.new(f"and i64 {k}, {-line}")
        first = f.offset(following, column, form.element)
        for start in range(0, rows, line):
            row = f.add(f.new(f"and i64 {k}, {line - 1}"), start)
            pointer = f.offset(first, f.multiply(row, stride))
            f.do(f"call void @llvm.prefetch.p0(ptr {pointer}, i32 0, i32 3, i32 1)")

    def step(k: Operand, _offset: int) -> tuple[list[Operand], list[Operand]]:
        a = f.new(f"load ptr, ptr {a_cell}")
        if ahead == "depth":
            fetch(k)
        elif ahead == "rows":
            f.declare("declare void @llvm.prefetch.p0(ptr, i32, i32, i32)")
            last = micro.at(a, 2 * rows - 1)
            f.do(f"call void @llvm.prefetch.p0(ptr {last}, i32 0, i32 3, i32 1)")
        b = f.new(f"load ptr, ptr {b_cell}")
        f.do(f"store ptr {f.offset(a, a_step)}, ptr {a_cell}")
        f.do(f"store ptr {f.offset(b, b_step)}, ptr {b_cell}")
        columns: list[Operand] = []
        for j in range(vectors):
            pointer = micro.at(b, j * lanes)
            columns.append(
                f.new(
                    f"call {vector} @llvm.masked.load.{suffix}(ptr {pointer}, i32 {form.item}, "
                    f"<{lanes} x i1> {masks[j]}, {vector} zeroinitializer)"
                )
            )
        second = f.offset(a, halfway)
        bases = [a if row < 7 else second for row in range(rows)]
        return [f.offset(base, distance(row % 7)) for row, base in enumerate(bases)], columns

    return micro.write(rows, vectors, step, 1)
