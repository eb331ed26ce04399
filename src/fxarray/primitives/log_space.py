"""Sums of numbers given by their logarithms."""

from __future__ import annotations

from typing import Any

import numpy as np

from fxarray.primitives.arithmetic import mul, sub
from fxarray.primitives.comparison import bitwise_and, bitwise_not, eq, is_finite, select
from fxarray.primitives.elementwise_base import row
from fxarray.primitives.lowering import in_float32, log_add_exp
from fxarray.primitives.power import logistic
from fxarray.primitives.support import FLOAT, number_like


def _weight(x: Any, y: Any) -> Any:
    """exp(x) / (exp(x) + exp(y)); 1/2 where the two are the same infinity."""
    undefined = bitwise_and(eq(x, y), bitwise_not(is_finite(x)))
    return logistic(select(undefined, number_like(x, 0), sub(x, y)))


logaddexp = row(
    "logaddexp", np.logaddexp, FLOAT, arity=2, fast=np.logaddexp,
    derivatives=[
        lambda t, z, x, y: mul(t, _weight(x, y)),
        lambda t, z, x, y: mul(t, _weight(y, x)),
    ],
    lowering=in_float32(log_add_exp),
    doc="log(exp(x) + exp(y)) without overflow.",
)  # fmt: skip
