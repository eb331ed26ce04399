"""Sums of products over dimensions of two arrays."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any, TypeAlias

from fxarray.core import config, dims, dtypes
from fxarray.core.array import Array
from fxarray.core.dtypes import DType
from fxarray.core.errors import ArgumentError, DTypeError, ShapeError
from fxarray.lax.operands import ArrayLike, as_operands
from fxarray.lax.shapes import as_axes, reject_sharding
from fxarray.primitives.contract import DotGeneral

DotDimensionNumbers: TypeAlias = tuple[
    tuple[Sequence[int], Sequence[int]], tuple[Sequence[int], Sequence[int]]
]


class Precision(enum.Enum):
    """How exactly to multiply, where a device offers a choice."""

    DEFAULT = "default"
    HIGH = "high"
    HIGHEST = "highest"


PrecisionLike: TypeAlias = "str | Precision | Sequence[Any] | None"
_NAMES = {
    "default": None,
    "fastest": None,
    "bfloat16": None,
    "high": "high",
    "tensorfloat32": "high",
    "bfloat16_3x": "high",
    "highest": "highest",
    "float32": "highest",
}


def as_precision(function: str, precision: Any) -> str | None:
    """A precision argument as one name; of a pair, the more exact one.

    Args:
      function: the caller, for messages.
      precision: the argument; None stands for the setting `default_matmul_precision`.

    Raises:
      ArgumentError: there is no such precision.
    """
    if precision is None:
        precision = config.get("default_matmul_precision")
    if isinstance(precision, tuple | list):
        names = [as_precision(function, part) for part in precision]
        return max(names, key=(None, "high", "highest").index, default=None)
    name = precision.value if isinstance(precision, Precision) else precision
    if not isinstance(name, str) or name.lower() not in _NAMES:
        raise ArgumentError(
            f"{function}: precision={precision!r} must be None, a Precision, or one of "
            f"{', '.join(map(repr, _NAMES))}"
        )
    return _NAMES[name.lower()]


def as_result_dtype(function: str, preferred: Any) -> DType | None:
    """`preferred_element_type` as a dtype.

    Raises:
      DTypeError: it is not a number's.
    """
    if preferred is None:
        return None
    dtype = dtypes.canonical(preferred)
    if not dtypes.is_numeric(dtype):
        raise DTypeError(
            f"{function}: preferred_element_type={preferred!r} is not the type of a number"
        )
    return dtype


def dot_general(
    lhs: ArrayLike,
    rhs: ArrayLike,
    dimension_numbers: DotDimensionNumbers,
    precision: PrecisionLike = None,
    preferred_element_type: Any = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """The sum of products over corresponding dimensions of two arrays.

    Args:
      lhs: an array.
      rhs: another, of the same dtype unless `preferred_element_type` is given.
      dimension_numbers: ((contracted dimensions of lhs, of rhs), (batch dimensions of lhs, of
        rhs)), each in corresponding order. Batch dimensions go together without a sum.
      precision: how exactly to multiply, where a device offers a choice.
      preferred_element_type: the dtype of sum and result.
      out_sharding: not supported.

    Returns:
      The batch dimensions, then the other dimensions of lhs, then those of rhs.

    Raises:
      ShapeError: sizes of corresponding dimensions differ.

    >>> from fxarray import lax, numpy as fnp
    >>> a, b = fnp.ones((5, 2, 3)), fnp.ones((5, 3, 4))
    >>> lax.dot_general(a, b, (((2,), (1,)), ((0,), (0,)))).shape
    (5, 2, 4)
    """
    reject_sharding("dot_general", out_sharding)
    result_dtype = as_result_dtype("lax.dot_general", preferred_element_type)
    x, y = as_operands("dot_general", lhs, rhs)
    (contract_x, contract_y), (batch_x, batch_y) = dimension_numbers
    return DotGeneral(
        (as_axes("dot_general", contract_x, x.ndim), as_axes("dot_general", contract_y, y.ndim)),
        (as_axes("dot_general", batch_x, x.ndim), as_axes("dot_general", batch_y, y.ndim)),
        result_dtype,
        as_precision("lax.dot_general", precision),
    )(x, y)


def dot(
    lhs: ArrayLike,
    rhs: ArrayLike,
    *,
    dimension_numbers: DotDimensionNumbers | None = None,
    precision: PrecisionLike = None,
    preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> Array:
    """The product of vectors and matrices; with `dimension_numbers`, `dot_general`.

    Args:
      lhs: a vector or matrix.
      rhs: a vector or matrix, as many rows as the other has columns.
      dimension_numbers: see `dot_general`.
      precision: how exactly to multiply, where a device offers a choice.
      preferred_element_type: the dtype of sum and result.
      out_sharding: not supported.

    Raises:
      ShapeError: shapes do not fit.

    >>> from fxarray import lax, numpy as fnp
    >>> lax.dot(fnp.array([1.0, 2.0]), fnp.array([3.0, 4.0]))
    Array(11., dtype=float32)
    """
    x, y = as_operands("dot", lhs, rhs)
    if dimension_numbers is None:
        if x.ndim not in (1, 2) or y.ndim not in (1, 2) or not dims.same(x.shape[-1], y.shape[0]):
            raise ShapeError(
                f"lax.dot takes vectors and matrices, the second as long as the last dimension of "
                f"the first, got {x.type} and {y.type}; see lax.dot_general"
            )
        dimension_numbers = (((x.ndim - 1,), (0,)), ((), ()))
    return dot_general(
        x, y, dimension_numbers, precision, preferred_element_type, out_sharding=out_sharding
    )


def batch_matmul(lhs: ArrayLike, rhs: ArrayLike, precision: PrecisionLike = None) -> Array:
    """Products of matrices in two stacks of equal shape.

    Args:
      lhs: shape (..., m, k).
      rhs: shape (..., k, n).
      precision: how exactly to multiply, where a device offers a choice.

    Raises:
      ShapeError: shapes do not fit.

    >>> from fxarray import lax, numpy as fnp
    >>> lax.batch_matmul(fnp.ones((5, 2, 3)), fnp.ones((5, 3, 4))).shape
    (5, 2, 4)
    """
    x, y = as_operands("batch_matmul", lhs, rhs)
    rank = x.ndim
    if rank < 2 or y.ndim != rank:
        raise ShapeError(
            f"lax.batch_matmul takes two stacks of matrices of equal rank, got {x.type}, {y.type}"
        )
    lead = tuple(range(rank - 2))
    return dot_general(x, y, (((rank - 1,), (rank - 2,)), (lead, lead)), precision)
