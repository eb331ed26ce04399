"""Symbolic sizes: sizes of arrays that are expressions in named variables.

One trace, one kernel and one exported artifact then serve every size. A size is an int or a `Dim`:

    >>> batch = ShapeVar("batch", max=4096)
    >>> shape = (batch, 2 * batch + 1)
    >>> shape_product(shape)
    2*batch**2 + batch
    >>> batch == 0, batch < 5000
    (False, True)
    >>> batch == 8
    Traceback (most recent call last):
    fxarray.core.errors.InconclusiveDimension: whether batch == 8 depends on batch ...

Comparison means: for all sizes that the variables may have. Where that is neither true nor false
it raises, naming the variable and the assumption that would decide it (`assuming`). Caches use
`Dim.key`, which compares by structure, and shape rules use `same`, which never raises.
"""

from fxarray.core.dims.assumptions import Assumption, assuming, assumptions_in_scope
from fxarray.core.dims.bind import solve
from fxarray.core.dims.dim import (
    Dim,
    ShapeVar,
    Size,
    dim_max,
    dim_min,
    divide_exact,
    is_constant,
    parse_dim,
    same,
    shape_product,
)

__all__ = [
    "Assumption",
    "Dim",
    "ShapeVar",
    "Size",
    "assuming",
    "assumptions_in_scope",
    "dim_max",
    "dim_min",
    "divide_exact",
    "is_constant",
    "parse_dim",
    "same",
    "shape_product",
    "solve",
]
