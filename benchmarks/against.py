"""Time fxarray's compiled functions beside JAX, PyTorch and NumPy, in one process, in turns.

    python -m benchmarks.against                       # every workload against JAX
    python -m benchmarks.against -g contract           # one group
    python -m benchmarks.against -k softmax --peers jax torch numpy
    python -m benchmarks.against --workloads mine.py   # your own beside them
    python -m benchmarks.against --plot ratios.svg --json figures.json
    python -m benchmarks.against --sizes               # a table over sizes instead

A ratio above 1 means that fxarray is faster: the ratio of the medians of calls that alternate.
Results are compared before anything is timed. A file of your own workloads enters them as those in
`benchmarks/workloads` do, with `benchmarks.workloads.registry.workload`.
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import runpy
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import library, once
from benchmarks.plot import bars
from benchmarks.workloads import WORKLOADS, Workload
from benchmarks.workloads.registry import normal

Call = Callable[[], Any]


def prepared(name: str, workload: Workload) -> Call:
    """The call of a library in JAX's manner, compiled."""
    module = library(name)
    importlib.import_module(f"{name}.nn")
    function, arguments = workload.make(module)
    arrays = module.tree.map(module.numpy.asarray, arguments)
    compiled = module.jit(function)
    return lambda: module.block_until_ready(compiled(*arrays))


def peer(name: str, workload: Workload) -> Call | None:
    """A peer's call, or None if the workload has none for it."""
    if name == "jax":
        return prepared("jax", workload)
    arguments = workload.make(library("fxarray"))[1]
    if name == "numpy" and workload.numpy is not None:
        function = workload.numpy
        return lambda: function(*arguments)
    if name == "torch" and workload.torch is not None:
        torch = importlib.import_module("torch")
        tensors = [torch.from_numpy(np.array(x)) for x in arguments]
        function = workload.torch
        return lambda: function(torch, *tensors)
    return None


def leaves(result: Any) -> list[np.ndarray[Any, Any]]:
    """The arrays of a result, of whichever library."""
    return [np.asarray(leaf) for leaf in library("fxarray").tree.leaves(result)]


def disagreement(ours: Any, theirs: Any) -> str | None:
    """How two results differ beyond what rounding explains, or None."""
    a, b = leaves(ours), leaves(theirs)
    if len(a) != len(b):
        return f"{len(a)} results against {len(b)}"
    for number, (x, y) in enumerate(zip(a, b, strict=True)):
        if x.shape != y.shape:
            return f"result {number}: shape {x.shape} against {y.shape}"
        wide = np.complex128 if np.iscomplexobj(x) else np.float64
        x, y = x.astype(wide), y.astype(wide)
        largest = np.abs(y).max(initial=0)
        if not np.allclose(x, y, rtol=2e-2, atol=2e-2 * (largest or 1), equal_nan=True):
            return f"result {number} differs by up to {np.abs(x - y).max():.2g} of {largest:.2g}"
    return None


def in_turn(calls: Sequence[Call], seconds: float) -> list[float]:
    """Median seconds of each call."""
    counts = [max(1, min(1000, int(2e-4 / max(once(call), 1e-7)))) for call in calls]
    found: list[list[float]] = [[] for _ in calls]
    end = time.perf_counter() + seconds
    while len(found[0]) < 5 or time.perf_counter() < end:
        for place, (call, count) in enumerate(zip(calls, counts, strict=True)):
            start = time.perf_counter()
            for _ in range(count):
                call()
            found[place].append((time.perf_counter() - start) / count)
    return [statistics.median(times) for times in found]


def measure(
    workloads: Sequence[Workload], peers: Sequence[str], seconds: float
) -> Iterator[dict[str, Any]]:
    """One row for each workload and peer."""
    for workload in workloads:
        ours = prepared("fxarray", workload)
        start = time.perf_counter()
        result = ours()
        first = time.perf_counter() - start
        for name in peers:
            theirs = peer(name, workload)
            if theirs is None:
                continue
            start = time.perf_counter()
            other = theirs()
            first_other = time.perf_counter() - start
            wrong = None if workload.name in _RANDOM else disagreement(result, other)
            mine, their = in_turn([ours, theirs], seconds)
            yield {
                "name": workload.name,
                "group": workload.group,
                "peer": name,
                "ours": mine,
                "theirs": their,
                "ratio": their / mine,
                "first": first,
                "first_theirs": first_other,
                "wrong": wrong,
            }


# Bits are equal to JAX's; what NumPy and PyTorch draw, and floats made of bits, are not compared.
_RANDOM = {"dropout", "normal_numbers"}


def geometric_mean(values: Sequence[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values))


def _of_size(count: int) -> list[Workload]:
    """A map, a reduction and a product of about that many elements."""
    side = max(1, min(1500, round(count**0.5)))
    square = normal(side, side)
    return [
        Workload("tanh", "sizes", lambda m: (m.numpy.tanh, (normal(count),))),
        Workload("sum", "sizes", lambda m: (m.numpy.sum, (normal(count),))),
        Workload("product", "sizes", lambda m: (m.numpy.matmul, (square, square))),
    ]


def sizes(seconds: float) -> None:
    """Print a table over sizes from 1 to 10^8 elements: microseconds, ours and JAX's."""
    print(f"{'elements':>12s}{'tanh':>20s}{'sum':>20s}{'product':>20s}   fxarray and jax, us")
    for power in range(9):
        cells: list[str] = []
        for workload in _of_size(10**power):
            calls = [prepared(name, workload) for name in ("fxarray", "jax")]
            mine, their = in_turn(calls, seconds)
            cells.append(f"{mine * 1e6:10.1f}{their * 1e6:10.1f}")
        print(f"{10**power:12d}{''.join(cells)}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("-k", default="", metavar="TEXT", help="only names that contain TEXT")
    parser.add_argument("-g", default="", metavar="GROUP", help="only this group")
    parser.add_argument("--peers", nargs="+", default=["jax"], choices=["jax", "torch", "numpy"])
    parser.add_argument("--seconds", type=float, default=0.5, help="of timing, for each pair")
    parser.add_argument("--workloads", type=Path, help="a file that enters further workloads")
    parser.add_argument("--plot", type=Path, metavar="FILE.svg", help="draw the ratios")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures")
    parser.add_argument("--sizes", action="store_true", help="a table over sizes instead")
    chosen = parser.parse_args()
    if chosen.sizes:
        sizes(chosen.seconds)
        return
    if chosen.workloads is not None:
        runpy.run_path(str(chosen.workloads))
    wanted = [w for w in WORKLOADS if chosen.k in w.name and chosen.g in w.group]
    print(f"{'workload':32s}{'peer':>6s}{'fxarray':>12s}{'peer':>12s}{'ratio':>8s}{'first':>8s}")
    rows: list[dict[str, Any]] = []
    for row in measure(wanted, chosen.peers, chosen.seconds):
        rows.append(row)
        first = row["first_theirs"] / row["first"]
        verdict = f"  WRONG {row['wrong']}" if row["wrong"] else ""
        print(
            f"{row['name']:32s}{row['peer']:>6s}{row['ours'] * 1e6:10.1f}us"
            f"{row['theirs'] * 1e6:10.1f}us{row['ratio']:8.2f}{first:8.2f}{verdict}",
            flush=True,
        )
    for name in chosen.peers:
        groups = dict.fromkeys(row["group"] for row in rows if row["peer"] == name)
        for group in (*groups, ""):
            ratios = [r["ratio"] for r in rows if r["peer"] == name and group in (r["group"], "")]
            if ratios:
                print(
                    f"{group or 'all':12s} against {name:6s} geometric mean "
                    f"{geometric_mean(ratios):6.2f}, least {min(ratios):5.2f}, of {len(ratios)}"
                )
    if chosen.plot is not None:
        chosen.plot.write_text(bars(rows))
    if chosen.json is not None:
        chosen.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
