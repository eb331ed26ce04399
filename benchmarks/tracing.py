"""What tracing and program transforms cost for each equation, on a chain of x * x + x."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from benchmarks.measure import Measurement, Options, library, once
from fxarray.compile import driver
from fxarray.interpreters import memo
from fxarray.interpreters.linearize import linearize_program
from fxarray.interpreters.transpose import transpose_program

STEPS = 500
EQUATIONS = 2 * STEPS


def _chain(x: Any) -> Any:
    for _ in range(STEPS):
        x = x * x + x
    return x


def _total(x: Any) -> Any:
    return _chain(x).sum()


def _least(call: Callable[[], Any], repeats: int = 5) -> float:
    return min(once(call) for _ in range(repeats)) / EQUATIONS * 1e6


def _fresh(xp: Any, wrap: Callable[[Any], Any]) -> Callable[[], Any]:
    """A call that traces anew each time, since the function is new each time."""
    x = xp.numpy.ones(8)

    def call() -> None:
        def chain(x: Any) -> Any:
            return _chain(x)

        wrap(chain)(x)

    return call


def measure(options: Options) -> Iterator[Measurement]:
    """All figures of this group."""
    ours, theirs = library("fxarray"), library("jax") if options.jax else None

    def compiled(xp: Any) -> Callable[[], Any]:
        x = xp.numpy.ones(8)

        def call() -> None:
            memo.clear()
            driver.clear()
            xp.jit(xp.grad(_total)).lower(x).compile()

        return call

    pairs: dict[str, tuple[Callable[[Any], Callable[[], Any]], float | None]] = {
        "trace": (lambda xp: _fresh(xp, xp.make_jaxpr), 15.0),
        "trace a gradient": (
            lambda xp: _fresh(xp, lambda f: xp.make_jaxpr(xp.grad(lambda x: f(x).sum()))),
            None,
        ),
        "trace, differentiate, compile": (compiled, None),
    }
    for name, (make, target) in pairs.items():
        if options.wants(name):
            jax = None if theirs is None else _least(make(theirs), 3)
            yield Measurement(name, "us/eqn", _least(make(ours)), jax, target)

    program = ours.make_program(_chain)(ours.numpy.ones(8))

    def linearize() -> Any:
        memo.clear()
        return linearize_program(program, (True,))

    linear = linearize().linear
    residuals = len(linear.inputs) - 1

    def transpose() -> None:
        memo.clear()
        transpose_program(linear, (False,) * residuals + (True,), (True,))

    figures = {"linearize a Program": linearize, "transpose a Program": transpose}
    both = 0.0
    for name, call in figures.items():
        figure = _least(call)
        both += figure
        if options.wants(name):
            yield Measurement(name, "us/eqn", figure)
    if options.wants("linearize and transpose"):
        yield Measurement("linearize and transpose", "us/eqn", both, None, 60.0)
