"""Random values equal those that JAX drew, kept in golden.json (see make_golden.py)."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from fxarray import jit, random

RECORDS: list[dict[str, Any]] = json.loads(Path(__file__).with_name("golden.json").read_text())
SEEDS = RECORDS[0]["seeds"]
LEGACY = RECORDS[1]["legacy"]
CASES = RECORDS[2:]

# Units in the last place, of the result or of 1 where that is larger. Values agree within 4, except
# where XLA's own functions are further from the truth: its float64 log1p by 110 units, its float64
# erf_inv by 12; its float16 programs lose the least number that is added before a logarithm.
ULPS = {
    ("exponential", "float64"): 128.0,
    ("laplace", "float64"): 128.0,
    ("logistic", "float64"): 128.0,
    ("normal", "float64"): 16.0,
    ("normal", "complex128"): 16.0,
    ("truncated_normal", "float64"): 16.0,
    ("gumbel", "float16"): 16.0,
    ("logistic", "float16"): 16.0,
}
# In the tail a unit in the last place of erf is many of the result.
TAIL = 128.0


def name(case: dict[str, Any]) -> str:
    parts = [case["function"], case["dtype"], *map(str, case["shape"])]
    parts += [str(v) for v in case["arguments"].values() if isinstance(v, bool | int | str)]
    return "-".join(parts)


def decode(argument: Any) -> Any:
    if isinstance(argument, dict):
        return np.array(argument["array"], argument["dtype"])
    return tuple(argument) if isinstance(argument, list) else argument


def draw(case: dict[str, Any]) -> np.ndarray:
    arguments = {k: decode(v) for k, v in case["arguments"].items()}
    function = getattr(random, case["function"])
    result = function(random.key(case["seed"]), **arguments)
    if case["function"] in ("split", "fold_in"):
        result = random.key_data(result)
    return np.asarray(result)


EXACT = [case for case in CASES if "close" not in case]
CLOSE = [case for case in CASES if "close" in case]


def check_exact(case: dict[str, Any], value: np.ndarray) -> None:
    # Indices are 32-bit here, as in JAX without its x64 flag.
    expected = "int32" if case["dtype"] == "int64" and value.dtype == np.int32 else case["dtype"]
    assert str(value.dtype) == expected
    assert list(value.shape) == case["shape"]
    data = np.ascontiguousarray(value).astype(np.dtype(case["dtype"])).tobytes()
    if "bytes" in case:
        assert data.hex() == case["bytes"]
    else:
        assert data[:32].hex() == case["head"]
        assert hashlib.sha256(data).hexdigest() == case["sha256"]


@pytest.mark.parametrize("case", EXACT, ids=name)
def test_values_equal_jax_to_the_last_bit(case: dict[str, Any]) -> None:
    check_exact(case, draw(case))


@pytest.mark.parametrize("case", EXACT[::5], ids=name)
def test_values_under_jit_equal_jax_to_the_last_bit(case: dict[str, Any]) -> None:
    arguments = {k: decode(v) for k, v in case["arguments"].items()}
    function = getattr(random, case["function"])
    result = jit(lambda key: function(key, **arguments))(random.key(case["seed"]))
    if case["function"] in ("split", "fold_in"):
        result = random.key_data(result)
    check_exact(case, np.asarray(result))


@pytest.mark.parametrize("case", CLOSE, ids=name)
def test_values_equal_jax_within_rounding(case: dict[str, Any]) -> None:
    value = draw(case)
    assert str(value.dtype) == case["dtype"]
    assert list(value.shape) == case["shape"]
    flat = value.reshape(-1)[: len(case["close"])]
    if flat.dtype.kind == "c":
        parts = flat[: len(case["close"]) // 2].astype(np.complex128).view(np.float64)
    else:
        parts = flat.astype(np.float64)
    expected = np.array(case["close"])
    epsilon = float(ml_dtypes.finfo(value.dtype).eps)
    units = ULPS.get((case["function"], case["dtype"]), 4.0)
    if case["arguments"].get("lower") == 3.0:
        units = TAIL
    allowed = units * epsilon * np.maximum(np.abs(expected), 1)
    assert (np.abs(parts - expected) <= allowed).all()


@pytest.mark.parametrize("record", SEEDS, ids=lambda record: str(record["seed"]))
def test_key_words_of_a_seed_equal_jax(record: dict[str, Any]) -> None:
    assert random.key_data(random.key(record["seed"])).tolist() == record["words"]
    assert random.PRNGKey(record["seed"]).tolist() == record["words"]


def test_raw_keys_are_accepted_and_given_back() -> None:
    key = random.PRNGKey(LEGACY["seed"])
    assert key.tolist() == LEGACY["key"]
    assert random.split(key, 3).tolist() == LEGACY["split"]
    assert random.fold_in(key, 4).tolist() == LEGACY["fold_in"]
    as_numpy = np.array(LEGACY["key"], np.uint32)
    assert random.split(as_numpy, 3).tolist() == LEGACY["split"]
