"""Print Modules, and trees of them, by the shapes of their arrays."""

from __future__ import annotations

from typing import Any

from fxarray.nn.metadata import array_text, is_array

WIDTH = 80


def pretty(value: Any, width: int = WIDTH) -> str:
    """Return a tree as text: arrays by dtype and shape, nested where a line would be too long.

    Args:
        value: the tree.
        width: the length that a line should not exceed.

    >>> import numpy as np
    >>> pretty({"w": np.zeros((3, 4), np.float32), "act": len})
    "{'w': f32[3,4], 'act': len}"
    """
    return _render(value, "", width)


def _render(value: Any, indent: str, room: int) -> str:
    opening, closing, items = _split(value)
    if items is None:
        return opening
    flat = opening + ", ".join(label + _flat(item) for label, item in items) + closing
    if len(flat) <= room and "\n" not in flat:
        return flat
    inner = indent + "  "
    lines = [
        f"{inner}{label}{_render(item, inner, WIDTH - len(inner) - len(label) - 1)},\n"
        for label, item in items
    ]
    return f"{opening}\n{''.join(lines)}{indent}{closing}"


def _flat(value: Any) -> str:
    opening, closing, items = _split(value)
    if items is None:
        return opening
    return opening + ", ".join(label + _flat(item) for label, item in items) + closing


def _split(value: Any) -> tuple[str, str, list[tuple[str, Any]] | None]:
    """Return the text around a node, and its labelled items; a leaf has its text alone."""
    layout = getattr(type(value), "__layout__", None)
    if layout is not None:
        fields = vars(value)
        # A Module may be printed, by a debugger or an error, before it is complete.
        items = [(f"{n}=", fields[n]) for n in layout.shown if n in fields]
        return f"{type(value).__name__}(", ")", items
    if type(value) is list:
        return "[", "]", [("", item) for item in value]
    if type(value) is tuple:
        return "(", ",)" if len(value) == 1 else ")", [("", item) for item in value]
    if type(value) is dict:
        return "{", "}", [(f"{key!r}: ", item) for key, item in value.items()]
    if is_array(value):
        return array_text(value), "", None
    if callable(value) and hasattr(value, "__name__"):
        return str(value.__name__), "", None
    return repr(value), "", None
