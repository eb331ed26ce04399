"""Linear algebra functions: products of vectors, matrices and tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from fxarray.core.array import Array
from fxarray.core.context import context
from fxarray.core.errors import ArgumentError, ShapeError
from fxarray.core.types import shape_key
from fxarray.lax.contract import as_result_dtype
from fxarray.numpy.arithmetic import multiply
from fxarray.numpy.contraction import contract
from fxarray.numpy.conversion import cast_to, place
from fxarray.numpy.elementary import conjugate
from fxarray.numpy.promotion import (
    ArrayLike,
    DTypeLike,
    as_operand,
    canonical_axes,
    canonical_axis,
    promote_dtypes,
    reject_out,
    same_shape,
)
from fxarray.primitives.contract import DotGeneral
from fxarray.primitives.joining import concatenate, split
from fxarray.primitives.movement import move_axis, reshape, transpose


def matmul(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: Any = None,
    preferred_element_type: DTypeLike = None,
    out_sharding: Any = None,
) -> Array:
    """The matrix product `a @ b`.

    Vectors count as a row (on the left) or a column (on the right); leading dimensions are stacks
    of matrices, and broadcast.

    Args:
      a: shape (..., n, k) or (k,).
      b: shape (..., k, m) or (k,).
      precision: how exactly to multiply, where a device offers a choice.
      preferred_element_type: the dtype of sums and result.
      out_sharding: how to split the result over a mesh.

    Raises:
      ShapeError: an operand is a scalar, or sizes do not fit.

    >>> import fxarray.numpy as fnp
    >>> fnp.matmul(fnp.eye(2), fnp.array([3.0, 4.0]))
    Array([3., 4.], dtype=float32)
    """
    # A setting may say how exactly to multiply.
    plain = precision is None and preferred_element_type is None and out_sharding is None
    if plain and not context.settings:
        op = _plain_product(a, b)
        if op is not None:
            return op.bind(a, b)[0]
    x, y = promote_dtypes("matmul", a, b)
    for position, operand in enumerate((x, y)):
        if not operand.ndim:
            raise ShapeError(
                f"matmul: operand {position} is a scalar ({operand.type}); multiply scalars with *"
            )
    x_stack, y_stack = max(x.ndim - 2, 0), max(y.ndim - 2, 0)
    stack = max(x_stack, y_stack)
    x_labels: list[Any] = [*range(stack - x_stack, stack), *["row"] * (x.ndim > 1), "sum"]
    y_labels: list[Any] = [*range(stack - y_stack, stack), "sum", *["column"] * (y.ndim > 1)]
    out: list[Any] = [*range(stack), *["row"] * (x.ndim > 1), *["column"] * (y.ndim > 1)]
    if x.ndim and y.ndim and _size(x, -1) != _size(y, -2 if y.ndim > 1 else -1):
        raise ShapeError(
            f"matmul: the last dimension of operand 0 ({x.type}) must be as long as the "
            f"{'last but one' if y.ndim > 1 else 'only'} dimension of operand 1 ({y.type})"
        )
    result = contract("matmul", x, x_labels, y, y_labels, out, precision, preferred_element_type)
    return place("matmul", result, None, out_sharding)


# The products of matrices, vectors and equally deep stacks of matrices, by the operands' ranks.
_PRODUCTS: dict[tuple[int, int], DotGeneral] = {}


def _plain_product(a: Any, b: Any) -> DotGeneral | None:
    """The operation that multiplies `a` by `b` as they are; None where they must be prepared."""
    if not (isinstance(a, Array) and isinstance(b, Array)):
        return None
    x, y = a.type, b.type
    x_rank, y_rank = len(x.shape), len(y.shape)
    if x.dtype != y.dtype or not x_rank or not y_rank:
        return None
    inner = y.shape[-2] if y_rank > 1 else y.shape[0]
    if type(inner) is not int or x.shape[-1] != inner:
        return None
    if (x_rank > 2 or y_rank > 2) and (
        x_rank != y_rank or not same_shape(x.shape[:-2], y.shape[:-2])
    ):
        return None
    op = _PRODUCTS.get((x_rank, y_rank))
    if op is None:
        stack = tuple(range(x_rank - 2))
        contracted = ((x_rank - 1,), (max(y_rank - 2, 0),))
        op = _PRODUCTS[x_rank, y_rank] = DotGeneral(contracted, (stack, stack))
    return op


def _size(x: Array, axis: int) -> Any:
    """The size of an axis in a form that compares without deciding."""
    return shape_key((x.type.shape[axis],))


def dot(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: Any = None,
    preferred_element_type: DTypeLike = None,
    out_sharding: Any = None,
) -> Array:
    """The sum of products over the last axis of `a` and the last but one (or only) axis of `b`.

    Scalars multiply. Unlike `matmul`, leading axes of both are all kept.
    """
    x, y = promote_dtypes("dot", a, b)
    if not x.ndim or not y.ndim:
        result = multiply(x, y)
        preferred = as_result_dtype("dot", preferred_element_type)
        result = result if preferred is None else cast_to(result, preferred)
        return place("dot", result, None, out_sharding)
    axis = y.ndim - 2 if y.ndim > 1 else 0
    return tensordot(
        x,
        y,
        ((x.ndim - 1,), (axis,)),
        precision=precision,
        preferred_element_type=preferred_element_type,
        out_sharding=out_sharding,
    )


def tensordot(
    a: ArrayLike,
    b: ArrayLike,
    axes: Any = 2,
    *,
    precision: Any = None,
    preferred_element_type: DTypeLike = None,
    out_sharding: Any = None,
) -> Array:
    """The sum of products over given axes of both arrays.

    Args:
      a: an array.
      b: another.
      axes: a number n, for the last n axes of `a` and the first n of `b`; or a pair of axes (or
        lists of axes) of `a` and of `b`.
      precision: how exactly to multiply, where a device offers a choice.
      preferred_element_type: the dtype of sums and result.
      out_sharding: how to split the result over a mesh.

    >>> import fxarray.numpy as fnp
    >>> fnp.tensordot(fnp.ones((2, 3)), fnp.ones((3, 4)), 1).shape
    (2, 4)
    """
    x, y = promote_dtypes("tensordot", a, b)
    if isinstance(axes, tuple | list):
        if len(axes) != 2:
            raise ArgumentError(f"tensordot: axes must be an int or a pair, got {axes!r}")
        x_axes = canonical_axes("tensordot", axes[0], x.ndim)
        y_axes = canonical_axes("tensordot", axes[1], y.ndim)
    else:
        count = axes.__index__()
        if count > min(x.ndim, y.ndim):
            raise ShapeError(f"tensordot: axes={count}, but operands are {x.type} and {y.type}")
        x_axes = tuple(range(x.ndim - count, x.ndim))
        y_axes = tuple(range(count))
    if len(x_axes) != len(y_axes):
        raise ArgumentError(f"tensordot: axes {axes!r} must name as many axes of either operand")
    for i, j in zip(x_axes, y_axes, strict=True):
        if _size(x, i) != _size(y, j):
            raise ShapeError(
                f"tensordot: axis {i} of operand 0 ({x.type}) and axis {j} of operand 1 ({y.type}) "
                f"must be equally long"
            )
    x_labels: list[Any] = [("x", i) for i in range(x.ndim)]
    y_labels: list[Any] = [("y", j) for j in range(y.ndim)]
    for i, j in zip(x_axes, y_axes, strict=True):
        y_labels[j] = x_labels[i]
    out = [label for i, label in enumerate(x_labels) if i not in x_axes]
    out += [label for j, label in enumerate(y_labels) if j not in y_axes]
    result = contract("tensordot", x, x_labels, y, y_labels, out, precision, preferred_element_type)
    return place("tensordot", result, None, out_sharding)


def vdot(
    a: ArrayLike, b: ArrayLike, *, precision: Any = None, preferred_element_type: DTypeLike = None
) -> Array:
    """The inner product of two arrays seen as vectors; the first is conjugated."""
    x, y = promote_dtypes("vdot", a, b)
    x, y = reshape(conjugate(x), (x.size,)), reshape(y, (y.size,))
    return tensordot(x, y, 1, precision=precision, preferred_element_type=preferred_element_type)


def vecdot(
    x1: ArrayLike,
    x2: ArrayLike,
    /,
    *,
    axis: int = -1,
    precision: Any = None,
    preferred_element_type: DTypeLike = None,
) -> Array:
    """Inner products of vectors along `axis`; the first is conjugated, other axes broadcast."""
    x, y = promote_dtypes("vecdot", x1, x2)
    if not x.ndim or not y.ndim:
        raise ShapeError(
            f"vecdot takes arrays of at least one dimension, got {x.type} and {y.type}"
        )
    x = move_axis(conjugate(x), canonical_axis("vecdot", axis, x.ndim), x.ndim - 1)
    y = move_axis(y, canonical_axis("vecdot", axis, y.ndim), y.ndim - 1)
    if _size(x, -1) != _size(y, -1):
        raise ShapeError(f"vecdot: vectors of {x.type} and {y.type} must be equally long")
    stack = max(x.ndim, y.ndim) - 1
    x_labels: list[Any] = [*range(stack - x.ndim + 1, stack), "sum"]
    y_labels: list[Any] = [*range(stack - y.ndim + 1, stack), "sum"]
    return contract(
        "vecdot", x, x_labels, y, y_labels, list(range(stack)), precision, preferred_element_type
    )


def matvec(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Products of matrices (..., m, n) with vectors (..., n)."""
    x, y = promote_dtypes("matvec", x1, x2)
    return matmul(x, reshape(y, (*y.shape, 1)))[..., 0]


def vecmat(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Products of conjugated vectors (..., n) with matrices (..., n, m)."""
    x, y = promote_dtypes("vecmat", x1, x2)
    return matmul(reshape(conjugate(x), (*x.shape[:-1], 1, x.shape[-1])), y)[..., 0, :]


def inner(
    a: ArrayLike, b: ArrayLike, *, precision: Any = None, preferred_element_type: DTypeLike = None
) -> Array:
    """The sum of products over the last axes of both; scalars multiply."""
    x, y = promote_dtypes("inner", a, b)
    if not x.ndim or not y.ndim:
        return multiply(x, y)
    return tensordot(
        x, y, ((-1,), (-1,)), precision=precision, preferred_element_type=preferred_element_type
    )


def outer(a: ArrayLike, b: ArrayLike, out: None = None) -> Array:
    """All products of an element of `a` with an element of `b`, both flattened."""
    reject_out("outer", out)
    x, y = promote_dtypes("outer", a, b)
    return multiply(reshape(x, (x.size, 1)), reshape(y, (1, y.size)))


def kron(a: ArrayLike, b: ArrayLike) -> Array:
    """The Kronecker product: every element of `a` times all of `b`, in blocks."""
    x, y = promote_dtypes("kron", a, b)
    rank = max(x.ndim, y.ndim)
    x_shape = (1,) * (rank - x.ndim) + x.shape
    y_shape = (1,) * (rank - y.ndim) + y.shape
    x = reshape(x, [size for s in x_shape for size in (s, 1)])
    y = reshape(y, [size for s in y_shape for size in (1, s)])
    return reshape(multiply(x, y), [i * j for i, j in zip(x_shape, y_shape, strict=True)])


def cross(
    a: ArrayLike,
    b: ArrayLike,
    axisa: int = -1,
    axisb: int = -1,
    axisc: int = -1,
    axis: int | None = None,
) -> Array:
    """The cross product of vectors of 2 or 3 components; of 2 and 2 only the third component.

    Args:
      a: vectors along `axisa`.
      b: vectors along `axisb`.
      axisa: the axis of the components in `a`.
      axisb: the same in `b`.
      axisc: the same in the result.
      axis: if given, takes the place of all three.
    """
    if axis is not None:
        axisa = axisb = axisc = axis
    x, y = promote_dtypes("cross", a, b)
    x = move_axis(x, canonical_axis("cross", axisa, x.ndim), x.ndim - 1)
    y = move_axis(y, canonical_axis("cross", axisb, y.ndim), y.ndim - 1)
    for operand in (x, y):
        if operand.shape[-1] not in (2, 3):
            raise ShapeError(f"cross: vectors must have 2 or 3 components, got {operand.type}")

    x_parts, y_parts = _components(x), _components(y)

    def term(i: int, j: int) -> Array:
        first = _product(x_parts[i], y_parts[j])
        second = _product(x_parts[j], y_parts[i])
        if first is None and second is None:
            return multiply(x_parts[0], 0)  # type: ignore[arg-type]
        if second is None:
            assert first is not None
            return first
        return -second if first is None else first - second

    if x.shape[-1] == 2 and y.shape[-1] == 2:
        return term(0, 1)
    parts = [term(1, 2), term(2, 0), term(0, 1)]
    rank = max(x.ndim, y.ndim)
    joined = concatenate([reshape(part, (*part.shape, 1)) for part in parts], rank - 1)
    return move_axis(joined, rank - 1, canonical_axis("cross", axisc, rank))


def _components(v: Array) -> list[Array | None]:
    count = v.shape[-1]
    parts = [reshape(part, v.shape[:-1]) for part in split(v, (1,) * count, v.ndim - 1)]
    return [*parts, None] if count == 2 else [*parts]


def _product(x: Array | None, y: Array | None) -> Array | None:
    return None if x is None or y is None else multiply(x, y)


def matrix_transpose(x: ArrayLike, /) -> Array:
    """`x` with its last two axes swapped."""
    value = as_operand("matrix_transpose", x)
    if value.ndim < 2:
        raise ShapeError(f"matrix_transpose takes at least 2 dimensions, got {value.type}")
    return transpose(value, (*range(value.ndim - 2), value.ndim - 1, value.ndim - 2))


def diagonal(a: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """The elements with equal indices along two axes, as a last axis.

    Args:
      a: an array of at least 2 dimensions.
      offset: how far to the right of the main diagonal.
      axis1: the axis of rows.
      axis2: the axis of columns.
    """
    x = as_operand("diagonal", a)
    if x.ndim < 2:
        raise ShapeError(f"diagonal takes at least 2 dimensions, got {x.type}")
    first = canonical_axis("diagonal", axis1, x.ndim)
    second = canonical_axis("diagonal", axis2, x.ndim)
    if first == second:
        raise ArgumentError(f"diagonal: axis1 and axis2 are both axis {first}")
    order = [i for i in range(x.ndim) if i not in (first, second)]
    x = transpose(x, (*order, first, second))
    shift = offset.__index__()
    rows, columns = x.shape[-2:]
    top, left = max(-shift, 0), max(shift, 0)
    length = max(min(rows - top, columns - left), 0)
    positions = np.arange(length, dtype=np.int32)
    return x[..., positions + top, positions + left]


def trace(
    a: ArrayLike,
    offset: int = 0,
    axis1: int = 0,
    axis2: int = 1,
    dtype: DTypeLike = None,
    out: None = None,
) -> Array:
    """The sum of the diagonal; see `diagonal`."""
    reject_out("trace", out)
    return diagonal(a, offset, axis1, axis2).sum(axis=-1, dtype=dtype)
