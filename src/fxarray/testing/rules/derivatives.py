"""Checks of derivatives: jvp against differences, linearize against jvp, transpose by dot products.

Derivatives are compared in float64, where central differences of fourth order are exact to about
ten digits; an operation that takes no float64 is compared in its own dtype, more coarsely.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np

from fxarray.core import dtypes
from fxarray.core.array import DeviceArray
from fxarray.core.errors import MissingRuleError, NonDifferentiableError
from fxarray.core.primitive import Linear, Primitive, Sample, Zero, add_tangents, instantiate
from fxarray.core.types import ArrayType
from fxarray.interpreters.linearize import apply_record, backward, linearize_flat
from fxarray.primitives.support import Values
from fxarray.testing.rules.operands import (
    assert_near,
    buffers_of,
    device_arrays,
    epsilon,
    exact_values,
    inexact_positions,
    largest,
    random_values,
    read_only,
    samples_of,
    types_of,
    wide_sample,
)

_STENCIL = ((-2, 1 / 12), (-1, -2 / 3), (1, 2 / 3), (2, -1 / 12))


def subsets(positions: Sequence[int]) -> list[tuple[int, ...]]:
    """Each position alone, and all together (of many: the first and the last alone)."""
    alone = positions if len(positions) <= 4 else (positions[0], positions[-1])
    found = [(position,) for position in alone]
    return [*found, tuple(positions)] if len(positions) > 1 else found


def _shifted(buffer: Values, direction: Values, amount: float) -> Values:
    return dtypes.cast(exact_values(buffer) + amount * exact_values(direction), buffer.dtype)


def central_difference(
    op: Primitive, buffers: Sequence[Values], directions: dict[int, Values], step: float
) -> list[Values | None]:
    """The derivative of `reference` along directions; None for results that are not inexact."""
    totals: list[Any] = []
    for multiple, weight in _STENCIL:
        moved = [
            _shifted(buffer, directions[i], multiple * step) if i in directions else buffer
            for i, buffer in enumerate(buffers)
        ]
        values = op.reference(*moved)
        totals = totals or [None] * len(values)
        for number, value in enumerate(values):
            if dtypes.is_inexact(value.dtype):
                with np.errstate(all="ignore"):
                    term = exact_values(value) * (weight / step)
                    totals[number] = term if totals[number] is None else totals[number] + term
    return totals


def _nearest(value: Values, candidates: Sequence[Any]) -> Values:
    """For each element, the candidate that is nearest to the value."""
    best = candidates[0]
    with np.errstate(all="ignore"):
        for candidate in candidates[1:]:
            best = np.where(np.abs(candidate - value) < np.abs(best - value), candidate, best)
    return np.asarray(best)


def check_tangents(op: Primitive, outputs: Sequence[Any], tangents: Sequence[Any]) -> None:
    """A tangent per output, of its type or a Zero."""
    assert len(outputs) == len(tangents), (
        f"{op}: {len(tangents)} tangents of {len(outputs)} results"
    )
    for number, (output, tangent) in enumerate(zip(outputs, tangents, strict=True)):
        wanted = output.type.tangent()
        assert tangent is not None, f"{op}: the tangent of result {number} is None, not a Zero"
        assert tangent.type.same_array(wanted), (
            f"{op}: the tangent of result {number} is {tangent.type}, not {wanted}"
        )


def _tangents(
    rng: np.random.Generator, arrays: Sequence[DeviceArray], chosen: Sequence[int]
) -> list[Any]:
    return [
        random_values(rng, array.type) if i in chosen else Zero(array.type.tangent())
        for i, array in enumerate(arrays)
    ]


def check_jvp(sample: Sample) -> None:
    """`jvp` agrees with central differences, for each operand and for all together."""
    own = device_arrays(sample)
    if not inexact_positions(own) or not sample.differentiable or "jvp" in sample.op.EXCUSED:
        return
    rng = np.random.default_rng(1)
    wide = wide_sample(sample)
    for chosen in subsets(inexact_positions(own)):
        outputs, tangents = sample.op.jvp(own, _tangents(rng, own, chosen))
        check_tangents(sample.op, outputs, tangents)
    op, arrays = (sample.op, own) if wide is None else wide
    # In another dtype than float64, differences are coarse: large steps, few digits.
    worst = max(epsilon(type.dtype) for type in (*types_of(arrays), *op.infer(*types_of(arrays))))
    # Where a large step crosses a kink, such as a tie of a maximum, a smaller one may not.
    steps, tolerance = ((1e-3, 1e-5), 1e-6) if worst < 1e-12 else ((worst**0.2,), 2 * worst**0.6)
    for chosen in subsets(inexact_positions(arrays)):
        tangents = _tangents(rng, arrays, chosen)
        outputs, found = op.jvp(arrays, tangents)
        directions = {i: tangents[i].numpy_view() for i in chosen}
        differences = [
            central_difference(op, buffers_of(arrays), directions, step) for step in steps
        ]
        values = op.reference(*buffers_of(arrays))
        for number, (tangent, value) in enumerate(zip(found, values, strict=True)):
            what = f"{op}: result {number}, derivative by operands {chosen}"
            assert_near(outputs[number].numpy_view(), value, 1e-3, largest(value), what)
            expected = [difference[number] for difference in differences]
            if expected[0] is not None:
                got = exact_values(instantiate(tangent).numpy_view())
                wanted = _nearest(got, expected)
                finite = np.isfinite(wanted) & np.isfinite(exact_values(value))
                scale = largest(wanted) + 1e-3 * largest(value) + 1e-9
                assert_near(
                    np.where(finite, got, 0), np.where(finite, wanted, 0), tolerance, scale, what
                )
        _check_own_dtype(sample, own, arrays, chosen, tangents, found)


def _check_own_dtype(
    sample: Sample,
    own: Sequence[DeviceArray],
    wide: Sequence[DeviceArray],
    chosen: Sequence[int],
    tangents: Sequence[Any],
    expected: Sequence[Any],
) -> None:
    """The derivative in the sample's own dtype is the one in float64, rounded."""
    if all(a.type == b.type for a, b in zip(own, wide, strict=True)):
        return
    narrow = [
        DeviceArray(dtypes.cast(tangent.numpy_view(), array.type.dtype), array.type)
        if i in chosen
        else Zero(array.type.tangent())
        for i, (tangent, array) in enumerate(zip(tangents, own, strict=True))
    ]
    values, found = sample.op.jvp(own, narrow)
    wide_values = _wide_values(sample, wide)
    if not all(map(_alike, buffers_of(values), wide_values)):
        return  # another choice among equally good values, such as the phase of eigenvectors
    for number, (got, wanted) in enumerate(zip(found, expected, strict=True)):
        if type(got) is Zero or type(wanted) is Zero:
            continue
        values = exact_values(wanted.numpy_view())
        tolerance = 64 * sample.tolerance / 16 * max(epsilon(a.type.dtype) for a in own)
        scale = largest(wanted.numpy_view()) + 1e-6
        got = exact_values(got.numpy_view())
        # Where the narrow dtype overflows there is nothing to compare.
        got = np.where(np.isfinite(got), got, values)
        assert_near(got, values, tolerance, scale, f"{sample.op}: tangent {number} in its dtype")


def _wide_values(sample: Sample, arrays: Sequence[DeviceArray]) -> Sequence[Values]:
    wide = wide_sample(sample)
    op = sample.op if wide is None else wide[0]
    return op.reference(*buffers_of(arrays))


def _alike(narrow: Values, wide: Values) -> bool:
    if not dtypes.is_inexact(narrow.dtype):
        return True
    with np.errstate(all="ignore"):
        error = np.abs(exact_values(narrow) - exact_values(wide))
    error = error[np.isfinite(error)]
    return not error.size or float(error.max()) <= 1e3 * epsilon(narrow.dtype) * (largest(wide) + 1)


def check_linearize(sample: Sample) -> None:
    """Linearizing agrees with `jvp`, and walking it backwards is its transpose.

    Where there is no jvp, what is walked backwards is compared with central differences.
    """
    arrays = device_arrays(sample)
    if not inexact_positions(arrays) or not sample.differentiable:
        return
    wide = wide_sample(sample)
    op, arrays = (sample.op, arrays) if wide is None else wide
    rng = np.random.default_rng(2)
    worst = max(epsilon(array.type.dtype) for array in arrays)
    for chosen in subsets(inexact_positions(arrays)):
        tangents = _tangents(rng, arrays, chosen)
        nonzeros = [i in chosen for i in range(len(arrays))]
        try:
            values, record = linearize_flat(op.bind, arrays, nonzeros)
        except NonDifferentiableError:
            if "linearize" in op.EXCUSED:
                return
            raise
        if "jvp" in op.EXCUSED:
            directions = {i: tangents[i].numpy_view() for i in chosen}
            differences = central_difference(op, buffers_of(arrays), directions, 1e-3)
            found = [
                Zero(v.type.tangent()) if d is None else DeviceArray(d, v.type)
                for v, d in zip(values, differences, strict=True)
            ]
            tolerance = 1e-6 if worst < 1e-12 else 1e-2
        else:
            found = apply_record(record, tangents)
            check_tangents(op, values, found)
            _compare_tangents(op, found, op.jvp(arrays, tangents)[1], 1000 * worst)
            tolerance = 1e4 * worst
        cotangents = [
            Zero(v.type.tangent()) if type(t) is Zero else random_values(rng, v.type)
            for v, t in zip(values, found, strict=True)
        ]
        pulled = backward(record, cotangents)
        left, size = _dot(cotangents, found)
        right, other_size = _dot(pulled, tangents)
        assert abs(left - right) <= tolerance * (size + other_size + 1e-9), (
            f"{op}: derivative by operands {chosen}: <ct, J t> = {left}, but <J^T ct, t> = {right}"
        )


def _compare_tangents(
    op: Primitive, found: Sequence[Any], expected: Sequence[Any], tolerance: float
) -> None:
    for number, (got, wanted) in enumerate(zip(found, expected, strict=True)):
        if dtypes.is_inexact(wanted.type.dtype):
            one, other = buffers_of([instantiate(got), instantiate(wanted)])
            what = f"{op}: linearize against jvp, tangent {number}"
            assert_near(one, other, tolerance, largest(other), what)


def _dot(cotangents: Sequence[Any], tangents: Sequence[Any]) -> tuple[float, float]:
    """Re(sum(ct * t)) over all pairs, and the sum of magnitudes."""
    total = magnitude = 0.0
    for cotangent, tangent in zip(cotangents, tangents, strict=True):
        if type(cotangent) is Zero or type(tangent) is Zero or cotangent is None:
            continue
        product = exact_values(cotangent.numpy_view()) * exact_values(tangent.numpy_view())
        total += float(np.sum(product).real)
        magnitude += float(np.sum(np.abs(product)))
    return total, magnitude


# --- transpose ------------------------------------------------------------------------------------


def linear_subsets(op: Primitive, arrays: Sequence[DeviceArray]) -> list[tuple[int, ...]]:
    """The sets of operands in which the operation is jointly linear, found by trying."""
    positions = inexact_positions(arrays)
    candidates = [
        chosen
        for count in range(1, min(len(positions), 3) + 1)
        for chosen in combinations(positions, count)
    ]
    if len(positions) > 3:
        candidates.append(tuple(positions))
    if any(not array.numpy_view().size for array in arrays):
        return []  # a function of nothing is linear in everything
    return [chosen for chosen in candidates if _is_linear(op, arrays, chosen)]


def _is_linear(op: Primitive, arrays: Sequence[DeviceArray], chosen: Sequence[int]) -> bool:
    rng = np.random.default_rng(3)
    x, y = _tangents(rng, arrays, chosen), _tangents(rng, arrays, chosen)

    def apply(a: float, b: float) -> Sequence[Values]:
        buffers = buffers_of(arrays)
        for i in chosen:
            mixed = a * exact_values(x[i].numpy_view()) + b * exact_values(y[i].numpy_view())
            buffers[i] = read_only(dtypes.cast(mixed, arrays[i].type.dtype))
        return op.reference(*buffers)

    worst = max(epsilon(array.type.dtype) for array in arrays)
    if len(chosen) > 1 and not all(_matters(op, arrays, i) for i in chosen):
        return False
    with np.errstate(all="ignore"):
        for first, second, mixed in zip(apply(1, 0), apply(0, 1), apply(2, -3), strict=True):
            if not dtypes.is_inexact(first.dtype) or not first.size:
                return False
            expected = 2 * exact_values(first) - 3 * exact_values(second)
            error = np.abs(exact_values(mixed) - expected)
            if not np.all(error <= 1e3 * worst * (largest(first) + largest(second))):
                return False
    return True


def _matters(op: Primitive, arrays: Sequence[DeviceArray], position: int) -> bool:
    """Whether the results depend on an operand."""
    buffers = buffers_of(arrays)
    before = op.reference(*buffers)
    buffers[position] = random_values(np.random.default_rng(7), arrays[position].type).numpy_view()
    after = op.reference(*buffers)
    pairs = zip(before, after, strict=True)
    return any(not np.array_equal(x, y, equal_nan=x.dtype.kind in "fc") for x, y in pairs)


def check_transpose(sample: Sample) -> None:
    """`transpose` passes the dot test <ct, f(x)> = <fT(ct), x> wherever the operation is linear."""
    arrays = device_arrays(sample)
    if not inexact_positions(arrays) or "transpose" in sample.op.EXCUSED:
        return
    wide = wide_sample(sample)
    op, arrays = (sample.op, arrays) if wide is None else wide
    rng = np.random.default_rng(4)
    for chosen in linear_subsets(op, arrays):
        xs = [random_values(rng, a.type) if i in chosen else a for i, a in enumerate(arrays)]
        results = op.bind(*xs)
        patterns = [(True,) * len(results)]
        if len(results) > 1:
            patterns += [tuple(i == 0 for i in range(len(results)))]
        for pattern in patterns:
            cotangents = [
                random_values(rng, result.type) if given else Zero(result.type)
                for result, given in zip(results, pattern, strict=True)
            ]
            _check_dot(op, chosen, xs, results, cotangents)


def _is_linear_by_chance(op: Primitive, chosen: tuple[int, ...], count: int) -> bool:
    """Whether the operation is linear at some samples, as a product of a single factor is."""
    good, _ = samples_of(type(op))
    for sample in good:
        wide = wide_sample(sample)
        other, arrays = (sample.op, device_arrays(sample)) if wide is None else wide
        comparable = len(arrays) == count and set(chosen) <= set(inexact_positions(arrays))
        filled = all(array.numpy_view().size for array in arrays)
        if comparable and filled and not _is_linear(other, arrays, chosen):
            return True
    return False


def _check_dot(
    op: Primitive,
    chosen: tuple[int, ...],
    xs: Sequence[DeviceArray],
    results: Sequence[DeviceArray],
    cotangents: Sequence[Any],
) -> None:
    operands: list[Any] = [Linear(x.type) if i in chosen else x for i, x in enumerate(xs)]
    what = f"{op}: transpose by operands {chosen}"
    try:
        found = op.transpose(cotangents, *operands)
    except MissingRuleError as error:
        if _is_linear_by_chance(op, chosen, len(xs)):
            return
        raise AssertionError(f"{what}: the operation is linear in them, but {error}") from error
    assert len(found) == len(xs), f"{what}: {len(found)} cotangents of {len(xs)} operands"
    for i, cotangent in enumerate(found):
        if i in chosen and cotangent is not None:
            assert cotangent.type.same_array(xs[i].type), (
                f"{what}: the cotangent of operand {i} is {cotangent.type}, not {xs[i].type}"
            )
    left, size = _dot(cotangents, results)
    linear = [found[i] if i in chosen else None for i in range(len(xs))]
    right, other_size = _dot(linear, xs)
    worst = max(epsilon(x.type.dtype) for x in xs)
    assert abs(left - right) <= 1e4 * worst * (size + other_size + 1e-9), (
        f"{what}: <ct, f(x)> = {left}, but <fT(ct), x> = {right}"
    )
    if op.accumulates:
        _check_into(op, what, cotangents, operands, linear)


def _check_into(
    op: Primitive,
    what: str,
    cotangents: Sequence[Any],
    operands: Sequence[Any],
    contributions: Sequence[Any],
) -> None:
    """`transpose_into` adds what `transpose` gives to running totals."""
    rng = np.random.default_rng(5)

    def zero(type: ArrayType) -> Zero:
        return Zero(type)

    running = [random_values(rng, x.type) if type(x) is Linear else None for x in operands]
    found = op.transpose_into(running, cotangents, *operands)
    for i, total in enumerate(running):
        if total is None:
            continue
        contribution = contributions[i]
        given = zero(total.type) if contribution is None else contribution
        wanted = instantiate(add_tangents(total, given)).numpy_view()
        got = instantiate(found[i]).numpy_view()
        tolerance = 64 * epsilon(wanted.dtype)
        assert_near(got, wanted, tolerance, largest(wanted), f"{what}: transpose_into, operand {i}")
