"""Matrix products, convolutions, attention."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.workloads.registry import normal, workload


def _product(m: Any) -> Any:
    return lambda a, b: a @ b


for _rows, _inner, _columns in ((96, 96, 96), (512, 512, 512), (1500, 900, 1100), (20_000, 48, 24)):

    def _make(m: Any, shape: tuple[int, int, int] = (_rows, _inner, _columns)) -> Any:
        rows, inner, columns = shape
        return _product(m), (normal(rows, inner), normal(inner, columns))

    _make.__name__ = f"product_{_rows}x{_inner}x{_columns}"
    workload("contract", numpy=np.matmul, torch=lambda t, a, b: a @ b)(_make)


@workload("contract", numpy=np.matmul, torch=lambda t, a, b: a @ b)
def product_with_vector(m: Any) -> Any:
    return _product(m), (normal(1800, 2200), normal(2200))


@workload("contract", numpy=np.matmul, torch=lambda t, a, b: a @ b)
def batched_product(m: Any) -> Any:
    return _product(m), (normal(100, 72, 40), normal(100, 40, 56))


@workload("contract")
def swiglu(m: Any) -> Any:
    def f(x: Any, gate: Any, up: Any, down: Any) -> Any:
        return (m.nn.silu(x @ gate) * (x @ up)) @ down

    return f, (
        normal(512, 512),
        normal(512, 1400, scale=0.05),
        normal(512, 1400, seed=1, scale=0.05),
        normal(1400, 512, scale=0.05),
    )


@workload("contract", numpy=lambda a, b: np.tensordot(a, b, ((1, 2), (0, 1))))
def tensor_contraction(m: Any) -> Any:
    def f(a: Any, b: Any) -> Any:
        return m.numpy.einsum("ijk,jkl->il", a, b)

    return f, (normal(300, 24, 32), normal(24, 32, 200))


def _convolution(m: Any, groups: int = 1, stride: int = 1) -> Any:
    return lambda x, k: m.lax.conv_general_dilated(
        x, k, (stride, stride), "SAME", feature_group_count=groups
    )


@workload("contract", torch=lambda t, x, k: t.nn.functional.conv2d(x, k, padding=2))
def convolution_5x5(m: Any) -> Any:
    return _convolution(m), (normal(4, 32, 48, 48), normal(48, 32, 5, 5, scale=0.05))


@workload("contract")
def strided_convolution_gradient(m: Any) -> Any:
    convolve = _convolution(m, stride=2)
    return (
        m.grad(lambda k, x: (convolve(x, k) ** 2).sum(), argnums=(0, 1)),
        (normal(48, 32, 3, 3, scale=0.1), normal(4, 32, 40, 40)),
    )


@workload("contract", torch=lambda t, x, k: t.nn.functional.conv2d(x, k, padding=3, groups=96))
def depthwise_7x7(m: Any) -> Any:
    return _convolution(m, groups=96), (normal(4, 96, 28, 28), normal(96, 1, 7, 7, scale=0.1))


def attention(m: Any, q: Any, k: Any, v: Any) -> Any:
    """Causal attention, written plainly."""
    scores = m.numpy.einsum("bhqd,bhkd->bhqk", q, k) * q.shape[-1] ** -0.5
    length = scores.shape[-1]
    visible = m.numpy.arange(length)[:, None] >= m.numpy.arange(length)
    weights = m.nn.softmax(m.numpy.where(visible, scores, -1e30), axis=-1)
    return m.numpy.einsum("bhqk,bhkd->bhqd", weights, v)


@workload(
    "contract",
    torch=lambda t, q, k, v: t.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True),
)
def causal_attention(m: Any) -> Any:
    return (
        lambda q, k, v: attention(m, q, k, v),
        tuple(normal(2, 6, 640, 48, seed=seed) for seed in range(3)),
    )


@workload("contract")
def attention_with_bias_gradient(m: Any) -> Any:
    def loss(q: Any, k: Any, v: Any, bias: Any) -> Any:
        scores = m.numpy.einsum("hqd,hkd->hqk", q, k) * q.shape[-1] ** -0.5 + bias
        return (m.numpy.einsum("hqk,hkd->hqd", m.nn.softmax(scores), v) ** 2).sum()

    arrays = tuple(normal(8, 384, 32, seed=seed) for seed in range(3))
    return m.grad(loss, argnums=(0, 1, 2, 3)), (*arrays, normal(8, 384, 384, seed=3))
