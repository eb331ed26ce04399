"""Epilogues: from a tile of sums to what the kernel stores.

    void @entry(ptr %words, ptr %tile, i64 %batch, i64 %row, i64 %column, i64 %rows, i64 %columns)

The tile is given as the value of the Contract node; all that the kernel's stores need besides is
evaluated at the place, with lanes along the columns. For complex numbers a row of the tile is a
pair of rows, of real and of imaginary parts.
"""

from __future__ import annotations

from fxarray.devices.cpu.contraction.evaluate import Evaluator, Piece, Position
from fxarray.devices.cpu.contraction.forms import Form
from fxarray.devices.cpu.contraction.panels import place, stretches
from fxarray.devices.cpu.contraction.recognise import Product, collapse
from fxarray.devices.cpu.emit import lanes as emit_lanes
from fxarray.devices.cpu.emit import memory, scalars
from fxarray.devices.cpu.emit.function import Operand, module
from fxarray.devices.cpu.emit.types import Value
from fxarray.devices.cpu.native.target import Target
from fxarray.kernel.ir import Store, arguments

_SIGNATURE = (
    "@entry(ptr noalias %words, ptr noalias %tile, i64 %batch, i64 %row, i64 %column, i64 %rows, "
    "i64 %columns)"
)


def tile_value(piece: Piece, form: Form, dtype: str, row: Operand, column: Operand) -> Value:
    """A vector of a tile, in the dtype of the Contract."""
    f = piece.f
    parts: list[Operand] = []
    for part in range(form.steps):
        number = f.add(f.multiply(row, form.steps), part)
        number = f.add(f.multiply(number, form.width), column)
        pointer = f.offset("%tile", number, form.element)
        parts.append(memory.load(f, pointer, form.dtype, form.lanes).operand)
    if form.complex:
        return Value(dtype, form.lanes, tuple(parts))
    value = Value(form.dtype, form.lanes, tuple(parts))
    if dtype == "bool":
        zero = scalars.constant(0, form.dtype)
        return scalars.apply(f, "ne", [value, zero], "bool")
    return scalars.convert(f, value, dtype)


def single(product: Product) -> bool:
    """Whether the epilogue walks at most one axis of each role, so that it divides no numbers."""
    nodes = above(product)
    groups = (product.batch, product.rows, product.columns)
    return all(len(collapse(product.kernel, group, nodes)) <= 1 for group in groups)


def epilogue(piece: Piece, product: Product, form: Form, target: Target, height: int) -> str:
    """The module of a product's epilogue; the piece collects its words.

    Args:
      piece: the function.
      product: the product.
      form: its arithmetic.
      target: the processor.
      height: rows of a tile, after which the next one lies.
    """
    f, kernel = piece.f, product.kernel
    nodes = above(product)
    batches = collapse(kernel, product.batch, nodes)
    rows = collapse(kernel, product.rows, nodes)
    columns = collapse(kernel, product.columns, nodes)
    batch = place(piece, batches, "%batch") if batches else {}
    axis = columns[-1].axis if columns else None
    row_axis = rows[-1].axis if rows else None
    varying = [run.axis for run in rows]

    def chunk(
        base: dict[str, Operand], at_column: Operand, start: Operand, mask: Operand | None
    ) -> None:
        here = dict(base)
        if axis is not None:
            here[axis] = f.add(base[axis], start)

        def some_rows(at_row: Operand, count: Operand, row_base: dict[str, Operand]) -> None:
            outer = Evaluator(piece, Position({**here, **row_base}, axis, form.lanes, mask))
            if row_axis is not None:
                outer.position.ahead = (row_axis, height)
            outer.hoist(nodes, varying)

            def row(r: Operand) -> None:
                if row_axis is not None:
                    outer.position.base[row_axis] = f.add(row_base[row_axis], r)
                with outer.scope():
                    outer.given = {
                        product.number: tile_value(
                            piece,
                            form,
                            product.node.dtype,
                            f.add(at_row, r),
                            f.add(at_column, start),
                        )
                    }
                    for number in product.stores:
                        node = kernel.body[number]
                        assert isinstance(node, Store)
                        outer.store(node)

            f.loop(0, count, 1, row)

        stretches(piece, rows, "%row", "%rows", some_rows)

    def some_columns(at_column: Operand, count: Operand, base: dict[str, Operand]) -> None:
        whole = {**batch, **base}

        def one(start: Operand) -> None:
            rest = f.subtract(count, start)

            def masked() -> None:
                chunk(whole, at_column, start, emit_lanes.tail_mask(f, rest, form.lanes))

            # With AVX-512 a mask costs nothing, elsewhere whole vectors have code of their own.
            if target.vector_bytes == 64:
                masked()
                return
            full = f.new(f"icmp sge i64 {rest}, {form.lanes}")
            f.branch(full, lambda: chunk(whole, at_column, start, None), masked)

        f.loop(0, count, form.lanes, one)

    stretches(piece, columns, "%column", "%columns", some_columns)
    return module([(f, f.definition(_SIGNATURE))])


def above(product: Product) -> set[int]:
    """The nodes that the stores need when the sums are given."""
    kernel = product.kernel
    found: set[int] = set()
    wanted = list(product.stores)
    while wanted:
        number = wanted.pop()
        if number in found or number == product.number:
            continue
        found.add(number)
        wanted.extend(arguments(kernel.body[number]))
    return found
