"""The discrete Fourier transform over the last dimensions."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from fxarray.core import dims, dtypes
from fxarray.core.errors import ArgumentError, DTypeError, ShapeError
from fxarray.core.factors import Factors, letters
from fxarray.core.hooks import operators
from fxarray.core.primitive import Primitive, Sample
from fxarray.core.types import ArrayType, Shape
from fxarray.primitives.create import Iota
from fxarray.primitives.elementwise import (
    complex,
    conj,
    convert,
    eq,
    mul,
    number_like,
    real,
    select,
)
from fxarray.primitives.movement import broadcast_in_dim
from fxarray.primitives.slicing import pad
from fxarray.primitives.support import COMPLEX, FLOAT, Values, describe_groups, group_of, widened

FFT, IFFT, RFFT, IRFFT = "FFT", "IFFT", "RFFT", "IRFFT"
KINDS = (FFT, IFFT, RFFT, IRFFT)


class Fft(Primitive, name="fft"):
    """The discrete Fourier transform over the last dimensions.

    "FFT" sums x_j exp(-2 pi i j k / n); "IFFT" is its inverse, with factor 1/n. "RFFT" is that of
    real numbers, of which the last dimension keeps the first n // 2 + 1 results, which determine
    the others; "IRFFT" is its inverse, where the parts that a transform of real numbers cannot have
    are ignored.

    Args:
      kind: one of these.
      lengths: the sizes n of the transforms; for "IRFFT" the last is that of the result.
    """

    kind: str
    lengths: tuple[int, ...]
    EXCUSED: ClassVar[dict[str, str]] = {"lower": "it is a library call, which a device makes"}
    linear_operands: ClassVar[tuple[int, ...]] = (0,)

    def infer(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        (x,) = types
        if self.kind not in KINDS:
            raise ArgumentError(f"fft: the kind must be one of {KINDS}, got {self.kind!r}")
        count = len(self.lengths)
        accepted = FLOAT if self.kind == RFFT else COMPLEX
        narrow = dtypes.is_narrow_float(x.dtype)
        if not group_of(x.dtype) & accepted or narrow:
            wanted = "float32, float64" if accepted == FLOAT else describe_groups(accepted)
            raise DTypeError(f"fft: {self.kind} takes {wanted}, got {x}. Cast it with .astype().")
        if not count or count > x.ndim:
            raise ShapeError(f"fft: lengths {self.lengths} must be those of last dimensions of {x}")
        given, expected = x.shape[x.ndim - count :], self._shapes()[0]
        if not all(map(dims.same, given, expected)):
            raise ShapeError(
                f"fft: {self.kind} of lengths {self.lengths} takes an operand whose "
                f"last dimensions are {expected}, got {x}"
            )
        dtype = x.dtype
        if self.kind == RFFT:
            dtype = dtypes.to_complex(dtype)
        elif self.kind == IRFFT:
            dtype = dtypes.to_real(dtype)
        return (ArrayType((*x.shape[: x.ndim - count], *self._shapes()[1]), dtype),)

    def _shapes(self) -> tuple[Shape, Shape]:
        """The last dimensions of operand and result."""
        half = (*self.lengths[:-1], self.lengths[-1] // 2 + 1)
        return (
            half if self.kind == IRFFT else self.lengths,
            half if self.kind == RFFT else self.lengths,
        )

    def reference(self, *arrays: Values) -> tuple[Values, ...]:
        (x,) = arrays
        return (self._transform(widened(x), np.result_type(x.dtype, np.float32)),)

    def eager(self, *arrays: Values) -> tuple[Values, ...]:
        (x,) = arrays
        return (self._transform(x, x.dtype),)

    def _transform(self, x: Values, dtype: np.dtype[Any]) -> Values:
        count = len(self.lengths)
        given: Any = dtypes.to_complex(dtype) if self.kind == RFFT else dtype
        result_dtype: Any = dtypes.to_real(given) if self.kind == IRFFT else given
        shape: Any = (*x.shape[: x.ndim - count], *self._shapes()[1])
        if not math.prod(shape) or not x.size:
            return np.zeros(shape, result_dtype)
        axes = tuple(range(x.ndim - count, x.ndim))
        with np.errstate(all="ignore"):
            if self.kind == FFT:
                value: Any = np.fft.fftn(x, axes=axes)
            elif self.kind == IFFT:
                value = np.fft.ifftn(x, axes=axes)
            elif self.kind == RFFT:
                value = np.fft.rfftn(x, axes=axes)
            else:
                value = np.fft.irfftn(x, self.lengths, axes)
            return np.asarray(value).astype(result_dtype, copy=False)

    def transpose(self, cotangents: Sequence[Any], *operands: Any) -> Sequence[Any]:
        # The matrix W of a transform is symmetric, so FFT and IFFT are their own transposes. RFFT
        # keeps some of its rows, and its operand is real: the real part of W times the cotangent,
        # with zeros for the rows that were left out. IRFFT is the real part of W X / n, where terms
        # that stand for two (all but the first and, if n is even, the middle one) count twice.
        (cotangent,) = cotangents
        if self.kind in (FFT, IFFT):
            return self.bind(cotangent)
        rank = cotangent.type.ndim
        last = self.lengths[-1]
        if self.kind == RFFT:
            missing = last - (last // 2 + 1)
            config = [(0, 0, 0)] * (rank - 1) + [(0, missing, 0)]
            whole = pad(cotangent, number_like(cotangent, 0), config)
            return (real(Fft(FFT, self.lengths)(whole)),)
        spectrum = conj(Fft(RFFT, self.lengths)(cotangent))
        size = last // 2 + 1
        position = Iota(dtypes.int32, (size,), 0)()
        twice = convert(position, cotangent.type.dtype)
        one, two = number_like(twice, 1), number_like(twice, 2)
        weight = select(eq(position, number_like(position, 0)), one, two)
        if last % 2 == 0:
            weight = select(eq(position, number_like(position, last // 2)), one, weight)
        weight = mul(weight, number_like(weight, 1 / math.prod(self.lengths)))
        weight = broadcast_in_dim(weight, spectrum.type.shape, (rank - 1,))
        return (mul(spectrum, complex(weight, number_like(weight, 0))),)

    def batch(
        self, size: Any, axis_name: Hashable, operands: Sequence[Any], axes: Sequence[int | None]
    ) -> tuple[Sequence[Any], Sequence[int | None]]:
        (x,), (axis,) = operands, axes
        assert axis is not None
        return self.bind(operators.move_axis(x, axis, 0)), (0,)

    def shard(self, *types: ArrayType) -> Factors:
        rank, count = types[0].ndim, len(self.lengths)
        names = letters(rank + 1)
        operand = result = names[:rank]
        gone: dict[str, str] = {}
        if self.kind in (RFFT, IRFFT):  # the last dimension has another size afterwards
            result = (*names[: rank - 1], names[rank])
            gone = {names[rank - 1]: "any"}
        whole = frozenset((*operand[rank - count :], *result[rank - count :]))
        return Factors((operand,), (result,), gone, whole, (0,))

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Any]:
        def normal(*shape: int) -> np.ndarray:
            return rng.normal(size=shape)

        def complexes(*shape: int) -> np.ndarray:
            return normal(*shape) + 1j * normal(*shape)

        yield Sample(cls(FFT, (1,)), (complexes(1),))
        yield Sample(cls(FFT, (4,)), (complexes(0, 4),))
        yield Sample(cls(RFFT, (1,)), (normal(2, 1),))
        for kind in (FFT, IFFT):
            yield Sample(cls(kind, (5,)), (complexes(2, 5),), 64.0)
            yield Sample(cls(kind, (3, 4)), (complexes(2, 3, 4),), 64.0)
        for length in (6, 7):
            yield Sample(cls(RFFT, (length,)), (normal(2, length),), 64.0)
            yield Sample(cls(RFFT, (3, length)), (normal(2, 3, length),), 64.0)
            yield Sample(cls(IRFFT, (length,)), (complexes(2, length // 2 + 1),), 64.0)
            yield Sample(cls(IRFFT, (3, length)), (complexes(3, length // 2 + 1),), 64.0)
        yield Sample(cls(FFT, (6,)), (complexes(6).astype("complex64"),), 64.0)
        yield Sample(cls(RFFT, (6,)), (normal(6).astype("float32"),), 64.0)
        yield Sample(cls(IRFFT, (6,)), (complexes(4).astype("complex64"),), 64.0)
        yield Sample(cls(FFT, (4,)), (complexes(5),), error=ShapeError)
        yield Sample(cls(FFT, (4,)), (normal(4),), error=DTypeError)
        yield Sample(cls("DCT", (4,)), (normal(4),), error=ArgumentError)
