"""What `import fxarray` costs, in fresh processes; `import numpy` beside it as the floor."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

from benchmarks.measure import Measurement, Options, once


def _seconds(module: str, repeats: int = 5) -> float:
    command = [sys.executable, "-c", f"import {module}"]
    return min(once(lambda: subprocess.run(command, check=True)) for _ in range(repeats))


def measure(options: Options) -> Iterator[Measurement]:
    """All figures of this group."""
    if options.wants("import fxarray"):
        jax = _seconds("jax", 2) if options.jax else None
        yield Measurement("import fxarray", "s", _seconds("fxarray"), jax, 0.3)
    if options.wants("import numpy alone"):
        yield Measurement("import numpy alone", "s", _seconds("numpy"))
