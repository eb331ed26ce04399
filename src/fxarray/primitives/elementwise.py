"""Elementwise arithmetic, comparison and selection: one row per operation.

A derivative reads `lambda t, y, *operands`: t is the operand's tangent, y the result.
"""

from __future__ import annotations

import numpy as np

from fxarray.core.dtypes import DType
from fxarray.primitives.elementwise_base import row
from fxarray.primitives.support import ANY, INEXACT, NUMBER


def _boolean(_: DType) -> DType:
    return np.dtype(bool)


# --- arithmetic ---------------------------------------------------------------------------------

neg = row(
    "neg", np.negative, NUMBER, fast=np.negative,
    derivatives=[lambda t, y, x: neg(t)], transposes=[lambda ct, x: neg(ct)],
)
add = row(
    "add", np.add, NUMBER, arity=2, fast=np.add,
    derivatives=[lambda t, z, x, y: t, lambda t, z, x, y: t],
    transposes=[lambda ct, x, y: ct, lambda ct, x, y: ct],
)
sub = row(
    "sub", np.subtract, NUMBER, arity=2, fast=np.subtract,
    derivatives=[lambda t, z, x, y: t, lambda t, z, x, y: neg(t)],
    transposes=[lambda ct, x, y: ct, lambda ct, x, y: neg(ct)],
)
mul = row(
    "mul", np.multiply, NUMBER, arity=2, fast=np.multiply,
    derivatives=[lambda t, z, x, y: mul(t, y), lambda t, z, x, y: mul(x, t)],
    transposes=[lambda ct, x, y: mul(ct, y), lambda ct, x, y: mul(x, ct)],
)

# --- exponentials and trigonometry -----------------------------------------------------------------

sin = row("sin", np.sin, INEXACT, fast=np.sin, derivatives=[lambda t, y, x: mul(t, cos(x))])
cos = row("cos", np.cos, INEXACT, fast=np.cos, derivatives=[lambda t, y, x: neg(mul(t, sin(x)))])

# --- comparison -----------------------------------------------------------------------------------

eq = row("eq", np.equal, ANY, arity=2, fast=np.equal, result=_boolean)

