"""Cholesky, LU and solves of many small real matrices; see `small`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fxarray.core.types import ArrayType
from fxarray.devices.cpu.emit.function import Operand
from fxarray.devices.cpu.emit.number import Number, select
from fxarray.devices.cpu.library.small import Group, Tile
from fxarray.devices.cpu.library.text import loop_nest
from fxarray.devices.cpu.native.routine import Routine
from fxarray.devices.cpu.native.target import Target
from fxarray.primitives.linalg_lu import FactoredSolve
from fxarray.primitives.linalg_triangular import TriangularSolve

Types = Sequence[ArrayType]


def small_cholesky(inputs: Types, outputs: Types, target: Target) -> Routine:
    """The routine of `cholesky`."""
    g = Group(inputs, outputs, target)
    f = g.f
    order = g.core[0][0]
    n = g.size("n", order)
    tile = g.tile("a", order, order)

    def group() -> None:
        def load(i: Operand) -> None:
            def element(j: Operand) -> None:
                tile.set(g.load("in0", f.add(f.multiply(i, n), j)), i, j)

            f.loop(0, f.add(i, 1), 1, element)

        f.loop(0, n, 1, load)
        flags = f.alloca(f"<{g.lanes} x i1>", "zeroinitializer")

        def column(j: Operand) -> None:
            def square(k: Operand) -> Number:
                return tile.get(j, k) * tile.get(j, k)

            pivot = g.total(tile.get(j, j), 0, j, square)
            # Not positive: also NaN.
            bad = ~(pivot > 0.0)
            before = Number(f, "i1", g.lanes, f.new(f"load {bad.whole_type}, ptr {flags}"))
            f.do(f"store {bad.whole_type} {(before | bad).operand}, ptr {flags}")
            root = pivot.sqrt()
            tile.set(root, j, j)

            def below(i: Operand) -> None:
                rest = g.total(tile.get(i, j), 0, j, lambda k: tile.get(i, k) * tile.get(j, k))
                tile.set(rest / root, i, j)

            f.loop(f.add(j, 1), n, 1, below)

        f.loop(0, n, 1, column)
        bad = Number(f, "i1", g.lanes, f.new(f"load <{g.lanes} x i1>, ptr {flags}"))
        nothing = select(bad, tile.get(0, 0).like(float("nan")), 0.0)

        def store(i: Operand) -> None:
            line = f.multiply(i, n)
            diagonal = f.add(i, 1)

            def lower(j: Operand) -> None:
                value = tile.get(i, j)
                value = select(bad, value.like(float("nan")), value)
                g.store(value, "out0", f.add(line, j))

            f.loop(0, diagonal, 1, lower)
            f.loop(diagonal, n, 1, lambda j: g.store(nothing, "out0", f.add(line, j)))

        f.loop(0, n, 1, store)

    return g.run(group)


def small_lu(inputs: Types, outputs: Types, target: Target) -> Routine:
    """The routine of `lu`."""
    g = Group(inputs, outputs, target)
    f = g.f
    rows, columns = g.core[0]
    m, n = g.size("m", rows), g.size("n", columns)
    k_size = g.size("k", g.result_core[1][0])
    tile = g.tile("a", rows, columns)
    order = g.tile("order", rows, whole=True)

    def group() -> None:
        g.load_matrix("in0", tile, m, n)
        f.loop(0, m, 1, lambda i: order.set(g.integers(i), i))
        f.loop(0, k_size, 1, column)

        def element(indices: list[Operand]) -> None:
            i, j = indices
            g.store(tile.get(i, j), "out0", f.add(f.multiply(i, n), j))

        loop_nest(f, [m, n], element)
        f.loop(0, m, 1, lambda i: g.store(order.get(i), "out2", i, "i32"))

    def column(k: Operand) -> None:
        following = f.add(k, 1)
        best = f.alloca(f"<{g.lanes} x {g.type}>", abs(tile.get(k, k)).operand)
        place = f.alloca(f"<{g.lanes} x {g.integer}>", g.integers(k).operand)

        def compare(i: Operand) -> None:
            size = abs(tile.get(i, k))
            so_far = Number(f, g.type, g.lanes, f.new(f"load {size.whole_type}, ptr {best}"))
            larger = size > so_far
            f.do(f"store {size.whole_type} {select(larger, size, so_far).operand}, ptr {best}")
            number = g.integers(i)
            where = Number(f, g.integer, g.lanes, f.new(f"load {number.whole_type}, ptr {place}"))
            kept = select(larger, number, where)
            f.do(f"store {number.whole_type} {kept.operand}, ptr {place}")

        f.loop(following, m, 1, compare)
        kind = f"<{g.lanes} x {g.integer}>"
        pivot_row = Number(f, g.integer, g.lanes, f.new(f"load {kind}, ptr {place}"))
        g.store(pivot_row, "out1", k, "i32")

        def exchange(i: Operand) -> None:
            here = pivot_row.equals(g.integers(i))

            def swap() -> None:
                f.loop(0, n, 1, lambda j: _swap(tile, here, k, i, j))
                _swap(order, here, k, i, "0")

            f.branch(here.any(), swap)

        f.loop(following, m, 1, exchange)
        pivot = tile.get(k, k)
        zero = pivot.equals(0.0)

        def eliminate(i: Operand) -> None:
            value = tile.get(i, k)
            factor = select(zero, value, value / pivot)
            tile.set(factor, i, k)
            f.loop(
                following,
                n,
                1,
                lambda j: tile.set(tile.get(i, j) - factor * tile.get(k, j), i, j),
            )

        f.loop(following, m, 1, eliminate)

    return g.run(group)


def _swap(tile: Tile, where: Number, a: Operand, b: Operand, j: Operand) -> None:
    """Exchange elements (a, j) and (b, j) in some lanes."""
    first, second = tile.get(a, j), tile.get(b, j)
    tile.set(select(where, second, first), a, j)
    tile.set(select(where, first, second), b, j)


def _substitute(
    g: Group,
    element: Callable[[Operand, Operand], Number],
    x: Tile,
    n: Operand,
    forward: bool,
    unit: bool,
) -> None:
    """Replace x by the solution of a triangular system, from the first row on or from the last."""
    f = g.f

    def row(i: Operand) -> None:
        low, high = ("0", i) if forward else (f.add(i, 1), n)
        rest = g.total(x.get(i), low, high, lambda k: element(i, k) * x.get(k))
        x.set(rest if unit else rest / element(i, i), i)

    if forward:
        f.loop(0, n, 1, row)
    else:
        g.downwards(n, row)


def small_factored_solve(
    op: FactoredSolve, inputs: Types, outputs: Types, target: Target
) -> Routine:
    """The routine of `factored_solve`."""
    g = Group(inputs, outputs, target)
    f = g.f
    order = g.core[0][0]
    n, c = g.size("n", order), g.size("c", g.core[3][1])
    tile, x = g.tile("a", order, order), g.tile("x", order)
    rows = g.tile("order", order, whole=True)

    def straight(i: Operand, j: Operand) -> Number:
        return tile.get(i, j)

    def turned(i: Operand, j: Operand) -> Number:
        return tile.get(j, i)

    def right_side(column: Operand) -> None:
        def element_of_row(i: Operand) -> Number:
            return rows.get(i) * g.integers(c) + g.integers(column)

        def at(i: Operand) -> Operand:
            return f.add(f.multiply(i, c), column)

        if op.transpose_a:
            f.loop(0, n, 1, lambda i: x.set(g.load("in3", at(i)), i))
            _substitute(g, turned, x, n, True, False)
            _substitute(g, turned, x, n, False, True)
            f.loop(0, n, 1, lambda i: g.scatter(x.get(i), "out0", element_of_row(i)))
        else:
            f.loop(0, n, 1, lambda i: x.set(g.gather("in3", element_of_row(i)), i))
            _substitute(g, straight, x, n, True, True)
            _substitute(g, straight, x, n, False, False)
            f.loop(0, n, 1, lambda i: g.store(x.get(i), "out0", at(i)))

    def group() -> None:
        g.load_matrix("in1", tile, n, n)
        f.loop(0, n, 1, lambda i: rows.set(g.load("in2", i, "i32"), i))
        f.loop(0, c, 1, right_side)

    return g.run(group)


def small_triangular_solve(
    op: TriangularSolve, inputs: Types, outputs: Types, target: Target
) -> Routine:
    """The routine of `triangular_solve`."""
    g = Group(inputs, outputs, target)
    f = g.f
    order = g.core[0][0]
    n = g.size("n", order)
    c = g.size("c", g.core[1][1 if op.left_side else 0])
    tile, x = g.tile("a", order, order), g.tile("x", order)
    # x op(a) = b is op(a)^T x^T = b^T.
    turned = op.transpose_a == op.left_side
    forward = op.from_lower != turned

    def element(i: Operand, j: Operand) -> Number:
        return tile.get(j, i) if turned else tile.get(i, j)

    def right_side(column: Operand) -> None:
        def at(i: Operand) -> Operand:
            if op.left_side:
                return f.add(f.multiply(i, c), column)
            return f.add(f.multiply(column, n), i)

        f.loop(0, n, 1, lambda i: x.set(g.load("in1", at(i)), i))
        _substitute(g, element, x, n, forward, op.unit_diagonal)
        f.loop(0, n, 1, lambda i: g.store(x.get(i), "out0", at(i)))

    def group() -> None:
        g.load_matrix("in0", tile, n, n)
        f.loop(0, c, 1, right_side)

    return g.run(group)
