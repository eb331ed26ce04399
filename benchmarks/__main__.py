"""Print what fxarray costs, what JAX costs in the same process, their ratio and our target.

    python -m benchmarks                      # all groups
    python -m benchmarks dispatch tracing     # some
    python -m benchmarks dispatch -k jit      # measurements whose names contain "jit"
    python -m benchmarks --json figures.json

Figures are the least of many repeats. A ratio above 1 means that fxarray is faster.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path

from benchmarks import demo, dispatch, startup, tracing
from benchmarks.measure import Measurement, Options, has_jax

GROUPS: dict[str, Callable[[Options], Iterator[Measurement]]] = {
    "import": startup.measure,
    "dispatch": dispatch.measure,
    "tracing": tracing.measure,
    "demo": demo.measure,
}


def line(found: Measurement) -> str:
    """One measurement as a line of the table."""

    def figure(value: float | None, digits: int = 2) -> str:
        return "" if value is None else f"{value:.{digits}f}"

    verdict = {None: "", True: "met", False: "MISSED"}[found.met]
    return (
        f"{found.name:32s}{figure(found.ours):>10s}{figure(found.jax):>10s} {found.unit:7s}"
        f"{figure(found.ratio):>7s}{figure(found.target, 1):>8s}  {verdict}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("groups", nargs="*", choices=[*GROUPS, []], help="default: all")
    parser.add_argument("-k", default="", metavar="TEXT", help="only names that contain TEXT")
    parser.add_argument("--seconds", type=float, default=0.3, help="of timing, for each figure")
    parser.add_argument("--no-jax", action="store_true", help="measure fxarray alone")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to FILE")
    chosen = parser.parse_args()
    options = Options(chosen.seconds, has_jax() and not chosen.no_jax, chosen.k)
    results: list[dict[str, object]] = []
    for group in chosen.groups or GROUPS:
        print(f"\n{group:32s}{'fxarray':>10s}{'jax':>10s} {'unit':7s}{'ratio':>7s}{'target':>8s}")
        for found in GROUPS[group](options):
            print(line(found), flush=True)
            results.append({"group": group, **asdict(found), "ratio": found.ratio})
    if chosen.json is not None:
        chosen.json.write_text(json.dumps(results, indent=1) + "\n")
        print(f"\nwrote {chosen.json}")


if __name__ == "__main__":
    main()
