"""The training step of `examples/train_gpt.py`."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.measure import Measurement, Options, library, once

EXAMPLE = Path(__file__).resolve().parent.parent / "examples" / "train_gpt.py"
STEPS = 600
MINUTES = 3.0


def _load() -> Any:
    specification = importlib.util.spec_from_file_location("train_gpt", EXAMPLE)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules["train_gpt"] = module
    specification.loader.exec_module(module)
    return module


def _steps(name: str, count: int) -> tuple[float, float]:
    """Seconds of the first step, which compiles, and the least of the others."""
    xp = library(name)
    example = _load()
    if name != "fxarray":
        # The example is written in JAX's vocabulary, so it runs on JAX by another import.
        example.fx, example.fnp = xp, xp.numpy
        example.lax, example.nn, example.random, example.tree = xp.lax, xp.nn, xp.random, xp.tree
    corpus = example.read_corpus()
    config = example.Config(len(corpus.characters))
    params = example.init(xp.random.key(0), config)
    zeros = xp.tree.map(xp.numpy.zeros_like, params)
    state = example.State(params, zeros, zeros, xp.numpy.asarray(0, xp.numpy.int32))
    step = example.make_step(config)
    data = example.batches(corpus.training, config, 0)

    def advance() -> None:
        nonlocal state
        state, value = step(state, next(data))
        float(value)

    first = once(advance)
    return first, min(once(advance) for _ in range(count))


def measure(options: Options) -> Iterator[Measurement]:
    """All figures of this group."""
    names = ("demo: first step", "demo: each step")
    if not any(map(options.wants, names)):
        return
    jax: tuple[Any, Any] = _steps("jax", 10) if options.jax else (None, None)
    ours = _steps("fxarray", 10)
    yield Measurement(names[0], "s", ours[0], jax[0])
    yield Measurement(names[1], "s", ours[1], jax[1], MINUTES * 60 / STEPS)
