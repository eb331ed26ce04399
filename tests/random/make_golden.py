"""Write golden.json: random values drawn by JAX, to which fxarray's are compared.

Run ``python tests/random/make_golden.py`` with JAX installed; the same JAX writes the same file.
Integers and uniform values are kept exactly: whole when they are small, as a digest when they are
not. Values that pass through a logarithm or an inverse error function are kept as numbers.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import jax
import numpy as np

GOLDEN = Path(__file__).with_name("golden.json")
WHOLE = 160  # bytes; larger exact results are kept as a digest
HEAD = 48  # elements of an inexact result that are kept

Case = dict[str, Any]

SEEDS = [0, 1, 42, -1, -7, 2**31 - 1, 2**31, 2**32 - 1, -(2**31)]
WIDE_SEEDS = [2**32, 2**32 + 5, 2**40 + 3, 2**63 - 1, -(2**31) - 1, -(2**40), -(2**63)]
SHAPES: list[tuple[int, ...]] = [(), (0,), (1,), (7,), (3, 5), (2, 0, 3), (70001,)]
INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
FLOATS = ["float32", "float64", "float16", "bfloat16"]


def array(values: Any, dtype: str) -> Case:
    """Return the record of an array argument."""
    return {"array": values, "dtype": dtype}


def decode(argument: Any) -> Any:
    """Return the Python value of a recorded argument."""
    if isinstance(argument, dict):
        return np.array(argument["array"], argument["dtype"])
    return tuple(argument) if isinstance(argument, list) else argument


def draw(function: str, seed: int, exact: bool, **arguments: Any) -> Case:
    """Call ``jax.random.<function>`` and return the record of the call and its result."""
    with jax.enable_x64(False):  # the seeds of fxarray are those of JAX without the flag
        key = jax.random.key(seed)
    result = getattr(jax.random, function)(key, **{k: decode(v) for k, v in arguments.items()})
    if function in ("split", "fold_in"):
        result = jax.random.key_data(result)
    value = np.asarray(result)
    record: Case = {
        "function": function,
        "seed": seed,
        "arguments": arguments,
        "dtype": str(value.dtype),
        "shape": list(value.shape),
    }
    data = np.ascontiguousarray(value).tobytes()
    if not exact:
        flat = value.reshape(-1)[:HEAD]
        wide = flat.astype(np.complex128 if flat.dtype.kind == "c" else np.float64)
        record["close"] = wide.view(np.float64).tolist()
    elif len(data) <= WHOLE:
        record["bytes"] = data.hex()
    else:
        record["sha256"] = hashlib.sha256(data).hexdigest()
        record["head"] = data[:32].hex()
    return record


def seeds() -> list[Case]:
    """Return the key words of each seed: 32-bit ones without x64, wider ones with it."""
    records = []
    for wide, values in ((False, SEEDS), (True, WIDE_SEEDS)):
        with jax.enable_x64(wide):
            for seed in values:
                words = np.asarray(jax.random.key_data(jax.random.key(seed)))
                records.append({"seed": seed, "words": words.tolist()})
    return records


def exact_cases() -> list[Case]:
    """Return the cases that must agree to the last bit."""
    cases = [
        draw("bits", 42, True, shape=list(shape), dtype=f"uint{width}")
        for shape in SHAPES
        for width in (8, 16, 32, 64)
    ]
    cases += [draw("bits", seed, True, shape=[4], dtype="uint32") for seed in SEEDS]
    for num in ([], [2], [1], [0], [5], [2, 3], [300]):
        cases.append(draw("split", 3, True, num=num))
    for data in (0, 1, 2, 2**31, 2**32 - 1):
        cases.append(draw("fold_in", 9, True, data=data))
    ranges = [(0.0, 1.0), (-3.0, 7.5), (-1.3, 1.7), (5.0, 5.0), (2.0, 1.0), (0.001, 1.0)]
    for dtype in FLOATS:
        for shape in SHAPES:
            cases.append(draw("uniform", 5, True, shape=list(shape), dtype=dtype))
        for low, high in ranges:
            arguments = {"shape": [20011], "dtype": dtype, "minval": low, "maxval": high}
            cases.append(draw("uniform", 6, True, **arguments))
    cases.append(
        draw(
            "uniform",
            6,
            True,
            shape=[2, 3],
            dtype="float32",
            minval=array([0.0, -1.0, 3.0], "float32"),
            maxval=array([[1.0], [30.0]], "float32"),
        )
    )
    for dtype in ("float8_e4m3fn", "float8_e5m2"):
        cases.append(draw("uniform", 8, True, shape=[64], dtype=dtype))
    return cases + integer_cases() + order_cases()


def integer_cases() -> list[Case]:
    """Return the cases of randint, rademacher and bernoulli."""
    cases = []
    for dtype in INTEGERS:
        info = np.iinfo(dtype)
        low, high = int(info.min), int(info.max)
        ranges = [(0, 10), (5, 5), (7, 3), (0, 100), (-7, 100), (0, min(high, 2**63 - 1))]
        if dtype != "uint64":
            ranges += [(low, high), (low, min(high + 1, 2**63 - 1)), (0, min(high + 1, 2**63 - 1))]
        for minval, maxval in ranges:
            arguments = {"shape": [1001], "minval": minval, "maxval": maxval, "dtype": dtype}
            cases.append(draw("randint", 7, True, **arguments))
    for shape in SHAPES:
        arguments = {"shape": list(shape), "minval": -5, "maxval": 1000, "dtype": "int32"}
        cases.append(draw("randint", 1, True, **arguments))
    cases.append(
        draw(
            "randint",
            2,
            True,
            shape=[3, 4],
            minval=array([0, 1, 2, 3], "int32"),
            maxval=array([[5], [2], [9]], "int32"),
            dtype="int32",
        )
    )
    with jax.enable_x64(False):  # it compares with a number of the default dtype
        cases.append(draw("rademacher", 3, True, shape=[33], dtype="int32"))
        cases.append(draw("rademacher", 3, True, shape=[5], dtype="float32"))
    for mode in ("low", "high"):
        p = array(0.3, "float32")
        cases.append(draw("bernoulli", 4, True, shape=[1000], p=p, mode=mode))
    cases.append(draw("bernoulli", 4, True, p=array([0.1, 0.5, 0.9], "float32")))
    cases.append(draw("bernoulli", 4, True, p=array([0.1, 0.5, 0.9], "float64"), shape=[7, 3]))
    return cases


def order_cases() -> list[Case]:
    """Return the cases of permutation and choice."""
    cube = array(np.arange(60).reshape(3, 4, 5).tolist(), "int32")
    line = array(np.linspace(0, 1, 17).tolist(), "float32")
    cases = [
        draw("permutation", 11, True, x=array(list(range(n)), "int32"))
        for n in (0, 1, 2, 5, 100, 1625, 1626)
    ]
    cases.append(draw("permutation", 11, True, x=line))
    for axis in (0, 1, -1):
        for independent in (False, True):
            arguments = {"x": cube, "axis": axis, "independent": independent}
            cases.append(draw("permutation", 12, True, **arguments))
    with jax.enable_x64(False):  # an integer argument makes int32 indices there, as in fxarray
        cases += [draw("permutation", 13, True, x=size) for size in (0, 1, 9, 70000)]
        for replace in (True, False):
            cases.append(draw("choice", 14, True, a=50, shape=[3, 4], replace=replace))
            cases.append(draw("choice", 14, True, a=cube, shape=[2], replace=replace, axis=1))
            cases.append(draw("choice", 14, True, a=line, replace=replace))
            p = array([0.1, 0.2, 0.05, 0.4, 0.25], "float32")
            cases.append(draw("choice", 15, True, a=5, shape=[4], replace=replace, p=p))
        table = [[0.0, 1.0, -2.0, 0.5], [3.0, 1.0, 1.0, 1.0], [0.0, 0.0, 0.0, 9.0]]
        logits = array(table, "float32")
        cases.append(draw("categorical", 16, True, logits=logits))
        cases.append(draw("categorical", 16, True, logits=logits, axis=0))
        cases.append(draw("categorical", 16, True, logits=logits, shape=[50, 3]))
        cases.append(draw("categorical", 16, True, logits=logits, shape=[2, 3], replace=False))
        cases.append(draw("categorical", 16, True, logits=logits, mode="high"))
    return cases


def close_cases() -> list[Case]:
    """Return the cases that agree within rounding."""
    plain = ("gumbel", "exponential", "laplace", "logistic", "cauchy")
    draws: list[tuple[str, int, Case]] = [
        ("normal", 21, {"shape": [1000], "dtype": dtype})
        for dtype in (*FLOATS, "complex64", "complex128")
    ]
    for dtype in FLOATS:
        bounds = {"lower": -0.5, "upper": 2.0, "shape": [50], "dtype": dtype}
        draws.append(("truncated_normal", 22, bounds))
        draws += [(function, 23, {"shape": [50], "dtype": dtype}) for function in plain]
    tail = {"lower": 3.0, "upper": 3.5, "shape": [9], "dtype": "float32"}
    draws += [
        ("normal", 21, {"shape": [], "dtype": "float32"}),
        ("truncated_normal", 22, tail),
        ("gumbel", 24, {"shape": [50], "dtype": "float32", "mode": "high"}),
        ("gumbel", 24, {"shape": [50], "dtype": "float32", "mode": "highest"}),
    ]
    return [draw(function, seed, False, **arguments) for function, seed, arguments in draws]


def main() -> None:
    """Write every case, one a line."""
    lines = [json.dumps({"seeds": seeds()})]
    with jax.enable_x64(False):
        lines += [json.dumps({"legacy": legacy()})]
    with jax.enable_x64(True):
        lines += [json.dumps(case) for case in exact_cases() + close_cases()]
    GOLDEN.write_text("[\n" + ",\n".join(lines) + "\n]\n")


def legacy() -> Case:
    """Return what raw uint32 keys give."""
    key = jax.random.PRNGKey(17)
    return {
        "seed": 17,
        "key": np.asarray(key).tolist(),
        "split": np.asarray(jax.random.split(key, 3)).tolist(),
        "fold_in": np.asarray(jax.random.fold_in(key, 4)).tolist(),
    }


if __name__ == "__main__":
    main()
