"""All operations, by family. Importing this package fills the registry."""

from fxarray.primitives import (
    bits,
    collective,
    contract,
    create,
    cumulative,
    dynamic_slicing,
    elementwise,
    fused,
    gather,
    joining,
    log_space,
    movement,
    reduce,
    reductions,
    scatter,
    slicing,
)
from fxarray.primitives.control import program_call, remat

__all__ = [
    "bits",
    "collective",
    "contract",
    "create",
    "cumulative",
    "dynamic_slicing",
    "elementwise",
    "fused",
    "gather",
    "joining",
    "log_space",
    "movement",
    "program_call",
    "reduce",
    "remat",
    "reductions",
    "scatter",
    "slicing",
]
