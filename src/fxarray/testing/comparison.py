"""Comparing trees of arrays with tolerances that fit their dtypes."""

from __future__ import annotations

from typing import Any

import numpy as np

from fxarray import tree
from fxarray.core import dtypes
from fxarray.numpy import asarray

_TOLERANCES: dict[Any, float] = {
    dtypes.float64: 1e-12,
    dtypes.complex128: 1e-12,
    dtypes.float32: 1e-5,
    dtypes.complex64: 1e-5,
    dtypes.float16: 4e-3,
    dtypes.bfloat16: 3e-2,
}


def default_tolerance(dtype: Any) -> float:
    """The relative and absolute error at which values of a dtype count as equal; 0 if exact."""
    if not dtypes.is_inexact(dtype):
        return 0.0
    known = _TOLERANCES.get(dtype)
    return float(dtypes.finfo(dtype).eps) * 2 if known is None else known


def wide_values(value: Any) -> np.ndarray[Any, Any]:
    """An array's values in a dtype that NumPy computes with: float64, complex128, or its own."""
    array = asarray(value)
    if dtypes.is_key(array.dtype):
        return np.asarray(array.numpy_view())  # type: ignore[attr-defined]
    buffer = np.asarray(array)
    if dtypes.is_complex(buffer.dtype):
        return buffer.astype(np.complex128)
    if dtypes.is_float(buffer.dtype):
        return buffer.astype(np.float64)
    return buffer


def assert_close(
    actual: Any,
    expected: Any,
    *,
    rtol: float | None = None,
    atol: float | None = None,
    check_dtypes: bool = True,
    err_msg: str = "",
) -> None:
    """Assert that two trees have one structure and that their arrays are close.

    Args:
      actual: a tree of arrays.
      expected: a tree of arrays.
      rtol: relative error; default: by the coarser dtype of each pair.
      atol: absolute error; default: likewise.
      check_dtypes: whether dtypes must be equal.
      err_msg: put before the message.

    Raises:
      AssertionError: naming the leaf that differs.

    >>> import fxarray.numpy as fnp
    >>> from fxarray.testing import assert_close
    >>> assert_close({"x": fnp.float32(0.1) * 3}, {"x": fnp.float32(0.3)})
    """
    got, structure = tree.flatten(actual)
    wanted, expected_structure = tree.flatten(expected)
    prefix = f"{err_msg}: " if err_msg else ""
    assert structure == expected_structure, f"{prefix}{structure} is not {expected_structure}"
    for number, (one, other) in enumerate(zip(got, wanted, strict=True)):
        one, other = asarray(one), asarray(other)
        what = f"{prefix}leaf {number}"
        assert one.shape == other.shape, f"{what}: shape {one.shape} is not {other.shape}"
        if check_dtypes:
            assert one.dtype == other.dtype, f"{what}: dtype {one.dtype} is not {other.dtype}"
        tolerance = max(default_tolerance(one.dtype), default_tolerance(other.dtype))
        np.testing.assert_allclose(
            wide_values(one),
            wide_values(other),
            rtol=tolerance if rtol is None else rtol,
            atol=tolerance if atol is None else atol,
            err_msg=what,
        )
