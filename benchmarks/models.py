"""Parameter trees of the size of a small language model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fxarray import nn


class Linear(nn.Module):
    weight: Any
    bias: Any
    activation: Callable[..., Any]


class Norm(nn.Module):
    gain: Any
    bias: Any
    epsilon: float


class Attention(nn.Module):
    query: Linear
    key: Linear
    value: Linear
    output: Linear
    heads: int


class Block(nn.Module):
    norm1: Norm
    attention: Attention
    norm2: Norm
    up: Linear
    down: Linear


class Transformer(nn.Module):
    embedding: Any
    blocks: list[Block]
    norm: Norm


def transformer(leaf: Any) -> Transformer:
    """A module of twelve blocks, 195 leaves in all, every leaf the same."""

    def linear() -> Linear:
        return Linear(leaf, leaf, len)

    def norm() -> Norm:
        return Norm(leaf, leaf, 1e-5)

    def attention() -> Attention:
        return Attention(linear(), linear(), linear(), linear(), 8)

    blocks = [Block(norm(), attention(), norm(), linear(), linear()) for _ in range(12)]
    return Transformer(leaf, blocks, norm())


def transformer_as_dicts(leaf: Any) -> Any:
    """The same tree in plain containers, for libraries without modules."""

    def linear() -> Any:
        return {"weight": leaf, "bias": leaf}

    def block() -> Any:
        return {
            "norm1": linear(),
            "attention": {part: linear() for part in ("query", "key", "value", "output")},
            "norm2": linear(),
            "up": linear(),
            "down": linear(),
        }

    return {"embedding": leaf, "blocks": [block() for _ in range(12)], "norm": linear()}
