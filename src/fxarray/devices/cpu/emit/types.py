"""Values in registers, and how each dtype is held there and in memory.

A dtype is computed in its *compute type*: floats narrower than f32 as float, rounded to their
dtype after every operation; 2- and 4-bit integers as i8, wrapped after every operation; complex
numbers as two floats. Its *storage type* is what one element is in memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from fxarray.devices.cpu.emit.function import Operand

NARROW_FLOATS = (
    *("f16", "bf16", "f8_e3m4", "f8_e4m3", "f8_e4m3b11fnuz", "f8_e4m3fn", "f8_e4m3fnuz", "f8_e5m2"),
    *("f8_e5m2fnuz", "f8_e8m0fnu", "f6_e2m3fn", "f6_e3m2fn", "f4_e2m1fn"),
)
NARROW_INTEGERS = ("i2", "i4", "u2", "u4")
_INTEGER_BITS = {f"{kind}{bits}": bits for kind in "iu" for bits in (2, 4, 8, 16, 32, 64)}

# A random key is a word of 64 bits, which is moved and never computed with.
_COMPUTE: dict[str, str] = {
    "bool": "i1",
    "key": "i64",
    "f32": "float",
    "f64": "double",
    "c64": "float",
    "c128": "double",
    **{name: f"i{max(bits, 8)}" for name, bits in _INTEGER_BITS.items()},
    **dict.fromkeys(NARROW_FLOATS, "float"),
}
_STORAGE: dict[str, str] = {
    **_COMPUTE,
    **dict.fromkeys(NARROW_FLOATS, "i8"),
    "bool": "i8",
    "f16": "i16",
    "bf16": "i16",
    "c64": "{ float, float }",
    "c128": "{ double, double }",
}
_BYTES = {
    "i8": 1,
    "i16": 2,
    "i32": 4,
    "i64": 8,
    "float": 4,
    "double": 8,
    "{ float, float }": 8,
    "{ double, double }": 16,
}


@dataclass(frozen=True, slots=True)
class Value:
    """A value in registers.

    Args:
      dtype: the short name of its dtype.
      lanes: 1 for a scalar, else the length of the vector.
      parts: its operands of the compute type: one, or the real and the imaginary part.
    """

    dtype: str
    lanes: int
    parts: tuple[Operand, ...]

    @property
    def operand(self) -> Operand:
        """The only part."""
        (part,) = self.parts
        return part

    @property
    def type(self) -> str:
        """The LLVM type of each part."""
        return llvm_type(self.dtype, self.lanes)


def compute_type(dtype: str) -> str:
    """The LLVM type in which one number (or part of a complex one) is computed."""
    return _COMPUTE[dtype]


def llvm_type(dtype: str, lanes: int = 1) -> str:
    """The LLVM type of each part of a value."""
    return vector_type(_COMPUTE[dtype], lanes)


@cache
def vector_type(element: str, lanes: int) -> str:
    """The LLVM type of so many elements; one is a scalar."""
    return element if lanes == 1 else f"<{lanes} x {element}>"


def storage_type(dtype: str) -> str:
    """The LLVM type of one element in memory, for address arithmetic."""
    return _STORAGE[dtype]


def itemsize(dtype: str) -> int:
    """The bytes of one element in memory."""
    return _BYTES[_STORAGE[dtype]]


def is_complex(dtype: str) -> bool:
    """Whether values have two parts."""
    return dtype in ("c64", "c128")


def is_narrow_float(dtype: str) -> bool:
    """Whether values are held as f32 and rounded after every operation."""
    return dtype in NARROW_FLOATS


def is_float(dtype: str) -> bool:
    """Whether the dtype is a real floating-point type."""
    return dtype in ("f32", "f64") or dtype in NARROW_FLOATS


def is_integer(dtype: str) -> bool:
    """Whether the dtype is an integer type; bool is not."""
    return dtype in _INTEGER_BITS


def is_signed(dtype: str) -> bool:
    """Whether the dtype is a signed integer type."""
    return dtype in _INTEGER_BITS and dtype[0] == "i"


def bit_width(dtype: str) -> int:
    """The bits of information in an integer of the dtype; 1 for bool."""
    return 1 if dtype == "bool" else _INTEGER_BITS[dtype]


def part_dtype(dtype: str) -> str:
    """The dtype of the parts of a complex dtype; a real dtype itself."""
    return {"c64": "f32", "c128": "f64"}.get(dtype, dtype)
