"""All operations, by family. Importing this package fills the registry."""

from fxarray.primitives import (
    bits,
    contract,
    create,
    dynamic_slicing,
    elementwise,
    fused,
    gather,
    joining,
    log_space,
    movement,
    reduce,
    scatter,
    slicing,
)
from fxarray.primitives.control import program_call

__all__ = [
    "bits",
    "contract",
    "create",
    "dynamic_slicing",
    "elementwise",
    "fused",
    "gather",
    "joining",
    "log_space",
    "movement",
    "program_call",
    "reduce",
    "scatter",
    "slicing",
]
