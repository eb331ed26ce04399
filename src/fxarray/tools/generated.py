"""Pages that are written from the code: write them, or check that they are up to date."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path


def run_generator(make: Callable[[], str], default: str, description: str) -> int:
    """The command line of a generator: write the page, or compare with `--check`.

    Args:
      make: gives the page's text.
      default: the page's path.
      description: one sentence for `--help`.

    Returns:
      The exit status: 1 if `--check` finds the page out of date.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("path", nargs="?", default=default, type=Path)
    parser.add_argument("--check", action="store_true", help="only say whether it is up to date")
    arguments = parser.parse_args()
    text = make()
    path: Path = arguments.path
    if arguments.check:
        current = path.read_text(encoding="utf-8") if path.exists() else ""
        if current != text:
            print(f"{path} is out of date; run this without --check")
            return 1
        return 0
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    print(f"wrote {path}")
    return 0
