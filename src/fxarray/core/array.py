"""Array, the interface of every array value, and DeviceArray, an array with a buffer.

`Array` is what users see: `isinstance(x, fxarray.Array)` is true of concrete arrays and of tracers.
Arrays are immutable and unhashable; operators, indexing and methods come from `fxarray.numpy`
through `core.hooks`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from fxarray.core import dtypes, hooks
from fxarray.core.array_methods import ArrayMethods
from fxarray.core.device import HOST, Device
from fxarray.core.dtypes import DType
from fxarray.core.errors import (
    ArgumentError,
    DeletedArrayError,
    DTypeError,
    ImmutableArrayError,
    ShapeError,
)
from fxarray.core.tracebacks import shorten
from fxarray.core.types import ArrayType, Shape, Size

operators = hooks.operators


def _binary(name: str) -> Any:
    def operator(self: Array, other: Any) -> Any:
        try:
            return operators.binary[name](self, other)  # type: ignore[index]
        except Exception as error:
            shorten(error)
            raise

    operator.__name__ = f"__{name}__"
    return operator


def _reflected(name: str) -> Any:
    def operator(self: Array, other: Any) -> Any:
        try:
            return operators.binary[name](other, self)  # type: ignore[index]
        except Exception as error:
            shorten(error)
            raise

    operator.__name__ = f"__r{name}__"
    return operator


def _unary(name: str) -> Any:
    def operator(self: Array) -> Any:
        try:
            return operators.unary[name](self)  # type: ignore[index]
        except Exception as error:
            shorten(error)
            raise

    operator.__name__ = f"__{name}__"
    return operator


class Array(ArrayMethods):
    """An immutable, typed, n-dimensional array; the base of concrete arrays and of tracers."""

    __slots__ = ("__weakref__",)
    type: ArrayType
    _trace: Any

    # NumPy leaves operators between its arrays and ours to us.
    __array_priority__: ClassVar[int] = 100
    __hash__: ClassVar[None] = None  # type: ignore[assignment]

    # --- what is known from the type --------------------------------------------------------

    @property
    def shape(self) -> Shape:
        return self.type.shape

    @property
    def dtype(self) -> DType:
        return self.type.dtype

    @property
    def ndim(self) -> int:
        return len(self.type.shape)

    @property
    def size(self) -> Size:
        return self.type.size

    @property
    def weak_type(self) -> bool:
        return self.type.weak

    @property
    def aval(self) -> ArrayType:
        return self.type

    @property
    def itemsize(self) -> int:
        return self.type.dtype.itemsize

    @property
    def nbytes(self) -> Any:
        return self.type.size * self.type.dtype.itemsize

    def __len__(self) -> int:
        if not self.type.shape:
            raise ShapeError("len() of a 0-dimensional array has no meaning")
        size = self.type.shape[0]
        return size if type(size) is int else size.__index__()

    def __iter__(self) -> Iterator[Array]:
        if not self.type.shape:
            raise ShapeError("a 0-dimensional array cannot be iterated over")
        return (self[i] for i in range(len(self)))

    def __contains__(self, value: Any) -> bool:
        return bool((self == value).any())

    # --- operators --------------------------------------------------------------------------

    __add__, __radd__ = _binary("add"), _reflected("add")
    __sub__, __rsub__ = _binary("sub"), _reflected("sub")
    __mul__, __rmul__ = _binary("mul"), _reflected("mul")
    __truediv__, __rtruediv__ = _binary("truediv"), _reflected("truediv")
    __floordiv__, __rfloordiv__ = _binary("floordiv"), _reflected("floordiv")
    __mod__, __rmod__ = _binary("mod"), _reflected("mod")
    __divmod__, __rdivmod__ = _binary("divmod"), _reflected("divmod")
    __pow__, __rpow__ = _binary("pow"), _reflected("pow")
    __matmul__, __rmatmul__ = _binary("matmul"), _reflected("matmul")
    __and__, __rand__ = _binary("and"), _reflected("and")
    __or__, __ror__ = _binary("or"), _reflected("or")
    __xor__, __rxor__ = _binary("xor"), _reflected("xor")
    __lshift__, __rlshift__ = _binary("lshift"), _reflected("lshift")
    __rshift__, __rrshift__ = _binary("rshift"), _reflected("rshift")
    __eq__ = _binary("eq")
    __ne__ = _binary("ne")
    __lt__ = _binary("lt")
    __le__ = _binary("le")
    __gt__ = _binary("gt")
    __ge__ = _binary("ge")
    __neg__ = _unary("neg")
    __pos__ = _unary("pos")
    __abs__ = _unary("abs")
    __invert__ = _unary("invert")

    def __round__(self, ndigits: int | None = None) -> Array:
        if ndigits is not None:
            return self.round(ndigits)
        rounded = self.round()
        if dtypes.is_float(self.dtype):  # as Python's own round(), which gives an int
            wide = self.dtype.itemsize > 4
            return rounded.astype(dtypes.int64 if wide else dtypes.int32)
        return rounded.astype(dtypes.int32) if dtypes.is_bool(self.dtype) else rounded

    def __getitem__(self, index: Any) -> Array:
        return operators.getitem(self, index)

    def __setitem__(self, index: Any, value: Any) -> None:
        raise ImmutableArrayError(
            f"{self.type}: arrays are immutable, so `x[index] = value` is not possible. Use "
            f"`x = x.at[index].set(value)` (or .add, .multiply, .min, .max), which returns a new "
            f"array."
        )

    def __delitem__(self, index: Any) -> None:
        raise ImmutableArrayError("items of an array cannot be deleted; use fxarray.numpy.delete")

    def item(self, *args: Any) -> Any:
        """The value as a Python scalar; with arguments, of one element."""
        raise NotImplementedError

    @property
    def at(self) -> Any:
        """Indexed updates that return a new array: `x.at[i].set(v)`, `.add`, `.min`, ..."""
        return operators.at(self)

    def __copy__(self) -> Array:
        return self

    def __deepcopy__(self, memo: Any) -> Array:
        return self

    def __format__(self, specification: str) -> str:
        if not self.type.shape:
            return format(self.item(), specification)
        if specification:
            raise ArgumentError(
                f"{self.type}: only 0-dimensional arrays take a format specification"
            )
        return str(self)


class DeviceArray(Array):
    """An array whose values exist: a type and a NumPy buffer (of the dtype's physical form)."""

    __slots__ = ("_np", "type")
    _trace: ClassVar[None] = None  # pyright: ignore[reportIncompatibleVariableOverride]
    type: ArrayType
    _np: Any

    def __init__(self, buffer: np.ndarray, type: ArrayType) -> None:
        self._np = buffer
        self.type = type

    def numpy_view(self) -> np.ndarray:
        """The buffer itself, for rules and devices; never write to it."""
        try:
            return self._np
        except AttributeError:
            raise DeletedArrayError(
                f"this array ({self.type}) has been deleted: its memory was donated to a compiled "
                f"call or freed by .delete(). Use the call's result instead."
            ) from None

    def _readonly(self) -> np.ndarray:
        view = self.numpy_view().view()
        view.flags.writeable = False
        return view

    # --- conversions ------------------------------------------------------------------------

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if dtypes.is_key(self.type.dtype):
            raise DTypeError(
                "an array of random keys has no NumPy form; use fxarray.random.key_data(keys)"
            )
        if copy:
            array = self.numpy_view().copy()
            return array if dtype is None else array.astype(dtype, copy=False)
        view = self._readonly()
        return view if dtype is None else view.astype(dtype, copy=False)

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: Any = None,
        copy: bool | None = None,
    ) -> Any:
        # Consumers of DLPack 1 learn that the memory is read-only; older ones cannot be told, so
        # they get a copy of their own unless they ask to share.
        if max_version is not None and max_version[0] >= 1:
            return self._readonly().__dlpack__(
                max_version=max_version, dl_device=dl_device, copy=copy
            )
        array = self.numpy_view()
        return (array if copy is False else array.copy()).__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def __bool__(self) -> bool:
        if self.type.shape and self.type.size != 1:
            raise ArgumentError(
                f"the truth value of an array of type {self.type} is ambiguous; use .any() or "
                f".all()"
            )
        return bool(self._numbers("bool"))

    def _numbers(self, name: str) -> np.ndarray:
        if dtypes.is_key(self.type.dtype):
            raise DTypeError(f"random keys cannot be converted by {name}()")
        return self.numpy_view()

    def _scalar(self, name: str) -> Any:
        buffer = self._numbers(name)
        if buffer.size != 1 or buffer.ndim:
            raise ShapeError(
                f"{name}() takes a 0-dimensional array, got {self.type}; index it first, as in x[0]"
            )
        return buffer[()]

    def __int__(self) -> int:
        return int(self._scalar("int"))

    def __float__(self) -> float:
        return float(self._scalar("float"))

    def __complex__(self) -> complex:
        return complex(self._scalar("complex"))

    def __index__(self) -> int:
        value = self._scalar("operator.index")
        if not dtypes.is_integer(self.type.dtype) and not dtypes.is_bool(self.type.dtype):
            raise DTypeError(f"only integer arrays can be used as an index, got {self.type}")
        return int(value)

    def item(self, *args: Any) -> Any:
        """The value as a Python scalar; with arguments, of one element."""
        return self._numbers("item").item(*args)

    def tolist(self) -> Any:
        """The values as nested lists of Python scalars."""
        return self._numbers("tolist").tolist()

    def tobytes(self) -> bytes:
        return self.numpy_view().tobytes()

    def __reduce__(self) -> Any:
        buffer = np.ascontiguousarray(self.numpy_view()).reshape(self.numpy_view().shape)
        return (_unpickle, (buffer.tobytes(), self.type))

    # --- life of the buffer -----------------------------------------------------------------

    def block_until_ready(self) -> DeviceArray:
        """Wait until the values are computed, and return the array."""
        self.numpy_view()
        return self

    def delete(self) -> None:
        """Free the buffer now; any later use raises DeletedArrayError."""
        if not self.is_deleted():
            del self._np

    def is_deleted(self) -> bool:
        return not hasattr(self, "_np")

    def is_ready(self) -> bool:
        return not self.is_deleted()

    @property
    def device(self) -> Device:
        """Where the array is."""
        return HOST

    def devices(self) -> set[Device]:
        """Where the parts of the array are."""
        return {HOST}

    @property
    def committed(self) -> bool:
        return False

    @property
    def is_fully_addressable(self) -> bool:
        return True

    @property
    def is_fully_replicated(self) -> bool:
        return True

    def __repr__(self) -> str:
        if self.is_deleted():
            return f"Array(<deleted>, {self.type})"
        if dtypes.is_key(self.type.dtype):
            body = f"keys of shape {self.type.shape}"
            return f"Array({body}, dtype={self.type.dtype.name})"
        prefix = "Array("
        array = self._np
        if array.dtype.kind == "V" and array.dtype != dtypes.float0:
            array = array.astype(np.float32 if dtypes.is_float(self.type.dtype) else np.int32)
        body = np.array2string(array, separator=", ", prefix=prefix, threshold=1000)
        weak = ", weak_type=True" if self.type.weak else ""
        size = f", shape={self.type.shape}" if self.type.size == 0 or array.size > 1000 else ""
        return f"{prefix}{body}, dtype={self.type.dtype.name}{size}{weak})"

    def __str__(self) -> str:
        if self.is_deleted() or dtypes.is_key(self.type.dtype):
            return repr(self)
        return str(self._np)


def _unpickle(data: bytes, type: ArrayType) -> DeviceArray:
    physical = dtypes.physical(type.dtype)
    return DeviceArray(np.frombuffer(bytearray(data), physical).reshape(type.shape), type)
