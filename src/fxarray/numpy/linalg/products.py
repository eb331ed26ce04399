"""Products and parts of matrices; where names are NumPy's, their arguments differ a little."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fxarray.core.array import Array
from fxarray.core.errors import ArgumentError, ShapeError
from fxarray.numpy import linear_algebra
from fxarray.numpy.linalg.operands import as_matrices
from fxarray.numpy.linear_algebra import matmul, matrix_transpose, vecdot
from fxarray.numpy.promotion import ArrayLike, DTypeLike, promote_dtypes
from fxarray.primitives.linalg import inverse
from fxarray.primitives.linalg_base import identity

__all__ = [
    "cross",
    "diagonal",
    "matmul",
    "matrix_power",
    "matrix_transpose",
    "multi_dot",
    "outer",
    "tensordot",
    "trace",
    "vecdot",
]


def cross(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1) -> Array:
    """The cross product of vectors of 3 components along `axis`.

    Raises:
      ShapeError: vectors have another number of components.

    >>> import fxarray.numpy as fnp
    >>> fnp.linalg.cross(fnp.array([1, 0, 0]), fnp.array([0, 1, 0]))
    Array([0, 0, 1], dtype=int32)
    """
    for x in promote_dtypes("linalg.cross", x1, x2):
        if not x.ndim or x.shape[axis] != 3:
            raise ShapeError(f"linalg.cross takes vectors of 3 components, got {x.type}")
    return linear_algebra.cross(x1, x2, axis=axis)


def outer(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """All products of an element of one vector with an element of another.

    Raises:
      ShapeError: an operand is no vector.

    >>> import fxarray.numpy as fnp
    >>> fnp.linalg.outer(fnp.array([1, 2]), fnp.array([3, 4]))
    Array([[3, 4],
           [6, 8]], dtype=int32)
    """
    for x in promote_dtypes("linalg.outer", x1, x2):
        if x.ndim != 1:
            raise ShapeError(f"linalg.outer takes vectors, got {x.type}; see fxarray.numpy.outer")
    return linear_algebra.outer(x1, x2)


def tensordot(
    x1: ArrayLike,
    x2: ArrayLike,
    /,
    *,
    axes: Any = 2,
    precision: Any = None,
    preferred_element_type: DTypeLike = None,
    out_sharding: Any = None,
) -> Array:
    """The sum of products over given axes; see `fxarray.numpy.tensordot`."""
    return linear_algebra.tensordot(
        x1,
        x2,
        axes,
        precision=precision,
        preferred_element_type=preferred_element_type,
        out_sharding=out_sharding,
    )


def diagonal(x: ArrayLike, /, *, offset: int = 0) -> Array:
    """The diagonals of matrices.

    Args:
      x: shape (..., m, n).
      offset: how far to the right of the main diagonal.

    >>> import fxarray.numpy as fnp
    >>> fnp.linalg.diagonal(fnp.eye(2))
    Array([1., 1.], dtype=float32)
    """
    return linear_algebra.diagonal(x, offset, -2, -1)


def trace(x: ArrayLike, /, *, offset: int = 0, dtype: DTypeLike = None) -> Array:
    """The sums of the diagonals of matrices; see `diagonal`."""
    return linear_algebra.trace(x, offset, -2, -1, dtype)


def matrix_power(a: ArrayLike, n: int) -> Array:
    """Square matrices multiplied with themselves; for negative `n`, their inverses.

    Args:
      a: shape (..., m, m).
      n: an integer.

    >>> import fxarray.numpy as fnp
    >>> fnp.linalg.matrix_power(fnp.array([[1, 1], [0, 1]]), 3)
    Array([[1, 3],
           [0, 1]], dtype=int32)
    """
    try:
        count = n.__index__()
    except AttributeError:
        raise ArgumentError(f"linalg.matrix_power: n must be an integer, got {n!r}") from None
    checked = as_matrices("matrix_power", a, square=True)
    if count < 0:
        power, count = inverse(checked), -count
    else:
        (power,) = promote_dtypes("linalg.matrix_power", a)
    if not count:
        return identity(power, power.shape[-1])
    result: Array | None = None
    while True:  # by the binary digits of n
        if count & 1:
            result = power if result is None else matmul(result, power)
        count >>= 1
        if not count:
            assert result is not None
            return result
        power = matmul(power, power)


def multi_dot(arrays: Sequence[ArrayLike], *, precision: Any = None) -> Array:
    """The product of several matrices, in the order that takes the fewest multiplications.

    Args:
      arrays: at least two; all are matrices, except that the first and last may be vectors.
      precision: how exactly to multiply, where a device offers a choice.

    Raises:
      ShapeError: another one is no matrix.

    >>> import fxarray.numpy as fnp
    >>> fnp.linalg.multi_dot([fnp.ones((2, 3)), fnp.ones((3, 4)), fnp.ones(4)])
    Array([12., 12.], dtype=float32)
    """
    operands = promote_dtypes("linalg.multi_dot", *arrays)
    if len(operands) < 2:
        raise ArgumentError(f"linalg.multi_dot takes at least 2 arrays, got {len(operands)}")
    for position, x in enumerate(operands):
        inside = 0 < position < len(operands) - 1
        if x.ndim != 2 and (inside or x.ndim != 1):
            raise ShapeError(
                f"linalg.multi_dot: operand {position} is {x.type}; all must be matrices, and only "
                f"the first and last may be vectors"
            )
    first, last = operands[0], operands[-1]
    sizes: list[Any] = [1 if first.ndim == 1 else first.shape[0]]
    sizes += [x.shape[0] for x in operands[1:]]
    sizes.append(1 if last.ndim == 1 else last.shape[1])
    if not all(type(size) is int for size in sizes):
        product = first
        for x in operands[1:]:
            product = matmul(product, x, precision=precision)
        return product
    splits = _best_splits(sizes)

    def multiply(start: int, stop: int) -> Array:
        if start == stop:
            return operands[start]
        middle = splits[start, stop]
        return matmul(multiply(start, middle), multiply(middle + 1, stop), precision=precision)

    return multiply(0, len(operands) - 1)


def _best_splits(sizes: Sequence[int]) -> dict[tuple[int, int], int]:
    """Where to cut each chain of matrices; matrix i is sizes[i] by sizes[i + 1].

    Source: Godbole, On efficient computation of matrix chain products, 1973.
    """
    count = len(sizes) - 1
    costs = {(i, i): 0 for i in range(count)}
    splits: dict[tuple[int, int], int] = {}
    for length in range(1, count):
        for start in range(count - length):
            stop = start + length
            costs[start, stop], splits[start, stop] = min(
                (
                    costs[start, middle]
                    + costs[middle + 1, stop]
                    + sizes[start] * sizes[middle + 1] * sizes[stop + 1],
                    middle,
                )
                for middle in range(start, stop)
            )
    return splits
