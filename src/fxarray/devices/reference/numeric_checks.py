"""The settings `debug_nans` and `debug_infs`: the first operation that gives one raises."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fxarray.core import config, dtypes
from fxarray.core.errors import NonFiniteError
from fxarray.core.primitive import Primitive
from fxarray.core.source import Location


def checks_wanted() -> bool:
    """Whether results are to be checked for NaN or infinity in this thread."""
    return config.get("debug_nans") or config.get("debug_infs")


def _count(values: np.ndarray[Any, Any], test: Any) -> int:
    if dtypes.is_narrow_float(values.dtype):
        values = values.astype(np.float32)
    return int(np.count_nonzero(test(values)))


def check_values(
    op: Primitive, number: int, values: np.ndarray[Any, Any], location: Location | None = None
) -> None:
    """Raise if result `number` of `op` holds what the settings forbid.

    Args:
      op: the operation.
      number: which of its results `values` is.
      values: the result.
      location: where the user called the operation, if that is not where it runs.

    Raises:
      NonFiniteError: naming the operation and the place.
    """
    if not dtypes.is_inexact(values.dtype):
        return
    for setting, name, test in (("debug_nans", "NaN", np.isnan), ("debug_infs", "inf", np.isinf)):
        if not config.get(setting):
            continue
        found = _count(values, test)
        if found:
            place = "" if location is None else f", called at {location}"
            size = values.size
            raise NonFiniteError(
                f"{op.name}{place}: {found} of {size} elements of result {number} "
                f"({dtypes.short_name(values.dtype)}{list(values.shape)}) are {name} "
                f"(the setting {setting} is on)"
            )


def check_results(op: Primitive, results: Sequence[Any]) -> None:
    """Check all results of an eager operation."""
    for number, result in enumerate(results):
        check_values(op, number, result.numpy_view())
