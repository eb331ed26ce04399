"""Keys: making them, deriving new ones, and looking inside.

A key is an immutable value, and drawing from it does not change it: the same key and call give the
same numbers always. For independent numbers derive new keys by `split` or `fold_in`.

Typed keys (from `key`) have dtype `key<fry>`. Raw keys (from `PRNGKey`), arrays of two uint32
words, are accepted wherever a key is, and give raw keys back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fxarray import numpy as fnp
from fxarray.core import dtypes
from fxarray.core.array import Array
from fxarray.core.errors import ArgumentError, DTypeError, ShapeError
from fxarray.numpy.conversion import cast_to
from fxarray.numpy.promotion import as_operand, canonical_shape
from fxarray.primitives import bits as primitives

_IMPLEMENTATION = "threefry2x32"
_SAME = (None, _IMPLEMENTATION, "fry", "key<fry>", dtypes.key_dtype)


def _check_implementation(function: str, impl: Any, dtype: Any = None) -> None:
    if impl is not None and dtype is not None:
        raise ArgumentError(f"{function}: give impl or dtype, not both")
    for asked in (impl, dtype):
        if asked not in _SAME:
            raise ArgumentError(
                f"{function}: the generator of fxarray is {_IMPLEMENTATION!r}; {asked!r} is not "
                f"available"
            )


def _typed(function: str, value: Any) -> tuple[Array, bool]:
    """`value` as an array of typed keys, and whether it was one of raw words."""
    if isinstance(value, Array) and dtypes.is_key(value.type.dtype):
        return value, False
    dtype, shape = getattr(value, "dtype", None), getattr(value, "shape", ())
    if dtype == np.dtype("uint32") and len(shape) >= 1 and shape[-1] == 2:
        return primitives.WrapKeyData()(as_operand(function, value)), True
    kind = f"the {type(value).__name__} {value!r}" if dtype is None else f"{dtype} of shape {shape}"
    raise DTypeError(
        f"{function}: a random key is wanted, got {kind}; make one by fxarray.random.key(seed)"
    )


def single_key(function: str, value: Any) -> tuple[Array, bool]:
    """One typed key from a typed or raw one, and whether it was raw.

    Args:
      function: whose argument it is, for messages.
      value: the argument.

    Raises:
      DTypeError: it is no key.
      ShapeError: it holds several keys.
    """
    key, raw = _typed(function, value)
    if key.type.shape:
        raise ShapeError(
            f"{function} takes a single key, got keys of shape {key.type.shape}. Use vmap to draw "
            f"for each, or index one, as in keys[0]."
        )
    return key, raw


def _as_given(key: Array, raw: bool) -> Array:
    return primitives.KeyData()(key) if raw else key


def _seed_word(seed: int) -> int:
    if not -(2**63) <= seed < 2**64:
        raise OverflowError(f"a seed has 64 bits at most, and {seed} has more")
    # Without its x64 flag, which few of its users set, JAX takes seeds as 32-bit numbers.
    return seed & (0xFFFFFFFF if -(2**31) <= seed < 2**32 else 0xFFFFFFFFFFFFFFFF)


def _seeded(function: str, seed: Any) -> Array:
    if isinstance(seed, int | np.integer) and not isinstance(seed, np.bool_):
        return primitives.key_array(np.array(_seed_word(int(seed)), np.uint64))
    if not hasattr(seed, "dtype") or dtypes.is_key(seed.dtype):
        kind = "a key already" if hasattr(seed, "dtype") else f"{seed!r}"
        raise DTypeError(f"{function} takes an integer seed, got {kind}")
    number = as_operand(function, seed)
    if number.type.shape:
        raise ShapeError(
            f"{function} takes one seed, got {number.type}; use vmap({function}) for one key per "
            f"seed"
        )
    if not dtypes.is_integer(number.type.dtype):
        raise DTypeError(f"{function} takes an integer seed, got {number.type}")
    low = cast_to(number, dtypes.uint32)
    wide = dtypes.bit_width(number.type.dtype) == 64
    upper = cast_to(number, dtypes.uint64) >> 32 if wide else low * 0
    return primitives.WrapKeyData()(fnp.stack([cast_to(upper, dtypes.uint32), low]))


def key(seed: Any, *, impl: Any = None, dtype: Any = None) -> Array:
    """A random key from an integer seed.

    Seeds from -2**31 to 2**32 - 1 give the keys that JAX gives; of larger ones every bit counts, as
    in JAX with its x64 flag. A 64-bit array counts as large whatever its value.

    Args:
      seed: an integer of up to 64 bits, or a 0-dimensional integer array.
      impl: the generator; "threefry2x32" is the one there is.
      dtype: the same, by dtype.

    Returns:
      A 0-dimensional array of dtype `key<fry>`.

    Raises:
      DTypeError: the seed is not an integer.
      ShapeError: the seed is an array of several.
      OverflowError: the seed has more than 64 bits.
      ArgumentError: another generator is asked for.

    >>> from fxarray import random
    >>> random.key_data(random.key(42))
    Array([ 0, 42], dtype=uint32)
    """
    _check_implementation("key", impl, dtype)
    return _seeded("key", seed)


def PRNGKey(seed: Any, *, impl: Any = None) -> Array:
    """A raw random key, two uint32 words, from an integer seed; see `key`.

    >>> from fxarray import random
    >>> random.PRNGKey(42)
    Array([ 0, 42], dtype=uint32)
    """
    _check_implementation("PRNGKey", impl)
    return primitives.KeyData()(_seeded("PRNGKey", seed))


def split(key: Any, num: int | Sequence[int] = 2) -> Array:
    """New, independent keys from one.

    Args:
      key: a random key.
      num: how many keys, or the shape of the array of keys.

    Returns:
      Keys of shape `num`, of which the i-th is `fold_in(key, i)`. Raw if `key` is raw.

    Raises:
      DTypeError, ShapeError: `key` is not a single key.

    >>> from fxarray import random
    >>> first, second = random.split(random.key(0))
    >>> random.key_data(first)
    Array([1797259609, 2579123966], dtype=uint32)
    >>> random.split(random.key(0), (2, 3)).shape
    (2, 3)
    """
    single, raw = single_key("split", key)
    return _as_given(primitives.RandomSplit(canonical_shape("split", num))(single), raw)


def fold_in(key: Any, data: Any) -> Array:
    """A new key from a key and an integer: the step of a loop, or the number of a process.

    Args:
      key: a random key.
      data: an integer from 0 to 2**32 - 1; integers in arrays wrap to that range.

    Raises:
      DTypeError, ShapeError: `key` is not a single key, or `data` not a single integer.
      OverflowError: a Python integer out of range.

    >>> from fxarray import random
    >>> random.key_data(random.fold_in(random.key(0), 1))
    Array([ 928981903, 3453687069], dtype=uint32)
    """
    single, raw = single_key("fold_in", key)
    if isinstance(data, int):
        if not 0 <= data < 2**32:
            raise OverflowError(f"fold_in: data must be from 0 to 2**32 - 1, got {data}")
        number = as_operand("fold_in", np.array(data, np.uint32))
    else:
        number = as_operand("fold_in", data, 1)
        if number.type.shape:
            raise ShapeError(f"fold_in takes one number, got {number.type}; use vmap for several")
        if not dtypes.is_integer(number.type.dtype) and not dtypes.is_bool(number.type.dtype):
            raise DTypeError(f"fold_in takes an integer, got {number.type}")
        number = cast_to(number, dtypes.uint32)
    return _as_given(primitives.FoldIn()(single, number), raw)


def key_data(keys: Any) -> Array:
    """The words of keys, two uint32 along a new last axis.

    >>> from fxarray import random
    >>> random.key_data(random.key(7))
    Array([0, 7], dtype=uint32)
    """
    return primitives.KeyData()(_typed("key_data", keys)[0])


def wrap_key_data(key_bits_array: Any, *, impl: Any = None, dtype: Any = None) -> Array:
    """Typed keys of raw words; the inverse of `key_data`.

    Args:
      key_bits_array: uint32 words, two along the last axis.
      impl: the generator; "threefry2x32" is the one there is.
      dtype: the same, by dtype.

    Raises:
      DTypeError: the words are not uint32.
      ShapeError: the last axis does not have size 2.
      ArgumentError: another generator is asked for.

    >>> from fxarray import random
    >>> random.wrap_key_data(random.PRNGKey(3)).dtype
    key<fry>
    """
    _check_implementation("wrap_key_data", impl, dtype)
    return primitives.WrapKeyData()(as_operand("wrap_key_data", key_bits_array))


def key_impl(keys: Any) -> str:
    """The name of the generator that keys belong to.

    >>> from fxarray import random
    >>> random.key_impl(random.key(0))
    'threefry2x32'
    """
    _typed("key_impl", keys)
    return _IMPLEMENTATION


def key_dtype(impl: Any = None) -> dtypes.KeyDType:
    """The dtype of typed keys.

    >>> from fxarray import random
    >>> random.key_dtype()
    key<fry>
    """
    _check_implementation("key_dtype", impl)
    return dtypes.key_dtype


def clone(key: Any) -> Array:
    """The same keys: for code that asks where a key is used twice on purpose.

    >>> from fxarray import random
    >>> random.key_impl(random.clone(random.key(0)))
    'threefry2x32'
    """
    typed, raw = _typed("clone", key)
    return _as_given(typed, raw)
