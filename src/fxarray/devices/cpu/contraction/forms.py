"""Which arithmetic a product uses, and the tile of results that one micro-kernel call computes.

Operands are packed into panels of what the arithmetic takes: numbers of the accumulator's type, or
pairs of 16-bit numbers that one instruction multiplies and adds.
"""

from __future__ import annotations

from dataclasses import dataclass

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
    """

    dtype: str
    packed: str
    lanes: int
    height: int
    vectors: int
    complex: bool = False

    @property
    def pair(self) -> int:
        """Packed numbers of one row in one step along the sum."""
        return 1 if self.packed == self.dtype else 2

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
        """Steps that one number along the sum takes (`pair` numbers take one step)."""
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


def form_of(a: str, b: str, accumulator: str, target: Target) -> Form:
    """The arithmetic for operands of dtypes `a` and `b`, summed in dtype `accumulator`."""
    height, vectors = _tile(target)
    dtype = part_dtype(accumulator)
    packed = dtype
    if is_float(dtype) and dtype != "f64":
        dtype = packed = "f32"
        if a == b == "bf16" and target.vector_bytes == 64 and target.has("avx512bf16"):
            packed = "bf16"
    elif not is_float(dtype):
        wide = is_integer(dtype) and itemsize(dtype) == 8
        dtype = packed = "i64" if wide else "i32"
        if not wide and target.architecture == "x86_64" and target.vector_bytes >= 32:
            packed = "i16" if {a, b} <= {"i8", "u8", "i4", "u4", "i2", "u2", "i16"} else dtype
    lanes = target.vector_bytes // itemsize(dtype)
    return Form(dtype, packed, lanes, height, vectors, is_complex(accumulator))
