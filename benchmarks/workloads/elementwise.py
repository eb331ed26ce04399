"""Elementwise chains, views and reductions: bound by memory, if the compiler is good."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.workloads.registry import normal, workload


@workload("elementwise", torch=lambda t, x: t.nn.functional.silu(x) * 0.5 + x)
def silu_residual(m: Any) -> Any:
    return (lambda x: m.nn.silu(x) * 0.5 + x), (normal(3_000_000),)


@workload("elementwise", numpy=lambda x, y: np.hypot(np.sin(x), np.cos(y)))
def trigonometric_field(m: Any) -> Any:
    def f(x: Any, y: Any) -> Any:
        return m.numpy.sqrt(m.numpy.sin(x) ** 2 + m.numpy.cos(y) ** 2)

    return f, (normal(1_500_000, scale=5), normal(1_500_000, seed=1, scale=5))


@workload("elementwise", numpy=lambda x: np.log1p(np.exp(-np.abs(x))) + np.maximum(x, 0))
def softplus(m: Any) -> Any:
    return (lambda x: m.numpy.log1p(m.numpy.exp(-m.numpy.abs(x))) + m.numpy.maximum(x, 0)), (
        normal(2_000_000),
    )


@workload("elementwise")
def black_scholes(m: Any) -> Any:
    def price(spot: Any, strike: Any, years: Any) -> Any:
        rate, volatility = 0.03, 0.25
        root = volatility * m.numpy.sqrt(years)
        d1 = (m.numpy.log(spot / strike) + (rate + volatility**2 / 2) * years) / root
        cdf1 = 0.5 * (1 + m.lax.erf(d1 / 2**0.5))
        cdf2 = 0.5 * (1 + m.lax.erf((d1 - root) / 2**0.5))
        return spot * cdf1 - strike * m.numpy.exp(-rate * years) * cdf2

    spot, strike = np.abs(normal(1_000_000)) + 1, np.abs(normal(1_000_000, seed=1)) + 1
    return price, (spot, strike, np.abs(normal(1_000_000, seed=2)) + 0.1)


@workload("elementwise", numpy=lambda x: np.ascontiguousarray(x.transpose(0, 2, 1)) * 2)
def batched_transpose(m: Any) -> Any:
    return (lambda x: x.transpose(0, 2, 1) * 2), (normal(24, 384, 512),)


@workload("elementwise")
def five_point_stencil(m: Any) -> Any:
    def step(u: Any) -> Any:
        inner = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * u[1:-1, 1:-1]
        return m.numpy.pad(u[1:-1, 1:-1] + 0.1 * inner, 1)

    return step, (normal(1500, 1500),)


@workload("reduce", numpy=lambda x: x.std(axis=1), torch=lambda t, x: x.std(1, correction=0))
def standard_deviation_of_rows(m: Any) -> Any:
    return (lambda x: m.numpy.std(x, axis=1)), (normal(3000, 1111),)


@workload("reduce", numpy=lambda x: x.max(0) - x.min(0))
def range_of_columns(m: Any) -> Any:
    return (lambda x: x.max(0) - x.min(0)), (normal(4000, 700),)


@workload("reduce", torch=lambda t, x: t.nn.functional.rms_norm(x, (768,)))
def rms_norm(m: Any) -> Any:
    def f(x: Any) -> Any:
        return x * m.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-6)

    return f, (normal(4096, 768),)


@workload("reduce", torch=lambda t, x: t.softmax(x, 1))
def softmax_of_middle_axis(m: Any) -> Any:
    return (lambda x: m.nn.softmax(x, axis=1)), (normal(32, 256, 200),)


@workload("reduce")
def cross_entropy_gradient(m: Any) -> Any:
    def loss(logits: Any, labels: Any) -> Any:
        return -m.numpy.take_along_axis(m.nn.log_softmax(logits), labels, -1).mean()

    labels = np.random.default_rng(0).integers(0, 5000, (512, 1)).astype(np.int32)
    return m.grad(loss), (normal(512, 5000), labels)


@workload("reduce", numpy=lambda x: x.argmin(1), torch=lambda t, x: x.argmin(1))
def argmin_of_rows(m: Any) -> Any:
    return (lambda x: x.argmin(1)), (normal(2000, 1500),)


@workload("reduce", numpy=lambda x: np.cumsum(x, 1), torch=lambda t, x: x.cumsum(1))
def cumulative_sum_of_rows(m: Any) -> Any:
    return (lambda x: m.numpy.cumsum(x, axis=1)), (normal(1000, 2000),)
