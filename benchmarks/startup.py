"""What `import fxarray` costs, in fresh processes; `import numpy` beside it as the floor."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator

from benchmarks.measure import Measurement, Options, once


def _seconds(module: str, repeats: int = 6) -> float:
    """The least seconds of a process that imports `module`, its bytecode being compiled already."""
    command = [sys.executable, "-c", f"import {module}"]
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": folder}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)

        def start() -> None:
            subprocess.run(command, check=True, env=environment)

        start()
        return min(once(start) for _ in range(repeats))


def measure(options: Options) -> Iterator[Measurement]:
    """All figures of this group."""
    if options.wants("import fxarray"):
        jax = _seconds("jax", 2) if options.jax else None
        yield Measurement("import fxarray", "s", _seconds("fxarray"), jax, 0.3)
    if options.wants("import numpy alone"):
        yield Measurement("import numpy alone", "s", _seconds("numpy"))
