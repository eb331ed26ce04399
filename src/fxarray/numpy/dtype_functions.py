"""Questions about dtypes."""

from __future__ import annotations

from typing import Any

import numpy as np

from fxarray.core import dtypes
from fxarray.core.array import Array
from fxarray.core.dtypes import DType
from fxarray.core.dtypes import finfo as finfo
from fxarray.core.dtypes import iinfo as iinfo
from fxarray.core.dtypes import issubdtype as issubdtype
from fxarray.core.dtypes import promote_types as promote_types
from fxarray.core.errors import ArgumentError
from fxarray.numpy.promotion import Scalar


def result_type(*args: Any, return_weak_type_flag: bool = False) -> Any:
    """The dtype that arrays, numbers and dtypes promote to.

    Args:
      args: arrays, Python or NumPy scalars, dtypes.
      return_weak_type_flag: whether to return `(dtype, whether it is weak)`.

    >>> import fxarray.numpy as fnp
    >>> fnp.result_type(fnp.float16, 1.5), fnp.result_type(fnp.ones(2), fnp.float64)
    (dtype('float16'), dtype('float64'))
    """
    if not args:
        raise ArgumentError("result_type needs at least one argument")
    found: list[tuple[DType, bool]] = []
    for arg in args:
        held: Any = getattr(arg, "type", None)
        if isinstance(arg, Array):
            found.append((arg.type.dtype, arg.type.weak))
        elif arg is int or arg is float or arg is complex:
            found.append((dtypes.canonical(arg), True))
        elif isinstance(arg, Scalar):
            found.append(dtypes.scalar_dtype(arg))
        elif hasattr(held, "weak"):
            found.append((held.dtype, held.weak))
        else:
            found.append((dtypes.canonical(arg), bool(getattr(arg, "weak_type", False))))
    dtype, weak = dtypes.promote([d for d, _ in found], [w for _, w in found])
    return (dtype, weak) if return_weak_type_flag else dtype


def can_cast(from_: Any, to: Any, casting: Any = "safe") -> bool:
    """Whether values of one dtype can be cast to another under NumPy's rules of casting."""
    source = dtypes.canonical(from_.dtype if hasattr(from_, "dtype") else from_)
    return bool(
        np.can_cast(dtypes.physical(source), dtypes.physical(dtypes.canonical(to)), casting)
    )  # type: ignore[arg-type]


def isdtype(dtype: Any, kind: Any) -> bool:
    """Whether a dtype is of a kind, by the array-API standard.

    Args:
      dtype: a dtype.
      kind: another dtype, one of "bool", "signed integer", "unsigned integer", "integral",
        "real floating", "complex floating", "numeric", or a tuple of those.
    """
    own = dtypes.canonical(dtype)
    kinds = kind if isinstance(kind, tuple) else (kind,)
    return any(_is_kind(own, each) for each in kinds)


def _is_kind(dtype: DType, kind: Any) -> bool:
    tests = {
        "bool": dtypes.is_bool,
        "signed integer": dtypes.is_signed,
        "unsigned integer": dtypes.is_unsigned,
        "integral": dtypes.is_integer,
        "real floating": dtypes.is_float,
        "complex floating": dtypes.is_complex,
        "numeric": lambda d: dtypes.is_integer(d) or dtypes.is_inexact(d),
    }
    if isinstance(kind, str) and kind in tests:
        return tests[kind](dtype)
    if isinstance(kind, str) and kind not in dtypes.__all__:
        raise ArgumentError(f"isdtype: {kind!r} is none of {', '.join(map(repr, tests))}")
    return dtypes.canonical(kind) == dtype


def isscalar(element: Any) -> bool:
    """Whether `element` is a number or a 0-dimensional array."""
    if np.isscalar(element):
        return True
    return getattr(element, "shape", None) == () and hasattr(element, "dtype")


def iterable(y: Any) -> bool:
    """Whether `y` can be iterated over."""
    try:
        iter(y)
    except (TypeError, ValueError):
        return False
    return True
