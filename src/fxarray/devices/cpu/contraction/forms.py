"""Which arithmetic a product uses, and the tile of results that one micro-kernel call computes.

Operands are packed into panels of what the arithmetic takes: numbers of the accumulator's type, or
pairs of 16-bit numbers that one instruction multiplies and adds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from fxarray.devices.cpu.contraction.matrix_unit import usable
from fxarray.devices.cpu.emit.types import is_complex, is_float, is_integer, itemsize, part_dtype
from fxarray.devices.cpu.native.target import Target


@dataclass(frozen=True)
class Form:
    """The arithmetic of a product.

    Args:
      dtype: of the accumulators: f32, f64, i32 or i64.
      packed: dtype of the packed numbers: `dtype` itself, or bf16 or i16 in pairs.
      lanes: accumulators in one vector.
      height: the greatest number of rows of a tile.
      vectors: vectors in one row of a tile.
      complex: whether the numbers are complex, as pairs of rows and pairs of steps.
      unit: the instruction of a matrix unit that multiplies and adds whole blocks, or "".
    """

    dtype: str
    packed: str
    lanes: int
    height: int
    vectors: int
    complex: bool = False
    unit: str = ""

    @property
    def pair(self) -> int:
        """Packed numbers of one row in one place of a panel."""
        return itemsize(self.dtype) // itemsize(self.packed)

    @property
    def places(self) -> int:
        """Places of one row in one step along the sum: a matrix unit takes blocks of 64 bytes."""
        return 16 if self.unit else 1

    @property
    def width(self) -> int:
        """Columns of a tile."""
        return self.lanes * self.vectors

    @property
    def element(self) -> str:
        """The LLVM type of an accumulator."""
        return {"f32": "float", "f64": "double", "i32": "i32", "i64": "i64"}[self.dtype]

    @property
    def item(self) -> int:
        """Bytes of an accumulator, which are those of all packed numbers of a row in a step."""
        return itemsize(self.dtype)

    @property
    def steps(self) -> int:
        """Rows of a panel that one number along the sum takes."""
        return 2 if self.complex else 1

    def padded(self, rows: int) -> int:
        """Rows of a panel that holds so many rows, in whole vectors."""
        return -(-rows // self.lanes) * self.lanes


def _tile(target: Target) -> tuple[int, int]:
    """Rows and vectors of a tile: accumulators for all registers but those of a row and a factor.

    AVX-512 and NEON have 32 registers, AVX2 and SSE 16.
    """
    if target.vector_bytes == 64:
        return 14, 2
    if target.architecture == "aarch64":
        return 6, 4
    return 6, 2


def _unit(a: str, b: str, accumulator: str, target: Target) -> str:
    """The matrix unit's instruction for a product, if there is one."""
    if accumulator == "f32" and a == b == "bf16" and usable(target, "amx-bf16"):
        return "dpbf16ps"
    if accumulator in ("i32", "u32") and {a, b} <= {"i8", "u8"} and usable(target, "amx-int8"):
        return f"dpb{a[0].replace('i', 's')}{b[0].replace('i', 's')}d"
    return ""


def form_of(a: str, b: str, accumulator: str, target: Target) -> Form:
    """The arithmetic for operands of dtypes `a` and `b`, summed in dtype `accumulator`."""
    unit = _unit(a, b, accumulator, target)
    if unit:
        dtype = "f32" if unit == "dpbf16ps" else "i32"
        return Form(dtype, "bf16" if dtype == "f32" else "i8", 16, 32, 2, unit=unit)
    height, vectors = _tile(target)
    dtype = part_dtype(accumulator)
    packed = dtype
    if is_float(dtype) and dtype != "f64":
        dtype = packed = "f32"
        # Where there is a matrix unit, the same processor's vectors of pairs are slow.
        pairs = target.vector_bytes == 64 and target.has("avx512bf16")
        if a == b == "bf16" and pairs and not target.has("amx-bf16"):
            packed = "bf16"
    elif not is_float(dtype):
        wide = is_integer(dtype) and itemsize(dtype) == 8
        dtype = packed = "i64" if wide else "i32"
        if not wide and target.architecture == "x86_64" and target.vector_bytes >= 32:
            packed = "i16" if {a, b} <= {"i8", "u8", "i4", "u4", "i2", "u2", "i16"} else dtype
    lanes = target.vector_bytes // itemsize(dtype)
    return Form(dtype, packed, lanes, height, vectors, is_complex(accumulator))


def one_by_one(accumulator: str, target: Target) -> Form:
    """The arithmetic that takes numbers of the accumulator's type one by one."""
    form = form_of(accumulator, accumulator, accumulator, target)
    return replace(form, packed=form.dtype)
