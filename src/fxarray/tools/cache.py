"""The cache of object code on disk: what it takes, and clearing it.

python -m fxarray.tools.cache show
python -m fxarray.tools.cache clear
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence

from fxarray.devices.cpu.native.cache import ObjectCache, byte_count, default_cache


def describe(cache: ObjectCache) -> str:
    """Where the cache is, how many objects it has, what they take and how old they are."""
    found = list(cache.entries())
    lines = [
        f"directory  {cache.directory}",
        f"objects    {len(found)}",
        f"size       {byte_count(sum(entry.size for entry in found))} of {byte_count(cache.limit)}",
    ]
    if found:
        now = time.time()
        ages = [max(0.0, now - entry.used) for entry in found]
        lines.append(f"last used  {_age(min(ages))} to {_age(max(ages))} ago")
    return "\n".join(lines)


def _age(seconds: float) -> str:
    for size, name in ((86400, "days"), (3600, "hours"), (60, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {name}"
    return f"{seconds:.0f} seconds"


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m fxarray.tools.cache", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("command", nargs="?", choices=("show", "clear"), default="show")
    cache = default_cache()
    if parser.parse_args(arguments).command == "clear":
        print(f"removed {cache.clear()} objects from {cache.directory}")
    else:
        print(describe(cache))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
