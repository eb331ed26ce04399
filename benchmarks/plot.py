"""Ratios as a bar chart, in SVG."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any
from xml.sax.saxutils import escape

_ROW, _LEFT, _WIDTH = 18, 260, 520
_COLOURS = {"jax": "#3b6ea5", "torch": "#c65d3b", "numpy": "#5f8f4e"}


def bars(rows: Sequence[dict[str, Any]]) -> str:
    """One bar for each row, on a logarithmic scale around 1.

    Args:
      rows: each with `name`, `peer` and `ratio`.
    """
    largest = max([2.0, *(abs(math.log2(row["ratio"])) for row in rows)])
    height = _ROW * (len(rows) + 2)
    middle = _LEFT + _WIDTH / 2
    size = f'width="{_LEFT + _WIDTH + 60}" height="{height}"'
    title = "times faster than the peer (right of the line: fxarray is faster)"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="11">',
        f'<text x="{middle}" y="12" text-anchor="middle">{title}</text>',
        f'<line x1="{middle}" y1="{_ROW}" x2="{middle}" y2="{height}" stroke="black"/>',
    ]
    for number, row in enumerate(rows):
        top = _ROW * (number + 1) + 4
        length = math.log2(row["ratio"]) / largest * _WIDTH / 2
        left = min(middle, middle + length)
        colour = _COLOURS.get(row["peer"], "#777777")
        parts.append(
            f'<text x="{_LEFT - 8}" y="{top + 10}" text-anchor="end">'
            f"{escape(row['name'])} ({escape(row['peer'])})</text>"
            f'<rect x="{left:.1f}" y="{top}" width="{abs(length):.1f}" height="12" '
            f'fill="{colour}"/>'
            f'<text x="{max(middle, middle + length) + 4:.1f}" y="{top + 10}">'
            f"{row['ratio']:.2f}</text>"
        )
    return "\n".join([*parts, "</svg>", ""])
