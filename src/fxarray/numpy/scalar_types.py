"""`fxarray.numpy.float32` and its kin: dtypes that can be called to cast.

A scalar type stands for its dtype wherever one is wanted (`zeros(3, dtype=float32)`), compares
equal to it, and converts when it is called:

    >>> import numpy as np
    >>> import fxarray.numpy as fnp
    >>> fnp.float16(2.5)
    Array(2.5, dtype=float16)
    >>> fnp.int8 == np.dtype("int8"), fnp.bfloat16.dtype.name
    (True, 'bfloat16')
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fxarray.core import dtypes
from fxarray.core.array import Array
from fxarray.core.dtypes import DType
from fxarray.core.errors import DTypeError
from fxarray.numpy.conversion import asarray


class ScalarType:
    """A dtype that can be called; see the module's docstring.

    Args:
      dtype: the dtype that it stands for.
    """

    __slots__ = ("dtype",)

    def __init__(self, dtype: DType) -> None:
        self.dtype = dtype

    @property
    def __name__(self) -> str:
        return dtypes.name(self.dtype)

    @property
    def type(self) -> Any:
        """NumPy's scalar type."""
        return getattr(self.dtype, "type", None)

    def __call__(self, value: Any = 0) -> Array:
        return asarray(value, dtype=self.dtype)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if other is None or isinstance(other, Array | np.ndarray):
            return False
        try:
            return dtypes.canonical(other) == self.dtype
        except DTypeError:
            return False

    def __hash__(self) -> int:
        return hash(self.dtype)

    def __repr__(self) -> str:
        return f"fxarray.numpy.{dtypes.name(self.dtype)}"

    def __reduce__(self) -> Any:
        return (ScalarType, (self.dtype,))


bool_ = ScalarType(dtypes.bool_)
int2 = ScalarType(dtypes.int2)
int4 = ScalarType(dtypes.int4)
int8 = ScalarType(dtypes.int8)
int16 = ScalarType(dtypes.int16)
int32 = ScalarType(dtypes.int32)
int64 = ScalarType(dtypes.int64)
uint2 = ScalarType(dtypes.uint2)
uint4 = ScalarType(dtypes.uint4)
uint8 = ScalarType(dtypes.uint8)
uint16 = ScalarType(dtypes.uint16)
uint32 = ScalarType(dtypes.uint32)
uint64 = ScalarType(dtypes.uint64)
float4_e2m1fn = ScalarType(dtypes.float4_e2m1fn)
float6_e2m3fn = ScalarType(dtypes.float6_e2m3fn)
float6_e3m2fn = ScalarType(dtypes.float6_e3m2fn)
float8_e3m4 = ScalarType(dtypes.float8_e3m4)
float8_e4m3 = ScalarType(dtypes.float8_e4m3)
float8_e4m3b11fnuz = ScalarType(dtypes.float8_e4m3b11fnuz)
float8_e4m3fn = ScalarType(dtypes.float8_e4m3fn)
float8_e4m3fnuz = ScalarType(dtypes.float8_e4m3fnuz)
float8_e5m2 = ScalarType(dtypes.float8_e5m2)
float8_e5m2fnuz = ScalarType(dtypes.float8_e5m2fnuz)
float8_e8m0fnu = ScalarType(dtypes.float8_e8m0fnu)
bfloat16 = ScalarType(dtypes.bfloat16)
float16 = ScalarType(dtypes.float16)
float32 = ScalarType(dtypes.float32)
float64 = ScalarType(dtypes.float64)
complex64 = ScalarType(dtypes.complex64)
complex128 = ScalarType(dtypes.complex128)

# NumPy's other names. The defaults are 32 bits wide.
int_ = int32
uint = uint32
float_ = float32
complex_ = complex64
single = float32
double = float64
csingle = complex64
cdouble = complex128

# Abstract families, for issubdtype.
generic = np.generic
number = np.number
integer = np.integer
signedinteger = np.signedinteger
unsignedinteger = np.unsignedinteger
inexact = np.inexact
floating = np.floating
complexfloating = np.complexfloating
flexible = np.flexible
character = np.character
object_ = np.object_
