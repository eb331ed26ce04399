"""Checks of vectorization: mapping an operation is the same as calling it in a loop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fxarray.core import dtypes
from fxarray.core.array import DeviceArray
from fxarray.core.primitive import Primitive, Sample, Zero, instantiate
from fxarray.interpreters.batch import batch_flat
from fxarray.interpreters.jvp import jvp_flat
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
)


def lane(array: DeviceArray, number: int) -> DeviceArray:
    """Another operand like this one: in the same range and order, with different values."""
    buffer, dtype = array.numpy_view(), array.type.dtype
    if not number or not buffer.size:
        return array
    if dtypes.is_bool(dtype):
        values: Values = np.roll(buffer, number) if buffer.ndim else ~buffer
    elif dtypes.is_key(dtype):
        values = buffer + np.uint64(number)
    elif dtypes.is_inexact(dtype):
        with np.errstate(all="ignore"):
            values = dtypes.cast(exact_values(buffer) * (1 - number / 16), buffer.dtype)
    else:
        integers = [max(int(value) - number, int(buffer.min())) for value in buffer.flat]
        values = np.array(integers, buffer.dtype).reshape(buffer.shape)
    return DeviceArray(read_only(np.asarray(values)), array.type)


def stacked(arrays: Sequence[DeviceArray], axis: int) -> DeviceArray:
    """Arrays joined along a new axis."""
    buffer = np.stack(buffers_of(arrays), axis)
    return DeviceArray(read_only(buffer), arrays[0].type.replace(shape=buffer.shape))


def mappings(arrays: Sequence[DeviceArray]) -> list[tuple[int | None, ...]]:
    """Which operands to map along which axes: the first, the last, all, at several places."""
    count = len(arrays)
    ranks = [array.type.ndim for array in arrays]
    all_last: tuple[int | None, ...] = tuple(ranks)
    found: list[tuple[int | None, ...]] = [
        (0,) * count,
        all_last,
        tuple(0 if i % 2 else rank for i, rank in enumerate(ranks)),
        tuple(0 if i == 0 else None for i in range(count)),
        tuple(ranks[i] if i == count - 1 else None for i in range(count)),
        tuple(0 if i == count - 1 else None for i in range(count)),
    ]
    if count == 3:
        found.append((None, min(1, ranks[1]), None))
    return list(dict.fromkeys(found))


def mapped_operands(
    arrays: Sequence[DeviceArray], axes: Sequence[int | None], size: int
) -> tuple[list[DeviceArray], list[list[DeviceArray]]]:
    """Operands with a mapped axis, and the operands of each lane."""
    lanes = [
        [lane(a, k) if axis is not None else a for a, axis in zip(arrays, axes, strict=True)]
        for k in range(size)
    ]
    operands = [
        array if axis is None else stacked([lanes[k][i] for k in range(size)], axis)
        for i, (array, axis) in enumerate(zip(arrays, axes, strict=True))
    ]
    return operands, lanes


def assert_is_loop(
    outputs: Sequence[Any],
    axes: Sequence[int | None],
    expected: Sequence[Sequence[Any]],
    tolerance: float,
    what: str,
) -> None:
    """Assert that mapped outputs are, lane by lane, the expected ones."""
    assert len(outputs) == len(expected[0]), f"{what}: {len(outputs)} results"
    for number, (output, axis) in enumerate(zip(outputs, axes, strict=True)):
        for k, results in enumerate(expected):
            wanted = results[number]
            buffer = output.numpy_view()
            assert buffer.dtype == dtypes.physical(output.type.dtype), f"{what}: a wrong dtype"
            assert buffer.shape == output.type.shape, f"{what}: a wrong type"
            if axis is not None:
                rank = wanted.type.ndim
                fits = buffer.ndim == rank + 1 and 0 <= axis <= rank
                assert fits, (
                    f"{what}: result {number} is {output.type} with mapped axis {axis}, "
                    f"but each lane is {wanted.type}"
                )
                assert buffer.shape[axis] == len(expected), f"{what}: axis {axis} is not the mapped"
                buffer = np.take(buffer, k, axis)
            reference = wanted.numpy_view()
            relative = tolerance * epsilon(reference.dtype)
            scale = largest(reference) if dtypes.is_inexact(reference.dtype) else 0.0
            assert_near(
                np.asarray(buffer), reference, relative, scale, f"{what}: result {number}, lane {k}"
            )


def check_batch(sample: Sample) -> None:
    """`batch` equals a loop, whichever operands are mapped along whichever axes."""
    arrays = device_arrays(sample)
    if not arrays:
        return
    for size in (3, 1):
        for axes in mappings(arrays):
            operands, lanes = mapped_operands(arrays, axes, size)
            outputs, out_axes = batch_flat(sample.op.bind, size, None, operands, axes)
            expected = [sample.op.bind(*values) for values in lanes]
            what = f"{sample.op}: mapped along {axes}, {size} lanes"
            assert_is_loop(outputs, out_axes, expected, 4 * sample.tolerance, what)


def check_jvp_of_batch(sample: Sample) -> None:
    """The derivative of a mapped operation is the mapped derivative."""
    arrays = device_arrays(sample)
    chosen = inexact_positions(arrays)
    if not chosen or not sample.differentiable or "jvp" in sample.op.EXCUSED:
        return
    rng, size = np.random.default_rng(6), 2
    for axes in mappings(arrays)[:4]:
        operands, _ = mapped_operands(arrays, axes, size)
        tangents = [random_values(rng, operands[i].type) for i in chosen]
        outer, outer_axes = _batched_jvp(sample.op, operands, axes, chosen, tangents, size)
        primals, places = _jvp_batched(sample.op, operands, axes, chosen, tangents, size)
        what = f"{sample.op}: jvp of batch along {axes}"
        lanes = [
            [_lane_of(value, axis, k) for value, axis in zip(outer, outer_axes, strict=True)]
            for k in range(size)
        ]
        assert_is_loop(primals, places, lanes, 64 * sample.tolerance, what)


def _lane_of(value: DeviceArray, axis: int | None, number: int) -> DeviceArray:
    if axis is None:
        return value
    buffer = np.asarray(np.take(value.numpy_view(), number, axis))
    return DeviceArray(buffer, value.type.replace(shape=buffer.shape))


def _with_tangents(op: Primitive, chosen: Sequence[int], count: int, values: Sequence[Any]) -> Any:
    """Values and instantiated tangents of an operation at `count` primals and chosen tangents."""
    primals, given = values[:count], dict(zip(chosen, values[count:], strict=True))
    tangents = [given.get(i, Zero(p.type.tangent())) for i, p in enumerate(primals)]
    outputs, found = jvp_flat(op.bind, primals, tangents)
    inexact = [t for t in found if dtypes.is_inexact(t.type.dtype)]
    return [*outputs, *map(instantiate, inexact)]


def _batched_jvp(
    op: Primitive,
    operands: Sequence[Any],
    axes: Sequence[int | None],
    chosen: Sequence[int],
    tangents: Sequence[Any],
    size: int,
) -> tuple[list[Any], list[int | None]]:
    return batch_flat(
        lambda *values: _with_tangents(op, chosen, len(operands), values),
        size,
        None,
        [*operands, *tangents],
        [*axes, *[axes[i] for i in chosen]],
    )


def _jvp_batched(
    op: Primitive,
    operands: Sequence[Any],
    axes: Sequence[int | None],
    chosen: Sequence[int],
    tangents: Sequence[Any],
    size: int,
) -> tuple[list[Any], list[int | None]]:
    places: list[int | None] = []

    def mapped(*values: Any) -> list[Any]:
        outputs, found = batch_flat(op.bind, size, None, values, axes)
        places.extend(found)
        return outputs

    given = dict(zip(chosen, tangents, strict=True))
    dense = [given.get(i, Zero(x.type.tangent())) for i, x in enumerate(operands)]
    outputs, derivatives = jvp_flat(mapped, operands, dense)
    kept = [i for i, t in enumerate(derivatives) if dtypes.is_inexact(t.type.dtype)]
    tangent_places = [places[i] for i in kept]
    return [*outputs, *[instantiate(derivatives[i]) for i in kept]], [*places, *tangent_places]
