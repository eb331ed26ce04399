"""Calling LAPACK and BLAS, by the function pointers that SciPy exports, from generated code.

Matrices of the program are row-major, those of LAPACK column-major: the same memory is the
transposed matrix there. All leading dimensions are a stack, whose matrices are shared out among
threads; a matrix is prepared, factorised and stored in the scratch memory of its thread.
"""

from __future__ import annotations

import ctypes
import importlib
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from fxarray.core.types import ArrayType
from fxarray.devices.cpu.emit.function import FunctionText, Operand
from fxarray.devices.cpu.emit.types import itemsize
from fxarray.devices.cpu.library.elements import short_dtype
from fxarray.devices.cpu.library.text import (
    Layout,
    ModuleText,
    ceiling_divide,
    loop_nest,
    part_bounds,
    run_parts,
)
from fxarray.devices.cpu.native.routine import Address, Routine, SizeWord
from fxarray.kernel import sizes
from fxarray.kernel.sizes import Size

# The first letters of routines, by dtype. Narrower floats are left to the host.
PREFIXES = {"f32": "s", "f64": "d", "c64": "c", "c128": "z"}
# The greatest block size with which LAPACK works, for workspaces.
BLOCK = 64
# Elements of matrices in a part.
PART_ELEMENTS = 1 << 13


@cache
def function_address(name: str) -> int:
    """The address of a LAPACK or BLAS function, such as "dgetrf"."""
    # SciPy's linear algebra takes long to import, and most programs have none.
    for module in ("cython_lapack", "cython_blas"):
        capsules = importlib.import_module(f"scipy.linalg.{module}")
        capsule = capsules.__pyx_capi__.get(name)
        if capsule is not None:
            api = ctypes.pythonapi
            api.PyCapsule_GetName.restype = ctypes.c_char_p
            api.PyCapsule_GetName.argtypes = [ctypes.py_object]
            api.PyCapsule_GetPointer.restype = ctypes.c_void_p
            api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
            return api.PyCapsule_GetPointer(capsule, api.PyCapsule_GetName(capsule))
    raise LookupError(name)


def real_of(dtype: str) -> str:
    """The dtype of the parts of complex numbers; others as they are."""
    return {"c64": "f32", "c128": "f64"}.get(dtype, dtype)


def real_type(dtype: str) -> str:
    """The LLVM type of a real dtype."""
    return {"f32": "float", "f64": "double"}[dtype]


class StackRoutine:
    """A routine under construction that does the same with every matrix of a stack.

    Args:
      types: of operands.
      results: of results.
      rank: the trailing dimensions of the first operand that are not the stack's.
    """

    def __init__(
        self, types: Sequence[ArrayType], results: Sequence[ArrayType], rank: int = 2
    ) -> None:
        self.layout = Layout.of(len(types), len(results), scratch=True)
        self.text = ModuleText()
        first = sizes.kernel_shape(types[0].shape)
        self.stack = len(first) - rank
        count = sizes.product(first[: self.stack])
        self.core = [sizes.kernel_shape(t.shape[self.stack :]) for t in types]
        self.result_core = [sizes.kernel_shape(t.shape[self.stack :]) for t in results]
        self.dtypes = [short_dtype(t) for t in types]
        self.result_dtypes = [short_dtype(t) for t in results]
        self.scratch: Size = 128
        self._areas: list[str] = []
        self.layout.append("stack", SizeWord(count))
        work = sizes.product(first[self.stack :])
        self.layout.append("work", SizeWord(work))
        self.layout.append("own", SizeWord(0))
        for number, (core, dtype) in enumerate(zip(self.core, self.dtypes, strict=True)):
            self._step(f"in{number}", core, dtype)
        for number, (core, dtype) in enumerate(
            zip(self.result_core, self.result_dtypes, strict=True)
        ):
            self._step(f"out{number}", core, dtype)
        self.f = self.text.part("stack_part")

    def _step(self, name: str, core: Sequence[Size], dtype: str) -> None:
        size = sizes.multiply(sizes.product(core), itemsize(dtype))
        self.layout.append(f"step_{name}", SizeWord(size))

    # --- what the code of one matrix uses ---------------------------------------------------------

    def area(self, name: str, count: Size, dtype: str) -> None:
        """Reserve scratch memory for so many elements."""
        size = sizes.multiply(count, itemsize(dtype))
        self.layout.append(f"area_{name}", SizeWord(size))
        self._areas.append(name)
        self.scratch = sizes.add(self.scratch, sizes.add(size, 64))

    def size(self, name: str, size: Size) -> Operand:
        """A size as i64, which becomes a word of the routine."""
        if name not in self.layout.places:
            self.layout.append(name, SizeWord(size))
        return self.layout.size(self.f, name)

    def integer(self, value: Operand | int) -> Operand:
        """The address of an i32."""
        f = self.f
        narrow = str(value)
        if not narrow.lstrip("-").isdigit():
            narrow = f.new(f"trunc i64 {value} to i32")
        return f.alloca("i32", narrow)

    def character(self, letter: str) -> Operand:
        """The address of a character."""
        return self.f.alloca("i8", str(ord(letter)))

    def call(self, name: str, *arguments: Operand) -> None:
        """Call a function of LAPACK or BLAS; arguments are addresses."""
        if name not in self.layout.places:
            self.layout.append(name, Address(function_address(name)))
        function = self.layout.pointer(self.f, name)
        passed = ", ".join(f"ptr {argument}" for argument in arguments)
        self.f.do(f"call void {function}({passed})")

    def run(self, body: Callable[[dict[str, Operand]], None]) -> Routine:
        """The routine; `body` gets the addresses of a matrix's operands, results and areas."""
        f, layout = self.f, self.layout
        low, high = part_bounds(f, layout.size(f, "stack"), self._each(f))
        base = f.offset(layout.pointer(f, "scratch"), f.multiply("%thread", layout.size(f, "own")))
        areas: dict[str, Operand] = {}
        for name in self._areas:
            base = aligned(f, base)
            areas[name] = base
            base = f.offset(base, layout.size(f, f"area_{name}"))

        def one(number: Operand) -> None:
            places = dict(areas)
            for name in [name[5:] for name in layout.places if name.startswith("step_")]:
                step = layout.size(f, f"step_{name}")
                places[name] = f.offset(layout.pointer(f, name), f.multiply(number, step))
            body(places)

        f.loop(low, high, 1, one)
        e = self.text.entry()
        run_parts(e, "stack_part", ceiling_divide(e, layout.size(e, "stack"), self._each(e)))
        layout.words[layout.places["own"]] = SizeWord(self.scratch)
        return Routine(self.text.text(), tuple(layout.words), thread_scratch=self.scratch)

    def _each(self, f: FunctionText) -> Operand:
        work = f.larger(self.layout.size(f, "work"), 1)
        return f.larger(f.new(f"udiv i64 {PART_ELEMENTS}, {work}"), 1)


def aligned(f: FunctionText, pointer: Operand) -> Operand:
    """The next address that is a multiple of 64."""
    whole = f.new(f"ptrtoint ptr {pointer} to i64")
    return f.new(f"inttoptr i64 {f.new(f'and i64 {f.add(whole, 63)}, -64')} to ptr")


# --- moving matrices ------------------------------------------------------------------------------


def raw(dtype: str) -> tuple[str, int]:
    """The LLVM integer type of an element, and its alignment."""
    size = itemsize(dtype)
    return f"i{8 * size}", min(size, 8)


def transposed(
    f: FunctionText,
    source: Operand,
    target: Operand,
    rows: Operand,
    columns: Operand,
    dtype: str,
    source_step: Operand | None = None,
    target_step: Operand | None = None,
) -> None:
    """target[j, i] = source[i, j], for row-major matrices with so many elements from row to row."""
    kind, align = raw(dtype)
    source_step, target_step = source_step or columns, target_step or rows

    def element(indices: list[Operand]) -> None:
        j, i = indices
        where = f.offset(source, f.add(f.multiply(i, source_step), j), kind)
        to = f.offset(target, f.add(f.multiply(j, target_step), i), kind)
        value = f.new(f"load {kind}, ptr {where}, align {align}")
        f.do(f"store {kind} {value}, ptr {to}, align {align}")

    loop_nest(f, [columns, rows], element)


def copied(f: FunctionText, source: Operand, target: Operand, size: Operand) -> None:
    """Copy bytes."""
    f.declare("declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)")
    f.do(f"call void @llvm.memcpy.p0.p0.i64(ptr {target}, ptr {source}, i64 {size}, i1 false)")


def filled(f: FunctionText, target: Operand, count: Operand, value: str, dtype: str) -> None:
    """Store a constant to so many real numbers of a dtype: "zero", "one" or "nan"."""
    type_ = real_type(dtype)
    text = {"zero": "0.0", "one": "1.0", "nan": "0x7FF8000000000000"}[value]
    f.loop(0, count, 1, lambda i: f.do(f"store {type_} {text}, ptr {f.offset(target, i, type_)}"))


def not_a_number(f: FunctionText, target: Operand, count: Operand, dtype: str) -> None:
    """Store NaN to so many elements; complex ones get it as their real part, and 0 beside it."""
    part = real_of(dtype)
    if part == dtype:
        filled(f, target, count, "nan", dtype)
        return
    type_ = real_type(part)

    def one(i: Operand) -> None:
        place = f.offset(target, f.multiply(i, 2), type_)
        f.do(f"store {type_} 0x7FF8000000000000, ptr {place}")
        f.do(f"store {type_} 0.0, ptr {f.offset(place, 1, type_)}")

    f.loop(0, count, 1, one)


def zero_triangle(
    f: FunctionText, target: Operand, rows: Operand, columns: Operand, upper: bool, dtype: str
) -> None:
    """Clear what is above (or below) the diagonal of a row-major matrix."""
    kind, align = raw(dtype)

    def row(i: Operand) -> None:
        low = f.add(i, 1) if upper else "0"
        high = columns if upper else f.smaller(i, columns)
        line = f.offset(target, f.multiply(i, columns), kind)
        f.loop(
            low,
            high,
            1,
            lambda j: f.do(f"store {kind} 0, ptr {f.offset(line, j, kind)}, align {align}"),
        )

    f.loop(0, rows, 1, row)


def failed(f: FunctionText, info: Operand) -> Operand:
    """Whether LAPACK reported that it failed."""
    return f.new(f"icmp ne i32 {f.new(f'load i32, ptr {info}')}, 0")


def all_finite(f: FunctionText, source: Operand, count: Operand, dtype: str) -> Operand:
    """Whether all of so many elements are finite."""
    part = real_of(dtype)
    type_ = real_type(part)
    total = count if part == dtype else f.multiply(count, 2)
    worst = f.alloca("i1", "true")

    def one(i: Operand) -> None:
        value = f.new(f"load {type_}, ptr {f.offset(source, i, type_)}")
        # Infinity and NaN give NaN.
        nothing = f.new(f"fsub {type_} {value}, {value}")
        good = f.new(f"fcmp ord {type_} {nothing}, 0.0")
        before = f.new(f"load i1, ptr {worst}")
        f.do(f"store i1 {f.new(f'and i1 {before}, {good}')}, ptr {worst}")

    f.loop(0, total, 1, one)
    return f.new(f"load i1, ptr {worst}")


def supported(types: Sequence[ArrayType]) -> Any:
    """The prefix of routines for these operands; None if LAPACK has none for their dtype."""
    return PREFIXES.get(short_dtype(types[0]))
