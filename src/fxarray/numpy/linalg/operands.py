"""What the functions of `numpy.linalg` do with their arguments."""

from __future__ import annotations

from typing import Any

from fxarray.core import dims
from fxarray.core.array import Array
from fxarray.core.errors import ShapeError
from fxarray.numpy.promotion import promote_dtypes


def as_matrices(function: str, a: Any, square: bool = False) -> Array:
    """`a` as a float or complex array of matrices.

    Raises:
      ShapeError: it has fewer than 2 dimensions, or the matrices should be square and are not.
    """
    (x,) = promote_dtypes(f"linalg.{function}", a, inexact=True)
    if x.ndim < 2:
        raise ShapeError(f"linalg.{function} takes at least 2 dimensions, got {x.type}")
    if square and not dims.same(x.shape[-1], x.shape[-2]):
        raise ShapeError(f"linalg.{function} takes square matrices (..., n, n), got {x.type}")
    return x
