"""Lines per file: 400 is the budget of a source file, 500 the limit.

python -m fxarray.tools.line_budget [DIRECTORY ...]
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

SOFT, HARD = 400, 500


def long_files(directories: Iterable[Path], limit: int = SOFT) -> list[tuple[int, Path]]:
    """Python files with more lines than a limit, longest first."""
    found: list[tuple[int, Path]] = []
    for directory in directories:
        for path in directory.rglob("*.py"):
            with path.open(encoding="utf-8") as file:
                count = sum(1 for _ in file)
            if count > limit:
                found.append((count, path))
    return sorted(found, key=lambda entry: (-entry[0], str(entry[1])))


def main(arguments: Sequence[str]) -> int:
    """Print the long files; 1 if one is over the limit."""
    directories = [Path(argument) for argument in arguments] or [Path("src")]
    files = long_files(directories)
    for count, path in files:
        print(f"{count:5d}  {path}{'  over the limit' if count > HARD else ''}")
    print(f"{len(files)} files over {SOFT} lines")
    return int(any(count > HARD for count, _ in files))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
