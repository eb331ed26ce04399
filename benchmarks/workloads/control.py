"""Loops and branches inside compiled functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.workloads.registry import integers, normal, workload


@workload("control")
def collatz(m: Any) -> Any:
    def steps(n: Any) -> Any:
        def body(state: Any) -> Any:
            n, count = state
            return m.numpy.where(n % 2 == 0, n // 2, 3 * n + 1), count + 1

        return m.lax.while_loop(lambda state: state[0] > 1, body, (n, 0))[1]

    return steps, (np.int32(837_799 // 2),)


@workload("control")
def logistic_map(m: Any) -> Any:
    def run(x: Any) -> Any:
        return m.lax.fori_loop(0, 50_000, lambda _, x: 3.7 * x * (1 - x), x)

    return run, (np.float32(0.3),)


@workload("control")
def pendulum_trajectory(m: Any) -> Any:
    def step(state: Any, _: Any) -> Any:
        angle, speed = state
        speed = speed - 0.01 * m.numpy.sin(angle)
        angle = angle + 0.01 * speed
        return (angle, speed), angle

    def run(angle: Any) -> Any:
        return m.lax.scan(step, (angle, m.numpy.zeros_like(angle)), None, length=5000)[1]

    return run, (np.linspace(0.1, 3, 8).astype(np.float32),)


@workload("control")
def gated_recurrence_gradient(m: Any) -> Any:
    def loss(weights: Any, inputs: Any) -> Any:
        recurrent, gates = weights

        def cell(h: Any, x: Any) -> Any:
            gate = m.nn.sigmoid(h @ gates)
            h = gate * h + (1 - gate) * m.numpy.tanh(h @ recurrent + x)
            return h, h

        start = m.numpy.zeros(inputs.shape[1:], inputs.dtype)
        return (m.lax.scan(cell, start, inputs)[1] ** 2).mean()

    weights = (normal(48, 48, scale=0.1), normal(48, 48, seed=1, scale=0.1))
    return m.grad(loss), (weights, normal(150, 8, 48))


@workload("control")
def newton_per_lane(m: Any) -> Any:
    def root(a: Any) -> Any:
        def body(x: Any) -> Any:
            return 0.5 * (x + a / x)

        return m.lax.while_loop(lambda x: m.numpy.abs(x * x - a) > 1e-4 * a, body, a)

    return m.vmap(root), (np.abs(normal(50_000)) + 0.1,)


@workload("control")
def interpreter(m: Any) -> Any:
    branches = [lambda x: x + 1, lambda x: x * 0.5, lambda x: -x, m.numpy.tanh]

    def run(x: Any, code: Any) -> Any:
        return m.lax.scan(lambda x, op: (m.lax.switch(op, branches, x), None), x, code)[0]

    return run, (normal(16), integers(4, 3000))
