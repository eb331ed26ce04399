"""The machines that code is made for: the host, and others to check code for without running it."""

from __future__ import annotations

import logging
import os
import platform
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import llvmlite.binding as llvm

_log = logging.getLogger("fxarray")


@dataclass(frozen=True)
class Target:
    """A processor.

    Args:
      name: LLVM's name of the processor.
      features: LLVM's list of features, `+a,-b,...`.
      vector_bytes: the width of the vectors that we write.
      triple: LLVM's name of architecture, system and object format.
    """

    name: str
    features: str
    vector_bytes: int
    triple: str

    @property
    def architecture(self) -> str:
        """The first part of the triple: `x86_64`, `aarch64`, ..."""
        return self.triple.partition("-")[0].replace("arm64", "aarch64")

    def has(self, feature: str) -> bool:
        """Whether the processor has a feature, by LLVM's name of it."""
        return f"+{feature}" in self.features.split(",")


def vector_bytes(architecture: str, features: frozenset[str]) -> int:
    """The width of vectors worth writing.

    512-bit vectors need AVX-512 with its instructions for bytes, 64-bit integers and short vectors
    (all processors since 2017); 256-bit ones need AVX2 with FMA, since AVX has no integers.
    """
    if architecture == "x86_64":
        if {"avx512f", "avx512bw", "avx512dq", "avx512vl"} <= features:
            return 64
        return 32 if {"avx2", "fma"} <= features else 16
    return 16


@lru_cache(maxsize=1)
def host() -> Target:
    """This machine. What LLVM does not know of it is left out, so that an unknown processor gets
    code for the least of its architecture."""
    triple = llvm.get_process_triple()
    try:
        name = llvm.get_host_cpu_name() or "generic"
        features = dict(llvm.get_host_cpu_features())
    except RuntimeError as error:
        name, features = "generic", {}
        _log.debug("this processor is not known; code is for the least of its kind: %s", error)
    have = frozenset(feature for feature, present in features.items() if present)
    text = ",".join(f"{'+' if features[feature] else '-'}{feature}" for feature in sorted(features))
    machine = platform.machine().lower().replace("amd64", "x86_64").replace("arm64", "aarch64")
    return Target(name, text, vector_bytes(machine, have), triple)


def processors() -> int:
    """The processors that this process may run on, or the share of them that its control group may
    use."""
    affinity = getattr(os, "sched_getaffinity", None)
    count = len(affinity(0)) if affinity else os.cpu_count() or 1
    return max(1, min(count, _quota()))


def _quota() -> int:
    """The processors that the control group pays for; many where it sets no limit."""
    try:
        limit, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        return -(-int(limit) // int(period))
    except (OSError, ValueError):
        return 1 << 20


# Processors that stand for what users have; code is generated for all of them in tests.
OTHERS: dict[str, Target] = {
    "sse": Target("x86-64-v2", "", 16, "x86_64-unknown-linux-gnu"),
    "avx2": Target("x86-64-v3", "", 32, "x86_64-unknown-linux-gnu"),
    "avx512": Target("x86-64-v4", "", 64, "x86_64-unknown-linux-gnu"),
    "neon": Target("neoverse-n1", "", 16, "aarch64-unknown-linux-gnu"),
    "apple": Target("apple-m1", "", 16, "arm64-apple-darwin"),
}
