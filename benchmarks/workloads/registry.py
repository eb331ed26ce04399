"""The table of workloads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

Make: TypeAlias = Callable[[Any], tuple[Callable[..., Any], tuple[Any, ...]]]


@dataclass(frozen=True)
class Workload:
    """One thing to time.

    Args:
      name: what it does.
      group: the kind of work.
      make: from a library in JAX's manner, the function to compile and its NumPy arguments.
      numpy: the same in NumPy, if that is usual.
      torch: the same in PyTorch, given the module and tensors.
    """

    name: str
    group: str
    make: Make
    numpy: Callable[..., Any] | None = None
    torch: Callable[..., Any] | None = None


WORKLOADS: list[Workload] = []


def workload(
    group: str,
    numpy: Callable[..., Any] | None = None,
    torch: Callable[..., Any] | None = None,
) -> Callable[[Make], Make]:
    """Enter a function in the table under its own name."""

    def enter(make: Make) -> Make:
        WORKLOADS.append(Workload(make.__name__, group, make, numpy, torch))
        return make

    return enter


def normal(*shape: int, seed: int = 0, scale: float = 1.0) -> np.ndarray[Any, Any]:
    """Normally distributed float32 numbers."""
    rng = np.random.default_rng(seed)
    return (rng.standard_normal(shape) * scale).astype(np.float32)


def integers(high: int, *shape: int, seed: int = 0) -> np.ndarray[Any, Any]:
    """Uniform int32 numbers below `high`."""
    return np.random.default_rng(seed).integers(0, high, shape).astype(np.int32)
