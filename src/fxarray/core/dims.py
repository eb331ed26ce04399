"""Symbolic sizes (placeholder of the interface; the full module replaces this file)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


class Dim:
    """An integer-valued expression over named variables."""

    key: Any


def same(a: Any, b: Any) -> bool:
    return a == b


def shape_product(shape: Iterable[Any]) -> Any:
    total: Any = 1
    for size in shape:
        total = total * size
    return total
