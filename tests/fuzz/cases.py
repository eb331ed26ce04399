"""Random programs: generated, written down, run and compared."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

import fxarray
import fxarray.lax
import fxarray.nn
import fxarray.numpy
from fuzz.vocabulary import WORDS, Fact, Libraries, Parameters

OURS = Libraries(fxarray, fxarray.numpy, fxarray.lax, fxarray.nn)
DTYPES = ("float32", "float32", "float32", "float64", "int32", "int64", "bfloat16", "uint8")
TRANSFORMS = ("none", "none", "none", "grad", "jvp", "vmap", "vmap_grad", "scan")
# Relative to the largest magnitude of a result. Narrow types are rounded after every operation.
TOLERANCES = {"float32": 3e-4, "float64": 1e-9, "bfloat16": 0.2, "float16": 0.05}


@dataclass(frozen=True)
class Step:
    """One application of a word to earlier values."""

    word: str
    operands: tuple[int, ...]
    parameters: Parameters


@dataclass(frozen=True)
class Case:
    """A random program: inputs, steps, which values it returns, and how it is transformed."""

    inputs: tuple[tuple[tuple[int, ...], str], ...]
    steps: tuple[Step, ...]
    outputs: tuple[int, ...]
    transform: str
    seed: int

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=1)

    @staticmethod
    def from_json(text: str) -> Case:
        data = json.loads(text)
        return Case(
            tuple((tuple(shape), dtype) for shape, dtype in data["inputs"]),
            tuple(Step(s["word"], tuple(s["operands"]), s["parameters"]) for s in data["steps"]),
            tuple(data["outputs"]),
            data["transform"],
            data["seed"],
        )


def input_values(case: Case) -> list[np.ndarray]:
    """Multiples of 1/8, so that sums and products of a few are exact."""
    rng = np.random.default_rng(case.seed)
    return [
        np.asarray(rng.integers(-24, 25, shape) / (1 if "int" in dtype else 8)).astype(
            _numpy_dtype(dtype)
        )
        for shape, dtype in case.inputs
    ]


def _numpy_dtype(dtype: str) -> Any:
    return fxarray.dtypes.canonicalize_dtype(dtype)


def function(case: Case, libraries: Libraries) -> Callable[..., tuple[Any, ...]]:
    """The case as a function of its inputs, without its transform."""

    def f(*inputs: Any) -> tuple[Any, ...]:
        values = list(inputs)
        for step in case.steps:
            operands = [values[number] for number in step.operands]
            values.append(WORDS[step.word].apply(libraries, operands, step.parameters))
        return tuple(values[number] for number in case.outputs)

    return f


def transformed(case: Case, libraries: Libraries) -> Callable[..., Any]:
    """The case as a function of its inputs."""
    f, m = function(case, libraries), libraries
    smooth = [n for n, (_, dtype) in enumerate(case.inputs) if "float" in dtype]

    def objective(*inputs: Any) -> Any:
        total = m.numpy.zeros((), "float32")
        for output in f(*inputs):
            if "float" in str(output.dtype):
                total = total + m.numpy.sum(m.numpy.sin(output)).astype("float32")
        return total

    if case.transform == "grad" and smooth:
        return m.top.value_and_grad(objective, argnums=tuple(smooth))
    if case.transform == "jvp" and smooth:

        def pushed(*inputs: Any) -> Any:
            def of_smooth(*some: Any) -> Any:
                full = list(inputs)
                for place, value in zip(smooth, some, strict=True):
                    full[place] = value
                return objective(*full)

            primals = [inputs[n] for n in smooth]
            return m.top.jvp(of_smooth, primals, [m.numpy.ones_like(x) for x in primals])

        return pushed
    if case.transform == "vmap":
        return lambda *inputs: m.top.vmap(f)(
            *[m.numpy.stack([x, x[::-1]] if x.ndim else [x, x * 2]) for x in inputs]
        )
    if case.transform == "vmap_grad" and smooth:
        return lambda *inputs: m.top.vmap(m.top.grad(objective, argnums=tuple(smooth)))(
            *[m.numpy.stack([x, x * 2]) for x in inputs]
        )
    if case.transform == "scan":
        return lambda *inputs: m.lax.scan(
            lambda c, _: (c + 1, f(*[x + c.astype(x.dtype) for x in inputs])),
            m.numpy.zeros((), "int32"),
            None,
            length=2,
        )
    return f


def generate(seed: int, most: int = 12) -> Case:
    """A random case; the same seed gives the same one."""
    rng = np.random.default_rng(seed)
    transform = str(rng.choice(TRANSFORMS))
    smooth_only = transform in ("grad", "jvp", "vmap_grad")
    sizes = [int(n) for n in rng.integers(0 if rng.random() < 0.1 else 1, 9, 3)]
    inputs: list[tuple[tuple[int, ...], str]] = []
    for _ in range(int(rng.integers(1, 4))):
        rank = int(rng.integers(0, 4))
        dtype = str(rng.choice(DTYPES[:5] if smooth_only else DTYPES))
        inputs.append((tuple(int(rng.choice(sizes)) for _ in range(rank)), dtype))
    if smooth_only:
        inputs[0] = (inputs[0][0], "float32")
    case = Case(tuple(inputs), (), (), transform, seed)
    arrays = [fxarray.numpy.asarray(x) for x in input_values(case)]
    facts = [Fact(x.shape, str(x.dtype), True) for x in arrays]
    values: list[Any] = list(arrays)
    steps: list[Step] = []
    names = list(WORDS)
    wanted = int(rng.integers(1, most + 1))
    for _ in range(20 * wanted):
        if len(steps) == wanted:
            break
        found = WORDS[str(rng.choice(names))]
        if smooth_only and not found.smooth:
            continue
        # Later values more often, so that programs are deep.
        weights = np.arange(1, len(values) + 1, dtype=float)
        weights /= weights.sum()
        operands = tuple(int(n) for n in rng.choice(len(values), found.arity, p=weights))
        own = [facts[n] for n in operands]
        if not found.fits(own):
            continue
        parameters = found.draw(rng, own)
        value = found.apply(OURS, [values[n] for n in operands], parameters)
        if value.size > 5000:
            continue
        is_exact = found.exact and all(fact.exact for fact in own)
        steps.append(Step(found.name, operands, parameters))
        values.append(value)
        facts.append(Fact(value.shape, str(value.dtype), is_exact))
    count = min(len(values), int(rng.integers(1, 4)))
    last = len(values) - 1
    others = [int(n) for n in rng.choice(len(values), count - 1)]
    return replace(case, steps=tuple(steps), outputs=(last, *others))


def run(case: Case, backend: str) -> list[np.ndarray]:
    """The results of a case on a backend of fxarray."""
    arrays = [fxarray.numpy.asarray(x) for x in input_values(case)]
    results = fxarray.jit(transformed(case, OURS), backend=backend)(*arrays)
    return [np.asarray(leaf) for leaf in fxarray.tree.leaves(results)]


def run_by_jax(case: Case) -> list[np.ndarray]:
    """The results of a case by JAX."""
    import jax
    import jax.numpy

    theirs = Libraries(jax, jax.numpy, jax.lax, jax.nn)
    with jax.enable_x64(True):
        arrays = [jax.numpy.asarray(x) for x in input_values(case)]
        results = jax.jit(transformed(case, theirs))(*arrays)
        return [np.asarray(leaf) for leaf in jax.tree.leaves(results)]


def coarsest(case: Case) -> float:
    """The tolerance of the narrowest floating-point type that a case computes with."""
    used = {dtype for _, dtype in case.inputs}
    used.update(step.parameters.get("dtype", "float32") for step in case.steps)
    return max(tolerance for dtype, tolerance in TOLERANCES.items() if dtype in used | {"float32"})


def difference(
    got: Sequence[np.ndarray], wanted: Sequence[np.ndarray], least_tolerance: float = 0.0
) -> str | None:
    """How two lists of results differ, or None."""
    if len(got) != len(wanted):
        return f"{len(got)} results, not {len(wanted)}"
    for number, (a, b) in enumerate(zip(got, wanted, strict=True)):
        if a.shape != b.shape:
            return f"result {number} has shape {a.shape}, not {b.shape}"
        # Indices are of 32 bits here, of 64 in JAX with 64-bit types.
        if a.dtype != b.dtype and not (a.dtype == np.int32 and b.dtype == np.int64):
            return f"result {number} has dtype {a.dtype}, not {b.dtype}"
        if "int" in str(a.dtype) or a.dtype == bool:
            if not np.array_equal(a, b):
                return f"result {number} ({a.dtype}{list(a.shape)}):\n{a}\nnot\n{b}"
            continue
        tolerance = max(TOLERANCES[str(a.dtype)], least_tolerance)
        x, y = a.astype(np.float64), b.astype(np.float64)
        finite = np.isfinite(y)
        if not np.array_equal(x[~finite], y[~finite], equal_nan=True):
            return f"result {number}: not finite elsewhere:\n{a}\nnot\n{b}"
        largest = np.abs(y[finite]).max(initial=0.5)
        if not np.all(np.abs(x[finite] - y[finite]) <= tolerance * largest):
            return f"result {number} ({a.dtype}{list(a.shape)}):\n{a}\nnot\n{b}"
    return None


def failure(case: Case, backend: str, against: str = "reference") -> str | None:
    """How a case fails, or None. Errors of the peer are not failures of ours."""
    try:
        wanted = run_by_jax(case) if against == "jax" else run(case, against)
    except Exception as error:  # noqa: BLE001, whatever the peer does not do
        return None if against == "jax" else f"{against}: {type(error).__name__}: {error}"
    try:
        got = run(case, backend)
    except Exception as error:  # noqa: BLE001, which is what is looked for
        return f"{type(error).__name__}: {error}"
    # A derivative in one type may come from values of another.
    mixed = case.transform in ("grad", "jvp", "vmap_grad")
    return difference(got, wanted, coarsest(case) if mixed else 0.0)


def shrink(case: Case, fails: Callable[[Case], bool]) -> Case:
    """A smaller case that still fails: fewer outputs, steps and transforms."""
    changed = True
    while changed:
        changed = False
        for smaller in _smaller(case):
            if fails(smaller):
                case, changed = smaller, True
                break
    return case


def _smaller(case: Case) -> list[Case]:
    found: list[Case] = []
    if case.transform != "none":
        found.append(replace(case, transform="none"))
    if len(case.outputs) > 1:
        found.extend(replace(case, outputs=(output,)) for output in case.outputs)
    count = len(case.inputs)
    # Return an earlier value instead, which drops everything after it.
    if case.outputs and len(case.outputs) == 1:
        found.extend(replace(case, outputs=(n,)) for n in range(count, case.outputs[0]))
    needed = set(case.outputs)
    for number in range(len(case.steps) - 1, -1, -1):
        if count + number in needed:
            needed.update(case.steps[number].operands)
    unused = [n for n in range(len(case.steps)) if count + n not in needed]
    if unused:
        found.insert(0, _without(case, unused))
    # Take a step's operand for its result.
    found.extend(
        _bypassed(case, count + number, operand)
        for number, step in enumerate(case.steps)
        for operand in step.operands
    )
    return found


def _without(case: Case, dropped: Sequence[int]) -> Case:
    count = len(case.inputs)
    kept = [n for n in range(len(case.steps)) if n not in set(dropped)]
    numbers = {n: n for n in range(count)} | {count + n: count + i for i, n in enumerate(kept)}
    steps = tuple(
        replace(case.steps[n], operands=tuple(numbers[o] for o in case.steps[n].operands))
        for n in kept
    )
    return replace(case, steps=steps, outputs=tuple(numbers[o] for o in case.outputs))


def _bypassed(case: Case, value: int, operand: int) -> Case:
    def other(number: int) -> int:
        return operand if number == value else number

    steps = tuple(replace(s, operands=tuple(map(other, s.operands))) for s in case.steps)
    return replace(case, steps=steps, outputs=tuple(map(other, case.outputs)))
