"""Triangular systems by BLAS, and systems by the factors of LU."""

from __future__ import annotations

from collections.abc import Sequence

from fxarray.core.types import ArrayType
from fxarray.devices.cpu.emit.function import FunctionText, Operand
from fxarray.devices.cpu.emit.types import itemsize
from fxarray.devices.cpu.library.lapack import StackRoutine, copied, real_type, supported
from fxarray.devices.cpu.library.small import fits
from fxarray.devices.cpu.library.small_factors import small_factored_solve, small_triangular_solve
from fxarray.devices.cpu.native.routine import Routine
from fxarray.devices.cpu.native.target import Target
from fxarray.kernel import sizes
from fxarray.primitives.linalg_lu import FactoredSolve
from fxarray.primitives.linalg_triangular import TriangularSolve

Types = Sequence[ArrayType]


class _Triangles:
    """Calls of `trsm` for row-major matrices.

    BLAS sees transposed matrices: op(a) x = b becomes x^T op(a)^T = b^T there, with the matrix on
    the other side and its other triangle, and op(a)^T = a^T, which is what BLAS sees of `a`.
    """

    def __init__(self, s: StackRoutine, prefix: str, n: Operand, right_sides: Operand) -> None:
        self.s = s
        self.prefix = prefix
        self.n = s.integer(n)
        self.right_sides = s.integer(right_sides)
        part = real_type("f64" if prefix in "dz" else "f32")
        f = s.f
        self.one = f.alloca(f"[2 x {part}]")
        f.do(f"store {part} 1.0, ptr {self.one}")
        f.do(f"store {part} 0.0, ptr {f.offset(self.one, 1, part)}")

    def solve(
        self,
        a: Operand,
        b: Operand,
        lower: bool,
        transpose: str = "N",
        unit: bool = False,
        left: bool = True,
    ) -> None:
        """Replace b by the x with op(a) x = b, or x op(a) = b.

        Args:
          a: the address of the matrix.
          b: that of the right-hand sides, n by `right_sides`, or the other way round.
          lower: which triangle of `a` is read.
          transpose: what op does: "N" nothing, "T" transpose, "C" transpose and conjugate.
          unit: whether the diagonal is ones.
          left: whether op(a) stands on the left.
        """
        s = self.s
        letters = ("R" if left else "L", "U" if lower else "L", transpose, "U" if unit else "N")
        rows, columns = (self.right_sides, self.n) if left else (self.n, self.right_sides)
        s.call(
            f"{self.prefix}trsm",
            *[s.character(letter) for letter in letters],
            rows,
            columns,
            self.one,
            a,
            self.n,
            b,
            rows,
        )


def triangular_routine(
    op: TriangularSolve, inputs: Types, outputs: Types, target: Target
) -> Routine | None:
    """The routine of `triangular_solve`."""
    prefix = supported(inputs)
    if prefix is None:
        return None
    if fits(inputs, target):
        return small_triangular_solve(op, inputs, outputs, target)
    s = StackRoutine(inputs, outputs)
    f, dtype = s.f, s.dtypes[0]
    n = s.size("n", s.core[0][0])
    c = s.size("c", s.core[1][1 if op.left_side else 0])
    count = f.multiply(n, n)
    conjugates = op.conjugate_a and prefix in "cz"
    # BLAS conjugates only what it transposes too.
    copies = conjugates and not op.transpose_a
    if copies:
        s.area("a", sizes.multiply(s.core[0][0], s.core[0][0]), dtype)
    triangles = _Triangles(s, prefix, n, c)

    def one(at: dict[str, Operand]) -> None:
        a = at["in0"]
        if copies:
            _conjugated(f, a, at["a"], count, dtype)
            a = at["a"]
        copied(f, at["in1"], at["out0"], f.multiply(f.multiply(n, c), itemsize(dtype)))
        letter = ("C" if conjugates else "T") if op.transpose_a else "N"
        triangles.solve(a, at["out0"], op.from_lower, letter, op.unit_diagonal, left=op.left_side)

    some = f.new(f"icmp sgt i64 {f.smaller(n, c)}, 0")
    return s.run(lambda at: f.branch(some, lambda: one(at)))


def _conjugated(
    f: FunctionText, source: Operand, target: Operand, count: Operand, dtype: str
) -> None:
    """target = conj(source), for so many complex elements."""
    type_ = real_type("f32" if dtype == "c64" else "f64")

    def one(i: Operand) -> None:
        place = f.multiply(i, 2)
        for part in range(2):
            where = f.offset(source, f.add(place, part), type_)
            value = f.new(f"load {type_}, ptr {where}")
            value = f.new(f"fneg {type_} {value}") if part else value
            f.do(f"store {type_} {value}, ptr {f.offset(target, f.add(place, part), type_)}")

    f.loop(0, count, 1, one)


def factored_routine(
    op: FactoredSolve, inputs: Types, outputs: Types, target: Target
) -> Routine | None:
    """The routine of `factored_solve`."""
    prefix = supported(inputs)
    if prefix is None:
        return None
    if fits(inputs, target):
        return small_factored_solve(op, inputs, outputs, target)
    s = StackRoutine(inputs, outputs)
    f, dtype = s.f, s.dtypes[0]
    n, c = s.size("n", s.core[0][0]), s.size("c", s.core[3][1])
    if op.transpose_a:
        s.area("x", sizes.product(s.core[3]), dtype)
    triangles = _Triangles(s, prefix, n, c)
    row_bytes = f.multiply(c, itemsize(dtype))

    def one(at: dict[str, Operand]) -> None:
        lu, order, b, x = at["in1"], at["in2"], at["in3"], at["out0"]
        if not op.transpose_a:
            _rows(f, order, n, row_bytes, b, x, gather=True)
            triangles.solve(lu, x, True, "N", True)
            triangles.solve(lu, x, False)
            return
        # a^T = U^T L^T P, where (P x)[i] = x[order[i]].
        inner = at["x"]
        copied(f, b, inner, f.multiply(n, row_bytes))
        triangles.solve(lu, inner, False, "T")
        triangles.solve(lu, inner, True, "T", True)
        _rows(f, order, n, row_bytes, inner, x, gather=False)

    some = f.new(f"icmp sgt i64 {f.smaller(n, c)}, 0")
    return s.run(lambda at: f.branch(some, lambda: one(at)))


def _rows(
    f: FunctionText,
    order: Operand,
    n: Operand,
    size: Operand,
    source: Operand,
    target: Operand,
    gather: bool,
) -> None:
    """target[i] = source[order[i]], or target[order[i]] = source[i], for rows of so many bytes."""

    def one(i: Operand) -> None:
        other = f.new(f"load i32, ptr {f.offset(order, i, 'i32')}")
        j = f.new(f"sext i32 {other} to i64")
        from_, to = (j, i) if gather else (i, j)
        copied(
            f,
            f.offset(source, f.multiply(from_, size)),
            f.offset(target, f.multiply(to, size)),
            size,
        )

    f.loop(0, n, 1, one)
