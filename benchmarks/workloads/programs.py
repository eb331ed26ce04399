"""Whole programs: models that are trained, simulations that are differentiated."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from benchmarks.workloads.contractions import attention
from benchmarks.workloads.registry import integers, normal, workload


@workload("program")
def autoencoder_step(m: Any) -> Any:
    sizes = [400, 256, 64, 256, 400]

    def loss(weights: Any, x: Any) -> Any:
        y = x
        for weight, bias in weights:
            y = m.numpy.tanh(y @ weight + bias)
        return ((y - x) ** 2).mean()

    def step(weights: Any, x: Any) -> Any:
        slopes = m.grad(loss)(weights, x)
        return m.tree.map(lambda w, g: w - 0.01 * g, weights, slopes)

    weights = [(normal(a, b, scale=a**-0.5), np.zeros(b, np.float32)) for a, b in pairwise(sizes)]
    return step, (weights, normal(256, 400))


def _normalised(m: Any, x: Any, gain: Any) -> Any:
    return x * m.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-5) * gain


def _block(m: Any, p: Any, x: Any, heads: int) -> Any:
    batch, length, width = x.shape
    mixed = _normalised(m, x, p["norm1"]) @ p["qkv"]
    q, k, v = (
        part.reshape(batch, length, heads, -1).transpose(0, 2, 1, 3)
        for part in m.numpy.split(mixed, 3, -1)
    )
    joined = attention(m, q, k, v).transpose(0, 2, 1, 3).reshape(batch, length, width)
    x = x + joined @ p["out"]
    return x + m.nn.silu(_normalised(m, x, p["norm2"]) @ p["up"]) @ p["down"]


def language_model_loss(m: Any, heads: int) -> Any:
    """The loss of a decoder-only transformer with tied embeddings."""

    def loss(p: Any, tokens: Any) -> Any:
        x = p["embedding"][tokens[:, :-1]]
        for block in p["blocks"]:
            x = _block(m, block, x, heads)
        logits = _normalised(m, x, p["norm"]) @ p["embedding"].T
        scores = m.nn.log_softmax(logits)
        return -m.numpy.take_along_axis(scores, tokens[:, 1:, None], -1).mean()

    return loss


def language_model(layers: int, width: int, vocabulary: int) -> Any:
    """Its parameters."""
    blocks = [
        {
            "norm1": np.ones(width, np.float32),
            "norm2": np.ones(width, np.float32),
            "qkv": normal(width, 3 * width, seed=layer, scale=0.03),
            "out": normal(width, width, seed=layer, scale=0.03),
            "up": normal(width, 4 * width, seed=layer, scale=0.03),
            "down": normal(4 * width, width, seed=layer, scale=0.03),
        }
        for layer in range(layers)
    ]
    embedding = normal(vocabulary, width, scale=0.03)
    return {"embedding": embedding, "blocks": blocks, "norm": np.ones(width, np.float32)}


@workload("program")
def language_model_step(m: Any) -> Any:
    loss = language_model_loss(m, 6)

    def step(p: Any, momentum: Any, tokens: Any) -> Any:
        value, slopes = m.value_and_grad(loss)(p, tokens)
        momentum = m.tree.map(lambda v, g: 0.9 * v + g, momentum, slopes)
        return value, m.tree.map(lambda w, v: w - 0.01 * v, p, momentum), momentum

    p = language_model(3, 192, 2000)
    momentum = {
        "embedding": np.zeros_like(p["embedding"]),
        "blocks": [{k: np.zeros_like(v) for k, v in block.items()} for block in p["blocks"]],
        "norm": np.zeros_like(p["norm"]),
    }
    return step, (p, momentum, integers(2000, 6, 193))


@workload("program")
def lennard_jones_forces(m: Any) -> Any:
    def energy(x: Any) -> Any:
        apart = x[:, None] - x[None]
        square = (apart**2).sum(-1) + m.numpy.eye(x.shape[0])
        inverse = 1 / square**3
        return (4 * (inverse**2 - inverse) * (1 - m.numpy.eye(x.shape[0]))).sum() / 2

    return m.grad(energy), (normal(600, 3, scale=8),)


@workload("program")
def heat_equation_inverse(m: Any) -> Any:
    def misfit(start: Any, seen: Any) -> Any:
        def step(u: Any, _: Any) -> Any:
            return u + 0.2 * (m.numpy.roll(u, 1) - 2 * u + m.numpy.roll(u, -1)), None

        return ((m.lax.scan(step, start, None, length=200)[0] - seen) ** 2).sum()

    return m.grad(misfit), (normal(2000), normal(2000, seed=1))


@workload("program")
def gaussian_process_loss(m: Any) -> Any:
    def loss(scale: Any, x: Any, y: Any) -> Any:
        distance = ((x[:, None] - x[None]) ** 2).sum(-1)
        kernel = m.numpy.exp(-distance / scale**2) + 0.1 * m.numpy.eye(x.shape[0])
        root = m.numpy.linalg.cholesky(kernel)
        half = m.lax.linalg.triangular_solve(root, y[:, None], left_side=True, lower=True)
        return (half**2).sum() / 2 + m.numpy.log(m.numpy.diagonal(root)).sum()

    return m.value_and_grad(loss), (np.float32(2.0), normal(300, 4), normal(300, seed=1))
