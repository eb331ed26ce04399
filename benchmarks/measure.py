"""Timing on a machine that others use too: least of many repeats, the contestants in turn."""

from __future__ import annotations

import importlib
import importlib.util
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any


@dataclass(frozen=True)
class Measurement:
    """One figure of ours, with what it is measured against.

    Args:
      name: what was done.
      unit: of all figures: "us", "us/eqn", "s", ...; less is better.
      ours: fxarray's figure.
      jax: JAX's figure, None where there is none.
      target: the figure that we have set ourselves, None where there is none.
    """

    name: str
    unit: str
    ours: float
    jax: float | None = None
    target: float | None = None

    @property
    def ratio(self) -> float | None:
        """How many times faster than JAX."""
        return None if self.jax is None else self.jax / self.ours

    @property
    def met(self) -> bool | None:
        """Whether the target is met."""
        return None if self.target is None else self.ours <= self.target


@dataclass(frozen=True)
class Options:
    """What the user asked for.

    Args:
      seconds: for how long each pair is timed.
      jax: whether JAX is measured too.
      pattern: only measurements whose names contain it.
    """

    seconds: float
    jax: bool
    pattern: str

    def wants(self, name: str) -> bool:
        return self.pattern in name


def has_jax() -> bool:
    """Whether JAX is installed."""
    return importlib.util.find_spec("jax") is not None


def library(name: str) -> ModuleType:
    """The package `name` with the submodules that benchmarks use."""
    for part in ("numpy", "lax", "random", "tree"):
        importlib.import_module(f"{name}.{part}")
    return importlib.import_module(name)


def once(call: Callable[[], Any]) -> float:
    """Seconds that one call takes."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def _loop(call: Callable[[], Any], count: int) -> float:
    repeats = range(count)
    start = time.perf_counter()
    for _ in repeats:
        call()
    return (time.perf_counter() - start) / count


def fastest(calls: Sequence[Callable[[], Any]], seconds: float) -> list[float]:
    """The least seconds per call of each, over rounds in which all take turns."""
    counts: list[int] = []
    for call in calls:
        call()
        counts.append(max(1, min(2000, int(2e-3 / max(_loop(call, 3), 1e-7)))))
    best = [math.inf] * len(calls)
    end = time.perf_counter() + seconds * len(calls)
    rounds = 0
    while rounds < 3 or time.perf_counter() < end:
        for place, (call, count) in enumerate(zip(calls, counts, strict=True)):
            best[place] = min(best[place], _loop(call, count))
        rounds += 1
    return best


def compare(
    name: str,
    make: Callable[[Any], Callable[[], Any]],
    options: Options,
    target: float | None = None,
    against: Callable[[Any], Callable[[], Any]] | None = None,
) -> Measurement:
    """Microseconds of the call that `make` gives for fxarray, and for JAX.

    Args:
      name: what is measured.
      make: takes the library and returns the call to time.
      options: the user's.
      target: our own, in microseconds.
      against: how to make JAX's call where it differs.
    """
    calls = [make(library("fxarray"))]
    if options.jax:
        calls.append((against or make)(library("jax")))
    times = [seconds * 1e6 for seconds in fastest(calls, options.seconds)]
    return Measurement(name, "us", times[0], times[1] if options.jax else None, target)
