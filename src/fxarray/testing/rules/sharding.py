"""The check of factor records: an operation done in parts, combined, equals the whole.

Each factor that may be split is split over a simulated row of devices: every operand that carries
it is cut there, `reference` runs on each part, and the parts are put together: side by side along
dimensions that carry the factor, by the record's reduction where the factor has vanished.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from fxarray.core import dtypes
from fxarray.core.array import DeviceArray
from fxarray.core.errors import FxArrayError
from fxarray.core.factors import Factors
from fxarray.core.primitive import Primitive, Sample
from fxarray.core.types import ArrayType, Shape
from fxarray.primitives.support import Values
from fxarray.testing.rules.operands import (
    assert_near,
    buffers_of,
    device_arrays,
    epsilon,
    exact_values,
    largest,
    types_of,
)

_REDUCTIONS: dict[str, Any] = {
    "sum": np.add,
    "prod": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


def factor_sizes(
    record: Factors, types: Sequence[ArrayType], results: Sequence[ArrayType]
) -> dict[str, int]:
    """The size of each factor; asserts that all dimensions that carry one have the same."""
    sizes: dict[str, int] = {}
    for names, type in zip((*record.operands, *record.results), (*types, *results), strict=True):
        assert len(names) == type.ndim, f"{names} does not describe {type}"
        for name, size in zip(names, type.shape, strict=True):
            assert isinstance(size, int)
            assert sizes.setdefault(name, size) == size, (
                f"factor {name} has sizes {sizes[name]} and {size}"
            )
    return sizes


def _cut(buffer: Values, names: Sequence[str], factor: str, part: int, parts: int) -> Values:
    for dimension, name in enumerate(names):
        if name == factor:
            buffer = np.array_split(buffer, parts, dimension)[part]
    return buffer


Layout: TypeAlias = "tuple[tuple[str, ...], Shape, Shape]"


def local_operations(op: Primitive, factor: str, layouts: Sequence[Layout]) -> list[Primitive]:
    """What an operation may become in one part: itself, or with smaller sizes as parameters.

    Args:
      op: the operation.
      factor: the factor that is split.
      layouts: for each result and operand, its factors, its shape, and its shape in the part.
    """
    changed: dict[str, Any] = {}
    for name, value in op.parameters().items():
        if type(value) is not tuple or not all(type(item) is int for item in value):
            continue
        for names, whole, part in layouts:
            if len(names) == len(value) and factor in names:
                position = names.index(factor)
                if value[position] == whole[position]:
                    entries = (*value[:position], part[position], *value[position + 1 :])
                    changed.setdefault(name, entries)
    if not changed:
        return [op]
    return [op, type(op)(**{**op.parameters(), **changed})]


def _infer_part(
    operations: Sequence[Primitive],
    types: Sequence[ArrayType],
    shapes: Sequence[tuple[int, ...]],
    what: str,
) -> Primitive:
    """The operation that takes a part's operands and gives its results."""
    reasons: list[str] = []
    for op in operations:
        try:
            inferred = op.infer(*types)
        except FxArrayError as error:
            reasons.append(error.message)
            continue
        if [type.shape for type in inferred] == list(shapes):
            return op
        reasons.append(f"it gives {inferred}, not shapes {shapes}")
    raise AssertionError(f"{what}: not possible: {'; '.join(reasons)}")


def check_shard(sample: Sample) -> None:
    """The factor record is right: split along any factor, the parts make up the whole."""
    arrays = device_arrays(sample)
    op, types = sample.op, types_of(arrays)
    if "shard" in op.EXCUSED:
        return
    record = op.shard(*types)
    results = op.infer(*types)
    assert isinstance(record, Factors), f"{op}: shard returned {record!r}"
    assert len(record.operands) == len(types), f"{op}: {record} has not one entry per operand"
    assert len(record.results) == len(results), f"{op}: {record} has not one entry per result"
    sizes = factor_sizes(record, types, results)
    kept = {name for names in record.results for name in names}
    used = {name for names in record.operands for name in names}
    assert not set(record.vanished) & kept, f"{op}: {record} keeps a factor that has vanished"
    lost = used - kept - set(record.vanished)
    assert not lost, f"{op}: {record} does not say how {sorted(lost)} vanished"
    whole = op.reference(*buffers_of(arrays))
    for factor, size in sizes.items():
        if factor in record.whole:
            continue
        for parts in (2, 4):
            if size >= parts:
                _check_split(sample, arrays, record, factor, parts, results, whole)


def _check_split(
    sample: Sample,
    arrays: Sequence[DeviceArray],
    record: Factors,
    factor: str,
    parts: int,
    results: Sequence[ArrayType],
    whole: Sequence[Values],
) -> None:
    op = sample.op
    what = f"{op}: split along {factor} in {parts} by {record}"
    pieces: list[Sequence[Values]] = []
    for part in range(parts):
        buffers = [
            _cut(array.numpy_view(), names, factor, part, parts)
            for array, names in zip(arrays, record.operands, strict=True)
        ]
        shapes = [
            _cut(np.empty(type.shape, np.bool_), names, factor, part, parts).shape
            for type, names in zip(results, record.results, strict=True)
        ]
        types = [a.type.replace(shape=b.shape) for a, b in zip(arrays, buffers, strict=True)]
        layouts = [
            *zip(record.results, [r.shape for r in results], shapes, strict=True),
            *zip(
                record.operands,
                [a.type.shape for a in arrays],
                [b.shape for b in buffers],
                strict=True,
            ),
        ]
        operations = local_operations(op, factor, layouts)
        local = _infer_part(operations, types, shapes, f"{what}: part {part}")
        pieces.append(local.reference(*buffers))
    for number, (names, expected) in enumerate(zip(record.results, whole, strict=True)):
        values = [piece[number] for piece in pieces]
        if factor in names:
            combined = np.concatenate(values, names.index(factor))
        else:
            combined = _combine(values, record.vanished.get(factor, "any"))
        terms = max(array.numpy_view().size for array in arrays) if arrays else 1
        tolerance = sample.tolerance * epsilon(expected.dtype) * max(1, terms)
        scale = largest(expected) if dtypes.is_inexact(expected.dtype) else 0.0
        assert_near(combined, expected, tolerance, scale, f"{what}: result {number}")


def _combine(values: Sequence[Values], reduction: str) -> Values:
    if reduction == "any":
        return values[-1]
    total = exact_values(values[0])
    with np.errstate(all="ignore"):
        for value in values[1:]:
            total = _REDUCTIONS[reduction](total, exact_values(value))
    return dtypes.cast(np.asarray(total), values[0].dtype)
