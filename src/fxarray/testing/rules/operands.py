"""What the checks of rules share: a sample's operands, their types, directions, wider copies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fxarray.core import dtypes
from fxarray.core.array import Array, DeviceArray
from fxarray.core.errors import FxArrayError
from fxarray.core.ir import Literal, Program
from fxarray.core.primitive import Primitive, Sample
from fxarray.core.types import ArrayType
from fxarray.interpreters.staging import stage_closed
from fxarray.primitives.support import Values


def read_only(buffer: Values) -> Values:
    """A copy that raises when it is written to, so that a rule that spoils its operands fails."""
    copy = np.array(buffer)
    copy.flags.writeable = False
    return copy


def device_array(operand: Any) -> DeviceArray:
    """A sample's operand as an array of ours, not weak, that cannot be written to."""
    if isinstance(operand, DeviceArray):
        return DeviceArray(read_only(operand.numpy_view()), operand.type)
    assert not isinstance(operand, Array)
    buffer = read_only(np.asarray(operand))
    return DeviceArray(buffer, ArrayType(buffer.shape, buffer.dtype))


def device_arrays(sample: Sample) -> list[DeviceArray]:
    """The operands of a sample."""
    return [device_array(operand) for operand in sample.operands]


def types_of(arrays: Sequence[Array]) -> list[ArrayType]:
    """The types of arrays."""
    return [array.type for array in arrays]


def buffers_of(arrays: Sequence[Any]) -> list[Values]:
    """The NumPy buffers of arrays."""
    return [array.numpy_view() for array in arrays]


def inexact_positions(arrays: Sequence[Array]) -> list[int]:
    """Which arrays have derivatives."""
    return [i for i, array in enumerate(arrays) if dtypes.is_inexact(array.type.dtype)]


def random_values(rng: np.random.Generator, type: ArrayType) -> DeviceArray:
    """Normally distributed values of an inexact type."""
    values: Any = rng.normal(size=type.shape)
    if dtypes.is_complex(type.dtype):
        values = values + 1j * rng.normal(size=type.shape)
    buffer = dtypes.cast(np.asarray(values), dtypes.physical(type.dtype))
    return DeviceArray(read_only(buffer), type.strong())


def wide_dtype(dtype: Any) -> Any:
    """float64 for floats, complex128 for complex dtypes, others as they are."""
    if dtypes.is_float(dtype):
        return dtypes.float64
    if dtypes.is_complex(dtype):
        return dtypes.complex128
    return dtype


def wide_array(array: DeviceArray) -> DeviceArray:
    """An inexact array in float64 or complex128."""
    dtype = wide_dtype(array.type.dtype)
    if dtype == array.type.dtype:
        return array
    buffer = read_only(dtypes.cast(array.numpy_view(), dtype))
    return DeviceArray(buffer, array.type.replace(dtype=dtype))


def wide_program(program: Program) -> Program:
    """A Program that computes the same in float64 and complex128."""

    def run(*arguments: Any) -> list[Any]:
        environment: dict[Any, Any] = dict(zip(program.inputs, arguments, strict=True))

        def read(atom: Any) -> Any:
            return (
                wide_array(device_array(atom.value)) if type(atom) is Literal else environment[atom]
            )

        for equation in program.equations:
            results = wide_operation(equation.op).bind(*map(read, equation.inputs))
            environment.update(zip(equation.outputs, results, strict=True))
        return [read(atom) for atom in program.outputs]

    types = [type.replace(dtype=wide_dtype(type.dtype)) for type in program.input_types]
    return stage_closed(run, types, program.name)


def _wide_parameter(value: Any) -> Any:
    if isinstance(value, Program):
        return wide_program(value)
    if isinstance(value, np.dtype):
        return wide_dtype(value)
    if isinstance(value, ArrayType):
        return value.replace(dtype=wide_dtype(value.dtype))
    if type(value) is tuple:
        return tuple(map(_wide_parameter, value))
    return value


def wide_operation(op: Primitive) -> Primitive:
    """The operation with the dtypes among its parameters, and its Programs, made wide."""
    parameters = {name: _wide_parameter(value) for name, value in op.parameters().items()}
    return type(op)(**parameters) if parameters else op


def wide_sample(sample: Sample) -> tuple[Primitive, list[DeviceArray]] | None:
    """The operation and its operands in float64 and complex128, or None if it takes no such."""
    arrays = [wide_array(array) for array in device_arrays(sample)]
    try:
        op = wide_operation(sample.op)
        results = op.infer(*types_of(arrays))
    except FxArrayError:
        return None
    narrow = any(dtypes.is_inexact(t.dtype) and wide_dtype(t.dtype) != t.dtype for t in results)
    return None if narrow else (op, arrays)


def epsilon(dtype: Any) -> float:
    """The distance from 1 to the next number; 0 for exact dtypes."""
    if not dtypes.is_inexact(dtype):
        return 0.0
    return float(dtypes.finfo(dtype).eps)


def exact_values(buffer: Values) -> Values:
    """Inexact values in float64 or complex128; others as they are."""
    if dtypes.is_inexact(buffer.dtype):
        return dtypes.cast(buffer, wide_dtype(buffer.dtype))
    return buffer


def largest(buffer: Values) -> float:
    """The largest finite magnitude, or 0."""
    values = np.abs(exact_values(buffer))
    values = values[np.isfinite(values)]
    return float(values.max()) if values.size else 0.0


def assert_near(
    actual: Values, expected: Values, tolerance: float, scale: float, what: str
) -> None:
    """Assert `|actual - expected| <= tolerance * (|expected| + scale)`, with equal dtype and shape.

    Args:
      actual: what a rule gives.
      expected: what it should give.
      tolerance: a relative error.
      scale: the magnitude below which errors are absolute.
      what: what is compared, for the message.
    """
    assert actual.shape == expected.shape, f"{what}: shape {actual.shape}, not {expected.shape}"
    assert actual.dtype == expected.dtype, f"{what}: dtype {actual.dtype}, not {expected.dtype}"
    if not dtypes.is_inexact(actual.dtype):
        assert np.array_equal(actual, expected), f"{what}:\n{actual}\nis not\n{expected}"
        return
    got, wanted = exact_values(actual), exact_values(expected)
    with np.errstate(all="ignore"):
        same = (got == wanted) | (np.isnan(got) & np.isnan(wanted))
        near = np.abs(got - wanted) <= tolerance * (np.abs(wanted) + scale)
    assert np.all(same | near), (
        f"{what}: differs by up to {np.nanmax(np.where(same, 0, np.abs(got - wanted)))}, "
        f"with tolerance {tolerance} and scale {scale}:\n{actual}\nis not\n{expected}"
    )


def samples_of(cls: type[Primitive], limit: int = 24) -> tuple[list[Sample], list[Sample]]:
    """The good and the bad samples of a class; of many, some spread over all.

    Args:
      cls: the class of the primitive.
      limit: how many good samples to keep.
    """
    everything: list[Sample] = list(cls.samples(np.random.default_rng(0)))
    good = [sample for sample in everything if sample.error is None]
    bad = [sample for sample in everything if sample.error is not None]
    if len(good) > limit:
        places = sorted({round(i * (len(good) - 1) / (limit - 1)) for i in range(limit)})
        good = [good[place] for place in places]
    return good, bad
