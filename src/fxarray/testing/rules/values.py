"""Checks of values: infer, reference, eager, compiled Programs, bad samples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fxarray.compile.driver import compile_program
from fxarray.core import dims, dtypes
from fxarray.core.array import DeviceArray
from fxarray.core.dims import Dim
from fxarray.core.errors import FxArrayError
from fxarray.core.primitive import Sample
from fxarray.core.types import ArrayType
from fxarray.interpreters.staging import stage
from fxarray.primitives.elementwise_base import Elementwise
from fxarray.primitives.support import Values
from fxarray.testing.rules.operands import (
    assert_near,
    buffers_of,
    device_arrays,
    epsilon,
    largest,
    types_of,
)


def allowed(sample: Sample, dtype: Any) -> float:
    """The relative error allowed between two ways to compute a sample's values."""
    return sample.tolerance * epsilon(dtype)


def check_infer(sample: Sample) -> None:
    """`infer` gives the shapes and dtypes that `reference` returns."""
    arrays = device_arrays(sample)
    op = sample.op
    types = op.infer(*types_of(arrays))
    assert type(types) is tuple, f"{op}: infer returned a {type(types).__name__}, not a tuple"
    values = op.reference(*buffers_of(arrays))
    assert type(values) is tuple, f"{op}: reference returned a {type(values).__name__}, not a tuple"
    assert len(types) == len(values), f"{op}: infer gives {len(types)} results, not {len(values)}"
    for number, (inferred, value) in enumerate(zip(types, values, strict=True)):
        what = f"{op}: result {number}"
        assert isinstance(inferred, ArrayType), f"{what}: infer gave {inferred!r}"
        assert isinstance(value, np.ndarray), f"{what}: reference gave a {type(value).__name__}"
        assert inferred.shape == value.shape, f"{what} is {inferred}, reference {value.shape}"
        physical = dtypes.physical(inferred.dtype)
        assert physical == value.dtype, f"{what} is {inferred}, reference gives {value.dtype}"


def check_eager(sample: Sample) -> None:
    """`eager` agrees with `reference`."""
    arrays = device_arrays(sample)
    expected = sample.op.reference(*buffers_of(arrays))
    compare_values(sample, sample.op.eager(*buffers_of(arrays)), expected, arrays, "eager")


def check_backend(sample: Sample, backends: Sequence[str] = ("cpu", "numpy")) -> None:
    """A Program of the operation, compiled, agrees with `reference`, and so does `bind`."""
    arrays = device_arrays(sample)
    expected = sample.op.reference(*buffers_of(arrays))
    program, captured = stage(sample.op.bind, types_of(arrays), sample.op.name)
    assert not captured, f"{sample.op}: staging captured values"
    found = [(f"backend {b}", compile_program(program, backend=b)(arrays)) for b in backends]
    for name, results in (*found, ("bind", sample.op.bind(*arrays))):
        compare_values(sample, buffers_of(results), expected, arrays, name)
        for inferred, result in zip(sample.op.infer(*types_of(arrays)), results, strict=True):
            assert inferred == result.type, (
                f"{sample.op}: {name} gives {result.type}, not {inferred}"
            )


def compare_values(
    sample: Sample,
    actual: Sequence[Values],
    expected: Sequence[Values],
    arrays: Sequence[DeviceArray],
    name: str,
) -> None:
    """Raise unless one way to compute a sample's results agrees with another.

    Args:
      sample: the sample.
      actual: results.
      expected: those of the reference.
      arrays: the operands.
      name: of what computed the results.
    """
    assert len(actual) == len(expected), f"{sample.op}: {name} gives {len(actual)} results"
    # Sums may cancel, so their errors are relative to the operands; elementwise, to the result.
    elementwise = isinstance(sample.op, Elementwise)
    for number, (value, wanted) in enumerate(zip(actual, expected, strict=True)):
        assert isinstance(value, np.ndarray), f"{sample.op}: {name} gives {type(value).__name__}"
        inexact = dtypes.is_inexact(wanted.dtype)
        scale = max(map(largest, (*buffers_of(arrays), wanted)), default=0.0) if inexact else 0.0
        scale = float(dtypes.finfo(wanted.dtype).tiny) if elementwise and inexact else scale
        tolerance = allowed(sample, wanted.dtype)
        assert_near(value, wanted, tolerance, scale, f"{sample.op}: {name}, result {number}")


def check_bad_sample(sample: Sample) -> None:
    """A bad sample raises its error, whose message names the operation."""
    assert sample.error is not None
    op = sample.op
    raised: FxArrayError | None = None
    results: Any = None
    try:
        results = op.infer(*types_of(device_arrays(sample)))
    except FxArrayError as error:
        raised = error
    wanted = sample.error.__name__
    assert raised is not None, f"{op}: a bad sample gives {results} instead of {wanted}"
    assert isinstance(raised, sample.error), (
        f"{op}: raised {type(raised).__name__}, not {wanted}: {raised}"
    )
    assert op.name in raised.message, f"{op}: the message does not name it: {raised.message}"


def check_sizes(sample: Sample) -> None:
    """No two sizes of an operand are equal, so that swapped dimensions are noticed.

    Square matrices, the last two dimensions, are what some operations are about.
    """
    for operand in sample.operands:
        shape = np.shape(operand)
        sizes = [size for size in shape if size > 1]
        square = len(shape) >= 2 and shape[-1] == shape[-2]
        assert len(set(sizes)) >= len(sizes) - square, f"{sample.op}: an operand is {shape}"


def symbolic_types(types: Sequence[ArrayType]) -> tuple[list[ArrayType], dict[str, int]]:
    """Types with a variable for each size above 1, and the values of these variables."""
    sizes = sorted({size for given in types for size in given.shape if size > 1})
    variables: dict[Any, Dim] = {size: dims.ShapeVar(f"n{size}") for size in sizes}
    symbolic = [
        given.replace(shape=tuple(variables.get(size, size) for size in given.shape))
        for given in types
    ]
    return symbolic, {f"n{size}": int(size) for size in sizes}


def check_symbolic(sample: Sample) -> None:
    """With variables for sizes, `infer` gives types that become the known ones, or declines."""
    arrays = device_arrays(sample)
    symbolic, values = symbolic_types(types_of(arrays))
    if not values:
        return
    try:
        inferred = sample.op.infer(*symbolic)
    except FxArrayError:
        # Parameters that hold sizes do not go with variables; elementwise operations have none.
        assert not isinstance(sample.op, Elementwise), f"{sample.op}: no symbolic sizes"
        return
    for number, (got, wanted) in enumerate(
        zip(inferred, sample.op.infer(*types_of(arrays)), strict=True)
    ):
        shape = tuple(s.evaluate(values) if isinstance(s, Dim) else s for s in got.shape)
        assert shape == wanted.shape, f"{sample.op}: result {number} is {got}, known: {wanted}"
        assert got.dtype == wanted.dtype, f"{sample.op}: result {number} is {got}, not {wanted}"
