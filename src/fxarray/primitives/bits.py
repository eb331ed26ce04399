"""Random bits, and keys from keys: every random number of fxarray starts at one of these.

A key array has dtype `key<fry>` and holds one uint64 per key, so everything that moves elements
works on it as it is. The operations here draw for each key of an operand on its own: the result's
shape is the keys' shape followed by the drawn one, which makes mapping over keys a matter of shape
alone. `primitives.threefry` has the arithmetic.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from fxarray.core import dims, dtypes
from fxarray.core.array import DeviceArray
from fxarray.core.dtypes import DType
from fxarray.core.errors import ArgumentError, DTypeError, ShapeError
from fxarray.core.factors import Factors, letters
from fxarray.core.hooks import operators
from fxarray.core.primitive import Primitive, Sample
from fxarray.core.types import ArrayType, Shape
from fxarray.kernel.build import Builder, Index, Lowered, kernel_dtype
from fxarray.kernel.ir import Affine
from fxarray.kernel.sizes import kernel_shape
from fxarray.primitives import threefry
from fxarray.primitives.elementwise_base import align_batch_axes, common_shape
from fxarray.primitives.lowering import elementwise
from fxarray.primitives.lowering_bits import counter_words, paired_words, threefry_words

BIT_WIDTHS = (8, 16, 32, 64)
_EXCUSED = {"transpose": "keys and bits have no derivatives"}


def require_keys(name: str, type: ArrayType) -> None:
    """Raise unless an operand holds random keys.

    Raises:
      DTypeError: it does not.
    """
    if not dtypes.is_key(type.dtype):
        raise DTypeError(
            f"{name}: operand 0 is {type}, but random keys are wanted; make one by "
            f"random.key(seed), or from raw words by random.wrap_key_data(words)"
        )


class _PerKey(Primitive):
    """What operations share that make an array of `shape` from each key."""

    shape: Shape

    @property
    def result_dtype(self) -> DType:
        raise NotImplementedError

    def infer(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        (keys,) = types
        require_keys(self.name, keys)
        for size in self.shape:
            if isinstance(size, int) and size < 0:
                raise ShapeError(f"{self.name}: sizes must not be negative, got shape {self.shape}")
        return (ArrayType(keys.shape + self.shape, self.result_dtype),)

    def lower(self, builder: Builder, *operands: Lowered) -> tuple[Lowered, ...]:
        (keys,), shape = operands, kernel_shape(self.shape)
        dtype, rank = kernel_dtype(self.result_dtype), len(keys.shape)

        def element(index: Index) -> int:
            number = Affine()
            for size, place in zip(shape, index[rank:], strict=True):
                number = number * size + place
            high, low = counter_words(builder, number)
            words = threefry_words(builder, keys.element(index[:rank]), high, low)
            if dtype == "u64":
                return paired_words(builder, *words)
            return builder.convert(builder.op("xor", *words), dtype)

        return (builder.lowered((*keys.shape, *shape), dtype, element),)

    def batch(
        self, size: Any, axis_name: Hashable, operands: Sequence[Any], axes: Sequence[int | None]
    ) -> tuple[Sequence[Any], Sequence[int | None]]:
        (keys,), (axis,) = operands, axes
        # The keys' dimensions lead those of the result, in order, so the mapped one stays in place.
        return self.bind(keys), (axis,)

    def shard(self, *types: ArrayType) -> Factors:
        (keys,) = types
        names = letters(keys.ndim + len(self.shape))
        # A device draws whole the part that its keys stand for: its counters start at zero.
        return Factors((names[: keys.ndim],), (names,), whole=frozenset(names[keys.ndim :]))


class RandomBits(_PerKey, name="random_bits"):
    """Random bits for each key: unsigned integers of `bit_width` in an array of `shape`."""

    bit_width: int
    EXCUSED: ClassVar[dict[str, str]] = _EXCUSED
    differentiable: ClassVar[bool] = False

    @property
    def result_dtype(self) -> DType:
        return np.dtype(f"uint{self.bit_width}")

    def infer(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        if self.bit_width not in BIT_WIDTHS:
            raise ArgumentError(
                f"random_bits: bit_width is {self.bit_width}, not one of {BIT_WIDTHS}"
            )
        return super().infer(*types)

    def reference(self, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        return (threefry.draw(arrays[0], dims_to_ints(self.shape), self.bit_width),)

    def eager(self, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        return (threefry.draw_fast(arrays[0], dims_to_ints(self.shape), self.bit_width),)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Any]:
        yield Sample(cls((), 32), (random_keys(rng, ()),))
        yield Sample(cls((0, 3), 8), (random_keys(rng, (2,)),))
        yield Sample(cls((5,), 16), (random_keys(rng, (0,)),))
        yield Sample(cls((2, 7), 64), (random_keys(rng, (3,)),))
        yield Sample(cls((300,), 32), (random_keys(rng, (2, 4)),))
        yield Sample(cls((9001,), 8), (random_keys(rng, (2,)),))
        yield Sample(cls((3,), 32), (np.ones(2, np.uint32),), error=DTypeError)
        yield Sample(cls((3,), 12), (random_keys(rng, ()),), error=ArgumentError)


class RandomSplit(_PerKey, name="random_split"):
    """New keys from each key, in an array of `shape`."""

    EXCUSED: ClassVar[dict[str, str]] = _EXCUSED
    differentiable: ClassVar[bool] = False

    @property
    def result_dtype(self) -> DType:
        return dtypes.key_dtype

    def reference(self, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        return (threefry.draw(arrays[0], dims_to_ints(self.shape), 64),)

    def eager(self, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        return (threefry.draw_fast(arrays[0], dims_to_ints(self.shape), 64),)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Any]:
        yield Sample(cls(()), (random_keys(rng, ()),))
        yield Sample(cls((0,)), (random_keys(rng, (3,)),))
        yield Sample(cls((2,)), (random_keys(rng, ()),))
        yield Sample(cls((2, 5)), (random_keys(rng, (3, 4)),))
        yield Sample(cls((2,)), (np.ones(3, np.uint64),), error=DTypeError)


class FoldIn(Primitive, name="fold_in"):
    """A new key from each key and uint32 number; 0-dimensional operands go with any shape."""

    EXCUSED: ClassVar[dict[str, str]] = _EXCUSED
    differentiable: ClassVar[bool] = False

    def infer(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        keys, data = types
        require_keys(self.name, keys)
        if data.dtype != np.dtype("uint32"):
            raise DTypeError(f"fold_in: operand 1 is {data}, but uint32 numbers are wanted")
        return (ArrayType(common_shape(self.name, types), dtypes.key_dtype),)

    def reference(self, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        keys, data = np.broadcast_arrays(*arrays)
        folded = threefry.fold_in(np.atleast_1d(keys), np.atleast_1d(data))
        return (folded.reshape(keys.shape),)

    def eager(self, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        keys, data = arrays
        if keys.ndim or data.ndim:
            return self.reference(keys, data)
        return (np.array(threefry.hash_one(keys.item(), data.item()), np.uint64),)

    def lower(self, builder: Builder, *operands: Lowered) -> tuple[Lowered, ...]:
        def scalar(k: Builder, key: int, data: int) -> int:
            return paired_words(k, *threefry_words(k, key, k.constant(0, "u32"), data))

        return (elementwise(builder, operands, "u64", scalar),)

    def batch(
        self, size: Any, axis_name: Hashable, operands: Sequence[Any], axes: Sequence[int | None]
    ) -> tuple[Sequence[Any], Sequence[int | None]]:
        moved, axis = align_batch_axes(size, operands, axes)
        return self.bind(*moved), (axis,)

    def shard(self, *types: ArrayType) -> Factors:
        ranks = [type.ndim for type in types]
        return Factors.elementwise(ranks, [max(ranks)])

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Any]:
        def numbers(shape: tuple[int, ...]) -> np.ndarray:
            return rng.integers(0, 2**32, shape, np.uint32)

        yield Sample(cls(), (random_keys(rng, ()), numbers(())))
        yield Sample(cls(), (random_keys(rng, (0,)), numbers((0,))))
        yield Sample(cls(), (random_keys(rng, (2, 3)), numbers((2, 3))))
        yield Sample(cls(), (random_keys(rng, ()), numbers((5,))))
        yield Sample(cls(), (random_keys(rng, (4,)), numbers(())))
        yield Sample(cls(), (random_keys(rng, (4,)), numbers((3,))), error=ShapeError)
        yield Sample(cls(), (random_keys(rng, ()), np.ones((), np.int32)), error=DTypeError)


class KeyData(Primitive, name="key_data"):
    """The two uint32 words of each key, along a new last dimension."""

    EXCUSED: ClassVar[dict[str, str]] = _EXCUSED
    differentiable: ClassVar[bool] = False

    def infer(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        (keys,) = types
        require_keys(self.name, keys)
        return (ArrayType((*keys.shape, 2), np.dtype("uint32")),)

    def reference(self, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        return (np.stack(threefry.halves(arrays[0]), axis=-1),)

    def lower(self, builder: Builder, *operands: Lowered) -> tuple[Lowered, ...]:
        (keys,) = operands

        def element(index: Index) -> int:
            # The first word is the high one.
            place = builder.iota(index[-1] * -32 + 32, "i32")
            key = keys.element(index[:-1])
            word = builder.op("shr_logical", key, builder.convert(place, "u64"))
            return builder.convert(word, "u32")

        return (builder.lowered((*keys.shape, 2), "u32", element),)

    def batch(
        self, size: Any, axis_name: Hashable, operands: Sequence[Any], axes: Sequence[int | None]
    ) -> tuple[Sequence[Any], Sequence[int | None]]:
        return self.bind(*operands), (axes[0],)

    def shard(self, *types: ArrayType) -> Factors:
        names = letters(types[0].ndim)
        return Factors((names,), ((*names, "words"),), whole=frozenset(["words"]))

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Any]:
        for shape in ((), (0,), (3, 4)):
            yield Sample(cls(), (random_keys(rng, shape),))
        yield Sample(cls(), (np.ones(3, np.uint64),), error=DTypeError)


class WrapKeyData(Primitive, name="wrap_key_data"):
    """Keys from their uint32 words, two along the last dimension."""

    EXCUSED: ClassVar[dict[str, str]] = _EXCUSED
    differentiable: ClassVar[bool] = False

    def infer(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        (words,) = types
        if words.dtype != np.dtype("uint32"):
            raise DTypeError(f"wrap_key_data: operand 0 is {words}, but uint32 words are wanted")
        if not words.shape or not dims.same(words.shape[-1], 2):
            raise ShapeError(
                f"wrap_key_data: operand 0 is {words}, but a key has two words, so the last "
                f"dimension must have size 2"
            )
        return (ArrayType(words.shape[:-1], dtypes.key_dtype),)

    def reference(self, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        (words,) = arrays
        return (np.asarray(threefry.paired(words[..., 0], words[..., 1])),)

    def lower(self, builder: Builder, *operands: Lowered) -> tuple[Lowered, ...]:
        (words,) = operands

        def element(index: Index) -> int:
            first, second = (words.element((*index, Affine((), word))) for word in (0, 1))
            return paired_words(builder, first, second)

        return (builder.lowered(words.shape[:-1], "u64", element),)

    def batch(
        self, size: Any, axis_name: Hashable, operands: Sequence[Any], axes: Sequence[int | None]
    ) -> tuple[Sequence[Any], Sequence[int | None]]:
        (words,), (axis,) = operands, axes
        assert axis is not None
        return self.bind(operators.move_axis(words, axis, 0)), (0,)

    def shard(self, *types: ArrayType) -> Factors:
        names = letters(types[0].ndim - 1)
        whole = frozenset(["words"])
        return Factors(((*names, "words"),), (names,), {"words": "any"}, whole)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Iterator[Any]:
        for shape in ((2,), (0, 2), (3, 4, 2)):
            yield Sample(cls(), (rng.integers(0, 2**32, shape, np.uint32),))
        yield Sample(cls(), (np.ones((2, 3), np.uint32),), error=ShapeError)
        yield Sample(cls(), (np.ones(2, np.int32),), error=DTypeError)


# --- functions used by rules and by fxarray.random ------------------------------------------------


def key_array(words: np.ndarray) -> DeviceArray:
    """Concrete keys of uint64 values, each a key's first word followed by its second."""
    return DeviceArray(words, ArrayType(words.shape, dtypes.key_dtype))


def random_keys(rng: np.random.Generator, shape: tuple[int, ...]) -> DeviceArray:
    """Keys for samples."""
    return key_array(np.asarray(rng.integers(0, 2**64, shape, np.uint64)))


def dims_to_ints(shape: Shape) -> tuple[int, ...]:
    """A shape when the operation runs, by when every size is a number."""
    return tuple([size.__index__() for size in shape])
