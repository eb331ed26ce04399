"""Factorisations by LAPACK: Cholesky, LU, QR."""

from __future__ import annotations

from collections.abc import Sequence

from fxarray.core.types import ArrayType
from fxarray.devices.cpu.emit.function import FunctionText, Operand
from fxarray.devices.cpu.emit.types import itemsize
from fxarray.devices.cpu.library.lapack import (
    BLOCK,
    StackRoutine,
    copied,
    failed,
    filled,
    not_a_number,
    raw,
    supported,
    transposed,
    zero_triangle,
)
from fxarray.devices.cpu.library.small import fits
from fxarray.devices.cpu.library.small_factors import small_cholesky, small_lu
from fxarray.devices.cpu.library.text import loop_nest
from fxarray.devices.cpu.native.routine import Routine
from fxarray.devices.cpu.native.target import Target
from fxarray.kernel import sizes
from fxarray.primitives.linalg_lu import Lu, LuPivotsToPermutation
from fxarray.primitives.linalg_qr import Geqrf, HouseholderProduct, Qr
from fxarray.primitives.linalg_triangular import Cholesky

Types = Sequence[ArrayType]


def cholesky_routine(
    _op: Cholesky, inputs: Types, outputs: Types, target: Target
) -> Routine | None:
    """The routine of `cholesky`."""
    prefix = supported(inputs)
    if prefix is None:
        return None
    if fits(inputs, target):
        return small_cholesky(inputs, outputs, target)
    s = StackRoutine(inputs, outputs)
    f, dtype = s.f, s.dtypes[0]
    n = s.size("n", s.core[0][-1])
    count = f.multiply(n, n)

    def one(at: dict[str, Operand]) -> None:
        # LAPACK sees the transposed matrix, whose upper triangle is our lower one: it is U^H U
        # with U = L^T, which is L when it is read by rows.
        copied(f, at["in0"], at["out0"], f.multiply(count, itemsize(dtype)))
        info = s.integer(0)
        size = s.integer(n)
        s.call(f"{prefix}potrf", s.character("U"), size, at["out0"], size, info)
        f.branch(
            failed(f, info),
            lambda: not_a_number(f, at["out0"], count, dtype),
            lambda: zero_triangle(f, at["out0"], n, n, True, dtype),
        )

    return s.run(lambda at: f.branch(f.new(f"icmp sgt i64 {n}, 0"), lambda: one(at)))


def exchange_rows(
    f: FunctionText, pivots: Operand, count: Operand, order: Operand, size: Operand
) -> None:
    """The order of `size` rows after exchanging row i with row pivots[i]; all are i32."""

    def number(i: Operand) -> None:
        f.do(f"store i32 {f.new(f'trunc i64 {i} to i32')}, ptr {f.offset(order, i, 'i32')}")

    def exchange(i: Operand) -> None:
        pivot = f.new(f"load i32, ptr {f.offset(pivots, i, 'i32')}")
        here = f.offset(order, i, "i32")
        there = f.offset(order, f.new(f"sext i32 {pivot} to i64"), "i32")
        a, b = f.new(f"load i32, ptr {here}"), f.new(f"load i32, ptr {there}")
        f.do(f"store i32 {b}, ptr {here}")
        f.do(f"store i32 {a}, ptr {there}")

    f.loop(0, size, 1, number)
    f.loop(0, count, 1, exchange)


def _from_one(f: FunctionText, source: Operand, target: Operand, count: Operand) -> None:
    """Numbers that count from 1 (LAPACK's) as ones that count from 0."""

    def one(i: Operand) -> None:
        value = f.new(f"load i32, ptr {f.offset(source, i, 'i32')}")
        f.do(f"store i32 {f.new(f'sub i32 {value}, 1')}, ptr {f.offset(target, i, 'i32')}")

    f.loop(0, count, 1, one)


def lu_routine(_op: Lu, inputs: Types, outputs: Types, target: Target) -> Routine | None:
    """The routine of `lu`."""
    prefix = supported(inputs)
    if prefix is None:
        return None
    if fits(inputs, target):
        return small_lu(inputs, outputs, target)
    s = StackRoutine(inputs, outputs)
    f, dtype = s.f, s.dtypes[0]
    rows, columns = s.core[0]
    m, n = s.size("m", rows), s.size("n", columns)
    k = s.size("k", s.result_core[1][0])
    s.area("a", sizes.multiply(rows, columns), dtype)

    def one(at: dict[str, Operand]) -> None:
        def factor() -> None:
            transposed(f, at["in0"], at["a"], m, n, dtype)
            height, width, info = s.integer(m), s.integer(n), s.integer(0)
            s.call(f"{prefix}getrf", height, width, at["a"], height, at["out1"], info)
            transposed(f, at["a"], at["out0"], n, m, dtype)
            _from_one(f, at["out1"], at["out1"], k)

        f.branch(f.new(f"icmp sgt i64 {k}, 0"), factor)
        exchange_rows(f, at["out1"], k, at["out2"], m)

    return s.run(one)


def permutation_routine(
    _op: LuPivotsToPermutation, inputs: Types, outputs: Types, _: Target
) -> Routine:
    """The routine of `lu_pivots_to_permutation`."""
    s = StackRoutine(inputs, outputs, rank=1)
    k, m = s.size("k", s.core[0][0]), s.size("m", s.result_core[0][0])
    return s.run(lambda at: exchange_rows(s.f, at["in0"], k, at["out0"], m))


# --- QR -------------------------------------------------------------------------------------------


def _form(s: StackRoutine, prefix: str, reflectors: Operand, sizes_of: Sequence[Operand]) -> None:
    """The product of reflectors, over them; `sizes_of` are rows, columns, reflectors, workspace.

    The areas "tau" and "work" hold their scales and the workspace.
    """
    m, columns, k, work = (s.integer(size) for size in sizes_of[:4])
    tau, space = sizes_of[4], sizes_of[5]
    name = f"{prefix}{'un' if prefix in 'cz' else 'or'}gqr"
    s.call(name, m, columns, k, reflectors, m, tau, space, work, s.integer(0))


def qr_routine(op: Qr, inputs: Types, outputs: Types, _: Target) -> Routine | None:
    """The routine of `qr`."""
    prefix = supported(inputs)
    if prefix is None:
        return None
    s = StackRoutine(inputs, outputs)
    f, dtype = s.f, s.dtypes[0]
    rows, columns = s.core[0]
    wide = s.result_core[0][1]
    m, n = s.size("m", rows), s.size("n", columns)
    q_columns = s.size("q", wide)
    k = f.smaller(m, n)
    # Room for the matrix, and for Q where it has more columns.
    s.area("a", sizes.multiply(rows, sizes.add(columns, wide)), dtype)
    s.area("tau", columns, dtype)
    s.area("order", columns, "i32")
    s.area("real", sizes.multiply(columns, 2), "f64")
    space = sizes.multiply(sizes.add(sizes.add(columns, wide), 2), BLOCK + 2)
    s.area("work", space, dtype)
    room = s.size("room", space)

    def one(at: dict[str, Operand]) -> None:
        def factor() -> None:
            transposed(f, at["in0"], at["a"], m, n, dtype)
            height, width, length = s.integer(m), s.integer(n), s.integer(room)
            info = s.integer(0)
            if op.pivoting:
                f.declare("declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)")
                size = f.multiply(n, 4)
                f.do(f"call void @llvm.memset.p0.i64(ptr {at['order']}, i8 0, i64 {size}, i1 0)")
                arguments = [height, width, at["a"], height, at["order"], at["tau"], at["work"]]
                arguments.append(length)
                arguments += [at["real"]] if prefix in "cz" else []
                s.call(f"{prefix}geqp3", *arguments, info)
                _from_one(f, at["order"], at["out2"], n)
            else:
                s.call(
                    f"{prefix}geqrf",
                    height,
                    width,
                    at["a"],
                    height,
                    at["tau"],
                    at["work"],
                    length,
                    info,
                )
            transposed(f, at["a"], at["out1"], n, q_columns, dtype, m, n)
            zero_triangle(f, at["out1"], q_columns, n, False, dtype)
            _form(s, prefix, at["a"], (m, q_columns, k, room, at["tau"], at["work"]))
            transposed(f, at["a"], at["out0"], q_columns, m, dtype)

        def nothing() -> None:
            kind, align = raw(dtype)

            def element(indices: list[Operand]) -> None:
                i, j = indices
                place = f.offset(at["out0"], f.add(f.multiply(i, q_columns), j), kind)
                f.do(f"store {kind} 0, ptr {place}, align {align}")

                def unit() -> None:
                    filled(f, place, "1", "one", s.result_dtypes[0] if prefix in "sd" else _part(s))

                f.branch(f.new(f"icmp eq i64 {i}, {j}"), unit)

            loop_nest(f, [m, q_columns], element)
            if op.pivoting:

                def number(i: Operand) -> None:
                    place = f.offset(at["out2"], i, "i32")
                    f.do(f"store i32 {f.new(f'trunc i64 {i} to i32')}, ptr {place}")

                f.loop(0, n, 1, number)

        f.branch(f.new(f"icmp sgt i64 {k}, 0"), factor, nothing)

    return s.run(one)


def _part(s: StackRoutine) -> str:
    return {"c64": "f32", "c128": "f64"}[s.dtypes[0]]


def geqrf_routine(_op: Geqrf, inputs: Types, outputs: Types, _: Target) -> Routine | None:
    """The routine of `geqrf`."""
    prefix = supported(inputs)
    if prefix is None:
        return None
    s = StackRoutine(inputs, outputs)
    f, dtype = s.f, s.dtypes[0]
    rows, columns = s.core[0]
    m, n = s.size("m", rows), s.size("n", columns)
    s.area("a", sizes.multiply(rows, columns), dtype)
    space = sizes.multiply(sizes.add(columns, 1), BLOCK)
    s.area("work", space, dtype)
    room = s.size("room", space)

    def one(at: dict[str, Operand]) -> None:
        transposed(f, at["in0"], at["a"], m, n, dtype)
        height, width, length, info = s.integer(m), s.integer(n), s.integer(room), s.integer(0)
        s.call(
            f"{prefix}geqrf", height, width, at["a"], height, at["out1"], at["work"], length, info
        )
        transposed(f, at["a"], at["out0"], n, m, dtype)

    some = f.new(f"icmp sgt i64 {f.smaller(m, n)}, 0")
    return s.run(lambda at: f.branch(some, lambda: one(at)))


def householder_routine(
    _op: HouseholderProduct, inputs: Types, outputs: Types, _: Target
) -> Routine | None:
    """The routine of `householder_product`."""
    prefix = supported(inputs)
    if prefix is None:
        return None
    s = StackRoutine(inputs, outputs)
    f, dtype = s.f, s.dtypes[0]
    rows, columns = s.core[0]
    m, n, k = s.size("m", rows), s.size("n", columns), s.size("k", s.core[1][0])
    s.area("a", sizes.multiply(rows, columns), dtype)
    space = sizes.multiply(sizes.add(columns, 1), BLOCK)
    s.area("work", space, dtype)
    room = s.size("room", space)

    def one(at: dict[str, Operand]) -> None:
        transposed(f, at["in0"], at["a"], m, n, dtype)
        _form(s, prefix, at["a"], (m, n, k, room, at["in1"], at["work"]))
        transposed(f, at["a"], at["out0"], n, m, dtype)

    some = f.new(f"icmp sgt i64 {f.smaller(m, n)}, 0")
    return s.run(lambda at: f.branch(some, lambda: one(at)))
