"""Random programs give the same values compiled and by the reference; kept failures stay fixed."""

from __future__ import annotations

from pathlib import Path

import pytest

from fuzz.cases import Case, failure, generate

KEPT = sorted((Path(__file__).parent / "kept").glob("*.json"))
GROUP = 25


@pytest.mark.parametrize("group", range(40))
def test_random_programs_agree_with_the_reference(group: int) -> None:
    for seed in range(group * GROUP, (group + 1) * GROUP):
        case = generate(seed)
        text = failure(case, "cpu")
        assert text is None, f"seed {seed}: {case.to_json()}\n{text}"


@pytest.mark.parametrize("group", range(4))
def test_random_programs_agree_with_jax(group: int) -> None:
    for seed in range(10_000 + group * GROUP, 10_000 + (group + 1) * GROUP):
        case = generate(seed, most=6)
        text = failure(case, "cpu", "jax")
        assert text is None, f"seed {seed}: {case.to_json()}\n{text}"


def test_failures_that_were_found_stay_fixed() -> None:
    for path in KEPT:
        text = failure(Case.from_json(path.read_text()), "cpu")
        assert text is None, f"{path.name}:\n{text}"
