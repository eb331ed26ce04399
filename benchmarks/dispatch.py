"""What a call costs before any computing: eager operations, eager gradients, calls of jit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from benchmarks.measure import Measurement, Options, compare

Make = Callable[[Any], Callable[[], Any]]


class Operands(NamedTuple):
    """The library's numpy, two short vectors and one of a hundred elements."""

    numpy: Any
    x: Any
    y: Any
    v: Any


def _eager(function: Callable[[Operands], Any]) -> Make:
    def make(xp: Any) -> Callable[[], Any]:
        given = Operands(xp.numpy, xp.numpy.arange(8.0), xp.numpy.ones(8), xp.numpy.arange(100.0))
        return lambda: function(given)

    return make


# name -> (what is called, target in microseconds)
EAGER: dict[str, tuple[Callable[[Operands], Any], float | None]] = {
    "x + y": (lambda c: c.x + c.y, 1.5),
    "x * 2.0": (lambda c: c.x * 2.0, 1.8),
    "-x": (lambda c: -c.x, 1.5),
    "x > y": (lambda c: c.x > c.y, 1.5),
    "v ** 2": (lambda c: c.v**2, None),
    "numpy.sin(x)": (lambda c: c.numpy.sin(c.x), 1.8),
    "numpy.where(v > 0, v, 0)": (lambda c: c.numpy.where(c.v > 0.0, c.v, 0.0), None),
    "v[3]": (lambda c: c.v[3], 1.0),
    "v[2:5]": (lambda c: c.v[2:5], None),
    "v.at[3].set(1.0)": (lambda c: c.v.at[3].set(1.0), 2.5),
    "v.sum()": (lambda c: c.v.sum(), None),
    "v.mean()": (lambda c: c.v.mean(), None),
    "v @ v": (lambda c: c.v @ c.v, None),
    "v.reshape(10, 10)": (lambda c: c.v.reshape(10, 10), None),
    "v.astype(int32)": (lambda c: c.v.astype("int32"), None),
}


def _gradient(xp: Any) -> Callable[[], Any]:
    v = xp.numpy.arange(100.0) / 100
    gradient = xp.grad(lambda v: xp.numpy.sum(xp.numpy.sin(v * v)))
    return lambda: gradient(v)


def _increment(xp: Any, tree: Any) -> Callable[[], Any]:
    function = xp.jit(lambda tree: xp.tree.map(lambda leaf: leaf + 1, tree))
    return lambda: function(tree)


def _one_leaf(xp: Any) -> Callable[[], Any]:
    return _increment(xp, xp.numpy.ones(4))


def _twenty_leaves(xp: Any) -> Callable[[], Any]:
    return _increment(xp, [(xp.numpy.ones(4), xp.numpy.ones(4)) for _ in range(10)])


def _two_hundred_leaves(xp: Any) -> Callable[[], Any]:
    return _increment(xp, {f"leaf{i:03d}": xp.numpy.ones(4) for i in range(200)})


def _module(xp: Any) -> Callable[[], Any]:
    from benchmarks.models import transformer

    return _increment(xp, transformer(xp.numpy.ones(4)))


def _module_as_dicts(xp: Any) -> Callable[[], Any]:
    from benchmarks.models import transformer_as_dicts

    return _increment(xp, transformer_as_dicts(xp.numpy.ones(4)))


def _host_values(xp: Any) -> Callable[[], Any]:
    function = xp.jit(lambda a, b: a + b)
    array = np.ones(3, np.float32)
    return lambda: function(array, 2.0)


def _static_argument(xp: Any) -> Callable[[], Any]:
    function = xp.jit(lambda a, n: a * n, static_argnums=1)
    x = xp.numpy.ones(8)
    return lambda: function(x, 3)


def _donation(xp: Any) -> Callable[[], Any]:
    function = xp.jit(lambda a: a + 1, donate_argnums=0)
    state = [xp.numpy.ones(8)]

    def call() -> None:
        state[0] = function(state[0])

    return call


# name -> (ours, target in microseconds, JAX's if it differs)
CALLS: dict[str, tuple[Make, float | None, Make | None]] = {
    "grad(sum(sin(v * v)))": (_gradient, 60.0, None),
    "jit: 1 leaf": (_one_leaf, 4.0, None),
    "jit: 20 leaves": (_twenty_leaves, 25.0, None),
    "jit: 200 leaves": (_two_hundred_leaves, 200.0, None),
    "jit: module of 195 leaves": (_module, 200.0, _module_as_dicts),
    "jit: NumPy array and number": (_host_values, None, None),
    "jit: static argument": (_static_argument, None, None),
    "jit: donated argument": (_donation, None, None),
}


def measure(options: Options) -> Iterator[Measurement]:
    """All figures of this group."""
    for name, (function, target) in EAGER.items():
        if options.wants(name):
            yield compare(name, _eager(function), options, target)
    for name, (make, target, against) in CALLS.items():
        if options.wants(name):
            yield compare(name, make, options, target, against)
