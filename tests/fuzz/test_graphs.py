"""Random Programs: their graphs, run by the definition of graphs, give the reference's values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from fuzz.cases import failure, generate
from fxarray.compile import backend as backends
from fxarray.compile.backend import CompileOptions, register_backend
from fxarray.compile.fuse import Policy, fuse
from fxarray.compile.graph_check import check_graph
from fxarray.compile.interpret import run_graph
from fxarray.compile.simplify import simplify
from fxarray.core.array import DeviceArray
from fxarray.core.ir import Program

GROUP = 25


class _Executable:
    stages: tuple[str, ...] = ()

    def __init__(self, program: Program, policy: Policy) -> None:
        self.types = program.output_types
        self.graph = fuse(simplify(program), policy)
        check_graph(self.graph)

    def __call__(self, arguments: Sequence[DeviceArray]) -> list[DeviceArray]:
        results = run_graph(self.graph, [argument.numpy_view() for argument in arguments])
        for result, type in zip(results, self.types, strict=True):
            assert result.shape == type.shape
            assert result.dtype == type.dtype
        return [DeviceArray(np.array(r), t) for r, t in zip(results, self.types, strict=True)]

    def located(self, program: Program) -> _Executable:
        return self

    def direct(self) -> None:
        return None


class _Graphs:
    def __init__(self, name: str, policy: Policy) -> None:
        self.name = name
        self.policy = policy

    def compile(self, program: Program, options: CompileOptions) -> Any:
        return _Executable(program, self.policy)


# The second has thresholds that small arrays reach.
POLICIES = {"graphs": Policy(), "graphs of large arrays": Policy(large=4, row_elements=16)}


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("group", range(4))
def test_graphs_of_random_programs_agree_with_the_reference(
    name: str, group: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backends._registry, "backends", dict(backends._registry.backends))
    register_backend(_Graphs(name, POLICIES[name]))
    for seed in range(50_000 + group * GROUP, 50_000 + (group + 1) * GROUP):
        case = generate(seed)
        text = failure(case, name)
        assert text is None, f"seed {seed}: {case.to_json()}\n{text}"
