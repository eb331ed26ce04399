"""dynamic_spec: one trace and one compile for all sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fxarray.transforms.jit import jit


def dynamic_spec(
    specification: Mapping[Any, Any], *, assumptions: Sequence[str] = ()
) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function once for all sizes of some dimensions.

    Args:
      specification: from the name or position of an argument (or `...` for all others) to its
        sizes: a `ShapeVar` for the leading dimension of each array in it; a tuple with one entry
        for each dimension, or a text such as "batch, _", where None or "_" is a size that is fixed
        when tracing; a dict from dimensions to sizes; or a tree of these. Sizes are `ShapeVar`s and
        expressions of them, such as `2 * batch`.
      assumptions: comparisons that hold in every call, such as "batch % 2 == 0". They decide
        questions that come up while tracing, and each call is checked against them.

    Returns:
      A decorator that gives a function under `jit`, or a function under `jit` other sizes.

    Raises:
      ShapeError: at a call whose sizes are out of bounds, do not fit each other or violate an
        assumption.
      InconclusiveDimension: while tracing, for a decision on a size that depends on a variable.

    >>> import fxarray, fxarray.numpy as fnp
    >>> batch = fxarray.ShapeVar("batch", max=4096)
    >>> @fxarray.dynamic_spec({"x": (batch, None)})
    ... def mean(x):
    ...     return fnp.sum(x, 0) / x.shape[0]
    >>> mean(fnp.ones((2, 3))), mean(fnp.ones((7, 3)))
    (Array([1., 1., 1.], dtype=float32), Array([1., 1., 1.], dtype=float32))
    >>> mean.cache_info().misses
    1
    """

    def decorate(function: Callable[..., Any]) -> Any:
        with_dynamic_shapes = getattr(function, "with_dynamic_shapes", None)
        if with_dynamic_shapes is not None:
            return with_dynamic_shapes(specification, assumptions)
        specified: Any = {} if specification is None else specification  # which is refused
        return jit(function, dynamic_shapes=specified, assumptions=assumptions)

    return decorate
