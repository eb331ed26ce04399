"""Singular values, eigenvalues and their vectors by LAPACK."""

from __future__ import annotations

from collections.abc import Sequence

from fxarray.core.types import ArrayType
from fxarray.devices.cpu.emit.function import FunctionText, Operand
from fxarray.devices.cpu.library.lapack import (
    BLOCK,
    StackRoutine,
    all_finite,
    failed,
    not_a_number,
    raw,
    real_of,
    real_type,
    supported,
    transposed,
)
from fxarray.devices.cpu.library.text import loop_nest
from fxarray.devices.cpu.native.routine import Routine
from fxarray.devices.cpu.native.target import Target
from fxarray.kernel import sizes
from fxarray.kernel.sizes import Size
from fxarray.primitives.linalg_eigen import Eig, Eigh, Svd

Types = Sequence[ArrayType]


def _total(*parts: Size) -> Size:
    total: Size = 0
    for part in parts:
        total = sizes.add(total, part)
    return total


def _times(*factors: Size) -> Size:
    return sizes.product(factors)


def _identity(f: FunctionText, target: Operand, n: Operand, dtype: str) -> None:
    """Store the identity matrix."""
    kind, align = raw(dtype)
    part = real_of(dtype)

    def element(indices: list[Operand]) -> None:
        i, j = indices
        place = f.offset(target, f.add(f.multiply(i, n), j), kind)
        f.do(f"store {kind} 0, ptr {place}, align {align}")
        same = f.new(f"icmp eq i64 {i}, {j}")
        f.branch(same, lambda: f.do(f"store {real_type(part)} 1.0, ptr {place}"))

    loop_nest(f, [n, n], element)


def svd_routine(op: Svd, inputs: Types, outputs: Types, _: Target) -> Routine | None:
    """The routine of `svd`."""
    prefix = supported(inputs)
    if prefix is None:
        return None
    s = StackRoutine(inputs, outputs)
    f, dtype = s.f, s.dtypes[0]
    rows, columns = s.core[0]
    m, n = s.size("m", rows), s.size("n", columns)
    k = f.smaller(m, n)
    vectors = op.compute_uv
    lesser = s.result_core[1][0] if vectors else s.result_core[0][0]
    both = sizes.add(rows, columns)
    s.area("a", _times(rows, columns), dtype)
    space = _total(_times(4, lesser, lesser), _times(10, lesser), _times(both, 2 * BLOCK), BLOCK)
    s.area("work", space, dtype)
    room = s.size("room", space)
    s.area("integers", _times(8, lesser), "i32")
    if prefix in "cz":
        real = _total(_times(7, lesser, lesser), _times(2, both, lesser), _times(8, lesser), 8)
        s.area("real", real, real_of(dtype))
    left, right = m, n
    if vectors:
        wide, high = s.result_core[0][1], s.result_core[2][0]
        left, right = s.size("left", wide), s.size("right", high)
        s.area("u", _times(rows, wide), dtype)
        s.area("v", _times(high, columns), dtype)

    def one(at: dict[str, Operand]) -> None:
        values = at["out1" if vectors else "out0"]

        def decompose() -> None:
            transposed(f, at["in0"], at["a"], m, n, dtype)
            job = ("A" if op.full_matrices else "S") if vectors else "N"
            height, width, length = s.integer(m), s.integer(n), s.integer(room)
            info = s.integer(0)
            u, v = (at["u"], at["v"]) if vectors else (at["a"], at["a"])
            high = s.integer(right) if vectors else s.integer(1)
            arguments = [s.character(job), height, width, at["a"], height, values, u, height]
            arguments += [v, high, at["work"], length]
            arguments += [at["real"]] if prefix in "cz" else []
            s.call(f"{prefix}gesdd", *arguments, at["integers"], info)
            bad = failed(f, info)
            if vectors:
                transposed(f, u, at["out0"], left, m, dtype)
                transposed(f, v, at["out2"], n, right, dtype)

            def give_up() -> None:
                not_a_number(f, values, k, real_of(dtype))
                if vectors:
                    not_a_number(f, at["out0"], f.multiply(m, left), dtype)
                    not_a_number(f, at["out2"], f.multiply(right, n), dtype)

            f.branch(bad, give_up)

        def nothing() -> None:
            if vectors and op.full_matrices:
                _identity(f, at["out0"], m, dtype)
                _identity(f, at["out2"], n, dtype)

        f.branch(f.new(f"icmp sgt i64 {k}, 0"), decompose, nothing)

    return s.run(one)


def eigh_routine(op: Eigh, inputs: Types, outputs: Types, _: Target) -> Routine | None:
    """The routine of `eigh`."""
    prefix = supported(inputs)
    if prefix is None:
        return None
    s = StackRoutine(inputs, outputs)
    f, dtype = s.f, s.dtypes[0]
    order = s.core[0][0]
    n = s.size("n", order)
    vectors = op.compute_vectors
    s.area("a", _times(order, order), dtype)
    space = _total(_times(2, order, order), _times(order, BLOCK + 8), 8)
    s.area("work", space, dtype)
    room = s.size("room", space)
    integers = _total(_times(5, order), 8)
    s.area("integers", integers, "i32")
    integer_room = s.size("integer_room", integers)
    real_room = ""
    if prefix in "cz":
        real = _total(_times(2, order, order), _times(5, order), 8)
        s.area("real", real, real_of(dtype))
        real_room = s.size("real_room", real)

    def one(at: dict[str, Operand]) -> None:
        transposed(f, at["in0"], at["a"], n, n, dtype)
        values = at["out1" if vectors else "out0"]
        size, info = s.integer(n), s.integer(0)
        jobs = s.character("V" if vectors else "N"), s.character("L" if op.from_lower else "U")
        arguments = [*jobs, size, at["a"], size, values, at["work"], s.integer(room)]
        if prefix in "cz":
            arguments += [at["real"], s.integer(real_room)]
        arguments += [at["integers"], s.integer(integer_room), info]
        s.call(f"{prefix}{'heevd' if prefix in 'cz' else 'syevd'}", *arguments)
        if vectors:
            transposed(f, at["a"], at["out0"], n, n, dtype)

        def give_up() -> None:
            not_a_number(f, values, n, real_of(dtype))
            if vectors:
                not_a_number(f, at["out0"], f.multiply(n, n), dtype)

        f.branch(failed(f, info), give_up)

    return s.run(lambda at: f.branch(f.new(f"icmp sgt i64 {n}, 0"), lambda: one(at)))


def eig_routine(op: Eig, inputs: Types, outputs: Types, _: Target) -> Routine | None:
    """The routine of `eig`."""
    prefix = supported(inputs)
    if prefix is None:
        return None
    s = StackRoutine(inputs, outputs)
    f, dtype = s.f, s.dtypes[0]
    is_complex = prefix in "cz"
    order = s.core[0][0]
    n = s.size("n", order)
    count = f.multiply(n, n)
    s.area("a", _times(order, order), dtype)
    space = _total(_times(order, BLOCK + 8), _times(BLOCK + 1, BLOCK))
    s.area("work", space, dtype)
    room = s.size("room", space)
    s.area("values", _times(4, order), real_of(dtype))
    wanted = [name for name, has in (("left", op.compute_left), ("right", op.compute_right)) if has]
    for name in wanted:
        s.area(name, _times(order, order), dtype)

    def one(at: dict[str, Operand]) -> None:
        def give_up() -> None:
            for number in range(1 + len(wanted)):
                size = count if number else n
                not_a_number(f, at[f"out{number}"], size, s.result_dtypes[number])

        def decompose() -> None:
            transposed(f, at["in0"], at["a"], n, n, dtype)
            size, info = s.integer(n), s.integer(0)
            jobs = [s.character("V" if name in wanted else "N") for name in ("left", "right")]
            left, right = at.get("left", at["a"]), at.get("right", at["a"])
            real = real_type(real_of(dtype))
            imaginary = f.offset(at["values"], n, real)
            values = [at["out0"]] if is_complex else [at["values"], imaginary]
            spare = [at["values"]] if is_complex else []
            arguments = [*jobs, size, at["a"], size, *values, left, size, right, size, at["work"]]
            s.call(f"{prefix}geev", *arguments, s.integer(room), *spare, info)
            if not is_complex:
                _paired(f, at["values"], imaginary, at["out0"], n, real)
            for number, name in enumerate(wanted):
                if is_complex:
                    transposed(f, at[name], at[f"out{number + 1}"], n, n, dtype)
                else:
                    _complex_vectors(f, at[name], imaginary, at[f"out{number + 1}"], n, real)
            f.branch(failed(f, info), give_up)

        f.branch(all_finite(f, at["in0"], count, dtype), decompose, give_up)

    return s.run(lambda at: f.branch(f.new(f"icmp sgt i64 {n}, 0"), lambda: one(at)))


def _store_complex(
    f: FunctionText,
    target: Operand,
    position: Operand,
    real: Operand,
    imaginary: Operand,
    kind: str,
) -> None:
    place = f.offset(target, f.multiply(position, 2), kind)
    f.do(f"store {kind} {real}, ptr {place}")
    f.do(f"store {kind} {imaginary}, ptr {f.offset(place, 1, kind)}")


def _paired(
    f: FunctionText, real: Operand, imaginary: Operand, target: Operand, n: Operand, kind: str
) -> None:
    """Complex numbers of two arrays."""

    def one(i: Operand) -> None:
        parts = [f.new(f"load {kind}, ptr {f.offset(p, i, kind)}") for p in (real, imaginary)]
        _store_complex(f, target, i, parts[0], parts[1], kind)

    f.loop(0, n, 1, one)


def _complex_vectors(
    f: FunctionText, packed: Operand, imaginary: Operand, target: Operand, n: Operand, kind: str
) -> None:
    """The vectors of a real matrix, row-major, from LAPACK's columns.

    A pair of conjugate values, the one with the positive imaginary part first, has the real and the
    imaginary part of the first one's vector in its columns.
    """

    def column(j: Operand) -> None:
        part = f.new(f"load {kind}, ptr {f.offset(imaginary, j, kind)}")
        first = f.new(f"fcmp ogt {kind} {part}, 0.0")
        second = f.new(f"fcmp olt {kind} {part}, 0.0")
        real_column = f.subtract(j, f.new(f"zext i1 {second} to i64"))
        other_column = f.add(j, f.new(f"zext i1 {first} to i64"))
        pair = f.new(f"or i1 {first}, {second}")

        def element(i: Operand) -> None:
            def at(chosen: Operand) -> Operand:
                where = f.offset(packed, f.add(f.multiply(chosen, n), i), kind)
                return f.new(f"load {kind}, ptr {where}")

            real, other = at(real_column), at(other_column)
            negative = f.new(f"fneg {kind} {other}")
            other = f.new(f"select i1 {second}, {kind} {negative}, {kind} {other}")
            other = f.new(f"select i1 {pair}, {kind} {other}, {kind} 0.0")
            _store_complex(f, target, f.add(f.multiply(i, n), j), real, other, kind)

        f.loop(0, n, 1, element)

    f.loop(0, n, 1, column)
